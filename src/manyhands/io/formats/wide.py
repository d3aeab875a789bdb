"""Wide tables: one row per item, one column per worker, a label or nothing in each cell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from manyhands.exceptions import AnnotationError
from manyhands.io.documents import Document, Table
from manyhands.io.formats.long import COMMON_NAMES, as_table, has_roles
from manyhands.io.judgements import Judgements, Wishes, find_column
from manyhands.io.names import listed, plain, shorten

QUESTION = "label"
_ITEM_NAMES = {plain(name) for name in COMMON_NAMES["item"]} | {""}
_MOST_CELLS_LOOKED_AT = 100_000
_MOST_CLASSES = 20  # different values of a column, or half of its cells, before it is taken for texts


def recognise(document: Document) -> str | None:
    """An item's name on top of the first column, which repeats nothing, and columns that speak of the same classes."""
    if not isinstance(document, Table) or len(document.header) < 3 or has_roles(document.header):
        return None
    if plain(document.header[0]) not in _ITEM_NAMES or any(map(_names_a_role, document.header[1:])):
        return None
    frame = document.frame.filter(~document.blank_lines())
    items = frame.to_series(0)
    if not len(items) or items.null_count() or items.n_unique() < len(items):
        return None
    looked_at = frame.head(max(_MOST_CELLS_LOOKED_AT // len(document.header), 10))
    cells = [looked_at.to_series(at).drop_nulls() for at in range(1, looked_at.width)]
    said = [set(column) - {"", "-1"} for column in cells]
    if any(len(values) > max(_MOST_CLASSES, len(column) // 2) for values, column in zip(said, cells)):
        return None  # a column of texts
    uses = Counter(value for values in said for value in values)
    return "wide" if any(count > 1 for count in uses.values()) else None


def read(document: Document, format_name: str, wishes: Wishes) -> Judgements:
    """Every cell of an item and a worker as one judgement; an empty one has no label."""
    wishes.refuse("label", "A wide table", "all columns but the first")
    table = as_table(document)
    at_item = 0 if wishes.item is None else find_column(table.header, wishes.item, "item", table.name)
    at_workers = [at for at in range(len(table.header)) if at != at_item]
    if wishes.worker is not None:
        wanted = wishes.worker.split(",")
        at_workers = [find_column(table.header, name.strip(), "worker", table.name) for name in wanted]
    if not at_workers:
        raise AnnotationError(f"{table.name} has one column; a wide table has one for the items and one per worker.")
    workers = [table.header[at] for at in at_workers]
    twice = [name for name, count in Counter(workers).items() if count > 1]
    if twice:
        raise AnnotationError(f"{table.name} has several columns for the workers {listed(twice)}. Rename all but one.")
    blank = table.blank_lines()
    frame = table.frame.filter(~blank)
    cells = [frame.to_series(at) for at in at_workers]
    found = cells_as_judgements(table.name, format_name, frame.to_series(at_item), workers, cells, wishes.missing)
    found.mapping["item"] = table.header[at_item] or "the first column"
    return with_blank_lines(found, int(blank.sum()))


def with_blank_lines(judgements: Judgements, n_lines: int) -> Judgements:
    """The same judgements and some blank lines, which are no judgements but were read."""
    if not n_lines:
        return judgements
    nothing = pl.Series([None] * n_lines, dtype=pl.String)
    reason = pl.Series([None] * len(judgements) + ["blank"] * n_lines, dtype=pl.String)
    return replace(
        judgements,
        item=judgements.item.append(nothing),
        worker=judgements.worker.append(nothing),
        answers={name: answers.append(nothing) for name, answers in judgements.answers.items()},
        reason=reason,
    )


def cells_as_judgements(
    source: str,
    format_name: str,
    items: pl.Series,
    workers: Sequence[str],
    cells: Sequence[pl.Series],
    missing: Sequence[str],
) -> Judgements:
    """An items x workers matrix as judgements, item by item.

    Unless the user names another sign, -1 among whole numbers is no label.
    """
    items = items.rename("item")
    repeated = items.drop_nulls()
    if repeated.n_unique() < len(repeated):
        name = repeated.filter(repeated.is_duplicated())[0]
        said = f"{source} has several rows for the item {shorten(name)!r}. One row per item makes a wide table."
        raise AnnotationError(said)
    labels = pl.concat([cell.rename("label").cast(pl.String) for cell in cells])
    said = f"a cell for each of {len(workers)} workers"
    if not missing and _are_whole_numbers(labels):
        labels = labels.set(labels.str.contains(r"^\s*-1(\.0*)?\s*$").fill_null(False), None)
        said += "; -1 is no label"
    n_items, n_workers = len(items), len(workers)
    by_item = np.arange(n_items * n_workers).reshape(n_workers, n_items).T.ravel()
    return Judgements(
        source,
        format_name,
        item=items.gather(np.repeat(np.arange(n_items), n_workers)),
        worker=pl.Series(workers, dtype=pl.String).gather(np.tile(np.arange(n_workers), n_items)),
        answers={QUESTION: labels.gather(by_item)},
        mapping={"item": "the number of the row", "worker": "a column each", "label": said},
    )


def _names_a_role(name: str) -> bool:
    """Whether a column is called what only a worker's or a label's column is called."""
    return any(plain(name) == plain(usual) for role in ("worker", "label") for usual in COMMON_NAMES[role])


def _are_whole_numbers(labels: pl.Series) -> bool:
    values = labels.drop_nulls().unique().str.strip_chars()
    values = values.filter(values != "")
    return bool(len(values)) and bool(values.str.contains(r"^-?\d+(\.0*)?$").all())
