"""Fields of items as they came: text, address, any column that a training set needs beside the label.

The values of each item are collected from all rows and files; where they differ, the first is kept and the item is
counted. The file: `ItemFields`; which fields of each format describe the item; tables; entries of JSON exports;
`read_item_fields`; and a column that describes the workers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from manyhands.exceptions import AnnotationError, SeveralQuestionsError
from manyhands.io.documents import Document, Folder, Records, Table, as_text, open_document, parse
from manyhands.io.formats import read_document, recognised
from manyhands.io.formats.argilla import records_with_fields
from manyhands.io.formats.fields import field_of, named_columns
from manyhands.io.formats.label_studio import (
    ADDED_COLUMNS,
    DATA_PREFIX,
    Users,
    entries_of,
    item_finder,
    scalar_text,
    tasks_of,
)
from manyhands.io.formats.labelbox import item_of_entry
from manyhands.io.formats.long import COMMON_NAMES, as_table, has_roles
from manyhands.io.formats.mturk import find_numbered, read_answers
from manyhands.io.formats.toloka import assignments_in
from manyhands.io.judgements import ColumnOptions, Judgements, find_column
from manyhands.io.messages import counted, listed, normalise_name, shorten
from manyhands.io.side_tables import find_common

# Share of items with several rows in which a field of the item may differ by mistake. Fields of the worker or of the
# label differ in most items, so the share only has to be well below one half.
_MOST_CONFLICTS = 0.2


@dataclass
class _FieldValues:
    """Values of one field."""

    values: dict[str, Any] = field(default_factory=dict)  # item -> its first value that is neither null nor blank
    repeated: set[str] = field(default_factory=set)  # items with more than one such value, equal or not
    conflicts: set[str] = field(default_factory=set)  # items with values that differ
    blank: set[str] = field(default_factory=set)  # items with a row in which there is no value

    def add(self, item: str, value: Any) -> None:
        """Add one value of an item."""
        if value is None or (type(value) is str and not value.strip()):
            self.blank.add(item)
            return
        if item not in self.values:
            self.values[item] = value
            return
        self.repeated.add(item)
        value_before = self.values[item]
        if value_before is not value and (value_before != value or type(value_before) is not type(value)):
            self.conflicts.add(item)

    @property
    def varies(self) -> bool:
        """Whether the field belongs to rows, not to items: it differs within more than a fifth of the items.

        A comment of one worker is blank in the rows of the others, so that a blank row differs as well.
        """
        partly = self.blank & self.values.keys()
        return len(self.conflicts | partly) > _MOST_CONFLICTS * len(self.repeated | partly)


class ItemFields:
    """Fields of items by name, in the order of the file.

    Examples
    --------
    >>> found = ItemFields()
    >>> found.add("a", {"text": "Great!", "url": None})
    >>> found.add("a", {"text": "Great !"})
    >>> found.values("text"), found.notes()["field_conflicts"]
    ({'a': 'Great!'}, '1 item has different values of text; the first of each was kept.')
    """

    def __init__(self) -> None:
        """Start without fields."""
        self.fields: dict[str, _FieldValues] = {}
        self.left_out: list[str] = []
        self.hidden: list[str] = []

    def __len__(self) -> int:
        """Return the number of fields."""
        return len(self.fields)

    def add(self, item: str | None, given: Mapping[str, Any]) -> None:
        """Add the fields of one row."""
        if item is None:
            return
        for name, value in given.items():
            self._column(name).add(item, value)

    def add_columns(self, items: pl.Series, columns: Iterable[tuple[str, pl.Series]]) -> None:
        """Add the columns of a table."""
        items = items.alias("item")
        for name, column in columns:
            into = self._column(name)
            if column.dtype.is_nested() or column.dtype == pl.Object:
                for item, value in zip(items.to_list(), column.to_list()):
                    if item is not None:
                        into.add(item, value)
                continue
            cells = pl.DataFrame([items, column.alias("value")]).filter(pl.col("item").is_not_null())
            is_blank = pl.col("value").is_null()
            if column.dtype == pl.String:
                is_blank |= pl.col("value").str.strip_chars() == ""
            into.blank |= set(cells.filter(is_blank)["item"].unique().to_list())
            cells = cells.filter(~is_blank)
            # Equal values of an item are one; a row more keeps the item among the repeated ones.
            by_item = cells.group_by("item", maintain_order=True).agg(
                pl.col("value").first(), pl.len().alias("n"), pl.col("value").n_unique().alias("n_values")
            )
            for item, value, n_rows, n_values in by_item.iter_rows():
                into.add(item, value)
                if n_rows > 1:
                    into.repeated.add(item)
                if n_values > 1:
                    into.conflicts.add(item)

    def drop_varying(self) -> None:
        """Leave out the fields that belong to rows, for formats that do not say which columns belong to items."""
        varying = [name for name, field in self.fields.items() if field.varies]
        for name in varying:
            del self.fields[name]
        self.left_out += varying

    def drop_empty(self) -> None:
        """Forget fields without any value."""
        self.fields = {name: field for name, field in self.fields.items() if field.values}

    def drop_values(self, hidden: set[str]) -> None:
        """Leave out the fields in which one of some texts stands, such as worker ids that pseudonyms replace."""
        texts = {text for text in hidden if not text.isdigit()}
        for name, column in list(self.fields.items()):
            if any(type(value) is str and value.strip() in texts for value in column.values.values()):
                del self.fields[name]
                self.hidden.append(name)

    def values(self, name: str) -> dict[str, Any]:
        """Return the values of one field."""
        return self.fields[name].values

    def convert_items(self, convert: Callable[[str], Any]) -> None:
        """Convert the item ids as the caller asked for."""
        for column in self.fields.values():
            column.values = {convert(item): value for item, value in column.values.items()}

    def notes(self) -> dict[str, str]:
        """Return notes on fields that were left out, and on items with several values."""
        notes = {}
        if self.left_out:
            notes["fields_left_out"] = (
                f"Not fields of items, as they differ between the rows of an item: {listed(self.left_out)}."
            )
        if self.hidden:
            notes["fields_of_workers"] = f"Left out, as worker ids stand in them: {listed(self.hidden)}."
        mixed = {name: field.conflicts for name, field in self.fields.items() if field.conflicts}
        if mixed:
            items = set().union(*mixed.values())
            have = "has" if len(items) == 1 else "have"
            notes["field_conflicts"] = (
                f"{counted(len(items), 'item')} {have} different values of {listed(list(mixed))}; the first of each "
                f"was kept."
            )
        return notes

    def _column(self, name: str) -> _FieldValues:
        """Return the values of a field, which is new at its first use."""
        return self.fields.setdefault(name, _FieldValues())


# ----------------------------------------------------------------------------------------------------
# Which fields of an export describe the item: its text, its address, whatever the requester uploaded.
#
# Tools that separate the item's data from the answers (Label Studio, MTurk, Toloka, Argilla, Labelbox) say so. In other
# exports and in plain tables, a field belongs to the item if it is the same in all rows of an item; fields that differ
# in more than a fifth of the items are left out.

_Row = tuple[str | None, Mapping[str, Any]]
_PRODIGY = {"options", "accept", "answer", "label", "config", "versions", "sessions", "style"}
_PRODIGY |= {"spans", "relations", "image_spans", "audio_spans"}
_DOCCANO = {"id", "doc_id", "label", "labels", "comments", "annotations", "entities", "relations", "username"}
_DOCCANO |= {"annotation_approver", "cats"}
_ARGILLA = {"id", "status", "_server_id", "responses", "suggestions", "vectors", "inserted_at", "updated_at"}
_ARGILLA_ENDINGS = (".responses", ".users", ".responses.status", ".suggestion", ".suggestion.score", ".agent")
_LABELBOX_V1 = {"Labeled Data": "row_data", "External ID": "external_id", "Global Key": "global_key"}


def add_fields(fields_of_items: ItemFields, document: Document, judgements: Judgements, options: ColumnOptions) -> None:
    """Add the fields of the items of a document."""
    read = _OF_OBJECTS.get(judgements.format)
    if read is not None and (isinstance(document, Records | Folder) or judgements.format not in _OF_TABLES):
        for item, fields in read(document, judgements, options):
            fields_of_items.add(item, fields)
    elif judgements.format in _OF_TABLES and isinstance(document, Table | Records):
        _add_rows_of_table(fields_of_items, document, judgements, options)


def finish_fields(fields_of_items: ItemFields, format_name: str, convert: Callable[[str], Any] | None = None) -> None:
    """Leave out what turns out not to be a field of items, once the fields of all files were added."""
    if format_name not in _SEPARATE:
        fields_of_items.drop_varying()
    fields_of_items.drop_empty()
    if convert is not None:
        fields_of_items.convert_items(convert)


_SEPARATE = (
    "label-studio",
    "mturk",
    "toloka",
    "toloka-api",
    "argilla",
    "argilla-1",
    "labelbox",
    "wide",
    "lists",
    "counts",
    "lewidi",
)


def _label_studio(document: Document, judgements: Judgements, options: ColumnOptions) -> Iterator[_Row]:
    """Yield the data of each task."""
    item_of, _ = item_finder(document, options.item)
    for task in tasks_of(document):
        data = task.get("data")
        yield item_of(task), data if isinstance(data, dict) else {}


def _toloka_api(document: Document, judgements: Judgements, options: ColumnOptions) -> Iterator[_Row]:
    """Yield the input values of each task; there is a judgement for each, in this order."""
    assignments = assignments_in(document.value) if isinstance(document, Records) else None
    tasks = [task for assignment in assignments or () for task in assignment.get("tasks") or ()]
    for item, task in zip(judgements.item.to_list(), tasks, strict=True):
        yield item, task.get("input_values") or {}


def _prodigy(document: Document, judgements: Judgements, options: ColumnOptions) -> Iterator[_Row]:
    """Yield the keys of each object that are neither answers nor Prodigy's own."""
    for item, entry in entries_with_items(document, "prodigy", options.item):
        yield item, {name: entry[name] for name in entry if not name.startswith("_") and name not in _PRODIGY}


def _argilla(document: Document, judgements: Judgements, options: ColumnOptions) -> Iterator[_Row]:
    """Yield the fields and metadata of each record, nested or flattened."""
    for item, record in entries_with_items(document, "argilla", options.item):
        fields, metadata = record.get("fields"), record.get("metadata")
        if isinstance(fields, dict):
            more = metadata if isinstance(metadata, dict) else {}
            yield item, fields | {name if name not in fields else f"metadata.{name}": more[name] for name in more}
        else:
            names = [name for name in record if name not in _ARGILLA and not name.endswith(_ARGILLA_ENDINGS)]
            yield item, {name: record[name] for name in names}


def _argilla_feedback(document: Document, judgements: Judgements, options: ColumnOptions) -> Iterator[_Row]:
    """Yield the fields and metadata of each feedback record."""
    for record, fields in records_with_fields(document):
        yield as_text(record["id"] if options.item is None else field_of(record, options.item)), fields


def _doccano(document: Document, judgements: Judgements, options: ColumnOptions) -> Iterator[_Row]:
    """Yield the text and metadata of each record of each member."""
    for item, entry in entries_with_items(document, "doccano", options.item):
        meta = entry.get("meta")
        fields = {name: entry[name] for name in entry if name.lower() not in _DOCCANO and name != "meta"}
        yield item, fields | (meta if isinstance(meta, dict) else {})


def _labelbox(document: Document, judgements: Judgements, options: ColumnOptions) -> Iterator[_Row]:
    """Yield the data row of each entry, with its metadata."""
    for item, entry in entries_with_items(document, "labelbox", options.item):
        row = entry.get("data_row")
        if not isinstance(row, dict):
            yield item, {new: entry[old] for old, new in _LABELBOX_V1.items() if old in entry}
            continue
        fields = {name: value for name, value in row.items() if name not in ("id", "details")}
        for one in entry.get("metadata_fields") or ():
            if isinstance(one, dict) and isinstance(name := one.get("schema_name") or one.get("name"), str):
                fields.setdefault(name, one.get("value"))
        yield item, fields


def _lewidi(document: Document, judgements: Judgements, options: ColumnOptions) -> Iterator[_Row]:
    """Yield what each entry has beside its workers and labels."""
    entries = document.value if isinstance(document, Records) else {}
    for item, entry in entries.items():
        yield item, {name: entry[name] for name in entry if name not in ("annotations", "annotators")}


_OF_OBJECTS: dict[str, Callable[[Document, Judgements, ColumnOptions], Iterator[_Row]]] = {
    "label-studio": _label_studio,
    "toloka-api": _toloka_api,
    "prodigy": _prodigy,
    "argilla": _argilla,
    "argilla-1": _argilla_feedback,
    "doccano": _doccano,
    "labelbox": _labelbox,
    "lewidi": _lewidi,
}


# ----------------------------------------------------------------------------------------------------
# Fields of items in tables: uploaded columns of MTurk and Toloka, and the columns of plain tables.

_OF_TABLES = ("long", "wide", "toloka", "mturk", "appen", "label-studio-csv", "label-studio-min", "lists", "counts")
_INPUT, _ANSWER, _TOLOKA_INPUT = "Input.", "Answer.", "INPUT:"
_WORKER_NAMES = frozenset(map(normalise_name, COMMON_NAMES["worker"]))
_QUESTION_NAMES = frozenset(map(normalise_name, COMMON_NAMES["question"]))


def _add_rows_of_table(
    fields_of_items: ItemFields, document: Document, judgements: Judgements, options: ColumnOptions
) -> None:
    """Add the fields of the items of a table."""
    table = as_table(document)
    if judgements.format == "mturk":
        fields_of_items.add_columns(judgements.item, _uploaded(table, options).items())
    elif judgements.format == "toloka":
        fields_of_items.add_columns(judgements.item, named_columns(table, _TOLOKA_INPUT).items())
    else:
        at_item = _position(table.header, judgements.mapping["item"])
        items = _row_numbers(table) if at_item is None else table.column(at_item)
        names = _fields_of_items(table, judgements, at_item)
        if isinstance(document, Records) and document.objects:
            for item, entry in zip(items.to_list(), document.objects):
                fields_of_items.add(item, {new: entry.get(table.header[at]) for at, new in names.items()})
        else:
            fields_of_items.add_columns(items, [(new, table.original(at)) for at, new in names.items()])
        _drop_workers(fields_of_items)


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


def _drop_workers(fields_of_items: ItemFields) -> None:
    """Leave out columns that are called like workers, unless repeated rows show that they belong to items."""
    for name, column in list(fields_of_items.fields.items()):
        if normalise_name(name) in _WORKER_NAMES and not column.repeated:
            del fields_of_items.fields[name]
            fields_of_items.left_out.append(name)


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


# ----------------------------------------------------------------------------------------------------
# Entries of JSON exports with their items, for what is read beside the labels and for what is written back.

Entry = dict[str, Any]


def entries_with_items(document: Document, format_name: str, item: str | None) -> Iterator[tuple[str | None, Entry]]:
    """Yield every entry of an export with its item."""
    members = [parse(file) for file in document.members.values() if file.size] if isinstance(document, Folder) else []
    for member in members or [document]:
        for at, entry in enumerate(_objects(member), start=1):
            if format_name == "labelbox":
                yield item_of_entry(entry, item, member.name, at), entry
            else:
                yield as_text(_id(entry, format_name) if item is None else field_of(entry, item)), entry


def _id(entry: Entry, format_name: str) -> Any:
    """Return the id of an entry."""
    if format_name == "prodigy":
        return entry.get("_input_hash")
    if format_name == "argilla":
        return entry.get("_server_id" if entry.get("id") is None else "id")
    return entry.get("id", entry.get("doc_id"))


def _objects(document: Document) -> list[Entry]:
    """Return the objects of a JSON file, or the rows of a table."""
    if isinstance(document, Table):
        return [dict(zip(document.header, row)) for row in document.frame.iter_rows()]
    value = document.value if isinstance(document, Records) else []
    return [entry for entry in (value if isinstance(value, list) else [value]) if isinstance(entry, dict)]


# ----------------------------------------------------------------------------------------------------
# `read_item_fields`: the fields of items alone, from an export or from a table of items.


def read_item_fields(path: Any, *, item: str | None = None, encoding: str | None = None) -> ItemFields:
    """Read what a file says about each item."""
    fields, format_name = ItemFields(), "items"
    for document in _documents(path, encoding):
        exported = _export_format(document)
        if exported is None:
            _add_items(fields, as_table(document), item)
        else:
            format_name = _add_export(fields, document, exported, item)
    finish_fields(fields, format_name)
    return fields


def fields_of_export(document: Document, item: str | None, named: bool) -> ItemFields | None:
    """Return the fields of the items of an export of a tool, or of a table of labels with several rows per item."""
    exported = _export_format(document)
    if exported is None or (exported == "long" and (named or not _repeats_items(as_table(document), item))):
        return None
    fields = ItemFields()
    finish_fields(fields, _add_export(fields, document, exported, item))
    return fields


def _export_format(document: Document) -> str | None:
    """Return the format of an export; None for a table of items, which has no labels of workers."""
    name = recognised(document, layouts=False)
    if name is not None:
        return name
    header = document.header if isinstance(document, Table) else list(getattr(document, "first", {}))
    return "long" if has_roles(header) else None


def _repeats_items(table: Table, item: str | None) -> bool:
    """Whether an item has several rows."""
    at = find_common(table.header, "item") if item is None else find_column(table.header, item, "item", table.name)
    ids = None if at is None else table.column(at).drop_nulls()
    return ids is not None and ids.n_unique() < len(ids)


def _documents(path: Any, encoding: str | None) -> list[Document]:
    """Return one document, or the files of a folder that is not an export as a whole."""
    document = open_document(path, encoding)
    if not isinstance(document, Folder) or recognised(document) is not None:
        return [document]
    return [parse(source, encoding) for source in document.members.values() if source.size]


def _add_export(fields_of_items: ItemFields, document: Document, format_name: str, item: str | None) -> str:
    """Add the fields of an export; they do not depend on the question."""
    options = ColumnOptions(item=item)
    try:
        judgements = read_document(document, options, format_name)
    except SeveralQuestionsError as error:
        options = ColumnOptions(item=item, question=error.questions[0])
        judgements = read_document(document, options, format_name)
    add_fields(fields_of_items, document, judgements, options)
    return judgements.format


def _add_items(fields_of_items: ItemFields, table: Table, item: str | None) -> None:
    """Add the columns of a table with a row for each item."""
    at = find_common(table.header, "item") if item is None else find_column(table.header, item, "item", table.name)
    if at is None:
        raise AnnotationError(
            f"{table.name} has no column that looks like ids of items. It has: {listed(table.header)}. Call it item."
        )
    others = [place for place in range(len(table.header)) if place != at]
    fields_of_items.add_columns(table.column(at), [(table.header[place], table.original(place)) for place in others])


# ----------------------------------------------------------------------------------------------------
# A column of the export that describes workers, such as their country or team.

_Counts = dict[str, Counter[str]]  # worker -> value of the column -> number of rows
_LABEL_STUDIO = "label-studio"
_MOST_VARYING = 0.5  # share of workers with several values: if most of them have several, it is not about workers
_INSTEAD = "give a table of the workers and their groups instead (`groups=`)"


def count_groups(document: Document, judgements: Judgements, wanted: str) -> _Counts:
    """Count what a column says in the rows of each worker."""
    if judgements.format == _LABEL_STUDIO:
        return _of_users(document, judgements.source, wanted)
    if not isinstance(document, Table) and not (isinstance(document, Records) and document.objects):
        raise _no_columns(judgements)
    table = as_table(document)
    workers = _workers(table, judgements)
    at = find_column(table.header, wanted, "group-column", table.name)
    if table.header[at] in (judgements.mapping.get("item"), judgements.mapping.get("label")):
        raise AnnotationError(f"The column {table.header[at]!r} of {table.name} holds items or labels, not groups.")
    rows = pl.DataFrame({"worker": workers, "group": table.column(at).str.strip_chars()})
    rows = rows.filter(pl.col("worker").is_not_null() & pl.col("group").is_not_null() & (pl.col("group") != ""))
    counts: _Counts = {}
    for worker, group, n in rows.group_by("worker", "group", maintain_order=True).len().iter_rows():
        counts.setdefault(worker, Counter())[group] += n
    return counts


def settle_groups(
    parts: list[_Counts], wanted: str, source: str, renamed: Mapping[str, str]
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the group of each worker, the most frequent value of the worker's rows."""
    counts: _Counts = {}
    for part in parts:
        for worker, values in part.items():
            counts.setdefault(renamed.get(worker, worker), Counter()).update(values)
    if not counts:
        raise AnnotationError(f"The column {shorten(wanted)!r} of {source} is empty: name another one.")
    groups = {worker: min(values, key=lambda text: (-values[text], text)) for worker, values in counts.items()}
    varying = [worker for worker, values in counts.items() if len(values) > 1]
    if not varying:
        return groups, {}
    example = counts[varying[0]].most_common(2)
    shown = " and ".join(f"{shorten(text)!r} in {counted(n, 'row')}" for text, n in example)
    several = (
        f"{len(varying)} of {counted(len(counts), 'worker')} {'has' if len(varying) == 1 else 'have'} several values"
    )
    sentence = f"{several} in the column {shorten(wanted)!r}, such as {shorten(varying[0])!r}: {shown}"
    if len(varying) > _MOST_VARYING * len(counts):
        raise AnnotationError(f"{sentence}. So it does not describe workers: name one that does, or {_INSTEAD}.")
    return groups, {"varying_groups": f"{sentence}; the most frequent one counts."}


def _workers(table: Table, judgements: Judgements) -> pl.Series:
    """Return the worker of each row of a table, also where a row has several items."""
    if len(table) == len(judgements):
        return judgements.worker
    name = judgements.mapping.get("worker")
    if name not in table.header:
        raise _no_columns(judgements)
    return table.column(table.header.index(name))


def _of_users(document: Document, source: str, wanted: str) -> _Counts:
    """Count what the users of a Label Studio export are, by a field of the objects that describe them."""
    users, counts, fields = Users(), _Counts(), dict[str, None]()
    for task in tasks_of(document):
        for annotation in entries_of(task, "annotations", source) or entries_of(task, "completions", source):
            user: Any = annotation.get("completed_by") if isinstance(annotation, dict) else None
            if not isinstance(user, dict):
                continue
            fields |= dict.fromkeys(user)
            worker, key = users.name(user), _key(user, wanted)
            text = None if key is None else scalar_text(user[key])
            if worker is not None and text is not None and text.strip():
                counts.setdefault(worker, Counter())[text.strip()] += 1
    if not any(normalise_name(name) == normalise_name(wanted) for name in fields):
        has = f"they have: {listed(list(fields))}" if fields else "they are named by number only"
        raise AnnotationError(
            f"The users of {source} (completed_by) have no field {shorten(wanted)!r}; {has}. "
            f"Name another, or {_INSTEAD}."
        )
    return counts


def _key(user: Mapping[str, Any], wanted: str) -> str | None:
    """Return the field of a user with this name, whatever its spelling."""
    if wanted in user:
        return wanted
    return next((name for name in user if normalise_name(name) == normalise_name(wanted)), None)


def _no_columns(judgements: Judgements) -> AnnotationError:
    """Return the error that an export has no columns that belong to workers."""
    return AnnotationError(
        f"{judgements.source} ({judgements.format}) has no row for each worker's label, so no column of it describes "
        f"workers: {_INSTEAD}."
    )
