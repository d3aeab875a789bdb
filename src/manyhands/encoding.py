"""Encoding: any hashable values to dense int32 codes and back."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from manyhands import compiled
from manyhands.exceptions import AnnotationError
from manyhands.item_order import appearance_order, text_key

Values = Sequence[Any] | npt.NDArray[Any]

_LARGEST = 2**31 - 1
_columns = compiled.load("_columns")


def encode(
    values: Values, ids: Values | None, role: str, *, by_appearance: bool = False
) -> tuple[npt.NDArray[np.int32], npt.NDArray[Any]]:
    """Return codes and ids such that `ids[codes]` equals `values`.

    Integers from a small range are encoded through a look-up table, everything else through a dictionary.

    Parameters
    ----------
    values : sequence or ndarray of shape (n,)
        The values of a column.
    ids : sequence or None
        All possible values in the order of their codes; None takes the distinct values.
    role : str
        "item", "worker" or "label", for error messages.
    by_appearance : bool, default=False
        Whether distinct values are numbered in the order in which they first appear; otherwise they are sorted.

    Returns
    -------
    codes : ndarray of shape (n,) of int32
        Position of each value in `ids`.
    ids : ndarray
        The values by code.

    Raises
    ------
    AnnotationError
        Where a value is missing, not hashable, or not among the given ids.

    Examples
    --------
    >>> codes, ids = encode(["b", "a", "b"], None, "label")
    >>> codes.tolist(), ids.tolist()
    ([1, 0, 1], ['a', 'b'])
    >>> codes, ids = encode(["b", "a", "b"], None, "item", by_appearance=True)
    >>> codes.tolist(), ids.tolist()
    ([0, 1, 0], ['b', 'a'])
    """
    array = values if isinstance(values, np.ndarray) else _as_array(values)
    if array.ndim != 1:
        raise AnnotationError(f"The {role}s must be one-dimensional; they have shape {array.shape}.")
    if isinstance(array, np.ma.MaskedArray):
        array = _as_objects(array.tolist()) if np.ma.is_masked(array) else array.data  # masked entries become None
    own_ids = None if ids is None else as_ids(ids, role)
    if array.dtype.kind in "iu" and (own_ids is None or own_ids.dtype.kind in "iu"):
        coded = _encode_integers(array, own_ids, role)
        if coded is not None:
            return _renumbered(*coded) if by_appearance and own_ids is None else coded
    return _encode_hashable(_own_values(array), own_ids, role, by_appearance)


def as_column(values: Any, name: str) -> Values:
    """Values with a known length: sequences stay as they are, any other iterable becomes a list.

    Parameters
    ----------
    values : iterable
        The values of a column.
    name : str
        Name of the column, for error messages.

    Returns
    -------
    sequence

    Raises
    ------
    AnnotationError
        Where `values` is not iterable.
    """
    try:
        len(values)
        return values
    except TypeError:
        pass
    try:
        return list(values)
    except TypeError:
        raise AnnotationError(f"The {name} must be a column of values, one per annotation; got {values!r}.") from None


def as_ids(ids: Values, role: str) -> npt.NDArray[Any]:
    """An array of the caller's own values: numbers stay numbers, everything else stays a Python object.

    Parameters
    ----------
    ids : sequence or ndarray
        The values.
    role : str
        "item", "worker" or "class", for error messages.

    Returns
    -------
    ndarray
        A copy, unless the input is a read-only array.

    Raises
    ------
    AnnotationError
        Where they are not one-dimensional, or a text cannot be encoded.
    """
    array = ids if isinstance(ids, np.ndarray) else _as_array(ids)
    if array.ndim != 1:
        raise AnnotationError(f"The {role} ids must be one-dimensional; they have shape {array.shape}.")
    if array is ids and not array.flags.writeable and array.base is None and array.dtype.kind in "iufbO":
        return array  # read-only ids of other Annotations are shared
    if array.dtype.kind in "UO":
        odd = unpaired_surrogate(array.tolist())
        if odd is not None:
            raise AnnotationError(f"One {role} in the given list is {odd!r}, {UNPAIRED_SURROGATE}")
    if array.dtype.kind not in "iufbO":
        return _as_objects(_own_values(array))
    return array if isinstance(ids, list | tuple) else np.array(array)


UNPAIRED_SURROGATE = "which contains an unpaired surrogate and cannot be written in any encoding. Replace it."


def unpaired_surrogate(values: Iterable[Any]) -> str | None:
    r"""The first text with an unpaired surrogate in it, which no encoding can write; None where there is none.

    Parameters
    ----------
    values : iterable
        Any values; only texts are checked.

    Returns
    -------
    str or None

    Examples
    --------
    >>> unpaired_surrogate(["a", 1, "b\ud800"]) == "b\ud800", unpaired_surrogate(["\U0001f600"])
    (True, None)
    """
    texts = [value for value in values if isinstance(value, str)]
    try:
        "".join(texts).encode()
    except UnicodeEncodeError:
        return next(text for text in texts if re.search("[\\ud800-\\udfff]", text))
    return None


def _as_array(values: Any) -> npt.NDArray[Any]:
    """Numbers of one kind as a numeric array; anything else as objects, so that tuples and mixed types survive."""
    if hasattr(values, "to_numpy"):  # pandas, polars and pyarrow columns
        return np.asarray(values.to_numpy())
    if hasattr(values, "__array__"):
        return np.asarray(values)
    values = list(values)
    kinds = set(map(type, values))
    kind_of = {int: "i", float: "f", bool: "b"}
    if len(kinds) == 1 and (wanted := kind_of.get(kinds.pop())):
        array = np.array(values)
        return array if array.dtype.kind == wanted else _as_objects(values)  # integers beyond 64 bits stay objects
    return _as_objects(values)


def _own_values(array: npt.NDArray[Any]) -> list[Any]:
    """The entries as Python values; dates stay NumPy's, which would turn fine ones into integers."""
    return list(array) if array.dtype.kind in "mM" else array.tolist()


def _as_objects(values: list[Any]) -> npt.NDArray[Any]:
    """An array of Python objects, one entry per value."""
    return np.fromiter(values, object, len(values))  # one entry per value, even if the values are tuples


def _encode_integers(
    array: npt.NDArray[Any], ids: npt.NDArray[Any] | None, role: str
) -> tuple[npt.NDArray[np.int32], npt.NDArray[Any]] | None:
    """Codes by a look-up table over the range of the values; None where the range is too wide."""
    if len(array) == 0:
        return np.zeros(0, np.int32), np.zeros(0, np.int64) if ids is None else ids
    low, high = int(array.min()), int(array.max())
    if high - low > 4 * len(array) + 1_000_000 or high > 2**63 - 1:
        return None
    # A narrow type would overflow; the compiled functions accept two types.
    column = np.ascontiguousarray(array, np.int32 if np.can_cast(array.dtype, np.int32) else np.int64)
    table = np.full(high - low + 1, -1, np.int32)
    if ids is None:
        found = np.flatnonzero(_present(column, low, len(table)))
        ids = found.astype(np.int64) + low
        if len(found) == len(table):  # the values are dense codes already
            dense = column if low == 0 else np.subtract(column, low, dtype=np.int64)
            return dense.astype(np.int32), ids
        table[found] = np.arange(len(found), dtype=np.int32)
    else:
        inside = (ids >= low) & (ids <= high)
        refuse_repeats(ids.tolist(), role)
        table[ids[inside].astype(np.int64) - low] = np.flatnonzero(inside)
    codes, all_known = _look_up(column, low, table)
    if not all_known:
        row = int(np.argmin(codes))
        raise _unknown(array[row].item(), row, ids, role)
    return codes, ids


def _renumbered(codes: npt.NDArray[np.int32], ids: npt.NDArray[Any]) -> tuple[npt.NDArray[np.int32], npt.NDArray[Any]]:
    """The same values, numbered in the order of their first appearance."""
    order = appearance_order(codes, len(ids))
    if order is None:
        return codes, ids
    place = np.empty(len(ids), np.int32)
    place[order] = np.arange(len(ids), dtype=np.int32)
    return _look_up(codes, 0, place)[0], ids[order]


def _present(column: npt.NDArray[Any], low: int, size: int) -> npt.NDArray[np.bool_]:
    """Which of the integers `low`, `low + 1`, ... occur, shape (size,)."""
    present = np.zeros(size, bool)
    if _columns is not None:
        _columns.mark(low, column, present)
    else:
        present[np.subtract(column, low, dtype=np.int64)] = True
    return present


def _look_up(column: npt.NDArray[Any], low: int, table: npt.NDArray[np.int32]) -> tuple[npt.NDArray[np.int32], bool]:
    """`table[column - low]`, and whether none of it is negative."""
    if _columns is not None:
        codes = np.empty(len(column), np.int32)
        return codes, _columns.look_up(low, column, table, codes)
    codes = table[np.subtract(column, low, dtype=np.int64)]
    return codes, bool(codes.min() >= 0)


def _encode_hashable(
    values: list[Any], ids: npt.NDArray[Any] | None, role: str, by_appearance: bool
) -> tuple[npt.NDArray[np.int32], npt.NDArray[Any]]:
    """Codes by a dictionary of the distinct values."""
    try:
        distinct = dict.fromkeys(values)
    except TypeError:
        row, value = next((i, v) for i, v in enumerate(values) if not _is_hashable(v))
        raise AnnotationError(
            f"The {role} in row {row} is {value!r}, which is not hashable. Use text, numbers or tuples."
        ) from None
    for value in distinct:
        if _is_missing(value):
            row = next(i for i, v in enumerate(values) if _is_missing(v))
            raise AnnotationError(
                f"The {role} in row {row} is missing ({value!r}). Leave such rows out; name items or workers "
                f"that have no labels with item_ids= or worker_ids=."
            )
    if ids is None:
        odd = unpaired_surrogate(distinct)
        if odd is not None:
            raise AnnotationError(f"The {role} in row {values.index(odd)} is {odd!r}, {UNPAIRED_SURROGATE}")
        ids = as_ids(list(distinct) if by_appearance else _sorted(list(distinct)), role)
    else:
        refuse_repeats(ids.tolist(), role)
    if len(ids) > _LARGEST:
        raise AnnotationError(f"There are {len(ids)} distinct {role}s; at most {_LARGEST} are supported.")
    code_of = {value: code for code, value in enumerate(ids.tolist())}
    unknown = next((v for v in distinct if v not in code_of), None)
    if unknown is not None:
        raise _unknown(unknown, values.index(unknown), ids, role)
    return np.fromiter(map(code_of.__getitem__, values), np.int32, len(values)), ids


def _sorted(values: list[Any]) -> list[Any]:
    """Sorted where the values can be compared, otherwise by type and text; never by order of appearance."""
    try:
        return sorted(values)
    except TypeError:
        return sorted(values, key=text_key)


def _is_missing(value: Any) -> bool:
    """Whether a value is None or not equal to itself (NaN, NaT, pandas' NA)."""
    try:
        return value is None or bool(value != value)
    except (TypeError, ValueError):
        return True


def _is_hashable(value: Any) -> bool:
    """Whether a value can be a key of a dictionary."""
    try:
        hash(value)
    except TypeError:
        return False
    return True


def refuse_repeats(ids: list[Any], role: str) -> None:
    """Raise an AnnotationError where an id occurs twice or is not hashable.

    Parameters
    ----------
    ids : list
        The ids.
    role : str
        "item", "worker", "label" or "class", for error messages.
    """
    try:
        n_distinct = len(set(ids))
    except TypeError:
        value = next(v for v in ids if not _is_hashable(v))
        raise AnnotationError(
            f"One {role} in the given list is {value!r}, which is not hashable. Use text, numbers or tuples."
        ) from None
    if n_distinct < len(ids):
        seen: set[Any] = set()
        twice = next(v for v in ids if v in seen or seen.add(v))  # type: ignore[func-returns-value]
        raise AnnotationError(f"The {role} {twice!r} occurs twice in the given list; list each {role} once.")


def _unknown(value: Any, row: int, ids: npt.NDArray[Any], role: str) -> AnnotationError:
    """The error for a value that is not among the given ids."""
    shown = ", ".join(repr(v) for v in ids[:5].tolist()) + (", ..." if len(ids) > 5 else "")
    given = {"label": "classes"}.get(role, f"{role}_ids")
    return AnnotationError(f"The {role} {value!r} in row {row} is not among the given {given} ({shown}). Add it there.")
