"""The candidate for a colluding group: workers who agree with one another more than expected, and those who copy them.

1. Confusion matrices of all workers are estimated with the other labels of each item in the place of the truth.
2. For every two workers, observed minus expected agreement is standardised; the leading eigenvector of this matrix
marks the core of the candidate group.
3. All workers whose labels repeat those of the core are added, by a likelihood ratio of "copies the group" against
"answers independently".
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from manyhands import elementary
from manyhands.em.kernels import sums_by
from manyhands.em.label_pairs import LabelPairs, Mask, Positions, both_ways

Array = npt.NDArray[np.float64]


_CHUNK = 1 << 20  # numbers held at a time when confusion matrices are multiplied
PRIOR_STRENGTH = 5.0  # pseudo-counts in every row of a worker's confusion matrix, distributed as the pooled counts
_POWER_ITERATIONS = 100
_CORE_WEIGHT = 0.5  # weight in the leading eigenvector, as a share of the largest, of a worker of the core
_COPY_RATE = 0.95  # probability that a member repeats the label of the group
_MIN_ODDS = 20.0  # if the model holds, at most one in 20 independent workers passes (Markov inequality)
_MAX_ROUNDS = 20


def leave_one_out_counts(pairs: LabelPairs) -> Array:
    """Confusion counts of each worker, with the other labels of each item in the place of the truth.

    The other labels of an item share one count, and no label is compared with itself.

    Parameters
    ----------
    pairs : LabelPairs
        The pairs of labels.

    Returns
    -------
    ndarray of shape (n_workers, n_classes, n_classes)
        Indexed [worker, label of others, label].
    """
    n_workers, n_classes = len(pairs.workers), pairs.n_classes
    mine, other = both_ways(pairs)
    weight = 1.0 / np.bincount(mine)[mine]
    cell = (pairs.worker[mine] * n_classes + pairs.label[other]) * n_classes + pairs.label[mine]
    return sums_by(cell, weight, n_workers * n_classes**2).reshape(n_workers, n_classes, n_classes)


def shrunk_confusion(counts: Array, pooled: Array, strength: float) -> Array:
    """Confusion matrices from counts, shrunk toward the pooled one.

    Parameters
    ----------
    counts : ndarray of shape (..., n_classes, n_classes)
        Counts [truth, label] of workers or groups.
    pooled : ndarray of shape (n_classes, n_classes)
        Counts of all workers.
    strength : float
        Pseudo-counts in each row, distributed as the pooled counts are.

    Returns
    -------
    ndarray of the shape of `counts`
        Rows sum to 1.
    """
    label_shares = pooled + 1.0 / len(pooled)
    counts = counts + strength * label_shares / label_shares.sum(axis=1, keepdims=True)
    return counts / counts.sum(axis=-1, keepdims=True)


def truth_from_others(pairs: LabelPairs, log_likelihood: Array, which: Positions | slice) -> Array:
    """Posterior of the truth given the labels of an item other than the two of a pair.

    Parameters
    ----------
    pairs : LabelPairs
        The pairs of labels.
    log_likelihood : ndarray of shape (n_labels, n_classes)
        log p(label | truth) of each label.
    which : ndarray of int or slice
        The pairs.

    Returns
    -------
    ndarray of shape (n_which, n_classes)
        Rows sum to 1.
    """
    first = np.flatnonzero(np.diff(pairs.item, prepend=-1))
    evidence = np.add.reduceat(log_likelihood, first)  # (n_items, n_classes)
    a, b = pairs.a[which], pairs.b[which]
    score = evidence[pairs.item[a]] - log_likelihood[a] - log_likelihood[b]
    elementary.exp(score - score.max(axis=1, keepdims=True), out=score)
    return score / score.sum(axis=1, keepdims=True)


def leading_group(pairs: LabelPairs, tables: Array, log_likelihood: Array) -> tuple[Mask, Array]:
    """Core of the candidate group: workers with the largest weights where workers agree more than expected.

    Parameters
    ----------
    pairs : LabelPairs
        The pairs of labels.
    tables : ndarray of shape (n_workers, n_classes, n_classes)
        Confusion matrices.
    log_likelihood : ndarray of shape (n_labels, n_classes)
        log p(label | truth) of each label.

    Returns
    -------
    is_member : ndarray of shape (n_workers,) of bool
        The core.
    expected : ndarray of shape (n_pairs,)
        Probability that the labels of each pair are equal, for independent workers.
    """
    n_workers = len(pairs.workers)
    x, y = pairs.worker[pairs.a], pairs.worker[pairs.b]
    couple, which = np.unique(np.minimum(x, y) * n_workers + np.maximum(x, y), return_inverse=True)
    x, y = np.divmod(couple, n_workers)
    both = _agreement_probability(tables, x, y)[which]  # (n_pairs, n_classes), given the truth
    expected = np.clip(np.sum(both * truth_from_others(pairs, log_likelihood, slice(None)), axis=1), 0.01, 0.99)
    surplus = sums_by(which, pairs.equal - expected, len(couple))
    variance = sums_by(which, expected * (1 - expected), len(couple))
    surplus -= variance * (
        surplus.sum() / variance.sum()
    )  # excess agreement of all workers (hard items) is not collusion
    weight = _leading_direction(x, y, surplus / np.sqrt(variance + 0.25), n_workers)
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

    Parameters
    ----------
    pairs : LabelPairs
        The pairs of labels.
    is_member : ndarray of shape (n_workers,) of bool
        The core.
    expected : ndarray of shape (n_pairs,)
        Probability that the labels of each pair are equal, for independent workers.

    Returns
    -------
    ndarray of shape (n_workers,) of bool
    """
    mine, other = both_ways(pairs)
    repeats = elementary.log(np.where(pairs.equal, _COPY_RATE / expected, (1 - _COPY_RATE) / (1 - expected)))
    repeats = np.append(repeats, repeats)
    for _ in range(_MAX_ROUNDS):
        inside = is_member[pairs.worker[other]]
        n_members = np.bincount(mine[inside], minlength=len(pairs.item))
        evidence = repeats[inside] / n_members[mine[inside]]
        log_odds = sums_by(pairs.worker[mine[inside]], evidence, len(is_member))
        before, is_member = is_member, log_odds > elementary.log(_MIN_ODDS)
        if np.array_equal(before, is_member):
            break
    return is_member
