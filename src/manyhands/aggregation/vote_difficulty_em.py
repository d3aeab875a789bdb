"""Fixed Difficulty EM without features: abilities of workers, on items whose difficulty follows from their votes.

    p(label = c | truth = c, w, i) = sigmoid(ability[w, c] d_i) with two classes,   d_i = (p-hat_i - 1/2)^2

p-hat_i is the vote share of Section 3.6, here with one pseudo-vote (the paper has none). Class frequencies are in the
place of the prior of an item in the E step, which is p-hat_i in line 10 of Algorithm 3. For many classes and sparse
labels see `em.ability`.

References
----------
Y. Xu, T. Zhang, D. Zhang and W. Zhang, Data difficulty specified crowdsourcing, Algorithm 3.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from manyhands._core import elementary
from manyhands._core.arrays import Array
from manyhands.aggregation.base import Aggregator, Inference, infer_without_copies
from manyhands.annotations import Annotations
from manyhands.em.ability import (
    ABILITY_CONSTRAINTS,
    EASIEST,
    Abilities,
    AbilityModel,
    ability_model,
    easiness,
    label_given_truth,
    log_votes,
    other_votes_easiness,
    posterior_from_joint,
    results,
    vote_easiness,
    with_floor,
)
from manyhands.em.collusion import without_copies
from manyhands.em.copies import find_copies, no_copies
from manyhands.em.driver import run_em
from manyhands.em.e_step import Gold, initial_posterior
from manyhands.em.priors import ClassPrior, class_prior
from manyhands.validation import Constraint, Number, OneOf, Probabilities


class VoteDifficultyEM(Aggregator):
    """Fixed Difficulty EM without features: ability of workers in each class, difficulty of items from their votes.

        p(label = c | truth = c, w, i) = sigmoid(ability[w, c] d_i) with two classes,   d_i = (p-hat_i - 1/2)^2

    p-hat_i is the share of the votes, with one pseudo-vote; it decides the difficulty alone, and the class frequencies
    are the prior of every item.

    By default abilities stay at what the vote shares imply, and EM only estimates how much difficulty matters: a
    weighted vote in which labels of split items have less weight. No worker is assumed to be worse than chance.

    Use it where items differ in difficulty and have several labels each; with features use `DifficultyEM`. Not where
    many workers are spammers or inverted.

    Parameters
    ----------
    difficulty : {"votes", "posterior", "constant"}, default="votes"
        Source of the easiness of items: the vote shares; the posterior of the last iteration, which reinforces itself
        and whose objective may fall; or the same for all items.
    floor : float or None, default=None
        Lower bound of the easiness as a share of that of the easiest items, from 0, as in the paper, where labels of
        the hardest items are random, to 1, where all items are equally easy. None is estimated.
    ability_update : {"auto", "mle", "map", "frozen"}, default="auto"
        Maximum likelihood; with a Gaussian prior around the initial abilities; or no update. "auto" is "frozen" with
        `difficulty="votes"`, where the likelihood is bounded by `max_ability` only, else "mle".
    errors : {"uniform", "free"}, default="uniform"
        Wrong labels are spread evenly over the other classes, or each worker has a distribution of their own.
    right : float, default=1.0
        Pseudo-count of right labels of each worker in every class, as if on the easiest items.
    wrong : float, default=0.5
        Pseudo-count of wrong labels of each worker in every class, as if on the easiest items.
    precision : float, default=1.0
        Precision of the Gaussian prior of `ability_update="map"`.
    max_ability : float, default=100.0
        Upper bound of the abilities.
    prior : {"estimated", "uniform"} or array-like of shape (n_classes,), default="uniform"
        Class prior: frequencies estimated from the data, a uniform class prior, or a given frequency for each class.
    max_iter : int, default=1000
        Maximum number of EM iterations (passes over the data).
    tol : float, default=1e-6
        Stop when the estimated distance to the optimum is below `tol` times the objective.
    detect_collusion : bool, default=True
        Search for pairs and groups of workers who copy one another, of whom one counts on each item.

    Attributes
    ----------
    ability_ : ndarray of shape (n_workers, n_classes)
        Abilities, at least 0.
    expertise_ : ndarray of shape (n_workers, n_classes)
        Probability of a right label on the easiest items: with two classes, column 1 is sensitivity and column 0
        specificity.
    expertise_low_ : ndarray of shape (n_workers, n_classes)
        Lower limit of its 95% interval, with all other parameters taken as known. It is too short where the easiness
        was computed from the labels themselves: with "posterior", and with "votes" and "mle". Where abilities are
        frozen it shows how informative the labels are.
    expertise_high_ : ndarray of shape (n_workers, n_classes)
        Upper limit of this interval.
    difficulty_ : ndarray of shape (n_items,)
        From 0 to 1, where labels are random; at most 1 - `floor_`.
    floor_ : float
        The lower bound in use.
    item_accuracy_ : ndarray of shape (n_items,)
        Expected share of right labels of each item.
    copy_groups_ : ndarray of shape (n_workers,)
        Number of the group of each worker whose labels are copied from another, or copied by another; -1 for workers in
        none. On each item, one label of a group counts.
    log_likelihood_ : float
        log p(labels); `history_` has the penalised log-likelihood after each iteration.
    class_prior_ : ndarray of shape (n_classes,)
        Class frequencies.

    References
    ----------
    Y. Xu, T. Zhang, D. Zhang and W. Zhang, Data difficulty specified crowdsourcing, Algorithm 3.

    Examples
    --------
    >>> from manyhands import Annotations, VoteDifficultyEM
    >>> votes = Annotations.from_matrix([[0, 0, 0, 1], [1, 1, 1, 1], [0, 0, 0, 1], [1, 1, 0, 0]])
    >>> model = VoteDifficultyEM(floor=0.0).fit(votes)
    >>> model.labels_[:3].tolist(), model.difficulty_.argsort().tolist()
    ([0, 1, 0], [1, 0, 2, 3])
    """

    _constraints: ClassVar[dict[str, Constraint]] = ABILITY_CONSTRAINTS | {
        "difficulty": OneOf(("votes", "posterior", "constant")),
        "prior": Probabilities(("estimated", "uniform")),
        "max_iter": Number(whole=True, least=1),
        "tol": Number(least=0),
        "detect_collusion": OneOf((True, False)),
    }

    _of_items: ClassVar[tuple[str, ...]] = (*Aggregator._of_items, "difficulty_", "item_accuracy_", "_d")

    copy_groups_: npt.NDArray[np.int64]
    _copy_rank: npt.NDArray[np.int64]  # of the members of a group, the one with the lowest rank counts
    ability_: Array
    expertise_: Array
    difficulty_: Array
    floor_: float
    log_likelihood_: float
    class_prior_: Array
    _workers: Abilities  # the last worker is an unseen one
    _d: Array  # (n_items,)
    _mean_d: float
    expertise_low_: Array
    expertise_high_: Array
    item_accuracy_: Array

    def __init__(
        self,
        difficulty: str = "votes",
        floor: float | None = None,
        ability_update: str = "auto",
        errors: str = "uniform",
        right: float = 1.0,  # this and the next three as in `DifficultyEM`
        wrong: float = 0.5,
        precision: float = 1.0,
        max_ability: float = 100.0,
        prior: str | npt.ArrayLike = "uniform",
        max_iter: int = 1000,  # this and the next as in `DawidSkene`
        tol: float = 1e-6,
        detect_collusion: bool = True,
    ) -> None:
        self.difficulty = difficulty
        self.floor = floor
        self.ability_update = ability_update
        self.errors = errors
        self.right = right
        self.wrong = wrong
        self.precision = precision
        self.max_ability = max_ability
        self.prior = prior
        self.max_iter = max_iter
        self.tol = tol
        self.detect_collusion = detect_collusion

    def _infer(self, annotations: Annotations, gold: Gold) -> Inference:
        copies = find_copies(annotations) if self.detect_collusion else no_copies(annotations.n_workers)
        of_workers = ("ability_", "expertise_", "expertise_low_", "expertise_high_")
        return infer_without_copies(self._infer_counted, annotations, gold, copies, of_workers)

    def _infer_counted(self, annotations: Annotations, gold: Gold) -> Inference:
        """Fit the labels that count."""
        item = np.flatnonzero(annotations.n_labels > 0)
        votes, gold_of_votes = annotations[item], None if gold is None else gold[item]
        item_prior = class_prior(self.prior, votes.n_classes, smoothing=0.01)  # as in `DawidSkene`
        model, start = ability_model(self, votes), initial_posterior(votes, gold_of_votes)
        steps = VoteDifficultySteps(model, item_prior, gold_of_votes, model.start(start), self.difficulty, self.floor)
        may_fall = self.difficulty == "posterior" and self.floor != 1  # the easiness is updated after the M step
        fit = run_em(
            steps, start.ravel(), max_iter=self.max_iter, tol=self.tol, accelerate=not may_fall, what="difficulty EM"
        )
        workers, log_prior = fit.params.workers, fit.params.log_prior
        d = np.full(annotations.n_items, fit.params.d.mean())
        d[item] = fit.params.d
        posterior, _ = posterior_from_joint(log_prior + log_votes(annotations, workers, d), gold)
        results_by_name: dict[str, Any] = results(ability_model(self, annotations), workers, posterior, d) | {
            "floor_": fit.params.floor,
            "class_prior_": elementary.exp(log_prior),
            "log_likelihood_": steps.likelihood[fit.kept[-1]],
            "_workers": _with_unseen_worker(workers, np.unique(votes.worker)),
            "_d": d,
            "_mean_d": float(d.mean()),
            "_log_prior": log_prior,
        }
        return Inference(posterior, None, fit.n_iter, fit.converged, fit.history, results_by_name)

    def _posterior(self, annotations: Annotations, gold: Gold) -> Array:
        """An E step; items of `fit` keep their difficulty, that of others follows from their labels."""
        annotations = without_copies(annotations, self.copy_groups_, self._copy_rank)
        row = self._row_of(annotations)
        new = np.full(len(row), EASIEST if self.difficulty == "constant" else self._mean_d)
        new = with_floor(vote_easiness(annotations), self.floor_) if self.difficulty == "votes" else new
        d = np.where(row >= 0, self._d[row], new)
        return posterior_from_joint(self._log_prior + log_votes(annotations, self._workers, d), gold)[0]

    def _label_given_truth(self, annotations: Annotations) -> Array:
        """Log p(label | truth, ability, d); d comes from the training labels, of new items from their other labels."""
        average = EASIEST if self.difficulty == "constant" else self._mean_d
        new = np.full(annotations.n_annotations, average)
        if self.difficulty == "votes":
            bare = other_votes_easiness(annotations, without=np.nan)
            new = np.where(np.isnan(bare), average, with_floor(bare, self.floor_))
        row = self._row_of(annotations)[annotations.item]
        return label_given_truth(annotations, self._workers, np.where(row >= 0, self._d[row], new))

    def _row_of(self, annotations: Annotations) -> npt.NDArray[np.intp]:
        """Position of these items in `fit`, -1 for those that it did not see."""
        row_of = {item: i for i, item in enumerate(self.item_ids_.tolist())}
        return np.array([row_of.get(item, -1) for item in annotations.item_ids.tolist()], np.intp)


class VoteDifficultyParams(NamedTuple):
    """Parameters that EM estimates."""

    log_prior: Array  # (n_classes,); log class frequencies
    workers: Abilities
    d: Array  # (n_items,); easiness of the items
    floor: float  # lower bound of the easiness, as a share of the largest


@dataclass(frozen=True, eq=False)
class VoteDifficultySteps:
    """The E step and the M step; the sufficient statistics are the posterior of the items.

    E step    mu_ic  ~  frequency_c prod_w p(label_iw | truth = c, ability of w, d_i), lines 7 to 11 of Algorithm 3
    M step    frequencies and easiness given mu, then the floor of the easiness, then the abilities by Newton steps

    With difficulty "votes" or "constant" this is exact EM, and the objective never falls. With "posterior" the
    abilities are updated at an easiness that changes with mu: generalised EM, whose objective may fall.

    Shapes: gold (n_items,).
    """

    model: AbilityModel  # noise model of the workers
    class_prior: ClassPrior  # prior of the class frequencies
    gold: Gold  # (n_items,); class code of each item whose truth is known, -1 elsewhere
    initial: Abilities  # abilities estimated from the vote shares, where they start or stay frozen
    difficulty: str  # where the easiness comes from
    floor: float | None  # lower bound of the easiness as a share of the largest; None is estimated
    likelihood: list[float] = field(default_factory=list)  # log p(labels) after each pass

    def maximise(self, statistics: Array, previous: VoteDifficultyParams | None) -> VoteDifficultyParams:
        """The M step: class frequencies, easiness, its lower bound, and abilities, in turn.

        Shapes: statistics (n_items * n_classes,).
        """
        posterior = statistics.reshape(-1, self.model.votes.n_classes) + np.finfo(float).tiny
        posterior /= posterior.sum(axis=1, keepdims=True)  # rows of an extrapolation need not sum to 1
        workers = self.initial if previous is None else previous.workers
        d, floor = self.easiness(posterior), 0.0 if previous is None else previous.floor
        floor = self.model.solve_floor(posterior, d, workers.ability, floor) if self.floor is None else self.floor
        d = with_floor(d, floor)
        log_prior = self.class_prior.solve(posterior.sum(axis=0))
        return VoteDifficultyParams(log_prior, self.model.solve(posterior, d, workers, self.initial), d, floor)

    def expect(self, params: VoteDifficultyParams) -> tuple[Array, float]:
        """The E step.

        Shapes: returns statistics (n_items * n_classes,).
        """
        joint = params.log_prior + log_votes(self.model.votes, params.workers, params.d)
        posterior, evidence = posterior_from_joint(joint, self.gold)
        objective = evidence + self.model.log_penalty(params.workers, self.initial)
        objective += self.class_prior.log_penalty(params.log_prior)
        self.likelihood.append(evidence)
        return posterior.ravel(), objective

    def easiness(self, posterior: Array) -> Array:
        """Easiness d of each item before the lower bound is applied.

        Shapes: posterior (n_items, n_classes); returns (n_items,).
        """
        if self.difficulty == "constant":
            return np.full(len(posterior), EASIEST)
        return easiness(posterior) if self.difficulty == "posterior" else vote_easiness(self.model.votes)


def _with_unseen_worker(workers: Abilities, active: npt.NDArray[np.int32]) -> Abilities:
    """One additional worker, with the mean ability and the mean distribution of errors of the others."""
    ability = np.vstack([workers.ability, workers.ability[active].mean(axis=0)])
    if workers.log_wrong is None:
        return Abilities(ability, None)
    error_shares = elementary.log(elementary.exp(workers.log_wrong[active]).mean(axis=0))
    return Abilities(ability, np.concatenate([workers.log_wrong, error_shares[None]]))
