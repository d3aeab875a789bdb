"""How skilled this crowd is, and which workers are clearly below it.

The model of a worker is that of `informativeness`: with probability t they give the true class, and otherwise they draw
a label from their own class distribution `b`, here the shares of the classes among their labels:

    p(label | others) = t p(truth = label | others) + (1 - t) b[label]

The *skill* t is 0 for a worker whose labels do not depend on the truth, and 1 for one who is always right. In the
crowd, t has a normal distribution, clipped to the range from 0 to 1; a minority may instead belong to a second group,
usually of lower skill. Mean and spread of the crowd, and share and skill of the second group are unknown: a grid of
values is weighted by the likelihood of all labels, and averaged over. The second group keeps spammers from making the
crowd look weak. A second group above the crowd is possible, too: copies of one worker agree so well that they seem to
be experts.

A worker is *below the crowd* if a worker drawn from the first group would give labels that fit those of the others as
badly as theirs with a probability of less than `FALSE_ALARM`. Workers of the first group more than `OUTLIER` standard
deviations below its mean are not typical of it; they are clearly below the crowd, too.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from manyhands.em.kernels import Array, sums_by
from manyhands.scorecards.leave_one_out import LeaveOneOut, Mask

FALSE_ALARM = 0.004  # probability that a worker of the crowd is below it, for each worker
OUTLIER = 2.0  # standard deviations below the crowd's mean from which a worker is not typical of the crowd
MIN_CROWD = 8  # workers with `MIN_LABELS` checked labels below which there is no crowd to compare with
MIN_LABELS = 10

_SCORE_SKILL = 0.5  # skill for which the score of a label is the log-likelihood ratio against random labels
_SKILLS = np.linspace(0.0, 0.99, 34)
_MEANS = np.arange(0.1, 0.98, 0.05)
_SPREADS = np.array([0.08, 0.11, 0.14, 0.18, 0.22, 0.26])
_SECOND_MEANS = np.array([0.0, 0.1, 0.2, 0.3, 0.4, 0.95])
_SECOND_PRIOR = np.array([0.35, 0.15, 0.15, 0.15, 0.15, 0.05])  # a second group above the crowd is the exception
_NO_SECOND = 0.15  # prior probability that there is no second group
_SECOND_SPREAD = 0.08
_SECOND_SHARES = np.array([0.05, 0.1, 0.15, 0.2, 0.3, 0.4])
_SECOND_UNIFORM = 0.2  # weight of the uniform distribution in the second group, which holds single bad workers
_GAP = 2.5  # standard deviations of the first group that separate the two means at least
_PRIOR_MEAN, _PRIOR_WORKERS = 0.6, 4.0  # mean skill of a crowd, and the number of workers that the prior is worth
_USUAL_SPREAD, _PRIOR_SPREAD_SD = 0.1, 0.2  # standard deviation of accuracy in a crowd, and that of its logarithm
_MAX_WORKERS = 2000  # workers from whom the distribution is estimated
_PSEUDO_COUNT = 0.5  # added to the counts of b, spread evenly over all classes
_FLOOR = 1e-3  # added to variances


@dataclass(frozen=True, eq=False)
class CrowdSkill:
    """Distribution of skill in the crowd, and how each worker compares with it.

    Attributes
    ----------
    is_known : bool
        Whether the crowd is large enough to compare with.
    mean : float
        Mean skill of the crowd without its second group and its outliers.
    p_value : ndarray of shape (n_workers,)
        Probability that the labels of a worker of this crowd fit those of the others as badly as the worker's.
    is_below : ndarray of bool of shape (n_workers,)
        Workers whose `p_value` is less than `FALSE_ALARM`; none if the crowd is not known.
    typical_right : ndarray of shape (n_workers,)
        Expected number of right labels of a worker of mean skill on the worker's items.
    """

    is_known: bool
    mean: float
    p_value: Array
    is_below: Mask
    typical_right: Array


def compare_with_crowd(loo: LeaveOneOut, tempering_exponent: float, is_apart: Mask) -> CrowdSkill:
    """Estimate the distribution of skill in the crowd, and find the workers who are clearly below it.

    Parameters
    ----------
    loo : LeaveOneOut
        Leave-one-out posterior of the truth of each label.
    tempering_exponent : float
        Exponent of the labels' likelihood in the posterior; below 1, labels of one worker are weaker evidence.
    is_apart : ndarray of bool of shape (n_workers,)
        Workers who are not counted as the crowd: those whose labels follow another pattern.

    Returns
    -------
    CrowdSkill
        The comparison of each worker with the crowd.
    """
    n_checked = loo.used.sum(axis=1)
    candidates = np.flatnonzero((n_checked >= MIN_LABELS) & ~is_apart)
    if len(candidates) < MIN_CROWD:
        nothing = np.zeros(len(n_checked))
        return CrowdSkill(False, 0.0, nothing + 1.0, nothing > 0, nothing)
    bias = loo.used + _PSEUDO_COUNT / max(loo.annotations.n_classes, 1)
    bias /= bias.sum(axis=1, keepdims=True)
    chosen = candidates[:: -(-len(candidates) // _MAX_WORKERS)]
    n_classes = max(loo.annotations.n_classes, 2)
    density = crowd_density(_likelihood(loo, bias, chosen), _USUAL_SPREAD * n_classes / (n_classes - 1))
    scores = score_labels(loo, bias)
    deviation = np.sqrt(scores.variance(_SKILLS)) / min(tempering_exponent, 1.0)
    p_value = ndtr((scores.observed[:, None] - scores.mean(_SKILLS)) / deviation) @ density
    mean = float(density @ _SKILLS)
    typical_right = mean * scores.right_known + (1 - mean) * scores.right_random
    return CrowdSkill(True, mean, p_value, p_value < FALSE_ALARM, typical_right)


def _likelihood(loo: LeaveOneOut, bias: Array, workers: npt.NDArray[np.intp]) -> Array:
    """(n_chosen, n_skills) likelihood of each skill for the chosen workers, 1 at its maximum."""
    votes = loo.annotations
    index = np.full(votes.n_workers, -1)
    index[workers] = np.arange(len(workers))
    chosen = np.flatnonzero(index[votes.worker] >= 0)
    row, weight = index[votes.worker[chosen]], loo.weight[chosen]
    lift = loo.p_right[chosen] / bias.ravel()[loo.cell[chosen]] - 1.0
    log_likelihood = np.stack([sums_by(row, weight * np.log1p(t * lift), len(workers)) for t in _SKILLS], axis=1)
    return np.exp(log_likelihood - log_likelihood.max(axis=1, keepdims=True))


def crowd_density(likelihood: Array, usual_spread: float) -> Array:
    """Estimate the distribution of skill in the crowd without its second group and its outliers.

    Parameters
    ----------
    likelihood : ndarray of shape (n_workers, 34)
        Likelihood of each skill on the grid from 0 to .99 for each worker, up to a factor.

    Returns
    -------
    ndarray of shape (34,)
        Probability of each skill.
    """
    mean, spread = (values.ravel() for values in np.meshgrid(_MEANS, _SPREADS))
    first = _clipped_normal(mean, spread)
    second = _clipped_normal(_SECOND_MEANS, np.full(len(_SECOND_MEANS), _SECOND_SPREAD))
    second[0] = np.eye(len(_SKILLS))[0]  # random labels exactly
    second = (1 - _SECOND_UNIFORM) * second + _SECOND_UNIFORM / len(_SKILLS)
    of_first, of_second = likelihood @ first.T, likelihood @ second.T
    log_weights = [np.log(of_first).sum(axis=0) + np.log(_NO_SECOND / (1 - _NO_SECOND))]
    for share in _SECOND_SHARES:
        for j, (second_mean, prior) in enumerate(zip(_SECOND_MEANS, _SECOND_PRIOR)):
            evidence = np.log((1 - share) * of_first + share * of_second[:, [j]]).sum(axis=0)
            is_separate = np.abs(second_mean - mean) >= _GAP * spread
            log_weights.append(np.where(is_separate, evidence + np.log(prior / len(_SECOND_SHARES)), -np.inf))
    log_prior = _PRIOR_WORKERS * (_PRIOR_MEAN * np.log(mean) + (1 - _PRIOR_MEAN) * np.log1p(-mean))
    log_prior -= 0.5 * (np.log(spread / usual_spread) / _PRIOR_SPREAD_SD) ** 2
    log_weight = np.stack(log_weights) + log_prior
    weight = np.exp(log_weight - log_weight.max()).sum(axis=0)
    lowest = (mean - OUTLIER * spread)[:, None] - 1e-9
    typical = np.where(lowest <= _SKILLS, first, 0.0)
    typical /= typical.sum(axis=1, keepdims=True)
    return np.asarray(weight @ typical / weight.sum())


def _clipped_normal(mean: Array, spread: Array) -> Array:
    """(n_distributions, n_skills) normal distributions on the grid; its ends hold all that is beyond them."""
    edges = np.concatenate([[-np.inf], (_SKILLS[1:] + _SKILLS[:-1]) / 2, [np.inf]])
    return np.diff(ndtr((edges - mean[:, None]) / spread[:, None]), axis=1)


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


def score_labels(loo: LeaveOneOut, bias: Array) -> Scores:
    """Score the labels of each worker, and derive mean and variance of the score for any skill.

    The score of a label is the log-likelihood ratio of skill .5 against random labels. Given the leave-one-out
    posterior, a worker of skill t draws each label from t p(truth) + (1 - t) b, so the mean of their score is linear in
    t.

    Parameters
    ----------
    loo : LeaveOneOut
        Leave-one-out posterior of the truth of each label.
    bias : ndarray of shape (n_workers, n_classes)
        Distribution of each worker's labels that do not depend on the truth.

    Returns
    -------
    Scores
        Sums for each worker.
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
    columns = (observed, known[0], random[0], known[1], random[1], known[0] ** 2, known[0] * random[0], random[0] ** 2)
    sums = [loo.by_worker(weight * column) for column in (*columns, known[2], random[2])]
    return Scores(sums[0], sums[1], sums[2], np.stack(sums[3:8]), sums[8], sums[9])
