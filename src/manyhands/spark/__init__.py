"""Aggregation on Spark, with the same bits as on one machine: estimators that take and return DataFrames.

estimators       `DawidSkene`, `OneCoin`, `MACE`, `PooledDawidSkene`, `MajorityVote`; `CrowdModel`, which they fit
shards           `SparkShards`: labels in a table of shards (`sharded.labels.ShardedLabels`), and how it is written
remote           functions that run on executors, their arguments, shared files and errors
executors        what runs there (needs PyArrow)
package_sources  how executors without the package get it
job              the program `manyhands-spark`

DataFrames alone are used: no RDD, no SparkContext, no access to the JVM. Classic clusters, Spark Connect, Databricks
serverless compute and other engines that speak Spark Connect's protocol all run it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from manyhands._core.exports import exported_on_first_use

if TYPE_CHECKING:
    from manyhands.spark.estimators import MACE, CrowdModel, DawidSkene, MajorityVote, OneCoin, PooledDawidSkene

_HOMES = {  # public name -> module; executors import the package without them
    "CrowdModel": "manyhands.spark.estimators",
    "DawidSkene": "manyhands.spark.estimators",
    "MACE": "manyhands.spark.estimators",
    "MajorityVote": "manyhands.spark.estimators",
    "OneCoin": "manyhands.spark.estimators",
    "PooledDawidSkene": "manyhands.spark.estimators",
}
__all__ = ["CrowdModel", "DawidSkene", "MACE", "MajorityVote", "OneCoin", "PooledDawidSkene"]
__getattr__, __dir__ = exported_on_first_use(__name__, _HOMES)
