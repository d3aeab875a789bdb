"""Label maps: tables that rename labels, with the columns "from" and "to"."""

from __future__ import annotations

from pathlib import Path

from manyhands.exceptions import AnnotationError
from manyhands.io.messages import listed, normalise_name, shorten
from manyhands.io.read.companion_tables import open_table

_COLUMNS = ("from", "to")


def read_label_map(path: str | Path) -> dict[str, str]:
    """Read a table of labels to rename.

    Parameters
    ----------
    path : str or Path
        A table with the columns "from" (a label of the export) and "to" (the label to read instead; an empty cell
        means that there is no label).

    Returns
    -------
    dict of str to str
        Label in the export -> label to read.

    Raises
    ------
    AnnotationError
        If a column is missing, a "from" is empty, or one label is renamed in two ways.
    """
    table = open_table(path, "labels to rename")
    names = [normalise_name(name) for name in table.header]
    if missing := [name for name in _COLUMNS if name not in names]:
        raise AnnotationError(
            f"{path} has no column {listed(missing)}. It has: {listed(table.header)}. A label map has the columns "
            f"from,to."
        )
    old, new = (table.column(names.index(name)).fill_null("").to_list() for name in _COLUMNS)
    found: dict[str, str] = {}
    for row, (before, after) in enumerate(zip(old, new)):
        if not before.strip():
            if after.strip():
                raise AnnotationError(f'{table.place(row)}: "from" is empty. Name the label that {after!r} replaces.')
            continue
        if found.setdefault(before.strip(), after.strip()) != after.strip():
            both = f"{shorten(found[before.strip()])!r} and {shorten(after)!r}"
            raise AnnotationError(f"{table.place(row)}: {shorten(before)!r} is renamed to both {both}. Keep one row.")
    if not found:
        raise AnnotationError(f"{path} renames no label: it has no row with a label in the column from.")
    return found
