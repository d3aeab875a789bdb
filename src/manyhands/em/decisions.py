"""Decisions: from a posterior to one class per item, with deterministic ties."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from manyhands._core.arrays import Array
from manyhands.em.kernels import largest

# Numbers closer than this are tied, everywhere in the package: they may be the same sum in another order. Sums of a few
# thousand shares differ by less than 1e-12 between orders; shares of votes (1/999 and 1/1000) by more than 1e-7.
TIE = 1e-9
TIE_DIGITS = 9  # the same for values that are grouped: equal after rounding to this many digits


def pick_classes(
    posterior: Array, unlabelled: npt.NDArray[np.bool_], totals: Array | None = None
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.bool_]]:
    """Class with the largest posterior probability of each item.

    A tie goes to the class that is more frequent overall, then to the one that comes first; it never depends on the
    order of the rows. Probabilities within 1e-9 count as equal.

    Examples
    --------
    >>> pick_classes(np.array([[0.5, 0.5], [0.1, 0.9]]), np.zeros(2, bool))
    (array([1, 1], dtype=int32), array([ True, False]))

    Shapes: posterior (n_items, n_classes); unlabelled (n_items,); totals (n_classes,); returns code (n_items,);
    returns tied (n_items,).
    """
    totals = class_totals(posterior, unlabelled) if totals is None else totals
    rank = np.argsort(-np.round(totals, 6), kind="stable").astype(np.int32)  # classes, the largest first
    code, tied = largest(posterior, rank, TIE)
    code[unlabelled] = -1
    tied &= ~unlabelled
    return code, tied


def class_totals(posterior: Array, unlabelled: npt.NDArray[np.bool_]) -> Array:
    """Expected number of items of each class, among the items with labels.

    Shapes: posterior (n_items, n_classes); unlabelled (n_items,); returns (n_classes,).
    """
    # einsum adds row by row; sum(axis=0) takes four times as long over short rows
    return np.einsum("ik->k", posterior[~unlabelled] if unlabelled.any() else posterior)


def overall(totals: Array) -> Array:
    """Class frequencies with one pseudo-item spread over the classes: the posterior of an item without labels.

    Examples
    --------
    >>> overall(np.array([2.0, 1.0])).tolist()
    [0.625, 0.375]

    Shapes: totals (n_classes,); returns (n_classes,).
    """
    shares = totals + 1.0 / len(totals)
    return shares / shares.sum()


# ----------------------------------------------------------------------------------------------------
# Ordered classes: the expected value and the median of a posterior, beside its mode, and the errors of workers.
#
# The mode has the smallest expected number of wrong labels, the median the smallest expected absolute error, and the
# expected value the smallest expected squared error.


def expected_grades(posterior: Array, values: npt.ArrayLike) -> Array:
    """Expected value of the grade of each item.

    Examples
    --------
    >>> expected_grades(np.array([[0.5, 0.25, 0.25]]), [1, 2, 3]).tolist()
    [1.75]

    Shapes: posterior (n_items, n_classes); values (n_classes,); returns (n_items,).
    """
    number = np.asarray(values, float)
    total = np.zeros(len(posterior))
    for k in range(posterior.shape[1]):  # no BLAS: the order of the sum is the same on every machine
        total += posterior[:, k] * number[k]
    return total


def median_grades(posterior: Array, order: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Class code of the posterior median of each item.

    Where exactly half of the probability is below a threshold, two grades are medians; the more probable one is taken,
    then the lower one.

    Examples
    --------
    >>> median_grades(np.array([[0.4, 0.3, 0.3], [0.1, 0.0, 0.9]]), np.array([0, 1, 2])).tolist()
    [1, 2]

    Shapes: posterior (n_items, n_classes); order (n_classes,); returns (n_items,).
    """
    cumulated = np.zeros(len(posterior))
    low = np.full(len(posterior), -1)
    high = np.full(len(posterior), -1)
    for rank, code in enumerate(order.tolist()):
        cumulated += posterior[:, code]
        low[(low < 0) & (cumulated >= 0.5 - TIE)] = rank
        high[(high < 0) & (cumulated > 0.5 + TIE)] = rank
    rows = np.arange(len(posterior))
    is_higher = posterior[rows, order[high]] > posterior[rows, order[low]] + TIE
    return np.asarray(order[np.where(is_higher, high, low)])


def bias_and_spread(confusion: Array, class_prior: Array, rank: Array) -> tuple[Array, Array]:
    """Mean and standard deviation of label minus truth of each worker, in steps of the scale.

    Examples
    --------
    >>> always_high = np.array([[[0.0, 1.0], [0.0, 1.0]]])
    >>> [values.tolist() for values in bias_and_spread(always_high, np.array([0.5, 0.5]), np.array([0.0, 1.0]))]
    [[0.5], [0.5]]

    Shapes: confusion (n_workers, n_classes, n_classes); class_prior (n_classes,); rank (n_classes,); returns bias
    (n_workers,); returns spread (n_workers,).
    """
    error = rank[None, :] - rank[:, None]  # (truth, label)
    joint = class_prior[:, None] * confusion
    bias = (joint * error).sum(axis=(1, 2))
    variance = (joint * error**2).sum(axis=(1, 2)) - bias**2
    return bias, np.sqrt(np.maximum(variance, 0.0))
