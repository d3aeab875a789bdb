"""Labels in shards of items: the same computation in memory, on disk and on a cluster.

code_writer, code_files, code_ids    the code folder on disk: writing it, reading it shard by shard, ids as bytes
"""
