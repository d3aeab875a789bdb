"""From TOML to a `Table`; every mistake gives one sentence that says which table, which key and what to do."""

from __future__ import annotations

import inspect
import tomllib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from manyhands import datasets, registry, simulate
from manyhands.datasets import catalog
from manyhands.exceptions import ParameterError
from manyhands.reproduce.crowds import MAKERS
from manyhands.reproduce.keys import Figure, Keyed, Keys, ListOf, Text, nearest
from manyhands.reproduce.tables import FEATURES, FIRST_SEED, METRICS, QUICK_ITEMS, DataSet, Published, Row, Table
from manyhands.validation import Number, OneOf, Switch

Piece = TypeVar("Piece")
Figures = Callable[[Keys, Mapping[str, Any], str], dict[str, Published]]

_SHARES = set(METRICS) - {"log_loss", "fit_seconds"}  # metrics that lie between 0 and 1
_BEHIND_EMBEDDINGS = ("logistic-regression", "network")
_WHOLE = Number(whole=True, least=1)


def parse_table(text: str, name: str) -> Table:
    """Read a table; whatever is unknown, missing or impossible is refused."""
    try:
        keys = Keys(tomllib.loads(text), name)
    except tomllib.TOMLDecodeError as error:
        raise ParameterError(f"The table {name} is not TOML: {error}.") from None
    metrics = tuple(keys.take("metrics", ListOf(Text(), least=1), ["accuracy"]))
    for metric in metrics:
        keys.check_known(metric, METRICS, "metric")
        if metrics.count(metric) > 1:
            keys.refuse(f"metrics has {metric} twice; once is enough")
    points = keys.take("points", Switch(), False)
    sets = _each(keys, "datasets", "data set", _dataset)

    def figures(part: Keys, given: Mapping[str, Any], metric: str) -> dict[str, Published]:
        part.check_known(metric, metrics, "metric in this table called")
        return _figures(part, given, [dataset.name for dataset in sets], metric in _SHARES, points)

    rows = _each(keys, "rows", "row", lambda part, row: _row(part, row, figures, metrics[0]))
    if keys.take("validation_truth", Switch(), False):
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
        figure=_figure(keys, sets),
    )
    keys.finish()
    return table


def _figure(keys: Keys, sets: Sequence[DataSet]) -> dict[str, str] | None:
    """What a plot has along its axis: a number in which the data sets differ."""
    given = keys.take("figure", Keyed(), None)
    if given is None:
        return None
    part = Keys(given, keys.table, "figure")
    x = part.take("x", Text())
    part.finish()
    common = set.intersection(*(set(dataset.arguments) for dataset in sets))
    part.check_known(x, ["remove", "items", *sorted(common)], "number that all data sets have called")
    return {"x": x}


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
    return DataSet(
        name,
        load,
        make,
        arguments,
        seeded,
        keys.take("features", OneOf(FEATURES), FEATURES[0]),
        keys.take("items", _WHOLE, None),
        keys.take("folds", Number(whole=True, least=2), None),
        float(keys.take("remove", Number(least=0, most=0.99), 0.0)),
        quick_items,
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


def _row(keys: Keys, name: str, figures: Figures, metric: str) -> Row:
    method, why = keys.take("method", Text(), None), keys.take("why", Text(), "")
    if (method is None) == (why == ""):
        keys.refuse("give either method, which is measured, or why, the reason that it is not")
    parameters = keys.take("parameters", Keyed(), {})
    choose = tuple(keys.take("choose", ListOf(Keyed(), least=2), []))
    then = keys.take("then", OneOf(_BEHIND_EMBEDDINGS), None)
    if method is not None:
        _check_method(keys, method, then)
    elif parameters or choose or then:
        keys.refuse("parameters, choose and then belong to a method, and there is none")
    published = figures(keys, keys.take("published", Keyed(), {}), metric)
    further = keys.take("published_also", Keyed(), {})
    for other, given in further.items():
        if other == metric:
            keys.refuse(f"published_also is for further metrics; what is published of {metric} goes to published")
        if not Keyed().allows(given):
            keys.refuse(f"published_also: {other} must be {Keyed()}, not {given!r}")
    also = {other: figures(keys, given, other) for other, given in further.items()}
    return Row(name, method, why, parameters, choose, then, published, also)


def _check_method(keys: Keys, method: str, then: str | None) -> None:
    keys.check_known(method, registry.names(), "method")
    embeds = method in registry.names("representation")
    if embeds and then is None:
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
