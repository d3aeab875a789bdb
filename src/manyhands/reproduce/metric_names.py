"""Names of the metrics that a table may list, and how their values are to be read."""

from __future__ import annotations

METRICS = (
    "accuracy",
    "balanced_accuracy",
    "macro_f1",
    "rare_recall",
    "auc",
    "log_loss",
    "ece",
    "label_accuracy",
    "label_auc",
    "fit_seconds",
)
UNIFORM_PRIOR = ".uniform_prior"  # the same metric with predictions for equally frequent classes
SHIFTED = tuple(name + UNIFORM_PRIOR for name in ("accuracy", "balanced_accuracy", "macro_f1", "rare_recall"))
PLANTED = ("expertise_error", "difficulty_rank", "difficulty_error")  # of methods and data that have these parameters
OF_ROUND = "round."  # a figure of the method's last round, such as round.heldout
OF_HISTORY = "history."  # the last value of a figure in the method's training history
OF_CLASS = "recall."  # recall of one class on the test items: recall.opencountry
TRAINING = "training_accuracy"  # of the classifier's predictions for its training items
OF_LABELS = "label_accuracy."  # accuracy of a further posterior: label_accuracy.first is that of posterior_first_
OF_CROWD = "crowd."  # a figure of the data, such as crowd.worker_accuracy

_SHARES_OF_CROWD = (OF_CROWD + "worker_accuracy", OF_CROWD + "last_class_share", OF_CROWD + "kappa")
_NOT_SHARES = ("log_loss", "fit_seconds", "difficulty_rank")


def is_metric(name: str) -> bool:
    """Return whether a table may list this metric.

    Parameters
    ----------
    name : str
        One of `METRICS`, `SHIFTED` or `PLANTED`, or a figure that only some methods have.

    Returns
    -------
    bool
        False for unknown names.

    Examples
    --------
    >>> is_metric("accuracy"), is_metric("round.heldout"), is_metric("label_accuracy.first"), is_metric("luck")
    (True, True, True, False)
    """
    if name == TRAINING or (name.startswith(OF_CLASS) and name != OF_CLASS):
        return True
    of_method = name.startswith((OF_ROUND, OF_HISTORY, OF_LABELS, OF_CROWD)) and name.partition(".")[2].isidentifier()
    return name in METRICS + SHIFTED + PLANTED or of_method


def is_share(metric: str) -> bool:
    """Return whether a metric is between 0 and 1 and is shown as per cent.

    Parameters
    ----------
    metric : str
        Name of a metric.

    Returns
    -------
    bool
        False for log loss, seconds, rank correlation and unknown figures.
    """
    if metric == TRAINING or metric.startswith((OF_LABELS, OF_CLASS)):
        return True
    if metric.startswith((OF_CROWD, OF_ROUND)):
        return is_spread(metric) or metric in _SHARES_OF_CROWD
    return metric in METRICS + SHIFTED + PLANTED and metric not in _NOT_SHARES


def is_spread(metric: str) -> bool:
    """Return whether a metric is a standard deviation of shares, which is small and shown with one more digit.

    Parameters
    ----------
    metric : str
        Name of a metric.

    Returns
    -------
    bool
        True for names such as crowd.truth_spread.
    """
    return metric.startswith((OF_CROWD, OF_ROUND)) and metric.endswith("_spread")
