"""Types of ids and labels in a data frame: every cell is read as text, and numbers come back as numbers.

integers, and floats that are all whole      int
other floats                                 float
truth values                                 bool
anything else, mixtures and other formats    text
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from manyhands.data_frames import is_frame
from manyhands.io.read.judgements import Judgements

Converter = Callable[[str], Any]


def frame_types(frames: Sequence[Any], judgements: Judgements) -> dict[str, Converter]:
    """Return how ids and labels that were read from data frames become values of their own type again.

    Parameters
    ----------
    frames : sequence of object
        What was read; the types of files are text.
    judgements : Judgements
        What was found in it: a long table, or one with a column per worker.

    Returns
    -------
    dict of str to callable
        Role ("item", "worker", "label") -> conversion from text, for roles that are not text in all frames.
    """
    if not all(map(is_frame, frames)):
        return {}
    found: dict[str, set[Converter | None]] = {}
    for frame in frames:
        for role, convert in _types_of(frame, judgements).items():
            found.setdefault(role, set()).add(convert)
    only = {role: converters.pop() for role, converters in found.items() if len(converters) == 1}
    return {role: convert for role, convert in only.items() if convert is not None}


def can_convert(values: pl.Series, convert: Converter) -> bool:
    """Return whether each of some texts can be converted; blank ones do not matter.

    Parameters
    ----------
    values : polars.Series of str
        Distinct texts.
    convert : callable
        A conversion of `frame_types`.

    Returns
    -------
    bool
    """
    try:
        _ = [convert(text) for text in values.to_list() if text.strip()]
    except ValueError:
        return False
    return True


def _types_of(frame: Any, judgements: Judgements) -> dict[str, Converter | None]:
    """Return the conversion of each role in one frame; None is text."""
    frame = frame.collect() if isinstance(frame, pl.LazyFrame) else frame
    frame = frame if isinstance(frame, pl.DataFrame) or hasattr(frame, "iloc") else pl.DataFrame(frame)
    names = list(frame.columns)
    place = {str(name): at for at, name in enumerate(names)}
    mapping = judgements.mapping
    if judgements.format == "long":
        return {role: _kind(_column(frame, place.get(mapping.get(role, "")))) for role in ("item", "worker", "label")}
    if judgements.format != "wide":
        return {}
    others = [at for at, name in enumerate(names) if str(name) not in (mapping.get("item"), mapping.get("gold"))]
    kinds = {_kind(_column(frame, at)) for at in others}
    numbered = all(isinstance(names[at], int) for at in others)
    return {
        "item": _kind(_column(frame, place.get(mapping.get("item", "")))),
        "worker": int if numbered else None,
        "label": kinds.pop() if len(kinds) == 1 else None,
    }


def _column(frame: Any, at: int | None) -> Any:
    """Return one column; None where there is none."""
    if at is None:
        return None
    return frame.to_series(at) if isinstance(frame, pl.DataFrame) else frame.iloc[:, at]


def _kind(column: Any) -> Converter | None:
    """Return the conversion of a column from text; None is text."""
    if column is None:
        return None
    if isinstance(column, pl.Series):
        dtype = column.dtype
        kind = "i" if dtype.is_integer() else "f" if dtype.is_float() else "b" if dtype == pl.Boolean else "O"
    else:
        kind = getattr(column.dtype, "kind", "O")
    if kind in "iu":
        return int
    if kind == "b":
        return _truth_value
    if kind == "f":
        numbers = column.to_numpy() if isinstance(column, pl.Series) else column.to_numpy(np.float64, na_value=np.nan)
        return _number(numbers)
    return None if isinstance(column, pl.Series) else _kind_of_values(column.to_list())


def _number(numbers: Any) -> Converter:
    """Return int where all numbers are whole, which missing values turned into floats; otherwise float."""
    given = numbers[~np.isnan(numbers)]
    return int if bool(np.all(np.isfinite(given) & (given == np.round(given)))) else float


def _kind_of_values(values: Iterable[Any]) -> Converter | None:
    """Return the conversion of Python objects: text as soon as one of them is text."""
    kinds: set[type] = set()
    for value in values:
        if isinstance(value, str):
            return None
        if isinstance(value, bool | np.bool_ | int | np.integer):
            kinds.add(bool if isinstance(value, bool | np.bool_) else int)
        elif not _is_missing(value):
            return None
    conversion: Mapping[type, Converter] = {bool: _truth_value, int: int}
    return conversion[kinds.pop()] if len(kinds) == 1 else None


def _is_missing(value: Any) -> bool:
    """Whether a value is None, NaN, or pandas' NA."""
    try:
        return value is None or bool(value != value)
    except (TypeError, ValueError):
        return True


def _truth_value(text: str) -> bool:
    """Return the truth value that was written as text."""
    if text not in ("true", "false"):
        raise ValueError(f"{text!r} is neither true nor false")
    return text == "true"
