"""Pooled Dawid-Skene and the majority vote on Spark."""

from __future__ import annotations

from typing import ClassVar

from manyhands.spark.crowd_estimator import CrowdEstimator


class PooledDawidSkene(CrowdEstimator):
    """Pooled Dawid-Skene on Spark: workers share what is common to them; the default method of the package.

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
    priorStrength : float, default=0.03
        Pseudo-count of the one-coin type, as a share of the workers; larger values keep the result closer to the vote.
    detectCollusion : bool, default=True
        Search for a group of workers who share their answers, and collapse it into one voter.
    overrule : {"never", "supported", "always"}, default="supported"
        When a label other than the plurality of an item's labels may be named: never (only ties are decided by the
        model), where it has support, or always where the model finds it more probable.
    temper : {"crowds", "none"} or float, default="crowds"
        Power to which the posterior is raised: 0.64, learnt across crowds and blended with 1 where held-out labels show
        independent errors; 1; or the given power. Labels stay the same.
    calibrate : bool, default=True
        Temper the posterior by held-out labels.
    nFolds : int, default=5
        Number of folds into which the labels are split for that.
    maxIter : int, default=500
        Maximum number of EM iterations (passes over the data).
    tol : float, default=1e-5
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
    manyhands.PooledDawidSkene : The same method on one machine.
    """

    _method: ClassVar[str] = "pooled-dawid-skene"

    def __init__(
        self,
        itemCol: str = "item",
        workerCol: str = "worker",
        labelCol: str = "label",
        checkpointDir: str | None = None,
        priorStrength: float = 0.03,
        detectCollusion: bool = True,
        overrule: str = "supported",
        temper: str | float = "crowds",
        calibrate: bool = True,
        nFolds: int = 5,
        maxIter: int = 500,
        tol: float = 1e-5,
        orderCol: str | None = None,
        passLogDir: str | None = None,
        maxTableBytes: int = 2_000_000_000,
        nShards: int | None = None,
    ) -> None:
        self.itemCol = itemCol
        self.workerCol = workerCol
        self.labelCol = labelCol
        self.checkpointDir = checkpointDir
        self.priorStrength = priorStrength
        self.detectCollusion = detectCollusion
        self.overrule = overrule
        self.temper = temper
        self.calibrate = calibrate
        self.nFolds = nFolds
        self.maxIter = maxIter
        self.tol = tol
        self.orderCol = orderCol
        self.passLogDir = passLogDir
        self.maxTableBytes = maxTableBytes
        self.nShards = nShards


class MajorityVote(CrowdEstimator):
    """Majority vote on Spark.

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

    See Also
    --------
    manyhands.MajorityVote : The same method on one machine.
    """

    _method: ClassVar[str] = "majority-vote"

    def __init__(
        self,
        itemCol: str = "item",
        workerCol: str = "worker",
        labelCol: str = "label",
        checkpointDir: str | None = None,
        orderCol: str | None = None,
        passLogDir: str | None = None,
        maxTableBytes: int = 2_000_000_000,
        nShards: int | None = None,
    ) -> None:
        self.itemCol = itemCol
        self.workerCol = workerCol
        self.labelCol = labelCol
        self.checkpointDir = checkpointDir
        self.orderCol = orderCol
        self.passLogDir = passLogDir
        self.maxTableBytes = maxTableBytes
        self.nShards = nShards
