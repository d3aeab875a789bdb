"""A measured table as one object that JSON can hold, and that object as Markdown, CSV, and lines for a terminal."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from typing import Any

from manyhands.reproduce.cells import SHARES, Cell
from manyhands.reproduce.records import Records
from manyhands.reproduce.tables import Table
from manyhands.reproduce.verdicts import Entry, Pair, entries, pairs

Page = dict[str, Any]

COLUMNS = ("data set", "method", "measured", "published", "verdict", "seeds")

QUICK = "quick run"  # in place of a verdict

_TITLES = {"macro_f1": "macro F1", "ece": "ECE", "auc": "AUC"}
_SURE = 0.05
_MOST_PAIRS = 20
_SHOWN = ("dataset", "row", "metric", "n", "mean", "sd", "published", "published_sd", "difference", "margin", "verdict")
_NO_TRUTH = "Neither stopping nor the choice of settings sees any truth: held-out labels of workers decide."
_WITH_TRUTH = "As in the paper, settings are chosen by the truth of validation items, which a real crowd does not have."


def page(table: Table, cells: Sequence[Cell], records: Records, command: str) -> Page:
    """All there is to tell of a table."""
    told = [record for cell in cells if (record := records.find(cell.key)) is not None]
    found = entries(table, cells, records)
    return {
        "schema": 1,
        "table": table.name,
        "title": table.title,
        "paper": table.paper,
        "number": table.number,
        "command": command,
        "commits": _distinct(record.get("commit") for record in told),
        "machines": _distinct(record.get("machine") for record in told),
        "versions": _distinct(record.get("versions") for record in told),
        "seeds": sorted({cell.seed for cell in cells}),
        "quick": any(cell.quick for cell in cells),
        "points": table.points,
        "validation_truth": table.validation_truth,
        "deviations": list(table.deviations),
        "metrics": list(table.metrics),
        "n_cells": len(cells),
        "n_measured": sum("metrics" in record for record in told),
        "n_failed": sum("error" in record for record in told),
        "n_torn_lines": records.n_torn,
        "seconds": round(sum(record.get("seconds") or 0 for record in told), 1),
        "entries": [_plain_entry(entry, any(cell.quick for cell in cells)) for entry in found],
        "pairs": [_plain_pair(pair) for pair in pairs(table, found)],
    }


def _distinct(values: Any) -> list[Any]:
    return [json.loads(text) for text in dict.fromkeys(json.dumps(value, sort_keys=True) for value in values)]


def _plain_entry(entry: Entry, quick: bool) -> dict[str, Any]:
    published = entry.published
    return {
        "dataset": entry.dataset,
        "row": entry.row,
        "metric": entry.metric,
        "n": entry.n,
        "mean": entry.mean,
        "sd": entry.deviation,
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


def _plain_pair(pair: Pair) -> dict[str, Any]:
    names = ("dataset", "row", "other", "n", "difference", "p", "p_corrected")
    return {name: getattr(pair, name) for name in names}


def to_csv(shown: Page) -> str:
    """A line per data set, method and metric; where the figures come from is repeated in each."""
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
    writer.writerow([*_SHOWN, *origin])
    for entry in shown["entries"]:
        writer.writerow([*("" if entry[name] is None else entry[name] for name in _SHOWN), *origin.values()])
    return buffer.getvalue()


def compared(shown: Page) -> list[str]:
    """The metrics that stand beside published values: the first, and others of which any were published."""
    published = {entry["metric"] for entry in shown["entries"] if entry["published"] is not None}
    return [metric for at, metric in enumerate(shown["metrics"]) if at == 0 or metric in published]


def lines(shown: Page, metric: str) -> list[tuple[str, ...]]:
    """A line of `COLUMNS` for each data set and row, by one metric."""
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
    """Columns and lines of what was measured and never published: a column per metric."""
    metrics = [metric for metric in shown["metrics"] if metric not in compared(shown)]
    found = {(e["dataset"], e["row"], e["metric"]): _measured(e, shown["points"]) for e in shown["entries"] if e["n"]}
    places = dict.fromkeys((dataset, row) for dataset, row, metric in found if metric in metrics)
    columns = [*COLUMNS[:2], *map(title, metrics)]
    return columns, [[*place, *(found.get((*place, metric), "") for metric in metrics)] for place in places]


def _measured(entry: dict[str, Any], points: bool) -> str:
    return figure(entry["mean"], entry["sd"], entry["metric"], points)


def figure(value: float | None, deviation: float | None, metric: str, points: bool) -> str:
    """A figure with its deviation, as precise as it deserves; nothing where there is none."""
    if value is None:
        return ""
    form = ".1f" if points and metric in SHARES else ".3f"
    if metric == "fit_seconds":
        form = ".0f" if value >= 10 else ".2g"
    return f"{value:{form}}" + ("" if deviation is None else f" ± {deviation:{form}}")


def title(metric: str) -> str:
    """A metric as people write it."""
    return _TITLES.get(metric, metric.replace("_", " "))


def notes(shown: Page) -> list[str]:
    """What must be known to read the figures: where they come from, and what they are not."""
    commits = [str(commit)[:12] if commit else "unknown (not run from a clone)" for commit in shown["commits"]]
    machines, seeds = "; ".join(filter(None, shown["machines"])) or "unknown", shown["seeds"]
    said = [
        f"Command: `{shown['command']}`",
        f"Commit: {', '.join(commits) or 'nothing was measured'}",
        f"Machine: {machines}; {shown['seconds']:.0f} s of work, one thread a cell",
        f"Seeds: {len(seeds)}, from {seeds[0]} to {seeds[-1]}" if len(seeds) > 1 else f"Seeds: {seeds or 'none'}",
        f"Cells: {shown['n_measured']} of {shown['n_cells']} measured, {shown['n_failed']} failed"
        + (f"; {shown['n_torn_lines']} torn lines ignored" if shown["n_torn_lines"] else ""),
        _WITH_TRUTH if shown["validation_truth"] else _NO_TRUTH,
    ]
    if shown["quick"]:
        said.insert(0, "A quick run, shrunk to see that it works: the figures mean nothing.")
    return said


def differing(shown: Page) -> list[str]:
    """The pairs of methods that differ beyond chance, the surest first."""
    sure = [pair for pair in shown["pairs"] if pair["p_corrected"] is not None and pair["p_corrected"] < _SURE]
    sure.sort(key=lambda pair: (pair["p_corrected"], -abs(pair["difference"])))
    said = []
    for pair in sure[:_MOST_PAIRS]:
        names = (pair["row"], pair["other"]) if pair["difference"] > 0 else (pair["other"], pair["row"])
        by = figure(abs(pair["difference"]), None, shown["metrics"][0], shown["points"])
        said.append(f"{pair['dataset']}: {names[0]} above {names[1]} by {by} (p = {pair['p_corrected']:.2g})")
    return said + ([f"and {len(sure) - _MOST_PAIRS} more"] if len(sure) > _MOST_PAIRS else [])


def failures(shown: Page) -> list[str]:
    """A line per data set and row some of whose seeds failed, with the reasons."""
    metric = shown["metrics"][0]
    failed = [entry for entry in shown["entries"] if entry["metric"] == metric and entry["errors"]]
    return [f"{entry['row']} on {entry['dataset']}: {' | '.join(entry['errors'])}" for entry in failed]


def to_markdown(shown: Page) -> str:
    """A page: figures beside the published ones, what else was measured, which methods differ, and all notes."""
    metric = shown["metrics"][0]
    parts = [f"# {shown['title']}", f"{shown['paper']} {shown['number']}."]
    parts.append(bullets(notes(shown)))
    if shown["deviations"]:
        parts += ["What differs from the paper:", bullets(shown["deviations"])]
    for beside in compared(shown):
        parts += [f"## By {title(beside)}", grid(COLUMNS, lines(shown, beside))]
    parts.append(
        "*Within*: closer than two standard errors of the difference (the paper's over as many runs as ours), or than "
        "two points where the paper gives no deviation."
    )
    columns, rows = further(shown)
    if rows:
        parts += ["## Also measured", grid(columns, rows)]
    tested = sum(pair["p"] is not None for pair in shown["pairs"])
    if tested:
        sure = differing(shown)
        parts += ["## Methods that differ", bullets(sure) if sure else "None beyond chance."]
        parts.append(
            f"By {title(metric)}: paired t-tests over seeds, corrected for {tested} pairs (Holm), p < {_SURE}."
        )
    unmeasured = {entry["row"]: entry["why"] for entry in shown["entries"] if entry["why"]}
    if unmeasured:
        parts += ["## Not measured here", bullets(f"{row}: {why}" for row, why in unmeasured.items())]
    if failures(shown):
        parts += ["## Failed", bullets(failures(shown))]
    return "\n\n".join(parts) + "\n"


def grid(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    ruled = [columns, ["---"] * len(columns), *rows]
    return "\n".join("| " + " | ".join(str(cell).replace("|", "\\|") for cell in row) + " |" for row in ruled)


def bullets(sentences: Any) -> str:
    return "\n".join(f"- {sentence}" for sentence in sentences)
