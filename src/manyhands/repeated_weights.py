"""Repeated answers with weights: as shares of one vote, or one row of each label."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from manyhands.exceptions import AnnotationError
from manyhands.label_weights import pair_of_label
from manyhands.repeated_pairs import keep_one
from manyhands.sorting import Codes

Array = npt.NDArray[np.float64]


def share_votes(codes: Sequence[Codes], weight: Array, n_classes: int) -> tuple[list[Codes], Array, int]:
    """Make the answers of one worker on one item one vote: each class gets its share of their weights.

    A worker with one answer on an item keeps its weight.

    Parameters
    ----------
    codes : sequence of three ndarrays of shape (n,) of int32
        Item, worker and label codes.
    weight : ndarray of shape (n,)
        Weight of each answer; above 0.
    n_classes : int
        Number of classes.

    Returns
    -------
    codes : list of three ndarrays of int32
        One row for each item, worker and class that was answered.
    weight : ndarray
        The shares.
    n_shared : int
        Number of answers that share a vote.

    Examples
    --------
    >>> answers = np.array([0, 0, 0]), np.array([0, 0, 0]), np.array([1, 1, 0])
    >>> codes, weight, n_shared = share_votes(answers, np.ones(3), 2)
    >>> codes[2].tolist(), weight.round(3).tolist(), n_shared
    ([0, 1], [0.333, 0.667], 3)
    """
    order = np.lexsort((weight, codes[2], codes[1], codes[0]))
    item, worker, label = (column[order] for column in codes)
    weight = weight[order]
    pair = pair_of_label(item, worker)
    n_answers = np.bincount(pair)
    total = np.where(n_answers > 1, np.bincount(pair, weights=weight), 1.0)
    cell = pair * np.int64(n_classes) + label
    first = np.flatnonzero(np.diff(cell, prepend=-1))
    share = np.add.reduceat(weight, first) / total[pair[first]] if len(first) else weight
    return [column[first] for column in (item, worker, label)], share, int(n_answers[n_answers > 1].sum())


def one_weight_each(
    codes: Sequence[Codes], weight: Array, sizes: tuple[int, int], duplicates: str
) -> npt.NDArray[np.bool_]:
    """Select one row of each item, worker and label, where a weighted label is given more than once.

    Parameters
    ----------
    codes : sequence of three ndarrays of shape (n,)
        Item, worker and label codes, in the order of the rows.
    weight : ndarray of shape (n,)
        Weight of each row.
    sizes : tuple of two int
        Number of workers and of classes.
    duplicates : {"last", "first", "all", "error"}
        Which row counts; "all" keeps all of them, so that their weights add up.

    Returns
    -------
    ndarray of shape (n,) of bool

    Raises
    ------
    AnnotationError
        Where `duplicates` is "error" and there are some.
    """
    if duplicates == "all":
        return np.ones(len(weight), bool)
    item, worker, label = codes
    n_workers, n_classes = sizes
    source: Any = worker.astype(np.int64) * n_classes + label
    keep = keep_one(item, source, n_workers * n_classes, which="first" if duplicates == "error" else duplicates)
    if duplicates == "error" and not keep.all():
        raise AnnotationError(
            f"Row {int(np.argmin(keep))}: the same worker gives the same label to the same item again; "
            f"{int((~keep).sum())} such row(s). Choose with duplicates='last', 'first', 'all' or 'share'."
        )
    return keep
