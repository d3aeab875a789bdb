"""Colours, marks, text and limits that all figures share."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Sequence
from typing import Any

# Distinguishable with colour vision deficiency (Okabe and Ito); yellow is left out, it is too light for a line.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#7F7F7F")
MARKS = "osD^vP*X"
DASHES = ("-", "--", "-.", (0, (1, 1)))
PUBLISHED = "#B35900"
GRID = "#E4E4E4"
WIDEST = 10.5  # inches of a figure
_LABEL_WIDTH = 34  # characters in a line of a label
_NOT_XML = re.compile("[^\\x20-\\x7e\\xa0-\\ud7ff\\ue000-\\ufffd\\U00010000-\\U0010ffff]")
STYLE: dict[Any, Any] = {
    "svg.hashsalt": "manyhands",  # otherwise ids are random
    "svg.fonttype": "none",
    "text.parse_math": False,  # dollar signs in names are not formulas
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#666666",
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "font.size": 10,
    "legend.frameon": False,
    "figure.titlesize": 11,
}


def visible(name: str) -> str:
    r"""Return a name with escapes for what XML cannot contain: control characters and unpaired surrogates.

    Parameters
    ----------
    name : str
        Any text.

    Returns
    -------
    str
        Text that can be drawn; matplotlib leaves names with a leading underscore out of legends, so a space is added.

    Examples
    --------
    >>> visible("a\x1b[31m\ud800")
    'a\\x1b[31m\\ud800'
    """
    escaped = _NOT_XML.sub(lambda found: found[0].encode("unicode_escape").decode(), name)
    return f" {escaped}" if escaped.startswith("_") else escaped


def wrapped(name: str, width: int = _LABEL_WIDTH) -> str:
    """Return a label in lines of limited length.

    Parameters
    ----------
    name : str
        The label.
    width : int, default=34
        Characters of a line.

    Returns
    -------
    str
        The label with line breaks.
    """
    lines = textwrap.wrap(visible(name), width, drop_whitespace=True, break_long_words=False, break_on_hyphens=False)
    return visible("\n".join(lines)) if lines == [] else "\n".join(lines)


def style_of(at: int) -> dict[str, Any]:
    """Return colour, mark and kind of line of the method at a position.

    Parameters
    ----------
    at : int
        Position among the methods of the figure.

    Returns
    -------
    dict
        Arguments of matplotlib; methods beyond the eighth differ by the kind of line.
    """
    n = len(COLOURS)
    mark = MARKS[(at + 3 * (at // n)) % n]  # the ninth method has the colour of the first, and another mark
    return {"color": COLOURS[at % n], "marker": mark, "linestyle": DASHES[at // n % len(DASHES)]}


def limits(middles: Iterable[float], ends: Iterable[float], bounds: tuple[float, float] | None) -> tuple[float, float]:
    """Return the limits of an axis that is fitted to values, not to zero.

    Very long intervals, such as that of a method which failed with one seed, are cut, so that the other methods can
    still be told apart.

    Parameters
    ----------
    middles : iterable of float
        All means and published values.
    ends : iterable of float
        The ends of all intervals.
    bounds : tuple of float or None
        Smallest and largest possible value.

    Returns
    -------
    tuple of float
        Lower and upper limit.
    """
    inside = list(middles) or [0.0, 1.0]
    low, high = min(inside), max(inside)
    room = max(0.6 * (high - low), 1e-3 * max(1e-3, abs(high)))
    ends = [min(max(end, low - room), high + room) for end in ends]
    low, high = min([low, *ends]), max([high, *ends])
    margin = 0.06 * (high - low) or 0.5 * room
    low, high = low - margin, high + margin
    if bounds is not None:  # half a margin beyond the bound, so that a mark at the bound is not cut
        low, high = max(low, bounds[0] - margin / 2), min(high, bounds[1] + margin / 2)
    return low, high


def legend_below(drawing: Any, axes: Sequence[Any], columns: int, order: Sequence[str] = ()) -> None:
    """Add one legend for all panels, below them.

    Parameters
    ----------
    drawing : Figure
        The figure.
    axes : sequence of Axes
        Its panels.
    columns : int
        Largest number of columns.
    order : sequence of str, default=()
        Labels in the order in which they are listed; others come last.
    """
    found = dict[str, Any]()
    for axis in axes:
        for handle, label in zip(*axis.get_legend_handles_labels()):
            found.setdefault(label, handle)
    found = {label: found[label] for label in sorted(found, key=[*order, *found].index)}
    if found:
        columns = min(columns, len(found))
        drawing.legend(list(found.values()), list(found), loc="outside lower center", ncols=columns, handlelength=2.4)
