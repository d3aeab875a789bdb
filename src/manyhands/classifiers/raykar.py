"""Learning from crowds: logistic regression and the workers' confusion matrices, found together by EM.

    p(k | x) = softmax(x V + b)[k],   p(label = l | truth = k, worker = w) = confusion[w, k, l]
    E: r_ik ~ p(k | x_i) prod_w confusion[w, k, label_iw];   M: V, b by Newton steps on r, confusion by counting

With two classes, confusion[w, 1, 1] is the paper's sensitivity and confusion[w, 0, 0] its specificity.

Reference: V. Raykar et al. (2010), Learning from crowds, Journal of Machine Learning Research 11.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from manyhands.classifiers.base import CrowdClassifier, FitResult, TrainingData
from manyhands.classifiers.regression import as_module, module_proba, n_columns, regression_data
from manyhands.em.classifier_em import Gold, class_names, log_confusions, posterior_of
from manyhands.em.driver import EMResult, run_em
from manyhands.em.kernels import Array, Packed, pack
from manyhands.features import Rows
from manyhands.linear.softmax_regression import as_matrix, climb, log_proba, penalty
from manyhands.noise import labels_beforehand
from manyhands.randomness import Seed
from manyhands.validation import Constraint, Maybe, Number, RandomState, Switch


class Raykar(CrowdClassifier):
    """Logistic regression learnt together with a confusion matrix per worker, by EM.

    The paper's two coins where there are two classes, full matrices where there are more. Items without labels and
    gold teach nothing. Features are standardised inside, and `module_` takes them as given.

    Parameters
    ----------
    ridge : penalty of the weights, `ridge / 2` times their squares; intercepts are free. None is a tenth of the
        features' variances together, a tenth of their number where they are standardised
    standardise : divide features by their spreads; False is better where all have one unit: pixels, words, activations
    right, wrong : labels added to each worker's count of right and of wrong ones, in every class; Beta and Dirichlet
        priors that keep a worker who never met a class from an undefined matrix
    newton_steps : of the regression in each M step, at most
    max_iter, tol : at most this many passes; stop within `tol` of the optimum, as a share of the objective
    n_init : starts; the first is from the vote shares, the others are random. Where the vote is wrong on most gold
        items beyond chance, what gold says of the workers is one more
    random_state : seed of the random starts

    Attributes
    ----------
    confusion_ : (n_workers, n_classes, n_classes), rows (over the label) sum to 1
    objective_ : (n_passes,) the penalised log-likelihood after each pass; it never falls; also in `history_`
    ridge_, module_ : the ridge in use, and a LogisticRegression of scikit-learn with the weights found

    Examples
    --------
    >>> from manyhands import Annotations, Raykar
    >>> votes = Annotations.from_matrix([[0, 0, 1], [1, 1, 1], [0, 0, 0], [1, 0, 1]])
    >>> model = Raykar().fit([[0.0], [1.0], [0.0], [1.0]], votes)
    >>> model.predict([[0.1], [0.9]]).tolist()
    [0, 1]
    """

    _constraints: ClassVar[dict[str, Constraint]] = {
        "ridge": Maybe(Number(above=0)),
        "standardise": Switch(),
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

    def _learn(self, data: TrainingData) -> FitResult:
        X, n_classes = as_matrix(data.rows), data.annotations.n_classes
        lesson = regression_data(data, X, self)
        active = np.bincount(lesson.votes.worker, minlength=lesson.votes.n_workers) > 0
        packed, ridge = pack(lesson.votes), lesson.ridge
        steps = RaykarSteps(lesson.rows.X, packed, lesson.gold, active, n_columns(n_classes), ridge, self)
        runs = [steps.run(start) for start in lesson.starts(steps.pseudo, self)]
        best = max(runs, key=lambda run: run.history[-1])
        weights, table = lesson.rows.in_raw_features(best.params.weights), best.params.log_table
        posterior, _ = posterior_of(pack(data.annotations), table, log_proba(X, weights, n_classes), data.gold)
        results = {"confusion_": np.exp(table), "objective_": np.array(best.history), "ridge_": ridge}
        history = [{"objective": value} for value in best.history]
        return FitResult(as_module(weights, n_classes, ridge), history, posterior, results)

    def _proba(self, module: Any, rows: Rows) -> Array:
        return module_proba(module, rows)


@dataclass(frozen=True)
class RaykarParams:
    """What EM estimates."""

    weights: Array  # (n_features + 1, n_columns), the intercept last
    log_table: Array  # (n_workers, n_classes, n_classes)


@dataclass(frozen=True, eq=False)
class RaykarSteps:
    """The two steps of `run_em`; the statistics are the posterior of the items with a label or gold."""

    X: Any  # (n, n_features), array or scipy matrix
    packed: Packed
    gold: Gold
    active: npt.NDArray[np.bool_]  # (n_workers,) who gave labels: what is believed of others is no objective
    n_columns: int  # of the weights: 1 is the binary form, n_classes the general one
    ridge: float
    method: Raykar

    @cached_property
    def pseudo(self) -> Array:
        return labels_beforehand(self.packed.n_classes, self.method.right, self.method.wrong)

    def run(self, start: Array) -> EMResult[RaykarParams]:
        """EM from this posterior; where that ends with classes under each other's names, again from the right ones.

        Labels alone tie the truth to its name: workers who, all told, are right less often than by chance mean that
        names were exchanged. Gold ties them better.
        """
        max_iter, tol = self.method.max_iter, self.method.tol
        found = run_em(self, start.ravel(), max_iter=max_iter, tol=tol, what="Raykar")
        order = class_names(np.exp(found.params.log_table[self.active]))
        if self.gold is not None or (order == np.arange(len(order))).all():
            return found
        posterior = self.expect(found.params)[0].reshape(-1, len(order))[:, order]
        again = run_em(self, posterior.ravel(), max_iter=max_iter, tol=tol, what="Raykar")
        return again if again.history[-1] >= found.history[-1] else found

    def maximise(self, statistics: Array, previous: RaykarParams | None) -> RaykarParams:
        posterior = statistics.reshape(-1, self.packed.n_classes) + np.finfo(float).tiny
        posterior /= posterior.sum(axis=1, keepdims=True)  # an extrapolation need not sum to 1
        before = np.zeros((self.X.shape[1] + 1, self.n_columns)) if previous is None else previous.weights
        weights = climb(self.X, posterior, before, self.ridge, self.method.newton_steps)
        return RaykarParams(weights, log_confusions(self.packed, posterior, self.pseudo))

    def expect(self, params: RaykarParams) -> tuple[Array, float]:
        log_f = log_proba(self.X, params.weights, self.packed.n_classes)
        posterior, found = posterior_of(self.packed, params.log_table, log_f, self.gold)
        objective = found.evidence - penalty(params.weights, self.packed.n_classes, self.ridge)
        if self.gold is not None:  # items that only gold speaks of are no part of the evidence yet
            lone = np.flatnonzero(np.diff(self.packed.start) == 0)
            objective += float(log_f[lone, self.gold[lone]].sum())
        return posterior.ravel(), objective + float((self.pseudo * params.log_table[self.active]).sum())
