"""Which columns are features, if the caller names none: numbers as they are, text as TF-IDF, nothing else.

Columns that are called like labels or known answers are not used: the truth must not become a feature by accident.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from manyhands.io.formats.long import COMMON_NAMES
from manyhands.io.messages import normalise_name

_ANSWERS = frozenset(map(normalise_name, (*COMMON_NAMES["gold"], "label", "labels", "class")))
_ADDRESS = re.compile(r"\s*(\w{2,10}://|/data/|www\.)\S*\s*")
_MIN_WORDS = 2  # of a text; a single word is a category or an id
_MIN_LETTERS = 4  # letters beyond ASCII that make a text without spaces, as in Chinese
_CELLS = 2_000  # cells of a column that are looked at


@dataclass(frozen=True)
class ColumnChoice:
    """Columns by what they hold.

    Attributes
    ----------
    numbers : tuple of str
        Columns of numbers.
    text : tuple of str
        Columns of text.
    left_out : tuple of str
        All others: labels, addresses, categories, ids, and columns in which all rows are the same text.
    """

    numbers: tuple[str, ...] = ()
    text: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()


def choose_columns(columns: Mapping[str, pl.Series]) -> ColumnChoice:
    """Choose the columns that a classifier can learn from.

    Parameters
    ----------
    columns : mapping of str to polars.Series
        All columns but the ids.

    Returns
    -------
    ColumnChoice
        The columns by what they hold.

    Examples
    --------
    >>> columns = {"body": ["red cat", "blue dog"], "n": ["1", "2"], "lang": ["de", "en"], "gold": ["0", "1"]}
    >>> choose_columns({name: pl.Series(cells) for name, cells in columns.items()})
    ColumnChoice(numbers=('n',), text=('body',), left_out=('lang', 'gold'))
    """
    kinds = {name: _kind(name, column) for name, column in columns.items()}
    found = {kind: tuple(name for name in columns if kinds[name] == kind) for kind in ("numbers", "text", "left_out")}
    return ColumnChoice(**found)


def _kind(name: str, column: pl.Series) -> str:
    """Return what a column holds: numbers, text, or neither."""
    if normalise_name(name) in _ANSWERS:
        return "left_out"
    if column.dtype != pl.String:
        usable = column.dtype.is_numeric() or column.dtype == pl.Boolean
        return "numbers" if usable or isinstance(column.dtype, pl.List | pl.Array) else "left_out"
    cells = column.drop_nulls().str.strip_chars()
    cells = cells.filter(cells != "")
    if not len(cells):
        return "left_out"
    numeric = cells.cast(pl.Float64, strict=False)
    if 2 * numeric.count() >= len(cells):  # a few cells that are none are an error of the file, and named as such
        return "numbers"
    return "text" if cells.n_unique() > 1 and are_texts(cells.head(_CELLS).to_list()) else "left_out"


def are_texts(cells: Sequence[str]) -> bool:
    """Whether at least half of some cells are text rather than categories, ids or addresses.

    Parameters
    ----------
    cells : sequence of str
        Cells of a column that are not blank.

    Returns
    -------
    bool
        True for text.
    """
    return bool(cells) and 2 * sum(map(_is_text, cells)) >= len(cells)


def _is_text(cell: str) -> bool:
    """Whether a cell has two words, or several letters of a script that may do without spaces."""
    if _ADDRESS.fullmatch(cell):
        return False
    return len(cell.split(maxsplit=_MIN_WORDS)) >= _MIN_WORDS or _letters_beyond_ascii(cell) >= _MIN_LETTERS


def _letters_beyond_ascii(cell: Iterable[str]) -> int:
    """Return the number of letters beyond ASCII."""
    return sum(letter.isalpha() and not letter.isascii() for letter in cell)
