"""The rows of a range of items as codes: sorted by item and worker, one label for each pair."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from manyhands.io.stream.joined_texts import code_texts, order_texts, take_texts
from manyhands.io.stream.spill import SpilledRows
from manyhands.sharded.code_ids import TextIds

_KEY_BITS = 63


class PackedRows(NamedTuple):
    """Labels of some items in the order of the layout.

    Attributes
    ----------
    ids : TextIds
        The items.
    n_labels : ndarray of shape (n_items,) of int64
        Labels of each item; 0 where all of its rows were left out.
    worker, label : ndarray of shape (n_labels,) of int64
        Worker and label (as it was numbered in the file) of each label that is kept, item after item.
    item : ndarray of shape (n_labels,) of int64
        Number of the item of each label.
    n_repeats : int
        Labels that were left out because a later one of the worker on the item counts.
    n_dropped : int
        Labels of classes that are left out.
    """

    ids: TextIds
    n_labels: npt.NDArray[np.int64]
    worker: npt.NDArray[np.int64]
    label: npt.NDArray[np.int64]
    item: npt.NDArray[np.int64]
    n_repeats: int
    n_dropped: int


@dataclass(frozen=True)
class Numbering:
    """What the numbers that workers and labels got in the file become.

    Attributes
    ----------
    worker : ndarray of shape (n_workers,) of int64
        Code of each worker.
    n_workers : int
        Number of workers.
    dropped : ndarray of shape (n_labels,) of bool
        Labels that are left out, by their number in the file.
    """

    worker: npt.NDArray[np.int64]
    n_workers: int
    dropped: npt.NDArray[np.bool_]


def pack_rows(rows: SpilledRows, numbering: Numbering) -> PackedRows:
    """Sort rows by item and worker; of several labels of a worker on an item, the last counts.

    Labels are left out as typing errors after that, as where a file is read whole: an earlier label does not come
    back in place of one that is left out.

    Parameters
    ----------
    rows : SpilledRows
        All rows of some items.
    numbering : Numbering
        Codes of workers, and labels that are left out.

    Returns
    -------
    PackedRows
    """
    codes, first = code_texts(rows.texts)
    ids = take_texts(rows.texts, first)
    order = order_texts(ids, rows.hashes[first])
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    given = np.flatnonzero(rows.label >= 0)
    if rows.time is not None:
        given = given[np.argsort(rows.time[given], kind="stable")]
    key = rank[codes[rows.item[given]]] * numbering.n_workers + numbering.worker[rows.worker[given]]
    key, sequence = _sorted_pairs(key, len(order) * max(numbering.n_workers, 1))
    is_last = np.ones(len(key), bool)
    np.not_equal(key[1:], key[:-1], out=is_last[:-1])
    key, label = key[is_last], rows.label[given[sequence[is_last]]]
    n_repeats = len(given) - len(key)
    kept = ~numbering.dropped[label]
    key, label, n_dropped = key[kept], label[kept], int(len(label) - kept.sum())
    item, worker = np.divmod(key, max(numbering.n_workers, 1))
    n_labels = np.bincount(item, minlength=len(order))
    return PackedRows(take_texts(ids, order), n_labels, worker, label, item, n_repeats, n_dropped)


def _sorted_pairs(key: npt.NDArray[np.int64], limit: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return keys below `limit` in order, and where each was; equal keys stay in the order in which they came."""
    bits = max(len(key) - 1, 1).bit_length()
    if limit.bit_length() + bits > _KEY_BITS:
        order = np.argsort(key, kind="stable")
        return key[order], order
    both = np.sort(key << bits | np.arange(len(key)))  # faster than a stable sort of positions
    return both >> bits, both & ((1 << bits) - 1)
