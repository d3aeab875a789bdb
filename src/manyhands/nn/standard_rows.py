"""Linear classifiers of standardised rows: back to features as given, and one class against the rest; no torch."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import log_expit, softmax

from manyhands.kernels import Array
from manyhands.nn.inputs import Rows
from manyhands.nn.softmax_regression import as_matrix

_STRETCH = 1024  # rows looked at together


def standardised(rows: Rows) -> tuple[Any, Array, Array]:
    """X divided by its features' spreads (1 where there is none), their means, their spreads; sparse stays sparse."""
    from scipy.sparse import diags_array

    X = as_matrix(rows)
    sparse = hasattr(X, "tocsr")
    mean = np.asarray(X.mean(axis=0)).ravel()
    variance = np.asarray(X.multiply(X).mean(axis=0)).ravel() - mean**2 if sparse else X.var(axis=0)
    constant = variance <= 1e-12 * (variance + mean**2)
    spread = np.sqrt(np.where(constant, 1.0, variance))
    return (X @ diags_array(1 / spread)).tocsr() if sparse else X / spread, mean, spread


def in_raw_features(w: Array, mean: Array, spread: Array) -> Array:
    """(n_problems, n_features + 1) the same classifier for rows as they were given, its intercept last."""
    coef = w[:-1].T / spread
    return np.column_stack([coef, w[-1] - coef @ mean])


def one_against_rest(coef: Array, intercept: Array, rows: Rows, n_classes: int) -> Array:
    """(n_rows, n_classes) the sigmoid of each class, divided by their sum; for two classes, that of the second."""
    proba = []
    for first in range(0, len(rows), _STRETCH):
        index = np.arange(first, min(first + _STRETCH, len(rows)))
        score = rows.take(index).reshape(len(index), -1).astype(float) @ coef.T + intercept
        log_proba = log_expit(np.hstack([-score, score]) if n_classes == 2 else score)
        proba.append(softmax(log_proba, axis=1) if n_classes > 1 else np.ones((len(index), 1)))
    return np.concatenate(proba)
