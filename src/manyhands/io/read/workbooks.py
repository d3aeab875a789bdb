"""XLSX workbooks: the first sheet, every cell as text."""

from __future__ import annotations

import re
import zipfile

import polars as pl

from manyhands.exceptions import AnnotationError, LimitError
from manyhands.io.messages import listed, shorten
from manyhands.io.read.archives import check_zip, unpack_member
from manyhands.io.read.sources import Source, open_zip
from manyhands.io.read.title_lines import LOOKED_AT, count_title_rows, title_note

_MAX_DIGITS = 300  # of a number within the range of floats
MAX_CELLS = 26_000_000  # of the rectangle of a sheet; all of them are kept in memory, empty or not
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

    Parameters
    ----------
    source : Source
        The workbook.

    Returns
    -------
    frame : polars.DataFrame
        The cells below the header, as text.
    header : list of str
        Names of the columns: the first row, or the first below a title.
    notes : dict of str to str
        Warnings: code -> sentence.

    Raises
    ------
    AnnotationError
        If the workbook is damaged or empty, declares XML entities, or holds numbers that a spreadsheet rounds.
    LimitError
        If it unpacks to too much, or the sheet has too many cells.
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
        seen = rest + piece
        if _DECLARATION.search(seen) and entry.filename.endswith((".xml", ".rels")):
            raise AnnotationError(f"{name}: {entry.filename} declares XML entities: not read. Save it again.")
        if entry.filename.startswith("xl/worksheets/"):
            _refuse_long_numbers(seen, name)
            unfinished = unfinished or _NO_RESULT.search(seen) is not None
        reaches_far = reaches_far or _FAR.search(seen) is not None
        rest = seen[-_UNFINISHED:]
    if reaches_far:  # a few cells far apart are enough, so the size of the sheet is computed
        _check_cells(archive, entry, name)
    return unfinished


def _refuse_long_numbers(xml: bytes, name: str) -> None:
    """Refuse integers in number cells that no float represents: different ids would be read as one."""
    for found in _LONG.finditer(xml):
        digits = found[1].decode()[:_MAX_DIGITS]
        cells = _CELL.findall(xml, max(found.start() - _UNFINISHED, 0), found.start())
        if cells and not _TYPE.search(cells[-1]) and int(float(digits)) != int(digits):
            raise AnnotationError(
                f"{name}: a cell holds the number {shorten(digits)}, of which a spreadsheet keeps 15 digits. "
                "Write such ids as text, or export CSV from the program that has all digits."
            )


def _check_cells(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, name: str) -> None:
    """Refuse a sheet with more than `MAX_CELLS` cells."""
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
    """Return the number of a column: 1 for A, 27 for AA."""
    number = 0
    for letter in letters.upper()[:9]:
        number = 26 * number + letter - 64
    return number
