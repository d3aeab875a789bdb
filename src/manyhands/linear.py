"""Linear classifiers and their numerical methods; nothing here imports torch.

Class probabilities of one logistic classifier per class; multinomial logistic regression on soft targets by Newton's
method (`newton_ascent`); standardised features along their principal axes, and weights back in raw features. Weights
have one column per classifier with the intercept in the last row, unless a docstring states otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy.special import log_expit, softmax

from manyhands._core.arrays import Array
from manyhands.features import Rows

# ----------------------------------------------------------------------------------------------------
# Class probabilities of one-vs-rest logistic classifiers.

_BLOCK = 1024  # rows that are dense, in 64-bit floats, at a time


def one_vs_rest_proba(coef: Array, intercept: Array, rows: Rows, n_classes: int) -> Array:
    """Class probabilities: the sigmoid of each class's score, divided by the sum over classes.

    With scores s_ik = coef_k . x_i + intercept_k,

        p(k | x_i) = sigmoid(s_ik) / sum_l sigmoid(s_il)

    as scikit-learn's ``OneVsRestClassifier`` normalises. For two classes there is one problem, whose score is that of
    the second class: p(1 | x) = sigmoid(s). The computation stays in log space and takes a block of rows at a time.

    Shapes: coef (n_problems, n_features); intercept (n_problems,).
    """
    proba = []
    for first in range(0, len(rows), _BLOCK):
        index = np.arange(first, min(first + _BLOCK, len(rows)))
        score = rows.take(index).reshape(len(index), -1).astype(float) @ coef.T + intercept
        log_proba = log_expit(np.hstack([-score, score]) if n_classes == 2 else score)
        proba.append(softmax(log_proba, axis=1) if n_classes > 1 else np.ones((len(index), 1)))
    return np.concatenate(proba)


# ----------------------------------------------------------------------------------------------------
# Multinomial logistic (softmax) regression on soft targets, by Newton's method.
#
#     maximise  sum_ik r_ik log p_ik - penalty(weights),   p_i = softmax(x_i V + b)
#
# r are class probabilities of the rows (the posteriors of an E step, or one-hot classes), and the penalty is a ridge
# on V with next to none on b. The Newton step (iteratively reweighted least squares, IRLS) is solved by
# preconditioned conjugate gradients, so the Hessian is never built.
#
# Weights have shape (n_features + 1, n_columns), the intercepts in the last row. There is a column for each class, or a
# single one for two classes, which is the log-odds of the second class. A single column v stands for the two columns
# -v/2 and v/2, and has their penalty, so both forms are the same model.

_INTERCEPT_RIDGE = 1e-6  # negligible, but it keeps the intercept of a class without any target finite
_CG_STEPS = 50  # most conjugate gradients of one Newton step; a step that ends early is still an ascent
_CG_TOLERANCE = 0.1  # relative residual of an (inexact) Newton step; later steps remove the rest
_GRADIENT_TOLERANCE = 1e-12  # expected gain per row below which the gradient counts as 0: that of rounding
_HALVINGS = 30  # of a step, after which it is a billionth of itself and no gain can be measured
_ARMIJO = 1e-4  # share of the gain promised by the slope that a step must reach (Nocedal and Wright, section 3.1)


def as_matrix(rows: Rows) -> Any:
    """All rows as one matrix of 64-bit floats."""
    X = rows.whole()
    return X.astype(np.float64) if X.ndim == 2 else X.reshape(len(X), -1).astype(np.float64)


def log_proba(X: Any, weights: Array, n_classes: int) -> Array:
    """Log class probabilities log p(k | x).

    Shapes: X (n_rows, n_features); weights (n_features + 1, n_columns).
    """
    score = np.asarray(X @ weights[:-1]) + weights[-1]
    if _is_binary(weights, n_classes):
        return np.hstack([-np.logaddexp(0, score), -np.logaddexp(0, -score)])
    score -= score.max(axis=1, keepdims=True)
    score -= np.log(np.exp(score).sum(axis=1, keepdims=True))
    return score


def penalty(weights: Array, n_classes: int, ridge: float) -> float:
    """Ridge penalty, 1/2 sum_jk ridge_j weights_jk^2.

    Shapes: weights (n_features + 1, n_columns).
    """
    return 0.5 * float((_ridges(weights, n_classes, ridge) * weights**2).sum())


class TermSlopes(NamedTuple):
    """Derivatives of a further term of the objective with respect to the logits of the rows."""

    # (n_rows, n_classes); first derivatives; each row sums to 0, since a common shift of all logits changes nothing
    slope: Array
    direction: Array  # (n_rows, n_classes); direction in which the term of a row is curved; rows sum to 0
    curvature: Array  # (n_rows, 1); minus the second derivative of the term along that direction, at least 0


class ProbabilityTerm(Protocol):
    """A term that depends on the class probabilities of the rows and is added to the objective of a regression."""

    def value(self, p: Array) -> float:
        """The term at class probabilities of shape (n_rows, n_classes)."""

    def slopes(self, p: Array) -> TermSlopes:
        """Its derivatives there."""


def newton_ascent(
    X: Any, target: Array, weights: Array, ridge: float, steps: int, term: ProbabilityTerm | None = None
) -> Array:
    """Improve weights by Newton steps (IRLS) with step halving.

    Each step is solved by conjugate gradients and halved until it satisfies Armijo's condition. The Hessian is never
    built: time and memory grow linearly with features and classes. Where conjugate gradients stop early, the step is
    still an ascent direction, so the objective never decreases.

    Shapes: X (n_rows, n_features); target (n_rows, n_classes); weights (n_features + 1, n_columns).
    """
    n_classes = target.shape[1]
    ridges, squares = _ridges(weights, n_classes, ridge), _squares(X)

    def evaluate(weights: Array) -> tuple[Array, float]:
        log_p = log_proba(X, weights, n_classes)
        value = float((target * log_p).sum()) - penalty(weights, n_classes, ridge)
        return log_p, value if term is None else value + term.value(np.exp(log_p))

    log_p, value = evaluate(weights)
    for _ in range(steps):
        p = np.exp(log_p)
        further = None if term is None else term.slopes(p)
        residual = target - p if further is None else target - p + further.slope
        gradient = _transposed_product(X, _own_columns(residual, weights)) - ridges * weights
        diagonal = _hessian_diagonal(squares, p, weights) + ridges
        if float((gradient**2 / diagonal).sum()) <= _GRADIENT_TOLERANCE * len(target):
            break
        curved = None if further is None else (_own_columns(further.direction, weights), further.curvature)
        product = _hessian_product(X, _own_columns(p, weights), ridges, curved)
        step = _conjugate_gradients(product, gradient, diagonal)
        gain = float((gradient * step).sum())
        for halving in 0.5 ** np.arange(_HALVINGS):
            trial = weights + halving * step
            log_p, trial_value = evaluate(trial)
            if trial_value >= value + _ARMIJO * halving * gain:
                break
        else:  # the remaining gain is below the precision of the sums
            break
        weights, value = trial, trial_value
    return weights


def _is_binary(weights: Array, n_classes: int) -> bool:
    """Whether a single column of weights stands for two classes."""
    return weights.shape[1] < n_classes


def _ridges(weights: Array, n_classes: int, ridge: float) -> Array:
    """(n_features + 1, 1) the ridge of each row of the weights; half for a single column, which stands for two."""
    ridges = np.full((len(weights), 1), ridge)
    ridges[-1] = _INTERCEPT_RIDGE
    return ridges / 2 if _is_binary(weights, n_classes) else ridges


def _own_columns(table: Array, weights: Array) -> Array:
    """The columns of classes that have weights: all, or that of the second class for a single column of weights."""
    return table[:, table.shape[1] - weights.shape[1] :]


def _squares(X: Any) -> Array:
    """(n_features + 1,) the sum of squares of each feature, and of the constant 1 of the intercept."""
    return np.append(np.asarray((X.multiply(X) if hasattr(X, "tocsr") else X * X).sum(axis=0)), X.shape[0])


def _hessian_diagonal(squares: Array, p: Array, weights: Array) -> Array:
    """(n_features + 1, n_columns) approximate diagonal of minus the Hessian, the Jacobi preconditioner.

    It is sum_i x_ij^2 times the mean of p (1 - p), which is exact for uncorrelated features and equal p. With one
    column per class a common step of all columns changes nothing: the factor K / (K - 1) accounts for it, and makes
    both forms equal for two classes.
    """
    n_columns = weights.shape[1]
    factor = n_columns / (n_columns - 1) if n_columns > 1 else 1.0
    return np.outer(squares, factor * _own_columns(p * (1 - p), weights).mean(axis=0))


def _hessian_product(
    X: Any, p: Array, ridges: Array, curved: tuple[Array, Array] | None = None
) -> Callable[[Array], Array]:
    """Function from a direction (n_features + 1, n_columns) to minus the Hessian times it, without the Hessian.

    `curved` are the directions and curvatures of a further term, which adds a matrix of rank one for each row.
    """

    def product(direction: Array) -> Array:
        change = np.asarray(X @ direction[:-1]) + direction[-1]
        bent = p * (change - (p * change).sum(axis=1, keepdims=True))
        if curved is not None:
            along, curvature = curved
            bent += curvature * along * (along * change).sum(axis=1, keepdims=True)
        return _transposed_product(X, bent) + ridges * direction

    return product


def _transposed_product(X: Any, residual: Array) -> Array:
    """(n_features + 1, n_columns) [X, 1]' times a residual (n_rows, n_columns)."""
    return np.vstack([np.asarray(X.T @ residual), residual.sum(axis=0)])


def _conjugate_gradients(product: Callable[[Array], Array], gradient: Array, diagonal: Array) -> Array:
    """The step for which product(step) is nearly the gradient, by preconditioned conjugate gradients from 0.

    The preconditioner is the diagonal (Jacobi's), which is close to the Hessian along principal axes.
    """
    step, residual = np.zeros_like(gradient), gradient.copy()
    direction = residual / diagonal
    size = float((residual * direction).sum())
    target_size = _CG_TOLERANCE**2 * size
    for _ in range(_CG_STEPS):
        curved = product(direction)
        length = size / float((direction * curved).sum())
        step += length * direction
        residual -= length * curved
        preconditioned = residual / diagonal
        size, before = float((residual * preconditioned).sum()), size
        if size <= target_size:
            break
        direction = preconditioned + size / before * direction
    return step


# ----------------------------------------------------------------------------------------------------
# Standardised features along their principal axes, and weights of a linear model back in raw features.
#
# Features are centred, divided by their standard deviations, and rotated by an orthonormal matrix whose columns are the
# eigenvectors of the Gram matrix. A rotation changes neither scores nor an L2 penalty, so a ridge-penalised linear
# model is the same before and after; but along principal axes the Hessian of its loss is nearly diagonal, and Newton
# steps solved by conjugate gradients with a diagonal (Jacobi) preconditioner need few iterations.
#
# There are two ways to the axes, for two kinds of solver:
#
#     `rotate_to_principal_axes`
#         Dense rows only: QR where there are more features than rows, then the eigenvectors of the Gram matrix. Sparse
#         rows are scaled, neither centred nor rotated.
#     `standardise_and_rotate`
#         Dense and sparse rows: the eigenvectors of the smaller of the two Gram matrices, without the null space. Rows
#         too large to rotate are centred implicitly, by `PrincipalAxes.shift`.
#
# Both are kept because they round differently, and results are reproducible to the last bit.


# Beyond this size of the smaller of (n_rows, n_features) the eigenvectors cost more time than they save later.
_MAX_AXES = 2048  # for `rotate_to_principal_axes`, whose rows serve many Newton steps
_MAX_SPAN_AXES = 1024  # for `standardise_and_rotate`
_MAX_DENSE_BYTES = 1 << 29  # of a sparse matrix and its axes in dense form; a larger one stays sparse


@dataclass(frozen=True, eq=False)
class PrincipalAxes:
    """Standardised rows along principal axes, with the way back to raw features.

    A raw row x corresponds to ``(x - mean) / spread @ axes``, which is a row of ``X - shift``.
    """

    X: Any  # (n_rows, n_axes); the transformed rows, without the subtraction of `shift`
    # (n_features,); mean that is subtracted from each raw feature; 0 where `rotate_to_principal_axes` leaves sparse
    # rows uncentred
    mean: Array
    spread: Array  # (n_features,); standard deviation by which each raw feature is divided; 1 for constant features
    # (n_features, n_axes); orthonormal columns; None where X is not rotated, so that ``n_axes == n_features``
    axes: Array | None
    # (n_axes,); what still has to be subtracted from the rows of `X`: 0 unless sparse rows are centred implicitly
    shift: Array
    variance: float  # total variance: the sum over features after scaling

    def in_raw_features(self, weights: Array) -> Array:
        """Weights that give the same scores from raw rows; one classifier per column.

        Shapes: weights (n_axes + 1, n_columns).
        """
        along = weights[:-1] if self.axes is None else self.axes @ weights[:-1]
        coef = along / self.spread[:, None]
        return np.vstack([coef, weights[-1] - self.mean @ coef])

    def raw(self, w: Array) -> Array:
        """`in_raw_features` in scikit-learn's layout: one classifier per row.

        It is not the transpose of the other method to the last bit, since a matrix product rounds differently when it
        is transposed.

        Shapes: w (n_problems, n_axes + 1).
        """
        coef = (w[:, :-1] if self.axes is None else w[:, :-1] @ self.axes.T) / self.spread
        return np.column_stack([coef, w[:, -1] - coef @ self.mean])


def rotate_to_principal_axes(X: Any, *, standardise: bool = True) -> PrincipalAxes:
    """Centre and scale rows, and rotate dense ones to their principal axes.

    Shapes: X (n_rows, n_features).
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
    """Scale rows by their standard deviations, and rotate them to the axes that they span if they are small enough."""
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

    Shapes: X (n_rows, n_features); returns mean (n_features,); returns variance (n_features,).
    """
    mean = np.asarray(X.mean(axis=0)).ravel()
    variance = np.asarray(X.multiply(X).mean(axis=0)).ravel() - mean**2 if _is_sparse(X) else X.var(axis=0)
    return mean, np.where(variance <= 1e-12 * (variance + mean**2), 0.0, variance)  # 1e-12: rounding


def span_axes(X: Any, shift: Array) -> Array:
    """Orthonormal basis of the space that the rows of ``X - shift`` span, along their principal axes.

    The eigenvectors of the smaller Gram matrix: (X - s)'(X - s) where there are no more features than rows, else
    (X - s)(X - s)', whose eigenvectors u give the axes (X - s)'u / sqrt(eigenvalue). Neither needs X - s itself, so
    X may be sparse.

    Shapes: X (n_rows, n_features); shift (n_features,).
    """
    n_rows, n_features = X.shape
    if n_features <= n_rows:
        gram = _dense(X.T @ X) - n_rows * np.outer(shift, shift)
    else:
        along = X @ shift
        gram = _dense(X @ X.T) - along[:, None] - along + shift @ shift
    eigenvalue, vectors = np.linalg.eigh(gram)
    # Below 1e-13 of the largest, times their number, eigenvalues are rounding errors of the matrix.
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
