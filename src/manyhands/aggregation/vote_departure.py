"""How far a fit departs from the majority vote, and whether the departure can be relied on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from manyhands.annotations import Annotations
from manyhands.em.e_step import Gold
from manyhands.em.kernels import Array, vote_share
from manyhands.em.starts import gold_contradicts_vote

FEW_LABELS = 10  # of a worker; too few to estimate their parameters
MIN_LOW_VOLUME_SHARE = 0.3  # of all labels, from workers with few
MAX_DEPARTURE = 0.05  # share of items on which a fit may differ from the vote without further tests
MIN_CONCENTRATION_DROP = (
    0.01  # minimum decrease of the sum of squared class shares, when a fit names an overused class less
)
TIE = 1e-9


@dataclass(frozen=True)
class Departure:
    """Difference between a fit and the majority vote, on items on which the vote has one winner.

    Attributes
    ----------
    share : float
        Share of these items with another class.
    is_doubtful : bool
        Whether the fit rests on workers with very few labels, and nothing confirms it.
    """

    share: float
    is_doubtful: bool


def departure_from_vote(
    annotations: Annotations, gold: Gold, posterior: Array, worker_volume: npt.NDArray[Any] | None = None
) -> Departure:
    """Compare the most probable classes of a fit with those of the majority vote.

    Where a large share of the labels comes from workers with a few labels each, a fit that departs from the vote
    follows what those workers have in common. That may be one class that some of them always name: then the fit names
    it less often than the vote does. It may as well be a shared error. Gold that contradicts the vote decides;
    otherwise the fit is doubtful.

    Parameters
    ----------
    annotations : Annotations
        The crowd's labels.
    gold : ndarray of shape (n_items,) of int32 or None
        Class code of each item whose truth is known, -1 elsewhere.
    posterior : ndarray of shape (n_items, n_classes)
        Posterior of the fit.
    worker_volume : ndarray of shape (n_workers,), default=None
        Number of labels of each worker in the whole crowd, where the annotations are a sample of it.

    Returns
    -------
    Departure
    """
    ranked = np.sort(share := vote_share(annotations), axis=1)
    clear = np.flatnonzero((ranked[:, -1] - np.append(0.0 * ranked[:, :1], ranked, axis=1)[:, -2]) > TIE)
    vote, found = share[clear].argmax(axis=1), posterior[clear].argmax(axis=1)
    departs = float(np.mean(vote != found)) if len(clear) else 0.0
    is_settled = departs <= MAX_DEPARTURE or gold_contradicts_vote(annotations, gold)
    if is_settled or low_volume_share(annotations, worker_volume) < MIN_LOW_VOLUME_SHARE:
        return Departure(departs, False)
    before, after = (np.sum((np.bincount(x, minlength=share.shape[1]) / len(clear)) ** 2) for x in (vote, found))
    return Departure(departs, bool(before - after < MIN_CONCENTRATION_DROP))


def low_volume_share(annotations: Annotations, worker_volume: npt.NDArray[Any] | None = None) -> float:
    """Share of the labels that come from workers with at most `FEW_LABELS` labels.

    Parameters
    ----------
    annotations : Annotations
        The crowd's labels.
    worker_volume : ndarray of shape (n_workers,), default=None
        Number of labels of each worker in the whole crowd, where the annotations are a sample of it.

    Returns
    -------
    float
    """
    if worker_volume is not None:
        return float(worker_volume[worker_volume <= FEW_LABELS].sum() / max(worker_volume.sum(), 1))
    is_low_volume = annotations.worker_volume[annotations.worker] <= FEW_LABELS
    if annotations.weight is not None:
        return float(np.average(is_low_volume, weights=annotations.weight))
    return float(np.mean(is_low_volume))
