"""Protection of cells that a spreadsheet would run as formulas, and its inverse.

A spreadsheet takes a cell of a CSV file that begins with =, +, - or @ for a formula, whoever wrote it. A quote before
it makes it text. Not every program follows this rule, so files for other programs are left as they are.
"""

from __future__ import annotations

import re

import polars as pl

# Characters that programs skip before a formula: quotes, blanks and control characters.
_SKIPPED = r"[\x00-\x20\x{a0}\x{3000}\x{feff}'\"]"
_FORMULA = rf"^{_SKIPPED}*[=+\-@\t\r\x{{ff1d}}\x{{ff0b}}\x{{ff0d}}\x{{ff20}}]"  # the last four are full-width
_NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"


def _for_python(pattern: str) -> re.Pattern[str]:
    """Return the same pattern in Python's syntax, where ``$`` would accept a line break."""
    return re.compile(re.sub(r"\\x\{(\w+)\}", lambda match: f"\\u{int(match[1], 16):04x}", pattern).replace("$", r"\Z"))


_formula, _number = _for_python(_FORMULA), _for_python(_NUMBER)


def guard(text: str) -> str:
    """Put a quote before a text that a spreadsheet might run; numbers stay numbers.

    Parameters
    ----------
    text : str
        A cell.

    Returns
    -------
    str
        The protected cell.

    Examples
    --------
    >>> guard("=1+1"), guard("-1"), guard("'=1+1"), guard("good")
    ("'=1+1", '-1', "''=1+1", 'good')
    """
    return f"'{text}" if _is_formula(text) else text


def unguard(text: str) -> str:
    """Return the text that `guard` was given.

    Parameters
    ----------
    text : str
        A protected cell.

    Returns
    -------
    str
        The original cell.
    """
    return text[1:] if text.startswith("'") and _is_formula(text[1:]) else text


def guard_table(table: pl.DataFrame) -> pl.DataFrame:
    """Protect all texts and names of columns of a table.

    Parameters
    ----------
    table : polars.DataFrame
        The table.

    Returns
    -------
    polars.DataFrame
        The protected table.
    """
    columns = [_guard_column(column) if column.dtype == pl.String else column for column in table]
    return pl.DataFrame({guard(column.name): column for column in columns})


def _guard_column(column: pl.Series) -> pl.Series:
    """Protect a column of text."""
    formula = column.str.contains(_FORMULA) & ~column.str.contains(_NUMBER)
    return column.zip_with(~formula.fill_null(False), "'" + column)


def _is_formula(text: str) -> bool:
    """Whether a spreadsheet might run a text."""
    return _formula.match(text) is not None and _number.match(text) is None
