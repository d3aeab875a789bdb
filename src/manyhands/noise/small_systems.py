"""Small linear systems and softmax for Newton's method, with the same bits on every machine: no BLAS, no LAPACK."""

from __future__ import annotations

import numpy as np

from manyhands import elementary
from manyhands.noise import Array
from manyhands.noise.dirichlet import sum_last


def log_normalised(score: Array) -> Array:
    """Log-softmax over the last axis.

    Parameters
    ----------
    score : ndarray of shape (..., n_classes)
        Logarithms up to a constant of each row.

    Returns
    -------
    ndarray of the shape of `score`
    """
    shifted = score - score.max(axis=-1, keepdims=True)
    total = sum_last(elementary.exp(shifted))
    return np.asarray(shifted - elementary.log(total)[..., None])


def solve_positive(vector: Array, matrix: Array) -> Array:
    """Solve small positive definite systems, all at once, by Cholesky's decomposition without LAPACK.

    Parameters
    ----------
    vector : ndarray of shape (n, k)
        Right-hand sides.
    matrix : ndarray of shape (n, k, k)
        Positive definite matrices.

    Returns
    -------
    ndarray of shape (n, k)
        Solutions.

    Examples
    --------
    >>> solve_positive(np.array([[2.0, 3.0]]), np.array([[[2.0, 0.0], [0.0, 1.0]]])).round(6).tolist()
    [[1.0, 3.0]]
    """
    k = vector.shape[1]
    lower, result = np.zeros_like(matrix), vector.copy()
    for i in range(k):
        for j in range(i + 1):
            value = matrix[:, i, j].copy()
            for m in range(j):
                value -= lower[:, i, m] * lower[:, j, m]
            if i == j:
                lower[:, i, i] = np.sqrt(np.maximum(value, np.finfo(float).tiny))
            else:
                lower[:, i, j] = value / lower[:, j, j]
    for i in range(k):  # forward
        for m in range(i):
            result[:, i] -= lower[:, i, m] * result[:, m]
        result[:, i] /= lower[:, i, i]
    for i in reversed(range(k)):  # backward
        for m in range(i + 1, k):
            result[:, i] -= lower[:, m, i] * result[:, m]
        result[:, i] /= lower[:, i, i]
    return result
