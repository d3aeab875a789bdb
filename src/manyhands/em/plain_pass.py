"""The passes of `_fused.c` in NumPy and SciPy, for labels with weights and for machines without a C compiler.

Without weights they take the same steps and give the same bits.

Every sum is taken in the order of the compiled pass: scores over an item's labels, normalisers in four partial sums,
totals and counts item after item, the evidence in blocks of 64 items. `np.cumsum` and SciPy's sparse products add one
number after the other; NumPy's `sum` would not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from manyhands._core import elementary
from manyhands._core.arrays import Array

if TYPE_CHECKING:
    from manyhands.em.kernels import Packed


# ----------------------------------------------------------------------------------------------------
# The two sparse products of the plain pass without SciPy, for executors of a cluster that do not have it.
#
# `np.bincount` adds one number after the other, as SciPy's products do, so that the bits are the same.


@dataclass(frozen=True)
class Indicators:
    """A sparse matrix with one entry per label, which can be multiplied by a dense one from the right.

    Examples
    --------
    >>> matrix = Indicators(np.array([0, 0, 1]), np.array([1, 2, 0]), None, 2)
    >>> (matrix @ np.array([[1.0], [2.0], [4.0]])).tolist()
    [[6.0], [1.0]]

    Shapes: row (n_labels,); column (n_labels,); weight (n_labels,).
    """

    row: npt.NDArray[np.integer[Any]]  # (n_labels,); row of each entry
    column: npt.NDArray[np.integer[Any]]  # (n_labels,); column of each entry
    weight: Array | None  # (n_labels,); the entries; None where all are 1
    n_rows: int

    def __matmul__(self, dense: Array) -> Array:
        product = np.empty((self.n_rows, dense.shape[1]))
        for k in range(dense.shape[1]):
            value = dense[self.column, k]
            if self.weight is not None:
                value = self.weight * value
            product[:, k] = np.bincount(self.row, weights=value, minlength=self.n_rows)
        return product

    def transposed(self, n_rows: int) -> Indicators:
        """The transposed matrix, whose entries are added in the same order."""
        return Indicators(self.column, self.row, self.weight, n_rows)


# ----------------------------------------------------------------------------------------------------
# The passes, in chunks of items.

CHUNK = 16_384  # items, a multiple of a block; the scores of a chunk stay in the cache
_BLOCK = 64  # items whose evidence is one logarithm


def em_shard(
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
    """E step and expected counts of the items from `first` to `last`.

    Shapes: rows (n_workers * n_classes, n_classes); log_prior (n_classes,); offset (n_items, n_classes); counts
    (n_workers * n_classes, n_classes); totals (n_classes,); posterior (n_items, n_classes).
    """
    part = np.empty((last - first, len(log_prior))) if posterior is None else posterior[first:last]
    evidence: list[Array] = []
    for begin in range(first, last, CHUNK):
        end = min(begin + CHUNK, last)
        labelled = np.diff(packed.start[begin : end + 1]) > 0
        score = _by_item(packed, begin, end, rows) + log_prior
        if offset is not None:
            score += offset[begin:end]
        top = score.max(axis=1, keepdims=True)
        elementary.exp(score - top, out=score)
        total = _in_four_sums(score)
        score *= 1.0 / total
        part[begin - first : end - first] = score
        evidence.append(_block_evidence(np.where(labelled, top[:, 0], 0.0), np.where(labelled, total[:, 0], 1.0)))
    counts += _by_row(packed, first, last, part, len(rows))
    totals += _in_turn(part[np.diff(packed.start[first : last + 1]) > 0])
    return float(_in_turn(np.concatenate(evidence)[:, None])[0]) if evidence else 0.0


def vote_shard(packed: Packed, first: int, last: int, counts: Array, totals: Array, posterior: Array | None) -> None:
    """Counts and class totals if each item's posterior were its vote share.

    Shapes: counts (n_workers * n_classes, n_classes); totals (n_classes,); posterior (n_items, n_classes).
    """
    share = vote_shares(packed, first, last)
    counts += _by_row(packed, first, last, share, len(counts))
    totals += _in_turn(share[np.diff(packed.start[first : last + 1]) > 0])
    if posterior is not None:
        posterior[first:last] = share


def vote_shares(packed: Packed, first: int, last: int) -> Array:
    """Share of each item's labels, or of their weights, that name each class.

    Shapes: returns (last - first, n_classes).
    """
    a, b = packed.start[[first, last]]
    n_labels = np.diff(packed.start[first : last + 1])
    item = np.repeat(np.arange(last - first), n_labels)
    cell = item * np.int64(packed.n_classes) + packed.label[a:b]
    weight = None if packed.weight is None else packed.weight[a:b]
    votes = np.bincount(cell, weights=weight, minlength=(last - first) * packed.n_classes)
    votes = votes.reshape(last - first, packed.n_classes)
    total = n_labels if weight is None else np.bincount(item, weights=weight, minlength=last - first)
    return np.asarray(votes * (1.0 / np.where(n_labels > 0, total, 1))[:, None])


def _by_item(packed: Packed, first: int, last: int, rows: Array) -> Array:
    """Sum of the rows of each item's labels, shape (last - first, n_columns)."""
    return np.asarray(_indicators(packed, first, last, len(rows)) @ rows)


def _by_row(packed: Packed, first: int, last: int, part: Array, n_rows: int) -> Array:
    """Sum of the parts of the items that have each worker and label, shape (n_rows, n_columns)."""
    matrix = _indicators(packed, first, last, n_rows)
    return np.asarray((matrix.transposed(n_rows) if isinstance(matrix, Indicators) else matrix.T) @ part)


def _indicators(packed: Packed, first: int, last: int, n_rows: int) -> Any:
    """Sparse matrix (items, worker and label): 1, or the weight, where the worker gave the item this label."""
    a, b = packed.start[[first, last]]
    start = packed.start[first : last + 1] - a
    weight = None if packed.weight is None else packed.weight[a:b]
    try:
        from scipy.sparse import csr_array
    except ImportError:  # on an executor of a cluster
        item = np.repeat(np.arange(last - first), np.diff(start))
        return Indicators(item, packed.code[a:b], weight, last - first)
    ones = np.ones(b - a) if weight is None else weight
    return csr_array((ones, packed.code[a:b], start), shape=(last - first, n_rows))


def _in_turn(values: Array) -> Array:
    """The sum over the first axis, one row after the other."""
    return np.cumsum(values, axis=0)[-1] if len(values) else np.zeros(values.shape[1:])


def _in_four_sums(score: Array) -> Array:
    """The sum of each row, shape (n, 1), as four partial sums of every fourth number."""
    lane = np.zeros((len(score), 4))
    for k in range(0, score.shape[1], 4):
        part = score[:, k : k + 4]
        lane[:, : part.shape[1]] += part
    return ((lane[:, 0] + lane[:, 2]) + (lane[:, 1] + lane[:, 3]))[:, None]


def _block_evidence(top: Array, total: Array) -> Array:
    """Sum of top + log(total) over each block of items, shape (n_blocks,), by eight partial sums and products."""
    n_blocks = -(-len(top) // _BLOCK)
    missing = n_blocks * _BLOCK - len(top)
    tops = np.append(top, np.zeros(missing)).reshape(n_blocks, 8, 8)
    totals = np.append(total, np.ones(missing)).reshape(n_blocks, 8, 8)
    summed = np.cumsum(np.cumsum(tops, axis=1)[:, -1], axis=1)[:, -1]
    product = np.cumprod(np.cumprod(totals, axis=1)[:, -1], axis=1)[:, -1]
    return np.asarray(summed + elementary.log(product))
