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
from manyhands.scorecards.skill_scores import Scores, score_columns, sum_scores

FALSE_ALARM = 0.005  # probability that a worker of the crowd is below it, for each worker
LATE_FALSE_ALARM = 0.001  # the same for the second half of their labels alone
OUTLIER = 2.0  # standard deviations below the crowd's mean from which a worker is not typical of the crowd
MIN_CROWD = 8  # workers with `MIN_LABELS` checked labels below which there is no crowd to compare with
MIN_LABELS = 10

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
    late_p_value : ndarray of shape (n_workers,)
        The same for the second half of the worker's labels, in the order of the items.
    is_below : ndarray of bool of shape (n_workers,)
        Workers whose `p_value` is less than `FALSE_ALARM`; none if the crowd is not known.
    is_late_below : ndarray of bool of shape (n_workers,)
        Other workers whose `late_p_value` is less than `LATE_FALSE_ALARM`: they began well and did not stay so.
    typical_right : ndarray of shape (n_workers,)
        Expected number of right labels of a worker of mean skill on the worker's items.
    late_checked : ndarray of shape (n_workers,)
        Number of checked labels in the second half.
    late_right : ndarray of shape (n_workers,)
        Expected number of right labels in the second half.
    late_typical_right : ndarray of shape (n_workers,)
        The same for a worker of mean skill.
    """

    is_known: bool
    mean: float
    p_value: Array
    late_p_value: Array
    is_below: Mask
    is_late_below: Mask
    typical_right: Array
    late_checked: Array
    late_right: Array
    late_typical_right: Array


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
        return CrowdSkill(False, 0.0, nothing + 1, nothing + 1, nothing > 0, nothing > 0, *[nothing] * 4)
    bias = loo.used + _PSEUDO_COUNT / max(loo.annotations.n_classes, 1)
    bias /= bias.sum(axis=1, keepdims=True)
    chosen = candidates[:: -(-len(candidates) // _MAX_WORKERS)]
    n_classes = max(loo.annotations.n_classes, 2)
    density = crowd_density(_likelihood(loo, bias, chosen), _USUAL_SPREAD * n_classes / (n_classes - 1))
    columns, late_weight = score_columns(loo, bias), loo.weight * is_late(loo)
    scores, late = sum_scores(loo, columns, loo.weight), sum_scores(loo, columns, late_weight)
    p_value, late_p_value = (tail(part, density, min(tempering_exponent, 1.0)) for part in (scores, late))
    mean = float(density @ _SKILLS)
    is_below = p_value < FALSE_ALARM
    return CrowdSkill(
        is_known=True,
        mean=mean,
        p_value=p_value,
        late_p_value=late_p_value,
        is_below=is_below,
        is_late_below=~is_below & (late_p_value < LATE_FALSE_ALARM),
        typical_right=scores.right(mean),
        late_checked=loo.by_worker(late_weight),
        late_right=loo.by_worker(late_weight * loo.p_right),
        late_typical_right=late.right(mean),
    )


def is_late(loo: LeaveOneOut) -> Mask:
    """Find the second half of each worker's labels, in the order of the items.

    Parameters
    ----------
    loo : LeaveOneOut
        Leave-one-out posterior of the truth of each label.

    Returns
    -------
    ndarray of bool of shape (n_annotations,)
        True for the later labels.
    """
    order, start = loo.annotations.by_worker.order, loo.annotations.by_worker.start
    n_labels = np.diff(start)
    late = np.empty(len(order), bool)
    late[order] = 2 * (np.arange(len(order)) - np.repeat(start[:-1], n_labels)) >= np.repeat(n_labels, n_labels)
    return late


def tail(scores: Scores, density: Array, exponent: float) -> Array:
    """Probability of a score as low as each worker's for a worker of the crowd.

    Parameters
    ----------
    scores : Scores
        Scores of each worker.
    density : ndarray of shape (34,)
        Distribution of skill in the crowd.
    exponent : float
        Tempering exponent, at most 1.

    Returns
    -------
    ndarray of shape (n_workers,)
        The probabilities.
    """
    deviation = np.sqrt(scores.variance(_SKILLS)) / exponent
    return np.asarray(ndtr((scores.observed[:, None] - scores.mean(_SKILLS)) / deviation) @ density)


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
