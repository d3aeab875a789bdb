"""Variational Bayes: Dirichlet posteriors of confusion matrices and class frequencies.

    posterior    confusion[w, k, :] ~ Dirichlet(prior + expected counts), and likewise the class frequencies
    table        E log confusion[w, k, l] = digamma(concentration[w, k, l]) - digamma(sum over l)
    penalty      minus the divergence KL(posterior || prior)

The evidence plus the penalty is the lower bound (ELBO) on log p(labels).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import digamma, gammaln, polygamma

from manyhands import elementary
from manyhands.noise import Array

_EULER = 0.5772156649015329  # minus digamma(1)


@dataclass(frozen=True)
class VariationalConfusion:
    """Rows of confusion matrices with a Dirichlet prior.

    The parameters are the concentrations of the posteriors, shape (n_workers, n_classes, n_classes).

    Parameters
    ----------
    n_classes : int
        Number of classes.
    smoothing : float
        Pseudo-count of each row.
    prior_accuracy : float
        Share of it on the diagonal.
    """

    n_classes: int
    smoothing: float
    prior_accuracy: float

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
    """Class frequencies with a symmetric Dirichlet prior and a Dirichlet posterior.

    Parameters
    ----------
    n_items : int
        Number of labelled items.
    smoothing : float
        Pseudo-count: items added to each class.
    """

    n_items: int
    smoothing: float

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

        Parameters
        ----------
        log_prior : ndarray of shape (n_classes,)
            E log p(truth).

        Returns
        -------
        ndarray of shape (n_classes,)
        """
        total = self.n_items + self.smoothing * len(log_prior)
        return inverse_digamma(log_prior + digamma(total))


def expected_log(concentration: Array) -> Array:
    """E log p under Dirichlet distributions along the last axis.

    Parameters
    ----------
    concentration : ndarray of shape (..., n_classes)
        Parameters of the distributions.

    Returns
    -------
    ndarray of the shape of `concentration`
    """
    expected: Array = digamma(concentration) - digamma(concentration.sum(axis=-1, keepdims=True))
    return expected


def dirichlet_divergence(concentration: Array, prior: Array) -> float:
    """Kullback-Leibler divergence KL(Dirichlet(concentration) || Dirichlet(prior)), summed over all but the last axis.

    Parameters
    ----------
    concentration : ndarray of shape (..., n_classes)
        Parameters of the first distributions.
    prior : ndarray of shape (..., n_classes)
        Parameters of the second distributions.

    Returns
    -------
    float
    """
    log_norm = gammaln(concentration.sum(axis=-1)) - gammaln(concentration).sum(axis=-1)
    prior_norm = gammaln(prior.sum(axis=-1)) - gammaln(prior).sum(axis=-1)
    drift = ((concentration - prior) * expected_log(concentration)).sum(axis=-1)
    return float(np.sum(log_norm - prior_norm + drift))


def inverse_digamma(value: Array) -> Array:
    """The inverse of digamma by Newton's method, from a start that is right at both ends (Minka 2000).

    Parameters
    ----------
    value : ndarray
        Values of digamma.

    Returns
    -------
    ndarray of the shape of `value`
        x > 0 with digamma(x) = value.

    Examples
    --------
    >>> bool(np.allclose(digamma(inverse_digamma(np.array([-50.0, 0.0, 9.0]))), [-50.0, 0.0, 9.0]))
    True
    """
    x: Array = np.where(value >= -2.22, elementary.exp(value) + 0.5, -1.0 / np.minimum(value + _EULER, -1.0))
    for _ in range(6):
        x = x - (digamma(x) - value) / polygamma(1, x)
    return x
