"""Raykar's method: logistic regression and the workers' confusion matrices, estimated jointly by EM.

    p(k | x) = softmax(x V + b)[k],   p(label = l | truth = k, worker = w) = confusion[w, k, l]
    E step: r_ik ~ p(k | x_i) prod_w confusion[w, k, label_iw]
    M step: V, b by Newton steps on targets r;   confusion by expected counts

With two classes, confusion[w, 1, 1] is the paper's sensitivity and confusion[w, 0, 0] its specificity.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from manyhands._core.arrays import Array
from manyhands._core.randomness import Seed, make_generator
from manyhands.annotations import Annotations
from manyhands.classifiers.base import CrowdClassifier
from manyhands.classifiers.network import FitResult, TrainingContext, TrainingData
from manyhands.em.driver import EMResult, run_em
from manyhands.em.e_step import Gold, class_names, initial_posteriors, log_confusions, posterior_given
from manyhands.em.kernels import Packed, pack
from manyhands.em.noise import pseudo_count_matrix
from manyhands.features import Rows
from manyhands.linear import PrincipalAxes, as_matrix, log_proba, newton_ascent, penalty, rotate_to_principal_axes
from manyhands.validation import Boolean, Constraint, NoneOr, Number, RandomState

# ----------------------------------------------------------------------------------------------------
# Logistic regression within EM: preconditioned features, initial posteriors, and weights as scikit-learn's.

_RIDGE = 0.1  # share of the sum of the features' variances; chosen for `Raykar` by held-out labels of ten crowds


class RegressionData(NamedTuple):
    """The items with a label or gold, on which a regression within EM is trained."""

    items: npt.NDArray[np.intp]  # (n,); codes of these items
    votes: Annotations
    gold: Gold  # (n,)
    rows: PrincipalAxes  # their features along principal axes, in which Newton steps converge fast
    ridge: float  # the L2 penalty in use

    def starts(self, pseudo: Array, n_init: int, random_state: Seed) -> list[Array]:
        """Return the initial posteriors of EM: from the votes, from gold where needed, and `n_init - 1` random ones."""
        random = make_generator(random_state).spawn(n_init - 1)
        return initial_posteriors(self.votes, self.gold, pseudo, random)


def regression_data(data: TrainingData, X: Any, ridge: float | None, *, standardise: bool) -> RegressionData:
    """Select and transform the training items of a regression within EM; features choose a ridge that is None."""
    votes, gold = data.annotations, data.gold
    items = np.flatnonzero((votes.n_labels > 0) | (False if gold is None else gold >= 0))
    rows = rotate_to_principal_axes(X[items], standardise=standardise)
    ridge = float(ridge or _RIDGE * rows.variance or 1.0)  # without any variance, its value has no effect
    return RegressionData(items, votes[items], None if gold is None else gold[items], rows, ridge)


def n_columns(n_classes: int) -> int:
    """Return the number of weight columns: one for two classes, otherwise one per class."""
    return 1 if n_classes == 2 else n_classes


def as_module(weights: Array, n_classes: int, ridge: float) -> Any:
    """Return the weights as a scikit-learn LogisticRegression.

    Shapes: weights (n_features + 1, n_columns).
    """
    from sklearn.linear_model import LogisticRegression

    module = LogisticRegression(C=(2 if n_classes == 2 else 1) / ridge)  # one column serves two classes
    module.coef_, module.intercept_ = weights[:-1].T.copy(), weights[-1].copy()
    module.classes_, module.n_features_in_ = np.arange(n_classes), len(weights) - 1
    return module


def module_proba(module: Any, rows: Rows) -> Array:
    """Return p(k | x) of these rows by a module made by `as_module`, (n_rows, n_classes)."""
    weights = np.vstack([module.coef_.T, module.intercept_])
    return np.exp(log_proba(as_matrix(rows), weights, len(module.classes_)))


class Raykar(CrowdClassifier):
    """Logistic regression with a confusion matrix per worker, estimated jointly by EM.

    Sensitivity and specificity per worker with two classes, as in the paper; full confusion matrices with more. Use it
    where a linear classifier fits the features: EM is exact, fast and needs no torch. Items without labels and gold
    are not used. Features are standardised internally; `module_` takes them as given.

    Parameters
    ----------
    ridge : float or None, default=None
        L2 penalty: `ridge / 2` times the squared weights; intercepts are free. None is a tenth of the sum of the
        features' variances.
    standardise : bool, default=True
        Whether features are divided by their standard deviations; False is better where all have one unit, such as
        pixels, word counts or activations.
    right : float, default=1.0
        Pseudo-count added to each worker's correct labels in every class (Beta or Dirichlet prior).
    wrong : float, default=0.5
        Pseudo-count added to each worker's wrong labels in every class.
    newton_steps : int, default=5
        Maximal number of Newton steps of the regression in each M step.
    max_iter : int, default=200
        Maximal number of EM iterations.
    tol : float, default=1e-06
        Stop when the objective is estimated to be within this share of its optimum.
    n_init : int, default=1
        Number of starts: the first from the vote shares, the others random. Where the vote is wrong on most gold items
        beyond chance, a start from gold is added.
    random_state : int, numpy.random.Generator or None, default=None
        Seed of the random starts.

    Attributes
    ----------
    confusion_ : ndarray of shape (n_workers, n_classes, n_classes)
        Confusion matrix of each worker; rows (over the label) sum to 1.
    objective_ : ndarray of shape (n_iterations,)
        Penalised log-likelihood after each iteration; it never decreases. Also in `history_`.
    ridge_ : float
        The penalty in use.
    module_ : sklearn.linear_model.LogisticRegression
        The weights found, for features as they were given.

    References
    ----------
    V. Raykar et al. (2010), Learning from crowds, Journal of Machine Learning Research 11.

    Examples
    --------
    >>> from manyhands import Annotations
    >>> from manyhands.classifiers import Raykar
    >>> votes = Annotations.from_matrix([[0, 0, 1], [1, 1, 1], [0, 0, 0], [1, 0, 1]])
    >>> model = Raykar().fit([[0.0], [1.0], [0.0], [1.0]], votes)
    >>> model.predict([[0.1], [0.9]]).tolist()
    [0, 1]
    """

    _constraints: ClassVar[dict[str, Constraint]] = {
        "ridge": NoneOr(Number(above=0)),
        "standardise": Boolean(),
        "right": Number(above=0),
        "wrong": Number(above=0),
        "newton_steps": Number(whole=True, least=1),
        "max_iter": Number(whole=True, least=1),
        "tol": Number(least=0),
        "n_init": Number(whole=True, least=1),
        "random_state": RandomState(),
    }

    confusion_: Array
    objective_: Array
    ridge_: float

    def __init__(
        self,
        ridge: float | None = None,
        standardise: bool = True,
        right: float = 1.0,
        wrong: float = 0.5,
        newton_steps: int = 5,
        max_iter: int = 200,
        tol: float = 1e-6,
        n_init: int = 1,
        random_state: Seed = None,
    ) -> None:
        self.ridge = ridge
        self.standardise = standardise
        self.right = right
        self.wrong = wrong
        self.newton_steps = newton_steps
        self.max_iter = max_iter
        self.tol = tol
        self.n_init = n_init
        self.random_state = random_state

    def _learn(self, context: TrainingContext) -> FitResult:
        data = context.data
        X, n_classes = as_matrix(data.rows), data.annotations.n_classes
        problem = regression_data(data, X, self.ridge, standardise=self.standardise)
        active = np.bincount(problem.votes.worker, minlength=problem.votes.n_workers) > 0
        packed, ridge = pack(problem.votes), problem.ridge
        steps = RaykarSteps(problem.rows.X, packed, problem.gold, active, n_columns(n_classes), ridge, self)
        runs = [steps.run(start) for start in problem.starts(steps.pseudo, self.n_init, self.random_state)]
        best = max(runs, key=lambda run: run.history[-1])
        weights, table = problem.rows.in_raw_features(best.params.weights), best.params.log_confusion
        posterior, _ = posterior_given(pack(data.annotations), table, log_proba(X, weights, n_classes), data.gold)
        results = {"confusion_": np.exp(table), "objective_": np.array(best.history), "ridge_": ridge}
        history = [{"objective": value} for value in best.history]
        return FitResult(as_module(weights, n_classes, ridge), history, posterior, results)

    def _trains_network(self) -> bool:
        return False

    def _proba(self, module: Any, rows: Rows) -> Array:
        return module_proba(module, rows)


@dataclass(frozen=True)
class RaykarParams:
    """What EM estimates."""

    weights: Array  # (n_features + 1, n_columns); weights of the regression, the intercept last
    log_confusion: Array  # (n_workers, n_classes, n_classes)


@dataclass(frozen=True, eq=False)
class RaykarSteps:
    """E step and M step for `run_em`; the statistics are the posterior of the items with a label or gold."""

    X: Any  # (n, n_features)
    packed: Packed
    gold: Gold  # (n,)
    active: npt.NDArray[np.bool_]  # (n_workers,); workers with labels; only their priors are part of the objective
    n_columns: int  # columns of the weights: 1 for two classes, otherwise n_classes
    ridge: float
    method: Raykar  # the estimator with its parameters

    @cached_property
    def pseudo(self) -> Array:
        """Pseudo-counts of the cells of a confusion matrix, (n_classes, n_classes)."""
        return pseudo_count_matrix(self.packed.n_classes, self.method.right, self.method.wrong)

    def run(self, start: Array) -> EMResult[RaykarParams]:
        """Run EM from a posterior; if it ends with permuted classes, run it again from the permuted posterior.

        The likelihood does not depend on class names. If the workers' expected accuracy is highest under another
        assignment of names, the classes were permuted. With gold the names are identified.

        Shapes: start (n, n_classes).
        """
        max_iter, tol = self.method.max_iter, self.method.tol
        result = run_em(self, start.ravel(), max_iter=max_iter, tol=tol, what="Raykar")
        order = class_names(np.exp(result.params.log_confusion[self.active]))
        if self.gold is not None or (order == np.arange(len(order))).all():
            return result
        posterior = self.expect(result.params)[0].reshape(-1, len(order))[:, order]
        again = run_em(self, posterior.ravel(), max_iter=max_iter, tol=tol, what="Raykar")
        return again if again.history[-1] >= result.history[-1] else result

    def maximise(self, statistics: Array, previous: RaykarParams | None) -> RaykarParams:
        """M step: weights and confusion matrices given the posterior."""
        posterior = statistics.reshape(-1, self.packed.n_classes) + np.finfo(float).tiny
        posterior /= posterior.sum(axis=1, keepdims=True)  # an extrapolation need not sum to 1
        before = np.zeros((self.X.shape[1] + 1, self.n_columns)) if previous is None else previous.weights
        weights = newton_ascent(self.X, posterior, before, self.ridge, self.method.newton_steps)
        return RaykarParams(weights, log_confusions(self.packed, posterior, self.pseudo))

    def expect(self, params: RaykarParams) -> tuple[Array, float]:
        """E step: the posterior given weights and confusion matrices, and the objective."""
        log_f = log_proba(self.X, params.weights, self.packed.n_classes)
        posterior, e_step = posterior_given(self.packed, params.log_confusion, log_f, self.gold)
        objective = e_step.evidence - penalty(params.weights, self.packed.n_classes, self.ridge)
        if self.gold is not None:  # items with gold but without labels are not in the evidence yet
            lone = np.flatnonzero(np.diff(self.packed.start) == 0)
            objective += float(log_f[lone, self.gold[lone]].sum())
        return posterior.ravel(), objective + float((self.pseudo * params.log_confusion[self.active]).sum())
