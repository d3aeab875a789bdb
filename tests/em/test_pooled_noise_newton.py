"""Newton's method for Beta and Dirichlet priors: the optimum of a fine grid, and an objective that never falls."""

import numpy as np
import pytest
from scipy.special import betaln

from manyhands.em.pooled_noise import RATE, SHAPE, _value, fixed_point, newton

pytestmark = pytest.mark.fast


def value(alpha, counts, p):
    a, b = alpha
    evidence = (p * (betaln(a + counts[:, 0], b + counts[:, 1]) - betaln(a, b))).sum()
    return evidence + SHAPE * np.log(a * b) - RATE * (a + b)


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
            alpha = newton(alpha, counts, p, max_steps=3)
        best = value(alpha, counts, p)
        around = [
            alpha * np.exp(0.02 * np.array(step)) for step in ((1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (-1, -1))
        ]
        assert all(value(other, counts, p) < best for other in around)


def test_no_call_lowers_the_objective():
    counts, p = crowd(0.1, seed=1)
    alpha = np.array([0.01, 300.0])
    values = [value(alpha, counts, p)]
    for _ in range(10):
        alpha = newton(alpha, counts, p, max_steps=3)
        values.append(value(alpha, counts, p))
    assert np.diff(values).min() > -1e-9 and values[-1] > values[0] + 1


def test_rows_of_matrices_reach_the_optimum_of_the_fixed_point():
    """Each row has a step of its own, and no step lowers the objective of its row."""
    rng = np.random.default_rng(2)
    rows = np.array([[30.0, 8.0, 2.0], [1.0, 12.0, 1.0], [0.5, 0.2, 3.0]])
    shares = np.stack([[rng.dirichlet(row) for row in rows] for _ in range(80)])
    counts, p = np.round(20 * shares), rng.random(80)
    slow = fast = np.ones((3, 3))
    for _ in range(3000):
        slow = fixed_point(slow, counts, p)
    for _ in range(12):
        before, fast = fast, newton(fast, counts, p)
        assert np.all(_value(fast, counts, p) >= _value(before, counts, p) - 1e-9)
    np.testing.assert_allclose(fast, slow, rtol=1e-3)
    np.testing.assert_allclose(newton(before[1], counts[:, 1], p), newton(before, counts, p)[1], rtol=1e-9)


@pytest.mark.parametrize("seed", [135, 332, 491])
def test_a_step_that_would_lower_the_objective_is_shortened(seed):
    """The whole Newton step from these starts lowers it."""
    rng = np.random.default_rng(seed)
    n_classes = rng.integers(2, 5)
    counts = np.round(rng.gamma(0.5, 10, (rng.integers(2, 30), n_classes)))
    p, alpha = rng.random(len(counts)), np.exp(rng.normal(0, 3, n_classes))
    assert _value(newton(alpha, counts, p), counts, p) > _value(alpha, counts, p)
