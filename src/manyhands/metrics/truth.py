"""Accuracy, balanced accuracy and macro F1, where the truth is known.

Implemented on class codes: scikit-learn gives the same values, but takes a second to import, cannot sort None among the
labels, and warns where a class was never predicted.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from manyhands.encoding import as_column, as_ids, refuse_repeats
from manyhands.exceptions import AlignmentError, AnnotationError

Array = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]


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

    Parameters
    ----------
    y_true : array-like of shape (n_items,)
        True class of each item.
    classes : array-like of shape (n_classes,)
        The classes, each once.

    Returns
    -------
    codes : ndarray of int of shape (n_items,)
        Position of each true class.
    classes : ndarray of shape (n_classes,)
        The classes as an array.
    """
    known = as_ids(as_column(classes, "classes"), "class")
    refuse_repeats(known.tolist(), "class")
    code_of = {value: code for code, value in enumerate(known.tolist())}
    truth = _truth(y_true)
    row = next((row for row, value in enumerate(truth) if value not in code_of), None)
    if row is not None:
        shown = ", ".join(map(repr, known[:5].tolist())) + (", ..." if len(known) > 5 else "")
        raise AnnotationError(
            f"The truth {truth[row]!r} in row {row} is not among the classes ({shown}). Name each column's class."
        )
    return np.fromiter(map(code_of.__getitem__, truth), np.int64, len(truth)), known


def own_values(values: Any, what: str) -> list[Any]:
    """Convert a column to a list of hashable Python values.

    Parameters
    ----------
    values : array-like of shape (n,)
        A list, an array or a column of a data frame.
    what : str
        Name of the column for error messages.

    Returns
    -------
    list
        The values; None where a value is masked, None or NaN.
    """
    if getattr(values, "ndim", 1) != 1:
        raise AlignmentError(f"The {what} must be one-dimensional, a value per item; it has shape {values.shape}.")
    column = values.tolist() if isinstance(values, np.ma.MaskedArray) else as_column(values, what)
    listed = as_ids(column, what).tolist()
    try:
        missing = {value for value in set(listed) if _is_missing(value)}
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


def _is_missing(value: Any) -> bool:
    try:
        return value is None or bool(value != value)
    except (TypeError, ValueError):  # comparing pandas' NA gives no bool
        return True
