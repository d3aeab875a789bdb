"""CSV files whose columns are known by name, as NumPy arrays: integers where all cells are, text otherwise.

The readers of exports recognise what the columns of an unknown file mean. The files of published data sets
(`manyhands.datasets`) are known, so their columns are looked up by name. The file itself is parsed by the same reader
(`text_tables`), with the same checks and error messages.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from manyhands.exceptions import AnnotationError
from manyhands.io.messages import listed
from manyhands.io.read.sources import Source
from manyhands.io.read.text import as_utf8
from manyhands.io.read.text_tables import find_short_row, read_text_table

Column = npt.NDArray[Any]  # int64, or Python text as objects

_INTEGER = r"-?(0|[1-9][0-9]{0,17})"  # int() would also accept the 42_0 of snow2008/temp


def read_columns(source: Source, wanted: Sequence[str | Sequence[str]]) -> list[Column]:
    """Read columns of a CSV file that has a header.

    Parameters
    ----------
    source : Source
        The file, in UTF-8.
    wanted : sequence of str or of sequences of str
        Names of the columns; a column that may have one of several names is given as a sequence of them.

    Returns
    -------
    list of ndarray of shape (n_rows,)
        The columns in the order of `wanted`; each is int64 where all its cells are integers, otherwise an array of
        Python strings. Blank lines are skipped.

    Raises
    ------
    AnnotationError
        If the file is not a table in UTF-8, lacks a column, or has a row with fewer cells than the header.
    """
    text = as_utf8(source)
    frame, header, *_ = read_text_table(text)
    places = [_find(header, names, source.name) for names in wanted]
    blank = frame.select(pl.all_horizontal(pl.all().is_null())).to_series()
    rows = frame if not blank.any() else frame.filter(~blank)
    columns = [rows.to_series(at) for at in places]
    if any(column.null_count() for column in columns):
        _refuse_short_row(text, len(header))
    return [_as_numpy(column) for column in columns]


def _find(header: Sequence[str], names: str | Sequence[str], where: str) -> int:
    """Return the position of the first of these names that the header has."""
    names = (names,) if isinstance(names, str) else names
    for name in names:
        if name in header:
            return header.index(name)
    raise AnnotationError(f"{where} has no column {' or '.join(names)}. It has: {listed(header)}.")


def _refuse_short_row(source: Source, n_columns: int) -> None:
    """Refuse a file in which a row has fewer cells than the header; empty cells are allowed."""
    found = find_short_row(source, n_columns)
    if found is not None:
        line, n_cells = found
        raise AnnotationError(
            f"{source.name}, line {line}: {n_cells} cell(s) where the header names {n_columns} columns. "
            "Copy the file again."
        )


def _as_numpy(column: pl.Series) -> Column:
    """Return a column of text as int64, if all cells are integers, otherwise as Python strings."""
    column = column.fill_null("")
    if column.str.contains(f"^(?:{_INTEGER})$").all():
        return column.cast(pl.Int64).to_numpy(writable=True)
    texts = np.empty(len(column), object)
    texts[:] = column.to_list()
    return texts
