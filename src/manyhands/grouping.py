"""Grouping of annotations by item or worker: where each group begins, and the order of its annotations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from manyhands.sorting import Codes

_CHUNK = 1 << 20  # annotations processed together, so that large crowds need little extra memory


class Groups(NamedTuple):
    """Annotations grouped by item or worker: those of group g are at the positions `order[start[g]:start[g + 1]]`.

    Attributes
    ----------
    start : ndarray of shape (n_groups + 1,) of int64
        Where each group begins in `order`.
    order : ndarray of shape (n_annotations,) of int
        Positions of the annotations, group after group.
    """

    start: npt.NDArray[np.int64]
    order: npt.NDArray[np.intp]


def starts_of_sorted(codes: Codes, n_groups: int) -> npt.NDArray[np.int64]:
    """The same as `starts` for sorted codes, in chunks: `bincount` would copy all codes into 64 bits.

    Parameters
    ----------
    codes : ndarray of shape (n,) of int32
        Group of each annotation, ascending.
    n_groups : int
        Number of groups.

    Returns
    -------
    ndarray of shape (n_groups + 1,) of int64
    """
    size = np.zeros(n_groups + 1, np.int64)
    for first in range(0, len(codes), _CHUNK):
        part = codes[first : first + _CHUNK]
        low, high = int(part[0]), int(part[-1])
        size[low + 1 : high + 2] += np.bincount(part - low, minlength=high - low + 1)
    return np.cumsum(size, out=size)


def starts(codes: Codes, n_groups: int) -> npt.NDArray[np.int64]:
    """Where each group begins when the codes are sorted, and where the last one ends.

    Parameters
    ----------
    codes : ndarray of shape (n,) of int32
        Group of each annotation.
    n_groups : int
        Number of groups.

    Returns
    -------
    ndarray of shape (n_groups + 1,) of int64
    """
    start = np.zeros(n_groups + 1, np.int64)
    np.cumsum(np.bincount(codes, minlength=n_groups), out=start[1:])
    return start


def positions_of(start: npt.NDArray[np.int64], chosen: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Positions of the annotations of chosen groups, group after group.

    Parameters
    ----------
    start : ndarray of shape (n_groups + 1,) of int64
        Where each group begins.
    chosen : ndarray of int
        The groups, which may repeat.

    Returns
    -------
    group : ndarray of int
        For each annotation the position of its group in `chosen`.
    position : ndarray of int
        Its position among all annotations.
    """
    begin = start[chosen]
    size = start[chosen + 1] - begin
    group = np.repeat(np.arange(len(chosen)), size)
    return group, np.arange(len(group)) - np.repeat(np.cumsum(size) - size - begin, size)


def reorder_groups(
    start: npt.NDArray[np.int64], order: npt.NDArray[Any], columns: Sequence[Codes]
) -> tuple[Codes, ...]:
    """Put all groups into another order.

    Parameters
    ----------
    start : ndarray of shape (n_groups + 1,) of int64
        Where each group begins.
    order : ndarray of shape (n_groups,) of int
        The groups in the wanted order; each once.
    columns : sequence of ndarrays of shape (n,) of int32
        Values of the annotations, group after group.

    Returns
    -------
    tuple of ndarrays of shape (n,) of int32
        The new number of the group of each annotation, and the columns in the new order.
    """
    size = np.diff(start)[order]
    end = np.cumsum(size)
    n = int(start[-1])
    group, *moved = (np.empty(n, np.int32) for _ in range(len(columns) + 1))
    n_together = max(_CHUNK * len(order) // max(n, 1), 1)  # groups; in chunks, which need little extra memory
    for first in range(0, len(order), n_together):
        part = slice(first, min(first + n_together, len(order)))
        begin, last = (int(end[first - 1]) if first else 0), int(end[part.stop - 1])
        group[begin:last] = np.repeat(np.arange(part.start, part.stop, dtype=np.int32), size[part])
        position = np.arange(begin, last) + np.repeat(start[order[part]] - (end[part] - size[part]), size[part])
        for new, old in zip(moved, columns):
            np.take(old, position, out=new[begin:last], mode="clip")  # "raise" would copy first
    return group, *moved


def unlabelled_pairs(
    start: npt.NDArray[np.int64], item: Codes, worker: Codes, n_workers: int, block_size: int
) -> Iterator[tuple[Codes, Codes]]:
    """Iterate over the (item, worker) pairs without a label, in blocks of items.

    Parameters
    ----------
    start : ndarray of shape (n_items + 1,) of int64
        Where the annotations of each item begin.
    item : ndarray of shape (n_annotations,) of int32
        Item codes, ascending.
    worker : ndarray of shape (n_annotations,) of int32
        Worker codes.
    n_workers : int
        Number of workers.
    block_size : int
        Number of items per block.

    Yields
    ------
    item : ndarray of int32
        Item codes of the pairs.
    worker : ndarray of int32
        Worker codes of the pairs.
    """
    n_items = len(start) - 1
    for first in range(0, n_items, block_size):
        last = min(first + block_size, n_items)
        is_open = np.ones((last - first, n_workers), bool)
        begin, end = start[[first, last]]
        is_open[item[begin:end] - first, worker[begin:end]] = False
        open_item, open_worker = np.nonzero(is_open)
        yield (open_item + first).astype(np.int32), open_worker.astype(np.int32)
