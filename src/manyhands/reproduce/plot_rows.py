"""Figures with a row for each method, read from the top: dots with intervals, and boxes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from manyhands.reproduce.metric_names import is_share
from manyhands.reproduce.pages import Page
from manyhands.reproduce.pictures import DOTS, Picture
from manyhands.reproduce.plot_style import COLOURS, GRID, PUBLISHED, WIDEST, legend_below, limits, visible, wrapped
from manyhands.reproduce.standings import Standing
from manyhands.reproduce.tables import Table

_INTERVAL = "mean, 95% interval over seeds"
_ROW_HEIGHT = 0.3  # inches
_LINE_HEIGHT = 0.17  # of a further line of a label
_PANEL_WIDTH = 3.0
_CHARACTER = 0.078
_OFFSET = 0.2  # of published values below the measured ones, in rows


def draw(drawing: Any, table: Table, shown: Page, picture: Picture, label: str) -> None:
    """Draw a panel for each data set.

    Parameters
    ----------
    drawing : Figure
        An empty figure.
    table : Table
        The table.
    shown : dict
        Its page.
    picture : Picture
        Kind, metric or series, rows and data sets.
    label : str
        Name of the horizontal axis.
    """
    found = _marks(shown, picture)
    names = [row.name for row in table.rows if any(mark["row"] == row.name for mark in found)]
    names = list(dict.fromkeys(names))
    sets = [dataset.name for dataset in table.datasets if any(mark["dataset"] == dataset.name for mark in found)]
    columns, labels = _arrange(drawing, names, len(sets))
    rows = max(1, math.ceil(len(sets) / columns))
    axes = drawing.subplots(rows, columns, squeeze=False, sharey=True)
    flat = [axis for line in axes for axis in line]
    focus = (table.focus or {}).get("row")
    for axis, dataset in zip(flat, sets):
        here = {mark["row"]: mark for mark in found if mark["dataset"] == dataset}
        (_dots if picture.kind == DOTS else _boxes)(axis, names, here, focus)
        _finish(axis, picture, shown, list(here.values()), visible(dataset))
        has_interval = picture.kind == DOTS and any(mark["interval"] for mark in here.values())
        axis.set_xlabel(f"{label}\n{_INTERVAL}" if has_interval else label)
    for axis in flat[len(sets) :]:
        axis.set_visible(False)
    flat[0].set_yticks(range(len(names)), labels)
    flat[0].set_ylim(len(names) - 0.4, -0.6)
    legend_below(drawing, flat[: len(sets)], 4)


def draw_ranks(drawing: Any, places: Sequence[Standing]) -> None:
    """Draw the mean rank of every method with its 90% interval, the best one on top.

    Parameters
    ----------
    drawing : Figure
        An empty figure.
    places : sequence of Standing
        Mean ranks.
    """
    _, labels = _arrange(drawing, [place.row for place in places], 1)
    axis = drawing.subplots()
    for at, place in enumerate(places):
        low, high = place.interval
        axis.plot([low, high], [at, at], color=COLOURS[0], linewidth=1.6)
        axis.plot(place.rank, at, "o", color=COLOURS[0], markersize=5.5)
    axis.set_yticks(range(len(places)), labels)
    axis.set_ylim(len(places) - 0.4, -0.6)
    axis.set_xlim(0, len(places) + 1)
    axis.set_axisbelow(True)
    axis.grid(axis="both", color=GRID, linewidth=0.8)
    axis.tick_params(axis="y", length=0)
    n = places[0].n_sets if places else 0
    axis.set_xlabel(f"mean rank by accuracy over {n} data sets, 90% interval")


def _marks(shown: Page, picture: Picture) -> list[dict[str, Any]]:
    """Return what is drawn for each row and data set: the entry of a metric, or the numbers of a series."""
    if picture.metric is not None:
        entries = [entry for entry in shown["entries"] if entry["metric"] == picture.metric]
        return [
            entry | {"numbers": list(entry["values"].values())}
            for entry in entries
            if picture.shows(entry["dataset"], entry["row"])
            and (entry["mean"] is not None or entry["published"] is not None)
        ]
    found = []
    for one in shown["series"]:
        if one["series"] in picture.series and picture.shows(one["dataset"], one["row"]):
            values = [
                value for numbers in one["values"].values() for value in numbers if isinstance(value, float | int)
            ]
            if values:
                middle = sum(values) / len(values)
                empty = {"published": None, "published_sd": None, "interval": None}
                found.append(one | {"numbers": values, "mean": middle} | empty)
    return found


def _arrange(drawing: Any, names: Sequence[str], n_sets: int) -> tuple[int, list[str]]:
    """Set the size of the figure; return the number of columns and the labels of the rows."""
    labels = [wrapped(name, 34 if n_sets > 1 else 46) for name in names]
    longest = max((len(line) for label in labels for line in label.split("\n")), default=0)
    columns = max(1, min(n_sets, int((WIDEST - _CHARACTER * longest) // (_PANEL_WIDTH * 0.8))))
    columns = math.ceil(n_sets / math.ceil(n_sets / columns)) if n_sets else 1
    width = min(WIDEST, _CHARACTER * longest + 0.4 + _PANEL_WIDTH * columns * (1.25 if columns == 1 else 1))
    height = sum(_ROW_HEIGHT + _LINE_HEIGHT * label.count("\n") for label in labels)
    drawing.set_size_inches(width, (height + 1.15) * math.ceil(max(1, n_sets) / columns) + 0.35)
    return columns, labels


def _dots(axis: Any, names: Sequence[str], here: dict[str, dict[str, Any]], focus: str | None) -> None:
    """Draw means as dots with their intervals, published values as hollow marks below them."""
    is_published = any(mark["published"] is not None for mark in here.values())
    labelled = set()
    for at, name in enumerate(names):
        mark = here.get(name)
        if mark is None:
            continue
        if mark["mean"] is not None:
            style = {"color": COLOURS[1] if name == focus else COLOURS[0], "fmt": "o", "markersize": 5.5, "zorder": 4}
            style["label"] = "_" if "measured" in labelled or not is_published or name == focus else "measured"
            labelled.add(style["label"])
            axis.errorbar(mark["mean"], at, xerr=mark["interval"] or None, elinewidth=1.6, **style)
        if mark["published"] is not None:
            place = at if mark["mean"] is None else at + _OFFSET
            style = {"color": PUBLISHED, "fmt": "D", "markersize": 5, "markerfacecolor": "white", "zorder": 3}
            style["label"] = "_" if "published" in labelled else "published"
            labelled.add(style["label"])
            axis.errorbar(mark["published"], place, xerr=mark["published_sd"] or None, elinewidth=0.9, **style)


def _boxes(axis: Any, names: Sequence[str], here: dict[str, dict[str, Any]], focus: str | None) -> None:
    """Draw median, quartiles and range of the numbers of each row, and the numbers themselves if they are few."""
    for at, name in enumerate(names):
        if name not in here:
            continue
        numbers, colour = here[name]["numbers"], COLOURS[1] if name == focus else COLOURS[0]
        line = {"color": colour, "linewidth": 1.2}
        drawn = {"boxprops": line, "whiskerprops": line, "capprops": line, "medianprops": line | {"linewidth": 2.2}}
        axis.boxplot(
            [numbers], positions=[at], orientation="horizontal", widths=0.55, whis=(0, 100), showfliers=False, **drawn
        )
        if len(numbers) <= 40:
            axis.plot(numbers, [at] * len(numbers), "o", color=colour, markersize=3, alpha=0.45, zorder=1)
        if here[name]["published"] is not None:
            axis.plot(here[name]["published"], at, "D", color=PUBLISHED, markerfacecolor="white", label="published")


def _finish(axis: Any, picture: Picture, shown: Page, here: Sequence[dict[str, Any]], name: str) -> None:
    """Set title, grid and limits of a panel."""
    middles = [mark[key] for mark in here for key in ("mean", "published") if mark[key] is not None]
    spreads = [(mark["mean"], mark["interval"]) for mark in here if mark["mean"] is not None]
    spreads += [(mark["published"], mark["published_sd"]) for mark in here if mark["published"] is not None]
    ends = [value + sign * (spread or 0) for value, spread in spreads for sign in (-1, 1)]
    if picture.kind != DOTS:
        middles += [number for mark in here for number in mark["numbers"]]
    top = 100.0 if shown["points"] else 1.0
    bounds = (0.0, top) if picture.metric is not None and is_share(picture.metric) else None
    axis.set_xlim(limits(middles, ends, bounds))
    axis.set_title(name)
    axis.set_axisbelow(True)
    axis.grid(axis="both", color=GRID, linewidth=0.8)
    axis.tick_params(axis="y", length=0)
    axis.locator_params(axis="x", nbins=5)
    if any(len(f"{tick:g}") > 5 for tick in axis.get_xticks()):
        axis.locator_params(axis="x", nbins=3)  # labels such as 0.9325 overlap in narrow panels
