"""The fit of Ordinal Dawid-Skene: EM with the ordinal noise model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from manyhands import elementary
from manyhands.annotations import Annotations
from manyhands.em.confusion_em import ConfusionEMFit, fit_confusion_em
from manyhands.em.e_step import Gold
from manyhands.em.kernels import Array
from manyhands.em.priors import EstimatedPrior
from manyhands.noise.ordinal import OrdinalNoise, OrdinalParams

PRIOR_ITEMS = 1.0  # pseudo-count of every class


@dataclass(frozen=True)
class OrdinalFit:
    """A fitted crowd.

    Attributes
    ----------
    em : ConfusionEMFit
        Outcome of EM.
    """

    em: ConfusionEMFit[OrdinalParams]

    @property
    def confusion(self) -> Array:
        """Confusion matrices, shape (n_workers, n_classes, n_classes)."""
        confusion: Array = elementary.exp(self.em.log_confusion)
        return confusion

    @property
    def log_prior(self) -> Array:
        """Log class prior, shape (n_classes,)."""
        return self.em.params.log_prior


def fit_ordinal(
    annotations: Annotations,
    gold: Gold,
    max_iter: int,
    tol: float,
    *,
    rank: Array,
    prior_sd: float,
    smoothing: float,
) -> OrdinalFit:
    """EM with the ordinal noise model.

    Parameters
    ----------
    annotations : Annotations
        The crowd's labels.
    gold : ndarray of shape (n_items,) of int32 or None
        Class code of each item whose truth is known, -1 elsewhere.
    max_iter : int
        Maximum number of passes.
    tol : float
        Relative tolerance of the objective.
    rank : ndarray of shape (n_classes,)
        Rank of each class on the scale, from 0.
    prior_sd : float
        Standard deviation of the prior of the tilts.
    smoothing : float
        Pseudo-labels of each grade for the base.

    Returns
    -------
    OrdinalFit
    """
    n_labels = np.bincount(annotations.label, minlength=annotations.n_classes) + 1.0
    noise = OrdinalNoise(rank, n_labels / n_labels.sum(), prior_sd, smoothing)
    prior = EstimatedPrior(PRIOR_ITEMS)
    return OrdinalFit(fit_confusion_em(annotations, noise, prior, gold=gold, max_iter=max_iter, tol=tol))
