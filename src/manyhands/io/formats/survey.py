"""Survey sheets: one row per worker, one column per item, as Google Forms and other questionnaires write them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from manyhands.exceptions import AnnotationError
from manyhands.io.documents import Document, Records, Table
from manyhands.io.formats.long import as_table
from manyhands.io.formats.wide import (
    ITEM_NAMES,
    LABEL_NAMES,
    QUESTION,
    TIME_NAMES,
    WORKER_NAMES,
    flat_table,
    labels_of,
    left_out_note,
    of_cells,
    share_values,
    split_label_columns,
    with_blank_lines,
)
from manyhands.io.judgements import ColumnOptions, Judgements, find_column, parse_times
from manyhands.io.messages import listed, normalise_name

_PEOPLE = "name full_name your_name participant participant_id respondent respondent_id email_address student"
_WORKERS = WORKER_NAMES | frozenset(map(normalise_name, _PEOPLE.split()))


def recognise(document: Document) -> str | None:
    """Recognise surveys: workers in the first column, or in the second after a time, and columns that share classes."""
    header = document.header if isinstance(document, Table) else list(getattr(document, "first", {}))
    at_worker = _usual_worker(header)
    if at_worker is None or any(normalise_name(name) in ITEM_NAMES | LABEL_NAMES for name in header):
        return None
    table = flat_table(document)
    if table is None:
        return None
    rows = table.frame.filter(~table.blank_lines())
    workers = rows.to_series(at_worker)
    if not len(rows) or 2 * workers.n_unique() <= len(workers):  # a few workers may have answered twice
        return None
    items, _ = split_label_columns(table, range(at_worker + 1, rows.width), rows)
    return "survey" if share_values(rows, items) else None


def read(document: Document, format_name: str, options: ColumnOptions) -> Judgements:
    """Read every cell as one judgement; an empty cell has no label."""
    options.refuse("label", "A survey", "the cells of the items' columns")
    table = as_table(document)
    blank = table.blank_lines()
    rows = table.frame.filter(~blank)
    at_worker = _find_worker(table, options)
    at_time = next(
        (at for at, name in enumerate(table.header) if normalise_name(name) in TIME_NAMES and at != at_worker), None
    )
    at_items, left_out = _items(table, rows, at_worker, options)
    labels, minus_one_is_none = labels_of([rows.to_series(at) for at in at_items], options.missing)
    n_workers, n_items = len(rows), len(at_items)
    by_worker = np.arange(n_workers * n_items).reshape(n_items, n_workers).T.ravel()
    of_worker = np.repeat(np.arange(n_workers), n_items)
    time, notes = parse_times(rows.to_series(at_time)) if at_time is not None else (None, {})
    notes |= document.notes if isinstance(document, Records) else {}
    if options.item is None:
        notes |= left_out_note(table.header, [at for at in left_out if at != at_time], "items", "item")
    label_location = f"a cell for each of {n_items} items" + ("; -1 is no label" if minus_one_is_none else "")
    mapping = {
        "item": "a column each",
        "worker": table.header[at_worker] or "the first column",
        "label": label_location,
    }
    judgements = Judgements(
        table.name,
        format_name,
        item=pl.Series([table.header[at] for at in at_items], dtype=pl.String).gather(
            np.tile(np.arange(n_items), n_workers)
        ),
        worker=rows.to_series(at_worker).gather(of_worker),
        answers={QUESTION: labels.gather(by_worker)},
        time=None if time is None else time.gather(of_worker),
        mapping=mapping | ({} if at_time is None else {"time": table.header[at_time]}),
        notes=notes,
        files=((table.name, n_items * n_workers + int(blank.sum()), of_cells(table, blank, n_items)),),
    )
    return with_blank_lines(judgements, int(blank.sum()))


def _usual_worker(header: Sequence[str]) -> int | None:
    """Return the position of the workers' column by its usual names, or None."""
    names = [normalise_name(name) for name in header]
    if names[:1] and names[0] in _WORKERS:
        return 0
    return 1 if len(names) > 1 and names[0] in TIME_NAMES and names[1] in _WORKERS else None


def _find_worker(table: Table, options: ColumnOptions) -> int:
    """Return the column that the caller names, that has a usual name, or the first that is not a time."""
    if options.worker is not None:
        return find_column(table.header, options.worker, "worker", table.name)
    usual = _usual_worker(table.header)
    if usual is not None:
        return usual
    return next((at for at, name in enumerate(table.header) if normalise_name(name) not in TIME_NAMES), 0)


def _items(table: Table, rows: pl.DataFrame, at_worker: int, options: ColumnOptions) -> tuple[list[int], list[int]]:
    """Return the columns of the items, named by the caller or all that may hold labels, and the others."""
    others = [at for at in range(len(table.header)) if at != at_worker]
    if options.item is not None:
        names = [options.item] if options.item in table.header else options.item.split(",")
        chosen = [find_column(table.header, name.strip(), "item", table.name) for name in names]
        return chosen, [at for at in others if at not in chosen]
    items, left_out = split_label_columns(table, others, rows)
    if not items:
        raise AnnotationError(
            f"{table.name} has {listed(table.header)}: none of them holds the labels of an item. A survey has a "
            'column for the workers and one for each item; name these with `item="a,b,c"`.'
        )
    twice = sorted({table.header[at] for at in items if [table.header[i] for i in items].count(table.header[at]) > 1})
    if twice:
        raise AnnotationError(f"{table.name} has several columns for the items {listed(twice)}. Rename all but one.")
    return items, left_out
