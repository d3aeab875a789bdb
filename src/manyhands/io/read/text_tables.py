"""Text tables: cells separated by commas, semicolons or tabs, below a line that names the columns."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice
from typing import NamedTuple

import polars as pl

from manyhands.exceptions import AnnotationError
from manyhands.io.messages import listed, shorten
from manyhands.io.read.sources import Source
from manyhands.io.read.text import utf8_error
from manyhands.io.read.title_lines import LOOKED_AT, count_title_rows, title_note

_SEPARATORS = {".csv": ",;\t|", ".tsv": "\t,;|"}  # the first that splits the header is used
_ANNOUNCED = re.compile(rb'"?sep=([,;\t|])"?\r?\n')  # first line by which a file names its separator to Excel
_FEWEST = 3  # columns of a table whose rows are checked for another separator
_WORDS = 3  # words of a sentence
_MAX_CELL = 10 << 20  # characters
_MAX_KEPT = 64 << 20  # bytes of a file that is not on disk, kept so that a line can be found later

Locate = Callable[[int], str | None]  # number of a row -> its line in the file, for error messages


class TextTable(NamedTuple):
    """A text table.

    Attributes
    ----------
    frame : polars.DataFrame
        The cells; null where a cell is empty.
    header : list of str
        Names of the columns as in the file; a name that occurs twice is there twice (polars would number it).
    locate : callable or None
        Maps the number of a row to its line, for error messages.
    notes : dict of str to str
        Warnings: code -> sentence.
    """

    frame: pl.DataFrame
    header: list[str]
    locate: Locate | None
    notes: dict[str, str]


def read_text_table(source: Source, again: Source | None = None) -> TextTable:
    """Read a whole text table, every cell as text.

    Parameters
    ----------
    source : Source
        The file, in UTF-8.
    again : Source or None, default=None
        The same text where it need not be kept in memory, to find a line in it later.

    Returns
    -------
    TextTable
        The cells, the names of the columns, how to find a line, and notes.

    Raises
    ------
    AnnotationError
        If the file is empty, not UTF-8, or not a table; the message names the line where possible.
    """
    separators = _separators(source)
    separator, header, line = separators[0], None, 1
    try:
        separator, header, line = _read_header(source, separators)
        skipped = line - 1 if line > 1 else 1 if _ANNOUNCED.match(source.head) else 0
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
    locate = _lines(again or source, separator, len(frame), line)
    _refuse_two_separators(source.name, frame, separator, locate)
    notes = (title_note(line, names) if line > 1 else {}) | _footer_note(frame)
    return TextTable(frame, names, locate, notes)


def _footer_note(frame: pl.DataFrame) -> dict[str, str]:
    """Return the note on a last line that has one cell with a sentence: it would count as an item."""
    last = [cell for cell in frame.row(-1)] if len(frame) and frame.width >= _FEWEST else []
    if not last or not last[0] or any(last[1:]) or len(last[0].split()) < _WORDS:
        return {}
    return {"footer": f"The last line has one cell only ({shorten(last[0])!r}); remove it if it is not an item."}


def _refuse_two_separators(name: str, frame: pl.DataFrame, separator: str, locate: Locate | None) -> None:
    """Refuse a row whose cells are separated otherwise than those of the header: it would be one long cell."""
    if frame.width < _FEWEST or not len(frame):
        return
    first, *others = frame.get_columns()
    alone = first.is_not_null()
    for column in others:
        alone = alone & column.is_null()
    if not alone.any():
        return
    for other in _SEPARATORS[".csv"].replace(separator, ""):
        wrong = alone & (first.str.count_matches(other, literal=True) == frame.width - 1).fill_null(False)
        if wrong.any():
            row = int(wrong.arg_true()[0])
            place = (locate(row) if locate else None) or f"row {row + 1} after the header"
            raise AnnotationError(
                f"{name}, {place}: cells are separated by {other!r}, but by {separator!r} in the header; "
                f"{int(wrong.sum())} such row(s). Use one separator."
            )


def _lines(source: Source, separator: str, n_rows: int, header_line: int) -> Locate | None:
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
        above = [non_blank for line, non_blank in lines[: max(begun, 0)] if line >= header_line]
        as_expected = above and above[-1] and not any(above[:-1])  # the header, preceded by blank lines only
        return f"line {lines[begun + row][0]}" if as_expected and row < n_rows else None

    return locate


def _separators(source: Source) -> str:
    """Return the characters that may separate cells, the likeliest first; Excel's ``sep=`` line names the one."""
    announced = _ANNOUNCED.match(source.head)
    return announced[1].decode() if announced else _SEPARATORS.get(source.suffix, "\t,;|")


def _read_header(source: Source, separators: str) -> tuple[str, list[str] | None, int]:
    """Return the first separator that splits the header, the names in it, and its line if a title is above, else 1.

    The names are None if they cannot be read.
    """
    below_title = None
    for separator in separators:
        begins: list[tuple[int, list[str]]] = []
        try:
            begins.extend(islice(_rows(source, separator), LOOKED_AT))  # keeps the rows before a broken one
        except csv.Error:
            if not begins:
                break
        title = count_title_rows([row for _, row in begins])
        if not title and begins and len(begins[0][1]) > 1:
            return separator, begins[0][1], 1
        if title and below_title is None:
            below_title = (separator, begins[title][1], begins[title][0])
    return below_title or (separators[0], None, 1)


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


def header_lines(source: Source) -> bytes:
    """Return the lines of a text table down to the one that names the columns, with its line end.

    Parameters
    ----------
    source : Source
        The file, or its beginning, in UTF-8.

    Returns
    -------
    bytes
        The first bytes of the file; all of them where no row follows.
    """
    separator, _, line = _read_header(source, _separators(source))
    content, n_lines = source.read(), 0
    try:
        rows = _rows(source, separator, blank=True)
        next((begin for begin, cells in rows if begin >= line and cells), None)
        n_lines = next(rows, (0, []))[0] - 1  # lines above the row after the header
    except csv.Error:
        n_lines = line
    if n_lines < 0:
        return content
    end = 0
    for _ in range(n_lines):
        end = content.find(b"\n", end) + 1
    return content[:end]


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
    separator, *_ = _read_header(source, _separators(source))
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
            if len(row) > width and not any(cell.strip() for cell in row[width:]):
                return (
                    f"{source.name}, line {line}: ends with an extra {separator!r}: {len(row)} cells where the header "
                    f"names {width} columns. Remove it, or end the header with {separator!r} too."
                )
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
