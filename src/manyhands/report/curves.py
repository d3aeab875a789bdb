"""Scatter plots and lines."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from manyhands.report.axes import log_ticks, name_abscissas, vertical_axis
from manyhands.report.picture_data import picture
from manyhands.report.svg import WIDTH, Drawing, tick_text


@dataclass(frozen=True)
class Point:
    """A point of a scatter plot.

    Attributes
    ----------
    x : float
        Abscissa.
    y : float
        Ordinate.
    low : float
        Lower end of its interval; NaN for none.
    high : float
        Upper end of its interval.
    series : int
        Series, which gives shape and colour.
    name : str
        Text that a mouse shows.
    """

    x: float
    y: float
    low: float
    high: float
    series: int
    name: str


@picture
def scatter(
    points: Sequence[Point],
    label: str,
    *,
    series: Sequence[tuple[int, str]],
    x_title: str,
    y_title: str,
    low: float,
    high: float,
) -> str:
    """Draw points with vertical intervals on a logarithmic abscissa.

    Parameters
    ----------
    points : sequence of Point
        The points; abscissas are at least 1.
    label : str
        What the picture shows, for screen readers.
    series : sequence of (int, str)
        Series and their names, for the legend.
    x_title : str
        Title of the horizontal axis.
    y_title : str
        Title of the vertical axis.
    low : float
        Lower end of the vertical scale.
    high : float
        Upper end of the vertical scale.

    Returns
    -------
    str
        An SVG element.
    """
    draw, left = Drawing(0, label), 48.0
    top = draw.legend(list(series), 14) + 34
    bottom = top + 234
    draw.height = bottom + 48
    scale = vertical_axis(draw, low, high, left, top, bottom, y_title)
    first, last = (min(p.x for p in points), max(p.x for p in points)) if points else (1.0, 10.0)
    begin, end = math.log10(max(first, 1) * 0.8), math.log10(max(last, 1) * 1.25)

    def across(x: float) -> float:
        return left + 6 + (WIDTH - left - 14) * (math.log10(max(x, 1)) - begin) / max(end - begin, 1e-9)

    for value in log_ticks(10**begin, 10**end):
        draw.line(across(value), bottom, across(value), bottom + 4, "axis")
        draw.text(across(value), bottom + 17, tick_text(value), "tick", anchor="middle")
    draw.line(left, bottom, WIDTH - 8, bottom, "axis")
    draw.text((left + WIDTH) / 2, bottom + 38, x_title, "axis-title", anchor="middle")
    for point in points:
        if math.isfinite(point.low) and math.isfinite(point.high) and len(points) <= 150:
            draw.line(
                across(point.x), scale(point.low), across(point.x), scale(point.high), f"s{point.series} whisker faint"
            )
    for point in points:
        draw.mark(across(point.x), scale(point.y), point.series, size=3.6, tip=point.name)
    return draw.svg()


@picture
def lines(
    x: Sequence[float],
    series: Sequence[tuple[str, Sequence[float]]],
    label: str,
    *,
    x_title: str,
    y_title: str,
    low: float = 0.0,
    high: float | None = None,
    x_names: Sequence[str] = (),
    bands: Sequence[tuple[Sequence[float], Sequence[float]]] = (),
    diagonal: bool = False,
    marks: bool = True,
    joined: bool = True,
    ends: tuple[float, float] | None = None,
) -> str:
    """Draw one or several lines, with intervals where there are some.

    Parameters
    ----------
    x : sequence of float
        Abscissas, ascending.
    series : sequence of (str, sequence of float)
        Name and ordinates of each line; NaN leaves a point out.
    label : str
        What the picture shows, for screen readers.
    x_title : str
        Title of the horizontal axis.
    y_title : str
        Title of the vertical axis.
    low : float, default=0.0
        Lower end of the vertical scale.
    high : float or None, default=None
        Upper end of the vertical scale; None for the largest ordinate.
    x_names : sequence of str, default=()
        Texts of the abscissas; without them, numbers.
    bands : sequence of (sequence of float, sequence of float), default=()
        Lower and upper ends of the intervals of each line.
    diagonal : bool, default=False
        Whether to draw the line of equal coordinates.
    marks : bool, default=True
        Whether to mark the points.
    joined : bool, default=True
        Whether to connect the points.
    ends : tuple of (float, float) or None, default=None
        Ends of the horizontal scale; None for the first and the last abscissa.

    Returns
    -------
    str
        An SVG element.
    """
    many = len(series) > 1
    draw, left, top = Drawing(0, label), 48.0, 26.0
    if many:
        top = draw.legend([(at, name) for at, (name, _) in enumerate(series)], 14) + 30
    bottom = top + 164
    draw.height = bottom + 44
    finite = [y for _, values in series for y in values if math.isfinite(y)]
    scale = vertical_axis(
        draw, low, high if high is not None else max([*finite, low + 1e-9]), left, top, bottom, y_title
    )
    first, last = ends or ((x[0], x[-1]) if len(x) else (0.0, 1.0))

    def across(value: float) -> float:
        return left + 8 + (WIDTH - left - 26) * (value - first) / (last - first) if last > first else (left + WIDTH) / 2

    name_abscissas(draw, x, x_names, across, bottom, first, last)
    draw.line(left, bottom, WIDTH - 8, bottom, "axis")
    draw.text((left + WIDTH) / 2, bottom + 36, x_title, "axis-title", anchor="middle")
    if diagonal:
        draw.line(across(first), scale(first), across(last), scale(last), "rule")
    for at, (name, values) in enumerate(series):
        if at < len(bands):
            for value, below, above in zip(x, *bands[at]):
                if math.isfinite(below) and math.isfinite(above):
                    draw.line(across(value), scale(below), across(value), scale(above), f"s{at} whisker")
        known = [(across(a), scale(b)) for a, b in zip(x, values) if math.isfinite(b)]
        if joined:
            draw.path(known, f"s{at} curve")
        if marks:
            for (px, py), value in zip(known, (b for b in values if math.isfinite(b))):
                draw.mark(px, py, at, size=3.2, tip=f"{name}: {value:,.3g}")
    return draw.svg()
