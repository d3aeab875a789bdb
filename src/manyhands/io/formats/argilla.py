"""Argilla: records with the responses of users to several questions; of Argilla 2 first, of Argilla 1 at the end.

Nested, ``responses`` is an object by question; flattened, ``<question>.responses`` is a list beside ``.users`` and
``.status``. Only the flattened form states which responses are drafts or were discarded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any

import orjson

from manyhands.exceptions import AnnotationError
from manyhands.io import documents
from manyhands.io.documents import Document, Records, Table
from manyhands.io.formats.fields import item_at, objects_of, one_text, only_question, refusal
from manyhands.io.judgements import OTHERS, Collector, ColumnOptions, Judgements, kind_of_mark
from manyhands.io.messages import shorten, split_question

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
    """Recognise the keys of Argilla's records."""
    return _recognise_feedback(document) or _recognise_records(document)


def read(document: Document, format_name: str, options: ColumnOptions) -> Judgements:
    """Read one judgement per record and user, with the answers to all questions; one more for every suggestion."""
    return (_read_feedback if format_name == FEEDBACK else _read_records)(document, format_name, options)


def _recognise_records(document: Document) -> str | None:
    """Recognise records of Argilla 2."""
    if isinstance(document, Table):
        return "argilla" if any(name.endswith(_USERS) for name in document.header) else None
    if not isinstance(document, Records):
        return None
    if isinstance(document.first.get("responses"), dict):
        return "argilla" if "fields" in document.first or "suggestions" in document.first else None
    begins = islice(document.value if isinstance(document.value, list) else (), _LOOKED_AT)
    keys = (key for entry in begins if isinstance(entry, dict) for key in entry)
    return "argilla" if any(key.endswith((_USERS, _STATUS)) for key in keys) else None


def _read_records(document: Document, format_name: str, options: ColumnOptions) -> Judgements:
    """Read records of Argilla 2."""
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
                is_answer = question in counts and not _has_parts(value)
                rows.add(item, None, {question: _labels(value, name, at)} if is_answer else {}, "prediction")
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
        question_and_choice = split_question(options.label or options.question or "", questions)
        return None if question_and_choice is None else question_and_choice[0]
    return next(iter(questions)) if len(questions) == 1 else None


def _rows_as_records(table: Table) -> list[dict[str, Any]]:
    """Return the rows of a Parquet file or data frame as records; their lists were turned into text."""
    lists = [name.endswith((_RESPONSES, _USERS, _STATUS)) for name in table.header]
    records = []
    for at, row in enumerate(table.frame.iter_rows(), start=1):
        record: dict[str, Any] = dict(zip(table.header, row))
        for name, cell, is_list in zip(table.header, row, lists):
            if is_list and cell is not None:
                record[name] = list_of(cell, f"{table.name}, row {at}: {name}")
        records.append(record)
    return records


def list_of(cell: str, where: str) -> Any:
    """Parse a list in a cell."""
    try:
        return documents.loads(cell)
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
        raise AnnotationError(f'{source}, row {at} has no id. Name another field, as `item="metadata.NAME"`.')
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
        suggestions = [
            (key.removesuffix(_SUGGESTION), value) for key, value in record.items() if key.endswith(_SUGGESTION)
        ]
    else:
        given = record.get("suggestions")
        entries = given.items() if isinstance(given, dict) else ()
        suggestions = [(question, entry.get("value")) for question, entry in entries if isinstance(entry, dict)]
    return [(question, value) for question, value in suggestions if value is not None]


def _notes(records: Sequence[Mapping[str, Any]], nested: bool, source: str) -> dict[str, str]:
    """Return the note on missing status."""
    notes = {}
    has_status = nested and any("status" in one for record in records for one in _nested_responses(record))
    if not has_status and (nested or not any(key.endswith(_STATUS) for record in records for key in record)):
        notes["no_status"] = (
            f"{source} does not state which responses are drafts or were discarded, so all of them count. "
            "Flattened records do: records.to_datasets(), or records.to_list(flatten=True)."
        )
    return notes


def _nested_responses(record: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    """Yield the responses of a nested record to all questions."""
    by_question = record.get("responses")
    for given in by_question.values() if isinstance(by_question, dict) else ():
        yield from (one for one in given or () if isinstance(one, dict))


def _refusal(source: str, rows: Collector) -> str | None:
    """Return why nothing can be aggregated, if so."""
    return refusal(
        rows,
        source,
        no_worker=f"{source} does not name the users of its responses. Export the records with users from Argilla 2.",
    )


# ----------------------------------------------------------------------------------------------------
# Argilla 1: feedback records, as its API has them and as they stand on the Hugging Face Hub.
#
# In the API, ``responses`` is a list of users' responses, each with ``values`` by question. On the Hub each question is
# a column: a list of ``user_id``, ``value`` and ``status``, beside ``<question>-suggestion``. Records are turned into
# those of Argilla 2, and read as these.

FEEDBACK = "argilla-1"
_HUB_SUGGESTION, _DETAILS = "-suggestion", "-suggestion-metadata"
_ANSWER = {"user_id", "value"}


def _recognise_feedback(document: Document) -> str | None:
    """Recognise lists of responses with values by question, or columns of responses beside suggestions."""
    if isinstance(document, Table):
        names = set(document.header)
        return FEEDBACK if any(name + _HUB_SUGGESTION in names for name in names) and "external_id" in names else None
    if not isinstance(document, Records) or not isinstance(document.value, list):
        return None
    begins = [entry for entry in islice(document.value, _LOOKED_AT) if isinstance(entry, dict)]
    is_feedback = any(_responses_of_api(entry) for entry in begins)
    return FEEDBACK if is_feedback or any("external_id" in entry and _questions(entry) for entry in begins) else None


def _read_feedback(document: Document, format_name: str, options: ColumnOptions) -> Judgements:
    """Read one judgement per record and user, with the answers to all questions; one more for every suggestion."""
    records = [record for record, _ in records_with_fields(document)]
    converted = Records(document.name, records, dict(getattr(document, "notes", {})))
    judgements = _read_records(converted, format_name, options)
    if options.item is None:
        named = any(record["id"] == entry.get("external_id") for record, entry in zip(records, _entries(document)))
        judgements.mapping["item"] = (
            "external_id, else the number of the record" if named else "the number of the record"
        )
        judgements.items_numbered = not named
    return judgements


def records_with_fields(document: Document) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield each record in the form of Argilla 2, and its fields and metadata."""
    for number, entry in enumerate(_entries(document), start=1):
        responses = _responses_of_api(entry)
        questions = {} if responses else _questions(entry)
        fields: dict[str, Any] | None = given if isinstance(given := entry.get("fields"), dict) else None
        if fields is None:
            fields = {name: entry[name] for name in entry if name not in _OWN and not _is_answer(name, questions)}
        metadata = entry.get("metadata")
        if isinstance(metadata, str) and metadata[:1] == "{":
            with suppress(orjson.JSONDecodeError):
                metadata = documents.loads(metadata)
        own: dict[str, Any] = metadata if isinstance(metadata, dict) else {}
        record: dict[str, Any] = {
            "id": str(number) if entry.get("external_id") is None else entry["external_id"],
            "fields": fields,
            "metadata": own,
            "responses": _by_question(responses) if responses else questions,
            "suggestions": _feedback_suggestions(entry, questions),
        }
        yield (
            record,
            fields | {name if name not in fields else f"metadata.{name}": v for name, v in record["metadata"].items()},
        )


_OWN = ("id", "external_id", "metadata", "status", "responses", "suggestions", "vectors", "inserted_at", "updated_at")


def _is_answer(name: str, questions: Mapping[str, Any]) -> bool:
    """Whether a column holds answers or suggestions."""
    return name in questions or name.endswith((_HUB_SUGGESTION, _DETAILS))


def _entries(document: Document) -> Sequence[dict[str, Any]]:
    """Return the records of a file; lists and objects in the cells of a table were turned into text."""
    if not isinstance(document, Table):
        return objects_of(document, "Argilla")
    names = set(document.header)
    questions = [name for name in document.header if name + _HUB_SUGGESTION in names]
    entries = []
    for at, row in enumerate(document.frame.iter_rows(), start=1):
        entry: dict[str, Any] = dict(zip(document.header, row))
        for name in questions:
            if entry[name]:
                entry[name] = list_of(entry[name], f"{document.name}, row {at}: {name}")
        entries.append(entry)
    return entries


def _responses_of_api(entry: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the responses of a record of the API; none for other records."""
    responses = entry.get("responses")
    has_values = isinstance(responses, list) and any(
        isinstance(one, dict) and isinstance(one.get("values"), dict) for one in responses
    )
    return [one for one in responses if isinstance(one, dict)] if has_values and isinstance(responses, list) else []


def _by_question(responses: Sequence[Mapping[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Return the responses of a record by question; a response without values is a draft, or was discarded."""
    by_question: dict[str, list[dict[str, Any]]] = {}
    for response in responses:
        given = response.get("values")
        for question, answer in (given if isinstance(given, dict) else {}).items():
            value = answer.get("value") if isinstance(answer, dict) else answer
            one = {"value": value, "user_id": response.get("user_id"), "status": response.get("status")}
            by_question.setdefault(question, []).append(one)
    empty = [response for response in responses if not isinstance(response.get("values"), dict)]
    for one in [
        {"value": None, "user_id": response.get("user_id"), "status": response.get("status")} for response in empty
    ]:
        for answers in by_question.values():
            answers.append(one)
    return by_question


def _questions(entry: Mapping[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """Return the responses of a record of the Hub by question: lists of objects, or an object of lists."""
    questions: dict[str, list[dict[str, Any]]] = {}
    for name, value in entry.items():
        if isinstance(value, dict) and value.keys() >= _ANSWER and all(isinstance(one, list) for one in value.values()):
            if len(set(map(len, value.values()))) > 1:
                raise AnnotationError(f"The lists of the answers to {shorten(name)!r} differ in length. Export again.")
            questions[name] = [dict(zip(value, one)) for one in zip(*value.values())]
        elif (
            isinstance(value, list) and value and all(isinstance(one, dict) and one.keys() >= _ANSWER for one in value)
        ):
            questions[name] = value
        elif isinstance(value, list) and not value and name + _HUB_SUGGESTION in entry:
            questions[name] = []
    return questions


def _feedback_suggestions(entry: Mapping[str, Any], questions: Mapping[str, Any]) -> dict[str, Any]:
    """Return the suggestions of a record by question."""
    given = entry.get("suggestions")
    if isinstance(given, list):
        return {one["question_name"]: one for one in given if isinstance(one, dict) and "question_name" in one}
    return {name: {"value": entry.get(name + _HUB_SUGGESTION)} for name in questions if name + _HUB_SUGGESTION in entry}
