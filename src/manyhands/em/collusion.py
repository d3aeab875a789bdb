"""Workers who answer as one voice: a shared answer sheet, copycats, one person behind many ids.

Every aggregator takes workers to err independently, so a hidden group with one answer sheet outvotes honest workers
and EM then believes it. The mark of such a group is that its members agree with one another far beyond what their
agreement with everybody else explains. Votes alone serve to find it, before any EM has taken its side.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from manyhands import elementary
from manyhands.annotations import Annotations
from manyhands.em.kernels import sums_by
from manyhands.em.triads import find_thin_group, is_unexplained

Array = npt.NDArray[np.float64]
Positions = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

_MIN_Z = 10.0  # standard deviations between agreement inside the group and what is expected of it
_MIN_EXCESS = 0.85  # of the agreement that could be added to the expected one, the part that is there
_MARGIN = 0.05  # members agree with outsiders this much less than those among themselves; else they may be experts
_MIN_SENSE = 0.1  # agreement of outsiders beyond chance; who agrees no more than that cannot judge others
_MIN_CHECKED = 50  # pairs of labels of outsiders
_MIN_WORKERS = 5  # two members and three outsiders
_MIN_LABELS = 3  # of an item: a pair, and another label that says something of the truth

_MOST_PAIRS = 200_000
_MOST_WORK = 50_000_000  # pairs times the size of a confusion matrix
_MOST_LABELS = 30  # of one item, where not all pairs can be looked at
_CHUNK = 1 << 20  # numbers held at a time when workers' tables are multiplied

_STRENGTH = 5.0  # labels that the crowd's habit is worth in every row of a worker's table
_GROUP_STRENGTH = 0.1  # the same for the table of a whole group, which has labels enough of its own
_ROUNDS = 100  # of the power iteration
_MEMBER = 0.5  # weight in the leading direction, as a part of the largest, that makes a worker one of the core
_LOYALTY = 0.95  # how often a member repeats the group
_MIN_ODDS = 20.0  # where the tables hold, at most one in 20 who answer for themselves passes (Markov)
_FOLLOW_ROUNDS = 20


@dataclass(frozen=True, eq=False)
class CollusionGroups:
    """A group of workers who answer as one voice.

    Attributes
    ----------
    members : (n_workers,) bool
    agreement : share of equal labels among all pairs of labels that two members gave to one item
    expected : the share to be expected of workers with the same habits who answer independently
    z : how many standard deviations lie between the two
    most_labels : the largest number of labels of a member, where low-volume ids were found together, else None
    """

    members: Mask
    agreement: float
    expected: float
    z: float
    most_labels: int | None = None


class _Pairs(NamedTuple):
    """Labels of items with at least three, and the pairs of them that two workers gave to one item."""

    item: Positions  # (n_labels,) ascending, without gaps
    worker: Positions  # (n_labels,) codes among the workers of these labels
    label: Positions  # (n_labels,)
    a: Positions  # (n_pairs,) positions of one label of each pair, and of the other
    b: Positions
    workers: Positions  # the codes of these workers in the annotations
    n_classes: int

    @property
    def equal(self) -> Mask:
        return self.label[self.a] == self.label[self.b]


def find_colluding_groups(annotations: Annotations) -> CollusionGroups | None:
    """Find the group of workers who most clearly answer as one voice, if there is one.

    A group counts where its agreement is beyond chance (`_MIN_Z`), and either nearly perfect (`_MIN_EXCESS`) while seen
    from outside it is worse than the others (`_MARGIN`), or far beyond what its agreement with everybody else explains
    (`triads`): good workers agree with one another too, but also with everybody else. Workers who always name one class
    are no group; their habit explains their agreement.

    Ids with three labels each are too thin to be found one by one. They are looked at together first: all ids with at
    most three, five or ten labels, against all others.

    All pairs of labels serve up to 200,000 of them (fewer from 16 classes on), and then names and order of workers,
    items and classes do not matter. Beyond, items evenly spaced among all serve, with at most 30 labels of each;
    a worker with few labels among those is then easily missed.

    Of several groups the clearest is found; `collapse_groups` makes room for the next.

    Examples
    --------
    >>> from manyhands.simulate import make_crowd
    >>> crowd = make_crowd(bad="colluding", bad_share=0.3, random_state=0)
    >>> voice = find_one_voice(crowd.annotations)
    >>> bool(np.all(voice.members == crowd.is_bad)), voice.agreement
    (True, 1.0)
    """
    if annotations.n_workers < _MIN_WORKERS or annotations.n_labels.max(initial=0) < _MIN_LABELS:
        return None
    pairs = _pairs(annotations)
    if len(pairs.a) == 0:
        return None
    thin = find_thin_group(annotations, pairs)
    if thin is not None:
        return CollusionGroups(thin.members, thin.triad.agreement, thin.triad.expected, thin.triad.z, thin.most_labels)
    return _busy_group(annotations, pairs)


def _busy_group(annotations: Annotations, pairs: _Pairs) -> CollusionGroups | None:
    """The workers who weigh most where workers agree more than expected, if they answer as one voice."""
    counts = _counts(pairs)
    tables = _shrunk(counts, counts.sum(axis=0), _STRENGTH)
    said = elementary.log(tables)[pairs.worker, :, pairs.label]  # (n_labels, n_classes) log p(label | truth)
    is_member = _follow(pairs, *_leading_group(pairs, tables, said))
    if not 2 <= np.sum(is_member) <= annotations.n_workers - 3:
        return None
    agreement, expected, z = _agreement_inside(pairs, is_member, counts, said)
    excess = (agreement - expected) / (1 - expected)
    is_worse = excess >= _MIN_EXCESS and _is_worse_from_outside(pairs, is_member)
    if z < _MIN_Z or not (is_worse or is_unexplained(pairs, is_member)):
        return None
    members = np.zeros(annotations.n_workers, bool)
    members[pairs.workers[is_member]] = True
    return CollusionGroups(members, agreement, expected, z)


def collapse_groups(annotations: Annotations, members: Mask) -> Annotations:
    """Make one voter of a group: its busiest member gives the group's commonest label, the others fall silent.

    An item on which two labels are equally common in the group gets none from it. All items, workers and classes
    stay. Among equally busy members the first speaks, which changes nothing but the name on the labels.

    Examples
    --------
    >>> votes = Annotations.from_matrix([[0, 1, 1, 1], [0, 0, 1, -1]])
    >>> spoken = speak_once(votes, np.array([False, True, True, True]))
    >>> spoken.item.tolist(), spoken.worker.tolist(), spoken.label.tolist()
    ([0, 0, 1], [0, 1, 0], [0, 1, 0])
    """
    inside = members[annotations.worker]
    if not inside.any():
        return annotations
    n_given = np.bincount(annotations.worker[inside], minlength=annotations.n_workers)
    cell = annotations.item[inside] * np.int64(annotations.n_classes) + annotations.label[inside]
    cell, votes = np.unique(cell, return_counts=True)  # by item, and within it by label
    item, label = np.divmod(cell, annotations.n_classes)
    _, first, size = np.unique(item, return_index=True, return_counts=True)
    is_top = votes == np.repeat(np.maximum.reduceat(votes, first), size)
    chosen = is_top & np.repeat(np.add.reduceat(is_top.astype(int), first) == 1, size)
    speaker = np.full(np.sum(chosen), n_given.argmax())
    return annotations.keep(~inside).with_more(item[chosen], speaker, label[chosen])


def _pairs(annotations: Annotations) -> _Pairs:
    """The pairs of labels to look at."""
    chosen = _sample(annotations)
    _, item, n_labels = np.unique(annotations.item[chosen], return_inverse=True, return_counts=True)
    workers, worker = np.unique(annotations.worker[chosen], return_inverse=True)
    nth = np.arange(len(item)) - np.repeat(np.cumsum(n_labels) - n_labels, n_labels)
    n_after = np.repeat(n_labels, n_labels) - 1 - nth  # each label is paired with those after it
    a = np.repeat(np.arange(len(item)), n_after)
    b = a + 1 + np.arange(len(a)) - np.repeat(np.cumsum(n_after) - n_after, n_after)
    others = worker[a] != worker[b]  # a worker may have labelled an item twice
    label = annotations.label[chosen].astype(np.int64)
    return _Pairs(item, worker, label, a[others], b[others], workers.astype(np.int64), annotations.n_classes)


def _sample(annotations: Annotations) -> Positions:
    """Positions of the labels to look at: all on items that have three, or as many as make up `_MOST_PAIRS` pairs."""
    n_labels = annotations.n_labels
    rows = np.flatnonzero(n_labels >= _MIN_LABELS)
    most_pairs = min(_MOST_PAIRS, _MOST_WORK // annotations.n_classes**2)
    if _n_pairs(n_labels[rows]) <= most_pairs:
        return np.flatnonzero((n_labels >= _MIN_LABELS)[annotations.item])
    n_pairs = _n_pairs(np.minimum(n_labels[rows], _MOST_LABELS))
    n_rows = max(1, min(len(rows), int(len(rows) * (most_pairs / n_pairs))))
    is_chosen = np.zeros(annotations.n_items, bool)
    is_chosen[rows[np.linspace(0, len(rows) - 1, n_rows).astype(int)]] = True
    chosen = np.flatnonzero(is_chosen[annotations.item])
    # Which labels of a crowded item: scattered, so that all workers meet, but the same in every run.
    order = np.lexsort((np.random.default_rng(0).random(len(chosen)), annotations.item[chosen]))
    n_chosen = n_labels[is_chosen]
    nth = np.arange(len(chosen)) - np.repeat(np.cumsum(n_chosen) - n_chosen, n_chosen)
    return np.sort(chosen[order[nth < _MOST_LABELS]])


def _n_pairs(n_labels: Positions) -> int:
    return int(np.sum(n_labels * (n_labels - 1) // 2))


def _counts(pairs: _Pairs) -> Array:
    """(n_workers, n_classes, n_classes): each label against the other labels of its item, which share one count.

    What the others said stands in for the truth, so no label is its own judge.
    """
    n_workers, n_classes = len(pairs.workers), pairs.n_classes
    mine, other = _both_ways(pairs)
    weight = 1.0 / np.bincount(mine)[mine]
    cell = (pairs.worker[mine] * n_classes + pairs.label[other]) * n_classes + pairs.label[mine]
    return sums_by(cell, weight, n_workers * n_classes**2).reshape(n_workers, n_classes, n_classes)


def _both_ways(pairs: _Pairs) -> tuple[Positions, Positions]:
    """Every pair twice: a label, and another one of the same item."""
    return np.append(pairs.a, pairs.b), np.append(pairs.b, pairs.a)


def _shrunk(counts: Array, crowd: Array, strength: float) -> Array:
    """Counts [..., truth, label] as rows that sum to 1, drawn toward the crowd's by `strength` labels in each row."""
    habit = crowd + 1.0 / len(crowd)
    counts = counts + strength * habit / habit.sum(axis=1, keepdims=True)
    return counts / counts.sum(axis=-1, keepdims=True)


def _truth_from_others(pairs: _Pairs, said: Array, which: Positions | slice) -> Array:
    """(which, n_classes) what the labels of an item other than the pair's two say of its truth."""
    first = np.flatnonzero(np.diff(pairs.item, prepend=-1))
    evidence = np.add.reduceat(said, first)  # (n_items, n_classes)
    a, b = pairs.a[which], pairs.b[which]
    score = evidence[pairs.item[a]] - said[a] - said[b]
    elementary.exp(score - score.max(axis=1, keepdims=True), out=score)
    return score / score.sum(axis=1, keepdims=True)


def _leading_group(pairs: _Pairs, tables: Array, said: Array) -> tuple[Mask, Array]:
    """(n_workers,) those who weigh most where workers agree more than expected, and (n_pairs,) what is expected."""
    n_workers = len(pairs.workers)
    x, y = pairs.worker[pairs.a], pairs.worker[pairs.b]
    couple, which = np.unique(np.minimum(x, y) * n_workers + np.maximum(x, y), return_inverse=True)
    x, y = np.divmod(couple, n_workers)
    both = _chance_to_agree(tables, x, y)[which]  # (n_pairs, n_classes), given the truth
    expected = np.clip(np.sum(both * _truth_from_others(pairs, said, slice(None)), axis=1), 0.01, 0.99)
    surplus = sums_by(which, pairs.equal - expected, len(couple))
    variance = sums_by(which, expected * (1 - expected), len(couple))
    surplus -= variance * (surplus.sum() / variance.sum())  # what all share (hard items) is no conspiracy
    weight = _leading_direction(x, y, surplus / np.sqrt(variance + 0.25), n_workers)
    return weight > _MEMBER * weight.max(), expected


def _chance_to_agree(tables: Array, x: Positions, y: Positions) -> Array:
    """(n_couples, n_classes) the chance that workers x and y name the same class, given the truth."""
    both = np.empty((len(x), tables.shape[1]))
    step = max(1, _CHUNK // tables[0].size)
    for first in range(0, len(x), step):
        part = slice(first, first + step)
        np.einsum("ckl,ckl->ck", tables[x[part]], tables[y[part]], out=both[part])
    return both


def _leading_direction(x: Positions, y: Positions, z: Array, n_workers: int) -> Array:
    """(n_workers,) the leading eigenvector of the symmetric matrix with entries z at (x, y), by power iteration."""
    x, y, z = np.append(x, y), np.append(y, x), np.append(z, z)
    shift = 0.5 * sums_by(x, np.abs(z), n_workers).max()  # so that the largest eigenvalue wins, not the most negative
    weight = 1.0 + sums_by(x, np.maximum(z, 0), n_workers)
    for _ in range(_ROUNDS):
        weight = sums_by(x, z * weight[y], n_workers) + shift * weight
        weight /= np.abs(weight).max() + np.finfo(float).tiny
    return weight if weight.max() >= -weight.min() else -weight


def _follow(pairs: _Pairs, is_member: Mask, expected: Array) -> Mask:
    """(n_workers,) those who repeat what a core of members says, with many labels or with few.

    The core are the busy members, since weight grows with labels. A worker belongs to them if "repeats the group" makes
    the agreement of his labels with theirs `_MIN_ODDS` times as likely as "answers for himself". The members
    who labelled an item share one say on it: their labels are no independent witnesses.
    """
    mine, other = _both_ways(pairs)
    repeats = elementary.log(np.where(pairs.equal, _LOYALTY / expected, (1 - _LOYALTY) / (1 - expected)))
    repeats = np.append(repeats, repeats)
    for _ in range(_FOLLOW_ROUNDS):
        inside = is_member[pairs.worker[other]]
        n_members = np.bincount(mine[inside], minlength=len(pairs.item))
        say = repeats[inside] / n_members[mine[inside]]
        before, is_member = (
            is_member,
            sums_by(pairs.worker[mine[inside]], say, len(is_member)) > elementary.log(_MIN_ODDS),
        )
        if np.array_equal(before, is_member):
            break
    return is_member


def _agreement_inside(pairs: _Pairs, is_member: Mask, counts: Array, said: Array) -> tuple[float, float, float]:
    """How often members agree, how often they should, and the distance in standard deviations.

    What is expected rests on one table for the whole group: a habit that all members share, such as one class for
    everything, shows in it without the shrinkage that blurs the table of a worker with few labels.
    """
    inside = np.flatnonzero(is_member[pairs.worker[pairs.a]] & is_member[pairs.worker[pairs.b]])
    if len(inside) == 0:
        return 0.0, 0.0, 0.0
    table = _shrunk(counts[is_member].sum(axis=0), counts.sum(axis=0), _GROUP_STRENGTH)
    both = np.sum(table**2, axis=1)  # (n_classes,) the chance to agree, given the truth
    chance = np.minimum(np.sum(both * _truth_from_others(pairs, said, inside), axis=1), 1 - 1e-9)
    surplus = float(np.sum(pairs.equal[inside] - chance))
    z = surplus / np.sqrt(np.sum(chance * (1 - chance)))
    return float(np.mean(pairs.equal[inside])), float(np.mean(chance)), float(z)


def _is_worse_from_outside(pairs: _Pairs, is_member: Mask) -> bool:
    """Whether members agree with outsiders less than outsiders do with one another, beyond what label habits explain.

    Outsiders who share a favourite class agree a lot and know nothing; beside them, a few good workers would look like
    the odd ones. So chance is taken out by the labels each worker likes to give, and outsiders must agree beyond it.
    """
    n_workers, n_classes = len(pairs.workers), pairs.n_classes
    habit = sums_by(pairs.worker * n_classes + pairs.label, np.ones(len(pairs.label)), n_workers * n_classes)
    habit = habit.reshape(n_workers, n_classes)
    habit /= habit.sum(axis=1, keepdims=True)
    x, y = pairs.worker[pairs.a], pairs.worker[pairs.b]
    chance = np.sum(habit[x] * habit[y], axis=1)  # (n_pairs,)
    n_members = is_member[x].astype(int) + is_member[y]
    if np.sum(n_members == 0) < _MIN_CHECKED:
        return False
    across, among = (_beyond_chance(pairs.equal, chance, n_members == n) for n in (1, 0))
    return among > _MIN_SENSE and across < among - _MARGIN


def _beyond_chance(equal: Mask, chance: Array, which: Mask) -> float:
    """Of the agreement that chance leaves room for, the part that is there (kappa)."""
    room = float(np.sum(1 - chance[which]))
    return float(np.sum(equal[which] - chance[which])) / room if room > 0 else 0.0
