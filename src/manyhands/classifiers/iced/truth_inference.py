"""Truth inference (section 2.1 of the paper): Dawid-Skene as a step of a larger loop.

Hard EM, as published, or soft EM, optionally with class probabilities from a classifier, and with confusion matrices
that are shrunk toward the mean confusion matrix of the crowd.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from manyhands.annotations import Annotations
from manyhands.em.classifier_em import Gold, initial_posterior
from manyhands.em.confusion_em import ConfusionEM, fit_confusion_em, has_no_redundancy
from manyhands.em.decisions import pick_classes
from manyhands.em.driver import run_em
from manyhands.em.kernels import Array, em_pass, pack
from manyhands.em.label_source import PackedLabels
from manyhands.em.priors import IMPOSSIBLE, ClassPrior, FixedPrior, class_prior, gold_offset
from manyhands.noise import safe_log

_MAX_ITERATIONS = 100
_TOLERANCE = 1e-6


class TruthEstimate(NamedTuple):
    """Result of truth inference.

    Attributes
    ----------
    posterior : ndarray of shape (n_items, n_classes)
        Posterior of the items.
    confusion : ndarray of shape (n_workers, n_classes, n_classes)
        Confusion matrices, as [worker, truth, label].
    """

    posterior: Array
    confusion: Array


class ShrunkParams(NamedTuple):
    """Parameters of `ShrunkConfusions`.

    Attributes
    ----------
    log_confusion : ndarray of shape (n_workers, n_classes, n_classes)
        Log confusion matrices.
    crowd : ndarray of shape (n_classes, n_classes)
        Mean confusion matrix of the crowd, toward which they were shrunk.
    """

    log_confusion: Array
    crowd: Array


@dataclass(frozen=True)
class ShrunkConfusions:
    """Noise model with one confusion matrix per worker, shrunk toward the mean confusion matrix of the crowd.

        confusion[w, k, l] ~ counts[w, k, l] + smoothing + shrinkage * crowd[k, l]

    Without shrinkage this is `ConfusionNoise`. With it, `solve` does not maximise the objective exactly: the crowd's
    matrix, which is taken as given, is computed from the same counts.

    Attributes
    ----------
    smoothing : float
        Pseudo-count of every cell, above 0.
    shrinkage : float, default=0.0
        Pseudo-labels per row, distributed as the crowd's.
    """

    smoothing: float
    shrinkage: float = 0.0

    def solve(self, counts: Array, previous: ShrunkParams | None) -> ShrunkParams:
        """Return the parameters given expected counts (M step).

        Parameters
        ----------
        counts : ndarray of shape (n_workers, n_classes, n_classes)
            Expected counts, as [worker, truth, label].
        previous : ShrunkParams or None
            Not used.

        Returns
        -------
        ShrunkParams
        """
        crowd = counts.sum(axis=0) + 1.0 / counts.shape[2]
        crowd /= crowd.sum(axis=1, keepdims=True)
        labels = counts + self.smoothing + self.shrinkage * crowd
        return ShrunkParams(np.log(labels) - np.log(labels.sum(axis=2, keepdims=True)), crowd)

    def log_confusion(self, params: ShrunkParams) -> Array:
        """Return log p(label | truth) as [worker, truth, label]."""
        return params.log_confusion

    def log_penalty(self, params: ShrunkParams) -> float:
        """Return the log prior density of the parameters that the pseudo-counts stand for."""
        weight = self.smoothing + self.shrinkage * params.crowd
        return float((weight * params.log_confusion).sum())


def infer_true_labels(
    annotations: Annotations,
    gold: Gold,
    noise: ShrunkConfusions,
    prior: str | npt.ArrayLike,
    *,
    hard: bool = False,
    log_class_proba: Array | None = None,
) -> TruthEstimate:
    """Run EM of Dawid and Skene from the vote shares.

    Parameters
    ----------
    annotations : Annotations
        The labels.
    gold : ndarray of shape (n_items,) or None
        Codes of known classes, -1 where the class is unknown.
    noise : ShrunkConfusions
        The noise model.
    prior : str or array-like of shape (n_classes,)
        "uniform" over the classes that occur in labels or gold, "estimated", "uniform-start" (uniform in the first E
        step, then estimated), or a frequency for each class.
    hard : bool, default=False
        Count the most probable classes (classification EM) rather than their probabilities.
    log_class_proba : ndarray of shape (n_items, n_classes), default=None
        log p(class) of each item from another source than the labels, such as a classifier.

    Returns
    -------
    TruthEstimate
    """
    class_model = _class_prior(annotations, gold, prior, noise.smoothing)
    offset = gold_offset(gold, annotations.n_classes)
    if log_class_proba is not None:
        offset = log_class_proba if offset is None else log_class_proba + offset
    model = ConfusionEM(PackedLabels(pack(annotations), offset), noise, class_model)
    first_prior = None
    if _is_named(prior, "uniform-start"):
        first_prior = _class_prior(annotations, gold, "uniform", noise.smoothing).solve(np.zeros(annotations.n_classes))
    redundant = log_class_proba is not None or not has_no_redundancy(annotations, gold)
    if hard and redundant:
        return _hard_em(model, first_prior)
    if log_class_proba is not None or (redundant and first_prior is not None):
        return _soft_em(model, initial_posterior(annotations, gold), first_prior)
    fit = fit_confusion_em(annotations, noise, class_model, gold=gold, max_iter=_MAX_ITERATIONS, tol=_TOLERANCE)
    assert fit.final.posterior is not None
    return TruthEstimate(fit.final.posterior, np.exp(fit.log_confusion))


def _class_prior(annotations: Annotations, gold: Gold, prior: str | npt.ArrayLike, smoothing: float) -> ClassPrior:
    """Return the class prior; a uniform one excludes classes without any label, which would attract all odd items."""
    if not _is_named(prior, "uniform"):
        prior = "estimated" if _is_named(prior, "uniform-start") else prior
        return class_prior(prior, annotations.n_classes, smoothing)
    named = np.zeros(annotations.n_classes, bool)
    named[annotations.label] = True
    if gold is not None:
        named[gold[gold >= 0]] = True
    return FixedPrior(np.where(named, -np.log(max(named.sum(), 1)), IMPOSSIBLE))


def _is_named(prior: str | npt.ArrayLike, name: str) -> bool:
    """Whether the prior is the one of this name."""
    return isinstance(prior, str) and prior == name


def _soft_em(model: ConfusionEM[ShrunkParams], start: Array, first_prior: Array | None) -> TruthEstimate:
    """EM from this initial posterior; with a class prior of its own in the first E step."""
    if first_prior is not None:
        start = _posterior_under(model, start, first_prior)
    statistics = _expected_statistics(model, start)
    found = run_em(model, statistics, max_iter=_MAX_ITERATIONS, tol=_TOLERANCE)
    posterior = model.pass_at(found.params, want_posterior=True).posterior
    assert posterior is not None
    return TruthEstimate(posterior, np.exp(found.params.noise.log_confusion))


def _posterior_under(model: ConfusionEM[ShrunkParams], start: Array, log_prior: Array) -> Array:
    """Posterior by one M step from `start` and one E step with this class prior."""
    params = model.maximise(_expected_statistics(model, start), None)
    posterior = model.pass_at(replace(params, log_prior=log_prior), want_posterior=True).posterior
    assert posterior is not None
    return posterior


def _hard_em(model: ConfusionEM[ShrunkParams], first_prior: Array | None) -> TruthEstimate:
    """Classification EM from the majority vote, until no class changes."""
    labels = _in_memory(model)
    packed, n_classes = labels.packed, labels.n_classes
    none_unlabelled = np.zeros(packed.n_items, bool)
    votes = np.repeat(np.eye(n_classes)[None], packed.n_workers, axis=0)  # a score of 1 for every vote
    posterior = em_pass(packed, votes, np.zeros(n_classes), labels.offset, want_posterior=True).posterior
    if first_prior is not None and posterior is not None:
        start = np.eye(n_classes)[pick_classes(posterior, none_unlabelled)[0]]
        posterior = _posterior_under(model, start, first_prior)
    classes = None
    for _ in range(_MAX_ITERATIONS):
        assert posterior is not None
        previous, classes = classes, pick_classes(posterior, none_unlabelled)[0]
        if previous is not None and np.array_equal(previous, classes):
            break
        params = model.maximise(_expected_statistics(model, np.eye(n_classes)[classes]), None)
        posterior = model.pass_at(params, want_posterior=True).posterior
    assert posterior is not None
    return TruthEstimate(posterior, np.exp(params.noise.log_confusion))


def _expected_statistics(model: ConfusionEM[ShrunkParams], posterior: Array) -> Array:
    """Expected sufficient statistics of the labels under this posterior, (n_items, n_classes)."""
    packed, n_classes = _in_memory(model).packed, model.labels.n_classes
    no_labels = np.zeros((packed.n_workers, n_classes, n_classes))
    return model.statistics(em_pass(packed, no_labels, np.zeros(n_classes), safe_log(posterior)), None)


def _in_memory(model: ConfusionEM[ShrunkParams]) -> PackedLabels:
    """Return the labels of the model, which `infer_true_labels` packed."""
    assert isinstance(model.labels, PackedLabels)
    return model.labels
