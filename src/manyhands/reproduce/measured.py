"""Measured tables as the pages quote them: the results of one row on one data set, complete or refused."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from statistics import fmean, stdev
from typing import Any

from manyhands.exceptions import ParameterError
from manyhands.reproduce.cells import Cell, cells_of
from manyhands.reproduce.keys import nearest
from manyhands.reproduce.pages import Page, page
from manyhands.reproduce.records import Records
from manyhands.reproduce.significance import Pair, compare_entries
from manyhands.reproduce.staleness import describe_stale
from manyhands.reproduce.tables import Table
from manyhands.reproduce.verdicts import Entry, entries


@dataclass(frozen=True, eq=False)
class Measured:
    """A table with its stored rows.

    Attributes
    ----------
    table : Table
        The table.
    records : Records
        The rows of its file.
    """

    table: Table
    records: Records = field(default_factory=Records)

    @cached_property
    def cells(self) -> list[Cell]:
        """All cells of the table."""
        return cells_of(self.table)

    @cached_property
    def entries(self) -> list[Entry]:
        """All metrics of all rows on all data sets."""
        return entries(self.table, self.cells, self.records)

    @cached_property
    def page(self) -> Page:
        """The table as one JSON object."""
        stale = describe_stale(self.table, self.records)
        return page(self.table, self.cells, self.records, self.command, stale)

    @property
    def command(self) -> str:
        """What to type for the same figures."""
        return f"manyhands reproduce {shlex.quote(self.table.name)}"

    @property
    def n_found(self) -> int:
        """Number of cells that have a row, measured or failed."""
        return sum(self.records.find(cell.key) is not None for cell in self.cells)

    @property
    def seconds(self) -> float:
        """Time of all cells together."""
        found = [self.records.find(cell.key) or {} for cell in self.cells]
        return float(sum(record.get("seconds") or 0 for record in found))

    def check_complete(self) -> None:
        """Refuse a table with cells that were not measured.

        Raises
        ------
        ParameterError
            One sentence that names the first of them.
        """
        missing = [cell for cell in self.cells if not cell.is_done(self.records.find(cell.key))]
        if missing:
            raise ParameterError(
                f"{self.table.name} has no result of {missing[0]} ({len(missing)} of {len(self.cells)} cells are "
                f"missing); run: {self.command}"
            )

    def entry(self, row: str, dataset: str, metric: str | None = None, at: float | None = None) -> Entry:
        """Return the results of one row on one data set, measured with all seeds.

        Parameters
        ----------
        row : str
            Name of the row.
        dataset : str
            Name of the data set.
        metric : str or None, default=None
            Name of the metric; None is the first of the table.
        at : float or None, default=None
            Point of a sweep.

        Returns
        -------
        Entry
            With all its seeds.

        Raises
        ------
        ParameterError
            If there is no such cell, or one of its seeds was not measured or failed.
        """
        metric = self._metric(metric)
        self._check_seeds(row, dataset, at)
        found = [e for e in self.entries if (e.row, e.dataset, e.metric) == (row, dataset, metric)]
        found = [entry for entry in found if not self.table.sweeps or entry.x == at]
        if not found or not found[0].values:
            why = found[0].errors or (found[0].why,) if found else ()
            raise ParameterError(
                f"{self.table.name} has no {metric} of {self._place(row, dataset, at)}"
                f"{': ' + why[0] if why and why[0] else ''}."
            )
        return found[0]

    def compare(self, rows: tuple[str, str], dataset: str, metric: str | None = None, at: float | None = None) -> Pair:
        """Return the difference of two rows, paired by seed.

        A row without random numbers on fixed data has one seed, whose value is that of every seed.

        Parameters
        ----------
        rows : tuple of str
            The row, and the one that is subtracted.
        dataset : str
            Name of the data set.
        metric : str or None, default=None
            Name of the metric; None is the first of the table.
        at : float or None, default=None
            Point of a sweep; a row without a sweep is compared with it.

        Returns
        -------
        Pair
            Difference and half of its 95% interval.
        """
        one, other = (self.entry(row, dataset, metric, self._point(row, at)) for row in rows)
        seeds = list(dict.fromkeys([*one.values, *other.values]))
        one, other = (self._repeated(entry, seeds) for entry in (one, other))
        return compare_entries(self.table.dataset(dataset), one, other)

    def seeds_ahead(
        self, rows: tuple[str, str], dataset: str, metric: str | None = None, at: float | None = None
    ) -> tuple[int, int]:
        """Return with how many seeds the first row has the larger value, and the number of seeds.

        Parameters
        ----------
        rows : tuple of str
            The row, and the one that it is compared with.
        dataset : str
            Name of the data set.
        metric : str or None, default=None
            Name of the metric; None is the first of the table.
        at : float or None, default=None
            Point of a sweep.

        Returns
        -------
        tuple of int
            Seeds with a larger value, and all seeds that both rows have.
        """
        one, other = (self.entry(row, dataset, metric, self._point(row, at)) for row in rows)
        seeds = list(dict.fromkeys([*one.values, *other.values]))
        one, other = (self._repeated(entry, seeds) for entry in (one, other))
        both = [(one.values[seed], other.values[seed]) for seed in seeds if seed in one.values and seed in other.values]
        return sum(a > b for a, b in both), len(both)

    def numbers(self, row: str, dataset: str, series: str, at: float | None = None) -> list[list[Any]]:
        """Return a series of one row on one data set, a list for each seed.

        Parameters
        ----------
        row : str
            Name of the row.
        dataset : str
            Name of the data set.
        series : str
            Name of the series.
        at : float or None, default=None
            Point of a sweep.

        Returns
        -------
        list of list
            The numbers of each seed.

        Raises
        ------
        ParameterError
            If a seed was not measured, or the row has no such series.
        """
        self._check_seeds(row, dataset, at)
        cells = self._cells(row, dataset, at)
        found = [((self.records.find(cell.key) or {}).get("series") or {}).get(series) for cell in cells]
        if series not in self.table.series or any(numbers is None for numbers in found) or not found:
            raise ParameterError(f"{self.table.name} has no series {series} of {self._place(row, dataset, at)}.")
        return [list(numbers) for numbers in found if numbers is not None]

    def chosen(self, row: str, dataset: str, at: float | None = None) -> list[Mapping[str, Any]]:
        """Return the settings that held-out annotations chose, one for each seed.

        Parameters
        ----------
        row : str
            Name of the row.
        dataset : str
            Name of the data set.
        at : float or None, default=None
            Point of a sweep.

        Returns
        -------
        list of mapping
            Parameters; empty if there was no choice.
        """
        self._check_seeds(row, dataset, at)
        found = [(self.records.find(cell.key) or {}).get("chosen") for cell in self._cells(row, dataset, at)]
        return [dict(setting) for setting in found if setting is not None]

    def _metric(self, metric: str | None) -> str:
        """Return a metric of the table; unknown ones are refused."""
        metric = self.table.metrics[0] if metric is None else metric
        if metric not in self.table.metrics:
            raise ParameterError(f"{self.table.name} has no metric {metric!r}{nearest(metric, self.table.metrics)}.")
        return metric

    def _point(self, row: str, at: float | None) -> float | None:
        """Return the point of a sweep, None for a row that has no sweep."""
        return at if self.table.row(row).at else None

    def _cells(self, row: str, dataset: str, at: float | None) -> list[Cell]:
        """Return the cells of all seeds."""
        self.table.row(row), self.table.dataset(dataset)  # refuses unknown names
        found = [cell for cell in self.cells if (cell.row.name, cell.dataset.name) == (row, dataset)]
        return [cell for cell in found if at in cell.row.at.values() or (at is None and not cell.row.at)]

    def _check_seeds(self, row: str, dataset: str, at: float | None) -> None:
        """Refuse a row that is not measured on a data set, or not with all seeds."""
        cells, place = self._cells(row, dataset, at), self._place(row, dataset, at)
        if not cells:
            raise ParameterError(f"{self.table.name} does not measure {place}.")
        found = [self.records.find(cell.key) for cell in cells]
        missing = sum(record is None for record in found)
        if missing:
            raise ParameterError(
                f"{self.table.name} has {len(cells) - missing} of {len(cells)} seeds of {place}; run: {self.command}"
            )

    def _repeated(self, entry: Entry, seeds: list[int]) -> Entry:
        """Return an entry of one seed with the same value for all, if the seed cannot change it."""
        cells = self._cells(entry.row, entry.dataset, entry.x if self.table.sweeps else None)
        if len(cells) != 1 or self.table.seeds == 1:
            return entry
        (value,) = entry.values.values()
        return replace(entry, values=dict.fromkeys(seeds, value))

    def _place(self, row: str, dataset: str, at: float | None) -> str:
        return f"{row}{'' if at is None else f' at {self.table.x} = {at:g}'} on {dataset}"


def spread(values: list[float]) -> tuple[float, float | None]:
    """Return mean and standard deviation.

    Parameters
    ----------
    values : list of float
        At least one number.

    Returns
    -------
    tuple of float
        The deviation is None for one number.
    """
    return fmean(values), stdev(values) if len(values) > 1 else None


Loader = Callable[[str], Measured]
