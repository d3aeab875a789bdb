"""Toloka: the TSV of a pool's assignments, and the assignments that its API returns.

One assignment is a page of several tasks. ``GOLDEN:*`` and ``known_solutions`` are known answers of control tasks.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import polars as pl

from manyhands.exceptions import AnnotationError
from manyhands.io.documents import Document, Records, Table, as_text
from manyhands.io.formats.fields import assignments_of, choose_item, find_wanted, keep_wanted, named_columns, usual_item
from manyhands.io.formats.long import as_table, gold_of, objects_as_table
from manyhands.io.judgements import (
    ROLE,
    Collector,
    ColumnOptions,
    Judgements,
    divide_by_task,
    find_column,
    parse_times,
    seconds_between,
)
from manyhands.io.messages import listed, shorten

_INPUT, _OUTPUT, _GOLDEN, _CONFIDENCE, _ASSIGNMENT = "INPUT:", "OUTPUT:", "GOLDEN:", "CONFIDENCE:", "ASSIGNMENT:"
_WORKER, _TASK, _STATUS = "ASSIGNMENT:worker_id", "ASSIGNMENT:task_id", "ASSIGNMENT:status"
_ASSIGNMENT_ID = "ASSIGNMENT:assignment_id"
_WORK = ("ASSIGNMENT:started", "ASSIGNMENT:submitted")  # begin and end of the work on an assignment
_TIMES = ("ASSIGNMENT:submitted", "ASSIGNMENT:accepted", "ASSIGNMENT:started")  # the first that is there
_AGGREGATED = (
    "holds one answer per task that Toloka has aggregated already, not the answers of its workers, so there is nothing "
    "to aggregate. Download the assignments of the pool, with the column ASSIGNMENT:worker_id ticked."
)
_NO_WORKER = (
    "does not name the worker of each answer, so workers cannot be distinguished. "
    "Download the assignments again with the column ASSIGNMENT:worker_id ticked."
)


def recognise(document: Document) -> str | None:
    """Recognise the prefixes of Toloka's columns, or pages of parallel tasks and solutions."""
    if isinstance(document, Records):
        return "toloka-api" if assignments_in(document.value) is not None else None
    if not isinstance(document, Table):
        return None
    shown = any(name.startswith((_INPUT, _ASSIGNMENT)) for name in document.header)
    return "toloka" if shown and any(name.startswith((_OUTPUT, _GOLDEN)) for name in document.header) else None


def read(document: Document, format_name: str, options: ColumnOptions) -> Judgements:
    """Read the judgements of a pool; blank rows, and rejected or unsubmitted assignments, do not count."""
    if format_name == "toloka-api":
        return _read_assignments(document, options)
    table = as_table(document)
    outputs = named_columns(table, _OUTPUT)
    if not outputs:
        raise AnnotationError(
            f"{table.name} has no {_OUTPUT}* column, so no answers. Download the assignments of the pool."
        )
    if options.worker is None and _WORKER not in table.header:
        return _refused(table)
    worker = find_column(table.header, options.worker or _WORKER, "worker", table.name)
    item, item_location, notes = _find_item(table, options)
    answers = keep_wanted(outputs, options.label, _OUTPUT, table.name)
    gold_columns = {
        question: column for question, column in named_columns(table, _GOLDEN).items() if question in answers
    }
    reason, unknown = _reasons(table)
    at_time = next((name for name in _TIMES if name in table.header), None)
    time, unread = parse_times(table.column(table.header.index(at_time))) if at_time is not None else (None, {})
    seconds = _seconds(table)
    label = _OUTPUT + (next(iter(answers)) if len(answers) == 1 else "*")
    mapping = {"item": item_location, "worker": table.header[worker], "label": label}
    mapping |= {"time": at_time} if at_time is not None else {}
    mapping |= {"gold": f"{_GOLDEN}{label.removeprefix(_OUTPUT)}"} if gold_columns else {}
    return Judgements(
        table.name,
        format_name,
        item=item,
        worker=table.column(worker),
        answers=answers,
        reason=reason,
        time=time,
        seconds=seconds,
        mapping=mapping | ({} if seconds is None else {ROLE: " to ".join(_WORK)}),
        gold={question: gold_of(item, column) for question, column in gold_columns.items()},
        notes=notes | unknown | unread,
    )


def _seconds(table: Table) -> pl.Series | None:
    """Return the working time of each task: that of its assignment, divided by the number of its tasks."""
    if not set(table.header) >= {*_WORK, _ASSIGNMENT_ID}:
        return None
    begun, submitted, assignment = (table.column(table.header.index(name)) for name in (*_WORK, _ASSIGNMENT_ID))
    return divide_by_task(seconds_between(begun, submitted), assignment)


def _find_item(table: Table, options: ColumnOptions) -> tuple[pl.Series, str, dict[str, str]]:
    """Return the item's column, its description for the mapping, and notes."""
    inputs = named_columns(table, _INPUT)
    if options.item is None and inputs:
        name, location, notes = choose_item(inputs, _INPUT, table.name, _TASK)
        return inputs[name], location, notes
    at = find_wanted(table.header, options.item or _TASK, _INPUT, table.name)
    return table.column(at), table.header[at], {}


def _reasons(table: Table) -> tuple[pl.Series | None, dict[str, str]]:
    """Return why rows do not count, by the status of their assignment, and notes."""
    if _STATUS not in table.header:
        return None, {}
    status = table.column(table.header.index(_STATUS))
    values = [text for text in status.unique(maintain_order=True) if text is not None and text.strip()]
    reasons = {text: _reason_of(text) for text in values}
    return status.replace_strict(reasons, default=None, return_dtype=pl.String), _status_notes(values)


def _refused(table: Table) -> Judgements:
    """Return the rows of a file without workers, each with the reason why it does not count."""
    inputs = named_columns(table, _INPUT)
    aggregated = bool(named_columns(table, _CONFIDENCE))
    name = usual_item(inputs) or next(iter(inputs), None)
    blank = table.frame.select(pl.all_horizontal(pl.all().str.strip_chars().fill_null("") == "")).to_series()
    nulls = pl.Series([None], dtype=pl.String).new_from_index(0, len(table))
    reason = pl.Series(["aggregated" if aggregated else "no_worker"]).new_from_index(0, len(table))
    return Judgements(
        table.name,
        "toloka",
        item=nulls if name is None else inputs[name],
        worker=nulls,
        answers={},
        reason=reason.set(blank, "blank"),
        mapping={} if name is None else {"item": _INPUT + name},
        refusal=f"{table.name} {_AGGREGATED if aggregated else _NO_WORKER}",
    )


# ----------------------------------------------------------------------------------------------------
# Status of an assignment in Toloka. The same status is APPROVED in the TSV and ACCEPTED in the API.

_COUNTED = ("APPROVED", "ACCEPTED", "SUBMITTED")
# An active assignment is not finished; an expired one was never submitted.
_REASONS = {"REJECTED": "rejected", "SKIPPED": "skipped", "EXPIRED": "skipped", "ACTIVE": "draft"}


def _reason_of(status: str) -> str | None:
    """Return why an assignment of this status does not count."""
    return _REASONS.get(status.strip().upper())


def _status_notes(statuses: Iterable[str]) -> dict[str, str]:
    """Return a note on every unknown status."""
    unknown = [text for text in dict.fromkeys(statuses) if text.strip().upper() not in (*_COUNTED, *_REASONS)]
    message = f"The status {listed(unknown)} is unknown; answers with it were counted."
    return {"unknown_status": message} if unknown else {}


# ----------------------------------------------------------------------------------------------------
# Assignments that the API of Toloka returns, each with its tasks and, in the same order, their solutions.

_API_INPUT, _API_OUTPUT, _API_TASK = "input_values.", "output_values.", "task_id"


def assignments_in(value: Any) -> list[Any] | None:
    """Return the assignments of one response, of several, or of a bare list."""
    assignments: list[Any] = []
    for response in value if isinstance(value, list) else [value]:
        if not isinstance(response, dict):
            return None
        inside = response.get("items")
        assignments += inside if isinstance(inside, list) and "tasks" not in response else [response]
        if assignments and not _is_assignment(assignments[0]):
            return None
    return assignments or None


def _is_assignment(value: Any) -> bool:
    """Whether a value is an assignment of Toloka."""
    return (
        isinstance(value, dict)
        and isinstance(value.get("tasks"), list)
        and not {"solutions", "user_id"}.isdisjoint(value)
    )


def _read_assignments(document: Document, options: ColumnOptions) -> Judgements:
    """Read one judgement per task of an assignment."""
    assignments = assignments_of(document, assignments_in, "Toloka's API")
    if options.worker != "user_id":
        options.refuse("worker", "toloka-api", "user_id")
    tasks = _Tasks(document.name)
    for at, assignment in enumerate(assignments, start=1):
        tasks.add_all(assignment, at)
    times, unread = parse_times(pl.Series(tasks.times, dtype=pl.String))
    item, item_location, notes = _find_api_item(tasks, options)
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
        notes=(document.notes if isinstance(document, Records) else {})
        | notes
        | unread
        | _status_notes(tasks.statuses),
    )
    submitted = pl.Series(tasks.times, dtype=pl.String)
    seconds = seconds_between(pl.Series(tasks.begun, dtype=pl.String), submitted)
    seconds = divide_by_task(seconds, pl.Series(tasks.assignments, dtype=pl.Int64))
    if seconds is not None:
        judgements = replace(judgements, seconds=seconds, mapping=judgements.mapping | {ROLE: "created to submitted"})
    return replace(judgements, answers=keep_wanted(judgements.answers, options.label, _API_OUTPUT, document.name))


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
        reason = _reason_of(status)
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
        solutions = task.get("known_solutions") or []
        if not isinstance(solutions, list):
            raise AnnotationError(f"{where}: {_shown(solutions)} where a list should be. Fetch it again.")
        for solution in solutions:
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


def _find_api_item(tasks: _Tasks, options: ColumnOptions) -> tuple[list[str | None], str, dict[str, str]]:
    """Return the item of each row, its description for the mapping, and notes."""
    ids = pl.Series(tasks.ids, dtype=pl.String)
    shown = objects_as_table(tasks.source, tasks.inputs)
    columns = {name: shown.column(at) for at, name in enumerate(shown.header)}
    if options.item is None and columns:
        name, location, notes = choose_item(columns, _API_INPUT, tasks.source, _API_TASK)
        return columns[name].to_list(), location, notes
    header = [*(_API_INPUT + name for name in columns), _API_TASK]
    at = find_wanted(header, options.item or _API_TASK, _API_INPUT, tasks.source)
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
