"""From TOML to a `Table`; every mistake gives one sentence that says which table, which key and what to do."""

from __future__ import annotations

import inspect
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from manyhands import datasets, registry, simulate
from manyhands.datasets import catalog
from manyhands.exceptions import ParameterError
from manyhands.reproduce.keys import Figure, Keyed, Keys, ListOf, Swept, Text, nearest
from manyhands.reproduce.splits import MAKERS
from manyhands.reproduce.tables import (
    FEATURES,
    FIRST_SEED,
    METRICS,
    QUICK_ITEMS,
    DataSet,
    Published,
    Row,
    Table,
    is_metric,
    is_share,
)
from manyhands.validation import Boolean, Number, OneOf

Piece = TypeVar("Piece")
Figures = Callable[[Keys, Mapping[str, Any], str], dict[str, Published]]

_BEHIND_EMBEDDINGS = ("logistic-regression", "network")
_WHOLE = Number(whole=True, least=1)
_MOST_LETTERS = 1 << 20  # of a table
_MOST_DOTS = 50  # in one key
_DEEPEST = 20  # lists and tables within each other
_FLATTER = f"Use at most {_DEEPEST} lists and tables within each other."


def parse_table(text: str, name: str) -> Table:
    """Read a table; whatever is unknown, missing or impossible is refused."""
    keys = Keys(_parse_toml(text, name), name)
    metrics = tuple(keys.take("metrics", ListOf(Text(), least=1), ["accuracy"]))
    for metric in metrics:
        if not is_metric(metric):
            keys.check_known(metric, METRICS, "metric")
        if metrics.count(metric) > 1:
            keys.refuse(f"metrics has {metric} twice; once is enough")
    points = keys.take("points", Boolean(), False)
    sets = _each(keys, "datasets", "data set", _dataset)
    names = [dataset.name for dataset in sets]

    def figures(part: Keys, given: Mapping[str, Any], metric: str) -> dict[str, Published]:
        part.check_known(metric, metrics, "metric in this table called")
        return _figures(part, given, names, is_share(metric), points)

    swept = _each(keys, "rows", "row", lambda part, row: _points(part, row, names, figures, metrics[0]))
    rows = tuple(row for points in swept for row in points)
    if keys.take("validation_truth", Boolean(), False):
        keys.refuse(
            "validation_truth is true, but settings can only be chosen by held-out annotations yet; leave it out"
        )
    table = Table(
        name,
        keys.take("title", Text()),
        keys.take("paper", Text()),
        keys.take("number", Text()),
        sets,
        rows,
        keys.take("seeds", _WHOLE, 5),
        keys.take("first_seed", Number(whole=True, least=0), FIRST_SEED),
        metrics,
        points,
        tuple(keys.take("deviations", ListOf(Text()), [])),
        figure=_figure(keys, sets, rows, metrics),
        focus=_focus(keys, rows, metrics),
    )
    keys.finish()
    return table


def _parse_toml(text: str, name: str) -> dict[str, Any]:
    """The keys of TOML that is nested as deep as a table needs; deeper, Python's own functions end in a traceback."""
    if len(text) > _MOST_LETTERS:
        raise ParameterError(f"The table {name} has {len(text):,} letters; at most {_MOST_LETTERS:,} are read.")
    if any(part.count(".") > _MOST_DOTS for part in re.split(r"[=\[\]{},#\n]", text)):
        raise ParameterError(f"The table {name} is nested too deep. {_FLATTER}")  # which takes minutes to read
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ParameterError(f"The table {name} is not TOML: {error}.") from None
    except RecursionError:
        raise ParameterError(f"The table {name} is nested too deep. {_FLATTER}") from None
    except ValueError:  # Python does not read integers of thousands of digits
        raise ParameterError(f"The table {name} has a number with too many digits. Write fewer.") from None
    level: list[Any] = [found]
    for _ in range(_DEEPEST):
        inside = [list(part.values()) if isinstance(part, dict) else part for part in level]
        level = [value for values in inside for value in values if isinstance(value, dict | list)]
    if level:
        raise ParameterError(f"The table {name} is nested too deep. {_FLATTER}")
    return found


def _figure(keys: Keys, sets: Sequence[DataSet], rows: Sequence[Row], metrics: Sequence[str]) -> dict[str, Any] | None:
    """What a plot has along its axis, a number in which data sets or points of a sweep differ, and which metrics."""
    part = Keys(keys.take("figure", Keyed(), {}), keys.table, "figure")
    x, drawn = part.take("x", Text(), None), part.take("metrics", ListOf(Text(), least=1), None)
    part.finish()
    for metric in drawn or ():
        part.check_known(metric, metrics, "metric in this table called")
    swept = list(dict.fromkeys(parameter for row in rows for parameter in row.at))
    if any(parameter != x for parameter in swept):
        part.refuse(f"rows have a sweep over {' and '.join(swept)}; sweep over one parameter and let x name it")
    if x is not None and not swept:
        common = set.intersection(*(set(dataset.arguments) for dataset in sets))
        part.check_known(x, ["remove", "items", *sorted(common)], "number that all data sets have called")
    found: dict[str, Any] = (
        ({} if x is None else {"x": x})
        | ({"sweeps": True} if swept else {})
        | ({} if drawn is None else {"metrics": tuple(drawn)})
    )
    return found or None


def _focus(keys: Keys, rows: Sequence[Row], metrics: Sequence[str]) -> dict[str, Any] | None:
    """The row that is compared with all others, and by which metrics."""
    given = keys.take("focus", Keyed(), None)
    if given is None:
        return None
    part = Keys(given, keys.table, "focus")
    row, beside = part.take("row", Text()), part.take("beside", ListOf(Text(), least=1), None)
    compared = part.take("metrics", ListOf(Text(), least=1), list(metrics[:1]))
    part.finish()
    for name in [row, *(beside or ())]:
        known = dict.fromkeys(one.name for one in rows if one.method is not None)
        part.check_known(name, known, "row with a method called")
    for metric in compared:
        part.check_known(metric, metrics, "metric in this table called")
    return {"row": row, "metrics": tuple(compared)} | ({} if beside is None else {"beside": tuple(beside)})


def _each(keys: Keys, key: str, what: str, parse: Callable[[Keys, str], Piece]) -> tuple[Piece, ...]:
    """The parts of a table, none of which has an unknown key or the name of another."""
    found: dict[str, Piece] = {}
    for given in keys.take(key, ListOf(Keyed(), least=1)):
        part = Keys(given, keys.table, f"{what} {len(found) + 1}")
        name = part.take("name", Text())
        part.part = f"{what} {name!r}"
        if name in found:
            part.refuse(f"another {what} has this name; rename one of them")
        found[name] = parse(part, name)
        part.finish()
    return tuple(found.values())


def _dataset(keys: Keys, name: str) -> DataSet:
    load, make = keys.take("load", Text(), None), keys.take("make", Text(), None)
    if (load is None) == (make is None):
        keys.refuse("give either load, a set of MANYHANDS_DATA, or make, a function that simulates one")
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
    try:
        features = catalog.SPECS[catalog.find(name)].features
    except ParameterError:
        keys.refuse(f"there is no set {name!r} for MANYHANDS_DATA{nearest(name, catalog.names())}")
    known = list(inspect.signature(datasets.load).parameters)[1:]  # after the name
    for argument, value in arguments.items():
        keys.check_known(argument, known, "argument of load called")
        if argument == "features":
            keys.check_known(value, features, f"choice of features of {name} called")


def _check_make(keys: Keys, name: str, arguments: Mapping[str, Any], seeded: Sequence[str]) -> None:
    keys.check_known(name, MAKERS, "function to make a crowd called")
    parameters = inspect.signature(MAKERS[name]).parameters.values()
    known = [p.name for p in parameters if p.kind is not p.VAR_KEYWORD]
    if len(known) < len(parameters):  # what describes the workers is passed on
        known += inspect.signature(simulate.make_crowd).parameters
    for argument in [*arguments, *seeded]:
        keys.check_known(argument, known, f"argument of {name} called")
    for argument in seeded:
        if argument in arguments:
            keys.refuse(f"{argument} gets the seed of the run; take it out of arguments, or out of seeded")
    for parameter in parameters:
        if parameter.default is parameter.empty and parameter.name not in arguments and parameter.name in known:
            keys.refuse(f"{name} needs {parameter.name}; give it in arguments")


def _points(keys: Keys, name: str, names: Sequence[str], figures: Figures, metric: str) -> list[Row]:
    """A row, or one for each value of its sweep."""
    method, why = keys.take("method", Text(), None), keys.take("why", Text(), "")
    if (method is None) == (why == ""):
        keys.refuse("give either method, which is measured, or why, the reason that it is not")
    parameters, elsewhere = keys.take("parameters", Keyed(), {}), keys.take("parameters_on", Keyed(), {})
    skip = keys.take("skip", Keyed(), {})
    choose = tuple(keys.take("choose", ListOf(Keyed(), least=2), []))
    then = keys.take("then", OneOf(_BEHIND_EMBEDDINGS), None)
    if method is not None:
        _check_method(keys, method, then)
    elif parameters or elsewhere or choose or then or skip:
        keys.refuse("parameters, parameters_on, choose, then and skip belong to a method, and there is none")
    for dataset, reason in skip.items():
        keys.check_known(dataset, names, "data set of this table called")
        if not Text().allows(reason):
            keys.refuse(f"skip: {dataset} must be the reason, {Text()}, not {reason!r}")
    for dataset, given in elsewhere.items():
        keys.check_known(dataset, names, "data set of this table called")
        if not Keyed().allows(given):
            keys.refuse(f"parameters_on: {dataset} must be {Keyed()}, not {given!r}")
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
            figures(keys, _of_point(published, at), metric),
            {other: figures(keys, _of_point(given, at), other) for other, given in further.items()},
            at,
            elsewhere,
            skip,
        )
        for at in points
    ]


def _check_points(keys: Keys, published: Sequence[Mapping[str, Any]], points: Sequence[Mapping[str, float]]) -> None:
    """Refuse what is published for a value that is not swept over, or for no value of a sweep in particular."""
    if not points[0]:
        return
    known = [str(value) for at in points for value in at.values()]
    for dataset, figures in [pair for given in published for pair in given.items()]:
        if not Keyed().allows(figures):
            keys.refuse(f"what is published for {dataset!r} must name the value of the sweep: {{ {known[0]} = ... }}")
        for value in figures:
            keys.check_known(value, known, "value of the sweep called")


def _of_point(published: Mapping[str, Any], at: Mapping[str, float]) -> dict[str, Any]:
    """Data set -> figure, of all that is published of a row that for one point."""
    if not at:
        return dict(published)
    (value,) = map(str, at.values())
    return {dataset: figures[value] for dataset, figures in published.items() if value in figures}


def _check_method(keys: Keys, method: str, then: str | None) -> None:
    keys.check_known(method, registry.names(), "method")
    embeds = method in registry.names("representation")
    if embeds and then is None and method not in registry.names("classifier"):
        keys.refuse(f"{method} learns no classes; say what classifies behind it: then = {_BEHIND_EMBEDDINGS[0]!r}")
    if then is not None and not embeds:
        keys.refuse(f"then is for learners of representations, and {method} is none; leave it out")


def _figures(
    keys: Keys, given: Mapping[str, Any], names: Sequence[str], is_share: bool, points: bool
) -> dict[str, Published]:
    """Published values by data set; a share beyond 1, or beyond 100 per cent, is a slip of the pen."""
    found = {}
    for dataset, figure in given.items():
        if dataset not in names:
            keys.refuse(
                f"a value is published for {dataset!r}, which is no data set of this table{nearest(dataset, names)}"
            )
        if not Figure().allows(figure):
            keys.refuse(f"what is published for {dataset!r} must be {Figure()}, not {figure!r}")
        value, *deviation = figure if isinstance(figure, list) else [figure]
        if is_share and not 0 <= value <= (100 if points else 1):
            keys.refuse(f"{value} for {dataset!r} is no share; with points = true, values are per cent, else up to 1")
        found[dataset] = Published(float(value), *map(float, deviation))
    return found
