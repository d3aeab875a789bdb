"""Workers whose agreement exceeds what the truth explains: colluding groups, and pairs that share their errors.

Independent workers agree because both are right, and on difficult items they make the same errors. The expected
agreement of a pair on an item is therefore the larger of two numbers: the probability that one worker gives the
other's label under the leave-one-out posterior, and the share of the other labels on the item that equal it. Whether
the observed agreement of a pair can be due to chance is tested with Hoeffding's inequality, which holds for independent
trials with any probabilities of this mean, at a level of 1% for all pairs of the crowd together (Bonferroni).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import betainc, rel_entr

from manyhands.annotations import Annotations
from manyhands.em.collusion import CollusionGroups, collapse_groups, find_colluding_groups
from manyhands.em.kernels import Array, sums_by
from manyhands.scorecards.leave_one_out import LeaveOneOut, Mask

FALSE_ALARM = 0.01  # probability of at least one false alarm among all pairs
MIN_SHARED = 10  # items that both workers labelled
MIN_EXCESS = 0.5  # (agreement - expected) / (1 - expected) must exceed this
MAX_PAIRS = 4_000_000  # pairs of labels examined, up to one more per label
CHUNK = 1 << 20  # pairs times classes held at a time
MAX_GROUPS = 5
DISAGREES = 0.01  # probability that a member agrees with the group as little

Positions = npt.NDArray[np.int64]


class CopyingPairs(NamedTuple):
    """Pairs of workers who agree significantly more than expected.

    Attributes
    ----------
    x : ndarray of int of shape (n_pairs,)
        Code of the first worker.
    y : ndarray of int of shape (n_pairs,)
        Code of the second worker.
    n_shared : ndarray of shape (n_pairs,)
        Number of items that both labelled.
    n_equal : ndarray of shape (n_pairs,)
        Number of these on which both labels are equal.
    n_expected : ndarray of shape (n_pairs,)
        Expected number of equal labels for independent workers.
    """

    x: Positions
    y: Positions
    n_shared: Array
    n_equal: Array
    n_expected: Array


def find_groups(annotations: Annotations) -> list[CollusionGroups]:
    """Find colluding groups one after the other, the most significant first.

    Parameters
    ----------
    annotations : Annotations
        The crowd's labels.

    Returns
    -------
    list of CollusionGroups
        At most five groups; each is collapsed to one worker before the next is searched.
    """
    groups: list[CollusionGroups] = []
    while len(groups) < MAX_GROUPS and (group := find_colluding_groups(annotations)) is not None:
        groups.append(group)
        annotations = collapse_groups(annotations, group.members)
    return groups


def disagrees_with_group(annotations: Annotations, group: CollusionGroups) -> Mask:
    """Find members of a group who agree with it clearly less than its other members do.

    A very good worker agrees with the copies of a good one on most items, and may be found with them. On the items on
    which the copies are wrong, they differ.

    Parameters
    ----------
    annotations : Annotations
        The crowd's labels.
    group : CollusionGroups
        A colluding group.

    Returns
    -------
    ndarray of bool of shape (n_workers,)
        True for members whose agreement with the others is below that of the better half of the group at the level
        `DISAGREES`.
    """
    row = np.flatnonzero(group.members[annotations.worker])
    item, worker, label = annotations.item[row], annotations.worker[row], annotations.label[row]
    _, which, n_same = np.unique(
        item * np.int64(annotations.n_classes) + label, return_inverse=True, return_counts=True
    )
    n_here = np.bincount(item, minlength=annotations.n_items)[item]
    shared = n_here > 1
    equal = (n_same[which] - 1)[shared] / (n_here[shared] - 1)
    n_equal = sums_by(worker[shared], equal, annotations.n_workers)
    n_shared = sums_by(worker[shared], np.ones(len(equal)), annotations.n_workers)
    rate = n_equal / np.maximum(n_shared, 1.0)
    met = group.members & (n_shared > 0)
    if not met.any():
        return np.zeros(annotations.n_workers, bool)
    better = met & (rate >= np.median(rate[met]))
    usual = min(float(n_equal[better].sum() / n_shared[better].sum()), 0.99)
    n_wrong = np.maximum(n_shared - n_equal, 1e-9)
    p_value = betainc(n_wrong, n_equal + 1.0, 1 - usual)  # of `n_shared` labels, at most `n_equal` agree
    return met & (p_value < DISAGREES)


def find_copying_pairs(loo: LeaveOneOut, confusion: Array, in_group: Mask) -> CopyingPairs:
    """Find pairs of workers whose agreement is significantly higher than expected.

    Parameters
    ----------
    loo : LeaveOneOut
        Leave-one-out posterior of the truth of each label.
    confusion : ndarray of shape (n_workers, n_classes, n_classes)
        Confusion matrices, [worker, truth, label].
    in_group : ndarray of bool of shape (n_workers,)
        Members of colluding groups; pairs among them are not examined again.

    Returns
    -------
    CopyingPairs
        The pairs, sorted by the codes of the two workers.
    """
    votes = loo.annotations
    a, b = _label_pairs(votes, in_group)
    key = votes.worker[a] * np.int64(votes.n_workers) + votes.worker[b]
    pair, n_labels = np.unique(key, return_counts=True)
    pair = pair[n_labels >= MIN_SHARED]
    index = np.minimum(np.searchsorted(pair, key), max(len(pair) - 1, 0))
    often = pair[index] == key if len(pair) else np.zeros(len(key), bool)
    a, b, which = a[often], b[often], index[often]
    n_own = _n_own(votes)
    weight = 1.0 / (n_own[a] * n_own[b])  # a shared item counts once, however often two workers label it
    n_shared, n_equal, n_expected = (
        sums_by(which, weight * value, len(pair))
        for value in (
            np.ones(len(a)),
            votes.label[a] == votes.label[b],
            _expected_agreement(loo, confusion, a, b),
        )
    )
    agreement, expected = n_equal / n_shared, n_expected / n_shared
    nats = n_shared * (rel_entr(agreement, expected) + rel_entr(1 - agreement, 1 - expected))
    beyond = (agreement - expected > MIN_EXCESS * (1 - expected)) & (nats > np.log(max(len(pair), 1) / FALSE_ALARM))
    beyond &= n_shared > MIN_SHARED - 0.5
    x, y = np.divmod(pair[beyond], votes.n_workers)
    return CopyingPairs(x, y, n_shared[beyond], n_equal[beyond], n_expected[beyond])


def _n_own(annotations: Annotations) -> Positions:
    """(n_annotations,) how many labels the worker of each annotation gave to its item."""
    item, worker = annotations.item, annotations.worker
    first = np.flatnonzero(np.append(True, (item[1:] != item[:-1]) | (worker[1:] != worker[:-1])))
    size = np.diff(np.append(first, len(item)))
    return np.repeat(size, size)


def _label_pairs(annotations: Annotations, in_group: Mask) -> tuple[Positions, Positions]:
    """Positions of two labels of different workers on one item, that of the worker with the lower code first.

    Each label is paired with the nearest ones that follow it, with equally many if all pairs would be more than
    `MAX_PAIRS`. Within an item, members of groups come first: the labels that a label is not paired with, those of its
    own group or worker, then are one run around it.
    """
    item, worker = annotations.item, annotations.worker
    is_member = in_group[worker]
    at = np.lexsort((~is_member, item)) if is_member.any() else np.arange(len(item))
    source = np.where(is_member, -1, worker)[at]
    is_last = np.diff(source, append=-2) != 0
    is_last |= np.diff(item, append=-1) != 0
    last = np.flatnonzero(is_last)
    follows = np.repeat(last + 1, np.diff(last, prepend=-1))  # the first label after the run
    n_partners = np.cumsum(annotations.n_labels)[item] - follows
    n_paired = np.minimum(n_partners, _max_partners(n_partners))
    first = np.repeat(np.arange(len(at)), n_paired)
    second = np.repeat(follows + n_paired - np.cumsum(n_paired), n_paired) + np.arange(len(first))
    a, b = at[first], at[second]
    swapped = worker[a] > worker[b]
    return np.where(swapped, b, a), np.where(swapped, a, b)


def _max_partners(n_partners: Positions) -> int:
    """The smallest limit on the partners of one label with which the number of pairs reaches `MAX_PAIRS`."""
    n_with_more = len(n_partners) - np.cumsum(np.bincount(n_partners))  # than 0, 1, 2, ... partners
    return int(np.searchsorted(np.cumsum(n_with_more), MAX_PAIRS)) + 1


def _expected_agreement(loo: LeaveOneOut, confusion: Array, a: Positions, b: Positions) -> Array:
    """(n_pairs,) probability that two labels are equal, for workers who are independent given the truth."""
    votes = loo.annotations
    by_label = np.ascontiguousarray(confusion.transpose(0, 2, 1))  # so that each lookup reads one row
    by_truth = np.empty(len(a))
    size = max(CHUNK // max(votes.n_classes, 1), 1)
    for part in (slice(first, first + size) for first in range(0, len(a), size)):
        one_way, other_way = (
            np.einsum("pk,pk->p", loo.truth[y], by_label[votes.worker[y], votes.label[x]])
            for x, y in ((a[part], b[part]), (b[part], a[part]))
        )
        np.maximum(one_way, other_way, out=by_truth[part])
    equal = votes.label[a] == votes.label[b]
    n_same = np.maximum(loo.n_equal[a], loo.n_equal[b]) - equal  # among the labels of third workers
    by_votes = (n_same + by_truth) / np.maximum(loo.n_others[a], 1.0)
    return np.clip(np.maximum(by_truth, by_votes), 0.01, 0.99)
