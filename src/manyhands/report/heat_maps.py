"""Matrices as heat maps."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from manyhands.report.svg import WIDTH, Drawing, fit_text, text_width

Array = npt.NDArray[np.float64]
_MOST_HEAT = 0.62  # opacity of the strongest cell: text on it stays legible in both themes


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
    draw = Drawing(top + high * len(rows) + 6, label)
    draw.text(left, 12, f"{y_title} in rows, {x_title} in columns", "axis-title")
    for at, name in enumerate(heads):
        x = left + size * (at + 0.5)
        if slanted:
            draw.turned(x + 4, top - 5, fit_text(name, 92))
        else:
            draw.text(x, top - 5, name, "tick", anchor="middle")
    strongest = most if most is not None else np.nanmax(matrix, initial=0.0) or 1.0
    for r, name in enumerate(rows):
        y = top + high * r
        if high >= 11:
            draw.text(left - 6, y + high / 2 + 4, fit_text(name, left - 8), "tick", anchor="end")
        for c, head in enumerate(heads):
            value = float(matrix[r, c])
            if not math.isfinite(value):
                continue
            tip = f"{name}, {head}: {format_cell(value)}"
            draw.rect(
                left + size * c, y, size - 1, high - 1, "heat", strength=max(value / strongest, 0) * _MOST_HEAT, tip=tip
            )
            text = format_cell(value)
            if text_width(text) < size - 3 and high >= 14:
                draw.text(left + size * (c + 0.5), y + high / 2 + 4, text, "cell", anchor="middle")
    return draw.svg()
