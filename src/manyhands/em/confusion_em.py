"""EM for every noise model that is given by confusion matrices: the two steps of `run_em` in terms of `em_pass`.

    E step    p(truth_i = k | labels of i)  ~  prior[k] prod_w confusion[w, k, label_iw]
    M step    worker parameters from the expected counts[worker, truth, label] (`NoiseModel.solve`),
              class prior from the expected number of items of each class (`ClassPrior.solve`)

The objective is the log-likelihood of the labels plus the log prior densities of both kinds of parameters.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from manyhands._core import elementary
from manyhands._core.arrays import Array
from manyhands.annotations import Annotations
from manyhands.em.driver import run_em
from manyhands.em.e_step import (
    gold_contradicts_vote,
    has_no_redundancy,
    labels_on_gold,
    vote_statistics,
)
from manyhands.em.kernels import LabelSource, PackedLabels, PassResult, pack
from manyhands.em.noise import HasHyperparameters, NoiseModel
from manyhands.em.priors import ClassPrior, gold_offset

P = TypeVar("P")

_MIN_TOL = 1e-6  # relative to the objective; starts that end closer together count as the same optimum


@dataclass(frozen=True)
class ConfusionEMParams(Generic[P]):
    """Parameters that EM estimates."""

    noise: P  # parameters of the noise model, for all workers
    log_prior: Array  # (n_classes,)


@dataclass(frozen=True)
class ConfusionEM(Generic[P]):
    """The E step and the M step of a model with confusion matrices.

    The sufficient statistics are one flat vector: counts[worker, label, truth], totals[truth], and the hyper-parameters
    of the noise model if it has any, so that the driver extrapolates slow hyper-parameters together with the counts.
    """

    labels: LabelSource
    noise: NoiseModel[P]
    prior: ClassPrior  # prior of the truth

    @cached_property
    def hyperparameter_model(self) -> HasHyperparameters[P] | None:
        """The noise model if it has hyper-parameters of its own, else None."""
        return self.noise if isinstance(self.noise, HasHyperparameters) else None

    def maximise(self, statistics: Array, previous: ConfusionEMParams[P] | None) -> ConfusionEMParams[P]:
        """The M step."""
        n_workers, n_classes = self.labels.n_workers, self.labels.n_classes
        size = n_workers * n_classes**2
        counts = statistics[:size].reshape(n_workers, n_classes, n_classes).transpose(0, 2, 1)
        before = None if previous is None else previous.noise
        if self.hyperparameter_model is not None:
            before = self.hyperparameter_model.with_hyperparameters(statistics[size + n_classes :], before)
        return ConfusionEMParams(
            self.noise.solve(counts, before), self.prior.solve(statistics[size : size + n_classes])
        )

    def expect(self, params: ConfusionEMParams[P]) -> tuple[Array, float]:
        """The E step."""
        result = self.pass_at(params)
        penalty = self.noise.log_penalty(params.noise) + self.prior.log_penalty(params.log_prior)
        return self.statistics(result, params.noise), result.evidence + penalty

    def statistics(self, result: PassResult, noise: P | None) -> Array:
        """Flatten expected counts, class totals and hyper-parameters into the vector that the driver extrapolates."""
        model = self.hyperparameter_model
        hyperparameters: Array | list[float] = [] if model is None else model.hyperparameters(noise)
        return np.concatenate([result.counts.transpose(0, 2, 1).ravel(), result.totals, hyperparameters])

    def pass_at(self, params: ConfusionEMParams[P], *, want_posterior: bool = False) -> PassResult:
        """Pass over the labels at these parameters; with `want_posterior` it also returns the posterior."""
        log_confusion = self.noise.log_confusion(params.noise)
        return self.labels.em_pass(log_confusion, params.log_prior, want_posterior=want_posterior)


@dataclass(frozen=True)
class ConfusionEMFit(Generic[P]):
    """A fitted model."""

    params: ConfusionEMParams[P]
    # (n_workers, n_classes, n_classes); log p(label | truth) of the noise model, indexed [worker, truth, label]
    log_confusion: Array
    # (n_workers, n_classes, n_classes); the same, or that of a single vote where no item has two labels
    used_log_confusion: Array
    final: PassResult  # the last E step, with the posterior where the labels are in memory
    history: list[float]  # the objective after each iteration
    n_iter: int  # number of passes over the data
    converged: bool  # whether the stopping rule was met
    restarts: list[float]  # the final objective of each start
    no_redundancy: bool  # whether no item has two labels, or a label and gold


def fit_confusion_em(
    annotations: Annotations,
    noise: NoiseModel[P],
    prior: ClassPrior,
    *,
    gold: npt.NDArray[np.int32] | None = None,
    max_iter: int,
    tol: float,
    n_init: int = 1,
    rng: np.random.Generator | None = None,
    stop_early: bool = False,
) -> ConfusionEMFit[P]:
    """Fit by EM from the vote shares, from gold, and from random starts; keep the best.

    The start from the vote assumes that the majority is right. Where it is wrong on at least a quarter of the gold
    items (`gold_contradicts_vote`), EM is also started from worker parameters estimated on the gold items; a crowd of
    inverted workers is only found from there. A later start wins only if its objective is higher by more than the
    tolerance of EM, so rounding errors decide nothing.

    Shapes: gold (n_items,).
    """
    packed, offset = pack(annotations), gold_offset(gold, annotations.n_classes)
    model = ConfusionEM(PackedLabels(packed, offset), noise, prior)
    if has_no_redundancy(annotations, gold):
        return labels_as_given(model, n_init)
    starts = [vote_statistics(annotations, packed, offset)]
    if gold is not None and gold_contradicts_vote(annotations, gold):
        starts.append(_gold_start(annotations, model, gold, offset))
    generators = rng.spawn(n_init - 1) if rng else []
    starts += [vote_statistics(annotations, packed, offset, generator) for generator in generators]
    return fit_from_starts(model, starts, max_iter=max_iter, tol=tol, stop_early=stop_early)


def fit_from_starts(
    model: ConfusionEM[P], starts: list[PassResult], *, max_iter: int, tol: float, stop_early: bool = False
) -> ConfusionEMFit[P]:
    """Run EM from each start and keep the best run."""
    settings: dict[str, Any] = {"max_iter": max_iter, "tol": tol, "stop_early": stop_early}
    runs = []
    while starts:
        runs.append(run_em(model, model.statistics(starts.pop(0), None), **settings))
    restarts = [run.history[-1] for run in runs]
    best = runs[_first_of_the_best(restarts, tol)]
    final = model.pass_at(best.params, want_posterior=True)
    table = model.noise.log_confusion(best.params.noise)
    return ConfusionEMFit(
        best.params, table, table, final, best.history, best.n_iter, best.converged, restarts, no_redundancy=False
    )


def labels_as_given(model: ConfusionEM[P], n_init: int = 1) -> ConfusionEMFit[P]:
    """The fit without redundancy: worker parameters at their prior, and every label taken as given.

    EM would only amplify its priors. The confusion matrix of a single vote is chosen so that a label has one half of
    the posterior mass, and the class prior the other half.
    """
    voted = model.labels.vote_pass()
    nothing = PassResult(np.zeros_like(voted.counts), voted.totals, 0.0, None)
    params = model.maximise(model.statistics(nothing, None), None)
    n_classes = model.labels.n_classes
    one_vote = np.zeros((n_classes, n_classes))
    np.fill_diagonal(one_vote, elementary.logaddexp(0.0, -params.log_prior))
    table = np.repeat(one_vote[None], model.labels.n_workers, axis=0)
    final = model.labels.em_pass(table, params.log_prior, want_posterior=True)
    prior_log_confusion = model.noise.log_confusion(params.noise)
    objective = [model.expect(params)[1]]
    return ConfusionEMFit(
        params, prior_log_confusion, table, final, objective, 1, True, objective * n_init, no_redundancy=True
    )


def _first_of_the_best(objectives: list[float], tol: float) -> int:
    """Index of the first start whose objective is within the tolerance of the highest one."""
    best = max(objectives)
    return next(i for i, value in enumerate(objectives) if value >= best - max(tol, _MIN_TOL) * max(abs(best), 1.0))


def _gold_start(
    annotations: Annotations, model: ConfusionEM[P], gold: npt.NDArray[np.int32], offset: Array | None
) -> PassResult:
    """One E step with the worker parameters that follow from the gold items alone."""
    on_gold = labels_on_gold(annotations, gold)
    statistics = model.statistics(vote_statistics(on_gold, pack(on_gold), offset), None)
    return model.pass_at(model.maximise(statistics, None))
