"""Rows of X as arrays of 32-bit floats, whatever X is: dense, memory-mapped, sparse, images, or a dataset of rows.

Every estimator with features reads X through `as_rows`, so all of them accept the same inputs and refuse the same
mistakes. Nothing here needs torch, and nothing is standardised: estimators do that themselves.
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

_BLOCK = 1024  # rows checked at a time, so that a memory-mapped file is never in memory as a whole
_SAMPLE = 64  # rows of a dataset that enter its fingerprint


class Rows(Protocol):
    """Rows of X that can be taken by index.

    Attributes
    ----------
    shape : tuple of int
        Shape of one row: ``(n_features,)``, or ``(channels, height, width)`` of images.
    """

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one row."""
        ...

    def __len__(self) -> int: ...

    def take(self, index: Index) -> Floats:
        """Rows by index, as a dense array of shape ``(len(index), *shape)`` that the caller may change."""
        ...

    def whole(self) -> Any:
        """All rows, as an array or sparse matrix in its own type; the caller must not change it."""
        ...


def as_rows(X: Any) -> Rows:
    """Read X as rows of finite numbers.

    Parameters
    ----------
    X : array-like, sparse matrix, tensor, table or dataset
        NumPy arrays of at least two dimensions (memory-mapped ones too), nested lists, data frames of numbers, torch
        tensors, scipy sparse matrices; else any object with a length whose entries are rows, such as a torch
        ``Dataset`` (of an entry that is a tuple, the first element is the row).

    Returns
    -------
    Rows
        The rows. All are checked at once, except those of a dataset, which are checked whenever they are read.

    Raises
    ------
    AlignmentError
        Where X is not numeric, has rows of different shapes, or contains NaN, infinity or numbers beyond 32-bit
        floats; the message names the first such row.

    Examples
    --------
    >>> rows = as_rows([[1, 2], [3, 4], [5, 6]])
    >>> len(rows), rows.shape
    (3, (2,))
    """
    if hasattr(X, "tocsr"):
        return SparseRows(X)
    if hasattr(X, "detach"):  # a torch tensor
        X = X.detach().cpu()
        X = (X.float() if X.is_floating_point() and X.element_size() < 4 else X).numpy()  # NumPy has no bfloat16
    if isinstance(X, Mapping | set | str | bytes):
        raise AlignmentError(f"X must be rows of numbers, one for each item; got {type(X).__name__}.")
    if _is_dataset(X):
        return DatasetRows(X)
    if isinstance(X, np.ma.MaskedArray) and np.ma.is_masked(X):
        raise AlignmentError("X is an array with masked entries; fill them, or drop their rows.")
    if all(getattr(kind, "kind", "O") in "biuf" for kind in getattr(X, "dtypes", ["O"])):
        X = X.to_numpy(np.float64, na_value=np.nan)  # a pandas table, perhaps of nullable number types
    try:
        array = X if type(X) in (np.ndarray, np.memmap) else np.asarray(X)
    except ValueError:
        raise AlignmentError("X has rows of different shapes; every item needs the same features.") from None
    return _checked(ArrayRows(array))


def check_rows(rows: Rows, n_items: int) -> None:
    """Check that there is one row for each item.

    Parameters
    ----------
    rows : Rows
        Rows of X.
    n_items : int
        Number of items of the annotations.

    Raises
    ------
    AlignmentError
        Where the numbers differ.
    """
    if len(rows) != n_items:
        raise AlignmentError(
            f"X has {len(rows)} rows, but the annotations have {n_items} items; row i of X must be item i."
        )


@dataclass(frozen=True, eq=False)
class ArrayRows:
    """Rows of an array in memory or of a memory-mapped file.

    Parameters
    ----------
    array : array of shape (n_rows, ...)
        Numbers or booleans of any type, with at least two dimensions.

    Attributes
    ----------
    shape : tuple of int
        Shape of one row.

    Raises
    ------
    AlignmentError
        Where the array does not hold numbers, or a row has no feature.
    """

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
        """Shape of one row."""
        return self.array.shape[1:]

    def __len__(self) -> int:
        return len(self.array)

    def take(self, index: Index) -> Floats:
        """Rows by index, copied."""
        with np.errstate(over="ignore"):  # numbers that are too large become infinite, and are refused as such
            return self.array[index].astype(np.float32, copy=False)

    def whole(self) -> Any:
        """The array itself."""
        return self.array


@dataclass(frozen=True, eq=False)
class SparseRows:
    """Rows of a scipy sparse matrix, made dense a batch at a time.

    Parameters
    ----------
    matrix : sparse matrix of shape (n_rows, n_features)
        Numbers or booleans in any sparse format; kept as canonical CSR (sorted, without duplicates). The caller's
        matrix is not changed.

    Attributes
    ----------
    shape : tuple of int
        ``(n_features,)``.

    Raises
    ------
    AlignmentError
        Where the matrix is not numeric, has no column, or stores NaN, infinity or a number beyond 32-bit floats.
    """

    matrix: Any

    def __post_init__(self) -> None:
        if self.matrix.dtype.kind not in "biuf" or self.matrix.ndim != 2 or self.matrix.shape[1] == 0:
            raise AlignmentError(
                f"A sparse X must be a matrix of numbers with at least one column; this one is {self.matrix.dtype} "
                f"of shape {self.matrix.shape}."
            )
        matrix = self.matrix.tocsr()
        if not matrix.has_canonical_format:
            matrix = matrix.copy()  # `sum_duplicates` would change the caller's matrix
            matrix.sum_duplicates()
        object.__setattr__(self, "matrix", matrix)
        bad = np.flatnonzero(~np.isfinite(self.numbers()))  # entries that are not stored are 0
        if len(bad):
            _refuse_row(int(np.searchsorted(matrix.indptr, bad[0], side="right")) - 1)

    def numbers(self) -> Floats:
        """The stored entries as 32-bit floats, row after row."""
        with np.errstate(over="ignore"):
            return np.asarray(self.matrix.data.astype(np.float32))

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one row."""
        return (int(self.matrix.shape[1]),)

    def __len__(self) -> int:
        return int(self.matrix.shape[0])

    def take(self, index: Index) -> Floats:
        """Rows by index, dense."""
        with np.errstate(over="ignore"):
            return np.asarray(self.matrix[index].astype(np.float32).toarray())

    def whole(self) -> Any:
        """The CSR matrix itself."""
        return self.matrix


class DatasetRows:
    """Rows that an indexable object returns one by one, such as a torch ``Dataset`` that does not fit in memory.

    Parameters
    ----------
    getter : object with ``__len__`` and ``__getitem__``
        Returns row i, or a tuple whose first element is row i. Row 0 is read at once, to learn the shape.

    Attributes
    ----------
    shape : tuple of int
        Shape of one row.

    Raises
    ------
    AlignmentError
        Where there is no row, or row 0 has no feature.
    """

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
        """Rows by index; each is read and checked again."""
        rows = np.empty((len(index), *self.shape), np.float32)
        for place, i in enumerate(index.tolist()):
            row = self._row(i)
            if row.shape != self.shape:
                raise AlignmentError(f"Row {i} of X has shape {row.shape}, but row 0 has {self.shape}.")
            rows[place] = row
        check_finite(rows, index)
        return rows

    def whole(self) -> Any:
        """All rows in memory."""
        return self.take(np.arange(len(self)))

    def _row(self, i: int) -> Floats:
        """Row i as an array."""
        row = self.getter[i]
        row = row[0] if isinstance(row, tuple) else row
        try:
            return np.asarray(row.detach().cpu() if hasattr(row, "detach") else row, np.float32)
        except (TypeError, ValueError):
            raise AlignmentError(f"Row {i} of X is not an array of numbers but {type(row).__name__}.") from None


def check_finite(rows: Floats, index: Index) -> None:
    """Check that rows contain neither NaN nor infinity.

    Parameters
    ----------
    rows : array of shape (n, ...)
        Some rows of X.
    index : array of int of shape (n,)
        Their row numbers in X, for the message.

    Raises
    ------
    AlignmentError
        Where a row does; the message names the first one.
    """
    if not np.isfinite(rows).all():
        bad = np.flatnonzero(~np.isfinite(rows.reshape(len(rows), -1)).all(axis=1))
        _refuse_row(int(index[bad[0]]))


def _refuse_row(row: int) -> NoReturn:
    raise AlignmentError(f"X has NaN, infinity or a number beyond 32-bit floats in row {row}; fill or drop it.")


def fingerprint(rows: Rows) -> str:
    """Hash of the rows, by which a checkpoint recognises the data that it belongs to.

    Parameters
    ----------
    rows : Rows
        Rows of X.

    Returns
    -------
    str
        32 hexadecimal digits (BLAKE2b) that depend on the numbers alone: an array and a memory-mapped file of it have
        the same, and so have all formats of a sparse matrix. Of a dataset, 64 evenly spaced rows are read.
    """
    found = hashlib.blake2b(repr((len(rows), rows.shape)).encode(), digest_size=16)
    if isinstance(rows, SparseRows):
        for part in (rows.numbers(), rows.matrix.indices.astype(np.int64), rows.matrix.indptr.astype(np.int64)):
            found.update(part.data)
        return found.hexdigest()
    index = np.arange(len(rows))
    if isinstance(rows, DatasetRows):
        index = np.unique(np.linspace(0, len(rows) - 1, _SAMPLE).astype(np.intp))
    for first in range(0, len(index), _BLOCK):
        found.update(np.ascontiguousarray(rows.take(index[first : first + _BLOCK])).data)
    return found.hexdigest()


def _checked(rows: Rows) -> Rows:
    """The rows, after all of them were found finite."""
    for first in range(0, len(rows), _BLOCK):
        index = np.arange(first, min(first + _BLOCK, len(rows)))
        check_finite(rows.take(index), index)
    return rows


def _is_dataset(X: Any) -> bool:
    """Whether X returns rows by index and is neither a list nor convertible to an array."""
    is_array = isinstance(X, list | tuple | np.ndarray) or hasattr(X, "__array__") or hasattr(X, "__array_interface__")
    return not is_array and hasattr(X, "__getitem__") and hasattr(X, "__len__")
