"""Results as tables and files.

results        labels and training weights as data frames; the summary of a run
worker_tables  worker scorecards as a data frame
result_files   all files of one run: labels.csv, workers.csv, summary.json, and further formats
item_flags     flags of items in labels.csv
write_back     labels for other tools: Label Studio predictions, JSON lines and Parquet for Hugging Face `datasets`
raw_members    positions of members in a JSON file, so that they are written again byte for byte
triples        annotations as long and wide tables
pseudonyms     pseudonyms for workers
spreadsheet    protection of cells that a spreadsheet would run as formulas
json_values    Python and NumPy values as JSON
"""
