"""Pictures as SVG, for the report and for the figures of the papers' tables.

Drawing      elements of SVG as text, with classes for colours; then ticks and axes
Picture      an SVG element that remembers the data it was drawn from
columns, dots, stacked_bar, scatter, lines, heat_map    pictures of the report, one chart each
figure       several panels with one legend, from `Plot`: what a panel shows
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from html import escape
from typing import Any, ParamSpec

import numpy as np

from manyhands._core.arrays import Array
from manyhands.report.wording import FONT, fit_lines, fit_text, text_width, visible

# ----------------------------------------------------------------------------------------------------
# Drawing: SVG elements as text, with classes for colours, so that a page decides about light and dark.
#
# No style attributes are written: the page's Content-Security-Policy forbids them.

WIDTH = 400  # of a chart in user units: its text is legible on a phone
_MOST_TEXT = 600  # letters of a name or a label
_ENLARGED = 1.15  # pixels of a screen per user unit: two charts side by side
_CORNERS: dict[str, list[tuple[float, float]]] = {
    "square": [(-1, -1), (1, -1), (1, 1), (-1, 1)],
    "diamond": [(0, -1.3), (1.3, 0), (0, 1.3), (-1.3, 0)],
    "triangle": [(0, -1.2), (1.2, 1), (-1.2, 1)],
}
_SHAPES = ("circle", "square", "diamond", "triangle", "cross", "ring", "plus", "dash")


def _coordinate(value: float) -> str:
    """Return a coordinate with at most one digit after the point."""
    text = f"{value:.1f}"
    return text.removesuffix(".0")


class Drawing:
    """An SVG picture that is being drawn."""

    def __init__(self, height: float, label: str, width: float = WIDTH) -> None:
        self.width, self.height, self.label = width, height, label
        self._parts: list[str] = []

    def rect(
        self, x: float, y: float, width: float, height: float, kind: str, *, strength: float = 1.0, tip: str = ""
    ) -> None:
        """Draw a rectangle."""
        opacity = "" if strength >= 1 else f' fill-opacity="{strength:.2f}"'
        size = f'width="{_coordinate(max(width, 0))}" height="{_coordinate(max(height, 0))}"'
        self._add(f'rect class="{kind}" x="{_coordinate(x)}" y="{_coordinate(y)}" {size}{opacity}', tip)

    def cells(
        self, corners: list[tuple[float, float]], width: float, height: float, kind: str, *, strength: float
    ) -> None:
        """Draw many equal rectangles as one element, which is a quarter of the size of single ones."""
        wide, high = _coordinate(width), _coordinate(height)
        moves = "".join(f"M{_coordinate(x)} {_coordinate(y)}h{wide}v{high}h-{wide}z" for x, y in corners)
        self._add(f'path class="{kind}" d="{moves}" fill-opacity="{strength:.2f}"')

    def line(self, x1: float, y1: float, x2: float, y2: float, kind: str) -> None:
        """Draw a line."""
        ends = (("x1", x1), ("y1", y1), ("x2", x2), ("y2", y2))
        self._add(f'line class="{kind}" ' + " ".join(f'{name}="{_coordinate(value)}"' for name, value in ends))

    def path(self, points: list[tuple[float, float]], kind: str, *, closed: bool = False) -> None:
        """Draw connected lines through points; closed, they are the edge of an area."""
        moves = " ".join(f"{_coordinate(x)},{_coordinate(y)}" for x, y in points)
        self._add(f'{"polygon" if closed else "polyline"} class="{kind}" points="{moves}"')

    def text(self, x: float, y: float, text: str, kind: str = "", *, anchor: str = "start") -> None:
        """Write text."""
        classes = f' class="{kind}"' if kind else ""
        side = "" if anchor == "start" else f' text-anchor="{anchor}"'
        place = f'x="{_coordinate(x)}" y="{_coordinate(y)}"'
        self._parts.append(f"<text{classes} {place}{side}>{_shown(text)}</text>")

    def turned(self, x: float, y: float, text: str, *, degrees: int = 90, anchor: str = "start") -> None:
        """Write text upwards."""
        place = f"translate({_coordinate(x)},{_coordinate(y)}) rotate(-{degrees})"
        side = "" if anchor == "start" else f' text-anchor="{anchor}"'
        self._parts.append(f'<text class="tick" transform="{place}"{side}>{_shown(text)}</text>')

    def mark(
        self,
        x: float,
        y: float,
        series: int,
        *,
        size: float = 4,
        tip: str = "",
        hollow: bool = False,
        faint: bool = False,
    ) -> None:
        """Draw a point whose shape and colour tell its series; the ninth has the first colour again."""
        n = len(_SHAPES)
        shape, kind = _SHAPES[(series + 3 * (series // n)) % n], _colour_of(series)
        kind += (" hollow" if hollow and shape != "ring" else "") + (" faint" if faint else "")
        cx, cy, r = _coordinate(x), _coordinate(y), _coordinate(size)
        if shape == "circle":
            self._add(f'circle class="{kind}" cx="{cx}" cy="{cy}" r="{r}"', tip)
        elif shape == "ring":
            self._add(f'circle class="{kind} hollow" cx="{cx}" cy="{cy}" r="{r}"', tip)
        elif shape in ("cross", "plus", "dash"):
            d = 2 * size
            moves = f"M{_coordinate(x - size)},{_coordinate(y - size)}l{d:g},{d:g}m0,{-d:g}l{-d:g},{d:g}"
            if shape == "plus":
                moves = f"M{_coordinate(x - size)},{cy}h{d:g}M{cx},{_coordinate(y - size)}v{d:g}"
            elif shape == "dash":
                moves = f"M{_coordinate(x - size)},{cy}h{d:g}"
            self._add(f'path class="{kind} stroke" d="{moves}"', tip)
        else:
            points = " ".join(f"{_coordinate(x + a * size)},{_coordinate(y + b * size)}" for a, b in _CORNERS[shape])
            self._add(f'polygon class="{kind}" points="{points}"', tip)

    def legend(self, entries: list[tuple[int, str]], y: float, x: float = 0) -> float:
        """Draw names of series beside their marks, in one line or more."""
        at, row = x, y
        for series, name in entries:
            shown = fit_text(name, self.width - x - 30)
            room = 26 + text_width(shown)
            if at > x and at + room > self.width:
                at, row = x, row + 18
            self.mark(at + 6, row - 4, series)
            self.text(at + 15, row, shown)
            at += room
        return row

    def svg(self) -> str:
        """Return the picture."""
        box = f"0 0 {_coordinate(self.width)} {_coordinate(self.height)}"
        size = f'width="{_coordinate(self.width * _ENLARGED)}" font-size="{FONT}"'
        head = f'<svg class="mh-chart" role="img" viewBox="{box}" {size}'
        return f'{head} aria-label="{_shown(self.label)}">{"".join(self._parts)}</svg>'

    def _add(self, element: str, tip: str = "") -> None:
        name = element.split(" ", 1)[0]
        self._parts.append(f"<{element}><title>{_shown(tip)}</title></{name}>" if tip else f"<{element}/>")


def _colour_of(series: int) -> str:
    """Return the class that gives a series its colour."""
    return f"s{series % len(_SHAPES)}"


def _shown(text: str) -> str:
    """Return text for an element or an attribute: nothing in it is markup, or changes how other text is read."""
    return escape(visible(text, _MOST_TEXT))


def ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Return round numbers that divide a range.

    Examples
    --------
    >>> ticks(0, 100), ticks(0, 0.35)
    ([0.0, 20.0, 40.0, 60.0, 80.0, 100.0], [0.0, 0.1, 0.2, 0.3])
    """
    if not high > low:
        return [low]
    raw = (high - low) / max(most - 1, 1)
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= raw * 0.999)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [round(at * step, 10) for at in range(first, last + 1)]


def tick_text(value: float, largest: float | None = None) -> str:
    """Return a tick's number, large ones shortened.

    Examples
    --------
    >>> tick_text(5000), tick_text(5000, 20000), tick_text(16384)
    ('5000', '5k', '16.4k')
    """
    for size, unit, letter in ((1e6, 1e6, "M"), (1e4, 1e3, "k")):
        if value and abs(value if largest is None else largest) >= size:
            return f"{value / unit:.3g}{letter}"
    return f"{value:g}"


# ----------------------------------------------------------------------------------------------------
# Axes: grid, ticks and names.


def _vertical_axis(
    draw: Drawing, low: float, high: float, left: float, top: float, bottom: float, title: str
) -> Callable[[float], float]:
    """Draw a vertical axis with its grid."""

    def scale(value: float) -> float:
        return bottom - (bottom - top) * (min(max(value, low), high) - low) / max(high - low, 1e-12)

    for value in ticks(low, high):
        draw.line(left, scale(value), draw.width - 8, scale(value), "grid")
        draw.text(left - 6, scale(value) + 4, tick_text(value, high), "tick", anchor="end")
    draw.text(0, top - 12, title, "axis-title")
    return scale


def _horizontal_axis(
    draw: Drawing, low: float, high: float, left: float, top: float, bottom: float, format_tick: Callable[[float], str]
) -> Callable[[float], float]:
    """Draw a horizontal axis below rows, with its grid."""

    def scale(value: float) -> float:
        return left + (draw.width - left - 16) * (value - low) / max(high - low, 1e-12)

    for value in ticks(low, high):
        draw.line(scale(value), top, scale(value), bottom, "grid")
        draw.text(scale(value), bottom + 16, format_tick(value), "tick", anchor="middle")
    return scale


def _name_abscissas(
    draw: Drawing,
    x: Sequence[float],
    names: Sequence[str],
    across: Callable[[float], float],
    bottom: float,
    first: float,
    last: float,
) -> None:
    """Write the abscissas below the axis, as many as fit."""
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
    """Return powers of ten in a range, with 2 and 5 times them where there are few; round numbers in a short range."""
    powers = [10.0**p for p in range(math.floor(math.log10(first)), math.ceil(math.log10(last)) + 1)]
    fine = [power * factor for power in powers for factor in (1, 2, 5)]
    chosen = [value for value in fine if first <= value <= last]
    if len(chosen) < 3:
        chosen = ticks(first, last, 5)
    return chosen if len(chosen) <= 8 else [value for value in powers if first <= value <= last]


# ----------------------------------------------------------------------------------------------------
# `Picture`: an SVG element that remembers what it was drawn from, so that other libraries can draw the same.

P = ParamSpec("P")


class Picture(str):
    """An SVG element together with its data."""

    kind: str  # name of the function that drew it, such as "columns"
    data: Mapping[str, Any]  # arguments of this function by name, defaults included

    def __new__(cls, svg: str, kind: str, data: Mapping[str, Any]) -> Picture:
        """Make a text that carries its kind and its data."""
        made = super().__new__(cls, svg)
        made.kind, made.data = kind, data
        return made


def picture(draw: Callable[P, str]) -> Callable[P, Picture]:
    """Let a function that draws SVG return a `Picture`."""
    signature = inspect.signature(draw)

    @wraps(draw)
    def drawn(*given: P.args, **named: P.kwargs) -> Picture:
        bound = signature.bind(*given, **named)
        bound.apply_defaults()
        return Picture(draw(*given, **named), draw.__name__, dict(bound.arguments))

    return drawn


# ----------------------------------------------------------------------------------------------------
# Charts of counts and values: columns, dots with intervals, stacked bars.

_WIDEST = 90.0  # of a column


@dataclass(frozen=True)
class Dot:
    """A value with its interval."""

    value: float
    low: float  # lower end of its interval; NaN for none
    high: float  # upper end of its interval
    series: int = 0  # series, which gives shape and colour


@picture
def columns(names: Sequence[str], counts: Sequence[float], label: str, x_title: str, y_title: str) -> str:
    """Draw counts as columns."""
    draw, left, top, bottom = Drawing(224, label), 48.0, 26.0, 176.0
    step = (WIDTH - left - 8) / max(len(counts), 1)
    scale = _vertical_axis(draw, 0, max([*counts, 1]), left, top, bottom, y_title)
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
    """Draw values with intervals, one or several in each row."""
    room = min(max([text_width(name) for name, _ in rows], default=0) + 12, WIDTH * 0.4)
    per_row = max([len(values) for _, values in rows], default=1)
    step, top = 12.0 + 12 * per_row, 30.0 if series else 8.0
    draw = Drawing(0, label)
    if series:
        top = draw.legend(list(enumerate(series)), 14) + 16
    bottom = top + step * len(rows)
    draw.height = bottom + (46 if x_title else 26)
    scale = _horizontal_axis(draw, low, high, room, top, bottom, format_tick)
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
    """Draw the parts of a whole as one bar with a legend."""
    total = max(sum(size for _, size in parts), 1)
    draw = Drawing(0, label)
    at = 0.0
    for series, (name, size) in enumerate(parts):
        width = WIDTH * size / total
        draw.rect(at, 2, max(width - 1, 0.8), 22, f"s{series % 6}", tip=f"{name}: {size:,}")
        at += width
    draw.height = draw.legend([(series, f"{name}: {size:,}") for series, (name, size) in enumerate(parts)], 44) + 10
    return draw.svg()


# ----------------------------------------------------------------------------------------------------
# Scatter plots and lines.


@dataclass(frozen=True)
class Point:
    """A point of a scatter plot."""

    x: float
    y: float
    low: float  # lower end of its interval; NaN for none
    high: float  # upper end of its interval
    series: int  # series, which gives shape and colour
    name: str  # text that a mouse shows


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
    """Draw points with vertical intervals on a logarithmic abscissa."""
    draw, left = Drawing(0, label), 48.0
    top = draw.legend(list(series), 14) + 34
    bottom = top + 234
    draw.height = bottom + 48
    scale = _vertical_axis(draw, low, high, left, top, bottom, y_title)
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
    """Draw one or several lines, with intervals where there are some."""
    many = len(series) > 1
    draw, left, top = Drawing(0, label), 48.0, 26.0
    if many:
        top = draw.legend([(at, name) for at, (name, _) in enumerate(series)], 14) + 30
    bottom = top + 164
    draw.height = bottom + 44
    finite = [y for _, values in series for y in values if math.isfinite(y)]
    scale = _vertical_axis(
        draw, low, high if high is not None else max([*finite, low + 1e-9]), left, top, bottom, y_title
    )
    first, last = ends or ((x[0], x[-1]) if len(x) else (0.0, 1.0))

    def across(value: float) -> float:
        return left + 8 + (WIDTH - left - 26) * (value - first) / (last - first) if last > first else (left + WIDTH) / 2

    _name_abscissas(draw, x, x_names, across, bottom, first, last)
    draw.line(left, bottom, WIDTH - 8, bottom, "axis")
    draw.text((left + WIDTH) / 2, bottom + 36, x_title, "axis-title", anchor="middle")
    if diagonal:
        draw.line(across(first), scale(first), across(last), scale(last), "rule")
    for at, (name, values) in enumerate(series):
        if at < len(bands):
            for value, below, above in zip(x, *bands[at]):
                if math.isfinite(below) and math.isfinite(above):
                    draw.line(across(value), scale(below), across(value), scale(above), f"s{at} whisker")
        finite_points = [(across(a), scale(b)) for a, b in zip(x, values) if math.isfinite(b)]
        if joined:
            draw.path(finite_points, f"s{at} curve")
        if marks:
            for (px, py), value in zip(finite_points, (b for b in values if math.isfinite(b))):
                draw.mark(px, py, at, size=3.2, tip=f"{name}: {value:,.3g}")
    return draw.svg()


_MOST_HEAT = 0.62  # opacity of the strongest cell: text on it stays legible in both themes
_LEAST_HEAT = 0.05  # of the weakest, so that a cell of 0 is not taken for one without a value
_TURNED = 110.0  # room for names that are written upwards
_N_STEPS = 6  # of the scale of colours


@picture
def heat_map(
    matrix: Array,
    rows: Sequence[str],
    heads: Sequence[str],
    label: str,
    *,
    format_cell: Callable[[float], str],
    y_title: str,
    x_title: str,
    unit: str = "",
    least: float = 0.0,
    most: float | None = None,
    width: float = WIDTH,
    tips: bool = True,
) -> str:
    """Draw a matrix, the larger a cell the stronger its colour; a scale of colours stands in for numbers without room.

    Shapes: matrix (n_rows, n_columns).
    """
    strongest = most if most is not None else float(np.nanmax(matrix, initial=least))
    strongest = strongest if strongest > least else least + 1.0
    texts = [format_cell(value) for value in [*matrix[np.isfinite(matrix)].tolist(), strongest]]
    left = min(max([text_width(name) for name in rows], default=0) + 10, width * 0.36)
    size = min((width - left - 4) / max(len(heads), 1), 56.0)
    high = min(size, 30.0) if size >= 22 else size
    kind = _text_kind(texts, size, high)
    slanted = any(text_width(name) > size - 4 for name in heads)
    caption = f"{y_title} in rows, {x_title} in columns" + (f"; {unit}" if unit else "")
    lines = fit_lines(caption, width - 4)
    top = (
        15.0 * len(lines) + 12 + (min(max([text_width(name) for name in heads], default=0), _TURNED) if slanted else 18)
    )
    drawn = max(left + size * len(heads) + 4, *(text_width(line) for line in lines))
    bottom = top + high * len(rows)
    draw = Drawing(bottom + (6 if kind else 34), label, min(drawn, width))
    for at, line in enumerate(lines):
        draw.text(0, 12 + 15 * at, line, "axis-title")
    _heads(draw, heads, left, size, top, slanted=slanted)
    levels: dict[int, list[tuple[float, float]]] = {}
    for r, name in enumerate(rows):
        y = top + high * r
        if high >= 11:
            draw.text(left - 6, y + high / 2 + 4, fit_text(name, left - 8), "tick", anchor="end")
        for c, head in enumerate(heads):
            value = float(matrix[r, c])
            if not math.isfinite(value):
                continue
            strength, x = _strength(value, least, strongest), left + size * c
            if tips:
                tip = f"{name}, {head}: {format_cell(value)}"
                draw.rect(x, y, size - 1, high - 1, "heat", strength=strength, tip=tip)
            else:
                levels.setdefault(round(strength * 25), []).append((x, y))
    for level, corners in sorted(levels.items()):
        draw.cells(corners, size - 1, high - 1, "heat", strength=level / 25)
    if kind:
        for r, c in np.argwhere(np.isfinite(matrix)).tolist():
            middle = top + high * (r + 0.5) + 4
            draw.text(left + size * (c + 0.5), middle, format_cell(float(matrix[r, c])), kind, anchor="middle")
    else:
        _scale(draw, left, bottom + 12, format_cell(least), format_cell(strongest))
    return draw.svg()


def _strength(value: float, least: float, strongest: float) -> float:
    """Return the opacity of a cell; the weakest is still seen to be a cell."""
    share = min(max((value - least) / (strongest - least), 0.0), 1.0)
    return _LEAST_HEAT + share * (_MOST_HEAT - _LEAST_HEAT)


def _text_kind(texts: Sequence[str], size: float, high: float) -> str:
    """Return the class of the numbers in the cells, the largest that fits all of them; "" if none does."""
    widest = max([text_width(text) for text in texts], default=0.0) / FONT
    for kind, font in (("cell", 11.0), ("cell small", 9.5)):
        if widest * font <= size - 3 and high >= font + 3:
            return kind
    return ""


def _heads(draw: Drawing, heads: Sequence[str], left: float, size: float, top: float, *, slanted: bool) -> None:
    """Write the names of the columns, upwards where one is wider than its column."""
    for at, name in enumerate(heads):
        x = left + size * (at + 0.5)
        if slanted:
            draw.turned(x + 4, top - 5, fit_text(name, _TURNED - 4))
        else:
            draw.text(x, top - 5, name, "tick", anchor="middle")


def _scale(draw: Drawing, left: float, y: float, low: str, high: str) -> None:
    """Draw the scale of colours between the numbers at its ends."""
    draw.text(left, y + 10, low, "tick")
    first = left + text_width(low) + 6
    for step in range(_N_STEPS):
        strength = _strength(step / (_N_STEPS - 1), 0.0, 1.0)
        draw.rect(first + 14 * step, y, 13, 12, "heat", strength=strength)
    draw.text(first + 14 * _N_STEPS + 5, y + 10, high, "tick")


# ----------------------------------------------------------------------------------------------------
# `figure`: panels side by side, with one legend below them. `Plot` says what a panel shows, in the units of its axes.

_MOST_WIDTH = 880  # of a figure in user units: on a screen that of a page of text
_TITLE, _LINE = 19.0, 15.0  # height of a line of a title, and of other text
_ROW = 24.0  # height of a row with a name of one line
_ROWS_WIDTH, _AXES_WIDTH = 200.0, 228.0  # of the drawn part of a panel: of rows, and of two axes
_WIDER = 1.3  # a single panel
_AXES_HEIGHT = 205.0
_TICKS_ROOM = 52.0  # left of a panel with two axes
_BETWEEN = 22.0  # panels
_MOST_ACROSS = 3  # panels with two axes
_WIDE_FONT = 1.15  # a file of its own is read with fonts that may be wider than the usual ones of a page
_DASHES = ("", " dashed", " dotted")  # of lines, the first eight series are solid


@dataclass(frozen=True)
class Trace:
    """What one name of the legend has in a panel: points, with intervals and a line through them."""

    name: str  # in the legend; empty for none
    x: Sequence[float]  # what is outside the limits of the panel is drawn at its edge
    y: Sequence[float]  # NaN interrupts a line
    series: int | None  # gives shape and colour; None for a grey line that helps to read others
    low: Sequence[float] = ()  # ends of the intervals, along the abscissa if the panel has rows
    high: Sequence[float] = ()
    mark: str = "full"  # or "hollow", "faint", "" for none
    line: str | None = None  # class of the line: "" for a solid one, "dashed", "dotted"; None for none
    is_band: bool = False  # whether the intervals are an area
    names: Sequence[str] = ()  # texts beside the points


@dataclass(frozen=True)
class Box:
    """Range, quartiles and median of the numbers of a row."""

    numbers: Sequence[float]
    row: int
    series: int


@dataclass(frozen=True)
class Plot:
    """A panel: its axes, and what is drawn between them."""

    title: str
    traces: Sequence[Trace]
    x: tuple[float, float]  # limits of the abscissa
    x_title: str
    y: tuple[float, float] = (0.0, 1.0)  # limits of the ordinate; those of rows are their numbers
    y_title: str = ""
    boxes: Sequence[Box] = ()
    x_names: Mapping[float, str] | None = None  # names of places, instead of numbers
    is_log: bool = False  # whether the abscissa is logarithmic
    is_whole: bool = False  # whether only whole numbers are written along the abscissa
    is_square: bool = False  # whether both axes have the same length


@picture
def figure(plots: Sequence[Plot], label: str, *, rows: Sequence[str] = (), title: str = "") -> str:
    """Draw panels in lines from left to right; all have the same rows, or two axes each."""
    names = [fit_lines(visible(name), 250 if len(plots) > 1 else 330) or [""] for name in rows]
    room = max([text_width(line) * _WIDE_FONT for lines in names for line in lines], default=0.0) + 12
    width, across = _columns(len(plots), room if rows else 0.0)
    height = _AXES_HEIGHT
    if rows:
        height = sum(_ROW + 13 * (len(lines) - 1) for lines in names)
    left, gap = (room, _BETWEEN) if rows else (_TICKS_ROOM, _TICKS_ROOM)
    draw = Drawing(0, label, left + across * width + (across - 1) * gap + 16)
    head = _head(draw, title)
    for first in range(0, len(plots), across):
        line = plots[first : first + across]
        top = head + max(_TITLE * len(fit_lines(visible(plot.title), width)) for plot in line)
        top += 6 if rows else _LINE * max(plot.y_title.count("\n") + 1 for plot in line) + 8
        tall = max(width if plot.is_square else height for plot in line)
        for at, plot in enumerate(line):
            frame = _Frame(plot, left + at * (width + gap), width, top, tall, len(rows))
            frame.draw(draw, head + 14, names if at == 0 else [])
        head = top + tall + max(_below(plot, width) for plot in line) + 14
    draw.height = _figure_legend(draw, plots, head, left) + 8
    return draw.svg()


def _columns(n: int, room: float) -> tuple[float, int]:
    """Return the width of a panel, and how many there are in a line; all lines but the last are full."""
    most = int((_MOST_WIDTH - room) // (_ROWS_WIDTH + _BETWEEN)) if room else _MOST_ACROSS
    n_lines = math.ceil(n / max(1, min(n, most))) if n else 1
    across = math.ceil(n / n_lines) if n else 1
    return (_ROWS_WIDTH if room else _AXES_WIDTH) * (_WIDER if across == 1 else 1), across


def _head(draw: Drawing, title: str) -> float:
    """Write the title of a figure in its middle, and return where its panels begin."""
    lines = fit_lines(visible(title), draw.width)
    for at, line in enumerate(lines):
        draw.text(draw.width / 2, 14 + _TITLE * at, line, "figure-title", anchor="middle")
    return 4 + _TITLE * len(lines)


def _lines_below(plot: Plot, width: float) -> list[str]:
    """Return the title of the abscissa in lines that fit."""
    return [line for part in plot.x_title.split("\n") for line in fit_lines(visible(part), width / _WIDE_FONT)]


def _below(plot: Plot, width: float) -> float:
    """Return the room for the text below a panel."""
    longest = max([text_width(name) for name in (plot.x_names or {}).values()], default=0.0)
    slanted = 0.6 * longest if _is_slanted(plot) else 0.0
    return 20 + slanted + _LINE * len(_lines_below(plot, width))


def _is_slanted(plot: Plot) -> bool:
    """Return whether names along the abscissa are too long to be written side by side."""
    return any(len(name) > 3 for name in (plot.x_names or {}).values())


class _Frame:
    """Where the values of a panel are in the drawing."""

    def __init__(self, plot: Plot, left: float, width: float, top: float, height: float, n_rows: int) -> None:
        self.plot, self.n_rows = plot, n_rows
        self.left, self.right, self.top, self.bottom = left, left + width, top, top + height

    def across(self, value: float) -> float:
        """Return where a value is along the abscissa."""
        low, high = self.plot.x
        value = min(max(value, low), high)
        if self.plot.is_log:
            low, high, value = math.log10(low), math.log10(high), math.log10(value)
        return self.left + (self.right - self.left) * (value - low) / max(high - low, 1e-12)

    def up(self, value: float) -> float:
        """Return where a value, or a row, is along the ordinate; the first row is the highest."""
        if self.n_rows:
            return self.top + (self.bottom - self.top) * (value + 0.5) / self.n_rows
        low, high = self.plot.y
        return self.bottom - (self.bottom - self.top) * (min(max(value, low), high) - low) / max(high - low, 1e-12)

    def draw(self, draw: Drawing, title: float, names: Sequence[Sequence[str]]) -> None:
        """Draw the panel: where its title stands, and the names of its rows, or none."""
        self._text(draw, title)
        self._abscissa(draw)
        self._ordinate(draw, names)
        for box in self.plot.boxes:
            self._box(draw, box)
        for trace in self.plot.traces:
            self._intervals(draw, trace)
        for trace in self.plot.traces:
            self._line(draw, trace)
        for trace in self.plot.traces:
            for x, y in zip(trace.x, trace.y):
                if trace.mark and trace.series is not None and math.isfinite(x) and math.isfinite(y):
                    faint = trace.mark == "faint"
                    hollow = faint or trace.mark == "hollow"
                    draw.mark(self.across(x), self.up(y), trace.series, size=3.4, hollow=hollow, faint=faint)
            for x, y, name in zip(trace.x, trace.y, trace.names):
                draw.text(self.across(x) + 5, self.up(y) - 4, visible(name), "tick")

    def _text(self, draw: Drawing, title: float) -> None:
        """Write the titles of the panel and of its axes."""
        middle = (self.left + self.right) / 2
        for at, line in enumerate(fit_lines(visible(self.plot.title), self.right - self.left)):
            draw.text(middle, title + _TITLE * at, line, "panel-title", anchor="middle")
        above = self.plot.y_title.split("\n")
        for at, line in enumerate(above if not self.n_rows else []):
            y = self.top - 9 - _LINE * (len(above) - 1 - at)
            draw.text(self.left - _TICKS_ROOM + 4, y, line, "axis-title")
        below = _lines_below(self.plot, self.right - self.left)
        y = self.bottom + _below(self.plot, self.right - self.left) + 14 - _LINE * len(below)
        for at, line in enumerate(below):
            draw.text(middle, y + _LINE * at, line, "axis-title", anchor="middle")

    def _abscissa(self, draw: Drawing) -> None:
        """Draw the horizontal axis with its grid; places have names or numbers."""
        named = self.plot.x_names
        for value, name in (named if named is not None else self._ticks()).items():
            x = self.across(value)
            draw.line(x, self.top, x, self.bottom, "grid")
            if _is_slanted(self.plot):
                draw.turned(x + 4, self.bottom + 12, name, degrees=35, anchor="end")
            else:
                draw.text(x, self.bottom + 15, name, "tick", anchor="middle")
        draw.line(self.left, self.bottom, self.right, self.bottom, "axis")

    def _ticks(self) -> dict[float, str]:
        """Return as many round numbers as fit side by side, with their texts."""
        low, high = self.plot.x
        chosen: dict[float, str] = {}
        for most in (6, 5, 4, 3, 2):
            values = log_ticks(low, high) if self.plot.is_log else ticks(low, high, most)
            whole = [value for value in values if value == round(value) or not self.plot.is_whole]
            chosen = {value: tick_text(value) for value in whole}
            if sum(text_width(text) + 12 for text in chosen.values()) <= self.right - self.left + 12:
                break
        return chosen

    def _ordinate(self, draw: Drawing, names: Sequence[Sequence[str]]) -> None:
        """Draw the vertical axis with its grid; rows have the names that are given."""
        places = [float(row) for row in range(self.n_rows)] if self.n_rows else ticks(*self.plot.y)
        for at, value in enumerate(places):
            y = self.up(value)
            draw.line(self.left, y, self.right, y, "grid")
            lines = names[at] if at < len(names) else [] if self.n_rows else [tick_text(value, self.plot.y[1])]
            for k, line in enumerate(lines):
                draw.text(
                    self.left - 6, y + 4 + 13 * (k - (len(lines) - 1) / 2), line, "" if names else "tick", anchor="end"
                )
        draw.line(self.left, self.top, self.left, self.bottom, "axis")

    def _box(self, draw: Drawing, box: Box) -> None:
        """Draw the range of numbers as a line, their quartiles as a box, and their median."""
        ends = np.quantile(np.asarray(box.numbers, float), [0, 0.25, 0.5, 0.75, 1]).tolist()
        least, lower, middle, upper, most = map(self.across, ends)
        y, kind = self.up(box.row), f"{_colour_of(box.series)} whisker"
        for x1, x2 in ((least, lower), (upper, most)):
            draw.line(x1, y, x2, y, kind)
        draw.path([(lower, y - 6), (upper, y - 6), (upper, y + 6), (lower, y + 6)], f"{kind} hollow", closed=True)
        draw.line(middle, y - 6, middle, y + 6, f"{kind} median")

    def _intervals(self, draw: Drawing, trace: Trace) -> None:
        """Draw the intervals of points as lines, or as one area."""
        if trace.series is None or not len(trace.low):
            return
        kind = _colour_of(trace.series)
        if trace.is_band:
            for part in _unbroken(trace.x, trace.y, trace.low, trace.high):
                lower = [(self.across(x), self.up(low)) for x, _, low, _ in part]
                upper = [(self.across(x), self.up(high)) for x, _, _, high in reversed(part)]
                draw.path(lower + upper, f"{kind} band", closed=True)
            return
        for x, y, low, high in zip(trace.x, trace.y, trace.low, trace.high):
            if high > low and self.n_rows:
                draw.line(self.across(low), self.up(y), self.across(high), self.up(y), f"{kind} whisker")
            elif high > low:
                draw.line(self.across(x), self.up(low), self.across(x), self.up(high), f"{kind} whisker")

    def _line(self, draw: Drawing, trace: Trace) -> None:
        """Draw the line through points."""
        for part in _unbroken(trace.x, trace.y) if trace.line is not None else []:
            draw.path([(self.across(x), self.up(y)) for x, y in part], _line_kind(trace))


def _unbroken(*columns: Sequence[float]) -> list[list[tuple[float, ...]]]:
    """Return the points between those whose ordinate is NaN."""
    parts: list[list[tuple[float, ...]]] = [[]]
    for point in zip(*columns):
        if not math.isnan(point[1]):
            parts[-1].append(point)
        elif parts[-1]:
            parts.append([])
    return [part for part in parts if part]


def _line_kind(trace: Trace) -> str:
    """Return the class of the line of a trace; series with the same colour have other dashes."""
    if trace.series is None:
        return "rule curve"
    dashes = f" {trace.line}" if trace.line else _DASHES[trace.series // len(_SHAPES) % len(_DASHES)]
    return f"{_colour_of(trace.series)} curve{dashes}"


def _figure_legend(draw: Drawing, plots: Sequence[Plot], y: float, left: float) -> float:
    """Draw each name once beside a sample, in the order of the series, and return where the legend ends."""
    named = {trace.name: trace for plot in reversed(plots) for trace in reversed(plot.traces) if trace.name}
    x, y = left, y + 6
    for trace in sorted(named.values(), key=lambda trace: -1 if trace.series is None else trace.series):
        name = fit_text(visible(trace.name), draw.width - left - 34)
        if x > left and x + 30 + text_width(name) * _WIDE_FONT > draw.width:
            x, y = left, y + 18
        if trace.line is not None:
            draw.path([(x, y - 4), (x + 22, y - 4)], _line_kind(trace))
        if trace.mark and trace.series is not None:
            draw.mark(x + 11, y - 4, trace.series, size=3.4, hollow=trace.mark == "hollow")
        draw.text(x + 28, y, name)
        x += 28 + text_width(name) * _WIDE_FONT + 14
    return y if named else y - 12
