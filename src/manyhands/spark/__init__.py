"""Aggregation on Spark, with the same bits as on one machine: estimators that take and return DataFrames.

em_estimators    `DawidSkene`, `OneCoin`, `MACE`; pooled_estimators: `PooledDawidSkene`, `MajorityVote`
crowd_estimator  what they share
crowd_model      `CrowdModel`: labels of items, workers, confusion matrices as DataFrames; saved_model: its folder
spark_shards     `SparkShards`: labels in a table of shards (`sharded.labels.ShardedLabels`)
shard_tables     how that table is written, and its manifest; label_columns: columns, types and hashes of the rows
remote           functions that run tasks on executors; package_sources: how executors without the package get it
executor_tasks   what runs on executors; blocks: labels as binary columns (shard_columns)
volume_task      labels of each worker
shared_files     files that driver and executors both reach; engine_errors: errors of executors as one sentence
job              the program `manyhands-spark`

DataFrames alone are used: no RDD, no SparkContext, no access to the JVM. Classic clusters, Spark Connect, Databricks
serverless compute and other engines that speak Spark Connect's protocol all run it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from manyhands.spark.crowd_model import CrowdModel as CrowdModel
    from manyhands.spark.em_estimators import MACE as MACE
    from manyhands.spark.em_estimators import DawidSkene as DawidSkene
    from manyhands.spark.em_estimators import OneCoin as OneCoin
    from manyhands.spark.pooled_estimators import MajorityVote as MajorityVote
    from manyhands.spark.pooled_estimators import PooledDawidSkene as PooledDawidSkene

_PLACES = {
    "CrowdModel": "crowd_model",
    "DawidSkene": "em_estimators",
    "MACE": "em_estimators",
    "MajorityVote": "pooled_estimators",
    "OneCoin": "em_estimators",
    "PooledDawidSkene": "pooled_estimators",
}
__all__ = sorted(_PLACES)


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used; executors import the package without them."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
