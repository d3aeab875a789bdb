"""A page of figures as tables and sentences to read: columns and lines, notes, significant differences, failures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from manyhands.reproduce.formatting import figure, title
from manyhands.reproduce.pages import Page

COLUMNS = ("data set", "method", "measured", "published", "verdict", "seeds")
SIGNIFICANT = 0.05

_MOST_PAIRS = 20
_NO_TRUTH = "No fit, early stopping or choice of settings uses ground truth: held-out labels of workers decide."
_WITH_TRUTH = "As in the paper, settings are chosen by the truth of validation items, which a real crowd does not have."


def sections(shown: Page) -> list[tuple[str, Sequence[str], Sequence[Sequence[str]]]]:
    """Return the figures as tables.

    Parameters
    ----------
    shown : dict
        A page.

    Returns
    -------
    list of (str, columns, lines)
        Title, column names and lines of each table.
    """
    found: list[Any] = []
    if shown["x"] is not None:
        found += [(f"by {title(metric)}", *curves(shown, metric)) for metric in shown["metrics"]]
    else:
        found += [(f"by {title(metric)}", COLUMNS, lines(shown, metric)) for metric in compared(shown)]
        columns, rows = further(shown)
        found += [("also measured", columns, rows)] if rows else []
    if shown["focus"] is not None and shown["pairs"]:
        found.append((f"{shown['focus']} minus each of the others", *focus_differences(shown)))
    return found


def focus_differences(shown: Page) -> tuple[list[str], list[list[str]]]:
    """Return the differences of the row in focus to all others: above 0 if its value is larger.

    Parameters
    ----------
    shown : dict
        A page with a focus.

    Returns
    -------
    columns : list of str
        Column names.
    lines : list of list of str
        One line per comparison.
    """
    found = []
    for pair in shown["pairs"]:
        points, metric = shown["points"], pair["metric"]
        difference = figure(pair["difference"], pair["interval"], metric, points)
        p = "" if pair["p_corrected"] is None else f"{pair['p_corrected']:.2g}"
        found.append([pair["dataset"] + _at(shown, pair), title(metric), pair["other"], difference, p])
    return ["data set", "metric", "method", "difference (95% interval)", "p"], found


def _at(shown: Page, what: dict[str, Any]) -> str:
    """Return the point of a sweep, where there is one."""
    return f", {title(shown['x'])} {what['x']:g}" if shown["swept"] and what["x"] is not None else ""


def curves(shown: Page, metric: str) -> tuple[list[str], list[list[str]]]:
    """Return a table over an axis: one line per data set and position, one column per row.

    A row without a sweep has a line of its own, without a position.

    Parameters
    ----------
    shown : dict
        A page with an axis.
    metric : str
        Name of the metric.

    Returns
    -------
    columns : list of str
        Column names.
    lines : list of list of str
        One line per data set and position.
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
    """Return the metrics that are compared with published values: the first, and others with published values.

    Parameters
    ----------
    shown : dict
        A page.

    Returns
    -------
    list of str
        Names of metrics.
    """
    published = {entry["metric"] for entry in shown["entries"] if entry["published"] is not None}
    return [metric for at, metric in enumerate(shown["metrics"]) if at == 0 or metric in published]


def lines(shown: Page, metric: str) -> list[tuple[str, ...]]:
    """Return one line of `COLUMNS` per data set and row.

    Parameters
    ----------
    shown : dict
        A page.
    metric : str
        Name of the metric.

    Returns
    -------
    list of tuple of str
        The lines.
    """
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
    """Return the metrics without published values: one column each.

    Parameters
    ----------
    shown : dict
        A page.

    Returns
    -------
    columns : list of str
        Column names.
    lines : list of list of str
        One line per data set and row.
    """
    metrics = [metric for metric in shown["metrics"] if metric not in compared(shown)]
    found = {(e["dataset"], e["row"], e["metric"]): _measured(e, shown["points"]) for e in shown["entries"] if e["n"]}
    places = dict.fromkeys((dataset, row) for dataset, row, metric in found if metric in metrics)
    columns = [*COLUMNS[:2], *map(title, metrics)]
    return columns, [[*place, *(found.get((*place, metric), "") for metric in metrics)] for place in places]


def _measured(entry: dict[str, Any], points: bool) -> str:
    """Return the measured mean with its standard deviation."""
    return figure(entry["mean"], entry["sd"], entry["metric"], points)


def notes(shown: Page) -> list[str]:
    """Return the provenance of the figures, and what they cannot be used for.

    Parameters
    ----------
    shown : dict
        A page.

    Returns
    -------
    list of str
        Sentences.
    """
    commits = [str(commit)[:12] if commit else "unknown (not run from a clone)" for commit in shown["commits"]]
    machines, seeds = "; ".join(filter(None, shown["machines"])) or "unknown", shown["seeds"]
    found = [
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
        found.insert(0, "A quick run on reduced data, to test that it works: the figures have no meaning.")
    return found


def differing(shown: Page) -> list[str]:
    """Return the significant differences between methods, the smallest p-value first.

    Parameters
    ----------
    shown : dict
        A page.

    Returns
    -------
    list of str
        Sentences.
    """
    sure = [pair for pair in shown["pairs"] if pair["p_corrected"] is not None and pair["p_corrected"] < SIGNIFICANT]
    sure.sort(key=lambda pair: (pair["p_corrected"], -abs(pair["difference"])))
    found = []
    for pair in sure[:_MOST_PAIRS]:
        names = (pair["row"], pair["other"]) if pair["difference"] > 0 else (pair["other"], pair["row"])
        by = figure(abs(pair["difference"]), None, pair["metric"], shown["points"])
        place = f"{pair['dataset']}{_at(shown, pair)}" + (f", {title(pair['metric'])}" if shown["focus"] else "")
        found.append(f"{place}: {names[0]} above {names[1]} by {by} (p = {pair['p_corrected']:.2g})")
    return found + ([f"and {len(sure) - _MOST_PAIRS} more"] if len(sure) > _MOST_PAIRS else [])


def failures(shown: Page) -> list[str]:
    """Return the rows with failed seeds, and the reasons.

    Parameters
    ----------
    shown : dict
        A page.

    Returns
    -------
    list of str
        One sentence per data set and row.
    """
    metric = shown["metrics"][0]
    failed = [entry for entry in shown["entries"] if entry["metric"] == metric and entry["errors"]]
    return [f"{_name(shown, entry)} on {entry['dataset']}: {' | '.join(entry['errors'])}" for entry in failed]


def _name(shown: Page, entry: dict[str, Any]) -> str:
    """Return the name of a row, with its point of a sweep."""
    return str(entry["row"]) + _at(shown, entry).replace(",", " with", 1)


def unmeasured(shown: Page) -> list[str]:
    """Return rows without a method, and rows that skip a data set, with the reasons.

    Parameters
    ----------
    shown : dict
        A page.

    Returns
    -------
    list of str
        Sentences.
    """
    skipped = set(shown["skipped"])
    names = [e["row"] + (f" on {e['dataset']}" if e["row"] in skipped else "") for e in shown["entries"] if e["why"]]
    reasons = [entry["why"] for entry in shown["entries"] if entry["why"]]
    return list(dict.fromkeys(f"{name}: {why}" for name, why in zip(names, reasons)))
