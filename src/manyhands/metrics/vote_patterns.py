"""What workers said of each item, sparse, and the few patterns that occur among items.

A worker has one voice per item. Who gave an item several labels splits it: a label said twice out of three times has
two thirds of it. Agreement is then counted between different workers only, and nobody agrees with himself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from manyhands.annotations import Annotations
from manyhands.em.kernels import sums_by
from manyhands.validation import check_annotations

Array = npt.NDArray[np.float64]
Positions = npt.NDArray[np.int64]
Block = tuple[Positions, Positions, Array, int]  # row, column, value, number of columns


@dataclass(frozen=True)
class WorkerLabels:
    """The distinct (item, worker, label), sorted, and which share of the worker's voice each has."""

    item: Positions
    worker: Positions
    label: Positions
    share: Array
    voice: Positions  # a number for every (item, worker)


@dataclass(frozen=True)
class Votes:
    """Rows of voices: items that at least two workers labelled, or patterns of such items.

    Everything is in cells (row, label); `split_*` are the cells of those voices that are split between labels.
    """

    n_workers: Array  # (n_rows,)
    row: Positions
    label: Positions
    weight: Array  # voices behind the label
    split_row: Positions
    split_voice: Positions
    split_label: Positions
    split_share: Array
    n_classes: int

    @property
    def n_rows(self) -> int:
        return len(self.n_workers)

    @property
    def contested(self) -> npt.NDArray[np.bool_]:
        """(n_rows,) where not all said the same; elsewhere disagreement is 0 without any rounding."""
        return np.bincount(self.row, minlength=self.n_rows) > 1

    def disagreement(self) -> Array:
        """(n_rows,) ordered pairs of different workers who differ, divided by n_workers - 1."""
        differ = self.n_workers**2 - sums_by(self.row, self.weight**2, self.n_rows)
        within = self.split_share * (1 - self.split_share)  # a split voice differs from itself, which is no pair
        differ -= sums_by(self.split_row, within, self.n_rows)
        return np.where(self.contested, differ / (self.n_workers - 1), 0.0)


def gather_worker_labels(annotations: Annotations) -> WorkerLabels:
    """One voice per item and worker."""
    if not isinstance(annotations, Annotations):
        check_annotations(annotations)
    columns = [column.astype(np.int64) for column in (annotations.item, annotations.worker, annotations.label)]
    item, worker, label = columns
    new_voice = np.ones(len(item), bool)
    new_voice[1:] = (item[1:] != item[:-1]) | (worker[1:] != worker[:-1])
    if new_voice.all():
        return WorkerLabels(item, worker, label, np.ones(len(item)), np.arange(len(item)))
    new_label = new_voice.copy()
    new_label[1:] |= label[1:] != label[:-1]
    voice = (np.cumsum(new_voice) - 1)[new_label]
    said = np.diff(np.append(np.flatnonzero(new_label), len(item)))
    share = said / np.bincount(voice, weights=said)[voice]
    return WorkerLabels(item[new_label], worker[new_label], label[new_label], share, voice)


def gather_votes(annotations: Annotations) -> tuple[Votes, npt.NDArray[np.bool_]]:
    """The votes on the items that at least two workers labelled, and (n_items,) which items those are."""
    voices = gather_worker_labels(annotations)
    is_first = np.diff(voices.voice, prepend=-1) > 0
    n_workers = np.bincount(voices.item[is_first], minlength=annotations.n_items)
    pairable = n_workers >= 2
    kept = pairable[voices.item]
    row = (np.cumsum(pairable) - 1)[voices.item[kept]]
    label, share = voices.label[kept], voices.share[kept]
    cell, where = np.unique(row * annotations.n_classes + label, return_inverse=True)
    cell_row, cell_label = np.divmod(cell, max(annotations.n_classes, 1))
    split = np.flatnonzero(share < 1)
    votes = Votes(
        n_workers[pairable].astype(float),
        cell_row,
        cell_label,
        sums_by(where, share, len(cell)),
        row[split],
        voices.voice[kept][split],
        label[split],
        share[split],
        annotations.n_classes,
    )
    return votes, pairable


def find_patterns(votes: Votes) -> tuple[Votes, Positions]:
    """One row for all rows that look the same, and how many rows those are.

    A hundred thousand items labelled by five workers each show no more than 56 patterns where there are four classes,
    so a resample of items is drawn as a resample of patterns. Their order follows from the votes alone, not from names
    or order of items. Rows with split voices, which are rare, stay on their own, in the order of items.
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
        votes.split_voice[split],
        votes.split_label[split],
        votes.split_share[split],
        votes.n_classes,
    )
    return one_each, count


def _number_patterns(votes: Votes, is_split: npt.NDArray[np.bool_]) -> Positions:
    """(n_rows,) equal numbers for equal rows: told apart cell by cell, among rows that were equal so far."""
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
        distinct, told = np.unique(number[still] * len(key) + cell[start[still] + nth], return_inverse=True)
        number[still] = told + n_numbers  # other numbers than those of the rows that are done
        n_numbers += len(distinct)
    return np.unique(number, return_inverse=True)[1]


def as_table(n_rows: int, *blocks: Block) -> Any:
    """Sparse blocks of (row, column, value, n_columns), side by side, made for `totals`."""
    from scipy.sparse import csr_array

    offsets = np.cumsum([0, *(n_columns for *_, n_columns in blocks)])
    row, column, value = (np.concatenate([block[i] for block in blocks]) for i in range(3))
    column = column + np.repeat(offsets[:-1], [len(block[0]) for block in blocks])
    table = csr_array((value, (column, row)), shape=(int(offsets[-1]), n_rows))
    table.sort_indices()  # older scipy keeps the order of the cells, which is that of the items
    return table


def as_block(value: Array) -> Block:
    """A column with one value per row."""
    return np.arange(len(value)), np.zeros(len(value), np.int64), value, 1


def totals(weights: Array, table: Any) -> Array:
    """(n_resamples, n_columns) the weighted sums of each column; no BLAS, so the same on every machine."""
    return np.ascontiguousarray((table @ weights.T).T)  # or sums over columns would depend on the number of resamples
