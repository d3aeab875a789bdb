"""Wide tables: one row per item, one column per worker, and a label or nothing in each cell.

A column of known answers is gold. Columns of outcomes, comments, dates and texts are excluded and named in a note;
``--worker a,b,c`` names the columns of the workers where that is wrong.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import polars as pl

from manyhands.exceptions import AnnotationError
from manyhands.io.formats.grids import (
    GOLD_NAMES,
    ITEM_NAMES,
    LABEL_NAMES,
    WORKER_NAMES,
    are_numbered_questions,
    flat_table,
    labels_of,
    left_out_note,
    share_values,
    split_label_columns,
    with_blank_lines,
    without_minus_one,
)
from manyhands.io.formats.long import as_table, gold_of, has_roles
from manyhands.io.messages import listed, normalise_name, shorten
from manyhands.io.read.column_lookup import find_column
from manyhands.io.read.documents import Document, Records, Table
from manyhands.io.read.judgements import ColumnOptions, Judgements
from manyhands.io.read.text_tables import Locate

QUESTION = "label"
_PEOPLE_IN_ROWS = "The columns are called like questions: if each row is a person, add --format survey."


def recognise(document: Document) -> str | None:
    """Recognise wide tables: an item's name above the first column, no item twice, and columns that share classes.

    Parameters
    ----------
    document : Table, Records, Words or Folder
        A parsed file or folder.

    Returns
    -------
    str or None
        ``"wide"``; None for any other document.
    """
    header = document.header if isinstance(document, Table) else list(getattr(document, "first", {}))
    if len(header) < 3 or has_roles(header) or normalise_name(header[0]) not in ITEM_NAMES | {""}:
        return None
    table = (
        None if any(normalise_name(name) in WORKER_NAMES | LABEL_NAMES for name in header[1:]) else flat_table(document)
    )
    if table is None:
        return None
    rows = table.frame.filter(~table.blank_lines())
    items = rows.to_series(0)
    if not len(items) or items.null_count() or items.n_unique() < len(items):
        return None
    workers, _ = split_label_columns(table, range(1, rows.width), rows)
    return "wide" if share_values(rows, workers) else None


def names_workers(document: Document, options: ColumnOptions) -> bool:
    """Whether the caller names several columns as workers, which only a wide table has.

    Parameters
    ----------
    document : Document
        A parsed file.
    options : ColumnOptions
        Options of the caller.

    Returns
    -------
    bool
        True if all names separated by commas are columns.
    """
    if options.worker is None or "," not in options.worker or options.label is not None:
        return False
    header = document.header if isinstance(document, Table) else list(getattr(document, "first", {}))
    known = {normalise_name(name) for name in header}
    return normalise_name(options.worker) not in known and all(
        normalise_name(name) in known for name in options.worker.split(",")
    )


def read(document: Document, format_name: str, options: ColumnOptions) -> Judgements:
    """Read every cell as one judgement; an empty cell has no label.

    Parameters
    ----------
    document : Table, Records, Words or Folder
        A parsed file or folder.
    format_name : str
        Name of the format, as it was recognised or given.
    options : ColumnOptions
        Columns and question that the caller named.

    Returns
    -------
    Judgements
        One row per item and worker.

    Raises
    ------
    AnnotationError
        If the document is not of this format, or inconsistent.
    """
    options.refuse("label", "A wide table", "the cells of the workers' columns")
    table = as_table(document)
    blank = table.blank_lines()
    rows = table.frame.filter(~blank)
    at_item, at_workers, left_out = _columns(table, rows, options)
    workers = [table.header[at] for at in at_workers]
    twice = [name for name, count in Counter(workers).items() if count > 1]
    if twice:
        raise AnnotationError(f"{table.name} has several columns for the workers {listed(twice)}. Rename all but one.")
    cells = [rows.to_series(at) for at in at_workers]
    found = cells_as_judgements(table.name, format_name, rows.to_series(at_item), workers, cells, options.missing)
    found.mapping["item"] = table.header[at_item] or "the first column"
    at_gold = next((at for at in left_out if normalise_name(table.header[at]) in GOLD_NAMES), None)
    if at_gold is not None:
        left_out.remove(at_gold)
        found.mapping["gold"] = table.header[at_gold]
        found.gold[QUESTION] = _known(found, rows.to_series(at_item), rows.to_series(at_gold), options)
    if options.worker is None:
        found.notes |= left_out_note(table.header, left_out, "workers", "worker")
        found.notes |= {"rows_may_be_people": _PEOPLE_IN_ROWS} if are_numbered_questions(workers) else {}
    found.notes |= document.notes if isinstance(document, Records) else {}
    found.files = ((table.name, len(found) + int(blank.sum()), of_cells(table, blank, len(workers))),)
    return with_blank_lines(found, int(blank.sum()))


def of_cells(table: Table, blank: pl.Series, n_cells: int) -> Locate | None:
    """Return how to find the row of the table for a cell, if cells are counted row by row.

    Parameters
    ----------
    table : Table
        The table.
    blank : polars.Series of bool
        Which rows are blank lines.
    n_cells : int
        Number of cells of a row that are judgements.

    Returns
    -------
    callable or None
        Maps the number of a judgement to its line.
    """
    locate, rows = table.locate, (~blank).arg_true()
    if locate is None:
        return None
    return lambda cell: locate(int(rows[cell // n_cells])) if cell // n_cells < len(rows) else None


def cells_as_judgements(
    source: str,
    format_name: str,
    items: pl.Series,
    workers: Sequence[str],
    cells: Sequence[pl.Series],
    missing: Sequence[str],
) -> Judgements:
    """Return a matrix of items and workers as judgements, item by item.

    Among integers, -1 means no label, unless the caller names another sign.

    Parameters
    ----------
    source : str
        Name of the file.
    format_name : str
        Name of the format.
    items : polars.Series of str, of length n_items
        Item ids.
    workers : sequence of str
        Worker ids.
    cells : sequence of polars.Series, each of length n_items
        The labels of each worker.
    missing : sequence of str
        Labels that mean "no label".

    Returns
    -------
    Judgements
        n_items * n_workers rows.

    Raises
    ------
    AnnotationError
        If an item occurs twice.
    """
    items = items.rename("item")
    repeated = items.drop_nulls()
    if repeated.n_unique() < len(repeated):
        name = repeated.filter(repeated.is_duplicated())[0]
        label_location = (
            f"{source} has several rows for the item {shorten(name)!r}. One row per item makes a wide table."
        )
        raise AnnotationError(label_location)
    labels, minus_one_is_none = labels_of(cells, missing)
    label_location = f"a cell for each of {len(workers)} workers" + ("; -1 is no label" if minus_one_is_none else "")
    n_items, n_workers = len(items), len(workers)
    by_item = np.arange(n_items * n_workers).reshape(n_workers, n_items).T.ravel()
    return Judgements(
        source,
        format_name,
        item=items.gather(np.repeat(np.arange(n_items), n_workers)),
        worker=pl.Series(workers, dtype=pl.String).gather(np.tile(np.arange(n_workers), n_items)),
        answers={QUESTION: labels.gather(by_item)},
        mapping={"item": "the number of the row", "worker": "a column each", "label": label_location},
    )


def _columns(table: Table, rows: pl.DataFrame, options: ColumnOptions) -> tuple[int, list[int], list[int]]:
    """Return the column of the items, those of the workers, and the others."""
    header, everywhere = table.header, range(len(table.header))
    wanted = [] if options.worker is None else [name.strip() for name in options.worker.split(",")]
    at_workers = [find_column(header, name, "worker", table.name) for name in wanted]
    free = [at for at in everywhere if at not in at_workers]
    if options.item is not None:
        at_item = find_column(header, options.item, "item", table.name)
    elif not free:
        raise AnnotationError(f"{table.name}: every column is named as a worker's, so there is none for the items.")
    else:
        usual = [at for at in free if normalise_name(header[at]) in ITEM_NAMES] if wanted else []
        at_item = (usual or free)[0]
    others = [at for at in free if at != at_item]
    if wanted:
        return at_item, at_workers, others
    if not others:
        raise AnnotationError(f"{table.name} has one column; a wide table has one for the items and one per worker.")
    at_workers, left_out = split_label_columns(table, others, rows)
    if not at_workers:
        names = listed([header[at] for at in left_out])
        raise AnnotationError(
            f"{table.name}: none of {names} looks like a worker's column. Name the workers' with --worker a,b,c."
        )
    return at_item, at_workers, left_out


def _known(found: Judgements, items: pl.Series, gold: pl.Series, options: ColumnOptions) -> dict[str, tuple[str, ...]]:
    """Return the known answers; labels that mean "no label" in a worker's cell mean none here either."""
    gold = gold if "-1 is no label" not in found.mapping["label"] else without_minus_one(gold)
    return gold_of(items, gold.set(gold.str.strip_chars().is_in(list(options.missing)).fill_null(False), None))
