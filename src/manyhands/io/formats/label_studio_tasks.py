"""Tasks of a Label Studio JSON export: their annotations, results and items."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from manyhands.exceptions import AnnotationError
from manyhands.io.messages import listed, shorten
from manyhands.io.read.documents import Document, Records
from manyhands.io.read.json_files import as_text

Task = dict[str, Any]


def tasks_of(document: Document) -> Iterator[Task]:
    """Yield the tasks of a JSON export; a single annotation becomes the only one of its task.

    Parameters
    ----------
    document : Document
        A parsed file.

    Yields
    ------
    dict
        A task with ``id``, ``data`` and ``annotations``.

    Raises
    ------
    AnnotationError
        If it is not a JSON export, or an entry is not an object.
    """
    value = document.value if isinstance(document, Records) else None
    if not isinstance(value, list | dict):
        raise AnnotationError(f"{document.name} is not a JSON export of Label Studio. Leave --format out.")
    for at, task in enumerate(value if isinstance(value, list) else [value], start=1):
        if type(task) is not dict:
            what = f"{kind_of(task)} where a task should be"
            raise AnnotationError(f"{document.name}, entry {at}: {what}. Export it again.")
        if is_annotation(task):
            inner = task["task"] if type(task["task"]) is dict else {"id": task["task"]}
            task = {"id": inner.get("id"), "data": inner.get("data"), "annotations": [task]}
        yield task


def entries_of(task: Task, key: str, source: str) -> list[Any]:
    """Return a list of a task.

    Parameters
    ----------
    task : dict
        The task.
    key : str
        ``"annotations"``, ``"drafts"`` or ``"predictions"``.
    source : str
        Name of the file, for error messages.

    Returns
    -------
    list
        The entries; empty if the key is missing.

    Raises
    ------
    AnnotationError
        If it is not a list.
    """
    found = task.get(key)
    if found is None:
        return []
    if type(found) is not list:
        raise AnnotationError(
            f"{source}, task {id_of(task)}: {key!r} is {kind_of(found)}, not a list. Export it again."
        )
    return found


def results_of(entry: dict[str, Any], task: Task, source: str) -> list[Any]:
    """Return the results of an annotation, draft or prediction.

    Parameters
    ----------
    entry : dict
        The annotation.
    task : dict
        Its task, for error messages.
    source : str
        Name of the file, for error messages.

    Returns
    -------
    list
        The results; empty if they are missing.

    Raises
    ------
    AnnotationError
        If it is not a list.
    """
    results = entry.get("result")
    if results is None:
        return []
    if type(results) is not list:
        where = f"{source}, task {id_of(task)}, annotation {id_of(entry)}"
        raise AnnotationError(f"{where}: 'result' is {kind_of(results)}, not a list. Export it again.")
    return results


def item_finder(document: Document, wanted: str | None) -> tuple[Callable[[Task], str | None], str]:
    """Return how to find the item of a task.

    Parameters
    ----------
    document : Document
        A parsed file.
    wanted : str or None
        Key of the tasks' data that the caller named; None for the id of the task.

    Returns
    -------
    find : callable
        Maps a task to its item.
    location : str
        Where the item is, for the mapping.

    Raises
    ------
    AnnotationError
        If no task has this key.
    """
    if wanted is None or wanted == "id":
        return lambda task: scalar_text(task.get("id")), "id"
    key = wanted.removeprefix("data.")
    keys = list(dict.fromkeys(name for task in tasks_of(document) for name in _data(task)))
    if key not in keys:
        raise AnnotationError(f"{document.name} has no {wanted!r} in the data of its tasks. It has: {listed(keys)}.")

    def find(task: Task) -> str | None:
        found = scalar_text(_data(task).get(key))
        if found is None:
            raise AnnotationError(
                f"{document.name}, task {id_of(task)}: no {key!r} in its data, so it has no item. Name another --item."
            )
        return found

    return find, f"data.{key}"


def is_annotation(entry: dict[str, Any]) -> bool:
    """Whether an object is a single annotation, as in exports to cloud storage."""
    return "result" in entry and "task" in entry and "completed_by" in entry and type(entry["result"]) is list


def _data(task: Task) -> dict[str, Any]:
    """Return the data of a task."""
    data = task.get("data")
    return data if type(data) is dict else {}


def scalar_text(value: Any) -> str | None:
    """Return a scalar as text; None for anything else."""
    if type(value) is str:
        return value
    return as_text(value) if isinstance(value, str | int | float) else None


def worker_name(value: Any) -> str | None:
    """Return the name of a worker; None if it is blank."""
    name = scalar_text(value)
    return name if name and not name.isspace() else None


def id_of(entry: Task) -> str:
    """Return the id of a task or annotation, for error messages."""
    return shorten(scalar_text(entry.get("id")) or "without an id")


def kind_of(value: Any) -> str:
    """Return the kind of a JSON value, for error messages."""
    kinds = {dict: "an object", list: "a list", str: "text", bool: "a truth value", type(None): "null"}
    return kinds.get(type(value), "a number")
