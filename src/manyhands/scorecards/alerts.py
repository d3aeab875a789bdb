"""What is noted about a worker, in four sections.

1. Workers whose agreement exceeds what the truth explains: colluding groups, and copies (`find_groups`).
2. How skilled this crowd is, and which workers are clearly below it (`compare_with_crowd`), by scores of labels.
3. Whether a worker's labels depend on the truth (`assess_informativeness`).
4. Seconds per label, and workers far faster than the crowd (`summarise_time`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import betainc, ndtr

from manyhands._core.arrays import Array, Mask
from manyhands.annotations import Annotations
from manyhands.em.collusion import CollusionGroups, collapse_groups, find_colluding_groups
from manyhands.em.copies import Copies, find_group_and_copies
from manyhands.em.kernels import sums_by
from manyhands.exceptions import ParameterError
from manyhands.scorecards.accuracy import LeaveOneOut

# ----------------------------------------------------------------------------------------------------
# Workers whose agreement exceeds what the truth explains: colluding groups, and pairs that share their errors.
#
# Pairs are those that count as one vote (`em.copies`); where a small group is one of copies, that is reported.

MAX_GROUPS = 5  # that are searched for, one after the other
DISAGREES = 0.01  # probability that a member agrees with the group as little


def find_groups(annotations: Annotations) -> tuple[list[CollusionGroups], Copies]:
    """Find colluding groups one after the other, the most significant first, and the copies among all other workers."""
    groups: list[CollusionGroups] = []
    group, copies = find_group_and_copies(annotations)
    votes = copies.without(annotations)
    while group is not None:
        groups.append(group)
        votes = collapse_groups(votes, group.members)
        group = find_colluding_groups(votes) if len(groups) < MAX_GROUPS else None
        if group is not None and np.any(group.members & copies.members):
            break
    return groups, copies


def disagrees_with_group(annotations: Annotations, group: CollusionGroups) -> Mask:
    """Find members of a group who agree with it clearly less than its other members do.

    A very good worker agrees with the copies of a good one on most items, and may be found with them. On the items on
    which the copies are wrong, they differ.

    Shapes: returns (n_workers,).
    """
    row = np.flatnonzero(group.members[annotations.worker])
    item, worker, label = annotations.item[row], annotations.worker[row], annotations.label[row]
    _, which, n_same = np.unique(
        item * np.int64(annotations.n_classes) + label, return_inverse=True, return_counts=True
    )
    n_here = np.bincount(item, minlength=annotations.n_items)[item]
    shared = n_here > 1
    equal = (n_same[which] - 1)[shared] / (n_here[shared] - 1)
    n_equal = sums_by(worker[shared], equal, annotations.n_workers)
    n_shared = sums_by(worker[shared], np.ones(len(equal)), annotations.n_workers)
    rate = n_equal / np.maximum(n_shared, 1.0)
    met = group.members & (n_shared > 0)
    if not met.any():
        return np.zeros(annotations.n_workers, bool)
    better = met & (rate >= np.median(rate[met]))
    usual = min(float(n_equal[better].sum() / n_shared[better].sum()), 0.99)
    n_wrong = np.maximum(n_shared - n_equal, 1e-9)  # the beta distribution has positive parameters
    p_value = betainc(n_wrong, n_equal + 1.0, 1 - usual)  # of `n_shared` labels, at most `n_equal` agree
    return met & (p_value < DISAGREES)


# ----------------------------------------------------------------------------------------------------
# Scores of labels, from which the skill of a worker is judged: how well each label fits the labels of the others.
#
# The model of a worker, here and in the next two sections, is a mixture: with probability t, their *skill*, they give
# the true class, and otherwise they draw a label from a distribution `b` of their own, their class bias, which does not
# depend on the item:
#
#     p(label | others) = t p(truth = label | others) + (1 - t) b[label]
#
# The score of a label is the log-likelihood ratio of a worker of skill .5 against random labels. With the leave-one-out
# posterior for p(truth | others), and the shares of the classes among a worker's labels for b, mean and variance of
# their total score are known for every t.

_SCORE_SKILL = 0.5  # half way between a random worker and a perfect one
_FLOOR = 1e-3  # added to variances


@dataclass(frozen=True, eq=False)
class Scores:
    """Sums of the labels' scores for each worker, from which their skill and its variance follow."""

    observed: Array  # (n_workers,); score of the labels given
    known: Array  # (n_workers,); expected score of a worker who is always right
    random: Array  # (n_workers,); expected score of a worker with random labels
    # (5, n_workers); expected square for the two, and the sums over labels of known^2, known * random and random^2
    moments: Array
    # (n_workers,); expected number of right labels of a worker who is always right, by the leave-one-out posterior
    right_known: Array
    right_random: Array  # (n_workers,); the same for random labels

    def mean(self, skill: Array) -> Array:
        """Mean of the score for each skill.

        Shapes: skill (n_skills,); returns (n_workers, n_skills).
        """
        return np.asarray(skill * self.known[:, None] + (1 - skill) * self.random[:, None])

    def variance(self, skill: Array) -> Array:
        """Variance of the score for each skill.

        Shapes: skill (n_skills,); returns (n_workers, n_skills).
        """
        t, rest = skill, 1 - skill
        square_known, square_random, known, both, random = self.moments[:, :, None]
        variance = t * square_known + rest * square_random - (t**2 * known + 2 * t * rest * both + rest**2 * random)
        return np.maximum(variance, 0.0) + _FLOOR

    def right(self, skill: float) -> Array:
        """Expected number of right labels of a worker of a given skill.

        Shapes: returns (n_workers,).
        """
        return np.asarray(skill * self.right_known + (1 - skill) * self.right_random)


def score_columns(loo: LeaveOneOut, bias: Array) -> list[Array]:
    """Score each label, and derive mean and variance of its score for workers who know everything or nothing.

    Shapes: bias (n_workers, n_classes).
    """
    worker, weight = loo.annotations.worker, loo.weight
    right, random = np.zeros((3, len(weight))), np.zeros((3, len(weight)))  # score, its square, probability of right
    for k, truth in enumerate(loo.truth.T):
        share = bias[worker, k]
        score = np.log1p(_SCORE_SKILL * (truth / share - 1.0))
        for row, value in enumerate((score, score * score, truth)):
            right[row] += truth * value
            random[row] += share * value
    observed = np.log1p(_SCORE_SKILL * (loo.p_right / bias.ravel()[loo.cell] - 1.0))
    squares = [right[0] ** 2, right[0] * random[0], random[0] ** 2]
    return [observed, right[0], random[0], right[1], random[1], *squares, right[2], random[2]]


def sum_scores(loo: LeaveOneOut, columns: list[Array], weight: Array) -> Scores:
    """Sum the scores of the labels of each worker.

    Shapes: columns (n_annotations,); weight (n_annotations,).
    """
    sums = [loo.by_worker(weight * column) for column in columns]
    return Scores(sums[0], sums[1], sums[2], np.stack(sums[3:8]), sums[8], sums[9])


# ----------------------------------------------------------------------------------------------------
# How skilled this crowd is, and which workers are clearly below it.
#
# In the mixture model above, `b` are again the shares of the classes among a worker's labels.
#
# The *skill* t is 0 for a worker whose labels do not depend on the truth, and 1 for one who is always right. In the
# crowd, t has a normal distribution, clipped to the range from 0 to 1; a minority may instead belong to a second group,
# usually of lower skill. Mean and spread of the crowd, and share and skill of the second group are unknown: a grid of
# values is weighted by the likelihood of all labels, and averaged over. The second group keeps spammers from making the
# crowd look weak. A second group above the crowd is possible, too: copies of one worker agree so well that they seem to
# be experts.
#
# A worker is *below the crowd* if a worker drawn from the first group would give labels that fit those of the others as
# badly as theirs with a probability of less than `FALSE_ALARM`. Workers of the first group more than `OUTLIER` standard
# deviations below its mean are not typical of it; they are clearly below the crowd, too.

# Chosen on the development seeds of benchmarks/alerts.py; docs/results/notes/alerts-tried.md has what else was tried.

SKILL_FALSE_ALARM = 0.005  # probability that a worker of the crowd is below it, for each worker
LATE_FALSE_ALARM = 0.001  # the same for the second half of their labels alone
OUTLIER = 2.0  # standard deviations below the crowd's mean from which a worker is not typical of the crowd
MIN_CROWD = 8  # workers with `MIN_LABELS` checked labels below which there is no crowd to compare with
MIN_LABELS = 10  # checked labels of a worker who counts for the distribution
_SKILLS = np.linspace(0.0, 0.99, 34)  # grid of the skill t, steps of .03
_MEANS = np.arange(0.1, 0.98, 0.05)  # grid of the mean of the first group
_SPREADS = np.array([0.08, 0.11, 0.14, 0.18, 0.22, 0.26])  # grid of its standard deviation
_SECOND_MEANS = np.array([0.0, 0.1, 0.2, 0.3, 0.4, 0.95])  # grid of the mean of the second group
_SECOND_PRIOR = np.array([0.35, 0.15, 0.15, 0.15, 0.15, 0.05])  # a second group above the crowd is the exception
_NO_SECOND = 0.15  # prior probability that there is no second group
_SECOND_SPREAD = 0.08  # standard deviation of the second group, as of the narrowest first one
_SECOND_SHARES = np.array([0.05, 0.1, 0.15, 0.2, 0.3, 0.4])  # grid of its share of the workers: a minority
_SECOND_UNIFORM = 0.2  # weight of the uniform distribution in the second group, which holds single bad workers
_GAP = 2.5  # standard deviations of the first group that separate the two means at least
_PRIOR_MEAN, _PRIOR_WORKERS = 0.6, 4.0  # mean skill of a crowd, and the number of workers that the prior is worth
_USUAL_SPREAD, _PRIOR_SPREAD_SD = 0.1, 0.2  # standard deviation of accuracy in a crowd, and that of its logarithm
_MAX_WORKERS = 2000  # workers from whom the distribution is estimated
_PSEUDO_COUNT = 0.5  # added to the counts of b, spread evenly over all classes


@dataclass(frozen=True, eq=False)
class CrowdSkill:
    """Distribution of skill in the crowd, and how each worker compares with it."""

    is_known: bool  # whether the crowd is large enough to compare with
    mean: float  # mean skill of the crowd without its second group and its outliers
    # (n_workers,); probability that the labels of a worker of this crowd fit those of the others as badly as the
    # worker's
    p_value: Array
    late_p_value: Array  # (n_workers,); the same for the second half of the worker's labels, in the order of the items
    is_below: Mask  # (n_workers,); workers whose `p_value` is less than `FALSE_ALARM`; none if the crowd is not known
    # (n_workers,); other workers whose `late_p_value` is less than `LATE_FALSE_ALARM`: they began well and did not
    # stay so
    is_late_below: Mask
    # (n_workers,); expected number of right labels of a worker of mean skill on the worker's items
    typical_right: Array
    late_checked: Array  # (n_workers,); number of checked labels in the second half
    late_right: Array  # (n_workers,); expected number of right labels in the second half
    late_typical_right: Array  # (n_workers,); the same for a worker of mean skill


def compare_with_crowd(loo: LeaveOneOut, tempering_exponent: float, is_apart: Mask) -> CrowdSkill:
    """Estimate the distribution of skill in the crowd, and find the workers who are clearly below it.

    Shapes: is_apart (n_workers,).
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
    is_below = p_value < SKILL_FALSE_ALARM
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

    Shapes: returns (n_annotations,).
    """
    order, start = loo.annotations.by_worker.order, loo.annotations.by_worker.start
    n_labels = np.diff(start)
    late = np.empty(len(order), bool)
    late[order] = 2 * (np.arange(len(order)) - np.repeat(start[:-1], n_labels)) >= np.repeat(n_labels, n_labels)
    return late


def tail(scores: Scores, density: Array, exponent: float) -> Array:
    """Probability of a score as low as each worker's for a worker of the crowd.

    Shapes: density (34,); returns (n_workers,).
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

    Shapes: likelihood (n_workers, 34); returns (34,).
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
    lowest = (mean - OUTLIER * spread)[:, None] - 1e-9  # a grid point on the limit is inside it, whatever its rounding
    typical = np.where(lowest <= _SKILLS, first, 0.0)
    typical /= typical.sum(axis=1, keepdims=True)
    return np.asarray(weight @ typical / weight.sum())


def _clipped_normal(mean: Array, spread: Array) -> Array:
    """(n_distributions, n_skills) normal distributions on the grid; its ends hold all that is beyond them."""
    edges = np.concatenate([[-np.inf], (_SKILLS[1:] + _SKILLS[:-1]) / 2, [np.inf]])
    return np.diff(ndtr((edges - mean[:, None]) / spread[:, None]), axis=1)


# ----------------------------------------------------------------------------------------------------
# Whether a worker's labels depend on the truth: informative, random, weak, one-class or inverted.
#
# In the mixture model above, a random worker has t = 0. A likelihood-ratio test, with `b` estimated under each
# hypothesis, rejects this or not.
# Whether a worker is worse than an honest one is judged by the crowd; where the crowd is too small for
# that, the weakest worker who still counts as honest has t = `WEAK`, which is accuracy 0.6 with two classes, and a
# second likelihood-ratio test rejects t >= `WEAK` or not.

WEAK = 0.2  # skill t of the weakest honest worker
FALSE_ALARM = 0.01  # share of the weakest informative workers who may be flagged
MIN_CHECKED = 5  # checked labels below which no test is made
FEW_LABELS = 20  # checked labels below which a worker is not compared with the crowd
ONE_CLASS = 0.9  # share of labels of one class from which a worker may be called one-class
MIN_RECALL = 0.4  # of items of other classes, the share that an informative worker recognises at least
_Z_WEAK = 2.326  # standard normal quantile at 1 - `FALSE_ALARM`
_Z_RANDOM = 1.645  # standard normal quantile at 95%: one random worker in twenty is taken for informative
_Z_INVERTED = 2.58  # standard normal quantile at 99.5%: below chance, whatever the crowd is like
_KNOWN_SHARES = np.array([0.0, 0.02, 0.05, 0.1, 0.15, WEAK, 0.3, 0.45, 0.6, 0.75, 0.9, 0.98])  # grid of t
_EM_ITERATIONS = 3  # for the class bias b


@dataclass(frozen=True, eq=False)
class Informativeness:
    """Result of the tests for each worker, and the numbers behind it."""

    is_informative: Mask  # (n_workers,); random labelling is rejected
    is_random: Mask  # (n_workers,); clearly below the crowd, and random labelling is not rejected
    # (n_workers,); clearly below the crowd, although the labels depend on the truth; or so in the second half of
    # their labels
    is_weak: Mask
    is_one_class: Mask  # (n_workers,); nearly all labels name one class, on too many items of other classes
    is_inverted: Mask  # (n_workers,); accuracy is below chance
    favourite: npt.NDArray[np.intp]  # (n_workers,); the class used most often
    right: Array  # (n_workers,); expected number of right labels
    right_by_chance: Array  # (n_workers,); the same with the labels shuffled among the worker's items


def assess_informativeness(
    loo: LeaveOneOut, accuracy_high: Array, tempering_exponent: float, copies: Mask
) -> tuple[Informativeness, CrowdSkill]:
    """Separate informative workers from random, weak, one-class and inverted ones.

    A worker is inverted if the upper end of the 95% interval of their accuracy is below chance agreement, if their
    labels alone are significantly below chance too, because the interval also depends on the other workers, and if they
    are clearly below the crowd or far below chance.

    Shapes: accuracy_high (n_workers,); copies (n_workers,).
    """
    n_checked = loo.used.sum(axis=1)
    enough = n_checked >= MIN_CHECKED
    profile = _profile_log_likelihood(loo)  # (n_grid, n_workers)
    weak = int(np.flatnonzero(_KNOWN_SHARES == WEAK)[0])
    not_random = 2 * (profile.max(axis=0) - profile[0]) > _Z_RANDOM**2
    not_honest = 2 * (profile[: weak + 1].max(axis=0) - profile[weak:].max(axis=0)) > _Z_WEAK**2
    right, chance, z = _against_chance(loo)
    is_inverted = enough & (z < -_Z_RANDOM) & (accuracy_high < chance / np.maximum(n_checked, 1.0))
    favourite, is_one_class = _one_class(loo)
    is_one_class &= enough & ~not_random & ~is_inverted
    crowd = compare_with_crowd(loo, tempering_exponent, is_one_class | is_inverted | copies)
    judged = n_checked >= FEW_LABELS
    is_below = judged & crowd.is_below if crowd.is_known else enough & not_honest & ~not_random
    is_inverted &= is_below | (z < -_Z_INVERTED) | (not crowd.is_known)
    is_below &= ~is_one_class & ~is_inverted
    assessment = Informativeness(
        is_informative=enough & not_random & ~is_inverted,
        is_random=is_below & ~not_random,
        is_weak=(is_below & not_random) | (judged & crowd.is_late_below & ~is_one_class & ~is_inverted),
        is_one_class=is_one_class,
        is_inverted=is_inverted,
        favourite=favourite,
        right=right,
        right_by_chance=chance,
    )
    return assessment, crowd


def _profile_log_likelihood(loo: LeaveOneOut) -> Array:
    """(n_grid, n_workers) log-likelihood of each t, maximised over the class bias b by EM."""
    n_classes, right, weight = max(loo.annotations.n_classes, 1), loo.p_right, loo.weight
    bias = _normalised(loo.used, n_classes)
    profile = []
    for t in _KNOWN_SHARES:
        for _ in range(_EM_ITERATIONS if t > 0 else 0):
            from_bias = (1 - t) * bias.ravel()[loo.cell]
            bias = _normalised(loo.by_label(weight * from_bias / (t * right + from_bias)), n_classes)
        p_label = t * right + (1 - t) * bias.ravel()[loo.cell]
        profile.append(loo.by_worker(weight * np.log(p_label)))
    return np.stack(profile)


def _normalised(counts: Array, n_classes: int) -> Array:
    """(n_workers, n_classes) class distributions from counts and pseudo-counts."""
    counts = counts + _PSEUDO_COUNT / n_classes
    return counts / counts.sum(axis=1, keepdims=True)


def _against_chance(loo: LeaveOneOut) -> tuple[Array, Array, Array]:
    """Expected right labels, the same with labels shuffled among the items, and their difference in deviations."""
    worker, weight = loo.annotations.worker, loo.weight
    n_checked = np.maximum(loo.used.sum(axis=1), 1e-12)[:, None]
    used, met = loo.used / n_checked, loo.met / n_checked  # (n_workers, n_classes)
    first = np.zeros(len(weight))
    second = np.zeros(len(weight))
    for k, column in enumerate(loo.truth.T):
        off = column - met[worker, k]
        first += used[worker, k] * off
        second += used[worker, k] * off**2
    right = loo.by_worker(weight * loo.p_right)
    chance = n_checked[:, 0] * np.sum(used * met, axis=1)
    variance = loo.by_worker(weight * (second - first**2))
    return right, chance, (right - chance) / np.sqrt(variance + 0.25)


def _one_class(loo: LeaveOneOut) -> tuple[npt.NDArray[np.intp], Mask]:
    """The class used most, and whether it was used on too many items of other classes for an informative worker."""
    favourite = loo.used.argmax(axis=1)
    theirs = favourite[loo.annotations.worker]
    elsewhere = loo.weight * (1 - np.take_along_axis(loo.truth, theirs[:, None], axis=1)[:, 0])
    met = loo.by_worker(elsewhere)
    seen = loo.by_worker(elsewhere * (loo.annotations.label != theirs))
    n_checked = loo.used.sum(axis=1)
    nearly_always = loo.used.max(axis=1) >= ONE_CLASS * n_checked
    missed = np.maximum(met - seen, 1e-9)  # the beta distribution has positive parameters
    p_value = betainc(missed, seen + 1.0, 1 - MIN_RECALL)  # of `met` items, at most `seen` are recognised
    return favourite, nearly_always & (p_value < FALSE_ALARM)


# ----------------------------------------------------------------------------------------------------
# Speed: the median seconds per label, beside the crowd's.
#
# A worker is *fast* if they are far below the crowd in both of two senses, on the logarithm of seconds: at most a
# third of the crowd's median, and three robust standard deviations below it. The crowd is all workers with ten timed
# labels or more, each counted once; its median and its median absolute deviation are not moved by a minority of fast
# ones.

MIN_TIMED = 10  # labels with a time below which a worker is not compared
MIN_TIMED_WORKERS = 5  # workers with as many below which there is no crowd to compare with
FRACTION = 1 / 3  # of the crowd's median seconds, at most
MIN_Z = 3.0  # robust standard deviations below the crowd's median, at least
_MIN_SPREAD = 0.2  # of log seconds: a crowd in which all are equally fast still varies by chance
_SHORTEST = 0.1  # seconds; shorter times count as this
_MAD_TO_SD = 1.4826  # of a normal distribution


@dataclass(frozen=True, eq=False)
class WorkingTime:
    """Seconds per label of each worker and of the crowd."""

    n_timed: npt.NDArray[np.int64]  # (n_workers,); number of labels with a time
    median: Array  # (n_workers,); median seconds per label; NaN without times
    crowd_median: float  # median of the workers' medians; NaN without times
    is_fast: Mask  # (n_workers,); workers far faster than the crowd


def summarise_time(working_time: Mapping[Any, Any] | None, worker_ids: npt.NDArray[Any]) -> WorkingTime:
    """Summarise the seconds per label of each worker, and find those far faster than the crowd.

    Shapes: worker_ids (n_workers,).
    """
    ids = worker_ids.tolist()
    given = dict(working_time or {})
    unknown = set(given) - set(ids)
    if unknown:
        raise ParameterError(f"working_time names {sorted(map(str, unknown))[0]!r}, who is no worker of these labels.")
    times = [_checked(given.get(worker, ()), worker) for worker in ids]
    n_timed = np.array([len(seconds) for seconds in times], np.int64)
    median = np.array([np.median(seconds) if len(seconds) else np.nan for seconds in times], float)
    log_median = np.log(np.maximum(median, _SHORTEST))
    compared = n_timed >= MIN_TIMED
    is_fast = np.zeros(len(ids), bool)
    crowd_median = float(np.median(median[compared if compared.any() else n_timed > 0])) if n_timed.any() else np.nan
    if compared.sum() >= MIN_TIMED_WORKERS:
        centre = np.median(log_median[compared])
        spread = max(_MAD_TO_SD * float(np.median(np.abs(log_median[compared] - centre))), _MIN_SPREAD)
        is_fast = compared & (log_median <= centre + np.log(FRACTION)) & (log_median <= centre - MIN_Z * spread)
    return WorkingTime(n_timed, median, crowd_median, is_fast)


def _checked(seconds: Any, worker: Any) -> Array:
    values = np.asarray(seconds, float)
    if values.ndim != 1 or not np.all(np.isfinite(values)) or np.any(values < 0):
        raise ParameterError(
            f"working_time of {worker!r} must be a sequence of seconds, each a number of at least 0. Remove the others."
        )
    return values
