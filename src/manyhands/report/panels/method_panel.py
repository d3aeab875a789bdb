"""The panel of methods: how far the labels depend on the method."""

from __future__ import annotations

from typing import Any

import numpy as np

from manyhands.report.heat_maps import heat_map
from manyhands.report.panel import Panel, Table, cut
from manyhands.report.run import ComparedMethods, Run
from manyhands.report.wording import counted, percent, visible

_MOST_ITEMS = 50
_COLUMNS = {
    "method": "method",
    "rank": "rank",
    "heldout_log_likelihood": "held-out log likelihood",
    "standard_error": "standard error",
    "mean_confidence": "mean confidence",
    "agreement_with_chosen": "agreement with chosen",
    "gold_accuracy": "accuracy on gold",
}


def methods(run: Run) -> Panel | None:
    """Agreement of methods and the items whose label depends on the method; without a comparison, of majority vote.

    Parameters
    ----------
    run : Run
        The run.

    Returns
    -------
    Panel or None
        None for a majority vote without a comparison.
    """
    return _with_vote(run) if run.comparison is None else _compared(run, run.comparison)


def _with_vote(run: Run) -> Panel | None:
    """Compare the labels with the most frequent votes."""
    top = run.votes.max(axis=1)
    rows = np.flatnonzero(run.labelled & (run.codes >= 0) & (run.annotations.n_labels > 0))
    overruled = rows[run.votes[rows, run.codes[rows]] < top[rows]]
    n = len(rows)
    if not n or (type(run.model).__name__ == "MajorityVote" and not len(overruled)):
        return None
    order = overruled[np.lexsort((overruled, -run.confidence[overruled]))]
    table, n_rows = cut([_overruled_row(run, int(row)) for row in order[: _MOST_ITEMS + 1]], _MOST_ITEMS)
    n_rows = len(overruled) if len(overruled) > _MOST_ITEMS else None
    share = len(overruled) / n
    title = f"The method overrules the most frequent vote on {counted(len(overruled), 'item')} ({percent(share, 1)})."
    if not len(overruled):
        title = "The method never overrules the most frequent vote."
    return Panel(
        "methods",
        title,
        "Items on which reliable workers outvote a larger number of less reliable ones, the surest first.",
        counted(n, "item"),
        (),
        (
            Table(
                "Items whose most frequent vote is overruled",
                ("item", "votes", "most frequent vote", "label", "posterior"),
                table,
                n_rows,
                run.full_labels,
            ),
        )
        if table
        else (),
        ("--compare fits and ranks all other methods too.",),
        {"n_overruled": len(overruled)},
    )


def _overruled_row(run: Run, row: int) -> tuple[Any, ...]:
    votes = run.votes[row]
    order = [k for k in np.lexsort((np.arange(len(votes)), -votes)) if votes[k]]
    text = ", ".join(f"{run.classes[k]} {votes[k]}" for k in order)
    return run.item_name(row), text, run.classes[order[0]], run.classes[run.codes[row]], float(run.confidence[row])


def _compared(run: Run, found: ComparedMethods) -> Panel:
    """Show the ranking of all methods, their agreement, and the items on which they differ."""
    names = [str(row["method"]) for row in found.rows]
    n_items = run.annotations.n_items
    n_differ = len(found.differences["item"])
    matrix = np.ones((len(names), len(names)))
    for r, one in enumerate(names):
        for c, other in enumerate(names):
            pairs = zip(found.differences[one], found.differences[other])
            matrix[r, c] = 1 - sum(a != b for a, b in pairs) / max(n_items, 1)
    keys = [key for key in _COLUMNS if key in found.rows[0]]
    ranking = tuple(tuple(row[key] for key in keys) for row in found.rows)
    heads = ("item", "votes", *names)
    cells = zip(*(found.differences[name] for name in heads))
    rows, n_rows = cut(
        [tuple(None if cell is None else visible(cell, 60) for cell in row) for row in cells], _MOST_ITEMS
    )
    best = names[0]
    return Panel(
        "methods",
        f"{len(names)} methods give the same label to {percent(1 - n_differ / max(n_items, 1))} of the items; "
        f"{best} predicts held-out labels best.",
        "Share of items to which two methods give the same label, in per cent; the stronger the colour, the more.",
        f"{counted(n_items, 'item')}, {len(names)} methods",
        (
            heat_map(
                np.where(np.eye(len(names), dtype=bool), np.nan, matrix),
                names,
                names,
                "Share of items with the same label, two methods at a time",
                format_cell=lambda v: f"{100 * v:.0f}",
                y_title="methods",
                x_title="other methods, per cent",
            ),
        ),
        (
            Table("Methods, the best first", tuple(_COLUMNS[key] for key in keys), ranking, is_open=True),
            Table("Items whose label depends on the method", heads, rows, n_rows),
        ),
        ("Held-out log likelihood is a mean over held-out labels in five-fold cross-validation; higher is better.",),
        {"best": best, "n_differ": n_differ, "agreement": matrix.round(6).tolist()},
    )
