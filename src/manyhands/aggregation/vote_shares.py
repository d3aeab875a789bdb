"""From summed votes to a posterior, for the voting methods."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from manyhands.aggregation.base import Gold
from manyhands.em.decisions import overall
from manyhands.em.kernels import Array


def shares(votes: Array, gold: Gold) -> Array:
    """Votes divided by their sum, with gold where it is known.

    Parameters
    ----------
    votes : ndarray of shape (n_items, n_classes)
        Summed weights of the votes; overwritten.
    gold : ndarray of shape (n_items,) of int32 or None
        Class code of each item whose truth is known, -1 elsewhere.

    Returns
    -------
    ndarray of shape (n_items, n_classes)
        Rows sum to 1; the overall class shares for items without votes.
    """
    total = votes.sum(axis=1, keepdims=True)
    share = np.divide(votes, total, out=votes, where=total > 0)
    return with_gold_and_default(share, total[:, 0] <= 0, gold)


def with_gold_and_default(share: Array, unlabelled: npt.NDArray[np.bool_], gold: Gold) -> Array:
    """Vote shares with gold where it is known, and the overall class shares for items without labels and gold.

    Parameters
    ----------
    share : ndarray of shape (n_items, n_classes)
        Vote shares; overwritten.
    unlabelled : ndarray of shape (n_items,) of bool
        Items without votes.
    gold : ndarray of shape (n_items,) of int32 or None
        Class code of each item whose truth is known, -1 elsewhere.

    Returns
    -------
    ndarray of shape (n_items, n_classes)
    """
    if gold is not None:
        known = np.flatnonzero(gold >= 0)
        share[known] = 0.0
        share[known, gold[known]] = 1.0
        unlabelled = unlabelled & (gold < 0)
    if unlabelled.any():
        share[unlabelled] = overall(share[~unlabelled].sum(axis=0))
    return share
