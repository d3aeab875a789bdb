"""Labels back into the tools that they came from: Label Studio, then Argilla, doccano, Labelbox and Prodigy.

Label Studio has two imports. *Tasks* (``/api/projects/ID/import``) always become new tasks: imported into the project
they came from, every task would be there twice, the second time without its annotations. *Predictions*
(``/api/projects/ID/import/predictions``) are attached to tasks that exist. `predictions_for_tasks` writes these; the
other two functions are for another project. Last: how parts of an export are written again byte for byte.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

import numpy as np
import orjson

from manyhands.exceptions import AnnotationError, ParameterError
from manyhands.io.documents import Document, Folder, Records, as_text, open_document, parse_json
from manyhands.io.formats.label_studio import (
    VALUE_KEYS,
    as_value,
    entries_of,
    item_finder,
    read_results,
    recognise,
    results_of,
    tasks_of,
)
from manyhands.io.formats.labelbox import shown_names
from manyhands.io.item_fields import Entry, entries_with_items
from manyhands.io.messages import listed, shorten
from manyhands.io.reading import JOINT, Reading
from manyhands.io.sources import open_path
from manyhands.io.text_tables import as_utf8


@dataclass(frozen=True)
class _Control:
    """The control that asks a question, as results name it, and the choices that occur."""

    from_name: str
    to_name: str
    kind: str
    options: frozenset[str] = frozenset()


def check_write_back(paths: Iterable[Any], question: str, questions: Container[str]) -> None:
    """Refuse exports that `predictions_for_tasks` could not write, before anything is computed."""
    refuse_standard_input(paths)
    name, _, option = question.rpartition("=")
    if question not in questions and name in questions:
        raise ParameterError(
            f"The labels are whether {shorten(option)!r} was chosen for {shorten(name)!r}, which Label Studio cannot "
            f"import as an answer to {shorten(name)!r}. Take all choices, with `question={name}` and `by_choice=True`, "
            f"or write another format."
        )


def predictions_for_tasks(
    source: Any,
    labels: Labels,
    *,
    question: str,
    item: str | None = None,
    encoding: str | None = None,
    model_version: str = "manyhands",
) -> bytes:
    """Return a prediction for each task of a Label Studio export, for import into the same project.

    Nothing but predictions is written: tasks, their data and their annotations stay as they are. The score is the
    confidence, so that sorting by score shows uncertain tasks first.
    """
    written = []
    for members, predictions in _labelled_tasks(source, labels, question, item, encoding, model_version):
        if predictions and members["id"] is None:
            raise AnnotationError(
                "A labelled task of the export has no id, so Label Studio could not attach its prediction. Export the "
                "project again as JSON, or write new tasks with label-studio-tasks."
            )
        written += [{"task": members["id"], **prediction} for prediction in predictions]
    return _written(written)


def copies_of_tasks(
    source: Any,
    labels: Labels,
    *,
    question: str,
    item: str | None = None,
    encoding: str | None = None,
    model_version: str = "manyhands",
) -> bytes:
    """Return the tasks of a Label Studio export, each with its label as a prediction, for import into a new project.

    Ids and data are copied byte for byte; annotations and workers are left out. Label Studio gives the tasks new ids:
    imported into the project of the export, they would double its tasks (see `predictions_for_tasks`). Every task
    occurs once, even if several tasks are one item, or if the export has a file for each annotation.
    """
    labelled = _labelled_tasks(source, labels, question, item, encoding, model_version)
    return _written([members | {"predictions": predictions} for members, predictions in labelled])


def _labelled_tasks(
    source: Any, labels: Labels, question: str, item: str | None, encoding: str | None, model_version: str
) -> list[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """Return each task once: its id and data, as bytes of the export where possible, and its predictions."""
    files = list(_open_exports(source, encoding))
    control = _find_control([document for document, _ in files], question)
    tasks: dict[Any, tuple[dict[str, Any], list[dict[str, Any]]]] = {}
    for number, (document, raw) in enumerate(files):
        item_of, _ = item_finder(document, item)
        for at, (task, entry, raw_task) in enumerate(zip(tasks_of(document), _entries(document), raw, strict=True)):
            alone = task is not entry
            members = {"id": task.get("id"), "data": task.get("data")} | _fragments(raw_task, entry if alone else None)
            name = item_of(task)
            predictions = _predictions(None if name is None else labels.get(name), control, model_version)
            tasks.setdefault(
                _identity(task, None if alone else raw_task.get("data"), (number, at)), (members, predictions)
            )
    return list(tasks.values())


def label_studio_tasks(
    labels: Labels,
    *,
    fields: Mapping[Any, Mapping[str, Any]] | None = None,
    from_name: str = "label",
    to_name: str = "text",
    kind: str = "choices",
    model_version: str = "manyhands",
) -> bytes:
    """Return new Label Studio tasks for labels that came from another tool, with the fields of the items.

    The data of a task are ``item``, the fields of the item (its text, its address) and ``manyhands_priority`` (1 minus
    the confidence), so that the data manager can sort by what most needs another look. A field that has the name of
    one of the other two is prefixed by ``item_``.
    """
    if kind not in VALUE_KEYS:
        raise ParameterError(f"`kind` is {kind!r}; allowed are {', '.join(VALUE_KEYS)}.")
    control = _Control(from_name, to_name, kind)
    tasks = [
        {
            "data": _data(name, label, (fields or {}).get(name, {})),
            "predictions": _predictions(label, control, model_version),
        }
        for name, label in labels.items()
    ]
    return _written(tasks)


def _written(tasks: list[dict[str, Any]]) -> bytes:
    """Return tasks as JSON."""
    try:
        return orjson.dumps(tasks, default=str, option=orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS)
    except TypeError as error:
        raise AnnotationError(
            f"The data of a task cannot be written as JSON: {error}. Look for deep nesting."
        ) from None


def refuse_standard_input(paths: Iterable[Any]) -> None:
    """Refuse standard input, which cannot be read twice."""
    if any(isinstance(path, str | Path) and str(path) == "-" for path in paths):
        raise ParameterError(
            "Predictions are written onto the tasks of the export, which is read twice for that, and standard input "
            "can be read only once. Save the export to a file and give its path."
        )


def _open_exports(source: Any, encoding: str | None) -> Iterator[tuple[Records, list[dict[str, bytes]]]]:
    """Yield each file of an export, and the ids and data of its tasks as bytes."""
    sources = source if isinstance(source, list | tuple) else [source]
    refuse_standard_input(sources)
    for one in sources:
        opened = open_path(one) if isinstance(one, str | Path) else one
        members = [file for file in opened.values() if file.size] if isinstance(opened, dict) else [opened]
        for file in members:
            text = as_utf8(file, encoding)
            content = text.read()
            document = Records(file.name, parse_json(replace(text, content=content))[0] if content else None)
            if recognise(document) != "label-studio":
                raise AnnotationError(
                    f"{file.name} is not a JSON export of Label Studio, so its tasks cannot be written back. "
                    "Export JSON, or write new tasks with label-studio-tasks."
                )
            yield document, list(raw_members(content, ("id", "data", "task")))


def _entries(document: Records) -> list[Any]:
    """Return the entries of a file."""
    return document.value if isinstance(document.value, list) else [document.value]


def _fragments(raw_task: dict[str, bytes], annotation: dict[str, Any] | None) -> dict[str, orjson.Fragment]:
    """Return the id and data of a task as bytes; those of a single annotation are in its task."""
    if annotation is not None:
        inner = raw_task.get("task")
        if inner is not None and type(annotation["task"]) is dict:
            raw_task = next(raw_members(inner, ("id", "data")))
        else:
            raw_task = {} if inner is None else {"id": inner}
    return {key: orjson.Fragment(raw_task[key]) for key in ("id", "data") if key in raw_task}


def _identity(task: dict[str, Any], data: bytes | None, place: tuple[int, int]) -> tuple[Any, ...]:
    """Return what makes two entries one task: not the item, which several tasks may share.

    The same id with other data is a task of another project. Single annotations are compared by the id of their task.
    """
    number = task.get("id")
    return (type(number), number, data) if isinstance(number, str | int | float) else place


def _find_control(documents: Sequence[Records], question: str) -> _Control:
    """Return how the export names the control, what it labels, and its type."""
    control: dict[str, Any] | None = None
    options: set[str] = set()
    questions: dict[str, None] = {}
    for results in (results for document in documents for results in _all_results(document)):
        answers, *_ = read_results(results)
        questions |= dict.fromkeys(answers)
        if question in answers:
            answer = answers[question]
            options |= {answer} if isinstance(answer, str) else set(answer)
            control = control or next(result for result in results if question in read_results([result])[0])
    if control is None:
        where = documents[0].name if documents else "The export"
        raise AnnotationError(f"{where} has no question {shorten(question)!r}. It has: {listed(list(questions))}.")
    return _Control(question, str(control.get("to_name") or ""), control["type"], frozenset(options))


def _all_results(document: Records) -> Iterator[list[Any]]:
    """Yield the results of all annotations and predictions."""
    for task in tasks_of(document):
        for key in ("annotations", "completions", "predictions"):
            for entry in entries_of(task, key, document.name):
                if isinstance(entry, dict):
                    yield results_of(entry, task, document.name)


def _data(name: Any, label: tuple[Any, float], fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the data of a new task: its item, its fields, and how uncertain the label is, to sort tasks by it."""
    own = {f"item_{key}" if key in ("item", _PRIORITY) else key: value for key, value in fields.items()}
    priority = {_PRIORITY: round(1 - label[1], _PLACES)} if math.isfinite(label[1]) else {}
    return {"item": str(name), **own, **priority}


def _predictions(label: tuple[Any, float] | None, control: _Control, model_version: str) -> list[dict[str, Any]]:
    """Return one prediction, or none without a label."""
    if label is None or label[0] is None:
        return []
    score = float(label[1])
    if control.kind == "choices":
        options = control.options
        value: dict[str, Any] = {"choices": _choices_of(label[0], options, split=options.issuperset)}
    elif isinstance(label[0], tuple) and control.kind == "taxonomy":
        value = {"taxonomy": [path for choice in label[0] for path in as_value(control.kind, str(choice))["taxonomy"]]}
    else:
        value = as_value(control.kind, str(label[0]))
    result = {"from_name": control.from_name, "to_name": control.to_name, "type": control.kind, "value": value}
    rounded = round(score, _PLACES) if math.isfinite(score) else None
    return [{"model_version": model_version, "score": rounded, "result": [result]}]


# ----------------------------------------------------------------------------------------------------
# Labels back into Argilla, doccano, Labelbox and Prodigy, for the records and tasks that they came from.
#
# Each file has the form that the tool's own import takes (docs/formats.md says how to import it). The confidence is the
# score, and ``manyhands_priority`` is 1 minus the confidence, so that the least certain items can be shown first.

SUGGESTIONS = {  # name of the format, also of what is written -> file
    "argilla": "argilla_suggestions.json",
    "doccano": "doccano_labels.jsonl",
    "labelbox": "labelbox_predictions.ndjson",
    "prodigy": "prodigy_tasks.jsonl",
}
_PRIORITY = "manyhands_priority"
Labels = Mapping[str, tuple[Any, float]]  # item -> its label, or a tuple of choices, and confidence
_PLACES = 6  # decimals of a probability in text
_OF_ONE_ANSWER = ("answer", "accept", "_timestamp", "_annotator_id", "_session_id", "versions", "sessions")


def suggestions(kind: str, reading: Reading, paths: Sequence[Any], labels: Labels, model_version: str) -> bytes:
    """Return labels in the form that a tool imports for its existing records or tasks."""
    default = reading.columns["item"] in ("id", "doc_id", "_input_hash") or ", else " in reading.columns["item"]
    item = None if default else reading.columns["item"]
    entries = [
        (labels[name], entry)
        for document in _documents(paths, reading.encoding)
        for name, entry in entries_with_items(document, kind, item)
        if name is not None and name in labels
    ]
    rows = _WRITERS[kind](entries, reading.question, model_version)
    if kind == "argilla":
        return orjson.dumps(rows, option=orjson.OPT_INDENT_2)
    return b"".join(orjson.dumps(row) + b"\n" for row in rows)


def check_suggestions(kind: str, reading: Reading) -> None:
    """Refuse what could not be written, before anything is computed."""
    if reading.format != kind:
        raise ParameterError(
            f"{reading.source} is not an export of {kind}, so there are no records that labels could be attached to."
        )
    name, _, option = reading.question.rpartition("=")
    if reading.question not in reading.questions and name in reading.questions:
        raise ParameterError(
            f"The labels are whether {shorten(option)!r} was chosen for {shorten(name)!r}, which {kind} cannot import "
            f"as an answer to {shorten(name)!r}. Take all choices, with `question={name}` and `by_choice=True`, or "
            f"write another format."
        )


def _documents(paths: Sequence[Any], encoding: str | None) -> Iterator[Document]:
    """Yield the files of an export again."""
    for path in paths:
        document = open_document(path, encoding)
        if not isinstance(document, Records | Folder):
            raise AnnotationError(
                f"{document.name} is a table, and labels are written onto the records of a JSON export. Export JSON."
            )
        yield document


def _argilla(entries: list[tuple[tuple[Any, float], Entry]], question: str, version: str) -> list[Entry]:
    """Return each record with a suggestion; its metadata are repeated, as an update replaces them."""
    values = _argilla_values(entries, question)
    records_with_label = {}
    for (label, confidence), record in entries:
        value = _as_answered(label, values)
        score = _rounded(confidence)  # several choices have a score each
        suggestion = {
            "value": value,
            "score": [score] * len(value) if isinstance(value, list) else score,
            "agent": version,
        }
        if "fields" in record:
            kept = {name: record[name] for name in ("id", "_server_id", "fields") if name in record}
            new = kept | {
                "metadata": {**_object(record.get("metadata")), _PRIORITY: _priority(confidence)},
                "suggestions": {question: suggestion},
            }
        else:
            new = {name: record[name] for name in record if not any(part in name for part in _NOT_RECORD)}
            new |= {f"{question}.suggestion{end}": suggestion[key] for end, key in _FLAT.items()}
            new[_PRIORITY] = _priority(confidence)
        records_with_label[(as_text(record.get("id")), record.get("_server_id"))] = new
    return list(records_with_label.values())


_FLAT = {"": "value", ".score": "score", ".agent": "agent"}
_NOT_RECORD = (".responses", ".suggestion", "_server_id", "status")


def _argilla_values(entries: list[tuple[tuple[Any, float], Entry]], question: str) -> dict[str, Any]:
    """Return the answers to a question as they came: text -> value, and lists where several choices are possible."""
    values: dict[str, Any] = {}
    for _, record in entries:
        nested = (record.get("responses") or {}).get(question) if "fields" in record else None
        given = [one.get("value") for one in nested or () if isinstance(one, dict)]
        for value in given or record.get(f"{question}.responses") or ():
            for one in value if isinstance(value, list) else [value]:
                values[str(as_text(one))] = [one] if isinstance(value, list) else one
    if not values:
        raise AnnotationError(f"The export has no answers to {shorten(question)!r}, so nothing can be written back.")
    return values


def _as_answered(label: Any, values: Mapping[str, Any]) -> Any:
    """Return a label as the annotators' answers have it: a number, a text, or a list of choices."""
    if not isinstance(label, tuple) and str(label) in values:
        return values[str(label)]
    parts = _choices_of(label, values)
    if all(isinstance(values.get(part), list) for part in parts):
        return [values[part][0] for part in parts]
    return str(label)


def _doccano(entries: list[tuple[tuple[Any, float], Entry]], question: str, version: str) -> list[Entry]:
    """Return each example once, with its id, data and label, the least certain first."""
    given = [entry.get("label") or entry.get("labels") for _, entry in entries]
    labels_there = {str(one) for labels in given for one in (labels if isinstance(labels, list) else [labels])}
    examples: dict[Any, Entry] = {}
    for (label, confidence), entry in entries:
        number = as_text(entry.get("id", entry.get("doc_id"))) or ""
        kept = {name: entry[name] for name in entry if name.lower() not in _OF_A_MEMBER}
        parts = _choices_of(label, labels_there)
        own = {"label": parts, _PRIORITY: _priority(confidence)}
        # In CSV files the id is text; the API of doccano takes a number.
        examples.setdefault(number, {"id": int(number) if number.isdecimal() else number} | kept | own)
    return sorted(examples.values(), key=lambda entry: -entry[_PRIORITY])


_OF_A_MEMBER = ("id", "doc_id", "label", "labels", "annotations", "username", "comments", "annotation_approver")


def _prodigy(entries: list[tuple[tuple[Any, float], Entry]], question: str, version: str) -> list[Entry]:
    """Return each task once, with its hashes and the label chosen, the least certain first."""
    tasks_of_hash: dict[Any, Entry] = {}
    for (label, confidence), entry in entries:
        choice = "options" in entry or "accept" in entry
        if not choice and entry.get("label") != question:
            continue  # another question of the binary view
        task = {name: entry[name] for name in entry if name not in _OF_ONE_ANSWER}
        score = {"score": _rounded(confidence), _PRIORITY: _priority(confidence)}
        task["meta"] = _object(entry.get("meta")) | score
        if choice:
            ids = {str(as_text(option.get("id"))): option.get("id") for option in entry.get("options") or ()}
            parts = _choices_of(label, ids)
            task["accept"] = [ids.get(part, part) for part in parts]
        else:
            task["answer"] = "accept" if str(label) == question else "reject"
        tasks_of_hash.setdefault(entry.get("_task_hash", entry.get("_input_hash")), task)
    return sorted(tasks_of_hash.values(), key=lambda task: -task["meta"][_PRIORITY])


def _labelbox(entries: list[tuple[tuple[Any, float], Entry]], question: str, version: str) -> list[Entry]:
    """Return a prediction for each data row, under the names that the ontology shows."""
    name, several, options = shown_names([entry for _, entry in entries], question)
    rows: dict[Any, Entry] = {}
    for (label, confidence), entry in entries:
        row = entry.get("data_row")
        row = row if isinstance(row, dict) else {"id": entry.get("DataRow ID"), "global_key": entry.get("Global Key")}
        place = {"id": row["id"]} if row.get("id") else {"globalKey": row.get("global_key")}
        parts = _choices_of(label, options)
        answers = [{"name": options.get(part, part), "confidence": _rounded(confidence)} for part in parts]
        answer: Any = answers if several else answers[0]
        if not options:  # free text has no options
            answer = str(label)
        # The same id in every run: a second import replaces the prediction instead of adding another.
        number = str(uuid5(NAMESPACE_URL, f"{version}/{place}/{name}"))
        rows.setdefault(number, {"uuid": number, "dataRow": place, "name": name, "answer": answer})
    return list(rows.values())


_WRITERS: dict[str, Callable[[list[tuple[tuple[Any, float], Entry]], str, str], list[Entry]]] = {
    "argilla": _argilla,
    "doccano": _doccano,
    "labelbox": _labelbox,
    "prodigy": _prodigy,
}


def _choices_of(
    label: Any, choices: Container[str], *, split: Callable[[list[str]], bool] = lambda parts: True
) -> list[str]:
    """Return the choices that a label stands for: those of a tuple, or the parts of a combination if it may be split.

    Examples
    --------
    >>> _choices_of(("a", "b + c"), []), _choices_of("a + b", ["a", "b"]), _choices_of("a + b", ["a + b"])
    (['a', 'b + c'], ['a', 'b'], ['a + b'])
    """
    if isinstance(label, tuple):
        return [str(choice) for choice in label]
    text = str(label)
    parts = text.split(JOINT)
    return parts if text not in choices and split(parts) else [text]


def _object(value: Any) -> dict[str, Any]:
    """Return an object; an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def _rounded(confidence: float) -> float | None:
    """Return a probability with six decimals; None if it is unknown."""
    return round(float(confidence), _PLACES) if math.isfinite(confidence) else None


def _priority(confidence: float) -> float:
    """Return how much another look is needed: 1 minus the confidence."""
    return round(1 - float(confidence), _PLACES) if math.isfinite(confidence) else 1.0


# ----------------------------------------------------------------------------------------------------
# Positions of members of JSON objects in a file, so that they can be written again byte for byte.
#
# Parsing a number and writing it again may change it, such as 1.10 or one with thirty digits. Quotes and brackets are
# searched with NumPy, one piece of the file at a time; Python only visits those that matter.

_PIECE = 1 << 20  # bytes searched at a time; the arrays of a piece take about twenty times as much
_QUOTE, _END = b'"}'
_KIND = np.zeros(256, np.int8)  # change of the depth by each byte, and 2 for a quote
_KIND[np.frombuffer(b"{[", np.uint8)] = 1
_KIND[np.frombuffer(b"}]", np.uint8)] = -1
_KIND[_QUOTE] = 2
_VALUE = re.compile(rb'\s*:\s*("[^"]*"|[^\s,{}\[\]"]+)?')


def raw_members(content: bytes, keys: Sequence[str]) -> Iterator[dict[str, bytes]]:
    """Yield the bytes of some members of each object.

    Examples
    --------
    >>> list(raw_members(b'[{"id": 1.10, "in": {"id": 2}}, {}]', ["id"]))
    [{'id': b'1.10'}, {}]
    """
    level = 2 if content.lstrip()[:1] == b"[" else 1
    plain = content.replace(rb"\\", b"..").replace(rb"\"", b"..") if b"\\" in content else content
    names = {f'"{key}"'.encode(): key for key in keys}
    members: dict[str, bytes] = {}
    key, begun = "", -1  # the member whose list or object is open, and its first byte
    for at, depth in _marks(plain, level, {name[1] for name in names}):
        mark = plain[at]
        if mark == _QUOTE:
            end = plain.index(b'"', at + 1) + 1
            value = _VALUE.match(plain, end) if plain[at:end] in names else None
            if value is not None:
                key, begun = names[plain[at:end]], -1 if value[1] else value.end()
                if value[1]:
                    members[key] = content[value.start(1) : value.end(1)]
        elif depth == level and mark in b"{[":
            members = {}
        elif depth == level:
            if begun >= 0:
                members[key], begun = content[begun : at + 1], -1
        elif mark == _END:
            yield members


def _marks(plain: bytes, level: int, initials: set[int]) -> Iterator[tuple[int, int]]:
    """Yield where objects of a level begin and end, where their values end, and where texts that may be keys begin.

    Each has the depth there: inside an opening bracket, and outside a closing one.
    """
    codes = np.frombuffer(plain, np.uint8)
    may_begin = np.isin(np.arange(256), list(initials))
    depth_before = n_quotes = 0
    for first in range(0, len(codes), _PIECE):
        kind = _KIND[codes[first : first + _PIECE]]
        at = np.flatnonzero(kind != 0)
        kind = kind[at]
        is_quote = kind == _KIND[_QUOTE]
        quotes = n_quotes + np.cumsum(is_quote)
        in_text = (quotes & 1).astype(bool)
        change = np.where(is_quote | in_text, 0, kind)
        depth = depth_before + np.cumsum(change, dtype=np.int64)
        if len(at):
            n_quotes, depth_before = int(quotes[-1]), int(depth[-1])
        at += first
        is_key = is_quote & in_text & (depth == level)
        is_key[is_key] = may_begin[codes[at[is_key] + 1]]
        is_edge = (change != 0) & (depth == level) | (change < 0) & (depth == level - 1)
        wanted = is_key | is_edge
        yield from zip(at[wanted].tolist(), depth[wanted].tolist())
