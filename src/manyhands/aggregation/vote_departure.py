"""Departure."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from manyhands.aggregation.base import Gold
from manyhands.annotations import Annotations
from manyhands.em.kernels import Array, vote_share
from manyhands.em.starts import gold_contradicts_vote

FEW_LABELS = 10  # of a worker: too few to judge them by
MIN_LOW_VOLUME_SHARE = 0.3  # of all labels
MAX_DEPARTURE = 0.05  # of the items, from the vote
MIN_CONCENTRATION_DROP = 0.01  # by which the sum of squared class shares falls where an overused class is named less
TIE = 1e-9


@dataclass(frozen=True)
class Departure:
    """How far a fit departs from the majority vote, on items on which the vote has one winner."""

    share: float  # of these items
    is_doubtful: bool  # it rests on ids of whom next to nothing is known, and nothing speaks for it


def departure_from_vote(annotations: Annotations, gold: Gold, posterior: Array) -> Departure:
    """Compare the labels of a fit with the vote's.

    Where much of the labels come from ids with a few labels each, a fit that departs from the vote follows what those
    ids have in common. That may be a class that some of them always name: then the fit names it less often than the
    vote does. It may as well be a shared error. Gold that contradicts the vote settles it; otherwise the vote is kept.
    """
    ranked = np.sort(share := vote_share(annotations), axis=1)
    clear = np.flatnonzero((ranked[:, -1] - np.append(0.0 * ranked[:, :1], ranked, axis=1)[:, -2]) > TIE)
    vote, found = share[clear].argmax(axis=1), posterior[clear].argmax(axis=1)
    departs = float(np.mean(vote != found)) if len(clear) else 0.0
    is_settled = departs <= MAX_DEPARTURE or gold_contradicts_vote(annotations, gold)
    if is_settled or low_volume_share(annotations) < MIN_LOW_VOLUME_SHARE:
        return Departure(departs, False)
    before, after = (np.sum((np.bincount(x, minlength=share.shape[1]) / len(clear)) ** 2) for x in (vote, found))
    return Departure(departs, bool(before - after < MIN_CONCENTRATION_DROP))


def low_volume_share(annotations: Annotations) -> float:
    """The share of the labels that come from workers with a few labels each."""
    n_labels = np.bincount(annotations.worker)
    return float(np.mean(n_labels[annotations.worker] <= FEW_LABELS))
