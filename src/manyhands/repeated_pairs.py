"""The search for repeated (item, worker) pairs, fast for long tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from manyhands.exceptions import AnnotationError, ParameterError
from manyhands.sorting import Codes

Rows = npt.NDArray[np.int64]

# Which label counts if a worker labelled an item several times.
DUPLICATES = ("last", "first", "all", "share", "error")

_CHUNK = 1 << 16  # keys compared at a time: few enough to stay in the cache


def check_policy(duplicates: str) -> None:
    """Refuse a rule that is not known.

    Parameters
    ----------
    duplicates : str
        One of `DUPLICATES`.

    Raises
    ------
    ParameterError
        Where it is another one.
    """
    if duplicates not in DUPLICATES:
        raise ParameterError(f"duplicates is {duplicates!r}; allowed are {', '.join(DUPLICATES)}.")


def has_repeats(item: Codes, worker: Codes) -> bool:
    """Return whether a pair occurs twice.

    Parameters
    ----------
    item : ndarray of shape (n,) of int32
        Item codes, ascending.
    worker : ndarray of shape (n,) of int32
        Worker codes, ascending within an item.

    Returns
    -------
    bool
    """
    for begin in range(0, len(item) - 1, _CHUNK):
        part = slice(begin, begin + _CHUNK + 1)
        same = worker[part][1:] == worker[part][:-1]
        if same.any() and bool((same & (item[part][1:] == item[part][:-1])).any()):
            return True
    return False


def drop_repeats(
    codes: Sequence[Codes], ids: Sequence[npt.NDArray[Any]], duplicates: str
) -> tuple[Sequence[Codes], str]:
    """Leave out labels on items that the same worker labelled more than once.

    Parameters
    ----------
    codes : sequence of three ndarrays of shape (n,) of int32
        Item, worker and label codes, in the order of the rows; some pair occurs twice.
    ids : sequence of three ndarrays
        The items, the workers and the classes.
    duplicates : {"last", "first", "error"}
        Which label of a pair counts.

    Returns
    -------
    codes : sequence of three ndarrays of int32
        The codes of the labels that count.
    note : str
        A sentence on the number of labels that were left out.

    Raises
    ------
    AnnotationError
        Where `duplicates` is "error".
    """
    item, worker, _ = codes
    keep = keep_one(item, worker, len(ids[1]), which="first" if duplicates == "error" else duplicates)
    n_left_out = len(keep) - int(np.count_nonzero(keep))
    if duplicates == "error":
        row = int(np.argmin(keep))
        who, what = ids[1][worker[row]], ids[0][item[row]]
        raise AnnotationError(
            f"Row {row}: worker {who!r} labels item {what!r} again; {n_left_out} such row(s). Remove them, or choose "
            f"with duplicates='last', 'first', 'share' or 'all'."
        )
    note = (
        f"{n_left_out} label(s) on items that the same worker labelled more than once were left out; the {duplicates} "
        f"of each counts. Choose otherwise with duplicates='all', 'first', 'last', 'share' or 'error'."
    )
    return [column[keep] for column in codes], note


def keep_one(
    item: Codes, worker: Codes, n_workers: int, order: Rows | None = None, which: str = "last"
) -> npt.NDArray[np.bool_]:
    """Select one row of each (item, worker) pair.

    Parameters
    ----------
    item : ndarray of int32, shape (n_rows,)
        Item codes.
    worker : ndarray of int32, shape (n_rows,)
        Worker codes, less than `n_workers`.
    n_workers : int
        Number of workers.
    order : ndarray of int64, shape (n_rows,), default=None
        All rows, oldest first; None if they are in this order.
    which : {"last", "first"}, default="last"
        Which row of each pair is kept.

    Returns
    -------
    ndarray of bool, shape (n_rows,)
        True for the rows to keep.

    Examples
    --------
    >>> keep_one(np.array([0, 1, 0], np.int32), np.array([5, 5, 5], np.int32), 6).tolist()
    [False, True, True]
    """
    keep = np.ones(len(item), bool)
    item_bits, worker_bits, age_bits = (
        max(int(largest), 0).bit_length() for largest in (item.max(initial=0), n_workers - 1, len(item) - 1)
    )
    if item_bits + worker_bits + age_bits > 63:
        keep[_repeats_of_wide(item, worker, order, which)] = False
        return keep
    key = _join(item, worker, order, worker_bits, age_bits)
    key.sort()  # brings the rows of a pair together, oldest first
    for begin in range(0, len(key) - 1, _CHUNK):
        part = key[begin : begin + _CHUNK + 1]
        again = np.flatnonzero((part[1:] ^ part[:-1]) < 1 << age_bits)
        if len(again):
            age = part[again if which == "last" else again + 1] & ((1 << age_bits) - 1)
            keep[age if order is None else order[age]] = False
    return keep


def _join(item: Codes, worker: Codes, order: Rows | None, worker_bits: int, age_bits: int) -> npt.NDArray[np.int64]:
    """Return item, worker and age of each row as one integer, in the order of age."""
    key = np.empty(len(item), np.int64)
    for begin in range(0, len(key), _CHUNK):
        part = slice(begin, begin + _CHUNK)
        rows = part if order is None else order[part]
        key[part] = item[rows]
        key[part] <<= worker_bits
        key[part] |= worker[rows]
        key[part] <<= age_bits
        key[part] |= np.arange(begin, begin + len(key[part]))
    return key


def _repeats_of_wide(item: Codes, worker: Codes, order: Rows | None, which: str) -> npt.NDArray[np.int64]:
    """Return the rows not to keep, if item, worker and age do not fit into one integer."""
    rows = np.arange(len(item)) if order is None else order
    rows = rows[np.lexsort((worker[rows], item[rows]))]  # stable: the oldest of a pair comes first
    again = (item[rows[1:]] == item[rows[:-1]]) & (worker[rows[1:]] == worker[rows[:-1]])
    return rows[:-1][again] if which == "last" else rows[1:][again]
