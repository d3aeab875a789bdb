"""Tables of the truth: an item and its class in each row."""

from __future__ import annotations

from pathlib import Path

from manyhands.exceptions import AlignmentError, AnnotationError
from manyhands.io.messages import counted, shorten
from manyhands.io.read.companion_tables import column_of, open_table


def read_truth(path: str | Path, *, n_rows: int | None = None, what: str = "truth") -> dict[str, str]:
    """{item: class}; rows without a class are passed over.

    Parameters
    ----------
    n_rows : match by position: there must be as many rows, and an item is the number of its row, from 0
    what : what the sentences call it
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
            names_text = f"both {shorten(known[item])!r} and {shorten(label)!r}"
            raise AnnotationError(f"{table.place(row)}: {shorten(item)!r} is said to be {names_text}.")
    if not known:
        raise AnnotationError(f"{path} names no class for any item, so there is no {what} in it.")
    return known
