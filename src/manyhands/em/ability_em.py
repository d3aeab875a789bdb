"""EM with abilities and difficulty: the steps of `run_em`, whatever it is that knows the items beside their labels.

    E   r_ic ~ f_c(i) p(labels of i | truth = c, abilities, d_i)
    M   f on the targets r, then d, then abilities by Newton steps (`noise.difficulty`)

f is a *view* of the items: a classifier of their features, or class frequencies. The easiness d comes from

    "classifier"  f itself       "posterior"  r, the posterior of the last pass
    "votes"       vote shares    "constant"   nothing: all items are as easy as can be

With the last two d stays as it is, this is exact EM, and the objective never falls. With the first two d is taken as
given while f and the abilities are improved, though it moves with them: generalised EM, whose objective may fall.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from manyhands import elementary
from manyhands.annotations import Annotations
from manyhands.em.driver import EMResult, run_em
from manyhands.em.kernels import Array, sums_by
from manyhands.em.priors import gold_offset
from manyhands.noise import labels_beforehand, safe_log
from manyhands.noise.difficulty import (
    EASIEST,
    ERRORS,
    UPDATES,
    Abilities,
    AbilityModel,
    easiness,
    log_votes,
    p_right,
    shrunk_share,
    vote_easiness,
    with_floor,
)
from manyhands.validation import Constraint, NoneOr, Number, OneOf

V = TypeVar("V")
Gold = npt.NDArray[np.int32] | None

DIFFICULTIES = ("classifier", "votes", "posterior", "constant")
MOVING = ("classifier", "posterior")
NOT_CONVERGED = "EM stopped after {} passes before it had settled; raise max_iter, or take another difficulty."

# What the parameters of every method with abilities may be.
ABILITY_CONSTRAINTS: dict[str, Constraint] = {
    "ability_update": OneOf(("auto", *UPDATES)),
    "floor": NoneOr(Number(least=0, most=1)),
    "errors": OneOf(ERRORS),
    "right": Number(above=0),
    "wrong": Number(above=0),
    "precision": Number(above=0),
    "most_ability": Number(above=0, most=1000),
}


class View(Protocol[V]):
    """What is known of the items beside their labels."""

    def solve(self, posterior: Array, previous: V | None) -> V: ...

    def log_proba(self, params: V) -> Array: ...  # (n_items, n_classes)

    def log_penalty(self, params: V) -> float: ...


@dataclass(frozen=True, eq=False)
class DifficultyParams(Generic[V]):
    """What EM estimates."""

    view: V
    workers: Abilities
    d: Array  # (n_items,)
    floor: float


@dataclass(frozen=True, eq=False)
class DifficultySteps(Generic[V]):
    """The two steps; the statistics are the posterior of the items, all of which have a label or gold."""

    model: AbilityModel
    view: View[V]
    gold: Gold
    first: Abilities  # from the vote shares: where abilities begin, or are frozen
    difficulty: str
    floor: float | None  # None is estimated
    prior: str = "classifier"  # or "votes": what stands for f in the E step
    likelihood: list[float] = field(default_factory=list)  # log p(labels) after each pass of the present run

    def run(
        self, start: Array, *, max_iter: int, tol: float, what: str
    ) -> tuple[EMResult[DifficultyParams[V]], list[float]]:
        """EM from this posterior, and log p(labels) at each entry of its history.

        What moves under its feet is not extrapolated.
        """
        self.likelihood.clear()
        moves = self.difficulty in MOVING and self.floor != 1
        found = run_em(self, start.ravel(), max_iter=max_iter, tol=tol, accelerate=not moves, what=what)
        return found, [self.likelihood[number] for number in found.kept]

    def maximise(self, statistics: Array, previous: DifficultyParams[V] | None) -> DifficultyParams[V]:
        posterior = statistics.reshape(-1, self.model.votes.n_classes) + np.finfo(float).tiny
        posterior /= posterior.sum(axis=1, keepdims=True)  # an extrapolation need not sum to 1
        view = self.view.solve(posterior, None if previous is None else previous.view)
        workers = self.first if previous is None else previous.workers
        d, floor = self.easiness(posterior, view), 0.0 if previous is None else previous.floor
        floor = self.model.solve_floor(posterior, d, workers.ability, floor) if self.floor is None else self.floor
        d = with_floor(d, floor)
        return DifficultyParams(view, self.model.solve(posterior, d, workers, self.first), d, floor)

    def expect(self, params: DifficultyParams[V]) -> tuple[Array, float]:
        joint = self.log_prior(params.view) + log_votes(self.model.votes, params.workers, params.d)
        posterior, evidence = posterior_of(joint, self.gold)
        objective = evidence + self.model.log_penalty(params.workers, self.first)
        if self.prior == "classifier":  # else f has no part in it
            objective += self.view.log_penalty(params.view)
        self.likelihood.append(evidence)
        return posterior.ravel(), objective

    def easiness(self, posterior: Array, view: V) -> Array:
        """(n_items,) d, by what the difficulty comes from."""
        if self.difficulty == "constant":
            return np.full(len(posterior), EASIEST)
        if self.difficulty == "classifier":
            return easiness(elementary.exp(self.view.log_proba(view)))
        return easiness(posterior) if self.difficulty == "posterior" else vote_easiness(self.model.votes)

    def log_prior(self, view: V) -> Array:
        """(n_items, n_classes) what is believed of the items before their labels."""
        return safe_log(shrunk_share(self.model.votes)) if self.prior == "votes" else self.view.log_proba(view)


def posterior_of(joint: Array, gold: Gold) -> tuple[Array, float]:
    """The posterior, and log p(labels) over all items, from log p(labels, truth = c)."""
    known = gold_offset(gold, joint.shape[1])
    joint = joint if known is None else joint + known
    top = joint.max(axis=1, keepdims=True)
    posterior = elementary.exp(joint - top)
    total = posterior.sum(axis=1, keepdims=True)
    return posterior / total, float((top + elementary.log(total)).sum())


class AbilityMethod(Protocol):
    """A method with these parameters, beside `difficulty`."""

    difficulty: str
    ability_update: str
    errors: str
    right: float
    wrong: float
    precision: float
    most_ability: float


def ability_model(method: AbilityMethod, votes: Annotations) -> AbilityModel:
    """How abilities are found, as the parameters of the method say.

    Votes are right where they agree: judged by an easiness that they make themselves, every worker is perfect on easy
    items, and the likelihood is largest where all abilities are as large as they may be. So "auto" freezes them there.
    """
    update = method.ability_update
    if update == "auto":
        update = "frozen" if method.difficulty == "votes" else "mle"
    pseudo = labels_beforehand(votes.n_classes, method.right, method.wrong)
    return AbilityModel(votes, update, method.errors, method.most_ability, method.precision, pseudo)


def easiness_of_all(
    difficulty: str, proba: Array, taught: npt.NDArray[np.intp], params: DifficultyParams[Any]
) -> Array:
    """(n_items,) d of the items that taught something, and of all others.

    Of those the classifier speaks, if that is where easiness comes from; else they are as the others are on average.
    """
    by_view = with_floor(easiness(proba), params.floor)
    found = by_view if difficulty in MOVING else np.full(len(proba), params.d.mean())
    found[taught] = params.d
    return found


def results(model: AbilityModel, workers: Abilities, posterior: Array, d: Array) -> dict[str, Any]:
    """What is said of workers and items, by the names of the attributes."""
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
        "item_accuracy_": item_accuracy(votes, workers.ability, posterior, d),
    }


def item_accuracy(votes: Annotations, ability: Array, posterior: Array, d: Array) -> Array:
    """(n_items,) the share of right labels that an item's workers are expected to give, of all workers if it has none.

    Workers who gave no label do not count; all others count alike where an item is silent.
    """
    total = np.zeros(votes.n_items)
    silent = np.zeros(votes.n_items)
    usual = ability[np.unique(votes.worker)].mean(axis=0)
    for c in range(votes.n_classes):
        right = p_right(ability[votes.worker, c], d[votes.item], votes.n_classes)
        total += sums_by(votes.item, posterior[votes.item, c] * right, votes.n_items)
        silent += posterior[:, c] * p_right(usual[c], d, votes.n_classes)
    return np.where(votes.n_labels > 0, total / np.maximum(votes.n_labels, 1), silent)
