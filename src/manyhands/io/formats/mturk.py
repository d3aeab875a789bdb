"""Amazon Mechanical Turk: the CSV of a batch's results, and the assignments that its API lists.

The item is what the requester uploaded (`Input.*`), not the HIT: one item may be in several HITs. A HIT that shows
several items is taken apart.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import polars as pl

from manyhands.exceptions import AnnotationError
from manyhands.io.formats.choosing_items import choose_item, find_gold, find_wanted, keep_wanted, named_columns
from manyhands.io.formats.long import as_table, gold_of
from manyhands.io.formats.mturk_answers import read_answers
from manyhands.io.formats.mturk_api import HIT_AS_ITEM, assignments_in, read_assignments
from manyhands.io.formats.numbered_items import Numbered, find_numbered, look_numbered, span
from manyhands.io.messages import listed, plain
from manyhands.io.read.documents import Document, Records, Table
from manyhands.io.read.judgements import ColumnOptions, Judgements, find_column
from manyhands.io.read.text_tables import Locate
from manyhands.io.read.times import parse_times

_INPUT, _ANSWER = "Input.", "Answer."
_HIT, _ASSIGNMENT, _WORKER, _STATUS, _TIME = "HITId", "AssignmentId", "WorkerId", "AssignmentStatus", "SubmitTime"


@dataclass(frozen=True)
class _Rows:
    """One row per item and assignment: what was shown, what was answered, and where both stood."""

    inputs: dict[str, pl.Series]
    answers: dict[str, pl.Series]
    inputs_said: dict[str, str]
    answers_said: dict[str, str]
    repeat: Callable[[pl.Series], pl.Series]  # what holds for an assignment, for each of its rows
    notes: dict[str, str] = field(default_factory=dict)


def recognise(document: Document) -> str | None:
    """A worker, something that MTurk counts by, and answers."""
    if isinstance(document, Records):
        return "mturk-api" if assignments_in(document.value) is not None else None
    if not isinstance(document, Table):
        return None
    has_answers = any(name.startswith(_ANSWER) for name in document.header)
    marked = _HIT in document.header or _ASSIGNMENT in document.header
    return "mturk" if has_answers and marked and _WORKER in document.header else None


def read(document: Document, format_name: str, columns_wanted: ColumnOptions) -> Judgements:
    """The judgements of a batch; those of rejected assignments do not count."""
    if format_name == "mturk-api":
        return read_assignments(document, columns_wanted)
    table = as_table(document)
    inputs, answers = named_columns(table, _INPUT), named_columns(table, _ANSWER)
    if not answers:
        raise AnnotationError(
            f"{table.name} has no {_ANSWER}* column, so no answers. Download the results of the batch."
        )
    worker = find_column(table.header, columns_wanted.worker or _WORKER, "worker", table.name)
    rows = _rows(table, inputs, answers, columns_wanted)
    item, item_said, notes = _find_item(table, rows, columns_wanted)
    answers = keep_wanted(rows.answers, columns_wanted.label, _ANSWER, table.name)
    gold = find_gold(rows.inputs, list(answers))
    time, unread = _time(table)
    mapping = {"item": item_said, "worker": table.header[worker], "label": _label_said(answers, rows)}
    mapping |= {"time": _TIME} if time is not None else {}
    mapping |= {"gold": listed([rows.inputs_said[name] for name in dict.fromkeys(gold.values())])} if gold else {}
    return Judgements(
        table.name,
        format_name,
        item=item,
        worker=rows.repeat(table.column(worker)),
        answers=answers,
        reason=_reasons(table, rows),
        time=None if time is None else rows.repeat(time),
        mapping=mapping,
        gold={question: gold_of(item, rows.inputs[name]) for question, name in gold.items()},
        notes=rows.notes | notes | unread,
        pieces=((table.name, len(item), _assignments(table, len(item) // max(len(table), 1))),),
    )


def _rows(
    table: Table, inputs: dict[str, pl.Series], columns: dict[str, pl.Series], columns_wanted: ColumnOptions
) -> _Rows:
    """A row per assignment, or where a HIT shows several items, a row for each of them."""
    answers, said = read_answers(columns, lambda row: _place(table, row))
    numbered = find_numbered(inputs, answers, columns_wanted.item, (_INPUT, _ANSWER), table.name)
    if numbered is None:
        _ask_whether_items(table.name, list(answers), columns_wanted)
        inputs_said = {name: _INPUT + name for name in inputs}
        answers_said = {question: _ANSWER + where for question, where in said.items()}
        return _Rows(inputs, answers, inputs_said, answers_said, lambda column: column)
    return _taken_apart(numbered, inputs, answers)


def _ask_whether_items(source: str, questions: list[str], columns_wanted: ColumnOptions) -> None:
    """Questions that differ in a number alone may be items, which only numbered inputs would tell apart."""
    named = (columns_wanted.item, columns_wanted.label, columns_wanted.question)
    if look_numbered(questions) and all(wish is None for wish in named):
        raise AnnotationError(
            f"{source} holds answers to several questions: {listed(questions)}. Pick one with --question NAME; if they "
            f"are {len(questions)} items per HIT, the batch lacks {_INPUT}* columns with the same numbers."
        )


def _taken_apart(numbered: Numbered, inputs: dict[str, pl.Series], answers: dict[str, pl.Series]) -> _Rows:
    of_items = {name for names in numbered.answers.values() for name in names.values()}
    of_hits = [_ANSWER + question for question in answers if question not in of_items]
    said = f"{listed(of_hits)} is about a whole HIT, not about one of its items, and was left out."
    return _Rows(
        inputs=numbered.take_apart(inputs, numbered.inputs),
        answers=numbered.take_apart(answers, numbered.answers),
        inputs_said={stem: span(names, _INPUT) for stem, names in numbered.inputs.items()},
        answers_said={stem: span(names, _ANSWER) for stem, names in numbered.answers.items()},
        repeat=numbered.repeat,
        notes={"whole_hit_answers": said} if of_hits else {},
    )


def _find_item(table: Table, rows: _Rows, columns_wanted: ColumnOptions) -> tuple[pl.Series, str, dict[str, str]]:
    """The item's column, how the mapping puts it, and notes."""
    if columns_wanted.item is not None:
        for name, column in rows.inputs.items():
            if plain(columns_wanted.item) in (plain(name), plain(_INPUT + name)):
                return column, rows.inputs_said[name], {}
        at = find_wanted(table.header, columns_wanted.item, _INPUT, table.name)
        return rows.repeat(table.column(at)), table.header[at], {}
    if rows.inputs:
        name, said, notes = choose_item(rows.inputs, _INPUT, table.name, _HIT)
        return rows.inputs[name], said.replace(_INPUT + name, rows.inputs_said[name], 1), notes
    at = find_column(table.header, _HIT, "item", table.name)
    return rows.repeat(table.column(at)), _HIT, {"item_is_hit": HIT_AS_ITEM}


def _label_said(answers: dict[str, pl.Series], rows: _Rows) -> str:
    return next(rows.answers_said[question] for question in answers) if len(answers) == 1 else f"{_ANSWER}*"


def _assignments(table: Table, n_items: int) -> Locate | None:
    """How to find the assignment to which one of its items belongs."""
    locate = table.locate
    return None if locate is None else lambda row: locate(row // n_items)


def _reasons(table: Table, rows: _Rows) -> pl.Series | None:
    """Rejected assignments, and places for an item in which nothing was shown."""
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
    return parse_times(table.column(table.header.index(_TIME))) if _TIME in table.header else (None, {})


def _place(table: Table, row: int) -> str:
    """A row as a person finds it."""
    named = table.column(table.header.index(_ASSIGNMENT))[row] if _ASSIGNMENT in table.header else None
    return table.place(row) + (f" (assignment {named})" if named else "")
