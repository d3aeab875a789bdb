"""Probability of each single label under models with item difficulty: what `score` needs of held-out labels."""

from __future__ import annotations

import numpy as np

from manyhands.annotations import Annotations
from manyhands.elementary import softplus
from manyhands.em.kernels import Array, weighted_votes
from manyhands.noise.difficulty import Abilities, easiness, log_others


def label_given_truth(votes: Annotations, workers: Abilities, d: Array) -> Array:
    """Log-probability of each label for each possible truth, by ability and easiness.

    Parameters
    ----------
    votes : Annotations
        The labels.
    workers : Abilities
        Parameters of the workers.
    d : ndarray of shape (n_annotations,)
        Easiness of the item of each label.

    Returns
    -------
    ndarray of shape (n_annotations, n_classes)
    """
    logit = workers.ability[votes.worker] * d[:, None] - log_others(votes.n_classes)
    away = None if workers.log_wrong is None else workers.log_wrong[votes.worker, :, votes.label]
    return right_or_wrong(votes, logit, away)


def right_or_wrong(votes: Annotations, logit: Array, away: Array | None = None) -> Array:
    """Log-probability of each label for each possible truth, from the log odds that it is right.

    Parameters
    ----------
    votes : Annotations
        The labels.
    logit : ndarray of shape (n_annotations, n_classes)
        Log odds of a right label for each possible truth.
    away : ndarray of shape (n_annotations, n_classes) or None, default=None
        Log-probability of the label among the wrong ones, for each possible truth; None is uniform.

    Returns
    -------
    ndarray of shape (n_annotations, n_classes)
        0 with a single class, where no label can be wrong.
    """
    if votes.n_classes == 1:
        return np.zeros((votes.n_annotations, 1))
    is_right = votes.label[:, None] == np.arange(votes.n_classes)
    wrong = -softplus(logit) + (-log_others(votes.n_classes) if away is None else away)
    return np.where(is_right, -softplus(-logit), wrong)


def other_votes_easiness(votes: Annotations, without: float, smoothing: float = 1.0) -> Array:
    """Easiness of the item of each label, from the shares of the other labels of this item.

    Parameters
    ----------
    votes : Annotations
        The labels.
    without : float
        Easiness where the item has no other label.
    smoothing : float, default=1.0
        Number of pseudo-votes on each item, spread evenly over the classes, as in `shrunk_share`.

    Returns
    -------
    ndarray of shape (n_annotations,)
    """
    n_classes, label = votes.n_classes, np.arange(votes.n_annotations)
    counts = weighted_votes(votes, np.ones(votes.n_annotations))[votes.item]  # (n_annotations, n_classes)
    counts[label, votes.label] -= 1.0
    n_others = votes.n_labels[votes.item] - 1
    total = np.maximum(n_others, 1)[:, None] + smoothing  # without other labels the share is not used
    return np.where(n_others > 0, easiness((counts + smoothing / n_classes) / total), without)
