"""From a posterior to one class per item: the largest probability, and what happens in a tie."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

_TIE = 1e-9  # probabilities closer than this are the same: sums of the same numbers in another order
_CHUNK = 1 << 18  # items


def pick_classes(
    posterior: Array, unlabelled: npt.NDArray[np.bool_]
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.bool_]]:
    """(n_items,) class codes, -1 for items without labels, and where there was a tie.

    A tie goes to the class that is larger overall, then to the one that comes first; never by the order of rows.

    >>> pick_classes(np.array([[0.5, 0.5], [0.1, 0.9]]), np.zeros(2, bool))
    (array([1, 1], dtype=int32), array([ True, False]))
    """
    n_items = len(posterior)
    total = np.round((posterior[~unlabelled] if unlabelled.any() else posterior).sum(axis=0), 6)
    rank = np.argsort(-total, kind="stable")  # classes, the largest first
    code = np.empty(n_items, np.int32)
    tied = np.zeros(n_items, bool)
    for first in range(0, n_items, _CHUNK):
        part = slice(first, first + _CHUNK)
        ranked = posterior[part][:, rank]
        best = ranked >= ranked.max(axis=1, keepdims=True) - _TIE
        code[part] = rank[best.argmax(axis=1)]
        tied[part] = best.sum(axis=1) > 1
    code[unlabelled] = -1
    tied &= ~unlabelled
    return code, tied
