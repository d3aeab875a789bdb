"""Measured values compared with published ones.

A measured mean is *above* or *below* the published value if the 95% interval of the difference, by the t distribution,
excludes 0 and, if the paper gives no standard deviation, they differ by two points or more. Otherwise it is *within* if
they differ by less than two points and the standard error does not exceed two points. All else is *undecided*: more
noise must not look like more agreement. The number of runs behind a paper's deviation is rarely given; it is taken to
be ours.

References
----------
Holm, "A simple sequentially rejective multiple test procedure", Scandinavian Journal of Statistics 6, 1979.
Nadeau and Bengio, "Inference for the generalization error", Machine Learning 52, 2003.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product
from statistics import fmean, stdev
from typing import Any

import numpy as np

from manyhands.reproduce.cells import LOWER_IS_BETTER, Cell
from manyhands.reproduce.records import Records
from manyhands.reproduce.tables import DataSet, Published, Row, Table, is_share

WITHIN, ABOVE, BELOW, UNDECIDED = "within", "above", "below", "undecided"
NOT_PUBLISHED, NOT_MEASURED = "not published", "not measured"
_POINTS = 2.0  # largest difference, and largest standard error, of a value that is within
_ROUNDING = 0.05  # points that are lost by rounding to one decimal


@dataclass(frozen=True)
class Entry:
    """One metric of one row on one data set; figures are per cent of shares if the table has `points`."""

    dataset: str  # name of the data set
    row: str  # name of the row
    metric: str  # name of the metric
    values: Mapping[int, float]  # seed -> measured value
    published: Published | None
    margin: float | None  # a larger difference from the published value is above or below it
    verdict: str  # "within", "above", "below", "undecided", "not published" or "not measured"
    n_test: int = 0  # number of test items
    n_failed: int = 0  # number of seeds that failed
    errors: tuple[str, ...] = ()
    why: str = ""  # why the row is not measured
    x: float | None = None  # position on the axis of a plot

    @property
    def n(self) -> int:
        """Number of measured seeds."""
        return len(self.values)

    @property
    def mean(self) -> float | None:
        """Mean over the seeds; None if nothing was measured."""
        return fmean(self.values.values()) if self.values else None

    @property
    def deviation(self) -> float | None:
        """Standard deviation over the seeds; None for fewer than two."""
        return stdev(self.values.values()) if self.n > 1 else None

    @property
    def difference(self) -> float | None:
        """Measured minus published value."""
        return None if self.mean is None or self.published is None else self.mean - self.published.value


def entries(table: Table, cells: Sequence[Cell], records: Records) -> list[Entry]:
    """Return all metrics of all rows on all data sets, and published values of rows that are not measured."""
    by_place: dict[tuple[object, ...], list[Cell]] = {}
    for cell in cells:
        by_place.setdefault(_place(cell.dataset, cell.row), []).append(cell)
    return [
        _entry(table, dataset, row, metric, by_place.get(_place(dataset, row), []), records)
        for metric in table.metrics
        for dataset in table.datasets
        for row in table.rows
        if (row.method is not None and dataset.name not in row.skip)
        or _published(table, row, dataset, metric) is not None
    ]


def _place(dataset: DataSet, row: Row) -> tuple[object, ...]:
    """Return what identifies a row, or a point of a sweep, on a data set."""
    return (dataset.name, row.name, *row.at.items())


def _entry(table: Table, dataset: DataSet, row: Row, metric: str, cells: Iterable[Cell], records: Records) -> Entry:
    """Collect the values of all seeds, and compare them with the published value."""
    record_of = {cell.seed: records.find(cell.key) for cell in cells}
    done = {seed: record for seed, record in record_of.items() if record is not None and "metrics" in record}
    errors = [record["error"] for record in record_of.values() if record is not None and "error" in record]
    given = {seed: record["metrics"].get(metric) for seed, record in done.items()}
    values = {seed: value * unit(table, metric) for seed, value in given.items() if value is not None}
    published = _published(table, row, dataset, metric)
    rule = None if published is None else Rule.of(table, metric, values, published)
    return Entry(
        dataset.name,
        row.name,
        metric,
        values,
        published,
        None if rule is None else rule.margin,
        verdict(values, published, rule),
        _n_test(dataset, [record.get("n_test") or 0 for record in done.values()]),
        len(errors),
        tuple(dict.fromkeys(errors)),
        row.why or row.skip.get(dataset.name, ""),
        table.place(dataset, row),
    )


def _n_test(dataset: DataSet, of_seeds: Sequence[int]) -> int:
    """Return the number of test items; folds have different ones, seeds the same."""
    return sum(of_seeds[: dataset.folds]) if dataset.folds else max(of_seeds, default=0)


def _published(table: Table, row: Row, dataset: DataSet, metric: str) -> Published | None:
    """Return the published value of a row on a data set."""
    of_metric = row.published if metric == table.metrics[0] else row.published_also.get(metric, {})
    return of_metric.get(dataset.name)


def unit(table: Table, metric: str) -> float:
    """Return the factor by which a value is multiplied before it is shown."""
    return 100.0 if table.points and is_share(metric) else 1.0


@dataclass(frozen=True)
class Rule:
    """How a measured mean is compared with a published value, in the unit of both."""

    margin: float  # a larger difference is above or below
    closest: float  # a smaller difference is within, if the standard error does not exceed it; two points
    error: float  # standard error of the difference

    @classmethod
    def of(cls, table: Table, metric: str, values: Mapping[int, float], published: Published) -> Rule:
        """Return the rule for these values: their number and spread, and the deviation that was published."""
        point = 1.0 if unit(table, metric) == 100 else 0.01 * max(1.0, abs(published.value))  # of counts, one per cent
        n, theirs = max(1, len(values)), published.deviation
        # Of a single run, the paper's deviation is the best estimate.
        own = stdev(values.values()) if n > 1 else theirs or 0.0
        error = math.sqrt((own**2 + (theirs or 0.0) ** 2) / n)
        interval = _t_quantile(n, own, theirs or 0.0) * error
        least = (_POINTS if theirs is None else _ROUNDING) * point
        return cls(max(interval, least), _POINTS * point, error)


def _t_quantile(n: int, own: float, theirs: float) -> float:
    """Return the 97.5% quantile for the difference of two means of n runs each (Welch); normal for a single run."""
    from scipy.stats import norm, t

    squares = own**4 + theirs**4
    if n == 1 or squares == 0:
        return float(norm.ppf(0.975))
    return float(t.ppf(0.975, (n - 1) * (own**2 + theirs**2) ** 2 / squares))


def verdict(values: Mapping[int, float], published: Published | None, rule: Rule | None) -> str:
    """Compare measured values with a published one."""
    if not values:
        return NOT_MEASURED
    if published is None or rule is None:
        return NOT_PUBLISHED
    difference = fmean(values.values()) - published.value
    if abs(difference) >= rule.margin:
        return ABOVE if difference > 0 else BELOW
    return WITHIN if abs(difference) < rule.closest and rule.error <= rule.closest else UNDECIDED


# ----------------------------------------------------------------------------------------------------
# Methods compared with each other by paired t-tests over the seeds that they share.
#
# With five seeds, sign and rank tests cannot be significant: their smallest p-value is 0.06. Over cross-validation
# folds the training sets overlap, and a standard test is too optimistic: there the variance of the mean is 1/n +
# 1/(folds - 1) times that of the differences (Nadeau and Bengio). If all seeds have the same test items, the test is
# about further seeds, not about further items. P-values are corrected for the number of pairs in the table (Holm).

FEWEST_SEEDS = 3  # for a test


@dataclass(frozen=True)
class Pair:
    """Comparison of two methods on one data set, at one point of a sweep."""

    dataset: str  # name of the data set
    row: str  # name of one row
    other: str  # name of the other
    n: int  # number of seeds that both have
    difference: float  # mean of the first minus that of the other
    p: float | None  # two-sided p-value; None if nothing can be tested
    p_corrected: float | None = None  # the same, corrected for the number of pairs
    x: float | None = None  # position on the axis of a sweep
    metric: str = ""  # name of the metric
    interval: float | None = None  # half of the 95% confidence interval of the difference


def pairs(table: Table, results: Sequence[Entry]) -> list[Pair]:
    """Compare every two rows by the first metric, or the row in focus with the others by its metrics.

    Points of a sweep are compared with the same point of other rows, and with rows without a sweep.
    """
    focus = table.focus or {"metrics": table.metrics[:1]}
    tested = []
    for metric, dataset in product(focus["metrics"], table.datasets):
        here = [e for e in results if e.dataset == dataset.name and e.metric == metric and e.values]
        here.sort(key=lambda entry: entry.row != focus.get("row"))  # the row in focus is the first of a pair
        together = [(one, other) for one, other in combinations(here, 2) if _comparable(one, other, focus)]
        tested += [compare_entries(dataset, one, other) for one, other in together if _shared_seeds(one, other)]
    return _holm(tested)


def _comparable(one: Entry, other: Entry, focus: Mapping[str, Any]) -> bool:
    """Return whether two entries are to be compared; `one` is in focus if any is."""
    in_focus = one.row == focus.get("row", one.row) and other.row in focus.get("beside", [other.row])
    return in_focus and one.row != other.row and (one.x == other.x or None in (one.x, other.x))


def _shared_seeds(one: Entry, other: Entry) -> list[int]:
    return [seed for seed in one.values if seed in other.values]


def compare_entries(dataset: DataSet, one: Entry, other: Entry) -> Pair:
    """Return the difference of two rows and its uncorrected test."""
    differences = [one.values[seed] - other.values[seed] for seed in _shared_seeds(one, other)]
    n, mean = len(differences), fmean(differences)
    overlap = 1 / (dataset.folds - 1) if dataset.folds else 0.0
    p, x = paired_t(differences, overlap), other.x if one.x is None else one.x
    interval = None if p is None else half_width(differences, overlap)
    return Pair(dataset.name, one.row, other.row, n, mean, p, None, x, one.metric, interval)


def half_width(differences: Sequence[float], overlap: float = 0.0) -> float:
    """Return half of the 95% confidence interval of the mean, by the t distribution."""
    from scipy.stats import t

    n = len(differences)
    return float(t.ppf(0.975, n - 1) * stdev(differences) * math.sqrt(1 / n + overlap))


def paired_t(differences: Sequence[float], overlap: float = 0.0) -> float | None:
    """Return the two-sided p-value of a mean difference of 0."""
    n = len(differences)
    deviation = stdev(differences) if n > 1 else 0.0
    if n < FEWEST_SEEDS or deviation <= 1e-12 * max(map(abs, differences)):
        return None
    from scipy.stats import t

    return float(2 * t.sf(abs(fmean(differences)) / (deviation * math.sqrt(1 / n + overlap)), n - 1))


def _holm(tested: list[Pair]) -> list[Pair]:
    """Return the pairs with Holm's correction: the k-th smallest of m p-values times m - k + 1, made monotone."""
    order = sorted((pair.p, at) for at, pair in enumerate(tested) if pair.p is not None)
    corrected, largest = list(tested), 0.0
    for rank, (p, at) in enumerate(order):
        largest = max(largest, min(1.0, p * (len(order) - rank)))
        corrected[at] = replace(tested[at], p_corrected=largest)
    return corrected


# ----------------------------------------------------------------------------------------------------
# Ranks of methods over several data sets.

_BOOTSTRAP = 20265  # seed
_DRAWS = 4000  # of the bootstrap: each tail has 200
_TAILS = (0.05, 0.95)  # of a 90% interval


@dataclass(frozen=True)
class Standing:
    """Result of one method over all data sets."""

    row: str  # name of the method
    # mean rank over the data sets, 1 is the best; equal values share a rank, a failed method has the last one
    rank: float
    n_near_best: int  # number of data sets on which the method is within one standard error of the best
    n_sets: int  # number of data sets
    interval: tuple[float, float] = (math.nan, math.nan)  # 90% interval of the mean rank: bootstrap over the data sets


def standings(results: Sequence[Entry], metric: str = "accuracy") -> list[Standing]:
    """Rank methods over all data sets on which any was measured."""
    of_metric = [entry for entry in results if entry.metric == metric]
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
