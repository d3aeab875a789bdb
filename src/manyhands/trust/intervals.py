"""Exact bounds of a count from a random sample, of a finite or an infinite population.

All are inversions of tests, without asymptotics: Clopper and Pearson for the binomial distribution, and the same for
the hypergeometric one, where the sample is a noticeable part of the population.
"""

from __future__ import annotations

import math
from functools import lru_cache

from manyhands.exceptions import ParameterError


def binomial_interval(successes: int, n: int, level: float = 0.95) -> tuple[float, float]:
    """Clopper-Pearson interval of a share.

    Parameters
    ----------
    successes : int
        Number of successes.
    n : int
        Size of the sample.
    level : float, default=0.95
        Probability of the interval.

    Returns
    -------
    (low, high) : tuple of float
        Contains the share with at least this probability, whatever the share is.

    Examples
    --------
    >>> [round(x, 3) for x in binomial_interval(10, 10)]
    [0.692, 1.0]
    """
    from scipy.special import betaincinv

    _check(successes, n)
    tail = (1 - level) / 2
    low = 0.0 if successes == 0 else float(betaincinv(successes, n - successes + 1, tail))
    high = 1.0 if successes == n else float(betaincinv(successes + 1, n - successes, 1 - tail))
    return low, high


def finite_interval(successes: int, n: int, population: int, level: float = 0.95) -> tuple[float, float]:
    """Exact interval of a share of a finite population, from a sample without replacement.

    Parameters
    ----------
    successes : int
        Number of successes in the sample.
    n : int
        Size of the sample.
    population : int
        Size of the population.
    level : float, default=0.95
        Probability of the interval.

    Returns
    -------
    (low, high) : tuple of float
        Shares of the population; a point if the sample is the population.

    Examples
    --------
    >>> finite_interval(3, 4, 4)
    (0.75, 0.75)
    >>> [round(x, 3) for x in finite_interval(10, 10, 20)]
    [0.8, 1.0]
    """
    _check(successes, n, population)
    tail = (1 - level) / 2
    failures = n - successes
    high = largest_count(successes, n, population, tail)
    low = population - largest_count(failures, n, population, tail)
    return low / population, high / population


@lru_cache(maxsize=4096)
def largest_count(successes: int, n: int, population: int, alpha: float) -> int:
    """Upper bound of the number of successes in a population: the largest that the sample does not refute.

    Parameters
    ----------
    successes : int
        Number of successes in the sample.
    n : int
        Size of the sample, drawn without replacement.
    population : int
        Size of the population.
    alpha : float
        Probability with which the bound may be too low.

    Returns
    -------
    int
        The largest count under which so few successes have a probability above `alpha`.

    Examples
    --------
    >>> largest_count(0, 59, 10_000, 0.05), largest_count(0, 50, 10_000, 0.05)
    (493, 580)
    """
    _check(successes, n, population)
    low, high = successes, population - (n - successes)  # possible counts
    while low < high:  # the larger the count, the smaller the probability of at most `successes`
        middle = (low + high + 1) // 2
        if probability_at_most(successes, n, population, middle) > alpha:
            low = middle
        else:
            high = middle - 1
    return low


def probability_at_most(successes: int, n: int, population: int, count: int) -> float:
    """Hypergeometric P(X <= successes) for a sample of n from a population with `count` successes.

    Parameters
    ----------
    successes : int
        Number of successes in the sample.
    n : int
        Size of the sample, drawn without replacement.
    population : int
        Size of the population.
    count : int
        Successes in the population.

    Returns
    -------
    float
        The probability.

    Examples
    --------
    >>> round(probability_at_most(0, 2, 4, 1), 9)
    0.5
    """
    first = max(0, n - (population - count))
    total = sum(
        math.exp(_log_choose(count, x) + _log_choose(population - count, n - x) - _log_choose(population, n))
        for x in range(first, min(successes, count, n) + 1)
    )
    return min(total, 1.0)


def answers_for(half_width: float, population: int, *, share: float = 0.8, level: float = 0.95) -> int:
    """Number of random answers after which the interval of a share is about so narrow.

    Parameters
    ----------
    half_width : float
        Half of the width of the interval.
    population : int
        Number of items.
    share : float, default=0.8
        Assumed share of right labels.
    level : float, default=0.95
        Probability of the interval.

    Returns
    -------
    int
        By the normal approximation with the correction for a finite population; at most the population.

    Examples
    --------
    >>> answers_for(0.05, 10_000), answers_for(0.02, 10_000), answers_for(0.05, 100)
    (240, 1333, 72)
    """
    from scipy.special import ndtri

    needed = share * (1 - share) * (float(ndtri(0.5 + level / 2)) / half_width) ** 2
    return min(population, math.ceil(needed / (1 + (needed - 1) / population)))


def _log_choose(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


def _check(successes: int, n: int, population: int | None = None) -> None:
    if not 0 <= successes <= n or n < 1 or (population is not None and n > population):
        raise ParameterError(f"{successes} successes in a sample of {n} from {population} are impossible.")
