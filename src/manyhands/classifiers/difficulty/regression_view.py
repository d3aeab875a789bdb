"""Difficulty EM with logistic regression: the joint EM that both of its forms run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from manyhands.annotations import Annotations
from manyhands.classifiers.difficulty.decision import DIFFICULTY_CONSTRAINTS, check_threshold, log_item_prior
from manyhands.classifiers.difficulty.difficulty_term import DifficultyTerm
from manyhands.classifiers.regression import RegressionData, RegressionMethod, as_module, n_columns, regression_data
from manyhands.classifiers.training_context import TrainingContext
from manyhands.classifiers.training_data import FitResult
from manyhands.em.ability_em import (
    NOT_CONVERGED,
    DifficultySteps,
    ability_model,
    easiness_of_all,
    posterior_from_joint,
    results,
)
from manyhands.em.classifier_em import initial_posterior
from manyhands.em.kernels import Array
from manyhands.linear.softmax_regression import as_matrix, log_proba, newton_ascent, penalty
from manyhands.noise.difficulty import Abilities, log_votes
from manyhands.validation import Boolean, Constraint, NoneOr, Number, RandomState

# Where the classifier has no part in the E step, its Newton steps are those of one regression, until it converges.
_NEWTON_STEPS = 50

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
}


class DifficultyMethod(RegressionMethod, Protocol):
    """The parameters of difficulty EM; documented in `DifficultyEM`."""

    difficulty: str
    difficulty_gradient: bool
    prior: str
    vote_smoothing: float
    floor: float | None
    ability_update: str
    errors: str
    right: float
    wrong: float
    precision: float
    max_ability: float
    newton_steps: int
    max_iter: int
    tol: float
    accelerate: bool
    threshold: float


def learn_difficulty(method: DifficultyMethod, context: TrainingContext) -> FitResult:
    """Run EM over regression weights, abilities and easiness, from every start, and return the best run.

    Parameters
    ----------
    method : DifficultyMethod
        The estimator.
    context : TrainingContext
        Features, labels and gold.

    Returns
    -------
    FitResult
    """
    data = context.data
    X, votes, n_classes = as_matrix(data.rows), data.annotations, data.annotations.n_classes
    check_threshold(method.threshold, n_classes)
    problem = regression_data(data, X, method)
    steps = em_steps(method, problem)
    starts = problem.starts(steps.model.pseudo_counts, method)
    runs = [steps.run(start, max_iter=method.max_iter, tol=method.tol, what="difficulty EM") for start in starts]
    best, likelihood = max(runs, key=lambda run: run[0].history[-1])
    weights, workers = problem.rows.in_raw_features(best.params.item_prior), best.params.workers
    log_f = log_proba(X, weights, n_classes)
    d = easiness_of_all(method.difficulty, np.exp(log_f), problem.items, best.params)
    log_prior = log_item_prior(method.prior, method.vote_smoothing, votes, log_f)
    posterior, _ = posterior_from_joint(log_prior + log_votes(votes, workers, d), data.gold)
    fitted = results(ability_model(method, votes), workers, posterior, d)
    both = zip(best.history, likelihood, strict=True)
    history = [{"objective": value, "log_likelihood": evidence} for value, evidence in both]
    fitted |= {f"{name}_": np.array([entry[name] for entry in history]) for name in history[0]}
    fitted |= {"floor_": best.params.floor, "ridge_": problem.ridge}
    notes = {} if best.converged else {"not_converged": NOT_CONVERGED.format(best.n_iter)}
    return FitResult(as_module(weights, n_classes, problem.ridge), history, posterior, fitted, notes)


def em_steps(method: DifficultyMethod, problem: RegressionData) -> DifficultySteps[Array]:
    """Return the E and M step of difficulty EM with a logistic regression.

    Parameters
    ----------
    method : DifficultyMethod
        The estimator.
    problem : RegressionData
        The training items.

    Returns
    -------
    DifficultySteps
    """
    takes_part = method.prior == "classifier" or method.difficulty == "classifier"
    n_steps = method.newton_steps if takes_part else max(method.newton_steps, _NEWTON_STEPS)
    item_prior = Regression(problem.rows.X, problem.ridge, n_steps, problem.votes.n_classes, problem.votes)
    model = ability_model(method, problem.votes)
    through = method.difficulty_gradient and method.difficulty == "classifier"
    return DifficultySteps(
        model,
        item_prior,
        problem.gold,
        model.start(initial_posterior(problem.votes, problem.gold)),
        method.difficulty,
        method.floor,
        method.prior,
        method.vote_smoothing,
        method.accelerate,
        item_prior.solve_through if through else None,
    )


@dataclass(frozen=True, eq=False)
class Regression:
    """The view of items by logistic regression on their features; its parameters are the weights.

    Attributes
    ----------
    X : array or sparse matrix of shape (n, n_features)
        Features.
    ridge : float
        L2 penalty.
    steps : int
        Newton steps per M step.
    n_classes : int
        Number of classes.
    votes : Annotations
        The labels of the items.
    """

    X: Any
    ridge: float
    steps: int
    n_classes: int
    votes: Annotations

    def solve(self, posterior: Array, previous: Array | None) -> Array:
        """M step: weights that fit the posterior, by Newton steps from the previous ones."""
        before = np.zeros((self.X.shape[1] + 1, n_columns(self.n_classes))) if previous is None else previous
        return newton_ascent(self.X, posterior, before, self.ridge, self.steps)

    def solve_through(self, posterior: Array, previous: Array, workers: Abilities, floor: float) -> Array:
        """M step where the easiness of the items follows from the weights, as the likelihood of their labels does."""
        term = DifficultyTerm(self.votes, posterior, workers, floor)
        return newton_ascent(self.X, posterior, previous, self.ridge, self.steps, term)

    def log_proba(self, weights: Array) -> Array:
        """Return log p(k | x) of the items, (n, n_classes)."""
        return log_proba(self.X, weights, self.n_classes)

    def log_penalty(self, weights: Array) -> float:
        """Return the penalty's part of the objective."""
        return -penalty(weights, self.n_classes, self.ridge)
