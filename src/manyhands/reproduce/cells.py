"""A cell: one method on one data set with one seed, and the figures that it gives."""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from manyhands import __version__, registry
from manyhands.annotations import Annotations
from manyhands.exceptions import ManyhandsError, ParameterError
from manyhands.reproduce.measures import label_figures, own_figures, planted_figures, predicted_figures
from manyhands.reproduce.splits import Part, make_part
from manyhands.reproduce.tables import STAGES, DataSet, Row, Table

LOWER_IS_BETTER = frozenset({"log_loss", "ece", "fit_seconds", "expertise_error", "difficulty_error"})

_NONE = "none"
_QUICK_EPOCHS = 3
_QUICK_SEEDS = 2
_QUICK_APART = 500_000  # from the seeds of a table to those of its quick runs: what is measured is not looked at before
_QUICK_SETTINGS = 2


@dataclass(frozen=True)
class Cell:
    """One method on one data set with one seed.

    Attributes
    ----------
    key : a hash of everything that decides the result: what changes in a table is measured anew, and nothing else
    """

    table: Table
    dataset: DataSet
    row: Row
    seed: int
    quick: bool = False

    @property
    def key(self) -> str:
        data = asdict(self.dataset)
        data.pop("name")
        if not self.quick:
            data.pop("quick_items")
        if self.dataset.keep_one:  # as all cells did before there was a choice
            data.pop("keep_one")
        if not self.dataset.drawn:
            data.pop("drawn")
        row = {name: getattr(self.row, name) for name in ("method", "parameters", "choose", "then")}
        first = self.table.first_seed if self.dataset.folds else None  # decides which fold is tested on
        told = [data, row, self.seed, first, self.quick, __version__]
        return hashlib.sha256(json.dumps(told, sort_keys=True, default=repr).encode()).hexdigest()[:20]

    def __str__(self) -> str:
        point = "".join(f" with {parameter} = {value}" for parameter, value in self.row.at.items())
        return f"{self.row.name}{point} on {self.dataset.name}, seed {self.seed}"


@dataclass(frozen=True)
class Outcome:
    """What a cell gives: a figure per metric (None where it is undefined), and the setting that was chosen."""

    metrics: dict[str, float | None]
    chosen: Mapping[str, Any] | None
    n_test: int


def cells_of(table: Table, *, quick: bool = False, seeds: int | None = None, only: Sequence[str] = ()) -> list[Cell]:
    """The cells of a table, seed by seed, so that a run that is stopped early has something of every method.

    Parameters
    ----------
    seeds : how many, if not as many as the table says; where nothing is drawn at random, the first is enough
    only : names of data sets and rows to which the table is narrowed
    """
    if seeds is not None and seeds < 1:
        raise ParameterError(f"--seeds is {seeds}; it must be 1 or more.")
    table = narrowed(table, only)
    n_seeds = seeds or (min(_QUICK_SEEDS, table.seeds) if quick else table.seeds)
    first = table.first_seed + (_QUICK_APART if quick else 0)
    return [
        Cell(table, dataset, row.on(dataset.name), first + n, quick)
        for n in range(n_seeds)
        for dataset in table.datasets
        for row in (_ends(table.measured) if quick else table.measured)
        if dataset.name not in row.skip and (n == 0 or draws(dataset, row.on(dataset.name)))
    ]


def _ends(rows: Sequence[Row]) -> list[Row]:
    """The rows without what lies between the first and the last point of a sweep."""
    points: dict[str, list[Row]] = {}
    for row in rows:
        points.setdefault(row.name, []).append(row)
    return [row for own in points.values() for row in (own if len(own) < 2 else (own[0], own[-1]))]


def draws(dataset: DataSet, row: Row) -> bool:
    """Whether the seed can show in the result."""
    same_items = not dataset.folds and not dataset.remove and not dataset.drawn
    fixed = (dataset.load is not None or not dataset.seeded) and same_items
    return not fixed or _is_drawn(row)


def _is_drawn(row: Row) -> bool:
    """Whether a method draws anything at random, as far as its parameters tell."""
    assert row.method is not None
    setting = dict(row.parameters)
    if row.method == "two-stage" and setting.get("classifier") == "logistic-regression":
        return "random_state" in registry.create(setting.get("aggregator", registry.DEFAULT)).get_params()
    if row.method in ("raykar", "adaptive-difficulty-em", "fixed-difficulty-em"):
        return bool(setting.get("n_init", 1) != 1)
    return "random_state" in registry.create(row.method).get_params()


def narrowed(table: Table, only: Sequence[str]) -> Table:
    """The table with these data sets and rows alone; what is not named at all stays whole."""
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


def refuse_unusable(cells: Sequence[Cell]) -> None:
    """One sentence, before any work, for a method that there is not or a data set that cannot be had."""
    distinct = {(cell.row.name, json.dumps(dict(cell.row.parameters), sort_keys=True)): cell for cell in cells}
    for cell in distinct.values():
        with _named(cell.table, f"row {cell.row.name!r}"):
            replace(cell.table, rows=(cell.row,)).check()
            for setting in cell.row.choose or ({},):
                model = make_estimator(cell.row, cell.seed, setting=setting)
                for step in getattr(model, "named_steps", {"": model}).values():
                    step._check_parameters()
    for name, cell in {cell.dataset.name: cell for cell in cells}.items():
        with _named(cell.table, f"data set {name!r}"):
            make_part(cell.dataset, cell.seed, cell.table.first_seed, cell.quick)


@contextmanager
def _named(table: Table, part: str) -> Iterator[None]:
    """Errors inside the block say which part of which table they are about, unless they do already."""
    try:
        yield
    except ManyhandsError as error:
        if table.name in str(error):
            raise
        raise type(error)(f"In the table {table.name}, {part}: {error}") from None


def make_estimator(row: Row, seed: int, *, quick: bool = False, setting: Mapping[str, Any] | None = None) -> Any:
    """The estimator of a row, not fitted; behind a representation learner the two stages that `then` names."""
    assert row.method is not None
    given = {name: _from_toml(value) for name, value in (dict(row.parameters) | dict(setting or {})).items()}
    model = _seeded(registry.create(row.method, **_with_stages(given, seed)), seed)
    if quick and "max_epochs" in model.get_params():
        model.set_params(max_epochs=min(_QUICK_EPOCHS, model.max_epochs))
    if row.then is None:
        return model
    from sklearn.pipeline import make_pipeline

    behind = registry.create("two-stage", aggregator=model.labels, classifier=row.then)
    return make_pipeline(model, _seeded(behind, seed))


def _with_stages(given: dict[str, Any], seed: int) -> dict[str, Any]:
    """Parameters in which those of one of two stages have become that stage."""
    found = {name: value for name, value in given.items() if not name.startswith(STAGES)}
    first, second = (
        {name.removeprefix(stage): given[name] for name in given if name.startswith(stage)} for stage in STAGES
    )
    if first:
        found["aggregator"] = _seeded(registry.create(given.get("aggregator", registry.DEFAULT), **first), seed)
    if second:
        from sklearn.linear_model import LogisticRegression

        found["classifier"] = LogisticRegression(**{"max_iter": 1000, **second})
    return found


def _from_toml(value: Any) -> Any:
    """What TOML cannot say: None is written "none", and a list stands for a tuple."""
    if isinstance(value, list):
        return tuple(map(_from_toml, value))
    return None if value == _NONE else value


def _seeded(model: Any, seed: int) -> Any:
    return model.set_params(random_state=seed) if "random_state" in model.get_params() else model


def run_cell(cell: Cell) -> Outcome:
    """Fit the method of a cell and measure it; truth is looked at only after the fit."""
    part = make_part(cell.dataset, cell.seed, cell.table.first_seed, cell.quick)
    aggregates = cell.row.method in registry.names("aggregator")
    given = (part.annotations,) if aggregates else (part.X, part.annotations)
    if not aggregates and part.X is None:
        raise ParameterError(f"{cell.row.method} learns from features, which {cell.dataset.name} does not have.")
    chosen = _chosen(cell, None if aggregates else part.X, part.annotations)
    model = make_estimator(cell.row, cell.seed, quick=cell.quick, setting=chosen)
    if not cell.quick and chosen is None:
        _load_libraries(cell, part, aggregates)
    began = time.perf_counter()
    model.fit(*given)
    seconds = time.perf_counter() - began
    figures, n_test = (label_figures if aggregates else predicted_figures)(model, part, cell.dataset.name)
    figures |= own_figures(model, part) | planted_figures(model, part) | {"fit_seconds": round(seconds, 4)}
    plain = {name: value if math.isfinite(value) else None for name, value in figures.items()}
    return Outcome(plain, chosen, n_test)


def _chosen(cell: Cell, X: Any, annotations: Annotations) -> Mapping[str, Any] | None:
    """The setting that foretells held-out labels of the training part best; no truth is asked."""
    settings = list(cell.row.choose or ())[: _QUICK_SETTINGS if cell.quick else None]
    if not settings:
        return None
    from manyhands.model_selection import compare

    models = [make_estimator(cell.row, cell.seed, quick=cell.quick, setting=setting) for setting in settings]
    found = compare(models, annotations, X, n_folds=2 if cell.quick else 5, random_state=cell.seed)
    return settings[found.names.index(found.best)]


def _load_libraries(cell: Cell, part: Part, aggregates: bool) -> None:
    """Fit eight rows, so that the time of the fit is not that of imports."""
    votes = Annotations.from_matrix([[0, 0, 1], [1, 1, 1]] * 4)
    small = make_estimator(cell.row, cell.seed, quick=True)
    if aggregates or part.X is None:
        small.fit(votes)
    else:
        small.fit(part.X[np.arange(8) % part.X.shape[0]], votes)
