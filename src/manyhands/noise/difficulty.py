"""Ability and difficulty: a worker with more ability is right more often, and so is every worker on easier items.

    p(label = c | truth = c) = e^s / (e^s + K - 1),   s = ability[w, c] d[i],   0 <= d <= 1/4
    p(label = l | truth = c) = the remaining probability times wrong[w, c, l],   l != c

At easiness d = 0 all labels are random. With two classes the first line is sigmoid(s), and its value at d = 1/4 is the
paper's expertise: sensitivity for class 1, specificity for class 0. An ability is never negative, so no worker is worse
than chance. The probabilities depend on the item, so this is no confusion matrix; given d, it is a logistic regression
through the origin for each worker and class, whose optimum Newton's method finds.

Pseudo-counts of right and wrong labels on the easiest items are added to the labels of each worker in every class; they
dominate for workers with few labels. With all d = 1/4 and free errors the model is `ConfusionNoise` with the same
pseudo-counts, wherever no worker is worse than chance.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from manyhands import elementary
from manyhands.annotations import Annotations
from manyhands.elementary import softplus
from manyhands.em.kernels import Array, sums_by, weighted_votes

EASIEST = 0.25


def easiness(q: Array) -> Array:
    """Easiness d of items from class probabilities: 0 where all classes are equally likely, 1/4 where one is certain.

    Parameters
    ----------
    q : ndarray of shape (n_items, n_classes)
        Class probabilities: of a classifier, a posterior, or vote shares.

    Returns
    -------
    ndarray of shape (n_items,)

    Examples
    --------
    >>> easiness(np.array([[0.5, 0.5], [0.9, 0.1], [0.0, 1.0]])).round(2).tolist()
    [0.0, 0.16, 0.25]
    """
    n_classes = q.shape[1]
    if n_classes == 1:
        return np.full(len(q), EASIEST)
    above = q.max(axis=1) - 1 / n_classes
    return np.asarray(EASIEST * (above / (1 - 1 / n_classes)) ** 2)


def with_floor(d: Array, floor: float) -> Array:
    """Easiness with a lower bound: d is moved toward the largest easiness by this share of the distance.

    Parameters
    ----------
    d : ndarray of shape (n_items,)
        Easiness.
    floor : float
        From 0, where labels of the hardest items are random, to 1, where all items are equally easy.

    Returns
    -------
    ndarray of shape (n_items,)
    """
    return floor * EASIEST + (1 - floor) * d


def shrunk_share(votes: Annotations, smoothing: float = 1.0) -> Array:
    """Vote shares with pseudo-votes that are spread evenly over the classes.

    Parameters
    ----------
    votes : Annotations
        The labels.
    smoothing : float, default=1.0
        Number of pseudo-votes on each item: 1 is (n + 1/2) / (R + 1) with two classes, 0 the plain share n / R.

    Returns
    -------
    ndarray of shape (n_items, n_classes)
        Rows sum to 1; equal shares for an item without any votes.
    """
    counts = weighted_votes(votes, np.ones(votes.n_annotations))
    if smoothing:
        return (counts + smoothing / votes.n_classes) / (votes.n_labels[:, None] + smoothing)
    total = votes.n_labels[:, None]
    return np.where(total > 0, counts / np.maximum(total, 1), 1 / votes.n_classes)


def vote_easiness(votes: Annotations, smoothing: float = 1.0) -> Array:
    """Easiness of items from their vote shares; the mean of the others for items without labels.

    Parameters
    ----------
    votes : Annotations
        The labels.
    smoothing : float, default=1.0
        Number of pseudo-votes on each item, as in `shrunk_share`.

    Returns
    -------
    ndarray of shape (n_items,)
    """
    d = easiness(shrunk_share(votes, smoothing))
    has_label = votes.n_labels > 0
    if has_label.any():
        d[~has_label] = d[has_label].mean()
    return d


@dataclass(frozen=True, eq=False)
class Abilities:
    """Parameters of the workers.

    Attributes
    ----------
    ability : ndarray of shape (n_workers, n_classes)
        Abilities, at least 0.
    log_wrong : ndarray of shape (n_workers, n_classes, n_classes) or None
        Log distribution of wrong labels, [worker, truth, label]; None is uniform over the other classes.
    """

    ability: Array
    log_wrong: Array | None


def log_votes(votes: Annotations, workers: Abilities, d: Array) -> Array:
    """Log-likelihood of the labels of each item for each possible truth.

    Parameters
    ----------
    votes : Annotations
        The labels.
    workers : Abilities
        Parameters of the workers.
    d : ndarray of shape (n_items,)
        Easiness of the items.

    Returns
    -------
    ndarray of shape (n_items, n_classes)
    """
    found = np.zeros((votes.n_items, votes.n_classes))
    others = log_others(votes.n_classes)
    for c in range(votes.n_classes):  # one class at a time, which avoids an array of labels x classes
        logit = workers.ability[votes.worker, c] * d[votes.item] - others
        is_right = votes.label == c
        log_p = -softplus(np.where(is_right, -logit, logit))
        away = -others if workers.log_wrong is None else workers.log_wrong[votes.worker, c, votes.label]
        found[:, c] = sums_by(votes.item, np.where(is_right, log_p, log_p + away), votes.n_items)
    return found


def p_right(ability: Array, d: Array | float, n_classes: int) -> Array:
    """Probability of a right label.

    Parameters
    ----------
    ability : ndarray
        Abilities.
    d : ndarray or float
        Easiness, broadcast with the abilities.
    n_classes : int
        Number of classes.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> p_right(np.array([0.0, 4 * np.log(4)]), EASIEST, 2).round(2).tolist()
    [0.5, 0.8]
    """
    return elementary.exp(-softplus(log_others(n_classes) - ability * d))


def log_others(n_classes: int) -> float:
    """Log of the number of wrong classes, log(n_classes - 1).

    Parameters
    ----------
    n_classes : int
        Number of classes.

    Returns
    -------
    float
    """
    return float(elementary.log(max(n_classes - 1, 1)))
