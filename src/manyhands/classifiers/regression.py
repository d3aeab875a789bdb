"""Logistic regression within EM: features as its Newton steps like them, and its weights as scikit-learn's."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from manyhands.annotations import Annotations
from manyhands.classifiers.base import TrainingData
from manyhands.em.classifier_em import Gold, guesses
from manyhands.em.kernels import Array
from manyhands.features import Rows
from manyhands.linear.principal_axes import PrincipalAxes, turn
from manyhands.linear.softmax_regression import as_matrix, log_proba
from manyhands.randomness import Seed, make_generator

_RIDGE = 0.1  # of the features' variances together: chosen for `Raykar`, by held-out labels of ten crowds


class RegressionMethod(Protocol):
    """A method with these parameters."""

    ridge: float | None
    standardise: bool
    n_init: int
    random_state: Seed


class RegressionData(NamedTuple):
    """What teaches a regression within EM: the items with a label or gold, and no others."""

    items: npt.NDArray[np.intp]  # (n_taught,) which ones of the task
    votes: Annotations
    gold: Gold
    rows: PrincipalAxes
    ridge: float  # the one in use

    def starts(self, pseudo: Array, method: RegressionMethod) -> list[Array]:
        """(n_taught, n_classes) each, where EM begins: as `guesses` says, with `n_init - 1` draws."""
        random = make_generator(method.random_state).spawn(method.n_init - 1)
        return guesses(self.votes, self.gold, pseudo, random)


def regression_data(data: TrainingData, X: Any, method: RegressionMethod) -> RegressionData:
    """What a task has to teach; `X` are its rows as a matrix."""
    votes, gold = data.annotations, data.gold
    items = np.flatnonzero((votes.n_labels > 0) | (False if gold is None else gold >= 0))
    rows = turn(X[items], standardise=method.standardise)
    ridge = float(method.ridge or _RIDGE * rows.variance or 1.0)  # without any variance, it matters to nothing
    return RegressionData(items, votes[items], None if gold is None else gold[items], rows, ridge)


def n_columns(n_classes: int) -> int:
    """Of the weights: one stands for two classes."""
    return 1 if n_classes == 2 else n_classes


def as_module(weights: Array, n_classes: int, ridge: float) -> Any:
    """The weights as a LogisticRegression, which can be saved and is known everywhere."""
    from sklearn.linear_model import LogisticRegression

    module = LogisticRegression(C=(2 if n_classes == 2 else 1) / ridge)  # one column stands for two
    module.coef_, module.intercept_ = weights[:-1].T.copy(), weights[-1].copy()
    module.classes_, module.n_features_in_ = np.arange(n_classes), len(weights) - 1
    return module


def module_proba(module: Any, rows: Rows) -> Array:
    """(n_rows, n_classes) what a module made by `as_module` says of these rows."""
    weights = np.vstack([module.coef_.T, module.intercept_])
    return np.exp(log_proba(as_matrix(rows), weights, len(module.classes_)))
