"""Curves of series: the mean over seeds, with a band."""

from __future__ import annotations

import math
from collections.abc import Mapping
from statistics import fmean
from typing import Any

import numpy as np

from manyhands.reproduce.formatting import series_title, title
from manyhands.reproduce.pages import Page
from manyhands.reproduce.pictures import PANELS, Picture
from manyhands.reproduce.plot_panels import add_legend, add_levels, panel_axes
from manyhands.reproduce.plot_style import GRID, style_of, visible, wrapped
from manyhands.reproduce.significance import half_width
from manyhands.reproduce.tables import Table

_FEWEST = 3  # seeds for an interval
_MOST_MARKS = 25  # points of a curve that have marks


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
    axes = panel_axes(drawing, panels)
    order = {label: at for at, label in enumerate(dict.fromkeys(curve["label"] for curve in found))}
    is_roc = picture.series == ("roc",)
    for axis, panel in zip(axes, panels):
        for curve in found:
            if curve["panel"] == panel:
                _curve(axis, curve, style_of(order[curve["label"]]), picture, is_roc)
        all_sets = [one.name for one in table.datasets]
        add_levels(axis, shown, picture, [panel] if picture.panels == PANELS[0] else all_sets)
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
    add_legend(drawing, axes, order)


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
