"""Ordered classes: the expected value and the median of a posterior, beside its mode, and the errors of workers.

The mode has the smallest expected number of wrong labels, the median the smallest expected absolute error, and the
expected value the smallest expected squared error.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

_TIE = 1e-9  # probabilities closer than this count as equal: they may be the same sum in another order


def expected_grades(posterior: Array, values: npt.ArrayLike) -> Array:
    """Expected value of the grade of each item.

    Parameters
    ----------
    posterior : ndarray of shape (n_items, n_classes)
        p(truth | labels).
    values : array-like of shape (n_classes,)
        The number that each class stands for.

    Returns
    -------
    ndarray of shape (n_items,)

    Examples
    --------
    >>> expected_grades(np.array([[0.5, 0.25, 0.25]]), [1, 2, 3]).tolist()
    [1.75]
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

    Parameters
    ----------
    posterior : ndarray of shape (n_items, n_classes)
        p(truth | labels).
    order : ndarray of int of shape (n_classes,)
        Codes of the classes from the lowest grade to the highest.

    Returns
    -------
    ndarray of int of shape (n_items,)
        Class codes.

    Examples
    --------
    >>> median_grades(np.array([[0.4, 0.3, 0.3], [0.1, 0.0, 0.9]]), np.array([0, 1, 2])).tolist()
    [1, 2]
    """
    cumulated = np.zeros(len(posterior))
    low = np.full(len(posterior), -1)
    high = np.full(len(posterior), -1)
    for rank, code in enumerate(order.tolist()):
        cumulated += posterior[:, code]
        low[(low < 0) & (cumulated >= 0.5 - _TIE)] = rank
        high[(high < 0) & (cumulated > 0.5 + _TIE)] = rank
    rows = np.arange(len(posterior))
    is_higher = posterior[rows, order[high]] > posterior[rows, order[low]] + _TIE
    return np.asarray(order[np.where(is_higher, high, low)])


def bias_and_spread(confusion: Array, class_prior: Array, rank: Array) -> tuple[Array, Array]:
    """Mean and standard deviation of label minus truth of each worker, in steps of the scale.

    Parameters
    ----------
    confusion : ndarray of shape (n_workers, n_classes, n_classes)
        Confusion matrices.
    class_prior : ndarray of shape (n_classes,)
        Class frequencies.
    rank : ndarray of shape (n_classes,)
        Rank of each class on the scale.

    Returns
    -------
    bias : ndarray of shape (n_workers,)
    spread : ndarray of shape (n_workers,)

    Examples
    --------
    >>> always_high = np.array([[[0.0, 1.0], [0.0, 1.0]]])
    >>> [values.tolist() for values in bias_and_spread(always_high, np.array([0.5, 0.5]), np.array([0.0, 1.0]))]
    [[0.5], [0.5]]
    """
    error = rank[None, :] - rank[:, None]  # (truth, label)
    joint = class_prior[:, None] * confusion
    bias = (joint * error).sum(axis=(1, 2))
    variance = (joint * error**2).sum(axis=(1, 2)) - bias**2
    return bias, np.sqrt(np.maximum(variance, 0.0))
