"""Dawid-Skene, one-coin and MACE on Spark, with the parameters that they have elsewhere, in camel case."""

from __future__ import annotations

from typing import ClassVar

import numpy.typing as npt

from manyhands.spark.crowd_estimator import CrowdEstimator


class DawidSkene(CrowdEstimator):
    """Dawid-Skene on Spark: one confusion matrix per worker, by exact EM from the vote shares.

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
    smoothing : float, default=0.01
        Pseudo-count added to every cell of every confusion matrix, and to every class of the class prior.
    prior : {"estimated", "uniform"} or array-like of shape (n_classes,), default="estimated"
        Class prior: frequencies estimated from the data, a uniform class prior, or a given frequency for each class.
    maxIter : int, default=1000
        Maximum number of EM iterations (passes over the data).
    tol : float, default=1e-6
        Stop when the estimated distance to the optimum is below `tol` times the objective.
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

    See Also
    --------
    manyhands.DawidSkene : The same method on one machine.
    """

    _method: ClassVar[str] = "dawid-skene"

    def __init__(
        self,
        itemCol: str = "item",
        workerCol: str = "worker",
        labelCol: str = "label",
        checkpointDir: str | None = None,
        smoothing: float = 0.01,
        prior: str | npt.ArrayLike = "estimated",
        maxIter: int = 1000,
        tol: float = 1e-6,
        orderCol: str | None = None,
        passLogDir: str | None = None,
        maxTableBytes: int = 2_000_000_000,
        nShards: int | None = None,
    ) -> None:
        self.itemCol = itemCol
        self.workerCol = workerCol
        self.labelCol = labelCol
        self.checkpointDir = checkpointDir
        self.smoothing = smoothing
        self.prior = prior
        self.maxIter = maxIter
        self.tol = tol
        self.orderCol = orderCol
        self.passLogDir = passLogDir
        self.maxTableBytes = maxTableBytes
        self.nShards = nShards


class OneCoin(CrowdEstimator):
    """One-coin model on Spark: one accuracy per worker.

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
    smoothing : float, default=1.0
        Pseudo-count of the prior: labels that it is worth for each worker.
    priorAccuracy : float, default=0.7
        Share of these pseudo-counts that are right.
    prior : {"estimated", "uniform"} or array-like of shape (n_classes,), default="estimated"
        Class prior: frequencies estimated from the data, a uniform class prior, or a given frequency for each class.
    maxIter : int, default=1000
        Maximum number of EM iterations (passes over the data).
    tol : float, default=1e-6
        Stop when the estimated distance to the optimum is below `tol` times the objective.
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

    See Also
    --------
    manyhands.OneCoin : The same method on one machine.
    """

    _method: ClassVar[str] = "one-coin"

    def __init__(
        self,
        itemCol: str = "item",
        workerCol: str = "worker",
        labelCol: str = "label",
        checkpointDir: str | None = None,
        smoothing: float = 1.0,
        priorAccuracy: float = 0.7,
        prior: str | npt.ArrayLike = "estimated",
        maxIter: int = 1000,
        tol: float = 1e-6,
        orderCol: str | None = None,
        passLogDir: str | None = None,
        maxTableBytes: int = 2_000_000_000,
        nShards: int | None = None,
    ) -> None:
        self.itemCol = itemCol
        self.workerCol = workerCol
        self.labelCol = labelCol
        self.checkpointDir = checkpointDir
        self.smoothing = smoothing
        self.priorAccuracy = priorAccuracy
        self.prior = prior
        self.maxIter = maxIter
        self.tol = tol
        self.orderCol = orderCol
        self.passLogDir = passLogDir
        self.maxTableBytes = maxTableBytes
        self.nShards = nShards


class MACE(CrowdEstimator):
    """MACE on Spark: each worker knows the truth with some probability, and otherwise answers from habit.

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
    smoothing : float, default=1.0
        Pseudo-count of the prior: labels that it is worth for each worker.
    priorCompetence : float, default=0.5
        Share of these pseudo-counts in which the truth is known; the others are spread evenly over the classes.
    prior : {"estimated", "uniform"} or array-like of shape (n_classes,), default="uniform"
        Class prior: frequencies estimated from the data, a uniform class prior, or a given frequency for each class.
    maxIter : int, default=1000
        Maximum number of EM iterations (passes over the data).
    tol : float, default=1e-6
        Stop when the estimated distance to the optimum is below `tol` times the objective.
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

    See Also
    --------
    manyhands.MACE : The same method on one machine.
    """

    _method: ClassVar[str] = "mace"

    def __init__(
        self,
        itemCol: str = "item",
        workerCol: str = "worker",
        labelCol: str = "label",
        checkpointDir: str | None = None,
        smoothing: float = 1.0,
        priorCompetence: float = 0.5,
        prior: str | npt.ArrayLike = "uniform",
        maxIter: int = 1000,
        tol: float = 1e-6,
        orderCol: str | None = None,
        passLogDir: str | None = None,
        maxTableBytes: int = 2_000_000_000,
        nShards: int | None = None,
    ) -> None:
        self.itemCol = itemCol
        self.workerCol = workerCol
        self.labelCol = labelCol
        self.checkpointDir = checkpointDir
        self.smoothing = smoothing
        self.priorCompetence = priorCompetence
        self.prior = prior
        self.maxIter = maxIter
        self.tol = tol
        self.orderCol = orderCol
        self.passLogDir = passLogDir
        self.maxTableBytes = maxTableBytes
        self.nShards = nShards
