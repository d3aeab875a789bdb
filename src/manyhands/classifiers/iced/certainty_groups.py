"""Groups of items from less to more certain, for the warm-up (section 2.4 of the paper)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

N_GROUPS = 4
_MAX_LEVELS = 8  # up to this number of distinct certainties, as with equally many votes on each item, each is a group
_DIGITS = 12  # certainties that agree to this digit are equal: sums of the same shares in another order differ


def certainty_groups(certainty: Array) -> npt.NDArray[np.int64]:
    """Return the group of each item, from 0 for the least certain to 3 for the most certain.

    Up to eight distinct values are grouped by value: the three highest are groups 1 to 3, all below are group 0. More
    values are cut into quarters of the items; items of equal certainty stay together.

    Parameters
    ----------
    certainty : ndarray of shape (n_items,)
        Certainties.

    Returns
    -------
    ndarray of int of shape (n_items,)

    Examples
    --------
    >>> certainty_groups(np.array([5.0, 1.0, 2.0, 2.0, 9.0, 0.5])).tolist()
    [2, 0, 1, 1, 3, 0]
    """
    if len(certainty) == 0:
        return np.zeros(0, np.int64)
    level, position, size = np.unique(np.round(certainty, _DIGITS), return_inverse=True, return_counts=True)
    if len(level) <= _MAX_LEVELS:
        group = np.maximum(np.arange(len(level)) - len(level) + N_GROUPS, 0)
    else:
        middle = (np.cumsum(size) - size / 2) / len(certainty)  # mean rank of a level, as a share of the items
        group = (N_GROUPS * middle).astype(np.int64)
    return np.asarray(group[position].astype(np.int64))


def stratified_groups(
    certainty: Array, vote: npt.NDArray[np.integer[Any]], rng: np.random.Generator
) -> npt.NDArray[np.int64]:
    """Return the group of each item, from 0 to 3, with a quarter of the items of each voted class in each group.

    Parameters
    ----------
    certainty : ndarray of shape (n_items,)
        Certainties.
    vote : ndarray of int of shape (n_items,)
        Class of each item by the majority vote.
    rng : numpy.random.Generator
        Divides items of equal certainty.

    Returns
    -------
    ndarray of int of shape (n_items,)

    Examples
    --------
    >>> stratified_groups(np.arange(8.0), np.array([0] * 4 + [1] * 4), np.random.default_rng(0)).tolist()
    [0, 1, 2, 3, 0, 1, 2, 3]
    """
    group, tie_break = np.zeros(len(certainty), np.int64), rng.random(len(certainty))
    for k in np.unique(vote):
        own = np.flatnonzero(vote == k)
        order = np.lexsort((tie_break[own], np.round(certainty[own], _DIGITS)))
        # The rank counts from the most certain item, so that fewer than four items are in the highest groups.
        group[own[order]] = N_GROUPS - 1 - N_GROUPS * np.arange(len(own))[::-1] // len(own)
    return group
