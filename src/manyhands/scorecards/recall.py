"""Recall of each worker for each class: the share of items of this class that they label right.

A worker has few items of some classes, so the estimate is a Beta posterior: the expected number of right and wrong
labels on items of the class, and a prior from what is known without them. The mean of the prior is the recall of the
crowd for this class, with its odds multiplied by how much better or worse the worker is in general; its strength is the
one under which the labels of the crowd are the most probable.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import betaincinv, betaln

from manyhands.em.kernels import Array

LEVEL = 0.95  # of the credible interval

_STRENGTHS = np.array([2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0])
_LIMIT = 0.01  # the mean of the prior is not nearer to 0 or 1


class Recall(NamedTuple):
    """Recall of each worker for each class, with the evidence behind it.

    Attributes
    ----------
    mean : ndarray of shape (n_workers, n_classes)
        Posterior mean.
    low : ndarray of shape (n_workers, n_classes)
        Quantile at 2.5%.
    high : ndarray of shape (n_workers, n_classes)
        Quantile at 97.5%.
    n_items : ndarray of shape (n_workers, n_classes)
        Expected number of the worker's checked items that are of this class.
    """

    mean: Array
    low: Array
    high: Array
    n_items: Array


def estimate_recall(counts: Array, accuracy: Array) -> Recall:
    """Estimate the recall of each worker for each class.

    Parameters
    ----------
    counts : ndarray of shape (n_workers, n_classes, n_classes)
        Expected number of checked labels, [worker, truth, label].
    accuracy : ndarray of shape (n_workers,)
        Accuracy of each worker.

    Returns
    -------
    Recall
        Mean, interval and evidence.
    """
    right, wrong, n_items = recall_parameters(counts, accuracy)
    tail = (1 - LEVEL) / 2
    interval = betaincinv(right, wrong, tail), betaincinv(right, wrong, 1 - tail)
    return Recall(right / (right + wrong), *interval, n_items)


def recall_parameters(counts: Array, accuracy: Array) -> tuple[Array, Array, Array]:
    """The Beta posterior of the recall of each worker for each class.

    Parameters
    ----------
    counts : ndarray of shape (n_workers, n_classes, n_classes)
        Expected number of checked labels, [worker, truth, label].
    accuracy : ndarray of shape (n_workers,)
        Accuracy of each worker.

    Returns
    -------
    right : ndarray of shape (n_workers, n_classes)
        Its first parameter: right labels with those that the prior is worth.
    wrong : ndarray of shape (n_workers, n_classes)
        Its second parameter.
    n_items : ndarray of shape (n_workers, n_classes)
        Expected number of the worker's checked items that are of this class.
    """
    n_items = counts.sum(axis=2)
    right = np.einsum("wkk->wk", counts)
    prior = _prior_mean(right, n_items, accuracy)
    evidence = [_log_evidence(right, n_items, prior, strength) for strength in _STRENGTHS]
    strength = _STRENGTHS[int(np.argmax(evidence))]
    return right + strength * prior, n_items - right + strength * (1 - prior), n_items


def _prior_mean(right: Array, n_items: Array, accuracy: Array) -> Array:
    """(n_workers, n_classes) recall expected before the worker's labels of this class are seen."""
    total = max(float(n_items.sum()), 1e-12)
    by_class = (right.sum(axis=0) + 1.0) / (n_items.sum(axis=0) + 2.0)
    overall = np.clip((right.sum() + 1.0) / (total + 2.0), _LIMIT, 1 - _LIMIT)
    own = np.clip(accuracy, _LIMIT, 1 - _LIMIT)
    log_odds = _logit(np.clip(by_class, _LIMIT, 1 - _LIMIT)) + (_logit(own) - _logit(overall))[:, None]
    return np.clip(1 / (1 + np.exp(-log_odds)), _LIMIT, 1 - _LIMIT)


def _log_evidence(right: Array, n_items: Array, prior: Array, strength: float) -> float:
    """Log marginal likelihood of all counts, up to a constant."""
    a, b = strength * prior, strength * (1 - prior)
    return float(np.sum(betaln(a + right, b + n_items - right) - betaln(a, b)))


def _logit(p: Array) -> Array:
    return np.asarray(np.log(p) - np.log1p(-p))
