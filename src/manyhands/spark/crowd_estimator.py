"""What all estimators for Spark share: parameters as in `pyspark.ml`, and `fit`."""

from __future__ import annotations

import inspect
import tempfile
from pathlib import Path
from typing import Any, ClassVar, Self

from manyhands import registry
from manyhands.exceptions import MissingExtraError, ParameterError
from manyhands.sharded.fits import fit as fit_shards
from manyhands.sharded.pass_log import PassLog
from manyhands.spark.crowd_model import CrowdModel, model_of_fit
from manyhands.spark.label_columns import DataFrame
from manyhands.spark.shared_files import local_path
from manyhands.spark.spark_shards import SparkShards
from manyhands.spelling import did_you_mean

COLUMNS = ("itemCol", "workerCol", "labelCol", "orderCol", "checkpointDir", "passLogDir", "maxTableBytes", "nShards")


class CrowdEstimator:
    """Base of the estimators; takes DataFrames with one row per label.

    It has the methods of `pyspark.ml.Estimator` and is no subclass of it: that one needs the JVM. The constructor of a
    subclass names every parameter explicitly and only assigns.
    """

    _method: ClassVar[str] = ""  # name in the registry
    _as_text = False  # whether numbers are ordered as text, as `manyhands aggregate` does; set by the job

    def fit(self, dataset: DataFrame, params: dict[str, Any] | None = None) -> CrowdModel:
        """Infer the label of every item.

        Parameters
        ----------
        dataset : DataFrame
            One row per label.
        params : dict of str to object, default=None
            Parameters that replace those of the estimator for this fit.

        Returns
        -------
        CrowdModel

        Raises
        ------
        ParameterError
            Where a parameter is out of its range, or a column does not exist.
        AnnotationError
            Where a column has a type that ids cannot have, or there are no labels.
        LimitError
            Where the confusion matrices of all workers outgrow the driver.

        Warns
        -----
        CrowdWarning
            Where rows were left out: without an item, a worker or a label, or repeated.
        """
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
        method._check_parameters()
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
        found = fit_shards(method, labels, log=log)
        log.remove()
        return model_of_fit(labels, found, given["itemCol"])

    def aggregator(self) -> Any:
        """The method of the package with these parameters, not fitted.

        Returns
        -------
        Aggregator
        """
        own = {name: value for name, value in self.getParams().items() if name not in COLUMNS}
        return registry.get(self._method)(**{_snake_case(name): value for name, value in own.items()})

    def getParams(self) -> dict[str, Any]:
        """All parameters by name.

        Returns
        -------
        dict of str to object
        """
        return {name: getattr(self, name) for name in self._parameter_names()}

    def setParams(self, **params: Any) -> Self:
        """Set parameters.

        Parameters
        ----------
        **params : object
            New values by name.

        Returns
        -------
        CrowdEstimator
            The estimator itself.
        """
        known = self._parameter_names()
        for name, value in params.items():
            if name not in known:
                raise ParameterError(f"{type(self).__name__} has no parameter {name!r}.{did_you_mean(name, known)}")
            setattr(self, name, value)
        return self

    def copy(self, extra: dict[str, Any] | None = None) -> Self:
        """A copy with some parameters replaced.

        Parameters
        ----------
        extra : dict of str to object, default=None
            New values by name.

        Returns
        -------
        CrowdEstimator
        """
        return type(self)(**self.getParams()).setParams(**(extra or {}))

    @classmethod
    def _parameter_names(cls) -> list[str]:
        return list(inspect.signature(cls.__init__).parameters)[1:]

    def __repr__(self) -> str:
        defaults = inspect.signature(type(self).__init__).parameters
        changed = {name: value for name, value in self.getParams().items() if value is not defaults[name].default}
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in changed.items())})"


def _snake_case(name: str) -> str:
    """`maxIter` as `max_iter`."""
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


def _log_folder(folder: str, chosen: str | None) -> Path:
    """Where finished passes are recorded: as chosen, in the checkpoint if the driver sees it, or on the driver."""
    if chosen is not None:
        return Path(chosen)
    found = local_path(folder)
    if found is not None and found.exists():  # the engine has written to it
        return found / "passes"
    return Path(tempfile.gettempdir()) / "manyhands-passes"


def _check_extra() -> None:
    """Say what to install where Spark's Python packages are missing."""
    try:
        import pandas  # noqa: F401
        import pyarrow  # noqa: F401
        import pyspark  # noqa: F401
    except ImportError as error:
        raise MissingExtraError(f"{error.name} is not installed: pip install 'manyhands[spark]'.") from None
