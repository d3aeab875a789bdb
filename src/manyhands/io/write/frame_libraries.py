"""Tables as data frames of the caller's library."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from manyhands.data_frames import LIBRARIES
from manyhands.exceptions import MissingExtraError, ParameterError
from manyhands.spelling import suggest


def make_frame(columns: Mapping[str, Any], library: str | None = None, index: str | None = None) -> Any:
    """Make a data frame from columns.

    Parameters
    ----------
    columns : mapping of str to sequence
        The columns, all of the same length.
    library : {"pandas", "polars", "pyarrow"} or None, default=None
        Kind of data frame; None makes one of polars.
    index : str or None, default=None
        Column that becomes the index of a pandas frame.

    Returns
    -------
    polars.DataFrame, pandas.DataFrame or pyarrow.Table
    """
    return convert_frame(as_table(columns), library, index)


def as_table(columns: Mapping[str, Any]) -> pl.DataFrame:
    """Make a table from columns: NaN is a missing number, and a column without any value is text.

    Parameters
    ----------
    columns : mapping of str to sequence
        The columns, all of the same length.

    Returns
    -------
    polars.DataFrame
    """
    table = pl.DataFrame(dict(columns), strict=False)
    floats = [name for name, dtype in table.schema.items() if dtype.is_float()]
    empty = [name for name, dtype in table.schema.items() if dtype == pl.Null]
    return table.with_columns(pl.col(floats).fill_nan(None), pl.col(empty).cast(pl.String))


def convert_frame(table: pl.DataFrame, library: str | None, index: str | None = None) -> Any:
    """Convert a table to a data frame of another library.

    Parameters
    ----------
    table : polars.DataFrame
        The table.
    library : {"pandas", "polars", "pyarrow"} or None
        Kind of data frame; None is polars.
    index : str or None, default=None
        Column that becomes the index of a pandas frame.

    Returns
    -------
    polars.DataFrame, pandas.DataFrame or pyarrow.Table

    Raises
    ------
    ParameterError
        If there is no such library.
    MissingExtraError
        If it is not installed.
    """
    if library is None or library == "polars":
        return table
    if library not in LIBRARIES:
        raise ParameterError(f"There is no library called {library!r}.{suggest(library, LIBRARIES)}")
    try:
        if library == "pyarrow":
            return table.to_arrow()
        import pandas
    except ImportError:
        raise MissingExtraError(
            f"{library} is not installed: pip install {library}, or use library='polars'."
        ) from None
    frame = pandas.DataFrame(table.to_dict(as_series=False))
    return frame if index is None else frame.set_index(index)
