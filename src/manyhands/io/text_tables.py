"""Text tables: cells separated by commas, semicolons or tabs, below a line that names the columns.

The file: `read_text_table` and its error messages; titles above the header; text encodings.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import NamedTuple

import polars as pl

from manyhands.exceptions import AnnotationError, ParameterError
from manyhands.io.messages import listed, shorten
from manyhands.io.sources import Source

_SEPARATORS = {".csv": ",;\t|", ".tsv": "\t,;|"}  # the first that splits the header is used
_ANNOUNCED = re.compile(rb'"?sep=([,;\t|])"?\r?\n')  # first line by which a file names its separator to Excel
_WORDS = 3  # words of a sentence
_MAX_CELL = 10 << 20  # characters, as of one object in JSON lines
_MAX_KEPT = 64 << 20  # bytes of a file that is not on disk, kept so that a line can be found later
Locate = Callable[[int], str | None]  # number of a row -> its line in the file, for error messages


class _TextTable(NamedTuple):
    """A text table."""

    frame: pl.DataFrame  # the cells; null where a cell is empty
    # names of the columns as in the file; a name that occurs twice is there twice (polars would number it)
    header: list[str]
    locate: Locate | None  # maps the number of a row to its line, for error messages
    notes: dict[str, str]  # warnings: code -> sentence


def read_text_table(source: Source, again: Source | None = None) -> _TextTable:
    """Read a whole text table, every cell as text."""
    separators = _separators(source)
    separator, header, line = separators[0], None, 1
    try:
        separator, header, line = _read_header(source, separators)
        skipped = line - 1 if line > 1 else 1 if _ANNOUNCED.match(source.head) else 0
        frame = pl.read_csv(source.read(), separator=separator, infer_schema=False, glob=False, skip_lines=skipped)
    except pl.exceptions.NoDataError:
        raise AnnotationError(f"{source.name} is empty. The first line must name the columns.") from None
    except (pl.exceptions.PolarsError, UnicodeDecodeError) as error:
        names = [name for name, count in Counter(header).items() if count > 1]
        # polars renames a repeated column; where that name is taken too, polars 1 says nothing of repeated names
        if names and (isinstance(error, pl.exceptions.DuplicateError) or f"{names[0]}_duplicated_0" in (header or [])):
            message = f"{source.name} has several columns called {listed(names)}. Rename all but one."
            raise AnnotationError(message) from None
        raise AnnotationError(_explain(source, separator, error)) from None
    names = header if header and len(header) == frame.width else frame.columns
    locate = _lines(again or source, separator, len(frame), line)
    _refuse_two_separators(source.name, frame, separator, locate)
    notes = (title_note(line, names) if line > 1 else {}) | _footer_note(frame)
    return _TextTable(frame, names, locate, notes)


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
    """Return the lines of a text table down to the one that names the columns, with its line end."""
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
    """Find the first row that has fewer cells than the header; polars fills such rows with nulls."""
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


# ----------------------------------------------------------------------------------------------------
# Lines above the header of a table: a title, a date, blank lines, as people write them in spreadsheets.

LOOKED_AT = 20  # rows at the top of a table that are searched for the header; titles are shorter
_FEWEST = 3  # cells of a row of a table: item, worker, label


def count_title_rows(rows: Sequence[Sequence[str | None]]) -> int:
    """Return how many rows at the top of a table are a title rather than the names of columns.

    Rows with at most one cell are a title if a row below has three cells or more.

    Examples
    --------
    >>> count_title_rows([["Votes of May", None, None], ["item", "worker", "label"], ["1", "ann", "yes"]])
    1
    >>> count_title_rows([["item", "worker", "label"], ["1", "", ""]])
    0
    """
    filled = [sum(bool(cell and cell.strip()) for cell in row) for row in rows]
    header = next((at for at, count in enumerate(filled) if count > 1), None)
    return header if header and filled[header] >= _FEWEST else 0


def title_note(line: int, header: Sequence[str]) -> dict[str, str]:
    """Return the note on a header that is not in the first line."""
    names = ", ".join(name for name in header[:5] if name)
    return {
        "header_line": f"The names of the columns were taken from line {line} ({names}); lines above it are a title."
    }


# ----------------------------------------------------------------------------------------------------
# Text encodings: bytes of a file as UTF-8, with error messages that name the line.

ENCODING_ADVICE = ', or name its encoding, such as `encoding="cp1252"`'  # the end of a sentence
_MARKS = {  # the longer ones first: one of them begins like a shorter one
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}


def as_utf8(source: Source, encoding: str | None = None) -> Source:
    r"""Return a file in memory, in UTF-8 without a byte order mark.

    UTF-16 and UTF-32 are recognised by their byte order mark, UTF-16 also by a zero in every other byte. Whether the
    rest is valid UTF-8 is left to the parser, so that large files are scanned once. Line ends of old Macs (``\r``) are
    replaced.
    """
    source = source.loaded()
    head = source.head
    if encoding is None:
        encoding = next((name for mark, name in _MARKS.items() if head.startswith(mark)), None) or _alternating(head)
    if encoding is not None:
        source = replace(source, content=_decode(source, encoding))
    elif head.startswith(codecs.BOM_UTF8):
        source = replace(source, content=source.read()[len(codecs.BOM_UTF8) :])
    content = source.read()
    at = content.find(b"\0")
    if at >= 0:
        line = content.count(b"\n", 0, at) + 1
        raise AnnotationError(
            f"{source.name}, line {line}: a NUL byte, which text never has. Export the file again, or name its "
            'encoding, such as `encoding="utf-16-le"`.'
        )
    head = source.head
    if b"\r" in head and b"\n" not in content:
        source = replace(source, content=content.replace(b"\r", b"\n"))
    return source


def utf8_error(source: Source) -> str | None:
    """Return the error message for a file that is not UTF-8."""
    content = source.read()
    try:
        content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        begin = max(content.rfind(b"\n", 0, error.start) + 1, error.start - 20)
        near = content[begin : error.start + 20].split(b"\n")[0].decode("cp1252", "replace").strip()
        return (
            f"{source.name}, line {line}: byte {error.start} is not UTF-8 text (as Windows text it reads {near!r}). "
            f"Save the file as UTF-8{ENCODING_ADVICE}."
        )
    return None


def _alternating(head: bytes) -> str | None:
    """Return the kind of UTF-16 in which every other byte of Latin letters is zero, or None."""
    sample = head[:200]
    if len(sample) < 4 or any(sample[0::2]) == any(sample[1::2]):
        return None
    return "utf-16-le" if any(sample[0::2]) else "utf-16-be"


def _decode(source: Source, encoding: str) -> bytes:
    """Return the content in UTF-8, decoded from another encoding."""
    content = source.read()
    try:
        return content.decode(encoding).removeprefix("\ufeff").encode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise AnnotationError(
            f"{source.name}, line {line}: byte {error.start} is not {encoding} ({error.reason}). "
            "Name another encoding with `encoding=`."
        ) from None
    except UnicodeError:
        raise AnnotationError(
            f"{source.name} is not {encoding} text. Name another encoding with `encoding=`."
        ) from None
    except (LookupError, ValueError):
        raise ParameterError(f"There is no encoding called {encoding!r}. Common ones: utf-8, utf-16, cp1252.") from None
