"""Panels of figures with two axes, and the legend below them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from manyhands.reproduce.formatting import title
from manyhands.reproduce.metric_names import is_share
from manyhands.reproduce.pages import Page
from manyhands.reproduce.pictures import Picture
from manyhands.reproduce.plot_style import WIDEST, legend_below, wrapped

_PANEL = (4.3, 3.3)  # inches


def panel_axes(drawing: Any, names: Sequence[str]) -> list[Any]:
    """Set the size of the figure and return its panels, in several lines if they are many.

    Parameters
    ----------
    drawing : Figure
        An empty figure.
    names : sequence of str
        Titles of the panels.

    Returns
    -------
    list of Axes
        One for each name, at least one.
    """
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


def add_legend(drawing: Any, axes: Sequence[Any], order: Mapping[str, int]) -> None:
    """Add the legend below, in as many columns as its labels allow.

    Parameters
    ----------
    drawing : Figure
        The figure.
    axes : sequence of Axes
        Its panels.
    order : mapping of str to int
        Names of the methods, in the order in which they are listed.
    """
    labels = [label for axis in axes for label in axis.get_legend_handles_labels()[1]]
    longest = max((len(line) for label in labels for line in label.split("\n")), default=1)
    width = float(drawing.get_size_inches()[0])
    lines_needed = math.ceil(len(set(labels)) / max(1, int(width / (0.085 * longest + 0.55))))
    drawing.set_size_inches(width, float(drawing.get_size_inches()[1]) + 0.2 * max(0, lines_needed - 1))
    names = [wrapped(name) for row in order for name in (row, f"{row}, published")]
    legend_below(drawing, axes, max(1, int(width / (0.085 * longest + 0.55))), names)


def add_levels(axis: Any, shown: Page, picture: Picture, datasets: Sequence[str]) -> list[float]:
    """Draw horizontal lines at the means of metrics, and return where; beside series they are not per cent.

    Parameters
    ----------
    axis : Axes
        The panel.
    shown : dict
        A page.
    picture : Picture
        The metrics are its `levels`.
    datasets : sequence of str
        Data sets of the panel.

    Returns
    -------
    list of float
        Positions of the lines.
    """
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
