"""Fit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from manyhands import elementary
from manyhands.aggregation.base import PRIOR_ACCURACY, Gold
from manyhands.annotations import Annotations
from manyhands.em.confusion_em import ConfusionEMFit, fit_confusion_em
from manyhands.em.exchangeable import exchangeable_workers, merge_workers
from manyhands.em.kernels import Array
from manyhands.em.priors import EstimatedPrior, FixedPrior
from manyhands.noise.one_coin import OneCoinNoise
from manyhands.noise.pooled import PooledNoise

PRIOR_ITEMS = 1.0  # items added to every class
LOW_VOLUME_CROWDS = ((5_000, 5.0), (500, 1.5))  # at least so many workers, with at most so many labels each


@dataclass(frozen=True)
class PooledFit:
    """A fitted crowd."""

    table: ConfusionEMFit[Any]
    confusion: Array  # (n_workers, n_classes, n_classes)
    p_type: Array  # (n_workers, n_types)
    types: tuple[str, ...]
    unseen_worker: Array  # (n_classes, n_classes) of a worker of whom nothing is known

    @property
    def no_redundancy(self) -> bool:
        return self.table.no_redundancy

    @property
    def posterior(self) -> Array:
        assert self.table.final.posterior is not None
        return self.table.final.posterior

    @property
    def log_prior(self) -> Array:
        return self.table.params.log_prior


Fitter = Callable[[Annotations, Gold, int, float], PooledFit]  # (annotations, gold, max_iter, tol) -> fit


def fit_pooled(annotations: Annotations, gold: Gold, max_iter: int, tol: float, *, prior_strength: float) -> PooledFit:
    """Variational EM; workers whom nothing tells apart are fitted as one."""
    n_labels = np.bincount(annotations.worker, minlength=annotations.n_workers).astype(float)
    single_class = bool(annotations.label.min(initial=0) == annotations.label.max(initial=0))
    few_items = bool(np.count_nonzero(annotations.n_labels) < annotations.n_classes)  # tables are mostly prior
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
    """One accuracy for all workers and no class prior: the labels are the vote's, and the confidence is a model's."""
    n_workers, n_classes = annotations.n_workers, annotations.n_classes
    merged = merge_workers(annotations, np.zeros(n_workers, np.int64))
    noise = OneCoinNoise(n_classes, 1.0, PRIOR_ACCURACY)
    prior = FixedPrior(np.full(n_classes, -elementary.log(n_classes)))
    table = fit_confusion_em(merged, noise, prior, gold=gold, max_iter=max_iter, tol=tol)
    one = elementary.exp(noise.log_table(table.params.noise))
    types = PooledNoise(n_classes, np.zeros(0)).types
    p_type = np.tile(np.eye(len(types))[0], (n_workers, 1))
    return PooledFit(table, np.repeat(one, n_workers, axis=0), p_type, types, one[0])


def is_low_volume(annotations: Annotations) -> bool:
    """Whether the workers are many, with few labels each: little can be known of any, and their tables are the work."""
    n_active = np.count_nonzero(np.bincount(annotations.worker))
    return any(n_active >= least and annotations.n_annotations <= most * n_active for least, most in LOW_VOLUME_CROWDS)
