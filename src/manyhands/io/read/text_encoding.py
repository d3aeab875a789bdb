"""Columns of text as integer codes, and the search for repeated (item, worker) pairs: both fast for long tables."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from manyhands import compiled
from manyhands.em.kernels import thread_count

Codes = npt.NDArray[np.int32]
Rows = npt.NDArray[np.int64]

_columns = compiled.load("_columns")
# Python draws it for each process, so that no file can be made whose texts all have the same hash.
_SEED = (hash("manyhands") | 1) % 2**64
_CHUNK = 1 << 16  # keys compared at a time: few enough to stay in the cache
_WORTH_A_THREAD = 100_000  # cells; shorter columns are encoded in one thread


class Coded(NamedTuple):
    """A column of text as codes.

    Attributes
    ----------
    codes : ndarray of int32, shape (n_rows,)
        Index into `values`; -1 where a cell is null.
    values : polars.Series of str
        The distinct texts, in the order of Python's `sorted`.
    """

    codes: Codes
    values: pl.Series


def code_text(column: pl.Series) -> Coded:
    """Encode a column of text.

    Parameters
    ----------
    column : polars.Series of str
        The cells; any text, however long, and nulls.

    Returns
    -------
    Coded
        Codes and distinct values.

    Examples
    --------
    >>> codes, values = code_text(pl.Series(["b", None, "a", "b"]))
    >>> codes.tolist(), values.to_list()
    ([1, -1, 0, 1], ['a', 'b'])
    """
    coded = None if _columns is None else _code_in_table(column)
    return _code_as_enum(column) if coded is None else coded


def code_columns(columns: Mapping[str, pl.Series]) -> dict[str, Coded]:
    """Encode several columns in parallel threads.

    Parameters
    ----------
    columns : mapping of str to polars.Series of str
        The columns; the one with the most work should come first.

    Returns
    -------
    dict of str to Coded
        The encoded columns.
    """
    if sum(map(len, columns.values())) < _WORTH_A_THREAD:
        return {name: code_text(column) for name, column in columns.items()}
    with ThreadPoolExecutor(min(thread_count(), max(len(columns), 1))) as pool:
        return dict(zip(columns, pool.map(code_text, columns.values())))


def _code_in_table(column: pl.Series) -> Coded | None:
    """Encode by a hash table over the memory of the column; None if polars stores it in an unknown layout."""
    codes = np.empty(len(column), np.int32)
    first = np.empty(len(column), np.int64)  # only the written part takes memory, one entry per distinct text
    n_distinct = _columns.code_text(column.__arrow_c_stream__(), _SEED, codes, first)
    if n_distinct < 0:
        return None
    distinct = column.gather(first[:n_distinct].copy())
    del first
    order = np.empty(n_distinct, np.int32)
    _columns.order_text(distinct.__arrow_c_stream__(), order)
    place = np.empty(n_distinct + 1, np.int32)
    place[0] = -1  # of null
    place[order + 1] = np.arange(n_distinct, dtype=np.int32)
    _columns.look_up(-1, codes, place, codes)
    return Coded(codes, distinct.gather(order))


def _code_as_enum(column: pl.Series) -> Coded:
    """Encode by polars only: slower, with the same result."""
    values = column.drop_nulls().unique().sort()
    codes = column.cast(pl.Enum(values)).to_physical().cast(pl.Int32).fill_null(-1)
    return Coded(codes.to_numpy(writable=True), values)


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
