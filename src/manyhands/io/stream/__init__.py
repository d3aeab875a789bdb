"""Long tables larger than memory, read in parts into a code folder.

batches        the files and their fingerprint; their rows in batches of bounded size, from Parquet, CSV and JSON lines
ingest         `stream_to_codes`: rows as numbers, put on disk by ranges of items, sorted range by range, and
               written as the blocks of a `CodeFolder`; the cache of such folders
"""
