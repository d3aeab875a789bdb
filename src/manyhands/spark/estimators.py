"""Estimators for Spark, the crowd that they fit, and the folder in which it is saved."""

from __future__ import annotations

import inspect
import json
import tempfile
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar, Self

import numpy as np

from manyhands import registry
from manyhands._core.spelling import did_you_mean
from manyhands.exceptions import ManyhandsError, MissingExtraError, OutputExistsError, ParameterError
from manyhands.persistence import load_model, save_model
from manyhands.sharded.fit import ShardedFit
from manyhands.sharded.fit import fit as fit_shards
from manyhands.sharded.passes import PassLog
from manyhands.spark.remote import is_absent, local_path, pack, remote_function
from manyhands.spark.shards import BINARY, PASS_COLUMNS, DataFrame, Session, SparkShards, quoted

# ----------------------------------------------------------------------------------------------------
# The folder of a saved model: Parquet tables that any engine reads, and the model for one machine, without pickles.
#
# <path>/items, workers, confusions    the DataFrames of the model
# <path>/model                         files of `persistence.save_model` and summary.json, one row each; written last

FORMAT = 1
_SCHEMA = "name string, content binary"


def write_model(
    path: str, frames: dict[str, DataFrame], summary: dict[str, Any], local: Any, spark: Session, *, overwrite: bool
) -> None:
    """Write a model."""
    check_free(spark, path, overwrite=overwrite)
    for name, frame in frames.items():
        frame.write.mode("overwrite").parquet(f"{path}/{name}")
    tables = {"format": FORMAT, "tables": sorted(frames)}
    rows = [("summary.json", json.dumps(tables | {"summary": summary}, default=_plain).encode())]
    with TemporaryDirectory() as folder:
        save_model(local, Path(folder) / "model")
        rows += [(file.name, file.read_bytes()) for file in sorted((Path(folder) / "model").iterdir())]
    made = spark.createDataFrame([(name, bytearray(content)) for name, content in rows], _SCHEMA)
    made.coalesce(1).write.mode("overwrite").parquet(f"{path}/model")


def check_free(spark: Session, path: str, *, overwrite: bool) -> None:
    """Refuse a folder that contains a model."""
    if not overwrite and _read(spark, path):
        raise OutputExistsError(f"{path} contains a model already. Choose another path, or have it replaced.")


def read_model(spark: Session, path: str) -> tuple[dict[str, DataFrame], dict[str, Any], Any]:
    """Read a model."""
    files = _read(spark, path)
    if "summary.json" not in files:
        raise ManyhandsError(f"{path} contains no model that was saved whole. Check the path, or save the model again.")
    description = json.loads(files.pop("summary.json"))
    if description["format"] != FORMAT:
        raise ManyhandsError(f"The model in {path} has format {description['format']}; this version reads {FORMAT}.")
    with TemporaryDirectory() as folder:
        for name, content in files.items():
            (Path(folder) / Path(name).name).write_bytes(content)
        local = load_model(folder)
    frames = {name: spark.read.parquet(f"{path}/{name}") for name in description["tables"]}
    return frames, description["summary"], local


def _read(spark: Session, path: str) -> dict[str, bytes]:
    """The files of a model by name; empty where there is none."""
    if is_absent(f"{path}/model", str(path).rstrip("/").rpartition("/")[0] or "."):
        return {}
    rows = []
    with suppress(Exception):  # engines have errors of their own for a path that does not exist
        rows = spark.read.schema(_SCHEMA).parquet(f"{path}/model").collect()
    return {row[0]: bytes(row[1]) for row in rows}


def _plain(value: Any) -> Any:
    """A value that JSON cannot write."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    return repr(value)


# ----------------------------------------------------------------------------------------------------
# `CrowdModel`: the outcome of a fit on Spark, as DataFrames and as a model for one machine.

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

    spark: Session
    items: DataFrame
    workers: DataFrame
    confusions: DataFrame | None
    summary: dict[str, Any]
    _local_model: Any

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
    """The model of a fit, with DataFrames that are computed when they are needed."""
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


# ----------------------------------------------------------------------------------------------------
# Estimators: a method of the package by its name in the registry, with parameters as in `pyspark.ml`.
#
# A parameter of the method is the one that it has elsewhere, in camel case.

_FIRST = {"itemCol": "item", "workerCol": "worker", "labelCol": "label", "checkpointDir": None}
_LAST = {"orderCol": None, "passLogDir": None, "maxTableBytes": 2_000_000_000, "nShards": None}
COLUMNS = (*_FIRST, *_LAST)
_UNUSED = ("n_init", "random_state")  # exact EM from the vote shares needs neither restarts nor a seed


class CrowdEstimator:
    """A method on Spark; takes DataFrames with one row per label.

    It has the methods of `pyspark.ml.Estimator` and is no subclass of it: that one needs the JVM. A subclass names the
    method; the parameters of the method are those of the class for one machine, in camel case (`maxIter`), and stand
    between `checkpointDir` and `orderCol`.

    Parameters
    ----------
    itemCol : str, default="item"
        Column with the item: text or integers.
    workerCol : str, default="worker"
        Column with the worker: text or integers.
    labelCol : str, default="label"
        Column with the label: text, numbers or booleans.
    checkpointDir : str, default=None
        Folder that driver and executors reach, to which the labels are written in shards; it must be given.
    orderCol : str, default=None
        Column that says which of several labels of a worker on an item is the last; None keeps the greatest in the
        order of the classes, since rows of a DataFrame have no order.
    passLogDir : str, default=None
        Folder on the driver for the record of finished passes; None is `checkpointDir` where the driver sees it, and
        its folder for temporary files elsewhere.
    maxTableBytes : int, default=2_000_000_000
        Bytes that the confusion matrices of all workers may have on the driver.
    nShards : int, default=None
        Number of shards, a power of two up to 256; None is the number that the sizes of the crowd give.
    """

    __signature__: ClassVar[inspect.Signature]
    _method: ClassVar[str] = ""  # name in the registry
    _as_text = False  # whether numbers are ordered as text, as `manyhands aggregate` does; set by the job

    def __init_subclass__(cls) -> None:
        """Build the signature of the constructor: columns, parameters of the method, checkpoint and limits."""
        method = registry.get(cls._method)._defaults()
        own = {_camel_case(name): default for name, default in method.items() if name not in _UNUSED}
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        defaults = _FIRST | own | _LAST
        cls.__signature__ = inspect.Signature(
            [inspect.Parameter(name, kind, default=defaults[name]) for name in defaults]
        )

    def __init__(self, *args: Any, **parameters: Any) -> None:
        try:
            bound = self.__signature__.bind(*args, **parameters)
        except TypeError as error:
            raise TypeError(f"{type(self).__name__}() {error}") from None
        bound.apply_defaults()
        vars(self).update(bound.arguments)

    def fit(self, dataset: DataFrame, params: dict[str, Any] | None = None) -> CrowdModel:
        """Infer the label of every item."""
        if params:
            return self.copy(params).fit(dataset)
        _check_extra()
        given = self.getParams()
        if not given["checkpointDir"]:
            raise ParameterError(
                f"{type(self).__name__} needs checkpointDir: a folder that driver and executors reach, to which the "
                f"labels are written in shards."
            )
        method = self.aggregator()
        method.check_parameters()
        labels = SparkShards.from_frame(
            dataset,
            given["checkpointDir"],
            item=given["itemCol"],
            worker=given["workerCol"],
            label=given["labelCol"],
            order=given["orderCol"],
            max_table_bytes=given["maxTableBytes"],
            n_shards=given["nShards"],
            as_text=self._as_text,
        )
        log = PassLog.of(_log_folder(labels.folder, given["passLogDir"]), method, labels)
        outcome = fit_shards(method, labels, log=log)
        log.remove()
        return model_of_fit(labels, outcome, given["itemCol"])

    def aggregator(self) -> Any:
        """The method of the package with these parameters, not fitted."""
        own = {name: value for name, value in self.getParams().items() if name not in COLUMNS}
        return registry.get(self._method)(**{_snake_case(name): value for name, value in own.items()})

    def getParams(self) -> dict[str, Any]:
        """All parameters by name."""
        return {name: getattr(self, name) for name in self._parameter_names()}

    def setParams(self, **params: Any) -> Self:
        """Set parameters."""
        names = self._parameter_names()
        for name, value in params.items():
            if name not in names:
                raise ParameterError(f"{type(self).__name__} has no parameter {name!r}.{did_you_mean(name, names)}")
            setattr(self, name, value)
        return self

    def copy(self, extra: dict[str, Any] | None = None) -> Self:
        """A copy with some parameters replaced."""
        return type(self)(**self.getParams()).setParams(**(extra or {}))

    @classmethod
    def _parameter_names(cls) -> list[str]:
        return list(cls.__signature__.parameters)

    def __repr__(self) -> str:
        defaults = self.__signature__.parameters
        changed = {name: value for name, value in self.getParams().items() if value is not defaults[name].default}
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in changed.items())})"


def _snake_case(name: str) -> str:
    """`maxIter` as `max_iter`."""
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


def _camel_case(name: str) -> str:
    """`max_iter` as `maxIter`."""
    first, *others = name.split("_")
    return first + "".join(part.capitalize() for part in others)


def _log_folder(folder: str, chosen: str | None) -> Path:
    """Where finished passes are recorded: as chosen, in the checkpoint if the driver sees it, or on the driver."""
    if chosen is not None:
        return Path(chosen)
    path = local_path(folder)
    if path is not None and path.exists():  # the engine has written to it
        return path / "passes"
    return Path(tempfile.gettempdir()) / "manyhands-passes"


def _check_extra() -> None:
    """Say what to install where Spark's Python packages are missing."""
    try:
        import pandas  # noqa: F401
        import pyarrow  # noqa: F401
        import pyspark  # noqa: F401
    except ImportError as error:
        raise MissingExtraError(f"{error.name} is not installed: pip install 'manyhands[spark]'.") from None


class DawidSkene(CrowdEstimator):
    """Dawid-Skene on Spark: one confusion matrix per worker, by exact EM from the vote shares.

    The parameters of `CrowdEstimator`, and those of `manyhands.DawidSkene`: `smoothing`, `prior`, `maxIter` and
    `tol`.
    """

    _method = "dawid-skene"


class OneCoin(CrowdEstimator):
    """One-coin model on Spark: one accuracy per worker.

    The parameters of `CrowdEstimator`, and those of `manyhands.OneCoin`: `smoothing`, `priorAccuracy`, `prior`,
    `maxIter` and `tol`.
    """

    _method = "one-coin"


class MACE(CrowdEstimator):
    """MACE on Spark: each worker knows the truth with some probability, and otherwise answers from habit.

    The parameters of `CrowdEstimator`, and those of `manyhands.MACE`: `smoothing`, `priorCompetence`, `prior`,
    `maxIter` and `tol`.
    """

    _method = "mace"


class PooledDawidSkene(CrowdEstimator):
    """Pooled Dawid-Skene on Spark: workers share what is common to them; the default method of the package.

    The parameters of `CrowdEstimator`, and those of `manyhands.PooledDawidSkene`: `priorStrength`,
    `detectCollusion`, `overrule`, `temper`, `calibrate`, `nFolds`, `maxIter` and `tol`.
    """

    _method = "pooled-dawid-skene"


class MajorityVote(CrowdEstimator):
    """Majority vote on Spark; the parameters are those of `CrowdEstimator`."""

    _method = "majority-vote"
