"""XLSX workbooks: the first sheet, every cell as text."""

from __future__ import annotations

import re
import zipfile

import polars as pl

from manyhands.exceptions import AnnotationError, LimitError
from manyhands.io.messages import shorten
from manyhands.io.read.archives import check_zip, unpack_member
from manyhands.io.read.sources import Source, open_zip

_MAX_DIGITS = 300  # of a number that a float can be near
MAX_CELLS = 26_000_000  # between the first and the last cell of a sheet; all of them are kept in memory, empty or not
_DECLARATION = re.compile(rb"<\0?!\0?(?:D\0?O\0?C\0?T|E\0?N\0?T\0?I)")  # in UTF-8 or UTF-16
_FAR = re.compile(rb"""r\s*=\s*["']\s*(?:[A-Za-z]{2,}[0-9]|[A-Za-z]?[0-9]{7})""")  # beyond column Z or row 999,999
_PLACE = re.compile(rb"""r\s*=\s*["']\s*([A-Za-z]*)([0-9]+)""")  # of a cell or a row
_LONG = re.compile(rb"<(?:\w+:)?v(?:\s[^>]*)?>\s*(-?[0-9]{16,})\s*</")  # a whole number in a cell
_CELL = re.compile(rb"<(?:\w+:)?c(\s[^>]*)?>")
_TYPE = re.compile(rb"""\st\s*=\s*["'](?!n["'])""")  # of what is not a number
_UNFINISHED = 1 << 10  # bytes at the end of a piece that are looked at again with the next one


def read_workbook(source: Source) -> tuple[pl.DataFrame, list[str]]:
    """The first sheet of a workbook and the names of its columns.

    A number is read as Excel shows whole numbers, `7` rather than `7.0`; leading zeros survive where Excel kept them,
    in cells that are text.
    """
    source = source.loaded()
    with open_zip(source) as archive:
        check_zip(archive, source.name, source.budget)
        for entry in archive.infolist():
            _check_member(archive, entry, source.name)
    cells = _first_sheet(source)
    if not len(cells):
        raise AnnotationError(f"{source.name}: the first sheet is empty. Its first row must name the columns.")
    header = ["" if name is None else str(name) for name in cells.row(0)]
    return cells[1:].cast(pl.String), header


def _first_sheet(source: Source) -> pl.DataFrame:
    import fastexcel

    try:
        book = fastexcel.read_excel(source.read())
        sheet = book.load_sheet(0, header_row=None, dtypes="string", skip_whitespace_tail_rows=True)
        return sheet.to_polars()
    except fastexcel.FastExcelError as error:
        cause = str(error).splitlines()[0]
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # what Rust throws where it did not expect such a file
            raise
        cause = str(error).splitlines()[0]
    raise AnnotationError(f"{source.name} cannot be read as an XLSX workbook: {cause[:200]}. Save it again.")


def _check_member(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, name: str) -> None:
    """Refuse XML that declares anything of its own, as no spreadsheet writes, and sheets that would fill the memory."""
    rest, reaches_far = b"", False
    for piece in unpack_member(archive, entry, name):
        seen = rest + piece
        if _DECLARATION.search(seen) and entry.filename.endswith((".xml", ".rels")):
            raise AnnotationError(f"{name}: {entry.filename} declares XML entities: not read. Save it again.")
        if entry.filename.startswith("xl/worksheets/"):
            _refuse_long_numbers(seen, name)
        reaches_far = reaches_far or _FAR.search(seen) is not None
        rest = seen[-_UNFINISHED:]
    if reaches_far:  # a few cells are enough, so it takes a second look to tell a large sheet from a trap
        _check_cells(archive, entry, name)


def _refuse_long_numbers(xml: bytes, name: str) -> None:
    """Refuse whole numbers in cells that are not text and that no float is: different ids would be read as one."""
    for found in _LONG.finditer(xml):
        digits = found[1].decode()[:_MAX_DIGITS]
        cells = _CELL.findall(xml, max(found.start() - _UNFINISHED, 0), found.start())
        if cells and not _TYPE.search(cells[-1]) and int(float(digits)) != int(digits):
            raise AnnotationError(
                f"{name}: a cell holds the number {shorten(digits)}, of which a spreadsheet keeps 15 digits. "
                "Write such ids as text, or save the sheet as CSV from where they are whole."
            )


def _check_cells(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, name: str) -> None:
    rest, rows, columns = b"", 0, 1
    for piece in unpack_member(archive, entry, name):
        seen = rest + piece
        for letters, digits in _PLACE.findall(seen):
            rows = max(rows, int(digits[:19]))
            columns = max(columns, _column_number(letters))
        rest = seen[-_UNFINISHED:]
    if rows * columns > MAX_CELLS:
        raise LimitError(
            f"{name}: a sheet of {rows:,} rows and {columns:,} columns; at most {MAX_CELLS:,} cells are read. "
            "Save it as CSV."
        )


def _column_number(letters: bytes) -> int:
    """1 for A, 27 for AA."""
    number = 0
    for letter in letters.upper()[:9]:
        number = 26 * number + letter - 64
    return number
