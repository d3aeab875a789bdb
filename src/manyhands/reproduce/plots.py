"""A measured table as SVG: bars with published values, or lines over a number of data sets or a swept parameter."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from itertools import cycle
from typing import Any

from manyhands.exceptions import MissingExtraError
from manyhands.reproduce.metric_names import is_share
from manyhands.reproduce.pages import Page
from manyhands.reproduce.rendering import title
from manyhands.reproduce.tables import Table

# Distinguishable with colour vision deficiency (Okabe and Ito).
_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#000000")
_MARKS = "osD^vP*X"
_LEVELS = ("--", "-.", (0, (1, 1)))
_DECADES = 100  # ratio of the largest to the smallest number from which on an axis is logarithmic
_NOT_XML = re.compile("[^\\x20-\\x7e\\xa0-\\ud7ff\\ue000-\\ufffd\\U00010000-\\U0010ffff]")
_STYLE: dict[Any, Any] = {
    "svg.hashsalt": "manyhands",  # otherwise ids are random
    "svg.fonttype": "none",
    "text.parse_math": False,  # dollar signs in names are not formulas
    "axes.spines.top": False,
    "axes.spines.right": False,
    "font.size": 9,
}


def file_names(table: Table) -> dict[str, str]:
    """Return the files of a table's figures; several metrics have a file each.

    Parameters
    ----------
    table : Table
        The table.

    Returns
    -------
    dict of str to str
        File name -> metric.

    Examples
    --------
    >>> from manyhands.reproduce import load_table
    >>> file_names(load_table("crowding/table-1"))
    {'crowding-table-1.svg': 'accuracy'}
    """
    name = table.name.replace("/", "-")
    if len(table.drawn) == 1:
        return {f"{name}.svg": table.drawn[0]}
    return {f"{name}-{metric.replace('_', '-').replace('.', '-')}.svg": metric for metric in table.drawn}


def to_svg(table: Table, shown: Page, metric: str | None = None) -> bytes:
    """Draw a metric; the same page gives the same bytes.

    Parameters
    ----------
    table : Table
        The table.
    shown : dict
        Its page.
    metric : str or None, default=None
        Name of the metric; None is the first that the table plots.

    Returns
    -------
    bytes
        SVG.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    """
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ModuleNotFoundError:
        raise MissingExtraError(
            "Figures need matplotlib, which is not installed. Install it with: pip install 'manyhands[plot]'"
        ) from None
    metric = table.drawn[0] if metric is None else metric
    found = [entry for entry in shown["entries"] if entry["metric"] == metric]
    with matplotlib.rc_context(_STYLE):
        panels = _panels(table, found)
        drawing = Figure(figsize=_size(len(panels), found, table.x is None), layout="constrained")
        axes = drawing.subplots(1, len(panels), squeeze=False)[0]
        for axis, (name, sets) in zip(axes, panels.items()):
            here = [entry for entry in found if entry["dataset"] in sets]
            if table.x is None:
                _bars(axis, here)
            else:
                _curves(axis, here, title(table.x))
            axis.set_title(_visible(name))
        axes[0].set_ylabel(_visible(title(metric)) + (" (%)" if shown["points"] and is_share(metric) else ""))
        drawing.legend(*axes[0].get_legend_handles_labels(), loc="outside right upper", frameon=False)
        buffer = io.BytesIO()
        drawing.savefig(buffer, format="svg", metadata={"Date": None})
    return buffer.getvalue()


def _visible(name: str) -> str:
    r"""Return a name with escapes for what XML cannot contain: control characters and unpaired surrogates.

    >>> _visible("a\x1b[31m\ud800")
    'a\\x1b[31m\\ud800'
    """
    escaped = _NOT_XML.sub(lambda found: found[0].encode("unicode_escape").decode(), name)
    return f" {escaped}" if escaped.startswith("_") else escaped  # matplotlib leaves such a name out of the legend


def _size(n_panels: int, found: Sequence[dict[str, Any]], has_bars: bool) -> tuple[float, float]:
    """Return width and height in inches; bars need space for each of them, and for their names below."""
    if not has_bars:
        return 4.2 * n_panels + 1.8, 3.6
    names = {entry["row"] for entry in found}
    return max(4.2, 0.3 * len(names)) * n_panels + 1.8, 2.7 + 0.06 * max(map(len, names), default=0)


def _panels(table: Table, found: Sequence[dict[str, Any]]) -> dict[str, list[str]]:
    """Return title of a panel -> its data sets: one each, or all that differ in x only."""
    shown = {entry["dataset"] for entry in found}
    is_apart = table.x is None or table.sweeps
    panels: dict[str, list[str]] = {}
    for dataset in table.datasets:
        if dataset.name in shown:
            base = dataset.name if is_apart else dataset.load or dataset.make or dataset.name
            panels.setdefault(base, []).append(dataset.name)
    return panels


def _bars(axis: Any, found: Sequence[dict[str, Any]]) -> None:
    """Draw measured values as bars, published ones as marks."""
    places = range(len(found))
    measured = [at for at in places if found[at]["mean"] is not None]
    if measured:
        heights, spread = [found[at]["mean"] for at in measured], [found[at]["sd"] or 0 for at in measured]
        axis.bar(measured, heights, yerr=spread, color=_COLOURS[0], capsize=2, width=0.7, label="measured")
    there = [at for at in places if found[at]["published"] is not None]
    if there:
        values, spread = [found[at]["published"] for at in there], [found[at]["published_sd"] or 0 for at in there]
        axis.errorbar(there, values, spread, fmt="D", color=_COLOURS[1], markeredgecolor="black", label="published")
    axis.set_xticks(places, [_visible(entry["row"]) for entry in found], rotation=60, ha="right")


def _curves(axis: Any, found: Sequence[dict[str, Any]], name: str) -> None:
    """Draw one line per row; a row without a sweep is a horizontal line."""
    levels = cycle(_LEVELS)
    for at, row in enumerate(dict.fromkeys(entry["row"] for entry in found)):
        style = {"color": _COLOURS[at % len(_COLOURS)], "marker": _MARKS[at % len(_MARKS)]}
        own = [entry for entry in found if entry["row"] == row]
        for entry in own:
            if entry["x"] is None and entry["mean"] is not None:
                axis.axhline(entry["mean"], color=style["color"], linestyle=next(levels), label=_visible(row))
        own = sorted((entry for entry in own if entry["x"] is not None), key=lambda entry: entry["x"])
        measured = [entry for entry in own if entry["mean"] is not None]
        if measured:
            x, y = [entry["x"] for entry in measured], [entry["mean"] for entry in measured]
            axis.errorbar(x, y, [entry["sd"] or 0 for entry in measured], capsize=2, label=_visible(row), **style)
        there = [entry for entry in own if entry["published"] is not None]
        if there:
            x, y = [entry["x"] for entry in there], [entry["published"] for entry in there]
            axis.plot(x, y, linestyle=":", fillstyle="none", label=_visible(f"{row}, published"), **style)
    axis.set_xlabel(_visible(name))
    places = [entry["x"] for entry in found if entry["x"] is not None]
    if places and min(places) > 0 and max(places) >= _DECADES * min(places):
        axis.set_xscale("log")
