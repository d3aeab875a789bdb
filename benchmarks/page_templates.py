"""The pages of `docs/results`, made from templates and stored rows; nothing is measured.

    reproduced/<paper>-<table>.md and .svg   every table that has rows
    <page>.md                                from templates/<page>.md.j2, with the functions of `_Functions`
    leaderboard.md and its figures           from the rows of `manyhands leaderboard`

A template that asks for a cell without a result is refused in one sentence; the other pages are still made.
"""

from __future__ import annotations

import json
import math
import shlex
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from manyhands.exceptions import ManyhandsError, MissingExtraError, ParameterError
from manyhands.reproduce import leaderboard
from manyhands.reproduce.cells import LOWER_IS_BETTER, Cell, cells_of
from manyhands.reproduce.pages import Page, bullets, curves, grid, page, to_markdown
from manyhands.reproduce.parsing import load_table, table_names
from manyhands.reproduce.plots import file_names, ranks_to_svg, to_svg
from manyhands.reproduce.records import Records, describe_stale, read_records, rows_file
from manyhands.reproduce.tables import Table, figure, is_share, nearest, title
from manyhands.reproduce.verdicts import NOT_MEASURED, NOT_PUBLISHED, Entry, Pair, compare_entries, entries, standings

TEMPLATES, REPRODUCED = "templates", "reproduced"  # folders below docs/results

# ----------------------------------------------------------------------------------------------------
# Measured tables as the pages quote them: the results of one row on one data set, complete or refused.


@dataclass(frozen=True, eq=False)
class Measured:
    """A table with its stored rows."""

    table: Table
    records: Records = field(default_factory=Records)  # the rows of its file

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
        """Refuse a table with cells that were not measured."""
        missing = [cell for cell in self.cells if not cell.is_done(self.records.find(cell.key))]
        if missing:
            raise ParameterError(
                f"{self.table.name} has no result of {missing[0]} ({len(missing)} of {len(self.cells)} cells are "
                f"missing); run: {self.command}"
            )

    def entry(self, row: str, dataset: str, metric: str | None = None, at: float | None = None) -> Entry:
        """Return the results of one row on one data set, measured with all seeds."""
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

        A row without random numbers on fixed data has one seed, whose value is that of every seed."""
        one, other = (self.entry(row, dataset, metric, self._point(row, at)) for row in rows)
        seeds = list(dict.fromkeys([*one.values, *other.values]))
        one, other = (self._repeated(entry, seeds) for entry in (one, other))
        return compare_entries(self.table.dataset(dataset), one, other)

    def seeds_ahead(
        self, rows: tuple[str, str], dataset: str, metric: str | None = None, at: float | None = None
    ) -> tuple[int, int]:
        """Return with how many seeds the first row has the larger value, and the number of seeds."""
        one, other = (self.entry(row, dataset, metric, self._point(row, at)) for row in rows)
        seeds = list(dict.fromkeys([*one.values, *other.values]))
        one, other = (self._repeated(entry, seeds) for entry in (one, other))
        both = [(one.values[seed], other.values[seed]) for seed in seeds if seed in one.values and seed in other.values]
        return sum(a > b for a, b in both), len(both)

    def numbers(self, row: str, dataset: str, series: str, at: float | None = None) -> list[list[Any]]:
        """Return a series of one row on one data set, a list for each seed."""
        self._check_seeds(row, dataset, at)
        cells = self._cells(row, dataset, at)
        found = [((self.records.find(cell.key) or {}).get("series") or {}).get(series) for cell in cells]
        if series not in self.table.series or any(numbers is None for numbers in found) or not found:
            raise ParameterError(f"{self.table.name} has no series {series} of {self._place(row, dataset, at)}.")
        return [list(numbers) for numbers in found if numbers is not None]

    def chosen(self, row: str, dataset: str, at: float | None = None) -> list[Mapping[str, Any]]:
        """Return the settings that held-out annotations chose, one for each seed."""
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


Loader = Callable[[str], Measured]


# ----------------------------------------------------------------------------------------------------
# Grids of measured and published values on the pages of results.


def _method_grid(
    measured: Measured, metrics: Sequence[str], rows: Sequence[str] | None, datasets: Sequence[str] | None
) -> str:
    """Return one line per method, and for each data set and metric a column, followed by published values if any."""
    table, points = measured.table, measured.table.points
    by_place = {(entry.row, entry.dataset, entry.metric): entry for entry in measured.entries}
    names = [row.name for row in table.rows if rows is None or row.name in rows]
    names = [*rows] if rows is not None else list(dict.fromkeys(names))
    sets = list(datasets) if datasets is not None else [dataset.name for dataset in table.datasets]
    columns, lines = ["method"], [[name] for name in names]
    for dataset in sets:
        for metric in metrics:
            own = [by_place.get((name, dataset, metric)) for name in names]
            heading = title(metric) if len(sets) == 1 else dataset
            heading = f"{dataset}, {title(metric)}" if len(metrics) > 1 and len(sets) > 1 else heading
            columns.append(heading)
            for line, entry in zip(lines, own):
                shown = "" if entry is None else figure(entry.mean, entry.deviation, metric, points)
                line.append(shown or ("failed" if entry is not None and entry.errors else "–"))
            if any(entry is not None and entry.published is not None for entry in own):
                columns.append("published")
                for line, entry in zip(lines, own):
                    line.append(_published_text(entry, metric, points))
    return grid(columns, lines)


def _published_text(entry: Any, metric: str, points: bool) -> str:
    """Return a published value with the verdict on ours."""
    if entry is None or entry.published is None:
        return "–"
    shown = figure(entry.published.value, entry.published.deviation, metric, points)
    return f"{shown} ({entry.verdict})" if entry.values else shown


def _curve_grid(measured: Measured, metric: str, rows: Sequence[str] | None, datasets: Sequence[str] | None) -> str:
    """Return one line per point of the axis and one column per method."""
    entries = [
        entry
        for entry in measured.page["entries"]
        if (rows is None or entry["row"] in rows) and (datasets is None or entry["dataset"] in datasets)
    ]
    columns, lines = curves(measured.page | {"entries": entries}, metric)
    return grid([columns[0], columns[1], *columns[2:]], lines)


# ----------------------------------------------------------------------------------------------------
# Functions of the page templates: every figure on a page comes from one of them, and so from stored rows.


def _template_functions(load: Loader) -> dict[str, Callable[..., str]]:
    """Return the functions that a template may call, by name."""
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
        measured = self._load(name)
        measured.check_complete()
        metrics = [metric] if isinstance(metric, str) else list(metric or measured.table.metrics[:1])
        for one in [*(rows or ()), *(datasets or ())]:
            (measured.table.row if rows and one in rows else measured.table.dataset)(one)  # refuses unknown names
        if measured.table.x is not None:
            return "\n\n".join(_curve_grid(measured, one, rows, datasets) for one in metrics)
        return _method_grid(measured, metrics, rows, datasets)

    def value(self, name: str, row: str, dataset: str, metric: str | None = None, at: float | None = None) -> str:
        """Return mean ± standard deviation over seeds."""
        measured = self._load(name)
        entry = measured.entry(row, dataset, metric, at)
        return figure(entry.mean, entry.deviation, entry.metric, measured.table.points)

    def mean(self, name: str, row: str, dataset: str, metric: str | None = None, at: float | None = None) -> str:
        """Return the mean over seeds."""
        measured = self._load(name)
        entry = measured.entry(row, dataset, metric, at)
        return figure(entry.mean, None, entry.metric, measured.table.points)

    def sd(self, name: str, row: str, dataset: str, metric: str | None = None, at: float | None = None) -> str:
        """Return the standard deviation over seeds."""
        measured = self._load(name)
        entry = measured.entry(row, dataset, metric, at)
        return figure(entry.deviation or 0.0, None, entry.metric, measured.table.points)

    def published(self, name: str, row: str, dataset: str, metric: str | None = None, at: float | None = None) -> str:
        """Return the published value, with its deviation if there is one."""
        measured = self._load(name)
        metric = metric or measured.table.metrics[0]
        for entry in measured.entries:
            is_asked = (entry.row, entry.dataset, entry.metric) == (row, dataset, metric) and at in (None, entry.x)
            if is_asked and (value := entry.published) is not None:
                return figure(value.value, value.deviation, metric, measured.table.points)
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
        measured = self._load(name)
        measured.check_complete()
        metric = metric or measured.table.metrics[0]
        here = [e for e in measured.entries if (e.dataset, e.metric) == (dataset, metric) and e.mean is not None]
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
        numbers_there = [value for value in found if value is not None] or [math.nan]
        deviation = f" ± {stdev(numbers_there):.{digits}f}" if len(numbers_there) > 1 else ""
        return f"{fmean(numbers_there):.{digits}f}{deviation}"

    def picture(self, name: str, which: str | None = None) -> str:
        """Return a figure of the table; `which` is its suffix, metric or series."""
        measured = self._load(name)
        measured.check_complete()
        files = file_names(measured.table)
        for file, picture in files.items():
            if which in (None, picture.name, picture.metric, *picture.series):
                about = picture.title or title(picture.metric or picture.series[0])
                return f"![{measured.table.title}: {about}]({REPRODUCED}/{file})"
        raise ParameterError(f"{name} has no figure {which!r}; there are: {', '.join(files)}.")

    def command(self, name: str) -> str:
        """Return what to type."""
        return self._load(name).command

    def minutes(self, name: str) -> str:
        """Return the time of all cells together, one thread each."""
        measured = self._load(name)
        measured.check_complete()
        return _minutes(measured.seconds)

    def cells(self, name: str) -> str:
        """Return the number of cells, which are all measured."""
        measured = self._load(name)
        measured.check_complete()
        return str(len(measured.cells))

    def measured(self, name: str) -> str:
        """Return "yes" if all cells are measured, nothing otherwise, for sections that wait for their table."""
        measured = self._load(name)
        return "yes" if all(cell.is_done(measured.records.find(cell.key)) for cell in measured.cells) else ""

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


def _minutes(seconds: float) -> str:
    """Return a time in minutes.

    Examples
    --------
    >>> _minutes(84), _minutes(3000)
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


# ----------------------------------------------------------------------------------------------------
# All files of `docs/results` that are made: pages of tables with their figures, pages from templates, the leaderboard.

_ENDING = ".md.j2"
_LEADERBOARD = "leaderboard.md"


@dataclass(frozen=True)
class Documents:
    """Contents of files below `docs/results`."""

    files: Mapping[str, bytes] = field(default_factory=dict)  # path below the folder -> content
    problems: tuple[str, ...] = ()  # why pages could not be made, a sentence each


def render_documents(folder: Path, *, draw: bool = True) -> Documents:
    """Make all pages of a folder."""
    load = stored_results(folder / "rows")
    files: dict[str, bytes] = {}
    problems: list[str] = []
    for name in table_names():
        measured = load(name)
        if measured.n_found:
            files |= _table_files(measured, draw)
        if measured.n_found < len(measured.cells):
            problems.append(f"{name}: {measured.n_found} of {len(measured.cells)} cells are measured.")
    files |= _leaderboard_files([load(name) for name in _boards()], draw)
    for path in sorted((folder / TEMPLATES).glob(f"*{_ENDING}")):
        try:
            page = render_template(path.read_text(encoding="utf-8"), load)
            files[path.name.removesuffix(_ENDING) + ".md"] = page.encode()
        except ManyhandsError as error:
            problems.append(f"{path.name}: {error}")
    return Documents(files, tuple(problems))


def render_template(text: str, load: Loader) -> str:
    """Fill in one template."""
    try:
        import jinja2
    except ModuleNotFoundError:
        raise MissingExtraError("Pages need jinja2. Install it with: pip install 'manyhands[dev]'") from None
    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined, keep_trailing_newline=True, trim_blocks=True, lstrip_blocks=True
    )
    environment.globals |= _template_functions(load) | {"all_tables": lambda: table_list(load)}
    try:
        return environment.from_string(text).render()
    except jinja2.TemplateError as error:
        line = getattr(error, "lineno", None)
        raise ParameterError(f"The template cannot be read{f' at line {line}' if line else ''}: {error}.") from None
    except TypeError as error:  # a function with a wrong argument
        raise ParameterError(f"The template calls a function in a wrong way: {error}.") from None


def table_list(load: Loader) -> str:
    """Return all tables with the number of their cells and their time, and the sum."""
    lines, total = [], 0.0
    for name in (*table_names(), *_boards()):
        measured = load(name)
        seconds, total = measured.seconds, total + measured.seconds
        page = _LEADERBOARD if name in _boards() else f"{REPRODUCED}/{name.replace('/', '-')}.md"
        shown = f"[{name}]({page})" if measured.n_found else name
        table = measured.table
        done = f"{measured.n_found} of {len(measured.cells)}"
        lines.append([shown, table.number, str(table.seeds), done, _minutes(seconds)])
    lines.append(["all", "", "", "", _minutes(total)])
    return grid(["table", "in the paper", "seeds", "cells measured", "minutes"], lines)


def stored_results(rows: Path) -> Loader:
    """Return a function that reads each table with its rows once."""

    @cache
    def load(name: str) -> Measured:
        table = _boards().get(name) or load_table(name)
        return Measured(table, read_records(rows_file(table, rows)))

    return load


def _table_files(measured: Measured, draw: bool) -> dict[str, bytes]:
    """Return the page of a table, with its figures above the tables."""
    name = measured.table.name.replace("/", "-")
    figures = file_names(measured.table)
    text = to_markdown(measured.page)
    head, mark, rest = text.partition("\n## ")
    shown = "\n\n".join(f"![{measured.table.title}]({file})" for file in figures)
    found = {f"{REPRODUCED}/{name}.md": f"{head}\n{shown}\n{mark}{rest}".encode()}
    if draw:
        drawn = {file: to_svg(measured.table, measured.page, picture) for file, picture in figures.items()}
        found |= {f"{REPRODUCED}/{file}": content for file, content in drawn.items()}
    return found


def _boards() -> dict[str, Table]:
    """Return the tables of the leaderboard by name."""
    return {table.name: table for table in leaderboard.tables()}


def _leaderboard_files(parts: Sequence[Measured], draw: bool) -> dict[str, bytes]:
    """Return the leaderboard, if it has been measured."""
    if not all(part.n_found for part in parts):
        return {}
    figures = {part.table.name: f"{REPRODUCED}/{part.table.name.replace('/', '-')}.svg" for part in parts}
    shown = leaderboard.to_markdown(
        [(one.table, one.cells, one.records) for one in parts],
        "manyhands leaderboard",
        {one.table.name: describe_stale(one.table, one.records) for one in parts},
        figures,
    )
    found = {_LEADERBOARD: shown.encode()}
    if draw:
        found |= {figures[part.table.name]: ranks_to_svg(standings(part.entries)) for part in parts}
    return found
