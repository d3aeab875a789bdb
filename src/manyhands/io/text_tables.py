"""Tables of text: cells separated by commas, semicolons or tabs, under a line that names the columns."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import polars as pl

from manyhands.exceptions import AnnotationError
from manyhands.io.names import listed
from manyhands.io.sources import Source
from manyhands.io.text import not_utf8

_SEPARATORS = {".csv": ",;\t", ".tsv": "\t,;"}  # the first that splits the header is taken
_LONGEST_CELL = 10 << 20  # letters


def read_text_table(source: Source) -> tuple[pl.DataFrame, list[str]]:
    """The whole file, every cell as text, and the names of its columns as they stand in it.

    A name that comes twice is kept twice: polars would give it a number, which the user has never seen.
    """
    separators = _SEPARATORS.get(source.suffix, "\t,;")
    separator, header = separators[0], None
    try:
        separator, header = _read_header(source, separators)
        frame = pl.read_csv(_for_polars(source), separator=separator, infer_schema=False, glob=False)
    except pl.exceptions.NoDataError:
        raise AnnotationError(f"{source.name} is empty. The first line must name the columns.") from None
    except pl.exceptions.DuplicateError:
        names = [name for name, count in Counter(header).items() if count > 1]
        said = f"{source.name} has several columns called {listed(names)}. Rename all but one."
        raise AnnotationError(said) from None
    except (pl.exceptions.PolarsError, UnicodeDecodeError) as error:
        raise AnnotationError(_explain(source, separator, error)) from None
    return frame, header if header and len(header) == frame.width else frame.columns


def _for_polars(source: Source) -> Path | bytes:
    """The path, which polars maps into memory; the content where there is no path or its name is not text."""
    if source.held is None and source.path is not None and source.name.isprintable():
        return source.path
    return source.read()


def _read_header(source: Source, separators: str) -> tuple[str, list[str] | None]:
    """The first separator that splits the header, and the names in it; None where they are beyond reading."""
    for separator in separators:
        try:
            header = next((row for _, row in _rows(source, separator)), [])
        except csv.Error:
            break
        if len(header) > 1:
            return separator, header
    return separators[0], None


def _rows(source: Source, separator: str, *, strict: bool = False) -> Iterator[tuple[int, list[str]]]:
    """Every row that is not an empty line, with the number of the line on which it begins."""
    raw = source.path.open("rb") if source.held is None and source.path is not None else io.BytesIO(source.read())
    before = csv.field_size_limit(_LONGEST_CELL)
    try:
        with io.TextIOWrapper(raw, newline="", encoding="utf-8") as file:
            rows, line = csv.reader(file, delimiter=separator, strict=strict), 1
            for row in rows:
                if row:
                    yield line, row
                line = rows.line_num + 1
    finally:
        csv.field_size_limit(before)


def _explain(source: Source, separator: str, error: Exception) -> str:
    """Why a file could not be read, with the line where one can be named."""
    wrong_text = not_utf8(source)
    if wrong_text is not None:
        return wrong_text
    begun = 1
    try:
        rows = _rows(source, separator, strict=True)
        width = len(next(rows, (1, []))[1])
        for line, row in rows:
            begun = line
            if len(row) > width:
                return (
                    f"{source.name}, line {line}: {len(row)} cells where the header names {width} columns. "
                    f"Put cells that contain {separator!r} or line breaks in double quotes."
                )
    except csv.Error as broken:
        return f"{source.name}, after line {begun}: cannot be read as a table: {broken}. Check the quotes."
    # Quoted cells are taken whole; what then still runs into a quote is a bare cell with a quote in it.
    text = source.read().decode()
    for match in re.finditer(rf'"(?:[^"]|"")*"|[^{separator}"\n]+("?)', text):
        if match[1]:
            line = text.count("\n", 0, match.start()) + 1
            return (
                f"{source.name}, line {line}: a double quote within a cell. "
                "Write it twice, and the cell in double quotes."
            )
    return f"{source.name} cannot be read as a table: {str(error).splitlines()[0]}."
