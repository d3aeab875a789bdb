"""Linear classifiers of standardised rows: back to features as given, and one class against the rest; no torch."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.special import log_expit, softmax

from manyhands.em.kernels import Array
from manyhands.features import Rows
from manyhands.linear.softmax_regression import as_matrix

_STRETCH = 1024  # rows looked at together
_AXES = 1024  # features or rows beyond which no axes are sought
_DENSE = 1 << 29  # bytes beyond which sparse stays sparse


class Standard(NamedTuple):
    """Rows whose features have mean 0 and spread 1 once `shift` is subtracted, along `axes` where there are any."""

    X: Any  # dense or CSR
    shift: Array
    mean: Array
    spread: Array
    axes: Array | None

    def raw(self, w: Array) -> Array:
        """(n_problems, n_features + 1) the same classifier for rows as they were given, its intercept last."""
        coef = (w[:, :-1] if self.axes is None else w[:, :-1] @ self.axes.T) / self.spread
        return np.column_stack([coef, w[:, -1] - coef @ self.mean])


def standardised(rows: Rows) -> Standard:
    """X divided by its features' spreads (1 where there is none), then turned to its principal axes if it is small.

    Lengths and scores are the same along any axes, but along these the curvature of a loss is nearly diagonal.
    """
    from scipy.sparse import diags_array

    X = as_matrix(rows)
    sparse = hasattr(X, "tocsr")
    mean, variance = moments(X)
    spread = np.sqrt(np.where(variance > 0, variance, 1.0))
    X = (X @ diags_array(1 / spread)).tocsr() if sparse else X / spread
    shift, few = mean / spread, min(X.shape)
    if few > _AXES or (sparse and 8 * few * sum(X.shape) > _DENSE):
        return Standard(X, shift, mean, spread, None)
    axes = principal_axes(X, shift)
    return Standard(np.asarray(X @ axes) - shift @ axes, np.zeros(axes.shape[1]), mean, spread, axes)


def moments(X: Any) -> tuple[Array, Array]:
    """(n_features,) mean and variance of each column, dense or sparse; 0 where only rounding varies."""
    mean = np.asarray(X.mean(axis=0)).ravel()
    sparse = hasattr(X, "tocsr")
    variance = np.asarray(X.multiply(X).mean(axis=0)).ravel() - mean**2 if sparse else X.var(axis=0)
    return mean, np.where(variance <= 1e-12 * (variance + mean**2), 0.0, variance)


def principal_axes(X: Any, shift: Array) -> Array:
    """(n_features, rank or 1) orthonormal columns that span the rows less `shift`, from the smaller Gram matrix."""
    n, width = X.shape
    if width <= n:
        gram = _dense(X.T @ X) - n * np.outer(shift, shift)
    else:
        along = X @ shift
        gram = _dense(X @ X.T) - along[:, None] - along + shift @ shift
    size, vectors = np.linalg.eigh(gram)
    seen = size > 1e-13 * max(size[-1], 1e-300) * len(size)
    if not seen.any():
        return np.eye(width, 1)
    axes = vectors[:, seen]
    return axes if width <= n else (X.T @ axes - np.outer(shift, axes.sum(axis=0))) / np.sqrt(size[seen])


def one_against_rest(coef: Array, intercept: Array, rows: Rows, n_classes: int) -> Array:
    """(n_rows, n_classes) the sigmoid of each class, divided by their sum; for two classes, that of the second."""
    proba = []
    for first in range(0, len(rows), _STRETCH):
        index = np.arange(first, min(first + _STRETCH, len(rows)))
        score = rows.take(index).reshape(len(index), -1).astype(float) @ coef.T + intercept
        log_proba = log_expit(np.hstack([-score, score]) if n_classes == 2 else score)
        proba.append(softmax(log_proba, axis=1) if n_classes > 1 else np.ones((len(index), 1)))
    return np.concatenate(proba)


def _dense(matrix: Any) -> Array:
    return np.asarray(matrix.toarray() if hasattr(matrix, "toarray") else matrix)
