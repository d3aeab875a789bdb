"""Accuracy of each worker with a 95% credible interval.

Let q be the leave-one-out probability that a label is right. With worker accuracy a, it is right with probability

    r(a) = q a^p / (q a^p + (1 - q) ((1 - a) / (n_classes - 1))^p)

and the sum over labels of (r(a) - a) / (a (1 - a)) is the derivative of the log-likelihood in a. With p = 1, for labels
that are independent given the truth, this is a binomial likelihood with uncertain outcomes: uncertainty about the truth
makes the likelihood flatter, but does not lower the estimate. With the tempering exponent p < 1 of the posterior,
workers make errors on the same items, and a label is weaker evidence. The exponent is estimated from held-out labels,
with a large error where these are few; the posterior is therefore averaged over this p and p = 1.

The prior is hierarchical: a Beta distribution whose mean and strength are estimated from all workers and averaged over,
and a uniform part, so that even a very good crowd may contain a bad worker. With a single worker, or where no label can
be checked, the interval is that of the prior.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from manyhands.em.kernels import Array, sums_by
from manyhands.scorecards.leave_one_out import LeaveOneOut

LEVEL = 0.95  # of the credible interval
UNIFORM_SHARE = 0.15  # weight of the uniform distribution in the prior of each worker
PRIOR_MEAN, PRIOR_WORKERS = 0.7, 4.0  # mean accuracy of a crowd, and the number of workers that the prior is worth

_GRID = (np.arange(200) + 0.5) / 200  # accuracies
N_NODES = 51  # probabilities of being right are binned into a histogram
_NODES = np.linspace(0.0, 1.0, N_NODES)
_MEANS = np.arange(0.05, 0.99, 0.05)
_STRENGTHS = np.array([2.0, 4.0, 8.0, 16.0, 32.0])
_CHUNK = 2000  # workers at a time
_MANY_WORKERS = 10_000  # from this number on, workers with equal histograms are estimated together


class AccuracyEstimate(NamedTuple):
    """Posterior mean and 95% interval of the accuracy of each worker.

    Attributes
    ----------
    mean : ndarray of shape (n_workers,)
        Posterior mean.
    low : ndarray of shape (n_workers,)
        Quantile at 2.5%.
    high : ndarray of shape (n_workers,)
        Quantile at 97.5%.
    """

    mean: Array
    low: Array
    high: Array


def estimate_accuracy(loo: LeaveOneOut, tempering_exponent: float) -> AccuracyEstimate:
    """Estimate the share of right labels of each worker.

    Parameters
    ----------
    loo : LeaveOneOut
        Leave-one-out posterior of the truth of each label.
    tempering_exponent : float
        Exponent p of the labels' likelihood in the posterior; 1 for independent labels.

    Returns
    -------
    AccuracyEstimate
        Posterior mean and 95% interval for each worker.
    """
    return accuracy_of_histogram(right_histogram(loo), loo.annotations.n_classes, tempering_exponent)


def accuracy_of_histogram(histogram: Array, n_classes: int, tempering_exponent: float) -> AccuracyEstimate:
    """The same from the sums over the labels of each worker, which may come from several parts of a crowd.

    Parameters
    ----------
    histogram : ndarray of shape (n_workers, N_NODES)
        Weight of each worker's labels by their leave-one-out probability of being right (`right_histogram`).
    n_classes : int
        Number of classes.
    tempering_exponent : float
        Exponent p of the labels' likelihood in the posterior; 1 for independent labels.

    Returns
    -------
    AccuracyEstimate
        Posterior mean and 95% interval for each worker.
    """
    exponents = [tempering_exponent] if tempering_exponent == 1.0 else [tempering_exponent, 1.0]
    histogram, size, which = _distinct(histogram)
    density = np.mean([_posterior(_log_likelihood(histogram, n_classes, p), size) for p in exponents], axis=0)
    return AccuracyEstimate(*(value if which is None else value[which] for value in _summary(density)))


def accuracy_of_counts(right: Array, wrong: Array) -> AccuracyEstimate:
    """Estimate the accuracy from expected numbers of right and wrong labels, taken as if they were known.

    The prior is that of `estimate_accuracy`. The interval does not include the uncertainty about the truth, and a
    worker's own labels are part of the posterior that they are compared with.

    Parameters
    ----------
    right : ndarray of shape (n_workers,)
        Expected number of right labels of each worker.
    wrong : ndarray of shape (n_workers,)
        Expected number of wrong labels.

    Returns
    -------
    AccuracyEstimate
        Posterior mean and 95% interval for each worker.
    """
    priors, log_hyper = _crowd_priors()
    pieces = [slice(first, first + _CHUNK) for first in range(0, len(right), _CHUNK)]

    def likelihood(part: slice) -> Array:
        log = right[part, None] * np.log(_GRID) + wrong[part, None] * np.log1p(-_GRID)
        return np.exp(log - log.max(axis=1, keepdims=True))

    def normalised(density: Array) -> Array:
        return density / density.sum(axis=1, keepdims=True)

    for part in pieces:
        log_hyper += np.log(np.einsum("wg,hg->wh", likelihood(part), priors)).sum(axis=0)
    share = np.exp(log_hyper - log_hyper.max())
    prior = np.einsum("h,hg->g", share / share.sum(), priors)
    found = [_summary(normalised(likelihood(part) * prior)) for part in pieces]
    return AccuracyEstimate(*(np.concatenate(values) for values in zip(*found)))


def _summary(density: Array) -> AccuracyEstimate:
    """Mean and interval of each row of probabilities on the grid."""
    tail = (1 - LEVEL) / 2
    cumulative = np.cumsum(density, axis=1)
    mean = np.einsum("wg,g->w", density, _GRID)
    return AccuracyEstimate(mean, _quantile(density, cumulative, tail), _quantile(density, cumulative, 1 - tail))


def _distinct(histogram: Array) -> tuple[Array, Array | None, npt.NDArray[np.intp] | None]:
    """For very many workers: one row per distinct histogram, how many workers share it, and the row of each worker."""
    if len(histogram) < _MANY_WORKERS:
        return histogram, None, None
    mark = np.einsum("wn,n->w", histogram, np.sqrt(2.0 + np.arange(histogram.shape[1])))  # irrational: sums differ
    _, first, which, size = np.unique(np.round(mark, 9), return_index=True, return_inverse=True, return_counts=True)
    if 2 * len(first) > len(histogram):
        return histogram, None, None
    return histogram[first], size.astype(float), which


def _posterior(log_likelihood: Array, size: Array | None) -> Array:
    """(n_workers, n_grid) posterior of each accuracy, under the prior averaged over the crowd's hyperparameters."""
    priors, log_hyper = _crowd_priors()
    likelihood = np.exp(log_likelihood - log_likelihood.max(axis=1, keepdims=True))
    for first in range(0, len(likelihood), _CHUNK):
        evidence = np.log(np.einsum("wg,hg->wh", likelihood[first : first + _CHUNK], priors))
        log_hyper += (evidence if size is None else evidence * size[first : first + _CHUNK, None]).sum(axis=0)
    share = np.exp(log_hyper - log_hyper.max())
    density = likelihood * np.einsum("h,hg->g", share / share.sum(), priors)
    return density / density.sum(axis=1, keepdims=True)


def right_histogram(loo: LeaveOneOut) -> Array:
    """Weight of each worker's labels by their leave-one-out probability of being right.

    Parameters
    ----------
    loo : LeaveOneOut
        Leave-one-out posterior of the truth of each label.

    Returns
    -------
    ndarray of shape (n_workers, N_NODES)
        Interpolated linearly between nodes; histograms of parts of a crowd can be added.
    """
    return histogram_of(loo.annotations.worker, loo.p_right, loo.weight, loo.annotations.n_workers)


def histogram_of(worker: npt.NDArray[np.int32], p_right: Array, weight: Array, n_workers: int) -> Array:
    """The same from columns with an entry for each label.

    Parameters
    ----------
    worker : ndarray of shape (n_labels,) of int32
        Worker codes.
    p_right : ndarray of shape (n_labels,)
        Leave-one-out probability that each label is right.
    weight : ndarray of shape (n_labels,)
        Weight of each label, 0 where it cannot be checked.
    n_workers : int
        Number of workers.

    Returns
    -------
    ndarray of shape (n_workers, N_NODES)
    """
    position = p_right * (len(_NODES) - 1)
    below = np.minimum(position.astype(np.int64), len(_NODES) - 2)
    cell = worker * np.int64(len(_NODES)) + below
    size = n_workers * len(_NODES)
    upper = position - below  # linear interpolation between two nodes
    histogram = sums_by(cell, weight * (1 - upper), size) + sums_by(cell + 1, weight * upper, size)
    return histogram.reshape(-1, len(_NODES))


def _log_likelihood(histogram: Array, n_classes: int, exponent: float) -> Array:
    """(n_workers, n_grid) log-likelihood of every accuracy, up to a constant for each worker."""
    return np.einsum("wn,ng->wg", histogram, _node_log_likelihood(n_classes, exponent))


def _node_log_likelihood(n_classes: int, exponent: float) -> Array:
    """(n_nodes, n_grid) log-likelihood of every accuracy for each node of the histogram: the derivative, integrated."""
    if n_classes == 1:
        return np.zeros((len(_NODES), len(_GRID)))  # no label can be wrong
    edge = np.arange(1, len(_GRID)) / len(_GRID)  # between the accuracies of the grid
    right = _NODES[:, None] * edge**exponent
    wrong = (1 - _NODES[:, None]) * ((1 - edge) / (n_classes - 1)) ** exponent
    slope = (right / (right + wrong) - edge) / (edge * (1 - edge))
    return np.pad(np.cumsum(slope, axis=1) / len(_GRID), ((0, 0), (1, 0)))


def _crowd_priors() -> tuple[Array, Array]:
    """(n_priors, n_grid) candidate Beta priors on the grid, and (n_priors,) their log hyperprior."""
    mean, strength = (m.ravel()[:, None] for m in np.meshgrid(_MEANS, _STRENGTHS))
    log_beta = (mean * strength - 1) * np.log(_GRID) + ((1 - mean) * strength - 1) * np.log1p(-_GRID)
    beta = np.exp(log_beta - log_beta.max(axis=1, keepdims=True))
    beta /= beta.sum(axis=1, keepdims=True)
    log_hyper = PRIOR_WORKERS * (PRIOR_MEAN * np.log(mean[:, 0]) + (1 - PRIOR_MEAN) * np.log1p(-mean[:, 0]))
    return (1 - UNIFORM_SHARE) * beta + UNIFORM_SHARE / len(_GRID), log_hyper


def _quantile(density: Array, cumulative: Array, level: float) -> Array:
    """(n_workers,) the quantile of each worker's posterior, interpolated linearly within a cell of the grid."""
    cell = np.argmax(cumulative >= level, axis=1)[:, None]
    inside = np.take_along_axis(density, cell, axis=1)
    before = np.take_along_axis(cumulative, cell, axis=1) - inside
    return np.clip((cell + (level - before) / np.maximum(inside, 1e-300))[:, 0] / len(_GRID), 0.0, 1.0)
