"""Columns of weights: one with the weight of each label, or one of probabilities for each class."""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from manyhands.exceptions import AnnotationError, ParameterError
from manyhands.io.messages import shorten
from manyhands.io.read.column_lookup import find_column
from manyhands.io.read.documents import Table
from manyhands.io.read.judgements import ColumnOptions

LABEL, WEIGHT = "label of label-probs", "probability"
_PREFIX = "p_"  # of the columns of probabilities in labels.csv


def spread_probabilities(table: Table, options: ColumnOptions) -> tuple[Table, ColumnOptions]:
    """Return a table with one row for each class of each row, where the caller names columns of probabilities.

    Parameters
    ----------
    table : Table
        One row per judgement.
    options : ColumnOptions
        Columns that the caller named.

    Returns
    -------
    table : Table
        The same table without `label_probs`; otherwise with a column of classes and one of probabilities.
    options : ColumnOptions
        With the names of these two columns.

    Raises
    ------
    ParameterError
        If a label or weight column is named too, or there are fewer than two columns of probabilities.
    AnnotationError
        If a column is not there.
    """
    if options.label_probs is None:
        return table, options
    names = [name.strip() for name in options.label_probs.split(",") if name.strip()]
    if options.label is not None or options.weight is not None:
        raise ParameterError("--label-probs names the columns of all classes: leave out --label and --weight.")
    if len(set(names)) < 2 or len(set(names)) < len(names):
        raise ParameterError(
            f"--label-probs is {shorten(options.label_probs)!r}; it must name two or more columns, one per class, "
            f"separated by commas."
        )
    places = [find_column(table.header, name, "label-probs", table.name) for name in names]
    found = [table.header[at] for at in places]
    has_prefix = all(name.startswith(_PREFIX) and len(name) > len(_PREFIX) for name in found)
    classes = [name.removeprefix(_PREFIX) for name in found] if has_prefix else found
    others = [at for at in range(len(table.header)) if at not in places]
    n, k = len(table), len(places)
    rows = pl.Series(range(n), dtype=pl.UInt32).repeat_by(k).explode() if n else pl.Series([], dtype=pl.UInt32)
    columns = [table.column(at).gather(rows) for at in others]
    columns += [
        pl.Series(classes * n, dtype=pl.String),
        pl.DataFrame([table.column(at).alias(str(j)) for j, at in enumerate(places)]).transpose().unpivot()["value"]
        if n
        else pl.Series([], dtype=pl.String),
    ]
    frame = pl.DataFrame([column.alias(str(at)) for at, column in enumerate(columns)])
    locate = table.locate
    spread = Table(
        table.name,
        frame,
        [*(table.header[at] for at in others), LABEL, WEIGHT],
        None if locate is None else lambda row: locate(row // k),
        notes=table.notes,
    )
    return spread, replace(options, label=LABEL, weight=WEIGHT)


def read_weights(table: Table, at: int | None, label: int) -> pl.Series | None:
    """Return the weight of each row.

    Parameters
    ----------
    table : Table
        The table.
    at : int or None
        Position of the column of weights; None if there is none.
    label : int
        Position of the column of labels; rows without a label need no weight.

    Returns
    -------
    polars.Series of float or None

    Raises
    ------
    AnnotationError
        If a weight of a label is not a number of at least 0.
    """
    if at is None:
        return None
    text = table.column(at)
    weight = text.str.strip_chars().cast(pl.Float64, strict=False)
    has_label = (table.column(label).fill_null("").str.strip_chars() != "").fill_null(False)
    wrong = (has_label & ~((weight >= 0) & weight.is_finite()).fill_null(False)).arg_true()
    if len(wrong):
        row = int(wrong[0])
        cell = "blank" if text[row] is None else repr(shorten(text[row]))
        raise AnnotationError(
            f"{table.place(row)}: the weight ({table.header[at]}) is {cell}, but it must be a number of at least 0; "
            f"{len(wrong)} such row(s)."
        )
    return weight.fill_null(0.0)


def refuse_unused(options: ColumnOptions, format_name: str, source: str) -> None:
    """Refuse weights for a format that has none, rather than ignore them.

    Parameters
    ----------
    options : ColumnOptions
        Columns that the caller named.
    format_name : str
        The format that was read.
    source : str
        Name of the file.

    Raises
    ------
    AnnotationError
        If a column of weights was named.
    """
    if options.weight is not None or options.label_probs is not None:
        raise AnnotationError(
            f"{source} was read as {format_name}, which has no weights of labels. --weight and --label-probs are for "
            f"tables with one row per judgement (--format long)."
        )
