"""doccano: a zip or folder with one file per member of the project; the name of the file is the worker.

A project that shares its annotations exports a single ``all`` file, in which workers cannot be distinguished. Two older
formats name the worker in the record: ``annotations`` with ``user``, and ``labels`` with ``username``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import orjson

from manyhands.exceptions import AnnotationError, ManyhandsError
from manyhands.io import documents
from manyhands.io.documents import TABLE_SUFFIXES, Document, Folder, Records, Table, parse
from manyhands.io.formats.fields import item_at, objects_of, one_text, refusal
from manyhands.io.formats.long import COMMON_NAMES
from manyhands.io.judgements import (
    BOXES,
    MASKS,
    OTHERS,
    RELATIONS,
    SPANS,
    Collector,
    ColumnOptions,
    Judgements,
    Notes,
    find_column,
    kind_of_mark,
)
from manyhands.io.messages import listed, normalise_name
from manyhands.io.sources import Source

_QUESTION = "label"
_DATA = ("text", "data", "filename")
_MARKS = {"entities": SPANS, "relations": RELATIONS, "bbox": BOXES, "segmentation": MASKS}
_NOT_A_WORKER = ("all", "unknown")  # names of files of all workers together, and of records without a worker
_BEFORE_TEXT = b"\xef\xbb\xbf \t\r\n"  # a byte order mark and white space
_JOINT = "#"  # separates the labels of a cell
_WORKER_NAMES = {normalise_name(name) for name in COMMON_NAMES["worker"]} | {
    "annotators",
    "annotatorids",
    "workers",
    "workerids",
}


def recognise(document: Document) -> str | None:
    """Recognise records with a text, a list called ``label`` and no worker, or a folder of such files only."""
    if isinstance(document, Folder):
        non_blank = [source for source in document.members.values() if source.size]
        return "doccano" if non_blank and all(map(_is_member, non_blank)) else None
    if isinstance(document, Table):
        return "doccano" if _is_header(document.header) else None
    first = document.first if isinstance(document, Records) else {}
    return "doccano" if _is_record(first) or _names_workers(first) else None


def read(document: Document, format_name: str, options: ColumnOptions) -> Judgements:
    """Read one judgement per member and record; of shared annotations one per label, without a worker."""
    options.refuse("worker", "doccano", "the names of its files")
    options.refuse("label", "doccano", "label")
    rows, notes = Collector(), dict(getattr(document, "notes", {}))
    mapping = {"item": options.item or "id", "worker": "the name of the file", "label": "label"}
    if isinstance(document, Records) and _names_workers(document.first):
        return _read_older(document, format_name, options)
    for worker, member in _members(document, notes):
        if isinstance(member, Table):
            _add_table(rows, member, worker, options, notes)
        else:
            notes |= getattr(member, "notes", {})
            _add_records(rows, member, worker, options)
    if not isinstance(document, Folder) and Path(document.name).stem not in _NOT_A_WORKER:
        notes["worker_from_name"] = (
            f"doccano names a file after the worker, so all labels of {document.name} were taken for those of one. "
            "Give the whole zip or folder to read all workers."
        )
    return rows.judgements(document.name, format_name, mapping=mapping, notes=notes, refusal=_refusal(document, rows))


def _is_member(source: Source) -> bool:
    """Whether a file in a folder begins like a member's file; only its first line is read where that is enough."""
    try:
        if source.suffix in TABLE_SUFFIXES:
            document = parse(source)
            return isinstance(document, Table) and _is_header(document.header)
        if source.suffix == ".json":
            document = parse(source)
            return isinstance(document, Records) and _is_record(document.first)
        return source.suffix == ".jsonl" and _is_record(documents.loads(_first_line(source)))
    except (ManyhandsError, orjson.JSONDecodeError):
        return False


def _first_line(source: Source) -> bytes:
    """Return the first line of a file."""
    begins = source.head.lstrip(_BEFORE_TEXT)
    whole = begins if b"\n" in begins else source.read().lstrip(_BEFORE_TEXT)
    return whole.split(b"\n", 1)[0]


def _is_record(entry: Any) -> bool:
    """Whether an object is a record of doccano."""
    if not isinstance(entry, dict) or "id" not in entry or not any(key in entry for key in _DATA):
        return False
    if any(normalise_name(key) in _WORKER_NAMES for key in entry):
        return False
    spans = isinstance(entry.get("entities"), list) and isinstance(entry.get("relations"), list)
    marks = any(isinstance(entry.get(key), list) and "Comments" in entry for key in ("bbox", "segmentation"))
    return isinstance(entry.get("label"), list) or spans or marks


def _is_header(header: Sequence[str]) -> bool:
    """Whether a header is that of doccano: other tables may have id, text and label, but not its column of comments."""
    nameless = not any(normalise_name(name) in _WORKER_NAMES for name in header)
    return nameless and {"id", "label", "Comments"} <= set(header) and any(name in header for name in _DATA)


def _names_workers(entry: Mapping[str, Any]) -> bool:
    """Whether a record has one of the two older formats."""
    if {"doc_id", "username"} <= entry.keys():
        return isinstance(entry.get("labels"), list)
    given = entry.get("annotations")
    if not isinstance(given, list) or "text" not in entry:
        return False
    return "annotation_approver" in entry or any(isinstance(a, dict) and {"label", "user"} <= a.keys() for a in given)


def _members(document: Document, notes: Notes) -> Iterator[tuple[str, Document]]:
    """Yield every worker with their file; of the same records as JSON and as CSV, only the JSON."""
    if not isinstance(document, Folder):
        yield Path(document.name).stem, document
        return
    json = {name.rpartition(".")[0] for name in document.members if not name.lower().endswith(TABLE_SUFFIXES)}
    twice = [
        name for name in document.members if name.lower().endswith(TABLE_SUFFIXES) and name.rpartition(".")[0] in json
    ]
    if twice:
        notes["read_once"] = f"{listed(twice)} was not read, as there is a JSON file of the same member."
    for name, source in document.members.items():
        if source.size and name not in twice:
            yield PurePosixPath(name).stem, parse(source)


def _add_records(rows: Collector, document: Document, worker: str, options: ColumnOptions) -> None:
    """Add the records of one member."""
    objects, key = objects_of(document, "doccano"), options.item or "id"
    for at, entry in enumerate(objects, start=1):
        item = item_at(objects, at, key, document.name)
        labels, others = _labels(entry, document.name, at)
        _add(rows, item, worker, labels, others)


def _add_table(rows: Collector, table: Table, worker: str, options: ColumnOptions, notes: Notes) -> None:
    """Add the rows of a member's CSV file."""
    items = table.column(find_column(table.header, options.item or "id", "item", table.name))
    if "label" not in table.header:
        raise AnnotationError(f"{table.name} has no column called label, as every CSV file of doccano has.")
    cells = table.column(table.header.index("label"))
    for item, cell in zip(items.to_list(), cells.to_list()):
        _add(rows, item, worker, [label for label in (cell or "").split(_JOINT) if label.strip()])
    if any(cell and _JOINT in cell for cell in cells.to_list()):
        notes["joined_labels"] = "In CSV, doccano puts # between labels, so a label with a # in it was read as several."


def _add(rows: Collector, item: str | None, worker: str, labels: Sequence[str], others: Sequence[str] = ()) -> None:
    """Add one record; labels without a worker are a row each."""
    for kind in others:
        rows.others.add(kind)
    if others:
        rows.add(item, None if worker in _NOT_A_WORKER else worker, {}, "region")
    elif worker not in _NOT_A_WORKER:
        rows.add(item, worker, {_QUESTION: labels or None})
    elif not labels:
        rows.add(item, None, {})
    else:
        for label in labels:
            rows.add(item, None, {_QUESTION: label}, "no_worker")


def _labels(entry: Mapping[str, Any], source: str, at: int) -> tuple[list[str], list[str]]:
    """Return the labels of a record, and the kinds of marks that it has instead: spans, boxes, ..."""
    given = entry.get("label")
    labels = given if isinstance(given, list) else [] if given is None else [given]
    others = [kind for key, kind in _MARKS.items() if entry.get(key)]
    if any(isinstance(label, list | dict) for label in labels):
        others.append(kind_of_mark(labels) or OTHERS)
    if others:
        return [], others
    texts = [one_text(label, source, at, "label") for label in labels]
    return [text for text in texts if text is not None], []


def _read_older(document: Records, format_name: str, options: ColumnOptions) -> Judgements:
    """Read records that name their workers: ``annotations`` with label and user, or ``labels`` with username."""
    rows, objects, name = Collector(), objects_of(document, "doccano"), document.name
    by_user = "username" not in document.first
    key = options.item or ("id" if by_user else "doc_id")
    notes = dict(document.notes)
    for at, entry in enumerate(objects, start=1):
        item = item_at(objects, at, key, name)
        if by_user:
            _add_by_user(rows, entry, item, name, at)
            continue
        worker = one_text(entry.get("username"), name, at, "username") or None
        labels, others = _labels({"label": entry.get("labels")}, name, at)
        for kind in others:
            rows.others.add(kind)
        no_worker = "no_worker" if labels and worker is None else None
        rows.add(item, worker, {_QUESTION: labels or None}, "region" if others else no_worker)
    mapping = {"item": key, "worker": "username", "label": "labels"}
    if by_user:
        mapping = {"item": key, "worker": "annotations[].user", "label": "annotations[].label"}
        notes["numbered_labels"] = "This old export gives labels and workers by their numbers in doccano's database."
    return rows.judgements(name, format_name, mapping=mapping, notes=notes, refusal=_refusal(document, rows))


def _add_by_user(rows: Collector, entry: Mapping[str, Any], item: str, source: str, at: int) -> None:
    """Add one row for every user of a record, with all labels that they gave."""
    given = entry.get("annotations") or []
    if not isinstance(given, list) or not all(isinstance(annotation, dict) for annotation in given):
        raise AnnotationError(f"{source}, row {at}: annotations is not a list of objects. Export the file again.")
    labels: dict[str | None, list[str]] = {}
    for annotation in given:
        user = one_text(annotation.get("user"), source, at, "user")
        if "start_offset" in annotation:
            rows.others.add(SPANS)
            rows.add(item, user, {}, "region")
            continue
        label = one_text(annotation.get("label"), source, at, "label")
        labels.setdefault(user, []).extend([] if label is None else [label])
    for user, chosen in labels.items():
        rows.add(item, user, {_QUESTION: chosen or None}, "no_worker" if chosen and user is None else None)
    if not given:
        rows.add(item, None, {})


def _refusal(document: Document, rows: Collector) -> str | None:
    """Return why nothing can be aggregated, if so."""
    return refusal(
        rows,
        document.name,
        no_worker=f"{document.name} does not name the workers: the project shares its annotations, or the file "
        "is not a member's. In doccano, untick 'Share annotations across all users' and export one file per member.",
    )
