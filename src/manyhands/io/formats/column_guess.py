"""Which column of a table may be meant, judged by its name or content: for error messages only."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from difflib import get_close_matches

import polars as pl

from manyhands.io.read.documents import Table

_MOST_CLASSES = 30
_ALIKE = 0.75  # similarity from which on a column is suggested
_COMPARED = 4  # usual names to which others are compared letter by letter


def guess_label(table: Table, item: int, taken: Collection[int]) -> str | None:
    """Return the one column that may hold labels: few values, which differ between rows about one item.

    Parameters
    ----------
    table : Table
        The table.
    item : int
        Column of the items.
    taken : collection of int
        Columns that hold something else.

    Returns
    -------
    str or None
        Name of the column; None if there is none, or more than one.
    """
    free = [at for at in range(len(table.header)) if at not in taken and table.header[at].strip()]
    if not free or not len(table):
        return None
    columns = [table.column(at).rename(str(at)) for at in free]
    rows = pl.DataFrame([table.column(item).rename("item"), *columns])
    within = rows.group_by("item").agg(pl.exclude("item").n_unique()).select(pl.exclude("item").max()).row(0)
    n_values = rows.select(pl.exclude("item").n_unique()).row(0)
    fits = [
        at for at, most, n in zip(free, within, n_values) if most > 1 and 1 < n <= min(_MOST_CLASSES, len(rows) / 2)
    ]
    return table.header[fits[0]] if len(fits) == 1 else None


def nearest_name(names: Sequence[str], usual: Sequence[str]) -> str | None:
    """Return the name that contains a usual one as a word, or differs from one by a letter or two.

    Parameters
    ----------
    names : sequence of str
        Names of columns.
    usual : sequence of str
        Usual names of what is looked for, the most usual first.

    Returns
    -------
    str or None
        One of `names`; None if none is similar.
    """
    for name in names:
        if set(re.split(r"[\s_.-]+", name.lower())) & set(usual):
            return name
    for word in usual[:_COMPARED]:
        found = get_close_matches(word, [name.lower() for name in names], n=1, cutoff=_ALIKE)
        if found:
            return next(name for name in names if name.lower() == found[0])
    return None
