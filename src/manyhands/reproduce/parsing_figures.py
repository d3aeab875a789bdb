"""The figures of a table, from TOML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from manyhands.reproduce.keys import Keyed, Keys, ListOf, Text
from manyhands.reproduce.pictures import BOXES, DOTS, KINDS, LINES, PANELS, SCATTER, SERIES, Picture
from manyhands.reproduce.tables import DataSet, Row
from manyhands.validation import Number, OneOf


@dataclass(frozen=True)
class FigureContext:
    """What a figure may refer to.

    Attributes
    ----------
    datasets : sequence of DataSet
        Data sets of the table.
    rows : sequence of Row
        Its rows.
    metrics : sequence of str
        Its metrics.
    series : sequence of str
        Its series.
    """

    datasets: Sequence[DataSet]
    rows: Sequence[Row]
    metrics: Sequence[str]
    series: Sequence[str]


def parse_figures(keys: Keys, context: FigureContext) -> tuple[dict[str, Any] | None, tuple[Picture, ...]]:
    """Parse `figure`, or each of `figures`.

    Parameters
    ----------
    keys : Keys
        Keys of the table.
    context : FigureContext
        What figures may refer to.

    Returns
    -------
    figure : dict or None
        ``x``, ``sweeps`` and ``metrics`` of the table's axis, as `Table.figure`.
    pictures : tuple of Picture
        The figures.

    Raises
    ------
    ParameterError
        If a key or value is invalid.
    """
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
    found: dict[str, Any] = (
        ({} if x is None else {"x": x})
        | ({"sweeps": True} if swept else {})
        | ({"metrics": drawn} if has_metrics and drawn else {})
    )
    return found or None, pictures


def _check_axis(part: Keys, axes: Sequence[str | None], x: str | None, context: FigureContext) -> bool:
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


def _pictures(part: Keys, x: str | None, context: FigureContext) -> list[Picture]:
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


def _options(part: Keys, context: FigureContext) -> Mapping[str, Any]:
    """Return what all kinds of figures have."""
    found = {key: part.take(key, Text(), "") for key in ("suffix", "title", "x_label", "y_label")}
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
        found
        | lists
        | whole
        | {"first": part.take("first", Number(), 1.0), "panels": part.take("panels", OneOf(PANELS), PANELS[0])}
    )
