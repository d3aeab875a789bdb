"""Fields of items in tables: uploaded columns of MTurk and Toloka, and the columns of plain tables."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import polars as pl

from manyhands.io.formats.item_columns import named_columns
from manyhands.io.formats.label_studio_tables import ADDED_COLUMNS, DATA_PREFIX
from manyhands.io.formats.long import COMMON_NAMES, as_table
from manyhands.io.formats.mturk_answers import read_answers
from manyhands.io.formats.numbered_items import find_numbered
from manyhands.io.messages import normalise_name
from manyhands.io.read.documents import Document, Records, Table
from manyhands.io.read.item_fields import ItemFields
from manyhands.io.read.judgements import ColumnOptions, Judgements

OF_TABLES = ("long", "wide", "toloka", "mturk", "appen", "label-studio-csv", "label-studio-min", "lists", "counts")
_INPUT, _ANSWER, _TOLOKA_INPUT = "Input.", "Answer.", "INPUT:"
_WORKER_NAMES = frozenset(map(normalise_name, COMMON_NAMES["worker"]))
_QUESTION_NAMES = frozenset(map(normalise_name, COMMON_NAMES["question"]))


def add_rows_of_table(found: ItemFields, document: Document, judgements: Judgements, options: ColumnOptions) -> None:
    """Add the fields of the items of a table.

    Parameters
    ----------
    found : ItemFields
        Where they are added.
    document : Table or Records
        A table, or a list of flat objects.
    judgements : Judgements
        What was read from it, in one of the formats `OF_TABLES`.
    options : ColumnOptions
        Columns and question that the caller named.
    """
    table = as_table(document)
    if judgements.format == "mturk":
        found.add_columns(judgements.item, _uploaded(table, options).items())
    elif judgements.format == "toloka":
        found.add_columns(judgements.item, named_columns(table, _TOLOKA_INPUT).items())
    else:
        at_item = _position(table.header, judgements.mapping["item"])
        items = _row_numbers(table) if at_item is None else table.column(at_item)
        names = _fields_of_items(table, judgements, at_item)
        if isinstance(document, Records) and document.objects:
            for item, entry in zip(items.to_list(), document.objects):
                found.add(item, {new: entry.get(table.header[at]) for at, new in names.items()})
        else:
            found.add_columns(items, [(new, table.original(at)) for at, new in names.items()])
        _drop_workers(found)


def _uploaded(table: Table, options: ColumnOptions) -> dict[str, pl.Series]:
    """Return the uploaded columns of an MTurk batch, with a row for each item of a HIT."""
    inputs = named_columns(table, _INPUT)
    answers, _ = read_answers(named_columns(table, _ANSWER), table.place)
    numbered = find_numbered(inputs, answers, options.item, (_INPUT, _ANSWER), table.name)
    return inputs if numbered is None else numbered.split_items(inputs, numbered.inputs)


def _fields_of_items(table: Table, judgements: Judgements, at_item: int | None) -> dict[int, str]:
    """Return the columns that may belong to items, and their names: all that are no item, worker, answer or time."""
    taken = {name.removesuffix("[]") for role, name in judgements.mapping.items() if role not in ("item", "gold")}
    taken |= judgements.answers.keys()
    if judgements.format == "wide":
        taken |= set(judgements.worker.unique().drop_nulls())
    if judgements.questions is not None:
        taken |= {name for name in table.header if normalise_name(name) in _QUESTION_NAMES}
    if judgements.format.startswith("label-studio"):
        taken |= ADDED_COLUMNS
    names: dict[int, str] = {}
    for at, name in enumerate(table.header):
        if at == at_item or name in taken or _is_technical(name, judgements.format):
            continue
        new = name.removeprefix(DATA_PREFIX) if judgements.format.startswith("label-studio") else name
        names[at] = _unused(new.strip() or f"column {at + 1}", names.values())
    return names


def _is_technical(name: str, format_name: str) -> bool:
    """Whether a column holds figures of the tool or counts of votes."""
    if format_name == "appen":  # its own columns, among them personal data of workers, and known answers
        return name.startswith("_") or name.endswith(("_gold_reason", ":confidence", ":variance", ":stddev"))
    return format_name == "counts" and (name == "count" or name.endswith("_count"))


def _drop_workers(found: ItemFields) -> None:
    """Leave out columns that are called like workers, unless repeated rows show that they belong to items."""
    for name, column in list(found.fields.items()):
        if normalise_name(name) in _WORKER_NAMES and not column.repeated:
            del found.fields[name]
            found.left_out.append(name)


def _position(header: Sequence[str], name: str) -> int | None:
    """Return the column that the mapping names; None if items are numbered."""
    if name == "the first column":
        return 0
    return header.index(name) if name in header else None


def _row_numbers(table: Table) -> pl.Series:
    """Return the number of each row, from 1."""
    return pl.Series([str(row + 1) for row in range(len(table))], dtype=pl.String)


def _unused(name: str, others: Collection[str]) -> str:
    """Return a name that no other column has."""
    new, number = name, 2
    while new in others:
        new, number = f"{name} ({number})", number + 1
    return new
