"""Results as tables and files.

results          labels, training weights, worker scorecards and the summary, as data frames and JSON
result_files     all files of one run: labels.csv, workers.csv, summary.json, and further formats; also shard by shard
training_table   fields of items beside their labels; JSON lines and Parquet for Hugging Face `datasets`
write_back       labels for the tools that the items came from
pseudonyms       pseudonyms for workers
"""
