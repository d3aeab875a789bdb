"""Fits on labels in shards: in memory, on disk or in a cluster, with the same bits everywhere.

layout         the order of items and the number of shards, both fixed by the data alone
labels         `Shard`, the interface `ShardedLabels`, and `InMemoryShards`
shard_threads  tasks on shards in several threads, results in the order of shards
passes         the tasks of EM, and the shards as what EM reads; partial: sums in the order of shards
views          what a fit does to the labels of a shard first: a colluding group as one voter, merged workers
pass_log       the record of finished passes, with which a run that was ended continues
items          the tasks at the end: posterior, class and statistics of every item
fits           `fit`: the methods that run on shards; sharded_fit: its outcome; worker_sums: the table of workers
pooled_shards  Pooled Dawid-Skene on shards; item_sample: the items that it looks at together, pooled_posterior: its end
code_writer, code_files, code_ids    the code folder on disk: writing it, reading it shard by shard, ids as bytes

A task is a pure function of one shard. Whoever holds the shards runs the tasks; sums are taken in the order of shards
by the caller, so that neither threads nor engines change a bit.
"""
