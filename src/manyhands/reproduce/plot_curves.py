"""Figures with two axes: lines over a number, curves of series with a band over seeds, and scatter plots."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

import numpy as np

from manyhands.reproduce.formatting import series_title, title
from manyhands.reproduce.metric_names import is_share
from manyhands.reproduce.pages import Page
from manyhands.reproduce.pictures import PANELS, Picture
from manyhands.reproduce.plot_style import (
    GRID,
    WIDEST,
    legend_below,
    limits,
    style_of,
    visible,
    wrapped,
)
from manyhands.reproduce.significance import half_width
from manyhands.reproduce.tables import Table

_DECADES = 100  # ratio of the largest to the smallest number from which on an axis is logarithmic
_PANEL = (4.3, 3.3)  # inches
_AXES = {"remove": "share of annotations removed", "items": "training items"}
_FEWEST = 3  # seeds for an interval
_MOST_MARKS = 25  # points of a curve that have marks


def draw_lines(drawing: Any, table: Table, shown: Page, picture: Picture, label: str) -> None:
    """Draw a metric over a number of data sets, or over a swept parameter.

    Parameters
    ----------
    drawing : Figure
        An empty figure.
    table : Table
        A table with `x`.
    shown : dict
        Its page.
    picture : Picture
        Metric, rows and data sets.
    label : str
        Name of the vertical axis.
    """
    found = [e for e in shown["entries"] if e["metric"] == picture.metric and picture.shows(e["dataset"], e["row"])]
    panels = _data_panels(table, found)
    axes = _panels(drawing, list(panels))
    order = {row: at for at, row in enumerate(dict.fromkeys(entry["row"] for entry in found))}
    for axis, sets in zip(axes, panels.values()):
        lines(axis, [entry for entry in found if entry["dataset"] in sets], order)
        axis.set_xlabel(visible(picture.x_label or _AXES.get(table.x or "", title(table.x or ""))))
        levels = _levels(axis, shown, picture, sets)
        _fit(axis, [entry for entry in found if entry["dataset"] in sets], levels, shown, picture)
    has_interval = any(entry["interval"] for entry in found)
    axes[0].set_ylabel(label + ("\nmean, 95% interval over seeds" if has_interval else ""))
    _legend(drawing, axes, order)


def lines(axis: Any, found: Sequence[dict[str, Any]], order: Mapping[str, int]) -> None:
    """Draw one line per row; a row without a sweep is a horizontal line.

    Parameters
    ----------
    axis : Axes
        The panel.
    found : sequence of dict
        Entries of a page.
    order : mapping of str to int
        Row -> its position, which determines colour and mark.
    """
    for row, at in order.items():
        own, style = [entry for entry in found if entry["row"] == row], style_of(at)
        for entry in own:
            if entry["x"] is None and entry["mean"] is not None:
                level = {"color": style["color"], "linestyle": ("--", "-.", ":")[at % 3]}
                axis.axhline(entry["mean"], label=wrapped(row), **level)
        own = sorted((entry for entry in own if entry["x"] is not None), key=lambda entry: entry["x"])
        measured = [entry for entry in own if entry["mean"] is not None]
        if measured:
            x, y = [entry["x"] for entry in measured], [entry["mean"] for entry in measured]
            spread = [entry["interval"] or 0 for entry in measured]
            axis.errorbar(x, y, spread, capsize=2, elinewidth=1, markersize=5, label=wrapped(row), **style)
        there = [entry for entry in own if entry["published"] is not None]
        if there:
            x, y = [entry["x"] for entry in there], [entry["published"] for entry in there]
            hollow = style | {"linestyle": ":", "fillstyle": "none", "label": wrapped(f"{row}, published")}
            axis.plot(x, y, **hollow)
    places = [entry["x"] for entry in found if entry["x"] is not None]
    if places and min(places) > 0 and max(places) >= _DECADES * min(places):
        axis.set_xscale("log")
    axis.grid(color=GRID, linewidth=0.8)


def _levels(axis: Any, shown: Page, picture: Picture, datasets: Sequence[str]) -> list[float]:
    """Draw horizontal lines at the means of metrics, and return where; beside series they are not per cent."""
    found = []
    for at, metric in enumerate(picture.levels):
        there = [e for e in shown["entries"] if e["metric"] == metric and e["dataset"] in datasets]
        means = [entry["mean"] for entry in there if entry["mean"] is not None]
        if means:
            scale = 100.0 if picture.series and shown["points"] and is_share(metric) else 1.0
            style = {"color": "#444444", "linewidth": 1.1, "linestyle": (":", "--", "-.")[at % 3]}
            found.append(fmean(means) / scale)
            axis.axhline(found[-1], label=wrapped(title(metric)), **style)
    return found


def _fit(axis: Any, found: Sequence[dict[str, Any]], levels: Sequence[float], shown: Page, picture: Picture) -> None:
    """Fit the vertical axis to the values; intervals that are much longer than their range are cut."""
    middles = [entry[key] for entry in found for key in ("mean", "published") if entry[key] is not None]
    middles += levels
    spreads = [(entry["mean"], entry["interval"] or 0) for entry in found if entry["mean"] is not None]
    ends = [value + sign * spread for value, spread in spreads for sign in (-1, 1)]
    is_bounded = picture.metric is not None and is_share(picture.metric)
    axis.set_ylim(limits(middles, ends, (0.0, 100.0 if shown["points"] else 1.0) if is_bounded else None))


def draw_series(drawing: Any, table: Table, shown: Page, picture: Picture) -> None:
    """Draw the mean of a series over seeds, with a band of its 95% interval.

    Parameters
    ----------
    drawing : Figure
        An empty figure.
    table : Table
        The table.
    shown : dict
        Its page.
    picture : Picture
        Series, rows and data sets.
    """
    found = _curves(table, shown, picture)
    panels = list(dict.fromkeys(curve["panel"] for curve in found))
    axes = _panels(drawing, panels)
    order = {label: at for at, label in enumerate(dict.fromkeys(curve["label"] for curve in found))}
    is_roc = picture.series == ("roc",)
    for axis, panel in zip(axes, panels):
        for curve in found:
            if curve["panel"] == panel:
                _curve(axis, curve, style_of(order[curve["label"]]), picture, is_roc)
        _levels(axis, shown, picture, [panel] if picture.panels == PANELS[0] else [one.name for one in table.datasets])
        if is_roc:
            axis.plot([0, 1], [0, 1], color="#999999", linewidth=0.8, linestyle=":")
            axis.set_aspect("equal")
            axis.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
        if picture.ticks:
            axis.set_xticks([picture.first + at for at in range(len(picture.ticks))], map(visible, picture.ticks))
            if max(map(len, picture.ticks)) > 3:  # a turned name ends below its tick
                for text in axis.get_xticklabels():
                    text.set(rotation=35, horizontalalignment="right", rotation_mode="anchor")
        elif not is_roc:
            axis.xaxis.get_major_locator().set_params(integer=True)
        axis.grid(color=GRID, linewidth=0.8)
        axis.set_xlabel(visible(picture.x_label or _x_label(picture, is_roc)))
    usual = "true positive rate" if is_roc else series_title(picture.series[0])
    has_band = any(len(curve["values"]) >= _FEWEST for curve in found)
    axes[0].set_ylabel(visible(picture.y_label or usual) + ("\nmean, 95% interval over seeds" if has_band else ""))
    _legend(drawing, axes, order)


def draw_scatter(drawing: Any, table: Table, shown: Page, picture: Picture, labels: tuple[str, str]) -> None:
    """Draw points of all seeds: estimated against simulated values, or one metric or series against another.

    Parameters
    ----------
    drawing : Figure
        An empty figure.
    table : Table
        The table.
    shown : dict
        Its page.
    picture : Picture
        Series or metrics, rows and data sets.
    labels : tuple of str
        Names of both axes; empty for the usual ones.
    """
    found = _points(table, shown, picture)
    panels = list(dict.fromkeys(cloud["panel"] for cloud in found))
    axes = _panels(drawing, panels)
    order = {label: at for at, label in enumerate(dict.fromkeys(cloud["label"] for cloud in found))}
    has_diagonal = len(picture.series) == 1
    for axis, panel in zip(axes, panels):
        here = [cloud for cloud in found if cloud["panel"] == panel]
        for cloud in here:
            style = style_of(order[cloud["label"]])
            style = {"marker": style["marker"], "edgecolors": style["color"]}
            name = "_" if picture.panels == "rows" else wrapped(cloud["label"])
            axis.scatter(cloud["x"], cloud["y"], s=28, facecolors="none", linewidths=1.1, label=name, **style)
        if has_diagonal:
            both = [value for cloud in here for value in (*cloud["x"], *cloud["y"])] or [0, 1]
            axis.plot([min(both), max(both)], [min(both), max(both)], color="#999999", linewidth=0.8, zorder=0)
            axis.set_aspect("equal", adjustable="datalim")
        usual = ("simulated", "estimated") if has_diagonal else tuple(map(series_title, picture.series))
        axis.set_xlabel(visible(labels[0] or usual[0]))
        axis.set_axisbelow(True)
        axis.grid(color=GRID, linewidth=0.8)
    axes[0].set_ylabel(visible(labels[1] or picture.y_label or usual[1]))
    _legend(drawing, axes, order)


def _data_panels(table: Table, found: Sequence[dict[str, Any]]) -> dict[str, list[str]]:
    """Return title of a panel -> its data sets: one each, or all that differ in x only."""
    shown = {entry["dataset"] for entry in found}
    panels: dict[str, list[str]] = {}
    for dataset in table.datasets:
        if dataset.name in shown:
            base = dataset.name if table.sweeps else dataset.load or dataset.make or dataset.name
            panels.setdefault(base, []).append(dataset.name)
    return panels


def _panels(drawing: Any, names: Sequence[str]) -> list[Any]:
    """Set the size of the figure and return its panels, in several lines if they are many."""
    n = max(1, len(names))
    columns = min(n, 3)
    rows = math.ceil(n / columns)
    drawing.set_size_inches(min(WIDEST, _PANEL[0] * columns + (1.2 if columns == 1 else 0.3)), _PANEL[1] * rows + 0.9)
    axes = [axis for line in drawing.subplots(rows, columns, squeeze=False) for axis in line]
    for axis in axes[n:]:
        axis.set_visible(False)
    for axis, name in zip(axes, names):
        axis.set_title(wrapped(name, 40))
    return axes[:n]


def _legend(drawing: Any, axes: Sequence[Any], order: Mapping[str, int]) -> None:
    """Add the legend below, in as many columns as its labels allow."""
    labels = [label for axis in axes for label in axis.get_legend_handles_labels()[1]]
    longest = max((len(line) for label in labels for line in label.split("\n")), default=1)
    width = float(drawing.get_size_inches()[0])
    lines_needed = math.ceil(len(set(labels)) / max(1, int(width / (0.085 * longest + 0.55))))
    drawing.set_size_inches(width, float(drawing.get_size_inches()[1]) + 0.2 * max(0, lines_needed - 1))
    names = [wrapped(name) for row in order for name in (row, f"{row}, published")]
    legend_below(drawing, axes, max(1, int(width / (0.085 * longest + 0.55))), names)


def _x_label(picture: Picture, is_roc: bool) -> str:
    """Return the usual name of the horizontal axis of a series."""
    if is_roc:
        return "false positive rate"
    kind = picture.series[0].partition(".")[0]
    if picture.at is not None:
        return "class"
    return {"history": "epoch", "rounds": "round", "class_shares": "round"}.get(kind, "class")


def _selected(one: Mapping[str, Any], picture: Picture) -> list[list[float]]:
    """Return the numbers of every seed, of a series of lists the part that the picture names."""
    found = []
    for numbers in one["values"].values():
        if picture.component is not None:
            numbers = [part[picture.component] if isinstance(part, list) else part for part in numbers]
        elif numbers and isinstance(numbers[0], list):
            numbers = numbers[picture.at if picture.at is not None else -1]
        found.append([math.nan if value is None else float(value) for value in numbers])
    return found


def _curves(table: Table, shown: Page, picture: Picture) -> list[dict[str, Any]]:
    """Return the numbers, the label and the panel of each curve."""
    found = []
    several = len(picture.series) > 1
    for name in picture.series:
        for one in shown["series"]:
            if one["series"] != name or not one["values"] or not picture.shows(one["dataset"], one["row"]):
                continue
            row = one["row"] + ("" if one["x"] is None else f", {title(table.x or '')} {one['x']:g}")
            by_row = picture.panels == "rows"
            label = (one["dataset"] if by_row else row) + (f": {series_title(name)}" if several else "")
            label = series_title(name) if several and by_row else label
            panel = one["row"] if by_row else one["dataset"]
            found.append({"label": label, "panel": panel, "values": _selected(one, picture)})
    return found


def _curve(axis: Any, curve: Mapping[str, Any], style: Mapping[str, Any], picture: Picture, is_roc: bool) -> None:
    """Draw the mean of the seeds that reach a position, as long as half of them do, and the band."""
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
    x = np.linspace(0, 1, n) if is_roc else picture.first + np.arange(n)
    has_marks = n <= _MOST_MARKS
    drawn = dict(style) | {"marker": style["marker"] if has_marks else None, "markersize": 4}
    axis.plot(x, middle, label=wrapped(curve["label"]), **drawn)
    axis.fill_between(x, low, high, color=style["color"], alpha=0.15, linewidth=0)


def _points(table: Table, shown: Page, picture: Picture) -> list[dict[str, Any]]:
    """Return the coordinates, the label and the panel of each cloud of points."""
    pairs: dict[tuple[str, str], dict[str, Any]] = {}
    named = [(entry, entry["metric"]) for entry in shown["entries"]] if picture.metric is not None else []
    named = named or [(one, one["series"]) for one in shown["series"]]
    wanted = picture.series or (picture.against, picture.metric)
    for one, name in named:
        if name in wanted and one["values"] and picture.shows(one["dataset"], one["row"]):
            row = one["row"] + ("" if one["x"] is None else f", {title(table.x or '')} {one['x']:g}")
            pairs.setdefault((one["dataset"], row), {})[name] = one["values"]
    found = []
    for (dataset, row), values in pairs.items():
        x, y = _coordinates(values, wanted)
        by_row = picture.panels == "rows"
        if x:
            found.append({"label": dataset if by_row else row, "panel": row if by_row else dataset, "x": x, "y": y})
    return found


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
    kept = [(a, b) for a, b in zip(x, y) if a is not None and b is not None]
    return [a for a, _ in kept], [b for _, b in kept]


def _flat(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list) else [value]
