"""Cells that a spreadsheet would run as formulas, made harmless and back again.

A program that opens a CSV file takes a cell that begins with =, +, - or @ for a formula, whoever wrote it. A quote
before it makes it text. No such rule holds for every program there is, so files for machines stay as they are.
"""

from __future__ import annotations

import re

import polars as pl

# What programs skip before they look for a formula: quotes, blanks and control characters.
_SKIPPED = r"[\x00-\x20\x{a0}\x{3000}\x{feff}'\"]"
_FORMULA = rf"^{_SKIPPED}*[=+\-@\t\r\x{{ff1d}}\x{{ff0b}}\x{{ff0d}}\x{{ff20}}]"  # the last four are full-width
_NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"


def _for_python(pattern: str) -> re.Pattern[str]:
    """The same pattern as Python writes it; `$` would let a line break pass."""
    return re.compile(re.sub(r"\\x\{(\w+)\}", lambda match: f"\\u{int(match[1], 16):04x}", pattern).replace("$", r"\Z"))


_formula, _number = _for_python(_FORMULA), _for_python(_NUMBER)


def guard(text: str) -> str:
    """A quote before what a spreadsheet might run; plain numbers stay numbers.

    >>> guard("=1+1"), guard("-1"), guard("'=1+1"), guard("good")
    ("'=1+1", '-1', "''=1+1", 'good')
    """
    return f"'{text}" if _is_formula(text) else text


def unguard(text: str) -> str:
    """What `guard` was given."""
    return text[1:] if text.startswith("'") and _is_formula(text[1:]) else text


def guard_table(table: pl.DataFrame) -> pl.DataFrame:
    """A table whose texts and names of columns are all guarded."""
    columns = [_guard_column(column) if column.dtype == pl.String else column for column in table]
    return pl.DataFrame({guard(column.name): column for column in columns})


def _guard_column(column: pl.Series) -> pl.Series:
    formula = column.str.contains(_FORMULA) & ~column.str.contains(_NUMBER)
    return column.zip_with(~formula.fill_null(False), "'" + column)


def _is_formula(text: str) -> bool:
    return _formula.match(text) is not None and _number.match(text) is None
