"""Rows of a table that repeat its header, as in files that were joined: they are blank lines, not judgements."""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from manyhands.io.messages import counted
from manyhands.io.read.documents import Table

_FEWEST = 2  # columns of a header that is recognised


def blank_repeated_headers(table: Table) -> Table:
    """Return the table with rows that repeat the header as blank lines, and a note on them.

    Parameters
    ----------
    table : Table
        A table of a file.

    Returns
    -------
    Table
        The same table if there are none.
    """
    names = [name for name in table.header if name.strip()]
    if len(names) < _FEWEST or table.typed is not None or not len(table):
        return table
    first = table.header.index(names[0])
    if not (table.column(first) == names[0]).any():  # by far the most usual case
        return table
    repeats = pl.Series([True]).new_from_index(0, len(table))
    for at, name in enumerate(table.header):
        if name.strip():
            repeats = repeats & (table.column(at) == name).fill_null(False)
    if not repeats.any():
        return table
    where = table.place(int(repeats.arg_true()[0]))
    n_lines = int(repeats.sum())
    verbs = ("repeats", "counts as a blank line") if n_lines == 1 else ("repeat", "count as blank lines")
    note = f"{counted(n_lines, 'line')} {verbs[0]} the header ({where}), and {verbs[1]}."
    blank = table.frame.select(pl.when(~repeats).then(pl.col(name)).alias(name) for name in table.frame.columns)
    return replace(table, frame=blank, notes=table.notes | {"repeated_header": note})
