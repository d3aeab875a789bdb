"""EM with abilities of workers and difficulties of items: the steps of `run_em`, with any prior on the items.

    E step    mu_ic  ~  p_ic prod_w p(label_iw | truth = c, ability of w, d_i)
    M step    p is fitted to the targets mu, then the easiness d, then the abilities by Newton steps (`ability_model`)

p is the prior of the items (`ItemPrior`): a classifier of their features, or class frequencies. The easiness d is
computed from

    "classifier"  p itself       "posterior"  mu, the posterior of the last pass
    "votes"       vote shares    "constant"   nothing: all items have the largest easiness

With the last two d is fixed, this is exact EM, and the objective never falls. The same holds for "classifier" where the
M step of p takes into account that d follows from p (`solve_through`). Otherwise d is taken as given while p and the
abilities are updated, although it depends on them: generalised EM, whose objective may fall.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from manyhands import elementary
from manyhands.annotations import Annotations
from manyhands.em.ability_results import results as results
from manyhands.em.driver import EMResult, run_em
from manyhands.em.e_step import Gold
from manyhands.em.kernels import Array
from manyhands.em.priors import gold_offset
from manyhands.noise import pseudo_count_matrix, safe_log
from manyhands.noise.ability_model import ERRORS, UPDATES, AbilityModel
from manyhands.noise.difficulty import (
    EASIEST,
    Abilities,
    easiness,
    log_votes,
    shrunk_share,
    vote_easiness,
    with_floor,
)
from manyhands.validation import Constraint, NoneOr, Number, OneOf

V = TypeVar("V")

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
    "max_ability": Number(above=0, most=1000),
}


class ItemPrior(Protocol[V]):
    """Prior of the truth of each item: a classifier of the features, or class frequencies."""

    def solve(self, posterior: Array, previous: V | None) -> V:
        """The M step: parameters fitted to the targets `posterior`, (n_items, n_classes), from the previous ones."""

    def log_proba(self, params: V) -> Array:  # (n_items, n_classes)
        """Log prior log p(truth) of each item, shape (n_items, n_classes)."""

    def log_penalty(self, params: V) -> float:
        """What the prior of these parameters adds to the objective."""


@dataclass(frozen=True, eq=False)
class DifficultyParams(Generic[V]):
    """Parameters that EM estimates.

    Attributes
    ----------
    item_prior : object
        Parameters of the prior of the items.
    workers : Abilities
        Parameters of the workers.
    d : ndarray of shape (n_items,)
        Easiness of the items.
    floor : float
        Lower bound of the easiness, as a share of the largest.
    """

    item_prior: V
    workers: Abilities
    d: Array
    floor: float


@dataclass(frozen=True, eq=False)
class DifficultySteps(Generic[V]):
    """The E step and the M step; the sufficient statistics are the posterior of the items.

    Every item has a label or gold.

    Parameters
    ----------
    model : AbilityModel
        Noise model of the workers.
    item_prior : ItemPrior
        Prior of the items.
    gold : ndarray of shape (n_items,) of int32 or None
        Class code of each item whose truth is known, -1 elsewhere.
    initial : Abilities
        Abilities estimated from the vote shares, where they start or stay frozen.
    difficulty : {"classifier", "votes", "posterior", "constant"}
        Where the easiness comes from.
    floor : float or None
        Lower bound of the easiness as a share of the largest; None is estimated.
    prior : {"classifier", "votes"}, default="classifier"
        Prior of the truth in the E step: that of the items, or the vote shares.
    vote_smoothing : float, default=1.0
        Number of pseudo-votes on each item, spread evenly over the classes, where vote shares are used.
    accelerate : bool, default=True
        Extrapolate from every pair of passes, where the objective never falls.
    solve_through : callable or None, default=None
        M step of the prior of the items, given (posterior, previous parameters, abilities, floor), that takes into
        account that the easiness follows from it; None takes the easiness as given.
    likelihood : list of float
        log p(labels) after each pass of the present run.
    """

    model: AbilityModel
    item_prior: ItemPrior[V]
    gold: Gold
    initial: Abilities
    difficulty: str
    floor: float | None
    prior: str = "classifier"
    vote_smoothing: float = 1.0
    accelerate: bool = True
    solve_through: Callable[[Array, V, Abilities, float], V] | None = None
    likelihood: list[float] = field(default_factory=list)

    def run(
        self, start: Array, *, max_iter: int, tol: float, what: str
    ) -> tuple[EMResult[DifficultyParams[V]], list[float]]:
        """Run EM from a posterior.

        There is no extrapolation where the easiness is updated after a step that took it as given, because the
        objective may fall then.

        Parameters
        ----------
        start : ndarray of shape (n_items, n_classes)
            Posterior to start from.
        max_iter : int
            Maximum number of passes.
        tol : float
            Relative tolerance of the objective, see `run_em`.
        what : str
            Name under which progress is reported.

        Returns
        -------
        result : EMResult
            The outcome.
        likelihood : list of float
            log p(labels) at each entry of its history.
        """
        self.likelihood.clear()
        may_fall = self.difficulty in UPDATED_DIFFICULTIES and self.floor != 1 and self.solve_through is None
        accelerate = self.accelerate and not may_fall
        found = run_em(self, start.ravel(), max_iter=max_iter, tol=tol, accelerate=accelerate, what=what)
        return found, [self.likelihood[number] for number in found.kept]

    def maximise(self, statistics: Array, previous: DifficultyParams[V] | None) -> DifficultyParams[V]:
        """The M step: prior of the items, easiness, its lower bound, and abilities, in turn.

        Parameters
        ----------
        statistics : ndarray of shape (n_items * n_classes,)
            The posterior, flattened; possibly extrapolated.
        previous : DifficultyParams or None
            Parameters of the last iteration.

        Returns
        -------
        DifficultyParams
        """
        posterior = statistics.reshape(-1, self.model.votes.n_classes) + np.finfo(float).tiny
        posterior /= posterior.sum(axis=1, keepdims=True)  # rows of an extrapolation need not sum to 1
        workers = self.initial if previous is None else previous.workers
        if previous is None or self.solve_through is None:
            item_prior = self.item_prior.solve(posterior, None if previous is None else previous.item_prior)
        else:
            item_prior = self.solve_through(posterior, previous.item_prior, workers, previous.floor)
        d, floor = self.easiness(posterior, item_prior), 0.0 if previous is None else previous.floor
        floor = self.model.solve_floor(posterior, d, workers.ability, floor) if self.floor is None else self.floor
        d = with_floor(d, floor)
        return DifficultyParams(item_prior, self.model.solve(posterior, d, workers, self.initial), d, floor)

    def expect(self, params: DifficultyParams[V]) -> tuple[Array, float]:
        """The E step.

        Parameters
        ----------
        params : DifficultyParams
            Parameters of the items and the workers.

        Returns
        -------
        statistics : ndarray of shape (n_items * n_classes,)
            The posterior, flattened.
        objective : float
            The penalised log-likelihood.
        """
        joint = self.log_prior(params.item_prior) + log_votes(self.model.votes, params.workers, params.d)
        posterior, evidence = posterior_from_joint(joint, self.gold)
        objective = evidence + self.model.log_penalty(params.workers, self.initial)
        if self.prior == "classifier":  # otherwise p is not part of the model
            objective += self.item_prior.log_penalty(params.item_prior)
        self.likelihood.append(evidence)
        return posterior.ravel(), objective

    def easiness(self, posterior: Array, item_prior: V) -> Array:
        """Easiness d of each item before the lower bound is applied.

        Parameters
        ----------
        posterior : ndarray of shape (n_items, n_classes)
            p(truth | labels).
        item_prior : object
            Parameters of the prior of the items.

        Returns
        -------
        ndarray of shape (n_items,)
        """
        if self.difficulty == "constant":
            return np.full(len(posterior), EASIEST)
        if self.difficulty == "classifier":
            return easiness(elementary.exp(self.item_prior.log_proba(item_prior)))
        if self.difficulty == "posterior":
            return easiness(posterior)
        return vote_easiness(self.model.votes, self.vote_smoothing)

    def log_prior(self, item_prior: V) -> Array:
        """Log prior of the truth of each item, shape (n_items, n_classes)."""
        if self.prior == "votes":
            return safe_log(shrunk_share(self.model.votes, self.vote_smoothing))
        return self.item_prior.log_proba(item_prior)


def posterior_from_joint(joint: Array, gold: Gold) -> tuple[Array, float]:
    """Posterior and evidence from the joint log-probability of labels and truth.

    Parameters
    ----------
    joint : ndarray of shape (n_items, n_classes)
        log p(labels of the item, truth = c).
    gold : ndarray of shape (n_items,) of int32 or None
        Class code of each item whose truth is known, -1 elsewhere.

    Returns
    -------
    posterior : ndarray of shape (n_items, n_classes)
        p(truth | labels); rows sum to 1.
    evidence : float
        log p(labels), summed over the items.
    """
    known = gold_offset(gold, joint.shape[1])
    joint = joint if known is None else joint + known
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

    Parameters
    ----------
    method : AbilityMethod
        The estimator.
    votes : Annotations
        The labels.

    Returns
    -------
    AbilityModel
    """
    update = method.ability_update
    if update == "auto":
        update = "frozen" if method.difficulty == "votes" else "mle"
    pseudo = pseudo_count_matrix(votes.n_classes, method.right, method.wrong)
    return AbilityModel(votes, update, method.errors, method.max_ability, method.precision, pseudo)


def easiness_of_all(
    difficulty: str, proba: Array, labelled: npt.NDArray[np.intp], params: DifficultyParams[Any]
) -> Array:
    """Easiness of all items, with and without labels.

    For items without labels it follows from the classifier if the difficulty is updated, otherwise it is the mean over
    the labelled items.

    Parameters
    ----------
    difficulty : str
        Where the easiness comes from.
    proba : ndarray of shape (n_items, n_classes)
        Class probabilities of all items, by the classifier.
    labelled : ndarray of int
        Positions of the items with labels.
    params : DifficultyParams
        The estimated parameters.

    Returns
    -------
    ndarray of shape (n_items,)
    """
    by_view = with_floor(easiness(proba), params.floor)
    found = by_view if difficulty in UPDATED_DIFFICULTIES else np.full(len(proba), params.d.mean())
    found[labelled] = params.d
    return found
