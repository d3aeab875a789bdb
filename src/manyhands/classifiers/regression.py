"""Logistic regression within EM: features as its Newton steps like them, and its weights as scikit-learn's."""

from __future__ import annotations

from typing import Any

import numpy as np

from manyhands.kernels import Array
from manyhands.nn.inputs import Rows
from manyhands.nn.softmax_regression import as_matrix, log_proba
from manyhands.nn.turned_rows import TurnedRows, turn

_RIDGE = 0.1  # of the features' variances together: chosen for `Raykar`, by held-out labels of ten crowds


def prepare(X: Any, standardise: bool, ridge: float | None) -> tuple[TurnedRows, float]:
    """Rows that are centred and turned, and the ridge in use."""
    turned = turn(X, standardise=standardise)
    return turned, float(ridge or _RIDGE * turned.variance or 1.0)  # without any variance, it matters to nothing


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
