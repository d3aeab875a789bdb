"""Small CSV files into columns: whole numbers where all are, text otherwise.

The tables of `manyhands.io` guess what a stranger's file means; these files are known, so a header is looked up and
the rest is read at the speed of `numpy.loadtxt`.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from manyhands.exceptions import AnnotationError

Column = npt.NDArray[Any]  # int64, or Python text as objects

_WHOLE = re.compile(r"-?(0|[1-9][0-9]{0,17})")  # int() would also take the 42_0 of snow2008/temp


def read_columns(source: Path | bytes, wanted: Sequence[str | Sequence[str]], where: str) -> list[Column]:
    """The wanted columns of a CSV file with a header; a column may go by any of several names."""
    try:
        content = source if isinstance(source, bytes) else source.read_bytes()
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise AnnotationError(f"{where} is not text in UTF-8, so it is not the file it should be.") from None
    del content
    rows = csv.reader(io.StringIO(text, newline=""))
    header = next(rows, [])
    at = [_find(header, names, where) for names in wanted]
    if not text.partition("\n")[2].strip():
        return [np.zeros(0, np.int64) for _ in at]
    try:
        table = np.loadtxt(
            io.StringIO(text), np.int64, delimiter=",", skiprows=1, usecols=at, ndmin=2, comments=None, quotechar='"'
        )
        return list(table.T)
    except ValueError:  # some wanted column holds text
        return _read_text(rows, header, at, where)


def as_column(values: Sequence[str] | Column) -> Column:
    """Text as whole numbers where every entry is one; anything else stays text."""
    if isinstance(values, np.ndarray) and values.dtype.kind in "iu":
        return values.astype(np.int64)
    text = [str(value) for value in values]
    if all(map(_WHOLE.fullmatch, text)):
        return np.array([int(value) for value in text], np.int64)
    column = np.empty(len(text), object)
    column[:] = text
    return column


def _find(header: list[str], names: str | Sequence[str], where: str) -> int:
    names = (names,) if isinstance(names, str) else names
    for name in names:
        if name in header:
            return header.index(name)
    raise AnnotationError(f"{where} has no column {' or '.join(names)}; it has {', '.join(header) or 'nothing'}.")


def _read_text(rows: Any, header: list[str], at: list[int], where: str) -> list[Column]:
    found: list[list[str]] = [[] for _ in at]
    try:
        for row in filter(None, rows):
            if len(row) != len(header):
                raise AnnotationError(
                    f"Line {rows.line_num} of {where} has {len(row)} fields where the header has {len(header)}."
                )
            for column, position in zip(found, at):
                column.append(row[position])
    except csv.Error as error:
        raise AnnotationError(f"Line {rows.line_num} of {where} cannot be read: {error}.") from None
    return [as_column(column) for column in found]
