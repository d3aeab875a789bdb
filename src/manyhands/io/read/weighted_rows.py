"""Rows with weights: columns of probabilities, and repeated answers that share one vote."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from manyhands.annotations import Annotations
from manyhands.io.read.judgements import Judgements

Array = npt.NDArray[np.float64]


def weights_of(judgements: Judgements, kept: Any, n_kept: int, duplicates: str) -> Array | None:
    """Return the weights of the rows that count.

    Parameters
    ----------
    judgements : Judgements
        All rows.
    kept : slice or ndarray of bool
        Rows that count.
    n_kept : int
        Number of rows that count.
    duplicates : {"last", "first", "all", "share", "error"}
        What happens to repeated answers.

    Returns
    -------
    ndarray of shape (n_kept,) or None
        None for ordinary labels; 1 each where repeated answers share a vote.
    """
    if judgements.weight is not None:
        return np.asarray(judgements.weight.to_numpy()[kept])
    return np.ones(n_kept) if duplicates == "share" and judgements.workers_known else None


def build_annotations(
    parts: Sequence[tuple[npt.NDArray[np.int32], npt.NDArray[Any]]],
    order: dict[str, Any],
    weight: Array | None,
    duplicates: str,
) -> Annotations:
    """Return the rows that count as Annotations.

    Parameters
    ----------
    parts : sequence of three (codes, ids)
        Items, workers and labels of the rows, in the order of the file.
    order : dict of str to object
        What is known of the order of the items.
    weight : ndarray of shape (n_rows,) or None
        Weight of each row; None for ordinary labels, of which repeats are left out already.
    duplicates : {"last", "first", "all", "share", "error"}
        What happens to repeats: rows in which a worker gives the same label to the same item again; for "share" all
        rows of a worker on an item.

    Returns
    -------
    Annotations
    """
    codes, ids = [codes for codes, _ in parts], [ids for _, ids in parts]
    if weight is None:
        return Annotations._from_codes(codes, ids, **order)
    return Annotations._from_weighted(codes, ids, weight, duplicates)
