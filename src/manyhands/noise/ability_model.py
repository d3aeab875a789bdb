"""The M step of worker abilities, by Newton's method, and their confidence intervals; the model is in `difficulty`.

For worker w and class c, with mu_ic = p(truth_i = c), P_i = p(label = c | truth = c, d_i), sums over the labels of w:

    slope       g = sum_i mu_ic (1[label_iw = c] - P_i) d_i
    curvature   -h = sum_i mu_ic P_i (1 - P_i) d_i^2
    step        ability[w, c]  <-  clip(ability[w, c] - g / h, 0, max_ability)

Pseudo-counts, and with "map" a Gaussian prior, are added to g and h.

References
----------
T. A. Louis (1982), Finding the observed information matrix when using the EM algorithm.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from manyhands import elementary
from manyhands.annotations import Annotations
from manyhands.elementary import softplus
from manyhands.em.e_step import expected_counts
from manyhands.em.kernels import Array, pack, sums_by
from manyhands.noise import safe_log
from manyhands.noise.difficulty import EASIEST, Abilities, log_others, p_right, with_floor

UPDATES = ("mle", "map", "frozen")
ERRORS = ("uniform", "free")
_NEWTON_STEPS = 50  # maximum; from the parameters of the last pass two or three are enough
_MAX_STEP = 20.0
_MIN_STEP = 1e-9  # a shorter step ends the iteration
_Z_95 = 1.959964  # standard normal quantile of a two-sided 95% interval


@dataclass(frozen=True, eq=False)
class ClassLabels:
    """The labels with one class as the truth, gathered once for all Newton steps; one entry per label.

    Attributes
    ----------
    is_right : ndarray of shape (n_annotations,) of bool
        Whether the label names the class.
    d : ndarray of shape (n_annotations,)
        Easiness of the item.
    weight : ndarray of shape (n_annotations,)
        Posterior probability that the class is the truth of the item.
    """

    is_right: npt.NDArray[np.bool_]
    d: Array
    weight: Array


@dataclass(frozen=True, eq=False)
class AbilityModel:
    """The M step of the abilities.

    Parameters
    ----------
    votes : Annotations
        The labels.
    update : {"mle", "map", "frozen"}
        Maximum likelihood with pseudo-counts; the same with a Gaussian prior around the initial abilities; or no
        update.
    errors : {"uniform", "free"}
        Wrong labels are spread evenly over the other classes, or each worker has a distribution of their own.
    max_ability : float
        Upper bound of the abilities.
    precision : float
        Precision of the Gaussian prior of "map".
    pseudo_counts : ndarray of shape (n_classes, n_classes)
        Pseudo-counts [truth, label], above 0; those of wrong labels are equal.
    """

    votes: Annotations
    update: str
    errors: str
    max_ability: float
    precision: float
    pseudo_counts: Array

    def start(self, posterior: Array) -> Abilities:
        """Abilities at which the labels of the easiest items have the confusion matrices that follow by counting.

        Parameters
        ----------
        posterior : ndarray of shape (n_items, n_classes)
            p(truth) of every item.

        Returns
        -------
        Abilities
        """
        votes, n_classes = self.votes, self.votes.n_classes
        counts = expected_counts(pack(votes), posterior) + self.pseudo_counts
        right = np.einsum("wcc->wc", counts)
        wrong = counts.sum(axis=2) - right
        logit = elementary.log(right) - safe_log(wrong) + log_others(n_classes)
        return Abilities(np.clip(logit / EASIEST, 0.0, self.max_ability), self._log_wrong(counts))

    def solve(self, posterior: Array, d: Array, previous: Abilities, initial: Abilities) -> Abilities:
        """The best abilities given the posterior and the easiness of the items.

        Parameters
        ----------
        posterior : ndarray of shape (n_items, n_classes)
            p(truth) of every item.
        d : ndarray of shape (n_items,)
            Easiness of the items.
        previous : Abilities
            Where Newton's method starts.
        initial : Abilities
            The abilities of "frozen", and the centre of the prior of "map".

        Returns
        -------
        Abilities
        """
        if self.update == "frozen":
            return initial
        log_wrong = initial.log_wrong if self.errors == "uniform" else self.start(posterior).log_wrong
        return Abilities(self._newton(posterior, d, previous.ability, initial.ability), log_wrong)

    def log_penalty(self, workers: Abilities, initial: Abilities) -> float:
        """What pseudo-counts and Gaussian prior add to the objective; 0 where abilities are frozen.

        Parameters
        ----------
        workers : Abilities
            The abilities.
        initial : Abilities
            The centre of the Gaussian prior.

        Returns
        -------
        float
        """
        if self.update == "frozen":
            return 0.0
        active, n_classes = np.unique(self.votes.worker), self.votes.n_classes
        logit = workers.ability[active] * EASIEST - log_others(n_classes)
        right, wrong = self._pseudo_totals
        found = -float((right * softplus(-logit) + wrong * softplus(logit)).sum())
        if workers.log_wrong is not None:
            off = ~np.eye(n_classes, dtype=bool)
            found += float((self.pseudo_counts * workers.log_wrong[active])[:, off].sum())
        away = workers.ability[active] - initial.ability[active]
        return found - 0.5 * self._prior_precision * float((away**2).sum())

    def solve_floor(self, posterior: Array, d: Array, ability: Array, floor: float) -> float:
        """The best lower bound of the easiness given all else; the expected log-likelihood is concave in it.

        Parameters
        ----------
        posterior : ndarray of shape (n_items, n_classes)
            p(truth) of every item.
        d : ndarray of shape (n_items,)
            Easiness without the bound.
        ability : ndarray of shape (n_workers, n_classes)
            Abilities.
        floor : float
            Where Newton's method starts.

        Returns
        -------
        float
            Between 0 and 1.
        """
        low, high = -1.0, 2.0
        for _ in range(_NEWTON_STEPS):
            slope, curvature = self._floor_slopes(posterior, d, ability, floor)
            low, high = (floor, high) if slope > 0 else (low, floor)
            step = slope / max(curvature, 1e-300)
            trial = floor + step
            trial = trial if low < trial < high or abs(step) <= _MIN_STEP else (low + high) / 2
            trial = min(max(trial, 0.0), 1.0)
            moved, floor = abs(trial - floor), trial
            if moved <= _MIN_STEP:
                break
        return floor

    def _floor_slopes(self, posterior: Array, d: Array, ability: Array, floor: float) -> tuple[float, float]:
        """First derivative and negative second derivative of the expected log-likelihood with respect to the floor."""
        votes, slope, curvature = self.votes, 0.0, 0.0
        raised, room = with_floor(d, floor)[votes.item], EASIEST - d[votes.item]
        for c in range(votes.n_classes):
            own, weight = ability[votes.worker, c], posterior[votes.item, c]
            right, gain = p_right(own, raised, votes.n_classes), own * room
            slope += float((weight * ((votes.label == c) - right) * gain).sum())
            curvature += float((weight * right * (1 - right) * gain**2).sum())
        return slope, curvature

    def intervals(self, workers: Abilities, posterior: Array, d: Array) -> tuple[Array, Array]:
        """Confidence intervals of the abilities at 95%.

        They use the observed information: that of complete data, plus the precision of the prior of "map", minus the
        missing information about the truth (Louis 1982). The other workers, the worker's ability in other classes, the
        easiness of the items, its lower bound and the classifier are taken as known, so intervals are rather too short
        than too long. They are too short where the easiness was computed from the labels themselves: from the
        posterior, or from votes with "mle". Frozen abilities are no optimum: their intervals show how informative the
        labels are, around the initial value.

        Parameters
        ----------
        workers : Abilities
            The estimated abilities.
        posterior : ndarray of shape (n_items, n_classes)
            p(truth) of every item.
        d : ndarray of shape (n_items,)
            Easiness of the items.

        Returns
        -------
        low : ndarray of shape (n_workers, n_classes)
            Lower limits.
        high : ndarray of shape (n_workers, n_classes)
            Upper limits.
        """
        low, high = np.empty_like(workers.ability), np.empty_like(workers.ability)
        for c in range(self.votes.n_classes):
            ability, labels = workers.ability[:, c], self._gather(c, posterior, d)
            _, curvature = self._slopes(labels, ability)
            information = curvature + self._prior_precision - self._missing_information(labels, ability)
            spread = _Z_95 / np.sqrt(np.maximum(information, 1e-12))
            low[:, c], high[:, c] = ability - spread, ability + spread
        return np.clip(low, 0.0, self.max_ability), np.clip(high, 0.0, self.max_ability)

    @property
    def _pseudo_totals(self) -> tuple[float, float]:
        """Pseudo-counts of right and of wrong labels in each class."""
        right = float(self.pseudo_counts[0, 0])
        return right, float(self.pseudo_counts[0].sum()) - right

    @property
    def _prior_precision(self) -> float:
        """Precision of the Gaussian prior; 0 without one."""
        return self.precision if self.update == "map" else 0.0

    def _log_wrong(self, counts: Array) -> Array | None:
        """Log distribution of wrong labels from counts, [worker, truth, label]; the diagonal is never read."""
        if self.errors == "uniform":
            return None
        off = np.where(np.eye(counts.shape[1], dtype=bool), 0.0, counts)
        return safe_log(off) - safe_log(off.sum(axis=2, keepdims=True))

    def _newton(self, posterior: Array, d: Array, ability: Array, initial: Array) -> Array:
        """Newton's method for every worker and class.

        The objective is concave in each ability, so the sign of the slope shows on which side the optimum lies; a step
        that would leave the bracket is replaced by bisection.
        """
        found = np.empty_like(ability)
        for c in range(self.votes.n_classes):
            labels = self._gather(c, posterior, d)
            at, low, high = (
                ability[:, c].copy(),
                np.full(len(ability), -1.0),
                np.full(len(ability), self.max_ability + 1),
            )
            for _ in range(_NEWTON_STEPS):
                slope, curvature = self._slopes(labels, at)
                slope -= self._prior_precision * (at - initial[:, c])
                low, high = np.where(slope > 0, at, low), np.where(slope < 0, at, high)
                step = np.clip(slope / np.maximum(curvature + self._prior_precision, 1e-300), -_MAX_STEP, _MAX_STEP)
                trial = np.clip(at + step, 0.0, self.max_ability)
                again = ((trial <= low) | (trial >= high)) & (np.abs(step) > _MIN_STEP)
                trial = np.clip(np.where(again, (low + high) / 2, trial), 0.0, self.max_ability)
                moved = np.abs(trial - at).max(initial=0.0)
                at = trial
                if moved <= _MIN_STEP:
                    break
            found[:, c] = at
        return found

    def _gather(self, c: int, posterior: Array, d: Array) -> ClassLabels:
        """The labels with class `c` as the truth."""
        item = self.votes.item
        return ClassLabels(self.votes.label == c, d[item], posterior[item, c])

    def _slopes(self, labels: ClassLabels, ability: Array) -> tuple[Array, Array]:
        """Slope and curvature of the expected log-likelihood, pseudo-counts included; shape (n_workers,) each."""
        worker, (right, score) = self.votes.worker, self._scores(labels, ability)
        pseudo_right, pseudo_wrong = self._pseudo_totals
        easy = p_right(ability, EASIEST, self.votes.n_classes)
        slope = sums_by(worker, labels.weight * score, len(ability))
        slope += (pseudo_right - (pseudo_right + pseudo_wrong) * easy) * EASIEST
        curvature = sums_by(worker, labels.weight * right * (1 - right) * labels.d**2, len(ability))
        curvature += (pseudo_right + pseudo_wrong) * easy * (1 - easy) * EASIEST**2
        return slope, curvature

    def _missing_information(self, labels: ClassLabels, ability: Array) -> Array:
        """Variance of the slope over the posterior of the truth, shape (n_workers,)."""
        _, score = self._scores(labels, ability)
        return sums_by(self.votes.worker, labels.weight * (1 - labels.weight) * score**2, len(ability))

    def _scores(self, labels: ClassLabels, ability: Array) -> tuple[Array, Array]:
        """Probability that each label is right, and the derivative of its log-likelihood, if the class is the truth."""
        right = p_right(ability[self.votes.worker], labels.d, self.votes.n_classes)
        return right, (labels.is_right - right) * labels.d
