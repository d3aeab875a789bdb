"""A metric over a number of data sets, or over a swept parameter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from manyhands.reproduce.formatting import title
from manyhands.reproduce.metric_names import is_share
from manyhands.reproduce.pages import Page
from manyhands.reproduce.pictures import Picture
from manyhands.reproduce.plot_panels import add_legend, add_levels, panel_axes
from manyhands.reproduce.plot_style import GRID, limits, style_of, visible, wrapped
from manyhands.reproduce.tables import Table

_DECADES = 100  # ratio of the largest to the smallest number from which on an axis is logarithmic
_AXES = {"remove": "share of annotations removed", "items": "training items"}


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
    axes = panel_axes(drawing, list(panels))
    order = {row: at for at, row in enumerate(dict.fromkeys(entry["row"] for entry in found))}
    for axis, sets in zip(axes, panels.values()):
        lines(axis, [entry for entry in found if entry["dataset"] in sets], order)
        axis.set_xlabel(visible(picture.x_label or _AXES.get(table.x or "", title(table.x or ""))))
        levels = add_levels(axis, shown, picture, sets)
        _fit(axis, [entry for entry in found if entry["dataset"] in sets], levels, shown, picture)
    has_interval = any(entry["interval"] for entry in found)
    axes[0].set_ylabel(label + ("\nmean, 95% interval over seeds" if has_interval else ""))
    add_legend(drawing, axes, order)


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


def _fit(axis: Any, found: Sequence[dict[str, Any]], levels: Sequence[float], shown: Page, picture: Picture) -> None:
    """Fit the vertical axis to the values; intervals that are much longer than their range are cut."""
    middles = [entry[key] for entry in found for key in ("mean", "published") if entry[key] is not None]
    middles += levels
    spreads = [(entry["mean"], entry["interval"] or 0) for entry in found if entry["mean"] is not None]
    ends = [value + sign * spread for value, spread in spreads for sign in (-1, 1)]
    is_bounded = picture.metric is not None and is_share(picture.metric)
    axis.set_ylim(limits(middles, ends, (0.0, 100.0 if shown["points"] else 1.0) if is_bounded else None))


def _data_panels(table: Table, found: Sequence[dict[str, Any]]) -> dict[str, list[str]]:
    """Return title of a panel -> its data sets: one each, or all that differ in x only."""
    shown = {entry["dataset"] for entry in found}
    panels: dict[str, list[str]] = {}
    for dataset in table.datasets:
        if dataset.name in shown:
            base = dataset.name if table.sweeps else dataset.load or dataset.make or dataset.name
            panels.setdefault(base, []).append(dataset.name)
    return panels
