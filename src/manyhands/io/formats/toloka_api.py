"""Assignments that the API of Toloka returns, each with its tasks and, in the same order, their solutions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import polars as pl

from manyhands.exceptions import AnnotationError
from manyhands.io.formats.fields import assignments_of
from manyhands.io.formats.item_columns import choose_item, find_wanted, keep_wanted
from manyhands.io.formats.long import objects_as_table
from manyhands.io.formats.toloka_status import reason_of, status_notes
from manyhands.io.messages import shorten
from manyhands.io.read.documents import Document, Records
from manyhands.io.read.durations import divide_by_task, seconds_between
from manyhands.io.read.json_files import as_text
from manyhands.io.read.judgements import Collector, ColumnOptions, Judgements
from manyhands.io.read.times import parse_times
from manyhands.io.read.working_time import ROLE

_INPUT, _OUTPUT, _TASK = "input_values.", "output_values.", "task_id"


def assignments_in(value: Any) -> list[Any] | None:
    """Return the assignments of one response, of several, or of a bare list.

    Parameters
    ----------
    value : object
        A JSON value.

    Returns
    -------
    list or None
        The assignments; None if the first is not one.
    """
    found: list[Any] = []
    for response in value if isinstance(value, list) else [value]:
        if not isinstance(response, dict):
            return None
        inside = response.get("items")
        found += inside if isinstance(inside, list) and "tasks" not in response else [response]
        if found and not _is_assignment(found[0]):
            return None
    return found or None


def _is_assignment(value: Any) -> bool:
    """Whether a value is an assignment of Toloka."""
    return (
        isinstance(value, dict)
        and isinstance(value.get("tasks"), list)
        and not {"solutions", "user_id"}.isdisjoint(value)
    )


def read_assignments(document: Document, options: ColumnOptions) -> Judgements:
    """Read one judgement per task of an assignment.

    Parameters
    ----------
    document : Document
        A parsed file.
    options : ColumnOptions
        Columns and question that the caller named.

    Returns
    -------
    Judgements
        One row per task of an assignment.

    Raises
    ------
    AnnotationError
        If the document is not such a list, or inconsistent.
    """
    assignments = assignments_of(document, assignments_in, "Toloka's API")
    if options.worker != "user_id":
        options.refuse("worker", "toloka-api", "user_id")
    tasks = _Tasks(document.name)
    for at, assignment in enumerate(assignments, start=1):
        tasks.add_all(assignment, at)
    times, unread = parse_times(pl.Series(tasks.times, dtype=pl.String))
    item, item_location, notes = _find_item(tasks, options)
    tasks.rows.item, tasks.rows.time = item, times.to_list()
    for row, question, answer in tasks.known:
        name = item[row]
        if name is not None:
            allowed = tasks.rows.gold[question].get(name, ())
            tasks.rows.gold[question][name] = allowed if answer in allowed else (*allowed, answer)
    mapping = {"item": item_location, "worker": "user_id", "label": "solutions[].output_values", "time": "submitted"}
    judgements = tasks.rows.judgements(
        document.name,
        "toloka-api",
        mapping=mapping | ({"gold": "tasks[].known_solutions"} if tasks.known else {}),
        notes=(document.notes if isinstance(document, Records) else {}) | notes | unread | status_notes(tasks.statuses),
    )
    submitted = pl.Series(tasks.times, dtype=pl.String)
    seconds = seconds_between(pl.Series(tasks.begun, dtype=pl.String), submitted)
    seconds = divide_by_task(seconds, pl.Series(tasks.assignments, dtype=pl.Int64))
    if seconds is not None:
        judgements = replace(judgements, seconds=seconds, mapping=judgements.mapping | {ROLE: "created to submitted"})
    return replace(judgements, answers=keep_wanted(judgements.answers, options.label, _OUTPUT, document.name))


class _Tasks:
    """Collects the tasks of all assignments, a row each."""

    def __init__(self, source: str) -> None:
        """Start without rows."""
        self.source = source
        self.rows = Collector()  # its items and times are set at the end
        self.ids: list[str | None] = []
        self.times: list[str | None] = []
        self.begun: list[str | None] = []
        self.assignments: list[int] = []
        self.inputs: list[dict[str, Any]] = []
        self.known: list[tuple[int, str, str]] = []  # row, question, an answer that is right
        self.statuses: set[str] = set()

    def add_all(self, assignment: Any, at: int) -> None:
        """Add the tasks of one assignment, the one with number `at`."""
        where = f"{self.source}, assignment {at}"
        assignment = _object(assignment, where)
        where = f"{self.source}, assignment {shorten(_text(assignment.get('id'), where) or str(at))}"
        status = _text(assignment.get("status"), where) or ""
        reason = reason_of(status)
        self.statuses |= {status} - {""}
        worker = _text(assignment.get("user_id"), where)
        time = _text(assignment.get("submitted") or assignment.get("created"), where)
        for task, solution in _pairs(assignment, reason is not None, where):
            given = _object(solution.get("output_values") or {}, f"{where}, output_values")
            self._add_known(task, where)
            self.rows.add(None, worker, {key: _answer(value, where) for key, value in given.items()}, reason)
            self.ids.append(_text(task.get("id"), where))
            self.times.append(time)
            self.begun.append(_text(assignment.get("created"), where))
            self.assignments.append(at)
            shown = _object(task.get("input_values") or {}, f"{where}, input_values")
            self.inputs.append({key: _as_json(value, where) for key, value in shown.items()})

    def _add_known(self, task: dict[str, Any], where: str) -> None:
        """Add the known answers of a control task."""
        where = f"{where}, known_solutions"
        known = task.get("known_solutions") or []
        if not isinstance(known, list):
            raise AnnotationError(f"{where}: {_shown(known)} where a list should be. Fetch it again.")
        for solution in known:
            right = _object(_object(solution, where).get("output_values") or {}, where)
            for question, value in right.items():
                answer = _answer(value, where)
                if isinstance(answer, list):  # several choices are one combination, not several right answers
                    answer = answer[0] if len(answer) == 1 else None
                if answer:
                    self.known.append((len(self.ids), question, answer))


def _pairs(assignment: dict[str, Any], is_open: bool, where: str) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Return each task with its solution; an assignment that was not submitted may have none."""
    tasks, solutions = assignment.get("tasks") or [], assignment.get("solutions") or []
    if not isinstance(tasks, list) or not isinstance(solutions, list):
        raise AnnotationError(f"{where}: its tasks and solutions are not both lists. Fetch it again.")
    if is_open and not solutions:
        solutions = [{}] * len(tasks)
    if len(tasks) != len(solutions):
        raise AnnotationError(
            f"{where}: {len(tasks)} task(s), but {len(solutions)} solution(s), so they cannot be "
            "matched. Fetch it again."
        )
    return [
        (_object(task, f"{where}, tasks"), _object(solution or {}, f"{where}, solutions"))
        for task, solution in zip(tasks, solutions)
    ]


def _find_item(tasks: _Tasks, options: ColumnOptions) -> tuple[list[str | None], str, dict[str, str]]:
    """Return the item of each row, its description for the mapping, and notes."""
    ids = pl.Series(tasks.ids, dtype=pl.String)
    shown = objects_as_table(tasks.source, tasks.inputs)
    columns = {name: shown.column(at) for at, name in enumerate(shown.header)}
    if options.item is None and columns:
        name, location, notes = choose_item(columns, _INPUT, tasks.source, _TASK)
        return columns[name].to_list(), location, notes
    header = [*(_INPUT + name for name in columns), _TASK]
    at = find_wanted(header, options.item or _TASK, _INPUT, tasks.source)
    return [*columns.values(), ids][at].to_list(), header[at], {}


def _object(value: Any, where: str) -> dict[str, Any]:
    """Return an object, or refuse anything else."""
    if not isinstance(value, dict):
        raise AnnotationError(f"{where}: {_shown(value)} where an object should be. Fetch it again.")
    return value


def _text(value: Any, where: str) -> str | None:
    """Return a text, or refuse an object or a list."""
    if isinstance(value, dict | list):
        raise AnnotationError(f"{where}: {_shown(value)} where a text should be. Fetch it again.")
    return as_text(value)


def _answer(value: Any, where: str) -> str | list[str] | None:
    """Return one choice, several, or any other value as JSON."""
    if isinstance(value, list):
        return [text for text in (_as_json(choice, where) for choice in value) if text]
    return _as_json(value, where) or None


def _as_json(value: Any, where: str) -> str | None:
    """Return a value as text, with the place in the error message."""
    try:
        return as_text(value)
    except AnnotationError as error:
        raise AnnotationError(f"{where}: {error}") from None


def _shown(value: Any) -> str:
    """Return a value for an error message; a deeply nested one cannot be printed."""
    return "a list" if isinstance(value, list) else "an object" if isinstance(value, dict) else shorten(repr(value))
