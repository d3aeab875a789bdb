"""Fixed Difficulty EM without features: abilities of workers, on items as hard as their votes are split.

    p(label = c | truth = c, w, i) = sigmoid(ability[w, c] d_i) with two classes,   d_i = (share of the votes - 1/2)^2

Reference: Data difficulty specified crowdsourcing (Adaptive and Fixed Difficulty EM); class frequencies stand where the
paper has a classifier. For many classes and sparse labels see `noise.difficulty`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from manyhands import elementary
from manyhands.aggregation.base import Aggregator, Gold, Inference
from manyhands.annotations import Annotations
from manyhands.em.ability_em import ABILITY_CONSTRAINTS, DifficultySteps, ability_model, posterior_of, results
from manyhands.em.kernels import Array
from manyhands.em.priors import ClassPrior, class_prior
from manyhands.em.starts import initial_posterior
from manyhands.noise.difficulty import EASIEST, Abilities, log_votes, vote_easiness, with_floor
from manyhands.validation import Constraint, Number, OneOf, Probabilities


class VoteDifficultyEM(Aggregator):
    """Ability of workers in each class against difficulty of items, which the split of their votes shows.

    By default abilities stay at what the vote says of workers, and EM only finds how much difficulty counts: a weighted
    vote in which a split item's labels weigh less. Nobody is taken to be worse than a guess.

    Parameters
    ----------
    difficulty : where the easiness of items comes from: the "votes", the "posterior" of the last pass, which confirms
        itself and whose objective may fall, or "constant", all alike
    floor : the easiness of the hardest items as a share of that of the easiest: 0 as in the paper, where they are
        guessed; 1 where all items are alike; None is estimated, so that difficulty counts for as much as labels show
    ability_update : "mle"; "map", drawn to where they began by `precision`; "frozen", as they began; "auto" is "frozen"
        with `difficulty="votes"`, where the likelihood has no bound but `most_ability`, else "mle"
    errors : wrong labels go to all other classes alike ("uniform"), or as each worker's own do ("free")
    right, wrong : labels added to each worker's right and wrong ones, in every class, as if on the easiest items
    precision : of the Gaussian of "map"
    most_ability : abilities lie between 0 and this
    prior : "uniform" class frequencies, "estimated", or a frequency for each class
    max_iter, tol : at most this many passes; stop within `tol` of the optimum, as a share of the objective

    Attributes
    ----------
    ability_ : (n_workers, n_classes), at least 0
    expertise_ : (n_workers, n_classes) the chance of a right label on the easiest items: with two classes, column 1 is
        sensitivity and column 0 specificity
    expertise_low_, expertise_high_ : its 95% interval, as if all else were known: other workers and the worker's other
        classes, easiness, floor. Too short where labels are judged by an easiness that they made:
        with "posterior", and with "votes" and "mle". Where abilities are frozen, how much the labels could tell,
        around where they began
    difficulty_ : (n_items,) from 0 to 1, where everybody guesses; at most 1 - `floor_`
    floor_ : the floor in use
    item_accuracy_ : (n_items,) the share of its labels that is expected to be right
    log_likelihood_ : log p(labels), exactly; `history_` has the penalised one after each pass
    class_prior_ : (n_classes,)

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

    ability_: Array
    expertise_: Array
    difficulty_: Array
    floor_: float
    log_likelihood_: float
    class_prior_: Array
    _workers: Abilities  # the last worker is one never seen
    _d: Array  # (n_items,)

    def __init__(
        self,
        difficulty: str = "votes",
        floor: float | None = None,
        ability_update: str = "auto",
        errors: str = "uniform",
        right: float = 1.0,
        wrong: float = 0.5,
        precision: float = 1.0,
        most_ability: float = 100.0,
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
        self.most_ability = most_ability
        self.prior = prior
        self.max_iter = max_iter
        self.tol = tol

    def _infer(self, annotations: Annotations, gold: Gold) -> Inference:
        labelled = np.flatnonzero(annotations.n_labels > 0)
        labelled_part, known = annotations[labelled], None if gold is None else gold[labelled]
        view = Frequencies(class_prior(self.prior, labelled_part.n_classes, smoothing=0.01), labelled_part.n_items)
        model, start = ability_model(self, labelled_part), initial_posterior(labelled_part, known)
        steps = DifficultySteps(model, view, known, model.start(start), self.difficulty, self.floor)
        found, likelihood = steps.run(start, max_iter=self.max_iter, tol=self.tol, what="difficulty EM")
        workers, log_prior = found.params.workers, found.params.view
        d = np.full(annotations.n_items, found.params.d.mean())
        d[labelled] = found.params.d
        posterior, _ = posterior_of(log_prior + log_votes(annotations, workers, d), gold)
        results_by_name: dict[str, Any] = results(ability_model(self, annotations), workers, posterior, d) | {
            "floor_": found.params.floor,
            "class_prior_": elementary.exp(log_prior),
            "log_likelihood_": likelihood[-1],
            "_workers": _with_unseen_worker(workers, np.unique(labelled_part.worker)),
            "_d": d,
            "_log_prior": log_prior,
        }
        return Inference(posterior, None, found.n_iter, found.converged, found.history, results_by_name)

    def _posterior(self, annotations: Annotations, gold: Gold) -> Array:
        """An E step; items that `fit` saw keep their difficulty, that of others follows from their labels here."""
        row_of = {item: i for i, item in enumerate(self.item_ids_.tolist())}
        row = np.array([row_of.get(item, -1) for item in annotations.item_ids.tolist()])
        new = np.full(len(row), EASIEST if self.difficulty == "constant" else self._d.mean())
        new = with_floor(vote_easiness(annotations), self.floor_) if self.difficulty == "votes" else new
        d = np.where(row >= 0, self._d[row], new)
        return posterior_of(self._log_prior + log_votes(annotations, self._workers, d), gold)[0]


@dataclass(frozen=True)
class Frequencies:
    """A view of items that tells none from another; its parameters are log p(truth)."""

    prior: ClassPrior
    n_items: int

    def solve(self, posterior: Array, previous: Array | None) -> Array:
        return self.prior.solve(posterior.sum(axis=0))

    def log_proba(self, log_prior: Array) -> Array:
        return np.broadcast_to(log_prior, (self.n_items, len(log_prior)))

    def log_penalty(self, log_prior: Array) -> float:
        return self.prior.log_penalty(log_prior)


def _with_unseen_worker(workers: Abilities, active: npt.NDArray[np.int32]) -> Abilities:
    """One worker more, who is as able as the others are on average, and errs as they do."""
    ability = np.vstack([workers.ability, workers.ability[active].mean(axis=0)])
    if workers.log_wrong is None:
        return Abilities(ability, None)
    error_shares = elementary.log(elementary.exp(workers.log_wrong[active]).mean(axis=0))
    return Abilities(ability, np.concatenate([workers.log_wrong, error_shares[None]]))
