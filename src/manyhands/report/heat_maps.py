"""Matrices as heat maps."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from manyhands.report.picture_data import picture
from manyhands.report.svg import WIDTH, Drawing, fit_text, text_width

Array = npt.NDArray[np.float64]
_MOST_HEAT = 0.62  # opacity of the strongest cell: text on it stays legible in both themes


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
    most: float | None = None,
    tips: bool = True,
) -> str:
    """Draw a matrix, the larger a cell the stronger its colour.

    Parameters
    ----------
    matrix : ndarray of shape (n_rows, n_columns)
        Cells; NaN for none. Colours are from 0 to the largest cell.
    rows : sequence of str
        Names of the rows.
    heads : sequence of str
        Names of the columns.
    label : str
        What the picture shows, for screen readers.
    format_cell : callable
        Text of a cell, written where there is room.
    y_title : str
        What the rows are.
    x_title : str
        What the columns are.
    most : float or None, default=None
        Value of the strongest colour; None for the largest cell.
    tips : bool, default=True
        Whether a mouse shows the cells; tables have the same numbers.

    Returns
    -------
    str
        An SVG element.
    """
    widest = max([text_width(name) for name in rows], default=0)
    left = min(widest + 10, WIDTH * 0.3)
    size = min((WIDTH - left - 4) / max(len(heads), 1), 56.0)
    high = min(size, 30.0) if size >= 22 else size
    slanted = any(text_width(name) > size - 4 for name in heads)
    top = 22.0 + (min(max([text_width(name) for name in heads], default=0), 96) if slanted else 18)
    caption = f"{y_title} in rows, {x_title} in columns"
    width = max(left + size * len(heads) + 4, min(left + text_width(caption), WIDTH))
    draw = Drawing(top + high * len(rows) + 6, label, width)
    draw.text(min(left, max(width - text_width(caption), 0)), 12, caption, "axis-title")
    for at, name in enumerate(heads):
        x = left + size * (at + 0.5)
        if slanted:
            draw.turned(x + 4, top - 5, fit_text(name, 92))
        else:
            draw.text(x, top - 5, name, "tick", anchor="middle")
    strongest = most if most is not None else np.nanmax(matrix, initial=0.0) or 1.0
    levels: dict[int, list[tuple[float, float]]] = {}
    texts: list[tuple[float, float, str]] = []
    for r, name in enumerate(rows):
        y = top + high * r
        if high >= 11:
            draw.text(left - 6, y + high / 2 + 4, fit_text(name, left - 8), "tick", anchor="end")
        for c, head in enumerate(heads):
            value = float(matrix[r, c])
            if not math.isfinite(value):
                continue
            strength, x, text = max(value / strongest, 0) * _MOST_HEAT, left + size * c, format_cell(value)
            if tips:
                draw.rect(x, y, size - 1, high - 1, "heat", strength=strength, tip=f"{name}, {head}: {text}")
            else:
                levels.setdefault(round(strength * 25), []).append((x, y))
            if text_width(text) < size - 3 and high >= 14:
                texts.append((x + size / 2, y + high / 2 + 4, text))
    for level, corners in sorted(levels.items()):
        draw.cells(corners, size - 1, high - 1, "heat", strength=level / 25)
    for x, y, text in texts:
        draw.text(x, y, text, "cell", anchor="middle")
    return draw.svg()
