"""Dawid-Skene as a step of a larger loop: soft or hard, with what else is known of the items, and with shrinkage."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from manyhands.annotations import Annotations
from manyhands.em.classifier_em import Gold, initial_posterior
from manyhands.em.confusion_em import ConfusionEM, fit_confusion_em, has_no_redundancy
from manyhands.em.decisions import pick_classes
from manyhands.em.driver import run_em
from manyhands.em.kernels import Array, em_pass, pack
from manyhands.em.priors import IMPOSSIBLE, ClassPrior, FixedPrior, class_prior, gold_offset
from manyhands.noise import safe_log

_MOST_PASSES = 100
_TOLERANCE = 1e-6


class Truth(NamedTuple):
    """What was inferred."""

    posterior: Array  # (n_items, n_classes)
    confusion: Array  # (n_workers, n_classes, n_classes)


class ShrunkParams(NamedTuple):
    """Log confusion matrices, and the crowd's own (truth, label) toward which they were drawn."""

    log_confusion: Array
    crowd: Array


@dataclass(frozen=True)
class ShrunkConfusions:
    """A confusion matrix for every worker, each row with `smoothing` labels more in every cell and `shrinkage` labels
    more that are spread as the crowd's are. Without shrinkage this is `ConfusionNoise`; with it, `solve` does not
    maximise the objective, since the crowd's habits, which it takes as given, follow from the same counts."""

    smoothing: float  # above 0
    shrinkage: float = 0.0

    def solve(self, counts: Array, previous: ShrunkParams | None) -> ShrunkParams:
        crowd = counts.sum(axis=0) + 1.0 / counts.shape[2]
        crowd /= crowd.sum(axis=1, keepdims=True)
        labels = counts + self.smoothing + self.shrinkage * crowd
        return ShrunkParams(np.log(labels) - np.log(labels.sum(axis=2, keepdims=True)), crowd)

    def log_table(self, params: ShrunkParams) -> Array:
        return params.log_confusion

    def log_penalty(self, params: ShrunkParams) -> float:
        weight = self.smoothing + self.shrinkage * params.crowd
        return float((weight * params.log_confusion).sum())


def infer_truth(
    annotations: Annotations,
    gold: Gold,
    noise: ShrunkConfusions,
    prior: str | npt.ArrayLike,
    *,
    hard: bool = False,
    evidence: Array | None = None,
) -> Truth:
    """Dawid-Skene from the vote shares.

    Parameters
    ----------
    annotations, gold : the labels; (n_items,) codes, -1 where the truth is not known
    noise : how confusion matrices follow from counts
    prior : "uniform" over the classes that somebody named, "estimated", or a frequency for each class
    hard : count the most probable classes (classification EM) and not their probabilities
    evidence : (n_items, n_classes) log p(class) of each item by what is known beside the labels
    """
    before = _prior(annotations, gold, prior, noise.smoothing)
    offset = gold_offset(gold, annotations.n_classes)
    if evidence is not None:
        offset = evidence if offset is None else evidence + offset
    model = ConfusionEM(pack(annotations), noise, before, offset)
    if hard and not (evidence is None and has_no_redundancy(annotations, gold)):
        return _infer_hard(model)
    if evidence is not None:
        return _infer_soft(model, initial_posterior(annotations, gold))
    fit = fit_confusion_em(annotations, noise, before, gold=gold, max_iter=_MOST_PASSES, tol=_TOLERANCE)
    assert fit.final.posterior is not None
    return Truth(fit.final.posterior, np.exp(fit.log_table))


def _prior(annotations: Annotations, gold: Gold, prior: str | npt.ArrayLike, smoothing: float) -> ClassPrior:
    """The prior of this name; a class that nobody named would else be as likely as any and attract all that is odd."""
    if not (isinstance(prior, str) and prior == "uniform"):
        return class_prior(prior, annotations.n_classes, smoothing)
    named = np.zeros(annotations.n_classes, bool)
    named[annotations.label] = True
    if gold is not None:
        named[gold[gold >= 0]] = True
    return FixedPrior(np.where(named, -np.log(max(named.sum(), 1)), IMPOSSIBLE))


def _infer_soft(model: ConfusionEM[ShrunkParams], start: Array) -> Truth:
    """EM from these beliefs about the items."""
    told = _counted(model, start)
    found = run_em(model, told, max_iter=_MOST_PASSES, tol=_TOLERANCE)
    posterior = model.pass_at(found.params, want_posterior=True).posterior
    assert posterior is not None
    return Truth(posterior, np.exp(found.params.noise.log_confusion))


def _infer_hard(model: ConfusionEM[ShrunkParams]) -> Truth:
    """Classification EM: from the vote, until no class changes."""
    packed, n_classes = model.packed, model.packed.n_classes
    nobody = np.zeros(packed.n_items, bool)
    votes = np.repeat(np.eye(n_classes)[None], packed.n_workers, axis=0)  # a point for every vote
    posterior = em_pass(packed, votes, np.zeros(n_classes), model.offset, want_posterior=True).posterior
    answer = None
    for _ in range(_MOST_PASSES):
        assert posterior is not None
        before, answer = answer, pick_classes(posterior, nobody)[0]
        if before is not None and np.array_equal(before, answer):
            break
        params = model.maximise(_counted(model, np.eye(n_classes)[answer]), None)
        posterior = model.pass_at(params, want_posterior=True).posterior
    assert posterior is not None
    return Truth(posterior, np.exp(params.noise.log_confusion))


def _counted(model: ConfusionEM[ShrunkParams], belief: Array) -> Array:
    """The statistics of the labels, where this (n_items, n_classes) is believed of the items."""
    packed, n_classes = model.packed, model.packed.n_classes
    nothing = np.zeros((packed.n_workers, n_classes, n_classes))
    return model.statistics(em_pass(packed, nothing, np.zeros(n_classes), safe_log(belief)), None)
