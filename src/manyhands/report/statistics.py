"""Intervals and rates that several panels need."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
_Z = 1.959963984540054  # 95%


def wilson(n_right: npt.ArrayLike, n: npt.ArrayLike) -> tuple[Array, Array]:
    """Return 95% intervals of shares by Wilson's formula.

    Parameters
    ----------
    n_right : ndarray or float
        Number of successes.
    n : ndarray or float
        Number of trials; 0 gives the interval from 0 to 1.

    Returns
    -------
    low : ndarray
        Lower ends.
    high : ndarray
        Upper ends.

    References
    ----------
    Wilson (1927), "Probable inference, the law of succession, and statistical inference".

    Examples
    --------
    >>> low, high = wilson(18, 20)
    >>> round(float(low), 3), round(float(high), 3)
    (0.699, 0.972)
    """
    right, total = np.asarray(n_right, float), np.asarray(n, float)
    share = right / np.maximum(total, 1)
    middle = (share + _Z**2 / (2 * np.maximum(total, 1e-12))) / (1 + _Z**2 / np.maximum(total, 1e-12))
    half = _Z * np.sqrt(share * (1 - share) / np.maximum(total, 1) + _Z**2 / (4 * np.maximum(total, 1) ** 2))
    half = half / (1 + _Z**2 / np.maximum(total, 1))
    low, high = np.maximum(middle - half, 0), np.minimum(middle + half, 1)
    return np.where(total > 0, low, 0.0), np.where(total > 0, high, 1.0)


def mean_interval(values: Array) -> tuple[Array, Array, Array]:
    """Return column means with 95% intervals from the spread of the rows.

    Parameters
    ----------
    values : ndarray of shape (n_rows, n_columns)
        One row per item.

    Returns
    -------
    mean : ndarray of shape (n_columns,)
        Means.
    low : ndarray of shape (n_columns,)
        Lower ends, at least 0.
    high : ndarray of shape (n_columns,)
        Upper ends, at most 1.
    """
    n = max(len(values), 1)
    mean = values.sum(axis=0) / n
    half = _Z * np.sqrt(((values - mean) ** 2).sum(axis=0)) / n
    return mean, np.maximum(mean - half, 0), np.minimum(mean + half, 1)


def ratio_interval(above: Array, below: Array) -> tuple[Array, Array, Array]:
    """Return ratios of column sums with 95% intervals over rows (linearised).

    Parameters
    ----------
    above : ndarray of shape (n_rows, n_columns)
        Numerators of each item, such as its votes for each class.
    below : ndarray of shape (n_rows,)
        Denominators of each item, such as its number of votes.

    Returns
    -------
    ratio : ndarray of shape (n_columns,)
        Ratios.
    low : ndarray of shape (n_columns,)
        Lower ends, at least 0.
    high : ndarray of shape (n_columns,)
        Upper ends, at most 1.
    """
    total = max(float(below.sum()), 1.0)
    ratio = above.sum(axis=0) / total
    half = _Z * np.sqrt(((above - ratio * below[:, None]) ** 2).sum(axis=0)) / total
    return ratio, np.maximum(ratio - half, 0), np.minimum(ratio + half, 1)
