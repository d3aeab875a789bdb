"""Methods compared with each other by paired t-tests over the seeds that they share.

With five seeds, sign and rank tests cannot be significant: their smallest p-value is 0.06. Over cross-validation folds
the training sets overlap, and a standard test is too optimistic: there the variance of the mean is 1/n + 1/(folds - 1)
times that of the differences [1]_. If all seeds have the same test items, the test is about further seeds, not about
further items. P-values are corrected for the number of pairs in the table [2]_.

References
----------
.. [1] Nadeau and Bengio, "Inference for the generalization error", Machine Learning 52, 2003.
.. [2] Holm, "A simple sequentially rejective multiple test procedure", Scandinavian Journal of Statistics 6, 1979.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product
from statistics import fmean, stdev
from typing import Any

from manyhands.reproduce.tables import DataSet, Table
from manyhands.reproduce.verdicts import Entry

FEWEST_SEEDS = 3  # for a test


@dataclass(frozen=True)
class Pair:
    """Comparison of two methods on one data set, at one point of a sweep.

    Attributes
    ----------
    dataset : str
        Name of the data set.
    row : str
        Name of one row.
    other : str
        Name of the other.
    n : int
        Number of seeds that both have.
    difference : float
        Mean of the first minus that of the other.
    p : float or None
        Two-sided p-value; None if nothing can be tested.
    p_corrected : float or None, default=None
        The same, corrected for the number of pairs.
    x : float or None, default=None
        Position on the axis of a sweep.
    metric : str, default=""
        Name of the metric.
    interval : float or None, default=None
        Half of the 95% confidence interval of the difference.
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


def pairs(table: Table, found: Sequence[Entry]) -> list[Pair]:
    """Compare every two rows by the first metric, or the row in focus with the others by its metrics.

    Points of a sweep are compared with the same point of other rows, and with rows without a sweep.

    Parameters
    ----------
    table : Table
        The table, with its `focus`.
    found : sequence of Entry
        Its results.

    Returns
    -------
    list of Pair
        Comparisons, with p-values corrected for their number.
    """
    focus = table.focus or {"metrics": table.metrics[:1]}
    tested = []
    for metric, dataset in product(focus["metrics"], table.datasets):
        here = [e for e in found if e.dataset == dataset.name and e.metric == metric and e.values]
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
    """Return the difference of two rows and its uncorrected test.

    Parameters
    ----------
    dataset : DataSet
        The data set, whose folds widen the interval.
    one : Entry
        The row.
    other : Entry
        The row that is subtracted; both share at least one seed.

    Returns
    -------
    Pair
        Difference, p-value, and half of the 95% interval; the last two are None if nothing can be tested.
    """
    differences = [one.values[seed] - other.values[seed] for seed in _shared_seeds(one, other)]
    n, mean = len(differences), fmean(differences)
    overlap = 1 / (dataset.folds - 1) if dataset.folds else 0.0
    p, x = paired_t(differences, overlap), other.x if one.x is None else one.x
    interval = None if p is None else half_width(differences, overlap)
    return Pair(dataset.name, one.row, other.row, n, mean, p, None, x, one.metric, interval)


def half_width(differences: Sequence[float], overlap: float = 0.0) -> float:
    """Return half of the 95% confidence interval of the mean, by the t distribution.

    Parameters
    ----------
    differences : sequence of float
        Paired differences.
    overlap : float, default=0.0
        Correction for overlapping training sets, as in `paired_t`.

    Returns
    -------
    float
        Half of the width.
    """
    from scipy.stats import t

    n = len(differences)
    return float(t.ppf(0.975, n - 1) * stdev(differences) * math.sqrt(1 / n + overlap))


def paired_t(differences: Sequence[float], overlap: float = 0.0) -> float | None:
    """Return the two-sided p-value of a mean difference of 0.

    Parameters
    ----------
    differences : sequence of float
        Paired differences.
    overlap : float, default=0.0
        Added to 1/n in the variance of the mean: test items per training item, if training sets overlap.

    Returns
    -------
    float or None
        None for fewer than three differences, or if all are equal.
    """
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
