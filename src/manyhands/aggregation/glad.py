"""GLAD: every worker has an ability and every item a difficulty; found by EM.

    p(label_iw = truth_i) = sigmoid(ability[w] exp(ease[i])),   errors fall on the other classes alike
    ability ~ N(1, 1),   ease ~ N(1, 1),   difficulty[i] = exp(-ease[i])

Reference: J. Whitehill, P. Ruvolo, T. Wu, J. Bergsma and J. Movellan (2009), Whose vote should count more: optimal
integration of labels from labelers of unknown expertise, NeurIPS.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from manyhands import elementary
from manyhands.aggregation.base import Aggregator, Gold, Inference
from manyhands.annotations import Annotations
from manyhands.elementary import softplus
from manyhands.em.driver import run_em
from manyhands.em.kernels import Array, sums_by
from manyhands.em.priors import ClassPrior, FixedPrior, class_prior, gold_offset
from manyhands.validation import Constraint, Number, Probabilities

_PRIOR_MEAN = 1.0  # of ability and ease, before any label is seen
_MAX_EASE = 5.0  # ease stays within minus and plus this
_MAX_ABILITY = 20.0  # and ability within this, which its prior makes sure of anyway


class GLAD(Aggregator):
    """Ability of workers times ease of items: a hard item says little about those who got it wrong.

    Needs few labels per worker, like `OneCoin`; workers who prefer one class mislead it in the same way.

    Parameters
    ----------
    prior : "uniform" class frequencies, "estimated", or a frequency for each class
    max_iter, tol : at most this many passes; stop within `tol` of the optimum, as a share of the objective

    Attributes
    ----------
    ability_ : (n_workers,) 1 is expected, 0 says nothing, negative means more often wrong than right
    difficulty_ : (n_items,) positive; exp(-1) is expected, and stands for items without labels
    item_accuracy_ : (n_items,) the share of its labels that is expected to be right; an average worker's if it has none
    class_prior_ : (n_classes,)

    Examples
    --------
    >>> from manyhands import GLAD, Annotations
    >>> votes = Annotations.from_matrix([[0, 0, 0, 1], [1, 1, 1, 1], [0, 0, 0, 1], [1, 1, 0, 0]])
    >>> model = GLAD().fit(votes)
    >>> model.labels_.tolist()
    [0, 1, 0, 1]
    >>> bool(model.ability_[3] < model.ability_[0]), bool(model.difficulty_[3] > model.difficulty_[1])
    (True, True)
    """

    _constraints: ClassVar[dict[str, Constraint]] = {
        "prior": Probabilities(("estimated", "uniform")),
        "max_iter": Number(whole=True, least=1),
        "tol": Number(least=0),
    }

    ability_: Array
    difficulty_: Array
    item_accuracy_: Array
    _ability: Array  # (n_workers + 1,) the last worker is one never seen
    _ease: Array  # (n_items,)

    def __init__(self, prior: str | npt.ArrayLike = "uniform", max_iter: int = 1000, tol: float = 1e-6) -> None:
        self.prior = prior
        self.max_iter = max_iter
        self.tol = tol

    def _infer(self, annotations: Annotations, gold: Gold) -> Inference:
        prior = class_prior(self.prior, annotations.n_classes, smoothing=0.01)
        steps = GLADSteps.of(annotations, prior, gold)
        found = run_em(steps, steps.start(), max_iter=self.max_iter, tol=self.tol, what="GLAD")
        params = found.params
        active = np.bincount(annotations.worker, minlength=annotations.n_workers) > 0
        results = {
            "ability_": params.ability,
            "difficulty_": elementary.exp(-params.ease),
            "item_accuracy_": steps.item_accuracy(params),
            "class_prior_": elementary.exp(params.log_prior),
            "_ability": np.append(params.ability, params.ability[active].mean()),
            "_ease": params.ease,
            "_log_prior": params.log_prior,
        }
        posterior, _ = steps.e_step(steps.logit(params), params.log_prior)
        return Inference(posterior.T.copy(), None, found.n_iter, found.converged, found.history, results)

    def _posterior(self, annotations: Annotations, gold: Gold) -> Array:
        """An E step; items that `fit` saw keep their difficulty, others have the expected one."""
        row_of = {item: i for i, item in enumerate(self.item_ids_.tolist())}
        row = np.array([row_of.get(item, -1) for item in annotations.item_ids.tolist()])
        params = GLADParams(self._ability, np.where(row >= 0, self._ease[row], _PRIOR_MEAN), self._log_prior)
        steps = GLADSteps.of(annotations, FixedPrior(self._log_prior), gold)
        return steps.e_step(steps.logit(params), self._log_prior)[0].T.copy()


@dataclass(frozen=True)
class GLADParams:
    """What EM estimates."""

    ability: Array  # (n_workers,)
    ease: Array  # (n_items,) the logarithm of the paper's beta
    log_prior: Array  # (n_classes,)


@dataclass(frozen=True)
class GLADSteps:
    """The two steps of `run_em`.

    The statistics are the next parameters themselves, so that the driver extrapolates abilities and eases: `expect`
    does an E step and the M step that follows from it, `maximise` only reads the outcome. Extrapolation pays: passes
    with it and without were 34 and 150 on snow2008/rte, 29 and 122 on music, 99 and 266 on s_rel.
    """

    item: npt.NDArray[np.intp]  # (n_annotations,)
    worker: npt.NDArray[np.intp]
    cell: npt.NDArray[np.intp]  # label * n_items + item: sums and maxima over classes are then fast
    n_workers: int
    labelled: npt.NDArray[np.bool_]  # (n_items,)
    prior: ClassPrior
    n_classes: int
    offset: Array | None  # (n_classes, n_items) what gold adds to the log prior

    @classmethod
    def of(cls, annotations: Annotations, prior: ClassPrior, gold: Gold) -> GLADSteps:
        n_classes = annotations.n_classes
        item, worker = annotations.item.astype(np.intp), annotations.worker.astype(np.intp)
        cell = annotations.label * np.intp(annotations.n_items) + item
        offset = gold_offset(gold, n_classes)
        offset = None if offset is None else offset.T
        return cls(item, worker, cell, annotations.n_workers, annotations.n_labels > 0, prior, n_classes, offset)

    @property
    def n_items(self) -> int:
        return len(self.labelled)

    def start(self) -> Array:
        """Everyone is as able, and everything as easy, as expected; classes are as frequent as labels for them."""
        votes = np.bincount(self.cell // self.n_items, minlength=self.n_classes)
        return _as_statistics(
            np.full(self.n_workers, _PRIOR_MEAN), np.full(self.n_items, _PRIOR_MEAN), votes.astype(float)
        )

    def maximise(self, statistics: Array, previous: GLADParams | None) -> GLADParams:
        ability, ease, totals = np.split(statistics, [self.n_workers, self.n_workers + self.n_items])
        return GLADParams(
            _from_nonnegative(ability, _MAX_ABILITY), _from_nonnegative(ease, _MAX_EASE), self.prior.solve(totals)
        )

    def expect(self, params: GLADParams) -> tuple[Array, float]:
        logit = self.logit(params)
        posterior, evidence = self.e_step(logit, params.log_prior)
        penalty = -0.5 * float(np.sum((params.ability - _PRIOR_MEAN) ** 2) + np.sum((params.ease - _PRIOR_MEAN) ** 2))
        ability, ease = self.m_step(posterior.ravel()[self.cell], logit, params)
        totals = posterior[:, self.labelled].sum(axis=1)
        objective = evidence + penalty + self.prior.log_penalty(params.log_prior)
        return _as_statistics(ability, ease, totals), objective

    def logit(self, params: GLADParams) -> Array:
        """(n_annotations,) the log odds that each label is right."""
        return params.ability[self.worker] * elementary.exp(params.ease)[self.item]

    def item_accuracy(self, params: GLADParams) -> Array:
        """(n_items,) the expected share of right labels."""
        n_labels = np.bincount(self.item, minlength=self.n_items)
        total = sums_by(self.item, elementary.exp(-softplus(-self.logit(params))), self.n_items)
        average = params.ability[np.unique(self.worker)].mean()
        unlabelled = elementary.exp(-softplus(-average * elementary.exp(params.ease)))
        return np.where(self.labelled, total / np.maximum(n_labels, 1), unlabelled)

    def e_step(self, logit: Array, log_prior: Array) -> tuple[Array, float]:
        """(n_classes, n_items) the posterior, and log p(labels).

        Take every label as wrong at first, sigmoid(-logit) / (n_classes - 1); each class that it names then gains
        the log odds of right against wrong, logit + log(n_classes - 1). That is a weighted vote.
        """
        others = elementary.log(max(self.n_classes - 1, 1))
        votes = sums_by(self.cell, logit + others, self.n_items * self.n_classes)
        score = votes.reshape(self.n_classes, self.n_items) + log_prior[:, None]
        if self.offset is not None:
            score += self.offset
        top = score.max(axis=0)
        posterior = elementary.exp(score - top)
        total = posterior.sum(axis=0)
        posterior /= total
        all_wrong = -float(softplus(logit).sum()) - len(logit) * others
        return posterior, all_wrong + float((top + elementary.log(total))[self.labelled].sum())

    def m_step(self, p_right: Array, logit: Array, params: GLADParams) -> tuple[Array, Array]:
        """Better abilities, then better eases, given the probability that each label is right.

        log sigmoid(s) lies above a parabola that touches it at s and -s (Jaakkola and Jordan 2000). With it in place
        of the sigmoid every ability has a closed form and every ease a problem of two sums; neither step can lower
        what EM maximises, so no step has to be taken back.
        """
        surplus = p_right - 0.5
        beta = elementary.exp(params.ease)[self.item]
        linear = sums_by(self.worker, surplus * beta, self.n_workers)
        quadratic = sums_by(self.worker, _curvature(logit) * beta**2, self.n_workers)
        ability = np.clip((linear + _PRIOR_MEAN) / (quadratic + 1.0), -_MAX_ABILITY, _MAX_ABILITY)
        by_label = ability[self.worker]
        linear = sums_by(self.item, surplus * by_label, self.n_items)
        quadratic = sums_by(self.item, _curvature(by_label * beta) * by_label**2, self.n_items)
        return ability, maximise_ease(params.ease, linear, quadratic)


def maximise_ease(ease: Array, linear: Array, quadratic: Array, steps: int = 4) -> Array:
    """Raise  pull e^b - width e^2b / 2 - (b - 1)^2 / 2  in b, one problem per item, by Newton with a guard.

    It need not be concave: where it is not, the step goes uphill with the prior's curvature. A step that would lower
    the value is halved until it does not: half a step passed in each of two million random problems.
    """
    beta = elementary.exp(ease)
    value = _ease_value(ease, beta, linear, quadratic)
    reach = np.ones(len(ease))
    for _ in range(steps):
        gain, loss = linear * beta, quadratic * beta**2
        slope = gain - loss - (ease - _PRIOR_MEAN)
        newton = slope / np.maximum(2 * loss - gain + 1, 1.0)
        trial = np.clip(ease + reach * np.clip(newton, -1.0, 1.0), -_MAX_EASE, _MAX_EASE)
        trial_beta = elementary.exp(trial)
        trial_value = _ease_value(trial, trial_beta, linear, quadratic)
        better = trial_value >= value
        ease = np.where(better, trial, ease)
        np.copyto(beta, trial_beta, where=better)
        np.copyto(value, trial_value, where=better)
        reach = np.where(better, 1.0, reach / 2)
    return ease


def _ease_value(ease: Array, beta: Array, linear: Array, quadratic: Array) -> Array:
    return beta * (linear - 0.5 * quadratic * beta) - 0.5 * (ease - _PRIOR_MEAN) ** 2


def _curvature(logit: Array) -> Array:
    """tanh(s / 2) / (2 s), that of the parabola below log sigmoid; 1/4 at 0."""
    return 0.25 * elementary.tanh_over(0.5 * np.abs(logit))


def _as_statistics(ability: Array, ease: Array, totals: Array) -> Array:
    return np.concatenate([_to_nonnegative(ability, _MAX_ABILITY), _to_nonnegative(ease, _MAX_EASE), totals])


def _to_nonnegative(value: Array, bound: float) -> Array:
    """A number within the bounds as a square that is not negative: the driver moves square roots in straight lines.

    Scaled so that near the expected value a small change stays as large as it is.
    """
    return (value + bound) ** 2 / (2 * (_PRIOR_MEAN + bound))


def _from_nonnegative(statistic: Array, bound: float) -> Array:
    return np.minimum(np.sqrt(2 * (_PRIOR_MEAN + bound) * statistic) - bound, bound)
