"""What the formats that are lists of JSON objects share: fields, texts, times, and the question that is wanted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from manyhands.exceptions import AnnotationError
from manyhands.io.documents import Document, Records
from manyhands.io.json_files import as_text
from manyhands.io.judgements import Collector, Wishes
from manyhands.io.names import listed
from manyhands.io.times import Notes, parse_times


def objects_of(document: Document, tool: str) -> list[dict[str, Any]]:
    """The objects of a JSON file, also where there is but one."""
    value = document.value if isinstance(document, Records) else None
    entries = [value] if isinstance(value, dict) else value
    if not isinstance(entries, list):
        raise AnnotationError(f"{document.name} is no JSON export of {tool}. Leave --format out, or export JSON.")
    strange = next((at for at, entry in enumerate(entries, start=1) if not isinstance(entry, dict)), None)
    if strange is not None:
        raise AnnotationError(f"{document.name}, row {strange}: not an object, as every row of {tool} is. Remove it.")
    return entries


def one_text(value: Any, source: str, row: int, what: str) -> str | None:
    """Text, or a number as text; what has parts is refused, for it names nothing."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool | int | float):
        return as_text(value)
    kind = "an object" if isinstance(value, dict) else "a list"
    raise AnnotationError(f"{source}, row {row}: {what} is {kind}, not text or a number. Export the file again.")


def field_of(entry: Mapping[str, Any], path: str) -> Any:
    """What stands under a key, or under keys within keys with dots between them; None where there is nothing."""
    if path in entry:
        return entry[path]
    value: Any = entry
    for key in path.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    return value


def refuse_unknown_field(wanted: str, role: str, source: str, fields: Sequence[str]) -> AnnotationError:
    """The error for a field that the user named and no object has."""
    there = listed(list(dict.fromkeys(fields)))
    return AnnotationError(f"Field {wanted!r} is not in {source}. It has: {there}. Name another with --{role} FIELD.")


def set_times(rows: Collector, raw: Sequence[Any]) -> Notes:
    """Give the rows their times, parsed together; the note counts those that cannot be read."""
    texts = [as_text(value) if isinstance(value, str | int | float) else None for value in raw]
    times, notes = parse_times(pl.Series(texts, dtype=pl.String))
    rows.time = times.to_list()
    return notes


def only_question(rows: Collector, wishes: Wishes, source: str) -> None:
    """Keep the answers to the question that the user named as the label."""
    if wishes.label is None:
        return
    if wishes.label not in rows.answers:
        raise AnnotationError(f"{source} has no question {wishes.label!r}. It has: {listed(list(rows.answers))}.")
    for other in set(rows.answers) - {wishes.label}:
        del rows.answers[other]
