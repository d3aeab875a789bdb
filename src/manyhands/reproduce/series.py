"""Lists of numbers that a result row stores beside its metrics: curves and scatter plots are drawn from them.

Ground truth is used here as in `measures`, after the fit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from manyhands import metrics
from manyhands.reproduce.measures import estimated_expertise, last_step
from manyhands.reproduce.splits import Part

Series = list[Any]  # of numbers and None, or of such lists

OF_HISTORY = "history."  # history.loss: the entry "loss" of every epoch in `history_`
OF_ROUNDS = "rounds."  # rounds.heldout: the entry "heldout" of every round in `rounds_`
OF_FITTED = "fitted."  # fitted.difficulty: the fitted attribute `difficulty_`

_PREFIXES = (OF_HISTORY, OF_ROUNDS, OF_FITTED)
_GRID = 101  # points of a ROC curve
_GROUPS = 10  # groups of test items by the entropy of their prediction
_MOST_NUMBERS = 20_000  # of one series; a row is one line of text
_DIGITS = 6  # significant ones, which no picture shows in full


def series_of(model: Any, part: Part, names: Sequence[str]) -> dict[str, Series | None]:
    """Return the series of a fitted method.

    Parameters
    ----------
    model : estimator
        A fitted method.
    part : Part
        The data that it was fitted to.
    names : sequence of str
        Names for which `is_series` is true.

    Returns
    -------
    dict of str to list or None
        Numbers, or lists of numbers; None where the method or the data do not have the series.
    """
    return {name: _series(model, part, name) for name in names}


def is_series(name: str) -> bool:
    """Return whether a table may list this series.

    Parameters
    ----------
    name : str
        One of `SERIES`, or ``history.``, ``rounds.`` or ``fitted.`` and a name.

    Returns
    -------
    bool
        False for unknown names.

    Examples
    --------
    >>> is_series("roc"), is_series("history.loss"), is_series("rounds.a b"), is_series("luck")
    (True, True, False, False)
    """
    return name in SERIES or (name.startswith(_PREFIXES) and name.partition(".")[2].isidentifier())


def _series(model: Any, part: Part, name: str) -> Series | None:
    """Return one series as JSON can hold it; what is no array of numbers, or too large, is left out."""
    last = last_step(model)
    if name in SERIES:
        found = _SERIES[name](model, last, part)
    elif name.startswith(OF_FITTED):
        found = getattr(last, name.removeprefix(OF_FITTED) + "_", None)
    else:
        recorded = getattr(last, "history_" if name.startswith(OF_HISTORY) else "rounds_", None)
        found = _recorded(recorded, name.partition(".")[2])
    try:
        numbers = None if found is None else np.asarray(found, dtype=float)
    except (TypeError, ValueError):  # texts, or lists of different lengths
        return None
    if numbers is None or numbers.ndim not in (1, 2) or not 0 < numbers.size <= _MOST_NUMBERS:
        return None
    rows = [[_number(value) for value in row] for row in np.atleast_2d(numbers)]
    return rows if numbers.ndim == 2 else rows[0]


def _recorded(recorded: Any, key: str) -> list[Any] | None:
    """Return an entry of every epoch or round; None if no one has it.

    Epochs before the first and after the last entry are left out, since some methods note parts of their training
    under other names. Between them, a missing entry is NaN.
    """
    if not isinstance(recorded, list | tuple) or not all(isinstance(one, dict) for one in recorded):
        return None  # the history of an aggregator has no names
    there = [at for at, one in enumerate(recorded) if one.get(key) is not None]
    if not there:
        return None
    return [one.get(key, math.nan) for one in recorded[there[0] : there[-1] + 1]]


def _number(value: float) -> float | None:
    """Return a number with as many digits as a picture can show; None if it is not finite."""
    return float(f"{value:.{_DIGITS}g}") if math.isfinite(value) else None


def _roc(_: Any, last: Any, part: Part) -> npt.NDArray[np.float64] | None:
    """Return true positive rates of the second class on an even grid of false positive rates, for two classes."""
    known = part.has_truth
    if part.y_train is None or len(last.classes_) != 2 or not known.any():
        return None
    is_second = np.array([value == last.classes_[1] for value in part.y_train[known].tolist()])
    if is_second.all() or not is_second.any():
        return None
    return roc_curve(is_second, last.posterior_[known, 1])


def roc_curve(inside: npt.NDArray[np.bool_], score: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return a ROC curve on 101 equally spaced false positive rates.

    Parameters
    ----------
    inside : ndarray of bool, shape (n_items,)
        Whether an item is of the class.
    score : ndarray of shape (n_items,)
        The larger, the more likely is the class; items of equal score are joined by a straight line.

    Returns
    -------
    ndarray of shape (101,)
        True positive rates; where the curve is vertical, the upper end.
    """
    order = np.argsort(-score, kind="stable")
    ends = np.flatnonzero(np.append(np.diff(score[order]) != 0, True))  # the last item of each group of equal scores
    rates = [np.append(0.0, np.cumsum(of)[ends] / of.sum()) for of in (~inside[order], inside[order])]
    false, highest = np.unique(rates[0][::-1], return_index=True)  # the first from the end is the upper one
    lower, at = rates[1][::-1][highest], np.linspace(0, 1, _GRID)
    return np.interp(at, false, lower)


def _expertise(_: Any, last: Any, part: Part) -> npt.NDArray[np.float64] | None:
    """Return the estimated accuracies of all workers and classes, then the simulated ones."""
    if "expertise" not in part.planted:
        return None
    return np.concatenate([estimated_expertise(last, part).ravel(), np.ravel(part.planted["expertise"])])


def _difficulty(_: Any, last: Any, part: Part) -> npt.NDArray[np.float64] | None:
    """Return the estimated difficulties of all items, then the simulated ones."""
    if "difficulty" not in part.planted or not hasattr(last, "difficulty_"):
        return None
    return np.concatenate([np.ravel(last.difficulty_), np.ravel(part.planted["difficulty"])])


def _recall(model: Any, last: Any, part: Part) -> list[float] | None:
    """Return the recall of every class on the test items, NaN for a class without any."""
    if part.X_test is None or part.y_test is None or not hasattr(model, "predict_proba"):
        return None
    label = last.classes_[model.predict_proba(part.X_test).argmax(axis=1)]
    of_class = [np.array([value == one for value in part.y_test.tolist()]) for one in last.classes_]
    return [metrics.accuracy(part.y_test[own], label[own]) if own.any() else math.nan for own in of_class]


def _accuracy_by_entropy(model: Any, last: Any, part: Part) -> list[float] | None:
    """Return the accuracy in ten groups of test items, from the lowest to the highest entropy of the prediction."""
    if part.X_test is None or part.y_test is None or not hasattr(model, "predict_proba"):
        return None
    proba = np.asarray(model.predict_proba(part.X_test))
    entropy = -(proba * np.log(np.maximum(proba, 1e-12))).sum(axis=1)
    groups = np.array_split(np.argsort(entropy, kind="stable"), _GROUPS)
    label = last.classes_[proba.argmax(axis=1)]
    return [metrics.accuracy(part.y_test[own], label[own]) if len(own) else math.nan for own in groups]


def _labels_by_worker(_: Any, __: Any, part: Part) -> npt.NDArray[np.int64]:
    """Return the number of labels of every worker who has one."""
    counts = np.bincount(part.annotations.worker, minlength=part.annotations.n_workers)
    return counts[counts > 0]


def _accuracy_by_worker(_: Any, __: Any, part: Part) -> npt.NDArray[np.float64] | None:
    """Return the share of correct labels of every worker with a label on an item of known truth."""
    votes, known = part.annotations, part.has_truth
    if part.y_train is None or not known.any():
        return None
    seen = known[votes.item]
    right = np.array([a == b for a, b in zip(votes.classes[votes.label].tolist(), part.y_train[votes.item].tolist())])
    total = np.bincount(votes.worker[seen], minlength=votes.n_workers)
    correct = np.bincount(votes.worker[seen], weights=right[seen], minlength=votes.n_workers)
    return correct[total > 0] / total[total > 0]


def _true_shares(_: Any, last: Any, part: Part) -> list[float] | None:
    """Return the share of each class in the ground truth of the training items."""
    known = part.has_truth
    if part.y_train is None or not known.any():
        return None
    values = part.y_train[known].tolist()
    return [sum(value == one for value in values) / len(values) for one in last.classes_]


def _annotated_shares(_: Any, last: Any, part: Part) -> npt.NDArray[np.float64]:
    """Return the share of each class in the annotations of the training items."""
    counts = np.bincount(part.annotations.label, minlength=len(last.classes_))
    return counts / counts.sum()


def _posterior_shares(_: Any, last: Any, __: Part) -> npt.NDArray[np.float64]:
    """Return the share of each class in the posterior of the training items."""
    return np.asarray(last.posterior_.mean(axis=0))


_SERIES: dict[str, Callable[[Any, Any, Part], Any]] = {
    "roc": _roc,
    "expertise": _expertise,
    "difficulty": _difficulty,
    "recall": _recall,
    "accuracy.by_entropy": _accuracy_by_entropy,
    "workers.n_labels": _labels_by_worker,
    "workers.accuracy": _accuracy_by_worker,
    "class_shares": lambda _, last, __: getattr(last, "class_shares_", None),
    "shares.truth": _true_shares,
    "shares.annotations": _annotated_shares,
    "shares.posterior": _posterior_shares,
}
SERIES = tuple(_SERIES)
