"""Scale AI: tasks with one answer to each field, or conversations with annotations on their messages.

Scale does not name the workers of a task, so all answers are those of one worker called ``scale``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from manyhands.exceptions import AnnotationError
from manyhands.io.documents import Document, Records
from manyhands.io.formats.fields import field_of, objects_of, one_text, only_question, refuse_unknown_field, set_times
from manyhands.io.judgements import OTHERS, Collector, ColumnOptions, Judgements

_WORKER = "scale"
_NOTE = (
    "Scale does not name its workers, so all answers count as those of one worker. Use them as gold, or as one worker "
    "among others; on their own they are not a crowd."
)


def recognise(document: Document) -> str | None:
    """Recognise tasks with an id, a status and a response, parameters or threads."""
    if not isinstance(document, Records):
        return None
    value = document.value
    first = _tasks(value)[0] if isinstance(value, dict) and _tasks(value) else document.first
    if not isinstance(first, dict) or "task_id" not in first or "status" not in first:
        return None
    parts = isinstance(first.get("response"), dict) or isinstance(first.get("params"), dict)
    return "scale" if parts or isinstance(first.get("threads"), list) else None


def read(document: Document, format_name: str, options: ColumnOptions) -> Judgements:
    """Read one judgement per task; of a conversation, one per message, turn or thread with annotations."""
    options.refuse("worker", "Scale", "nothing (it names none)")
    name = document.name
    value = document.value if isinstance(document, Records) else None
    tasks = objects_of(Records(name, _tasks(value)) if isinstance(value, dict) else document, "Scale")
    if options.item and tasks and all(field_of(task, options.item) is None for task in tasks):
        raise refuse_unknown_field(options.item, "item", name, [key for task in tasks for key in task])
    rows, times = Collector(), []
    for at, task in enumerate(tasks, start=1):
        item = _item(task, options.item, name, at)
        done = task.get("status") == "completed"
        for part, answers, region in _answered(task, name, at):
            if region:
                rows.others.add(OTHERS)
            reason = "draft" if not done else "region" if region and not answers else None
            rows.add(item + part, _WORKER, answers, reason)
            times.append(task.get("completed_at"))
    notes = set_times(rows, times)
    only_question(rows, options, name)
    return rows.judgements(
        name,
        format_name,
        mapping={
            "item": options.item or "unique_id, else task_id",
            "worker": f"not in the file; all are called {_WORKER!r}",
            "label": "response.annotations, or annotations of messages",
            "time": "completed_at",
        },
        notes=getattr(document, "notes", {}) | notes | {"single_worker": _NOTE},
        refusal=rows.others.refusal(name) if rows.others and not rows.answers else None,
    )


def _tasks(value: dict[str, Any]) -> list[Any]:
    """Return the tasks of a page that the API returns, or the one task of a file."""
    docs = value.get("docs")
    return docs if isinstance(docs, list) and "task_id" not in value else [value]


def _item(task: Mapping[str, Any], wanted: str | None, source: str, at: int) -> str:
    """Return the item of a task."""
    for key in ("unique_id", "task_id") if wanted is None else (wanted,):
        item = one_text(field_of(task, key), source, at, key)
        if item:
            return item
    raise AnnotationError(f"{source}, row {at} has no {wanted or 'task_id'}. Name another field with `item=`.")


def _answered(task: Mapping[str, Any], source: str, at: int) -> Iterator[tuple[str, dict[str, str | list[str]], bool]]:
    """Yield every annotated part of a task: the end of its name, the answers, and whether some are not classes."""
    threads = _objects(task.get("threads"), source, at, "threads")
    if not threads:
        given = _response(task, source, at)
        answers = {field: _labels(value, source, at, field) for field, value in given.items()}
        regions = None in answers.values() or _is_list_of_marks(task)
        yield "", {field: answer for field, answer in answers.items() if answer}, regions
        return
    has_answer = False
    for part, given_here in _annotated(threads, source, at):
        has_answer = True
        named = [(one_text(entry.get("key"), source, at, "key"), entry.get("value")) for entry in given_here]
        answers = {key: _labels(value, source, at, key) for key, value in named if key is not None}
        yield part, {key: answer for key, answer in answers.items() if answer}, None in answers.values()
    if not has_answer:
        yield "", {}, False


def _annotated(threads: list[dict[str, Any]], source: str, at: int) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yield the threads, turns and messages with annotations, by their path."""
    for t, thread in enumerate(threads):
        thread_id = one_text(thread.get("id"), source, at, "a thread's id") or str(t)
        above = f"/{thread_id}" if len(threads) > 1 else ""
        inner = [(above, thread)]
        for u, turn in enumerate(_objects(thread.get("turns"), source, at, "turns")):
            turn_path = f"{above}/{one_text(turn.get('id'), source, at, 'the id of a turn') or u}"
            messages = _objects(turn.get("messages"), source, at, "messages")
            ids = [one_text(message.get("id"), source, at, "a message's id") for message in messages]
            inner += [(turn_path, turn)]
            inner += [(f"{turn_path}/{ids[m] or m}", message) for m, message in enumerate(messages)]
        for path, part in inner:
            annotations = _objects(part.get("annotations"), source, at, "annotations")
            if annotations:
                yield path, annotations


def _response(task: Mapping[str, Any], source: str, at: int) -> dict[str, Any]:
    """Return the answers by field, of a text collection (``annotations``) or a categorisation (``category``)."""
    response = task.get("response")
    if response is None or _is_list_of_marks(task):
        return {}
    if isinstance(response, dict):
        fields = response.get("annotations")
        if isinstance(fields, dict):
            return fields
        if fields is None:
            return {"category": response["category"]} if "category" in response else {}
    raise AnnotationError(f"{source}, row {at}: response has no annotations by field. Export the task again.")


def _is_list_of_marks(task: Mapping[str, Any]) -> bool:
    """Whether the annotations of a task are a list of marked regions."""
    response = task.get("response")
    return isinstance(response, dict) and isinstance(response.get("annotations"), list)


def _labels(value: Any, source: str, at: int, what: str) -> str | list[str] | None:
    """Return one answer, or several; "" if there is none, and None if it is not a class."""
    if isinstance(value, dict):
        if "response" not in value:
            return None
        value = value["response"]
    if not isinstance(value, list):
        return None if isinstance(value, dict) else one_text(value, source, at, what) or ""
    flat = [inner for entry in value for inner in (entry if isinstance(entry, list) else [entry])]
    if any(isinstance(entry, dict | list) for entry in flat):
        return None
    return [text for text in (one_text(entry, source, at, what) for entry in flat) if text]


def _objects(value: Any, source: str, at: int, what: str) -> list[dict[str, Any]]:
    """Return a list of objects, empty for null, or refuse anything else."""
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(entry, dict) for entry in value):
        raise AnnotationError(f"{source}, row {at}: {what} is not a list of objects. Export the task again.")
    return value
