"""A measured table as SVG: dots with intervals, boxes, lines, curves of series, and scatter plots.

`described` turns the page of a table into panels (`manyhands.report.drawing.Plot`); that module draws them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from statistics import fmean
from typing import Any

import numpy as np

from manyhands.report.drawing import Box, Plot, Trace, figure
from manyhands.report.html import standalone_svg
from manyhands.reproduce.pages import Page
from manyhands.reproduce.tables import (
    BOXES,
    DOTS,
    LINES,
    PANELS,
    SERIES,
    WORKERS,
    Picture,
    Table,
    is_share,
    series_title,
    title,
)
from manyhands.reproduce.verdicts import Standing, half_width

_OVER_SEEDS = "mean, 95% interval over seeds"


def pictures_of(table: Table) -> tuple[Picture, ...]:
    """Return the figures of a table; by default, dots or lines of the metrics that it plots."""
    return table.figures or tuple(Picture(DOTS if table.x is None else LINES, metric) for metric in table.drawn)


def file_names(table: Table) -> dict[str, Picture]:
    """Return the files of a table's figures.

    Examples
    --------
    >>> from manyhands.reproduce import load_table
    >>> list(file_names(load_table("baselines/labelme")))
    ['baselines-labelme.svg']
    """
    name, pictures = table.name.replace("/", "-"), pictures_of(table)
    if len(pictures) == 1 and not pictures[0].suffix:
        return {f"{name}.svg": pictures[0]}
    slugs = [picture.name.replace("_", "-").replace(".", "-").replace(" ", "-") for picture in pictures]
    return {f"{name}-{slug}.svg": picture for slug, picture in zip(slugs, pictures)}


def to_svg(table: Table, shown: Page, picture: Picture | None = None) -> bytes:
    """Draw a figure of a table; the same page gives the same bytes."""
    picture = pictures_of(table)[0] if picture is None else picture
    rows, plots = described(table, shown, picture)
    about = picture.title or title(picture.metric or picture.series[0])
    return _file(plots, rows, f"{table.title}: {about}", picture.title)


def ranks_to_svg(places: Sequence[Standing]) -> bytes:
    """Draw the mean rank of every method of a leaderboard with its 90% interval, the best one on top."""
    n_sets = places[0].n_sets if places else 0
    ranks, low, high = [p.rank for p in places], [p.interval[0] for p in places], [p.interval[1] for p in places]
    about = f"mean rank by accuracy over {n_sets} data sets, 90% interval"
    ordinate = [float(at) for at in range(len(places))]
    plot = Plot("", [Trace("", ranks, ordinate, 0, low, high)], (0.0, len(places) + 1.0), about)
    return _file([plot], [place.row for place in places], about)


def _file(plots: Sequence[Plot], rows: Sequence[str], label: str, above: str = "") -> bytes:
    return standalone_svg(figure(plots, label, rows=rows, title=above), on_paper=True).encode()


def described(table: Table, shown: Page, picture: Picture) -> tuple[list[str], list[Plot]]:
    """Return the rows of a figure, none if its panels have two axes, and the panels."""
    label = picture.y_label or (_axis_label(shown, picture.metric) if picture.metric else "")
    if picture.kind in (DOTS, BOXES):
        return _in_rows(table, shown, picture, picture.x_label or label or series_title(picture.series[0]))
    if picture.kind == LINES:
        return [], _lines(table, shown, picture, label)
    if picture.kind == SERIES:
        return [], _series(table, shown, picture)
    if picture.kind == WORKERS:
        return [], _workers(table, shown, picture)
    return [], _scatter(table, shown, picture, label)


def _axis_label(shown: Page, metric: str) -> str:
    """Return the name of an axis for a metric."""
    return title(metric) + (" (%)" if shown["points"] and is_share(metric) else "")


def limits(middles: Iterable[float], ends: Iterable[float], bounds: tuple[float, float] | None) -> tuple[float, float]:
    """Return the limits of an axis that is fitted to values, not to zero.

    Very long intervals, such as that of a method which failed with one seed, are cut, so that the other methods can
    still be told apart.
    """
    inside = list(middles) or [0.0, 1.0]
    low, high = min(inside), max(inside)
    room = max(0.6 * (high - low), 1e-3 * max(1e-3, abs(high)))
    ends = [min(max(end, low - room), high + room) for end in ends]
    low, high = min([low, *ends]), max([high, *ends])
    margin = 0.06 * (high - low) or 0.5 * room
    low, high = low - margin, high + margin
    if bounds is not None:  # half a margin beyond the bound, so that a mark at the bound is not cut
        low, high = max(low, bounds[0] - margin / 2), min(high, bounds[1] + margin / 2)
    return low, high


def _bounds(shown: Page, picture: Picture) -> tuple[float, float] | None:
    """Return the least and the largest value that a share can have."""
    is_bounded = picture.metric is not None and is_share(picture.metric)
    return (0.0, 100.0 if shown["points"] else 1.0) if is_bounded else None


# ----------------------------------------------------------------------------------------------------
# Figures with a row for each method, read from the top: dots with intervals, and boxes.

_OFFSET = 0.2  # of published values below the measured ones, in rows
_MOST_NUMBERS = 40  # of a box that are drawn beside it
_MEASURED, _FOCUS, _PUBLISHED = 0, 1, 2  # series


def _in_rows(table: Table, shown: Page, picture: Picture, label: str) -> tuple[list[str], list[Plot]]:
    """Return a row for each method, and a panel for each data set."""
    marks = _marks(shown, picture)
    names = list(dict.fromkeys(row.name for row in table.rows if any(mark["row"] == row.name for mark in marks)))
    plots: list[Plot] = []
    for dataset in table.datasets:
        here = [mark for mark in marks if mark["dataset"] == dataset.name]
        if not here:
            continue
        focus = (table.focus or {}).get("row")
        has_interval = picture.kind == DOTS and any(mark["interval"] for mark in here)
        boxes = [] if picture.kind == DOTS else _boxes(names, here, focus)
        traces = _dots(names, here, focus) if picture.kind == DOTS else _numbers(names, here, focus)
        about = f"{label}\n{_OVER_SEEDS}" if has_interval else label
        plots.append(Plot(dataset.name, traces, _row_limits(shown, picture, here), about, boxes=boxes))
    return names, plots


def _marks(shown: Page, picture: Picture) -> list[dict[str, Any]]:
    """Return what is drawn for each row and data set: the entry of a metric, or the numbers of a series."""
    if picture.metric is not None:
        entries = [entry for entry in shown["entries"] if entry["metric"] == picture.metric]
        return [
            entry | {"numbers": list(entry["values"].values())}
            for entry in entries
            if picture.shows(entry["dataset"], entry["row"])
            and (entry["mean"] is not None or entry["published"] is not None)
        ]
    marks = []
    for one in shown["series"]:
        if one["series"] in picture.series and picture.shows(one["dataset"], one["row"]):
            values = [
                value for numbers in one["values"].values() for value in numbers if isinstance(value, float | int)
            ]
            if values:
                empty = {"published": None, "published_sd": None, "interval": None}
                marks.append(one | {"numbers": values, "mean": sum(values) / len(values)} | empty)
    return marks


def _dots(names: Sequence[str], here: Sequence[Mapping[str, Any]], focus: str | None) -> list[Trace]:
    """Return means with their intervals, and published values as hollow marks below them."""
    is_published = any(mark["published"] is not None for mark in here)
    measured = [mark for mark in here if mark["mean"] is not None]
    others = [mark for mark in measured if mark["row"] != focus]
    in_focus = [mark for mark in measured if mark["row"] == focus]
    printed = [mark for mark in here if mark["published"] is not None]
    traces = [
        _with_intervals("measured" if is_published else "", others, names, ("mean", "interval"), _MEASURED),
        _with_intervals("", in_focus, names, ("mean", "interval"), _FOCUS),
        _with_intervals("published", printed, names, ("published", "published_sd"), _PUBLISHED),
    ]
    return [trace for trace in traces if trace.x]


def _with_intervals(
    name: str, marks: Sequence[Mapping[str, Any]], names: Sequence[str], keys: tuple[str, str], series: int
) -> Trace:
    """Return the values of rows with what lies on both sides of them."""
    value, spread = keys
    x = [mark[value] for mark in marks]
    half = [mark[spread] or 0.0 for mark in marks]
    below = _OFFSET if series == _PUBLISHED else 0.0  # where the row has a measured value, too
    y = [names.index(mark["row"]) + (0.0 if mark["mean"] is None else below) for mark in marks]
    low, high = [a - b for a, b in zip(x, half)], [a + b for a, b in zip(x, half)]
    return Trace(name, x, y, series, low, high, mark="hollow" if series == _PUBLISHED else "full")


def _boxes(names: Sequence[str], here: Sequence[Mapping[str, Any]], focus: str | None) -> list[Box]:
    """Return median, quartiles and range of the numbers of each row."""
    return [
        Box(mark["numbers"], names.index(mark["row"]), _FOCUS if mark["row"] == focus else _MEASURED)
        for mark in here
        if mark["numbers"]
    ]


def _numbers(names: Sequence[str], here: Sequence[Mapping[str, Any]], focus: str | None) -> list[Trace]:
    """Return the numbers of boxes themselves if they are few, and published values."""
    traces = []
    for mark in here:
        numbers, at = mark["numbers"], names.index(mark["row"])
        if len(numbers) <= _MOST_NUMBERS:
            series = _FOCUS if mark["row"] == focus else _MEASURED
            traces.append(Trace("", numbers, [at] * len(numbers), series, mark="faint"))
    printed = [mark for mark in here if mark["published"] is not None]
    x, y = [mark["published"] for mark in printed], [names.index(mark["row"]) for mark in printed]
    return [*traces, Trace("published", x, y, _PUBLISHED, mark="hollow")] if printed else traces


def _row_limits(shown: Page, picture: Picture, here: Sequence[Mapping[str, Any]]) -> tuple[float, float]:
    """Return the limits of the abscissa of a panel with rows."""
    middles = [mark[key] for mark in here for key in ("mean", "published") if mark[key] is not None]
    spreads = [(mark["mean"], mark["interval"]) for mark in here if mark["mean"] is not None]
    spreads += [(mark["published"], mark["published_sd"]) for mark in here if mark["published"] is not None]
    ends = [value + sign * (spread or 0) for value, spread in spreads for sign in (-1, 1)]
    if picture.kind != DOTS:
        middles += [number for mark in here for number in mark["numbers"]]
    return limits(middles, ends, _bounds(shown, picture))


# ----------------------------------------------------------------------------------------------------
# A metric over a number of data sets, or over a swept parameter.

_DECADES = 100  # ratio of the largest to the smallest number from which on an axis is logarithmic
_AXES = {"remove": "share of annotations removed", "items": "training items"}
_LEVELS = ("dashed", "dotted")  # lines of rows without a sweep, and of levels


def _lines(table: Table, shown: Page, picture: Picture, label: str) -> list[Plot]:
    """Return a panel for each group of data sets that differ in one number, with a line for each row."""
    entries = [e for e in shown["entries"] if e["metric"] == picture.metric and picture.shows(e["dataset"], e["row"])]
    order = {row: at for at, row in enumerate(dict.fromkeys(entry["row"] for entry in entries))}
    has_interval = any(entry["interval"] for entry in entries)
    plots: list[Plot] = []
    for name, sets in _data_panels(table, entries).items():
        here = [entry for entry in entries if entry["dataset"] in sets]
        levels = _levels(shown, picture, sets, len(order))
        places = [entry["x"] for entry in here if entry["x"] is not None]
        is_log = bool(places) and min(places) > 0 and max(places) >= _DECADES * min(places)
        middles = [entry[key] for entry in here for key in ("mean", "published") if entry[key] is not None]
        middles += [level.y[0] for level in levels]
        spreads = [(entry["mean"], entry["interval"] or 0) for entry in here if entry["mean"] is not None]
        ends = [value + sign * spread for value, spread in spreads for sign in (-1, 1)]
        traces = [trace for row, at in order.items() for trace in _row_traces(row, at, here)]
        traces = traces if is_log else _side_by_side(traces)
        plots.append(
            Plot(
                name,
                traces + levels,
                _around([x for trace in traces if trace.mark for x in trace.x] or [0.0, 1.0], is_log),
                picture.x_label or _AXES.get(table.x or "", title(table.x or "")),
                limits(middles, ends, _bounds(shown, picture)),
                _ordinate_title(label, has_interval, first=not plots),
                is_log=is_log,
            )
        )
    return plots


def _data_panels(table: Table, entries: Sequence[Mapping[str, Any]]) -> dict[str, list[str]]:
    """Return title of a panel -> its data sets: one each, or all that differ in x only, by what their names share."""
    shown = {entry["dataset"] for entry in entries}
    panels: dict[str, list[str]] = {}
    for dataset in table.datasets:
        if dataset.name in shown:
            base = dataset.name if table.sweeps else dataset.load or dataset.make or dataset.name
            panels.setdefault(base, []).append(dataset.name)
    return {_shared_name(names) or base: names for base, names in panels.items()}


def _shared_name(names: Sequence[str]) -> str:
    """Return the first parts, between commas, that all names have.

    Examples
    --------
    >>> _shared_name(["LabelMe, all", "LabelMe, 10 % removed"]), _shared_name(["a, 1", "b, 1"])
    ('LabelMe', '')
    """
    parts = [name.split(", ") for name in names]
    n = next((at for at, one in enumerate(zip(*parts)) if len(set(one)) > 1), min(map(len, parts)))
    return ", ".join(parts[0][:n])


def _row_traces(row: str, series: int, here: Sequence[Mapping[str, Any]]) -> list[Trace]:
    """Return the line of a row, and that of its published values; a row without a sweep is a horizontal line."""
    own = [entry for entry in here if entry["row"] == row]
    traces = [
        _level(row, entry["mean"], series, _LEVELS[series % len(_LEVELS)])
        for entry in own
        if entry["x"] is None and entry["mean"] is not None
    ]
    own = sorted((entry for entry in own if entry["x"] is not None), key=lambda entry: entry["x"])
    measured = [entry for entry in own if entry["mean"] is not None]
    if measured:
        x, y = [entry["x"] for entry in measured], [entry["mean"] for entry in measured]
        half = [entry["interval"] or 0.0 for entry in measured]
        low, high = [a - b for a, b in zip(y, half)], [a + b for a, b in zip(y, half)]
        traces.append(Trace(row, x, y, series, low, high, line=""))
    printed = [entry for entry in own if entry["published"] is not None]
    if printed:
        x, y = [entry["x"] for entry in printed], [entry["published"] for entry in printed]
        traces.append(Trace(f"{row}, published", x, y, series, mark="hollow", line="dotted"))
    return traces


_ROOM = 0.3  # of the distance between two positions, over which the intervals of all rows are spread


def _side_by_side(traces: Sequence[Trace]) -> list[Trace]:
    """Move the points of each series a little, so that intervals at one position do not hide one another."""
    moving = list(dict.fromkeys(trace.series for trace in traces if trace.mark))
    places = sorted({x for trace in traces if trace.mark for x in trace.x})
    if len(moving) < 2 or len(places) < 2:
        return list(traces)
    step = _ROOM * min(b - a for a, b in pairwise(places)) / (len(moving) - 1)
    shift = {series: step * (at - (len(moving) - 1) / 2) for at, series in enumerate(moving)}
    return [replace(t, x=[x + shift[t.series] for x in t.x]) if t.mark else t for t in traces]


def _level(name: str, value: float, series: int, line: str) -> Trace:
    """Return a horizontal line over the whole panel."""
    return Trace(name, [-math.inf, math.inf], [value, value], series, mark="", line=line)


def _levels(shown: Page, picture: Picture, datasets: Sequence[str], n_series: int) -> list[Trace]:
    """Return horizontal lines at the means of metrics; beside series they are not per cent."""
    levels = []
    for at, metric in enumerate(picture.levels):
        there = [e for e in shown["entries"] if e["metric"] == metric and e["dataset"] in datasets]
        means = [entry["mean"] for entry in there if entry["mean"] is not None]
        if means:
            scale = 100.0 if picture.series and shown["points"] and is_share(metric) else 1.0
            line = _LEVELS[(at + 1) % len(_LEVELS)]
            levels.append(_level(title(metric), fmean(means) / scale, n_series + at, line))
    return levels


def _around(values: Sequence[float], is_log: bool = False) -> tuple[float, float]:
    """Return limits with a margin on both sides of the values."""
    low, high = min(values), max(values)
    if is_log:
        factor = (high / low) ** 0.05
        return low / factor, high * factor
    margin = 0.05 * (high - low) or 0.5
    return low - margin, high + margin


def _ordinate_title(label: str, has_interval: bool, first: bool) -> str:
    """Return the text above the ordinate, which only the first panel has."""
    return "" if not first else f"{label}\n{_OVER_SEEDS}" if has_interval else label


# ----------------------------------------------------------------------------------------------------
# Scatter plots: estimated against simulated values, or one metric or series against another.


def _scatter(table: Table, shown: Page, picture: Picture, label: str) -> list[Plot]:
    """Return panels with the points of all seeds."""
    clouds = _clouds(table, shown, picture)
    series = {name: at for at, name in enumerate(dict.fromkeys(cloud["label"] for cloud in clouds))}
    has_diagonal = len(picture.series) == 1
    usual = ("simulated", "estimated") if has_diagonal else tuple(map(series_title, picture.series)) or ("", "")
    across = picture.x_label or (_axis_label(shown, picture.against) if picture.against else "")
    plots: list[Plot] = []
    for panel in dict.fromkeys(cloud["panel"] for cloud in clouds):
        here = [cloud for cloud in clouds if cloud["panel"] == panel]
        x, y = ([value for cloud in here for value in cloud[axis]] for axis in ("x", "y"))
        traces = [
            Trace("" if picture.panels == "rows" else c["label"], c["x"], c["y"], series[c["label"]], mark="hollow")
            for c in here
        ]
        if has_diagonal:
            x = y = [*x, *y]
            traces.insert(0, Trace("", [min(x), max(x)], [min(x), max(x)], None, mark="", line=""))
        above = "" if plots else label or picture.y_label or usual[1]
        plots.append(Plot(panel, traces, _around(x), across or usual[0], _around(y), above, is_square=has_diagonal))
    return plots


def _clouds(table: Table, shown: Page, picture: Picture) -> list[dict[str, Any]]:
    """Return the coordinates, the label and the panel of each cloud of points."""
    pairs: dict[tuple[str, str], dict[str, Any]] = {}
    named = [(entry, entry["metric"]) for entry in shown["entries"]] if picture.metric is not None else []
    named = named or [(one, one["series"]) for one in shown["series"]]
    wanted = picture.series or (picture.against, picture.metric)
    for one, name in named:
        if name in wanted and one["values"] and picture.shows(one["dataset"], one["row"]):
            pairs.setdefault((one["dataset"], _row_name(table, one)), {})[name] = one["values"]
    clouds = []
    for (dataset, row), values in pairs.items():
        x, y = _coordinates(values, wanted)
        by_row = picture.panels == "rows"
        if x:
            clouds.append({"label": dataset if by_row else row, "panel": row if by_row else dataset, "x": x, "y": y})
    return clouds


def _row_name(table: Table, one: Mapping[str, Any]) -> str:
    """Return the name of a row with its point of a sweep."""
    return str(one["row"]) + ("" if one["x"] is None else f", {title(table.x or '')} {one['x']:g}")


def _coordinates(values: Mapping[str, Any], wanted: Sequence[Any]) -> tuple[list[float], list[float]]:
    """Return the points of all seeds: of one series, the second half along x and the first along y."""
    x: list[Any] = []
    y: list[Any] = []
    if len(wanted) == 1:
        for numbers in values[wanted[0]].values():
            half = len(numbers) // 2
            x, y = x + list(numbers[half:]), y + list(numbers[:half])
    elif all(name in values for name in wanted):
        for seed in values[wanted[0]]:
            if seed in values[wanted[1]]:
                x, y = x + _flat(values[wanted[0]][seed]), y + _flat(values[wanted[1]][seed])
    points = [(a, b) for a, b in zip(x, y) if a is not None and b is not None]
    return [a for a, _ in points], [b for _, b in points]


def _flat(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list) else [value]


def _numbered(points: Sequence[Any]) -> list[str]:
    """Return the numbers of points from 1 on; equal points have theirs together.

    Examples
    --------
    >>> _numbered([[0.6, 0.7], [0.8, 0.6], [0.6, 0.7]])
    ['1, 3', '2', '']
    """
    return [
        "" if point in points[:at] else ", ".join(str(1 + k) for k, other in enumerate(points) if other == point)
        for at, point in enumerate(points)
    ]


def _workers(table: Table, shown: Page, picture: Picture) -> list[Plot]:
    """Return panels with a numbered point for each worker of the first seed, estimated and simulated.

    Sensitivity, the accuracy in the second class, is along the abscissa, specificity, that in the first, along the
    ordinate; all panels have the same limits.
    """
    clouds = []
    for one in shown["series"]:
        if one["series"] == picture.series[0] and one["values"] and picture.shows(one["dataset"], one["row"]):
            numbers = np.array(next(iter(one["values"].values())), float).reshape(2, -1, 2)
            by_row = picture.panels == "rows"
            clouds.append((_row_name(table, one) if by_row else one["dataset"], numbers))
    every = [value for _, numbers in clouds for value in numbers.ravel().tolist()]
    limits_of_all = _around(every or [0.0, 1.0])
    plots: list[Plot] = []
    for panel, numbers in clouds:
        traces = [
            Trace(name, side[:, 1].tolist(), side[:, 0].tolist(), at, mark=mark, names=_numbered(side.tolist()))
            for at, (name, mark, side) in enumerate(zip(("estimated", "simulated"), ("full", "hollow"), numbers))
        ]
        above = picture.y_label or "specificity"
        across = picture.x_label or "sensitivity"
        plots.append(Plot(panel, traces, limits_of_all, across, limits_of_all, "" if plots else above, is_square=True))
    return plots


# ----------------------------------------------------------------------------------------------------
# Curves of series: the mean over seeds, with a band.

_FEWEST = 3  # seeds for an interval
_MOST_MARKS = 25  # points of a curve that have marks
_WHOLE_ROC = (-0.02, 1.02)  # limits of both axes


def _series(table: Table, shown: Page, picture: Picture) -> list[Plot]:
    """Return panels with the mean of series over seeds, with a band of its 95% interval."""
    curves = _curves(table, shown, picture)
    is_roc = picture.series == ("roc",)
    usual = "true positive rate" if is_roc else series_title(picture.series[0])
    has_band = any(len(curve["values"]) >= _FEWEST for curve in curves)
    series = {name: at for at, name in enumerate(dict.fromkeys(curve["label"] for curve in curves))}
    plots: list[Plot] = []
    for panel in dict.fromkeys(curve["panel"] for curve in curves):
        here = [curve for curve in curves if curve["panel"] == panel]
        traces = [_mean_curve(curve, series[curve["label"]], picture, is_roc) for curve in here]
        if picture.ticks:  # the order of classes has no meaning: no lines between them
            traces = _side_by_side([replace(trace, line=None, is_band=False) for trace in traces])
        sets = [panel] if picture.panels == PANELS[0] else [one.name for one in table.datasets]
        traces += _levels(shown, picture, sets, len(series))
        heights = [value for trace in traces for value in (*trace.y, *trace.low, *trace.high) if math.isfinite(value)]
        x = [value for trace in traces for value in trace.x if math.isfinite(value)]
        if is_roc:
            traces.append(Trace("", [0, 1], [0, 1], None, mark="", line="dotted"))
        plots.append(
            Plot(
                panel,
                traces,
                _WHOLE_ROC if is_roc else _around(x or [0.0, 1.0]),
                picture.x_label or _abscissa_title(picture, is_roc),
                _WHOLE_ROC if is_roc else _around(heights or [0.0, 1.0]),
                _ordinate_title(picture.y_label or usual, has_band, first=not plots),
                x_names={picture.first + at: name for at, name in enumerate(picture.ticks)} or None,
                is_whole=not is_roc,
                is_square=is_roc,
            )
        )
    if picture.ticks:  # heights of the same classes are compared over the panels
        low, high = min(plot.y[0] for plot in plots), max(plot.y[1] for plot in plots)
        plots = [replace(plot, y=(low, high)) for plot in plots]
    return plots


def _abscissa_title(picture: Picture, is_roc: bool) -> str:
    """Return the usual name of the horizontal axis of a series."""
    if is_roc:
        return "false positive rate"
    kind = picture.series[0].partition(".")[0]
    if picture.at is not None:
        return "class"
    return {"history": "epoch", "rounds": "round", "class_shares": "round"}.get(kind, "class")


def _curves(table: Table, shown: Page, picture: Picture) -> list[dict[str, Any]]:
    """Return the numbers, the label and the panel of each curve."""
    curves = []
    several = len(picture.series) > 1
    for name in picture.series:
        for one in shown["series"]:
            if one["series"] != name or not one["values"] or not picture.shows(one["dataset"], one["row"]):
                continue
            row, by_row = _row_name(table, one), picture.panels == "rows"
            label = (one["dataset"] if by_row else row) + (f": {series_title(name)}" if several else "")
            label = series_title(name) if several and by_row else label
            panel = one["row"] if by_row else one["dataset"]
            curves.append({"label": label, "panel": panel, "values": _selected(one, picture)})
    return curves


def _selected(one: Mapping[str, Any], picture: Picture) -> list[list[float]]:
    """Return the numbers of every seed, of a series of lists the part that the picture names."""
    selected = []
    for numbers in one["values"].values():
        if picture.component is not None:
            numbers = [part[picture.component] if isinstance(part, list) else part for part in numbers]
        elif numbers and isinstance(numbers[0], list):
            numbers = numbers[picture.at if picture.at is not None else -1]
        selected.append([math.nan if value is None else float(value) for value in numbers])
    return selected


def _mean_curve(curve: Mapping[str, Any], series: int, picture: Picture, is_roc: bool) -> Trace:
    """Return the mean of the seeds that reach a position, as long as half of them do, with the band."""
    middle, low, high = [], [], []
    for at in range(max(map(len, curve["values"]))):
        here = [numbers[at] for numbers in curve["values"] if at < len(numbers) and not math.isnan(numbers[at])]
        if 2 * len(here) < len(curve["values"]) or not here:
            here = []
        spread = half_width(here) if len(here) >= _FEWEST else 0.0
        middle.append(fmean(here) if here else math.nan)
        low.append(middle[-1] - spread)
        high.append(middle[-1] + spread)
    n = len(middle)
    x = (np.linspace(0, 1, n) if is_roc else picture.first + np.arange(n)).tolist()
    mark = "full" if n <= _MOST_MARKS else ""
    return Trace(curve["label"], x, middle, series, low, high, mark=mark, line="", is_band=True)
