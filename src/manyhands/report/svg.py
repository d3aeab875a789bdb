"""Drawing: SVG elements as text, with classes for colours, so that a page decides about light and dark.

No style attributes are written: the page's Content-Security-Policy forbids them.
"""

from __future__ import annotations

import math
from html import escape

from manyhands.report.text_fitting import FONT, fit_text, text_width
from manyhands.report.wording import visible

WIDTH = 400  # of a chart in user units: its text is legible on a phone
_MOST_TEXT = 600  # letters of a name or a label
_ENLARGED = 1.15  # pixels of a screen per user unit: two charts side by side
_CORNERS: dict[str, list[tuple[float, float]]] = {
    "square": [(-1, -1), (1, -1), (1, 1), (-1, 1)],
    "diamond": [(0, -1.3), (1.3, 0), (0, 1.3), (-1.3, 0)],
    "triangle": [(0, -1.2), (1.2, 1), (-1.2, 1)],
}
_SHAPES = ("circle", "square", "diamond", "triangle", "cross", "ring", "plus", "dash")


def coordinate(value: float) -> str:
    """Return a coordinate with at most one digit after the point.

    Parameters
    ----------
    value : float
        The coordinate.

    Returns
    -------
    str
        Text for an attribute.
    """
    text = f"{value:.1f}"
    return text.removesuffix(".0")


class Drawing:
    """An SVG picture that is being drawn.

    Parameters
    ----------
    height : float
        Height in user units.
    label : str
        What the picture shows, for screen readers.
    width : float, default=400
        Width in user units.
    """

    def __init__(self, height: float, label: str, width: float = WIDTH) -> None:
        self.width, self.height, self.label = width, height, label
        self._parts: list[str] = []

    def rect(
        self, x: float, y: float, width: float, height: float, kind: str, *, strength: float = 1.0, tip: str = ""
    ) -> None:
        """Draw a rectangle.

        Parameters
        ----------
        x : float
            Left edge.
        y : float
            Upper edge.
        width : float
            Width; nothing is drawn if it is negative.
        height : float
            Height.
        kind : str
            Classes, which give the colour.
        strength : float, default=1.0
            Opacity of the fill.
        tip : str, default=""
            Text that a mouse shows; tables have the same.
        """
        opacity = "" if strength >= 1 else f' fill-opacity="{strength:.2f}"'
        size = f'width="{coordinate(max(width, 0))}" height="{coordinate(max(height, 0))}"'
        self._add(f'rect class="{kind}" x="{coordinate(x)}" y="{coordinate(y)}" {size}{opacity}', tip)

    def cells(
        self, corners: list[tuple[float, float]], width: float, height: float, kind: str, *, strength: float
    ) -> None:
        """Draw many equal rectangles as one element, which is a quarter of the size of single ones.

        Parameters
        ----------
        corners : list of (float, float)
            Upper left corners.
        width : float
            Width of each.
        height : float
            Height of each.
        kind : str
            Classes.
        strength : float
            Opacity of the fill.
        """
        wide, high = coordinate(width), coordinate(height)
        moves = "".join(f"M{coordinate(x)} {coordinate(y)}h{wide}v{high}h-{wide}z" for x, y in corners)
        self._add(f'path class="{kind}" d="{moves}" fill-opacity="{strength:.2f}"')

    def line(self, x1: float, y1: float, x2: float, y2: float, kind: str) -> None:
        """Draw a line.

        Parameters
        ----------
        x1 : float
            Abscissa of the first end.
        y1 : float
            Ordinate of the first end.
        x2 : float
            Abscissa of the second end.
        y2 : float
            Ordinate of the second end.
        kind : str
            Classes.
        """
        ends = (("x1", x1), ("y1", y1), ("x2", x2), ("y2", y2))
        self._add(f'line class="{kind}" ' + " ".join(f'{name}="{coordinate(value)}"' for name, value in ends))

    def path(self, points: list[tuple[float, float]], kind: str) -> None:
        """Draw connected lines through points.

        Parameters
        ----------
        points : list of (float, float)
            The points.
        kind : str
            Classes.
        """
        moves = " ".join(f"{coordinate(x)},{coordinate(y)}" for x, y in points)
        self._add(f'polyline class="{kind}" points="{moves}"')

    def text(self, x: float, y: float, text: str, kind: str = "", *, anchor: str = "start") -> None:
        """Write text.

        Parameters
        ----------
        x : float
            Abscissa of its anchor.
        y : float
            Ordinate of its base line.
        text : str
            The text; escaped here.
        kind : str, default=""
            Classes.
        anchor : {"start", "middle", "end"}, default="start"
            Which part of the text is at `x`.
        """
        classes = f' class="{kind}"' if kind else ""
        side = "" if anchor == "start" else f' text-anchor="{anchor}"'
        place = f'x="{coordinate(x)}" y="{coordinate(y)}"'
        self._parts.append(f"<text{classes} {place}{side}>{_shown(text)}</text>")

    def turned(self, x: float, y: float, text: str) -> None:
        """Write text upwards.

        Parameters
        ----------
        x : float
            Abscissa of its beginning.
        y : float
            Ordinate of its beginning.
        text : str
            The text; escaped here.
        """
        place = f"translate({coordinate(x)},{coordinate(y)}) rotate(-90)"
        self._parts.append(f'<text class="tick" transform="{place}">{_shown(text)}</text>')

    def mark(self, x: float, y: float, series: int, *, size: float = 4, tip: str = "") -> None:
        """Draw a point whose shape and colour tell its series.

        Parameters
        ----------
        x : float
            Abscissa of its middle.
        y : float
            Ordinate of its middle.
        series : int
            Number of the series, from 0.
        size : float, default=4
            Half its width.
        tip : str, default=""
            Text that a mouse shows.
        """
        shape, kind = _SHAPES[series % len(_SHAPES)], f"s{series % len(_SHAPES)}"
        cx, cy, r = coordinate(x), coordinate(y), coordinate(size)
        if shape == "circle":
            self._add(f'circle class="{kind}" cx="{cx}" cy="{cy}" r="{r}"', tip)
        elif shape == "ring":
            self._add(f'circle class="{kind} hollow" cx="{cx}" cy="{cy}" r="{r}"', tip)
        elif shape in ("cross", "plus", "dash"):
            d = 2 * size
            moves = f"M{coordinate(x - size)},{coordinate(y - size)}l{d:g},{d:g}m0,{-d:g}l{-d:g},{d:g}"
            if shape == "plus":
                moves = f"M{coordinate(x - size)},{cy}h{d:g}M{cx},{coordinate(y - size)}v{d:g}"
            elif shape == "dash":
                moves = f"M{coordinate(x - size)},{cy}h{d:g}"
            self._add(f'path class="{kind} stroke" d="{moves}"', tip)
        else:
            points = " ".join(f"{coordinate(x + a * size)},{coordinate(y + b * size)}" for a, b in _CORNERS[shape])
            self._add(f'polygon class="{kind}" points="{points}"', tip)

    def legend(self, entries: list[tuple[int, str]], y: float, x: float = 0) -> float:
        """Draw names of series beside their marks, in one line or more.

        Parameters
        ----------
        entries : list of (int, str)
            Number of each series and its name.
        y : float
            Base line of the first line.
        x : float, default=0
            Left edge.

        Returns
        -------
        float
            Base line of the last line.
        """
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
        """Return the picture.

        Returns
        -------
        str
            An SVG element.
        """
        box = f"0 0 {coordinate(self.width)} {coordinate(self.height)}"
        size = f'width="{coordinate(self.width * _ENLARGED)}" font-size="{FONT}"'
        head = f'<svg class="mh-chart" role="img" viewBox="{box}" {size}'
        return f'{head} aria-label="{_shown(self.label)}">{"".join(self._parts)}</svg>'

    def _add(self, element: str, tip: str = "") -> None:
        name = element.split(" ", 1)[0]
        self._parts.append(f"<{element}><title>{_shown(tip)}</title></{name}>" if tip else f"<{element}/>")


def _shown(text: str) -> str:
    """Return text for an element or an attribute: nothing in it is markup, or changes how other text is read."""
    return escape(visible(text, _MOST_TEXT))


def ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Return round numbers that divide a range.

    Parameters
    ----------
    low : float
        Lower end.
    high : float
        Upper end.
    most : int, default=6
        Largest number of ticks.

    Returns
    -------
    list of float
        Multiples of 1, 2 or 5 times a power of ten.

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

    Parameters
    ----------
    value : float
        The number.
    largest : float or None, default=None
        Largest number of the scale, whose unit all have; None for the number itself.

    Returns
    -------
    str
        Such as ``0.2``, ``500``, ``20k`` or ``3M``.

    Examples
    --------
    >>> tick_text(5000), tick_text(5000, 20000), tick_text(16384)
    ('5000', '5k', '16.4k')
    """
    for size, unit, letter in ((1e6, 1e6, "M"), (1e4, 1e3, "k")):
        if value and abs(value if largest is None else largest) >= size:
            return f"{value / unit:.3g}{letter}"
    return f"{value:g}"
