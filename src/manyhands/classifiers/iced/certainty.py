"""Label certainty of an item, and groups of items from less to more certain (sections 2.2 and 2.4 of the paper).

S_i = 1 / (v_i + epsilon),   v_i = half the mean squared distance of one-hot labels from their mean
                                 = (1 - sum_k p_ik^2) / 2,   which is p (1 - p) for two classes

References
----------
W. Wang, G. Thekinen, X. Liu, Z. Liu and J. Tang, Learning from imbalanced crowdsourced labeled data, SDM; Eq. 2.4,
here in a form for any number of classes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from manyhands.annotations import Annotations
from manyhands.classifiers.iced.options import Certainty
from manyhands.em.kernels import vote_share

Array = npt.NDArray[np.float64]

N_GROUPS = 4
_MAX_LEVELS = 8  # up to this number of distinct certainties, as with equally many votes on each item, each is a group
_DIGITS = 12  # certainties that agree to this digit are equal: sums of the same shares in another order differ


def label_certainty(
    annotations: Annotations,
    gold: npt.NDArray[np.int32] | None = None,
    *,
    epsilon: float = 1e-6,
    smoothing: float = 0.0,
) -> Array:
    """Return the label certainty of each item.

    Parameters
    ----------
    annotations : Annotations
        The labels.
    gold : ndarray of shape (n_items,), default=None
        Codes of known classes, -1 where the class is unknown.
    epsilon : float, default=1e-06
        Added to the variance of the labels.
    smoothing : float, default=0.0
        Pseudo-count of votes for every class of an item; 0 is Eq. 2.4 as printed.

    Returns
    -------
    ndarray of shape (n_items,)
        At most 1 / epsilon, which is the certainty of gold. An item without labels has the lowest certainty.

    Examples
    --------
    >>> votes = Annotations.from_matrix([[0, 0, 0, 0], [0, 0, 0, 1], [0, 0, 1, 1], [0, -1, -1, -1]])
    >>> label_certainty(votes, epsilon=0.01).round(2).tolist()
    [100.0, 5.06, 3.85, 100.0]
    >>> label_certainty(votes, epsilon=0.01, smoothing=0.5).round(2).tolist()
    [10.0, 4.55, 3.85, 5.06]
    """
    n_labels, n_classes = annotations.n_labels[:, None], max(annotations.n_classes, 1)
    with np.errstate(invalid="ignore"):
        share = (vote_share(annotations) * n_labels + smoothing) / (n_labels + smoothing * n_classes)
    share[annotations.n_labels == 0] = 1.0 / n_classes
    variance = (1.0 - np.square(share).sum(axis=1)) / 2
    if gold is not None:
        variance[gold >= 0] = 0.0
    return np.asarray(1.0 / (np.maximum(variance, 0.0) + epsilon))


def certainty_by(options: Certainty, annotations: Annotations, gold: npt.NDArray[np.int32] | None = None) -> Array:
    """Return the label certainty of each item, with the options of ICED.

    Parameters
    ----------
    options : Certainty
        epsilon and smoothing.
    annotations : Annotations
        The labels.
    gold : ndarray of shape (n_items,), default=None
        Codes of known classes, -1 where the class is unknown.

    Returns
    -------
    ndarray of shape (n_items,)
    """
    return label_certainty(annotations, gold, epsilon=options.epsilon, smoothing=options.smoothing)


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
