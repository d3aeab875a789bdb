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
from manyhands.io import documents
from manyhands.io.documents import Document, Records, Table
from manyhands.io.formats.fields import (
    field_of,
    objects_of,
    one_text,
    only_question,
    refusal,
    refuse_unknown_field,
    set_times,
)
from manyhands.io.judgements import (
    OTHERS,
    RELATIONS,
    ROLE,
    Collector,
    ColumnOptions,
    Judgements,
    kind_of_mark,
    seconds_of,
)
from manyhands.io.messages import find_question, listed

_V1 = {"Labeled Data", "Label", "Created By"}
_ITEM_KEYS = ("global_key", "external_id", "id")
_ITEM_KEYS_V1 = ("Global Key", "External ID", "DataRow ID")


@dataclass(frozen=True)
class _Label:
    """One label of a data row, or a data row without a label in a project."""

    project: str | None
    item: str
    worker: str | None
    answers: _Answers
    reason: str | None = None
    time: Any = None
    others: tuple[tuple[str, str | None], ...] = ()
    seconds: Any = None


def recognise(document: Document) -> str | None:
    """Recognise data rows with projects (v2), or the columns of v1."""
    if isinstance(document, Table):
        return "labelbox" if set(document.header) >= _V1 else None
    first = document.first if isinstance(document, Records) else {}
    v2 = isinstance(first.get("data_row"), dict) and "projects" in first
    return "labelbox" if v2 or first.keys() >= _V1 else None


def read(document: Document, format_name: str, options: ColumnOptions) -> Judgements:
    """Read one judgement per label, and one without a label for every data row that has none."""
    options.refuse("worker", "Labelbox", "created_by")
    name = document.name
    entries = _table_rows(document) if isinstance(document, Table) else objects_of(document, "Labelbox")
    v1 = any(entry.keys() >= _V1 for entry in entries)
    names: dict[str, str] = {}
    labels: list[_Label] = []
    for at, entry in enumerate(entries, start=1):
        labels.extend((_labels_v1 if v1 else _labels_v2)(entry, _Place(name, at), options.item, names))
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
    entry: Mapping[str, Any], place: _Place, item_field: str | None, names: dict[str, str]
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
        labels = place.objects(content.get("labels"), "labels")
        for label in labels:
            yield _label_v2(label, project, item, place)
        if not labels:
            yield _Label(project, item, None, {})
    if not projects:
        yield _Label(None, item, None, {})


def _label_v2(label: Mapping[str, Any], project: str, item: str, place: _Place) -> _Label:
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
    entry: Mapping[str, Any], place: _Place, item_field: str | None, names: dict[str, str]
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
        labels = {question: _one_or_several(answer, question, place) for question, answer in content.items()}
        answers = {question: answer for question, answer in labels.items() if answer}
    parts = _marks(content)
    reason = _reason(worker, answers, skipped, bool(parts), False)
    item = _item(entry, entry, item_field, _ITEM_KEYS_V1, place)
    yield _Label(project, item, worker, answers, reason, entry.get("Created At"), parts, entry.get("Seconds to Label"))


def _marks(annotations: Mapping[str, Any]) -> tuple[tuple[str, str | None], ...]:
    """Return kind and name of what marks parts of a data row."""
    marks: list[tuple[str, str | None]] = []
    objects = annotations.get("objects")
    for mark in objects if isinstance(objects, list) else ():
        name = mark.get("name") or mark.get("title") if isinstance(mark, dict) else None
        marks.append((kind_of_mark(mark) or OTHERS, name if isinstance(name, str) else None))
    marks += [(OTHERS, None)] * bool(annotations.get("frames") or annotations.get("segments"))
    return (*marks, *([(RELATIONS, None)] if annotations.get("relationships") else []))


def _from_json(label: Any) -> Any:
    """Return a label of a JSON file, or parse the text of a CSV cell."""
    if not isinstance(label, str):
        return label
    try:
        return documents.loads(label)
    except orjson.JSONDecodeError:
        return label


def _table_rows(table: Table) -> list[dict[str, Any]]:
    """Return the rows of a table as objects."""
    return [dict(zip(table.header, row)) for row in table.frame.iter_rows()]


def item_of_entry(entry: Mapping[str, Any], wanted: str | None, source: str, row: int) -> str:
    """Return the item id of an entry of either export."""
    data_row = entry.get("data_row")
    if isinstance(data_row, dict):
        return _item(data_row, entry, wanted, _ITEM_KEYS, _Place(source, row))
    return _item(entry, entry, wanted, _ITEM_KEYS_V1, _Place(source, row))


def _item(
    data_row: Mapping[str, Any], entry: Mapping[str, Any], wanted: str | None, keys: Sequence[str], place: _Place
) -> str:
    """Return the item id; with a field that the caller named it may be empty, which is an error only if all are."""
    if wanted is not None:
        own = field_of(data_row, wanted)
        return place.text(field_of(entry, wanted) if own is None else own, wanted) or ""
    for key in keys:
        item = place.text(data_row.get(key), key)
        if item:
            return item
    raise AnnotationError(f"{place.source}, row {place.row} has none of {', '.join(keys)}. Name a field with `item=`.")


def _reason(worker: str | None, answers: _Answers, skipped: bool, parts: bool, benchmark: bool) -> str | None:
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
            f"{source} holds the labels of several projects: {listed(list(asked))}. Pick one with `question=`."
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


# ----------------------------------------------------------------------------------------------------
# Answers of a Labelbox label: its classifications, and those nested in their answers.

_Answers = dict[str, str | list[str]]


@dataclass(frozen=True)
class _Place:
    """A row of a file, for error messages."""

    source: str  # name of the file
    row: int  # number of the row, from 1

    def text(self, value: Any, what: str) -> str | None:
        """Return a text, or a number as text; see `fields.one_text`."""
        return one_text(value, self.source, self.row, what)

    def part(self, value: Any, kind: type[Any], what: str) -> Any:
        """Return an object or a list; an empty one for null."""
        if value is None:
            return kind()
        if not isinstance(value, kind):
            named = "an object" if kind is dict else "a list"
            raise AnnotationError(f"{self.source}, row {self.row}: {what} is not {named}. Export the file again.")
        return value

    def objects(self, value: Any, what: str) -> list[dict[str, Any]]:
        """Return a list of objects, or refuse anything else."""
        entries: list[dict[str, Any]] = self.part(value, list, what)
        for entry in entries:
            if not isinstance(entry, dict):
                raise AnnotationError(
                    f"{self.source}, row {self.row}: an entry of {what} is not an object. Export again."
                )
        return entries


def read_answers(classifications: Any, place: _Place) -> _Answers:
    """Return the answers of a label; nested ones are visited without recursion, however deep they are."""
    answers: _Answers = {}
    left = [("", classifications)]
    while left:
        above, entry = left.pop()
        for one in place.objects(entry, "classifications"):
            question = above + (_named(one, place) or "?")
            several = one.get("checklist_answers") or one.get("answers")
            single = one.get("radio_answer") or one.get("answer")
            if isinstance(single, list):
                single, several = None, single
            if several:
                chosen = [(_named(option, place), option) for option in place.objects(several, f"{question}: answers")]
                answers[question] = [text for text, _ in chosen if text]
                left += [(f"{question}/{text}/", option.get("classifications")) for text, option in chosen]
            elif isinstance(single, dict):
                text = _named(single, place)
                answers |= {question: text} if text else {}
                left.append((f"{question}/", single.get("classifications")))
            else:
                content = place.part(one.get("text_answer"), dict, f"{question}: text_answer").get("content")
                text = place.text(content if single is None else single, question)
                answers |= {question: text} if text else {}
    return answers


def _named(entry: Mapping[str, Any], place: _Place) -> str | None:
    """Return the stable name of a question or an answer, or else the displayed one, which may change."""
    value, name = place.text(entry.get("value"), "value"), place.text(entry.get("name"), "name")
    return value or name or place.text(entry.get("title"), "title")


def shown_names(entries: Sequence[Mapping[str, Any]], question: str) -> tuple[str, bool, dict[str, str]]:
    """Return how the ontology shows a question and its answers, by which Labelbox imports predictions."""
    name, several, options = "", False, dict[str, str]()
    for entry in entries:
        for prefix, one in _classifications(entry):
            place = _Place("the export", 1)
            if question not in (_named(one, place), prefix + (_named(one, place) or "")):
                continue
            name = str(one.get("name") or one.get("title") or question)
            single = one.get("radio_answer") or one.get("answer")
            many = one.get("checklist_answers") or one.get("answers") or (single if isinstance(single, list) else [])
            several = several or bool(many)
            for option in [*many, single]:
                if isinstance(option, dict):
                    options[_named(option, place) or ""] = str(option.get("name") or option.get("title"))
    if not name:
        raise AnnotationError(
            f"{question!r} is a question within an answer, or of an export without names. Labelbox imports predictions "
            "for questions of the whole data row only."
        )
    return name, several, options


def _classifications(entry: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the classifications of all labels of an entry, with the prefix of their project."""
    for key, project in (entry.get("projects") or {}).items():
        names = [key, str(project.get("name"))]
        for label in project.get("labels") or ():
            for one in (label.get("annotations") or {}).get("classifications") or ():
                yield from ((f"{name}/", one) for name in names)
    label = entry.get("Label")
    if isinstance(label, dict):
        yield from (("", one) for one in label.get("classifications") or ())


def _one_or_several(answer: Any, question: str, place: _Place) -> str | list[str]:
    """Return an answer of the oldest format as text, or as a list of texts."""
    if isinstance(answer, list):
        return [text for text in (place.text(entry, question) for entry in answer) if text]
    return place.text(answer, question) or ""
