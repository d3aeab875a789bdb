"""A measured table as SVG: bars beside published values, or lines over a number in which data sets differ."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

from manyhands.exceptions import MissingExtraError, ParameterError
from manyhands.reproduce.show import Page
from manyhands.reproduce.tables import DataSet, Table

# Told apart by people who see colours differently (Okabe and Ito).
_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#000000")
_MARKS = "osD^vP*X"
_STYLE: dict[Any, Any] = {
    "svg.hashsalt": "manyhands",  # else ids are drawn at random
    "svg.fonttype": "none",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "font.size": 9,
}


def to_svg(table: Table, shown: Page) -> bytes:
    """The figure; the same page gives the same bytes."""
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ModuleNotFoundError:
        raise MissingExtraError(
            "Figures need matplotlib, which is not installed. Install it with: pip install 'manyhands[plot]'"
        ) from None
    metric = shown["metrics"][0]
    found = [entry for entry in shown["entries"] if entry["metric"] == metric]
    with matplotlib.rc_context(_STYLE):
        panels = _bases(table, found)
        drawing = Figure(figsize=(4.2 * len(panels) + 1.8, 3.6), layout="constrained")
        axes = drawing.subplots(1, len(panels), squeeze=False)[0]
        for axis, (title, names) in zip(axes, panels.items()):
            here = [entry for entry in found if entry["dataset"] in names]
            if table.figure is None:
                _bars(axis, here)
            else:
                _curves(axis, here, {d.name: axis_value(table, d) for d in table.datasets}, table.figure["x"])
            axis.set_title(title)
        axes[0].set_ylabel(metric.replace("_", " ") + (" (%)" if shown["points"] else ""))
        drawing.legend(*axes[0].get_legend_handles_labels(), loc="outside right upper", frameon=False)
        buffer = io.BytesIO()
        drawing.savefig(buffer, format="svg", metadata={"Date": None})
    return buffer.getvalue()


def _bases(table: Table, found: Sequence[dict[str, Any]]) -> dict[str, list[str]]:
    """Title of a panel -> the data sets in it: one each for bars, all that differ in x only for lines."""
    shown = {entry["dataset"] for entry in found}
    panels: dict[str, list[str]] = {}
    for dataset in table.datasets:
        if dataset.name in shown:
            title = dataset.name if table.figure is None else dataset.load or dataset.make or dataset.name
            panels.setdefault(title, []).append(dataset.name)
    return panels


def axis_value(table: Table, dataset: DataSet) -> float:
    """Where a data set stands on the axis: a field of it, or one of its arguments."""
    assert table.figure is not None
    name = table.figure["x"]
    value = dataset.arguments.get(name, getattr(dataset, name, None))
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ParameterError(
            f"In the table {table.name}: figure is drawn over {name!r}, which is no number of the data set "
            f"{dataset.name!r}. Name a field or an argument that all data sets have, such as remove."
        )
    return float(value)


def _bars(axis: Any, found: Sequence[dict[str, Any]]) -> None:
    places = range(len(found))
    measured = [at for at in places if found[at]["mean"] is not None]
    if measured:
        heights, spread = [found[at]["mean"] for at in measured], [found[at]["sd"] or 0 for at in measured]
        axis.bar(measured, heights, yerr=spread, color=_COLOURS[0], capsize=2, width=0.7, label="measured")
    there = [at for at in places if found[at]["published"] is not None]
    if there:
        values, spread = [found[at]["published"] for at in there], [found[at]["published_sd"] or 0 for at in there]
        axis.errorbar(there, values, spread, fmt="D", color=_COLOURS[1], markeredgecolor="black", label="published")
    axis.set_xticks(places, [entry["row"] for entry in found], rotation=60, ha="right")


def _curves(axis: Any, found: Sequence[dict[str, Any]], x_of: dict[str, float], name: str) -> None:
    for at, row in enumerate(dict.fromkeys(entry["row"] for entry in found)):
        style = {"color": _COLOURS[at % len(_COLOURS)], "marker": _MARKS[at % len(_MARKS)]}
        own = sorted((entry for entry in found if entry["row"] == row), key=lambda entry: x_of[entry["dataset"]])
        measured = [entry for entry in own if entry["mean"] is not None]
        if measured:
            x, y = [x_of[entry["dataset"]] for entry in measured], [entry["mean"] for entry in measured]
            axis.errorbar(x, y, [entry["sd"] or 0 for entry in measured], capsize=2, label=row, **style)
        there = [entry for entry in own if entry["published"] is not None]
        if there:
            x, y = [x_of[entry["dataset"]] for entry in there], [entry["published"] for entry in there]
            axis.plot(x, y, linestyle=":", fillstyle="none", label=f"{row}, published", **style)
    axis.set_xlabel(name.replace("_", " "))
