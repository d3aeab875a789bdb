"""Dirichlet-multinomial arithmetic for many workers at once: evidence, expected logarithms, Minka's fixed point.

References
----------
T. Minka (2000), Estimating a Dirichlet distribution.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import digamma, gammaln

from manyhands.em.threads import spread
from manyhands.noise import Array

# Hyper-prior x^SHAPE exp(-RATE x) of every Beta and Dirichlet parameter x, which keeps it away from 0 and infinity.
SHAPE, RATE = 0.5, 0.05


_MIN_SPARSE = 1 << 12  # numbers; with fewer, finding the zeros costs more than it saves
_SPARSE = 0.6  # largest share of non-zero counts at which zeros are treated apart
_MAX_SHORT = 7  # numbers that NumPy adds one after another; longer sums are pairwise
Special = Callable[..., Array]  # element-wise, with `out`: digamma, gammaln
Log = Callable[[Array], Array]  # digamma gives expected logarithms, log gives logarithms of expectations


def log_shares(alpha: Array, counts: Array, log: Log) -> Array:
    """Log of the category shares under Dirichlet posteriors along the last axis.

    Parameters
    ----------
    alpha : ndarray of shape (..., n)
        Parameters of the Dirichlet prior.
    counts : ndarray of shape (n_workers, ..., n)
        Expected counts.
    log : callable
        digamma for expected logarithms, a logarithm for logarithms of the expected shares.

    Returns
    -------
    ndarray of the shape of `counts`
    """
    shifted = alpha + counts
    cells = _at_counts(digamma, alpha, counts, shifted) if log is digamma else log(shifted)
    return cells - log(sum_last(shifted))[..., None]


def dirichlet_evidence(alpha: Array, counts: Array) -> Array:
    """Log marginal likelihood log p(counts) under Dirichlet priors along the last axis.

    Parameters
    ----------
    alpha : ndarray of shape (..., n)
        Parameters of the Dirichlet prior.
    counts : ndarray of shape (n_workers, ..., n)
        Expected counts.

    Returns
    -------
    ndarray of shape (n_workers, ...)
    """
    strength, total = alpha.sum(axis=-1), sum_last(counts)
    cells = sum_last(_at_counts(gammaln, alpha, counts, alpha + counts) - gammaln(alpha))
    return cells - gammaln(strength + total) + gammaln(strength)


def fixed_point(alpha: Array, counts: Array, p: Array) -> Array:
    """One step of Minka's fixed point for the parameters of Dirichlet priors along the last axis.

    The objective, the weighted evidence plus the log hyper-prior, never falls.

    Parameters
    ----------
    alpha : ndarray of shape (..., n)
        Parameters to improve.
    counts : ndarray of shape (n_workers, ..., n)
        Expected counts.
    p : ndarray of shape (n_workers,)
        Weight of each worker.

    Returns
    -------
    ndarray of the shape of `alpha`
    """
    strength, total = alpha.sum(axis=-1), sum_last(counts)
    gained = np.einsum("w,w...->...", p, _at_counts(digamma, alpha, counts, alpha + counts) - digamma(alpha))
    spent = np.einsum("w,w...->...", p, digamma(strength + total) - digamma(strength))
    return (alpha * gained + SHAPE) / (spent + RATE)[..., None]


def _at_counts(function: Special, alpha: Array, counts: Array, shifted: Array) -> Array:
    """`function(alpha + counts)`, computed once for all labels that a worker never gave, where most counts are 0."""
    if shifted.ndim < 3 or shifted.size < _MIN_SPARSE:
        return spread(function, shifted)
    by_label, shifted_by_label = counts.transpose(0, 2, 1), shifted.transpose(0, 2, 1)  # the layout of a pass
    given = np.flatnonzero(by_label.any(axis=2))  # (worker, label)
    if len(given) > _SPARSE * counts.shape[0] * counts.shape[2]:
        return spread(function, shifted)
    result = np.tile(function(alpha).T, (len(counts), 1))  # (worker and label, truth)
    result[given] = spread(function, shifted_by_label.reshape(result.shape)[given])
    return result.reshape(by_label.shape).transpose(0, 2, 1)


def sum_last(x: Array) -> Array:
    """`x.sum(axis=-1)` to the last bit, and many times as fast where the last axis is short.

    Parameters
    ----------
    x : ndarray
        Numbers to sum.

    Returns
    -------
    ndarray
        Of the shape of `x` without its last axis.
    """
    if not 0 < x.shape[-1] <= _MAX_SHORT:
        return np.asarray(x.sum(axis=-1))
    total = x[..., 0].copy()
    for k in range(1, x.shape[-1]):
        total += x[..., k]
    return total
