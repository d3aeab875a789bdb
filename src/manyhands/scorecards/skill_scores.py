"""Scores of labels, from which the skill of a worker is judged: how well each label fits the labels of the others.

The score of a label is the log-likelihood ratio of a worker of skill .5 against random labels. Given the leave-one-out
posterior, a worker of skill t draws each label from t p(truth) + (1 - t) b, where b are the shares of the classes among
their labels. So mean and variance of their total score are known for every t.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from manyhands.em.kernels import Array
from manyhands.scorecards.leave_one_out import LeaveOneOut

_SCORE_SKILL = 0.5
_FLOOR = 1e-3  # added to variances


@dataclass(frozen=True, eq=False)
class Scores:
    """Sums of the labels' scores for each worker, from which their skill and its variance follow.

    Attributes
    ----------
    observed : ndarray of shape (n_workers,)
        Score of the labels given.
    known : ndarray of shape (n_workers,)
        Expected score of a worker who is always right.
    random : ndarray of shape (n_workers,)
        Expected score of a worker with random labels.
    moments : ndarray of shape (5, n_workers)
        Expected square for the two, and the sums over labels of known^2, known * random and random^2.
    right_known : ndarray of shape (n_workers,)
        Expected number of right labels of a worker who is always right, by the leave-one-out posterior.
    right_random : ndarray of shape (n_workers,)
        The same for random labels.
    """

    observed: Array
    known: Array
    random: Array
    moments: Array
    right_known: Array
    right_random: Array

    def mean(self, skill: Array) -> Array:
        """Mean of the score for each skill.

        Parameters
        ----------
        skill : ndarray of shape (n_skills,)
            Values of t.

        Returns
        -------
        ndarray of shape (n_workers, n_skills)
            The means.
        """
        return np.asarray(skill * self.known[:, None] + (1 - skill) * self.random[:, None])

    def variance(self, skill: Array) -> Array:
        """Variance of the score for each skill.

        Parameters
        ----------
        skill : ndarray of shape (n_skills,)
            Values of t.

        Returns
        -------
        ndarray of shape (n_workers, n_skills)
            The variances.
        """
        t, rest = skill, 1 - skill
        square_known, square_random, known, both, random = self.moments[:, :, None]
        variance = t * square_known + rest * square_random - (t**2 * known + 2 * t * rest * both + rest**2 * random)
        return np.maximum(variance, 0.0) + _FLOOR

    def right(self, skill: float) -> Array:
        """Expected number of right labels of a worker of a given skill.

        Parameters
        ----------
        skill : float
            Value of t.

        Returns
        -------
        ndarray of shape (n_workers,)
            The numbers, by the leave-one-out posterior.
        """
        return np.asarray(skill * self.right_known + (1 - skill) * self.right_random)


def score_columns(loo: LeaveOneOut, bias: Array) -> list[Array]:
    """Score each label, and derive mean and variance of its score for workers who know everything or nothing.

    Parameters
    ----------
    loo : LeaveOneOut
        Leave-one-out posterior of the truth of each label.
    bias : ndarray of shape (n_workers, n_classes)
        Distribution of each worker's labels that do not depend on the truth.

    Returns
    -------
    list of ndarray of shape (n_annotations,)
        The summands of the attributes of `Scores`, in their order.
    """
    worker, weight = loo.annotations.worker, loo.weight
    known, random = np.zeros((3, len(weight))), np.zeros((3, len(weight)))  # score, its square, probability of right
    for k, truth in enumerate(loo.truth.T):
        share = bias[worker, k]
        score = np.log1p(_SCORE_SKILL * (truth / share - 1.0))
        for row, value in enumerate((score, score * score, truth)):
            known[row] += truth * value
            random[row] += share * value
    observed = np.log1p(_SCORE_SKILL * (loo.p_right / bias.ravel()[loo.cell] - 1.0))
    squares = [known[0] ** 2, known[0] * random[0], random[0] ** 2]
    return [observed, known[0], random[0], known[1], random[1], *squares, known[2], random[2]]


def sum_scores(loo: LeaveOneOut, columns: list[Array], weight: Array) -> Scores:
    """Sum the scores of the labels of each worker.

    Parameters
    ----------
    loo : LeaveOneOut
        Leave-one-out posterior of the truth of each label.
    columns : list of ndarray of shape (n_annotations,)
        Result of `score_columns`.
    weight : ndarray of shape (n_annotations,)
        Weight of each label.

    Returns
    -------
    Scores
        Sums for each worker.
    """
    sums = [loo.by_worker(weight * column) for column in columns]
    return Scores(sums[0], sums[1], sums[2], np.stack(sums[3:8]), sums[8], sums[9])
