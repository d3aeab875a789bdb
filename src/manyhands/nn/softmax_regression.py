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

from manyhands.kernels import Array
from manyhands.nn.inputs import Rows

_FREE = 1e-6  # ridge of the intercepts: next to nothing, yet a class that nobody names gets a finite one
_CG_STEPS = 50
_NEAR = 1e-8  # a slope below this, per row, is level


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
    value = _value(X, target, weights, ridge)
    for _ in range(steps):
        p = np.exp(log_proba(X, weights, target.shape[1]))
        slope = _slope(X, target, p, weights, ridge)
        if np.abs(slope).max() <= _NEAR * len(target):
            break
        step = _solve(_curvature(X, p, weights, ridge), slope)
        gain = float((slope * step).sum())
        for halving in 0.5 ** np.arange(30):
            trial = weights + halving * step
            trial_value = _value(X, target, trial, ridge)
            if trial_value >= value + 1e-4 * halving * gain:
                break
        else:  # what is left to gain is below the precision of the sums
            break
        weights, value = trial, trial_value
    return weights


def _value(X: Any, target: Array, weights: Array, ridge: float) -> float:
    return float((target * log_proba(X, weights, target.shape[1])).sum()) - penalty(weights, target.shape[1], ridge)


def _is_binary(weights: Array, n_classes: int) -> bool:
    return weights.shape[1] < n_classes


def _ridges(weights: Array, n_classes: int, ridge: float) -> Array:
    """(n_features + 1, 1) the ridge of each row of the weights; half for a single column, which stands for two."""
    ridges = np.full((len(weights), 1), ridge)
    ridges[-1] = _FREE
    return ridges / 2 if _is_binary(weights, n_classes) else ridges


def _slope(X: Any, target: Array, p: Array, weights: Array, ridge: float) -> Array:
    """sum_i (r_i - p_i) x_i, less the ridge's pull."""
    left = (target - p)[:, p.shape[1] - weights.shape[1] :]  # a single column is that of the second class
    return _across(X, left) - _ridges(weights, p.shape[1], ridge) * weights


def _curvature(X: Any, p: Array, weights: Array, ridge: float) -> Callable[[Array], Array]:
    """A function: minus the Hessian, times a direction."""
    ridges, p = _ridges(weights, p.shape[1], ridge), p[:, p.shape[1] - weights.shape[1] :]

    def product(direction: Array) -> Array:
        change = np.asarray(X @ direction[:-1]) + direction[-1]
        return _across(X, p * (change - (p * change).sum(axis=1, keepdims=True))) + ridges * direction

    return product


def _across(X: Any, left: Array) -> Array:
    return np.vstack([np.asarray(X.T @ left), left.sum(axis=0)])


def _solve(product: Callable[[Array], Array], slope: Array) -> Array:
    """The step for which product(step) = slope, by conjugate gradients from 0; rough far from the optimum."""
    step, left = np.zeros_like(slope), slope.copy()
    direction, size = left.copy(), float((left**2).sum())
    enough = size * min(0.01, size / slope.size) ** 2
    for _ in range(_CG_STEPS):
        bent = product(direction)
        along = size / float((direction * bent).sum())
        step += along * direction
        left -= along * bent
        size, before = float((left**2).sum()), size
        if size <= enough or size <= 1e-24:
            break
        direction = left + size / before * direction
    return step
