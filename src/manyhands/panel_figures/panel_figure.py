"""`figure_of`: the pictures of a panel as one figure."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import matplotlib

from manyhands.panel_figures.paper_figures import STYLE, PaperFigure
from manyhands.panel_figures.picture_axes import DRAW, MOST_LETTERS
from manyhands.report.panel import Panel
from manyhands.report.picture_data import Picture

# Parameters of SVG pictures that a figure does not need: names for screen readers, tips of a mouse, room on a page.
SVG_ONLY = ("label", "tips", "width")


def figure_of(panel: Panel, pictures: Sequence[tuple[str, Picture]], width: float, title: bool) -> PaperFigure:
    """Draw pictures of a panel side by side.

    Parameters
    ----------
    panel : Panel
        The panel.
    pictures : sequence of (str, Picture)
        Name, shown above where it is not empty, and picture.
    width : float
        Width of each picture in inches.
    title : bool
        Whether to write the finding of the panel above.

    Returns
    -------
    PaperFigure
        A figure of matplotlib.
    """
    is_card = bool(panel.parts) and all(len(part.svg) == 1 for part in panel.parts)
    across = min(len(pictures), 3 if is_card else 2)  # cards with two pictures have one row each
    down = math.ceil(len(pictures) / across)
    height = [
        max(_HEIGHTS[one.kind](one.data, width) for _, one in pictures[row * across : (row + 1) * across])
        for row in range(down)
    ]
    room = 0.35 if title else 0.0
    with matplotlib.rc_context(STYLE):
        figure = PaperFigure(figsize=(width * across, sum(height) + room), layout="constrained")
        grid = figure.subplots(down, across, squeeze=False, height_ratios=height).ravel()
        for axes, (name, one) in zip(grid, pictures):
            DRAW[one.kind](axes, **{key: one.data[key] for key in one.data if key not in SVG_ONLY})
            if name:
                axes.set_title(name, loc="left", fontweight="bold")
        for axes in grid[len(pictures) :]:
            axes.remove()
        if title:
            figure.suptitle("\n".join(textwrap.wrap(panel.title, int(14 * width * across))))
    return figure


def _dots_height(data: Mapping[str, Any], width: float) -> float:
    per_row = max([len(values) for _, values in data["rows"]], default=1)
    room = 0.5 + (0.15 * len(data["series"]) if data["series"] else 0.0)
    return room + len(data["rows"]) * (0.1 + 0.1 * per_row)


def _matrix_height(data: Mapping[str, Any], width: float) -> float:
    names = 0.055 * min(max(map(len, data["heads"]), default=0), MOST_LETTERS)
    return 0.5 + names + min(0.16 * max(len(data["rows"]), 6), width)


_HEIGHTS: dict[str, Callable[[Mapping[str, Any], float], float]] = {  # inches
    "columns": lambda data, width: 0.6 * width,
    "dots": _dots_height,
    "stacked_bar": lambda data, width: 0.5 + 0.15 * math.ceil(len(data["parts"]) / 2),
    "scatter": lambda data, width: 0.75 * width,
    "lines": lambda data, width: 0.62 * width,
    "heat_map": _matrix_height,
}
