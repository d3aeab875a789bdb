"""Weights of labels: probabilities of a judge, or the shares of repeated answers.

A label of weight w counts as w labels: its log-likelihood is multiplied by w in the E step, and it adds w to the counts
of the M step. Labels of one worker on one item whose weights sum to 1 are one vote that is divided among the classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from manyhands.exceptions import AlignmentError, AnnotationError
from manyhands.sorting import Codes

Array = npt.NDArray[np.float64]


def check_weights(weights: Any, n_labels: int, *, above: float = 0.0) -> Array:
    """Return weights as an array of floats, one for each label.

    Parameters
    ----------
    weights : array-like of shape (n_labels,)
        The weights.
    n_labels : int
        Number of labels.
    above : float, default=0.0
        Weights must be larger than this; -1 allows 0, for labels that are dropped.

    Returns
    -------
    ndarray of shape (n_labels,)

    Raises
    ------
    AlignmentError
        Where there are more or fewer weights than labels.
    AnnotationError
        Where a weight is no number, not finite, or too small.
    """
    try:
        array = np.array(list(weights) if not hasattr(weights, "__len__") else weights, np.float64)
    except (TypeError, ValueError):
        raise AnnotationError("Weights of labels must be numbers, one for each label.") from None
    if array.shape != (n_labels,):
        raise AlignmentError(f"There are {n_labels} labels, but weights of shape {array.shape}: give one for each.")
    wrong = np.flatnonzero(~(np.isfinite(array) & (array > above) & (array >= 0)))
    if len(wrong):
        least = "above 0" if above >= 0 else "at least 0"
        raise AnnotationError(
            f"Row {wrong[0]}: the weight of a label is {array[wrong[0]]:g}, but weights must be finite and {least}; "
            f"{len(wrong)} such row(s)."
        )
    return array


def sort_weighted(triples: Sequence[npt.NDArray[Any]], weight: Array) -> tuple[list[Codes], Array | None]:
    """Sort by item, worker, label, then weight; weights that are all 1 are dropped.

    Parameters
    ----------
    triples : sequence of three ndarrays of shape (n,)
        Item, worker and label codes.
    weight : ndarray of shape (n,)
        Weight of each label.

    Returns
    -------
    triples : list of three ndarrays of shape (n,) of int32
        Sorted codes.
    weight : ndarray of shape (n,) or None
        Sorted weights; None where all are 1, since such labels are ordinary ones.

    Examples
    --------
    >>> codes, weight = sort_weighted([np.array([1, 0]), np.array([0, 0]), np.array([0, 1])], np.array([1.0, 0.5]))
    >>> codes[0].tolist(), weight.tolist()
    ([0, 1], [0.5, 1.0])
    """
    item, worker, label = triples
    order = np.lexsort((weight, label, worker, item))
    columns = [column[order].astype(np.int32, copy=False) for column in triples]
    return columns, None if bool(np.all(weight == 1.0)) else weight[order]


def pair_of_label(item: Codes, worker: Codes) -> npt.NDArray[np.int64]:
    """Number the pairs of item and worker, which are sorted, from 0.

    Parameters
    ----------
    item : ndarray of shape (n,) of int32
        Item codes, ascending.
    worker : ndarray of shape (n,) of int32
        Worker codes, ascending within an item.

    Returns
    -------
    ndarray of shape (n,) of int
        Number of the pair of each label.

    Examples
    --------
    >>> pair_of_label(np.array([0, 0, 0, 1]), np.array([0, 0, 2, 2])).tolist()
    [0, 0, 1, 2]
    """
    is_new = np.ones(len(item), bool)
    is_new[1:] = (item[1:] != item[:-1]) | (worker[1:] != worker[:-1])
    return np.cumsum(is_new) - 1


def strongest_of(pair: npt.NDArray[np.int64], weight: Array) -> npt.NDArray[np.int64]:
    """Return the position of the label with the largest weight of each pair; among equal ones the first.

    Parameters
    ----------
    pair : ndarray of shape (n,) of int
        Pair of each label, ascending and without gaps.
    weight : ndarray of shape (n,)
        Weight of each label.

    Returns
    -------
    ndarray of shape (n_pairs,) of int

    Examples
    --------
    >>> strongest_of(np.array([0, 0, 1]), np.array([0.2, 0.8, 1.0])).tolist()
    [1, 2]
    """
    order = np.lexsort((np.arange(len(pair)), -weight, pair))
    first = np.flatnonzero(np.diff(pair[order], prepend=-1))
    return np.asarray(order[first])
