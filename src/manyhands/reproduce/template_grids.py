"""Grids of measured and published values on the pages of results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from manyhands.reproduce.formatting import figure, title
from manyhands.reproduce.markdown import grid
from manyhands.reproduce.measured import Measured
from manyhands.reproduce.rendering import curves


def method_grid(
    found: Measured, metrics: Sequence[str], rows: Sequence[str] | None, datasets: Sequence[str] | None
) -> str:
    """Return one line per method, and for each data set and metric a column, followed by published values if any.

    Parameters
    ----------
    found : Measured
        The table.
    metrics : sequence of str
        Names of metrics.
    rows : sequence of str or None
        Names of rows; None for all.
    datasets : sequence of str or None
        Names of data sets; None for all.

    Returns
    -------
    str
        A Markdown table.
    """
    table, points = found.table, found.table.points
    by_place = {(entry.row, entry.dataset, entry.metric): entry for entry in found.entries}
    names = [row.name for row in table.rows if rows is None or row.name in rows]
    names = [*rows] if rows is not None else list(dict.fromkeys(names))
    sets = list(datasets) if datasets is not None else [dataset.name for dataset in table.datasets]
    columns, lines = ["method"], [[name] for name in names]
    for dataset in sets:
        for metric in metrics:
            own = [by_place.get((name, dataset, metric)) for name in names]
            heading = title(metric) if len(sets) == 1 else dataset
            heading = f"{dataset}, {title(metric)}" if len(metrics) > 1 and len(sets) > 1 else heading
            columns.append(heading)
            for line, entry in zip(lines, own):
                shown = "" if entry is None else figure(entry.mean, entry.deviation, metric, points)
                line.append(shown or ("failed" if entry is not None and entry.errors else "–"))
            if any(entry is not None and entry.published is not None for entry in own):
                columns.append("published")
                for line, entry in zip(lines, own):
                    line.append(_published_text(entry, metric, points))
    return grid(columns, lines)


def _published_text(entry: Any, metric: str, points: bool) -> str:
    """Return a published value with the verdict on ours."""
    if entry is None or entry.published is None:
        return "–"
    shown = figure(entry.published.value, entry.published.deviation, metric, points)
    return f"{shown} ({entry.verdict})" if entry.values else shown


def curve_grid(found: Measured, metric: str, rows: Sequence[str] | None, datasets: Sequence[str] | None) -> str:
    """Return one line per point of the axis and one column per method.

    Parameters
    ----------
    found : Measured
        The table.
    metric : str
        Name of the metric.
    rows : sequence of str or None
        Names of rows; None for all.
    datasets : sequence of str or None
        Names of data sets; None for all.

    Returns
    -------
    str
        A Markdown table.
    """
    entries = [
        entry
        for entry in found.page["entries"]
        if (rows is None or entry["row"] in rows) and (datasets is None or entry["dataset"] in datasets)
    ]
    columns, lines = curves(found.page | {"entries": entries}, metric)
    return grid([columns[0], columns[1], *columns[2:]], lines)
