"""How the likelihood of labels changes with the classifier, where the easiness of items follows from it.

    value       sum_i sum_c mu_ic log p(labels of i | truth = c, d_i),   d_i = easiness(p_i)
    along d     g_i = sum_c mu_ic sum_w ability[w, c] (1[label_iw = c] - P_iwc),   P = p(label = c | truth = c)
    curvature   h_i = sum_c mu_ic sum_w ability[w, c]^2 P_iwc (1 - P_iwc)
    logits      d_i' = dd_i / d logits_i = (1 - floor) q_i (p_im - 1/K) / (2 (1 - 1/K)^2),
                q_ik = p_im (1[k = m] - p_ik),   m the most probable class

The slope with respect to the logits is g_i d_i', and minus the second derivative is taken as h_i d_i' d_i'^T: the
expected one (Fisher scoring), which is never negative, where the exact one need not be.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from manyhands.annotations import Annotations
from manyhands.em.kernels import Array, sums_by
from manyhands.linear.softmax_regression import TermSlopes
from manyhands.noise.difficulty import Abilities, easiness, log_votes, p_right, with_floor


@dataclass(frozen=True, eq=False)
class DifficultyTerm:
    """The expected log-likelihood of the labels as a function of the classifier's probabilities.

    Parameters
    ----------
    votes : Annotations
        The labels.
    posterior : ndarray of shape (n_items, n_classes)
        p(truth) of every item.
    workers : Abilities
        Parameters of the workers.
    floor : float
        Lower bound of the easiness as a share of the largest.
    """

    votes: Annotations
    posterior: Array
    workers: Abilities
    floor: float

    def value(self, p: Array) -> float:
        """Return the expected log-likelihood of the labels at class probabilities of shape (n_items, n_classes)."""
        d = with_floor(easiness(p), self.floor)
        return float((self.posterior * log_votes(self.votes, self.workers, d)).sum())

    def slopes(self, p: Array) -> TermSlopes:
        """Return its derivatives with respect to the logits of p.

        Parameters
        ----------
        p : ndarray of shape (n_items, n_classes)
            Class probabilities.

        Returns
        -------
        TermSlopes
        """
        votes, d = self.votes, with_floor(easiness(p), self.floor)[self.votes.item]
        slope, curvature = np.zeros(len(p)), np.zeros(len(p))
        for c in range(votes.n_classes):
            ability, weight = self.workers.ability[votes.worker, c], self.posterior[votes.item, c]
            right = p_right(ability, d, votes.n_classes)
            slope += sums_by(votes.item, weight * ability * ((votes.label == c) - right), len(p))
            curvature += sums_by(votes.item, weight * ability**2 * right * (1 - right), len(p))
        direction = (1 - self.floor) * easiness_slope(p)
        return TermSlopes(slope[:, None] * direction, direction, curvature[:, None])


def easiness_slope(p: Array) -> Array:
    """Derivative of the easiness with respect to the logits of the class probabilities.

    Parameters
    ----------
    p : ndarray of shape (n_items, n_classes)
        Class probabilities.

    Returns
    -------
    ndarray of shape (n_items, n_classes)
        Rows sum to 0. Where several classes are most probable, it is the one-sided derivative of the first.
    """
    n_items, n_classes = p.shape
    if n_classes == 1:
        return np.zeros_like(p)
    top = p.argmax(axis=1)
    largest = p[np.arange(n_items), top][:, None]
    of_largest = -largest * p
    of_largest[np.arange(n_items), top] += largest[:, 0]
    return np.asarray(0.5 * (largest - 1 / n_classes) / (1 - 1 / n_classes) ** 2 * of_largest)
