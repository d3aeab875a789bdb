"""Axes of charts."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from manyhands.report.svg import Drawing, tick_text, ticks
from manyhands.report.text_fitting import text_width


def vertical_axis(
    draw: Drawing, low: float, high: float, left: float, top: float, bottom: float, title: str
) -> Callable[[float], float]:
    """Draw a vertical axis with its grid.

    Parameters
    ----------
    draw : Drawing
        Where to draw.
    low : float
        Lower end of the scale.
    high : float
        Upper end of the scale.
    left : float
        Abscissa of the axis.
    top : float
        Ordinate of the upper end.
    bottom : float
        Ordinate of the lower end.
    title : str
        Title, written above the axis.

    Returns
    -------
    callable
        From a value to its ordinate; values outside the scale are at its ends.
    """

    def scale(value: float) -> float:
        return bottom - (bottom - top) * (min(max(value, low), high) - low) / max(high - low, 1e-12)

    for value in ticks(low, high):
        draw.line(left, scale(value), draw.width - 8, scale(value), "grid")
        draw.text(left - 6, scale(value) + 4, tick_text(value, high), "tick", anchor="end")
    draw.text(0, top - 12, title, "axis-title")
    return scale


def horizontal_axis(
    draw: Drawing, low: float, high: float, left: float, top: float, bottom: float, format_tick: Callable[[float], str]
) -> Callable[[float], float]:
    """Draw a horizontal axis below rows, with its grid.

    Parameters
    ----------
    draw : Drawing
        Where to draw.
    low : float
        Left end of the scale.
    high : float
        Right end of the scale.
    left : float
        Abscissa of the left end.
    top : float
        Ordinate of the first row.
    bottom : float
        Ordinate of the axis.
    format_tick : callable
        Text of a tick.

    Returns
    -------
    callable
        From a value to its abscissa.
    """

    def scale(value: float) -> float:
        return left + (draw.width - left - 16) * (value - low) / max(high - low, 1e-12)

    for value in ticks(low, high):
        draw.line(scale(value), top, scale(value), bottom, "grid")
        draw.text(scale(value), bottom + 16, format_tick(value), "tick", anchor="middle")
    return scale


def name_abscissas(
    draw: Drawing,
    x: Sequence[float],
    names: Sequence[str],
    across: Callable[[float], float],
    bottom: float,
    first: float,
    last: float,
) -> None:
    """Write the abscissas below the axis, as many as fit.

    Parameters
    ----------
    draw : Drawing
        Where to draw.
    x : sequence of float
        Abscissas in units of the data.
    names : sequence of str
        Their texts; without them, round numbers are written.
    across : callable
        From an abscissa in units of the data to one of the drawing.
    bottom : float
        Ordinate of the axis.
    first : float
        Smallest abscissa in units of the data.
    last : float
        Largest abscissa in units of the data.
    """
    if not names:
        for value in ticks(first, last, 6):
            draw.text(across(value), bottom + 15, tick_text(value), "tick", anchor="middle")
        return
    taken = -math.inf
    for value, name in zip(x, names):
        half = text_width(name) / 2
        if across(value) - half > taken + 6 and across(value) + half <= draw.width + 6:
            draw.text(across(value), bottom + 15, name, "tick", anchor="middle")
            taken = across(value) + half


def log_ticks(first: float, last: float) -> list[float]:
    """Return powers of ten in a range, with 2 and 5 times them where there are few; round numbers in a short range.

    Parameters
    ----------
    first : float
        Lower end.
    last : float
        Upper end.

    Returns
    -------
    list of float
        Ticks of a logarithmic scale.
    """
    powers = [10.0**p for p in range(math.floor(math.log10(first)), math.ceil(math.log10(last)) + 1)]
    fine = [power * factor for power in powers for factor in (1, 2, 5)]
    chosen = [value for value in fine if first <= value <= last]
    if len(chosen) < 3:
        chosen = ticks(first, last, 5)
    return chosen if len(chosen) <= 8 else [value for value in powers if first <= value <= last]
