"""GLAD: an ability for every worker and a difficulty for every item, estimated by EM.

    p(label_iw = truth_i) = sigmoid(ability[w] exp(ease[i])),   errors are spread evenly over the other classes
    ability ~ N(1, 1),   ease ~ N(1, 1),   difficulty[i] = exp(-ease[i])

References
----------
J. Whitehill, P. Ruvolo, T. Wu, J. Bergsma and J. Movellan (2009), Whose vote should count more: optimal integration of
labels from labelers of unknown expertise, NeurIPS.
T. Jaakkola and M. Jordan (2000), Bayesian parameter estimation via variational methods (the bound of the M step).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from manyhands._core import elementary
from manyhands._core.arrays import Array
from manyhands._core.elementary import softplus
from manyhands.aggregation.base import Aggregator, Inference
from manyhands.annotations import Annotations
from manyhands.em.ability import right_or_wrong
from manyhands.em.driver import run_em
from manyhands.em.e_step import Gold
from manyhands.em.kernels import sums_by
from manyhands.em.priors import CLASS_SMOOTHING, ClassPrior, FixedPrior, class_prior, gold_offset
from manyhands.validation import Constraint, Number, Probabilities

# ----------------------------------------------------------------------------------------------------
# The E step and the M step.

PRIOR_MEAN = 1.0  # prior mean of abilities and eases
_MAX_EASE = 5.0  # bound of the absolute value of eases
_MAX_ABILITY = 20.0  # bound of the absolute value of abilities; the prior keeps them within it anyway


@dataclass(frozen=True)
class GLADParams:
    """Parameters that EM estimates."""

    ability: Array  # (n_workers,)
    ease: Array  # (n_items,); log of the paper's beta
    log_prior: Array  # (n_classes,)


@dataclass(frozen=True)
class GLADSteps:
    """The E step and the M step of `run_em`.

    The statistics are the next parameters themselves, so that the driver extrapolates abilities and eases: `expect`
    does an E step and the M step that follows from it, `maximise` only reads the outcome. Extrapolation pays: passes
    with it and without were 34 and 150 on snow2008/rte, 29 and 122 on music, 99 and 266 on s_rel.
    """

    item: npt.NDArray[np.intp]  # (n_annotations,); item of each label
    worker: npt.NDArray[np.intp]  # (n_annotations,); worker of each label
    # (n_annotations,); label * n_items + item, a layout in which sums and maxima over classes are fast
    cell: npt.NDArray[np.intp]
    n_workers: int
    labelled: npt.NDArray[np.bool_]  # (n_items,); whether an item has labels
    prior: ClassPrior  # prior of the truth
    n_classes: int
    offset: Array | None  # (n_classes, n_items); what gold adds to the log prior

    @classmethod
    def of(cls, annotations: Annotations, prior: ClassPrior, gold: Gold) -> GLADSteps:
        """The steps for these annotations.

        Shapes: gold (n_items,).
        """
        n_classes = annotations.n_classes
        item, worker = annotations.item.astype(np.intp), annotations.worker.astype(np.intp)
        cell = annotations.label * np.intp(annotations.n_items) + item
        offset = gold_offset(gold, n_classes)
        offset = None if offset is None else offset.T
        return cls(item, worker, cell, annotations.n_workers, annotations.n_labels > 0, prior, n_classes, offset)

    @property
    def n_items(self) -> int:
        """Number of items."""
        return len(self.labelled)

    def start(self) -> Array:
        """Initial statistics: abilities and eases at their prior mean, class frequencies from the labels."""
        votes = np.bincount(self.cell // self.n_items, minlength=self.n_classes)
        return _as_statistics(
            np.full(self.n_workers, PRIOR_MEAN), np.full(self.n_items, PRIOR_MEAN), votes.astype(float)
        )

    def maximise(self, statistics: Array, previous: GLADParams | None) -> GLADParams:
        """Read the parameters from the statistics."""
        ability, ease, totals = np.split(statistics, [self.n_workers, self.n_workers + self.n_items])
        return GLADParams(
            _from_nonnegative(ability, _MAX_ABILITY), _from_nonnegative(ease, _MAX_EASE), self.prior.solve(totals)
        )

    def expect(self, params: GLADParams) -> tuple[Array, float]:
        """The E step, and the M step that follows from it."""
        logit = self.logit(params)
        posterior, evidence = self.e_step(logit, params.log_prior)
        penalty = -0.5 * float(np.sum((params.ability - PRIOR_MEAN) ** 2) + np.sum((params.ease - PRIOR_MEAN) ** 2))
        ability, ease = self.m_step(posterior.ravel()[self.cell], logit, params)
        totals = posterior[:, self.labelled].sum(axis=1)
        objective = evidence + penalty + self.prior.log_penalty(params.log_prior)
        return _as_statistics(ability, ease, totals), objective

    def logit(self, params: GLADParams) -> Array:
        """Log odds that each label is right, shape (n_annotations,)."""
        return params.ability[self.worker] * elementary.exp(params.ease)[self.item]

    def item_accuracy(self, params: GLADParams) -> Array:
        """Expected share of right labels of each item; that of an average worker for items without labels.

        Shapes: returns (n_items,).
        """
        n_labels = np.bincount(self.item, minlength=self.n_items)
        total = sums_by(self.item, elementary.exp(-softplus(-self.logit(params))), self.n_items)
        average = params.ability[np.unique(self.worker)].mean()
        unlabelled = elementary.exp(-softplus(-average * elementary.exp(params.ease)))
        return np.where(self.labelled, total / np.maximum(n_labels, 1), unlabelled)

    def e_step(self, logit: Array, log_prior: Array) -> tuple[Array, float]:
        """The posterior, and log p(labels).

        Every label is first taken as wrong, with probability sigmoid(-logit) / (n_classes - 1); the class that it names
        then gains the log odds of right against wrong, logit + log(n_classes - 1). That is a weighted vote.

        Shapes: logit (n_annotations,); log_prior (n_classes,); returns posterior (n_classes, n_items).
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

        log sigmoid(s) lies above a parabola that touches it at s and -s (Jaakkola and Jordan 2000). With this bound in
        the place of the sigmoid every ability has a closed form and every ease is a problem with two coefficients;
        neither step can lower the objective of EM.

        Shapes: p_right (n_annotations,); logit (n_annotations,); returns ability (n_workers,); returns ease
        (n_items,).
        """
        surplus = p_right - 0.5
        beta = elementary.exp(params.ease)[self.item]
        linear = sums_by(self.worker, surplus * beta, self.n_workers)
        quadratic = sums_by(self.worker, _curvature(logit) * beta**2, self.n_workers)
        ability = np.clip((linear + PRIOR_MEAN) / (quadratic + 1.0), -_MAX_ABILITY, _MAX_ABILITY)
        by_label = ability[self.worker]
        linear = sums_by(self.item, surplus * by_label, self.n_items)
        quadratic = sums_by(self.item, _curvature(by_label * beta) * by_label**2, self.n_items)
        return ability, maximise_ease(params.ease, linear, quadratic)


def maximise_ease(ease: Array, linear: Array, quadratic: Array, steps: int = 4) -> Array:
    """Raise  linear e^b - quadratic e^2b / 2 - (b - 1)^2 / 2  in b, one problem per item, by guarded Newton steps.

    The function need not be concave: where it is not, the step follows the gradient with the curvature of the prior. A
    step that would lower the value is halved in the next iteration.

    Shapes: ease (n_items,); linear (n_items,); quadratic (n_items,); returns (n_items,).
    """
    beta = elementary.exp(ease)
    value = _ease_value(ease, beta, linear, quadratic)
    reach = np.ones(len(ease))
    for _ in range(steps):
        gain, loss = linear * beta, quadratic * beta**2
        slope = gain - loss - (ease - PRIOR_MEAN)
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
    """The objective of `maximise_ease`."""
    return beta * (linear - 0.5 * quadratic * beta) - 0.5 * (ease - PRIOR_MEAN) ** 2


def _curvature(logit: Array) -> Array:
    """tanh(s / 2) / (2 s), the curvature of the parabola below log sigmoid; 1/4 at 0."""
    return 0.25 * elementary.tanh_over(0.5 * np.abs(logit))


def _as_statistics(ability: Array, ease: Array, totals: Array) -> Array:
    """Abilities, eases and class totals as the vector of statistics of the driver."""
    return np.concatenate([_to_nonnegative(ability, _MAX_ABILITY), _to_nonnegative(ease, _MAX_EASE), totals])


def _to_nonnegative(value: Array, bound: float) -> Array:
    """Map a bounded parameter to a non-negative statistic, since the driver extrapolates square roots linearly.

    It is scaled so that near the prior mean a small change keeps its size.
    """
    return (value + bound) ** 2 / (2 * (PRIOR_MEAN + bound))


def _from_nonnegative(statistic: Array, bound: float) -> Array:
    """The inverse of `_to_nonnegative`, clipped to the bound."""
    return np.minimum(np.sqrt(2 * (PRIOR_MEAN + bound) * statistic) - bound, bound)


# ----------------------------------------------------------------------------------------------------
# The estimator.


class GLAD(Aggregator):
    """GLAD: ability of workers times ease of items; a wrong label on a hard item lowers an ability less.

        p(label_iw = truth_i) = sigmoid(ability[w] exp(ease[i])),   ability ~ N(1, 1),   ease ~ N(1, 1)

    Wrong labels are spread evenly over the other classes. EM maximises the penalised likelihood of abilities and eases.

    Use it where items differ in difficulty and workers have few labels each. Not where workers prefer particular
    classes: like `OneCoin` it has no bias of workers, and such workers mislead it; use `MACE` or `PooledDawidSkene`
    there.

    Parameters
    ----------
    prior : {"estimated", "uniform"} or array-like of shape (n_classes,), default="uniform"
        Class prior: frequencies estimated from the data, a uniform class prior, or a given frequency for each class.
    max_iter : int, default=1000
        Maximum number of EM iterations (passes over the data).
    tol : float, default=1e-6
        Stop when the estimated distance to the optimum is below `tol` times the objective.

    Attributes
    ----------
    ability_ : ndarray of shape (n_workers,)
        Abilities: 1 is the prior mean, 0 is chance, negative is wrong more often than right.
    difficulty_ : ndarray of shape (n_items,)
        Difficulties exp(-ease), positive; exp(-1) is the prior mean, and the value of items without labels.
    item_accuracy_ : ndarray of shape (n_items,)
        Expected share of right labels of each item; that of an average worker if it has none.
    class_prior_ : ndarray of shape (n_classes,)
        Class frequencies.

    References
    ----------
    J. Whitehill, P. Ruvolo, T. Wu, J. Bergsma and J. Movellan (2009), Whose vote should count more: optimal integration
    of labels from labelers of unknown expertise, NeurIPS.

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

    _of_items: ClassVar[tuple[str, ...]] = (*Aggregator._of_items, "difficulty_", "item_accuracy_", "_ease")

    ability_: Array
    difficulty_: Array
    item_accuracy_: Array
    _ability: Array  # (n_workers + 1,) the last worker is an unseen one
    _ease: Array  # (n_items,)
    class_prior_: Array

    def __init__(self, prior: str | npt.ArrayLike = "uniform", max_iter: int = 1000, tol: float = 1e-6) -> None:
        self.prior = prior
        self.max_iter = max_iter
        self.tol = tol

    def _infer(self, annotations: Annotations, gold: Gold) -> Inference:
        prior = class_prior(self.prior, annotations.n_classes, smoothing=CLASS_SMOOTHING)
        steps = GLADSteps.of(annotations, prior, gold)
        result = run_em(steps, steps.start(), max_iter=self.max_iter, tol=self.tol, what="GLAD")
        params = result.params
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
        return Inference(posterior.T.copy(), None, result.n_iter, result.converged, result.history, results)

    def _posterior(self, annotations: Annotations, gold: Gold) -> Array:
        """An E step; items of `fit` keep their difficulty, others have the prior mean."""
        params = GLADParams(self._ability, self._ease_of(annotations), self._log_prior)
        steps = GLADSteps.of(annotations, FixedPrior(self._log_prior), gold)
        return steps.e_step(steps.logit(params), self._log_prior)[0].T.copy()

    def _label_given_truth(self, annotations: Annotations) -> Array:
        """Log p(label | truth, ability, ease); the ease is that of the training labels, or the prior mean."""
        logit = self._ability[annotations.worker] * elementary.exp(self._ease_of(annotations))[annotations.item]
        return right_or_wrong(annotations, np.repeat(logit[:, None], annotations.n_classes, axis=1))

    def _ease_of(self, annotations: Annotations) -> Array:
        """Ease of these items as estimated by `fit`; the prior mean of others."""
        row_of = {item: i for i, item in enumerate(self.item_ids_.tolist())}
        row = np.array([row_of.get(item, -1) for item in annotations.item_ids.tolist()])
        return np.where(row >= 0, self._ease[row], PRIOR_MEAN)
