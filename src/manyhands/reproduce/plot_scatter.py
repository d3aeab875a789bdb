"""Scatter plots: estimated against simulated values, or one metric or series against another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from manyhands.reproduce.formatting import series_title, title
from manyhands.reproduce.pages import Page
from manyhands.reproduce.pictures import Picture
from manyhands.reproduce.plot_panels import add_legend, panel_axes
from manyhands.reproduce.plot_style import GRID, style_of, visible, wrapped
from manyhands.reproduce.tables import Table


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
    axes = panel_axes(drawing, panels)
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
    add_legend(drawing, axes, order)


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
