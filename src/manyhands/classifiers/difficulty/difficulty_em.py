"""Difficulty EM: logistic regression, abilities of workers and difficulty of items, found together.

    p(k | x) = softmax(x V + b)[k],   p(label = c | truth = c, w, i) = sigmoid(ability[w, c] d_i) with two classes,
    d_i = (q_i - 1/2)^2,   q_i = p(1 | x_i) (Adaptive) or the share of the votes on i (Fixed)

Near the classifier's border, or where votes are split, everybody guesses; far from it a worker is as good as he can be.

Reference: Data difficulty specified crowdsourcing (Adaptive and Fixed Difficulty EM). The paper has two classes and
dense labels. Read here as its text and not as its program does: the square in both factors, the classifier as prior of
Fixed too, abilities by the expected log-likelihood.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, TypedDict, Unpack

import numpy as np

from manyhands.classifiers.base import CrowdClassifier, FitResult, TrainingData
from manyhands.classifiers.regression import as_module, module_proba, n_columns, regression_data
from manyhands.em.ability_em import (
    ABILITY_CONSTRAINTS,
    DIFFICULTIES,
    NOT_CONVERGED,
    DifficultySteps,
    ability_model,
    easiness_of_all,
    posterior_of,
    results,
)
from manyhands.em.classifier_em import initial_posterior
from manyhands.em.kernels import Array
from manyhands.features import Rows
from manyhands.linear.softmax_regression import as_matrix, climb, log_proba, penalty
from manyhands.noise import safe_log
from manyhands.noise.difficulty import log_votes, shrunk_share
from manyhands.randomness import Seed
from manyhands.validation import Constraint, Maybe, Number, OneOf, RandomState, Switch


class DifficultyParameters(TypedDict, total=False):
    """The parameters that both forms share, for `**others: Unpack[DifficultyParameters]`."""

    prior: str
    ability_update: str
    errors: str
    right: float
    wrong: float
    precision: float
    most_ability: float
    ridge: float | None
    standardise: bool
    newton_steps: int
    max_iter: int
    tol: float
    n_init: int
    random_state: Seed


class DifficultyEM(CrowdClassifier):
    """Logistic regression learnt with workers' abilities, on items as hard as they are for the classifier (Adaptive).

    Items far from the classifier's border are easy, and there a worker's errors count against him; near it everybody
    guesses, and they hardly do. Two classes or many, sparse labels, gold. Items without labels and gold teach nothing.
    Nobody is taken to be worse than a guess: where workers may be malicious, use `Raykar`, which this is with
    `difficulty="constant"` and `errors="free"` where nobody is. Features are standardised inside, and `module_` takes
    them as given.

    Parameters
    ----------
    difficulty : where the easiness of items comes from: the "classifier", the "votes", the "posterior" of the last
        pass, which confirms itself, or "constant", all alike. By votes, items without any are as hard as the others are
        on average
    prior : what the E step believes of an item before its labels: the "classifier", or the shares of its "votes" as in
        the paper's Algorithm 3, where the classifier then has no say
    floor : the easiness of the hardest items as a share of that of the easiest: 0 as in the paper, where they are
        guessed; 1 where all items are alike; None is estimated, so that difficulty counts for as much as labels show
    ability_update : "mle"; "map", drawn to where they began by `precision`; "frozen", as they began; "auto" is "frozen"
        with `difficulty="votes"`, where the likelihood has no bound but `most_ability`, else "mle"
    errors : wrong labels go to all other classes alike ("uniform"), or as each worker's own do ("free"): where
        everybody guesses, a label then speaks against its class if that is where errors go
    right, wrong : labels added to each worker's right and wrong ones, in every class, as if on the easiest items: of
        somebody with few labels they decide
    precision : of the Gaussian of "map"
    most_ability : abilities lie between 0 and this
    ridge : penalty of the weights, `ridge / 2` times their squares; intercepts are free. None is a tenth of the
        features' variances together. Without any, weights could run away with an easiness that they make
    standardise : divide features by their spreads; False is better where all have one unit: pixels, words, activations
    newton_steps : of the regression in each M step, at most
    max_iter, tol : at most this many passes; stop within `tol` of the optimum, as a share of the objective
    n_init : starts; the first is from the vote shares, the others are random. Where the vote is wrong on most gold
        items beyond chance, what gold says of the workers is one more
    random_state : seed of the random starts

    Attributes
    ----------
    ability_ : (n_workers, n_classes), at least 0
    expertise_ : (n_workers, n_classes) the chance of a right label on the easiest items: with two classes, column 1 is
        sensitivity and column 0 specificity
    expertise_low_, expertise_high_ : its 95% interval, as if all else were known: other workers and the worker's other
        classes, easiness, floor and classifier. Too short where labels are judged by an easiness that they made:
        with "posterior", and with "votes" and "mle". Where abilities are frozen, how much the labels could tell,
        around where they began
    difficulty_ : (n_items,) from 0 to 1, where everybody guesses; at most 1 - `floor_`
    floor_ : the floor in use
    item_accuracy_ : (n_items,) the share of its labels that is expected to be right
    objective_ : (n_passes,) the penalised log-likelihood after each pass. It never falls with "votes" and "constant";
        with "classifier" and "posterior" it may, since the easiness moves after the step that took it for given
    log_likelihood_ : (n_passes,) log p(labels | X) at the same points, exactly; both are in `history_`
    ridge_, module_ : the ridge in use, and a LogisticRegression of scikit-learn with the weights found

    Examples
    --------
    >>> from manyhands import Annotations, DifficultyEM
    >>> votes = Annotations.from_matrix([[0, 0, 1], [1, 1, 1], [0, 0, 0], [1, 0, 1]])
    >>> model = DifficultyEM().fit([[0.0], [1.0], [0.0], [1.0]], votes)
    >>> model.predict([[0.1], [0.9]]).tolist()
    [0, 1]
    """

    _constraints: ClassVar[dict[str, Constraint]] = ABILITY_CONSTRAINTS | {
        "difficulty": OneOf(DIFFICULTIES),
        "prior": OneOf(("classifier", "votes")),
        "ridge": Maybe(Number(above=0)),
        "standardise": Switch(),
        "newton_steps": Number(whole=True, least=1),
        "max_iter": Number(whole=True, least=1),
        "tol": Number(least=0),
        "n_init": Number(whole=True, least=1),
        "random_state": RandomState(),
    }

    ability_: Array
    expertise_: Array
    difficulty_: Array
    objective_: Array
    log_likelihood_: Array

    def __init__(
        self,
        difficulty: str = "classifier",
        prior: str = "classifier",
        floor: float | None = None,
        ability_update: str = "auto",
        errors: str = "uniform",
        right: float = 1.0,
        wrong: float = 0.5,
        precision: float = 1.0,
        most_ability: float = 100.0,
        ridge: float | None = None,
        standardise: bool = True,
        newton_steps: int = 5,
        max_iter: int = 200,
        tol: float = 1e-6,
        n_init: int = 1,
        random_state: Seed = None,
    ) -> None:
        self.difficulty = difficulty
        self.prior = prior
        self.floor = floor
        self.ability_update = ability_update
        self.errors = errors
        self.right = right
        self.wrong = wrong
        self.precision = precision
        self.most_ability = most_ability
        self.ridge = ridge
        self.standardise = standardise
        self.newton_steps = newton_steps
        self.max_iter = max_iter
        self.tol = tol
        self.n_init = n_init
        self.random_state = random_state

    def _learn(self, data: TrainingData) -> FitResult:
        X, votes, n_classes = as_matrix(data.rows), data.annotations, data.annotations.n_classes
        lesson = regression_data(data, X, self)
        view = Regression(lesson.rows.X, lesson.ridge, self.newton_steps, n_classes)
        model = ability_model(self, lesson.votes)
        first = model.start(initial_posterior(lesson.votes, lesson.gold))
        steps = DifficultySteps(model, view, lesson.gold, first, self.difficulty, self.floor, self.prior)
        starts = lesson.starts(model.beforehand, self)
        runs = [steps.run(start, max_iter=self.max_iter, tol=self.tol, what="difficulty EM") for start in starts]
        best, likelihood = max(runs, key=lambda run: run[0].history[-1])
        weights, workers = lesson.rows.in_raw_features(best.params.view), best.params.workers
        log_f = log_proba(X, weights, n_classes)
        d = easiness_of_all(self.difficulty, np.exp(log_f), lesson.items, best.params)
        log_prior = safe_log(shrunk_share(votes)) if self.prior == "votes" else log_f
        posterior, _ = posterior_of(log_prior + log_votes(votes, workers, d), data.gold)
        told = results(ability_model(self, votes), workers, posterior, d)
        both = zip(best.history, likelihood, strict=True)
        history = [{"objective": value, "log_likelihood": evidence} for value, evidence in both]
        told |= {f"{name}_": np.array([entry[name] for entry in history]) for name in history[0]}
        told |= {"floor_": best.params.floor, "ridge_": lesson.ridge}
        notes = {} if best.converged else {"not_converged": NOT_CONVERGED.format(best.n_iter)}
        return FitResult(as_module(weights, n_classes, lesson.ridge), history, posterior, told, notes)

    def _proba(self, module: Any, rows: Rows) -> Array:
        return module_proba(module, rows)


class FixedDifficultyEM(DifficultyEM):
    """Logistic regression learnt with workers' abilities, on items as hard as their votes are split (Fixed).

    Abilities stay at what the vote says of workers, and the easiness never moves: this is exact EM. Judged by votes
    that are easy where they agree, all workers would seem perfect: see `ability_update` of `DifficultyEM`, whose
    parameters these are.

    Parameters
    ----------
    difficulty : "votes", or another one of `DifficultyEM`
    floor : 0, or another one of `DifficultyEM`
    prior, ability_update, errors, right, wrong, precision, most_ability : as in `DifficultyEM`
    ridge, standardise, newton_steps, max_iter, tol, n_init, random_state : as in `DifficultyEM`

    Examples
    --------
    >>> from manyhands import Annotations, FixedDifficultyEM
    >>> votes = Annotations.from_matrix([[0, 0, 1], [1, 1, 1], [0, 0, 0], [1, 0, 1]])
    >>> model = FixedDifficultyEM().fit([[0.0], [1.0], [0.0], [1.0]], votes)
    >>> model.difficulty_.round(2).tolist()
    [0.94, 0.44, 0.44, 0.94]
    """

    def __init__(
        self, difficulty: str = "votes", floor: float | None = 0.0, **others: Unpack[DifficultyParameters]
    ) -> None:
        super().__init__(difficulty=difficulty, floor=floor, **others)


@dataclass(frozen=True, eq=False)
class Regression:
    """A view of items by their features; its parameters are weights."""

    X: Any  # (n, n_features), array or scipy matrix
    ridge: float
    steps: int
    n_classes: int

    def solve(self, posterior: Array, previous: Array | None) -> Array:
        before = np.zeros((self.X.shape[1] + 1, n_columns(self.n_classes))) if previous is None else previous
        return climb(self.X, posterior, before, self.ridge, self.steps)

    def log_proba(self, weights: Array) -> Array:
        return log_proba(self.X, weights, self.n_classes)

    def log_penalty(self, weights: Array) -> float:
        return -penalty(weights, self.n_classes, self.ridge)
