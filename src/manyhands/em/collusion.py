"""Colluding groups: workers who share their answers, copy one another, or are one person behind several ids.

Every aggregator assumes that workers err independently, so a group with shared answers outvotes independent workers,
and EM then rates the group as reliable. The mark of such a group is that its members agree with one another far beyond
what their agreement with all others explains. The test uses the votes alone, before any EM is run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from manyhands._core import elementary
from manyhands._core.arrays import Array, Mask
from manyhands._core.encoding import scatter_bits
from manyhands.annotations import Annotations
from manyhands.em.decisions import TIE
from manyhands.em.kernels import sums_by, weighted_votes

# ----------------------------------------------------------------------------------------------------
# Pairs of labels that two workers gave to one item: the data in which copied answers show.

Positions = npt.NDArray[np.int64]
MIN_LABELS = 3  # labels of an item: a pair, and another one as evidence of the truth
_MAX_PAIRS = 200_000  # pairs of labels used at most, which bounds the time
_MAX_WORK = 50_000_000  # pairs times the size of a confusion matrix
_MAX_LABELS_OF_ITEM = 30  # labels used of one item, where not all pairs are used


class LabelPairs(NamedTuple):
    """Labels of items with at least three labels, and the pairs of labels that two workers gave to one item."""

    item: Positions  # (n_labels,); item of each label, ascending and without gaps
    worker: Positions  # (n_labels,); worker of each label, coded among `workers`
    label: Positions  # (n_labels,)
    a: Positions  # (n_pairs,); position of the first label of each pair
    b: Positions  # (n_pairs,); position of the second label of each pair
    workers: Positions  # the codes of these workers in the annotations
    n_classes: int

    @property
    def equal(self) -> Mask:
        """Whether the two labels of each pair are equal, shape (n_pairs,)."""
        return self.label[self.a] == self.label[self.b]


def label_pairs(annotations: Annotations, max_pairs: int | None = None) -> LabelPairs:
    """Pairs of labels to compare: all of them, or a sample of items where there are too many."""
    sample = _sample(annotations, _MAX_PAIRS if max_pairs is None else max_pairs)
    _, item, n_labels = np.unique(annotations.item[sample], return_inverse=True, return_counts=True)
    workers, worker = np.unique(annotations.worker[sample], return_inverse=True)
    nth = np.arange(len(item)) - np.repeat(np.cumsum(n_labels) - n_labels, n_labels)
    n_after = np.repeat(n_labels, n_labels) - 1 - nth  # each label is paired with those after it
    a = np.repeat(np.arange(len(item)), n_after)
    b = a + 1 + np.arange(len(a)) - np.repeat(np.cumsum(n_after) - n_after, n_after)
    others = worker[a] != worker[b]  # a worker may have labelled an item twice
    label = annotations.label[sample].astype(np.int64)
    return LabelPairs(item, worker, label, a[others], b[others], workers.astype(np.int64), annotations.n_classes)


def _sample(annotations: Annotations, max_pairs: int) -> Positions:
    """Positions of the labels to use: all on items that have three, or as many as make up `max_pairs` pairs."""
    n_labels = annotations.n_labels
    rows = np.flatnonzero(n_labels >= MIN_LABELS)
    most_pairs = min(max_pairs, _MAX_WORK // annotations.n_classes**2)
    if _n_pairs(n_labels[rows]) <= most_pairs:
        return np.flatnonzero((n_labels >= MIN_LABELS)[annotations.item])
    n_pairs = _n_pairs(np.minimum(n_labels[rows], _MAX_LABELS_OF_ITEM))
    n_rows = max(1, min(len(rows), int(len(rows) * (most_pairs / n_pairs))))
    in_sample = np.zeros(annotations.n_items, bool)
    in_sample[rows[np.linspace(0, len(rows) - 1, n_rows).astype(int)]] = True
    sample = np.flatnonzero(in_sample[annotations.item])
    # Labels of an item with many are drawn at random, so that all workers meet, but the same in every run.
    order = np.lexsort((np.random.default_rng(0).random(len(sample)), annotations.item[sample]))
    n_of_item = n_labels[in_sample]
    nth = np.arange(len(sample)) - np.repeat(np.cumsum(n_of_item) - n_of_item, n_of_item)
    return np.sort(sample[order[nth < _MAX_LABELS_OF_ITEM]])


def _n_pairs(n_labels: Positions) -> int:
    """Number of pairs of labels of items with these numbers of labels."""
    return int(np.sum(n_labels * (n_labels - 1) // 2))


def both_ways(pairs: LabelPairs) -> tuple[Positions, Positions]:
    """Every pair in both directions: a label, and another one of the same item.

    Shapes: returns mine (2 * n_pairs,); returns other (2 * n_pairs,).
    """
    return np.append(pairs.a, pairs.b), np.append(pairs.b, pairs.a)


# ----------------------------------------------------------------------------------------------------
# The candidate for a colluding group: workers who agree with one another more than expected, and those who copy them.
#
# 1. Confusion matrices of all workers are estimated with the other labels of each item in the place of the truth.
# 2. For every two workers, observed minus expected agreement is standardised; the leading eigenvector of this matrix
# marks the core of the candidate group.
# 3. All workers whose labels repeat those of the core are added, by a likelihood ratio of "copies the group" against
# "answers independently".

_CHUNK = 1 << 20  # numbers held at a time when confusion matrices are multiplied
PRIOR_STRENGTH = 5.0  # pseudo-counts in every row of a worker's confusion matrix, distributed as the pooled counts
_POWER_ITERATIONS = 100  # bound of the search for the leading eigenvector
_LEAST_EXPECTED = 0.01  # agreement expected of a pair, and disagreement: bounds the evidence of one pair; ours
_LEAST_VARIANCE = 0.25  # added to that of two workers' agreements: that of one pair at a half; ours
_CORE_WEIGHT = 0.5  # weight in the leading eigenvector, as a share of the largest, of a worker of the core
_COPY_RATE = 0.95  # probability that a member repeats the label of the group
_MIN_ODDS = 20.0  # if the model holds, at most one in 20 independent workers passes (Markov inequality)
_MAX_GROUP_ROUNDS = 20  # bound of the search for members


def leave_one_out_counts(pairs: LabelPairs) -> Array:
    """Confusion counts of each worker, with the other labels of each item in the place of the truth.

    The other labels of an item share one count, and no label is compared with itself.

    Shapes: returns (n_workers, n_classes, n_classes).
    """
    n_workers, n_classes = len(pairs.workers), pairs.n_classes
    mine, other = both_ways(pairs)
    weight = 1.0 / np.bincount(mine)[mine]
    cell = (pairs.worker[mine] * n_classes + pairs.label[other]) * n_classes + pairs.label[mine]
    return sums_by(cell, weight, n_workers * n_classes**2).reshape(n_workers, n_classes, n_classes)


def shrunk_confusion(counts: Array, pooled: Array, strength: float) -> Array:
    """Confusion matrices from counts, shrunk toward the pooled one.

    Shapes: counts (..., n_classes, n_classes); pooled (n_classes, n_classes).
    """
    label_shares = pooled + 1.0 / len(pooled)
    counts = counts + strength * label_shares / label_shares.sum(axis=1, keepdims=True)
    return counts / counts.sum(axis=-1, keepdims=True)


def truth_from_others(pairs: LabelPairs, log_likelihood: Array, which: Positions | slice) -> Array:
    """Posterior of the truth given the labels of an item other than the two of a pair.

    Shapes: log_likelihood (n_labels, n_classes); returns (n_which, n_classes).
    """
    first = np.flatnonzero(np.diff(pairs.item, prepend=-1))
    evidence = np.add.reduceat(log_likelihood, first)  # (n_items, n_classes)
    a, b = pairs.a[which], pairs.b[which]
    score = evidence[pairs.item[a]] - log_likelihood[a] - log_likelihood[b]
    elementary.exp(score - score.max(axis=1, keepdims=True), out=score)
    return score / score.sum(axis=1, keepdims=True)


def leading_group(pairs: LabelPairs, tables: Array, log_likelihood: Array) -> tuple[Mask, Array]:
    """Core of the candidate group: workers with the largest weights where workers agree more than expected.

    Shapes: tables (n_workers, n_classes, n_classes); log_likelihood (n_labels, n_classes); returns is_member
    (n_workers,); returns expected (n_pairs,).
    """
    n_workers = len(pairs.workers)
    x, y = pairs.worker[pairs.a], pairs.worker[pairs.b]
    couple, which = np.unique(np.minimum(x, y) * n_workers + np.maximum(x, y), return_inverse=True)
    x, y = np.divmod(couple, n_workers)
    both = _agreement_probability(tables, x, y)[which]  # (n_pairs, n_classes), given the truth
    expected = np.sum(both * truth_from_others(pairs, log_likelihood, slice(None)), axis=1)
    expected = np.clip(expected, _LEAST_EXPECTED, 1 - _LEAST_EXPECTED)
    surplus = sums_by(which, pairs.equal - expected, len(couple))
    variance = sums_by(which, expected * (1 - expected), len(couple))
    surplus -= variance * (
        surplus.sum() / variance.sum()
    )  # excess agreement of all workers (hard items) is not collusion
    weight = _leading_direction(x, y, surplus / np.sqrt(variance + _LEAST_VARIANCE), n_workers)
    return weight > _CORE_WEIGHT * weight.max(), expected


def _agreement_probability(tables: Array, x: Positions, y: Positions) -> Array:
    """Probability that workers x and y name the same class, given the truth; shape (n_couples, n_classes)."""
    both = np.empty((len(x), tables.shape[1]))
    step = max(1, _CHUNK // tables[0].size)
    for first in range(0, len(x), step):
        part = slice(first, first + step)
        np.einsum("ckl,ckl->ck", tables[x[part]], tables[y[part]], out=both[part])
    return both


def _leading_direction(x: Positions, y: Positions, z: Array, n_workers: int) -> Array:
    """Leading eigenvector, shape (n_workers,), of the symmetric matrix with entries z at (x, y), by power iteration."""
    x, y, z = np.append(x, y), np.append(y, x), np.append(z, z)
    shift = 0.5 * sums_by(x, np.abs(z), n_workers).max()  # so that the largest eigenvalue wins, not the most negative
    weight = 1.0 + sums_by(x, np.maximum(z, 0), n_workers)
    for _ in range(_POWER_ITERATIONS):
        weight = sums_by(x, z * weight[y], n_workers) + shift * weight
        weight /= np.abs(weight).max() + np.finfo(float).tiny
    return weight if weight.max() >= -weight.min() else -weight


def members_by_copying(pairs: LabelPairs, is_member: Mask, expected: Array) -> Mask:
    """All workers who repeat the labels of the core, with many labels or with few.

    The core contains workers with many labels, since weights grow with labels. A worker belongs to the group if "copies
    the group" makes the agreement of their labels with it `_MIN_ODDS` times as likely as "answers independently". The
    members who labelled an item share one unit of evidence on it, because their labels are not independent.

    Shapes: is_member (n_workers,); expected (n_pairs,); returns (n_workers,).
    """
    mine, other = both_ways(pairs)
    repeats = elementary.log(np.where(pairs.equal, _COPY_RATE / expected, (1 - _COPY_RATE) / (1 - expected)))
    repeats = np.append(repeats, repeats)
    for _ in range(_MAX_GROUP_ROUNDS):
        inside = is_member[pairs.worker[other]]
        n_members = np.bincount(mine[inside], minlength=len(pairs.item))
        evidence = repeats[inside] / n_members[mine[inside]]
        log_odds = sums_by(pairs.worker[mine[inside]], evidence, len(is_member))
        before, is_member = is_member, log_odds > elementary.log(_MIN_ODDS)
        if np.array_equal(before, is_member):
            break
    return is_member


# ----------------------------------------------------------------------------------------------------
# Whether a group agrees more than its agreement with others explains: the test of three agreements.
#
# Let S be the share of equal labels beyond chance. For workers who answer independently, each of some quality q,
#
#     S(x, y) = q_x q_y,   so that   S(inside) S(outside) = S(across)^2
#
# whatever the qualities are: experts agree with one another, and with all others accordingly. A group that copies, or
# whose errors are correlated, agrees inside far beyond S(across)^2 / S(outside), whether its answers are good or bad.
# (With two classes this is exact; with more it holds for workers whose errors are spread evenly over the other classes.
# Items that are hard for all raise the three agreements together.)

# The thresholds are ours; docs/results/attacks.md has what the default method does with them.
UNEXPLAINED_MIN_EXCESS = 0.7  # observed minus expected agreement, as a share of the largest possible difference
UNEXPLAINED_MIN_Z = 4.0  # standard deviations
MIN_OUTSIDE = 0.2  # agreement of outsiders beyond chance; below it they cannot serve as a reference
MIN_OUTSIDE_PAIRS = 50  # pairs of labels of outsiders, below which their agreement is mostly noise
LOW_VOLUME_LIMITS = (3, 5, 10)  # labels per worker; with so few, no worker can be judged alone
LOW_VOLUME_MIN_Z = 6.0  # standard deviations; more than `UNEXPLAINED_MIN_Z`, as each of the three limits is tried
MIN_LOW_VOLUME_WORKERS = 10  # workers within a limit, below which it is not tested
MIN_LOW_VOLUME_ITEMS = 20  # items with two labels of such workers


class Triad(NamedTuple):
    """Observed agreement inside a group, and the agreement expected of independent workers."""

    agreement: float  # share of equal labels among the pairs of labels that two members gave to one item
    expected: float  # the share that the agreements across and outside explain
    excess: float  # observed minus expected agreement, as a share of the largest possible difference
    z: float  # observed minus expected agreement in standard deviations
    outside: float  # agreement of outsiders beyond chance, as a share of what is possible (kappa)
    n_items: int  # items with labels of two members


class _Agreement(NamedTuple):
    """Pairs of one sort: share of equal ones, share beyond chance, its variance, and number of items."""

    share: float
    beyond: float
    variance: float
    n_items: int


class LowVolumeGroup(NamedTuple):
    """All workers with at most `max_labels` labels, as one group."""

    members: Mask  # (n_workers,); the workers of the group
    triad: Triad
    max_labels: int


def find_low_volume_group(
    annotations: Annotations, pairs: LabelPairs, worker_volume: npt.NDArray[np.int64] | None = None
) -> LowVolumeGroup | None:
    """Test all workers with a few labels each as one group.

    No single worker can be judged by three labels. So all workers with at most three (then five, then ten) labels are
    taken together and compared with all others.

    Shapes: worker_volume (n_workers,).
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
    """Whether members agree far beyond what their agreement with outsiders explains, good answers or bad."""
    triad = _triad_of(pairs, is_member)
    return triad is not None and _is_beyond(triad, UNEXPLAINED_MIN_Z)


def _is_beyond(triad: Triad, z: float) -> bool:
    """Whether the excess is large and significant, and outsiders agree enough to judge by."""
    return triad.outside > MIN_OUTSIDE and triad.excess > UNEXPLAINED_MIN_EXCESS and triad.z > z


def _triad_of(pairs: LabelPairs, is_member: Mask) -> Triad | None:
    """Agreement inside the group, across and outside; None where there are too few pairs of outsiders."""
    inside = is_member[pairs.worker]
    n_members = inside[pairs.a].astype(np.int64) + inside[pairs.b]
    if np.count_nonzero(n_members == 0) < MIN_OUTSIDE_PAIRS or not inside.any():
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

    Examples
    --------
    >>> equal = np.array([True] * 100 + [True, False] * 50 + [True] * 75 + [False] * 25)
    >>> n_members, item, shares = np.repeat([2, 1, 0], 100), np.arange(300), np.array([0.5, 0.5])
    >>> found = compare_agreements(equal, n_members, item, shares, shares)  # shared answers, independent of the truth
    >>> round(found.expected, 2), round(found.excess, 2)
    (0.5, 1.0)

    Shapes: equal (n_pairs,); n_members (n_pairs,); item (n_pairs,); inside_shares (n_classes,); outside_shares
    (n_classes,).
    """
    chance = [np.dot(outside_shares, outside_shares), np.dot(inside_shares, outside_shares)]
    chance.append(np.dot(inside_shares, inside_shares))
    outside, across, inside = (_agreement(equal, item, n_members == n, chance[n]) for n in range(3))
    if min(outside.n_items, across.n_items, inside.n_items) == 0 or outside.beyond <= 0:
        return None
    # 1e-9 below: where agreement by chance is certain, there is no division by 0.
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


# ----------------------------------------------------------------------------------------------------
# The decision: which groups collude, and the votes once they are collapsed.

# With these thresholds 20 to 60 % colluders are found, without a false alarm on simulated crowds without collusion or
# on the real sets (docs/results/pooled-dawid-skene.md).
_DENSE_MIN_Z = 10.0  # standard deviations between observed and expected agreement inside the group
_PERFECT_MIN_EXCESS = 0.85  # observed minus expected agreement, as a share of the largest possible difference
_MARGIN = 0.05  # members must agree less with outsiders than outsiders with one another; else they may be experts
_MIN_OUTSIDE_AGREEMENT = 0.1  # agreement of outsiders beyond chance; below it they cannot serve as a reference
_MIN_WORKERS = 5  # two members and three outsiders
_GROUP_PRIOR_STRENGTH = 0.1  # pseudo-counts per row of the confusion matrix of a group, which has many labels


@dataclass(frozen=True, eq=False)
class CollusionGroups:
    """A colluding group."""

    members: Mask  # (n_workers,); the workers of the group
    agreement: float  # share of equal labels among all pairs of labels that two members gave to one item
    expected: float  # the share expected of independent workers with the same confusion matrices
    z: float  # observed minus expected agreement in standard deviations
    # the largest number of labels of a member, where workers with few labels were tested together
    max_labels: int | None = None


def find_colluding_groups(
    annotations: Annotations, worker_volume: npt.NDArray[np.int64] | None = None
) -> CollusionGroups | None:
    """Find the most significant colluding group, if there is one.

    A group is reported where its agreement is significant (`_DENSE_MIN_Z`), and either nearly perfect
    (`_PERFECT_MIN_EXCESS`) while members agree with outsiders less than outsiders do with one another (`_MARGIN`), or
    far beyond what its agreement with outsiders explains (see above): good workers agree with one another too, but also
    with all others. Workers who always name one class are no group; their label distribution explains their agreement.

    Workers with three labels each cannot be found one by one. They are tested together first: all workers with at most
    three, five or ten labels, against all others.

    Up to 200,000 pairs of labels (fewer from 16 classes on) all are used, and the result does not depend on names or on
    the order of workers, items and classes. Beyond that a sample of evenly spaced items is used, with at most 30 labels
    of each; a worker with few labels in the sample is then easily missed. Of labels with weights, the strongest one of
    each worker and item counts.

    Examples
    --------
    >>> from manyhands.simulate import make_crowd
    >>> crowd = make_crowd(bad="colluding", bad_share=0.3, random_state=0)
    >>> group = find_colluding_groups(crowd.annotations)
    >>> bool(np.all(group.members == crowd.is_bad)), group.agreement
    (True, 1.0)

    Shapes: worker_volume (n_workers,).
    """
    annotations = annotations.strongest_labels()
    if worker_volume is not None:
        return _search(annotations, worker_volume)
    cache = vars(annotations)  # labels never change, and the scorecards of a fit search those of the fit once more
    if "_colluding_group" not in cache:
        cache["_colluding_group"] = _search(annotations, None)
    return cache["_colluding_group"]


def _search(annotations: Annotations, worker_volume: npt.NDArray[np.int64] | None) -> CollusionGroups | None:
    """The group that `find_colluding_groups` returns.

    Shapes: worker_volume (n_workers,).
    """
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
    is_worse = excess >= _PERFECT_MIN_EXCESS and _agrees_less_with_outsiders(pairs, is_member)
    if z < _DENSE_MIN_Z or not (is_worse or is_unexplained(pairs, is_member)):
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

    Examples
    --------
    >>> votes = Annotations.from_matrix([[0, 1, 1, 1], [0, 0, 1, -1]])
    >>> collapsed = collapse_groups(votes, np.array([False, True, True, True]))
    >>> collapsed.item.tolist(), collapsed.worker.tolist(), collapsed.label.tolist()
    ([0, 0, 1], [0, 1, 0], [0, 1, 0])

    Shapes: members (n_workers,).
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
    is_top = votes >= votes.max(axis=1, keepdims=True) - TIE
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
    # Below 1, so that the variance of z is not 0.
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
    if np.sum(n_members == 0) < MIN_OUTSIDE_PAIRS:
        return False
    across, among = (_beyond_chance(pairs.equal, chance, n_members == n) for n in (1, 0))
    return among > _MIN_OUTSIDE_AGREEMENT and across < among - _MARGIN


def _beyond_chance(equal: Mask, chance: Array, which: Mask) -> float:
    """Agreement beyond chance as a share of what is possible (kappa)."""
    room = float(np.sum(1 - chance[which]))
    return float(np.sum(equal[which] - chance[which])) / room if room > 0 else 0.0


# ----------------------------------------------------------------------------------------------------
# The labels that count where workers copy one another (`em.copies` finds them).


def counted_worker(annotations: Annotations, group: Positions, rank: Positions) -> Positions:
    """The worker whose labels count for the group of each label on its item; the worker of the label without a group.

    Workers beyond the arrays, whom the fit did not see, belong to no group.

    Shapes: group (n_workers,); rank (n_workers,); returns (n_annotations,).
    """
    worker = annotations.worker.astype(np.int64)
    worker_or_last = np.minimum(worker, len(group) - 1)
    inside = np.flatnonzero((group[worker_or_last] >= 0) & (worker < len(group)))
    if len(inside) == 0:
        return worker
    cell = annotations.item[inside] * np.int64(group.max() + 1) + group[worker[inside]]
    _, where = np.unique(cell, return_inverse=True)
    order = np.argsort(rank, kind="stable")  # of equal ranks, the first worker
    place = np.empty(len(rank), np.int64)
    place[order] = np.arange(len(rank))
    first = np.full(where.max() + 1, len(rank))
    np.minimum.at(first, where, place[worker[inside]])
    worker[inside] = order[first[where]]
    return worker


def without_copies(annotations: Annotations, group: Positions, rank: Positions) -> Annotations:
    """The labels that count: on each item, those of the worker of each group with the lowest rank.

    Examples
    --------
    >>> votes = Annotations.from_matrix([[0, 1, 1], [-1, 0, 1]])
    >>> counted = without_copies(votes, np.array([0, 0, -1]), np.array([0, 1, 0]))
    >>> counted.item.tolist(), counted.worker.tolist(), counted.label.tolist()
    ([0, 0, 1, 1], [0, 2, 1, 2], [0, 1, 0, 1])

    Shapes: group (n_workers,); rank (n_workers,).
    """
    if not np.any(group >= 0):
        return annotations
    counts = counted_worker(annotations, group, rank) == annotations.worker
    return annotations if counts.all() else annotations.keep(counts)


# ----------------------------------------------------------------------------------------------------
# Exchangeable workers: those that no method can distinguish, because their labels and items look the same.
#
# Two workers are exchangeable if some renaming of workers and items that changes no label and no gold takes one to the
# other. Every method that does not depend on names then gives both the same estimates, so one of them can be computed
# and counted twice. Among a hundred thousand workers with one label each there are a few dozen such groups.
#
# The groups are found by colour refinement of the bipartite graph of items and workers: in each round, the colour of an
# item is computed from those of its workers and their labels, and the colour of a worker from those of their items. A
# partition that no round refines any more is *equitable*: EM, which computes the same way, can never separate two
# workers of one colour.

Colours = npt.NDArray[np.uint64]
_MAX_LABELS_OF_WORKER = 4  # per worker, on average; with more, hardly two workers are exchangeable
_MIN_GROUP_SIZE = 2  # workers per group, on average, below which merging does not pay
_MAX_REFINEMENTS = 12  # by then nearly all workers differ, or the partition is equitable


def exchangeable_workers(
    annotations: Annotations, gold: npt.NDArray[np.int32] | None = None
) -> npt.NDArray[np.int64] | None:
    """Group the workers that no method can distinguish.

    Examples
    --------
    >>> votes = Annotations.from_triples("aaabbb", "uvwxyz", "001001")
    >>> exchangeable_workers(votes).tolist()  # w and z disagree with the two others on their item
    [0, 0, 1, 0, 0, 1]

    Shapes: gold (n_items,); returns (n_workers,).
    """
    if annotations.weight is not None:  # the colours do not know weights, so no two workers are merged
        return None
    item, worker = annotations.item, annotations.worker
    n_labels = np.bincount(worker, minlength=annotations.n_workers)
    if annotations.n_annotations > _MAX_LABELS_OF_WORKER * np.count_nonzero(n_labels):
        return None
    label = scatter_bits(annotations.label.astype(np.uint64))
    item_colour = annotations.n_labels.astype(np.uint64)
    if gold is not None:
        item_colour = item_colour + (gold.astype(np.int64) + 2).astype(np.uint64) * np.uint64(1 << 40)
    item_colour, worker_colour = scatter_bits(item_colour), scatter_bits(n_labels.astype(np.uint64))
    n_groups = 0
    for _ in range(_MAX_REFINEMENTS):
        item_colour = _refine(item_colour, item, worker_colour[worker] ^ label)
        worker_colour = _refine(worker_colour, worker, item_colour[item] ^ label)
        before, (names, group) = n_groups, np.unique(worker_colour, return_inverse=True)
        n_groups = len(names)
        if n_groups * _MIN_GROUP_SIZE > annotations.n_workers:
            return None
        if n_groups == before:
            return _by_first_worker(group)
    return None


def _refine(colour: Colours, node: npt.NDArray[np.int32], edge: Colours) -> Colours:
    """New colours from the old ones and the multiset at the edges; sums modulo 2^64 do not depend on the order."""
    around = np.zeros_like(colour)
    np.add.at(around, node, scatter_bits(edge))
    return scatter_bits(around ^ scatter_bits(colour))


def _by_first_worker(group: npt.NDArray[np.intp]) -> npt.NDArray[np.int64]:
    """Groups numbered by their first worker, so that the values of a hash decide nothing."""
    _, first, group = np.unique(group, return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[group]


def merge_workers(annotations: Annotations, group: npt.NDArray[np.int64]) -> Annotations:
    """The same labels with one worker for each group, who labels an item as often as members of the group did.

    Examples
    --------
    >>> votes = Annotations.from_triples("aaabbb", "uvwxyz", "001001")
    >>> merge_workers(votes, exchangeable_workers(votes))
    Annotations(6 labels on 2 items by 2 workers, 2 classes)

    Shapes: group (n_workers,).
    """
    return Annotations(
        annotations.item,
        group[annotations.worker].astype(np.int32),
        annotations.label,
        item_ids=annotations.item_ids,
        worker_ids=np.arange(group.max(initial=-1) + 1),
        classes=annotations.classes,
        weight=annotations.weight,
    )
