"""Toloka: the TSV of a pool's assignments, and the assignments that its API returns.

One assignment is a page of several tasks. ``GOLDEN:*`` and ``known_solutions`` are known answers of control tasks.
"""

from __future__ import annotations

import polars as pl

from manyhands.exceptions import AnnotationError
from manyhands.io.formats.item_columns import choose_item, find_wanted, keep_wanted, named_columns, usual_item
from manyhands.io.formats.long import as_table, gold_of
from manyhands.io.formats.toloka_api import assignments_in, read_assignments
from manyhands.io.formats.toloka_status import reason_of, status_notes
from manyhands.io.read.column_lookup import find_column
from manyhands.io.read.documents import Document, Records, Table
from manyhands.io.read.durations import divide_by_task, seconds_between
from manyhands.io.read.judgements import ColumnOptions, Judgements
from manyhands.io.read.times import parse_times
from manyhands.io.read.working_time import ROLE

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
    """Recognise the prefixes of Toloka's columns, or pages of parallel tasks and solutions.

    Parameters
    ----------
    document : Table, Records, Words or Folder
        A parsed file or folder.

    Returns
    -------
    str or None
        ``"toloka"`` or ``"toloka-api"``; None for any other document.
    """
    if isinstance(document, Records):
        return "toloka-api" if assignments_in(document.value) is not None else None
    if not isinstance(document, Table):
        return None
    shown = any(name.startswith((_INPUT, _ASSIGNMENT)) for name in document.header)
    return "toloka" if shown and any(name.startswith((_OUTPUT, _GOLDEN)) for name in document.header) else None


def read(document: Document, format_name: str, options: ColumnOptions) -> Judgements:
    """Read the judgements of a pool; blank rows between pages, and rejected or unsubmitted assignments, do not count.

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
        One row per task of an assignment.

    Raises
    ------
    AnnotationError
        If the document is not of this format, or inconsistent.
    """
    if format_name == "toloka-api":
        return read_assignments(document, options)
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
    known = {question: column for question, column in named_columns(table, _GOLDEN).items() if question in answers}
    reason, unknown = _reasons(table)
    at_time = next((name for name in _TIMES if name in table.header), None)
    time, unread = parse_times(table.column(table.header.index(at_time))) if at_time is not None else (None, {})
    seconds = _seconds(table)
    label = _OUTPUT + (next(iter(answers)) if len(answers) == 1 else "*")
    mapping = {"item": item_location, "worker": table.header[worker], "label": label}
    mapping |= {"time": at_time} if at_time is not None else {}
    mapping |= {"gold": f"{_GOLDEN}{label.removeprefix(_OUTPUT)}"} if known else {}
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
        gold={question: gold_of(item, column) for question, column in known.items()},
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
    reasons = {text: reason_of(text) for text in values}
    return status.replace_strict(reasons, default=None, return_dtype=pl.String), status_notes(values)


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
