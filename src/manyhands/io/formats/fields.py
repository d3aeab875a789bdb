"""Functions shared by the formats that are lists of JSON objects: fields, texts, times, selection of a question."""

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
    """Return the objects of a JSON file; a single object is a list of one.

    Parameters
    ----------
    document : Document
        The file.
    tool : str
        Name of the tool, for error messages.

    Returns
    -------
    list of dict
        The objects.

    Raises
    ------
    AnnotationError
        If the file is not JSON, or an entry is not an object.
    """
    value = document.value if isinstance(document, Records) else None
    entries = [value] if isinstance(value, dict) else value
    if not isinstance(entries, list):
        raise AnnotationError(f"{document.name} is not a JSON export of {tool}. Leave --format out, or export JSON.")
    unexpected = next((at for at, entry in enumerate(entries, start=1) if not isinstance(entry, dict)), None)
    if unexpected is not None:
        raise AnnotationError(
            f"{document.name}, row {unexpected}: not an object, as every row of {tool} is. Remove it."
        )
    return entries


def assignments_of(document: Document, find: Callable[[Any], list[Any] | None], api: str) -> list[Any]:
    """Return the assignments in the response of an API.

    Parameters
    ----------
    document : Document
        The file.
    find : callable
        Returns the assignments in a JSON value, or None.
    api : str
        Name of the API, for error messages.

    Returns
    -------
    list
        The assignments.

    Raises
    ------
    AnnotationError
        If `find` returns None.
    """
    found = find(document.value) if isinstance(document, Records) else None
    if found is None:
        raise AnnotationError(f"{document.name} is not a list of assignments as {api} returns it. Leave --format out.")
    return found


def one_text(value: Any, source: str, row: int, what: str) -> str | None:
    """Return a text, or a number as text; objects and lists are refused.

    Parameters
    ----------
    value : object
        A JSON value.
    source : str
        Name of the file, for error messages.
    row : int
        Number of the row, from 1.
    what : str
        What the value is, for error messages.

    Returns
    -------
    str or None
        The text; None for null.

    Raises
    ------
    AnnotationError
        If the value is an object or a list.
    """
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool | int | float):
        return as_text(value)
    kind = "an object" if isinstance(value, dict) else "a list"
    raise AnnotationError(f"{source}, row {row}: {what} is {kind}, not text or a number. Export the file again.")


def field_of(entry: Mapping[str, Any], path: str) -> Any:
    """Return the value of a field.

    Parameters
    ----------
    entry : mapping of str to object
        A JSON object.
    path : str
        A key, or nested keys with dots between them.

    Returns
    -------
    object
        The value; None if there is none.
    """
    if path in entry:
        return entry[path]
    value: Any = entry
    for key in path.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    return value


def refuse_unknown_field(wanted: str, role: str, source: str, fields: Sequence[str]) -> AnnotationError:
    """Return the error for a field that the caller named and no object has.

    Parameters
    ----------
    wanted : str
        The field.
    role : str
        What the field is for, which is also the name of the option.
    source : str
        Name of the file.
    fields : sequence of str
        The fields that exist.

    Returns
    -------
    AnnotationError
        The error, to be raised by the caller.
    """
    there = listed(list(dict.fromkeys(fields)))
    return AnnotationError(f"Field {wanted!r} is not in {source}. It has: {there}. Name another with --{role} FIELD.")


def item_at(objects: Sequence[Mapping[str, Any]], at: int, key: str, source: str) -> str:
    """Return the item id of an object.

    Parameters
    ----------
    objects : sequence of mapping
        All objects of the file.
    at : int
        Number of the object, from 1.
    key : str
        Field with the item id.
    source : str
        Name of the file, for error messages.

    Returns
    -------
    str
        The item id.

    Raises
    ------
    AnnotationError
        If no object has this field, or this object does not.
    """
    item = one_text(field_of(objects[at - 1], key), source, at, key)
    if item is None and all(field_of(other, key) is None for other in objects):
        raise refuse_unknown_field(key, "item", source, [name for other in objects for name in other])
    if item is None:
        raise AnnotationError(f"{source}, row {at} has no {key}. Name another field with --item FIELD.")
    return item


def set_times(rows: Collector, raw: Sequence[Any]) -> Notes:
    """Set the times of collected rows.

    Parameters
    ----------
    rows : Collector
        The rows.
    raw : sequence of object
        The time of each row as it is in the file.

    Returns
    -------
    dict of str to str
        A note on the times that cannot be parsed.
    """
    texts = [as_text(value) if isinstance(value, str | int | float) else None for value in raw]
    times, notes = parse_times(pl.Series(texts, dtype=pl.String))
    rows.time = times.to_list()
    return notes


def only_question(rows: Collector, options: ColumnOptions, source: str) -> None:
    """Keep only the answers to the question that the caller named as the label.

    Parameters
    ----------
    rows : Collector
        The rows; changed in place.
    options : ColumnOptions
        Options of the caller.
    source : str
        Name of the file, for error messages.

    Raises
    ------
    AnnotationError
        If there is no such question.
    """
    if options.label is None:
        return
    if options.label not in rows.answers:
        raise AnnotationError(f"{source} has no question {options.label!r}. It has: {listed(list(rows.answers))}.")
    for other in set(rows.answers) - {options.label}:
        del rows.answers[other]


def refusal(rows: Collector, source: str, *, no_worker: str) -> str | None:
    """Return why nothing can be aggregated, if so: no label has a worker, or there are no classes of whole items.

    Both never hold together, as the reason "no_worker" is only given to rows with an answer.

    Parameters
    ----------
    rows : Collector
        The rows.
    source : str
        Name of the file.
    no_worker : str
        The sentence for labels without workers.

    Returns
    -------
    str or None
        One of the sentences, or None.
    """
    if "no_worker" in rows.reason and not any(rows.worker):
        return no_worker
    return rows.others.refusal(source) if rows.others and not rows.answers else None
