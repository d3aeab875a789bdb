"""From TOML to a `Table`; a mistake gives one sentence that names the table, the key and what to do."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from manyhands import datasets, registry, simulate
from manyhands._core.spelling import nearest
from manyhands._core.system import MAX_OPTIONS, parse_toml, read_limited
from manyhands.datasets import names as dataset_names
from manyhands.datasets.local import SPECS
from manyhands.datasets.local import find as find_dataset
from manyhands.exceptions import ParameterError
from manyhands.reproduce.cells import MAKERS, SERIES_NAMES, is_series
from manyhands.reproduce.tables import (
    BOXES,
    CHOOSE_FOLDS,
    DOTS,
    FEATURES,
    FIRST_SEED,
    KINDS,
    LINES,
    METRICS,
    PANELS,
    QUICK_ITEMS,
    SCATTER,
    SERIES,
    SHIFTED,
    WORKERS,
    DataSet,
    Figure,
    Keyed,
    Keys,
    ListOf,
    Picture,
    Published,
    Row,
    Swept,
    Table,
    Text,
    is_metric,
    is_share,
)
from manyhands.validation import Boolean, Number, OneOf

# ----------------------------------------------------------------------------------------------------
# The data sets of a table, from TOML.

_WHOLE = Number(whole=True, least=1)


def _parse_dataset(keys: Keys, name: str) -> DataSet:
    """Parse one data set."""
    load, make = keys.take("load", Text(), None), keys.take("make", Text(), None)
    if (load is None) == (make is None):
        keys.refuse("give either load, a data set of MANYHANDS_DATA, or make, a function that simulates one")
    arguments = keys.take("arguments", Keyed(), {})
    if load is not None:
        seeded: tuple[str, ...] = ()
        _check_load(keys, load, arguments)
    else:
        seeded = tuple(keys.take("seeded", ListOf(Text()), ["random_state"]))
        _check_make(keys, make, arguments, seeded)
    quick = Keys(keys.take("quick", Keyed(), {}), keys.table, f"{keys.part}, quick")
    quick_items = quick.take("items", _WHOLE, QUICK_ITEMS)
    quick.finish()
    items, drawn = keys.take("items", _WHOLE, None), keys.take("drawn", Boolean(), False)
    if drawn and items is None:
        keys.refuse("drawn is without items; give items, how many are drawn")
    return DataSet(
        name,
        load,
        make,
        arguments,
        seeded,
        keys.take("features", OneOf(FEATURES), FEATURES[0]),
        items,
        keys.take("folds", Number(whole=True, least=2), None),
        float(keys.take("remove", Number(least=0, most=0.99), 0.0)),
        keys.take("keep_one", Boolean(), True),
        quick_items,
        drawn,
    )


def _check_load(keys: Keys, name: str, arguments: Mapping[str, Any]) -> None:
    """Refuse an unknown data set, and arguments that `datasets.load` does not have."""
    try:
        features = SPECS[find_dataset(name)].features
    except ParameterError:
        keys.refuse(f"there is no data set {name!r} for MANYHANDS_DATA{nearest(name, dataset_names())}")
    names = list(inspect.signature(datasets.load).parameters)[1:]  # after the name
    for argument, value in arguments.items():
        keys.check_known(argument, names, "argument of load called")
        if argument == "features":
            keys.check_known(value, features, f"choice of features of {name} called")


def _check_make(keys: Keys, name: str, arguments: Mapping[str, Any], seeded: Sequence[str]) -> None:
    """Refuse an unknown function, and arguments that it does not have, lacks, or gets as the seed."""
    keys.check_known(name, MAKERS, "function to make a crowd called")
    parameters = inspect.signature(MAKERS[name]).parameters.values()
    names = [p.name for p in parameters if p.kind is not p.VAR_KEYWORD]
    if len(names) < len(parameters):  # arguments that describe the workers are passed on
        names += inspect.signature(simulate.make_crowd).parameters
    for argument in [*arguments, *seeded]:
        keys.check_known(argument, names, f"argument of {name} called")
    for argument in seeded:
        if argument in arguments:
            keys.refuse(f"{argument} gets the seed of the run; take it out of arguments, or out of seeded")
    for parameter in parameters:
        if parameter.default is parameter.empty and parameter.name not in arguments and parameter.name in names:
            keys.refuse(f"{name} needs {parameter.name}; give it in arguments")


# ----------------------------------------------------------------------------------------------------
# The figures of a table, from TOML.


@dataclass(frozen=True)
class _FigureContext:
    """What a figure may refer to."""

    datasets: Sequence[DataSet]  # data sets of the table
    rows: Sequence[Row]
    metrics: Sequence[str]
    series: Sequence[str]


def _parse_figures(keys: Keys, context: _FigureContext) -> tuple[dict[str, Any] | None, tuple[Picture, ...]]:
    """Parse `figure`, or each of `figures`."""
    single, several = keys.take("figure", Keyed(), {}), keys.take("figures", ListOf(Keyed(), least=1), None)
    if single and several is not None:
        keys.refuse("give either figure or figures")
    parts = [Keys(given, keys.table, "figure") for given in ([single] if several is None else several)]
    axes = [part.take("x", Text(), None) for part in parts]
    x = next((axis for axis in axes if axis is not None), None)
    swept = _check_axis(parts[0], axes, x, context)
    pictures = tuple(picture for part in parts for picture in _pictures(part, x, context))
    for part in parts:
        part.finish()
    names = [picture.name for picture in pictures]
    for name in names:
        if names.count(name) > 1:
            keys.refuse(f"two figures would have the file name of {name}; give one of them a suffix")
    drawn = tuple(dict.fromkeys(picture.metric for picture in pictures if picture.metric and picture.against is None))
    has_metrics = several is not None or "metrics" in single or "kind" in single
    figures: dict[str, Any] = (
        ({} if x is None else {"x": x})
        | ({"sweeps": True} if swept else {})
        | ({"metrics": drawn} if has_metrics and drawn else {})
    )
    return figures or None, pictures


def _check_axis(part: Keys, axes: Sequence[str | None], x: str | None, context: _FigureContext) -> bool:
    """Refuse an axis that neither data sets nor sweeps have; return whether rows are swept over it."""
    if any(axis not in (None, x) for axis in axes):
        part.refuse("figures have different x; let all name the same")
    swept = list(dict.fromkeys(parameter for row in context.rows for parameter in row.at))
    if any(parameter != x for parameter in swept):
        part.refuse(f"rows have a sweep over {' and '.join(swept)}; sweep over one parameter and let x name it")
    if x is not None and not swept:
        common = set.intersection(*(set(dataset.arguments) for dataset in context.datasets))
        part.check_known(x, ["remove", "items", *sorted(common)], "number that all data sets have called")
    return bool(swept)


def _pictures(part: Keys, x: str | None, context: _FigureContext) -> list[Picture]:
    """Return one picture for each metric of a figure, or the one of its series."""
    kind = part.take("kind", OneOf(KINDS), None)
    metrics = part.take("metrics", ListOf(Text(), least=1), None)
    series = tuple(part.take("series", ListOf(Text(), least=1), ()))
    for metric in metrics or ():
        part.check_known(metric, context.metrics, "metric in this table called")
    for name in series:
        part.check_known(name, context.series, "series in this table called")
    kind = kind or (SERIES if series else DOTS if x is None else LINES)
    shared = Picture(kind, series=series, **_options(part, context))
    if kind == LINES and x is None:
        part.refuse("lines need x, a number in which data sets or the points of a sweep differ")
    if series and kind in (DOTS, LINES):
        part.refuse(f"{kind} show metrics; a series is shown by kind = {SERIES!r}, {SCATTER!r} or {BOXES!r}")
    if kind == SERIES and not series:
        part.refuse("curves need series, a list of names among the series of the table")
    if kind == WORKERS and series != ("expertise",):
        part.refuse(f'kind = {WORKERS!r} shows series = ["expertise"]')
    if kind == SCATTER and not series:
        return [_scatter(part, shared, metrics)]
    if series:
        return [shared]
    several = metrics or list(context.metrics[:1])
    suffixes = [f"{shared.suffix}-{one}" if shared.suffix and len(several) > 1 else shared.suffix for one in several]
    return [replace(shared, metric=metric, suffix=suffix) for metric, suffix in zip(several, suffixes)]


def _scatter(part: Keys, shared: Picture, metrics: Sequence[str] | None) -> Picture:
    """Return a scatter plot of two metrics."""
    if metrics is None or len(metrics) != 2:
        part.refuse("a scatter plot needs one or two series, or two metrics: the one along x, then the other")
    return replace(shared, against=metrics[0], metric=metrics[1])


def _options(part: Keys, context: _FigureContext) -> Mapping[str, Any]:
    """Return what all kinds of figures have."""
    options = {key: part.take(key, Text(), "") for key in ("suffix", "title", "x_label", "y_label")}
    lists = {key: tuple(part.take(key, ListOf(Text(), least=1), ())) for key in ("rows", "datasets", "ticks", "levels")}
    for name in lists["levels"]:
        part.check_known(name, context.metrics, "metric in this table called")
    for name in lists["rows"]:
        part.check_known(name, dict.fromkeys(row.name for row in context.rows), "row of this table called")
    for name in lists["datasets"]:
        part.check_known(name, [dataset.name for dataset in context.datasets], "data set of this table called")
    whole = {key: part.take(key, Number(whole=True), None) for key in ("component", "at")}
    if None not in whole.values():
        part.refuse("give component, one number of every list, or at, one list, but not both")
    return (
        options
        | lists
        | whole
        | {"first": part.take("first", Number(), 1.0), "panels": part.take("panels", OneOf(PANELS), PANELS[0])}
    )


# ----------------------------------------------------------------------------------------------------
# The rows of a table, from TOML: methods with their parameters, sweeps, and published values.

_CLASSIFIERS = ("logistic-regression", "network", "heldout-regression")  # after a representation learner


@dataclass(frozen=True)
class _RowContext:
    """What a row may refer to."""

    datasets: Sequence[str]  # names of the data sets of the table
    metrics: Sequence[str]  # its metrics; `published` is about the first
    points: bool  # whether its values are per cent


def _parse_rows(keys: Keys, name: str, context: _RowContext) -> list[Row]:
    """Parse a row, or one for each value of its sweep."""
    metric = context.metrics[0]
    method, why = keys.take("method", Text(), None), keys.take("why", Text(), "")
    if (method is None) == (why == ""):
        keys.refuse("give either method, which is measured, or why, the reason that it is not")
    parameters, elsewhere = keys.take("parameters", Keyed(), {}), keys.take("parameters_on", Keyed(), {})
    skip = keys.take("skip", Keyed(), {})
    choose = tuple(keys.take("choose", ListOf(Keyed(), least=2), []))
    then = keys.take("then", OneOf(_CLASSIFIERS), None)
    if method is not None:
        _check_method(keys, method, then)
    elif parameters or elsewhere or choose or then or skip:
        keys.refuse("parameters, parameters_on, choose, then and skip belong to a method, and the row has none")
    _check_datasets(keys, context.datasets, skip, elsewhere)
    swept = keys.take("sweep", Swept(), {})
    for parameter in swept:
        if any(parameter in setting for setting in (parameters, *elsewhere.values(), *choose)):
            keys.refuse(f"{parameter} is what the sweep is over; take it out of parameters and choose")
    points = [{parameter: value} for parameter, values in swept.items() for value in values] or [{}]
    published = keys.take("published", Keyed(), {})
    further = keys.take("published_also", Keyed(), {})
    for other, given in further.items():
        if other == metric:
            keys.refuse(f"published_also is for further metrics; what is published of {metric} goes to published")
        if not Keyed().allows(given):
            keys.refuse(f"published_also: {other} must be {Keyed()}, not {given!r}")
    _check_points(keys, [published, *further.values()], points)
    return [
        Row(
            name,
            method,
            why,
            parameters | (at if method else {}),
            choose,
            then,
            _published(keys, _at_point(published, at), metric, context),
            {other: _published(keys, _at_point(given, at), other, context) for other, given in further.items()},
            at,
            elsewhere,
            skip,
        )
        for at in points
    ]


def _check_datasets(
    keys: Keys, datasets: Sequence[str], skip: Mapping[str, Any], parameters_on: Mapping[str, Any]
) -> None:
    """Refuse exceptions for data sets that the table does not have, and exceptions of the wrong form."""
    for dataset, reason in skip.items():
        keys.check_known(dataset, datasets, "data set of this table called")
        if not Text().allows(reason):
            keys.refuse(f"skip: {dataset} must be the reason, {Text()}, not {reason!r}")
    for dataset, given in parameters_on.items():
        keys.check_known(dataset, datasets, "data set of this table called")
        if not Keyed().allows(given):
            keys.refuse(f"parameters_on: {dataset} must be {Keyed()}, not {given!r}")


def _check_points(keys: Keys, published: Sequence[Mapping[str, Any]], points: Sequence[Mapping[str, float]]) -> None:
    """Refuse published values that name no value of the sweep, or one that it does not have."""
    if not points[0]:
        return
    texts = [str(value) for at in points for value in at.values()]
    for dataset, figures in [pair for given in published for pair in given.items()]:
        if not Keyed().allows(figures):
            keys.refuse(f"what is published for {dataset!r} must name the value of the sweep: {{ {texts[0]} = ... }}")
        for value in figures:
            keys.check_known(value, texts, "value of the sweep called")


def _at_point(published: Mapping[str, Any], at: Mapping[str, float]) -> dict[str, Any]:
    """Return data set -> published value at one point of a sweep."""
    if not at:
        return dict(published)
    (value,) = map(str, at.values())
    return {dataset: figures[value] for dataset, figures in published.items() if value in figures}


def _check_method(keys: Keys, method: str, then: str | None) -> None:
    """Refuse an unknown method, and a classifier that is missing after a representation or given after another."""
    keys.check_known(method, registry.names(), "method")
    embeds = method in registry.names("representation")
    if embeds and then is None and method not in registry.names("classifier"):
        keys.refuse(f"{method} predicts no classes; name the classifier after it: then = {_CLASSIFIERS[0]!r}")
    if then is not None and not embeds:
        keys.refuse(f"then is for representation learners, and {method} is none; leave it out")


def _published(keys: Keys, given: Mapping[str, Any], metric: str, context: _RowContext) -> dict[str, Published]:
    """Return published values by data set; shares above 1, or above 100 per cent, are refused."""
    keys.check_known(metric, context.metrics, "metric in this table called")
    largest, names = 100 if context.points else 1, context.datasets
    values = {}
    for dataset, figure in given.items():
        if dataset not in names:
            keys.refuse(
                f"a value is published for {dataset!r}, which is no data set of this table{nearest(dataset, names)}"
            )
        if not Figure().allows(figure):
            keys.refuse(f"what is published for {dataset!r} must be {Figure()}, not {figure!r}")
        value, *deviation = figure if isinstance(figure, list) else [figure]
        if is_share(metric) and not 0 <= value <= largest:
            keys.refuse(f"{value} for {dataset!r} is no share; with points = true, values are per cent, else up to 1")
        values[dataset] = Published(float(value), *map(float, deviation))
    return values


# ----------------------------------------------------------------------------------------------------
# `parse_table`: a whole table, from TOML.

_Piece = TypeVar("_Piece")


def parse_table(text: str, name: str) -> Table:
    """Parse a table; unknown keys, missing keys and impossible values are refused."""
    keys = Keys(parse_toml(text, f"The table {name}"), name)
    metrics = tuple(keys.take("metrics", ListOf(Text(), least=1), ["accuracy"]))
    for metric in metrics:
        if not is_metric(metric):
            keys.check_known(metric, METRICS + SHIFTED, "metric")
        if metrics.count(metric) > 1:
            keys.refuse(f"metrics has {metric} twice; once is enough")
    points = keys.take("points", Boolean(), False)
    sets = _each(keys, "datasets", "data set", _parse_dataset)
    context = _RowContext([dataset.name for dataset in sets], metrics, points)
    swept = _each(keys, "rows", "row", lambda part, row: _parse_rows(part, row, context))
    rows = tuple(row for sweep in swept for row in sweep)
    if keys.take("validation_truth", Boolean(), False):
        keys.refuse(
            "validation_truth is true, but settings can only be chosen by held-out annotations yet; leave it out"
        )
    series = _series(keys)
    figure, pictures = _parse_figures(keys, _FigureContext(sets, rows, metrics, series))
    table = Table(
        name,
        keys.take("title", Text()),
        keys.take("paper", Text()),
        keys.take("number", Text()),
        sets,
        rows,
        keys.take("seeds", Number(whole=True, least=1), 5),
        keys.take("first_seed", Number(whole=True, least=0), FIRST_SEED),
        metrics,
        points,
        tuple(keys.take("deviations", ListOf(Text()), [])),
        figure=figure,
        focus=_focus(keys, rows, metrics),
        choose_folds=keys.take("choose_folds", Number(whole=True, least=2), CHOOSE_FOLDS),
        series=series,
        figures=pictures,
    )
    keys.finish()
    return table


def _series(keys: Keys) -> tuple[str, ...]:
    """Return the names of the series that rows store; unknown ones are refused."""
    names = tuple(keys.take("series", ListOf(Text()), []))
    for name in names:
        if not is_series(name):
            keys.check_known(name, (*SERIES_NAMES, "history.<key>", "rounds.<key>", "fitted.<attribute>"), "series")
        if names.count(name) > 1:
            keys.refuse(f"series has {name} twice; once is enough")
    return names


def _focus(keys: Keys, rows: Sequence[Row], metrics: Sequence[str]) -> dict[str, Any] | None:
    """Return the row that is compared with all others, and by which metrics."""
    given = keys.take("focus", Keyed(), None)
    if given is None:
        return None
    part = Keys(given, keys.table, "focus")
    row, beside = part.take("row", Text()), part.take("beside", ListOf(Text(), least=1), None)
    compared = part.take("metrics", ListOf(Text(), least=1), list(metrics[:1]))
    part.finish()
    for name in [row, *(beside or ())]:
        row_names = dict.fromkeys(one.name for one in rows if one.method is not None)
        part.check_known(name, row_names, "row with a method called")
    for metric in compared:
        part.check_known(metric, metrics, "metric in this table called")
    return {"row": row, "metrics": tuple(compared)} | ({} if beside is None else {"beside": tuple(beside)})


def _each(keys: Keys, key: str, what: str, parse: Callable[[Keys, str], _Piece]) -> tuple[_Piece, ...]:
    """Return the parts of a table; none may have an unknown key or the name of another."""
    pieces: dict[str, _Piece] = {}
    for given in keys.take(key, ListOf(Keyed(), least=1)):
        part = Keys(given, keys.table, f"{what} {len(pieces) + 1}")
        name = part.take("name", Text())
        part.part = f"{what} {name!r}"
        if name in pieces:
            part.refuse(f"another {what} has this name; rename one of them")
        pieces[name] = parse(part, name)
        part.finish()
    return tuple(pieces.values())


# ----------------------------------------------------------------------------------------------------
# Tables as files: those that come with manyhands in `tables/<paper>/<table>.toml`, and your own.
#
# Reading a table imports no method.

_FOLDER = Path(__file__).parent / "tables"


def table_names() -> list[str]:
    """Return the names of the tables that come with manyhands, as ``paper/table``, sorted.

    Returns
    -------
    list of str
        Names for `load_table`.

    Examples
    --------
    >>> "crowding/table-1" in table_names()
    True
    """
    return sorted(f"{path.parent.name}/{path.stem}" for path in _FOLDER.glob("*/*.toml"))


def load_table(name: str | Path) -> Table:
    """Read a table that comes with manyhands, or one of your own.

    Parameters
    ----------
    name : str or Path
        One of `table_names`, or the path of a TOML file.

    Returns
    -------
    Table
        The table.

    Raises
    ------
    ParameterError
        If there is no such table, or it has a mistake.

    Examples
    --------
    >>> load_table("crowding/table-1").number
    'Table 1'
    """
    names = table_names()
    if name in names:
        return _read(_FOLDER / f"{name}.toml", str(name))
    path = Path(name)
    if path.suffix == ".toml" and not path.is_file():
        raise ParameterError(f"There is no file {str(name)!r}; tables that come with manyhands have no ending.")
    if path.suffix == ".toml":
        return _read(path, f"own/{path.stem}")
    raise ParameterError(f"There is no table {str(name)!r}{nearest(str(name), names)}.")


def _read(path: Path, name: str) -> Table:
    """Parse a file."""
    try:
        return parse_table(read_limited(path, MAX_OPTIONS).decode("utf-8"), name)
    except (OSError, UnicodeDecodeError) as error:
        raise ParameterError(f"The table in {path} cannot be read: {error}.") from None
