"""What the formats that are lists of JSON objects share: fields, texts, times, and the question that is wanted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import polars as pl

from manyhands.exceptions import AnnotationError
from manyhands.io.messages import listed
from manyhands.io.read.documents import Document, Records
from manyhands.io.read.json_files import as_text
from manyhands.io.read.judgements import Collector, ColumnOptions
from manyhands.io.read.times import Notes, parse_times


def objects_of(document: Document, tool: str) -> list[dict[str, Any]]:
    """The objects of a JSON file, also where there is but one."""
    value = document.value if isinstance(document, Records) else None
    entries = [value] if isinstance(value, dict) else value
    if not isinstance(entries, list):
        raise AnnotationError(f"{document.name} is no JSON export of {tool}. Leave --format out, or export JSON.")
    unexpected = next((at for at, entry in enumerate(entries, start=1) if not isinstance(entry, dict)), None)
    if unexpected is not None:
        raise AnnotationError(
            f"{document.name}, row {unexpected}: not an object, as every row of {tool} is. Remove it."
        )
    return entries


def assignments_of(document: Document, find: Callable[[Any], list[Any] | None], api: str) -> list[Any]:
    """The assignments that `find` sees in what an API listed."""
    found = find(document.value) if isinstance(document, Records) else None
    if found is None:
        raise AnnotationError(f"{document.name} is no list of assignments as {api} gives it. Leave --format out.")
    return found


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


def item_at(objects: Sequence[Mapping[str, Any]], at: int, key: str, source: str) -> str:
    """What names the item of the object in row `at`; the error tells a field that none has from one that is empty."""
    item = one_text(field_of(objects[at - 1], key), source, at, key)
    if item is None and all(field_of(other, key) is None for other in objects):
        raise refuse_unknown_field(key, "item", source, [name for other in objects for name in other])
    if item is None:
        raise AnnotationError(f"{source}, row {at} has no {key}. Name another field with --item FIELD.")
    return item


def set_times(rows: Collector, raw: Sequence[Any]) -> Notes:
    """Give the rows their times, parsed together; the note counts those that cannot be read."""
    texts = [as_text(value) if isinstance(value, str | int | float) else None for value in raw]
    times, notes = parse_times(pl.Series(texts, dtype=pl.String))
    rows.time = times.to_list()
    return notes


def only_question(rows: Collector, options: ColumnOptions, source: str) -> None:
    """Keep the answers to the question that the user named as the label."""
    if options.label is None:
        return
    if options.label not in rows.answers:
        raise AnnotationError(f"{source} has no question {options.label!r}. It has: {listed(list(rows.answers))}.")
    for other in set(rows.answers) - {options.label}:
        del rows.answers[other]


def refusal(rows: Collector, *, nobody: str, only_parts: str) -> str | None:
    """One of two sentences where nothing can be aggregated: no label has a worker, or only parts of items have labels.

    Both never hold at once, as a row without a worker is only called so where it has an answer.
    """
    if "no_worker" in rows.reason and not any(rows.worker):
        return nobody
    return only_parts if "region" in rows.reason and not rows.answers else None
