"""Step 2 of reading: the content of a file as a table, JSON records, words, or a folder of files.

Nothing here depends on the annotation tool that wrote the file. Text tables are parsed in `text_tables`, Parquet in
`parquet_limits`. The file: the kinds of documents and `open_document`; JSON; JSON with long numbers; workbooks; data
frames; NumPy's files.
"""

from __future__ import annotations

import gc
import json
import re
import tokenize
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from decimal import Decimal
from math import isinf
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt
import orjson
import polars as pl

from manyhands._core.encoding import UNPAIRED_SURROGATE, unpaired_surrogate
from manyhands._core.system import check_memory
from manyhands.exceptions import AnnotationError, LimitError, ManyhandsError
from manyhands.frames import as_known_frame, is_frame
from manyhands.io.messages import listed, shorten
from manyhands.io.parquet_limits import read_parquet
from manyhands.io.sources import MAX_BYTES, PARQUET, ZIP, Source, check_zip, open_path, open_zip, unpack_member
from manyhands.io.text_tables import (
    LOOKED_AT,
    Locate,
    as_utf8,
    count_title_rows,
    read_text_table,
    title_note,
    utf8_error,
)

FRAME = "the data frame"  # name of a table that no file holds
TABLE_SUFFIXES = (".csv", ".tsv")
_TEXT_SUFFIXES = (".csv", ".tsv", ".txt", ".json", ".jsonl", ".ndjson", ".manifest", "")
_PACKED_SUFFIXES = (".xlsx", ".parquet", ".zip", ".gz")  # recognised by their first bytes
_WEB_PAGE = (b"<!doctype html", b"<html")
READABLE = ".csv, .tsv, .txt, .json, .jsonl, .ndjson, .parquet and .xlsx files, gzipped or in a folder or zip"


@dataclass(frozen=True)
class Table:
    """Rows with named columns; every cell is text, or null where it is empty.

    Attributes
    ----------
    name : str
        Name of the file.
    frame : polars.DataFrame
        The cells.
    header : list of str
        Names of the columns as in the file; polars renames those that occur twice.
    locate : callable or None
        Maps the number of a row to its line in the file, for error messages.
    typed : polars.DataFrame or None
        The same columns with the types of a Parquet file or data frame; None if the file has text only.
    notes : dict of str to str
        Warnings about the file: code -> sentence.
    """

    name: str
    frame: pl.DataFrame
    header: list[str]
    locate: Locate | None = field(default=None, compare=False)
    typed: pl.DataFrame | None = field(default=None, compare=False)
    notes: dict[str, str] = field(default_factory=dict, compare=False)

    def column(self, at: int) -> pl.Series:
        """Return the column at a position."""
        return self.frame.to_series(at)

    def original(self, at: int) -> pl.Series:
        """Return the column at a position with the type that it has in the file."""
        return self.column(at) if self.typed is None else self.typed.to_series(at)

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.frame)

    def place(self, row: int) -> str:
        """Return the file and the line of a row, for error messages; the file is read again to find the line."""
        line = None if self.locate is None else self.locate(row)
        return f"{self.name}, {line or f'row {row + 1} after the header'}"

    def blank_lines(self) -> pl.Series:
        """Return the rows in which every cell is empty or white space, as a Boolean series."""
        return self.frame.select(pl.all_horizontal((pl.all().str.strip_chars() == "").fill_null(True))).to_series()


@dataclass(frozen=True)
class Records:
    """Content of a JSON file; JSON lines are the list of their values."""

    name: str  # name of the file
    value: Any  # the parsed value, usually a list of objects or one object
    notes: dict[str, str] = field(default_factory=dict)  # warnings about the file: code -> sentence

    @property
    def objects(self) -> list[dict[str, Any]]:
        """The value, if it is a list of objects; otherwise an empty list."""
        if isinstance(self.value, list) and all(isinstance(entry, dict) for entry in self.value):
            return self.value
        return []

    @property
    def first(self) -> dict[str, Any]:
        """The first object of the list, by which a format is recognised; empty where there is none."""
        begins = isinstance(self.value, list) and self.value and isinstance(self.value[0], dict)
        return self.value[0] if begins else {}


@dataclass(frozen=True)
class Words:
    """Lines of words separated by white space, without a header."""

    name: str  # name of the file
    rows: list[list[str]]  # the words of each line that is not blank


@dataclass(frozen=True)
class Folder:
    """Files of a folder or a zip."""

    name: str  # path of the folder or archive
    members: Mapping[str, Source]  # the files by their path within it


Document = Table | Records | Words | Folder


def open_document(path: Any, encoding: str | None = None) -> Document:
    """Open a path, or take a data frame as the table that it is."""
    if is_frame(path):
        known = as_known_frame(path)
        frame, header = frame_as_text(known)
        return Table(FRAME, frame, header, typed=_typed(known, frame))
    opened = open_path(path)
    return parse(opened, encoding) if isinstance(opened, Source) else Folder(str(path), opened)


def parse(source: Source, encoding: str | None = None) -> Document:
    """Parse one file, recognised by its content first and by its name second."""
    if not source.size:
        raise AnnotationError(f"{source.name} is empty. Export it again; the first line must name the columns.")
    if source.head.startswith(PARQUET):
        return _parquet_table(source)
    if source.head.startswith(ZIP):
        frame, header, notes = read_workbook(source)
        return Table(source.name, frame, header, _sheet_rows(source), notes=notes)
    if source.suffix in _PACKED_SUFFIXES:
        raise AnnotationError(f"{source.name} has a wrong name: its content is not that of a {source.suffix} file.")
    if source.suffix not in _TEXT_SUFFIXES:
        raise AnnotationError(f"{source.name} ends in {source.suffix!r}. manyhands reads {READABLE}.")
    loaded = source.loaded()
    text = as_utf8(loaded, encoding)
    if text.head.lstrip()[:15].lower().startswith(_WEB_PAGE):
        raise AnnotationError(f"{source.name} is a web page, perhaps one to sign in. Download the export again.")
    if source.suffix not in TABLE_SUFFIXES and looks_like_json(text):
        return Records(source.name, *parse_json(text))
    if source.suffix not in TABLE_SUFFIXES and not _has_separators(text):
        return Words(source.name, _word_rows(text))
    frame, header, locate, notes = read_text_table(text, again=source if text is loaded else None)
    return Table(source.name, frame, header, locate, notes=notes)


def _has_separators(source: Source) -> bool:
    """Whether the first line has cells rather than words; blank lines are skipped."""
    line = source.head.lstrip().split(b"\n", 1)[0]
    return any(separator in line for separator in (b"\t", b",", b";", b"|"))


def _word_rows(source: Source) -> list[list[str]]:
    """Return the words of each line."""
    wrong = utf8_error(source)
    if wrong is not None:
        raise AnnotationError(wrong)
    rows = [line.split() for line in source.read().decode().split("\n") if line.strip()]
    if not rows:
        raise AnnotationError(f"{source.name} holds nothing but white space. Export it again.")
    return rows


def _sheet_rows(source: Source) -> Locate:
    """Return a function that finds the row of a sheet: blank rows above the header are not read, but counted."""

    def locate(row: int) -> str | None:
        import fastexcel

        try:
            book = fastexcel.read_excel(source.read())
            sheet = book.load_sheet(0, header_row=None, dtypes="string", skip_rows=0, n_rows=_MAX_ABOVE).to_polars()
        except (fastexcel.FastExcelError, AnnotationError):
            return None
        non_blank = sheet.select(pl.any_horizontal(pl.all().is_not_null())).to_series()
        begun = int(non_blank.arg_max() or 0)
        title = count_title_rows(sheet[begun : begun + LOOKED_AT].rows())
        return f"row {begun + title + row + 2} of the sheet" if non_blank.any() else None

    return locate


_MAX_ABOVE = 10_000  # rows of a sheet in which the header is searched


def _parquet_table(source: Source) -> Table:
    """Read a Parquet file as a table of text."""
    frame = read_parquet(source)
    return Table(source.name, *frame_as_text(frame), typed=frame)


def _typed(frame: Any, text: pl.DataFrame) -> pl.DataFrame | None:
    """Return a frame of polars as it is, and one of pandas with its numbers as numbers; None for all others."""
    if isinstance(frame, pl.DataFrame) or not hasattr(frame, "iloc"):
        return frame if isinstance(frame, pl.DataFrame) else None
    numbers = [getattr(frame.iloc[:, at].dtype, "kind", "") in "biuf" for at in range(len(frame.columns))]
    columns = [
        pl.Series(name, frame.iloc[:, at].to_numpy(), nan_to_null=True) if numbers[at] else text[name]
        for at, name in enumerate(text.columns)
    ]
    return pl.DataFrame(columns)


# ----------------------------------------------------------------------------------------------------
# JSON and JSON lines, within limits: orjson refuses NaN, infinities and more than 1024 nested levels.

_MAX_LINE = 10 << 20  # bytes of one object in JSON lines: far more than a long document
_LINES_SUFFIXES = (".jsonl", ".ndjson", ".manifest")
_CHECK_KEYS = 4 << 20  # bytes; larger files are not searched for repeated keys, which takes longer than parsing them


def looks_like_json(source: Source) -> bool:
    """Whether a file is JSON, by its suffix or its first character."""
    return source.suffix in (".json", *_LINES_SUFFIXES) or source.head.lstrip()[:1] in (b"[", b"{")


def parse_json(source: Source) -> tuple[Any, dict[str, str]]:
    """Parse a JSON file, or a file of JSON lines."""
    if source.size > MAX_BYTES:
        raise LimitError(f"{source.name} has {source.size:,} bytes; at most {MAX_BYTES:,} of JSON are read at once.")
    content = source.read()
    with _garbage_collection_paused():
        if source.suffix not in _LINES_SUFFIXES:
            try:
                return loads(content), _notes([content])
            except orjson.JSONDecodeError as error:
                if not _first_line_is_whole(content):
                    raise AnnotationError(_explain_json(source, error)) from None
        return list(_parse_lines(source, content)), _notes(content.split(b"\n"))


def as_text(value: Any) -> str | None:
    """Return a JSON value as the text of a cell."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return float.__repr__(value)  # the repr of NumPy's floats contains their type
    try:
        if isinstance(value, int):
            return int.__repr__(value)
        return orjson.dumps(value, default=str, option=orjson.OPT_NON_STR_KEYS).decode()
    except (TypeError, ValueError) as error:
        if isinstance(value, int):
            raise AnnotationError("A whole number has more digits than Python writes. Give it as text.") from None
        if "64-bit" in str(error):  # Python's own writer has no such limit
            with suppress(TypeError, ValueError, RecursionError):
                return json.dumps(value, default=str, ensure_ascii=False, separators=(",", ":"))
        raise AnnotationError(f"A list or object within the data cannot be written as JSON: {error}.") from None


def _notes(documents: list[bytes]) -> dict[str, str]:
    """Return a note on the keys that occur twice in one object, of which the last value counts."""
    twice: set[str] = set()

    def look(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        entry = dict(pairs)
        if len(entry) < len(pairs):
            twice.update(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        return entry

    if sum(map(len, documents)) <= _CHECK_KEYS:
        for document in filter(bytes.strip, documents):
            with suppress(RecursionError):  # Python's own reader gives up a little earlier than orjson
                json.loads(document, object_pairs_hook=look, parse_int=str, parse_float=str)
    message = f"Some objects have a key twice ({listed(sorted(twice))}); the last value of each was taken."
    return {"repeated_keys": message} if twice else {}


def _parse_lines(source: Source, content: bytes) -> Iterator[Any]:
    """Yield the value of each line."""
    # Searching for long numbers is faster in all lines together than in each of them.
    read = loads if _find_inexact(content) else orjson.loads
    for number, line in enumerate(content.split(b"\n"), start=1):
        if len(line) > _MAX_LINE:
            raise LimitError(f"{source.name}, line {number}: {len(line):,} bytes; at most {_MAX_LINE:,} are read.")
        if not line.strip():
            continue
        try:
            yield read(line)
        except orjson.JSONDecodeError as error:
            raise AnnotationError(_explain_json(source, error, number)) from None


def _first_line_is_whole(content: bytes) -> bool:
    """Whether the first line is a JSON object by itself: JSON lines with another suffix."""
    first, _, rest = content.lstrip().partition(b"\n")
    try:
        return isinstance(loads(first), dict) and bool(rest.strip())
    except orjson.JSONDecodeError:
        return False


def _explain_json(source: Source, error: orjson.JSONDecodeError, line: int | None = None) -> str:
    """Return the error message for JSON that cannot be parsed."""
    where = f"{source.name}, line {error.lineno if line is None else line}"
    if any(sign in error.msg for sign in ("depth", "recursion", "memory")):
        return f"{source.name} is nested more than 1024 levels deep, as no export is: not read."
    if "UTF-8" in error.msg or "surrogate" in error.msg.lower():
        return utf8_error(source) or f"{where}: an unpaired surrogate, which is not text. Export the file again."
    token = re.match(r"-?(NaN|Infinity)", error.doc[error.pos : error.pos + 9])
    if token:
        return f"{where}: {token[0]} is not JSON. Write null where there is no number."
    return f"{where}, column {error.colno}: not JSON ({error.msg}). Was the export cut off? Export it again."


@contextmanager
def _garbage_collection_paused() -> Iterator[None]:
    """Pause the garbage collector: millions of new objects, none of them garbage, would double the time.

    Afterwards they are moved to the oldest generation, which is searched rarely; otherwise the next search would visit
    all of them.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            if not gc.get_freeze_count():  # no objects that other code has frozen would be unfrozen
                gc.freeze()
                gc.unfreeze()
            gc.enable()


# ----------------------------------------------------------------------------------------------------
# JSON whose numbers keep their identity: numbers that 64 bits cannot represent are read as text, digit by digit.
#
# orjson reads an integer beyond 64 bits as the nearest float, so that different ids become equal, and refuses a number
# beyond the range of floats. Such numbers are searched with NumPy, one piece of the document at a time. Only if there
# are some is the document copied with quotes around them, and the copy is parsed.

_PIECE = 1 << 20  # bytes searched at a time; about ten arrays of this size are allocated
_SMALL = 1 << 12  # bytes; below that a regular expression is faster than arrays
_REACH = 24  # bytes beyond a piece that are searched with it
_RUN = 16  # digits; every number with fewer digits has a float of its own
_MAY_BE_LONG = re.compile(rb"[0-9.]{16}|[0-9][eE][+-]?[0-9]{3}")
_NUMBER = re.compile(rb"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_BEFORE, _AFTER = b" \t\r\n:,[", b" \t\r\n,]}"
_QUOTE, _POINT, _MINUS = b'".-'
_Spans = list[tuple[int, int]]


def loads(content: bytes | str) -> Any:
    """Parse a JSON document.

    Examples
    --------
    >>> loads(b"[12345678901234567890123, 0.1, 1e400]")
    ['12345678901234567890123', 0.1, '1e400']
    """
    if isinstance(content, str):
        if content.isascii() and not _MAY_BE_LONG.search(content.encode()):
            return orjson.loads(content)
        content = content.encode("utf-8", "surrogatepass")  # orjson refuses surrogates like other invalid bytes
    spans = _find_inexact(content)
    if not spans:
        return orjson.loads(content)
    orjson.loads(rewritten(content, spans, quoted=False))  # checks that a number is allowed in each of these places
    return orjson.loads(rewritten(content, spans))


def _find_inexact(content: bytes) -> _Spans:
    """Find the numbers that orjson would not read exactly."""
    if len(content) <= _SMALL and not _MAY_BE_LONG.search(content):
        return []
    spans = [span for at in _candidates(content) if (span := _number_at(content, at)) is not None]
    return _outside_texts(content, spans) if spans else []


def rewritten(content: bytes, spans: _Spans, *, quoted: bool = True) -> bytes:
    """Return the document with quotes around some numbers, or with zeros of the same length in their places."""
    parts, end = [], 0
    for begin, after in spans:
        number = b'"%b"' % content[begin:after] if quoted else b"0.".ljust(after - begin, b"0")
        parts += [content[end:begin], number]
        end = after
    return b"".join([*parts, content[end:]])


def _candidates(content: bytes) -> Iterator[int]:
    """Yield where long runs of digits, and digits before a large exponent, begin; some of them are in strings."""
    codes = np.frombuffer(content, np.uint8)
    for first in range(0, len(codes), _PIECE):
        begin = max(first - 1, 0)  # a run begins where the byte before is none of its kind
        piece = codes[begin : first + _PIECE + _REACH]
        in_run = piece - np.uint8(_POINT) < 12  # digits, the point, and the slash, which no number has
        starts = _long_runs(in_run)
        after_digit = np.flatnonzero(in_run[:-1] & (piece[1:] | 32 == ord("e"))) + 1
        places = [begin + at for at in starts.tolist()]
        places += [_begin_of_digits(content, begin + at) for at in after_digit.tolist()]
        yield from sorted({at for at in places if first <= at < first + _PIECE})


def _long_runs(in_run: Any) -> Any:
    """Return where runs of at least `_RUN` true values begin."""
    together = in_run
    for step in (1, 2, 4, 8):
        together = together[:-step] & together[step:]
    if not together.any():
        return np.zeros(0, np.intp)
    together[1:] &= ~in_run[: len(together) - 1]
    return np.flatnonzero(together)


def _begin_of_digits(content: bytes, at: int) -> int:
    """Return where the digits before an exponent begin; -1 if the exponent is small, or the run is a long one."""
    window = content[max(at - _RUN, 0) : at]
    digits = re.search(rb"[0-9.]+$", window)
    if digits is None or not re.match(rb"[eE][+-]?[0-9]{3}", content[at : at + 5]):
        return -1
    return at - len(digits[0]) if len(digits[0]) < _RUN else -1


def _number_at(content: bytes, at: int) -> tuple[int, int] | None:
    """Return the span of the number whose first digit is at `at`, unless a float represents it exactly."""
    begin = at - 1 if at and content[at - 1] == _MINUS else at
    number = _NUMBER.match(content, begin)
    if number is None or (begin and content[begin - 1] not in _BEFORE):
        return None
    end = number.end()
    ends = end == len(content) or content[end] in _AFTER
    return (begin, end) if ends and not _is_exact(number[0]) else None


def _is_exact(number: bytes) -> bool:
    """Whether orjson reads this number exactly."""
    text = number.decode()
    if text.lstrip("-").isdigit():
        return len(text) <= 20 and -(2**63) <= int(text) < 2**64
    value = float(text)
    if isinf(value):
        return False
    if value == 0:
        return not re.search("[1-9]", re.split("[eE]", text)[0])
    return repr(value) == text or Decimal(repr(value)) == Decimal(text)


def _outside_texts(content: bytes, spans: Sequence[tuple[int, int]]) -> _Spans:
    """Return the spans that are not within a string: an even number of quotes comes before them."""
    plain = content.replace(rb"\\", b"..").replace(rb"\"", b"..") if b"\\" in content else content
    codes, begins = np.frombuffer(plain, np.uint8), np.array([begin for begin, _ in spans])
    n_quotes = np.zeros(len(spans), np.int64)
    before = 0
    for first in range(0, len(codes), _PIECE):
        quotes = first + np.flatnonzero(codes[first : first + _PIECE] == _QUOTE)
        low, high = np.searchsorted(begins, (first, first + _PIECE))
        n_quotes[low:high] = before + np.searchsorted(quotes, begins[low:high])
        before += len(quotes)
    return [span for span, count in zip(spans, n_quotes.tolist()) if count % 2 == 0]


# ----------------------------------------------------------------------------------------------------
# XLSX workbooks: the first sheet, every cell as text.

_MAX_DIGITS = 300  # of a number within the range of floats
# Of the rectangle of a sheet: a full column of 1,048,576 rows times 26 columns is a little more. All cells are kept in
# memory, empty or not.
_MAX_CELLS = 26_000_000
_DECLARATION = re.compile(rb"<\0?!\0?(?:D\0?O\0?C\0?T|E\0?N\0?T\0?I)")  # in UTF-8 or UTF-16
_FAR = re.compile(rb"""r\s*=\s*["']\s*(?:[A-Za-z]{2,}[0-9]|[A-Za-z]?[0-9]{7})""")  # beyond column Z or row 999,999
_PLACE = re.compile(rb"""r\s*=\s*["']\s*([A-Za-z]*)([0-9]+)""")  # reference of a cell or a row
_LONG = re.compile(rb"<(?:\w+:)?v(?:\s[^>]*)?>\s*(-?[0-9]{16,})\s*</")  # a long integer in a cell
_CELL = re.compile(rb"<(?:\w+:)?c(\s[^>]*)?>")
_TYPE = re.compile(rb"""\st\s*=\s*["'](?!n["'])""")  # type of a cell that is not a number
_NO_RESULT = re.compile(rb"</f>\s*(?:<v\s*/>|<v>\s*</v>)?\s*</c>")  # a formula that was never computed
_UNFINISHED = 1 << 10  # bytes at the end of a piece that are searched again with the next one


def read_workbook(source: Source) -> tuple[pl.DataFrame, list[str], dict[str, str]]:
    """Read the first sheet of a workbook.

    Integers are read as Excel shows them, ``7`` rather than ``7.0``; leading zeros are kept in cells that are text.
    """
    source = source.loaded()
    with open_zip(source) as archive:
        check_zip(archive, source.name, source.budget)
        unfinished = [_check_member(archive, entry, source.name) for entry in archive.infolist()]
    cells, others = _first_sheet(source)
    if not len(cells):
        raise AnnotationError(f"{source.name}: the first sheet is empty. Its first row must name the columns.")
    cells = cells.cast(pl.String)
    title = count_title_rows(cells[:LOOKED_AT].rows())
    header = ["" if name is None else str(name) for name in cells.row(title)]
    notes = title_note(title + 1, header) if title else {}
    if any(unfinished):
        notes["formulas_without_results"] = (
            "Some cells are formulas without a result, and were read as empty. Open the workbook in a spreadsheet "
            "program and save it again."
        )
    if others:
        notes["other_sheets"] = f"Only the first sheet was read; not read: {listed(others)}. Save them as CSV."
    return cells[title + 1 :], header, notes


def _first_sheet(source: Source) -> tuple[pl.DataFrame, list[str]]:
    """Read the first sheet with fastexcel, and return the names of the others."""
    import fastexcel

    try:
        book = fastexcel.read_excel(source.read())
        sheet = book.load_sheet(0, header_row=None, dtypes="string", skip_whitespace_tail_rows=True)
        return sheet.to_polars(), list(book.sheet_names[1:])
    except fastexcel.FastExcelError as error:
        cause = str(error).splitlines()[0]
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # a panic of the Rust library on an unexpected file
            raise
        cause = str(error).splitlines()[0]
    raise AnnotationError(f"{source.name} cannot be read as an XLSX workbook: {cause[:200]}. Save it again.")


def _check_member(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, name: str) -> bool:
    """Refuse XML with declarations, which no spreadsheet writes, and sheets that would fill the memory.

    Return whether a sheet has formulas without results.
    """
    rest, reaches_far, unfinished = b"", False, False
    for piece in unpack_member(archive, entry, name):
        piece_with_rest = rest + piece
        if _DECLARATION.search(piece_with_rest) and entry.filename.endswith((".xml", ".rels")):
            raise AnnotationError(f"{name}: {entry.filename} declares XML entities: not read. Save it again.")
        if entry.filename.startswith("xl/worksheets/"):
            _refuse_long_numbers(piece_with_rest, name)
            unfinished = unfinished or _NO_RESULT.search(piece_with_rest) is not None
        reaches_far = reaches_far or _FAR.search(piece_with_rest) is not None
        rest = piece_with_rest[-_UNFINISHED:]
    if reaches_far:  # a few cells far apart are enough, so the size of the sheet is computed
        _check_cells(archive, entry, name)
    return unfinished


def _refuse_long_numbers(xml: bytes, name: str) -> None:
    """Refuse integers in number cells that no float represents: different ids would be read as one."""
    for match in _LONG.finditer(xml):
        digits = match[1].decode()[:_MAX_DIGITS]
        cells = _CELL.findall(xml, max(match.start() - _UNFINISHED, 0), match.start())
        if cells and not _TYPE.search(cells[-1]) and int(float(digits)) != int(digits):
            raise AnnotationError(
                f"{name}: a cell holds the number {shorten(digits)}, of which a spreadsheet keeps 15 digits. "
                "Write such ids as text, or export CSV from the program that has all digits."
            )


def _check_cells(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, name: str) -> None:
    """Refuse a sheet with more than `_MAX_CELLS` cells."""
    rest, rows, columns = b"", 0, 1
    for piece in unpack_member(archive, entry, name):
        piece_with_rest = rest + piece
        for letters, digits in _PLACE.findall(piece_with_rest):
            rows = max(rows, int(digits[:19]))
            columns = max(columns, _column_number(letters))
        rest = piece_with_rest[-_UNFINISHED:]
    if rows * columns > _MAX_CELLS:
        raise LimitError(
            f"{name}: a sheet of {rows:,} rows and {columns:,} columns; at most {_MAX_CELLS:,} cells are read. "
            "Save it as CSV."
        )


def _column_number(letters: bytes) -> int:
    """Return the number of a column: 1 for A, 27 for AA."""
    number = 0
    for letter in letters.upper()[:9]:
        number = 26 * number + letter - 64
    return number


# ----------------------------------------------------------------------------------------------------
# Data frames of polars, pandas and Arrow, and Parquet tables, with every cell as text.


def frame_as_text(frame: Any) -> tuple[pl.DataFrame, list[str]]:
    """Return a data frame with every column as text."""
    frame = as_known_frame(frame)
    if isinstance(frame, pl.DataFrame):
        header = frame.columns
        columns = [_column_as_text(frame.to_series(at), header[at]) for at in range(frame.width)]
    else:
        header = [str(name) for name in frame.columns]
        invalid = unpaired_surrogate(header)
        if invalid is not None:
            raise AnnotationError(f"One column is called {invalid!r}, {UNPAIRED_SURROGATE}")
        columns = [_pandas_as_text(frame.iloc[:, at], header[at]) for at in range(len(header))]
    return pl.DataFrame({str(at): column for at, column in enumerate(columns)}), header


def _column_as_text(column: pl.Series, name: str) -> pl.Series:
    """Return a polars column as text."""
    if column.dtype == pl.String:
        return column
    if column.dtype.is_float() and _are_whole(column):
        return column.fill_nan(None).cast(pl.Int64).cast(pl.String)
    by_value = column.dtype == pl.Object or column.dtype == pl.Duration
    if by_value or column.dtype.is_nested() or column.dtype.is_float():
        return _values_as_text(column, name)
    if column.dtype == pl.Binary:
        raise AnnotationError(f"Column {shorten(name)!r} holds bytes, not text. Decode it first.")
    return column.cast(pl.String)


def _pandas_as_text(column: Any, name: str) -> pl.Series:
    """Return a pandas column as text."""
    if getattr(column.dtype, "kind", "") != "f":
        return _values_as_text(column, name)
    numbers = pl.Series(column.to_numpy(dtype=np.float64, na_value=np.nan))
    return _column_as_text(numbers, name) if _are_whole(numbers) else _values_as_text(column, name)


def _are_whole(column: pl.Series) -> bool:
    """Whether floats are integers that a missing value turned into floats: 1.0 then means 1."""
    numbers = column.cast(pl.Float64).fill_nan(None).drop_nulls()
    return bool(((numbers == numbers.round()) & (numbers.abs() < _EXACT)).all())


_EXACT = 2.0**53  # beyond it not every integer has a float of its own


def _values_as_text(column: Any, name: str) -> pl.Series:
    """Convert value by value: a frame may mix numbers and text, and pandas has several kinds of missing values."""
    try:
        return pl.Series([_cell(value) for value in column.to_list()], dtype=pl.String)
    except UnicodeEncodeError:
        raise AnnotationError(f"Column {shorten(name)!r} holds an unpaired surrogate, which is not text.") from None


def _cell(value: Any) -> str | None:
    """Return one value as text, or None where it is missing."""
    if isinstance(value, np.ndarray | np.generic | pl.Series):
        value = value.tolist() if not isinstance(value, pl.Series) else value.to_list()
    if isinstance(value, str):
        return str.__str__(value)  # of a member of an enumeration its value, not its name
    if isinstance(value, list | dict | tuple):
        return as_text(value)
    if isinstance(value, bytes):
        raise AnnotationError("A cell holds bytes, not text. Decode it first.")
    try:
        if value is None or bool(value != value):
            return None
    except (TypeError, ValueError):  # comparing pandas' NA with itself has no truth value
        return None
    return as_text(value) if isinstance(value, bool | int | float) else str(value)


# ----------------------------------------------------------------------------------------------------
# NumPy's files (.npy and .npz), read without pickles and within the memory of the machine.
#
# Both the features of items (`manyhands.io.features`) and the arrays of published data (`manyhands.datasets`) are read
# here. Arrays of Python objects would be unpickled, which may run code, so they are refused.

ENDINGS = (".npy", ".npz")
Arrays = dict[str, npt.NDArray[Any]]
_REMEDY = "Split the file into parts."
_BROKEN: tuple[type[Exception], ...] = (ValueError, OSError, EOFError, KeyError, TypeError, SyntaxError, RuntimeError)
_BROKEN += (zipfile.BadZipFile, zlib.error, tokenize.TokenError, ArithmeticError, AttributeError, IndexError)


def read_npy(path: Path) -> npt.NDArray[Any]:
    """Read the array of an .npy file."""
    with _numpy_errors(path), _opened(path) as (source, file):
        check_memory(source.size, f"The array of {path}", _REMEDY)
        array: npt.NDArray[Any] = np.load(file, allow_pickle=False)
        return array


@contextmanager
def open_npz(path: Path, wanted: Sequence[str] | None = None) -> Iterator[tuple[BinaryIO, Any]]:
    """Open an .npz file; errors within the block are turned into those of `_numpy_errors`."""
    with _numpy_errors(path), _opened(path) as (_, file):
        with zipfile.ZipFile(file) as archive:
            sizes = {entry.filename.removesuffix(".npy"): entry.file_size for entry in archive.infolist()}
        n_bytes = sum(size for name, size in sizes.items() if wanted is None or name in wanted)
        check_memory(n_bytes, f"The arrays of {path}", _REMEDY)
        file.seek(0)
        with np.load(file, allow_pickle=False) as arrays:
            yield file, arrays


def read_arrays(path: Path, needed: Sequence[str], optional: Sequence[str] = ()) -> Arrays:
    """Read some arrays of an .npz file."""
    with open_npz(path, (*needed, *optional)) as (_, arrays):
        missing = [name for name in needed if name not in arrays.files]
        if missing:
            raise AnnotationError(f"{path} is not complete: it has no array {' and no '.join(missing)}. Copy it again.")
        return {name: arrays[name] for name in (*needed, *optional) if name in arrays.files}


@contextmanager
def _numpy_errors(path: Path) -> Iterator[None]:
    """Turn what NumPy and zipfile raise within the block into one-sentence errors of manyhands."""
    try:
        yield
    except (ManyhandsError, FileNotFoundError, PermissionError, IsADirectoryError):
        raise
    except MemoryError:
        raise LimitError(f"{path} holds an array that does not fit into memory.") from None
    except _BROKEN as error:
        raise AnnotationError(_explain_numpy(path, error)) from None


@contextmanager
def _opened(path: Path) -> Iterator[tuple[Source, BinaryIO]]:
    """Open a file as a `Source`, which notices when it is changed while it is read."""
    source = Source(str(path), path)
    with source.opened() as file:
        yield source, file


def _explain_numpy(path: Path, error: Exception) -> str:
    """Return the error message for a file that NumPy cannot read."""
    cause = str(error).partition("\n")[0][:200]
    if isinstance(error, RecursionError):
        cause = "its header is nested too deep"
    if any(word in cause.lower() for word in ("pickle", "python objects")):
        return f"{path} holds Python objects (a pickle), which are not read. Save numbers, and ids as text."
    return f"{path} cannot be read as a NumPy file: {cause.rstrip('.')}. Save it again."
