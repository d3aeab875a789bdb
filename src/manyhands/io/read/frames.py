"""Data frames of polars, pandas and Arrow, and Parquet tables, with every cell as text."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from manyhands.encoding import UNPAIRED_SURROGATE, unpaired_surrogate
from manyhands.exceptions import AnnotationError
from manyhands.io.messages import shorten
from manyhands.io.read.json_files import as_text


def frame_as_text(frame: Any) -> tuple[pl.DataFrame, list[str]]:
    """Return a data frame with every column as text.

    Parameters
    ----------
    frame : polars.DataFrame, polars.LazyFrame, pandas.DataFrame or pyarrow.Table
        The frame; any other that exports itself as an Arrow table is read as that.

    Returns
    -------
    frame : polars.DataFrame
        The cells as text, null where a value is missing; integers that a missing value turned into floats are integers.
    header : list of str
        Names of the columns.

    Raises
    ------
    AnnotationError
        If it is not a data frame, or if a column holds bytes or invalid text.
    """
    if isinstance(frame, pl.LazyFrame):
        frame = frame.collect()
    if not isinstance(frame, pl.DataFrame) and not hasattr(frame, "iloc") and hasattr(frame, "__arrow_c_stream__"):
        frame = pl.DataFrame(frame)
    if isinstance(frame, pl.DataFrame):
        header = frame.columns
        columns = [_column_as_text(frame.to_series(at), header[at]) for at in range(frame.width)]
    elif hasattr(frame, "iloc"):
        header = [str(name) for name in frame.columns]
        invalid = unpaired_surrogate(header)
        if invalid is not None:
            raise AnnotationError(f"One column is called {invalid!r}, {UNPAIRED_SURROGATE}")
        columns = [_pandas_as_text(frame.iloc[:, at], header[at]) for at in range(len(header))]
    else:
        raise AnnotationError(
            f"A {type(frame).__name__} is not a data frame of pandas, polars or pyarrow. Give one, or a path."
        )
    return pl.DataFrame({str(at): column for at, column in enumerate(columns)}), header


def _column_as_text(column: pl.Series, name: str) -> pl.Series:
    """Return a polars column as text."""
    if column.dtype == pl.String:
        return column
    if column.dtype.is_float() and _are_whole(column):
        return column.fill_nan(None).cast(pl.Int64).cast(pl.String)
    by_value = column.dtype == pl.Object or column.dtype == pl.Duration
    if by_value or column.dtype.is_nested() or column.dtype.is_float():
        return _values_as_text(column, name)
    if column.dtype == pl.Binary:
        raise AnnotationError(f"Column {shorten(name)!r} holds bytes, not text. Decode it first.")
    return column.cast(pl.String)


def _pandas_as_text(column: Any, name: str) -> pl.Series:
    """Return a pandas column as text."""
    if getattr(column.dtype, "kind", "") != "f":
        return _values_as_text(column, name)
    numbers = pl.Series(column.to_numpy(dtype=np.float64, na_value=np.nan))
    return _column_as_text(numbers, name) if _are_whole(numbers) else _values_as_text(column, name)


def _are_whole(column: pl.Series) -> bool:
    """Whether floats are integers that a missing value turned into floats: 1.0 then means 1."""
    given = column.cast(pl.Float64).fill_nan(None).drop_nulls()
    return bool(((given == given.round()) & (given.abs() < _EXACT)).all())


_EXACT = 2.0**53  # beyond it not every integer has a float of its own


def _values_as_text(column: Any, name: str) -> pl.Series:
    """Convert value by value: a frame may mix numbers and text, and pandas has several kinds of missing values."""
    try:
        return pl.Series([_cell(value) for value in column.to_list()], dtype=pl.String)
    except UnicodeEncodeError:
        raise AnnotationError(f"Column {shorten(name)!r} holds an unpaired surrogate, which is not text.") from None


def _cell(value: Any) -> str | None:
    """Return one value as text, or None where it is missing."""
    if isinstance(value, np.ndarray | np.generic | pl.Series):
        value = value.tolist() if not isinstance(value, pl.Series) else value.to_list()
    if isinstance(value, str):
        return str.__str__(value)  # of a member of an enumeration its value, not its name
    if isinstance(value, list | dict | tuple):
        return as_text(value)
    if isinstance(value, bytes):
        raise AnnotationError("A cell holds bytes, not text. Decode it first.")
    try:
        if value is None or bool(value != value):
            return None
    except (TypeError, ValueError):  # comparing pandas' NA with itself has no truth value
        return None
    return as_text(value) if isinstance(value, bool | int | float) else str(value)
