"""Fixed Difficulty EM without features: abilities of workers, on items whose difficulty follows from their votes.

    p(label = c | truth = c, w, i) = sigmoid(ability[w, c] d_i) with two classes,   d_i = (share of the votes - 1/2)^2

Class frequencies are in the place of the paper's classifier. For many classes and sparse labels see `noise.difficulty`.

References
----------
Data difficulty specified crowdsourcing (Adaptive and Fixed Difficulty EM).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from manyhands import elementary
from manyhands.aggregation.base import Aggregator, Gold, Inference
from manyhands.annotations import Annotations
from manyhands.em.ability_em import ABILITY_CONSTRAINTS, DifficultySteps, ability_model, posterior_from_joint, results
from manyhands.em.kernels import Array
from manyhands.em.priors import ClassPrior, class_prior
from manyhands.em.starts import initial_posterior
from manyhands.noise.difficulty import EASIEST, Abilities, log_votes, vote_easiness, with_floor
from manyhands.noise.label_scores import label_given_truth, other_votes_easiness
from manyhands.validation import Constraint, Number, OneOf, Probabilities


class VoteDifficultyEM(Aggregator):
    """Fixed Difficulty EM without features: ability of workers in each class, difficulty of items from their votes.

        p(label = c | truth = c, w, i) = sigmoid(ability[w, c] d_i) with two classes,   d_i = (share of the votes -
        1/2)^2

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
    log_likelihood_ : float
        log p(labels); `history_` has the penalised log-likelihood after each iteration.
    class_prior_ : ndarray of shape (n_classes,)
        Class frequencies.
    classes_ : ndarray of shape (n_classes,)
        The classes, in the order of the columns of `posterior_`.
    item_ids_ : ndarray of shape (n_items,)
        The items, in the order of the rows of `posterior_`.
    worker_ids_ : ndarray of shape (n_workers,)
        The workers.
    posterior_ : ndarray of shape (n_items, n_classes)
        p(truth | labels) of each item; rows sum to 1.
    labels_ : ndarray of shape (n_items,)
        Inferred class of each item, in the caller's own values; None for an item without labels.
    worker_accuracy_ : ndarray of shape (n_workers,)
        Expected share of right labels under `posterior_`, with one pseudo-count of accuracy 0.7.
    tied_ : ndarray of shape (n_items,) of bool
        Items on which several classes have the largest probability.
    unlabelled_ : ndarray of shape (n_items,) of bool
        Items without a label and without gold.
    n_iter_ : int
        Number of passes over the data.
    converged_ : bool
        Whether the method converged within `max_iter`.
    history_ : list of float
        Objective after each iteration; empty for methods without one.
    notes_ : dict of str to str
        Limitations of the result, by code, such as "no_redundancy"; each was also issued as a CrowdWarning.
    annotations_ : Annotations
        The annotations that were passed to `fit`.

    References
    ----------
    Data difficulty specified crowdsourcing (Adaptive and Fixed Difficulty EM).

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
    }

    _of_items: ClassVar[tuple[str, ...]] = (*Aggregator._of_items, "difficulty_", "item_accuracy_", "_d")

    ability_: Array
    expertise_: Array
    difficulty_: Array
    floor_: float
    log_likelihood_: float
    class_prior_: Array
    _workers: Abilities  # the last worker is an unseen one
    _d: Array  # (n_items,)
    _mean_d: float

    def __init__(
        self,
        difficulty: str = "votes",
        floor: float | None = None,
        ability_update: str = "auto",
        errors: str = "uniform",
        right: float = 1.0,
        wrong: float = 0.5,
        precision: float = 1.0,
        max_ability: float = 100.0,
        prior: str | npt.ArrayLike = "uniform",
        max_iter: int = 1000,
        tol: float = 1e-6,
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

    def _infer(self, annotations: Annotations, gold: Gold) -> Inference:
        labelled = np.flatnonzero(annotations.n_labels > 0)
        labelled_part, known = annotations[labelled], None if gold is None else gold[labelled]
        item_prior = Frequencies(
            class_prior(self.prior, labelled_part.n_classes, smoothing=0.01), labelled_part.n_items
        )
        model, start = ability_model(self, labelled_part), initial_posterior(labelled_part, known)
        steps = DifficultySteps(model, item_prior, known, model.start(start), self.difficulty, self.floor)
        found, likelihood = steps.run(start, max_iter=self.max_iter, tol=self.tol, what="difficulty EM")
        workers, log_prior = found.params.workers, found.params.item_prior
        d = np.full(annotations.n_items, found.params.d.mean())
        d[labelled] = found.params.d
        posterior, _ = posterior_from_joint(log_prior + log_votes(annotations, workers, d), gold)
        results_by_name: dict[str, Any] = results(ability_model(self, annotations), workers, posterior, d) | {
            "floor_": found.params.floor,
            "class_prior_": elementary.exp(log_prior),
            "log_likelihood_": likelihood[-1],
            "_workers": _with_unseen_worker(workers, np.unique(labelled_part.worker)),
            "_d": d,
            "_mean_d": float(d.mean()),
            "_log_prior": log_prior,
        }
        return Inference(posterior, None, found.n_iter, found.converged, found.history, results_by_name)

    def _posterior(self, annotations: Annotations, gold: Gold) -> Array:
        """An E step; items of `fit` keep their difficulty, that of others follows from their labels."""
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


@dataclass(frozen=True)
class Frequencies:
    """Prior of the items that is the same for all: class frequencies; its parameters are log p(truth).

    Parameters
    ----------
    prior : ClassPrior
        Prior of the frequencies.
    n_items : int
        Number of items.
    """

    prior: ClassPrior
    n_items: int

    def solve(self, posterior: Array, previous: Array | None) -> Array:
        """Log class frequencies from the posterior."""
        return self.prior.solve(posterior.sum(axis=0))

    def log_proba(self, log_prior: Array) -> Array:
        """The same row for every item, shape (n_items, n_classes)."""
        return np.broadcast_to(log_prior, (self.n_items, len(log_prior)))

    def log_penalty(self, log_prior: Array) -> float:
        """Log prior density of the class frequencies."""
        return self.prior.log_penalty(log_prior)


def _with_unseen_worker(workers: Abilities, active: npt.NDArray[np.int32]) -> Abilities:
    """One additional worker, with the mean ability and the mean distribution of errors of the others."""
    ability = np.vstack([workers.ability, workers.ability[active].mean(axis=0)])
    if workers.log_wrong is None:
        return Abilities(ability, None)
    error_shares = elementary.log(elementary.exp(workers.log_wrong[active]).mean(axis=0))
    return Abilities(ability, np.concatenate([workers.log_wrong, error_shares[None]]))
