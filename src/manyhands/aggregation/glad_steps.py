"""The E step and the M step of GLAD.

    p(label_iw = truth_i) = sigmoid(ability[w] exp(ease[i])),   ability ~ N(1, 1),   ease ~ N(1, 1)

References
----------
T. Jaakkola and M. Jordan (2000), Bayesian parameter estimation via variational methods.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from manyhands import elementary
from manyhands.annotations import Annotations
from manyhands.elementary import softplus
from manyhands.em.e_step import Gold
from manyhands.em.kernels import Array, sums_by
from manyhands.em.priors import ClassPrior, gold_offset

PRIOR_MEAN = 1.0  # prior mean of abilities and eases
_MAX_EASE = 5.0  # bound of the absolute value of eases
_MAX_ABILITY = 20.0  # bound of the absolute value of abilities; the prior keeps them within it anyway


@dataclass(frozen=True)
class GLADParams:
    """Parameters that EM estimates.

    Attributes
    ----------
    ability : ndarray of shape (n_workers,)
        Abilities.
    ease : ndarray of shape (n_items,)
        Log of the paper's beta.
    log_prior : ndarray of shape (n_classes,)
        log p(truth).
    """

    ability: Array
    ease: Array
    log_prior: Array


@dataclass(frozen=True)
class GLADSteps:
    """The E step and the M step of `run_em`.

    The statistics are the next parameters themselves, so that the driver extrapolates abilities and eases: `expect`
    does an E step and the M step that follows from it, `maximise` only reads the outcome. Extrapolation pays: passes
    with it and without were 34 and 150 on snow2008/rte, 29 and 122 on music, 99 and 266 on s_rel.

    Attributes
    ----------
    item : ndarray of shape (n_annotations,) of int
        Item of each label.
    worker : ndarray of shape (n_annotations,) of int
        Worker of each label.
    cell : ndarray of shape (n_annotations,) of int
        label * n_items + item, a layout in which sums and maxima over classes are fast.
    n_workers : int
        Number of workers.
    labelled : ndarray of shape (n_items,) of bool
        Whether an item has labels.
    prior : ClassPrior
        Prior of the truth.
    n_classes : int
        Number of classes.
    offset : ndarray of shape (n_classes, n_items) or None
        What gold adds to the log prior.
    """

    item: npt.NDArray[np.intp]
    worker: npt.NDArray[np.intp]
    cell: npt.NDArray[np.intp]
    n_workers: int
    labelled: npt.NDArray[np.bool_]
    prior: ClassPrior
    n_classes: int
    offset: Array | None

    @classmethod
    def of(cls, annotations: Annotations, prior: ClassPrior, gold: Gold) -> GLADSteps:
        """The steps for these annotations.

        Parameters
        ----------
        annotations : Annotations
            The crowd's labels.
        prior : ClassPrior
            Prior of the truth.
        gold : ndarray of shape (n_items,) of int32 or None
            Class code of each item whose truth is known, -1 elsewhere.

        Returns
        -------
        GLADSteps
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
        """The E step, and the M step that follows from it.

        Parameters
        ----------
        params : GLADParams
            The present parameters.

        Returns
        -------
        statistics : ndarray
            The next parameters, as non-negative numbers.
        objective : float
            The penalised log-likelihood at the present parameters.
        """
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

        Parameters
        ----------
        params : GLADParams
            The parameters.

        Returns
        -------
        ndarray of shape (n_items,)
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

        Parameters
        ----------
        logit : ndarray of shape (n_annotations,)
            Log odds that each label is right.
        log_prior : ndarray of shape (n_classes,)
            log p(truth).

        Returns
        -------
        posterior : ndarray of shape (n_classes, n_items)
            p(truth | labels).
        evidence : float
            log p(labels), summed over the items.
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

        Parameters
        ----------
        p_right : ndarray of shape (n_annotations,)
            Posterior probability that each label is right.
        logit : ndarray of shape (n_annotations,)
            Log odds at the present parameters.
        params : GLADParams
            The present parameters.

        Returns
        -------
        ability : ndarray of shape (n_workers,)
            Updated abilities.
        ease : ndarray of shape (n_items,)
            Updated eases.
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

    Parameters
    ----------
    ease : ndarray of shape (n_items,)
        Where to start.
    linear : ndarray of shape (n_items,)
        Coefficients of e^b.
    quadratic : ndarray of shape (n_items,)
        Coefficients of -e^2b / 2, at least 0.
    steps : int, default=4
        Number of Newton steps.

    Returns
    -------
    ndarray of shape (n_items,)
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
