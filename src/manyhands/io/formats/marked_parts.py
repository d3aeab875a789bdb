"""Long tables whose rows label parts of items: spans with start and end, boxes with corners or sizes."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from manyhands.io.messages import listed, normalise_name
from manyhands.io.read.documents import Table
from manyhands.io.read.other_kinds import BOXES, SPANS, OtherKinds

_PLACES = (
    ("start end", SPANS),
    ("begin end", SPANS),
    ("start_offset end_offset", SPANS),
    ("start_char end_char", SPANS),
    ("token_start token_end", SPANS),
    ("span_start span_end", SPANS),
    ("xmin ymin xmax ymax", BOXES),
    ("x1 y1 x2 y2", BOXES),
    ("x y width height", BOXES),
    ("x y w h", BOXES),
    ("left top width height", BOXES),
)


def refuse_parts(table: Table, item: int, worker: int) -> str | None:
    """Return why the labels of a table are not those of whole items, if so.

    Columns called start and end may be times. So the table is refused only if these columns are numbers, and differ
    between rows of one worker about one item: otherwise all but one of these labels would be left out as repeated.

    Parameters
    ----------
    table : Table
        The table.
    item : int
        Column of the items.
    worker : int
        Column of the workers.

    Returns
    -------
    str or None
        The sentence; None for an ordinary table.
    """
    names = [normalise_name(name) for name in table.header]
    for keys, kind in _PLACES:
        wanted = [normalise_name(key) for key in keys.split()]
        if all(name in names for name in wanted):
            columns = [names.index(name) for name in wanted]
            if _differ(table, columns, [item, worker]):
                found = OtherKinds()
                found.add(kind, f"columns {listed([table.header[at] for at in columns])}")
                return found.refusal(table.name)
    return None


def _differ(table: Table, columns: Sequence[int], keys: Sequence[int]) -> bool:
    """Whether columns are whole numbers that differ between two rows with the same keys."""
    numbers = [table.column(at).cast(pl.Float64, strict=False).rename(f"n{at}") for at in columns]
    if any(number.null_count() for number in numbers) or not len(table):
        return False
    rows = pl.DataFrame([*numbers, *(table.column(at).rename(f"k{at}") for at in keys)])
    several = rows.group_by([f"k{at}" for at in keys]).agg(pl.struct([n.name for n in numbers]).n_unique().alias("n"))
    return bool((several["n"] > 1).any())
