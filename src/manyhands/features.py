"""Rows of X as arrays of 32-bit floats, whatever X is: dense, memory-mapped, sparse, images, or a dataset of rows.

Every estimator with features reads X through `as_rows`, so all of them accept the same inputs and refuse the same
mistakes. In this order: the names of the columns of X, the kinds of rows, rows and results in another order, and which
row belongs to which item (`match_rows`). Nothing here needs torch, and nothing is standardised: estimators do that
themselves.
"""

from __future__ import annotations

import hashlib
import sys
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn, Protocol

import numpy as np
import numpy.typing as npt

from manyhands._core.encoding import Order, as_ids, find_rows, inverse, n_found
from manyhands.annotations import Annotations
from manyhands.exceptions import AlignmentError, CrowdWarning

# ----------------------------------------------------------------------------------------------------
# Names of the columns of X: learned by `fit`, compared by every later call, by the rules of scikit-learn.
#
# A data frame is recognised by its attributes `shape` and `columns` (pandas, polars, narwhals and the like), so that no
# library of data frames is imported here.

Names = npt.NDArray[np.object_]
_SHOWN = 5  # names in a message
_ADVICE = "pass the columns in the order of fit: X[model.feature_names_in_]"


def feature_names_of(X: Any) -> Names | None:
    """Return the column names of a data frame.

    Examples
    --------
    >>> feature_names_of([[1.0, 2.0]]) is None
    True

    Shapes: returns (n_features,).
    """
    columns, shape = getattr(X, "columns", None), getattr(X, "shape", ())
    if not isinstance(columns, Iterable) or not isinstance(shape, tuple) or len(shape) != 2:
        return None
    names = list(columns)
    text = [isinstance(name, str) for name in names]
    if not any(text) or len(names) != shape[1]:
        return None
    if not all(text):
        other = names[text.index(False)]
        raise AlignmentError(
            f"Some column names of X are strings and others are not ({other!r} is {type(other).__name__}); make all of "
            "them strings: X.columns = X.columns.astype(str)."
        )
    array = np.empty(len(names), object)
    array[:] = [str(name) for name in names]
    return array


def check_feature_names(method: str, fitted: Names | None, given: Names | None) -> None:
    """Refuse columns with other names than those of `fit`, or in another order.

    Examples
    --------
    >>> a, b = np.array(["height", "width"], object), np.array(["width", "height"], object)
    >>> check_feature_names("TwoStage", a, a)
    >>> check_feature_names("TwoStage", a, b)
    Traceback (most recent call last):
    manyhands.exceptions.AlignmentError: X has its columns in another order ('width', 'height') than in the fit of \
this TwoStage ('height', 'width'); pass the columns in the order of fit: X[model.feature_names_in_].
    """
    if fitted is None or given is None or np.array_equal(fitted, given):
        return
    before, now = Counter(fitted.tolist()), Counter(given.tolist())
    unexpected, missing = [*(now - before).elements()], [*(before - now).elements()]
    if not unexpected and not missing:
        first = int(np.flatnonzero(fitted != given)[0])
        raise AlignmentError(
            f"X has its columns in another order ({_shown(given, first)}) than in the fit of this {method} "
            f"({_shown(fitted, first)}); {_ADVICE}."
        )
    parts = [f"lacks columns ({_shown(missing)}) that this {method} was fitted with"] if missing else []
    if unexpected:
        parts.append(f"has unexpected columns ({_shown(unexpected)}) that were not in the fit of this {method}")
    raise AlignmentError(f"X {' and '.join(parts)}; {_ADVICE}.")


def warn_of_missing_names(method: str, fitted: Names | None, given: Names | None) -> None:
    """Warn where only one of two X has column names, so that the order of the columns cannot be checked."""
    if (fitted is None) == (given is None):
        return
    if given is None:
        sentence = f"X has no column names, but this {method} was fitted with names"
    else:
        sentence = f"X has column names, but this {method} was fitted without names"
    message = f"feature_names: {sentence}, so the order of the columns is not checked."
    warnings.warn(message, CrowdWarning, stacklevel=_levels_to_caller())


def _levels_to_caller() -> int:
    """Return the `stacklevel`, seen from the function that calls this one, of the first frame outside the package."""
    package, level = __name__.partition(".")[0], 1
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == package:
        frame, level = frame.f_back, level + 1
    return level


def _shown(names: Any, first: int = 0) -> str:
    """Return a few names from a position on, in quotes, for a message."""
    few = ", ".join(repr(name) for name in names[first : first + _SHOWN])
    return ("..., " if first else "") + few + (", ..." if len(names) > first + _SHOWN else "")


# ----------------------------------------------------------------------------------------------------
# Rows of X: of an array, of a sparse matrix, or read one by one from a dataset.

Floats = npt.NDArray[np.float32]
Index = npt.NDArray[np.intp]
_BLOCK = 1024  # rows checked at a time, so that a memory-mapped file is never in memory as a whole
_SAMPLE = 64  # rows of a dataset that enter its fingerprint: reading all of them may take as long as an epoch


class Rows(Protocol):
    """Rows of X that can be taken by index."""

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
    """Check that there is one row for each item."""
    if len(rows) != n_items:
        raise AlignmentError(
            f"X has {len(rows)} rows, but the annotations have {n_items} items; row i of X must be item i."
        )


@dataclass(frozen=True, eq=False)
class ArrayRows:
    """Rows of an array in memory or of a memory-mapped file.

    Shapes: array (n_rows, ...).
    """

    array: npt.NDArray[Any]  # (n_rows, ...); numbers or booleans of any type, with at least two dimensions

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

    Shapes: matrix (n_rows, n_features).
    """

    # (n_rows, n_features); numbers or booleans in any sparse format; kept as canonical CSR (sorted, without
    # duplicates)
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
    """Rows that an indexable object returns one by one, such as a torch ``Dataset`` that does not fit in memory."""

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

    Shapes: rows (n, ...); index (n,).
    """
    if not np.isfinite(rows).all():
        bad = np.flatnonzero(~np.isfinite(rows.reshape(len(rows), -1)).all(axis=1))
        _refuse_row(int(index[bad[0]]))


def _refuse_row(row: int) -> NoReturn:
    raise AlignmentError(f"X has NaN, infinity or a number beyond 32-bit floats in row {row}; fill or drop it.")


def fingerprint(rows: Rows) -> str:
    """Hash of the rows, by which a checkpoint recognises the data that it belongs to."""
    digest = hashlib.blake2b(repr((len(rows), rows.shape)).encode(), digest_size=16)
    if isinstance(rows, SparseRows):
        for part in (rows.numbers(), rows.matrix.indices.astype(np.int64), rows.matrix.indptr.astype(np.int64)):
            digest.update(part.data)
        return digest.hexdigest()
    index = np.arange(len(rows))
    if isinstance(rows, DatasetRows):
        index = np.unique(np.linspace(0, len(rows) - 1, _SAMPLE).astype(np.intp))
    for first in range(0, len(index), _BLOCK):
        digest.update(np.ascontiguousarray(rows.take(index[first : first + _BLOCK])).data)
    return digest.hexdigest()


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


# ----------------------------------------------------------------------------------------------------
# Results of a fit in the order of the caller's items: fits run in the order of sorted ids.


def restore_rows(estimator: Any, given: Annotations, in_order: Annotations) -> None:
    """Bring all results of a fit that have a row per item into the order of the annotations that were given.

    This is the one place where it is done. A class names such attributes in `_of_items`, also those that hold fitted
    estimators; the checks of `manyhands.testing` find an attribute that is not named there.
    """
    if given.sorting_order is not None:
        _restore(estimator, inverse(given.sorting_order), given, in_order)


def _restore(estimator: Any, back: Order, given: Annotations, in_order: Annotations) -> None:
    """Bring the results of one estimator, and of those that it holds, into the order of the caller."""
    for name in estimator._of_items:
        value = vars(estimator).get(name)
        if hasattr(value, "_of_items"):
            _restore(value, back, given, in_order)
        elif value is in_order:
            setattr(estimator, name, given)
        elif value is not None:
            setattr(estimator, name, np.take(value, back, axis=0) if isinstance(value, np.ndarray) else value[back])


# ----------------------------------------------------------------------------------------------------
# Rows of X in another order, without reading or copying more of them than needed.


def reordered(rows: Rows, order: Index | None) -> Rows:
    """Return rows in another order."""
    if order is None:
        return rows
    if isinstance(rows, DatasetRows):
        return DatasetRows(RowGetter(rows.getter, order))
    return SparseRows(rows.matrix[order]) if isinstance(rows, SparseRows) else _Reordered(rows, order)


@dataclass(frozen=True, eq=False)
class RowGetter:
    """Some rows of an object that returns rows one at a time."""

    getter: Any
    index: Index

    def __len__(self) -> int:
        return len(self.index)

    def __getitem__(self, at: int) -> Any:
        return self.getter[int(self.index[at])]


@dataclass(frozen=True, eq=False)
class _Reordered:
    """Rows of an array in another order."""

    rows: Rows
    order: Index

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one row."""
        return self.rows.shape

    def __len__(self) -> int:
        return len(self.order)

    def take(self, index: Index) -> Floats:
        """Rows by index, copied."""
        return self.rows.take(self.order[index])

    def whole(self) -> Any:
        """A copy of the array."""
        return self.rows.whole()[self.order]


# ----------------------------------------------------------------------------------------------------
# Which row of X belongs to which item: by ids of the caller, by the index or a column of a data frame, or by place.
#
#     ids=               one id per row, or the name of a column
#     index of pandas    where it has a name or is not made of integers: every item must be in it
#     column             called item, task, id, item_id or task_id, with different values: every item must be in it
#     integer index      without a name: where the items are integers and all in it
#     otherwise          row i is item i
#
# Rows whose id no item has are items without labels; they follow the others. An item without a row is an error.

ID_COLUMNS = ("item", "task", "id", "itemid", "taskid")  # without case, spaces, hyphens and underscores


@dataclass(frozen=True, eq=False)
class MatchedRows:
    """Features and annotations of the same items."""

    X: Any  # the features as they were given, without a column of ids
    annotations: Annotations  # the annotations; rows without labels are their last items
    order: Order | None = None  # (n_items,); row of X of each item; None where row i is item i
    id_column: str | None = None  # the column of X that had the ids

    def rows(self) -> Rows:
        """Return the features of the items, in the order of the annotations."""
        rows = as_rows(self.X)
        if self.order is None:
            check_rows(rows, self.annotations.n_items)
        return reordered(rows, self.order)


def match_rows(X: Any, annotations: Annotations, ids: Any = None) -> MatchedRows:
    """Match the rows of X with the items of annotations by the rules of this module.

    Examples
    --------
    >>> votes = Annotations.from_triples(["b", "a"], ["ann", "ann"], ["yes", "no"])
    >>> found = match_rows([[0.0], [1.0], [2.0]], votes, ids=["a", "b", "c"])
    >>> found.order.tolist(), found.annotations.item_ids.tolist()
    ([1, 0, 2], ['b', 'a', 'c'])

    Shapes: ids (n_rows,).
    """
    column = None
    if isinstance(ids, str):
        column, ids = ids, _column(X, ids)
        named = f"column {column!r}"
    elif ids is not None:
        named = "ids"
    else:
        ids, named, column = _ids_of_frame(X, annotations.item_ids)
    if ids is None:
        return MatchedRows(X, annotations)
    values = as_ids(ids, "row")
    n_rows = X.shape[0] if hasattr(X, "shape") else len(X)
    if len(values) != n_rows:
        raise AlignmentError(f"There are {len(values)} ids, but X has {n_rows} rows; give one id per row.")
    rows, values = find_rows(values, annotations.item_ids, named)
    alone = np.setdiff1d(np.arange(n_rows), rows)
    if len(alone):
        rows, annotations = np.concatenate([rows, alone]), _with_items(annotations, values[alone])
    in_order = bool(np.array_equal(rows, np.arange(n_rows)))
    return MatchedRows(without_column(X, column), annotations, None if in_order else rows, column)


def without_column(X: Any, column: str | None) -> Any:
    """Return a data frame without one of its columns."""
    if column is None:
        return X
    return X.drop(columns=[column]) if hasattr(X, "iloc") else X.drop(column)


def id_column_of(X: Any) -> str | None:
    """Return the first column of a data frame with a usual name for ids."""
    names = feature_names_of(X) if hasattr(X, "drop") else None
    return None if names is None else next((name for name in names.tolist() if _plain(name) in ID_COLUMNS), None)


def _plain(name: str) -> str:
    """Return a name without case, spaces, hyphens and underscores."""
    return "".join(letter for letter in name.lower() if letter not in " -_")


def _column(X: Any, name: str) -> Any:
    """Return the column that the caller named."""
    names = feature_names_of(X)
    if names is None or name not in names.tolist():
        raise AlignmentError(f"ids names the column {name!r}, which X does not have; give one id per row, or a column.")
    return X[name]


def _ids_of_frame(X: Any, item_ids: npt.NDArray[Any]) -> tuple[Any, str, str | None]:
    """Return the ids that a data frame has, how messages call them, and their column; None where it has none."""
    index = X.index if hasattr(X, "iloc") else None
    is_integer = index is not None and getattr(index.dtype, "kind", "O") in "iu"
    if index is not None and (not is_integer or index.name is not None):
        return index, "index", None
    column = id_column_of(X)
    if column is not None:
        values = as_ids(X[column], "row")
        if len(set(values.tolist())) == len(values) and n_found(values, item_ids):
            return values, f"column {column!r}", column
    if index is not None and item_ids.dtype.kind in "iu":
        n_matched = n_found(index, item_ids)
        is_default = hasattr(index, "start") and index.start == 0 and index.step == 1
        if n_matched == len(item_ids) or (n_matched and not is_default):
            return index, "index", None
    return None, "", None


def _with_items(annotations: Annotations, more: npt.NDArray[Any]) -> Annotations:
    """Return the annotations with further items, which have no labels."""
    ids = as_ids([*annotations.item_ids.tolist(), *more.tolist()], "item")
    codes = annotations.item, annotations.worker, annotations.label
    extended = Annotations.from_codes(
        codes, (ids, annotations.worker_ids, annotations.classes), weight=annotations.weight
    )
    return extended.marked_like(annotations)
