"""Raykar's method: logistic regression and the workers' confusion matrices, estimated jointly by EM.

    p(k | x) = softmax(x V + b)[k],   p(label = l | truth = k, worker = w) = confusion[w, k, l]
    E step: r_ik ~ p(k | x_i) prod_w confusion[w, k, label_iw]
    M step: V, b by Newton steps on targets r;   confusion by expected counts

With two classes, confusion[w, 1, 1] is the paper's sensitivity and confusion[w, 0, 0] its specificity.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from manyhands.classifiers.base import CrowdClassifier
from manyhands.classifiers.regression import as_module, module_proba, n_columns, regression_data
from manyhands.classifiers.training_context import TrainingContext
from manyhands.classifiers.training_data import FitResult
from manyhands.em.classifier_em import Gold, class_names, log_confusions, posterior_given
from manyhands.em.driver import EMResult, run_em
from manyhands.em.kernels import Array, Packed, pack
from manyhands.features import Rows
from manyhands.linear.softmax_regression import as_matrix, log_proba, newton_ascent, penalty
from manyhands.noise import pseudo_count_matrix
from manyhands.randomness import Seed
from manyhands.validation import Boolean, Constraint, NoneOr, Number, RandomState


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
    classes_ : ndarray of shape (n_classes,)
        The classes, as in the annotations.
    worker_ids_ : ndarray of shape (n_workers,)
        The workers, as in the annotations.
    worker_accuracy_ : ndarray of shape (n_workers,)
        Expected share of correct labels of each worker, with one pseudo-count of accuracy 0.7.
    posterior_ : ndarray of shape (n_items, n_classes)
        Posterior of the training items given features and labels; rows sum to 1.
    history_ : list of dict
        One dict per iteration.
    module_ : sklearn.linear_model.LogisticRegression
        The weights found, for features as they were given.
    notes_ : dict of str to str
        What the data do not allow to conclude, by code; each was issued as a `CrowdWarning`.
    n_features_in_ : int
        Number of columns of X in `fit`; only where a row is a vector, not an image.
    feature_names_in_ : ndarray of str of shape (n_features_in_,)
        Names of the columns of X in `fit`; only where X was a data frame with string names.

    References
    ----------
    V. Raykar et al. (2010), Learning from crowds, Journal of Machine Learning Research 11.

    Examples
    --------
    >>> from manyhands import Annotations, Raykar
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
        problem = regression_data(data, X, self)
        active = np.bincount(problem.votes.worker, minlength=problem.votes.n_workers) > 0
        packed, ridge = pack(problem.votes), problem.ridge
        steps = RaykarSteps(problem.rows.X, packed, problem.gold, active, n_columns(n_classes), ridge, self)
        runs = [steps.run(start) for start in problem.starts(steps.pseudo, self)]
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
    """What EM estimates.

    Attributes
    ----------
    weights : ndarray of shape (n_features + 1, n_columns)
        Weights of the regression, the intercept last.
    log_confusion : ndarray of shape (n_workers, n_classes, n_classes)
        Log confusion matrices.
    """

    weights: Array
    log_confusion: Array


@dataclass(frozen=True, eq=False)
class RaykarSteps:
    """E step and M step for `run_em`; the statistics are the posterior of the items with a label or gold.

    Attributes
    ----------
    X : array or sparse matrix of shape (n, n_features)
        Features.
    packed : Packed
        Labels.
    gold : ndarray of shape (n,) or None
        Known classes.
    active : ndarray of bool of shape (n_workers,)
        Workers with labels; only their priors are part of the objective.
    n_columns : int
        Columns of the weights: 1 for two classes, otherwise n_classes.
    ridge : float
        L2 penalty.
    method : Raykar
        The estimator with its parameters.
    """

    X: Any
    packed: Packed
    gold: Gold
    active: npt.NDArray[np.bool_]
    n_columns: int
    ridge: float
    method: Raykar

    @cached_property
    def pseudo(self) -> Array:
        """Pseudo-counts of the cells of a confusion matrix, (n_classes, n_classes)."""
        return pseudo_count_matrix(self.packed.n_classes, self.method.right, self.method.wrong)

    def run(self, start: Array) -> EMResult[RaykarParams]:
        """Run EM from a posterior; if it ends with permuted classes, run it again from the permuted posterior.

        The likelihood does not depend on class names. If the workers' expected accuracy is highest under another
        assignment of names, the classes were permuted. With gold the names are identified.

        Parameters
        ----------
        start : ndarray of shape (n, n_classes)
            Initial posterior.

        Returns
        -------
        EMResult
        """
        max_iter, tol = self.method.max_iter, self.method.tol
        found = run_em(self, start.ravel(), max_iter=max_iter, tol=tol, what="Raykar")
        order = class_names(np.exp(found.params.log_confusion[self.active]))
        if self.gold is not None or (order == np.arange(len(order))).all():
            return found
        posterior = self.expect(found.params)[0].reshape(-1, len(order))[:, order]
        again = run_em(self, posterior.ravel(), max_iter=max_iter, tol=tol, what="Raykar")
        return again if again.history[-1] >= found.history[-1] else found

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
        posterior, found = posterior_given(self.packed, params.log_confusion, log_f, self.gold)
        objective = found.evidence - penalty(params.weights, self.packed.n_classes, self.ridge)
        if self.gold is not None:  # items with gold but without labels are not in the evidence yet
            lone = np.flatnonzero(np.diff(self.packed.start) == 0)
            objective += float(log_f[lone, self.gold[lone]].sum())
        return posterior.ravel(), objective + float((self.pseudo * params.log_confusion[self.active]).sum())
