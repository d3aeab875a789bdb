"""Labels back into Label Studio: predictions for its tasks, copies of the tasks, or new tasks.

Label Studio has two imports. *Tasks* (``/api/projects/ID/import``) always become new tasks: imported into the project
they came from, every task would be there twice, the second time without its annotations. *Predictions*
(``/api/projects/ID/import/predictions``) are attached to tasks that exist. `predictions_for_tasks` writes these; the
other two functions are for another project.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import orjson

from manyhands.exceptions import AnnotationError, ParameterError
from manyhands.io.formats.label_studio import recognise
from manyhands.io.formats.label_studio_results import VALUE_KEYS, as_value, read_results
from manyhands.io.formats.label_studio_tasks import entries_of, item_finder, results_of, tasks_of
from manyhands.io.messages import listed, shorten
from manyhands.io.read.documents import Records
from manyhands.io.read.json_files import parse_json
from manyhands.io.read.sources import open_path
from manyhands.io.read.text import as_utf8
from manyhands.io.write.raw_members import raw_members
from manyhands.io.write.suggestions import PRIORITY

Labels = Mapping[str, tuple[Any, float]]  # item -> its label (None if it has none) and confidence
_PLACES = 6  # decimals of a probability in text
_JOINT = " + "  # joins the choices of a combination, as in `question_selection`


@dataclass(frozen=True)
class _Control:
    """The control that asks a question, as results name it, and the choices that occur."""

    from_name: str
    to_name: str
    kind: str
    options: frozenset[str] = frozenset()


def check_write_back(paths: Iterable[Any], question: str, questions: Container[str]) -> None:
    """Refuse exports that `predictions_for_tasks` could not write, before anything is computed.

    Parameters
    ----------
    paths : iterable
        The files that were read.
    question : str
        The question whose answers were read (`Reading.question`).
    questions : container of str
        All questions of the export (`Reading.questions`).

    Raises
    ------
    ParameterError
        If the export is standard input, or the labels are about one choice of a question.
    """
    refuse_standard_input(paths)
    name, _, option = question.rpartition("=")
    if question not in questions and name in questions:
        raise ParameterError(
            f"The labels are whether {shorten(option)!r} was chosen for {shorten(name)!r}, which Label Studio cannot "
            f"import as an answer to {shorten(name)!r}. Read the whole question, or write another format."
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

    Parameters
    ----------
    source : str, Path, Source, or list of these
        The JSON export that was read.
    labels : mapping of str to (label, confidence)
        Item -> label and confidence; an item that is missing, or has None as its label, gets no prediction.
    question : str
        The control (``from_name``) whose answers were read.
    item : str or None, default=None
        Key of the tasks' data that names the item; None for the id of the task.
    encoding : str or None, default=None
        Encoding of an export that is not UTF-8.
    model_version : str, default="manyhands"
        Name under which Label Studio shows the predictions.

    Returns
    -------
    bytes
        JSON: a list of objects with ``task`` (id of an existing task), ``result``, ``score`` and ``model_version``.

    Raises
    ------
    AnnotationError
        If it is not a JSON export of Label Studio, has no such question, or a labelled task has no id.
    ParameterError
        If it is standard input, which cannot be read twice.
    """
    written = []
    for members, found in _labelled_tasks(source, labels, question, item, encoding, model_version):
        if found and members["id"] is None:
            raise AnnotationError(
                "A labelled task of the export has no id, so Label Studio could not attach its prediction. Export the "
                "project again as JSON, or write new tasks with label-studio-tasks."
            )
        written += [{"task": members["id"], **prediction} for prediction in found]
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

    Parameters
    ----------
    source : str, Path, Source, or list of these
        The JSON export that was read.
    labels : mapping of str to (label, confidence)
        Item -> label and confidence; an item that is missing, or has None as its label, gets no prediction.
    question : str
        The control (``from_name``) whose answers were read.
    item : str or None, default=None
        Key of the tasks' data that names the item; None for the id of the task.
    encoding : str or None, default=None
        Encoding of an export that is not UTF-8.
    model_version : str, default="manyhands"
        Name under which Label Studio shows the predictions.

    Returns
    -------
    bytes
        JSON.

    Raises
    ------
    AnnotationError
        If it is not a JSON export of Label Studio, or has no such question.
    ParameterError
        If it is standard input, which cannot be read twice.
    """
    found = _labelled_tasks(source, labels, question, item, encoding, model_version)
    return _written([members | {"predictions": predictions} for members, predictions in found])


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
            found = _predictions(None if name is None else labels.get(name), control, model_version)
            tasks.setdefault(_identity(task, None if alone else raw_task.get("data"), (number, at)), (members, found))
    return list(tasks.values())


def label_studio_tasks(
    labels: Labels,
    *,
    from_name: str = "label",
    to_name: str = "text",
    kind: str = "choices",
    model_version: str = "manyhands",
) -> bytes:
    """Return new Label Studio tasks for labels that came from another tool; the data of each has its id.

    The data of a task are ``item`` and ``manyhands_priority`` (1 minus the confidence), so that the data manager can
    sort by what most needs another look.

    Parameters
    ----------
    labels : mapping of str to (label, confidence)
        Item -> label and confidence.
    from_name : str, default="label"
        Name of the control in the configuration of the project.
    to_name : str, default="text"
        Name of the object that it labels.
    kind : {"choices", "rating", "taxonomy", "number", "pairwise"}, default="choices"
        Type of the control.
    model_version : str, default="manyhands"
        Name under which Label Studio shows the predictions.

    Returns
    -------
    bytes
        JSON.
    """
    if kind not in VALUE_KEYS:
        raise ParameterError(f"kind is {kind!r}; allowed are {', '.join(VALUE_KEYS)}.")
    control = _Control(from_name, to_name, kind)
    tasks = [
        {"data": _data(name, found), "predictions": _predictions(found, control, model_version)}
        for name, found in labels.items()
    ]
    return _written(tasks)


def _written(tasks: list[dict[str, Any]]) -> bytes:
    """Return tasks as JSON."""
    try:
        return orjson.dumps(tasks, option=orjson.OPT_INDENT_2)
    except TypeError as error:
        raise AnnotationError(
            f"The data of a task cannot be written as JSON: {error}. Look for deep nesting."
        ) from None


def refuse_standard_input(paths: Iterable[Any]) -> None:
    """Refuse standard input, which cannot be read twice.

    Parameters
    ----------
    paths : iterable
        The files of an export.

    Raises
    ------
    ParameterError
        If one of them is standard input.
    """
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
    found: dict[str, Any] | None = None
    options: set[str] = set()
    questions: dict[str, None] = {}
    for results in (results for document in documents for results in _all_results(document)):
        answers, *_ = read_results(results)
        questions |= dict.fromkeys(answers)
        if question in answers:
            answer = answers[question]
            options |= {answer} if isinstance(answer, str) else set(answer)
            found = found or next(result for result in results if question in read_results([result])[0])
    if found is None:
        where = documents[0].name if documents else "The export"
        raise AnnotationError(f"{where} has no question {shorten(question)!r}. It has: {listed(list(questions))}.")
    return _Control(question, str(found.get("to_name") or ""), found["type"], frozenset(options))


def _all_results(document: Records) -> Iterator[list[Any]]:
    """Yield the results of all annotations and predictions."""
    for task in tasks_of(document):
        for key in ("annotations", "completions", "predictions"):
            for entry in entries_of(task, key, document.name):
                if isinstance(entry, dict):
                    yield results_of(entry, task, document.name)


def _data(name: Any, found: tuple[Any, float]) -> dict[str, Any]:
    """Return the data of a new task: its item, and how uncertain the label is, by which tasks can be sorted."""
    priority = {PRIORITY: round(1 - found[1], _PLACES)} if math.isfinite(found[1]) else {}
    return {"item": str(name), **priority}


def _predictions(found: tuple[Any, float] | None, control: _Control, model_version: str) -> list[dict[str, Any]]:
    """Return one prediction, or none without a label."""
    if found is None or found[0] is None:
        return []
    label, score = str(found[0]), float(found[1])
    value = as_value(control.kind, label)
    parts = label.split(_JOINT)
    if control.kind == "choices" and label not in control.options and control.options.issuperset(parts):
        value = {"choices": parts}
    result = {"from_name": control.from_name, "to_name": control.to_name, "type": control.kind, "value": value}
    rounded = round(score, _PLACES) if math.isfinite(score) else None
    return [{"model_version": model_version, "score": rounded, "result": [result]}]
