"""Which fields of an export describe the item: its text, its address, whatever the requester uploaded.

Tools that separate the item's data from the answers (Label Studio, MTurk, Toloka, Argilla, Labelbox) say so. In other
exports and in plain tables, a field belongs to the item if it is the same in all rows of an item; fields that differ
in more than a fifth of the items are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from manyhands.io.formats.item_entries import entries_with_items
from manyhands.io.formats.item_field_tables import OF_TABLES, add_rows_of_table
from manyhands.io.formats.label_studio_tasks import item_finder, tasks_of
from manyhands.io.formats.toloka_api import assignments_in
from manyhands.io.read.documents import Document, Folder, Records, Table
from manyhands.io.read.item_fields import ItemFields
from manyhands.io.read.judgements import ColumnOptions, Judgements

Row = tuple[str | None, Mapping[str, Any]]
_PRODIGY = {"options", "accept", "answer", "label", "config", "versions", "sessions", "style"}
_PRODIGY |= {"spans", "relations", "image_spans", "audio_spans"}
_DOCCANO = {"id", "doc_id", "label", "labels", "comments", "annotations", "entities", "relations", "username"}
_DOCCANO |= {"annotation_approver", "cats"}
_ARGILLA = {"id", "status", "_server_id", "responses", "suggestions", "vectors", "inserted_at", "updated_at"}
_ARGILLA_ENDINGS = (".responses", ".users", ".responses.status", ".suggestion", ".suggestion.score", ".agent")
_LABELBOX_V1 = {"Labeled Data": "row_data", "External ID": "external_id", "Global Key": "global_key"}


def add_fields(found: ItemFields, document: Document, judgements: Judgements, options: ColumnOptions) -> None:
    """Add the fields of the items of a document.

    Parameters
    ----------
    found : ItemFields
        Where they are added.
    document : Table, Records, Words or Folder
        A parsed file or folder.
    judgements : Judgements
        What was read from it.
    options : ColumnOptions
        Columns and question that the caller named.
    """
    read = _OF_OBJECTS.get(judgements.format)
    if read is not None and (isinstance(document, Records | Folder) or judgements.format not in OF_TABLES):
        for item, given in read(document, judgements, options):
            found.add(item, given)
    elif judgements.format in OF_TABLES and isinstance(document, Table | Records):
        add_rows_of_table(found, document, judgements, options)


def finish_fields(found: ItemFields, format_name: str, convert: Callable[[str], Any] | None = None) -> None:
    """Leave out what turns out not to be a field of items, once the fields of all files were added.

    Parameters
    ----------
    found : ItemFields
        The fields.
    format_name : str
        Name of the format.
    convert : callable or None, default=None
        Conversion of the item ids that the caller asked for.
    """
    if format_name not in _SEPARATE:
        found.drop_varying()
    found.drop_empty()
    if convert is not None:
        found.convert_items(convert)


_SEPARATE = (
    "label-studio",
    "mturk",
    "toloka",
    "toloka-api",
    "argilla",
    "labelbox",
    "wide",
    "lists",
    "counts",
    "lewidi",
)


def _label_studio(document: Document, judgements: Judgements, options: ColumnOptions) -> Iterator[Row]:
    """Yield the data of each task."""
    item_of, _ = item_finder(document, options.item)
    for task in tasks_of(document):
        data = task.get("data")
        yield item_of(task), data if isinstance(data, dict) else {}


def _toloka_api(document: Document, judgements: Judgements, options: ColumnOptions) -> Iterator[Row]:
    """Yield the input values of each task; there is a judgement for each, in this order."""
    assignments = assignments_in(document.value) if isinstance(document, Records) else None
    tasks = [task for assignment in assignments or () for task in assignment.get("tasks") or ()]
    for item, task in zip(judgements.item.to_list(), tasks, strict=True):
        yield item, task.get("input_values") or {}


def _prodigy(document: Document, judgements: Judgements, options: ColumnOptions) -> Iterator[Row]:
    """Yield the keys of each object that are neither answers nor Prodigy's own."""
    for item, entry in entries_with_items(document, "prodigy", options.item):
        yield item, {name: entry[name] for name in entry if not name.startswith("_") and name not in _PRODIGY}


def _argilla(document: Document, judgements: Judgements, options: ColumnOptions) -> Iterator[Row]:
    """Yield the fields and metadata of each record, nested or flattened."""
    for item, record in entries_with_items(document, "argilla", options.item):
        fields, metadata = record.get("fields"), record.get("metadata")
        if isinstance(fields, dict):
            more = metadata if isinstance(metadata, dict) else {}
            yield item, fields | {name if name not in fields else f"metadata.{name}": more[name] for name in more}
        else:
            names = [name for name in record if name not in _ARGILLA and not name.endswith(_ARGILLA_ENDINGS)]
            yield item, {name: record[name] for name in names}


def _doccano(document: Document, judgements: Judgements, options: ColumnOptions) -> Iterator[Row]:
    """Yield the text and metadata of each record of each member."""
    for item, entry in entries_with_items(document, "doccano", options.item):
        meta = entry.get("meta")
        given = {name: entry[name] for name in entry if name.lower() not in _DOCCANO and name != "meta"}
        yield item, given | (meta if isinstance(meta, dict) else {})


def _labelbox(document: Document, judgements: Judgements, options: ColumnOptions) -> Iterator[Row]:
    """Yield the data row of each entry, with its metadata."""
    for item, entry in entries_with_items(document, "labelbox", options.item):
        row = entry.get("data_row")
        if not isinstance(row, dict):
            yield item, {new: entry[old] for old, new in _LABELBOX_V1.items() if old in entry}
            continue
        given = {name: value for name, value in row.items() if name not in ("id", "details")}
        for one in entry.get("metadata_fields") or ():
            if isinstance(one, dict) and isinstance(name := one.get("schema_name") or one.get("name"), str):
                given.setdefault(name, one.get("value"))
        yield item, given


def _lewidi(document: Document, judgements: Judgements, options: ColumnOptions) -> Iterator[Row]:
    """Yield what each entry has beside its workers and labels."""
    entries = document.value if isinstance(document, Records) else {}
    for item, entry in entries.items():
        yield item, {name: entry[name] for name in entry if name not in ("annotations", "annotators")}


_OF_OBJECTS: dict[str, Callable[[Document, Judgements, ColumnOptions], Iterator[Row]]] = {
    "label-studio": _label_studio,
    "toloka-api": _toloka_api,
    "prodigy": _prodigy,
    "argilla": _argilla,
    "doccano": _doccano,
    "labelbox": _labelbox,
    "lewidi": _lewidi,
}
