"""Difficulty EM: Y. Xu, T. Zhang, D. Zhang and W. Zhang, Data difficulty specified crowdsourcing.

From top to bottom, with the paper's numbers of sections, equations and algorithms:

- Section 3.1, traditional two-coin model: the threshold xi, `decide`
- Section 3.5, M step of the classifier, g and H: `DifficultyTerm`
- Sections 3.5 and 3.6, Adaptive and Fixed Difficulty EM (Algorithms 1 to 3): `DifficultySteps`
- The likelihood of held-out labels, which is not in the paper: `difficulty_log_likelihoods`
- The estimators: `DifficultyEM` (Algorithm 2) and `FixedDifficultyEM` (Algorithm 3), one implementation

In other modules:

- Section 3.1, the Original EM: `raykar`
- Section 3.2, specified data difficulty (Eq. 1 and 2): `em.ability.p_right` and `em.ability.easiness`
- Section 3.4, maximum likelihood estimator, a_i and b_i: `em.ability.log_votes`
- Section 3.6, the vote share p-hat_i: `em.ability.share_with_pseudo_votes`
- Appendix A.3, initialization (Eq. 3 to 6): `em.ability.AbilityModel.start`

With a neural network as the classifier, see `difficulty_network`. Names that differ from the paper's: its classes 1
and 0 are classes c in general; lambda^1 and lambda^2 are `ability[:, c]`; (p_i - 1/2)^2 is the easiness d of an item.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from manyhands._core import elementary
from manyhands._core.arrays import Array
from manyhands._core.randomness import Seed, make_generator
from manyhands.annotations import Annotations
from manyhands.classifiers.base import CrowdClassifier
from manyhands.classifiers.network import FitResult, TrainingContext
from manyhands.classifiers.raykar import (
    as_module,
    module_proba,
    n_columns,
    regression_data,
)
from manyhands.em.ability import (
    ABILITY_CONSTRAINTS,
    DIFFICULTIES,
    EASIEST,
    NOT_CONVERGED,
    UPDATED_DIFFICULTIES,
    Abilities,
    AbilityModel,
    ability_model,
    easiness,
    label_given_truth,
    log_votes,
    other_votes_easiness,
    p_right,
    posterior_from_joint,
    results,
    share_with_pseudo_votes,
    vote_easiness,
    with_floor,
)
from manyhands.em.driver import EMResult, run_em
from manyhands.em.e_step import Gold, initial_posterior, initial_posteriors
from manyhands.em.kernels import sums_by
from manyhands.em.noise import safe_log
from manyhands.exceptions import ParameterError
from manyhands.features import Rows
from manyhands.heldout import known_workers, smooth
from manyhands.linear import TermSlopes, as_matrix, log_proba, newton_ascent, penalty
from manyhands.validation import Boolean, Constraint, NoneOr, Number, OneOf, RandomState

# ----------------------------------------------------------------------------------------------------
# Section 3.1: a threshold xi turns p(1 | x) into a class; what the parameters of all forms of difficulty EM may be.


MIDDLE = 0.5  # the threshold that is not a choice: the most probable class; the paper gives no value
DIFFICULTY_CONSTRAINTS: dict[str, Constraint] = ABILITY_CONSTRAINTS | {
    "difficulty": OneOf(DIFFICULTIES),
    "difficulty_gradient": Boolean(),
    "prior": OneOf(("classifier", "votes")),
    "vote_smoothing": Number(least=0),
    "threshold": Number(least=0, most=1),
}


def check_threshold(threshold: float, n_classes: int) -> None:
    """Refuse a threshold where there are more than two classes."""
    if n_classes > 2 and threshold != MIDDLE:
        raise ParameterError(
            f"threshold is for two classes; with {n_classes} classes the most probable one is predicted. "
            f"Got {threshold!r}."
        )


def decide(proba: Array, threshold: float) -> npt.NDArray[np.intp]:
    """Class codes by a threshold xi of the second class, or the most probable class where there are not two.

    The second class is predicted where its probability is at least xi; the paper has "greater than".

    Shapes: proba (n_rows, n_classes); returns (n_rows,).
    """
    if proba.shape[1] != 2:
        return np.asarray(proba.argmax(axis=1))
    return (proba[:, 1] >= threshold).astype(np.intp)


# ----------------------------------------------------------------------------------------------------
# Section 3.5, M step of the classifier: g and H, where the difficulty of the items follows from it.
#
#     value       sum_i sum_c mu_ic log p(labels of i | truth = c, d_i),   d_i = easiness(p_i)
#     along d     g_i = sum_c mu_ic sum_w ability[w, c] (1[label_iw = c] - P_iwc),   P = p(label = c | truth = c)
#     curvature   h_i = sum_c mu_ic sum_w ability[w, c]^2 P_iwc (1 - P_iwc)
#     logits      d_i' = dd_i / d logits_i = (1 - floor) q_i (p_im - 1/K) / (2 (1 - 1/K)^2),
#                 q_ik = p_im (1[k = m] - p_ik),   m the most probable class
#
# The slope with respect to the logits is g_i d_i', and minus the second derivative is taken as h_i d_i' d_i'^T: the
# expected one (Fisher scoring), which is never negative, where the exact one need not be.


@dataclass(frozen=True, eq=False)
class DifficultyTerm:
    """sum_i mu_i ln a_i + (1 - mu_i) ln b_i of Section 3.5 as a function of the classifier's probabilities p_i.

    Shapes: posterior (n_items, n_classes).
    """

    votes: Annotations
    posterior: Array  # (n_items, n_classes); p(truth) of every item
    workers: Abilities  # parameters of the workers
    floor: float  # lower bound of the easiness as a share of the largest

    def value(self, p: Array) -> float:
        """Return the expected log-likelihood of the labels at class probabilities of shape (n_items, n_classes)."""
        d = with_floor(easiness(p), self.floor)
        return float((self.posterior * log_votes(self.votes, self.workers, d)).sum())

    def slopes(self, p: Array) -> TermSlopes:
        """Return its derivatives with respect to the logits of p.

        Shapes: p (n_items, n_classes).
        """
        votes, d = self.votes, with_floor(easiness(p), self.floor)[self.votes.item]
        slope, curvature = np.zeros(len(p)), np.zeros(len(p))
        for c in range(votes.n_classes):
            ability, weight = self.workers.ability[votes.worker, c], self.posterior[votes.item, c]
            right = p_right(ability, d, votes.n_classes)
            slope += sums_by(votes.item, weight * ability * ((votes.label == c) - right), len(p))
            curvature += sums_by(votes.item, weight * ability**2 * right * (1 - right), len(p))
        direction = (1 - self.floor) * easiness_slope(p)
        return TermSlopes(slope[:, None] * direction, direction, curvature[:, None])


def easiness_slope(p: Array) -> Array:
    """Derivative of the easiness with respect to the logits of the class probabilities.

    Shapes: p (n_items, n_classes); returns (n_items, n_classes).
    """
    n_items, n_classes = p.shape
    if n_classes == 1:
        return np.zeros_like(p)
    top = p.argmax(axis=1)
    largest = p[np.arange(n_items), top][:, None]
    of_largest = -largest * p
    of_largest[np.arange(n_items), top] += largest[:, 0]
    return np.asarray(0.5 * (largest - 1 / n_classes) / (1 - 1 / n_classes) ** 2 * of_largest)


# ----------------------------------------------------------------------------------------------------
# Sections 3.5 and 3.6: Algorithm 1 (update_classifier_parameter), Algorithm 2 (Adaptive), Algorithm 3 (Fixed).
#
# With the difficulty of the votes, or constant, this is exact EM and the objective never falls; so with that of the
# classifier where its M step takes into account that d follows from p. Otherwise d is taken as given while p and the
# abilities are updated, although it depends on them: generalised EM, whose objective may fall.


# Where the classifier has no part in the E step, its Newton steps are those of one concave regression, and end where
# the gradient is small (`newton_ascent`). This only bounds the time of one that converges slowly (ours).
_NEWTON_STEPS = 50


class Theta(NamedTuple):
    """The parameters theta = {omega, lambda} that EM estimates, and what follows from them."""

    weights: Array  # (n_features + 1, n_columns); omega of the classifier
    workers: Abilities  # lambda, and the distribution of errors where it is free
    d: Array  # (n_items,); easiness of the items
    floor: float  # lower bound of the easiness, as a share of the largest


@dataclass(frozen=True, eq=False)
class DifficultySteps:
    """Algorithm 2 (Adaptive) and Algorithm 3 (Fixed): `run` is the loop, `expect` its E step, `maximise` Algorithm 1.

    The two differ in the source of the difficulty and in the prior of the E step: p_i of the classifier, or the vote
    shares p-hat_i. The sufficient statistics of `run_em` are the posterior mu, flat. Every item has a label or gold.
    The lines of Algorithm 2, in brackets those of Algorithm 3, whose lines 3 to 5 are `easiness` by votes:

        line 1               theta = maximise(mu of the start), or `random_theta` (Section 4.1)
        line 2               T of Algorithm 1: `n_newton_steps`
        line 3 (6)           while not convergent: `run_em`
        lines 4-8 (7-11)         mu = expect(theta): mu_i = a_i p_i / (a_i p_i + b_i (1 - p_i))
        line 9 (12)              theta = maximise(mu), Algorithm 1: omega, then d, then lambda (lambda first in print)

    Shapes: X (n_items, n_features); gold (n_items,).
    """

    method: BaseDifficultyEM
    X: Any
    votes: Annotations
    gold: Gold
    ridge: float
    likelihood: list[float] = field(default_factory=list)  # log p(labels) after each pass of the present run
    first: Theta | None = None  # what the first M step continues from; None where it starts from weights of 0

    @cached_property
    def model(self) -> AbilityModel:
        """The M step of the abilities."""
        return ability_model(self.method, self.votes)

    @cached_property
    def initial(self) -> Abilities:
        """Appendix A.3: abilities from the vote shares Q(y_i = c), where they start or stay frozen (Eq. 3 to 6)."""
        return self.model.start(initial_posterior(self.votes, self.gold))

    def run(self, start: Array) -> tuple[EMResult[Theta], list[float]]:
        """Run Algorithm 2 or 3 from a posterior; also log p(labels) of each accepted iteration.

        EM is not accelerated where the objective may fall: where the easiness is updated after a step that took it as
        fixed.

        Shapes: start (n_items, n_classes).
        """
        self.likelihood.clear()
        method = self.method
        may_fall = method.difficulty in UPDATED_DIFFICULTIES and method.floor != 1 and not self.through_difficulty
        result = run_em(
            self,
            start.ravel(),  # line 1: initialize theta, by an M step from this posterior
            tol=method.tol,  # line 3 (6 in Algorithm 3): while not convergent do E step and M step
            max_iter=method.max_iter,  # not in the paper, which does not bound this loop
            accelerate=method.accelerate and not may_fall,
            what="difficulty EM",
        )
        return result, [self.likelihood[number] for number in result.kept]

    def runs(self, n_init: int, random_state: Seed) -> Iterator[tuple[EMResult[Theta], list[float]]]:
        """Run from every start: posteriors of the votes (`RegressionData.starts`), or random weights of the classifier.

        Line 1 by Section 4.1: "We randomly initialize the classifier parameter omega", and abilities by Appendix A.3. The
        E step at this theta then gives the posterior from which the loop starts.
        """
        if self.method.start == "votes":
            random = make_generator(random_state).spawn(n_init - 1)
            yield from map(self.run, initial_posteriors(self.votes, self.gold, self.model.pseudo_counts, random))
        else:
            for rng in make_generator(random_state).spawn(n_init):
                steps = replace(self, first=self.random_theta(rng))
                assert steps.first is not None
                yield steps.run(steps.expect(steps.first)[0])

    def random_theta(self, rng: np.random.Generator) -> Theta:
        """Weights from a standard normal distribution (ours; the paper names none), and abilities of the vote shares."""
        weights = rng.standard_normal((self.X.shape[1] + 1, n_columns(self.votes.n_classes)))
        floor = self.method.floor or 0.0
        d = with_floor(self.easiness(initial_posterior(self.votes, self.gold), weights), floor)
        return Theta(weights, self.initial, d, floor)

    def expect(self, theta: Theta) -> tuple[Array, float]:
        """E step: lines 4 to 8 of Algorithm 2, 7 to 11 of Algorithm 3; also the objective.

        Shapes: returns statistics (n_items * n_classes,).
        """
        # Lines 5 and 6 (8 and 9): ln a_i and ln b_i, the log-likelihood of the labels of an item for each truth.
        log_ab = log_votes(self.votes, theta.workers, theta.d)
        # Line 7 (10): mu_i = a_i p_i / (a_i p_i + b_i (1 - p_i)); Algorithm 3 has the vote share in place of p_i.
        mu, evidence = posterior_from_joint(self.log_prior(theta.weights) + log_ab, self.gold)
        objective = evidence + self.model.log_penalty(theta.workers, self.initial)
        if self.method.prior == "classifier":  # otherwise the classifier is not part of the model
            objective += -penalty(theta.weights, self.votes.n_classes, self.ridge)
        self.likelihood.append(evidence)
        return mu.ravel(), objective

    def maximise(self, statistics: Array, previous: Theta | None) -> Theta:
        """M step: Algorithm 1, update_classifier_parameter; here the classifier comes first, then the abilities.

        Shapes: statistics (n_items * n_classes,).
        """
        mu = statistics.reshape(-1, self.votes.n_classes) + np.finfo(float).tiny
        mu /= mu.sum(axis=1, keepdims=True)  # rows of an extrapolation need not sum to 1
        previous = self.first if previous is None else previous
        workers, floor = (self.initial, 0.0) if previous is None else (previous.workers, previous.floor)
        # Lines 9 to 11 of Algorithm 1: omega = omega - H^-1 g; its T (line 1) is the number of Newton steps.
        term = None
        if previous is None:
            weights = np.zeros((self.X.shape[1] + 1, n_columns(self.votes.n_classes)))
        else:
            weights = previous.weights
            term = DifficultyTerm(self.votes, mu, workers, floor) if self.through_difficulty else None
        weights = newton_ascent(self.X, mu, weights, self.ridge, self.n_newton_steps, term)
        # The difficulty follows from p_i (Adaptive) or stays (Fixed); its floor is 0 in the paper.
        d = self.easiness(mu, weights)
        fixed_floor = self.method.floor
        floor = self.model.solve_floor(mu, d, workers.ability, floor) if fixed_floor is None else fixed_floor
        d = with_floor(d, floor)
        # Lines 3 to 5 of Algorithm 1: lambda, at its optimum by Newton's method in place of T gradient steps.
        return Theta(weights, self.model.solve(mu, d, workers, self.initial), d, floor)

    def easiness(self, posterior: Array, weights: Array) -> Array:
        """Easiness (p_i - 1/2)^2 of each item before the floor is applied; p_i as `difficulty` says.

        Shapes: posterior (n_items, n_classes); returns (n_items,).
        """
        difficulty = self.method.difficulty
        if difficulty == "constant":
            return np.full(len(posterior), EASIEST)
        if difficulty == "classifier":
            return easiness(elementary.exp(log_proba(self.X, weights, self.votes.n_classes)))
        if difficulty == "posterior":
            return easiness(posterior)
        return vote_easiness(self.votes, self.method.vote_smoothing)  # lines 3 to 5 of Algorithm 3

    def log_prior(self, weights: Array) -> Array:
        """Log prior of the truth of each item in the E step, (n_items, n_classes): of p_i, or of the vote shares."""
        if self.method.prior == "votes":
            return safe_log(share_with_pseudo_votes(self.votes, self.method.vote_smoothing))
        return log_proba(self.X, weights, self.votes.n_classes)

    @property
    def through_difficulty(self) -> bool:
        """Whether g and H of the classifier go through the difficulty of the items too, as printed."""
        return self.method.difficulty_gradient and self.method.difficulty == "classifier"

    @property
    def n_newton_steps(self) -> int:
        """Number of Newton steps of the classifier in an M step: T of Algorithm 1."""
        method = self.method
        takes_part = method.prior == "classifier" or method.difficulty == "classifier"
        return method.newton_steps if takes_part else max(method.newton_steps, _NEWTON_STEPS)


def log_item_prior(prior: str, smoothing: float, votes: Annotations, log_proba: Array) -> Array:
    """Log prior of the truth of each item in the E step.

    Shapes: log_proba (n_items, n_classes); returns (n_items, n_classes).
    """
    if prior == "classifier":
        return log_proba
    share = safe_log(share_with_pseudo_votes(votes, smoothing))
    return np.where(votes.n_labels[:, None] > 0, share, log_proba)


# ----------------------------------------------------------------------------------------------------
# Held-out labels under difficulty EM: p(label | x, worker) with the difficulty of the item (not in the paper).


def difficulty_log_likelihoods(method: Any, proba: Array, annotations: Annotations) -> Array:
    """Return log sum_k p(k | x) p(label | k, ability of the worker, easiness of the item) of held-out labels.

    The easiness comes from what is known of an item beside the label: p(k | x) where the difficulty follows from the
    classifier or the posterior, and the other labels of the item where it follows from the votes; items without other
    labels then have the mean easiness of the training items. Workers without a label in the fit have the mean ability.

    Shapes: proba (n_items, n_classes); returns (n_annotations,).
    """
    truth = smooth(proba, method._shares)[annotations.item]  # (n_annotations, n_classes)
    log_label = label_given_truth(annotations, _workers(method), _easiness_of_labels(method, proba, annotations))
    return np.asarray(np.logaddexp.reduce(np.log(truth) + log_label, axis=1))


def _easiness_of_labels(method: Any, proba: Array, annotations: Annotations) -> Array:
    """Easiness of the item of each label, (n_annotations,), which does not depend on the label itself."""
    if method.difficulty == "constant":
        return np.full(annotations.n_annotations, EASIEST)
    if method.difficulty != "votes":
        return with_floor(easiness(proba), method.floor_)[annotations.item]
    by_others = other_votes_easiness(annotations, np.nan, method.vote_smoothing)
    average = EASIEST * (1 - float(method.difficulty_.mean()))
    return np.where(np.isnan(by_others), average, with_floor(by_others, method.floor_))


def _workers(method: Any) -> Abilities:
    """Return the abilities, with one more worker for unseen ones; free errors are those of the confusion matrices."""
    has_labels = known_workers(method._confusions)
    ability = np.vstack([method.ability_, method.ability_[:1]])
    average = method.ability_[has_labels[:-1]] if has_labels.any() else method.ability_
    ability[~has_labels] = average.mean(axis=0)
    if method.errors == "uniform":
        return Abilities(ability, None)
    wrong = np.where(np.eye(ability.shape[1], dtype=bool), 0.0, method._confusions)
    return Abilities(ability, safe_log(wrong) - safe_log(wrong.sum(axis=2, keepdims=True)))


# ----------------------------------------------------------------------------------------------------
# The estimators.


# What the parameters of both forms may be.
REGRESSION_CONSTRAINTS: dict[str, Constraint] = DIFFICULTY_CONSTRAINTS | {
    "ridge": NoneOr(Number(above=0)),
    "standardise": Boolean(),
    "newton_steps": Number(whole=True, least=1),
    "max_iter": Number(whole=True, least=1),
    "accelerate": Boolean(),
    "tol": Number(least=0),
    "n_init": Number(whole=True, least=1),
    "random_state": RandomState(),
    "start": OneOf(("votes", "random")),
}


class BaseDifficultyEM(CrowdClassifier):
    """What `DifficultyEM` and `FixedDifficultyEM` share: everything but the defaults of two parameters.

    Attributes
    ----------
    ability_ : ndarray of shape (n_workers, n_classes)
        Ability of each worker in each class, at least 0.
    expertise_ : ndarray of shape (n_workers, n_classes)
        Probability of a correct label on the easiest items: with two classes, column 1 is sensitivity and column 0
        specificity.
    expertise_low_ : ndarray of shape (n_workers, n_classes)
        Lower end of the 95% interval of `expertise_`, conditional on everything else. Too narrow with
        ``difficulty="posterior"``, and with "votes" and "mle", where the labels determine the easiness too.
    expertise_high_ : ndarray of shape (n_workers, n_classes)
        Upper end of that interval.
    difficulty_ : ndarray of shape (n_items,)
        Difficulty from 0 to 1, where labels are pure chance; at most 1 - `floor_`.
    floor_ : float
        The floor in use.
    item_accuracy_ : ndarray of shape (n_items,)
        Expected share of correct labels of each item.
    objective_ : ndarray of shape (n_iterations,)
        Penalised log-likelihood after each iteration. It never decreases with "votes", with "constant", and with
        "classifier" and `difficulty_gradient`; otherwise it may, since the easiness changes after the step that took it
        as given (generalised EM).
    log_likelihood_ : ndarray of shape (n_iterations,)
        log p(labels | X) at the same points; both are in `history_`.
    ridge_ : float
        The penalty in use.
    module_ : sklearn.linear_model.LogisticRegression
        The weights found, for features as they were given.
    """

    _of_items: ClassVar[tuple[str, ...]] = (*CrowdClassifier._of_items, "difficulty_", "item_accuracy_")
    _constraints: ClassVar[dict[str, Constraint]] = REGRESSION_CONSTRAINTS

    ability_: Array
    difficulty_: Array
    floor_: float

    def __init__(
        self,
        difficulty: str = "classifier",
        prior: str = "classifier",
        floor: float | None = 0.0,
        ability_update: str = "auto",
        errors: str = "uniform",
        right: float = 1.0,  # this and the next as in `Raykar`; the paper has no pseudo-counts
        wrong: float = 0.5,
        precision: float = 1.0,  # ours, of an ability; the paper has no prior
        max_ability: float = 100.0,  # ours: log-odds of 25 on the easiest items; the paper has no bound
        ridge: float | None = None,
        standardise: bool = True,
        newton_steps: int = 1,  # ours: T of Algorithm 1, of which the paper gives no value
        max_iter: int = 200,  # ours, as in `Raykar`; the paper has no bound
        tol: float = 1e-6,  # ours, as in `Raykar`; the paper does not say when EM has converged
        n_init: int = 1,
        random_state: Seed = None,
        *,
        difficulty_gradient: bool = True,
        vote_smoothing: float = 0.0,
        accelerate: bool = False,
        threshold: float = 0.5,
        start: str = "votes",
    ) -> None:
        self.difficulty = difficulty
        self.prior = prior
        self.floor = floor
        self.ability_update = ability_update
        self.errors = errors
        self.right = right
        self.wrong = wrong
        self.precision = precision
        self.max_ability = max_ability
        self.ridge = ridge
        self.standardise = standardise
        self.newton_steps = newton_steps
        self.max_iter = max_iter
        self.tol = tol
        self.n_init = n_init
        self.random_state = random_state
        self.difficulty_gradient = difficulty_gradient
        self.vote_smoothing = vote_smoothing
        self.accelerate = accelerate
        self.threshold = threshold
        self.start = start

    def _trains_network(self) -> bool:
        return False

    def _learn(self, context: TrainingContext) -> FitResult:
        """Run Algorithm 2 or 3 from every start, and return the best run."""
        data = context.data
        X, votes, n_classes = as_matrix(data.rows), data.annotations, data.annotations.n_classes
        check_threshold(self.threshold, n_classes)
        problem = regression_data(data, X, self.ridge, standardise=self.standardise)
        steps = DifficultySteps(self, problem.rows.X, problem.votes, problem.gold, problem.ridge)
        best, likelihood = max(steps.runs(self.n_init, self.random_state), key=lambda run: run[0].history[-1])
        theta, weights = best.params, problem.rows.in_raw_features(best.params.weights)
        # The E step for all items, those without labels included.
        log_p = log_proba(X, weights, n_classes)
        d = self._easiness_of_all(np.exp(log_p), problem.items, theta)
        log_prior = log_item_prior(self.prior, self.vote_smoothing, votes, log_p)
        posterior, _ = posterior_from_joint(log_prior + log_votes(votes, theta.workers, d), data.gold)
        estimates: dict[str, Any] = results(ability_model(self, votes), theta.workers, posterior, d)
        both = zip(best.history, likelihood, strict=True)
        history = [{"objective": value, "log_likelihood": evidence} for value, evidence in both]
        estimates |= {f"{name}_": np.array([entry[name] for entry in history]) for name in history[0]}
        estimates |= {"floor_": theta.floor, "ridge_": problem.ridge}
        notes = {} if best.converged else {"not_converged": NOT_CONVERGED.format(best.n_iter)}
        return FitResult(as_module(weights, n_classes, problem.ridge), history, posterior, estimates, notes)

    def _easiness_of_all(self, proba: Array, items: npt.NDArray[np.intp], theta: Theta) -> Array:
        """Easiness of all items; `items` are those with labels, from which `theta` is estimated.

        For items without labels it follows from the classifier if the difficulty is updated, otherwise it is the mean
        over the items with labels.

        Shapes: proba (n_items, n_classes); items (n_labelled,); returns (n_items,).
        """
        by_classifier = with_floor(easiness(proba), theta.floor)
        d = by_classifier if self.difficulty in UPDATED_DIFFICULTIES else np.full(len(proba), theta.d.mean())
        d[items] = theta.d
        return d

    def _proba(self, module: Any, rows: Rows) -> Array:
        return module_proba(module, rows)

    def _decide(self, proba: Array) -> npt.NDArray[np.intp]:
        return decide(proba, self.threshold)

    def _has_own_likelihood(self) -> bool:
        return True

    def _own_log_likelihoods(self, rows: Rows, proba: Array, annotations: Annotations, common: Array) -> Array:
        return difficulty_log_likelihoods(self, proba, annotations)


class DifficultyEM(BaseDifficultyEM):
    """Logistic regression with worker abilities, on items whose difficulty follows from the classifier (Adaptive).

    Items far from the decision boundary are easy, and errors there lower a worker's ability; near it labels are close
    to chance, and errors hardly count. `DifficultyEM()` is the paper's Algorithm 2; `DifficultyEM.plus()` estimates
    `floor`, so that difficulty counts for as much as the labels show.

    Use it where items differ in difficulty and features tell which are hard. No worker is modelled as worse than
    chance: where workers may be adversarial, use `Raykar`, which this method equals with ``difficulty="constant"`` and
    ``errors="free"`` otherwise. Items without labels and gold are not used. Features are standardised internally;
    `module_` takes them as given.

    Parameters
    ----------
    difficulty : {"classifier", "votes", "posterior", "constant"}, default="classifier"
        Source of the easiness d: the classifier's p(k | x), the vote shares, the posterior of the last iteration
        (self-reinforcing), or one value for all items. By votes, items without any get the mean easiness.
    prior : {"classifier", "votes"}, default="classifier"
        Class prior of an item in the E step: p(k | x) as in the paper's Algorithm 2, or its vote shares as in
        Algorithm 3.
    floor : float or None, default=0.0
        Easiness of the hardest items as a share of that of the easiest: 0 as in the paper (labels on the hardest items
        are pure chance), 1 where all items are equal; None is estimated.
    ability_update : {"auto", "mle", "map", "frozen"}, default="auto"
        M step of the abilities: maximum likelihood; maximum a posteriori with a Gaussian of `precision` around the
        initial values; or fixed at the initial values. "auto" is "frozen" with ``difficulty="votes"``, where the
        likelihood is bounded by `max_ability` only, and otherwise "mle".
    errors : {"uniform", "free"}, default="uniform"
        Distribution of wrong labels: equal over the other classes, or estimated for each worker.
    right : float, default=1.0
        Pseudo-count added to each worker's correct labels in every class, as if on the easiest items.
    wrong : float, default=0.5
        Pseudo-count added to each worker's wrong labels in every class.
    precision : float, default=1.0
        Precision of the Gaussian of ``ability_update="map"``.
    max_ability : float, default=100.0
        Upper bound of the abilities; the lower bound is 0.
    ridge : float or None, default=None
        L2 penalty: `ridge / 2` times the squared weights; intercepts are free. None is a tenth of the sum of the
        features' variances.
    standardise : bool, default=True
        Whether features are divided by their standard deviations; False is better where all have one unit, such as
        pixels, word counts or activations.
    newton_steps : int, default=1
        Maximal number of Newton steps of the regression in each M step; each is halved where it would overshoot.
    max_iter : int, default=200
        Maximal number of EM iterations.
    tol : float, default=1e-06
        Stop when the objective is estimated to be within this share of its optimum.
    n_init : int, default=1
        Number of starts: the first from the vote shares, the others random. Where the vote is wrong on most gold items
        beyond chance, a start from gold is added. With ``start="random"`` all of them are random weights.
    random_state : int, numpy.random.Generator or None, default=None
        Seed of the random starts.
    difficulty_gradient : bool, default=True
        Whether the M step of the classifier takes into account that the easiness follows from p(k | x), as printed:
        the slope of the expected log-likelihood through the labels' probabilities too. False holds the easiness fixed
        in that step, as the authors' program does. Without effect unless ``difficulty="classifier"``.
    vote_smoothing : float, default=0.0
        Number of pseudo-votes on each item, spread evenly over the classes, where vote shares are used: 0 is the plain
        share of the paper, 1 is (n + 1/2) / (R + 1) with two classes. Items with a single label are as easy as
        unanimous ones with 0.
    accelerate : bool, default=False
        Whether EM is accelerated by extrapolation (SQUAREM), where its objective never decreases; the paper does not.
    threshold : float, default=0.5
        Two classes: the second class is predicted where its probability is at least this (the paper's xi, which it
        must exceed there). Any other value than 0.5 is refused with more classes.
    start : {"votes", "random"}, default="votes"
        Where EM starts: from the vote shares, to which the classifier is fitted by the first M step, or from random
        weights of the classifier, as printed.

    Notes
    -----
    The paper has two classes and dense labels; this is its form for many classes and sparse labels.

    Where the print contradicts itself: the square of p - 1/2 is in both factors of the likelihood (without it, the
    probabilities of the two labels do not sum to 1); initial abilities have no logarithm of counts; gradients ascend. T
    of Algorithm 1 is `newton_steps`; `max_iter`, which bounds the loop of EM, is not in the paper. The Newton step of
    the classifier uses the exact slope through the easiness and the expected curvature (Fisher scoring), since the
    exact curvature may have the wrong sign, and is halved where the objective would decrease: so the printed gradient
    is stable. Abilities are at their optimum after each iteration, by Newton's method in place of gradient steps of
    unstated size. The paper has no priors: `right`, `wrong` and `ridge` keep estimates finite where a worker has no labels of a class,
    or where the classes can be separated.

    The start is a reading. Section 4.1 initializes the classifier at random (``start="random"``); from some random weights
    EM then ends with the two classes exchanged, at a lower objective, and `n_init` keeps the best of several
    (``manyhands reproduce difficulty-em/starts``). ``start="votes"`` fits the first weights to the vote shares, from which
    the paper takes its initial abilities too.

    References
    ----------
    Y. Xu, T. Zhang, D. Zhang and W. Zhang, Data difficulty specified crowdsourcing, Algorithm 2.

    Examples
    --------
    >>> from manyhands import Annotations, DifficultyEM
    >>> votes = Annotations.from_matrix([[0, 0, 1], [1, 1, 1], [0, 0, 0], [1, 0, 1]])
    >>> model = DifficultyEM().fit([[0.0], [1.0], [0.0], [1.0]], votes)
    >>> model.predict([[0.1], [0.9]]).tolist()
    [0, 1]
    """

    @classmethod
    def plus(cls, **changes: Any) -> Self:
        """Adaptive Difficulty EM with an estimated floor of the easiness, so that labels on hard items still count.

        The easiness is held fixed while the classifier is fitted, by up to five Newton steps in each iteration, vote
        shares have one pseudo-vote, and EM is accelerated where its objective never decreases.

        Parameters
        ----------
        **changes : object
            Constructor parameters that differ.

        Returns
        -------
        DifficultyEM
        """
        ours = cls(floor=None, newton_steps=5, difficulty_gradient=False, vote_smoothing=1.0, accelerate=True)
        return ours.set_params(**changes)


class FixedDifficultyEM(BaseDifficultyEM):
    """Logistic regression with worker abilities, on items whose difficulty follows from their votes (Fixed).

    `FixedDifficultyEM()` is the paper's Algorithm 3: the easiness and the prior of the E step come from the vote shares,
    and the M step updates the abilities. The posterior then follows from the labels alone, and the classifier is fitted
    to it. `FixedDifficultyEM.program()` (registry name "fixed-difficulty-em-program") is the authors' program, in which the
    classifier corrects the labels: it is far more accurate, and alone gives the published curves.

    Use it where items differ in difficulty and have several labels each, but features do not tell which are hard.

    Parameters
    ----------
    difficulty : {"classifier", "votes", "posterior", "constant"}, default="votes"
        Source of the easiness d, as in `DifficultyEM`.
    prior : {"classifier", "votes"}, default="votes"
        Class prior of an item in the E step: its vote shares as in the paper's Algorithm 3, where the classifier does
        not enter, or p(k | x) as in the authors' program. Items without votes have p(k | x).
    floor : float or None, default=0.0
        Easiness of the hardest items as a share of that of the easiest: 0 as in the paper (labels on the hardest items
        are pure chance), 1 where all items are equal; None is estimated.
    ability_update : {"auto", "mle", "map", "frozen"}, default="mle"
        M step of the abilities: maximum likelihood; maximum a posteriori with a Gaussian of `precision` around the
        initial values; or fixed at the initial values. "auto" is "frozen" with ``difficulty="votes"``, where the
        likelihood is bounded by `max_ability` only, and otherwise "mle".
    errors : {"uniform", "free"}, default="uniform"
        Distribution of wrong labels: equal over the other classes, or estimated for each worker.
    right : float, default=1.0
        Pseudo-count added to each worker's correct labels in every class, as if on the easiest items.
    wrong : float, default=0.5
        Pseudo-count added to each worker's wrong labels in every class.
    precision : float, default=1.0
        Precision of the Gaussian of ``ability_update="map"``.
    max_ability : float, default=100.0
        Upper bound of the abilities; the lower bound is 0.
    ridge : float or None, default=None
        L2 penalty: `ridge / 2` times the squared weights; intercepts are free. None is a tenth of the sum of the
        features' variances.
    standardise : bool, default=True
        Whether features are divided by their standard deviations; False is better where all have one unit, such as
        pixels, word counts or activations.
    newton_steps : int, default=1
        Maximal number of Newton steps of the regression in each M step; each is halved where it would overshoot.
    max_iter : int, default=200
        Maximal number of EM iterations.
    tol : float, default=1e-06
        Stop when the objective is estimated to be within this share of its optimum.
    n_init : int, default=1
        Number of starts: the first from the vote shares, the others random. Where the vote is wrong on most gold items
        beyond chance, a start from gold is added. With ``start="random"`` all of them are random weights.
    random_state : int, numpy.random.Generator or None, default=None
        Seed of the random starts.
    difficulty_gradient : bool, default=True
        Whether the M step of the classifier takes into account that the easiness follows from p(k | x), as printed:
        the slope of the expected log-likelihood through the labels' probabilities too. False holds the easiness fixed
        in that step, as the authors' program does. Without effect unless ``difficulty="classifier"``.
    vote_smoothing : float, default=0.0
        Number of pseudo-votes on each item, spread evenly over the classes, where vote shares are used: 0 is the plain
        share of the paper, 1 is (n + 1/2) / (R + 1) with two classes. Items with a single label are as easy as
        unanimous ones with 0.
    accelerate : bool, default=False
        Whether EM is accelerated by extrapolation (SQUAREM), where its objective never decreases; the paper does not.
    threshold : float, default=0.5
        Two classes: the second class is predicted where its probability is at least this (the paper's xi, which it
        must exceed there). Any other value than 0.5 is refused with more classes.
    start : {"votes", "random"}, default="votes"
        Where EM starts: from the vote shares, to which the classifier is fitted by the first M step, or from random
        weights of the classifier, as printed.

    Notes
    -----
    The paper has two classes and dense labels; this is its form for many classes and sparse labels.

    Where the print contradicts itself: the square of p - 1/2 is in both factors of the likelihood (without it, the
    probabilities of the two labels do not sum to 1); initial abilities have no logarithm of counts; gradients ascend.

    The printed M step of the abilities (line 12 of Algorithm 3) degenerates: votes that agree make an item easy, and
    there every worker is right, so that the likelihood is largest with all abilities at `max_ability`. In the authors'
    program abilities hardly leave their initial values, which `program()` takes as "frozen", and the prior is the
    classifier's. With that prior and the printed M step the area under the ROC of the labels on the paper's Gaussian
    data is 0.86 in place of 0.97 (``manyhands reproduce difficulty-em/readings``).

    References
    ----------
    Y. Xu, T. Zhang, D. Zhang and W. Zhang, Data difficulty specified crowdsourcing, Algorithm 3.

    Examples
    --------
    >>> from manyhands import Annotations, FixedDifficultyEM
    >>> votes = Annotations.from_matrix([[0, 0, 1], [1, 1, 1], [0, 0, 0], [1, 0, 1]])
    >>> model = FixedDifficultyEM().fit([[0.0], [1.0], [0.0], [1.0]], votes)
    >>> model.difficulty_.round(2).tolist()
    [0.89, 0.0, 0.0, 0.89]
    """

    def __init__(
        self,
        difficulty: str = "votes",
        prior: str = "votes",
        floor: float | None = 0.0,
        ability_update: str = "mle",
        errors: str = "uniform",
        right: float = 1.0,
        wrong: float = 0.5,
        precision: float = 1.0,
        max_ability: float = 100.0,
        ridge: float | None = None,
        standardise: bool = True,
        newton_steps: int = 1,
        max_iter: int = 200,
        tol: float = 1e-6,
        n_init: int = 1,
        random_state: Seed = None,
        *,
        difficulty_gradient: bool = True,
        vote_smoothing: float = 0.0,
        accelerate: bool = False,
        threshold: float = 0.5,
        start: str = "votes",
    ) -> None:
        super().__init__(
            difficulty, prior, floor, ability_update, errors, right, wrong, precision, max_ability, ridge, standardise,
            newton_steps, max_iter, tol, n_init, random_state, difficulty_gradient=difficulty_gradient,
            vote_smoothing=vote_smoothing, accelerate=accelerate, threshold=threshold, start=start,
        )  # fmt: skip

    @classmethod
    def program(cls, **changes: Any) -> Self:
        """Fixed Difficulty EM as in the authors' program: the classifier is the prior, and abilities stay as they start.

        Parameters
        ----------
        **changes : object
            Constructor parameters that differ.

        Returns
        -------
        FixedDifficultyEM
        """
        return cls(prior="classifier", ability_update="frozen").set_params(**changes)
