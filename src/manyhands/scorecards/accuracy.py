"""How often a worker is right, with a 95% interval.

Let q be the chance that a label is right as the others see it. Of a worker of accuracy a it is then right with

    r(a) = q a^p / (q a^p + (1 - q) ((1 - a) / (n_classes - 1))^p)

and (r(a) - a) / (a (1 - a)), summed over labels, is the slope of the log likelihood. With p = 1, for labels that are
independent given the truth, it is that of a binomial seen through doubt: doubt makes it flat, and the worker no worse.
With the power p < 1 of the posterior, workers err on the same items, and their own label says less against the others'
doubt. A power is known from held-out labels, and badly from few; so half of the belief goes by it and half by p = 1.

The prior is a Beta drawn from the crowd, averaged over what its mean and strength may be: of a single worker, or where
nothing can be checked, nothing is learnt and the interval is that of the prior. A part of the prior is flat, so that no
crowd is too good to hold a bad worker.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from manyhands.em.kernels import Array, sums_by
from manyhands.scorecards.leave_one_out import LeaveOneOut

LEVEL = 0.95
FLAT = 0.15  # share of workers of whom the crowd says nothing
TYPICAL = 0.7  # what is believed of a crowd beforehand, worth `BELIEF` workers
BELIEF = 4.0

_GRID = (np.arange(200) + 0.5) / 200  # accuracies
_NODES = np.linspace(0.0, 1.0, 51)  # chances to be right are kept as a histogram
_MEANS = np.arange(0.05, 0.99, 0.05)
_STRENGTHS = np.array([2.0, 4.0, 8.0, 16.0, 32.0])
_CHUNK = 2000  # workers at a time
_MANY = 10_000  # workers, from which those who look alike are estimated together


class AccuracyEstimate(NamedTuple):
    """(n_workers,) the mean of what is believed of each worker's accuracy, and its central 95%."""

    mean: Array
    low: Array
    high: Array


def estimate_accuracy(others_posterior: LeaveOneOut, power: float) -> AccuracyEstimate:
    """The share of right labels of each worker."""
    powers = [power] if power == 1.0 else [power, 1.0]
    histogram, size, which = _distinct(_histogram(others_posterior))
    n_classes = others_posterior.annotations.n_classes
    belief = np.mean([_belief(_log_likelihood(histogram, n_classes, p), size) for p in powers], axis=0)
    tail = (1 - LEVEL) / 2
    upto = np.cumsum(belief, axis=1)
    mean = np.einsum("wg,g->w", belief, _GRID)
    estimate = mean, _quantile(belief, upto, tail), _quantile(belief, upto, 1 - tail)
    return AccuracyEstimate(*(value if which is None else value[which] for value in estimate))


def _distinct(histogram: Array) -> tuple[Array, Array | None, npt.NDArray[np.intp] | None]:
    """Where very many workers look alike, one row for each sort, how many share it, and the row of each worker."""
    if len(histogram) < _MANY:
        return histogram, None, None
    mark = np.einsum("wn,n->w", histogram, np.sqrt(2.0 + np.arange(histogram.shape[1])))  # irrational: sums tell apart
    _, first, which, size = np.unique(np.round(mark, 9), return_index=True, return_inverse=True, return_counts=True)
    if 2 * len(first) > len(histogram):
        return histogram, None, None
    return histogram[first], size.astype(float), which


def _belief(log_likelihood: Array, size: Array | None) -> Array:
    """(n_workers, n_grid) what is believed of each worker's accuracy: the crowd's, where nothing else is known."""
    priors, log_hyper = _crowd_priors()
    likelihood = np.exp(log_likelihood - log_likelihood.max(axis=1, keepdims=True))
    for first in range(0, len(likelihood), _CHUNK):
        seen = np.log(np.einsum("wg,hg->wh", likelihood[first : first + _CHUNK], priors))
        log_hyper += (seen if size is None else seen * size[first : first + _CHUNK, None]).sum(axis=0)
    share = np.exp(log_hyper - log_hyper.max())
    belief = likelihood * np.einsum("h,hg->g", share / share.sum(), priors)
    return belief / belief.sum(axis=1, keepdims=True)


def _histogram(others_posterior: LeaveOneOut) -> Array:
    """(n_workers, n_nodes) how many labels of each worker are right with which chance."""
    votes = others_posterior.annotations
    place = others_posterior.p_right * (len(_NODES) - 1)
    below = np.minimum(place.astype(np.int64), len(_NODES) - 2)
    cell = votes.worker * np.int64(len(_NODES)) + below
    size = votes.n_workers * len(_NODES)
    upper = place - below
    histogram = sums_by(cell, others_posterior.weight * (1 - upper), size) + sums_by(
        cell + 1, others_posterior.weight * upper, size
    )
    return histogram.reshape(-1, len(_NODES))


def _log_likelihood(histogram: Array, n_classes: int, power: float) -> Array:
    """(n_workers, n_grid) the log likelihood of every accuracy, up to a constant for each worker."""
    return np.einsum("wn,ng->wg", histogram, _log_likelihood_of(n_classes, power))


def _log_likelihood_of(n_classes: int, power: float) -> Array:
    """(n_nodes, n_grid) the log likelihood of every accuracy for each chance to be right: the slope, summed up."""
    if n_classes == 1:
        return np.zeros((len(_NODES), len(_GRID)))  # there is nothing to be wrong about
    edge = np.arange(1, len(_GRID)) / len(_GRID)  # between the accuracies of the grid
    right = _NODES[:, None] * edge**power
    wrong = (1 - _NODES[:, None]) * ((1 - edge) / (n_classes - 1)) ** power
    slope = (right / (right + wrong) - edge) / (edge * (1 - edge))
    return np.pad(np.cumsum(slope, axis=1) / len(_GRID), ((0, 0), (1, 0)))


def _crowd_priors() -> tuple[Array, Array]:
    """(n_priors, n_grid) what a crowd may be like, and (n_priors,) the log of how likely that is beforehand."""
    mean, strength = (m.ravel()[:, None] for m in np.meshgrid(_MEANS, _STRENGTHS))
    log_beta = (mean * strength - 1) * np.log(_GRID) + ((1 - mean) * strength - 1) * np.log1p(-_GRID)
    beta = np.exp(log_beta - log_beta.max(axis=1, keepdims=True))
    beta /= beta.sum(axis=1, keepdims=True)
    log_hyper = BELIEF * (TYPICAL * np.log(mean[:, 0]) + (1 - TYPICAL) * np.log1p(-mean[:, 0]))
    return (1 - FLAT) * beta + FLAT / len(_GRID), log_hyper


def _quantile(belief: Array, upto: Array, level: float) -> Array:
    """(n_workers,) the accuracy below which this share of the belief lies, even within each cell."""
    cell = np.argmax(upto >= level, axis=1)[:, None]
    inside = np.take_along_axis(belief, cell, axis=1)
    before = np.take_along_axis(upto, cell, axis=1) - inside
    return np.clip((cell + (level - before) / np.maximum(inside, 1e-300))[:, 0] / len(_GRID), 0.0, 1.0)
