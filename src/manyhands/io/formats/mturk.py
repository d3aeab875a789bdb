"""Amazon Mechanical Turk: the CSV of a batch's results, and the assignments that its API returns.

The item is what the requester uploaded (``Input.*``), not the HIT: one item may be in several HITs. A HIT that shows
several items is split.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import polars as pl

from manyhands.exceptions import AnnotationError
from manyhands.io.formats.item_columns import choose_item, find_gold, find_wanted, keep_wanted, named_columns
from manyhands.io.formats.long import as_table, gold_of
from manyhands.io.formats.mturk_answers import read_answers
from manyhands.io.formats.mturk_api import HIT_AS_ITEM, assignments_in, read_assignments
from manyhands.io.formats.numbered_items import Numbered, find_numbered, look_numbered, span
from manyhands.io.messages import listed, normalise_name
from manyhands.io.read.column_lookup import find_column
from manyhands.io.read.documents import Document, Records, Table
from manyhands.io.read.judgements import ColumnOptions, Judgements
from manyhands.io.read.text_tables import Locate
from manyhands.io.read.times import parse_times
from manyhands.io.read.working_time import find_seconds

_INPUT, _ANSWER = "Input.", "Answer."
_HIT, _ASSIGNMENT, _WORKER, _STATUS, _TIME = "HITId", "AssignmentId", "WorkerId", "AssignmentStatus", "SubmitTime"


@dataclass(frozen=True)
class _Rows:
    """One row per item and assignment: inputs, answers, and their locations in the file."""

    inputs: dict[str, pl.Series]
    answers: dict[str, pl.Series]
    input_locations: dict[str, str]
    answer_locations: dict[str, str]
    repeat: Callable[[pl.Series], pl.Series]  # repeats a value per assignment for each of its rows
    notes: dict[str, str] = field(default_factory=dict)


def recognise(document: Document) -> str | None:
    """Recognise columns of workers, of HITs or assignments, and of answers.

    Parameters
    ----------
    document : Table, Records, Words or Folder
        A parsed file or folder.

    Returns
    -------
    str or None
        ``"mturk"`` or ``"mturk-api"``; None for any other document.
    """
    if isinstance(document, Records):
        return "mturk-api" if assignments_in(document.value) is not None else None
    if not isinstance(document, Table):
        return None
    has_answers = any(name.startswith(_ANSWER) for name in document.header)
    marked = _HIT in document.header or _ASSIGNMENT in document.header
    return "mturk" if has_answers and marked and _WORKER in document.header else None


def read(document: Document, format_name: str, options: ColumnOptions) -> Judgements:
    """Read the judgements of a batch; those of rejected assignments do not count.

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
        One row per assignment, or per item of an assignment.

    Raises
    ------
    AnnotationError
        If the document is not of this format, or inconsistent.
    """
    if format_name == "mturk-api":
        return read_assignments(document, options)
    table = as_table(document)
    inputs, answers = named_columns(table, _INPUT), named_columns(table, _ANSWER)
    if not answers:
        raise AnnotationError(
            f"{table.name} has no {_ANSWER}* column, so no answers. Download the results of the batch."
        )
    worker = find_column(table.header, options.worker or _WORKER, "worker", table.name)
    rows = _rows(table, inputs, answers, options)
    item, item_location, notes = _find_item(table, rows, options)
    answers = keep_wanted(rows.answers, options.label, _ANSWER, table.name)
    gold = find_gold(rows.inputs, list(answers))
    time, unread = _time(table)
    seconds, seconds_mapping, unread_seconds = find_seconds(table, ())
    mapping = {"item": item_location, "worker": table.header[worker], "label": _label_location(answers, rows)}
    mapping |= {"time": _TIME} if time is not None else {}
    mapping |= {"gold": listed([rows.input_locations[name] for name in dict.fromkeys(gold.values())])} if gold else {}
    return Judgements(
        table.name,
        format_name,
        item=item,
        worker=rows.repeat(table.column(worker)),
        answers=answers,
        reason=_reasons(table, rows),
        time=None if time is None else rows.repeat(time),
        seconds=None if seconds is None else rows.repeat(seconds / max(len(item) // max(len(table), 1), 1)),
        mapping=mapping | seconds_mapping,
        gold={question: gold_of(item, rows.inputs[name]) for question, name in gold.items()},
        notes=rows.notes | notes | unread | unread_seconds,
        files=((table.name, len(item), _assignments(table, len(item) // max(len(table), 1))),),
    )


def _rows(table: Table, inputs: dict[str, pl.Series], columns: dict[str, pl.Series], options: ColumnOptions) -> _Rows:
    """Return a row per assignment or, if a HIT shows several items, a row for each of them."""
    answers, locations = read_answers(columns, lambda row: _place(table, row))
    numbered = find_numbered(inputs, answers, options.item, (_INPUT, _ANSWER), table.name)
    if numbered is None:
        _refuse_unclear_items(table.name, list(answers), options)
        input_locations = {name: _INPUT + name for name in inputs}
        answer_locations = {question: _ANSWER + where for question, where in locations.items()}
        return _Rows(inputs, answers, input_locations, answer_locations, lambda column: column)
    return _split_by_item(numbered, inputs, answers)


def _refuse_unclear_items(source: str, questions: list[str], options: ColumnOptions) -> None:
    """Refuse questions that differ in a number only and may be items, if no numbered inputs decide it."""
    named = (options.item, options.label, options.question)
    if look_numbered(questions) and all(option is None for option in named):
        raise AnnotationError(
            f"{source} holds answers to several questions: {listed(questions)}. Pick one with --question NAME; if they "
            f"are {len(questions)} items per HIT, the batch lacks {_INPUT}* columns with the same numbers."
        )


def _split_by_item(numbered: Numbered, inputs: dict[str, pl.Series], answers: dict[str, pl.Series]) -> _Rows:
    """Return a row for each item of an assignment."""
    of_items = {name for names in numbered.answers.values() for name in names.values()}
    of_hits = [_ANSWER + question for question in answers if question not in of_items]
    message = f"{listed(of_hits)} is about a whole HIT, not about one of its items, and was left out."
    return _Rows(
        inputs=numbered.split_items(inputs, numbered.inputs),
        answers=numbered.split_items(answers, numbered.answers),
        input_locations={stem: span(names, _INPUT) for stem, names in numbered.inputs.items()},
        answer_locations={stem: span(names, _ANSWER) for stem, names in numbered.answers.items()},
        repeat=numbered.repeat,
        notes={"whole_hit_answers": message} if of_hits else {},
    )


def _find_item(table: Table, rows: _Rows, options: ColumnOptions) -> tuple[pl.Series, str, dict[str, str]]:
    """Return the item's column, its description for the mapping, and notes."""
    if options.item is not None:
        for name, column in rows.inputs.items():
            if normalise_name(options.item) in (normalise_name(name), normalise_name(_INPUT + name)):
                return column, rows.input_locations[name], {}
        at = find_wanted(table.header, options.item, _INPUT, table.name)
        return rows.repeat(table.column(at)), table.header[at], {}
    if rows.inputs:
        name, location, notes = choose_item(rows.inputs, _INPUT, table.name, _HIT)
        return rows.inputs[name], location.replace(_INPUT + name, rows.input_locations[name], 1), notes
    at = find_column(table.header, _HIT, "item", table.name)
    return rows.repeat(table.column(at)), _HIT, {"item_is_hit": HIT_AS_ITEM}


def _label_location(answers: dict[str, pl.Series], rows: _Rows) -> str:
    """Return where the labels were found, for the mapping."""
    return next(rows.answer_locations[question] for question in answers) if len(answers) == 1 else f"{_ANSWER}*"


def _assignments(table: Table, n_items: int) -> Locate | None:
    """Return how to find the assignment that an item belongs to."""
    locate = table.locate
    return None if locate is None else lambda row: locate(row // n_items)


def _reasons(table: Table, rows: _Rows) -> pl.Series | None:
    """Return why rows do not count: rejected assignments, and places for an item in which nothing was shown."""
    reason = pl.Series([None], dtype=pl.String).new_from_index(0, len(table))
    if _STATUS in table.header:
        status = table.column(table.header.index(_STATUS)).str.strip_chars().str.to_lowercase()
        reason = reason.set(status == "rejected", "rejected")
    reason = rows.repeat(reason)
    if len(reason) > len(table):
        shown = pl.DataFrame([column.alias(str(at)) for at, column in enumerate(rows.inputs.values())])
        nothing = shown.select(pl.all_horizontal(pl.all().is_null())).to_series()
        reason = reason.set(nothing, "blank")
    return reason if reason.null_count() < len(reason) else None


def _time(table: Table) -> tuple[pl.Series | None, dict[str, str]]:
    """Return the time of submission of each assignment, and notes."""
    return parse_times(table.column(table.header.index(_TIME))) if _TIME in table.header else (None, {})


def _place(table: Table, row: int) -> str:
    """Return the place of a row, for error messages."""
    named = table.column(table.header.index(_ASSIGNMENT))[row] if _ASSIGNMENT in table.header else None
    return table.place(row) + (f" (assignment {named})" if named else "")
