"""Tasks that show several items at once: ``Input.id1`` belongs to ``Answer.q1``, ``Input.id2`` to ``Answer.q2``."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from manyhands.exceptions import AnnotationError
from manyhands.io.formats.item_columns import usual_item
from manyhands.io.messages import listed, normalise_name

_NUMBERED = re.compile(r"(.*?)[ _-]?(?<![0-9])([0-9]{1,6})", re.DOTALL)
_NUMBERED_WITHIN = re.compile(r"([^0-9]*?)[ _-]?([0-9]{1,6})([^0-9]+)", re.DOTALL)  # image1_label
Series = dict[str, dict[int, str]]  # name without its number -> number -> name


@dataclass(frozen=True)
class Numbered:
    """The columns that belong to each of the items of a task.

    Attributes
    ----------
    numbers : list of int
        Numbers of the items within a task.
    inputs : dict of str to dict
        Name without its number -> number -> name of the input column.
    answers : dict of str to dict
        Name without its number -> number -> name of the answer column.
    """

    numbers: list[int]
    inputs: Series
    answers: Series

    def split_items(self, columns: Mapping[str, pl.Series], series: Series) -> dict[str, pl.Series]:
        """Return columns with one row per item and task, in place of one row per task.

        Parameters
        ----------
        columns : mapping of str to polars.Series, each of length n_tasks
            Columns of the export.
        series : dict of str to dict
            `inputs` or `answers`.

        Returns
        -------
        dict of str to polars.Series, each of length n_tasks * n_numbers
            Columns by their name without number; the items of a task follow each other.
        """
        n_rows = len(next(iter(columns.values())))
        by_task = np.arange(len(self.numbers) * n_rows).reshape(len(self.numbers), n_rows).T.ravel()
        return {
            stem: _stacked([columns[names[n]] if n in names else None for n in self.numbers], n_rows).gather(by_task)
            for stem, names in series.items()
        }

    def repeat(self, column: pl.Series) -> pl.Series:
        """Repeat a column of whole tasks for each item.

        Parameters
        ----------
        column : polars.Series of length n_tasks
            A value per task.

        Returns
        -------
        polars.Series of length n_tasks * n_numbers
            The value of its task for each item.
        """
        return column.gather(np.repeat(np.arange(len(column)), len(self.numbers)))


def find_numbered(
    inputs: Collection[str], answers: Collection[str], wanted: str | None, prefixes: tuple[str, str], source: str
) -> Numbered | None:
    """Find how the items of a task are numbered.

    A task is one item if the caller names a single column, or if a column without a number has the name of an item id.

    Parameters
    ----------
    inputs : collection of str
        Names of the input columns, without prefix.
    answers : collection of str
        Names of the answers, without prefix.
    wanted : str or None
        Item column that the caller named.
    prefixes : tuple of (str, str)
        Prefixes of inputs and answers, for error messages.
    source : str
        Name of the file, for error messages.

    Returns
    -------
    Numbered or None
        The numbered columns; None if a task is one item.

    Raises
    ------
    AnnotationError
        If inputs and answers have different numbers.
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
    return Numbered(numbers, fitting, {stem or "answer": names for stem, names in asked.items()})


def look_numbered(answers: Collection[str]) -> bool:
    """Whether all questions of a task differ in a number only, as questions about several items do.

    Parameters
    ----------
    answers : collection of str
        Names of the questions.

    Returns
    -------
    bool
        True if they do.
    """
    series = _series(answers) | _series(answers, _NUMBERED_WITHIN)
    return len(answers) > 1 and any(len(names) == len(answers) for names in series.values())


def span(names: Mapping[int, str], prefix: str) -> str:
    """Return the first and the last name of a series, for `Judgements.mapping`.

    Parameters
    ----------
    names : mapping of int to str
        Number -> name.
    prefix : str
        Prefix of the columns.

    Returns
    -------
    str
        ``"<first> to <last>"``.
    """
    ordered = [prefix + names[number] for number in sorted(names)]
    return f"{ordered[0]} to {ordered[-1]}"


def _is_id(name: str) -> bool:
    """Whether a usual name is that of an item id; a ``question`` may be the same for all items."""
    return normalise_name(name).endswith("id") or normalise_name(name) in ("item", "unit")


def _both_series(inputs: Collection[str], answers: Collection[str]) -> tuple[Series, Series]:
    """Return inputs and answers by number; a number within a name counts if the other side has the same numbers."""
    given, asked = _series(inputs), _series(answers)
    given_within, asked_within = (_series(names, _NUMBERED_WITHIN) for names in (inputs, answers))
    of_inputs = [names.keys() for names in (*given.values(), *given_within.values())]
    asked |= {stem: names for stem, names in asked_within.items() if stem not in asked and names.keys() in of_inputs}
    of_answers = [names.keys() for names in asked.values()]
    given |= {stem: names for stem, names in given_within.items() if stem not in given and names.keys() in of_answers}
    return given, asked


def _series(names: Iterable[str], form: re.Pattern[str] = _NUMBERED) -> Series:
    """Return names that differ in a number in their first part; a single number is not a series."""
    found: Series = defaultdict(dict)
    for name in names:
        head, dot, rest = name.partition(".")
        match = form.fullmatch(head)
        if match:
            stem = (match[1] + "".join(match.groups()[2:])).lstrip(" _-") or match[1]
            found[stem + dot + rest].setdefault(int(match[2]), name)
    return {stem: numbered for stem, numbered in found.items() if len(numbered) > 1}


def _isolated(
    given: Mapping[int, str], asked: Series, numbers: list[int], prefixes: tuple[str, str], source: str
) -> str:
    """Return the error message for columns without a counterpart."""
    answers = {number: name for names in asked.values() for number, name in names.items()}
    without = [prefixes[0] + given[number] for number in sorted(given.keys() - set(numbers))]
    without += [prefixes[1] + answers[number] for number in sorted(set(numbers) - given.keys())]
    return (
        f"{source} seems to have several items in a row, but {listed(without)} has no partner with the same number "
        f"among the {prefixes[0]}* and {prefixes[1]}* columns. Remove it, or name the only item of a row with --item."
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
