"""Rows with weights: columns of probabilities, and repeated answers that share one vote."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from manyhands.annotations import Annotations

Array = npt.NDArray[np.float64]


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
        Weight of each row.
    duplicates : {"last", "first", "all", "share", "error"}
        What happens to repeats: without weights, only "share" is left to do here; with weights, rows that give the
        same label to the same item again are repeats.

    Returns
    -------
    Annotations
    """
    codes, ids = [codes for codes, _ in parts], [ids for _, ids in parts]
    if weight is None and duplicates != "share":
        return Annotations._from_codes(codes, ids, **order)
    weight = np.ones(len(codes[0])) if weight is None else weight
    return Annotations._from_weighted(codes, ids, weight, duplicates)
