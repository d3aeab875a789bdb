"""Noise models given by confusion matrices: how a worker errs.

The probability of a label depends on (worker, truth, label) alone. Such a model is a frozen dataclass with three
methods:

    solve(counts, previous)   the M step: parameters from the expected counts[worker, truth, label]
    log_confusion(params)     log p(label | truth) for each worker, indexed [worker, truth, label]
    log_penalty(params)       log prior density of the parameters, up to a constant (or minus a divergence)

`previous` are the parameters of the last iteration, or None in the first; models with a closed form ignore them.
`solve` never lowers  sum(counts * log_confusion) + log_penalty  below its value at `previous`, as exact EM requires.

This module holds the full confusion matrix (Dawid and Skene), one accuracy per worker, competence and spam (MACE), and
Dirichlet posteriors (IBCC). `ordinal_noise` has workers with bias and spread on an ordered scale, `pooled_noise` a
mixture of worker types with fitted priors. Abilities against difficulties (`ability`) are no confusion matrices.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypeVar, runtime_checkable

import numpy as np

from manyhands._core import elementary
from manyhands._core.arrays import Array

P = TypeVar("P")


class NoiseModel(Protocol[P]):
    """Interface of a noise model that `fit_confusion_em` can fit."""

    def solve(self, counts: Array, previous: P | None) -> P:
        """The M step: parameters from expected counts, shape (n_workers, n_classes, n_classes)."""

    def log_confusion(self, params: P) -> Array:
        """Log confusion matrices, shape (n_workers, n_classes, n_classes), indexed [worker, truth, label]."""

    def log_penalty(self, params: P) -> float:
        """What the prior of the parameters adds to the objective."""


@runtime_checkable
class HasHyperparameters(Protocol[P]):
    """A noise model with hyper-parameters that `solve` updates slowly: positive numbers, as one vector.

    The EM driver extrapolates them together with the expected counts.
    """

    def hyperparameters(self, params: P | None) -> Array:
        """The hyper-parameters as one vector; the initial ones for None."""

    def with_hyperparameters(self, hyperparameters: Array, previous: P | None) -> P | None:
        """The previous parameters with these hyper-parameters in the place of their own."""


def safe_log(p: Array) -> Array:
    """Logarithm with the smallest positive double in the place of 0, so that sums of logarithms stay finite.

    Examples
    --------
    >>> safe_log(np.array([1.0, 0.0])).round(1).tolist()
    [0.0, -708.4]
    """
    return np.asarray(elementary.log(np.maximum(p, np.finfo(np.float64).tiny)))


def pseudo_count_matrix(n_classes: int, right: float, wrong: float) -> Array:
    """Matrix of pseudo-counts for a confusion matrix.

    Examples
    --------
    >>> pseudo_count_matrix(3, 2.0, 1.0).tolist()
    [[2.0, 0.5, 0.5], [0.5, 2.0, 0.5], [0.5, 0.5, 2.0]]

    Shapes: returns (n_classes, n_classes).
    """
    pseudo = np.full((n_classes, n_classes), wrong / max(n_classes - 1, 1))
    np.fill_diagonal(pseudo, right)
    return pseudo


# ----------------------------------------------------------------------------------------------------
# A full confusion matrix for every worker (Dawid and Skene 1979).
#
#     p(label = l | truth = k, worker = w) = confusion[w, k, l]
#
# Papers on learning with noisy labels call it the transition matrix T of the worker.


@dataclass(frozen=True)
class ConfusionNoise:
    """Confusion matrices with a symmetric Dirichlet prior on each row.

    The parameters are their logarithms, shape (n_workers, n_classes, n_classes).
    """

    smoothing: float  # pseudo-count added to each cell

    def solve(self, counts: Array, previous: Array | None) -> Array:
        """The M step in closed form: log of the smoothed and normalised counts.

        Shapes: counts (n_workers, n_classes, n_classes); returns (n_workers, n_classes, n_classes).
        """
        labels = counts + self.smoothing  # (n_workers, n_classes, n_classes)
        if self.smoothing == 0:
            labels[labels.sum(axis=2) == 0] = 1.0  # no item of this class: a uniform row
        log = safe_log if self.smoothing == 0 else elementary.log
        total, log_confusion = elementary.log(labels.sum(axis=2, keepdims=True)), log(labels)
        log_confusion -= total
        return log_confusion

    def log_confusion(self, params: Array) -> Array:
        """The parameters themselves."""
        return params

    def log_penalty(self, params: Array) -> float:
        """Log density of the Dirichlet priors, up to a constant."""
        return self.smoothing * float(params.sum())


# ----------------------------------------------------------------------------------------------------
# One-coin model: one accuracy for every worker; errors are spread evenly over the other classes.
#
# p(l | k, w) = accuracy[w] if l = k else (1 - accuracy[w]) / (n_classes - 1)


@dataclass(frozen=True)
class OneCoinNoise:
    """Accuracies with a Beta prior; the parameters are the accuracies, shape (n_workers,)."""

    n_classes: int
    smoothing: float  # pseudo-count of the prior: labels that it is worth
    prior_accuracy: float  # share of these pseudo-counts that are right

    def solve(self, counts: Array, previous: Array | None) -> Array:
        """The M step in closed form: smoothed share of right labels; the prior accuracy without any label."""
        right = np.trace(counts, axis1=1, axis2=2) + self.smoothing * self.prior_accuracy
        total = counts.sum(axis=(1, 2)) + self.smoothing
        return np.divide(right, total, out=np.full(len(total), self.prior_accuracy), where=total > 0)

    def log_confusion(self, params: Array) -> Array:
        """Log confusion matrices with the accuracy on the diagonal and equal errors elsewhere.

        Shapes: params (n_workers,); returns (n_workers, n_classes, n_classes).
        """
        wrong = safe_log((1 - params) / max(self.n_classes - 1, 1))
        table = np.repeat(wrong, self.n_classes**2).reshape(-1, self.n_classes, self.n_classes)
        diagonal = np.arange(self.n_classes)
        table[:, diagonal, diagonal] = safe_log(params)[:, None] if self.n_classes > 1 else 0.0
        return table

    def log_penalty(self, params: Array) -> float:
        """Log density of the Beta priors, up to a constant."""
        if self.n_classes == 1:
            return 0.0
        right, wrong = self.smoothing * self.prior_accuracy, self.smoothing * (1 - self.prior_accuracy)
        return float((right * safe_log(params) + wrong * safe_log(1 - params)).sum())


# ----------------------------------------------------------------------------------------------------
# The model of MACE: a worker either knows the truth or draws a label from a spam distribution (Hovy et al. 2013).
#
#     p(label = l | truth = k, worker = w) = competence[w] [l = k] + (1 - competence[w]) spam_distribution[w, l]
#
# A worker's parameters are a point of the simplex: competence, then spam[l] = (1 - competence) spam_distribution[l]. In
# these parameters the M step is a concave problem.

_FIRST_STEPS = 25  # of the inner EM, from the prior mean
_BORDER = 0.01  # least initial competence, and least initial spam: the inner EM never leaves 0 or 1; ours
_STEPS = 5  # from the last parameters; of 2, 3, 5, 10 and 20 this took the least time on the real data sets


@dataclass(frozen=True)
class SpammerNoise:
    """Competence and spam distribution of every worker, with a Dirichlet prior.

    The parameters are an array of shape (1 + n_classes, n_workers) whose columns sum to 1.
    """

    n_classes: int
    smoothing: float  # pseudo-count of the prior: labels that it is worth
    # share of these pseudo-counts in which the truth is known; the others are spread evenly over the classes
    prior_competence: float

    def solve(self, counts: Array, previous: Array | None) -> Array:
        """The M step by an inner EM, which divides the right labels into known ones and spam that is right by chance.

        Shapes: counts (n_workers, n_classes, n_classes); previous (1 + n_classes, n_workers); returns (1 + n_classes,
        n_workers).
        """
        right = np.diagonal(counts, axis1=1, axis2=2).T.copy()  # (n_classes, n_workers)
        wrong = np.maximum(counts.sum(axis=1).T - right, 0.0)
        params, steps = (self._initial(len(counts)), _FIRST_STEPS) if previous is None else (previous, _STEPS)
        for _ in range(steps):
            params = self._inner_em_step(right, wrong, params)
        return params

    def log_confusion(self, params: Array) -> Array:
        """Log confusion matrices: spam everywhere, and competence on the diagonal.

        Shapes: params (1 + n_classes, n_workers); returns (n_workers, n_classes, n_classes).
        """
        competence, spam = params[:1].T, params[1:].T
        # Memory layout [worker, label, truth], as the pass reads it: the row of a wrong label is constant.
        table = np.repeat(safe_log(spam), self.n_classes, axis=1).reshape(-1, self.n_classes, self.n_classes)
        diagonal = np.arange(self.n_classes)
        table[:, diagonal, diagonal] = safe_log(competence + spam)
        return table.transpose(0, 2, 1)

    def log_penalty(self, params: Array) -> float:
        """Log density of the Dirichlet priors, up to a constant."""
        return float((safe_log(params) * self._prior()).sum()) if self.smoothing else 0.0

    def _prior(self) -> Array:
        """Pseudo-counts of knowledge and of each spam label, shape (1 + n_classes, 1)."""
        spam = (1 - self.prior_competence) / self.n_classes
        return self.smoothing * np.array([self.prior_competence, *[spam] * self.n_classes])[:, None]

    def _initial(self, n_workers: int) -> Array:
        """Parameters at the prior mean, moved inside the simplex by `_BORDER`."""
        competence = min(max(self.prior_competence, _BORDER), 1 - _BORDER)
        column = np.array([competence, *[(1 - competence) / self.n_classes] * self.n_classes])
        return np.repeat(column[:, None], n_workers, axis=1)

    def _inner_em_step(self, right: Array, wrong: Array, params: Array) -> Array:
        """One step of the inner EM: the expected number of known labels, then the shares of knowledge and spam."""
        competence, spam = params[0], params[1:]
        competent = right * (competence / np.maximum(competence + spam, np.finfo(np.float64).tiny))
        better = np.concatenate([competent.sum(axis=0, keepdims=True), wrong + (right - competent)])
        better += self._prior()
        total = better.sum(axis=0)
        return np.divide(better, total, out=params.copy(), where=total > 0)  # without labels and prior: unchanged


# ----------------------------------------------------------------------------------------------------
# Variational Bayes: Dirichlet posteriors of confusion matrices and class frequencies.
#
#     posterior    confusion[w, k, :] ~ Dirichlet(prior + expected counts), and likewise the class frequencies
#     table        E log confusion[w, k, l] = digamma(concentration[w, k, l]) - digamma(sum over l)
#     penalty      minus the divergence KL(posterior || prior)
#
# The evidence plus the penalty is the lower bound (ELBO) on log p(labels). SciPy is imported where it is needed: the
# executors of a cluster, which need the other models, may not have it.

_EULER = 0.5772156649015329  # minus digamma(1)


@dataclass(frozen=True)
class VariationalConfusion:
    """Rows of confusion matrices with a Dirichlet prior.

    The parameters are the concentrations of the posteriors, shape (n_workers, n_classes, n_classes).
    """

    n_classes: int
    smoothing: float  # pseudo-count of each row
    prior_accuracy: float  # share of it on the diagonal

    def solve(self, counts: Array, previous: Array | None) -> Array:
        """The M step: concentrations are prior plus expected counts."""
        return counts + self._prior()

    def log_confusion(self, params: Array) -> Array:
        """Expected log confusion matrices under the posterior."""
        return expected_log(params)

    def log_penalty(self, params: Array) -> float:
        """Minus the divergence of the posterior from the prior."""
        return -dirichlet_divergence(params, self._prior())

    def _prior(self) -> Array:
        """Concentrations of the prior, shape (n_classes, n_classes), large on the diagonal."""
        if self.n_classes == 1:
            return np.full((1, 1), self.smoothing)
        prior = np.full((self.n_classes, self.n_classes), (1 - self.prior_accuracy) / (self.n_classes - 1))
        np.fill_diagonal(prior, self.prior_accuracy)
        return self.smoothing * prior


@dataclass(frozen=True)
class VariationalPrior:
    """Class frequencies with a symmetric Dirichlet prior and a Dirichlet posterior."""

    n_items: int  # number of labelled items
    smoothing: float  # pseudo-count: items added to each class

    def solve(self, totals: Array) -> Array:
        """E log p(truth) under the posterior given the expected class totals."""
        # Totals of an extrapolation need not sum to n_items, but `log_penalty` assumes that they do.
        totals = totals * (self.n_items / totals.sum())
        return expected_log(totals + self.smoothing)

    def log_penalty(self, log_prior: Array) -> float:
        """Minus the divergence of the posterior from the prior."""
        return -dirichlet_divergence(self.concentration(log_prior), np.full(len(log_prior), self.smoothing))

    def concentration(self, log_prior: Array) -> Array:
        """Concentrations of the posterior behind the output of `solve`.

        Their sum is known, so digamma can be inverted.

        Shapes: log_prior (n_classes,); returns (n_classes,).
        """
        from scipy.special import digamma

        total = self.n_items + self.smoothing * len(log_prior)
        return inverse_digamma(log_prior + digamma(total))


def expected_log(concentration: Array) -> Array:
    """E log p under Dirichlet distributions along the last axis.

    Shapes: concentration (..., n_classes).
    """
    from scipy.special import digamma

    expected: Array = digamma(concentration) - digamma(concentration.sum(axis=-1, keepdims=True))
    return expected


def dirichlet_divergence(concentration: Array, prior: Array) -> float:
    """Kullback-Leibler divergence KL(Dirichlet(concentration) || Dirichlet(prior)), summed over all but the last axis.

    Shapes: concentration (..., n_classes); prior (..., n_classes).
    """
    from scipy.special import gammaln

    log_norm = gammaln(concentration.sum(axis=-1)) - gammaln(concentration).sum(axis=-1)
    prior_norm = gammaln(prior.sum(axis=-1)) - gammaln(prior).sum(axis=-1)
    drift = ((concentration - prior) * expected_log(concentration)).sum(axis=-1)
    return float(np.sum(log_norm - prior_norm + drift))


def inverse_digamma(value: Array) -> Array:
    """The inverse of digamma by Newton's method, from a start that is right at both ends (Minka 2000).

    Examples
    --------
    >>> from scipy.special import digamma
    >>> bool(np.allclose(digamma(inverse_digamma(np.array([-50.0, 0.0, 9.0]))), [-50.0, 0.0, 9.0]))
    True
    """
    from scipy.special import digamma, polygamma

    # Where the two starts meet, and steps for full precision (five give 14 digits): Minka 2000, appendix C.
    x: Array = np.where(value >= -2.22, elementary.exp(value) + 0.5, -1.0 / np.minimum(value + _EULER, -1.0))
    for _ in range(6):
        x = x - (digamma(x) - value) / polygamma(1, x)
    return x
