"""Labels back into Argilla, doccano, Labelbox and Prodigy, for the records and tasks that they came from.

Each file has the form that the tool's own import takes (docs/formats.md says how to import it). The confidence is the
score, and ``manyhands_priority`` is 1 minus the confidence, so that the least certain items can be shown first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any
from uuid import NAMESPACE_URL, uuid5

import orjson

from manyhands.exceptions import AnnotationError, ParameterError
from manyhands.io.formats.item_entries import Entry, entries_with_items
from manyhands.io.formats.labelbox_answers import shown_names
from manyhands.io.messages import shorten
from manyhands.io.read.documents import Document, Folder, Records, open_document
from manyhands.io.read.json_files import as_text
from manyhands.io.read.reading import Reading

SUGGESTIONS = {  # name of the format, also of what is written -> file
    "argilla": "argilla_suggestions.json",
    "doccano": "doccano_labels.jsonl",
    "labelbox": "labelbox_predictions.ndjson",
    "prodigy": "prodigy_tasks.jsonl",
}
PRIORITY = "manyhands_priority"
Labels = Mapping[str, tuple[Any, float]]  # item -> its label and confidence
_PLACES = 6  # decimals of a probability in text
_JOINT = " + "  # joins the choices of a combination, as in `question_selection`
_OF_ONE_ANSWER = ("answer", "accept", "_timestamp", "_annotator_id", "_session_id", "versions", "sessions")


def suggestions(kind: str, reading: Reading, paths: Sequence[Any], labels: Labels, model_version: str) -> bytes:
    """Return labels in the form that a tool imports for its existing records or tasks.

    Parameters
    ----------
    kind : {"argilla", "doccano", "labelbox", "prodigy"}
        The tool, which the export must come from.
    reading : Reading
        What was read.
    paths : sequence of str or Path
        The files of the export, which are read again.
    labels : mapping of str to (label, confidence)
        Item -> label and confidence; items that are missing are left out.
    model_version : str
        Name under which the tool shows where the labels come from.

    Returns
    -------
    bytes
        JSON, or JSON lines.

    Raises
    ------
    AnnotationError
        If the export has no such question.
    """
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
    """Refuse what could not be written, before anything is computed.

    Parameters
    ----------
    kind : str
        The tool.
    reading : Reading
        What was read.

    Raises
    ------
    ParameterError
        If the export is of another tool or not JSON, or if the labels are about one choice or a nested question.
    """
    if reading.format != kind:
        raise ParameterError(
            f"{reading.source} is not an export of {kind}, so there are no records that labels could be attached to."
        )
    name, _, option = reading.question.rpartition("=")
    if reading.question not in reading.questions and name in reading.questions:
        raise ParameterError(
            f"The labels are whether {shorten(option)!r} was chosen for {shorten(name)!r}, which {kind} cannot import "
            f"as an answer to {shorten(name)!r}. Read the whole question, or write another format."
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
    known = _argilla_values(entries, question)
    found = {}
    for (label, confidence), record in entries:
        value = _as_answered(str(label), known)
        score = _rounded(confidence)  # several choices have a score each
        suggestion = {
            "value": value,
            "score": [score] * len(value) if isinstance(value, list) else score,
            "agent": version,
        }
        if "fields" in record:
            kept = {name: record[name] for name in ("id", "_server_id", "fields") if name in record}
            new = kept | {
                "metadata": {**_object(record.get("metadata")), PRIORITY: _priority(confidence)},
                "suggestions": {question: suggestion},
            }
        else:
            new = {name: record[name] for name in record if not any(part in name for part in _NOT_RECORD)}
            new |= {f"{question}.suggestion{end}": suggestion[key] for end, key in _FLAT.items()}
            new[PRIORITY] = _priority(confidence)
        found[(as_text(record.get("id")), record.get("_server_id"))] = new
    return list(found.values())


_FLAT = {"": "value", ".score": "score", ".agent": "agent"}
_NOT_RECORD = (".responses", ".suggestion", "_server_id", "status")


def _argilla_values(entries: list[tuple[tuple[Any, float], Entry]], question: str) -> dict[str, Any]:
    """Return the answers to a question as they came: text -> value, and lists where several choices are possible."""
    known: dict[str, Any] = {}
    for _, record in entries:
        nested = (record.get("responses") or {}).get(question) if "fields" in record else None
        given = [one.get("value") for one in nested or () if isinstance(one, dict)]
        for value in given or record.get(f"{question}.responses") or ():
            for one in value if isinstance(value, list) else [value]:
                known[str(as_text(one))] = [one] if isinstance(value, list) else one
    if not known:
        raise AnnotationError(f"The export has no answers to {shorten(question)!r}, so nothing can be written back.")
    return known


def _as_answered(label: str, known: Mapping[str, Any]) -> Any:
    """Return a label as the annotators' answers have it: a number, a text, or a list of choices."""
    if label in known:
        return known[label]
    parts = label.split(_JOINT)
    if all(isinstance(known.get(part), list) for part in parts):
        return [known[part][0] for part in parts]
    return label


def _doccano(entries: list[tuple[tuple[Any, float], Entry]], question: str, version: str) -> list[Entry]:
    """Return each example once, with its id, data and label, the least certain first."""
    given = [entry.get("label") or entry.get("labels") for _, entry in entries]
    known = {str(one) for labels in given for one in (labels if isinstance(labels, list) else [labels])}
    found: dict[Any, Entry] = {}
    for (label, confidence), entry in entries:
        number = as_text(entry.get("id", entry.get("doc_id"))) or ""
        kept = {name: entry[name] for name in entry if name.lower() not in _OF_A_MEMBER}
        parts = [str(label)] if str(label) in known else str(label).split(_JOINT)
        own = {"label": parts, PRIORITY: _priority(confidence)}
        # In CSV files the id is text; the API of doccano takes a number.
        found.setdefault(number, {"id": int(number) if number.isdecimal() else number} | kept | own)
    return sorted(found.values(), key=lambda entry: -entry[PRIORITY])


_OF_A_MEMBER = ("id", "doc_id", "label", "labels", "annotations", "username", "comments", "annotation_approver")


def _prodigy(entries: list[tuple[tuple[Any, float], Entry]], question: str, version: str) -> list[Entry]:
    """Return each task once, with its hashes and the label chosen, the least certain first."""
    found: dict[Any, Entry] = {}
    for (label, confidence), entry in entries:
        choice = "options" in entry or "accept" in entry
        if not choice and entry.get("label") != question:
            continue  # another question of the binary view
        task = {name: entry[name] for name in entry if name not in _OF_ONE_ANSWER}
        score = {"score": _rounded(confidence), PRIORITY: _priority(confidence)}
        task["meta"] = _object(entry.get("meta")) | score
        if choice:
            ids = {str(as_text(option.get("id"))): option.get("id") for option in entry.get("options") or ()}
            parts = [str(label)] if str(label) in ids else str(label).split(_JOINT)
            task["accept"] = [ids.get(part, part) for part in parts]
        else:
            task["answer"] = "accept" if str(label) == question else "reject"
        found.setdefault(entry.get("_task_hash", entry.get("_input_hash")), task)
    return sorted(found.values(), key=lambda task: -task["meta"][PRIORITY])


def _labelbox(entries: list[tuple[tuple[Any, float], Entry]], question: str, version: str) -> list[Entry]:
    """Return a prediction for each data row, under the names that the ontology shows."""
    name, several, options = shown_names([entry for _, entry in entries], question)
    found: dict[Any, Entry] = {}
    for (label, confidence), entry in entries:
        row = entry.get("data_row")
        row = row if isinstance(row, dict) else {"id": entry.get("DataRow ID"), "global_key": entry.get("Global Key")}
        place = {"id": row["id"]} if row.get("id") else {"globalKey": row.get("global_key")}
        parts = [str(label)] if str(label) in options else str(label).split(_JOINT)
        answers = [{"name": options.get(part, part), "confidence": _rounded(confidence)} for part in parts]
        answer: Any = answers if several else answers[0]
        if not options:  # free text has no options
            answer = str(label)
        # The same id in every run: a second import replaces the prediction instead of adding another.
        number = str(uuid5(NAMESPACE_URL, f"{version}/{place}/{name}"))
        found.setdefault(number, {"uuid": number, "dataRow": place, "name": name, "answer": answer})
    return list(found.values())


_WRITERS: dict[str, Callable[[list[tuple[tuple[Any, float], Entry]], str, str], list[Entry]]] = {
    "argilla": _argilla,
    "doccano": _doccano,
    "labelbox": _labelbox,
    "prodigy": _prodigy,
}


def _object(value: Any) -> dict[str, Any]:
    """Return an object; an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def _rounded(confidence: float) -> float | None:
    """Return a probability with six decimals; None if it is unknown."""
    return round(float(confidence), _PLACES) if math.isfinite(confidence) else None


def _priority(confidence: float) -> float:
    """Return how much another look is needed: 1 minus the confidence."""
    return round(1 - float(confidence), _PLACES) if math.isfinite(confidence) else 1.0
