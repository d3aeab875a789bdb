"""Items x workers matrices of labels, in all the forms in which people have them."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
import numpy.typing as npt

from manyhands.encoding import Values, as_ids, encode, refuse_repeats
from manyhands.exceptions import AlignmentError, AnnotationError


def encode_matrix(
    matrix: Any, missing: Hashable, item_ids: Values | None, worker_ids: Values | None, classes: Values | None
) -> tuple[list[npt.NDArray[Any]], list[npt.NDArray[Any]]]:
    """Convert a matrix of items x workers into codes.

    Parameters
    ----------
    matrix : array-like of shape (n_items, n_workers)
        Labels.
    missing : hashable
        Value of cells without a label; NaN and None also count as missing.
    item_ids : sequence of shape (n_items,) or None
        Names of the rows; None numbers them.
    worker_ids : sequence of shape (n_workers,) or None
        Names of the columns; None numbers them.
    classes : sequence or None
        All classes; None takes the labels that occur, sorted.

    Returns
    -------
    codes : list of three ndarrays of shape (n_annotations,)
        Item, worker and class codes.
    ids : list of three ndarrays
        The items, workers and classes by code.
    """
    array = as_matrix(matrix)
    item, worker = np.nonzero(is_present(array, missing))
    label, class_ids = encode(array[item, worker], classes, "label")
    row_ids = ids_of_axis(item_ids, array.shape[0], "item")
    column_ids = ids_of_axis(worker_ids, array.shape[1], "worker")
    return [item, worker, label], [row_ids, column_ids, class_ids]


def as_matrix(matrix: Any) -> npt.NDArray[Any]:
    """Convert a table of items x workers into an array in which every label keeps its value.

    Parameters
    ----------
    matrix : array-like of shape (n_items, n_workers)
        Nested lists, a NumPy array (masked or not) or a data frame.

    Returns
    -------
    ndarray of shape (n_items, n_workers)

    Raises
    ------
    AnnotationError
        Where rows differ in length or there are not two dimensions.
    """
    try:
        array = np.asarray(matrix)
        if array.dtype.kind in "US" and not isinstance(matrix, np.ndarray):
            array = np.array(matrix, object)  # NumPy would turn -1 among strings into "-1"
    except ValueError:
        raise AnnotationError("A label matrix needs rows of equal length.") from None
    if array.ndim != 2:
        raise AnnotationError(f"A label matrix is items x workers; this one has {array.ndim} dimension(s).")
    if isinstance(matrix, np.ma.MaskedArray):
        array = array.astype(object)
        array[np.ma.getmaskarray(matrix)] = None
    return array


def ids_of_axis(ids: Values | None, size: int, role: str) -> npt.NDArray[Any]:
    """Names of the rows or columns of a matrix.

    Parameters
    ----------
    ids : sequence or None
        One name for each row or column; None numbers them from 0.
    size : int
        Number of rows or columns.
    role : str
        "item" or "worker", for error messages.

    Returns
    -------
    ndarray of shape (size,)

    Raises
    ------
    AlignmentError
        Where their number is wrong.
    AnnotationError
        Where a name occurs twice.
    """
    names = np.arange(size) if ids is None else as_ids(ids, role)
    if len(names) != size:
        raise AlignmentError(f"The matrix has {size} {role}s, but {len(names)} {role}_ids were given.")
    refuse_repeats(names.tolist(), role)
    return names


def is_present(matrix: npt.NDArray[Any], missing: Hashable) -> npt.NDArray[np.bool_]:
    """Whether each cell of a label matrix holds a label.

    Parameters
    ----------
    matrix : ndarray of shape (n_items, n_workers)
        The labels.
    missing : hashable
        Value of cells without a label; NaN and None also count as missing.

    Returns
    -------
    ndarray of shape (n_items, n_workers) of bool
    """
    present: npt.NDArray[np.bool_] = (matrix != missing) & (matrix == matrix)  # NaN differs from itself
    if matrix.dtype == object:
        present &= np.array([[value is not None for value in row] for row in matrix]).reshape(matrix.shape)
    return present
