"""Charts of counts and values: columns, dots with intervals, stacked bars."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from manyhands.report.axes import horizontal_axis, vertical_axis
from manyhands.report.picture_data import picture
from manyhands.report.svg import WIDTH, Drawing, tick_text
from manyhands.report.text_fitting import fit_text, text_width

_WIDEST = 90.0  # of a column


@dataclass(frozen=True)
class Dot:
    """A value with its interval.

    Attributes
    ----------
    value : float
        The value.
    low : float
        Lower end of its interval; NaN for none.
    high : float
        Upper end of its interval.
    series : int, default=0
        Series, which gives shape and colour.
    """

    value: float
    low: float
    high: float
    series: int = 0


@picture
def columns(names: Sequence[str], counts: Sequence[float], label: str, x_title: str, y_title: str) -> str:
    """Draw counts as columns.

    Parameters
    ----------
    names : sequence of str
        What each column counts; names are left out where there is no room.
    counts : sequence of float
        The counts.
    label : str
        What the picture shows, for screen readers.
    x_title : str
        Title of the horizontal axis.
    y_title : str
        Title of the vertical axis.

    Returns
    -------
    str
        An SVG element.
    """
    draw, left, top, bottom = Drawing(224, label), 48.0, 26.0, 176.0
    step = (WIDTH - left - 8) / max(len(counts), 1)
    scale = vertical_axis(draw, 0, max([*counts, 1]), left, top, bottom, y_title)
    gap = min(step * 0.15, 6)
    width = min(step - gap, _WIDEST)
    every = math.ceil(max((max([text_width(name) for name in names], default=0) + 8) / step, 1))
    for at, (name, count) in enumerate(zip(names, counts)):
        x = left + at * step
        height = bottom - scale(count)
        if count:
            tall = max(height, 1)
            draw.rect(x + (step - width) / 2, bottom - tall, width, tall, "s0", tip=f"{name}: {count:,g}")
        if at % every == 0:
            middle = min(x + step / 2, WIDTH - text_width(name) / 2)
            draw.text(middle, bottom + 15, name, "tick", anchor="middle")
    draw.line(left, bottom, WIDTH - 8, bottom, "axis")
    draw.text((left + WIDTH) / 2, bottom + 36, x_title, "axis-title", anchor="middle")
    return draw.svg()


@picture
def dots(
    rows: Sequence[tuple[str, Sequence[Dot]]],
    label: str,
    *,
    series: Sequence[str] = (),
    low: float = 0.0,
    high: float = 1.0,
    format_tick: Callable[[float], str] = tick_text,
    rule: float | None = None,
    x_title: str = "",
) -> str:
    """Draw values with intervals, one or several in each row.

    Parameters
    ----------
    rows : sequence of (str, sequence of Dot)
        Name and values of each row.
    label : str
        What the picture shows, for screen readers.
    series : sequence of str, default=()
        Names of the series, for the legend.
    low : float, default=0.0
        Left end of the scale.
    high : float, default=1.0
        Right end of the scale.
    format_tick : callable, default=tick_text
        Text of a tick.
    rule : float or None, default=None
        A value that a vertical line marks.
    x_title : str, default=""
        Title of the scale.

    Returns
    -------
    str
        An SVG element.
    """
    room = min(max([text_width(name) for name, _ in rows], default=0) + 12, WIDTH * 0.4)
    per_row = max([len(values) for _, values in rows], default=1)
    step, top = 12.0 + 12 * per_row, 30.0 if series else 8.0
    draw = Drawing(0, label)
    if series:
        top = draw.legend(list(enumerate(series)), 14) + 16
    bottom = top + step * len(rows)
    draw.height = bottom + (46 if x_title else 26)
    scale = horizontal_axis(draw, low, high, room, top, bottom, format_tick)
    if x_title:
        draw.text((room + WIDTH) / 2, bottom + 36, x_title, "axis-title", anchor="middle")
    if rule is not None and low <= rule <= high:
        draw.line(scale(rule), top, scale(rule), bottom, "rule")
    for at, (name, values) in enumerate(rows):
        middle = top + step * (at + 0.5)
        draw.text(room - 8, middle + 4, fit_text(name, room - 8), anchor="end")
        for place, dot in enumerate(values):
            y = middle + (place - (len(values) - 1) / 2) * 12
            if math.isfinite(dot.low) and math.isfinite(dot.high):
                draw.line(scale(max(dot.low, low)), y, scale(min(dot.high, high)), y, f"s{dot.series} whisker")
            if math.isfinite(dot.value):
                draw.mark(scale(min(max(dot.value, low), high)), y, dot.series, tip=f"{name}: {dot.value:.3f}")
    return draw.svg()


@picture
def stacked_bar(parts: Sequence[tuple[str, int]], label: str) -> str:
    """Draw the parts of a whole as one bar with a legend.

    Parameters
    ----------
    parts : sequence of (str, int)
        Name and size of each part, at most six.
    label : str
        What the picture shows, for screen readers.

    Returns
    -------
    str
        An SVG element.
    """
    total = max(sum(size for _, size in parts), 1)
    draw = Drawing(0, label)
    at = 0.0
    for series, (name, size) in enumerate(parts):
        width = WIDTH * size / total
        draw.rect(at, 2, max(width - 1, 0.8), 22, f"s{series % 6}", tip=f"{name}: {size:,}")
        at += width
    draw.height = draw.legend([(series, f"{name}: {size:,}") for series, (name, size) in enumerate(parts)], 44) + 10
    return draw.svg()
