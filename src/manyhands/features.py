"""Rows of X as arrays of 32-bit floats, whatever X is: dense, mapped from disk, sparse, images, or a getter of rows.

Nothing here needs torch, and nothing is standardised: that is the caller's business.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn, Protocol

import numpy as np
import numpy.typing as npt

from manyhands.exceptions import AlignmentError

Floats = npt.NDArray[np.float32]
Index = npt.NDArray[np.intp]

_STRETCH = 1024  # rows looked at together, so that a mapped file is never in memory at once
_SAMPLE = 64  # rows of a getter that stand for all of them in a fingerprint


class Rows(Protocol):
    """Rows that can be taken by their numbers."""

    @property
    def shape(self) -> tuple[int, ...]: ...  # of one row

    def __len__(self) -> int: ...

    def take(self, index: Index) -> Floats: ...

    def whole(self) -> Any: ...


def as_rows(X: Any) -> Rows:
    """X as rows of finite numbers, or an AlignmentError that says what is wrong with it.

    Arrays, tables, torch tensors, scipy's sparse matrices; else anything with a length whose entries are rows, such as
    a torch Dataset (of a row that is a tuple, the first part is taken). Only a getter's rows are checked as they
    come; all others are checked here.
    """
    if hasattr(X, "tocsr"):
        return SparseRows(X)
    if hasattr(X, "detach"):  # a torch tensor
        X = X.detach().cpu()
        X = (X.float() if X.is_floating_point() and X.element_size() < 4 else X).numpy()  # NumPy knows no bfloat16
    if isinstance(X, Mapping | set | str | bytes):
        raise AlignmentError(f"X must be rows of numbers, one for each item; got {type(X).__name__}.")
    if _is_getter(X):
        return GetterRows(X)
    if isinstance(X, np.ma.MaskedArray) and np.ma.is_masked(X):
        raise AlignmentError("X is an array with masked entries; fill them, or drop their rows.")
    if all(getattr(kind, "kind", "O") in "biuf" for kind in getattr(X, "dtypes", ["O"])):
        X = X.to_numpy(np.float64, na_value=np.nan)  # a pandas table, perhaps of numbers that may be missing
    try:
        array = X if type(X) in (np.ndarray, np.memmap) else np.asarray(X)
    except ValueError:
        raise AlignmentError("X has rows of different shapes; every item needs the same features.") from None
    return _checked(ArrayRows(array))


def check_rows(rows: Rows, n_items: int) -> None:
    """Refuse rows that cannot be the items of the annotations."""
    if len(rows) != n_items:
        raise AlignmentError(
            f"X has {len(rows)} rows, but the annotations have {n_items} items; row i of X must be item i."
        )


@dataclass(frozen=True, eq=False)
class ArrayRows:
    """Rows of an array in memory or of a mapped file."""

    array: npt.NDArray[Any]

    def __post_init__(self) -> None:
        if self.array.dtype.kind not in "biuf":
            raise AlignmentError(f"X must hold numbers, but its type is {self.array.dtype}; encode its columns first.")
        if self.array.ndim < 2 or 0 in self.array.shape[1:]:
            raise AlignmentError(
                f"X needs a row of at least one feature for each item; its shape is {self.array.shape}."
            )

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape[1:]

    def __len__(self) -> int:
        return len(self.array)

    def take(self, index: Index) -> Floats:
        with np.errstate(over="ignore"):  # what is too large becomes infinite, and is refused as such
            return self.array[index].astype(np.float32, copy=False)

    def whole(self) -> Any:
        return self.array


@dataclass(frozen=True, eq=False)
class SparseRows:
    """Rows of a scipy matrix, made dense a batch at a time."""

    matrix: Any

    def __post_init__(self) -> None:
        if self.matrix.dtype.kind not in "biuf" or self.matrix.ndim != 2 or self.matrix.shape[1] == 0:
            raise AlignmentError(
                f"A sparse X must be a matrix of numbers with at least one column; this one is {self.matrix.dtype} "
                f"of shape {self.matrix.shape}."
            )
        matrix = self.matrix.tocsr()
        if not matrix.has_canonical_format:
            matrix = matrix.copy()  # the caller's stays as it is
            matrix.sum_duplicates()
        object.__setattr__(self, "matrix", matrix)
        bad = np.flatnonzero(~np.isfinite(self.numbers()))  # zeros need no look
        if len(bad):
            _refuse_row(int(np.searchsorted(matrix.indptr, bad[0], side="right")) - 1)

    def numbers(self) -> Floats:
        """What is stored, row after row."""
        with np.errstate(over="ignore"):
            return np.asarray(self.matrix.data.astype(np.float32))

    @property
    def shape(self) -> tuple[int, ...]:
        return (int(self.matrix.shape[1]),)

    def __len__(self) -> int:
        return int(self.matrix.shape[0])

    def take(self, index: Index) -> Floats:
        with np.errstate(over="ignore"):
            return np.asarray(self.matrix[index].astype(np.float32).toarray())

    def whole(self) -> Any:
        return self.matrix


class GetterRows:
    """Rows that something hands out one by one, for what does not fit in memory."""

    def __init__(self, getter: Any) -> None:
        self.getter = getter
        if len(getter) == 0:
            raise AlignmentError("X has no rows.")
        self.shape = self._row(0).shape
        if not self.shape or 0 in self.shape:
            raise AlignmentError(f"A row of X needs at least one feature; row 0 has shape {self.shape}.")

    def __len__(self) -> int:
        return len(self.getter)

    def take(self, index: Index) -> Floats:
        rows = np.empty((len(index), *self.shape), np.float32)
        for place, i in enumerate(index.tolist()):
            row = self._row(i)
            if row.shape != self.shape:
                raise AlignmentError(f"Row {i} of X has shape {row.shape}, but row 0 has {self.shape}.")
            rows[place] = row
        refuse_infinite(rows, index)
        return rows

    def whole(self) -> Any:
        return self.take(np.arange(len(self)))

    def _row(self, i: int) -> Floats:
        row = self.getter[i]
        row = row[0] if isinstance(row, tuple) else row
        try:
            return np.asarray(row.detach().cpu() if hasattr(row, "detach") else row, np.float32)
        except (TypeError, ValueError):
            raise AlignmentError(f"Row {i} of X is not an array of numbers but {type(row).__name__}.") from None


def refuse_infinite(rows: Floats, index: Index) -> None:
    """Refuse NaN and infinity, naming the first row that has one."""
    if not np.isfinite(rows).all():
        bad = np.flatnonzero(~np.isfinite(rows.reshape(len(rows), -1)).all(axis=1))
        _refuse_row(int(index[bad[0]]))


def _refuse_row(row: int) -> NoReturn:
    raise AlignmentError(f"X has NaN, infinity or a number beyond 32-bit floats in row {row}; fill or drop it.")


def fingerprint(rows: Rows) -> str:
    """A short text that changes with the rows; of a getter, some evenly spaced rows stand for all."""
    found = hashlib.blake2b(repr((len(rows), rows.shape)).encode(), digest_size=16)
    if isinstance(rows, SparseRows):
        for part in (rows.numbers(), rows.matrix.indices.astype(np.int64), rows.matrix.indptr.astype(np.int64)):
            found.update(part.data)
        return found.hexdigest()
    index = np.arange(len(rows))
    if isinstance(rows, GetterRows):
        index = np.unique(np.linspace(0, len(rows) - 1, _SAMPLE).astype(np.intp))
    for first in range(0, len(index), _STRETCH):
        found.update(np.ascontiguousarray(rows.take(index[first : first + _STRETCH])).data)
    return found.hexdigest()


def _checked(rows: Rows) -> Rows:
    for first in range(0, len(rows), _STRETCH):
        index = np.arange(first, min(first + _STRETCH, len(rows)))
        refuse_infinite(rows.take(index), index)
    return rows


def _is_getter(X: Any) -> bool:
    is_array = isinstance(X, list | tuple | np.ndarray) or hasattr(X, "__array__") or hasattr(X, "__array_interface__")
    return not is_array and hasattr(X, "__getitem__") and hasattr(X, "__len__")
