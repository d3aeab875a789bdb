"""Standardised features along their principal axes, and weights of a linear model back in raw features; no torch.

Features are centred, divided by their standard deviations, and rotated by an orthonormal matrix whose columns are the
eigenvectors of the Gram matrix. A rotation changes neither scores nor an L2 penalty, so a ridge-penalised linear model
is the same before and after; but along principal axes the Hessian of its loss is nearly diagonal, and Newton steps
solved by conjugate gradients with a diagonal (Jacobi) preconditioner need few iterations.

There are two ways to the axes, for two kinds of solver:

    `rotate_to_principal_axes`
        Dense rows only: QR where there are more features than rows, then the eigenvectors of the Gram matrix. Sparse
        rows are scaled, neither centred nor rotated.
    `standardise_and_rotate`
        Dense and sparse rows: the eigenvectors of the smaller of the two Gram matrices, without the null space. Rows
        too large to rotate are centred implicitly, by `PrincipalAxes.shift`.

Both are kept because they round differently, and results are reproducible to the last bit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from manyhands.em.kernels import Array
from manyhands.features import Rows
from manyhands.linear.softmax_regression import as_matrix

# Beyond this size of the smaller of (n_rows, n_features) the eigenvectors cost more time than they save later.
_MAX_AXES = 2048  # for `rotate_to_principal_axes`, whose rows serve many Newton steps
_MAX_SPAN_AXES = 1024  # for `standardise_and_rotate`
_MAX_DENSE_BYTES = 1 << 29  # of a sparse matrix and its axes in dense form; a larger one stays sparse


@dataclass(frozen=True, eq=False)
class PrincipalAxes:
    """Standardised rows along principal axes, with the way back to raw features.

    A raw row x corresponds to ``(x - mean) / spread @ axes``, which is a row of ``X - shift``.

    Attributes
    ----------
    X : array or CSR matrix of shape (n_rows, n_axes)
        The transformed rows, without the subtraction of `shift`.
    mean : array of shape (n_features,)
        Mean that is subtracted from each raw feature; 0 where `rotate_to_principal_axes` leaves sparse rows uncentred.
    spread : array of shape (n_features,)
        Standard deviation by which each raw feature is divided; 1 for constant features.
    axes : array of shape (n_features, n_axes) or None
        Orthonormal columns; None where X is not rotated, so that ``n_axes == n_features``.
    shift : array of shape (n_axes,)
        What still has to be subtracted from the rows of `X`: 0 unless sparse rows are centred implicitly.
    variance : float
        Total variance: the sum over features after scaling.
    """

    X: Any
    mean: Array
    spread: Array
    axes: Array | None
    shift: Array
    variance: float

    def in_raw_features(self, weights: Array) -> Array:
        """Weights that give the same scores from raw rows; one classifier per column.

        Parameters
        ----------
        weights : array of shape (n_axes + 1, n_columns)
            Weights along the axes, the intercepts in the last row.

        Returns
        -------
        array of shape (n_features + 1, n_columns)
            Weights of raw features, the intercepts in the last row.
        """
        along = weights[:-1] if self.axes is None else self.axes @ weights[:-1]
        coef = along / self.spread[:, None]
        return np.vstack([coef, weights[-1] - self.mean @ coef])

    def raw(self, w: Array) -> Array:
        """`in_raw_features` in scikit-learn's layout: one classifier per row.

        It is not the transpose of the other method to the last bit, since a matrix product rounds differently when it
        is transposed.

        Parameters
        ----------
        w : array of shape (n_problems, n_axes + 1)
            Weights along the axes, the intercepts in the last column.

        Returns
        -------
        array of shape (n_problems, n_features + 1)
            Weights of raw features, the intercepts in the last column.
        """
        coef = (w[:, :-1] if self.axes is None else w[:, :-1] @ self.axes.T) / self.spread
        return np.column_stack([coef, w[:, -1] - coef @ self.mean])


def rotate_to_principal_axes(X: Any, *, standardise: bool = True) -> PrincipalAxes:
    """Centre and scale rows, and rotate dense ones to their principal axes.

    Parameters
    ----------
    X : array or scipy sparse matrix of shape (n_rows, n_features)
        At least one row. A sparse matrix is scaled, but neither centred nor rotated, and stays sparse.
    standardise : bool, default=True
        Divide each feature by its standard deviation. Otherwise features are only centred and rotated.

    Returns
    -------
    PrincipalAxes
        With at most ``min(n_rows, n_features)`` axes; not rotated where that number is above 2048.
    """
    mean, variance = moments(X)
    spread = _standard_deviation(variance) if standardise else np.ones_like(mean)
    total = float((variance / spread**2).sum())
    zero = np.zeros_like(mean)
    if _is_sparse(X):
        return PrincipalAxes(_scaled(X, spread), zero, spread, None, zero, total)
    scaled = (X - mean) / spread
    if min(scaled.shape) > _MAX_AXES:
        return PrincipalAxes(scaled, mean, spread, None, zero, total)
    axes = np.linalg.qr(scaled.T)[0] if scaled.shape[0] < scaled.shape[1] else np.eye(scaled.shape[1])
    within = scaled @ axes
    rotation = np.linalg.eigh(within.T @ within)[1]
    return PrincipalAxes(within @ rotation, mean, spread, axes @ rotation, np.zeros(axes.shape[1]), total)


def standardise_and_rotate(rows: Rows) -> PrincipalAxes:
    """Scale rows by their standard deviations, and rotate them to the axes that they span if they are small enough.

    Parameters
    ----------
    rows : Rows
        Rows of X, as `as_rows` gives them; rows of any shape are flattened.

    Returns
    -------
    PrincipalAxes
        Dense and centred, with as many axes as the centred rows have rank (at least one). Where the smaller side is
        above 1024, or a sparse matrix would need more than 512 MB in dense form, rows are only scaled: `shift` then
        holds their mean, and a sparse matrix stays sparse.
    """
    X = as_matrix(rows)
    mean, variance = moments(X)
    spread = _standard_deviation(variance)
    total = float((variance / spread**2).sum())
    X = _scaled(X, spread)
    shift, smaller = mean / spread, min(X.shape)
    if smaller > _MAX_SPAN_AXES or (_is_sparse(X) and 8 * smaller * sum(X.shape) > _MAX_DENSE_BYTES):
        return PrincipalAxes(X, mean, spread, None, shift, total)
    axes = span_axes(X, shift)
    centred = np.asarray(X @ axes) - shift @ axes
    return PrincipalAxes(centred, mean, spread, axes, np.zeros(axes.shape[1]), total)


def moments(X: Any) -> tuple[Array, Array]:
    """Mean and variance of each column.

    Parameters
    ----------
    X : array or scipy sparse matrix of shape (n_rows, n_features)
        At least one row.

    Returns
    -------
    mean : array of shape (n_features,)
        Means.
    variance : array of shape (n_features,)
        Population variances; exactly 0 where a column varies by no more than rounding.
    """
    mean = np.asarray(X.mean(axis=0)).ravel()
    variance = np.asarray(X.multiply(X).mean(axis=0)).ravel() - mean**2 if _is_sparse(X) else X.var(axis=0)
    return mean, np.where(variance <= 1e-12 * (variance + mean**2), 0.0, variance)


def span_axes(X: Any, shift: Array) -> Array:
    """Orthonormal basis of the space that the rows of ``X - shift`` span, along their principal axes.

    The eigenvectors of the smaller Gram matrix: (X - s)'(X - s) where there are no more features than rows, else
    (X - s)(X - s)', whose eigenvectors u give the axes (X - s)'u / sqrt(eigenvalue). Neither needs X - s itself, so
    X may be sparse.

    Parameters
    ----------
    X : array or scipy sparse matrix of shape (n_rows, n_features)
        Rows.
    shift : array of shape (n_features,)
        The mean of the rows.

    Returns
    -------
    array of shape (n_features, rank)
        Orthonormal columns; the first unit vector alone where all rows are equal.
    """
    n_rows, n_features = X.shape
    if n_features <= n_rows:
        gram = _dense(X.T @ X) - n_rows * np.outer(shift, shift)
    else:
        along = X @ shift
        gram = _dense(X @ X.T) - along[:, None] - along + shift @ shift
    eigenvalue, vectors = np.linalg.eigh(gram)
    positive = eigenvalue > 1e-13 * max(eigenvalue[-1], 1e-300) * len(eigenvalue)
    if not positive.any():
        return np.eye(n_features, 1)
    axes = vectors[:, positive]
    if n_features <= n_rows:
        return axes
    return (X.T @ axes - np.outer(shift, axes.sum(axis=0))) / np.sqrt(eigenvalue[positive])


def _standard_deviation(variance: Array) -> Array:
    """Square root of each variance; 1 where it is 0."""
    return np.sqrt(np.where(variance > 0, variance, 1.0))


def _scaled(X: Any, spread: Array) -> Any:
    """X with each column divided by its spread; a sparse matrix as CSR."""
    if not _is_sparse(X):
        return X / spread
    from scipy.sparse import diags_array

    return (X @ diags_array(1 / spread)).tocsr()


def _is_sparse(X: Any) -> bool:
    return hasattr(X, "tocsr")


def _dense(matrix: Any) -> Array:
    return np.asarray(matrix.toarray() if hasattr(matrix, "toarray") else matrix)
