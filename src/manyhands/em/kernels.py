"""Vote counts and the fused EM pass, the labels that it reads, and its threads: the only place for speed tricks.

`em_pass` has a compiled form (`_fused.c`) and a plain one (NumPy and SciPy's sparse product), chosen once at import,
which give the same bits; both process shards of items that depend on the data alone, never on the number of threads.
Labels with weights always take the plain form.
Set MANYHANDS_PLAIN=1 to do without the compiled form, MANYHANDS_SIMD to avx512f, avx2 or default for its instruction
set, and MANYHANDS_THREADS to bound the threads.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, cached_property
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from manyhands._core import elementary
from manyhands._core.arrays import Array
from manyhands._core.system import check_memory
from manyhands.annotations import Annotations
from manyhands.em import plain_pass
from manyhands.exceptions import LimitError

# ----------------------------------------------------------------------------------------------------
# How much memory the confusion matrices of all workers take.

_TABLES = 6  # arrays of the size of all confusion matrices that EM holds at a time
_MAX_CLASSES = 32768  # the product of 64 normalisers, each at most this, is still a double
_MAX_ROWS = (1 << 31) - 1  # that codes of 32 bits can name
_SMALL_TABLES = 1 << 22  # numbers in the confusion matrices of all workers, 32 MB


def check_tables(annotations: Annotations) -> None:
    """Refuse a crowd whose confusion matrices would not fit into memory."""
    check_table_size(annotations.n_workers, annotations.n_classes)


def table_bytes(n_workers: int, n_classes: int, n_tables: int = _TABLES) -> float:
    """Estimate the memory of the confusion matrices during EM."""
    return 8.0 * n_tables * n_workers * n_classes**2


def check_table_size(n_workers: int, n_classes: int, n_tables: int = _TABLES) -> None:
    """Refuse confusion matrices that would not fit into memory or exceed the largest index."""
    check_memory(
        table_bytes(n_workers, n_classes, n_tables),
        f"Confusion matrices for {n_workers} workers and {n_classes} classes",
        "Use wawa or majority-vote, or merge rare classes.",
    )
    if n_classes > _MAX_CLASSES or n_workers * n_classes > _MAX_ROWS:  # whatever memory there is
        raise LimitError(
            f"Confusion matrices for {n_workers} workers and {n_classes} classes are more than the {_MAX_CLASSES} "
            f"classes and {_MAX_ROWS} rows that a table can have. "
            f"Use wawa or majority-vote, or merge rare classes."
        )


def has_small_tables(annotations: Annotations) -> bool:
    """Whether confusion matrices for all workers cost little compared with the labels; a vote needs none."""
    return are_small_tables(annotations.n_workers, annotations.n_classes, annotations.n_annotations)


def are_small_tables(n_workers: int, n_classes: int, n_labels: int) -> bool:
    """The same from the sizes of a crowd."""
    return n_workers * n_classes**2 <= max(_SMALL_TABLES, n_labels)


# ----------------------------------------------------------------------------------------------------
# The annotations in the form that the EM pass reads, and what a pass returns.

_MAX_SHARDS = (
    4  # of labels in memory, each with count tables of its own; fixed, so that results never depend on threads
)
_MIN_SHARD = 1 << 18  # labels times classes; smaller shards are done before a second thread has started


@dataclass(frozen=True)
class Packed:
    """Annotations in the form that the pass reads: `code = worker * n_classes + label`, item after item."""

    code: npt.NDArray[np.int32]  # (n_annotations,); worker and label of each annotation
    # (n_annotations,); label of each annotation, shared with the `Annotations`; None computes it from `code` when it
    # is needed
    known_label: npt.NDArray[np.int32] | None
    start: npt.NDArray[np.int64]  # (n_items + 1,); annotations of item i are at `start[i]:start[i + 1]`
    n_workers: int
    n_classes: int
    weight: Array | None = None  # (n_annotations,); weight of each annotation; None where all are 1
    # count tables of the shards, which the next pass reuses: new memory would have to be cleared by the system
    spare: list[npt.NDArray[np.float64]] = field(default_factory=list, repr=False, compare=False)

    @property
    def n_items(self) -> int:
        """Number of items."""
        return len(self.start) - 1

    @cached_property
    def label(self) -> npt.NDArray[np.int32]:
        """Label of each annotation, shape (n_annotations,)."""
        return self.code % np.int32(self.n_classes) if self.known_label is None else self.known_label

    @cached_property
    def shards(self) -> list[tuple[int, int]]:
        """Ranges of items with about equally many labels, as many as pay for a count table of their own."""
        table_size = self.n_workers * self.n_classes**2
        n_shards = len(self.code) * self.n_classes // max(_MIN_SHARD, 2 * table_size * self.n_classes)
        n_shards = min(_MAX_SHARDS, 1 << max(n_shards, 1).bit_length() - 1)  # a power of two
        cuts = np.searchsorted(self.start, np.linspace(0, len(self.code), n_shards + 1)[1:-1])
        edges = [0, *cuts.tolist(), self.n_items]
        return list(pairwise(edges))


class PassResult(NamedTuple):
    """Outcome of one pass over the annotations."""

    counts: Array  # (n_workers, n_classes, n_classes); expected counts, indexed [worker, truth, label]
    totals: Array  # (n_classes,); expected number of labelled items of each class
    evidence: float  # log p(labels), summed over the items
    posterior: Array | None  # (n_items, n_classes); p(truth | labels), where it was asked for


def pack(annotations: Annotations) -> Packed:
    """Pack annotations for `em_pass`; 4 bytes per label."""
    check_tables(annotations)
    n_workers, n_classes = annotations.n_workers, annotations.n_classes
    code = annotations.worker * np.int32(n_classes)
    code += annotations.label
    return Packed(code, annotations.label, annotations.start, n_workers, n_classes, annotations.weight)


# ----------------------------------------------------------------------------------------------------
# Work shared among threads, with results that never depend on how many there are.
#
# MANYHANDS_THREADS bounds the number of threads.

_PARTS = 4  # pieces of an array; fixed, so that results never depend on the number of threads
_MIN_SPREAD = 1 << 18  # numbers; fewer are done within a millisecond, before a second thread has started


def spread(function: Callable[..., Array], x: Array) -> Array:
    """Apply an element-wise function to an array, with large arrays split among the threads."""
    if x.size < _MIN_SPREAD:
        return function(x)
    result = np.empty_like(x)
    edges = np.linspace(0, len(x), _PARTS + 1).astype(int)

    def part(i: int) -> float:
        function(x[edges[i] : edges[i + 1]], out=result[edges[i] : edges[i + 1]])
        return 0.0

    run_in_threads(part, _PARTS)
    return result


def run_in_threads(job: Callable[[int], float], n_jobs: int) -> list[float]:
    """Run `job(0)` to `job(n_jobs - 1)` in the threads of a pool; the calling thread takes part."""
    results = [0.0] * n_jobs
    todo = deque(range(n_jobs))

    def work() -> None:
        while todo:
            with suppress(IndexError):  # another thread took the last one
                number = todo.popleft()
                results[number] = job(number)

    helpers = [_pool(os.getpid()).submit(work) for _ in range(min(thread_count(), n_jobs) - 1)]
    work()
    for helper in helpers:
        helper.result()
    return results


def thread_count() -> int:
    """Number of threads: MANYHANDS_THREADS where it is set, otherwise the cores this process may use."""
    asked = os.environ.get("MANYHANDS_THREADS", "")
    if asked.isdigit() and int(asked) > 0:
        return int(asked)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def _pool(process: int) -> ThreadPoolExecutor:
    """The threads of this process; a forked child has another process number and starts its own."""
    return ThreadPoolExecutor(thread_count(), thread_name_prefix="manyhands")


# ----------------------------------------------------------------------------------------------------
# The fused pass and the vote counts, compiled or plain.

_fused = elementary.load("_fused")
_columns = elementary.load("_columns")
_CACHE_LINE = 64  # bytes; a row of eight numbers that begins elsewhere touches two lines


def vote_share(annotations: Annotations) -> Array:
    """Share of each item's labels, or of their weights, that name each class.

    Shapes: returns (n_items, n_classes).
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

    Shapes: group (n,); value (n,); returns (n_groups,).
    """
    return np.bincount(group, weights=value, minlength=n_groups).astype(np.float64, copy=False)


def weighted_votes(annotations: Annotations, weight: Array) -> Array:
    """Weighted vote counts of each item; the weights that the annotations carry multiply the given ones.

    Shapes: weight (n_annotations,); returns (n_items, n_classes).
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

    Shapes: posterior (n_items, n_classes); rank (n_classes,); returns code (n_items,); returns tied (n_items,).
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
    """The pass in which each item's posterior is its vote share: where EM starts."""

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

    Shapes: log_confusion (n_workers, n_classes, n_classes); log_prior (n_classes,); offset (n_items, n_classes).
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
    """Zeros whose first number begins a cache line; NumPy promises no more than 16 bytes."""
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

    Shapes: log_confusion (n_workers, n_classes, n_classes); returns (n_workers * n_classes, n_classes).
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

    Shapes: rows (n_workers * n_classes, n_classes); log_prior (n_classes,); offset (n_items, n_classes); counts
    (n_workers * n_classes, n_classes); totals (n_classes,); posterior (n_items, n_classes).
    """
    if _fused is None or packed.weight is not None:
        return plain_pass.em_shard(packed, first, last, rows, log_prior, offset, counts, totals, posterior)
    arrays = (packed.code, packed.start, rows, log_prior, offset, counts, totals, posterior)
    return float(_fused.em_pass(packed.n_classes, first, last, *arrays))


def votes_of(packed: Packed, first: int, last: int, counts: Array, totals: Array, posterior: Array | None) -> None:
    """Counts and class totals of the items from `first` to `last` if each posterior were the vote share.

    Shapes: counts (n_workers * n_classes, n_classes); totals (n_classes,); posterior (n_items, n_classes).
    """
    if _fused is None or packed.weight is not None:
        plain_pass.vote_shard(packed, first, last, counts, totals, posterior)
    else:
        arrays = (packed.label, packed.start, packed.code, counts, totals, posterior)
        _fused.vote_pass(packed.n_classes, first, last, *arrays)


# ----------------------------------------------------------------------------------------------------
# Where EM with confusion matrices reads its labels: one object in memory, or shards from anywhere.


class LabelSource(Protocol):
    """Labels that EM passes over. Nothing else is known about them: not where they lie, nor how many there are."""

    @property
    def n_workers(self) -> int:
        """Number of workers."""

    @property
    def n_classes(self) -> int:
        """Number of classes."""

    def em_pass(self, log_confusion: Array, log_prior: Array, *, want_posterior: bool = False) -> PassResult:
        """The E step and its expected counts; a source of shards never returns the posterior."""

    def vote_pass(self) -> PassResult:
        """The pass in which each item's posterior is its vote share."""


@dataclass(frozen=True)
class PackedLabels:
    """Labels in memory, with what is known about single items.

    Shapes: offset (n_items, n_classes).
    """

    packed: Packed
    offset: Array | None = None  # (n_items, n_classes); added to the log prior of each item, for gold labels

    @property
    def n_workers(self) -> int:
        """Number of workers."""
        return self.packed.n_workers

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return self.packed.n_classes

    def em_pass(self, log_confusion: Array, log_prior: Array, *, want_posterior: bool = False) -> PassResult:
        """The E step and its expected counts.

        Shapes: log_confusion (n_workers, n_classes, n_classes); log_prior (n_classes,).
        """
        return em_pass(self.packed, log_confusion, log_prior, self.offset, want_posterior=want_posterior)

    def vote_pass(self) -> PassResult:
        """The pass in which each item's posterior is its vote share; what is known about single items is not used."""
        return vote_pass(self.packed)
