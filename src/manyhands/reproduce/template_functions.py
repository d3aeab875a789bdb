"""Functions of the page templates: every figure on a page comes from one of them, and so from stored rows."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from manyhands.exceptions import ParameterError
from manyhands.reproduce.cells import LOWER_IS_BETTER
from manyhands.reproduce.formatting import figure, title
from manyhands.reproduce.markdown import bullets
from manyhands.reproduce.measured import Loader, spread
from manyhands.reproduce.metric_names import is_share
from manyhands.reproduce.plots import file_names
from manyhands.reproduce.significance import Pair
from manyhands.reproduce.template_grids import curve_grid, method_grid
from manyhands.reproduce.verdicts import NOT_MEASURED, NOT_PUBLISHED

_FIGURES = "reproduced/"  # from docs/results


def template_functions(load: Loader) -> dict[str, Callable[..., str]]:
    """Return the functions that a template may call, by name.

    Parameters
    ----------
    load : callable
        Name of a table -> its measured results.

    Returns
    -------
    dict of str to callable
        All return text.
    """
    names = (
        *("table", "value", "mean", "sd", "published", "verdict", "difference", "order", "wins", "best", "chosen"),
        *("point", "picture", "command", "minutes", "cells", "seeds", "commit", "deviations", "unmeasured", "measured"),
    )
    functions = _Functions(load)
    return {name: getattr(functions, name) for name in names}


class _Functions:
    """The functions; `name` is that of a table, such as "iced/table-2"."""

    def __init__(self, load: Loader) -> None:
        self._load = load

    def table(
        self,
        name: str,
        metric: str | Sequence[str] | None = None,
        rows: Sequence[str] | None = None,
        datasets: Sequence[str] | None = None,
    ) -> str:
        """Return a grid of measured and published values; one line per method, or per point of an axis."""
        found = self._load(name)
        found.check_complete()
        metrics = [metric] if isinstance(metric, str) else list(metric or found.table.metrics[:1])
        for one in [*(rows or ()), *(datasets or ())]:
            (found.table.row if rows and one in rows else found.table.dataset)(one)  # refuses unknown names
        if found.table.x is not None:
            return "\n\n".join(curve_grid(found, one, rows, datasets) for one in metrics)
        return method_grid(found, metrics, rows, datasets)

    def value(self, name: str, row: str, dataset: str, metric: str | None = None, at: float | None = None) -> str:
        """Return mean ± standard deviation over seeds."""
        found = self._load(name)
        entry = found.entry(row, dataset, metric, at)
        return figure(entry.mean, entry.deviation, entry.metric, found.table.points)

    def mean(self, name: str, row: str, dataset: str, metric: str | None = None, at: float | None = None) -> str:
        """Return the mean over seeds."""
        found = self._load(name)
        entry = found.entry(row, dataset, metric, at)
        return figure(entry.mean, None, entry.metric, found.table.points)

    def sd(self, name: str, row: str, dataset: str, metric: str | None = None, at: float | None = None) -> str:
        """Return the standard deviation over seeds."""
        found = self._load(name)
        entry = found.entry(row, dataset, metric, at)
        return figure(entry.deviation or 0.0, None, entry.metric, found.table.points)

    def published(self, name: str, row: str, dataset: str, metric: str | None = None, at: float | None = None) -> str:
        """Return the published value, with its deviation if there is one."""
        found = self._load(name)
        metric = metric or found.table.metrics[0]
        for entry in found.entries:
            is_asked = (entry.row, entry.dataset, entry.metric) == (row, dataset, metric) and at in (None, entry.x)
            if is_asked and (value := entry.published) is not None:
                return figure(value.value, value.deviation, metric, found.table.points)
        raise ParameterError(f"{name} has no published {metric} of {row} on {dataset}.")

    def verdict(self, name: str, row: str, dataset: str, metric: str | None = None, at: float | None = None) -> str:
        """Return within, above or below."""
        found = self._load(name).entry(row, dataset, metric, at).verdict
        if found in (NOT_MEASURED, NOT_PUBLISHED):
            raise ParameterError(f"{name} has no verdict on {row} on {dataset}: {found}.")
        return found

    def difference(
        self, name: str, row: str, other: str, dataset: str, metric: str | None = None, at: float | None = None
    ) -> str:
        """Return row minus other, paired by seed, with its 95% interval."""
        pair = self._load(name).compare((row, other), dataset, metric, at)
        points = self._load(name).table.points
        shown = _signed(pair.difference, pair.metric, points)
        shown += " points" if points and is_share(pair.metric) else ""
        if pair.interval is None:
            return f"{shown} ({pair.n} seed{'s' if pair.n > 1 else ''})" if pair.n < 3 else f"{shown} (with every seed)"
        low, high = (pair.difference + sign * pair.interval for sign in (-1, 1))
        return f"{shown} (95% interval {_signed(low, pair.metric, points)} to {_signed(high, pair.metric, points)})"

    def order(
        self, name: str, row: str, other: str, dataset: str, metric: str | None = None, at: float | None = None
    ) -> str:
        """Return above or below if the 95% interval of the paired difference excludes 0, "not distinguishable" else."""
        return _order(self._load(name).compare((row, other), dataset, metric, at))

    def wins(
        self, name: str, row: str, other: str, dataset: str, metric: str | None = None, at: float | None = None
    ) -> str:
        """Return with how many seeds the row has the larger value, such as ``7 of 20``."""
        ahead, n = self._load(name).seeds_ahead((row, other), dataset, metric, at)
        return f"{ahead} of {n}"

    def best(self, name: str, dataset: str, metric: str | None = None, rows: Sequence[str] | None = None) -> str:
        """Return the name of the row with the best mean, among all or some rows."""
        found = self._load(name)
        found.check_complete()
        metric = metric or found.table.metrics[0]
        here = [e for e in found.entries if (e.dataset, e.metric) == (dataset, metric) and e.mean is not None]
        here = [entry for entry in here if rows is None or entry.row in rows]
        if not here:
            raise ParameterError(f"{name} has no {metric} on {dataset}.")
        sign = -1 if metric in LOWER_IS_BETTER else 1
        return max(here, key=lambda entry: sign * (entry.mean or 0)).row

    def chosen(self, name: str, row: str, dataset: str, at: float | None = None) -> str:
        """Return the settings that held-out annotations chose, with the number of seeds."""
        counts = Counter(json.dumps(setting, sort_keys=True) for setting in self._load(name).chosen(row, dataset, at))
        if not counts:
            raise ParameterError(f"{name} has no choice of settings for {row} on {dataset}.")
        return ", ".join(f"{_setting(json.loads(text))} ({n} of {counts.total()})" for text, n in counts.most_common())

    def point(
        self, name: str, row: str, dataset: str, series: str, index: int, component: int | None = None, digits: int = 3
    ) -> str:
        """Return mean ± standard deviation over seeds of one number of a series."""
        numbers = self._load(name).numbers(row, dataset, series)
        found = [one[index] if component is None else one[index][component] for one in numbers]
        middle, deviation = spread([value for value in found if value is not None] or [math.nan])
        return f"{middle:.{digits}f}" + ("" if deviation is None else f" ± {deviation:.{digits}f}")

    def picture(self, name: str, which: str | None = None) -> str:
        """Return a figure of the table; `which` is its suffix, metric or series."""
        found = self._load(name)
        found.check_complete()
        files = file_names(found.table)
        for file, picture in files.items():
            if which in (None, picture.name, picture.metric, *picture.series):
                about = picture.title or title(picture.metric or picture.series[0])
                return f"![{found.table.title}: {about}]({_FIGURES}{file})"
        raise ParameterError(f"{name} has no figure {which!r}; there are: {', '.join(files)}.")

    def command(self, name: str) -> str:
        """Return what to type."""
        return self._load(name).command

    def minutes(self, name: str) -> str:
        """Return the time of all cells together, one thread each."""
        found = self._load(name)
        found.check_complete()
        return minutes_text(found.seconds)

    def cells(self, name: str) -> str:
        """Return the number of cells, which are all measured."""
        found = self._load(name)
        found.check_complete()
        return str(len(found.cells))

    def measured(self, name: str) -> str:
        """Return "yes" if all cells are measured, nothing otherwise, for sections that wait for their table."""
        found = self._load(name)
        return "yes" if all(cell.is_done(found.records.find(cell.key)) for cell in found.cells) else ""

    def seeds(self, name: str) -> str:
        """Return the number of seeds of the table."""
        return str(self._load(name).table.seeds)

    def commit(self, name: str) -> str:
        """Return the commits at which rows were measured."""
        return ", ".join(str(commit)[:12] for commit in self._load(name).page["commits"])

    def deviations(self, name: str) -> str:
        """Return what differs from the paper, as a list."""
        return bullets(self._load(name).table.deviations)

    def unmeasured(self, name: str) -> str:
        """Return the rows without a method and the reasons, as a list."""
        rows = [row for row in self._load(name).table.rows if row.why]
        return bullets(f"{row.name}: {row.why}" for row in rows)


def minutes_text(seconds: float) -> str:
    """Return a time in minutes.

    Parameters
    ----------
    seconds : float
        The time.

    Returns
    -------
    str
        With one decimal below ten minutes.

    Examples
    --------
    >>> minutes_text(84), minutes_text(3000)
    ('1.4', '50')
    """
    return f"{seconds / 60:.1f}" if seconds < 600 else f"{seconds / 60:.0f}"


def _signed(value: float, metric: str, points: bool) -> str:
    """Return a difference with its sign."""
    if points and is_share(metric):
        return f"{value:+.1f}"
    return f"{value:+.3f}" if abs(value) < 100 else f"{value:+.0f}"


def _order(pair: Pair) -> str:
    """Return which of two rows has the larger values, if the interval of their difference excludes 0."""
    is_same = pair.interval is None and pair.n >= 3  # the difference is the same with every seed
    if pair.difference != 0 and (is_same or (pair.interval is not None and abs(pair.difference) > pair.interval)):
        return "above" if pair.difference > 0 else "below"
    return "not distinguishable"


def _setting(parameters: Mapping[str, Any]) -> str:
    """Return parameters as the table writes them."""
    return f"`{', '.join(f'{name} = {value}' for name, value in parameters.items())}`" if parameters else "as given"
