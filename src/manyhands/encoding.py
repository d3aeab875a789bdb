"""Any hashable values <-> dense int32 codes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from manyhands.exceptions import AnnotationError

Values = Sequence[Any] | npt.NDArray[Any]

_LARGEST = 2**31 - 1


def encode(values: Values, ids: Values | None, role: str) -> tuple[npt.NDArray[np.int32], npt.NDArray[Any]]:
    """Return codes and ids such that `ids[codes]` equals `values`.

    Without `ids`, they are the distinct values in sorted order. Integers from a small range go through a
    table, so ready-made codes cost one look-up each; everything else goes through a dictionary.

    >>> codes, ids = encode(["b", "a", "b"], None, "label")
    >>> codes.tolist(), ids.tolist()
    ([1, 0, 1], ['a', 'b'])
    """
    array = values if isinstance(values, np.ndarray) else _as_array(values)
    if array.ndim != 1:
        raise AnnotationError(f"The {role}s must be one-dimensional; they have shape {array.shape}.")
    own_ids = None if ids is None else as_ids(ids, role)
    if array.dtype.kind in "iu" and (own_ids is None or own_ids.dtype.kind in "iu"):
        coded = _encode_integers(array, own_ids, role)
        if coded is not None:
            return coded
    return _encode_hashable(array.tolist(), own_ids, role)


def as_ids(ids: Values, role: str) -> npt.NDArray[Any]:
    """An array of the caller's own values: numbers stay numbers, everything else stays a Python object."""
    array = ids if isinstance(ids, np.ndarray) else _as_array(ids)
    if array.ndim != 1:
        raise AnnotationError(f"The {role} ids must be one-dimensional; they have shape {array.shape}.")
    if array.dtype.kind not in "iufbO":
        return _as_objects(array.tolist())
    if array is ids and not array.flags.writeable and array.base is None:
        return array  # ids of other Annotations: nobody can change them, so they are shared
    return array if isinstance(ids, list | tuple) else np.array(array)


def _as_array(values: Any) -> npt.NDArray[Any]:
    """Numbers of one kind as a numeric array; anything else as objects, so that tuples and mixtures survive."""
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


def _as_objects(values: list[Any]) -> npt.NDArray[Any]:
    return np.fromiter(values, object, len(values))  # one entry per value, even if the values are tuples


def _encode_integers(
    array: npt.NDArray[Any], ids: npt.NDArray[Any] | None, role: str
) -> tuple[npt.NDArray[np.int32], npt.NDArray[Any]] | None:
    """Codes by one look-up table over the range of the values; None where the range is too wide for that."""
    if len(array) == 0:
        return np.zeros(0, np.int32), np.zeros(0, np.int64) if ids is None else ids
    low, high = int(array.min()), int(array.max())
    if high - low > 4 * len(array) + 1_000_000 or high > 2**63 - 1:
        return None
    offset = array if low == 0 else array.astype(np.int64, copy=False) - low  # a narrow type would wrap around
    table = np.full(high - low + 1, -1, np.int32)
    if ids is None:
        present = np.zeros(high - low + 1, bool)
        present[offset] = True
        found = np.flatnonzero(present)
        ids = found.astype(np.int64) + low
        table[found] = np.arange(len(found), dtype=np.int32)
        if len(found) == len(table):
            return offset.astype(np.int32), ids  # they were dense codes already
        return table[offset], ids
    inside = (ids >= low) & (ids <= high)
    refuse_repeats(ids.tolist(), role)
    table[ids[inside].astype(np.int64) - low] = np.flatnonzero(inside)
    codes = table[offset]
    if codes.min() < 0:
        row = int(np.argmin(codes))
        raise _unknown(array[row].item(), row, ids, role)
    return codes, ids


def _encode_hashable(
    values: list[Any], ids: npt.NDArray[Any] | None, role: str
) -> tuple[npt.NDArray[np.int32], npt.NDArray[Any]]:
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
        ids = as_ids(_sorted(list(distinct)), role)
    else:
        refuse_repeats(ids.tolist(), role)
    if len(ids) > _LARGEST:
        raise AnnotationError(f"There are {len(ids)} distinct {role}s; at most {_LARGEST} can be told apart.")
    code_of = {value: code for code, value in enumerate(ids.tolist())}
    unknown = next((v for v in distinct if v not in code_of), None)
    if unknown is not None:
        raise _unknown(unknown, values.index(unknown), ids, role)
    return np.fromiter(map(code_of.__getitem__, values), np.int32, len(values)), ids


def _sorted(values: list[Any]) -> list[Any]:
    """Sorted where the values can be compared, otherwise by type and text: never by order of appearance."""
    try:
        return sorted(values)
    except TypeError:
        return sorted(values, key=lambda value: (type(value).__name__, str(value)))


def _is_missing(value: Any) -> bool:
    """None, and all that is not equal to itself: NaN, NaT; pandas' NA does not even say whether it is."""
    try:
        return value is None or bool(value != value)
    except (TypeError, ValueError):
        return True


def _is_hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def refuse_repeats(ids: list[Any], role: str) -> None:
    if len(set(ids)) < len(ids):
        seen: set[Any] = set()
        twice = next(v for v in ids if v in seen or seen.add(v))  # type: ignore[func-returns-value]
        raise AnnotationError(f"The {role} {twice!r} stands twice in the given list; list each {role} once.")


def _unknown(value: Any, row: int, ids: npt.NDArray[Any], role: str) -> AnnotationError:
    shown = ", ".join(repr(v) for v in ids[:5].tolist()) + (", ..." if len(ids) > 5 else "")
    given = {"label": "classes"}.get(role, f"{role}_ids")
    return AnnotationError(f"The {role} {value!r} in row {row} is not among the given {given} ({shown}). Add it there.")
