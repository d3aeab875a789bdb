"""Data frames of callers: which library a frame belongs to, and the functions of `io` that read and make frames.

The libraries themselves are imported in `io` only. Estimators, metrics and comparisons are below `io`, so they reach it
by name, as the registry reaches methods: `_READ` and `_MAKE` are all that is reached in this way.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

_READ = ("manyhands.io.read.frame_labels", "read_frame")
_MAKE = ("manyhands.io.write.frame_libraries", "make_frame")

LIBRARIES = ("pandas", "polars", "pyarrow")  # frames that results come back as


def is_frame(value: Any) -> bool:
    """Whether a value is a data frame: it has named columns, or exports itself as an Arrow table.

    Parameters
    ----------
    value : object
        What a caller passed.

    Returns
    -------
    bool
    """
    cls = type(value)  # a lazy frame would have to be evaluated for its own columns
    has_columns = hasattr(cls, "columns") or hasattr(cls, "column_names")
    return has_columns or (hasattr(cls, "__arrow_c_stream__") and not hasattr(cls, "dtype"))


def library_of(frame: Any) -> str:
    """Return the library that results for the owner of a data frame should come from.

    Parameters
    ----------
    frame : object
        A data frame.

    Returns
    -------
    {"pandas", "polars", "pyarrow"}
        The library of the frame; "polars" for frames of any other.
    """
    names = [cls.__module__.partition(".")[0] for cls in type(frame).__mro__]
    return next((name for name in names if name in LIBRARIES), "polars")


def read_frame(frame: Any) -> Any:
    """Return the labels of a data frame, as `manyhands.read_annotations` reads them.

    Parameters
    ----------
    frame : data frame
        One row per label, or one per item and a column per worker.

    Returns
    -------
    Annotations
        They remember the library of the frame.
    """
    return _function(_READ)(frame)


def make_frame(columns: Mapping[str, Any], library: str | None = None, index: str | None = None) -> Any:
    """Make a data frame.

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
    return _function(_MAKE)(columns, library, index)


def _function(place: tuple[str, str]) -> Any:
    module, name = place
    return getattr(import_module(module), name)
