"""Dirichlet."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import digamma, gammaln

from manyhands.em.threads import spread
from manyhands.noise import Array

# Hyper-prior x^SHAPE exp(-RATE x) of every Beta and Dirichlet parameter x, which keeps it away from 0 and infinity.
SHAPE, RATE = 0.5, 0.05


_MIN_SPARSE = 1 << 12  # numbers; fewer are done before the zeros among them are found
_SPARSE = 0.6  # share of counts that are not 0
_MAX_SHORT = 7  # numbers that NumPy adds one after another; more it adds in an order of its own
Special = Callable[..., Array]  # of single numbers, with `out`: digamma, gammaln
Log = Callable[[Array], Array]  # digamma gives expected logarithms, log gives logarithms of expectations


def log_shares(alpha: Array, counts: Array, log: Log) -> Array:
    """Logarithms, expected or of expectations, of the shares under Dirichlets over the last axis."""
    shifted = alpha + counts
    cells = _at_counts(digamma, alpha, counts, shifted) if log is digamma else log(shifted)
    return cells - log(sum_last(shifted))[..., None]


def dirichlet_evidence(alpha: Array, counts: Array) -> Array:
    """log p(counts) under Dirichlets over the last axis."""
    strength, total = alpha.sum(axis=-1), sum_last(counts)
    cells = sum_last(_at_counts(gammaln, alpha, counts, alpha + counts) - gammaln(alpha))
    return cells - gammaln(strength + total) + gammaln(strength)


def fixed_point(alpha: Array, counts: Array, p: Array) -> Array:
    """Minka's step for Dirichlets over the last axis, worker w counting p[w]; `counts` is (n_workers, *alpha.shape)."""
    strength, total = alpha.sum(axis=-1), sum_last(counts)
    gained = np.einsum("w,w...->...", p, _at_counts(digamma, alpha, counts, alpha + counts) - digamma(alpha))
    spent = np.einsum("w,w...->...", p, digamma(strength + total) - digamma(strength))
    return (alpha * gained + SHAPE) / (spent + RATE)[..., None]


def _at_counts(function: Special, alpha: Array, counts: Array, shifted: Array) -> Array:
    """`function(alpha + counts)`; worked out once for all labels that a worker never gave, where most are such."""
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
    """`x.sum(axis=-1)` to the last bit, and many times as fast where the last axis is short."""
    if not 0 < x.shape[-1] <= _MAX_SHORT:
        return np.asarray(x.sum(axis=-1))
    total = x[..., 0].copy()
    for k in range(1, x.shape[-1]):
        total += x[..., k]
    return total
