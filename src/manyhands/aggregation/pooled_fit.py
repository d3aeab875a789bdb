"""The two fits of Pooled Dawid-Skene: worker types by variational EM, and one accuracy for all workers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

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
    worker_volume = annotations.worker_volume
    single_class = bool(annotations.label.min(initial=0) == annotations.label.max(initial=0))
    few_items = bool(
        np.count_nonzero(annotations.n_labels) < annotations.n_classes
    )  # confusion matrices are dominated by the prior
    use_newton = is_low_volume(annotations) or single_class or few_items
    group = exchangeable_workers(annotations, gold)
    if group is not None:
        annotations = merge_workers(annotations, group)
    noise = pooled_noise(annotations.n_classes, worker_volume, group, prior_strength, use_newton)
    prior = EstimatedPrior(PRIOR_ITEMS)
    table = fit_confusion_em(annotations, noise, prior, gold=gold, max_iter=max_iter, tol=tol, stop_early=use_newton)
    return fit_of_pooled_em(table, noise, group)


def pooled_noise(
    n_classes: int,
    worker_volume: npt.NDArray[Any],
    group: npt.NDArray[np.int64] | None,
    prior_strength: float,
    use_newton: bool,
) -> PooledNoise:
    """The noise model of a crowd, in which exchangeable workers are one.

    Parameters
    ----------
    n_classes : int
        Number of classes.
    worker_volume : ndarray of shape (n_workers,)
        Number of labels of each worker.
    group : ndarray of shape (n_workers,) of int or None
        Group of each worker, numbered from 0; None where none are merged.
    prior_strength : float
        Pseudo-count of the one-coin type, as a share of the workers.
    use_newton : bool
        Whether the Beta of the one-coin type is updated by Newton's method.

    Returns
    -------
    PooledNoise
    """
    n_labels, size = worker_volume.astype(float), None
    if group is not None:
        size = np.bincount(group).astype(float)
        n_labels = np.bincount(group, weights=n_labels) / size
    return PooledNoise(n_classes, n_labels, prior_strength, size, use_newton)


def fit_of_pooled_em(table: ConfusionEMFit[Any], noise: PooledNoise, group: npt.NDArray[np.int64] | None) -> PooledFit:
    """The fitted crowd from the outcome of EM with worker types.

    Parameters
    ----------
    table : ConfusionEMFit
        Outcome of EM.
    noise : PooledNoise
        The noise model.
    group : ndarray of shape (n_workers,) of int or None
        Group of each worker, where exchangeable ones are merged.

    Returns
    -------
    PooledFit
        With an entry for each worker.
    """
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
    merged = merge_workers(annotations, np.zeros(annotations.n_workers, np.int64))
    noise, prior = one_accuracy_model(annotations.n_classes)
    table = fit_confusion_em(merged, noise, prior, gold=gold, max_iter=max_iter, tol=tol)
    return fit_of_one_accuracy(table, noise, annotations.n_workers)


def one_accuracy_model(n_classes: int) -> tuple[OneCoinNoise, FixedPrior]:
    """Noise model and class prior of `fit_one_accuracy`, for a crowd merged into one worker.

    Parameters
    ----------
    n_classes : int
        Number of classes.

    Returns
    -------
    noise : OneCoinNoise
        One accuracy.
    prior : FixedPrior
        Equally frequent classes.
    """
    uniform = FixedPrior(np.full(n_classes, -elementary.log(n_classes)))
    return OneCoinNoise(n_classes, 1.0, PRIOR_ACCURACY), uniform


def fit_of_one_accuracy(table: ConfusionEMFit[Any], noise: OneCoinNoise, n_workers: int) -> PooledFit:
    """The fitted crowd from the outcome of EM with one accuracy.

    Parameters
    ----------
    table : ConfusionEMFit
        Outcome of EM on the crowd merged into one worker.
    noise : OneCoinNoise
        The noise model.
    n_workers : int
        Number of workers.

    Returns
    -------
    PooledFit
        With an entry for each worker.
    """
    one = elementary.exp(noise.log_confusion(table.params.noise))
    types = PooledNoise(noise.n_classes, np.zeros(0)).types
    p_type = np.tile(np.eye(len(types))[0], (n_workers, 1))
    return PooledFit(table, np.repeat(one, n_workers, axis=0), p_type, types, one[0])
