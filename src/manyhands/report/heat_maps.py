"""Matrices as heat maps."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from manyhands.report.picture_data import picture
from manyhands.report.svg import WIDTH, Drawing
from manyhands.report.text_fitting import FONT, fit_lines, fit_text, text_width

Array = npt.NDArray[np.float64]
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

    Parameters
    ----------
    matrix : ndarray of shape (n_rows, n_columns)
        Cells; NaN for none.
    rows : sequence of str
        Names of the rows.
    heads : sequence of str
        Names of the columns.
    label : str
        What the picture shows, for screen readers.
    format_cell : callable
        Text of a cell; all cells have theirs, or none where there is no room.
    y_title : str
        What the rows are.
    x_title : str
        What the columns are.
    unit : str, default=""
        Unit of the numbers.
    least : float, default=0.0
        Value of the weakest colour.
    most : float or None, default=None
        Value of the strongest colour; None for the largest cell.
    width : float, default=400
        Largest width of the picture.
    tips : bool, default=True
        Whether a mouse shows the cells; tables have the same numbers.

    Returns
    -------
    str
        An SVG element.
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
