"""Small HTML tables for notebooks: `_repr_html_` of annotations and of models that are not fitted.

Styles are inline and take the colours of the page, so that a table is readable in light and dark notebooks. Everything
that comes from data is escaped, and long tables are cut.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from itertools import islice
from typing import Any

import numpy as np

MOST_ROWS = 20  # of a table in a notebook: what a screen shows without scrolling
_MOST_LETTERS = 200  # of a cell
_SHORT = 30  # letters of a cell that is kept on one line; a longer one may be broken
_LINE = "1px solid rgba(128,128,128,.35)"  # visible on white and on black
_BOX = "display:inline-block;max-width:100%;overflow-x:auto;color:inherit;font-size:90%"
_TABLE = "border-collapse:collapse;border:none;margin:.3em 0;color:inherit;background:transparent"
_CELL = f"border:none;border-bottom:{_LINE};padding:.15em .8em .15em 0;vertical-align:top;background:transparent"
_CAPTION = "text-align:left;caption-side:top;color:inherit;opacity:.75;padding:.2em 0"


def page(title: str, *parts: str) -> str:
    """Return an HTML block with a title, which is escaped, above parts that are HTML; empty parts are left out."""
    body = "".join(part for part in parts if part)
    return f'<div style="{_BOX}"><div style="font-weight:600">{escape(title)}</div>{body}</div>'


def table(columns: Sequence[str], rows: Iterable[Sequence[Any]], n_rows: int, caption: str = "") -> str:
    """Return an HTML table of at most twenty rows; its last line says how many of the `n_rows` are not shown."""
    first = [list(row) for row in islice(rows, MOST_ROWS)]
    numeric = [bool(first) and all(_is_number(row[at]) for row in first) for at in range(len(columns))]
    align = ["right" if number else "left" for number in numeric]
    head = "".join(_cell("th", name, side, "font-weight:600") for name, side in zip(columns, align, strict=True))
    body = "".join(f"<tr>{''.join(map(_data_cell, row, align))}</tr>" for row in first)
    more = n_rows - len(first)
    rest = f'<div style="opacity:.75">and {more:,} more</div>' if more > 0 else ""
    title = f'<caption style="{_CAPTION}">{escape(caption)}</caption>' if caption else ""
    return f'<table style="{_TABLE}">{title}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{rest}'


def facts(values: Mapping[str, Any]) -> str:
    """Return an HTML table of names and values without those that are None; "" where none is left."""
    entries = {name: value for name, value in values.items() if value is not None}
    rows = "".join(
        f"<tr>{_cell('th', name, 'left', 'font-weight:normal', 'row')}{_data_cell(value, 'left')}</tr>"
        for name, value in entries.items()
    )
    return f'<table style="{_TABLE}"><tbody>{rows}</tbody></table>' if entries else ""


def _data_cell(value: Any, side: str) -> str:
    return _cell("td", shown_value(value), side)


def _cell(tag: str, text: str, side: str, style: str = "", scope: str = "col") -> str:
    extra = f' scope="{scope}"' if tag == "th" else ""
    style = f"white-space:nowrap;{style}" if len(text) <= _SHORT else style
    return f'<{tag}{extra} style="{_CELL};text-align:{side};{style}" dir="auto">{escape(text)}</{tag}>'


def shown_value(value: Any) -> str:
    """Return a value as a cell shows it: three digits after the point, long text cut, not escaped."""
    if value is None or (isinstance(value, float | np.floating) and np.isnan(value)):
        return ""
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, int | np.integer):
        return f"{int(value):,}"
    if isinstance(value, float | np.floating):
        return f"{float(value):.3f}"
    text = "".join(letter if letter.isprintable() else " " for letter in str(value)[: _MOST_LETTERS + 1])
    return text if len(text) <= _MOST_LETTERS else f"{text[:_MOST_LETTERS]}..."


def _is_number(value: Any) -> bool:
    return value is None or (isinstance(value, int | float | np.number) and not isinstance(value, bool | np.bool_))
