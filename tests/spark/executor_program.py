"""A driver of its own: fits a crowd on executors that lack the package, or of which one is killed.

python executor_program.py MASTER CHECKPOINT OUT.npz [MARKER]
"""

import sys
import warnings

import numpy as np
from pyspark.sql import SparkSession
from spark_crowds import KillOnce, Surroundings, crowd_of, frame_of

import manyhands
from manyhands.sharded.fit import fit
from manyhands.spark.shards import SparkShards

N_SHARDS = 4


def main(master, checkpoint, out, marker=None):
    warnings.simplefilter("ignore")
    builder = SparkSession.builder.master(master).config("spark.ui.enabled", "false")
    spark = builder.config("spark.sql.shuffle.partitions", "4").config("spark.executor.memory", "512m").getOrCreate()
    labels = SparkShards.from_frame(frame_of(spark, crowd_of(400)), checkpoint, n_shards=N_SHARDS)
    surroundings = list(labels.run(Surroundings(), ""))
    run, passes = labels.run, []

    def killing(task, what):
        passes.append(what)
        return run(KillOnce(task, marker) if marker and len(passes) == 4 else task, what)

    labels.run = killing
    found = {}
    for name in ["DawidSkene"] if marker else ["DawidSkene", "PooledDawidSkene", "MajorityVote"]:
        method = manyhands.MajorityVote() if name == "MajorityVote" else getattr(manyhands, name)(max_iter=5)
        result = fit(method, labels)
        found[name] = np.concatenate([shard.posterior for shard in run(result.final_task, "")])
    np.savez(out, surroundings=np.array(surroundings, str), **found)
    spark.stop()


main(*sys.argv[1:])
