"""XLSX: the tables of a run as sheets of one workbook, in which text stays text.

A cell of text is written as text whatever it begins with, so that no id or label becomes a formula, a link, a number
or a date; CSV files have no such types (`--spreadsheet-safe`). Whole numbers of more digits than a spreadsheet keeps
are text.
"""

from __future__ import annotations

import io
import math
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import polars as pl

from manyhands.exceptions import LimitError, MissingExtraError
from manyhands.io.messages import counted

MAX_ROWS = 1_048_575  # of a sheet, below its header
_MAX_COLUMNS = 16_384
_MAX_TEXT = 32_767  # letters of a cell; XlsxWriter leaves longer ones out
_MOST_EXACT = 10**15  # a spreadsheet keeps 15 digits
_MAX_NAME = 31  # letters of the name of a sheet
_CREATED = datetime(2000, 1, 1)  # the same in every run, so that the same tables give the same bytes


def check_workbook(n_rows: int) -> None:
    """Refuse a workbook that cannot be written, before anything is computed."""
    _library()
    if n_rows > MAX_ROWS:
        raise LimitError(
            f"A sheet of XLSX has {MAX_ROWS:,} rows, and there are {n_rows:,}. Write Parquet or CSV instead."
        )


def workbook(tables: Mapping[str, pl.DataFrame]) -> bytes:
    """Return a workbook with a sheet for each table."""
    buffer = io.BytesIO()
    options = {"in_memory": True, "strings_to_formulas": False, "strings_to_urls": False, "strings_to_numbers": False}
    book = _library().Workbook(buffer, options)
    book.set_properties({"created": _CREATED})
    bold = book.add_format({"bold": True})
    for name, table in tables.items():
        check_workbook(len(table))
        if table.width > _MAX_COLUMNS:
            raise LimitError(
                f"A sheet of XLSX has {_MAX_COLUMNS:,} columns, and {name} has {table.width:,}. Write CSV."
            )
        sheet = book.add_worksheet(name[:_MAX_NAME])
        for at, title in enumerate(table.columns):
            sheet.write_string(0, at, _text(title), bold)
            for row, value in enumerate(table.to_series(at).to_list(), start=1):
                _write(sheet, row, at, value)
        sheet.freeze_panes(1, 1)
    book.close()
    return buffer.getvalue()


def _write(sheet: Any, row: int, at: int, value: Any) -> None:
    """Write one cell; what is missing stays empty."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return
    if isinstance(value, bool):
        sheet.write_boolean(row, at, value)
    elif (isinstance(value, float) and math.isfinite(value)) or (isinstance(value, int) and abs(value) < _MOST_EXACT):
        sheet.write_number(row, at, value)
    else:
        sheet.write_string(row, at, _text(str(value)))


def _text(text: str) -> str:
    """Return text that fits into a cell, or refuse it: XlsxWriter would leave it out in silence."""
    if len(text) > _MAX_TEXT:
        raise LimitError(
            f"A cell of XLSX has at most {_MAX_TEXT:,} letters, and one would have {counted(len(text), 'letter')}: "
            f"{text[:40]!r}... Write CSV or Parquet instead."
        )
    return text


def _library() -> Any:
    """Return XlsxWriter."""
    try:
        import xlsxwriter
    except ImportError:
        raise MissingExtraError(
            "Writing XLSX needs XlsxWriter, which is not installed. Install it with: pip install 'manyhands[xlsx]'"
        ) from None
    return xlsxwriter
