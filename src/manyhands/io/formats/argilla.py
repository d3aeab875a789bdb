"""Argilla 2: records with the responses of users to several questions, nested or flattened.

Nested, ``responses`` is an object by question; flattened, ``<question>.responses`` is a list beside ``.users`` and
``.status``. Only the flattened form states which responses are drafts or were discarded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any

import orjson

from manyhands.exceptions import AnnotationError
from manyhands.io.formats.fields import item_at, objects_of, one_text, only_question, refusal
from manyhands.io.messages import shorten, split_question
from manyhands.io.read import exact_json
from manyhands.io.read.documents import Document, Records, Table
from manyhands.io.read.judgements import Collector, ColumnOptions, Judgements
from manyhands.io.read.other_kinds import OTHERS, kind_of_mark

_RESPONSES, _USERS, _STATUS, _SUGGESTION = ".responses", ".responses.users", ".responses.status", ".suggestion"
_REASONS = {"submitted": None, "draft": "draft", "discarded": "discarded"}
_LOOKED_AT = 1000  # flat records that are searched; the first ones may have no responses


@dataclass(frozen=True)
class _Response:
    """The response of one user to one question."""

    question: str
    value: Any
    user: Any
    status: Any = None


def recognise(document: Document) -> str | None:
    """Recognise the keys of Argilla's records.

    Parameters
    ----------
    document : Table, Records, Words or Folder
        A parsed file or folder.

    Returns
    -------
    str or None
        ``"argilla"``; None for any other document.
    """
    if isinstance(document, Table):
        return "argilla" if any(name.endswith(_USERS) for name in document.header) else None
    if not isinstance(document, Records):
        return None
    if isinstance(document.first.get("responses"), dict):
        return "argilla" if "fields" in document.first or "suggestions" in document.first else None
    begins = islice(document.value if isinstance(document.value, list) else (), _LOOKED_AT)
    keys = (key for entry in begins if isinstance(entry, dict) for key in entry)
    return "argilla" if any(key.endswith((_USERS, _STATUS)) for key in keys) else None


def read(document: Document, format_name: str, options: ColumnOptions) -> Judgements:
    """Read one judgement per record and user, with the answers to all questions; one more for every suggestion.

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
        One row per record and user, and per suggestion of a model.

    Raises
    ------
    AnnotationError
        If the document is not of this format, or inconsistent.
    """
    options.refuse("worker", "Argilla", "user_id")
    name = document.name
    records = _rows_as_records(document) if isinstance(document, Table) else objects_of(document, "Argilla")
    nested = any("responses" in record for record in records)
    responses = [list((_nested if nested else _flat)(record, name, at)) for at, record in enumerate(records, start=1)]
    rows = Collector()
    counts = _count_answers(responses, rows)
    meant = _selected_question(counts, options)
    for at, record in enumerate(records, start=1):
        item = _id(record, name, at) if options.item is None else item_at(records, at, options.item, name)
        _add(rows, item, responses[at - 1], meant, name, at)
        for question, value in _suggestions(record, nested):
            if meant is None or question == meant:
                known = question in counts and not _has_parts(value)
                rows.add(item, None, {question: _labels(value, name, at)} if known else {}, "prediction")
    only_question(rows, options, name)
    return rows.judgements(
        name,
        format_name,
        mapping={
            "item": options.item or "id",
            "worker": "responses[].user_id" if nested else "<question>.responses.users",
            "label": "responses[].value" if nested else "<question>.responses",
        },
        notes=getattr(document, "notes", {}) | _notes(records, nested, name),
        refusal=_refusal(name, rows),
        questions=None if meant is None else counts,
    )


def _count_answers(responses: Iterable[Iterable[_Response]], rows: Collector) -> dict[str, int]:
    """Return the number of answers that are classes, by question; rankings and spans are counted in `rows`."""
    counts: Counter[str] = Counter()
    for response in chain.from_iterable(responses):
        if _has_parts(response.value):
            rows.others.add(kind_of_mark(response.value) or OTHERS, response.question)
        elif response.value is not None:
            counts[response.question] += 1
    return dict(counts)


def _selected_question(questions: Mapping[str, int], options: ColumnOptions) -> str | None:
    """Return the question whose answers are read, if it is known; then only its status matters."""
    if options.label is not None or options.question is not None:
        found = split_question(options.label or options.question or "", questions)
        return None if found is None else found[0]
    return next(iter(questions)) if len(questions) == 1 else None


def _rows_as_records(table: Table) -> list[dict[str, Any]]:
    """Return the rows of a Parquet file or data frame as records; their lists were turned into text."""
    lists = [name.endswith((_RESPONSES, _USERS, _STATUS)) for name in table.header]
    records = []
    for at, row in enumerate(table.frame.iter_rows(), start=1):
        record: dict[str, Any] = dict(zip(table.header, row))
        for name, cell, is_list in zip(table.header, row, lists):
            if is_list and cell is not None:
                record[name] = _list_of(cell, f"{table.name}, row {at}: {name}")
        records.append(record)
    return records


def _list_of(cell: str, where: str) -> Any:
    """Parse a list in a cell."""
    try:
        return exact_json.loads(cell)
    except orjson.JSONDecodeError:
        message = f"{where} is {shorten(cell)!r}, not a list. Export the records as JSON or Parquet."
        raise AnnotationError(message) from None


def _nested(record: Mapping[str, Any], source: str, at: int) -> Iterable[_Response]:
    """Yield the responses of a nested record."""
    by_question = record.get("responses") or {}
    if not isinstance(by_question, dict):
        raise AnnotationError(
            f"{source}, row {at}: responses is not an object by question. Export with Argilla 2 (records.to_json)."
        )
    for question, given in by_question.items():
        for response in _a_list(given, source, at, f"responses.{question}"):
            if not isinstance(response, dict):
                raise AnnotationError(f"{source}, row {at}: a response to {question!r} is not an object. Export again.")
            yield _Response(question, response.get("value"), response.get("user_id"), response.get("status"))


def _flat(record: Mapping[str, Any], source: str, at: int) -> Iterable[_Response]:
    """Yield the responses of a flattened record."""
    for key, given in record.items():
        if not key.endswith(_RESPONSES):
            continue
        question = key.removesuffix(_RESPONSES)
        values = _a_list(given, source, at, key)
        users = _a_list(record.get(question + _USERS), source, at, question + _USERS)
        statuses = _a_list(record.get(question + _STATUS), source, at, question + _STATUS)
        for what, beside in ((_USERS, users), (_STATUS, statuses)):
            if beside and len(beside) != len(values):
                raise AnnotationError(
                    f"{source}, row {at}: {key} has {len(values)} entries, but {question + what} has {len(beside)}, "
                    "so they cannot be matched. Export the records again."
                )
        empty = [None] * len(values)
        for value, user, status in zip(values, users or empty, statuses or empty):
            yield _Response(question, value, user, status)


def _a_list(value: Any, source: str, at: int, what: str) -> list[Any]:
    """Return a list, empty for null, or refuse anything else."""
    if value is None or isinstance(value, list):
        return value or []
    raise AnnotationError(f"{source}, row {at}: {what} is not a list. Export the records again.")


def _id(record: Mapping[str, Any], source: str, at: int) -> str:
    """Return the id of a record."""
    item = one_text(record.get("_server_id" if record.get("id") is None else "id"), source, at, "id")
    if item is None:
        raise AnnotationError(f"{source}, row {at} has no id. Name another field with --item metadata.NAME.")
    return item


def _add(rows: Collector, item: str, responses: Sequence[_Response], meant: str | None, source: str, at: int) -> None:
    """Add a row for every user, and one more where they answer a question again or with another status.

    If one question is selected, its status decides. Users who submitted answers to other questions only have left it
    unanswered; users who only began or withdrew such answers are not counted.
    """
    answers: dict[tuple[str | None, str | None, int], dict[str, str | list[str]]] = {}
    before: Counter[tuple[str | None, str | None, str]] = Counter()
    ranked, elsewhere = set(), []
    for response in responses:
        user, reason = one_text(response.user, source, at, "user_id") or None, _reason(response, source, at)
        if meant is not None and response.question != meant:
            elsewhere += [user] if reason is None else []
            continue
        row = (user, reason, before[user, reason, response.question])
        before[user, reason, response.question] += 1
        given = answers.setdefault(row, {})
        if _has_parts(response.value):
            ranked.add(row)
        elif response.value is not None:
            given[response.question] = _labels(response.value, source, at)
    here = {user for user, _, _ in answers}
    answers |= {(user, None, 0): {} for user in elsewhere if user not in here}
    for row, given in answers.items():
        user, reason, _ = row
        if reason is None and not given and row in ranked:
            reason = "region"
        if reason is None and given and user is None:
            reason = "no_worker"
        rows.add(item, user, given, reason)
    if not answers:
        rows.add(item, None, {})


def _reason(response: _Response, source: str, at: int) -> str | None:
    """Return why a response does not count, by its status."""
    if response.status is None or (isinstance(response.status, str) and response.status in _REASONS):
        return _REASONS[response.status or "submitted"]
    shown = shorten(str(response.status))
    raise AnnotationError(
        f"{source}, row {at}: the status of a response is {shown!r}, not submitted, draft or discarded. Correct it."
    )


def _has_parts(value: Any) -> bool:
    """Whether an answer is a ranking or marks spans, so that it is not a class."""
    return isinstance(value, dict) or (isinstance(value, list) and any(isinstance(v, dict | list) for v in value))


def _labels(value: Any, source: str, at: int) -> str | list[str]:
    """Return the choices of an answer as text."""
    if isinstance(value, list):
        texts = [one_text(entry, source, at, "a value") for entry in value]
        return [text for text in texts if text is not None]
    return one_text(value, source, at, "a value") or ""


def _suggestions(record: Mapping[str, Any], nested: bool) -> list[tuple[str, Any]]:
    """Return the suggestions of a model, by question."""
    if not nested:
        found = [(key.removesuffix(_SUGGESTION), value) for key, value in record.items() if key.endswith(_SUGGESTION)]
    else:
        given = record.get("suggestions")
        entries = given.items() if isinstance(given, dict) else ()
        found = [(question, entry.get("value")) for question, entry in entries if isinstance(entry, dict)]
    return [(question, value) for question, value in found if value is not None]


def _notes(records: Sequence[Mapping[str, Any]], nested: bool, source: str) -> dict[str, str]:
    """Return the note on missing status."""
    notes = {}
    if nested or not any(key.endswith(_STATUS) for record in records for key in record):
        notes["no_status"] = (
            f"{source} does not state which responses are drafts or were discarded, so all of them count. "
            "Flattened records do: records.to_datasets(), or records.to_list(flatten=True)."
        )
    return notes


def _refusal(source: str, rows: Collector) -> str | None:
    """Return why nothing can be aggregated, if so."""
    return refusal(
        rows,
        source,
        no_worker=f"{source} does not name the users of its responses. Export the records with users from Argilla 2.",
    )
