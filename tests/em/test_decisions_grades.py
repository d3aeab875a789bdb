"""Median and expected value of ordered classes."""

import numpy as np

from manyhands.em.decisions import expected_grades, median_grades


def slow_median(row, order):
    """The class of the sorted scale at which half of the probability is reached."""
    total = 0.0
    for code in order:
        total += row[code]
        if total >= 0.5:
            return code
    raise AssertionError


def test_medians_equal_a_loop_in_any_order_of_codes():
    """And no other class has a smaller expected absolute error."""
    rng = np.random.default_rng(0)
    for n_classes in (1, 2, 5, 9):
        order = rng.permutation(n_classes)
        posterior = rng.dirichlet(np.full(n_classes, 0.5), 50)
        found = median_grades(posterior, order)
        assert found.tolist() == [slow_median(row, order.tolist()) for row in posterior]
        rank = np.argsort(order)
        risk = posterior @ np.abs(rank[:, None] - rank[None, :])
        np.testing.assert_allclose(risk[np.arange(50), found], risk.min(axis=1))


def test_two_medians():
    """The more probable one, then the lower one; the same from both ends of the scale."""
    posterior = np.array([[0.5, 0.2, 0.3], [0.3, 0.2, 0.5], [0.5, 0.5, 0.0]])
    assert median_grades(posterior, np.arange(3)).tolist() == [0, 2, 0]
    assert median_grades(posterior[:2], np.arange(3)[::-1]).tolist() == [0, 2]


def test_expected_values():
    """Of any numbers."""
    posterior = np.random.default_rng(1).dirichlet(np.ones(4), 9)
    np.testing.assert_allclose(expected_grades(posterior, [0, 1, 5, 9]), posterior @ [0, 1, 5, 9])
