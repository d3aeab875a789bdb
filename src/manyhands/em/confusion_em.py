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
from manyhands.em.kernels import Packed, PassResult, em_pass, pack, vote_pass, vote_share
from manyhands.em.priors import ClassPrior, gold_offset
from manyhands.noise import NoiseModel, Remembering, safe_log

Array = npt.NDArray[np.float64]
P = TypeVar("P")

FEWEST_WRONG = 3  # gold items on which the vote is wrong, for it to be in doubt
_DOUBT = 4  # gold items for each one that the vote gets wrong
_TIE = 1e-9
_LEAST_TOL = 1e-6  # of the objective; starts that end closer together are taken for one


@dataclass(frozen=True)
class ConfusionEMParams(Generic[P]):
    """What EM estimates: the workers' parameters and log p(truth)."""

    noise: P
    log_prior: Array


@dataclass(frozen=True)
class ConfusionEM(Generic[P]):
    """The two steps of a table model.

    Statistics are counts[worker, label, truth], totals[truth], and then whatever the model's `memory` holds, so that
    the driver extrapolates slow hyper-parameters together with the counts.
    """

    packed: Packed
    noise: NoiseModel[P]
    prior: ClassPrior
    offset: Array | None = None

    @cached_property
    def remembering(self) -> Remembering[P] | None:
        """The noise model, if it is one with a memory."""
        return self.noise if isinstance(self.noise, Remembering) else None

    def maximise(self, statistics: Array, previous: ConfusionEMParams[P] | None) -> ConfusionEMParams[P]:
        n_workers, n_classes = self.packed.n_workers, self.packed.n_classes
        size = n_workers * n_classes**2
        counts = statistics[:size].reshape(n_workers, n_classes, n_classes).transpose(0, 2, 1)
        before = None if previous is None else previous.noise
        if self.remembering is not None:
            before = self.remembering.remember(statistics[size + n_classes :], before)
        return ConfusionEMParams(
            self.noise.solve(counts, before), self.prior.solve(statistics[size : size + n_classes])
        )

    def expect(self, params: ConfusionEMParams[P]) -> tuple[Array, float]:
        result = self.pass_at(params)
        penalty = self.noise.log_penalty(params.noise) + self.prior.log_penalty(params.log_prior)
        return self.statistics(result, params.noise), result.evidence + penalty

    def statistics(self, result: PassResult, noise: P | None) -> Array:
        """Counts, totals and memory as the flat vector that the driver moves, in the memory layout of the pass."""
        memory: Array | list[float] = [] if self.remembering is None else self.remembering.memory(noise)
        return np.concatenate([result.counts.transpose(0, 2, 1).ravel(), result.totals, memory])

    def pass_at(self, params: ConfusionEMParams[P], *, want_posterior: bool = False) -> PassResult:
        log_table = self.noise.log_table(params.noise)
        return em_pass(self.packed, log_table, params.log_prior, self.offset, want_posterior=want_posterior)


@dataclass(frozen=True)
class ConfusionEMFit(Generic[P]):
    """A fitted table model."""

    params: ConfusionEMParams[P]
    log_table: Array  # (n_workers, n_classes, n_classes) the model's
    used_table: Array  # the same, or the table of one vote where nobody can be checked
    final: PassResult  # the last E step, posterior included
    history: list[float]
    n_iter: int
    converged: bool
    restarts: list[float]  # the objective each start ended at
    alone: bool  # no label meets another label or gold


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
    starts = [_start(annotations, model, None)]
    if gold is not None and doubts_the_vote(annotations, gold):
        starts.append(_gold_start(annotations, model, gold))
    starts += [_start(annotations, model, generator) for generator in (rng.spawn(n_init - 1) if rng else [])]
    settings: dict[str, Any] = {"max_iter": max_iter, "tol": tol, "stop_early": stop_early}
    runs = [run_em(model, model.statistics(start, None), **settings) for start in starts]
    restarts = [run.history[-1] for run in runs]
    best = runs[_first_of_the_best(restarts, tol)]
    final = model.pass_at(best.params, want_posterior=True)
    table = noise.log_table(best.params.noise)
    return ConfusionEMFit(
        best.params, table, table, final, best.history, best.n_iter, best.converged, restarts, alone=False
    )


def n_other_labels(annotations: Annotations, gold: npt.NDArray[np.int32] | None) -> npt.NDArray[np.int64]:
    """(n_items,) how many speak to each item: its labels, and gold where there is any."""
    return annotations.n_labels if gold is None else annotations.n_labels + (gold >= 0)


def has_no_redundancy(annotations: Annotations, gold: npt.NDArray[np.int32] | None) -> bool:
    """Whether no label meets another label or gold on its item."""
    witnesses = n_other_labels(annotations, gold)
    return bool(witnesses.max(initial=0, where=annotations.n_labels > 0) <= 1)


def _labels_as_given(model: ConfusionEM[P], n_init: int) -> ConfusionEMFit[P]:
    """What can be said where nobody can be checked: workers are what was believed of them beforehand, and a label makes
    half of the posterior, the class frequencies the other half. EM would follow its priors to certainty.
    """
    told = vote_pass(model.packed)
    nothing = PassResult(np.zeros_like(told.counts), told.totals, 0.0, None)
    params = model.maximise(model.statistics(nothing, None), None)
    n_classes = model.packed.n_classes
    one_vote = np.zeros((n_classes, n_classes))
    np.fill_diagonal(one_vote, elementary.logaddexp(0.0, -params.log_prior))
    table = np.repeat(one_vote[None], model.packed.n_workers, axis=0)
    final = em_pass(model.packed, table, params.log_prior, model.offset, want_posterior=True)
    believed = model.noise.log_table(params.noise)
    objective = [model.expect(params)[1]]
    return ConfusionEMFit(params, believed, table, final, objective, 1, True, objective * n_init, alone=True)


def _start(annotations: Annotations, model: ConfusionEM[P], generator: np.random.Generator | None) -> PassResult:
    """The pass in which vote shares, mixed with random ones for a restart, stand for posteriors."""
    if generator is None and model.offset is None:
        return vote_pass(model.packed)
    share = vote_share(annotations)
    if generator is not None:
        share = 0.5 * share + 0.5 * generator.dirichlet(np.ones(annotations.n_classes), annotations.n_items)
    offset = safe_log(share)
    if model.offset is not None:
        known = (model.offset < 0).any(axis=1)  # gold
        offset[known] = model.offset[known]
    n_workers, n_classes = annotations.n_workers, annotations.n_classes
    return em_pass(model.packed, np.zeros((n_workers, n_classes, n_classes)), np.zeros(n_classes), offset)


def _first_of_the_best(objectives: list[float], tol: float) -> int:
    """The first start that ended within EM's tolerance of the highest objective."""
    best = max(objectives)
    return next(i for i, value in enumerate(objectives) if value >= best - max(tol, _LEAST_TOL) * max(abs(best), 1.0))


def wrong_on_gold(annotations: Annotations, gold: npt.NDArray[np.int32] | None) -> tuple[int, int]:
    """On how many gold items the majority vote is wrong, and how many gold items have labels; a tie is not wrong.

    Examples
    --------
    >>> votes = Annotations.from_matrix([[0, 0, 1], [0, 1, -1], [1, 1, 1]])
    >>> wrong_on_gold(votes, np.array([1, 1, -1], np.int32))
    (1, 2)
    """
    if gold is None:
        return 0, 0
    known = np.flatnonzero((gold >= 0) & (annotations.n_labels > 0))
    share = vote_share(annotations[known])
    behind = share[np.arange(len(known)), gold[known]] < share.max(axis=1, initial=0.0) - _TIE
    return int(behind.sum()), len(known)


def doubts_the_vote(annotations: Annotations, gold: npt.NDArray[np.int32] | None) -> bool:
    """Whether the vote is wrong on a quarter of the gold items and on three at least: reason to try a start from gold.

    Of a crowd that is of one mind a single gold item would turn all labels around, and that one may be wrong.
    """
    wrong, known = wrong_on_gold(annotations, gold)
    return wrong >= FEWEST_WRONG and _DOUBT * wrong >= known


def overrules_the_vote(annotations: Annotations, gold: npt.NDArray[np.int32]) -> bool:
    """Whether the vote is wrong on more than half of the gold items, by three standard deviations."""
    wrong, known = wrong_on_gold(annotations, gold)
    return 2 * wrong - known > 3 * np.sqrt(known)


def _gold_start(annotations: Annotations, model: ConfusionEM[P], gold: npt.NDArray[np.int32]) -> PassResult:
    """The pass that follows from what the gold items alone say of the workers."""
    on_gold = annotations.keep((gold >= 0)[annotations.item])
    alone = ConfusionEM(pack(on_gold), model.noise, model.prior, model.offset)
    told = _start(on_gold, alone, None)
    return model.pass_at(model.maximise(model.statistics(told, None), None))
