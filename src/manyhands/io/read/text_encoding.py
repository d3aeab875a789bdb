"""Columns of text as integer codes, fast for long tables."""

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

_columns = compiled.load("_columns")
# Python draws it for each process, so that no file can be made whose texts all have the same hash.
_SEED = (hash("manyhands") | 1) % 2**64
_WORTH_A_THREAD = 100_000  # cells; shorter columns are encoded in one thread


class Coded(NamedTuple):
    """A column of text as codes.

    Attributes
    ----------
    codes : ndarray of int32, shape (n_rows,)
        Index into `values`; -1 where a cell is null.
    values : polars.Series of str
        The distinct texts, in the order of Python's `sorted`, or in that of their first appearance.
    """

    codes: Codes
    values: pl.Series


def code_text(column: pl.Series, by_appearance: bool = False) -> Coded:
    """Encode a column of text.

    Parameters
    ----------
    column : polars.Series of str
        The cells; any text, however long, and nulls.
    by_appearance : bool, default=False
        Whether texts are numbered in the order in which they first appear; otherwise they are sorted.

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
    coded = None if _columns is None else _code_in_table(column, by_appearance)
    return _code_as_enum(column, by_appearance) if coded is None else coded


def order_of_texts(values: pl.Series) -> npt.NDArray[np.intp]:
    """Return the order that sorts texts as Python's `sorted` does.

    Parameters
    ----------
    values : polars.Series of str
        Texts without nulls.

    Returns
    -------
    ndarray of int, of the same length
        Positions.

    Examples
    --------
    >>> order_of_texts(pl.Series(["b", "c", "a"])).tolist()
    [2, 0, 1]
    """
    order = np.empty(len(values), np.int32)
    if _columns is None or _columns.order_text(values.__arrow_c_stream__(), order) < 0:
        return values.arg_sort().to_numpy().astype(np.intp)
    return order.astype(np.intp)


def code_columns(columns: Mapping[str, pl.Series]) -> dict[str, Coded]:
    """Encode items, workers and labels in parallel threads: items by first appearance, the others sorted.

    Parameters
    ----------
    columns : mapping of str to polars.Series of str
        The columns by role; the one with the most work should come first.

    Returns
    -------
    dict of str to Coded
        The encoded columns.
    """
    if sum(map(len, columns.values())) < _WORTH_A_THREAD:
        return {role: code_text(column, role == "item") for role, column in columns.items()}
    with ThreadPoolExecutor(min(thread_count(), max(len(columns), 1))) as pool:
        return dict(zip(columns, pool.map(code_text, columns.values(), [role == "item" for role in columns])))


def _code_in_table(column: pl.Series, by_appearance: bool) -> Coded | None:
    """Encode by a hash table over the memory of the column; None if polars stores it in an unknown layout."""
    codes = np.empty(len(column), np.int32)
    first = np.empty(len(column), np.int64)  # only the written part takes memory, one entry per distinct text
    n_distinct = _columns.code_text(column.__arrow_c_stream__(), _SEED, codes, first)
    if n_distinct < 0:
        return None
    distinct = column.gather(first[:n_distinct].copy())
    del first
    if by_appearance:  # the table numbers texts in this order
        return Coded(codes, distinct)
    order = np.empty(n_distinct, np.int32)
    _columns.order_text(distinct.__arrow_c_stream__(), order)
    place = np.empty(n_distinct + 1, np.int32)
    place[0] = -1  # of null
    place[order + 1] = np.arange(n_distinct, dtype=np.int32)
    _columns.look_up(-1, codes, place, codes)
    return Coded(codes, distinct.gather(order))


def _code_as_enum(column: pl.Series, by_appearance: bool) -> Coded:
    """Encode by polars only: slower, with the same result."""
    given = column.drop_nulls()
    values = given.unique(maintain_order=True) if by_appearance else given.unique().sort()
    codes = column.cast(pl.Enum(values)).to_physical().cast(pl.Int32).fill_null(-1)
    return Coded(codes.to_numpy(writable=True), values)
