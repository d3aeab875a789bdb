"""Metrics where the truth is known: accuracy, macro F1, calibration; class imbalance; a scorer by item id.

Implemented on class codes: scikit-learn gives the same values, but takes a second to import, cannot sort None among the
labels, and warns where a class was never predicted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from manyhands._core.arrays import Array, Codes
from manyhands._core.encoding import Values, as_column, as_ids, is_missing, refuse_repeats
from manyhands._core.spelling import suggest
from manyhands.annotations import Annotations
from manyhands.classes import imbalance
from manyhands.em.decisions import TIE_DIGITS, pick_classes
from manyhands.exceptions import AlignmentError, AnnotationError, ParameterError
from manyhands.validation import Number, check_known, check_parameters


def accuracy(y_true: Any, y_pred: Any) -> float:
    """Share of items whose label equals the truth.

    Parameters
    ----------
    y_true : array-like of shape (n_items,)
        True class of each item, of any hashable type; no value may be missing.
    y_pred : array-like of shape (n_items,)
        Label of each item; None (or NaN) is an item without label, which counts as wrong.

    Returns
    -------
    float
        The share, between 0 and 1.

    Examples
    --------
    >>> accuracy(["cat", "dog", "dog"], ["cat", None, "dog"])
    0.6666666666666666
    """
    truth, label, _ = _code_both(y_true, y_pred)
    return float(np.mean(truth == label))


def balanced_accuracy(y_true: Any, y_pred: Any) -> float:
    """Balanced accuracy: the recall of each class, averaged over the classes that occur in the truth.

    Parameters
    ----------
    y_true : array-like of shape (n_items,)
        True class of each item, of any hashable type; no value may be missing.
    y_pred : array-like of shape (n_items,)
        Label of each item; None (or NaN) is an item without label, which counts as wrong.

    Returns
    -------
    float
        The mean recall, between 0 and 1.

    Examples
    --------
    >>> balanced_accuracy(["cat", "dog", "dog", "dog"], ["dog", "dog", "dog", "dog"])
    0.5
    """
    truth, label, n_classes = _code_both(y_true, y_pred)
    right = np.bincount(truth[truth == label], minlength=n_classes)
    there = np.bincount(truth, minlength=n_classes)
    occurs = there > 0
    return _mean(right[occurs] / there[occurs])


def macro_f1(y_true: Any, y_pred: Any) -> float:
    """Macro F1: the F1 score of each class, averaged over the classes that occur in the truth or among the labels.

    An item without label is a false negative of its class and no false positive of another.

    Parameters
    ----------
    y_true : array-like of shape (n_items,)
        True class of each item, of any hashable type; no value may be missing.
    y_pred : array-like of shape (n_items,)
        Label of each item; None (or NaN) is an item without label, which counts as wrong.

    Returns
    -------
    float
        The mean F1 score, between 0 and 1.

    Examples
    --------
    >>> macro_f1(["cat", "dog"], ["cat", None])
    0.5
    """
    truth, label, n_classes = _code_both(y_true, y_pred)
    right = np.bincount(truth[truth == label], minlength=n_classes)
    there = np.bincount(truth, minlength=n_classes)
    named = np.bincount(label[label >= 0], minlength=n_classes)
    return _mean(2 * right / (there + named))  # no division by 0: each class is in one of them


def encode_truth(y_true: Any, classes: Any) -> tuple[Codes, npt.NDArray[Any]]:
    """Encode true classes as positions in a list of classes.

    Shapes: y_true (n_items,); classes (n_classes,); returns codes (n_items,); returns classes (n_classes,).
    """
    class_ids = as_ids(as_column(classes, "classes"), "class")
    refuse_repeats(class_ids.tolist(), "class")
    code_of = {value: code for code, value in enumerate(class_ids.tolist())}
    truth = _truth(y_true)
    row = next((row for row, value in enumerate(truth) if value not in code_of), None)
    if row is not None:
        shown = ", ".join(map(repr, class_ids[:5].tolist())) + (", ..." if len(class_ids) > 5 else "")
        raise AnnotationError(
            f"The truth {truth[row]!r} in row {row} is not among the classes ({shown}). Name each column's class."
        )
    return np.fromiter(map(code_of.__getitem__, truth), np.int64, len(truth)), class_ids


def own_values(values: Any, what: str) -> list[Any]:
    """Convert a column to a list of hashable Python values.

    Shapes: values (n,).
    """
    if getattr(values, "ndim", 1) != 1:
        raise AlignmentError(f"The {what} must be one-dimensional, a value per item; it has shape {values.shape}.")
    column = values.tolist() if isinstance(values, np.ma.MaskedArray) else as_column(values, what)
    listed = as_ids(column, what).tolist()
    try:
        missing = {value for value in set(listed) if is_missing(value)}
    except TypeError:
        raise AnnotationError(f"The {what} holds values that are not hashable; use text, numbers or tuples.") from None
    return [None if value in missing else value for value in listed] if missing else listed


def _code_both(y_true: Any, y_pred: Any) -> tuple[Codes, Codes, int]:
    """Codes of truth and labels in one list of classes, -1 where there is no label; and the number of classes."""
    truth, label = _truth(y_true), own_values(y_pred, "prediction")
    if len(truth) != len(label):
        raise AlignmentError(f"There are {len(truth)} items with truth, but {len(label)} predictions; give one each.")
    _refuse_text_against_numbers(set(truth), set(label) - {None})
    distinct = dict.fromkeys([*truth, *label])
    distinct.pop(None, None)
    code_of = {value: code for code, value in enumerate(distinct)}
    n_classes = len(code_of)
    code_of[None] = -1
    codes = (np.fromiter(map(code_of.__getitem__, values), np.int64, len(values)) for values in (truth, label))
    return *codes, n_classes  # type: ignore[return-value]


def _truth(y_true: Any) -> list[Any]:
    truth = own_values(y_true, "truth")
    if not truth:
        raise AnnotationError("There is no item with truth, so there is nothing to compare.")
    if None in truth:
        raise AnnotationError(f"The truth in row {truth.index(None)} is missing; leave out items without truth.")
    return truth


def _refuse_text_against_numbers(truth: set[Any], label: set[Any]) -> None:
    """Raise an error if one column has text and the other numbers: "1" never equals 1, and accuracy would be 0."""
    are_text = [{isinstance(value, str) for value in values} for values in (truth, label)]
    if are_text in ([{True}, {False}], [{False}, {True}]):
        one, other = next(iter(truth)), next(iter(label))
        raise AlignmentError(
            f"Truth and predictions have different types, such as {one!r} and {other!r}; "
            f"make both text or both numbers."
        )


def _mean(values: Array) -> float:
    return math.fsum(values.tolist()) / len(values)  # exact sum: the result does not depend on the order of classes


# ----------------------------------------------------------------------------------------------------
# Calibration and proper scores of class probabilities, where the truth is known.

_SUM_TOLERANCE = 1e-3  # rows may be rounded to four digits


def log_loss(y_true: Any, probabilities: Any, classes: Any) -> float:
    """Log loss (cross-entropy): the mean of -log p(truth).

    As in scikit-learn, probabilities are clipped to [eps, 1 - eps] with the eps of double precision, 2.2e-16.

    Parameters
    ----------
    y_true : array-like of shape (n_items,)
        True class of each item.
    probabilities : array-like of shape (n_items, n_classes)
        Predicted probabilities; rows sum to 1.
    classes : array-like of shape (n_classes,)
        Class of each column.

    Returns
    -------
    float
        The mean over items; 0 is perfect.

    Examples
    --------
    >>> round(log_loss(["cat", "dog"], [[0.5, 0.5], [0.25, 0.75]], ["cat", "dog"]), 4)
    0.4904
    """
    truth, p = _check(y_true, probabilities, classes)
    eps = np.finfo(p.dtype).eps
    given = np.clip(p[np.arange(len(p)), truth], eps, 1 - eps)
    return float(np.mean(-np.log(given, dtype=np.float64)))


def brier(y_true: Any, probabilities: Any, classes: Any) -> float:
    """Brier score: squared distance between probabilities and truth, summed over classes and averaged over items.

    With two classes this is twice the value that is often called Brier score there.

    Parameters
    ----------
    y_true : array-like of shape (n_items,)
        True class of each item.
    probabilities : array-like of shape (n_items, n_classes)
        Predicted probabilities; rows sum to 1.
    classes : array-like of shape (n_classes,)
        Class of each column.

    Returns
    -------
    float
        The score; 0 is perfect, 2 is the worst.

    References
    ----------
    Brier (1950), "Verification of forecasts expressed in terms of probability".

    Examples
    --------
    >>> brier(["cat", "dog"], [[1.0, 0.0], [0.5, 0.5]], ["cat", "dog"])
    0.25
    """
    truth, p = _check(y_true, probabilities, classes)
    error = np.array(p, np.float64)
    error[np.arange(len(p)), truth] -= 1
    return float(np.einsum("ik,ik->", error, error) / len(p))


def ece(y_true: Any, probabilities: Any, classes: Any, n_bins: int = 10) -> float:
    """Expected calibration error: mean distance between confidence and accuracy, in bins of equal mass.

    Items are sorted by confidence, the largest probability of each, and split into `n_bins` parts of equal size (up to
    one item); the absolute differences between mean confidence and accuracy are averaged over all items. Equal
    confidences (within 1e-9) in two bins have their common accuracy in both, so the order of rows does not matter. A
    tie between classes is broken as the aggregators do it.

    Parameters
    ----------
    y_true : array-like of shape (n_items,)
        True class of each item.
    probabilities : array-like of shape (n_items, n_classes)
        Predicted probabilities; rows sum to 1.
    classes : array-like of shape (n_classes,)
        Class of each column.
    n_bins : int, default=10
        Number of bins.

    Returns
    -------
    float
        The error; 0 is perfectly calibrated, 1 is the worst.

    References
    ----------
    Naeini, Cooper and Hauskrecht (2015), "Obtaining well calibrated probabilities using Bayesian binning".

    Examples
    --------
    >>> ece(["cat", "dog"], [[0.75, 0.25], [0.75, 0.25]], ["cat", "dog"], n_bins=1)
    0.25
    """
    check_parameters("ece", {"n_bins": n_bins}, {"n_bins": Number(whole=True, least=1)})
    truth, p = _check(y_true, probabilities, classes)
    p = np.array(p, np.float64)
    label, _ = pick_classes(p, np.zeros(len(p), bool))
    confidence = p[np.arange(len(p)), label]
    _, group, size = np.unique(np.round(confidence, TIE_DIGITS), return_inverse=True, return_counts=True)
    gap = np.bincount(group, weights=confidence - (label == truth)) / size
    parts = np.array_split(np.repeat(gap, size), min(n_bins, len(p)))  # in order of confidence
    return float(sum(abs(part.sum()) for part in parts) / len(p))


def _check(y_true: Any, probabilities: Any, classes: Any) -> tuple[Codes, npt.NDArray[Any]]:
    """Codes of the true classes, and the probabilities as an array, after checks of shape and sum."""
    truth, class_ids = encode_truth(y_true, classes)
    try:
        p = np.asarray(probabilities)
        p = p if p.dtype.kind == "f" else p.astype(np.float64)
    except (TypeError, ValueError):
        raise ParameterError(
            "Probabilities must be numbers, in rows of equal length with one for each class."
        ) from None
    if p.shape != (len(truth), len(class_ids)):
        raise AlignmentError(
            f"{len(truth)} items with truth and {len(class_ids)} classes need probabilities of shape "
            f"{(len(truth), len(class_ids))}; they have {p.shape}."
        )
    possible = np.all((p >= 0) & (p <= 1 + _SUM_TOLERANCE), axis=1)  # False for NaN
    bad = np.flatnonzero(~possible | ~(np.abs(p.sum(axis=1) - 1) <= _SUM_TOLERANCE))
    if len(bad):
        row = int(bad[0])
        shown = ", ".join(f"{x:g}" for x in p[row, :5]) + (", ..." if p.shape[1] > 5 else "")
        raise ParameterError(f"Row {row} is not a row of probabilities that sum to 1: {shown}. {len(bad)} such row(s).")
    return truth, p


# ----------------------------------------------------------------------------------------------------
# Class imbalance.


def imbalance_ratio(labels_or_counts: Any, classes: Values | None = None) -> float:
    """Imbalance ratio R = (N_max - N_min) / N of the class counts: 0 is balanced, 1 is a single class.

    Parameters
    ----------
    labels_or_counts : Annotations, mapping or array-like
        Annotations, whose labels are counted; a mapping (dict, Counter) from class to count; or one label per item,
        where None stands for an item without label.
    classes : array-like, default=None
        All classes; those without labels count as 0. If None, the classes that occur, so that a single class is
        balanced. Not needed for annotations, which have classes of their own.

    Returns
    -------
    float
        The ratio, between 0 and 1.

    References
    ----------
    Shi, Li and Huang (2021), "Learning from Crowds with Sparse and Imbalanced Annotations", Eq. 6.

    Examples
    --------
    >>> imbalance_ratio(["cat", "cat", "cat", "dog"])
    0.5
    >>> imbalance_ratio({"cat": 3, "dog": 1}, classes=["cat", "dog", "emu"])
    0.75
    """
    count_of = _counts(labels_or_counts)
    if classes is not None:
        counts_of = dict.fromkeys(own_values(classes, "list of classes"), 0.0)
        check_known(count_of, counts_of, "Classes", "Add them to classes.")
        count_of = counts_of | count_of
    counts = np.array(list(count_of.values()))
    if counts.sum() == 0:
        raise AnnotationError("There is not a single label, so the imbalance ratio is undefined.")
    return imbalance(counts)


def _counts(given: Any) -> dict[Any, float]:
    """The number of labels of each class."""
    if isinstance(given, Annotations):
        n_of_class = np.bincount(given.label, minlength=given.n_classes)
        return dict(zip(given.classes.tolist(), n_of_class.astype(float).tolist()))
    if isinstance(given, Mapping):
        return {key: _as_count(value, key) for key, value in given.items()}
    counts: dict[Any, float] = {}
    for label in own_values(given, "list of labels"):
        counts[label] = counts.get(label, 0.0) + 1.0
    counts.pop(None, None)
    return counts


def _as_count(value: Any, key: Any) -> float:
    try:
        count = float(value)
    except (TypeError, ValueError, OverflowError):
        count = float("nan")
    if not 0 <= count < float("inf"):
        raise ParameterError(f"The count of class {key!r} must be a number at least 0. Got {value!r}.")
    return count


# ----------------------------------------------------------------------------------------------------
# A scorer for scikit-learn's searches and cross-validation that compares predictions with the truth by item id.

_METRICS = {"accuracy": accuracy, "balanced_accuracy": balanced_accuracy, "macro_f1": macro_f1}


@dataclass(frozen=True)
class TruthScorer:
    """Scores a fitted estimator against the truth; made by `truth_scorer`.

    Parameters
    ----------
    truth : dict
        True class of each item by its id.
    metric : callable
        Function of true classes and predicted classes; higher is better.
    """

    truth: dict[Any, Any] = field(repr=False)
    metric: Callable[[Any, Any], float]

    def __call__(self, estimator: Any, X: Any, y: Any = None) -> float:
        """Score predictions of the items of one split."""
        labels = X if y is None else y
        if not hasattr(type(labels), "by_item"):
            raise AnnotationError(
                f"The scorer finds items by the ids of Annotations, which are the y of a classifier and the X of an "
                f"aggregator. Got {type(labels).__name__}."
            )
        items = labels.item_ids.tolist()
        rows = [row for row, item in enumerate(items) if item in self.truth]
        if not rows:
            raise AnnotationError(
                f"No item of this split has a truth: its items are such as {_first(items)}, those with a truth such as "
                f"{_first(self.truth)}. Ids must be equal, text or numbers in both."
            )
        predicted = estimator.predict(X)[rows]
        return float(self.metric([self.truth[items[row]] for row in rows], predicted))


def truth_scorer(truth: Any, *, item_ids: Any = None, metric: str | Callable[[Any, Any], float] = "accuracy") -> Any:
    """Make a scorer for `GridSearchCV` and `cross_val_score` that compares predictions with the truth by item id.

    By default these functions of scikit-learn call the estimator's own `score`, the likelihood of held-out labels,
    which needs no truth. Where the truth of some items is known, pass ``scoring=truth_scorer(truth)``. The truth is
    used to score, never to fit; to report an accuracy of the chosen setting, keep other items aside.

    Parameters
    ----------
    truth : mapping, pandas.Series or array-like of shape (n_items,)
        True class by item id; of a Series, the index has the ids. Items without truth are allowed and do not count.
    item_ids : array-like of shape (n_items,) or None, default=None
        Ids of the items where `truth` is an array, such as ``annotations.item_ids``; None otherwise.
    metric : {"accuracy", "balanced_accuracy", "macro_f1"} or callable, default="accuracy"
        What is computed. A callable takes true classes and predicted classes; higher must be better.

    Returns
    -------
    TruthScorer
        A callable ``scorer(estimator, X, y)``. With an aggregator, X are the annotations and there is no y.

    Raises
    ------
    ParameterError
        If there is no such metric.
    AlignmentError
        If there are ids without truth, or a truth without ids.

    Examples
    --------
    >>> from sklearn.model_selection import KFold, cross_val_score
    >>> from manyhands import DawidSkene
    >>> from manyhands.simulate import make_crowd
    >>> crowd = make_crowd(random_state=0)
    >>> scorer = truth_scorer(crowd.truth, item_ids=crowd.annotations.item_ids)
    >>> scores = cross_val_score(DawidSkene(), crowd.annotations, scoring=scorer, cv=KFold(3))
    >>> scores.shape
    (3,)
    """
    if isinstance(metric, str):
        if metric not in _METRICS:
            raise ParameterError(f"There is no metric called {metric!r}.{suggest(metric, _METRICS)}")
        metric = _METRICS[metric]
    elif not callable(metric):
        raise ParameterError(f"metric must be a name or a function of truth and predictions. Got {metric!r}.")
    return TruthScorer(_by_id(truth, item_ids), metric)


def _by_id(truth: Any, item_ids: Any) -> dict[Any, Any]:
    """Return the truth as a dict, whatever it came as."""
    if item_ids is not None:
        columns = {"ids": as_column(item_ids, "item ids"), "true classes": as_column(truth, "truth")}
        lengths = {name: len(column) for name, column in columns.items()}
        if len(set(lengths.values())) > 1:
            raise AlignmentError(f"There are {' but '.join(f'{n} {name}' for name, n in lengths.items())}.")
        ids, values = (as_ids(column, name).tolist() for name, column in columns.items())
        return dict(zip(ids, values, strict=True))
    if isinstance(truth, Mapping):
        return dict(truth)
    if hasattr(truth, "index") and hasattr(truth, "to_dict"):  # a pandas Series
        return dict(truth.to_dict())
    raise AlignmentError(
        "The truth must name its items: give a mapping {item: class}, a Series with ids as its index, or "
        "item_ids=annotations.item_ids beside an array."
    )


def _first(ids: Iterable[Any]) -> str:
    return ", ".join(repr(value) for value, _ in zip(ids, range(3), strict=False)) or "none"
