"""From a posterior to one class per item: the largest probability, and what happens in a tie."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from manyhands.em.kernels import largest

Array = npt.NDArray[np.float64]

_TIE = 1e-9  # probabilities closer than this are the same: sums of the same numbers in another order


def pick_classes(
    posterior: Array, unlabelled: npt.NDArray[np.bool_], totals: Array | None = None
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.bool_]]:
    """(n_items,) class codes, -1 for items without labels, and where there was a tie.

    A tie goes to the class that is larger overall (by `totals`, or by these items), then to the one that comes first;
    never by the order of rows.

    >>> pick_classes(np.array([[0.5, 0.5], [0.1, 0.9]]), np.zeros(2, bool))
    (array([1, 1], dtype=int32), array([ True, False]))
    """
    totals = class_totals(posterior, unlabelled) if totals is None else totals
    rank = np.argsort(-np.round(totals, 6), kind="stable").astype(np.int32)  # classes, the largest first
    code, tied = largest(posterior, rank, _TIE)
    code[unlabelled] = -1
    tied &= ~unlabelled
    return code, tied


def class_totals(posterior: Array, unlabelled: npt.NDArray[np.bool_]) -> Array:
    """(n_classes,) how many of the other items are of each class."""
    # einsum adds row by row; sum(axis=0) takes four times as long over short rows
    return np.einsum("ik->k", posterior[~unlabelled] if unlabelled.any() else posterior)


def overall(totals: Array) -> Array:
    """(n_classes,) what is believed of an item of which nothing is known, from the totals of all others."""
    shares = totals + 1.0 / len(totals)
    return shares / shares.sum()
