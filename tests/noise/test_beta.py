"""Newton's method for a Beta: the optimum of a fine grid, and an objective that never falls."""

import numpy as np
import pytest
from scipy.special import betaln, polygamma

from manyhands.noise.beta import _trigamma, solve_beta


def value(alpha, counts, p, shape, rate):
    a, b = alpha
    evidence = (p * (betaln(a + counts[:, 0], b + counts[:, 1]) - betaln(a, b))).sum()
    return evidence + shape * np.log(a * b) - rate * (a + b)


def crowd(spread, seed=0):
    rng = np.random.default_rng(seed)
    accuracy = np.clip(rng.normal(0.75, spread, 60), 0.02, 0.98)
    right = rng.binomial(10, accuracy).astype(float)
    return np.column_stack([right, 10 - right]), rng.random(60)


@pytest.mark.parametrize("spread", [0.0, 0.2])
def test_newton_finds_the_optimum(spread):
    """From any start, in a few calls, to a point where no small change raises the objective."""
    counts, p = crowd(spread)
    for start in ([2.0, 1.0], [0.1, 5.0], [400.0, 3.0]):
        alpha = np.array(start)
        for _ in range(8):
            alpha = solve_beta(alpha, counts, p, 0.5, 0.05)
        best = value(alpha, counts, p, 0.5, 0.05)
        around = [
            alpha * np.exp(0.02 * np.array(step)) for step in ((1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (-1, -1))
        ]
        assert all(value(other, counts, p, 0.5, 0.05) < best for other in around)


def test_no_call_lowers_the_objective():
    counts, p = crowd(0.1, seed=1)
    alpha = np.array([0.01, 300.0])
    values = [value(alpha, counts, p, 0.5, 0.05)]
    for _ in range(10):
        alpha = solve_beta(alpha, counts, p, 0.5, 0.05)
        values.append(value(alpha, counts, p, 0.5, 0.05))
    assert np.diff(values).min() > -1e-9 and values[-1] > values[0] + 1


def test_trigamma_is_that_of_scipy():
    x = np.array([1e-3, 0.1, 1.0, 7.5, 300.0])
    np.testing.assert_allclose(_trigamma(x), polygamma(1, x), rtol=1e-5)
