"""Long tables larger than memory, read in parts into a code folder.

inputs         the files: which they are, of which kind, and the fingerprint by which a code folder is found again
row_batches    `Batch`: some rows of a file; which columns hold items, workers and labels
parquet_batches, text_chunks, csv_batches, json_batches    the rows of a file in batches of bounded size
coding         texts of workers and labels as numbers; which rows count
spill          rows on disk, by ranges of the CRC-32 of their items
joined_texts   texts as one piece of bytes: CRC-32, distinct texts, order
packing        the rows of a range: sorted, repeats left out, as codes
stray_labels   classes that are left out as typing errors, found in rows that are on disk
code_blocks    all ranges one after the other, as the blocks of a code folder, with the ledger
cache          the folder of code folders: entries, their sizes, removal
ingest         `stream_to_codes`: from files to a `CodeFolder`
"""
