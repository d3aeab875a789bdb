"""Calibration and proper scores of class probabilities, where the truth is known."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from manyhands.em.decisions import pick_classes
from manyhands.exceptions import AlignmentError, ParameterError
from manyhands.metrics.truth import Codes, encode_truth
from manyhands.validation import Number, check_parameters

Array = npt.NDArray[np.float64]

_SUM_TOLERANCE = 1e-3  # rows may be rounded to four digits
_TIE_DIGITS = 9  # confidences equal to this many digits are tied; summation order changes the last bits


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
    _, group, size = np.unique(np.round(confidence, _TIE_DIGITS), return_inverse=True, return_counts=True)
    gap = np.bincount(group, weights=confidence - (label == truth)) / size
    parts = np.array_split(np.repeat(gap, size), min(n_bins, len(p)))  # in order of confidence
    return float(sum(abs(part.sum()) for part in parts) / len(p))


def _check(y_true: Any, probabilities: Any, classes: Any) -> tuple[Codes, npt.NDArray[Any]]:
    """Codes of the true classes, and the probabilities as an array, after checks of shape and sum."""
    truth, known = encode_truth(y_true, classes)
    try:
        p = np.asarray(probabilities)
        p = p if p.dtype.kind == "f" else p.astype(np.float64)
    except (TypeError, ValueError):
        raise ParameterError(
            "Probabilities must be numbers, in rows of equal length with one for each class."
        ) from None
    if p.shape != (len(truth), len(known)):
        raise AlignmentError(
            f"{len(truth)} items with truth and {len(known)} classes need probabilities of shape "
            f"{(len(truth), len(known))}; they have {p.shape}."
        )
    possible = np.all((p >= 0) & (p <= 1 + _SUM_TOLERANCE), axis=1)  # False for NaN
    bad = np.flatnonzero(~possible | ~(np.abs(p.sum(axis=1) - 1) <= _SUM_TOLERANCE))
    if len(bad):
        row = int(bad[0])
        shown = ", ".join(f"{x:g}" for x in p[row, :5]) + (", ..." if p.shape[1] > 5 else "")
        raise ParameterError(f"Row {row} is not a row of probabilities that sum to 1: {shown}. {len(bad)} such row(s).")
    return truth, p
