"""Probabilities that judges give to classes: their check."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from manyhands.exceptions import AlignmentError, AnnotationError

Array = npt.NDArray[np.float64]

_ROUNDING = 0.02  # by which rounded probabilities may differ from a sum of 1


def check_probabilities(probs: Any, shape: tuple[int, int]) -> Array:
    """Return probabilities of judges, rows scaled to sum to 1.

    Parameters
    ----------
    probs : array-like of shape (n_rows, n_classes)
        Probability of each class.
    shape : tuple of two int
        Number of rows and of classes.

    Returns
    -------
    ndarray of shape (n_rows, n_classes)

    Raises
    ------
    AlignmentError
        Where the shape is another one.
    AnnotationError
        Where probabilities are negative, not finite, or do not sum to 1.
    """
    try:
        table = np.array(probs, np.float64)
    except (TypeError, ValueError):
        raise AnnotationError("Probabilities must be a table of numbers: a column for each class.") from None
    if table.shape != shape:
        raise AlignmentError(
            f"Probabilities of shape {table.shape} do not fit {shape[0]} rows and {shape[1]} classes: give one row for "
            f"each item and worker, and one column for each class."
        )
    total = table.sum(axis=1)
    wrong = np.flatnonzero(~(np.isfinite(total) & (table >= 0).all(axis=1) & (np.abs(total - 1.0) <= _ROUNDING)))
    if len(wrong):
        row = ", ".join(f"{p:g}" for p in table[wrong[0]][:8])
        raise AnnotationError(
            f"Row {wrong[0]}: the probabilities are {row}; they must be at least 0 and sum to 1. {len(wrong)} such "
            f"row(s)."
        )
    return np.asarray(table / total[:, None])
