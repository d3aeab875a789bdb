"""Multinomial logistic (softmax) regression on soft targets, by Newton's method; no torch.

    maximise  sum_ik r_ik log p_ik - penalty(weights),   p_i = softmax(x_i V + b)

r are class probabilities of the rows (the posteriors of an E step, or one-hot classes), and the penalty is a ridge on V
with next to none on b. The Newton step (iteratively reweighted least squares, IRLS) is solved by preconditioned
conjugate gradients, so the Hessian is never built.

Weights have shape (n_features + 1, n_columns), the intercepts in the last row. There is a column for each class, or a
single one for two classes, which is the log-odds of the second class. A single column v stands for the two columns
-v/2 and v/2, and has their penalty, so both forms are the same model.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from manyhands.em.kernels import Array
from manyhands.features import Rows

_INTERCEPT_RIDGE = 1e-6  # negligible, but it keeps the intercept of a class without any target finite
_CG_STEPS = 50
_CG_TOLERANCE = 0.1  # relative residual of an (inexact) Newton step; later steps remove the rest
_GRADIENT_TOLERANCE = 1e-12  # expected gain per row below which the gradient counts as 0


def as_matrix(rows: Rows) -> Any:
    """All rows as one matrix of 64-bit floats.

    Parameters
    ----------
    rows : Rows
        Rows of X, as `as_rows` gives them.

    Returns
    -------
    array or scipy sparse matrix of shape (n_rows, n_features)
        Rows of any shape are flattened; a sparse matrix stays sparse.
    """
    X = rows.whole()
    return X.astype(np.float64) if X.ndim == 2 else X.reshape(len(X), -1).astype(np.float64)


def log_proba(X: Any, weights: Array, n_classes: int) -> Array:
    """Log class probabilities log p(k | x).

    Parameters
    ----------
    X : array or scipy sparse matrix of shape (n_rows, n_features)
        Rows.
    weights : array of shape (n_features + 1, n_columns)
        Weights, the intercepts in the last row; one column is enough for two classes.
    n_classes : int
        Number of classes.

    Returns
    -------
    array of shape (n_rows, n_classes)
        Logarithms of probabilities that sum to 1 along rows.
    """
    score = np.asarray(X @ weights[:-1]) + weights[-1]
    if _is_binary(weights, n_classes):
        return np.hstack([-np.logaddexp(0, score), -np.logaddexp(0, -score)])
    score -= score.max(axis=1, keepdims=True)
    score -= np.log(np.exp(score).sum(axis=1, keepdims=True))
    return score


def penalty(weights: Array, n_classes: int, ridge: float) -> float:
    """Ridge penalty, 1/2 sum_jk ridge_j weights_jk^2.

    Parameters
    ----------
    weights : array of shape (n_features + 1, n_columns)
        Weights, the intercepts in the last row.
    n_classes : int
        Number of classes.
    ridge : float
        Ridge of the features, in the form with one column per class; that of intercepts is 1e-6.

    Returns
    -------
    float
        What is subtracted from the log-likelihood.
    """
    return 0.5 * float((_ridges(weights, n_classes, ridge) * weights**2).sum())


class TermSlopes(NamedTuple):
    """Derivatives of a further term of the objective with respect to the logits of the rows.

    Attributes
    ----------
    slope : ndarray of shape (n_rows, n_classes)
        First derivatives; each row sums to 0, since a common shift of all logits changes nothing.
    direction : ndarray of shape (n_rows, n_classes)
        Direction in which the term of a row is curved; rows sum to 0.
    curvature : ndarray of shape (n_rows, 1)
        Minus the second derivative of the term along that direction, at least 0.
    """

    slope: Array
    direction: Array
    curvature: Array


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

    Parameters
    ----------
    X : array or scipy sparse matrix of shape (n_rows, n_features)
        Rows; fewer iterations are needed along principal axes (`manyhands.linear.principal_axes`).
    target : array of shape (n_rows, n_classes)
        Class probabilities r of the rows.
    weights : array of shape (n_features + 1, n_columns)
        Initial weights, the intercepts in the last row.
    ridge : float
        Ridge of the features, in the form with one column per class.
    steps : int
        Maximum number of Newton steps. Iteration ends earlier where the gradient is 0 up to rounding.
    term : ProbabilityTerm or None, default=None
        What else the probabilities are to maximise.

    Returns
    -------
    array of shape (n_features + 1, n_columns)
        Weights with an objective at least as high.
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
        for halving in 0.5 ** np.arange(30):
            trial = weights + halving * step
            log_p, trial_value = evaluate(trial)
            if trial_value >= value + 1e-4 * halving * gain:
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
