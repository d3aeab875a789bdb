"""Workers with ability, items with difficulty: the model, its M step, its fitted attributes, and held-out labels.

    p(label = truth | worker, item)  =  sigma(ability * easiness)

A worker with more ability is right more often, and so is every worker on easier items. The easiness follows from the
votes or from a classifier. GLAD (`aggregation.glad`), `VoteDifficultyEM` and the difficulty methods of
`manyhands.classifiers` use it.

Of difficulty EM (Xu et al.) these parts are here, for any number of classes:

- Section 3.2, Eq. 1 and 2: alpha_ij = sigma(lambda1_j (p_i - 1/2)^2), and beta_ij with lambda2_j; `easiness`, `p_right`
- Section 3.4: ln a_i and ln b_i, `log_votes`
- Section 3.6: the vote share p-hat_i, `share_with_pseudo_votes`
- Section 4.2.1: the expertise of workers, `results`
- Appendix A.3, Eq. 3 to 6: the initial abilities, `AbilityModel.start`

References
----------
Y. Xu, T. Zhang, D. Zhang and W. Zhang, Data difficulty specified crowdsourcing.
T. A. Louis (1982), Finding the observed information matrix when using the EM algorithm (the confidence intervals).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from manyhands._core import elementary
from manyhands._core.arrays import Array
from manyhands._core.elementary import softplus
from manyhands.annotations import Annotations
from manyhands.em.e_step import Gold, expected_counts
from manyhands.em.kernels import pack, sums_by, weighted_votes
from manyhands.em.noise import pseudo_count_matrix, safe_log
from manyhands.em.priors import gold_offset
from manyhands.validation import Constraint, NoneOr, Number, OneOf

# ----------------------------------------------------------------------------------------------------
# Ability and difficulty: a worker with more ability is right more often, and so is every worker on easier items.
#
#     p(label = c | truth = c) = e^s / (e^s + K - 1),   s = ability[w, c] d[i],   0 <= d <= 1/4
#     p(label = l | truth = c) = the remaining probability times wrong[w, c, l],   l != c
#
# At easiness d = 0 all labels are random. With two classes the first line is sigmoid(s), and its value at d = 1/4 is
# the expertise of Xu et al. (Section 4.2.1): sensitivity for class 1, specificity for class 0. An ability is never
# negative, so no worker is worse than chance. The probabilities depend on the item, so this is no confusion matrix;
# given d, it is a logistic regression through the origin for each worker and class, whose optimum Newton's method
# finds.
#
# Pseudo-counts of right and wrong labels on the easiest items are added to the labels of each worker in every class;
# they dominate for workers with few labels. With all d = 1/4 and free errors the model is `ConfusionNoise` with the
# same pseudo-counts, wherever no worker is worse than chance.

EASIEST = 0.25  # (p - 1/2)^2 at p = 0 or 1; Eq. 5 and 6 have its inverse, 4


def easiness(q: Array) -> Array:
    """Easiness d of items from class probabilities: 0 where all classes are equally likely, 1/4 where one is certain.

    This is (p_i - 1/2)^2 of Eq. 1 and 2 for any number of classes.

    Examples
    --------
    >>> easiness(np.array([[0.5, 0.5], [0.9, 0.1], [0.0, 1.0]])).round(2).tolist()
    [0.0, 0.16, 0.25]

    Shapes: q (n_items, n_classes); returns (n_items,).
    """
    n_classes = q.shape[1]
    if n_classes == 1:
        return np.full(len(q), EASIEST)
    above = q.max(axis=1) - 1 / n_classes
    return np.asarray(EASIEST * (above / (1 - 1 / n_classes)) ** 2)


def with_floor(d: Array, floor: float) -> Array:
    """Easiness with a lower bound: d is moved toward the largest easiness by this share of the distance.

    Shapes: d (n_items,); returns (n_items,).
    """
    return floor * EASIEST + (1 - floor) * d


_PSEUDO_VOTES = 1.0  # on each item, ours; the paper has none (0)


def share_with_pseudo_votes(votes: Annotations, smoothing: float = _PSEUDO_VOTES) -> Array:
    """Vote shares with pseudo-votes that are spread evenly over the classes; with 0 of them p-hat_i of Section 3.6.

    Shapes: returns (n_items, n_classes).
    """
    counts = weighted_votes(votes, np.ones(votes.n_annotations))
    if smoothing:
        return (counts + smoothing / votes.n_classes) / (votes.n_labels[:, None] + smoothing)
    total = votes.n_labels[:, None]
    return np.where(total > 0, counts / np.maximum(total, 1), 1 / votes.n_classes)


def vote_easiness(votes: Annotations, smoothing: float = _PSEUDO_VOTES) -> Array:
    """Easiness of items from their vote shares; the mean of the others for items without labels.

    Shapes: returns (n_items,).
    """
    d = easiness(share_with_pseudo_votes(votes, smoothing))
    has_label = votes.n_labels > 0
    if has_label.any():
        d[~has_label] = d[has_label].mean()
    return d


@dataclass(frozen=True, eq=False)
class Abilities:
    """Parameters of the workers."""

    ability: Array  # (n_workers, n_classes); lambda of the paper: abilities, at least 0
    # (n_workers, n_classes, n_classes); log distribution of wrong labels, [worker, truth, label]; None is uniform
    # over the other classes
    log_wrong: Array | None


def log_votes(votes: Annotations, workers: Abilities, d: Array) -> Array:
    """Log-likelihood of the labels of each item for each possible truth: ln a_i and ln b_i of Section 3.4.

    Shapes: d (n_items,); returns (n_items, n_classes).
    """
    log_likelihood = np.zeros((votes.n_items, votes.n_classes))
    others = log_others(votes.n_classes)
    for c in range(votes.n_classes):  # one class at a time, which avoids an array of labels x classes
        logit = workers.ability[votes.worker, c] * d[votes.item] - others
        is_right = votes.label == c
        log_p = -softplus(np.where(is_right, -logit, logit))
        away = -others if workers.log_wrong is None else workers.log_wrong[votes.worker, c, votes.label]
        log_likelihood[:, c] = sums_by(votes.item, np.where(is_right, log_p, log_p + away), votes.n_items)
    return log_likelihood


def p_right(ability: Array, d: Array | float, n_classes: int) -> Array:
    """Probability of a right label: alpha_ij and beta_ij of Eq. 1 and 2.

    Examples
    --------
    >>> p_right(np.array([0.0, 4 * np.log(4)]), EASIEST, 2).round(2).tolist()
    [0.5, 0.8]
    """
    return elementary.exp(-softplus(log_others(n_classes) - ability * d))


def log_others(n_classes: int) -> float:
    """Log of the number of wrong classes, log(n_classes - 1)."""
    return float(elementary.log(max(n_classes - 1, 1)))


# ----------------------------------------------------------------------------------------------------
# The M step of worker abilities, by Newton's method, and their confidence intervals; the model is above.
#
# For worker w and class c, with mu_ic = p(truth_i = c), P_i = p(label = c | truth = c, d_i), sums over the labels of w:
#
#     slope       g = sum_i mu_ic (1[label_iw = c] - P_i) d_i
#     curvature   -h = sum_i mu_ic P_i (1 - P_i) d_i^2
#     step        ability[w, c]  <-  clip(ability[w, c] - g / h, 0, max_ability)
#
# Pseudo-counts, and with "map" a Gaussian prior, are added to g and h.

UPDATES = ("mle", "map", "frozen")
ERRORS = ("uniform", "free")
_NEWTON_STEPS = 50  # maximum, ours; from the parameters of the last pass two or three are enough
_MAX_STEP = 20.0  # of an ability, ours, where the likelihood is nearly flat; at d = 1/4 it moves the log-odds by 5
_MIN_STEP = 1e-9  # a shorter step ends the iteration (ours)
_LEAST_CURVATURE = 1e-300  # any positive number: it only avoids a division by 0
_LEAST_INFORMATION = 1e-12  # the interval is then that of all possible abilities
_Z_95 = 1.959964  # standard normal quantile of a two-sided 95% interval


@dataclass(frozen=True, eq=False)
class ClassLabels:
    """The labels with one class as the truth, gathered once for all Newton steps; one entry per label."""

    is_right: npt.NDArray[np.bool_]  # (n_annotations,); whether the label names the class
    d: Array  # (n_annotations,); easiness of the item
    weight: Array  # (n_annotations,); posterior probability that the class is the truth of the item


@dataclass(frozen=True, eq=False)
class AbilityModel:
    """The M step of the abilities.

    Shapes: pseudo_counts (n_classes, n_classes).
    """

    votes: Annotations
    # maximum likelihood with pseudo-counts; the same with a Gaussian prior around the initial abilities; or no update
    update: str
    errors: str  # wrong labels are spread evenly over the other classes, or each worker has a distribution of their own
    max_ability: float  # upper bound of the abilities
    precision: float  # precision of the Gaussian prior of "map"
    # (n_classes, n_classes); pseudo-counts [truth, label], above 0; those of wrong labels are equal
    pseudo_counts: Array

    def start(self, posterior: Array) -> Abilities:
        """Abilities at which the labels of the easiest items have the confusion matrices that follow by counting.

        These are the initial abilities of Appendix A.3 (Eq. 3 to 6), with pseudo-counts.

        Shapes: posterior (n_items, n_classes).
        """
        votes, n_classes = self.votes, self.votes.n_classes
        counts = expected_counts(pack(votes), posterior) + self.pseudo_counts
        right = np.einsum("wcc->wc", counts)
        wrong = counts.sum(axis=2) - right
        logit = elementary.log(right) - safe_log(wrong) + log_others(n_classes)
        return Abilities(np.clip(logit / EASIEST, 0.0, self.max_ability), self._log_wrong(counts))

    def solve(self, posterior: Array, d: Array, previous: Abilities, initial: Abilities) -> Abilities:
        """The best abilities given the posterior and the easiness of the items.

        Shapes: posterior (n_items, n_classes); d (n_items,).
        """
        if self.update == "frozen":
            return initial
        log_wrong = initial.log_wrong if self.errors == "uniform" else self.start(posterior).log_wrong
        return Abilities(self._newton(posterior, d, previous.ability, initial.ability), log_wrong)

    def log_penalty(self, workers: Abilities, initial: Abilities) -> float:
        """What pseudo-counts and Gaussian prior add to the objective; 0 where abilities are frozen."""
        if self.update == "frozen":
            return 0.0
        active, n_classes = np.unique(self.votes.worker), self.votes.n_classes
        logit = workers.ability[active] * EASIEST - log_others(n_classes)
        right, wrong = self._pseudo_totals
        log_density = -float((right * softplus(-logit) + wrong * softplus(logit)).sum())
        if workers.log_wrong is not None:
            off = ~np.eye(n_classes, dtype=bool)
            log_density += float((self.pseudo_counts * workers.log_wrong[active])[:, off].sum())
        away = workers.ability[active] - initial.ability[active]
        return log_density - 0.5 * self._prior_precision * float((away**2).sum())

    def solve_floor(self, posterior: Array, d: Array, ability: Array, floor: float) -> float:
        """The best lower bound of the easiness given all else; the expected log-likelihood is concave in it.

        Shapes: posterior (n_items, n_classes); d (n_items,); ability (n_workers, n_classes).
        """
        low, high = -1.0, 2.0  # outside [0, 1], so that the optimum may be at either end
        for _ in range(_NEWTON_STEPS):
            slope, curvature = self._floor_slopes(posterior, d, ability, floor)
            low, high = (floor, high) if slope > 0 else (low, floor)
            step = slope / max(curvature, _LEAST_CURVATURE)
            trial = floor + step
            trial = trial if low < trial < high or abs(step) <= _MIN_STEP else (low + high) / 2
            trial = min(max(trial, 0.0), 1.0)
            change, floor = abs(trial - floor), trial
            if change <= _MIN_STEP:
                break
        return floor

    def _floor_slopes(self, posterior: Array, d: Array, ability: Array, floor: float) -> tuple[float, float]:
        """First derivative and negative second derivative of the expected log-likelihood with respect to the floor."""
        votes, slope, curvature = self.votes, 0.0, 0.0
        d_of_label, room = with_floor(d, floor)[votes.item], EASIEST - d[votes.item]
        for c in range(votes.n_classes):
            own, weight = ability[votes.worker, c], posterior[votes.item, c]
            right, gain = p_right(own, d_of_label, votes.n_classes), own * room
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

        Shapes: posterior (n_items, n_classes); d (n_items,); returns low (n_workers, n_classes); returns high
        (n_workers, n_classes).
        """
        low, high = np.empty_like(workers.ability), np.empty_like(workers.ability)
        for c in range(self.votes.n_classes):
            ability, labels = workers.ability[:, c], self._gather(c, posterior, d)
            _, curvature = self._slopes(labels, ability)
            information = curvature + self._prior_precision - self._missing_information(labels, ability)
            spread = _Z_95 / np.sqrt(np.maximum(information, _LEAST_INFORMATION))
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
        optimum = np.empty_like(ability)
        for c in range(self.votes.n_classes):
            labels = self._gather(c, posterior, d)
            at, low, high = (
                ability[:, c].copy(),
                np.full(len(ability), -1.0),  # both outside the bounds, so that the optimum may be at a bound
                np.full(len(ability), self.max_ability + 1),
            )
            for _ in range(_NEWTON_STEPS):
                slope, curvature = self._slopes(labels, at)
                slope -= self._prior_precision * (at - initial[:, c])
                low, high = np.where(slope > 0, at, low), np.where(slope < 0, at, high)
                curvature = np.maximum(curvature + self._prior_precision, _LEAST_CURVATURE)
                step = np.clip(slope / curvature, -_MAX_STEP, _MAX_STEP)
                trial = np.clip(at + step, 0.0, self.max_ability)
                again = ((trial <= low) | (trial >= high)) & (np.abs(step) > _MIN_STEP)
                trial = np.clip(np.where(again, (low + high) / 2, trial), 0.0, self.max_ability)
                change = np.abs(trial - at).max(initial=0.0)
                at = trial
                if change <= _MIN_STEP:
                    break
            optimum[:, c] = at
        return optimum

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


# ----------------------------------------------------------------------------------------------------
# Estimates of a model with abilities and difficulties, in the form of fitted attributes.


def results(model: AbilityModel, workers: Abilities, posterior: Array, d: Array) -> dict[str, Any]:
    """Estimates about workers and items, by the names of the fitted attributes.

    Shapes: posterior (n_items, n_classes); d (n_items,).
    """
    votes = model.votes
    low, high = model.intervals(workers, posterior, d)
    expertise, lowest, highest = (
        p_right(ability, EASIEST, votes.n_classes) for ability in (workers.ability, low, high)
    )
    return {
        "ability_": workers.ability,
        "expertise_": expertise,
        "expertise_low_": lowest,
        "expertise_high_": highest,
        "difficulty_": 1 - d / EASIEST,
        "item_accuracy_": _item_accuracy(votes, workers.ability, posterior, d),
    }


def _item_accuracy(votes: Annotations, ability: Array, posterior: Array, d: Array) -> Array:
    """Expected share of right labels on each item.

    For an item without labels it is that of an average worker; workers without labels do not count in that average.

    Shapes: ability (n_workers, n_classes); posterior (n_items, n_classes); d (n_items,); returns (n_items,).
    """
    total = np.zeros(votes.n_items)
    of_average_worker = np.zeros(votes.n_items)
    average = ability[np.unique(votes.worker)].mean(axis=0)
    for c in range(votes.n_classes):
        right = p_right(ability[votes.worker, c], d[votes.item], votes.n_classes)
        total += sums_by(votes.item, posterior[votes.item, c] * right, votes.n_items)
        of_average_worker += posterior[:, c] * p_right(average[c], d, votes.n_classes)
    return np.where(votes.n_labels > 0, total / np.maximum(votes.n_labels, 1), of_average_worker)


# ----------------------------------------------------------------------------------------------------
# What methods with abilities and difficulties share: their parameters, and the easiness and the probability of labels.
#
# The easiness d of an item is computed from
#
#     "classifier"  p(k | x)       "posterior"  the posterior of the last pass
#     "votes"       vote shares    "constant"   nothing: all items have the largest easiness

DIFFICULTIES = ("classifier", "votes", "posterior", "constant")
UPDATED_DIFFICULTIES = ("classifier", "posterior")
NOT_CONVERGED = "EM stopped after {} passes before it converged; raise max_iter, or use another difficulty."

# Constraints of the parameters of every method with abilities.
ABILITY_CONSTRAINTS: dict[str, Constraint] = {
    "ability_update": OneOf(("auto", *UPDATES)),
    "floor": NoneOr(Number(least=0, most=1)),
    "errors": OneOf(ERRORS),
    "right": Number(above=0),
    "wrong": Number(above=0),
    "precision": Number(above=0),
    "max_ability": Number(above=0, most=1000),  # ours: 1,000 are log-odds of 250 on the easiest items
}


def posterior_from_joint(joint: Array, gold: Gold) -> tuple[Array, float]:
    """Posterior and evidence from the joint log-probability of labels and truth.

    Shapes: joint (n_items, n_classes); gold (n_items,); returns posterior (n_items, n_classes).
    """
    offset = gold_offset(gold, joint.shape[1])
    joint = joint if offset is None else joint + offset
    top = joint.max(axis=1, keepdims=True)
    posterior = elementary.exp(joint - top)
    total = posterior.sum(axis=1, keepdims=True)
    return posterior / total, float((top + elementary.log(total)).sum())


class AbilityMethod(Protocol):
    """An estimator with the parameters of an ability model."""

    difficulty: str
    ability_update: str
    errors: str
    right: float
    wrong: float
    precision: float
    max_ability: float


def ability_model(method: AbilityMethod, votes: Annotations) -> AbilityModel:
    """The ability model with the parameters of an estimator.

    Easiness computed from the votes is large where the votes agree, and there they are also right: judged by it every
    worker is perfect on easy items, and the likelihood is largest where all abilities are at their upper bound. So with
    `difficulty="votes"` the update "auto" means "frozen".
    """
    update = method.ability_update
    if update == "auto":
        update = "frozen" if method.difficulty == "votes" else "mle"
    pseudo = pseudo_count_matrix(votes.n_classes, method.right, method.wrong)
    return AbilityModel(votes, update, method.errors, method.max_ability, method.precision, pseudo)


# ----------------------------------------------------------------------------------------------------
# The probability of each single label: what `score` needs of held-out labels.


def label_given_truth(votes: Annotations, workers: Abilities, d: Array) -> Array:
    """Log-probability of each label for each possible truth, by ability and easiness.

    Shapes: d (n_annotations,); returns (n_annotations, n_classes).
    """
    logit = workers.ability[votes.worker] * d[:, None] - log_others(votes.n_classes)
    away = None if workers.log_wrong is None else workers.log_wrong[votes.worker, :, votes.label]
    return right_or_wrong(votes, logit, away)


def right_or_wrong(votes: Annotations, logit: Array, away: Array | None = None) -> Array:
    """Log-probability of each label for each possible truth, from the log odds that it is right.

    Shapes: logit (n_annotations, n_classes); away (n_annotations, n_classes); returns (n_annotations, n_classes).
    """
    if votes.n_classes == 1:
        return np.zeros((votes.n_annotations, 1))
    is_right = votes.label[:, None] == np.arange(votes.n_classes)
    wrong = -softplus(logit) + (-log_others(votes.n_classes) if away is None else away)
    return np.where(is_right, -softplus(-logit), wrong)


def other_votes_easiness(votes: Annotations, without: float, smoothing: float = _PSEUDO_VOTES) -> Array:
    """Easiness of the item of each label, from the shares of the other labels of this item.

    Shapes: returns (n_annotations,).
    """
    n_classes, label = votes.n_classes, np.arange(votes.n_annotations)
    counts = weighted_votes(votes, np.ones(votes.n_annotations))[votes.item]  # (n_annotations, n_classes)
    counts[label, votes.label] -= 1.0
    n_others = votes.n_labels[votes.item] - 1
    total = np.maximum(n_others, 1)[:, None] + smoothing  # without other labels the share is not used
    return np.where(n_others > 0, easiness((counts + smoothing / n_classes) / total), without)
