"""A measured table as one object that JSON can hold, and that object as Markdown, CSV, and lines for a terminal."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from typing import Any

from manyhands.reproduce.cells import Cell
from manyhands.reproduce.records import Records
from manyhands.reproduce.tables import OF_HISTORY, OF_LABELS, OF_ROUND, Table, is_share
from manyhands.reproduce.verdicts import Entry, Pair, entries, pairs

Page = dict[str, Any]

COLUMNS = ("data set", "method", "measured", "published", "verdict", "seeds")

QUICK = "quick run"  # in place of a verdict

_TITLES = {"macro_f1": "macro F1", "ece": "ECE", "auc": "AUC"}
_SURE = 0.05
_MANY = 100  # from here on, decimals of what is no share say nothing
_MOST_PAIRS = 20
_MEASURED = ("dataset", "row", "x", "metric", "n", "mean", "sd")
_SHOWN = (*_MEASURED, "published", "published_sd", "difference", "margin", "verdict")
_NO_TRUTH = "No fit, stopping or choice of settings during a run sees any truth: held-out labels of workers decide."
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
        "x": table.x,
        "swept": table.sweeps,
        "focus": (table.focus or {}).get("row"),
        "skipped": list(dict.fromkeys(row.name for row in table.rows if row.skip)),
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
        "x": entry.x,
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
    names = ("dataset", "row", "other", "x", "metric", "n", "difference", "interval", "p", "p_corrected")
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


def sections(shown: Page) -> list[tuple[str, Sequence[str], Sequence[Sequence[str]]]]:
    """The figures as tables to read: what each is, its columns and its lines."""
    found: list[Any] = []
    if shown["x"] is not None:
        found += [(f"by {title(metric)}", *curves(shown, metric)) for metric in shown["metrics"]]
    else:
        found += [(f"by {title(metric)}", COLUMNS, lines(shown, metric)) for metric in compared(shown)]
        columns, rows = further(shown)
        found += [("also measured", columns, rows)] if rows else []
    if shown["focus"] is not None and shown["pairs"]:
        found.append((f"{shown['focus']} less each of the others", *beside_focus(shown)))
    return found


def beside_focus(shown: Page) -> tuple[list[str], list[list[str]]]:
    """Columns and lines of how far the row in focus is from each other one: above 0 where its figure is the larger."""
    lines = []
    for pair in shown["pairs"]:
        points, metric = shown["points"], pair["metric"]
        difference = figure(pair["difference"], pair["interval"], metric, points)
        p = "" if pair["p_corrected"] is None else f"{pair['p_corrected']:.2g}"
        lines.append([pair["dataset"] + _at(shown, pair), title(metric), pair["other"], difference, p])
    return ["data set", "metric", "method", "difference (95 % interval)", "p"], lines


def _at(shown: Page, told: dict[str, Any]) -> str:
    """At which point of a sweep, where there is one."""
    return f", {title(shown['x'])} {told['x']:g}" if shown["swept"] and told["x"] is not None else ""


def curves(shown: Page, metric: str) -> tuple[list[str], list[list[str]]]:
    """Columns and lines of a table that is drawn over something: a line for each place on the axis, a column per row.

    A row that is not swept over has a line of its own, which names no place.
    """
    here = [entry for entry in shown["entries"] if entry["metric"] == metric]
    rows = list(dict.fromkeys(entry["row"] for entry in here))
    told: dict[tuple[str, Any], dict[str, str]] = {}
    for entry in here:
        if entry["n"] or entry["published"] is not None or entry["n_failed"]:
            told.setdefault((entry["dataset"], entry["x"]), {})[entry["row"]] = _with_published(entry, shown["points"])
    order = {name: at for at, name in enumerate(dict.fromkeys(entry["dataset"] for entry in here))}
    places = sorted(told, key=lambda place: (order[place[0]], place[1] is not None, place[1]))
    axis = [title(shown["x"])] if shown["swept"] else []
    return [COLUMNS[0], *axis, *rows], [
        [dataset, *(["" if x is None else f"{x:g}"] if axis else []), *(told[dataset, x].get(row, "") for row in rows)]
        for dataset, x in places
    ]


def _with_published(entry: dict[str, Any], points: bool) -> str:
    measured = _measured(entry, points) or "failed" * bool(entry["n_failed"])
    if entry["published"] is None:
        return measured
    said = figure(entry["published"], entry["published_sd"], entry["metric"], points)
    return f"{measured} (published {said}, {entry['verdict']})".strip()


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
    form = ".1f" if points and is_share(metric) else ".3f"
    if metric == "fit_seconds":
        form = ".0f" if value >= 10 else ".2g"
    elif form == ".3f" and abs(value) >= _MANY:
        form = ".0f"
    return f"{value:{form}}" + ("" if deviation is None else f" ± {deviation:{form}}")


def title(metric: str) -> str:
    """A metric, or a number that is swept over, as people write it.

    >>> title("round.combined_imbalance"), title("label_accuracy.first"), title("macro_f1")
    ('combined imbalance', 'label accuracy (first)', 'macro F1')
    """
    if metric.startswith(OF_LABELS):
        return f"label accuracy ({title(metric.removeprefix(OF_LABELS))})"
    plain = metric.removeprefix(OF_ROUND).removeprefix(OF_HISTORY)
    return _TITLES.get(plain, plain.replace("_", " "))


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
        by = figure(abs(pair["difference"]), None, pair["metric"], shown["points"])
        place = f"{pair['dataset']}{_at(shown, pair)}" + (f", {title(pair['metric'])}" if shown["focus"] else "")
        said.append(f"{place}: {names[0]} above {names[1]} by {by} (p = {pair['p_corrected']:.2g})")
    return said + ([f"and {len(sure) - _MOST_PAIRS} more"] if len(sure) > _MOST_PAIRS else [])


def failures(shown: Page) -> list[str]:
    """A line per data set and row some of whose seeds failed, with the reasons."""
    metric = shown["metrics"][0]
    failed = [entry for entry in shown["entries"] if entry["metric"] == metric and entry["errors"]]
    return [f"{_name(shown, entry)} on {entry['dataset']}: {' | '.join(entry['errors'])}" for entry in failed]


def _name(shown: Page, entry: dict[str, Any]) -> str:
    return str(entry["row"]) + _at(shown, entry).replace(",", " with", 1)


def unmeasured(shown: Page) -> list[str]:
    """Rows without a method, and rows that skip a data set, with the reasons."""
    skipped = set(shown["skipped"])
    names = [e["row"] + (f" on {e['dataset']}" if e["row"] in skipped else "") for e in shown["entries"] if e["why"]]
    reasons = [entry["why"] for entry in shown["entries"] if entry["why"]]
    return list(dict.fromkeys(f"{name}: {why}" for name, why in zip(names, reasons)))


def to_markdown(shown: Page) -> str:
    """A page: figures beside the published ones, what else was measured, which methods differ, and all notes."""
    metric = shown["metrics"][0]
    parts = [f"# {shown['title']}", f"{shown['paper']} {shown['number']}."]
    parts.append(bullets(notes(shown)))
    if shown["deviations"]:
        parts += ["What differs from the paper:", bullets(shown["deviations"])]
    for what, columns, rows in sections(shown):
        parts += [f"## {what[0].upper()}{what[1:]}", grid(columns, rows)]
    parts.append(
        "*Within*: closer than two standard errors of the difference (the paper's over as many runs as ours), or than "
        "two points where the paper gives no deviation."
    )
    tested = sum(pair["p"] is not None for pair in shown["pairs"])
    if tested and shown["focus"] is not None:
        parts.append(f"P-values are of paired t-tests over seeds, corrected for {tested} pairs (Holm).")
    elif tested:
        sure = differing(shown)
        parts += ["## Methods that differ", bullets(sure) if sure else "None beyond chance."]
        parts.append(
            f"By {title(metric)}: paired t-tests over seeds, corrected for {tested} pairs (Holm), p < {_SURE}."
        )
    if unmeasured(shown):
        parts += ["## Not measured here", bullets(unmeasured(shown))]
    if failures(shown):
        parts += ["## Failed", bullets(failures(shown))]
    return "\n\n".join(parts) + "\n"


def grid(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    ruled = [columns, ["---"] * len(columns), *rows]
    return "\n".join("| " + " | ".join(str(cell).replace("|", "\\|") for cell in row) + " |" for row in ruled)


def bullets(sentences: Any) -> str:
    return "\n".join(f"- {sentence}" for sentence in sentences)
