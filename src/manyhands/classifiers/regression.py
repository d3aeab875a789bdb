"""Logistic regression within EM: preconditioned features, initial posteriors, and weights as scikit-learn's."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from manyhands.annotations import Annotations
from manyhands.classifiers.training_data import TrainingData
from manyhands.em.classifier_em import Gold, initial_posteriors
from manyhands.em.kernels import Array
from manyhands.features import Rows
from manyhands.linear.principal_axes import PrincipalAxes, rotate_to_principal_axes
from manyhands.linear.softmax_regression import as_matrix, log_proba
from manyhands.randomness import Seed, make_generator

_RIDGE = 0.1  # share of the sum of the features' variances; chosen for `Raykar` by held-out labels of ten crowds


class RegressionMethod(Protocol):
    """An estimator with the parameters of a regression within EM.

    Attributes
    ----------
    ridge : float or None
        L2 penalty; None chooses one by the features' variances.
    standardise : bool
        Whether features are divided by their standard deviations.
    n_init : int
        Number of starts.
    random_state : int, Generator or None
        Seed of the random starts.
    """

    ridge: float | None
    standardise: bool
    n_init: int
    random_state: Seed


class RegressionData(NamedTuple):
    """The items with a label or gold, on which a regression within EM is trained.

    Attributes
    ----------
    items : ndarray of shape (n,)
        Codes of these items.
    votes : Annotations
        Their labels.
    gold : ndarray of shape (n,) or None
        Their known classes.
    rows : PrincipalAxes
        Their features along principal axes, in which Newton steps converge fast.
    ridge : float
        The L2 penalty in use.
    """

    items: npt.NDArray[np.intp]
    votes: Annotations
    gold: Gold
    rows: PrincipalAxes
    ridge: float

    def starts(self, pseudo: Array, method: RegressionMethod) -> list[Array]:
        """Return the initial posteriors of EM: from the votes, from gold where needed, and `n_init - 1` random ones.

        Parameters
        ----------
        pseudo : ndarray
            Pseudo-counts of the confusion matrices.
        method : RegressionMethod
            The estimator.

        Returns
        -------
        list of ndarray of shape (n, n_classes)
        """
        random = make_generator(method.random_state).spawn(method.n_init - 1)
        return initial_posteriors(self.votes, self.gold, pseudo, random)


def regression_data(data: TrainingData, X: Any, method: RegressionMethod) -> RegressionData:
    """Select and transform the training items of a regression within EM.

    Parameters
    ----------
    data : TrainingData
        All items.
    X : array or sparse matrix
        Their features as a matrix.
    method : RegressionMethod
        The estimator.

    Returns
    -------
    RegressionData
    """
    votes, gold = data.annotations, data.gold
    items = np.flatnonzero((votes.n_labels > 0) | (False if gold is None else gold >= 0))
    rows = rotate_to_principal_axes(X[items], standardise=method.standardise)
    ridge = float(method.ridge or _RIDGE * rows.variance or 1.0)  # without any variance, its value has no effect
    return RegressionData(items, votes[items], None if gold is None else gold[items], rows, ridge)


def n_columns(n_classes: int) -> int:
    """Return the number of weight columns: one for two classes, otherwise one per class."""
    return 1 if n_classes == 2 else n_classes


def as_module(weights: Array, n_classes: int, ridge: float) -> Any:
    """Return the weights as a scikit-learn LogisticRegression.

    Parameters
    ----------
    weights : ndarray of shape (n_features + 1, n_columns)
        The intercept last.
    n_classes : int
        Number of classes.
    ridge : float
        L2 penalty.

    Returns
    -------
    sklearn.linear_model.LogisticRegression
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
