"""How far the labels of an item agree: label certainty, and groups of items from less to more certain.

S_i = 1 / (v_i + floor),   v_i = half the mean squared distance of one-hot labels from their mean
                                = (1 - sum_k p_ik^2) / 2,   which is p (1 - p) for two classes

Reference: W. Wang et al., Learning from imbalanced crowdsourced labeled data, SDM; Eq. 2.4 in a form for many classes.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from manyhands.annotations import Annotations
from manyhands.em.kernels import vote_share

Array = npt.NDArray[np.float64]

N_GROUPS = 4
_FEW_LEVELS = 8  # up to so many distinct certainties, as equally many votes on each item give, each is a group
_DIGITS = 12  # certainties that agree so far are the same: sums of the same shares in another order


def label_certainty(
    annotations: Annotations,
    gold: npt.NDArray[np.int32] | None = None,
    *,
    floor: float = 0.01,
    smoothing: float = 0.5,
) -> Array:
    """(n_items,) the certainty of each item: at most 1 / floor, which is that of gold.

    Parameters
    ----------
    annotations : the labels
    gold : (n_items,) codes, -1 where the truth is not known
    floor : added to the variance; with next to none, two items are either equally certain or worlds apart
    smoothing : votes added for every class, so that one vote is not as certain as ten that agree; 0 is Eq. 2.4 itself

    >>> votes = Annotations.from_matrix([[0, 0, 0, 0], [0, 0, 0, 1], [0, 0, 1, 1], [0, -1, -1, -1]])
    >>> label_certainty(votes, smoothing=0).round(2).tolist()
    [100.0, 5.06, 3.85, 100.0]
    >>> label_certainty(votes).round(2).tolist()
    [10.0, 4.55, 3.85, 5.06]
    """
    n_labels, n_classes = annotations.n_labels[:, None], max(annotations.n_classes, 1)
    with np.errstate(invalid="ignore"):
        share = (vote_share(annotations) * n_labels + smoothing) / (n_labels + smoothing * n_classes)
    share[annotations.n_labels == 0] = 1.0 / n_classes  # nobody knows
    variance = (1.0 - np.square(share).sum(axis=1)) / 2
    if gold is not None:
        variance[gold >= 0] = 0.0
    return np.asarray(1.0 / (np.maximum(variance, 0.0) + floor))


def certainty_groups(certainty: Array) -> npt.NDArray[np.int64]:
    """(n_items,) the group of each item, from 0 for the least certain to 3 for the most; equal items stay together.

    A few distinct levels are groups as they are: the three highest, and all below. More are cut into quarters.

    >>> certainty_groups(np.array([5.0, 1.0, 2.0, 2.0, 9.0, 0.5])).tolist()
    [2, 0, 1, 1, 3, 0]
    """
    if len(certainty) == 0:
        return np.zeros(0, np.int64)
    level, place, size = np.unique(np.round(certainty, _DIGITS), return_inverse=True, return_counts=True)
    if len(level) <= _FEW_LEVELS:
        group = np.maximum(np.arange(len(level)) - len(level) + N_GROUPS, 0)
    else:
        middle = (np.cumsum(size) - size / 2) / len(certainty)  # of the ranks of a level
        group = (N_GROUPS * middle).astype(np.int64)
    return np.asarray(group[place].astype(np.int64))
