"""The two fits of Pooled Dawid-Skene: worker types by variational EM, and one accuracy for all workers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from manyhands import elementary
from manyhands.aggregation.em_fit import PRIOR_ACCURACY
from manyhands.aggregation.tempering import is_low_volume
from manyhands.annotations import Annotations
from manyhands.em.confusion_em import ConfusionEMFit, fit_confusion_em
from manyhands.em.e_step import Gold
from manyhands.em.exchangeable import exchangeable_workers, merge_workers
from manyhands.em.kernels import Array
from manyhands.em.priors import EstimatedPrior, FixedPrior
from manyhands.noise.one_coin import OneCoinNoise
from manyhands.noise.pooled import PooledNoise

PRIOR_ITEMS = 1.0  # pseudo-count of every class


@dataclass(frozen=True)
class PooledFit:
    """A fitted crowd.

    Attributes
    ----------
    table : ConfusionEMFit
        Outcome of EM.
    confusion : ndarray of shape (n_workers, n_classes, n_classes)
        Expected confusion matrices.
    p_type : ndarray of shape (n_workers, n_types)
        Posterior p(type) of each worker.
    types : tuple of str
        Names of the worker types.
    unseen_worker : ndarray of shape (n_classes, n_classes)
        Expected confusion matrix of a worker without labels.
    """

    table: ConfusionEMFit[Any]
    confusion: Array
    p_type: Array
    types: tuple[str, ...]
    unseen_worker: Array

    @property
    def no_redundancy(self) -> bool:
        """Whether no item has two labels, or a label and gold."""
        return self.table.no_redundancy

    @property
    def posterior(self) -> Array:
        """p(truth | labels), shape (n_items, n_classes)."""
        assert self.table.final.posterior is not None
        return self.table.final.posterior

    @property
    def log_prior(self) -> Array:
        """Log class prior log p(truth), shape (n_classes,)."""
        return self.table.params.log_prior


Fitter = Callable[[Annotations, Gold, int, float], PooledFit]  # (annotations, gold, max_iter, tol) -> fit


def fit_pooled(annotations: Annotations, gold: Gold, max_iter: int, tol: float, *, prior_strength: float) -> PooledFit:
    """Variational EM with worker types; exchangeable workers are fitted as one.

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
    prior_strength : float
        Pseudo-count of the one-coin type, as a share of the workers.

    Returns
    -------
    PooledFit
    """
    n_labels = annotations.worker_volume.astype(float)
    single_class = bool(annotations.label.min(initial=0) == annotations.label.max(initial=0))
    few_items = bool(
        np.count_nonzero(annotations.n_labels) < annotations.n_classes
    )  # confusion matrices are dominated by the prior
    use_newton = is_low_volume(annotations) or single_class or few_items
    group, size = exchangeable_workers(annotations, gold), None
    if group is not None:
        annotations, size = merge_workers(annotations, group), np.bincount(group).astype(float)
        n_labels = np.bincount(group, weights=n_labels) / size
    noise = PooledNoise(annotations.n_classes, n_labels, prior_strength, size, use_newton)
    prior = EstimatedPrior(PRIOR_ITEMS)
    table = fit_confusion_em(annotations, noise, prior, gold=gold, max_iter=max_iter, tol=tol, stop_early=use_newton)
    params = table.params.noise
    confusion, p_type = noise.confusion(params), params.workers.p_type.copy()
    if group is not None:
        confusion, p_type = confusion[group], p_type[group]
    return PooledFit(table, confusion, p_type, noise.types, noise.unseen_worker(params))


def fit_one_accuracy(annotations: Annotations, gold: Gold, max_iter: int, tol: float) -> PooledFit:
    """EM with one accuracy for all workers and a uniform class prior: the labels are those of the majority vote.

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

    Returns
    -------
    PooledFit
        All workers have the one-coin type and the same confusion matrix.
    """
    n_workers, n_classes = annotations.n_workers, annotations.n_classes
    merged = merge_workers(annotations, np.zeros(n_workers, np.int64))
    noise = OneCoinNoise(n_classes, 1.0, PRIOR_ACCURACY)
    prior = FixedPrior(np.full(n_classes, -elementary.log(n_classes)))
    table = fit_confusion_em(merged, noise, prior, gold=gold, max_iter=max_iter, tol=tol)
    one = elementary.exp(noise.log_confusion(table.params.noise))
    types = PooledNoise(n_classes, np.zeros(0)).types
    p_type = np.tile(np.eye(len(types))[0], (n_workers, 1))
    return PooledFit(table, np.repeat(one, n_workers, axis=0), p_type, types, one[0])
