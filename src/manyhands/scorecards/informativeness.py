"""Whether a worker's labels tell anything of the truth.

Each worker is taken to know the truth with probability t and to answer from a habit otherwise:

    p(label | others) = t p(label is true | others) + (1 - t) habit[label]

A guesser has t = 0. A weak but honest worker has t = `WEAK` at the least: accuracy 0.6 where there are two classes. Two
likelihood ratios, with the habit fitted under each, say which of the two can be ruled out. Where neither can, there are
too few labels.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import betainc

from manyhands.em.kernels import Array
from manyhands.scorecards.leave_one_out import LeaveOneOut, Mask

WEAK = 0.2
ALARM = 0.01  # of the weakest honest workers, the share that may be flagged
MIN_CHECKED = 5  # labels below which nothing is said
ONE_CLASS = 0.9  # share of labels of one class from which it is "nearly always"
SEES_OTHERS = 0.4  # an honest worker names another class on this share of the items of other classes, at the least

_BOUND = 2.326  # the normal deviate of `ALARM`
_TOLD = 1.645  # deviations that rule out guessing: one guesser in twenty passes for a worker who knows something
_TRUSTS = np.array([0.0, 0.02, 0.05, 0.1, 0.15, WEAK, 0.3, 0.45, 0.6, 0.75, 0.9, 0.98])
_ROUNDS = 3  # of EM for the habit
_HABIT = 0.5  # a label, spread over all classes, that every habit holds beforehand


@dataclass(frozen=True, eq=False)
class Knowledge:
    """(n_workers,) what can be said of each worker, and the numbers behind it."""

    is_informative: Mask  # guessing is ruled out
    is_random: Mask
    is_one_class: Mask
    is_inverted: Mask
    favourite: npt.NDArray[np.intp]  # the class named most
    right: Array  # expected number of right labels
    right_by_chance: Array  # the same if the labels were shuffled among the worker's items


def judge_knowledge(others_posterior: LeaveOneOut, accuracy_high: Array) -> Knowledge:
    """Tell workers who know something from guessers, and both from those of whom too little is known.

    The wrong way round are those whose accuracy, as far up as its interval goes, stays below that of the same labels in
    random order, if the labels also say so by themselves: the interval leans on the rest of the crowd.
    """
    n_checked = others_posterior.used.sum(axis=1)
    enough = n_checked >= MIN_CHECKED
    profile = _profile(others_posterior)  # (n_trusts, n_workers)
    weak = int(np.flatnonzero(_TRUSTS == WEAK)[0])
    no_guesser = 2 * (profile.max(axis=0) - profile[0]) > _TOLD**2
    no_honest = 2 * (profile[: weak + 1].max(axis=0) - profile[weak:].max(axis=0)) > _BOUND**2
    right, chance, z = _against_chance(others_posterior)
    is_inverted = enough & (z < -_TOLD) & (accuracy_high < chance / np.maximum(n_checked, 1.0))
    is_informative = enough & no_guesser & ~is_inverted
    favourite, is_one_class = _one_class(others_posterior)
    is_one_class &= enough & ~is_informative & ~is_inverted
    is_random = enough & no_honest & ~is_informative & ~is_one_class & ~is_inverted
    return Knowledge(is_informative, is_random, is_one_class, is_inverted, favourite, right, chance)


def _profile(others_posterior: LeaveOneOut) -> Array:
    """(n_trusts, n_workers) the log likelihood of each t, with the habit that suits it best."""
    n_classes, right, weight = (
        max(others_posterior.annotations.n_classes, 1),
        others_posterior.p_right,
        others_posterior.weight,
    )
    habit = _as_habit(others_posterior.used, n_classes)
    profile = []
    for trust in _TRUSTS:
        for _ in range(_ROUNDS if trust > 0 else 0):
            guessed = (1 - trust) * habit.ravel()[others_posterior.cell]
            habit = _as_habit(others_posterior.by_label(weight * guessed / (trust * right + guessed)), n_classes)
        p_label = trust * right + (1 - trust) * habit.ravel()[others_posterior.cell]
        profile.append(others_posterior.by_worker(weight * np.log(p_label)))
    return np.stack(profile)


def _as_habit(counts: Array, n_classes: int) -> Array:
    counts = counts + _HABIT / n_classes
    return counts / counts.sum(axis=1, keepdims=True)


def _against_chance(others_posterior: LeaveOneOut) -> tuple[Array, Array, Array]:
    """Expected right labels, the same with labels shuffled among the worker's items, and the distance in deviations."""
    worker, weight = others_posterior.annotations.worker, others_posterior.weight
    n_checked = np.maximum(others_posterior.used.sum(axis=1), 1e-12)[:, None]
    used, met = others_posterior.used / n_checked, others_posterior.met / n_checked  # (n_workers, n_classes)
    first = np.zeros(len(weight))
    second = np.zeros(len(weight))
    for k, column in enumerate(others_posterior.truth.T):
        off = column - met[worker, k]
        first += used[worker, k] * off
        second += used[worker, k] * off**2
    right = others_posterior.by_worker(weight * others_posterior.p_right)
    chance = n_checked[:, 0] * np.sum(used * met, axis=1)
    variance = others_posterior.by_worker(weight * (second - first**2))
    return right, chance, (right - chance) / np.sqrt(variance + 0.25)


def _one_class(others_posterior: LeaveOneOut) -> tuple[npt.NDArray[np.intp], Mask]:
    """The favourite class, and whether it was named for too many items of other classes to be honest."""
    favourite = others_posterior.used.argmax(axis=1)
    theirs = favourite[others_posterior.annotations.worker]
    elsewhere = others_posterior.weight * (
        1 - np.take_along_axis(others_posterior.truth, theirs[:, None], axis=1)[:, 0]
    )
    met = others_posterior.by_worker(elsewhere)
    seen = others_posterior.by_worker(elsewhere * (others_posterior.annotations.label != theirs))
    n_checked = others_posterior.used.sum(axis=1)
    nearly_always = others_posterior.used.max(axis=1) >= ONE_CLASS * n_checked
    missed = np.maximum(met - seen, 1e-9)
    by_luck = betainc(missed, seen + 1.0, 1 - SEES_OTHERS)  # of `met` items, at most `seen` are recognised
    return favourite, nearly_always & (by_luck < ALARM)
