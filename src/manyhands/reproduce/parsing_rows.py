"""The rows of a table, from TOML: methods with their parameters, sweeps, and published values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from manyhands import registry
from manyhands.reproduce.keys import Figure, Keyed, Keys, ListOf, Swept, Text, nearest
from manyhands.reproduce.metric_names import is_share
from manyhands.reproduce.tables import Published, Row
from manyhands.validation import OneOf

_CLASSIFIERS = ("logistic-regression", "network", "heldout-regression")  # after a representation learner


@dataclass(frozen=True)
class RowContext:
    """What a row may refer to.

    Attributes
    ----------
    datasets : sequence of str
        Names of the data sets of the table.
    metrics : sequence of str
        Its metrics; `published` is about the first.
    points : bool
        Whether its values are per cent.
    """

    datasets: Sequence[str]
    metrics: Sequence[str]
    points: bool


def parse_rows(keys: Keys, name: str, context: RowContext) -> list[Row]:
    """Parse a row, or one for each value of its sweep.

    Parameters
    ----------
    keys : Keys
        Keys of this part of the table.
    name : str
        Name of the row.
    context : RowContext
        Data sets and metrics of the table.

    Returns
    -------
    list of Row
        One row, or the points of a sweep.

    Raises
    ------
    ParameterError
        If a key or value is invalid.
    """
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
    known = [str(value) for at in points for value in at.values()]
    for dataset, figures in [pair for given in published for pair in given.items()]:
        if not Keyed().allows(figures):
            keys.refuse(f"what is published for {dataset!r} must name the value of the sweep: {{ {known[0]} = ... }}")
        for value in figures:
            keys.check_known(value, known, "value of the sweep called")


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


def _published(keys: Keys, given: Mapping[str, Any], metric: str, context: RowContext) -> dict[str, Published]:
    """Return published values by data set; shares above 1, or above 100 per cent, are refused."""
    keys.check_known(metric, context.metrics, "metric in this table called")
    largest, names = 100 if context.points else 1, context.datasets
    found = {}
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
        found[dataset] = Published(float(value), *map(float, deviation))
    return found
