"""Colluding groups: workers who share their answers, copy one another, or are one person behind several ids.

Every aggregator assumes that workers err independently, so a group with shared answers outvotes independent workers,
and EM then rates the group as reliable. The mark of such a group is that its members agree with one another far beyond
what their agreement with all others explains. The test uses the votes alone, before any EM is run.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from manyhands import elementary
from manyhands.annotations import Annotations
from manyhands.em.collusion_group import (
    PRIOR_STRENGTH,
    leading_group,
    leave_one_out_counts,
    members_by_copying,
    shrunk_confusion,
    truth_from_others,
)
from manyhands.em.kernels import sums_by, weighted_votes
from manyhands.em.label_pairs import MIN_LABELS, LabelPairs, Mask, label_pairs
from manyhands.em.triads import find_low_volume_group, is_unexplained

Array = npt.NDArray[np.float64]

_MIN_Z = 10.0  # standard deviations between observed and expected agreement inside the group
_MIN_EXCESS = 0.85  # observed minus expected agreement, as a share of the largest possible difference
_MARGIN = 0.05  # members must agree less with outsiders than outsiders with one another; else they may be experts
_MIN_OUTSIDE_AGREEMENT = 0.1  # agreement of outsiders beyond chance; below it they cannot serve as a reference
_MIN_CHECKED = 50  # pairs of labels of outsiders
_MIN_WORKERS = 5  # two members and three outsiders


_TIE = 1e-9  # weights of two classes closer than this are equal
_GROUP_PRIOR_STRENGTH = 0.1  # pseudo-counts per row of the confusion matrix of a group, which has many labels


@dataclass(frozen=True, eq=False)
class CollusionGroups:
    """A colluding group.

    Attributes
    ----------
    members : ndarray of shape (n_workers,) of bool
        The workers of the group.
    agreement : float
        Share of equal labels among all pairs of labels that two members gave to one item.
    expected : float
        The share expected of independent workers with the same confusion matrices.
    z : float
        Observed minus expected agreement in standard deviations.
    max_labels : int or None, default=None
        The largest number of labels of a member, where workers with few labels were tested together.
    """

    members: Mask
    agreement: float
    expected: float
    z: float
    max_labels: int | None = None


def find_colluding_groups(
    annotations: Annotations, worker_volume: npt.NDArray[np.int64] | None = None
) -> CollusionGroups | None:
    """Find the most significant colluding group, if there is one.

    A group is reported where its agreement is significant (`_MIN_Z`), and either nearly perfect (`_MIN_EXCESS`) while
    members agree with outsiders less than outsiders do with one another (`_MARGIN`), or far beyond what its agreement
    with outsiders explains (`triads`): good workers agree with one another too, but also with all others. Workers who
    always name one class are no group; their label distribution explains their agreement.

    Workers with three labels each cannot be found one by one. They are tested together first: all workers with at most
    three, five or ten labels, against all others.

    Up to 200,000 pairs of labels (fewer from 16 classes on) all are used, and the result does not depend on names or on
    the order of workers, items and classes. Of labels with weights, the strongest one of each worker and item counts.
    Beyond that a sample of evenly spaced items is used, with at most 30 labels
    of each; a worker with few labels in the sample is then easily missed.

    Parameters
    ----------
    annotations : Annotations
        The crowd's labels.
    worker_volume : ndarray of shape (n_workers,) of int, default=None
        Number of labels of each worker in the whole crowd, where the annotations are a sample of it.

    Returns
    -------
    CollusionGroups or None
        The most significant group; `collapse_groups` makes it possible to search for the next one.

    Examples
    --------
    >>> from manyhands.simulate import make_crowd
    >>> crowd = make_crowd(bad="colluding", bad_share=0.3, random_state=0)
    >>> group = find_colluding_groups(crowd.annotations)
    >>> bool(np.all(group.members == crowd.is_bad)), group.agreement
    (True, 1.0)
    """
    annotations = annotations.strongest_labels()
    if annotations.n_workers < _MIN_WORKERS or annotations.n_labels.max(initial=0) < MIN_LABELS:
        return None
    pairs = label_pairs(annotations)
    if len(pairs.a) == 0:
        return None
    low_volume = find_low_volume_group(annotations, pairs, worker_volume)
    if low_volume is not None:
        triad = low_volume.triad
        return CollusionGroups(low_volume.members, triad.agreement, triad.expected, triad.z, low_volume.max_labels)
    return _find_dense_group(annotations, pairs)


def _find_dense_group(annotations: Annotations, pairs: LabelPairs) -> CollusionGroups | None:
    """The candidate group among workers with enough labels, if it passes the tests."""
    counts = leave_one_out_counts(pairs)
    tables = shrunk_confusion(counts, counts.sum(axis=0), PRIOR_STRENGTH)
    log_likelihood = elementary.log(tables)[pairs.worker, :, pairs.label]  # (n_labels, n_classes) log p(label | truth)
    is_member = members_by_copying(pairs, *leading_group(pairs, tables, log_likelihood))
    if not 2 <= np.sum(is_member) <= annotations.n_workers - 3:
        return None
    agreement, expected, z = _agreement_inside(pairs, is_member, counts, log_likelihood)
    excess = (agreement - expected) / (1 - expected)
    is_worse = excess >= _MIN_EXCESS and _agrees_less_with_outsiders(pairs, is_member)
    if z < _MIN_Z or not (is_worse or is_unexplained(pairs, is_member)):
        return None
    members = np.zeros(annotations.n_workers, bool)
    members[pairs.workers[is_member]] = True
    return CollusionGroups(members, agreement, expected, z)


def collapse_groups(annotations: Annotations, members: Mask, representative: int | None = None) -> Annotations:
    """Collapse a colluding group into one voter.

    The member with the most labels gets the most frequent label of the group on each item, and the labels of all other
    members are removed. An item on which two labels are equally frequent in the group gets none from it. All items,
    workers and classes stay. Among members with equally many labels the first is taken, which changes nothing but the
    name on the labels. Where labels have weights, they are summed, and the label of the group gets the mean weight of
    the members who labelled the item.

    Parameters
    ----------
    annotations : Annotations
        The crowd's labels.
    members : ndarray of shape (n_workers,) of bool
        The workers of the group.
    representative : int, default=None
        The member who gets the labels of the group; None is the one with the most labels among these.

    Returns
    -------
    Annotations

    Examples
    --------
    >>> votes = Annotations.from_matrix([[0, 1, 1, 1], [0, 0, 1, -1]])
    >>> collapsed = collapse_groups(votes, np.array([False, True, True, True]))
    >>> collapsed.item.tolist(), collapsed.worker.tolist(), collapsed.label.tolist()
    ([0, 0, 1], [0, 1, 0], [0, 1, 0])
    """
    inside = members[annotations.worker]
    if not inside.any():
        return annotations
    if representative is None:
        representative = int(np.bincount(annotations.worker[inside], minlength=annotations.n_workers).argmax())
    if annotations.weight is not None:
        return _collapse_weighted(annotations, inside, representative)
    cell = annotations.item[inside] * np.int64(annotations.n_classes) + annotations.label[inside]
    cell, votes = np.unique(cell, return_counts=True)  # by item, and within it by label
    item, label = np.divmod(cell, annotations.n_classes)
    _, first, size = np.unique(item, return_index=True, return_counts=True)
    is_top = votes == np.repeat(np.maximum.reduceat(votes, first), size)
    chosen = is_top & np.repeat(np.add.reduceat(is_top.astype(int), first) == 1, size)
    return annotations.keep(~inside).with_more(item[chosen], np.full(np.sum(chosen), representative), label[chosen])


def _collapse_weighted(annotations: Annotations, inside: Mask, representative: int) -> Annotations:
    """The same for labels with weights."""
    group = annotations.keep(inside)
    votes = weighted_votes(group, np.ones(group.n_annotations))  # (n_items, n_classes)
    is_top = votes >= votes.max(axis=1, keepdims=True) - _TIE
    chosen = np.flatnonzero((group.n_labels > 0) & (is_top.sum(axis=1) == 1))
    weight = votes[chosen].sum(axis=1) / group.n_voters[chosen]
    return annotations.keep(~inside).with_more(
        chosen, np.full(len(chosen), representative), votes[chosen].argmax(axis=1), weight
    )


def _agreement_inside(
    pairs: LabelPairs, is_member: Mask, counts: Array, log_likelihood: Array
) -> tuple[float, float, float]:
    """Observed agreement of members, expected agreement, and their distance in standard deviations.

    The expected agreement uses one confusion matrix for the whole group: a label distribution that all members share,
    such as one class for everything, shows in it without the shrinkage that blurs the matrix of a worker with few
    labels.
    """
    inside = np.flatnonzero(is_member[pairs.worker[pairs.a]] & is_member[pairs.worker[pairs.b]])
    if len(inside) == 0:
        return 0.0, 0.0, 0.0
    table = shrunk_confusion(counts[is_member].sum(axis=0), counts.sum(axis=0), _GROUP_PRIOR_STRENGTH)
    both = np.sum(table**2, axis=1)  # (n_classes,) probability to agree, given the truth
    chance = np.minimum(np.sum(both * truth_from_others(pairs, log_likelihood, inside), axis=1), 1 - 1e-9)
    surplus = float(np.sum(pairs.equal[inside] - chance))
    z = surplus / np.sqrt(np.sum(chance * (1 - chance)))
    return float(np.mean(pairs.equal[inside])), float(np.mean(chance)), float(z)


def _agrees_less_with_outsiders(pairs: LabelPairs, is_member: Mask) -> bool:
    """Whether members agree with outsiders less than outsiders do with one another, beyond chance.

    Outsiders who all prefer one class agree often without information; compared with them, a few good workers would
    look like the exception. So chance agreement follows from the label distribution of each worker, and outsiders must
    agree beyond it.
    """
    n_workers, n_classes = len(pairs.workers), pairs.n_classes
    label_shares = sums_by(pairs.worker * n_classes + pairs.label, np.ones(len(pairs.label)), n_workers * n_classes)
    label_shares = label_shares.reshape(n_workers, n_classes)
    label_shares /= label_shares.sum(axis=1, keepdims=True)
    x, y = pairs.worker[pairs.a], pairs.worker[pairs.b]
    chance = np.sum(label_shares[x] * label_shares[y], axis=1)  # (n_pairs,)
    n_members = is_member[x].astype(int) + is_member[y]
    if np.sum(n_members == 0) < _MIN_CHECKED:
        return False
    across, among = (_beyond_chance(pairs.equal, chance, n_members == n) for n in (1, 0))
    return among > _MIN_OUTSIDE_AGREEMENT and across < among - _MARGIN


def _beyond_chance(equal: Mask, chance: Array, which: Mask) -> float:
    """Agreement beyond chance as a share of what is possible (kappa)."""
    room = float(np.sum(1 - chance[which]))
    return float(np.sum(equal[which] - chance[which])) / room if room > 0 else 0.0
