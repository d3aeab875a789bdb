"""A measured table as one JSON object: figures, published values, tests, provenance, stale rows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from manyhands.reproduce.cells import Cell
from manyhands.reproduce.records import Records
from manyhands.reproduce.significance import FEWEST_SEEDS, Pair, half_width, pairs
from manyhands.reproduce.tables import Table
from manyhands.reproduce.verdicts import Entry, entries

Page = dict[str, Any]

QUICK = "quick run"  # in place of a verdict


def page(table: Table, cells: Sequence[Cell], records: Records, command: str, stale: Sequence[str] = ()) -> Page:
    """Return everything that is known of a table.

    Parameters
    ----------
    table : Table
        The table, perhaps restricted to some rows.
    cells : sequence of Cell
        Its cells.
    records : Records
        Result rows.
    command : str
        What to type for the same figures.
    stale : sequence of str, default=()
        Sentences on rows that are not used.

    Returns
    -------
    dict
        What JSON can hold: ``entries`` with one object per metric, data set and row, ``pairs`` with one per test,
        ``series`` with the lists of each seed, and the provenance of all.
    """
    found = [record for cell in cells if (record := records.find(cell.key)) is not None]
    quick = any(cell.quick for cell in cells)
    results = entries(table, cells, records)
    return {
        "schema": 1,
        "table": table.name,
        "title": table.title,
        "paper": table.paper,
        "number": table.number,
        "command": command,
        "commits": _distinct(record.get("commit") for record in found),
        "machines": _distinct(record.get("machine") for record in found),
        "versions": _distinct(record.get("versions") for record in found),
        "seeds": sorted({cell.seed for cell in cells}),
        "quick": quick,
        "points": table.points,
        "validation_truth": table.validation_truth,
        "deviations": list(table.deviations),
        "metrics": list(table.metrics),
        "x": table.x,
        "swept": table.sweeps,
        "focus": (table.focus or {}).get("row"),
        "skipped": list(dict.fromkeys(row.name for row in table.rows if row.skip)),
        "n_cells": len(cells),
        "n_measured": sum("metrics" in record for record in found),
        "n_failed": sum("error" in record for record in found),
        "n_torn_lines": records.n_torn,
        "stale": list(stale),
        "seconds": round(sum(record.get("seconds") or 0 for record in found), 1),
        "entries": [_describe_entry(table, entry, quick) for entry in results],
        "series": _describe_series(table, cells, records),
        "pairs": [_describe_pair(pair) for pair in pairs(table, results)],
    }


def _distinct(values: Iterable[Any]) -> list[Any]:
    """Return values without repeats, in their order."""
    return [json.loads(text) for text in dict.fromkeys(json.dumps(value, sort_keys=True) for value in values)]


def _describe_entry(table: Table, entry: Entry, quick: bool) -> dict[str, Any]:
    """Return one metric of one row on one data set as JSON can hold it."""
    published = entry.published
    return {
        "dataset": entry.dataset,
        "row": entry.row,
        "x": entry.x,
        "metric": entry.metric,
        "n": entry.n,
        "mean": entry.mean,
        "sd": entry.deviation,
        "interval": _interval(table, entry),
        "published": None if published is None else published.value,
        "published_sd": None if published is None else published.deviation,
        "difference": entry.difference,
        "margin": entry.margin,
        "verdict": QUICK if quick and entry.values and published is not None else entry.verdict,
        "values": {str(seed): value for seed, value in entry.values.items()},
        "n_failed": entry.n_failed,
        "errors": list(entry.errors),
        "why": entry.why,
    }


def _interval(table: Table, entry: Entry) -> float | None:
    """Return half of the 95% interval of the mean over seeds, or over folds; None for fewer than three."""
    if entry.n < FEWEST_SEEDS:
        return None
    folds = table.dataset(entry.dataset).folds
    return half_width(list(entry.values.values()), 1 / (folds - 1) if folds else 0.0)


def _describe_series(table: Table, cells: Sequence[Cell], records: Records) -> list[dict[str, Any]]:
    """Return one object per series, data set and row, with the numbers of each seed that has them."""
    found: dict[tuple[object, ...], dict[str, Any]] = {}
    for name in table.series:
        for cell in cells:
            x = table.place(cell.dataset, cell.row)
            empty: dict[str, Any] = {
                "dataset": cell.dataset.name,
                "row": cell.row.name,
                "x": x,
                "series": name,
                "values": {},
            }
            own = found.setdefault((name, cell.dataset.name, cell.row.name, x), empty)
            numbers = ((records.find(cell.key) or {}).get("series") or {}).get(name)
            if numbers is not None:
                own["values"][str(cell.seed)] = numbers
    return list(found.values())


def _describe_pair(pair: Pair) -> dict[str, Any]:
    """Return one comparison of two rows as JSON can hold it."""
    names = ("dataset", "row", "other", "x", "metric", "n", "difference", "interval", "p", "p_corrected")
    return {name: getattr(pair, name) for name in names}
