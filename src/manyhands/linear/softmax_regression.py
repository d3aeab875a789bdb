"""Logistic regression on soft targets by Newton's method; needs no torch.

    maximise  sum_ik r_ik log p_ik - penalty(weights),   p_i = softmax(x_i V + b)

Weights are (n_features + 1, n_columns), the intercept last: a column for each class, or a single one for two classes,
whose score is then that of the second against the first. A single column v stands for the two columns -v/2 and v/2,
and its penalty is theirs, so both forms are the same model.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from manyhands.em.kernels import Array
from manyhands.features import Rows

_FREE = 1e-6  # ridge of the intercepts: next to nothing, yet a class that nobody names gets a finite one
_CG_STEPS = 50
_CLOSE = 0.1  # a Newton step is solved to this share of the slope; the next one sees to the rest
_NEAR = 1e-12  # where a row has no more than this to gain, the slope is level


def as_matrix(rows: Rows) -> Any:
    """(n_rows, n_features) all rows in 64 bits; a scipy matrix stays one."""
    X = rows.whole()
    return X.astype(np.float64) if X.ndim == 2 else X.reshape(len(X), -1).astype(np.float64)


def log_proba(X: Any, weights: Array, n_classes: int) -> Array:
    """(n_rows, n_classes) log p(k | x); X is an array or a scipy matrix."""
    score = np.asarray(X @ weights[:-1]) + weights[-1]
    if _is_binary(weights, n_classes):
        return np.hstack([-np.logaddexp(0, score), -np.logaddexp(0, -score)])
    score -= score.max(axis=1, keepdims=True)
    score -= np.log(np.exp(score).sum(axis=1, keepdims=True))
    return score


def penalty(weights: Array, n_classes: int, ridge: float) -> float:
    """What the ridge takes from the objective."""
    return 0.5 * float((_ridges(weights, n_classes, ridge) * weights**2).sum())


def climb(X: Any, target: Array, weights: Array, ridge: float, steps: int) -> Array:
    """Better weights by so many Newton steps (IRLS), each solved by conjugate gradients and halved until it gains.

    The Hessian is never built, so that neither many features nor many classes are too many; where conjugate gradients
    end early the step still leads uphill, and the objective cannot fall.
    """
    n_classes = target.shape[1]
    ridges, squares = _ridges(weights, n_classes, ridge), _squares(X)

    def look(weights: Array) -> tuple[Array, float]:
        log_p = log_proba(X, weights, n_classes)
        return log_p, float((target * log_p).sum()) - penalty(weights, n_classes, ridge)

    log_p, value = look(weights)
    for _ in range(steps):
        p = np.exp(log_p)
        slope = _across(X, _own_columns(target - p, weights)) - ridges * weights
        steepness = _steepness(squares, p, weights) + ridges
        if float((slope**2 / steepness).sum()) <= _NEAR * len(target):
            break
        step = _solve(_curvature(X, _own_columns(p, weights), ridges), slope, steepness)
        gain = float((slope * step).sum())
        for halving in 0.5 ** np.arange(30):
            trial = weights + halving * step
            log_p, trial_value = look(trial)
            if trial_value >= value + 1e-4 * halving * gain:
                break
        else:  # what is left to gain is below the precision of the sums
            break
        weights, value = trial, trial_value
    return weights


def _is_binary(weights: Array, n_classes: int) -> bool:
    return weights.shape[1] < n_classes


def _ridges(weights: Array, n_classes: int, ridge: float) -> Array:
    """(n_features + 1, 1) the ridge of each row of the weights; half for a single column, which stands for two."""
    ridges = np.full((len(weights), 1), ridge)
    ridges[-1] = _FREE
    return ridges / 2 if _is_binary(weights, n_classes) else ridges


def _own_columns(table: Array, weights: Array) -> Array:
    """The classes that have weights: a single column is that of the second."""
    return table[:, table.shape[1] - weights.shape[1] :]


def _squares(X: Any) -> Array:
    """(n_features + 1,) the sum of squares of each feature, and of the ones that go with the intercept."""
    return np.append(np.asarray((X.multiply(X) if hasattr(X, "tocsr") else X * X).sum(axis=0)), X.shape[0])


def _steepness(squares: Array, p: Array, weights: Array) -> Array:
    """(n_features + 1, n_columns) the curvature along each weight, if features did not overlap and rows were alike.

    Columns of the general form are not free, since a step for all alike does nothing: hence K / (K - 1), which makes
    it the binary form's steepness where there are two classes.
    """
    n_columns = weights.shape[1]
    tied = n_columns / (n_columns - 1) if n_columns > 1 else 1.0
    return np.outer(squares, tied * _own_columns(p * (1 - p), weights).mean(axis=0))


def _curvature(X: Any, p: Array, ridges: Array) -> Callable[[Array], Array]:
    """A function: minus the Hessian, times a direction."""

    def product(direction: Array) -> Array:
        change = np.asarray(X @ direction[:-1]) + direction[-1]
        return _across(X, p * (change - (p * change).sum(axis=1, keepdims=True))) + ridges * direction

    return product


def _across(X: Any, left: Array) -> Array:
    return np.vstack([np.asarray(X.T @ left), left.sum(axis=0)])


def _solve(product: Callable[[Array], Array], slope: Array, steepness: Array) -> Array:
    """The step for which product(step) is nearly the slope, by conjugate gradients from 0.

    Slopes are measured by the steepness (Jacobi's preconditioner), which on `turn`ed rows is nearly the curvature.
    """
    step, left = np.zeros_like(slope), slope.copy()
    direction = left / steepness
    size = float((left * direction).sum())
    enough = _CLOSE**2 * size
    for _ in range(_CG_STEPS):
        bent = product(direction)
        along = size / float((direction * bent).sum())
        step += along * direction
        left -= along * bent
        ahead = left / steepness
        size, before = float((left * ahead).sum()), size
        if size <= enough:
            break
        direction = ahead + size / before * direction
    return step
