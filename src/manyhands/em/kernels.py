"""Vote counts and the fused EM pass: the only place for speed tricks.

`em_pass` has a compiled form (`_fused.c`) and a plain one (NumPy and SciPy's sparse product), chosen once at
import, which give the same bits; both walk shards of items that depend on the data alone, never on the number of
threads. Set MANYHANDS_PLAIN=1 to do without the compiled form, MANYHANDS_SIMD
to avx512f, avx2 or default for its instruction set, and MANYHANDS_THREADS to bound the threads.
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
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from manyhands import compiled
from manyhands.annotations import Annotations
from manyhands.em import plain_pass
from manyhands.exceptions import LimitError
from manyhands.validation import check_memory

_fused = compiled.load("_fused")
_columns = compiled.load("_columns")

Array = npt.NDArray[np.float64]

_MOST_SHARDS = 4
_LEAST_SHARD = 1 << 18  # labels times classes; less is done before a second thread has woken up
_LEAST_SPREAD = 1 << 14  # numbers; fewer are done before a second thread has woken up
_TABLES = 6  # arrays of the size of all confusion matrices that EM holds at a time
_SMALL_TABLES = 1 << 22  # numbers in the confusion matrices of all workers, 32 MB
_MOST_CLASSES = 32768  # the product of 64 normalisers, each at most this, is still a double
_CACHE_LINE = 64  # bytes; a row of eight numbers that begins elsewhere touches two lines


def vote_share(annotations: Annotations) -> Array:
    """(n_items, n_classes) the share of each item's labels that name each class; 0 for items without labels."""
    share = np.empty((annotations.n_items, annotations.n_classes))
    if _fused is not None:
        arrays = (annotations.label, annotations.start, None, None, np.zeros(annotations.n_classes), share)
        _fused.vote_pass(annotations.n_classes, 0, annotations.n_items, *arrays)
    else:
        votes = weighted_votes(annotations, np.ones(annotations.n_annotations))
        np.multiply(votes, (1.0 / np.maximum(annotations.n_labels, 1))[:, None], out=share)
    return share


def sums_by(group: npt.NDArray[Any], value: Array, n_groups: int) -> Array:
    """(n_groups,) the sum of the values of each group."""
    return np.bincount(group, weights=value, minlength=n_groups).astype(np.float64, copy=False)


def weighted_votes(annotations: Annotations, weight: Array) -> Array:
    """(n_items, n_classes) the summed weight, one per annotation, behind each label of each item."""
    n_items, n_classes = annotations.n_items, annotations.n_classes
    cell = annotations.item * np.int64(n_classes)
    cell += annotations.label
    return sums_by(cell, weight, n_items * n_classes).reshape(n_items, n_classes)


def largest(
    posterior: Array, rank: npt.NDArray[np.int32], tie: float
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.bool_]]:
    """(n_items,) the first class in the order `rank` within `tie` of the largest, and whether others are as near."""
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


@dataclass(frozen=True)
class Packed:
    """Annotations as the pass reads them: `code = worker * n_classes + label`, item after item."""

    code: npt.NDArray[np.int32]  # (n_annotations,)
    label: npt.NDArray[np.int32]  # (n_annotations,), shared with the annotations
    start: npt.NDArray[np.int64]  # (n_items + 1,)
    n_workers: int
    n_classes: int
    # Count tables of the shards, which the next pass uses again: the system would have to clear new memory each time.
    spare: list[Array] = field(default_factory=list, repr=False, compare=False)

    @property
    def n_items(self) -> int:
        return len(self.start) - 1

    @cached_property
    def shards(self) -> list[tuple[int, int]]:
        """Ranges of items with about equally many labels, as many as pay for a count table of their own."""
        table_size = self.n_workers * self.n_classes**2
        n_shards = len(self.code) * self.n_classes // max(_LEAST_SHARD, 2 * table_size * self.n_classes)
        n_shards = min(_MOST_SHARDS, 1 << max(n_shards, 1).bit_length() - 1)  # a power of two
        cuts = np.searchsorted(self.start, np.linspace(0, len(self.code), n_shards + 1)[1:-1])
        edges = [0, *cuts.tolist(), self.n_items]
        return list(pairwise(edges))


class PassResult(NamedTuple):
    """What one read of the annotations gives."""

    counts: Array  # (n_workers, n_classes of the truth, n_classes of the label), expected
    totals: Array  # (n_classes,) expected number of labelled items of each class
    evidence: float  # log p(labels), summed over items
    posterior: Array | None  # (n_items, n_classes), where it was asked for


def check_tables(annotations: Annotations) -> None:
    """Refuse a crowd whose confusion matrices would not fit into memory."""
    n_workers, n_classes = annotations.n_workers, annotations.n_classes
    check_memory(
        8.0 * _TABLES * n_workers * n_classes**2,
        f"Confusion matrices for {n_workers} workers and {n_classes} classes",
        "Use wawa or majority-vote, or merge rare classes.",
    )


def has_small_tables(annotations: Annotations) -> bool:
    """Whether a confusion matrix for every worker is a trifle beside the labels; a vote needs none."""
    return annotations.n_workers * annotations.n_classes**2 <= max(_SMALL_TABLES, annotations.n_annotations)


def pack(annotations: Annotations) -> Packed:
    """Pack annotations for `em_pass`; 4 bytes per label."""
    check_tables(annotations)
    n_workers, n_classes = annotations.n_workers, annotations.n_classes
    if n_classes > _MOST_CLASSES or n_workers * n_classes > np.iinfo(np.int32).max:  # whatever memory there is
        raise LimitError(
            f"Confusion matrices for {n_workers} workers and {n_classes} classes are more than the {_MOST_CLASSES} "
            f"classes and {np.iinfo(np.int32).max} rows that a table can have. "
            f"Use wawa or majority-vote, or merge rare classes."
        )
    code = annotations.worker * np.int32(n_classes)
    code += annotations.label
    return Packed(code, annotations.label, annotations.start, n_workers, n_classes)


def vote_pass(packed: Packed, *, want_posterior: bool = False) -> PassResult:
    """What `em_pass` would give if each item's posterior were its vote share: where EM starts."""

    def shard(first: int, last: int, counts: Array, totals: Array, posterior: Array | None) -> float:
        if _fused is None:
            plain_pass.vote_shard(packed, first, last, counts, totals, posterior)
        else:
            arrays = (packed.label, packed.start, packed.code, counts, totals, posterior)
            _fused.vote_pass(packed.n_classes, first, last, *arrays)
        return 0.0

    return _over_shards(packed, shard, want_posterior)


def em_pass(
    packed: Packed, log_table: Array, log_prior: Array, offset: Array | None = None, *, want_posterior: bool = False
) -> PassResult:
    """E step and its expected counts in one read of the data.

    Parameters
    ----------
    packed : the annotations
    log_table : (n_workers, n_classes, n_classes) log p(label | truth), indexed [worker, truth, label]
    log_prior : (n_classes,) log p(truth)
    offset : (n_items, n_classes) added to the log prior of each item (gold labels, a classifier), or None
    want_posterior : write the posterior too

    Items without labels add nothing to counts, totals and evidence; their posterior is the prior.
    """
    n_workers, n_classes = packed.n_workers, packed.n_classes
    # The pass wants the truth last, so that a label reads one contiguous row; tables made by arithmetic on
    # the counts of an earlier pass have that layout already, and this copies nothing.
    rows = np.ascontiguousarray(log_table.transpose(0, 2, 1), np.float64).reshape(n_workers * n_classes, n_classes)
    if rows.size < len(packed.code):  # the copy is a trifle beside the pass
        rows = _on_cache_lines(rows)
    log_prior = np.ascontiguousarray(log_prior, np.float64)
    if offset is not None:
        offset = np.ascontiguousarray(offset, np.float64)

    def shard(first: int, last: int, counts: Array, totals: Array, posterior: Array | None) -> float:
        run = plain_pass.em_shard if _fused is None else _compiled_shard
        return run(packed, first, last, rows, log_prior, offset, counts, totals, posterior)

    return _over_shards(packed, shard, want_posterior)


Shard = Callable[[int, int, Array, Array, Array | None], float]


def _over_shards(packed: Packed, shard: Shard, want_posterior: bool) -> PassResult:
    """Run all shards, each with counts of its own, and add up in an order that no number of threads changes."""
    n_classes, n_shards = packed.n_classes, len(packed.shards)
    counts = _count_tables(packed)
    totals = np.zeros((n_shards, n_classes))
    posterior = np.empty((packed.n_items, n_classes)) if want_posterior else None

    evidence = _in_threads(lambda i: shard(*packed.shards[i], counts[i], totals[i], posterior), n_shards)
    summed = counts[0]
    if n_shards > 1:
        summed = counts.sum(axis=0)
        packed.spare.append(counts)
    by_truth = summed.reshape(packed.n_workers, n_classes, n_classes).transpose(0, 2, 1)
    return PassResult(by_truth, totals.sum(axis=0), float(np.sum(evidence)), posterior)


def _count_tables(packed: Packed) -> Array:
    """Zeros for the counts of each shard: those of an earlier pass, where there was one of several shards."""
    with suppress(IndexError):  # there is none
        counts = packed.spare.pop()
        counts[...] = 0.0
        return counts
    return _aligned_zeros((len(packed.shards), packed.n_workers * packed.n_classes, packed.n_classes))


def _aligned_zeros(shape: tuple[int, ...]) -> Array:
    """Zeros whose first number begins a cache line; NumPy promises no more than 16 bytes."""
    size, line = int(np.prod(shape)), _CACHE_LINE // 8
    memory = np.zeros(size + line - 1)
    first = -(memory.ctypes.data // 8) % line
    return memory[first : first + size].reshape(shape)


def _on_cache_lines(rows: Array) -> Array:
    """The same rows, copied to where they begin a cache line if they do not."""
    if rows.ctypes.data % _CACHE_LINE == 0:
        return rows
    copy = _aligned_zeros(rows.shape)
    copy[...] = rows
    return copy


def spread(function: Callable[..., Array], x: Array) -> Array:
    """`function(x)` for a NumPy or SciPy function of single numbers, with large arrays shared out among the threads."""
    if x.size < _LEAST_SPREAD:
        return function(x)
    result = np.empty_like(x)
    edges = np.linspace(0, len(x), _MOST_SHARDS + 1).astype(int)

    def part(i: int) -> float:
        function(x[edges[i] : edges[i + 1]], out=result[edges[i] : edges[i + 1]])
        return 0.0

    _in_threads(part, _MOST_SHARDS)
    return result


def _in_threads(job: Callable[[int], float], n_jobs: int) -> list[float]:
    """The results of `job(0)` to `job(n_jobs - 1)`; this thread works along with those of the pool."""
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


def _compiled_shard(
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
    arrays = (packed.code, packed.start, rows, log_prior, offset, counts, totals, posterior)
    return float(_fused.em_pass(packed.n_classes, first, last, *arrays))


def thread_count() -> int:
    """MANYHANDS_THREADS where it is set, otherwise the cores this process may use."""
    asked = os.environ.get("MANYHANDS_THREADS", "")
    if asked.isdigit() and int(asked) > 0:
        return int(asked)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def _pool(process: int) -> ThreadPoolExecutor:
    """The threads of this process; a forked child has another number and starts its own."""
    return ThreadPoolExecutor(thread_count(), thread_name_prefix="manyhands")
