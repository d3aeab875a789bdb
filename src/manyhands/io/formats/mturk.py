"""Amazon Mechanical Turk: the CSV of a batch's results, and the assignments that its API returns.

The item is what the requester uploaded (``Input.*``), not the HIT: one item may be in several HITs. A HIT that shows
several items is split.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from xml.etree.ElementTree import Element, ParseError

import numpy as np
import orjson
import polars as pl

from manyhands.exceptions import AnnotationError
from manyhands.io import documents
from manyhands.io.documents import Document, Records, Table, as_text
from manyhands.io.formats.fields import (
    assignments_of,
    blank_as_null,
    choose_item,
    find_wanted,
    keep_wanted,
    named_columns,
    usual_item,
)
from manyhands.io.formats.long import COMMON_NAMES, as_table, gold_of
from manyhands.io.judgements import (
    ROLE,
    ColumnOptions,
    Judgements,
    find_column,
    find_seconds,
    parse_times,
    seconds_between,
)
from manyhands.io.messages import listed, normalise_name, shorten
from manyhands.io.text_tables import Locate

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
    """Recognise columns of workers, of HITs or assignments, and of answers."""
    if isinstance(document, Records):
        return "mturk-api" if assignments_in(document.value) is not None else None
    if not isinstance(document, Table):
        return None
    has_answers = any(name.startswith(_ANSWER) for name in document.header)
    marked = _HIT in document.header or _ASSIGNMENT in document.header
    return "mturk" if has_answers and marked and _WORKER in document.header else None


def read(document: Document, format_name: str, options: ColumnOptions) -> Judgements:
    """Read the judgements of a batch; those of rejected assignments do not count."""
    if format_name == "mturk-api":
        return _read_assignments(document, options)
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
    gold = _find_gold(rows.inputs, list(answers))
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
    if _look_numbered(questions) and all(option is None for option in named):
        raise AnnotationError(
            f"{source} holds answers to several questions: {listed(questions)}. Pick one with `question=`; if they "
            f"are {len(questions)} items per HIT, the batch lacks {_INPUT}* columns with the same numbers."
        )


def _split_by_item(numbered: _Numbered, inputs: dict[str, pl.Series], answers: dict[str, pl.Series]) -> _Rows:
    """Return a row for each item of an assignment."""
    of_items = {name for names in numbered.answers.values() for name in names.values()}
    of_hits = [_ANSWER + question for question in answers if question not in of_items]
    message = f"{listed(of_hits)} is about a whole HIT, not about one of its items, and was left out."
    return _Rows(
        inputs=numbered.split_items(inputs, numbered.inputs),
        answers=numbered.split_items(answers, numbered.answers),
        input_locations={stem: _span(names, _INPUT) for stem, names in numbered.inputs.items()},
        answer_locations={stem: _span(names, _ANSWER) for stem, names in numbered.answers.items()},
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
    return rows.repeat(table.column(at)), _HIT, {"item_is_hit": _HIT_AS_ITEM}


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


def _find_gold(names: Iterable[str], questions: Sequence[str]) -> dict[str, str]:
    """Find the uploaded columns that hold known answers, by their names."""
    name_of = {normalise_name(name): name for name in names}
    gold_of_question = {}
    for question in questions:
        usual = COMMON_NAMES["gold"] if len(questions) == 1 else ()
        wanted = [f"gold{question}", f"{question}gold", *usual]
        name = next((name_of[normalise_name(text)] for text in wanted if normalise_name(text) in name_of), None)
        if name is not None:
            gold_of_question[question] = name
    return gold_of_question


# ----------------------------------------------------------------------------------------------------
# Answers of MTurk in all their encodings, each question as one column.
#
# ``x`` or ``x.label``; ``x.<choice>``, true or false for each choice; and ``taskAnswers``, a JSON object of questions.
# The same names are columns of the CSV, after ``Answer.``, and identifiers in the XML of the API.

_TASK_ANSWERS = "taskAnswers"
_PLAIN_ENDINGS = ("", "label", "labels")  # endings that crowd elements add to the name of a question
_YES, _NO = "true", "false"
Answer = str | list[str]
_Place = Callable[[int], str]  # number of a row -> its place in the file, for error messages


def read_answers(columns: Mapping[str, pl.Series], place: _Place) -> tuple[dict[str, pl.Series], dict[str, str]]:
    """Read the answers to each question from the columns of an export."""
    answers: dict[str, pl.Series] = {}
    locations: dict[str, str] = {}

    def put(question: str, column: pl.Series, where: str, longer: str) -> None:
        name = longer if question in answers else question
        answers[name], locations[name] = column, where

    groups: dict[str, list[str]] = defaultdict(list)
    for name in columns:
        groups[name.partition(".")[0]].append(name)
    for stem, names in groups.items():
        endings = [name.partition(".")[2] for name in names]
        members = [columns[name] for name in names]
        if len(names) > 1 and not set(endings) & set(_PLAIN_ENDINGS) and all(map(_is_boolean, members)):
            put(stem, _chosen(endings, members), f"{stem}.* (true for what was chosen)", f"{stem}.*")
            continue
        for name, ending, column in zip(names, endings, members):
            if name == _TASK_ANSWERS and column.dtype == pl.String:
                for question, given in _read_json(column, place).items():
                    where = f"{_TASK_ANSWERS}[].{question}"
                    put(question, _read_values(given, len(column), place), where, where)
            else:
                question = stem if ending in _PLAIN_ENDINGS else name
                put(question, _as_lists(column) if ending == "labels" else blank_as_null(column), name, name)
    return answers, locations


def _as_column(given: Mapping[int, Answer], n_rows: int) -> pl.Series:
    """Return answers by row as a column."""
    if all(isinstance(answer, str) or len(answer) <= 1 for answer in given.values()):
        texts = {row: answer if isinstance(answer, str) else "".join(answer) for row, answer in given.items()}
        return pl.Series([texts.get(row) or None for row in range(n_rows)], dtype=pl.String)
    lists = {row: [answer] if isinstance(answer, str) else answer for row, answer in given.items()}
    return pl.Series([lists.get(row) for row in range(n_rows)], dtype=pl.List(pl.String))


def _is_boolean(column: pl.Series) -> bool:
    """Whether a column holds true and false only."""
    if column.dtype != pl.String:
        return False
    return bool(column.str.strip_chars().str.to_lowercase().drop_nulls().unique().is_in([_YES, _NO, ""]).all())


def _chosen(choices: Sequence[str], columns: Sequence[pl.Series]) -> pl.Series:
    """Return the names of the columns that are true: text if it is never more than one, otherwise lists."""
    frame = pl.DataFrame([column.alias(str(at)) for at, column in enumerate(columns)])
    is_true = [pl.col(str(at)).str.strip_chars().str.to_lowercase() == _YES for at in range(len(columns))]
    named = [pl.when(true).then(pl.lit(choice)) for true, choice in zip(is_true, choices)]
    lists = frame.select(pl.concat_list(named).list.drop_nulls()).to_series().rename("")
    if (lists.list.len() > 1).any():
        return lists
    return lists.list.first()


def _as_lists(column: pl.Series) -> pl.Series:
    """Return cells such as ["a","b"] as lists, if all of them are; otherwise text."""
    given: dict[int, Answer] = {}
    for row, cell in enumerate(column):
        if cell is None or not len(cell):
            continue
        try:
            value = documents.loads(cell)
        except (orjson.JSONDecodeError, TypeError):
            return blank_as_null(column)
        if not isinstance(value, list) or not all(isinstance(choice, str) for choice in value):
            return blank_as_null(column)
        given[row] = value
    return _as_column(given, len(column))


def _read_json(column: pl.Series, place: _Place) -> dict[str, dict[int, Any]]:
    """Return the values of ``taskAnswers``: question -> row -> value."""
    answers: dict[str, dict[int, Any]] = defaultdict(dict)
    for row, cell in enumerate(column):
        if cell is None or not cell.strip():
            continue
        try:
            value = documents.loads(cell)
        except orjson.JSONDecodeError as error:
            raise AnnotationError(f"{place(row)}: {_TASK_ANSWERS} is not JSON ({error.msg}). Was it edited?") from None
        for entry in value if isinstance(value, list) else [value]:
            if not isinstance(entry, dict):
                raise AnnotationError(f"{place(row)}: {_TASK_ANSWERS} is not an object of questions. Was it edited?")
            for question, answer in entry.items():
                if row in answers[question]:
                    raise AnnotationError(f"{place(row)}: {_TASK_ANSWERS} answers {question!r} twice. Remove one.")
                answers[question][row] = answer
    return answers


def _read_values(given: Mapping[int, Any], n_rows: int, place: _Place) -> pl.Series:
    """Return the answers to one question as a column; a single checkbox is true or false."""
    choices = {choice for value in given.values() if _is_ticked(value) for choice in value}
    answers: dict[int, Answer] = {}
    for row, value in given.items():
        try:
            answer = _answer(value, single_box=len(choices) == 1)
        except AnnotationError as error:
            raise AnnotationError(f"{place(row)}, {_TASK_ANSWERS}: {error}") from None
        if answer:
            answers[row] = answer
    return _as_column(answers, n_rows)


def _answer(value: Any, single_box: bool) -> Answer | None:
    """Return the answer in a value of ``taskAnswers``: text, choices, ticked boxes, or any other value as JSON."""
    if _is_ticked(value):
        ticked = [choice for choice, chosen in value.items() if chosen]
        return (_YES if ticked else _NO) if single_box else ticked
    if isinstance(value, dict) and len(value) == 1:
        inner = value.get("label", value.get("labels", value))
        value = value if isinstance(inner, dict) else inner
    if value == {}:
        return None
    if isinstance(value, list) and not any(isinstance(choice, dict | list) for choice in value):
        return [text for text in map(as_text, value) if text]
    return as_text(value)


def _is_ticked(value: Any) -> bool:
    """Whether a value is a set of checkboxes with their state."""
    return isinstance(value, dict) and bool(value) and all(isinstance(chosen, bool) for chosen in value.values())


# ----------------------------------------------------------------------------------------------------
# Assignments that the API of MTurk returns, whose answers are XML in a text.

_HIT_AS_ITEM = "The HIT was taken for the item, as its content is not in the file; one item may be in several HITs."
_MARKS = ("AssignmentId", "WorkerId")
_SELECTIONS = ("SelectionIdentifier", "OtherSelectionText")
_TEXTS = ("FreeText", "UploadedFileKey")


def assignments_in(value: Any) -> list[Any] | None:
    """Return the assignments of one response, of several, or of a bare list."""
    responses = value if isinstance(value, list) else [value]
    assignments: list[Any] = []
    for response in responses:
        if not isinstance(response, dict):
            return None
        inside = response.get("Assignments")
        if isinstance(inside, list):
            assignments += inside
        elif all(mark in response for mark in _MARKS):
            assignments.append(response)
        else:
            return None
    first = assignments[0] if assignments else dict.fromkeys(_MARKS)
    are_assignments = bool(responses) and isinstance(first, dict) and all(mark in first for mark in _MARKS)
    return assignments if are_assignments else None


def _read_assignments(document: Document, options: ColumnOptions) -> Judgements:
    """Read one judgement per assignment; the item is the HIT, unless the caller names another field."""
    assignments = assignments_of(document, assignments_in, "the API of MTurk")
    if options.worker != "WorkerId":
        options.refuse("worker", "mturk-api", "WorkerId")
    for at, assignment in enumerate(assignments, start=1):
        if not isinstance(assignment, dict):
            raise AnnotationError(f"{document.name}, assignment {at} is not an object. Fetch it again.")
    key = options.item or "HITId"
    if assignments and not any(key in assignment for assignment in assignments):
        keys = sorted({key for assignment in assignments for key in assignment})
        raise AnnotationError(
            f"{document.name}: no assignment has {key!r}. Name one of these with `item=`: {listed(keys)}."
        )
    answers, locations = _read_all(assignments, document.name)
    answers = keep_wanted(answers, options.label, "", document.name)
    time, notes = parse_times(_column(assignments, "SubmitTime"))
    seconds = seconds_between(_column(assignments, "AcceptTime"), _column(assignments, "SubmitTime"))
    status = _column(assignments, "AssignmentStatus").str.to_lowercase()
    rejected = status == "rejected"
    label = next(locations[question] for question in answers) if len(answers) == 1 else "each QuestionIdentifier"
    return Judgements(
        document.name,
        "mturk-api",
        item=_column(assignments, key),
        worker=_column(assignments, "WorkerId"),
        answers=answers,
        reason=pl.Series([None], dtype=pl.String).new_from_index(0, len(rejected)).set(rejected, "rejected"),
        time=time,
        seconds=seconds,
        mapping={"item": key, "worker": "WorkerId", "label": f"Answer: {label}", "time": "SubmitTime"}
        | ({} if seconds is None else {ROLE: "AcceptTime to SubmitTime"}),
        notes=notes
        | ({} if options.item else {"item_is_hit": _HIT_AS_ITEM})
        | (document.notes if isinstance(document, Records) else {}),
    )


def _parse_answers(xml: str) -> dict[str, Answer]:
    """Parse a QuestionFormAnswers document; declarations and external references are refused.

    Examples
    --------
    >>> _parse_answers("<Q><Answer><QuestionIdentifier>q</QuestionIdentifier><FreeText>yes</FreeText></Answer></Q>")
    {'q': 'yes'}
    """
    from defusedxml.ElementTree import fromstring

    answers: dict[str, Answer] = {}
    for answer in fromstring(xml, forbid_dtd=True):
        question, texts, selections = "", [], []
        for part in answer:
            name, text = _local_name(part), part.text or ""
            if name == "QuestionIdentifier":
                question = text.strip()
            elif name in _SELECTIONS:
                selections.append(text)
            elif name in _TEXTS:
                texts.append(text)
        if question and (selections or texts):
            answers[question] = selections or texts[0]
    return answers


def _read_all(assignments: list[dict[str, Any]], source: str) -> tuple[dict[str, pl.Series], dict[str, str]]:
    """Return the answers of all assignments by question, and where they were found."""

    def place(row: int) -> str:
        return f"{source}, assignment {shorten(str(as_text(assignments[row].get('AssignmentId'))))}"

    answers: dict[str, dict[int, Answer]] = defaultdict(dict)
    for row, assignment in enumerate(assignments):
        xml = assignment.get("Answer")
        for question, answer in (_parse(xml, place(row)) if xml is not None else {}).items():
            answers[question][row] = answer
    return read_answers({name: _as_column(rows, len(assignments)) for name, rows in answers.items()}, place)


def _parse(xml: Any, where: str) -> dict[str, Answer]:
    """Parse the answers of one assignment."""
    from defusedxml import DefusedXmlException

    if not isinstance(xml, str):
        raise AnnotationError(f"{where}: Answer is not text, so it is not XML. Fetch it again.")
    try:
        return _parse_answers(xml)
    except ParseError as error:
        raise AnnotationError(f"{where}: Answer is not complete XML ({error}). Fetch it again.") from None
    except DefusedXmlException:
        cause = "declares a document type or entities, as MTurk never does"
        raise AnnotationError(f"{where}: Answer {cause}, so it was not read. Fetch it again.") from None


def _column(assignments: list[dict[str, Any]], key: str) -> pl.Series:
    """Return a field of all assignments as text."""
    return pl.Series([_text(assignment.get(key)) for assignment in assignments], dtype=pl.String)


def _text(value: Any) -> str | None:
    """Return a scalar as text; None for anything else."""
    return None if isinstance(value, dict | list) else as_text(value)


def _local_name(element: Element) -> str:
    """Return the name of an element without its namespace."""
    return str(element.tag).rpartition("}")[2]


# ----------------------------------------------------------------------------------------------------
# Tasks that show several items at once: ``Input.id1`` belongs to ``Answer.q1``, ``Input.id2`` to ``Answer.q2``.

_NUMBERED = re.compile(r"(.*?)[ _-]?(?<![0-9])([0-9]{1,6})", re.DOTALL)
_NUMBERED_WITHIN = re.compile(r"([^0-9]*?)[ _-]?([0-9]{1,6})([^0-9]+)", re.DOTALL)  # image1_label
_NumberedNames = dict[str, dict[int, str]]  # name without its number -> number -> name


@dataclass(frozen=True)
class _Numbered:
    """The columns that belong to each of the items of a task."""

    numbers: list[int]  # numbers of the items within a task
    inputs: _NumberedNames  # name without its number -> number -> name of the input column
    answers: _NumberedNames  # name without its number -> number -> name of the answer column

    def split_items(self, columns: Mapping[str, pl.Series], series: _NumberedNames) -> dict[str, pl.Series]:
        """Return columns with one row per item and task, in place of one row per task."""
        n_rows = len(next(iter(columns.values())))
        by_task = np.arange(len(self.numbers) * n_rows).reshape(len(self.numbers), n_rows).T.ravel()
        return {
            stem: _stacked([columns[names[n]] if n in names else None for n in self.numbers], n_rows).gather(by_task)
            for stem, names in series.items()
        }

    def repeat(self, column: pl.Series) -> pl.Series:
        """Repeat a column of whole tasks for each item."""
        return column.gather(np.repeat(np.arange(len(column)), len(self.numbers)))


def find_numbered(
    inputs: Collection[str], answers: Collection[str], wanted: str | None, prefixes: tuple[str, str], source: str
) -> _Numbered | None:
    """Find how the items of a task are numbered.

    A task is one item if the caller names a single column, or if a column without a number has the name of an item id.
    """
    given, asked = _both_series(inputs, answers)
    stems = {normalise_name(text) for stem in given for text in (stem, prefixes[0] + stem)}
    in_no_series = set(inputs) - {name for names in given.values() for name in names.values()}
    if not given or not asked or (wanted is not None and normalise_name(wanted) not in stems):
        return None
    numbers = sorted({number for names in asked.values() for number in names})
    if wanted is None and usual_item(filter(_is_id, in_no_series)) and not usual_item(given):
        return None
    fitting = {stem: names for stem, names in given.items() if sorted(names) == numbers}
    if not fitting:
        nearest = max(given.values(), key=lambda names: len(names.keys() & set(numbers)))
        raise AnnotationError(_isolated(nearest, asked, numbers, prefixes, source))
    return _Numbered(numbers, fitting, {stem or "answer": names for stem, names in asked.items()})


def _look_numbered(answers: Collection[str]) -> bool:
    """Whether all questions of a task differ in a number only, as questions about several items do."""
    series = _series(answers) | _series(answers, _NUMBERED_WITHIN)
    return len(answers) > 1 and any(len(names) == len(answers) for names in series.values())


def _span(names: Mapping[int, str], prefix: str) -> str:
    """Return the first and the last name of a series, for `Judgements.mapping`."""
    ordered = [prefix + names[number] for number in sorted(names)]
    return f"{ordered[0]} to {ordered[-1]}"


def _is_id(name: str) -> bool:
    """Whether a usual name is that of an item id; a ``question`` may be the same for all items."""
    return normalise_name(name).endswith("id") or normalise_name(name) in ("item", "unit")


def _both_series(inputs: Collection[str], answers: Collection[str]) -> tuple[_NumberedNames, _NumberedNames]:
    """Return inputs and answers by number; a number within a name counts if the other side has the same numbers."""
    given, asked = _series(inputs), _series(answers)
    given_within, asked_within = (_series(names, _NUMBERED_WITHIN) for names in (inputs, answers))
    of_inputs = [names.keys() for names in (*given.values(), *given_within.values())]
    asked |= {stem: names for stem, names in asked_within.items() if stem not in asked and names.keys() in of_inputs}
    of_answers = [names.keys() for names in asked.values()]
    given |= {stem: names for stem, names in given_within.items() if stem not in given and names.keys() in of_answers}
    return given, asked


def _series(names: Iterable[str], form: re.Pattern[str] = _NUMBERED) -> _NumberedNames:
    """Return names that differ in a number in their first part; a single number is not a series."""
    series: _NumberedNames = defaultdict(dict)
    for name in names:
        head, dot, rest = name.partition(".")
        match = form.fullmatch(head)
        if match:
            stem = (match[1] + "".join(match.groups()[2:])).lstrip(" _-") or match[1]
            series[stem + dot + rest].setdefault(int(match[2]), name)
    return {stem: numbered for stem, numbered in series.items() if len(numbered) > 1}


def _isolated(
    given: Mapping[int, str], asked: _NumberedNames, numbers: list[int], prefixes: tuple[str, str], source: str
) -> str:
    """Return the error message for columns without a counterpart."""
    answers = {number: name for names in asked.values() for number, name in names.items()}
    without = [prefixes[0] + given[number] for number in sorted(given.keys() - set(numbers))]
    without += [prefixes[1] + answers[number] for number in sorted(set(numbers) - given.keys())]
    return (
        f"{source} seems to have several items in a row, but {listed(without)} has no partner with the same number "
        f"among the {prefixes[0]}* and {prefixes[1]}* columns. Remove it, or name the only item of a row with `item=`."
    )


def _stacked(columns: list[pl.Series | None], n_rows: int) -> pl.Series:
    """Concatenate columns, as lists if one of them has lists; nulls for a number without a column."""
    lists = any(column is not None and column.dtype != pl.String for column in columns)
    dtype = pl.List(pl.String) if lists else pl.String()
    whole = []
    for column in columns:
        if column is None:
            whole.append(pl.Series("", [None] * n_rows, dtype=dtype))
        elif lists and column.dtype == pl.String:
            whole.append(pl.Series("", [None if text is None else [text] for text in column], dtype=dtype))
        else:
            whole.append(column.rename(""))
    return pl.concat(whole)
