"""Whether probabilities can be believed, where the truth is known."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from manyhands.em.decisions import pick_classes
from manyhands.exceptions import AlignmentError, ParameterError
from manyhands.metrics.truth import Codes, encode_truth
from manyhands.validation import Number, check_parameters

Array = npt.NDArray[np.float64]

_SUM_TOLERANCE = 1e-3  # rows that were rounded to four digits and written to a file still count as probabilities
_TIE_DIGITS = 9  # confidences that agree so far are tied: the same numbers summed in another order


def log_loss(y_true: Any, probabilities: Any, classes: Any) -> float:
    """The mean of -log p(truth).

    A probability of 0 for what turns out true would cost infinitely much. As in scikit-learn, probabilities are
    clipped to [eps, 1 - eps], with the eps of the array's type (2.2e-16 in double precision), so that it costs 36.

    Parameters
    ----------
    y_true : one class per item
    probabilities : (n_items, n_classes), rows that sum to 1
    classes : (n_classes,) the class of each column

    >>> round(log_loss(["cat", "dog"], [[0.5, 0.5], [0.25, 0.75]], ["cat", "dog"]), 4)
    0.4904
    """
    truth, p = _check(y_true, probabilities, classes)
    eps = np.finfo(p.dtype).eps
    given = np.clip(p[np.arange(len(p)), truth], eps, 1 - eps)
    return float(np.mean(-np.log(given, dtype=np.float64)))


def brier(y_true: Any, probabilities: Any, classes: Any) -> float:
    """The squared distance between probabilities and truth, summed over all classes: 0 is perfect, 2 the worst.

    With two classes this is twice what is often called the Brier score there. Parameters are those of `log_loss`.

    >>> brier(["cat", "dog"], [[1.0, 0.0], [0.5, 0.5]], ["cat", "dog"])
    0.25
    """
    truth, p = _check(y_true, probabilities, classes)
    error = np.array(p, np.float64)
    error[np.arange(len(p)), truth] -= 1
    return float(np.einsum("ik,ik->", error, error) / len(p))


def ece(y_true: Any, probabilities: Any, classes: Any, n_bins: int = 10) -> float:
    """Expected calibration error of the label: how far confidence and accuracy are apart, in bins of equal mass.

    Items are sorted by confidence, the largest probability of each, and cut into `n_bins` parts of equal size (up to
    one item); the distances between mean confidence and accuracy are averaged over all items. Equal confidences
    (within 1e-9) that two bins share count in both with their common accuracy, so the order of rows does not matter.
    A tie between classes is broken as the aggregators do it. The other parameters are those of `log_loss`.

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
    """The code of each item's truth, and one row of probabilities for each."""
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
