"""`CrowdModel`: the outcome of a fit on Spark, as DataFrames and as a model for one machine."""

from __future__ import annotations

from typing import Any

import numpy as np

from manyhands.exceptions import ParameterError
from manyhands.sharded.sharded_fit import ShardedFit
from manyhands.spark.label_columns import DataFrame, quoted
from manyhands.spark.remote import pack, remote_function
from manyhands.spark.saved_model import read_model, write_model
from manyhands.spark.shard_columns import BINARY, PASS_COLUMNS
from manyhands.spark.shard_tables import Session
from manyhands.spark.spark_shards import SparkShards

_WIDE = {"tinyint": "bigint", "smallint": "bigint", "int": "bigint", "float": "double"}  # as executors return them


class CrowdModel:
    """A fitted crowd.

    It has the methods of `pyspark.ml.Model` that make sense without the JVM. Built by `fit` of an estimator and by
    `load`.

    Parameters
    ----------
    spark : SparkSession
        The session.
    items : DataFrame
        One row per item: item, label, confidence, probs.
    workers : DataFrame
        One row per worker.
    confusions : DataFrame or None
        One row per worker, truth and label.
    summary : dict of str to object
        Method, parameters, sizes, classes, and how the fit ended.
    local_model : Aggregator
        The model for one machine.

    Attributes
    ----------
    items : DataFrame
        ``item``, ``label``, ``confidence`` (the largest probability), ``probs`` (array<double>, in the order of
        ``summary["classes"]``). It is computed from the checkpoint each time an action needs it; nothing is collected.
    workers : DataFrame
        ``worker``, ``n_labels``, ``n_checked`` (labels on items that others labelled too), ``accuracy`` (expected share
        of right labels among those).
    confusions : DataFrame or None
        ``worker``, ``truth``, ``label``, ``probability``; None for methods without confusion matrices.
    summary : dict of str to object
        Method, parameters, sizes, classes, and how the fit ended.
    """

    def __init__(
        self,
        spark: Session,
        items: DataFrame,
        workers: DataFrame,
        confusions: DataFrame | None,
        summary: dict[str, Any],
        local_model: Any,
    ) -> None:
        self.spark, self.items, self.workers, self.confusions = spark, items, workers, confusions
        self.summary, self._local_model = summary, local_model

    def local(self) -> Any:
        """The fitted method for one machine, without items: it predicts from new labels, and can be saved.

        Returns
        -------
        Aggregator
            Such as `manyhands.DawidSkene`, fitted.
        """
        return self._local_model

    def copy(self, extra: dict[str, Any] | None = None) -> CrowdModel:
        """The model; it has no parameters that could be replaced.

        Parameters
        ----------
        extra : dict of str to object, default=None
            Must be empty.

        Returns
        -------
        CrowdModel
        """
        if extra:
            raise ParameterError(
                f"A fitted model has no parameter {next(iter(extra))!r}: fit again with other parameters."
            )
        return CrowdModel(self.spark, self.items, self.workers, self.confusions, dict(self.summary), self._local_model)

    def save(self, path: str, *, overwrite: bool = False) -> None:
        """Write the model with the results of all items, so that the checkpoint may be deleted afterwards.

        Parameters
        ----------
        path : str
            Folder, in any store that the engine writes to.
        overwrite : bool, default=False
            Whether a model that is there may be replaced.

        Raises
        ------
        OutputExistsError
            Where there is one and it may not be replaced.
        """
        frames = {"items": self.items, "workers": self.workers}
        if self.confusions is not None:
            frames["confusions"] = self.confusions
        write_model(path, frames, self.summary, self._local_model, self.spark, overwrite=overwrite)

    @classmethod
    def load(cls, spark: Session, path: str) -> CrowdModel:
        """Read a model that `save` wrote.

        Parameters
        ----------
        spark : SparkSession
            The session.
        path : str
            Its folder.

        Returns
        -------
        CrowdModel
        """
        frames, summary, local = read_model(spark, path)
        return cls(spark, frames["items"], frames["workers"], frames.get("confusions"), summary, local)

    def transform(
        self,
        dataset: DataFrame,
        predictionCol: str = "prediction",
        confidenceCol: str = "confidence",
        probsCol: str = "probs",
    ) -> DataFrame:
        """Add label, confidence and probabilities to the rows of a DataFrame, by their item.

        Parameters
        ----------
        dataset : DataFrame
            Any rows with the column of the item; items that were not fitted get nulls.
        predictionCol : str, default="prediction"
            New column with the label.
        confidenceCol : str, default="confidence"
            New column with its probability.
        probsCol : str, default="probs"
            New column with the probabilities of all classes.

        Returns
        -------
        DataFrame
            All columns and rows of `dataset`, and three more columns.

        Raises
        ------
        ParameterError
            Where `dataset` has no column of the item, or has one of the new columns already.
        """
        item, new = self.summary["itemCol"], (predictionCol, confidenceCol, probsCol)
        if item not in dataset.columns:
            raise ParameterError(f"The DataFrame has no column {item!r}, by which the labels of items are found.")
        for name in new:
            if name in dataset.columns:
                raise ParameterError(f"The DataFrame has a column {name!r} already. Choose another name, or drop it.")
        results = self.items.toDF(item, *new)
        return dataset.join(results, on=item, how="left").select(*map(quoted, (*dataset.columns, *new)))


def model_of_fit(labels: SparkShards, fit: ShardedFit, item: str) -> CrowdModel:
    """The model of a fit, with DataFrames that are computed when they are needed.

    Parameters
    ----------
    labels : SparkShards
        The labels.
    fit : ShardedFit
        The fit.
    item : str
        Column with the item.

    Returns
    -------
    CrowdModel
    """
    summary = {
        "method": type(fit.method).__name__,
        "parameters": fit.method.get_params(),
        "itemCol": item,
        "classes": labels.classes.tolist(),
        "n_items": labels.n_items,
        "n_labels": labels.n_labels,
        "n_workers": len(labels.worker_ids),
        "n_shards": labels.n_shards,
        "n_iter": fit.n_iter,
        "converged": fit.converged,
        "history": list(fit.history),
        "notes": dict(fit.notes),
        "rows": dict(labels.manifest.ledger),
    }
    frames = (_items(labels, fit), _workers(labels, fit), _confusions(labels, fit))
    return CrowdModel(labels.spark, *frames, summary, fit.model())


def _items(labels: SparkShards, fit: ShardedFit) -> DataFrame:
    """Results of all items, computed on the executors."""
    types = labels.manifest.types
    wide = {role: _WIDE.get(kind, kind) for role, kind in types.items()}
    arguments = (fit.final_task, len(labels.worker_ids), labels.id_kind, labels.classes.tolist())
    function = remote_function("item_rows", pack(arguments, labels.folder))
    schema = f"item {wide['item']}, label {wide['label']}, confidence double, probs array<double>"
    rows = labels.table().select(*PASS_COLUMNS, *BINARY[2:]).mapInArrow(function, schema)
    return rows.select(
        rows["item"].cast(types["item"]).alias("item"),
        rows["label"].cast(types["label"]).alias("label"),
        rows["confidence"],
        rows["probs"],
    )


def _workers(labels: SparkShards, fit: ShardedFit) -> DataFrame:
    """One row per worker."""
    import pandas as pd

    ids = labels.worker_ids.tolist()
    columns = {
        "worker": pd.Series(ids, dtype=object) if ids and isinstance(ids[0], str) else ids,
        "n_labels": labels.worker_volume,
        "n_checked": np.rint(fit.n_checked).astype(np.int64),
        "accuracy": fit.worker_accuracy,
    }
    kind = labels.manifest.types["worker"]
    schema = f"worker {_WIDE.get(kind, kind)}, n_labels bigint, n_checked bigint, accuracy double"
    frame = labels.spark.createDataFrame(pd.DataFrame(columns), schema)
    return frame.withColumn("worker", frame["worker"].cast(kind))


def _confusions(labels: SparkShards, fit: ShardedFit) -> DataFrame | None:
    """One row per worker, truth and label, made on the executors."""
    if fit.confusion is None:
        return None
    types = labels.manifest.types
    wide = {role: _WIDE.get(kind, kind) for role, kind in types.items()}
    arguments = (np.ascontiguousarray(fit.confusion), labels.worker_ids.tolist(), labels.classes.tolist())
    function = remote_function("confusion_rows", pack(arguments, labels.folder))
    schema = f"worker {wide['worker']}, truth {wide['label']}, label {wide['label']}, probability double"
    rows = labels.spark.range(len(labels.worker_ids)).mapInArrow(function, schema)
    kinds = {"worker": types["worker"], "truth": types["label"], "label": types["label"], "probability": "double"}
    return rows.select(*(rows[name].cast(kind).alias(name) for name, kind in kinds.items()))
