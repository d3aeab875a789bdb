"""What an aggregator infers, and EM with the parameters that several aggregators share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

import numpy as np

from manyhands import elementary
from manyhands.annotations import Annotations
from manyhands.em.confusion_em import ConfusionEMFit, fit_confusion_em, n_labels_with_gold
from manyhands.em.e_step import Gold
from manyhands.em.kernels import Array
from manyhands.em.priors import ClassPrior
from manyhands.noise import NoiseModel, safe_log
from manyhands.randomness import Seed, make_generator
from manyhands.validation import Constraint, Number, Probabilities, RandomState

P = TypeVar("P")
PRIOR_ACCURACY = 0.7  # prior mean of the accuracy of a worker, worth one label

# Constraints of the parameters of every method that is EM with confusion matrices.
EM_CONSTRAINTS: dict[str, Constraint] = {
    "prior": Probabilities(("estimated", "uniform")),
    "max_iter": Number(whole=True, least=1),
    "tol": Number(least=0),
    "n_init": Number(whole=True, least=1),
    "random_state": RandomState(),
}


class EMMethod(Protocol):
    """An aggregator with the parameters of EM."""

    max_iter: int
    tol: float
    n_init: int
    random_state: Seed


def fit_by_em(
    method: EMMethod, annotations: Annotations, gold: Gold, noise: NoiseModel[P], prior: ClassPrior
) -> ConfusionEMFit[P]:
    """Fit a noise model with confusion matrices by EM, with the parameters of an estimator.

    Parameters
    ----------
    method : EMMethod
        The estimator, for `max_iter`, `tol`, `n_init` and `random_state`.
    annotations : Annotations
        The crowd's labels.
    gold : ndarray of shape (n_items,) of int32 or None
        Class code of each item whose truth is known, -1 elsewhere.
    noise : NoiseModel
        How workers err.
    prior : ClassPrior
        Prior of the truth.

    Returns
    -------
    ConfusionEMFit
    """
    return fit_confusion_em(
        annotations,
        noise,
        prior,
        gold=gold,
        max_iter=method.max_iter,
        tol=method.tol,
        n_init=method.n_init,
        rng=make_generator(method.random_state),
    )


class ConfusionMethod(EMMethod, Protocol):
    """An aggregator that is EM with confusion matrices and nothing else; it runs on labels in shards too."""

    def _em_model(self, n_classes: int) -> tuple[NoiseModel[Any], ClassPrior]:
        """How workers err, and the prior of the truth."""

    def _em_results(self, fit: ConfusionEMFit[Any]) -> dict[str, Any]:
        """Further attributes of the method, by name."""


def infer_by_em(method: ConfusionMethod, annotations: Annotations, gold: Gold) -> Inference:
    """Run a method that is EM with confusion matrices and nothing else.

    Parameters
    ----------
    method : ConfusionMethod
        The estimator.
    annotations : Annotations
        The crowd's labels.
    gold : ndarray of shape (n_items,) of int32 or None
        Class code of each item whose truth is known, -1 elsewhere.

    Returns
    -------
    Inference
    """
    fit = fit_by_em(method, annotations, gold, *method._em_model(annotations.n_classes))
    return Inference.from_confusion_em(fit, elementary.exp(fit.log_confusion), **method._em_results(fit))


@dataclass(frozen=True)
class Inference:
    """Outcome of a method, which the base stores as attributes.

    Attributes
    ----------
    posterior : ndarray of shape (n_items, n_classes)
        p(truth | labels).
    counts : ndarray of shape (n_workers, n_classes, n_classes) or None, default=None
        Expected counts [worker, truth, label], where the method has them.
    n_iter : int, default=1
        Number of passes over the data.
    converged : bool, default=True
        Whether the method converged.
    history : list of float
        Objective after each iteration.
    results : dict of str to object
        Further attributes, by name.
    notes : dict of str to str
        Limitations of the result, by code.
    """

    posterior: Array
    counts: Array | None = None
    n_iter: int = 1
    converged: bool = True
    history: list[float] = field(default_factory=list)
    results: dict[str, Any] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)

    @classmethod
    def from_confusion_em(cls, fit: ConfusionEMFit[Any], confusion: Array, **results: Any) -> Inference:
        """The outcome of EM with confusion matrices.

        Parameters
        ----------
        fit : ConfusionEMFit
            The fitted model.
        confusion : ndarray of shape (n_workers, n_classes, n_classes)
            Estimated confusion matrices.
        **results : object
            Further attributes, by name.

        Returns
        -------
        Inference
        """
        assert fit.final.posterior is not None
        results |= results_of_em(fit, confusion)
        return cls(fit.final.posterior, fit.final.counts, fit.n_iter, fit.converged, fit.history, results)


def results_of_em(fit: ConfusionEMFit[Any], confusion: Array) -> dict[str, Any]:
    """The attributes of every fit by EM with confusion matrices.

    Parameters
    ----------
    fit : ConfusionEMFit
        The fitted model.
    confusion : ndarray of shape (n_workers, n_classes, n_classes)
        Estimated confusion matrices.

    Returns
    -------
    dict of str to object
        By name.
    """
    log_prior = fit.params.log_prior
    table = {"_log_confusion": _with_unseen_worker(fit), "_log_prior": log_prior}
    return {"confusion_": confusion, "class_prior_": elementary.exp(log_prior), "restarts_": fit.restarts} | table


def worker_accuracy(annotations: Annotations, gold: Gold, found: Inference) -> Array:
    """Expected share of right labels of each worker, on items that have gold or labels of other workers too.

    Parameters
    ----------
    annotations : Annotations
        The crowd's labels.
    gold : ndarray of shape (n_items,) of int32 or None
        Class code of each item whose truth is known, -1 elsewhere.
    found : Inference
        Outcome of the method.

    Returns
    -------
    ndarray of shape (n_workers,)
        With one pseudo-count of accuracy 0.7.
    """
    n_workers = annotations.n_workers
    checked = n_labels_with_gold(annotations, gold) >= 2
    if found.counts is not None and np.all(checked | (annotations.n_labels == 0)):
        right, total = np.trace(found.counts, axis1=1, axis2=2), found.counts.sum(axis=(1, 2))
        return (right + PRIOR_ACCURACY) / (total + 1.0)
    weight = checked[annotations.item].astype(float)
    if annotations.weight is not None:
        weight *= annotations.weight
    p_right = found.posterior[annotations.item, annotations.label]
    right = np.bincount(annotations.worker, weights=weight * p_right, minlength=n_workers)
    return (right + PRIOR_ACCURACY) / (np.bincount(annotations.worker, weights=weight, minlength=n_workers) + 1.0)


def _with_unseen_worker(fit: ConfusionEMFit[Any]) -> Array:
    """The log confusion matrices of the last E step with one more worker, who has the pooled confusion matrix."""
    if fit.no_redundancy:
        return np.concatenate([fit.used_log_confusion, fit.used_log_confusion[:1]])
    counts = fit.final.counts.sum(axis=0) + 1.0 / fit.log_confusion.shape[2]  # (truth, label)
    crowd = safe_log(counts / counts.sum(axis=1, keepdims=True))
    return np.concatenate([fit.used_log_confusion, crowd[None]])
