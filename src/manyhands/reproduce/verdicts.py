"""What was measured beside what was published, and methods beside each other.

A value is *within* the published one if it is closer than two standard errors of the difference, or than two points
where the paper gives no deviation. How many runs a paper's deviation is over is rarely said: as many as ours are taken.

Methods are compared by a paired t-test over the seeds that they share. With five seeds a test by signs or ranks could
not find anything: its smallest p is 0.06. Over folds the training parts overlap, which makes a plain test too sure of
itself: there the variance of the mean is 1/n + 1/(folds - 1) times that of the differences (Nadeau and Bengio 2003).
Where the test part is the same for all seeds, the test speaks of the seeds and not of further items. P-values are
corrected for the number of all pairs in the table (Holm 1979).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product
from statistics import fmean, stdev
from typing import Any

from manyhands.reproduce.cells import Cell
from manyhands.reproduce.records import Records
from manyhands.reproduce.tables import DataSet, Published, Row, Table, is_share

WITHIN, ABOVE, BELOW = "within", "above", "below"
NOT_PUBLISHED, NOT_MEASURED = "not published", "not measured"

_POINTS = 2.0  # how close is close where the paper gives no deviation
_ROUNDING = 0.05  # points that one decimal hides
_FEWEST_SEEDS = 3  # for a test


@dataclass(frozen=True)
class Entry:
    """One metric of one row on one data set.

    Figures are in the unit of the table: per cent of shares if it has `points`. `margin` is how far from the published
    value still counts as within; `errors` are the distinct reasons why seeds failed, `why` that of a row not measured.
    `x` is where it stands on the axis of a table that is drawn over something.
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
        return len(self.values)

    @property
    def mean(self) -> float | None:
        return fmean(self.values.values()) if self.values else None

    @property
    def deviation(self) -> float | None:
        """Standard deviation over the seeds; None for fewer than two."""
        return stdev(self.values.values()) if self.n > 1 else None

    @property
    def difference(self) -> float | None:
        """Measured less published."""
        return None if self.mean is None or self.published is None else self.mean - self.published.value


@dataclass(frozen=True)
class Pair:
    """Two methods on one data set, at one point of a sweep, over the seeds that they share.

    p is None where nothing can be tested, and so is `interval`, by which the difference may be off in 19 of 20 cases; x
    is None where nothing is swept over.
    """

    dataset: str
    row: str
    other: str
    n: int
    difference: float
    p: float | None
    p_corrected: float | None = None
    x: float | None = None
    metric: str = ""
    interval: float | None = None


def entries(table: Table, cells: Sequence[Cell], records: Records) -> list[Entry]:
    """All metrics of all rows on all data sets of the table, and what was published of rows that are not measured."""
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
    return (dataset.name, row.name, *row.at.items())


def _entry(table: Table, dataset: DataSet, row: Row, metric: str, cells: Iterable[Cell], records: Records) -> Entry:
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
    """How many items were tested on; each fold has others, while seeds share theirs."""
    return sum(of_seeds[: dataset.folds]) if dataset.folds else max(of_seeds, default=0)


def _published(table: Table, row: Row, dataset: DataSet, metric: str) -> Published | None:
    of_metric = row.published if metric == table.metrics[0] else row.published_also.get(metric, {})
    return of_metric.get(dataset.name)


def unit(table: Table, metric: str) -> float:
    """What a figure is multiplied by before it is shown: 100 for shares in a table of points."""
    return 100.0 if table.points and is_share(metric) else 1.0


def _margin(table: Table, metric: str, values: Mapping[int, float], published: Published) -> float:
    """How far from the published value counts as within it."""
    point = 1.0 if unit(table, metric) == 100 else 0.01 * max(1.0, abs(published.value))  # of counts, a hundredth
    if published.deviation is None:
        return _POINTS * point
    n = max(1, len(values))
    own = stdev(values.values()) if n > 1 else published.deviation  # of one run, theirs is the best guess
    return max(2 * math.sqrt((own**2 + published.deviation**2) / n), _ROUNDING * point)


def verdict(values: Mapping[int, float], published: Published | None, margin: float | None) -> str:
    """One of within, above, below, not published, not measured."""
    if not values:
        return NOT_MEASURED
    if published is None or margin is None:
        return NOT_PUBLISHED
    difference = fmean(values.values()) - published.value
    if abs(difference) < margin:
        return WITHIN
    return ABOVE if difference > 0 else BELOW


def pairs(table: Table, found: Sequence[Entry]) -> list[Pair]:
    """Every two rows of a data set by the table's first metric, or its focus with all others by some metrics.

    Points of a sweep are compared where they are the same, and with rows that stand beside the sweep. P-values are
    corrected for how many pairs there are.
    """
    focus = table.focus or {"metrics": table.metrics[:1]}
    tested = []
    for metric, dataset in product(focus["metrics"], table.datasets):
        here = [e for e in found if e.dataset == dataset.name and e.metric == metric and e.values]
        here.sort(key=lambda entry: entry.row != focus.get("row"))  # the focus is the one that others are held against
        together = [(one, other) for one, other in combinations(here, 2) if _meet(one, other, focus)]
        tested += [_pair(dataset, one, other) for one, other in together if _shared(one, other)]
    return _holm(tested)


def _meet(one: Entry, other: Entry, focus: Mapping[str, Any]) -> bool:
    """Whether two entries are to be compared; of the two, `one` is in focus if any is."""
    in_focus = one.row == focus.get("row", one.row) and other.row in focus.get("beside", [other.row])
    return in_focus and one.row != other.row and (one.x == other.x or None in (one.x, other.x))


def _shared(one: Entry, other: Entry) -> list[int]:
    return [seed for seed in one.values if seed in other.values]


def _pair(dataset: DataSet, one: Entry, other: Entry) -> Pair:
    differences = [one.values[seed] - other.values[seed] for seed in _shared(one, other)]
    n, mean = len(differences), fmean(differences)
    extra = 1 / (dataset.folds - 1) if dataset.folds else 0.0
    p, x = paired_t(differences, extra), other.x if one.x is None else one.x
    interval = None if p is None else half_width(differences, extra)
    return Pair(dataset.name, one.row, other.row, n, mean, p, None, x, one.metric, interval)


def half_width(differences: Sequence[float], extra: float = 0.0) -> float:
    """Half of the 95 % interval of their mean, by the t distribution; `extra` as in `paired_t`."""
    from scipy.stats import t

    n = len(differences)
    return float(t.ppf(0.975, n - 1) * stdev(differences) * math.sqrt(1 / n + extra))


def paired_t(differences: Sequence[float], extra: float = 0.0) -> float | None:
    """Two-sided p of no difference; None for fewer than three, or where all are the same and there is no spread.

    `extra` is added to 1/n in the variance of the mean: test items per training item, where training parts overlap.
    """
    n = len(differences)
    spread = stdev(differences) if n > 1 else 0.0
    if n < _FEWEST_SEEDS or spread <= 1e-12 * max(map(abs, differences)):
        return None
    from scipy.stats import t

    return float(2 * t.sf(abs(fmean(differences)) / (spread * math.sqrt(1 / n + extra)), n - 1))


def _holm(tested: list[Pair]) -> list[Pair]:
    """The smallest p times the number of tests, the next times one less, and so on; never less than the one before."""
    order = sorted((pair.p, at) for at, pair in enumerate(tested) if pair.p is not None)
    corrected, largest = list(tested), 0.0
    for rank, (p, at) in enumerate(order):
        largest = max(largest, min(1.0, p * (len(order) - rank)))
        corrected[at] = replace(tested[at], p_corrected=largest)
    return corrected
