"""Whether labels can be compared with one another at all."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from manyhands.annotations import Annotations


def n_labels_with_gold(annotations: Annotations, gold: npt.NDArray[np.int32] | None) -> npt.NDArray[np.int64]:
    """Number of sources of information on each item: its votes, and gold where it is known.

    Parameters
    ----------
    annotations : Annotations
        The crowd's labels.
    gold : ndarray of shape (n_items,) of int32 or None
        Class code of each item whose truth is known, -1 elsewhere.

    Returns
    -------
    ndarray of shape (n_items,) of int
    """
    return annotations.n_voters if gold is None else annotations.n_voters + (gold >= 0)


def has_no_redundancy(annotations: Annotations, gold: npt.NDArray[np.int32] | None) -> bool:
    """Whether no item has two labels, or a label and gold.

    Then labels cannot be compared, and nothing can be inferred about any worker.

    Parameters
    ----------
    annotations : Annotations
        The crowd's labels.
    gold : ndarray of shape (n_items,) of int32 or None
        Class code of each item whose truth is known, -1 elsewhere.

    Returns
    -------
    bool
    """
    n_sources = n_labels_with_gold(annotations, gold)
    return bool(n_sources.max(initial=0, where=annotations.n_labels > 0) <= 1)
