"""Group."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from manyhands import elementary
from manyhands.em.kernels import sums_by
from manyhands.em.label_pairs import LabelPairs, Mask, Positions, both_ways

Array = npt.NDArray[np.float64]


_CHUNK = 1 << 20  # numbers held at a time when workers' tables are multiplied
PRIOR_STRENGTH = 5.0  # labels that the crowd's habit is worth in every row of a worker's table
_POWER_ITERATIONS = 100  # of the power iteration
_CORE_WEIGHT = 0.5  # weight in the leading direction, as a part of the largest, that makes a worker one of the core
_COPY_RATE = 0.95  # how often a member repeats the group
_MIN_ODDS = 20.0  # where the tables hold, at most one in 20 who answer for themselves passes (Markov)
_MAX_ROUNDS = 20


def leave_one_out_counts(pairs: LabelPairs) -> Array:
    """(n_workers, n_classes, n_classes): each label against the other labels of its item, which share one count.

    What the others said stands in for the truth, so no label is its own judge.
    """
    n_workers, n_classes = len(pairs.workers), pairs.n_classes
    mine, other = both_ways(pairs)
    weight = 1.0 / np.bincount(mine)[mine]
    cell = (pairs.worker[mine] * n_classes + pairs.label[other]) * n_classes + pairs.label[mine]
    return sums_by(cell, weight, n_workers * n_classes**2).reshape(n_workers, n_classes, n_classes)


def shrunk_confusion(counts: Array, pooled: Array, strength: float) -> Array:
    """Counts [..., truth, label] as rows that sum to 1, drawn toward the crowd's by `strength` labels in each row."""
    label_shares = pooled + 1.0 / len(pooled)
    counts = counts + strength * label_shares / label_shares.sum(axis=1, keepdims=True)
    return counts / counts.sum(axis=-1, keepdims=True)


def truth_from_others(pairs: LabelPairs, log_likelihood: Array, which: Positions | slice) -> Array:
    """(which, n_classes) what the labels of an item other than the pair's two say of its truth."""
    first = np.flatnonzero(np.diff(pairs.item, prepend=-1))
    evidence = np.add.reduceat(log_likelihood, first)  # (n_items, n_classes)
    a, b = pairs.a[which], pairs.b[which]
    score = evidence[pairs.item[a]] - log_likelihood[a] - log_likelihood[b]
    elementary.exp(score - score.max(axis=1, keepdims=True), out=score)
    return score / score.sum(axis=1, keepdims=True)


def leading_group(pairs: LabelPairs, tables: Array, log_likelihood: Array) -> tuple[Mask, Array]:
    """(n_workers,) those who weigh most where workers agree more than expected, and (n_pairs,) what is expected."""
    n_workers = len(pairs.workers)
    x, y = pairs.worker[pairs.a], pairs.worker[pairs.b]
    couple, which = np.unique(np.minimum(x, y) * n_workers + np.maximum(x, y), return_inverse=True)
    x, y = np.divmod(couple, n_workers)
    both = _agreement_probability(tables, x, y)[which]  # (n_pairs, n_classes), given the truth
    expected = np.clip(np.sum(both * truth_from_others(pairs, log_likelihood, slice(None)), axis=1), 0.01, 0.99)
    surplus = sums_by(which, pairs.equal - expected, len(couple))
    variance = sums_by(which, expected * (1 - expected), len(couple))
    surplus -= variance * (surplus.sum() / variance.sum())  # what all share (hard items) is no conspiracy
    weight = _leading_direction(x, y, surplus / np.sqrt(variance + 0.25), n_workers)
    return weight > _CORE_WEIGHT * weight.max(), expected


def _agreement_probability(tables: Array, x: Positions, y: Positions) -> Array:
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
    for _ in range(_POWER_ITERATIONS):
        weight = sums_by(x, z * weight[y], n_workers) + shift * weight
        weight /= np.abs(weight).max() + np.finfo(float).tiny
    return weight if weight.max() >= -weight.min() else -weight


def members_by_copying(pairs: LabelPairs, is_member: Mask, expected: Array) -> Mask:
    """(n_workers,) those who repeat what a core of members says, with many labels or with few.

    The core are the busy members, since weight grows with labels. A worker belongs to them if "repeats the group" makes
    the agreement of his labels with theirs `_MIN_ODDS` times as likely as "answers for himself". The members
    who labelled an item share one say on it: their labels are no independent witnesses.
    """
    mine, other = both_ways(pairs)
    repeats = elementary.log(np.where(pairs.equal, _COPY_RATE / expected, (1 - _COPY_RATE) / (1 - expected)))
    repeats = np.append(repeats, repeats)
    for _ in range(_MAX_ROUNDS):
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
