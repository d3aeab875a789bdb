"""Measured values compared with published ones.

A measured mean is *within* the published value if they differ by less than two standard errors of the difference, or
by less than two points if the paper gives no standard deviation. The number of runs behind a paper's deviation is
rarely given; it is taken to be ours.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from manyhands.reproduce.cells import Cell
from manyhands.reproduce.metric_names import is_share
from manyhands.reproduce.records import Records
from manyhands.reproduce.tables import DataSet, Published, Row, Table

WITHIN, ABOVE, BELOW = "within", "above", "below"
NOT_PUBLISHED, NOT_MEASURED = "not published", "not measured"

_POINTS = 2.0  # margin if the paper gives no deviation
_ROUNDING = 0.05  # points that are lost by rounding to one decimal


@dataclass(frozen=True)
class Entry:
    """One metric of one row on one data set; figures are per cent of shares if the table has `points`.

    Attributes
    ----------
    dataset : str
        Name of the data set.
    row : str
        Name of the row.
    metric : str
        Name of the metric.
    values : mapping of int to float
        Seed -> measured value.
    published : Published or None
        The published value.
    margin : float or None
        Largest difference from the published value that counts as within.
    verdict : str
        "within", "above", "below", "not published" or "not measured".
    n_test : int, default=0
        Number of test items.
    n_failed : int, default=0
        Number of seeds that failed.
    errors : tuple of str, default=()
        Their distinct reasons.
    why : str, default=""
        Why the row is not measured.
    x : float or None, default=None
        Position on the axis of a plot.
    """

    dataset: str
    row: str
    metric: str
    values: Mapping[int, float]
    published: Published | None
    margin: float | None
    verdict: str
    n_test: int = 0
    n_failed: int = 0
    errors: tuple[str, ...] = ()
    why: str = ""
    x: float | None = None

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
    """Return all metrics of all rows on all data sets, and published values of rows that are not measured.

    Parameters
    ----------
    table : Table
        The table.
    cells : sequence of Cell
        Its cells.
    records : Records
        Result rows.

    Returns
    -------
    list of Entry
        By metric, data set and row.
    """
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
    found = {cell.seed: records.find(cell.key) for cell in cells}
    done = {seed: record for seed, record in found.items() if record is not None and "metrics" in record}
    errors = [record["error"] for record in found.values() if record is not None and "error" in record]
    given = {seed: record["metrics"].get(metric) for seed, record in done.items()}
    values = {seed: value * unit(table, metric) for seed, value in given.items() if value is not None}
    published = _published(table, row, dataset, metric)
    margin = None if published is None else _margin(table, metric, values, published)
    return Entry(
        dataset.name,
        row.name,
        metric,
        values,
        published,
        margin,
        verdict(values, published, margin),
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
    """Return the factor by which a value is multiplied before it is shown.

    Parameters
    ----------
    table : Table
        The table.
    metric : str
        Name of the metric.

    Returns
    -------
    float
        100 for shares in a table of per cent, 1 otherwise.
    """
    return 100.0 if table.points and is_share(metric) else 1.0


def _margin(table: Table, metric: str, values: Mapping[int, float], published: Published) -> float:
    """Return the largest difference from the published value that counts as within."""
    point = 1.0 if unit(table, metric) == 100 else 0.01 * max(1.0, abs(published.value))  # of counts, one per cent
    if published.deviation is None:
        return _POINTS * point
    n = max(1, len(values))
    own = stdev(values.values()) if n > 1 else published.deviation  # of a single run, the paper's is the best estimate
    return max(2 * math.sqrt((own**2 + published.deviation**2) / n), _ROUNDING * point)


def verdict(values: Mapping[int, float], published: Published | None, margin: float | None) -> str:
    """Compare measured values with a published one.

    Parameters
    ----------
    values : mapping of int to float
        Seed -> measured value.
    published : Published or None
        The published value.
    margin : float or None
        Largest difference that counts as within.

    Returns
    -------
    str
        "within", "above", "below", "not published" or "not measured".
    """
    if not values:
        return NOT_MEASURED
    if published is None or margin is None:
        return NOT_PUBLISHED
    difference = fmean(values.values()) - published.value
    if abs(difference) < margin:
        return WITHIN
    return ABOVE if difference > 0 else BELOW
