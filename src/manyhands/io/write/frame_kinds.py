"""Tables as data frames of the library that the caller uses."""

from __future__ import annotations

from typing import Any

import polars as pl

from manyhands.exceptions import MissingExtraError, ParameterError


def in_library(table: pl.DataFrame, key: str, library: str) -> Any:
    """Return a table as a data frame of polars or pandas.

    Parameters
    ----------
    table : polars.DataFrame
        The table.
    key : str
        The column that becomes the index of a pandas frame.
    library : {"polars", "pandas"}
        Kind of data frame.

    Returns
    -------
    polars.DataFrame or pandas.DataFrame
        The same table.

    Raises
    ------
    MissingExtraError
        If pandas is wanted and not installed.
    """
    if library == "polars":
        return table
    if library != "pandas":
        raise ParameterError(f"library is {library!r}; allowed are polars and pandas.")
    try:
        import pandas
    except ImportError:
        raise MissingExtraError("pandas is not installed: pip install pandas, or use library='polars'.") from None
    return pandas.DataFrame(table.to_dict(as_series=False)).set_index(key)
