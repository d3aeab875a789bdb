"""What the voting methods share: from summed votes to a posterior."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from manyhands.aggregation.base import Gold
from manyhands.em.decisions import overall
from manyhands.em.kernels import Array


def shares(votes: Array, gold: Gold) -> Array:
    """Votes divided by their sum; gold where it is known, the overall shares where nobody voted."""
    total = votes.sum(axis=1, keepdims=True)
    share = np.divide(votes, total, out=votes, where=total > 0)
    return with_gold_and_default(share, total[:, 0] <= 0, gold)


def with_gold_and_default(share: Array, unlabelled: npt.NDArray[np.bool_], gold: Gold) -> Array:
    """Shares with gold where it is known, and the overall shares for items of which nothing is known."""
    if gold is not None:
        known = np.flatnonzero(gold >= 0)
        share[known] = 0.0
        share[known, gold[known]] = 1.0
        unlabelled = unlabelled & (gold < 0)
    if unlabelled.any():
        share[unlabelled] = overall(share[~unlabelled].sum(axis=0))
    return share
