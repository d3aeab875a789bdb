"""Which of the columns that a requester uploaded names the item: ``Input.*`` of MTurk, ``INPUT:*`` of Toloka."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import polars as pl

from manyhands.exceptions import AnnotationError
from manyhands.io.formats.long import COMMON_NAMES, CONTENTS
from manyhands.io.messages import listed, normalise_name
from manyhands.io.read.column_lookup import find_column
from manyhands.io.read.documents import Table

Notes = dict[str, str]


def find_wanted(header: Sequence[str], wanted: str, prefix: str, source: str) -> int:
    """Find the item's column as the caller named it, with the tool's prefix or without.

    Parameters
    ----------
    header : sequence of str
        Names of the columns.
    wanted : str
        The name that was given.
    prefix : str
        Prefix of uploaded columns.
    source : str
        Name of the file, for error messages.

    Returns
    -------
    int
        Position of the column.

    Raises
    ------
    AnnotationError
        If there is no such column.
    """
    names = {normalise_name(name) for name in header}
    if normalise_name(wanted) not in names and normalise_name(prefix + wanted) in names:
        wanted = prefix + wanted
    return find_column(header, wanted, "item", source)


def usual_item(names: Iterable[str]) -> str | None:
    """Return the name that is most usual for an item.

    Parameters
    ----------
    names : iterable of str
        Names of columns.

    Returns
    -------
    str or None
        The name; None if none is usual. Names of contents, such as "image", are not ids.
    """
    known = {normalise_name(name): name for name in reversed(list(names)) if normalise_name(name) not in CONTENTS}
    return next(
        (known[normalise_name(usual)] for usual in COMMON_NAMES["item"] if normalise_name(usual) in known), None
    )


def choose_item(columns: Mapping[str, pl.Series], prefix: str, source: str, instead: str) -> tuple[str, str, Notes]:
    """Choose the uploaded column that names the item.

    A usual name decides; otherwise the only column; otherwise one whose value determines all others, since any two such
    columns group the rows in the same way. A column with a single value cannot distinguish items, so it is not
    considered.

    Parameters
    ----------
    columns : mapping of str to polars.Series
        The uploaded columns by name without prefix, at least one; rows in which all are blank are ignored.
    prefix : str
        Prefix of uploaded columns.
    source : str
        Name of the file, for error messages.
    instead : str
        Another column of the export that might be used, for the error message.

    Returns
    -------
    name : str
        The column, without prefix.
    location : str
        How `Judgements.mapping` describes it.
    notes : dict of str to str
        A note if the column may be wrong.

    Raises
    ------
    AnnotationError
        If several columns might name the item.
    """
    candidates = {name: column for name, column in columns.items() if not _is_gold(name)} or dict(columns)
    cells = pl.DataFrame([blank_as_null(column).alias(str(at)) for at, column in enumerate(candidates.values())])
    cells = cells.filter(~pl.all_horizontal(pl.all().is_null()))
    groups = cells.n_unique() if len(cells) else 0
    differing = {name: cells.to_series(at).n_unique() for at, name in enumerate(candidates)}
    usual = usual_item(name for name, count in differing.items() if count > 1 or groups <= 1)
    if usual is not None:
        return usual, prefix + usual, {} if differing[usual] == groups else _several_contents(prefix + usual)
    if len(candidates) == 1:
        only = next(iter(candidates))
        return only, prefix + only, {}
    for at, name in enumerate(candidates):
        if differing[name] == groups and not cells.to_series(at).null_count():
            return name, f"{prefix}{name} (it determines every other {prefix}* column)", {}
    raise AnnotationError(
        f"{source}: any of {listed([prefix + name for name in candidates])} might name the item. "
        f"Name one with --item NAME, or --item {instead}."
    )


def find_gold(names: Iterable[str], questions: Sequence[str]) -> dict[str, str]:
    """Find the uploaded columns that hold known answers, by their names.

    Parameters
    ----------
    names : iterable of str
        Names of the uploaded columns.
    questions : sequence of str
        Names of the questions.

    Returns
    -------
    dict of str to str
        Question -> column.
    """
    known = {normalise_name(name): name for name in names}
    found = {}
    for question in questions:
        usual = COMMON_NAMES["gold"] if len(questions) == 1 else ()
        wanted = [f"gold{question}", f"{question}gold", *usual]
        name = next((known[normalise_name(text)] for text in wanted if normalise_name(text) in known), None)
        if name is not None:
            found[question] = name
    return found


def keep_wanted(answers: dict[str, pl.Series], wanted: str | None, prefix: str, source: str) -> dict[str, pl.Series]:
    """Return the question that the caller named as the label, or all questions.

    Parameters
    ----------
    answers : dict of str to polars.Series
        Question -> answers.
    wanted : str or None
        The name that was given, with or without prefix.
    prefix : str
        Prefix of answers.
    source : str
        Name of the file, for error messages.

    Returns
    -------
    dict of str to polars.Series
        The selected questions.

    Raises
    ------
    AnnotationError
        If there is no such question.
    """
    if wanted is None:
        return answers
    names = list(answers)
    short = wanted[len(prefix) :] if wanted.lower().startswith(prefix.lower()) else wanted
    for ending in ("", ".label", ".labels"):
        name = short.removesuffix(ending)
        if any(normalise_name(name) == normalise_name(known) for known in names):
            found = names[find_column(names, name, "label", source)]
            return {found: answers[found]}
    raise AnnotationError(f"{source} has no answers called {wanted!r}. It has: {listed(names)}. Name one with --label.")


def named_columns(table: Table, prefix: str) -> dict[str, pl.Series]:
    """Return the columns whose name begins with a prefix.

    Parameters
    ----------
    table : Table
        The table.
    prefix : str
        The prefix.

    Returns
    -------
    dict of str to polars.Series
        Name without prefix -> cells, null where they are blank.

    Raises
    ------
    AnnotationError
        If a name occurs twice.
    """
    found: dict[str, pl.Series] = {}
    for at, name in enumerate(table.header):
        if not name.startswith(prefix):
            continue
        if name[len(prefix) :] in found:
            raise AnnotationError(f"{table.name} has several columns called {name!r}. Rename all but one.")
        found[name[len(prefix) :]] = blank_as_null(table.column(at))
    return found


def blank_as_null(column: pl.Series) -> pl.Series:
    """Replace cells of white space by null.

    Parameters
    ----------
    column : polars.Series
        A column; only text is changed.

    Returns
    -------
    polars.Series
        The column.
    """
    return column.set(column.str.strip_chars() == "", None) if column.dtype == pl.String else column


def _is_gold(name: str) -> bool:
    """Whether a column has a usual name for known answers."""
    return any(normalise_name(name) == normalise_name(usual) for usual in COMMON_NAMES["gold"])


def _several_contents(name: str) -> Notes:
    """Return the note on an item column whose values occur with different contents."""
    message = (
        f"Some values of {name} come with different contents in the other uploaded columns; check that it is the item."
    )
    return {"item_varies": message}
