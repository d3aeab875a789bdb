"""Pictures of panels as figures of matplotlib, for papers; drawn from the data of the SVG pictures.

Loaded where a figure is asked for (`manyhands.plots`), and nowhere else.
"""

from __future__ import annotations

import io
import math
import textwrap
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

from manyhands.report.drawing import Picture, log_ticks, tick_text
from manyhands.report.run import Panel

# ----------------------------------------------------------------------------------------------------
# `PaperFigure`: a figure of matplotlib whose text stays text, and the style of all figures.

GREY, GRID = "#5b6570", "#dfe3e8"
_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",  # text stays text
    "pdf.fonttype": 42,
    "svg.hashsalt": "manyhands",  # otherwise ids are random
    "text.parse_math": False,  # dollar signs in names are not formulas
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "axes.edgecolor": GREY,
    "axes.labelcolor": "black",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.linewidth": 0.6,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "legend.frameon": False,
    "legend.fontsize": 7,
    "lines.linewidth": 1.2,
    "lines.markersize": 3.6,
    "figure.titlesize": 9,
}


class PaperFigure(Figure):
    """A figure whose text stays text in SVG and PDF, however it is saved."""

    def draw(self, renderer: Any) -> None:
        """Draw with the style of the figure."""
        with matplotlib.rc_context(_STYLE):
            super().draw(renderer)

    def savefig(self, fname: Any, **options: Any) -> None:
        """Save the figure; the same figure gives the same SVG."""
        form = str(options.get("format") or Path(str(fname)).suffix.removeprefix("."))
        if form == "svg":
            options["metadata"] = {"Date": None} | dict(options.get("metadata") or {})
        with matplotlib.rc_context(_STYLE):
            super().savefig(fname, **options)

    def _repr_png_(self) -> bytes:
        """Return what a notebook shows, also where pyplot is not loaded."""
        buffer = io.BytesIO()
        self.savefig(buffer, format="png", dpi=150)
        return buffer.getvalue()


# ----------------------------------------------------------------------------------------------------
# Each kind of picture, drawn into axes of matplotlib with the parameters of its SVG function.


# The colours and marks of the report: distinguishable with colour vision deficiency, and by shape without colour.
_COLOURS = ("#0072b2", "#c44e00", "#9a6700", "#007f5c", "#a3447d", "#5f6b7a", "#6a51a3", "#2f6f7e")
MARKS = ("o", "s", "D", "^", "x", "o", "+", "_")
_HOLLOW = 5  # the series whose circle is empty
_HEAT = LinearSegmentedColormap.from_list("manyhands", ["#f4f8fb", "#7db4d8", "#0072b2"])
_MOST_LETTERS = 30  # of a name beside an axis
_MOST_CELLS = 12  # rows of a matrix whose cells have numbers
_MOST_WHISKERS = 150  # points of a scatter plot that show their intervals
_LINE = 42  # letters in a line of a legend or of a title
_FEWEST = 5  # columns that there is room for


def _draw_columns(axes: Any, names: Sequence[str], counts: Sequence[float], x_title: str, y_title: str) -> None:
    """Draw counts as columns, with the parameters of `report.drawing.columns`."""
    axes.bar(range(len(counts)), counts, width=0.85, color=_COLOURS[0])
    every = max(1, math.ceil(len(names) * max(map(len, names), default=1) / 40))
    axes.set_xticks(range(0, len(names), every), names[::every])
    side = max(0.6, (_FEWEST - len(counts)) / 2)  # a single column is not as wide as the figure
    axes.set(xlabel=x_title, ylabel=y_title, xlim=(-side, len(counts) - 1 + side))
    axes.grid(axis="y")


def _draw_dots(
    axes: Any,
    rows: Sequence[tuple[str, Sequence[Any]]],
    series: Sequence[str],
    low: float,
    high: float,
    format_tick: Callable[[float], str],
    rule: float | None,
    x_title: str = "",
) -> None:
    """Draw values with intervals, with the parameters of `report.drawing.dots`."""
    every = [
        (dot, at + 0.22 * (place - (len(values) - 1) / 2))
        for at, (_, values) in enumerate(rows)
        for place, dot in enumerate(values)
    ]
    for number in sorted({dot.series for dot, _ in every}):
        mine = [(dot, y) for dot, y in every if dot.series == number]
        heights = [y for _, y in mine]
        axes.hlines(heights, [dot.low for dot, _ in mine], [dot.high for dot, _ in mine], color=_colour(number))
        name = series[number] if number < len(series) else ""
        axes.plot([dot.value for dot, _ in mine], heights, **_marks(number), label=_shown(name) if name else None)
    if rule is not None and low <= rule <= high:
        axes.axvline(rule, color=GREY, linestyle="--", linewidth=0.8, zorder=0)
    axes.set_yticks(range(len(rows)), [_cut(name) for name, _ in rows])
    axes.set(xlim=(low, high), ylim=(len(rows) - 0.4, -0.6), xlabel=x_title)
    axes.xaxis.set_major_formatter(lambda value, _: format_tick(round(value, 10)))
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x")
    if series:
        _legend(axes)


def _draw_stacked_bar(axes: Any, parts: Sequence[tuple[str, int]]) -> None:
    """Draw the parts of a whole, with the parameters of `report.drawing.stacked_bar`."""
    at = 0
    for number, (name, size) in enumerate(parts):
        axes.barh([0], [size], left=at, color=_colour(number), edgecolor="white", label=_shown(f"{name}: {size:,}"))
        at += size
    axes.set(xlim=(0, max(at, 1)), yticks=[])
    axes.set_axis_off()
    _legend(axes)


def _draw_scatter(
    axes: Any,
    points: Sequence[Any],
    series: Sequence[tuple[int, str]],
    x_title: str,
    y_title: str,
    low: float,
    high: float,
) -> None:
    """Draw points with vertical intervals, with the parameters of `report.drawing.scatter`."""
    names = dict(series)
    for number in sorted({point.series for point in points}):
        mine = [point for point in points if point.series == number]
        x = [point.x for point in mine]
        if len(points) <= _MOST_WHISKERS:
            ends = [point.low for point in mine], [point.high for point in mine]
            axes.vlines(x, *ends, color=_colour(number), linewidth=0.7, alpha=0.5)
        axes.plot(x, [point.y for point in mine], **_marks(number), label=_shown(names.get(number, "")))
    axes.set(xscale="log", xlabel=x_title, ylabel=y_title, ylim=(low, high + 0.02 * (high - low)))
    if points:
        axes.margins(x=0.08)
        marks = log_ticks(*axes.get_xlim())
        axes.set_xticks(marks, [tick_text(value) for value in marks])
        axes.minorticks_off()
    axes.grid(axis="y")
    _legend(axes)


def _draw_lines(
    axes: Any,
    x: Sequence[float],
    series: Sequence[tuple[str, Sequence[float]]],
    x_title: str,
    y_title: str,
    low: float,
    high: float | None,
    x_names: Sequence[str],
    bands: Sequence[tuple[Sequence[float], Sequence[float]]],
    diagonal: bool,
    marks: bool,
    joined: bool = True,
    ends: tuple[float, float] | None = None,
) -> None:
    """Draw lines with intervals, with the parameters of `report.drawing.lines`."""
    if diagonal:
        edges = ends or (x[0], x[-1])
        axes.plot(edges, edges, color=GREY, linestyle="--", linewidth=0.8, label="_diagonal", zorder=0)
    for number, (name, values) in enumerate(series):
        if number < len(bands):
            axes.vlines(x, *bands[number], color=_colour(number))
        look = _marks(number) if marks else {"color": _colour(number)}
        axes.plot(x, values, **look | {"linestyle": "-" if joined else "none"}, label=_shown(name))
    axes.set(xlabel=x_title, ylabel=y_title)
    finite = [y for _, values in series for y in values if math.isfinite(y)]
    top = max([*finite, low + 1e-9]) if high is None else high
    axes.set_ylim(low, top + 0.03 * (top - low))
    if ends is not None:
        axes.set_xlim(*ends)
    if x_names:
        every = max(1, math.ceil(len(x_names) * max(map(len, x_names)) / 36))
        axes.set_xticks(list(x)[::every], list(x_names)[::every])
    axes.grid(axis="y")
    if len(series) > 1:
        _legend(axes)


def _draw_heat_map(
    axes: Any,
    matrix: Any,
    rows: Sequence[str],
    heads: Sequence[str],
    format_cell: Callable[[float], str],
    y_title: str,
    x_title: str,
    most: float | None,
    unit: str = "",
    least: float = 0.0,
) -> None:
    """Draw a matrix, with the parameters of `report.drawing.heat_map`."""
    strongest = float(np.nanmax(matrix, initial=least)) if most is None else most
    strongest = strongest if strongest > least else least + 1.0
    shown = axes.imshow(np.ma.masked_invalid(matrix), cmap=_HEAT, vmin=least, vmax=strongest, aspect="auto")
    axes.set_yticks(range(len(rows)), [_cut(name) for name in rows])
    turned = any(len(name) > 4 for name in heads) and len(heads) > 3
    axes.set_xticks(range(len(heads)), [_cut(name) for name in heads], rotation=90 if turned else 0)
    axes.set(ylabel=y_title, xlabel=textwrap.fill(f"{x_title} ({unit})" if unit else x_title, _LINE))
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    if len(rows) > _MOST_CELLS:
        bar = axes.figure.colorbar(shown, ax=axes, shrink=0.8, aspect=25, format=lambda value, _: format_cell(value))
        bar.outline.set_visible(False)
        return
    for r, c in np.argwhere(np.isfinite(matrix)).tolist():
        value = float(matrix[r, c])
        dark = (value - least) / (strongest - least) > 0.7
        text = format_cell(value)
        axes.text(c, r, text, ha="center", va="center", fontsize=7, color="white" if dark else "black")


DRAW: dict[str, Callable[..., None]] = {
    "columns": _draw_columns,
    "dots": _draw_dots,
    "stacked_bar": _draw_stacked_bar,
    "scatter": _draw_scatter,
    "lines": _draw_lines,
    "heat_map": _draw_heat_map,
}


def _colour(number: int) -> str:
    return _COLOURS[number % len(_COLOURS)]


def _marks(number: int) -> dict[str, Any]:
    """Return the look of the points of a series, as the SVG has it."""
    place = number % len(MARKS)
    look = {"color": _colour(number), "marker": MARKS[place], "linestyle": "none"}
    return look | ({"markerfacecolor": "none"} if place == _HOLLOW else {})


def _shown(name: str) -> str:
    """Return a name that a legend does not leave out, as matplotlib does with those that begin with an underscore."""
    return f" {name}" if name.startswith("_") else name


def _cut(name: str) -> str:
    return name if len(name) <= _MOST_LETTERS else f"{name[: _MOST_LETTERS - 1]}…"


def _legend(axes: Any) -> None:
    """Write the names of the series above the axes, as many side by side as fit."""
    handles, names = axes.get_legend_handles_labels()
    names = [textwrap.fill(name, _LINE, drop_whitespace=False) for name in names]
    across = max(1, min(3, _LINE // max(map(len, names), default=1)))
    place = {"loc": "lower left", "bbox_to_anchor": (0, 1), "borderaxespad": 0.2, "handletextpad": 0.4}
    axes.legend(handles, names, ncols=across, **place)


# ----------------------------------------------------------------------------------------------------
# `figure_of`: the pictures of a panel as one figure.


# Parameters of SVG pictures that a figure does not need: names for screen readers, tips of a mouse, room on a page.
SVG_ONLY = ("label", "tips", "width")


def figure_of(panel: Panel, pictures: Sequence[tuple[str, Picture]], width: float, title: bool) -> PaperFigure:
    """Draw pictures of a panel side by side."""
    is_card = bool(panel.parts) and all(len(part.svg) == 1 for part in panel.parts)
    across = min(len(pictures), 3 if is_card else 2)  # cards with two pictures have one row each
    down = math.ceil(len(pictures) / across)
    height = [
        max(_HEIGHTS[one.kind](one.data, width) for _, one in pictures[row * across : (row + 1) * across])
        for row in range(down)
    ]
    room = 0.35 if title else 0.0
    with matplotlib.rc_context(_STYLE):
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
    names = 0.055 * min(max(map(len, data["heads"]), default=0), _MOST_LETTERS)
    return 0.5 + names + min(0.16 * max(len(data["rows"]), 6), width)


_HEIGHTS: dict[str, Callable[[Mapping[str, Any], float], float]] = {  # inches
    "columns": lambda data, width: 0.6 * width,
    "dots": _dots_height,
    "stacked_bar": lambda data, width: 0.5 + 0.15 * math.ceil(len(data["parts"]) / 2),
    "scatter": lambda data, width: 0.75 * width,
    "lines": lambda data, width: 0.62 * width,
    "heat_map": _matrix_height,
}
__all__ = ["PaperFigure", "figure_of"]
