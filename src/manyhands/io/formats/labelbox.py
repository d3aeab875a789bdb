"""Labelbox: data rows with the labels of one or several projects (export v2), and the retired export v1.

A classification inside an answer is a question of its own, ``question/subquestion``. If a file holds labels of several
projects, questions are called ``project/question``, and only the labels of the selected project are read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import orjson

from manyhands.exceptions import AnnotationError
from manyhands.io.formats.fields import field_of, objects_of, only_question, refusal, refuse_unknown_field, set_times
from manyhands.io.formats.labelbox_answers import Answers, Place, one_or_several, read_answers
from manyhands.io.messages import find_question, listed
from manyhands.io.read import exact_json
from manyhands.io.read.documents import Document, Records, Table
from manyhands.io.read.judgements import Collector, ColumnOptions, Judgements
from manyhands.io.read.other_kinds import OTHERS, RELATIONS, kind_of_mark
from manyhands.io.read.working_time import ROLE, seconds_of

_V1 = {"Labeled Data", "Label", "Created By"}
_ITEM_KEYS = ("global_key", "external_id", "id")
_ITEM_KEYS_V1 = ("Global Key", "External ID", "DataRow ID")


@dataclass(frozen=True)
class _Label:
    """One label of a data row, or a data row without a label in a project."""

    project: str | None
    item: str
    worker: str | None
    answers: Answers
    reason: str | None = None
    time: Any = None
    others: tuple[tuple[str, str | None], ...] = ()
    seconds: Any = None


def recognise(document: Document) -> str | None:
    """Recognise data rows with projects (v2), or the columns of v1.

    Parameters
    ----------
    document : Table, Records, Words or Folder
        A parsed file or folder.

    Returns
    -------
    str or None
        ``"labelbox"``; None for any other document.
    """
    if isinstance(document, Table):
        return "labelbox" if set(document.header) >= _V1 else None
    first = document.first if isinstance(document, Records) else {}
    v2 = isinstance(first.get("data_row"), dict) and "projects" in first
    return "labelbox" if v2 or first.keys() >= _V1 else None


def read(document: Document, format_name: str, options: ColumnOptions) -> Judgements:
    """Read one judgement per label, and one without a label for every data row that has none.

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
        One row per label.

    Raises
    ------
    AnnotationError
        If the document is not of this format, or inconsistent.
    """
    options.refuse("worker", "Labelbox", "created_by")
    name = document.name
    entries = _table_rows(document) if isinstance(document, Table) else objects_of(document, "Labelbox")
    v1 = any(entry.keys() >= _V1 for entry in entries)
    names: dict[str, str] = {}
    labels: list[_Label] = []
    for at, entry in enumerate(entries, start=1):
        labels.extend((_labels_v1 if v1 else _labels_v2)(entry, Place(name, at), options.item, names))
    if options.item and labels and not any(label.item for label in labels):
        inner = [key for entry in entries for key in (entry if v1 else entry["data_row"])]
        raise refuse_unknown_field(options.item, "item", name, inner)
    rows = Collector()
    labels = _of_one_project(labels, names, options, name)
    for label in labels:
        for kind, feature in label.others:
            rows.others.add(kind, feature)
        rows.add(label.item, label.worker, label.answers, label.reason)
        if label.reason == "gold_account":
            for question, answer in label.answers.items():
                rows.gold[question][label.item] = (answer,) if isinstance(answer, str) else tuple(answer)
    notes = set_times(rows, [label.time for label in labels])
    only_question(rows, options, name)
    seconds, unread = seconds_of([label.seconds for label in labels])
    where = {} if seconds is None else {ROLE: "Seconds to Label" if v1 else "performance_details.seconds_to_create"}
    return rows.judgements(
        name,
        format_name,
        seconds=seconds,
        mapping=_mapping(v1, options.item) | where,
        notes=getattr(document, "notes", {}) | notes | unread | (_NOTE_V1 if v1 else {}),
        refusal=_refusal(name, rows),
    )


_NOTE_V1 = {"retired_export": "This is Labelbox's export v1, in which benchmark labels are not marked."}


def _mapping(v1: bool, item: str | None) -> dict[str, str]:
    """Return where item, worker, label and time were found."""
    if v1:
        where = {"item": item or ", else ".join(_ITEM_KEYS_V1), "worker": "Created By"}
        return where | {"label": "Label.classifications[].answer", "time": "Created At"}
    return {
        "item": item or "data_row." + ", else ".join(_ITEM_KEYS),
        "worker": "label_details.created_by",
        "label": "annotations.classifications[]",
        "time": "label_details.created_at",
    }


def _labels_v2(
    entry: Mapping[str, Any], place: Place, item_field: str | None, names: dict[str, str]
) -> Iterator[_Label]:
    """Yield the labels of a data row."""
    data_row = entry.get("data_row")
    if not isinstance(data_row, dict):
        raise AnnotationError(f"{place.source}, row {place.row} has no data_row. Remove it, or export the file again.")
    item = _item(data_row, entry, item_field, _ITEM_KEYS, place)
    projects = place.part(entry.get("projects"), dict, "projects")
    for project, value in projects.items():
        content = place.part(value, dict, f"projects.{project}")
        names[project] = place.text(content.get("name"), "a project's name") or project
        given = place.objects(content.get("labels"), "labels")
        for label in given:
            yield _label_v2(label, project, item, place)
        if not given:
            yield _Label(project, item, None, {})
    if not projects:
        yield _Label(None, item, None, {})


def _label_v2(label: Mapping[str, Any], project: str, item: str, place: Place) -> _Label:
    """Return one label of export v2."""
    details = place.part(label.get("label_details"), dict, "label_details")
    performance = place.part(label.get("performance_details"), dict, "performance_details")
    annotations = place.part(label.get("annotations"), dict, "annotations")
    worker = place.text(details.get("created_by"), "created_by") or None
    answers = read_answers(annotations.get("classifications"), place)
    parts = _marks(annotations)
    skipped = performance.get("skipped") is True
    reason = _reason(worker, answers, skipped, bool(parts), details.get("is_benchmark_reference") is True)
    return _Label(
        project, item, worker, answers, reason, details.get("created_at"), parts, performance.get("seconds_to_create")
    )


def _labels_v1(
    entry: Mapping[str, Any], place: Place, item_field: str | None, names: dict[str, str]
) -> Iterator[_Label]:
    """Yield the label of a row of export v1."""
    project = place.text(entry.get("Project Name"), "Project Name") or ""
    names[project] = project
    label = entry.get("Label")
    skipped = str(entry.get("Skipped")).lower() == "true" or label == "Skip"
    content = {} if skipped or label == "" else place.part(_from_json(label), dict, "Label")
    worker = place.text(entry.get("Created By"), "Created By") or None
    if {"classifications", "objects"} & content.keys():
        answers = read_answers(content.get("classifications"), place)
    else:  # the oldest form: an answer by question
        found = {question: one_or_several(answer, question, place) for question, answer in content.items()}
        answers = {question: answer for question, answer in found.items() if answer}
    parts = _marks(content)
    reason = _reason(worker, answers, skipped, bool(parts), False)
    item = _item(entry, entry, item_field, _ITEM_KEYS_V1, place)
    yield _Label(project, item, worker, answers, reason, entry.get("Created At"), parts, entry.get("Seconds to Label"))


def _marks(annotations: Mapping[str, Any]) -> tuple[tuple[str, str | None], ...]:
    """Return kind and name of what marks parts of a data row."""
    found: list[tuple[str, str | None]] = []
    objects = annotations.get("objects")
    for mark in objects if isinstance(objects, list) else ():
        name = mark.get("name") or mark.get("title") if isinstance(mark, dict) else None
        found.append((kind_of_mark(mark) or OTHERS, name if isinstance(name, str) else None))
    found += [(OTHERS, None)] * bool(annotations.get("frames") or annotations.get("segments"))
    return (*found, *([(RELATIONS, None)] if annotations.get("relationships") else []))


def _from_json(label: Any) -> Any:
    """Return a label of a JSON file, or parse the text of a CSV cell."""
    if not isinstance(label, str):
        return label
    try:
        return exact_json.loads(label)
    except orjson.JSONDecodeError:
        return label


def _table_rows(table: Table) -> list[dict[str, Any]]:
    """Return the rows of a table as objects."""
    return [dict(zip(table.header, row)) for row in table.frame.iter_rows()]


def item_of_entry(entry: Mapping[str, Any], wanted: str | None, source: str, row: int) -> str:
    """Return the item id of an entry of either export.

    Parameters
    ----------
    entry : mapping of str to object
        A data row with its projects (v2), or a row of export v1.
    wanted : str or None
        Field that the caller named.
    source : str
        Name of the file, for error messages.
    row : int
        Number of the entry, from 1.

    Returns
    -------
    str
        The id.
    """
    data_row = entry.get("data_row")
    if isinstance(data_row, dict):
        return _item(data_row, entry, wanted, _ITEM_KEYS, Place(source, row))
    return _item(entry, entry, wanted, _ITEM_KEYS_V1, Place(source, row))


def _item(
    data_row: Mapping[str, Any], entry: Mapping[str, Any], wanted: str | None, keys: Sequence[str], place: Place
) -> str:
    """Return the item id; with a field that the caller named it may be empty, which is an error only if all are."""
    if wanted is not None:
        found = field_of(data_row, wanted)
        return place.text(field_of(entry, wanted) if found is None else found, wanted) or ""
    for key in keys:
        item = place.text(data_row.get(key), key)
        if item:
            return item
    raise AnnotationError(f"{place.source}, row {place.row} has none of {', '.join(keys)}. Name a field with --item.")


def _reason(worker: str | None, answers: Answers, skipped: bool, parts: bool, benchmark: bool) -> str | None:
    """Return why a label does not count."""
    if benchmark:
        return "gold_account"
    if skipped:
        return "skipped"
    if parts and not answers:
        return "region"
    return "no_worker" if answers and worker is None else None


def _of_one_project(labels: list[_Label], ids: Mapping[str, str], options: ColumnOptions, source: str) -> list[_Label]:
    """Return the labels of the selected project; those of another leave none of its questions unanswered."""
    answered = list(dict.fromkeys(label.project for label in labels if label.answers and label.project is not None))
    if not answered:
        return labels
    if len(answered) == 1:
        return [label for label in labels if label.project in (answered[0], None)]
    unique = len({ids[project] for project in answered}) == len(answered)
    prefix = {project: f"{ids[project] if unique else project}/" for project in answered}
    asked = {
        prefix[label.project] + q: label.project for label in labels if label.project in prefix for q in label.answers
    }
    wanted = options.question or options.label
    if wanted is None:
        raise AnnotationError(
            f"{source} holds the labels of several projects: {listed(list(asked))}. Pick one with --question NAME."
        )
    meant = asked[find_question(wanted, list(asked), source)[0]]
    return [
        replace(one, project=meant, answers={prefix[meant] + q: a for q, a in one.answers.items()})
        for one in labels
        if one.project in (meant, None)
    ]


def _refusal(source: str, rows: Collector) -> str | None:
    """Return why nothing can be aggregated, if so."""
    return refusal(
        rows,
        source,
        no_worker=f"{source} does not name the workers of its labels. Export again with label details ticked "
        '(params={"label_details": True, "performance_details": True}).',
    )
