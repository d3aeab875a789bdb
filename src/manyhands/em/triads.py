"""Whether a group agrees more than its agreement with others explains: the test of three agreements.

Let S be the share of equal labels beyond chance. For workers who answer independently, each of some quality q,

    S(x, y) = q_x q_y,   so that   S(inside) S(outside) = S(across)^2

whatever the qualities are: experts agree with one another, and with all others accordingly. A group that copies, or
whose errors are correlated, agrees inside far beyond S(across)^2 / S(outside), whether its answers are good or bad.
(With two classes this is exact; with more it holds for workers whose errors are spread evenly over the other classes.
Items that are hard for all raise the three agreements together.)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from manyhands.annotations import Annotations
from manyhands.em.label_pairs import LabelPairs, Mask

Array = npt.NDArray[np.float64]

MIN_EXCESS = 0.7  # observed minus expected agreement, as a share of the largest possible difference
MIN_Z = 4.0  # standard deviations
MIN_OUTSIDE = 0.2  # agreement of outsiders beyond chance; below it they cannot serve as a reference
MIN_CHECKED = 50  # pairs of labels of outsiders
LOW_VOLUME_LIMITS = (3, 5, 10)  # labels per worker; with so few, no worker can be judged alone
LOW_VOLUME_MIN_Z = 6.0
MIN_LOW_VOLUME_WORKERS = 10
MIN_LOW_VOLUME_ITEMS = 20  # items with two labels of such workers


class Triad(NamedTuple):
    """Observed agreement inside a group, and the agreement expected of independent workers.

    Attributes
    ----------
    agreement : float
        Share of equal labels among the pairs of labels that two members gave to one item.
    expected : float
        The share that the agreements across and outside explain.
    excess : float
        Observed minus expected agreement, as a share of the largest possible difference.
    z : float
        Observed minus expected agreement in standard deviations.
    outside : float
        Agreement of outsiders beyond chance, as a share of what is possible (kappa).
    n_items : int
        Items with labels of two members.
    """

    agreement: float
    expected: float
    excess: float
    z: float
    outside: float
    n_items: int


class _Agreement(NamedTuple):
    """Pairs of one sort: share of equal ones, share beyond chance, its variance, and number of items."""

    share: float
    beyond: float
    variance: float
    n_items: int


class LowVolumeGroup(NamedTuple):
    """All workers with at most `max_labels` labels, as one group.

    Attributes
    ----------
    members : ndarray of shape (n_workers,) of bool
        The workers of the group.
    triad : Triad
        Their agreement.
    max_labels : int
        The limit.
    """

    members: Mask
    triad: Triad
    max_labels: int


def find_low_volume_group(
    annotations: Annotations, pairs: LabelPairs, worker_volume: npt.NDArray[np.int64] | None = None
) -> LowVolumeGroup | None:
    """Test all workers with a few labels each as one group.

    No single worker can be judged by three labels. So all workers with at most three (then five, then ten) labels are
    taken together and compared with all others.

    Parameters
    ----------
    annotations : Annotations
        The crowd's labels.
    pairs : LabelPairs
        Pairs of labels to compare.
    worker_volume : ndarray of shape (n_workers,) of int, default=None
        Number of labels of each worker in the whole crowd, where the annotations are a sample of it.

    Returns
    -------
    LowVolumeGroup or None
        None where no such group agrees far beyond what independence explains.
    """
    if worker_volume is None:
        worker_volume = np.bincount(annotations.worker, minlength=annotations.n_workers)
    for most in LOW_VOLUME_LIMITS:
        is_low_volume = (worker_volume > 0) & (worker_volume <= most)
        if np.count_nonzero(is_low_volume) < MIN_LOW_VOLUME_WORKERS:
            continue
        triad = _triad_of(pairs, is_low_volume[pairs.workers])
        if triad is not None and triad.n_items >= MIN_LOW_VOLUME_ITEMS and _is_beyond(triad, LOW_VOLUME_MIN_Z):
            return LowVolumeGroup(is_low_volume, triad, most)
    return None


def is_unexplained(pairs: LabelPairs, is_member: Mask) -> bool:
    """Whether members agree far beyond what their agreement with outsiders explains, good answers or bad.

    Parameters
    ----------
    pairs : LabelPairs
        Pairs of labels to compare.
    is_member : ndarray of bool
        Members among the workers of the pairs.

    Returns
    -------
    bool
    """
    triad = _triad_of(pairs, is_member)
    return triad is not None and _is_beyond(triad, MIN_Z)


def _is_beyond(triad: Triad, z: float) -> bool:
    """Whether the excess is large and significant, and outsiders agree enough to judge by."""
    return triad.outside > MIN_OUTSIDE and triad.excess > MIN_EXCESS and triad.z > z


def _triad_of(pairs: LabelPairs, is_member: Mask) -> Triad | None:
    """Agreement inside the group, across and outside; None where there are too few pairs of outsiders."""
    inside = is_member[pairs.worker]
    n_members = inside[pairs.a].astype(np.int64) + inside[pairs.b]
    if np.count_nonzero(n_members == 0) < MIN_CHECKED or not inside.any():
        return None
    shares = (np.bincount(pairs.label[part], minlength=pairs.n_classes) / np.sum(part) for part in (inside, ~inside))
    return compare_agreements(pairs.equal, n_members, pairs.item[pairs.a], *shares)


def compare_agreements(
    equal: Mask,
    n_members: npt.NDArray[np.integer],
    item: npt.NDArray[np.integer],
    inside_shares: Array,
    outside_shares: Array,
) -> Triad | None:
    """Compare the agreement inside a group with what the agreements across and outside explain.

    Parameters
    ----------
    equal : ndarray of shape (n_pairs,) of bool
        Whether the two labels of a pair, which two workers gave to one item, are equal.
    n_members : ndarray of shape (n_pairs,) of int
        How many of the two workers are members.
    item : ndarray of shape (n_pairs,) of int
        The item of each pair, ascending.
    inside_shares : ndarray of shape (n_classes,)
        Share of each class among the labels of members.
    outside_shares : ndarray of shape (n_classes,)
        Share of each class among the labels of outsiders.

    Returns
    -------
    Triad or None
        None where outsiders do not agree beyond chance.

    Examples
    --------
    >>> equal = np.array([True] * 100 + [True, False] * 50 + [True] * 75 + [False] * 25)
    >>> n_members, item, shares = np.repeat([2, 1, 0], 100), np.arange(300), np.array([0.5, 0.5])
    >>> found = compare_agreements(equal, n_members, item, shares, shares)  # shared answers, independent of the truth
    >>> round(found.expected, 2), round(found.excess, 2)
    (0.5, 1.0)
    """
    chance = [np.dot(outside_shares, outside_shares), np.dot(inside_shares, outside_shares)]
    chance.append(np.dot(inside_shares, inside_shares))
    outside, across, inside = (_agreement(equal, item, n_members == n, chance[n]) for n in range(3))
    if min(outside.n_items, across.n_items, inside.n_items) == 0 or outside.beyond <= 0:
        return None
    room, ratio = 1.0 - chance[2], max(across.beyond, 0.0) / outside.beyond
    explained = min(ratio * max(across.beyond, 0.0), room)
    variance = inside.variance + (2 * ratio) ** 2 * across.variance + ratio**4 * outside.variance
    surplus = inside.beyond - explained
    return Triad(
        inside.share,
        float(chance[2] + explained),
        float(surplus / max(room - explained, 1e-9)),
        float(surplus / np.sqrt(variance)),
        float(outside.beyond / max(1.0 - chance[0], 1e-9)),
        inside.n_items,
    )


def _agreement(equal: Mask, item: npt.NDArray[np.integer], which: Mask, chance: float) -> _Agreement:
    """Agreement of one sort of pairs.

    Pairs of one item are not independent, so the variance counts items; two pseudo-items keep it away from 0.
    """
    n_pairs = int(np.count_nonzero(which))
    if n_pairs == 0:
        return _Agreement(0.0, 0.0, 1.0, 0)
    n_items = 1 + int(np.count_nonzero(np.diff(item[which])))
    share = float(np.count_nonzero(equal & which) / n_pairs)
    smoothed = (share * n_items + 1.0) / (n_items + 2.0)
    return _Agreement(share, share - float(chance), smoothed * (1 - smoothed) / n_items, n_items)
