"""Answers of MTurk in all their encodings, each question as one column.

``x`` or ``x.label``; ``x.<choice>``, true or false for each choice; and ``taskAnswers``, a JSON object of questions.
The same names are columns of the CSV, after ``Answer.``, and identifiers in the XML of the API.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import orjson
import polars as pl

from manyhands.exceptions import AnnotationError
from manyhands.io.formats.item_columns import blank_as_null
from manyhands.io.read import exact_json
from manyhands.io.read.json_files import as_text

TASK_ANSWERS = "taskAnswers"
_PLAIN_ENDINGS = ("", "label", "labels")  # endings that crowd elements add to the name of a question
_YES, _NO = "true", "false"

Answer = str | list[str]
Place = Callable[[int], str]  # number of a row -> its place in the file, for error messages


def read_answers(columns: Mapping[str, pl.Series], place: Place) -> tuple[dict[str, pl.Series], dict[str, str]]:
    """Read the answers to each question from the columns of an export.

    Parameters
    ----------
    columns : mapping of str to polars.Series
        Columns by name without prefix.
    place : callable
        Maps the number of a row to its place in the file, for error messages.

    Returns
    -------
    answers : dict of str to polars.Series
        Question -> answers.
    locations : dict of str to str
        Question -> the columns that hold its answers.

    Raises
    ------
    AnnotationError
        If a cell cannot be parsed.
    """
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
            if name == TASK_ANSWERS and column.dtype == pl.String:
                for question, given in _read_json(column, place).items():
                    where = f"{TASK_ANSWERS}[].{question}"
                    put(question, _read_values(given, len(column), place), where, where)
            else:
                question = stem if ending in _PLAIN_ENDINGS else name
                put(question, _as_lists(column) if ending == "labels" else blank_as_null(column), name, name)
    return answers, locations


def as_column(given: Mapping[int, Answer], n_rows: int) -> pl.Series:
    """Return answers by row as a column.

    Parameters
    ----------
    given : mapping of int to str or list of str
        Row -> answer.
    n_rows : int
        Number of rows.

    Returns
    -------
    polars.Series of length n_rows
        Text if no answer has several choices, otherwise lists; null for all other rows.
    """
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
            value = exact_json.loads(cell)
        except (orjson.JSONDecodeError, TypeError):
            return blank_as_null(column)
        if not isinstance(value, list) or not all(isinstance(choice, str) for choice in value):
            return blank_as_null(column)
        given[row] = value
    return as_column(given, len(column))


def _read_json(column: pl.Series, place: Place) -> dict[str, dict[int, Any]]:
    """Return the values of ``taskAnswers``: question -> row -> value."""
    found: dict[str, dict[int, Any]] = defaultdict(dict)
    for row, cell in enumerate(column):
        if cell is None or not cell.strip():
            continue
        try:
            value = exact_json.loads(cell)
        except orjson.JSONDecodeError as error:
            raise AnnotationError(f"{place(row)}: {TASK_ANSWERS} is not JSON ({error.msg}). Was it edited?") from None
        for entry in value if isinstance(value, list) else [value]:
            if not isinstance(entry, dict):
                raise AnnotationError(f"{place(row)}: {TASK_ANSWERS} is not an object of questions. Was it edited?")
            for question, answer in entry.items():
                if row in found[question]:
                    raise AnnotationError(f"{place(row)}: {TASK_ANSWERS} answers {question!r} twice. Remove one.")
                found[question][row] = answer
    return found


def _read_values(given: Mapping[int, Any], n_rows: int, place: Place) -> pl.Series:
    """Return the answers to one question as a column; a single checkbox is true or false."""
    choices = {choice for value in given.values() if _is_ticked(value) for choice in value}
    answers: dict[int, Answer] = {}
    for row, value in given.items():
        try:
            answer = _answer(value, single_box=len(choices) == 1)
        except AnnotationError as error:
            raise AnnotationError(f"{place(row)}, {TASK_ANSWERS}: {error}") from None
        if answer:
            answers[row] = answer
    return as_column(answers, n_rows)


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
