"""Whether a worker's labels depend on the truth: informative, random, weak, one-class or inverted.

The model of a worker is a mixture: with probability t they give the true class, and otherwise they draw a label from a
distribution `b` of their own, their class bias, which does not depend on the item:

    p(label | others) = t p(truth = label | others) + (1 - t) b[label]

A random worker has t = 0. A likelihood-ratio test, with `b` estimated under each hypothesis, rejects this or not.
Whether a worker is worse than an honest one is judged by the crowd (`crowd_skill`); where the crowd is too small for
that, the weakest worker who still counts as honest has t = `WEAK`, which is accuracy 0.6 with two classes, and a second
likelihood-ratio test rejects t >= `WEAK` or not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import betainc

from manyhands.em.kernels import Array
from manyhands.scorecards.crowd_skill import CrowdSkill, compare_with_crowd
from manyhands.scorecards.leave_one_out import LeaveOneOut, Mask

WEAK = 0.2
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
_PSEUDO_COUNT = 0.5  # added to the counts of b, spread evenly over all classes


@dataclass(frozen=True, eq=False)
class Informativeness:
    """Result of the tests for each worker, and the numbers behind it.

    Attributes
    ----------
    is_informative : ndarray of bool of shape (n_workers,)
        Random labelling is rejected.
    is_random : ndarray of bool of shape (n_workers,)
        Clearly below the crowd, and random labelling is not rejected.
    is_weak : ndarray of bool of shape (n_workers,)
        Clearly below the crowd, although the labels depend on the truth; or so in the second half of their labels.
    is_one_class : ndarray of bool of shape (n_workers,)
        Nearly all labels name one class, on too many items of other classes.
    is_inverted : ndarray of bool of shape (n_workers,)
        Accuracy is below chance.
    favourite : ndarray of int of shape (n_workers,)
        The class used most often.
    right : ndarray of shape (n_workers,)
        Expected number of right labels.
    right_by_chance : ndarray of shape (n_workers,)
        The same with the labels shuffled among the worker's items.
    """

    is_informative: Mask
    is_random: Mask
    is_weak: Mask
    is_one_class: Mask
    is_inverted: Mask
    favourite: npt.NDArray[np.intp]
    right: Array
    right_by_chance: Array


def assess_informativeness(
    loo: LeaveOneOut, accuracy_high: Array, tempering_exponent: float, copies: Mask
) -> tuple[Informativeness, CrowdSkill]:
    """Separate informative workers from random, weak, one-class and inverted ones.

    A worker is inverted if the upper end of the 95% interval of their accuracy is below chance agreement, if their
    labels alone are significantly below chance too, because the interval also depends on the other workers, and if they
    are clearly below the crowd or far below chance.

    Parameters
    ----------
    loo : LeaveOneOut
        Leave-one-out posterior of the truth of each label.
    accuracy_high : ndarray of shape (n_workers,)
        Upper end of the 95% interval of each worker's accuracy.
    tempering_exponent : float
        Exponent of the labels' likelihood in the posterior.
    copies : ndarray of bool of shape (n_workers,)
        Members of colluding groups, who say nothing about the crowd's skill.

    Returns
    -------
    informativeness : Informativeness
        At most one of the masks `is_random`, `is_weak`, `is_one_class` and `is_inverted` is True for each worker; none
        where there are too few labels.
    crowd : CrowdSkill
        Comparison of each worker with the crowd: all workers who are neither one-class nor inverted nor copies.
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
    found = Informativeness(
        is_informative=enough & not_random & ~is_inverted,
        is_random=is_below & ~not_random,
        is_weak=(is_below & not_random) | (judged & crowd.is_late_below & ~is_one_class & ~is_inverted),
        is_one_class=is_one_class,
        is_inverted=is_inverted,
        favourite=favourite,
        right=right,
        right_by_chance=chance,
    )
    return found, crowd


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
    missed = np.maximum(met - seen, 1e-9)
    p_value = betainc(missed, seen + 1.0, 1 - MIN_RECALL)  # of `met` items, at most `seen` are recognised
    return favourite, nearly_always & (p_value < FALSE_ALARM)
