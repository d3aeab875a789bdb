"""Votes on each item in sparse form, and the few distinct patterns of votes among items.

A worker has one vote per item. Repeated labels split the vote: a label given in two of three repetitions has two thirds
of it. Agreement is counted between different workers only, never between the repeated labels of one worker.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from manyhands.annotations import Annotations
from manyhands.em.kernels import sums_by

Array = npt.NDArray[np.float64]
Positions = npt.NDArray[np.int64]
Block = tuple[Positions, Positions, Array, int]  # row, column, value, number of columns


@dataclass(frozen=True)
class WorkerLabels:
    """The distinct triples (item, worker, label), sorted, with the share of the worker's vote.

    Attributes
    ----------
    item : ndarray of int of shape (n_triples,)
        Item codes.
    worker : ndarray of int of shape (n_triples,)
        Worker codes.
    label : ndarray of int of shape (n_triples,)
        Class codes.
    share : ndarray of shape (n_triples,)
        Share of the worker's vote on the item; 1 where the worker gave one label only.
    vote : ndarray of int of shape (n_triples,)
        Index of the pair (item, worker).
    """

    item: Positions
    worker: Positions
    label: Positions
    share: Array
    vote: Positions


@dataclass(frozen=True)
class Votes:
    """Votes in sparse form; a row is an item that at least two workers labelled, or a pattern of such items.

    Attributes
    ----------
    n_workers : ndarray of shape (n_rows,)
        Number of votes in each row.
    row : ndarray of int of shape (n_cells,)
        Row of each cell (row, label) with votes.
    label : ndarray of int of shape (n_cells,)
        Class code of each cell.
    weight : ndarray of shape (n_cells,)
        Sum of the votes for this label.
    split_row : ndarray of int of shape (n_split,)
        Row of each part of a vote that is split between labels.
    split_vote : ndarray of int of shape (n_split,)
        Index of the vote that the part belongs to.
    split_label : ndarray of int of shape (n_split,)
        Class code of the part.
    split_share : ndarray of shape (n_split,)
        Share of the vote.
    n_classes : int
        Number of classes.
    """

    n_workers: Array
    row: Positions
    label: Positions
    weight: Array
    split_row: Positions
    split_vote: Positions
    split_label: Positions
    split_share: Array
    n_classes: int

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.n_workers)

    @property
    def contested(self) -> npt.NDArray[np.bool_]:
        """(n_rows,) whether labels differ; elsewhere disagreement is exactly 0."""
        return np.bincount(self.row, minlength=self.n_rows) > 1

    def disagreement(self) -> Array:
        """Count the ordered pairs of different workers whose labels differ, divided by n_workers - 1.

        Returns
        -------
        ndarray of shape (n_rows,)
            Observed disagreement of each row.
        """
        differ = self.n_workers**2 - sums_by(self.row, self.weight**2, self.n_rows)
        within = self.split_share * (1 - self.split_share)  # the parts of one vote are no pair of workers
        differ -= sums_by(self.split_row, within, self.n_rows)
        return np.where(self.contested, differ / (self.n_workers - 1), 0.0)


def gather_worker_labels(annotations: Annotations) -> WorkerLabels:
    """Merge repeated labels into one vote per item and worker.

    Parameters
    ----------
    annotations : Annotations
        The crowd's labels.

    Returns
    -------
    WorkerLabels
        The distinct triples with their shares of votes.
    """
    columns = [column.astype(np.int64) for column in (annotations.item, annotations.worker, annotations.label)]
    item, worker, label = columns
    new_vote = np.ones(len(item), bool)
    new_vote[1:] = (item[1:] != item[:-1]) | (worker[1:] != worker[:-1])
    if new_vote.all():
        return WorkerLabels(item, worker, label, np.ones(len(item)), np.arange(len(item)))
    new_label = new_vote.copy()
    new_label[1:] |= label[1:] != label[:-1]
    vote = (np.cumsum(new_vote) - 1)[new_label]
    n_times = np.diff(np.append(np.flatnonzero(new_label), len(item)))
    share = n_times / np.bincount(vote, weights=n_times)[vote]
    return WorkerLabels(item[new_label], worker[new_label], label[new_label], share, vote)


def gather_votes(annotations: Annotations) -> tuple[Votes, npt.NDArray[np.bool_]]:
    """Collect the votes on the items that at least two workers labelled.

    Parameters
    ----------
    annotations : Annotations
        The crowd's labels.

    Returns
    -------
    votes : Votes
        One row for each of these items, in their order.
    pairable : ndarray of bool of shape (n_items,)
        Which items these are.
    """
    triples = gather_worker_labels(annotations)
    is_first = np.diff(triples.vote, prepend=-1) > 0
    n_workers = np.bincount(triples.item[is_first], minlength=annotations.n_items)
    pairable = n_workers >= 2
    kept = pairable[triples.item]
    row = (np.cumsum(pairable) - 1)[triples.item[kept]]
    label, share = triples.label[kept], triples.share[kept]
    cell, where = np.unique(row * annotations.n_classes + label, return_inverse=True)
    cell_row, cell_label = np.divmod(cell, max(annotations.n_classes, 1))
    split = np.flatnonzero(share < 1)
    votes = Votes(
        n_workers[pairable].astype(float),
        cell_row,
        cell_label,
        sums_by(where, share, len(cell)),
        row[split],
        triples.vote[kept][split],
        label[split],
        share[split],
        annotations.n_classes,
    )
    return votes, pairable


def find_patterns(votes: Votes) -> tuple[Votes, Positions]:
    """Merge rows with equal votes into patterns.

    A hundred thousand items labelled by five workers each have no more than 56 patterns with four classes, so a
    resample of items is drawn as a resample of patterns. The order of patterns depends on the votes alone, not on names
    or the order of items. Rows with split votes, which are rare, are not merged and keep the order of items.

    Parameters
    ----------
    votes : Votes
        One row per item.

    Returns
    -------
    patterns : Votes
        One row per pattern.
    count : ndarray of int of shape (n_patterns,)
        Number of items with each pattern.
    """
    is_split = np.zeros(votes.n_rows, bool)
    is_split[votes.split_row] = True
    pattern = _number_patterns(votes, is_split)
    chosen, count = np.unique(pattern, return_index=True, return_counts=True)[1:]
    is_chosen = np.zeros(votes.n_rows, bool)
    is_chosen[chosen] = True
    cells, split = is_chosen[votes.row], is_chosen[votes.split_row]
    one_each = Votes(
        votes.n_workers[chosen],
        pattern[votes.row[cells]],
        votes.label[cells],
        votes.weight[cells],
        pattern[votes.split_row[split]],
        votes.split_vote[split],
        votes.split_label[split],
        votes.split_share[split],
        votes.n_classes,
    )
    return one_each, count


def _number_patterns(votes: Votes, is_split: npt.NDArray[np.bool_]) -> Positions:
    """(n_rows,) equal numbers for equal rows: compared cell by cell, among rows that are equal so far."""
    n_cells = np.bincount(votes.row, minlength=votes.n_rows)
    start = np.cumsum(n_cells) - n_cells
    weights, which = np.unique(votes.weight, return_inverse=True)
    key, cell = np.unique(votes.label * len(weights) + which, return_inverse=True)
    number = np.where(is_split, np.cumsum(is_split), 0)
    n_numbers = votes.n_rows + 1
    order = np.argsort(n_cells, kind="stable")
    n_below = np.searchsorted(n_cells[order], np.arange(n_cells.max(initial=0)), side="right")
    for nth, first in enumerate(n_below):
        still = order[first:]  # rows that have an nth cell
        distinct, rank = np.unique(number[still] * len(key) + cell[start[still] + nth], return_inverse=True)
        number[still] = rank + n_numbers  # not used by rows that have no further cells
        n_numbers += len(distinct)
    return np.unique(number, return_inverse=True)[1]


def as_table(n_rows: int, *blocks: Block) -> Any:
    """Concatenate sparse blocks of columns, for `totals`.

    Parameters
    ----------
    n_rows : int
        Number of rows.
    *blocks : tuple of (row, column, value, n_columns)
        Sparse blocks.

    Returns
    -------
    csr_array of shape (n_columns, n_rows)
        The transposed matrix of all columns.
    """
    from scipy.sparse import csr_array

    offsets = np.cumsum([0, *(n_columns for *_, n_columns in blocks)])
    row, column, value = (np.concatenate([block[i] for block in blocks]) for i in range(3))
    column = column + np.repeat(offsets[:-1], [len(block[0]) for block in blocks])
    table = csr_array((value, (column, row)), shape=(int(offsets[-1]), n_rows))
    table.sort_indices()  # older scipy keeps the order of the cells, which depends on the items
    return table


def as_block(value: Array) -> Block:
    """Make a block of one dense column, for `as_table`.

    Parameters
    ----------
    value : ndarray of shape (n_rows,)
        One value per row.

    Returns
    -------
    tuple of (row, column, value, n_columns)
        The block.
    """
    return np.arange(len(value)), np.zeros(len(value), np.int64), value, 1


def totals(weights: Array, table: Any) -> Array:
    """Compute the weighted sum of each column for each resample.

    Parameters
    ----------
    weights : ndarray of shape (n_resamples, n_rows)
        Weight of each row in each resample.
    table : csr_array of shape (n_columns, n_rows)
        Result of `as_table`.

    Returns
    -------
    ndarray of shape (n_resamples, n_columns)
        The sums; computed without BLAS, and therefore equal on every machine.
    """
    return np.ascontiguousarray((table @ weights.T).T)  # later sums over columns then have one summation order
