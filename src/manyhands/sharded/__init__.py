"""Fits on labels in shards: in memory, on disk or in a cluster, with the same bits everywhere.

labels        `Shard`, the interface `ShardedLabels`, shards in memory, the order of items, threads
passes        the tasks of EM, the shards as what EM reads, and the record of finished passes
fit           `fit`: the methods that run on shards, their outcome and their workers
code_folder   the labels of a crowd as codes on disk

A task is a pure function of one shard. Whoever holds the shards runs the tasks; sums are taken in the order of shards
by the caller, so that neither threads nor engines change a bit.
"""
