"""EM for every noise model that is a table: the steps of `run_em` in terms of `em_pass`, and how it starts."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from manyhands import elementary
from manyhands.annotations import Annotations
from manyhands.em.driver import run_em
from manyhands.em.kernels import Packed, PassResult, em_pass, pack, vote_pass
from manyhands.em.priors import ClassPrior, gold_offset
from manyhands.em.starts import gold_contradicts_vote, labels_on_gold, vote_statistics
from manyhands.noise import HasHyperparameters, NoiseModel

Array = npt.NDArray[np.float64]
P = TypeVar("P")

_MIN_TOL = 1e-6  # relative to the objective; starts that end closer together count as the same optimum


@dataclass(frozen=True)
class ConfusionEMParams(Generic[P]):
    """What EM estimates: the workers' parameters and log p(truth)."""

    noise: P
    log_prior: Array


@dataclass(frozen=True)
class ConfusionEM(Generic[P]):
    """The two steps of a table model.

    Statistics are counts[worker, label, truth], totals[truth], and then whatever the model's `hyperparameters` holds, so that
    the driver extrapolates slow hyper-parameters together with the counts.
    """

    packed: Packed
    noise: NoiseModel[P]
    prior: ClassPrior
    offset: Array | None = None

    @cached_property
    def hyperparameter_model(self) -> HasHyperparameters[P] | None:
        """The noise model, if it is one with a memory."""
        return self.noise if isinstance(self.noise, HasHyperparameters) else None

    def maximise(self, statistics: Array, previous: ConfusionEMParams[P] | None) -> ConfusionEMParams[P]:
        n_workers, n_classes = self.packed.n_workers, self.packed.n_classes
        size = n_workers * n_classes**2
        counts = statistics[:size].reshape(n_workers, n_classes, n_classes).transpose(0, 2, 1)
        before = None if previous is None else previous.noise
        if self.hyperparameter_model is not None:
            before = self.hyperparameter_model.with_hyperparameters(statistics[size + n_classes :], before)
        return ConfusionEMParams(
            self.noise.solve(counts, before), self.prior.solve(statistics[size : size + n_classes])
        )

    def expect(self, params: ConfusionEMParams[P]) -> tuple[Array, float]:
        result = self.pass_at(params)
        penalty = self.noise.log_penalty(params.noise) + self.prior.log_penalty(params.log_prior)
        return self.statistics(result, params.noise), result.evidence + penalty

    def statistics(self, result: PassResult, noise: P | None) -> Array:
        """Counts, totals and memory as the flat vector that the driver moves, in the memory layout of the pass."""
        model = self.hyperparameter_model
        hyperparameters: Array | list[float] = [] if model is None else model.hyperparameters(noise)
        return np.concatenate([result.counts.transpose(0, 2, 1).ravel(), result.totals, hyperparameters])

    def pass_at(self, params: ConfusionEMParams[P], *, want_posterior: bool = False) -> PassResult:
        log_table = self.noise.log_table(params.noise)
        return em_pass(self.packed, log_table, params.log_prior, self.offset, want_posterior=want_posterior)


@dataclass(frozen=True)
class ConfusionEMFit(Generic[P]):
    """A fitted table model."""

    params: ConfusionEMParams[P]
    log_table: Array  # (n_workers, n_classes, n_classes) the model's
    used_log_confusion: Array  # the same, or the table of one vote where nobody can be checked
    final: PassResult  # the last E step, posterior included
    history: list[float]
    n_iter: int
    converged: bool
    restarts: list[float]  # the objective each start ended at
    no_redundancy: bool  # no label meets another label or gold


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
    """Fit by EM from the vote shares, from gold where there is any, and from `n_init - 1` random starts; keep the best.

    The vote takes the majority to be right. Gold may know better: a crowd of inverted workers is only found out from
    a start that rests on the gold, and that start is tried where the vote is wrong on a quarter of the gold items. A
    later start wins only with an objective that is higher by more than EM's tolerance: rounding decides nothing.
    `stop_early` is that of `run_em`.
    """
    model = ConfusionEM(pack(annotations), noise, prior, gold_offset(gold, annotations.n_classes))
    if has_no_redundancy(annotations, gold):
        return _labels_as_given(model, n_init)
    starts = [vote_statistics(annotations, model.packed, model.offset)]
    if gold is not None and gold_contradicts_vote(annotations, gold):
        starts.append(_gold_start(annotations, model, gold))
    generators = rng.spawn(n_init - 1) if rng else []
    starts += [vote_statistics(annotations, model.packed, model.offset, generator) for generator in generators]
    settings: dict[str, Any] = {"max_iter": max_iter, "tol": tol, "stop_early": stop_early}
    runs = [run_em(model, model.statistics(start, None), **settings) for start in starts]
    restarts = [run.history[-1] for run in runs]
    best = runs[_first_of_the_best(restarts, tol)]
    final = model.pass_at(best.params, want_posterior=True)
    table = noise.log_table(best.params.noise)
    return ConfusionEMFit(
        best.params, table, table, final, best.history, best.n_iter, best.converged, restarts, no_redundancy=False
    )


def n_labels_with_gold(annotations: Annotations, gold: npt.NDArray[np.int32] | None) -> npt.NDArray[np.int64]:
    """(n_items,) how many speak to each item: its labels, and gold where there is any."""
    return annotations.n_labels if gold is None else annotations.n_labels + (gold >= 0)


def has_no_redundancy(annotations: Annotations, gold: npt.NDArray[np.int32] | None) -> bool:
    """Whether no label meets another label or gold on its item."""
    n_sources = n_labels_with_gold(annotations, gold)
    return bool(n_sources.max(initial=0, where=annotations.n_labels > 0) <= 1)


def _labels_as_given(model: ConfusionEM[P], n_init: int) -> ConfusionEMFit[P]:
    """What can be said where nobody can be checked: workers are what was believed of them beforehand, and a label makes
    half of the posterior, the class frequencies the other half. EM would follow its priors to certainty."""
    voted = vote_pass(model.packed)
    nothing = PassResult(np.zeros_like(voted.counts), voted.totals, 0.0, None)
    params = model.maximise(model.statistics(nothing, None), None)
    n_classes = model.packed.n_classes
    one_vote = np.zeros((n_classes, n_classes))
    np.fill_diagonal(one_vote, elementary.logaddexp(0.0, -params.log_prior))
    table = np.repeat(one_vote[None], model.packed.n_workers, axis=0)
    final = em_pass(model.packed, table, params.log_prior, model.offset, want_posterior=True)
    prior_log_confusion = model.noise.log_table(params.noise)
    objective = [model.expect(params)[1]]
    return ConfusionEMFit(
        params, prior_log_confusion, table, final, objective, 1, True, objective * n_init, no_redundancy=True
    )


def _first_of_the_best(objectives: list[float], tol: float) -> int:
    """The first start that ended within EM's tolerance of the highest objective."""
    best = max(objectives)
    return next(i for i, value in enumerate(objectives) if value >= best - max(tol, _MIN_TOL) * max(abs(best), 1.0))


def _gold_start(annotations: Annotations, model: ConfusionEM[P], gold: npt.NDArray[np.int32]) -> PassResult:
    """One E step with the worker parameters that follow from the gold items alone."""
    on_gold = labels_on_gold(annotations, gold)
    statistics = model.statistics(vote_statistics(on_gold, pack(on_gold), model.offset), None)
    return model.pass_at(model.maximise(statistics, None))
