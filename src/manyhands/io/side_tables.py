"""Tables beside an export: the ground truth, gold, label maps, kinds of workers, and published data sets by column."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from manyhands.annotations import Annotations
from manyhands.exceptions import AlignmentError, AnnotationError, CrowdWarning
from manyhands.io.documents import Document, Folder, Records, Table, open_document
from manyhands.io.formats.long import COLUMN_NAMES, COMMON_NAMES, as_table, find_named, kinds_of_workers
from manyhands.io.messages import counted, listed, normalise_name, shorten
from manyhands.io.sources import Source
from manyhands.io.text_tables import as_utf8, find_short_row, read_text_table
from manyhands.trust.machines import WorkerKind, kind_from_word

# Usual names of columns, the most usual first. The known class of an item may also be called its label.
_NAMES = {"item": COMMON_NAMES["item"], "label": (*COMMON_NAMES["gold"], *COMMON_NAMES["label"])}


def open_table(path: str | Path, what: str, document: Document | None = None) -> Table:
    """Open a file as a table."""
    refuse_missing(path, what)
    document = open_document(path) if document is None else document
    if isinstance(document, Folder) or (isinstance(document, Records) and not document.objects):
        raise AnnotationError(f"{path} is not a table. Give a table of {what} with a row for each item.")
    return as_table(document)


def refuse_missing(path: str | Path, what: str) -> None:
    """Refuse a path that does not exist."""
    if str(path) != "-" and not Path(path).exists():
        raise AnnotationError(f"{path} does not exist. Give the file of {what}.")


def find_common(header: list[str], role: str) -> int | None:
    """Find a column by the usual names of its role."""
    header_names = [normalise_name(name) for name in header]
    return next(
        (header_names.index(normalise_name(name)) for name in _NAMES[role] if normalise_name(name) in header_names),
        None,
    )


def column_of(table: Table, role: str) -> list[str]:
    """Return the cells of the column of a role."""
    at = find_common(table.header, role)
    if at is None:
        raise AnnotationError(
            f"{table.name} has no column for the {role}. It has: {listed(table.header)}. Call it {role}."
        )
    return table.column(at).fill_null("").to_list()


# ----------------------------------------------------------------------------------------------------
# The ground truth: an item and its class in each row.


def read_truth(path: str | Path, *, n_rows: int | None = None, what: str = "truth") -> dict[str, str]:
    """Read a table of items and their classes; rows without a class are skipped."""
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
    classes: dict[str, str] = {}
    for row, (item, label) in enumerate(zip(items, labels)):
        if label.strip() and classes.setdefault(item, label) != label:
            both = f"{shorten(classes[item])!r} and {shorten(label)!r}"
            raise AnnotationError(f"{table.place(row)}: {shorten(item)!r} has two classes, {both}. Keep one.")
    if not classes:
        raise AnnotationError(f"{path} names no class for any item, so there is no {what} in it.")
    return classes


# ----------------------------------------------------------------------------------------------------
# Gold: items whose label is known.


def read_gold(
    path: str | Path,
    annotations: Annotations,
    renamed: Mapping[str, str] | None = None,
    with_features: Collection[str] = (),
) -> dict[str, str]:
    """Read a table of items and their known labels.

    Rows without a label are skipped. Items that are neither among the annotations nor have features, and classes that
    no worker used, are left out and counted in a warning.
    """
    classes = read_truth(path, what="gold")
    spelled = {item: (renamed or {}).get(label, label) for item, label in classes.items()}
    return _usable(path, spelled, annotations, with_features)


def _usable(
    path: str | Path, label_of: dict[str, str], annotations: Annotations, with_features: Collection[str]
) -> dict[str, str]:
    """Return the labels that the annotations and features can use, and warn about the others."""
    items, classes = {*annotations.item_ids.tolist(), *with_features}, set(annotations.classes.tolist())
    here = {item: label for item, label in label_of.items() if item in items}
    if not here:
        raise AnnotationError(
            f"{path} names no item of the export: it has {listed(list(label_of))}; the export has items such as "
            f"{shorten(str(annotations.item_ids[0]))!r}."
        )
    usable = {item: label for item, label in here.items() if label in classes}
    if not usable:
        new = sorted(set(here.values()))
        raise AnnotationError(
            f"{path} names classes that no worker gave: {listed(new)}. There are: {listed(sorted(classes))}."
        )
    nowhere = "neither in the export nor in the features" if with_features else "not in the export"
    left_out = {nowhere: len(label_of) - len(here), "of a class that no worker gave": len(here) - len(usable)}
    excluded = " and ".join(f"{counted(n, 'item')} {why}" for why, n in left_out.items() if n)
    if excluded:
        warnings.warn(f"gold_left_out: Left out of {path}: {excluded}.", CrowdWarning, stacklevel=3)
    return usable


# ----------------------------------------------------------------------------------------------------
# Label maps: tables that rename labels, with the columns "from" and "to".

_COLUMNS = ("from", "to")


def read_label_map(path: str | Path) -> dict[str, str]:
    """Read a table of labels to rename."""
    table = open_table(path, "labels to rename")
    names = [normalise_name(name) for name in table.header]
    if missing := [name for name in _COLUMNS if name not in names]:
        raise AnnotationError(
            f"{path} has no column {listed(missing)}. It has: {listed(table.header)}. A label map has the columns "
            f"from,to."
        )
    old, new = (table.column(names.index(name)).fill_null("").to_list() for name in _COLUMNS)
    new_labels: dict[str, str] = {}
    for row, (before, after) in enumerate(zip(old, new)):
        if not before.strip():
            if after.strip():
                raise AnnotationError(f'{table.place(row)}: "from" is empty. Name the label that {after!r} replaces.')
            continue
        if new_labels.setdefault(before.strip(), after.strip()) != after.strip():
            both = f"{shorten(new_labels[before.strip()])!r} and {shorten(after)!r}"
            raise AnnotationError(f"{table.place(row)}: {shorten(before)!r} is renamed to both {both}. Keep one row.")
    if not new_labels:
        raise AnnotationError(f"{path} renames no label: it has no row with a label in the column from.")
    return new_labels


# ----------------------------------------------------------------------------------------------------
# Workers: which of them are machines.

_WORKER = "worker worker_id annotator annotator_id rater name id"


def read_kinds(path: str | Path) -> dict[str, WorkerKind]:
    """Read a table of workers: which are machines, and of which family, model, prompt and run."""
    table = open_table(path, "kinds of workers")
    worker, kind = find_named(table, _WORKER), find_named(table, COLUMN_NAMES["kind"])
    if worker is None or kind is None:
        raise AnnotationError(
            f"{path} needs the columns worker and kind (human or machine). It has: {listed(table.header)}."
        )
    for row, word in enumerate(table.column(kind).to_list()):
        if word and word.strip() and kind_from_word(word) is None:
            raise AnnotationError(f"{table.place(row)}: the kind is {shorten(word)!r}; it must be human or machine.")
    return kinds_of_workers(table, table.column(worker))


# ----------------------------------------------------------------------------------------------------
# CSV files whose columns are known by name, as NumPy arrays: integers where all cells are, text otherwise.
#
# The readers of exports recognise what the columns of an unknown file mean. The files of published data sets
# (`manyhands.datasets`) are known, so their columns are looked up by name. The file itself is parsed by the same reader
# (`text_tables`), with the same checks and error messages.

Column = npt.NDArray[Any]  # int64, or Python text as objects
_INTEGER = r"-?(0|[1-9][0-9]{0,17})"  # int() would also accept the 42_0 of snow2008/temp


def read_columns(source: Source, wanted: Sequence[str | Sequence[str]]) -> list[Column]:
    """Read columns of a CSV file that has a header."""
    text = as_utf8(source)
    frame, header, *_ = read_text_table(text)
    places = [_find(header, names, source.name) for names in wanted]
    blank = frame.select(pl.all_horizontal(pl.all().is_null())).to_series()
    rows = frame if not blank.any() else frame.filter(~blank)
    columns = [rows.to_series(at) for at in places]
    if any(column.null_count() for column in columns):
        _refuse_short_row(text, len(header))
    return [_as_numpy(column) for column in columns]


def _find(header: Sequence[str], names: str | Sequence[str], where: str) -> int:
    """Return the position of the first of these names that the header has."""
    names = (names,) if isinstance(names, str) else names
    for name in names:
        if name in header:
            return header.index(name)
    raise AnnotationError(f"{where} has no column {' or '.join(names)}. It has: {listed(header)}.")


def _refuse_short_row(source: Source, n_columns: int) -> None:
    """Refuse a file in which a row has fewer cells than the header; empty cells are allowed."""
    short_row = find_short_row(source, n_columns)
    if short_row is not None:
        line, n_cells = short_row
        raise AnnotationError(
            f"{source.name}, line {line}: {n_cells} cell(s) where the header names {n_columns} columns. "
            "Copy the file again."
        )


def _as_numpy(column: pl.Series) -> Column:
    """Return a column of text as int64, if all cells are integers, otherwise as Python strings."""
    column = column.fill_null("")
    if column.str.contains(f"^(?:{_INTEGER})$").all():
        return column.cast(pl.Int64).to_numpy(writable=True)
    texts = np.empty(len(column), object)
    texts[:] = column.to_list()
    return texts
