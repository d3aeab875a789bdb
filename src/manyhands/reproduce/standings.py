"""Ranks of methods over several data sets."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from manyhands.reproduce.cells import LOWER_IS_BETTER
from manyhands.reproduce.verdicts import Entry

_BOOTSTRAP = 20265  # seed
_DRAWS = 4000
_TAILS = (0.05, 0.95)


@dataclass(frozen=True)
class Standing:
    """Result of one method over all data sets.

    Attributes
    ----------
    row : str
        Name of the method.
    rank : float
        Mean rank over the data sets, 1 is the best; equal values share a rank, a failed method has the last one.
    n_near_best : int
        Number of data sets on which the method is within one standard error of the best.
    n_sets : int
        Number of data sets.
    interval : tuple of float, default=(nan, nan)
        90% interval of the mean rank: bootstrap over the data sets.
    """

    row: str
    rank: float
    n_near_best: int
    n_sets: int
    interval: tuple[float, float] = (math.nan, math.nan)


def standings(found: Sequence[Entry], metric: str = "accuracy") -> list[Standing]:
    """Rank methods over all data sets on which any was measured.

    Parameters
    ----------
    found : sequence of Entry
        Results of a table.
    metric : str, default="accuracy"
        The metric by which methods are ranked.

    Returns
    -------
    list of Standing
        The best mean rank first.
    """
    of_metric = [entry for entry in found if entry.metric == metric]
    sets: dict[str, list[Entry]] = {}
    for entry in of_metric:
        sets.setdefault(entry.dataset, []).append(entry)
    sets = {name: here for name, here in sets.items() if any(entry.values for entry in here)}
    ranks = {name: _ranks(here, metric) for name, here in sets.items()}
    near = {name: _near_best(here, metric) for name, here in sets.items()}
    rows = dict.fromkeys(entry.row for here in sets.values() for entry in here)
    table = [
        Standing(
            row,
            math.fsum(ranks[name][row] for name in sets) / len(sets),
            sum(row in near[name] for name in sets),
            len(sets),
            rank_interval([ranks[name][row] for name in sets]),
        )
        for row in rows
    ]
    return sorted(table, key=lambda standing: (standing.rank, -standing.n_near_best, standing.row))


def rank_interval(ranks: Sequence[float]) -> tuple[float, float]:
    """Return the 90% interval of a mean rank by drawing data sets with replacement.

    All methods are drawn on the same data sets, so that intervals belong to the same bootstrap.

    Parameters
    ----------
    ranks : sequence of float
        Rank of one method on each data set.

    Returns
    -------
    tuple of float
        The quantiles .05 and .95 of the means of 4,000 draws; the same ranks give the same interval.

    Examples
    --------
    >>> rank_interval([2.0, 2.0, 2.0])
    (2.0, 2.0)
    """
    rng = np.random.default_rng([_BOOTSTRAP, len(ranks)])
    drawn = np.asarray(ranks, float)[rng.integers(0, len(ranks), (_DRAWS, len(ranks)))].mean(axis=1)
    low, high = np.quantile(drawn, _TAILS)
    return float(low), float(high)


def standard_error(entry: Entry) -> float:
    """Return the larger of two standard errors: over seeds, and of a share of the test items, in per cent.

    Seeds do not measure the sampling error of the test items, the only one of methods without random numbers.

    Parameters
    ----------
    entry : Entry
        A share in per cent.

    Returns
    -------
    float
        Standard error in points.
    """
    of_seeds = (entry.deviation or 0.0) / math.sqrt(max(1, entry.n))
    if entry.mean is None or not entry.n_test:
        return of_seeds
    share = min(1.0, max(0.0, entry.mean / 100))
    return max(of_seeds, 100 * math.sqrt(share * (1 - share) / entry.n_test))


def _signed(entry: Entry, metric: str) -> float:
    """Return the mean with a sign so that higher is better; a failed method has the lowest value."""
    if entry.mean is None:
        return -math.inf
    return -entry.mean if metric in LOWER_IS_BETTER else entry.mean


def _ranks(here: Sequence[Entry], metric: str) -> dict[str, float]:
    """Return the rank of each row on one data set; equal values share the mean of their ranks."""
    values = {entry.row: round(_signed(entry, metric), 9) for entry in here}
    return {
        row: 1
        + sum(other > own for other in values.values())
        + (sum(other == own for other in values.values()) - 1) / 2
        for row, own in values.items()
    }


def _near_best(here: Sequence[Entry], metric: str) -> set[str]:
    """Return the rows within one standard error of the best on one data set."""
    best = max(here, key=lambda entry: _signed(entry, metric))
    limit = _signed(best, metric) - standard_error(best)
    return {entry.row for entry in here if entry.values and _signed(entry, metric) >= limit}
