"""Vote counts and the fused EM pass: the only place for speed tricks.

`em_pass` has a compiled form (`_fused.c`) and a plain one (NumPy and SciPy's sparse product), chosen once at import,
which give the same bits; both process shards of items that depend on the data alone, never on the number of threads.
Labels with weights always take the plain form.
Set MANYHANDS_PLAIN=1 to do without the compiled form, MANYHANDS_SIMD to avx512f, avx2 or default for its instruction
set, and MANYHANDS_THREADS to bound the threads.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import numpy.typing as npt

from manyhands import compiled
from manyhands.annotations import Annotations
from manyhands.em import plain_pass
from manyhands.em.packed import Packed as Packed
from manyhands.em.packed import PassResult as PassResult
from manyhands.em.packed import pack as pack
from manyhands.em.threads import run_in_threads
from manyhands.em.threads import thread_count as thread_count

_fused = compiled.load("_fused")
_columns = compiled.load("_columns")

Array = npt.NDArray[np.float64]

_CACHE_LINE = 64  # bytes; a row of eight numbers that begins elsewhere touches two lines


def vote_share(annotations: Annotations) -> Array:
    """Share of each item's labels, or of their weights, that name each class.

    Parameters
    ----------
    annotations : Annotations
        The crowd's labels.

    Returns
    -------
    ndarray of shape (n_items, n_classes)
        Rows sum to 1; they are 0 for items without labels.
    """
    share = np.empty((annotations.n_items, annotations.n_classes))
    if annotations.weight is not None:
        votes = weighted_votes(annotations, np.ones(annotations.n_annotations))
        total = sums_by(annotations.item, annotations.weight, annotations.n_items)
        np.multiply(votes, (1.0 / np.where(total > 0, total, 1.0))[:, None], out=share)
    elif _fused is not None:
        arrays = (annotations.label, annotations.start, None, None, np.zeros(annotations.n_classes), share)
        _fused.vote_pass(annotations.n_classes, 0, annotations.n_items, *arrays)
    else:
        votes = weighted_votes(annotations, np.ones(annotations.n_annotations))
        np.multiply(votes, (1.0 / np.maximum(annotations.n_labels, 1))[:, None], out=share)
    return share


def sums_by(group: npt.NDArray[Any], value: Array, n_groups: int) -> Array:
    """Sum of the values of each group.

    Parameters
    ----------
    group : ndarray of shape (n,) of int
        Group of each value.
    value : ndarray of shape (n,)
        The values.
    n_groups : int
        Number of groups.

    Returns
    -------
    ndarray of shape (n_groups,)
    """
    return np.bincount(group, weights=value, minlength=n_groups).astype(np.float64, copy=False)


def weighted_votes(annotations: Annotations, weight: Array) -> Array:
    """Weighted vote counts of each item; the weights that the annotations carry multiply the given ones.

    Parameters
    ----------
    annotations : Annotations
        The crowd's labels.
    weight : ndarray of shape (n_annotations,)
        Weight of each label.

    Returns
    -------
    ndarray of shape (n_items, n_classes)
        Summed weight of the labels that name each class.
    """
    n_items, n_classes = annotations.n_items, annotations.n_classes
    cell = annotations.item * np.int64(n_classes)
    cell += annotations.label
    if annotations.weight is not None:
        weight = weight * annotations.weight
    return sums_by(cell, weight, n_items * n_classes).reshape(n_items, n_classes)


def largest(
    posterior: Array, rank: npt.NDArray[np.int32], tie: float
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.bool_]]:
    """Class with the largest probability in each row; ties are decided by an order of the classes.

    Parameters
    ----------
    posterior : ndarray of shape (n_items, n_classes)
        Probabilities.
    rank : ndarray of shape (n_classes,) of int32
        All classes; the first one within `tie` of the largest probability is taken.
    tie : float
        Differences up to this count as equal.

    Returns
    -------
    code : ndarray of shape (n_items,) of int32
        The classes.
    tied : ndarray of shape (n_items,) of bool
        Whether there was more than one within `tie`.
    """
    code, tied = np.empty(len(posterior), np.int32), np.empty(len(posterior), bool)
    if _columns is not None:
        _columns.pick(tie, np.ascontiguousarray(posterior), rank, code, tied)
        return code, tied
    for first in range(0, len(posterior), plain_pass.CHUNK):
        part = slice(first, first + plain_pass.CHUNK)
        ranked = posterior[part][:, rank]
        best = ranked >= ranked.max(axis=1, keepdims=True) - tie
        code[part] = rank[best.argmax(axis=1)]
        tied[part] = best.sum(axis=1) > 1
    return code, tied


def vote_pass(packed: Packed, *, want_posterior: bool = False) -> PassResult:
    """The pass in which each item's posterior is its vote share: where EM starts.

    Parameters
    ----------
    packed : Packed
        The labels.
    want_posterior : bool, default=False
        Return the vote shares too.

    Returns
    -------
    PassResult
        With evidence 0.
    """

    def shard(first: int, last: int, counts: Array, totals: Array, posterior: Array | None) -> float:
        votes_of(packed, first, last, counts, totals, posterior)
        return 0.0

    return _over_shards(packed, shard, want_posterior)


def em_pass(
    packed: Packed, log_confusion: Array, log_prior: Array, offset: Array | None = None, *, want_posterior: bool = False
) -> PassResult:
    """The E step and its expected counts in one pass over the data.

        p(truth_i = k | labels of i)  ~  exp(offset[i, k] + log_prior[k] + sum_w log_confusion[w, k, label_iw])

    A label of weight v adds v times its logarithm to the sum, and v times the posterior to the counts.
    Items without labels add nothing to counts, totals and evidence; their posterior is the prior.

    Parameters
    ----------
    packed : Packed
        The labels.
    log_confusion : ndarray of shape (n_workers, n_classes, n_classes)
        log p(label | truth), indexed [worker, truth, label].
    log_prior : ndarray of shape (n_classes,)
        log p(truth).
    offset : ndarray of shape (n_items, n_classes), default=None
        Added to the log prior of each item (gold labels, a classifier).
    want_posterior : bool, default=False
        Return the posterior too.

    Returns
    -------
    PassResult
    """
    rows = rows_of(log_confusion, len(packed.code))
    log_prior = np.ascontiguousarray(log_prior, np.float64)
    if offset is not None:
        offset = np.ascontiguousarray(offset, np.float64)

    def shard(first: int, last: int, counts: Array, totals: Array, posterior: Array | None) -> float:
        return em_items(packed, first, last, rows, log_prior, offset, counts, totals, posterior)

    return _over_shards(packed, shard, want_posterior)


Shard = Callable[[int, int, Array, Array, Array | None], float]


def _over_shards(packed: Packed, shard: Shard, want_posterior: bool) -> PassResult:
    """Run all shards, each with counts of its own, and sum them in a fixed order."""
    n_classes, n_shards = packed.n_classes, len(packed.shards)
    counts = _count_tables(packed)
    totals = np.zeros((n_shards, n_classes))
    posterior = np.empty((packed.n_items, n_classes)) if want_posterior else None

    evidence = run_in_threads(lambda i: shard(*packed.shards[i], counts[i], totals[i], posterior), n_shards)
    summed = counts[0]
    if n_shards > 1:
        summed = counts.sum(axis=0)
        packed.spare.append(counts)
    by_truth = summed.reshape(packed.n_workers, n_classes, n_classes).transpose(0, 2, 1)
    return PassResult(by_truth, totals.sum(axis=0), float(np.sum(evidence)), posterior)


def _count_tables(packed: Packed) -> Array:
    """Zeros for the counts of each shard: the tables of an earlier pass, if there are any."""
    with suppress(IndexError):  # there is none
        counts = packed.spare.pop()
        counts[...] = 0.0
        return counts
    return aligned_zeros((len(packed.shards), packed.n_workers * packed.n_classes, packed.n_classes))


def aligned_zeros(shape: tuple[int, ...]) -> Array:
    """Zeros whose first number begins a cache line; NumPy promises no more than 16 bytes.

    Parameters
    ----------
    shape : tuple of int
        Shape of the array.

    Returns
    -------
    ndarray
    """
    size, line = int(np.prod(shape)), _CACHE_LINE // 8
    memory = np.zeros(size + line - 1)
    first = -(memory.ctypes.data // 8) % line
    return memory[first : first + size].reshape(shape)


def _on_cache_lines(rows: Array) -> Array:
    """The same rows, copied to the beginning of a cache line if they do not start there."""
    if rows.ctypes.data % _CACHE_LINE == 0:
        return rows
    copy = aligned_zeros(rows.shape)
    copy[...] = rows
    return copy


def rows_of(log_confusion: Array, n_labels: int) -> Array:
    """Log confusion matrices as the pass reads them, the truth last, so that a label reads one contiguous row.

    Tables made by arithmetic on the counts of an earlier pass have that layout already.

    Parameters
    ----------
    log_confusion : ndarray of shape (n_workers, n_classes, n_classes)
        log p(label | truth), indexed [worker, truth, label].
    n_labels : int
        Labels that will be read with it; where there are many, rows are moved to the beginning of a cache line.

    Returns
    -------
    ndarray of shape (n_workers * n_classes, n_classes)
        A row for each worker and label.
    """
    n_workers, n_classes, _ = log_confusion.shape
    rows = np.ascontiguousarray(log_confusion.transpose(0, 2, 1), np.float64).reshape(n_workers * n_classes, n_classes)
    return _on_cache_lines(rows) if rows.size < n_labels else rows  # the copy costs little compared with the pass


def em_items(
    packed: Packed,
    first: int,
    last: int,
    rows: Array,
    log_prior: Array,
    offset: Array | None,
    counts: Array,
    totals: Array,
    posterior: Array | None,
) -> float:
    """E step and expected counts of the items from `first` to `last`, in the calling thread.

    Parameters
    ----------
    packed : Packed
        The labels.
    first : int
        First item.
    last : int
        Item after the last one.
    rows : ndarray of shape (n_workers * n_classes, n_classes)
        log p(label | truth), a row for each worker and label (`rows_of`).
    log_prior : ndarray of shape (n_classes,)
        log p(truth).
    offset : ndarray of shape (n_items, n_classes) or None
        Added to the log prior of each item.
    counts : ndarray of shape (n_workers * n_classes, n_classes)
        Expected counts are added here.
    totals : ndarray of shape (n_classes,)
        Expected class totals are added here.
    posterior : ndarray of shape (n_items, n_classes) or None
        Receives the posterior, where it is wanted.

    Returns
    -------
    float
        The evidence: log p(labels), summed over the items.
    """
    if _fused is None or packed.weight is not None:
        return plain_pass.em_shard(packed, first, last, rows, log_prior, offset, counts, totals, posterior)
    arrays = (packed.code, packed.start, rows, log_prior, offset, counts, totals, posterior)
    return float(_fused.em_pass(packed.n_classes, first, last, *arrays))


def votes_of(packed: Packed, first: int, last: int, counts: Array, totals: Array, posterior: Array | None) -> None:
    """Counts and class totals of the items from `first` to `last` if each posterior were the vote share.

    Parameters
    ----------
    packed : Packed
        The labels.
    first : int
        First item.
    last : int
        Item after the last one.
    counts : ndarray of shape (n_workers * n_classes, n_classes)
        Counts are added here.
    totals : ndarray of shape (n_classes,)
        Class totals are added here.
    posterior : ndarray of shape (n_items, n_classes) or None
        Receives the vote shares, where they are wanted.
    """
    if _fused is None or packed.weight is not None:
        plain_pass.vote_shard(packed, first, last, counts, totals, posterior)
    else:
        arrays = (packed.label, packed.start, packed.code, counts, totals, posterior)
        _fused.vote_pass(packed.n_classes, first, last, *arrays)
