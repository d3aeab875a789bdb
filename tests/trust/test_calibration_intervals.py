"""Exact bounds: against SciPy, against plain loops, and by simulation."""

import numpy as np
import pytest
from scipy import stats

from manyhands.exceptions import ParameterError
from manyhands.trust import answers_for, binomial_interval, finite_interval
from manyhands.trust.calibration import largest_count, probability_at_most

pytestmark = pytest.mark.fast


@pytest.mark.parametrize(("x", "n"), [(0, 5), (5, 5), (3, 10), (17, 40), (99, 100)])
@pytest.mark.parametrize("level", [0.8, 0.95])
def test_binomial_intervals_are_those_of_scipy(x, n, level):
    found = stats.binomtest(x, n).proportion_ci(level, method="exact")
    assert binomial_interval(x, n, level) == pytest.approx((found.low, found.high), abs=1e-9)


@pytest.mark.parametrize(
    ("x", "n", "population", "count"), [(0, 5, 20, 3), (2, 5, 20, 9), (4, 10, 12, 6), (3, 50, 400, 20)]
)
def test_hypergeometric_probabilities_are_those_of_scipy(x, n, population, count):
    expected = stats.hypergeom(population, count, n).cdf(x)
    assert probability_at_most(x, n, population, count) == pytest.approx(expected, abs=1e-9)


def test_the_largest_count_by_a_plain_loop():
    for population, n, alpha in [(12, 4, 0.1), (30, 10, 0.05), (60, 25, 0.025), (7, 7, 0.05)]:
        for x in range(n + 1):
            plain = x
            for count in range(x, population - (n - x) + 1):
                if stats.hypergeom(population, count, n).cdf(x) > alpha:
                    plain = count
            assert largest_count(x, n, population, alpha) == plain


def test_finite_intervals_cover_for_every_count():
    """The probability that the interval contains the share, summed over all samples."""
    population, n, level = 40, 12, 0.9
    for count in range(population + 1):
        law = stats.hypergeom(population, count, n)
        covered = 0.0
        for x in range(max(0, n - population + count), min(n, count) + 1):
            low, high = finite_interval(x, n, population, level)
            covered += law.pmf(x) * (low - 1e-12 <= count / population <= high + 1e-12)
        assert covered >= level - 1e-9


def test_a_large_population_is_an_infinite_one():
    assert finite_interval(30, 40, 10**7) == pytest.approx(binomial_interval(30, 40), abs=1e-4)
    assert finite_interval(30, 40, 40) == (0.75, 0.75)
    assert np.diff(finite_interval(30, 40, 60)) < np.diff(binomial_interval(30, 40))


def test_the_number_of_answers_gives_the_width():
    for half, population in [(0.05, 10**6), (0.02, 10**6), (0.05, 500)]:
        n = answers_for(half, population)
        low, high = finite_interval(round(0.8 * n), n, population)
        assert (high - low) / 2 == pytest.approx(half, rel=0.1)
    assert answers_for(0.02, 30) <= 30


def test_impossible_samples_are_refused():
    for arguments in [(5, 4), (-1, 4), (0, 0)]:
        with pytest.raises(ParameterError):
            binomial_interval(*arguments)
    with pytest.raises(ParameterError):
        finite_interval(2, 5, 4)
