"""A measured table as one JSON object: figures, published values, tests, provenance, stale rows."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Sequence
from typing import Any

from manyhands.reproduce.cells import Cell
from manyhands.reproduce.records import Records
from manyhands.reproduce.tables import Table, figure, title
from manyhands.reproduce.verdicts import FEWEST_SEEDS, Entry, Pair, entries, half_width, pairs

Page = dict[str, Any]
QUICK = "quick run"  # in place of a verdict


def page(table: Table, cells: Sequence[Cell], records: Records, command: str, stale: Sequence[str] = ()) -> Page:
    """Return everything that is known of a table."""
    rows = [record for cell in cells if (record := records.find(cell.key)) is not None]
    quick = any(cell.quick for cell in cells)
    results = entries(table, cells, records)
    return {
        "schema": 1,
        "table": table.name,
        "title": table.title,
        "paper": table.paper,
        "number": table.number,
        "command": command,
        "commits": _distinct(record.get("commit") for record in rows),
        "machines": _distinct(record.get("machine") for record in rows),
        "versions": _distinct(record.get("versions") for record in rows),
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
        "n_measured": sum("metrics" in record for record in rows),
        "n_failed": sum("error" in record for record in rows),
        "n_torn_lines": records.n_torn,
        "stale": list(stale),
        "seconds": round(sum(record.get("seconds") or 0 for record in rows), 1),
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
    series: dict[tuple[object, ...], dict[str, Any]] = {}
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
            own = series.setdefault((name, cell.dataset.name, cell.row.name, x), empty)
            numbers = ((records.find(cell.key) or {}).get("series") or {}).get(name)
            if numbers is not None:
                own["values"][str(cell.seed)] = numbers
    return list(series.values())


def _describe_pair(pair: Pair) -> dict[str, Any]:
    """Return one comparison of two rows as JSON can hold it."""
    names = ("dataset", "row", "other", "x", "metric", "n", "difference", "interval", "p", "p_corrected")
    return {name: getattr(pair, name) for name in names}


# ----------------------------------------------------------------------------------------------------
# A page of figures as tables and sentences to read: columns and lines, notes, significant differences, failures.

COLUMNS = ("data set", "method", "measured", "published", "verdict", "seeds")
_SIGNIFICANT = 0.05  # level of the tests, after correction for their number
_MOST_PAIRS = 20
_NO_TRUTH = "No fit, early stopping or choice of settings uses ground truth: held-out labels of workers decide."
_WITH_TRUTH = "As in the paper, settings are chosen by the truth of validation items, which a real crowd does not have."


def sections(shown: Page) -> list[tuple[str, Sequence[str], Sequence[Sequence[str]]]]:
    """Return the figures as tables."""
    parts: list[Any] = []
    if shown["x"] is not None:
        parts += [(f"by {title(metric)}", *curves(shown, metric)) for metric in shown["metrics"]]
    else:
        parts += [(f"by {title(metric)}", COLUMNS, lines(shown, metric)) for metric in compared(shown)]
        columns, rows = further(shown)
        parts += [("also measured", columns, rows)] if rows else []
    if shown["focus"] is not None and shown["pairs"]:
        parts.append((f"{shown['focus']} minus each of the others", *_focus_differences(shown)))
    return parts


def _focus_differences(shown: Page) -> tuple[list[str], list[list[str]]]:
    """Return the differences of the row in focus to all others: above 0 if its value is larger."""
    differences = []
    for pair in shown["pairs"]:
        points, metric = shown["points"], pair["metric"]
        difference = figure(pair["difference"], pair["interval"], metric, points)
        p = "" if pair["p_corrected"] is None else f"{pair['p_corrected']:.2g}"
        differences.append([pair["dataset"] + _at(shown, pair), title(metric), pair["other"], difference, p])
    return ["data set", "metric", "method", "difference (95% interval)", "p"], differences


def _at(shown: Page, what: dict[str, Any]) -> str:
    """Return the point of a sweep, where there is one."""
    return f", {title(shown['x'])} {what['x']:g}" if shown["swept"] and what["x"] is not None else ""


def curves(shown: Page, metric: str) -> tuple[list[str], list[list[str]]]:
    """Return a table over an axis: one line per data set and position, one column per row.

    A row without a sweep has a line of its own, without a position.
    """
    here = [entry for entry in shown["entries"] if entry["metric"] == metric]
    rows = list(dict.fromkeys(entry["row"] for entry in here))
    cells: dict[tuple[str, Any], dict[str, str]] = {}
    for entry in here:
        if entry["n"] or entry["published"] is not None or entry["n_failed"]:
            place = (entry["dataset"], entry["x"])
            cells.setdefault(place, {})[entry["row"]] = _with_published(entry, shown["points"])
    order = {name: at for at, name in enumerate(dict.fromkeys(entry["dataset"] for entry in here))}
    places = sorted(cells, key=lambda place: (order[place[0]], place[1] is not None, place[1]))
    axis = [title(shown["x"])] if shown["swept"] else []
    return [COLUMNS[0], *axis, *rows], [
        [dataset, *(["" if x is None else f"{x:g}"] if axis else []), *(cells[dataset, x].get(row, "") for row in rows)]
        for dataset, x in places
    ]


def _with_published(entry: dict[str, Any], points: bool) -> str:
    """Return a measured value, with the published one and the verdict in brackets."""
    measured = _measured(entry, points) or "failed" * bool(entry["n_failed"])
    if entry["published"] is None:
        return measured
    published = figure(entry["published"], entry["published_sd"], entry["metric"], points)
    return f"{measured} (published {published}, {entry['verdict']})".strip()


def compared(shown: Page) -> list[str]:
    """Return the metrics that are compared with published values: the first, and others with published values."""
    published = {entry["metric"] for entry in shown["entries"] if entry["published"] is not None}
    return [metric for at, metric in enumerate(shown["metrics"]) if at == 0 or metric in published]


def lines(shown: Page, metric: str) -> list[tuple[str, ...]]:
    """Return one line of `COLUMNS` per data set and row."""
    return [
        (
            entry["dataset"],
            entry["row"],
            _measured(entry, shown["points"]),
            figure(entry["published"], entry["published_sd"], metric, shown["points"]),
            entry["verdict"],
            f"{entry['n']}" + (f", {entry['n_failed']} failed" if entry["n_failed"] else ""),
        )
        for entry in shown["entries"]
        if entry["metric"] == metric
    ]


def further(shown: Page) -> tuple[list[str], list[list[str]]]:
    """Return the metrics without published values: one column each."""
    metrics = [metric for metric in shown["metrics"] if metric not in compared(shown)]
    figures = {(e["dataset"], e["row"], e["metric"]): _measured(e, shown["points"]) for e in shown["entries"] if e["n"]}
    places = dict.fromkeys((dataset, row) for dataset, row, metric in figures if metric in metrics)
    columns = [*COLUMNS[:2], *map(title, metrics)]
    return columns, [[*place, *(figures.get((*place, metric), "") for metric in metrics)] for place in places]


def _measured(entry: dict[str, Any], points: bool) -> str:
    """Return the measured mean with its standard deviation."""
    return figure(entry["mean"], entry["sd"], entry["metric"], points)


def notes(shown: Page) -> list[str]:
    """Return the provenance of the figures, and what they cannot be used for."""
    commits = [str(commit)[:12] if commit else "unknown (not run from a clone)" for commit in shown["commits"]]
    machines, seeds = "; ".join(filter(None, shown["machines"])) or "unknown", shown["seeds"]
    sentences = [
        f"Command: `{shown['command']}`",
        f"Commit: {', '.join(commits) or 'nothing was measured'}",
        f"Machine: {machines}; {shown['seconds']:.0f} s of computation, one thread per cell",
        f"Seeds: {len(seeds)}, from {seeds[0]} to {seeds[-1]}" if len(seeds) > 1 else f"Seeds: {seeds or 'none'}",
        f"Cells: {shown['n_measured']} of {shown['n_cells']} measured, {shown['n_failed']} failed"
        + (f"; {shown['n_torn_lines']} incomplete lines ignored" if shown["n_torn_lines"] else ""),
        _WITH_TRUTH if shown["validation_truth"] else _NO_TRUTH,
        *(f"Not used: {sentence}" for sentence in shown["stale"]),
    ]
    if shown["quick"]:
        sentences.insert(0, "A quick run on reduced data, to test that it works: the figures have no meaning.")
    return sentences


def differing(shown: Page) -> list[str]:
    """Return the significant differences between methods, the smallest p-value first."""
    sure = [pair for pair in shown["pairs"] if pair["p_corrected"] is not None and pair["p_corrected"] < _SIGNIFICANT]
    sure.sort(key=lambda pair: (pair["p_corrected"], -abs(pair["difference"])))
    texts = []
    for pair in sure[:_MOST_PAIRS]:
        names = (pair["row"], pair["other"]) if pair["difference"] > 0 else (pair["other"], pair["row"])
        by = figure(abs(pair["difference"]), None, pair["metric"], shown["points"])
        place = f"{pair['dataset']}{_at(shown, pair)}" + (f", {title(pair['metric'])}" if shown["focus"] else "")
        texts.append(f"{place}: {names[0]} above {names[1]} by {by} (p = {pair['p_corrected']:.2g})")
    return texts + ([f"and {len(sure) - _MOST_PAIRS} more"] if len(sure) > _MOST_PAIRS else [])


def failures(shown: Page) -> list[str]:
    """Return the rows with failed seeds, and the reasons."""
    metric = shown["metrics"][0]
    failed = [entry for entry in shown["entries"] if entry["metric"] == metric and entry["errors"]]
    return [f"{_name(shown, entry)} on {entry['dataset']}: {' | '.join(entry['errors'])}" for entry in failed]


def _name(shown: Page, entry: dict[str, Any]) -> str:
    """Return the name of a row, with its point of a sweep."""
    return str(entry["row"]) + _at(shown, entry).replace(",", " with", 1)


def unmeasured(shown: Page) -> list[str]:
    """Return rows without a method, and rows that skip a data set, with the reasons."""
    skipped = set(shown["skipped"])
    names = [e["row"] + (f" on {e['dataset']}" if e["row"] in skipped else "") for e in shown["entries"] if e["why"]]
    reasons = [entry["why"] for entry in shown["entries"] if entry["why"]]
    return list(dict.fromkeys(f"{name}: {why}" for name, why in zip(names, reasons)))


# ----------------------------------------------------------------------------------------------------
# A page of figures as Markdown and as CSV.

_MEASURED = ("dataset", "row", "x", "metric", "n", "mean", "sd")
_CSV_COLUMNS = (*_MEASURED, "published", "published_sd", "difference", "margin", "verdict")


def to_csv(shown: Page) -> str:
    """Return one line per data set, row and metric; the provenance is repeated in each."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    origin = {
        "table": shown["table"],
        "command": shown["command"],
        "commit": " ".join(str(commit) for commit in shown["commits"]),
        "machine": "; ".join(filter(None, shown["machines"])),
        "seeds": " ".join(map(str, shown["seeds"])),
        "deviations": " ".join(shown["deviations"]),
        "validation_truth": str(shown["validation_truth"]).lower(),
    }
    writer.writerow([*_CSV_COLUMNS, *origin])
    for entry in shown["entries"]:
        writer.writerow([*("" if entry[name] is None else entry[name] for name in _CSV_COLUMNS), *origin.values()])
    return buffer.getvalue()


def to_markdown(shown: Page) -> str:
    """Return a document: measured beside published values, further metrics, significant differences, notes."""
    metric = shown["metrics"][0]
    parts = [f"# {shown['title']}", f"{shown['paper']} {shown['number']}."]
    parts.append(bullets(notes(shown)))
    if shown["deviations"]:
        parts += ["What differs from the paper:", bullets(shown["deviations"])]
    for what, columns, rows in sections(shown):
        parts += [f"## {what[0].upper()}{what[1:]}", grid(columns, rows)]
    parts.append(
        "*Above*, *below*: the 95% interval of the difference excludes 0 (t distribution; the paper's deviation over "
        "as many runs as ours). *Within*: otherwise, if closer than two points. *Undecided*: the seeds differ too much "
        "to tell."
    )
    tested = sum(pair["p"] is not None for pair in shown["pairs"])
    if tested and shown["focus"] is not None:
        parts.append(f"P-values are of paired t-tests over seeds, corrected for {tested} pairs (Holm).")
    elif tested:
        significant = differing(shown)
        parts += ["## Methods that differ", bullets(significant) if significant else "No difference is significant."]
        parts.append(
            f"By {title(metric)}: paired t-tests over seeds, corrected for {tested} pairs (Holm), p < {_SIGNIFICANT}."
        )
    if unmeasured(shown):
        parts += ["## Not measured here", bullets(unmeasured(shown))]
    if failures(shown):
        parts += ["## Failed", bullets(failures(shown))]
    return "\n\n".join(parts) + "\n"


def grid(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table."""
    ruled = [columns, ["---"] * len(columns), *rows]
    return "\n".join("| " + " | ".join(str(cell).replace("|", "\\|") for cell in row) + " |" for row in ruled)


def bullets(sentences: Iterable[str]) -> str:
    """Return a Markdown list."""
    return "\n".join(f"- {sentence}" for sentence in sentences)
