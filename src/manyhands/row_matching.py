"""Which row of X belongs to which item: by ids of the caller, by the index or a column of a data frame, or by place.

    ids=               one id per row, or the name of a column
    index of pandas    where it has a name or is not made of integers: every item must be in it
    column             called item, task, id, item_id or task_id, with different values: every item must be in it
    integer index      without a name: where the items are integers and all in it
    otherwise          row i is item i

Rows whose id no item has are items without labels; they follow the others. An item without a row is an error.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from manyhands.annotations import Annotations
from manyhands.encoding import as_ids
from manyhands.exceptions import AlignmentError
from manyhands.feature_names import feature_names_of
from manyhands.features import Rows, as_rows, check_rows
from manyhands.id_matching import find_rows, n_found
from manyhands.item_order import Order
from manyhands.row_order import reordered

ID_COLUMNS = ("item", "task", "id", "itemid", "taskid")  # without case, spaces, hyphens and underscores


@dataclass(frozen=True, eq=False)
class MatchedRows:
    """Features and annotations of the same items.

    Attributes
    ----------
    X : object
        The features as they were given, without a column of ids.
    annotations : Annotations
        The annotations; rows without labels are their last items.
    order : ndarray of shape (n_items,) of int or None
        Row of X of each item; None where row i is item i.
    id_column : str or None
        The column of X that had the ids.
    """

    X: Any
    annotations: Annotations
    order: Order | None = None
    id_column: str | None = None

    def rows(self) -> Rows:
        """Return the features of the items, in the order of the annotations."""
        rows = as_rows(self.X)
        if self.order is None:
            check_rows(rows, self.annotations.n_items)
        return reordered(rows, self.order)


def match_rows(X: Any, annotations: Annotations, ids: Any = None) -> MatchedRows:
    """Match the rows of X with the items of annotations by the rules of this module.

    Parameters
    ----------
    X : array-like, sparse matrix, tensor, table or dataset
        Features.
    annotations : Annotations
        Labels.
    ids : sequence of shape (n_rows,), str or None, default=None
        Id of each row, or the name of a column of X that has them.

    Returns
    -------
    MatchedRows

    Raises
    ------
    AlignmentError
        Where an item has no row, an id occurs twice, or the number of ids is not that of the rows.

    Examples
    --------
    >>> votes = Annotations.from_triples(["b", "a"], ["ann", "ann"], ["yes", "no"])
    >>> found = match_rows([[0.0], [1.0], [2.0]], votes, ids=["a", "b", "c"])
    >>> found.order.tolist(), found.annotations.item_ids.tolist()
    ([1, 0, 2], ['b', 'a', 'c'])
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
    """Return a data frame without one of its columns.

    Parameters
    ----------
    X : data frame
        Of pandas or polars.
    column : str or None
        The column; None leaves X as it is.

    Returns
    -------
    data frame
    """
    if column is None:
        return X
    return X.drop(columns=[column]) if hasattr(X, "iloc") else X.drop(column)


def id_column_of(X: Any) -> str | None:
    """Return the first column of a data frame with a usual name for ids.

    Parameters
    ----------
    X : object
        Features.

    Returns
    -------
    str or None
    """
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
        found = n_found(index, item_ids)
        is_default = hasattr(index, "start") and index.start == 0 and index.step == 1
        if found == len(item_ids) or (found and not is_default):
            return index, "index", None
    return None, "", None


def _with_items(annotations: Annotations, more: npt.NDArray[Any]) -> Annotations:
    """Return the annotations with further items, which have no labels."""
    ids = as_ids([*annotations.item_ids.tolist(), *more.tolist()], "item")
    codes = annotations.item, annotations.worker, annotations.label
    made = Annotations._from_codes(codes, (ids, annotations.worker_ids, annotations.classes), weight=annotations.weight)
    return made.marked_like(annotations)
