"""A cell of a table: one method on one data set with one seed, and the metrics that it gives."""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from manyhands import registry
from manyhands.annotations import Annotations
from manyhands.exceptions import ManyhandsError, ParameterError
from manyhands.reproduce.crowd_figures import crowd_figures
from manyhands.reproduce.estimators import HELDOUT_REGRESSION, is_random, make_estimator
from manyhands.reproduce.measures import label_figures, planted_figures, predicted_figures, recorded_figures
from manyhands.reproduce.metric_names import OF_CROWD
from manyhands.reproduce.requested_measures import requested_figures
from manyhands.reproduce.revisions import revisions_of
from manyhands.reproduce.series import Series, series_of
from manyhands.reproduce.splits import Part, make_part
from manyhands.reproduce.table_checks import check_table
from manyhands.reproduce.tables import CHOOSE_FOLDS, DataSet, Row, Table

LOWER_IS_BETTER = frozenset({"log_loss", "ece", "fit_seconds", "expertise_error", "difficulty_error"})

_QUICK_SEEDS = 2
_QUICK_OFFSET = 500_000  # from the seeds of a table to those of its quick runs, which so see other data
_QUICK_SETTINGS = 2
_QUICK_FOLDS = 2


@dataclass(frozen=True)
class Cell:
    """One method on one data set with one seed.

    Attributes
    ----------
    table : Table
        The table that the cell belongs to.
    dataset : DataSet
        The data set.
    row : Row
        The method, as it is on this data set (`Row.on`).
    seed : int
        Seed of the data and of the method.
    quick : bool, default=False
        Whether data and training are reduced to a test that the cell runs.
    device : str or None, default=None
        Device on which networks are trained; None is that of the row. It is not part of the key.
    key : str
        Hash of everything that determines the result: data set, method, parameters, seed, and the revisions of the
        methods (`manyhands.reproduce.revisions`). A row with this key is not measured again.
    """

    table: Table
    dataset: DataSet
    row: Row
    seed: int
    quick: bool = False
    device: str | None = None

    def is_done(self, record: Mapping[str, Any] | None) -> bool:
        """Return whether a result row has all that the table asks for.

        Series are not part of the key, so that a table that asks for another one keeps its figures until it is run.

        Parameters
        ----------
        record : mapping or None
            The row with the key of this cell, if there is one.

        Returns
        -------
        bool
            False if a series was not stored when the row was measured; a failed row is done.
        """
        if record is None or "error" in record:
            return record is not None
        return set(self.table.series) <= set(record.get("series", ()))

    @property
    def key(self) -> str:
        """Hash of everything that determines the result, 20 hexadecimal digits."""
        data = asdict(self.dataset)
        data.pop("name")
        if not self.quick:
            data.pop("quick_items")
        if self.dataset.keep_one:  # only what differs from the default is part of the key
            data.pop("keep_one")
        if not self.dataset.drawn:
            data.pop("drawn")
        row = {name: getattr(self.row, name) for name in ("method", "parameters", "choose", "then")}
        first = self.table.first_seed if self.dataset.folds else None  # determines which fold is the test part
        content: list[Any] = [data, row, self.seed, first, self.quick, revisions_of(self.row)]
        if self.row.choose and self.table.choose_folds != CHOOSE_FOLDS:
            content.append({"choose_folds": self.table.choose_folds})
        return hashlib.sha256(json.dumps(content, sort_keys=True, default=repr).encode()).hexdigest()[:20]

    def __str__(self) -> str:
        point = "".join(f" with {parameter} = {value}" for parameter, value in self.row.at.items())
        return f"{self.row.name}{point} on {self.dataset.name}, seed {self.seed}"


@dataclass(frozen=True)
class Outcome:
    """Result of one cell.

    Attributes
    ----------
    metrics : dict of str to float or None
        Value of every metric; None where it is undefined.
    chosen : mapping or None
        The setting that cross-validation chose, if there was a choice.
    n_test : int
        Number of test items.
    series : dict of str to list or None, default={}
        The series that the table asks for; None where the method does not have one.
    """

    metrics: dict[str, float | None]
    chosen: Mapping[str, Any] | None
    n_test: int
    series: dict[str, Series | None] = field(default_factory=dict)


def cells_of(table: Table, *, quick: bool = False, seeds: int | None = None, only: Sequence[str] = ()) -> list[Cell]:
    """Return the cells of a table, ordered by seed, so that an interrupted run has results of every method.

    Parameters
    ----------
    table : Table
        What is to be measured.
    quick : bool, default=False
        Two seeds and the ends of sweeps only, on reduced data.
    seeds : int or None, default=None
        Number of seeds; None takes that of the table. Cells without random numbers have one seed only.
    only : sequence of str, default=()
        Names of data sets and rows to which the table is restricted.

    Returns
    -------
    list of Cell
        The cells.

    Raises
    ------
    ParameterError
        If `seeds` is not positive, or a name is unknown.
    """
    if seeds is not None and seeds < 1:
        raise ParameterError(f"--seeds is {seeds}; it must be 1 or more.")
    table = narrowed(table, only)
    n_seeds = seeds or (min(_QUICK_SEEDS, table.seeds) if quick else table.seeds)
    first = table.first_seed + (_QUICK_OFFSET if quick else 0)
    return [
        Cell(table, dataset, row.on(dataset.name), first + n, quick)
        for n in range(n_seeds)
        for dataset in table.datasets
        for row in (_sweep_ends(table.measured) if quick else table.measured)
        if dataset.name not in row.skip and (n == 0 or depends_on_seed(dataset, row.on(dataset.name)))
    ]


def _sweep_ends(rows: Sequence[Row]) -> list[Row]:
    """Return the rows without the points between the first and the last of a sweep."""
    points: dict[str, list[Row]] = {}
    for row in rows:
        points.setdefault(row.name, []).append(row)
    return [row for own in points.values() for row in (own if len(own) < 2 else (own[0], own[-1]))]


def depends_on_seed(dataset: DataSet, row: Row) -> bool:
    """Return whether the seed can change the result of a row on a data set.

    Parameters
    ----------
    dataset : DataSet
        The data set.
    row : Row
        The row, as it is on this data set.

    Returns
    -------
    bool
        False if neither data nor method use random numbers.
    """
    return dataset.depends_on_seed or is_random(row)


def narrowed(table: Table, only: Sequence[str]) -> Table:
    """Return a table restricted to some data sets and rows.

    Parameters
    ----------
    table : Table
        The whole table.
    only : sequence of str
        Names of data sets and rows, in any case. If no data set (row) is named, all stay.

    Returns
    -------
    Table
        The restricted table.

    Raises
    ------
    ParameterError
        If a name is neither that of a data set nor of a row.
    """
    wanted = {name.casefold() for name in only}
    rows = [row for row in table.rows if row.name.casefold() in wanted]
    sets = [dataset for dataset in table.datasets if dataset.name.casefold() in wanted]
    unknown = wanted - {row.name.casefold() for row in rows} - {dataset.name.casefold() for dataset in sets}
    if unknown:
        names = dict.fromkeys(row.name for row in table.rows)
        raise ParameterError(
            f"{table.name} has no data set and no row called {sorted(unknown)[0]!r}. Data sets: "
            f"{', '.join(d.name for d in table.datasets)}. Rows: {', '.join(names)}."
        )
    return replace(table, rows=tuple(rows) or table.rows, datasets=tuple(sets) or table.datasets)


def check_methods(cells: Sequence[Cell]) -> None:
    """Refuse methods and parameters that do not exist, before any cell is measured.

    Parameters
    ----------
    cells : sequence of Cell
        The cells that are to be measured.

    Raises
    ------
    ManyhandsError
        One sentence that names the table and the row.
    """
    distinct = {(cell.row.name, json.dumps(dict(cell.row.parameters), sort_keys=True)): cell for cell in cells}
    for cell in distinct.values():
        with naming(cell.table, f"row {cell.row.name!r}"):
            check_table(replace(cell.table, rows=(cell.row,)))
            for setting in cell.row.choose or ({},):
                model = make_estimator(cell.row, cell.seed, setting=setting)
                for step in getattr(model, "named_steps", {"": model}).values():
                    step._check_parameters()


@contextmanager
def naming(table: Table, part: str) -> Iterator[None]:
    """Add the table and a part of it to the message of errors inside the block, unless they name the table already.

    Parameters
    ----------
    table : Table
        The table.
    part : str
        The part, such as ``row 'GLAD'``.
    """
    try:
        yield
    except ManyhandsError as error:
        if table.name in str(error):
            raise
        raise type(error)(f"In the table {table.name}, {part}: {error}") from None


def run_cell(cell: Cell, part: Part | None = None) -> Outcome:
    """Fit the method of a cell and measure it; the ground truth is used after the fit only.

    Parameters
    ----------
    cell : Cell
        What to measure.
    part : Part or None, default=None
        The data of the cell, if they are built already; None builds them.

    Returns
    -------
    Outcome
        Metrics, the chosen setting, and the number of test items.
    """
    if part is None:
        part = make_part(cell.dataset, cell.seed, cell.table.first_seed, cell.quick)
    aggregates = cell.row.method in registry.names("aggregator")
    given = (part.annotations,) if aggregates else (part.X, part.annotations)
    if not aggregates and part.X is None:
        raise ParameterError(f"{cell.row.method} learns from features, which {cell.dataset.name} does not have.")
    chosen = _choose_setting(cell, None if aggregates else part.X, part.annotations)
    model = make_estimator(cell.row, cell.seed, quick=cell.quick, setting=chosen, device=cell.device)
    if not cell.quick and chosen is None:
        _load_libraries(cell, part, aggregates)
    began = time.perf_counter()
    model.fit(*given)
    seconds = time.perf_counter() - began
    figures, n_test = (label_figures if aggregates else predicted_figures)(model, part, cell.dataset.name)
    figures |= recorded_figures(model, part) | planted_figures(model, part) | {"fit_seconds": round(seconds, 4)}
    if any(name.startswith(OF_CROWD) for name in cell.table.metrics):
        figures |= crowd_figures(part)
    if not aggregates:
        figures |= requested_figures(model, part, cell.table.metrics)
    metrics = {name: value if math.isfinite(value) else None for name, value in figures.items()}
    if chosen is None:
        chosen = getattr(model, "setting_", None)  # of methods that choose their own settings
    return Outcome(metrics, chosen, n_test, series_of(model, part, cell.table.series))


def _choose_setting(cell: Cell, X: Any, annotations: Annotations) -> Mapping[str, Any] | None:
    """Return the setting with the highest cross-validated log-likelihood on the training part, without truth."""
    settings = list(cell.row.choose or ())[: _QUICK_SETTINGS if cell.quick else None]
    if not settings or cell.row.then == HELDOUT_REGRESSION:  # which chooses among them itself
        return None
    from manyhands.model_selection import compare

    models = [
        make_estimator(cell.row, cell.seed, quick=cell.quick, setting=setting, device=cell.device)
        for setting in settings
    ]
    found = compare(
        models, annotations, X, n_folds=_QUICK_FOLDS if cell.quick else cell.table.choose_folds, random_state=cell.seed
    )
    return settings[found.names.index(found.best)]


def _load_libraries(cell: Cell, part: Part, aggregates: bool) -> None:
    """Fit eight items first, so that the time of imports is not part of `fit_seconds`."""
    votes = Annotations.from_matrix([[0, 0, 1], [1, 1, 1]] * 4)
    small = make_estimator(cell.row, cell.seed, quick=True, device=cell.device)
    if aggregates or part.X is None:
        small.fit(votes)
    else:
        small.fit(part.X[np.arange(8) % part.X.shape[0]], votes)
