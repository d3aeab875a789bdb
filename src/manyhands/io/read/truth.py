"""Tables of the ground truth: an item and its class in each row."""

from __future__ import annotations

from pathlib import Path

from manyhands.exceptions import AlignmentError, AnnotationError
from manyhands.io.messages import counted, shorten
from manyhands.io.read.companion_tables import column_of, open_table


def read_truth(path: str | Path, *, n_rows: int | None = None, what: str = "truth") -> dict[str, str]:
    """Read a table of items and their classes; rows without a class are skipped.

    Parameters
    ----------
    path : str or Path
        A table with a column for the class, and one for the item unless `n_rows` is given.
    n_rows : int or None, default=None
        Match by position: the table must have this many rows, and an item is the number of its row, from 0.
    what : str, default="truth"
        What error messages call the table.

    Returns
    -------
    dict of str to str
        Item -> class.

    Raises
    ------
    AnnotationError
        If the table has no classes, or two for one item.
    AlignmentError
        If it does not have `n_rows` rows.
    """
    table = open_table(path, what)
    labels = column_of(table, "label")
    if n_rows is None:
        items = column_of(table, "item")
    elif len(labels) == n_rows:
        items = [str(row) for row in range(n_rows)]
    else:
        raise AlignmentError(
            f"{path} has {counted(len(labels), 'row')} for {counted(n_rows, 'row')} of features; in order, there must "
            f"be one for each. Give ids instead."
        )
    known: dict[str, str] = {}
    for row, (item, label) in enumerate(zip(items, labels)):
        if label.strip() and known.setdefault(item, label) != label:
            both = f"{shorten(known[item])!r} and {shorten(label)!r}"
            raise AnnotationError(f"{table.place(row)}: {shorten(item)!r} has two classes, {both}. Keep one.")
    if not known:
        raise AnnotationError(f"{path} names no class for any item, so there is no {what} in it.")
    return known
