"""Features in columns of a table: numbers, lists of numbers (Parquet), and text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from manyhands.exceptions import AnnotationError
from manyhands.io.features.feature_choice import ColumnChoice, choose_columns
from manyhands.io.messages import listed, normalise_name, shorten
from manyhands.io.read.column_lookup import find_column
from manyhands.io.read.companion_tables import find_common, open_table
from manyhands.io.read.documents import Document
from manyhands.io.read.frames import frame_as_text
from manyhands.io.read.parquet import read_parquet
from manyhands.io.read.sources import Source


@dataclass(frozen=True)
class TableFeatures:
    """Features and ids of the rows of a table.

    Attributes
    ----------
    ids : list of str or None
        Item id of each row; None if there is no such column.
    numbers : ndarray of shape (n_rows, n_features) or None
        The numbers.
    texts : list of str or None
        The text of each row; several columns are joined by line breaks.
    columns : tuple of str
        Names of the columns with numbers.
    text : tuple of str
        Names of the columns with text.
    taken : ndarray of int, shape (n_rows,)
        Row of the file, from 0, of each row.
    left_out : tuple of str, default=()
        Columns that were not used, if the caller named none.
    """

    ids: list[str] | None
    numbers: Any  # (n_rows, n_features), or None
    texts: list[str] | None
    columns: tuple[str, ...]  # those with numbers
    text: tuple[str, ...]
    taken: npt.NDArray[np.intp]  # the row of the file, from 0, of each row
    left_out: tuple[str, ...] = ()


def read_table(
    path: Path,
    id_column: str | None,
    columns: Sequence[str],
    text: Sequence[str],
    *,
    need_ids: bool,
    trained_on: str = "",
    document: Document | None = None,
) -> TableFeatures:
    """Read features from a table; rows that repeat an id with the same values are one.

    Parameters
    ----------
    path : Path
        The file.
    id_column : str or None
        Column with the item ids; None for one with a usual name.
    columns : sequence of str
        Columns with numbers; if neither these nor `text` are given, all columns but the ids that hold numbers or text.
    text : sequence of str
        Columns with text.
    need_ids : bool
        Whether a table without ids is an error.
    trained_on : str, default=""
        What the model was trained on, for error messages.
    document : Document or None, default=None
        The file, if it was parsed before.

    Returns
    -------
    TableFeatures
        The features.

    Raises
    ------
    AnnotationError
        If a column is missing, or a number is not finite.
    """
    frame = _frame(path, document)
    names = frame.columns
    if trained_on:
        refuse_lacking(names, (*columns, *text), str(path), trained_on)
    at = _id_column(names, id_column, str(path), need_ids)
    text_at = [find_column(names, name, "text", str(path)) for name in text]
    number_at = [find_column(names, name, "column", str(path)) for name in columns]
    choice = ColumnChoice()
    if not columns and not text:
        choice = _choose(frame, at, str(path), any_kind=not trained_on)
        number_at, text_at = ([names.index(name) for name in part] for part in (choice.numbers, choice.text))
    taken = np.arange(len(frame))
    if at is not None and need_ids:
        used = list(dict.fromkeys(names[place] for place in (at, *number_at, *text_at)))
        numbered = frame.select(used).with_row_index(_ROW).unique(used, keep="first", maintain_order=True)
        frame, taken = numbered.drop(_ROW), numbered[_ROW].to_numpy().astype(np.intp)
    ids = None if at is None else _ids(frame[names[at]], taken, str(path))
    remedy = f"Fill it; the model was trained on {trained_on}." if trained_on else _NAME_THEM
    numbers = [to_numbers(frame[names[place]], taken, str(path), remedy) for place in number_at]
    texts = [frame[names[place]].cast(pl.String).fill_null("").to_list() for place in text_at]
    return TableFeatures(
        ids,
        np.concatenate(numbers, axis=1) if numbers else None,
        ["\n".join(parts) for parts in zip(*texts)] if texts else None,
        tuple(names[place] for place in number_at),
        tuple(names[place] for place in text_at),
        taken,
        choice.left_out,
    )


def _choose(frame: pl.DataFrame, at: int | None, source: str, *, any_kind: bool) -> ColumnChoice:
    """Choose columns of numbers and of text; all must be numbers if there are no rows, or a model has no names."""
    others = {name: frame[name] for place, name in enumerate(frame.columns) if place != at}
    if not others:
        raise AnnotationError(f"{source} has no column beside the ids. It has: {listed(frame.columns)}.")
    choice = choose_columns(others) if any_kind and len(frame) else ColumnChoice(tuple(others))
    if not choice.numbers and not choice.text:
        raise AnnotationError(
            f"{source} has neither numbers nor text beside the ids. It has: {listed(frame.columns)}. Name columns "
            f"to use as text with --text."
        )
    return choice


_ROW = "the row of the file, from 0"  # name of a temporary column, unlike any in a file
_NAME_THEM = "Fill it, name the columns with numbers by --column, or texts by --text."


def refuse_lacking(names: Sequence[str], wanted: Sequence[str], source: str, trained_on: str) -> None:
    """Refuse a file that lacks columns which the caller named or the training had.

    Parameters
    ----------
    names : sequence of str
        The columns of the file.
    wanted : sequence of str
        Columns that must be among them.
    source : str
        Name of the file, for the error message.
    trained_on : str
        What the model was trained on; empty in training.

    Raises
    ------
    AnnotationError
        If one is missing.
    """
    known = {normalise_name(name) for name in names}
    lacking = [name for name in wanted if normalise_name(name) not in known]
    if lacking and not trained_on:
        raise AnnotationError(f"{source} has no {listed(lacking)}. It has: {listed(names)}.")
    if lacking:
        raise AnnotationError(
            f"The model was trained on {trained_on}; {source} lacks {listed(lacking)}. It has: {listed(names)}."
        )


def _frame(path: Path, document: Document | None = None) -> pl.DataFrame:
    """Return a table with the types of its file: Parquet has types, all other files have text."""
    if path.suffix.lower() == ".parquet":
        return read_parquet(Source(str(path), path))
    table = open_table(path, "features", document)
    repeated = sorted({name for name in table.header if table.header.count(name) > 1})
    if repeated:
        raise AnnotationError(f"{path} has several columns called {listed(repeated)}. Rename all but one.")
    return pl.DataFrame({name: table.column(at) for at, name in enumerate(table.header)})


def _id_column(names: list[str], wanted: str | None, source: str, need_ids: bool) -> int | None:
    """Return the position of the column of ids."""
    if wanted is not None:
        return find_column(names, wanted, "id-column", source)
    found = find_common(names, "item")
    if found is None and need_ids:
        raise AnnotationError(
            f"{source} has no column that looks like ids of items. It has: {listed(names)}. "
            f"Name it with --id-column, or add --rows-in-order."
        )
    return found


def _ids(column: pl.Series, taken: npt.NDArray[np.intp], source: str) -> list[str]:
    """Return a column of ids as text, without missing ones."""
    texts = frame_as_text(column.to_frame())[0].to_series()
    if texts.null_count():
        row = int(taken[texts.is_null().arg_max() or 0])
        raise AnnotationError(f"{source}: row {row + 1} has no id in column {shorten(column.name)!r}. Fill it.")
    return texts.to_list()


def to_numbers(column: pl.Series, taken: npt.NDArray[np.intp], source: str, remedy: str) -> Any:
    """Return the numbers of a column; a column of lists gives as many as its lists are long.

    Parameters
    ----------
    column : polars.Series
        The column.
    taken : ndarray of int, shape (n_rows,)
        Row of the file, from 0, of each cell, for error messages.
    source : str
        Name of the file, for error messages.
    remedy : str
        What to do, as the last sentence of an error message.

    Returns
    -------
    ndarray of shape (n_rows, n)
        The numbers.

    Raises
    ------
    AnnotationError
        If a cell is not a finite number, or lists have different lengths.
    """
    if isinstance(column.dtype, pl.List | pl.Array) and len(column):
        lengths = column.list.len() if isinstance(column.dtype, pl.List) else column.arr.len()
        if lengths.n_unique() != 1 or lengths.null_count() or not lengths[0]:
            raise AnnotationError(f"{source}: the lists in column {shorten(column.name)!r} are not all of one length.")
        parts = to_numbers(column.explode(empty_as_null=False), np.repeat(taken, lengths[0]), source, remedy)
        return parts.reshape(len(column), -1)
    trimmed = column.str.strip_chars() if column.dtype == pl.String else column
    try:
        numbers = trimmed.cast(pl.Float64, strict=False)
    except pl.exceptions.PolarsError:
        numbers = pl.Series(column.name, [None] * len(column), dtype=pl.Float64)
    wrong = numbers.is_null() | ~numbers.is_finite()
    if wrong.any():
        row = int(wrong.arg_max() or 0)
        shown = "nothing" if column[row] in (None, "") else shorten(repr(column[row]))
        raise AnnotationError(
            f"{source}: column {shorten(column.name)!r} has {shown} where a finite number should be "
            f"(row {taken[row] + 1}). {remedy}"
        )
    return numbers.to_numpy().reshape(-1, 1)


def read_ids(path: Path) -> list[str]:
    """Read a column of ids: the one with a usual name, or the only one.

    Parameters
    ----------
    path : Path
        The file.

    Returns
    -------
    list of str
        The ids.
    """
    frame = _frame(path)
    at = 0 if frame.width == 1 else _id_column(frame.columns, None, str(path), need_ids=True)
    assert at is not None
    return _ids(frame.to_series(at), np.arange(len(frame)), str(path))
