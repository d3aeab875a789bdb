"""Ability against difficulty: a worker is right the more often, the abler he is and the easier the item.

    p(label = c | truth = c) = e^s / (e^s + K - 1),   s = ability[w, c] d[i],   0 <= d <= 1/4
    p(label = l | truth = c) = what is left of 1, times wrong[w, c, l],   l != c

At d = 0 everybody guesses. With two classes the first line is sigmoid(s), and what it is at d = 1/4 is the paper's
expertise: sensitivity of class 1, specificity of class 0. An ability is never negative, so nobody is worse than a
guess. This is no table, since it looks at the item; given d, it is a logistic regression through the origin for each
worker and class, whose optimum Newton's method finds.

A worker's labels are joined by `right` and `wrong` labels beforehand, on the easiest items, in every class: of somebody
who gave few labels these decide. With all d = 1/4 and free errors that is `ConfusionNoise` with the same labels
beforehand, wherever nobody is worse than a guess.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from manyhands import elementary
from manyhands.annotations import Annotations
from manyhands.elementary import softplus
from manyhands.em.kernels import Array, em_pass, pack, sums_by, weighted_votes
from manyhands.noise import safe_log

EASIEST = 0.25
UPDATES = ("mle", "map", "frozen")
ERRORS = ("uniform", "free")

_NEWTON_STEPS = 50  # at most; from where the last pass ended, two or three are enough
_LONGEST_STEP = 20.0
_THERE = 1e-9  # a shorter step ends the climb
_NORMAL = 1.959964  # standard deviations on either side that hold 95%


def easiness(q: Array) -> Array:
    """(n_items,) d from (n_items, n_classes) probabilities: 0 where classes are alike, 1/4 where one is certain.

    >>> easiness(np.array([[0.5, 0.5], [0.9, 0.1], [0.0, 1.0]])).round(2).tolist()
    [0.0, 0.16, 0.25]
    """
    n_classes = q.shape[1]
    if n_classes == 1:
        return np.full(len(q), EASIEST)
    above = q.max(axis=1) - 1 / n_classes
    return np.asarray(EASIEST * (above / (1 - 1 / n_classes)) ** 2)


def with_floor(d: Array, floor: float) -> Array:
    """D raised toward the easiest by this share of the way: with 0 the hardest items are guessed, with 1 none are."""
    return floor * EASIEST + (1 - floor) * d


def shrunk_share(votes: Annotations) -> Array:
    """(n_items, n_classes) vote shares with one vote more, spread over the classes: a single label proves little."""
    counts = weighted_votes(votes, np.ones(votes.n_annotations))
    return (counts + 1 / votes.n_classes) / (votes.n_labels[:, None] + 1)


def vote_easiness(votes: Annotations) -> Array:
    """(n_items,) d from the vote shares; items without any vote are as the others are on average.

    They are not as hard as can be: that nobody has looked at an item says nothing of it.
    """
    d = easiness(shrunk_share(votes))
    heard = votes.n_labels > 0
    if heard.any():
        d[~heard] = d[heard].mean()
    return d


@dataclass(frozen=True, eq=False)
class Abilities:
    """What is believed of the workers."""

    ability: Array  # (n_workers, n_classes)
    log_wrong: Array | None  # (n_workers, n_classes, n_classes) where errors go; None is to all other classes alike


def log_votes(votes: Annotations, workers: Abilities, d: Array) -> Array:
    """(n_items, n_classes) the log-probability of an item's labels, for each class that the truth may have."""
    found = np.zeros((votes.n_items, votes.n_classes))
    others = log_others(votes.n_classes)
    for c in range(votes.n_classes):  # a class at a time: no array of labels x classes
        logit = workers.ability[votes.worker, c] * d[votes.item] - others
        said = votes.label == c
        log_p = -softplus(np.where(said, -logit, logit))
        away = -others if workers.log_wrong is None else workers.log_wrong[votes.worker, c, votes.label]
        found[:, c] = sums_by(votes.item, np.where(said, log_p, log_p + away), votes.n_items)
    return found


def p_right(ability: Array, d: Array | float, n_classes: int) -> Array:
    """The chance of a right label.

    >>> p_right(np.array([0.0, 4 * np.log(4)]), EASIEST, 2).round(2).tolist()
    [0.5, 0.8]
    """
    return elementary.exp(-softplus(log_others(n_classes) - ability * d))


def log_others(n_classes: int) -> float:
    """The log of how many classes a wrong label has to choose from."""
    return float(elementary.log(max(n_classes - 1, 1)))


@dataclass(frozen=True, eq=False)
class Said:
    """The labels as a class sees them, gathered once for all steps; an entry each."""

    is_right: npt.NDArray[np.bool_]  # if that class is the truth
    d: Array  # of the item
    weight: Array  # how much that class is believed to be the truth


@dataclass(frozen=True, eq=False)
class AbilityModel:
    """How abilities are found from what is believed of the items.

    `frozen` leaves them where they start, at what the first beliefs say; `map` draws them toward that with a Gaussian
    of this precision; `mle` leaves that out.
    """

    votes: Annotations
    update: str
    errors: str
    most: float  # abilities stay between 0 and this
    precision: float
    beforehand: Array  # (n_classes, n_classes) labels, above 0; the wrong ones alike

    def start(self, posterior: Array) -> Abilities:
        """Abilities that on the easiest items would give the confusion matrices which follow by counting."""
        votes, n_classes = self.votes, self.votes.n_classes
        nothing = np.zeros((votes.n_workers, n_classes, n_classes))
        counts = em_pass(pack(votes), nothing, np.zeros(n_classes), safe_log(posterior)).counts + self.beforehand
        right = np.einsum("wcc->wc", counts)
        wrong = counts.sum(axis=2) - right
        logit = elementary.log(right) - safe_log(wrong) + log_others(n_classes)
        return Abilities(np.clip(logit / EASIEST, 0.0, self.most), self._log_wrong(counts))

    def solve(self, posterior: Array, d: Array, previous: Abilities, first: Abilities) -> Abilities:
        """The best abilities given the posterior and the easiness of the items, from the previous ones."""
        if self.update == "frozen":
            return first
        log_wrong = first.log_wrong if self.errors == "uniform" else self.start(posterior).log_wrong
        return Abilities(self._climb(posterior, d, previous.ability, first.ability), log_wrong)

    def log_penalty(self, workers: Abilities, first: Abilities) -> float:
        """What the labels beforehand, and the Gaussian, add to the objective; nothing where abilities are frozen."""
        if self.update == "frozen":
            return 0.0
        active, n_classes = np.unique(self.votes.worker), self.votes.n_classes
        logit = workers.ability[active] * EASIEST - log_others(n_classes)
        right, wrong = self._own
        found = -float((right * softplus(-logit) + wrong * softplus(logit)).sum())
        if workers.log_wrong is not None:
            off = ~np.eye(n_classes, dtype=bool)
            found += float((self.beforehand * workers.log_wrong[active])[:, off].sum())
        away = workers.ability[active] - first.ability[active]
        return found - 0.5 * self._pull * float((away**2).sum())

    def solve_floor(self, posterior: Array, d: Array, ability: Array, floor: float) -> float:
        """The best floor given all else, from this one; the expected log-likelihood is concave in it too."""
        low, high = -1.0, 2.0
        for _ in range(_NEWTON_STEPS):
            slope, bend = self._floor_slopes(posterior, d, ability, floor)
            low, high = (floor, high) if slope > 0 else (low, floor)
            step = slope / max(bend, 1e-300)
            trial = floor + step
            trial = trial if low < trial < high or abs(step) <= _THERE else (low + high) / 2
            trial = min(max(trial, 0.0), 1.0)
            moved, floor = abs(trial - floor), trial
            if moved <= _THERE:
                break
        return floor

    def _floor_slopes(self, posterior: Array, d: Array, ability: Array, floor: float) -> tuple[float, float]:
        votes, slope, bend = self.votes, 0.0, 0.0
        raised, room = with_floor(d, floor)[votes.item], EASIEST - d[votes.item]
        for c in range(votes.n_classes):
            own, weight = ability[votes.worker, c], posterior[votes.item, c]
            right, gain = p_right(own, raised, votes.n_classes), own * room
            slope += float((weight * ((votes.label == c) - right) * gain).sum())
            bend += float((weight * right * (1 - right) * gain**2).sum())
        return slope, bend

    def intervals(self, workers: Abilities, posterior: Array, d: Array) -> tuple[Array, Array]:
        """(n_workers, n_classes) each, where abilities may lie, at 95%.

        By the observed information: what complete labels would tell, and the Gaussian of `map`, less what is not known
        of the truth (Louis 1982). Taken as known are the other workers, the worker's own ability in other classes, the
        items' easiness, the floor and the classifier, so intervals are rather too short than too long. They are too
        short where labels are judged by an easiness that they made: from the posterior, or from votes with `mle`.
        Frozen abilities are no optimum: their intervals say how much the labels could tell, around where they began.
        """
        low, high = np.empty_like(workers.ability), np.empty_like(workers.ability)
        for c in range(self.votes.n_classes):
            ability, said = workers.ability[:, c], self._gather(c, posterior, d)
            _, bend = self._slopes(said, ability)
            spread = _NORMAL / np.sqrt(np.maximum(bend + self._pull - self._doubt(said, ability), 1e-12))
            low[:, c], high[:, c] = ability - spread, ability + spread
        return np.clip(low, 0.0, self.most), np.clip(high, 0.0, self.most)

    @property
    def _own(self) -> tuple[float, float]:
        """Right and wrong labels beforehand, in every class."""
        right = float(self.beforehand[0, 0])
        return right, float(self.beforehand[0].sum()) - right

    @property
    def _pull(self) -> float:
        return self.precision if self.update == "map" else 0.0

    def _log_wrong(self, counts: Array) -> Array | None:
        """[worker, truth, label] where errors go, as counted; what stands on the diagonal is never read."""
        if self.errors == "uniform":
            return None
        off = np.where(np.eye(counts.shape[1], dtype=bool), 0.0, counts)
        return safe_log(off) - safe_log(off.sum(axis=2, keepdims=True))

    def _climb(self, posterior: Array, d: Array, ability: Array, first: Array) -> Array:
        """Newton's method for every worker and class.

        The slope falls with the ability, so its sign says on which side of it the optimum lies; a step that would not
        stay between these sides goes to their middle. Nothing else can go wrong on a concave function of one number.
        """
        found = np.empty_like(ability)
        for c in range(self.votes.n_classes):
            said = self._gather(c, posterior, d)
            at, low, high = ability[:, c].copy(), np.full(len(ability), -1.0), np.full(len(ability), self.most + 1)
            for _ in range(_NEWTON_STEPS):
                slope, bend = self._slopes(said, at)
                slope -= self._pull * (at - first[:, c])
                low, high = np.where(slope > 0, at, low), np.where(slope < 0, at, high)
                step = np.clip(slope / np.maximum(bend + self._pull, 1e-300), -_LONGEST_STEP, _LONGEST_STEP)
                trial = np.clip(at + step, 0.0, self.most)
                again = ((trial <= low) | (trial >= high)) & (np.abs(step) > _THERE)
                trial = np.clip(np.where(again, (low + high) / 2, trial), 0.0, self.most)
                moved = np.abs(trial - at).max(initial=0.0)
                at = trial
                if moved <= _THERE:
                    break
            found[:, c] = at
        return found

    def _gather(self, c: int, posterior: Array, d: Array) -> Said:
        item = self.votes.item
        return Said(self.votes.label == c, d[item], posterior[item, c])

    def _slopes(self, said: Said, ability: Array) -> tuple[Array, Array]:
        """(n_workers,) each: slope and curvature of the expected log-likelihood, labels beforehand included."""
        worker, (right, score) = self.votes.worker, self._scores(said, ability)
        own_right, own_wrong = self._own
        easy = p_right(ability, EASIEST, self.votes.n_classes)
        slope = sums_by(worker, said.weight * score, len(ability))
        slope += (own_right - (own_right + own_wrong) * easy) * EASIEST
        bend = sums_by(worker, said.weight * right * (1 - right) * said.d**2, len(ability))
        bend += (own_right + own_wrong) * easy * (1 - easy) * EASIEST**2
        return slope, bend

    def _doubt(self, said: Said, ability: Array) -> Array:
        """(n_workers,) the variance of the slope over what the truth may be."""
        _, score = self._scores(said, ability)
        return sums_by(self.votes.worker, said.weight * (1 - said.weight) * score**2, len(ability))

    def _scores(self, said: Said, ability: Array) -> tuple[Array, Array]:
        """The chance that each label is right, and its slope, if the class is the truth."""
        right = p_right(ability[self.votes.worker], said.d, self.votes.n_classes)
        return right, (said.is_right - right) * said.d
