"""Text tables: cells separated by commas, semicolons or tabs, below a line that names the columns."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Callable, Iterator

import polars as pl

from manyhands.exceptions import AnnotationError
from manyhands.io.messages import listed
from manyhands.io.read.sources import Source
from manyhands.io.read.text import utf8_error

_SEPARATORS = {".csv": ",;\t", ".tsv": "\t,;"}  # the first that splits the header is used
_ANNOUNCED = re.compile(rb'"?sep=([,;\t|])"?\r?\n')  # first line by which a file names its separator to Excel
_MAX_CELL = 10 << 20  # characters
_MAX_KEPT = 64 << 20  # bytes of a file that is not on disk, kept so that a line can be found later

Locate = Callable[[int], str | None]  # number of a row -> its line in the file, for error messages


def read_text_table(source: Source, again: Source | None = None) -> tuple[pl.DataFrame, list[str], Locate | None]:
    """Read a whole text table, every cell as text.

    Parameters
    ----------
    source : Source
        The file, in UTF-8.
    again : Source or None, default=None
        The same text where it need not be kept in memory, to find a line in it later.

    Returns
    -------
    frame : polars.DataFrame
        The cells; null where a cell is empty.
    header : list of str
        Names of the columns as in the file; a name that occurs twice is there twice (polars would number it).
    locate : callable or None
        Maps the number of a row to its line, for error messages.

    Raises
    ------
    AnnotationError
        If the file is empty, not UTF-8, or not a table; the message names the line where possible.
    """
    separators = _separators(source)
    separator, header = separators[0], None
    try:
        separator, header = _read_header(source, separators)
        skipped = 1 if _ANNOUNCED.match(source.head) else 0
        frame = pl.read_csv(source.read(), separator=separator, infer_schema=False, glob=False, skip_lines=skipped)
    except pl.exceptions.NoDataError:
        raise AnnotationError(f"{source.name} is empty. The first line must name the columns.") from None
    except pl.exceptions.DuplicateError:
        names = [name for name, count in Counter(header).items() if count > 1]
        message = f"{source.name} has several columns called {listed(names)}. Rename all but one."
        raise AnnotationError(message) from None
    except (pl.exceptions.PolarsError, UnicodeDecodeError) as error:
        raise AnnotationError(_explain(source, separator, error)) from None
    names = header if header and len(header) == frame.width else frame.columns
    return frame, names, _lines(again or source, separator, len(frame))


def _lines(source: Source, separator: str, n_rows: int) -> Locate | None:
    """Return a function that finds the line of a row by reading the file again, for error messages only."""
    on_disk = source.path is not None and source.content is None
    if not on_disk and source.size > _MAX_KEPT:
        return None

    def locate(row: int) -> str | None:
        try:
            lines = [(line, bool(cells)) for line, cells in _rows(source, separator, blank=True)]
        except (OSError, ValueError, csv.Error):
            return None
        begun = len(lines) - n_rows
        above = [non_blank for _, non_blank in lines[: max(begun, 0)]]
        as_expected = above and above[-1] and not any(above[:-1])  # the header, preceded by blank lines only
        return f"line {lines[begun + row][0]}" if as_expected and row < n_rows else None

    return locate


def _separators(source: Source) -> str:
    """Return the characters that may separate cells, the likeliest first; Excel's ``sep=`` line names the one."""
    announced = _ANNOUNCED.match(source.head)
    return announced[1].decode() if announced else _SEPARATORS.get(source.suffix, "\t,;")


def _read_header(source: Source, separators: str) -> tuple[str, list[str] | None]:
    """Return the first separator that splits the header, and the names in it; None if they cannot be read."""
    for separator in separators:
        try:
            header = next((row for _, row in _rows(source, separator)), [])
        except csv.Error:
            break
        if len(header) > 1:
            return separator, header
    return separators[0], None


def _rows(
    source: Source, separator: str, *, strict: bool = False, blank: bool = False
) -> Iterator[tuple[int, list[str]]]:
    """Yield every row with the number of the line on which it begins; empty lines only if asked for."""
    before = csv.field_size_limit(_MAX_CELL)
    try:
        with source.opened() as raw:
            file = io.TextIOWrapper(raw, newline="", encoding="utf-8")
            before_rows = 1 if _ANNOUNCED.match(source.head) else 0
            for _ in range(before_rows):
                file.readline()
            rows, line = csv.reader(file, delimiter=separator, strict=strict), before_rows + 1
            for row in rows:
                if row or blank:
                    yield line, row
                line = before_rows + rows.line_num + 1
            file.detach()  # the file is closed by the code that opened it
    finally:
        csv.field_size_limit(before)


def find_short_row(source: Source, n_columns: int) -> tuple[int, int] | None:
    """Find the first row that has fewer cells than the header; polars fills such rows with nulls.

    Parameters
    ----------
    source : Source
        The file, in UTF-8.
    n_columns : int
        Number of columns that the header names.

    Returns
    -------
    (line, n_cells) : tuple of int, or None
        The number of the line, from 1, and the number of its cells; None if all rows are complete.
    """
    separator, _ = _read_header(source, _separators(source))
    return next(((line, len(row)) for line, row in _rows(source, separator) if len(row) < n_columns), None)


def _explain(source: Source, separator: str, error: Exception) -> str:
    """Return why a file could not be read, with the line if it can be found."""
    wrong_text = utf8_error(source)
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
    # Quoted cells are matched as a whole; a quote after other characters is then within an unquoted cell.
    text = source.read().decode()
    for match in re.finditer(rf'"(?:[^"]|"")*"|[^{separator}"\n]+("?)', text):
        if match[1]:
            line = text.count("\n", 0, match.start()) + 1
            return (
                f"{source.name}, line {line}: a double quote within a cell. "
                "Write it twice, and the cell in double quotes."
            )
    return f"{source.name} cannot be read as a table: {str(error).splitlines()[0]}."
