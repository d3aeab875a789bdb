"""Confusion matrices and class frequencies of which a belief is kept, not a single best value (variational Bayes).

belief:      confusion[w, k, :] ~ Dirichlet(prior + expected counts), and likewise the class frequencies
table:       E log confusion[w, k, l] = digamma(concentration[w, k, l]) - digamma(sum over l)
penalty:     minus the divergence KL(belief || prior), so that evidence + penalty is the bound on log p(labels)
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
    """Rows with a Dirichlet prior worth `smoothing` labels, of which the share `prior_accuracy` is right.

    The parameters are the concentrations of the beliefs, (n_workers, n_classes, n_classes).
    """

    n_classes: int
    smoothing: float
    prior_accuracy: float

    def solve(self, counts: Array, previous: Array | None) -> Array:
        return counts + self._prior()

    def log_table(self, params: Array) -> Array:
        return expected_log(params)

    def log_penalty(self, params: Array) -> float:
        return -dirichlet_divergence(params, self._prior())

    def _prior(self) -> Array:
        """(n_classes, n_classes) the concentrations before any label is seen, heavy on the diagonal."""
        if self.n_classes == 1:
            return np.full((1, 1), self.smoothing)
        prior = np.full((self.n_classes, self.n_classes), (1 - self.prior_accuracy) / (self.n_classes - 1))
        np.fill_diagonal(prior, self.prior_accuracy)
        return self.smoothing * prior


@dataclass(frozen=True)
class VariationalPrior:
    """Class frequencies of `n_items` labelled items, with a Dirichlet prior worth `smoothing` items per class."""

    n_items: int
    smoothing: float

    def solve(self, totals: Array) -> Array:
        """E log p(truth) under the belief that the totals give."""
        # An extrapolation may leave totals that do not add up; `log_penalty` counts on it that they do.
        totals = totals * (self.n_items / totals.sum())
        return expected_log(totals + self.smoothing)

    def log_penalty(self, log_prior: Array) -> float:
        return -dirichlet_divergence(self.concentration(log_prior), np.full(len(log_prior), self.smoothing))

    def concentration(self, log_prior: Array) -> Array:
        """(n_classes,) the belief behind what `solve` returned: its sum is known, so digamma can be undone."""
        total = self.n_items + self.smoothing * len(log_prior)
        return inverse_digamma(log_prior + digamma(total))


def expected_log(concentration: Array) -> Array:
    """E log p under Dirichlet beliefs, one along the last axis."""
    expected: Array = digamma(concentration) - digamma(concentration.sum(axis=-1, keepdims=True))
    return expected


def dirichlet_divergence(concentration: Array, prior: Array) -> float:
    """KL(Dirichlet(concentration) || Dirichlet(prior)), summed over all but the last axis."""
    log_norm = gammaln(concentration.sum(axis=-1)) - gammaln(concentration).sum(axis=-1)
    prior_norm = gammaln(prior.sum(axis=-1)) - gammaln(prior).sum(axis=-1)
    drift = ((concentration - prior) * expected_log(concentration)).sum(axis=-1)
    return float(np.sum(log_norm - prior_norm + drift))


def inverse_digamma(value: Array) -> Array:
    """X > 0 with digamma(x) = value, by Newton from a start that is right at both ends (Minka 2000).

    >>> bool(np.allclose(digamma(inverse_digamma(np.array([-50.0, 0.0, 9.0]))), [-50.0, 0.0, 9.0]))
    True
    """
    x: Array = np.where(value >= -2.22, elementary.exp(value) + 0.5, -1.0 / np.minimum(value + _EULER, -1.0))
    for _ in range(6):
        x = x - (digamma(x) - value) / polygamma(1, x)
    return x
