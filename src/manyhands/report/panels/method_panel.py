"""The panel of methods: how far the labels depend on the method."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from manyhands.report.charts import Dot, dots
from manyhands.report.heat_maps import heat_map
from manyhands.report.panel import Panel, Table, cut
from manyhands.report.picture_data import Picture
from manyhands.report.run import Array, ComparedMethods, Run
from manyhands.report.svg import ticks
from manyhands.report.wording import counted, percent, visible

_MOST_ITEMS = 50
_Z = 1.959963984540054
_HOW_TO_READ_RANKS = (
    "Dots show how far the mean log likelihood of held-out labels is below that of the best method, with 95% intervals "
    "over folds; a method whose interval reaches 0 is not shown to be worse."
)
_COLUMNS = {
    "method": "method",
    "rank": "rank",
    "heldout_log_likelihood": "held-out log likelihood",
    "standard_error": "standard error",
    "difference_to_best": "below the best",
    "difference_standard_error": "standard error of the difference",
    "likelihood": "likelihood",
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


def ranked_methods(rows: Sequence[Mapping[str, Any]], n_labels: int, n_folds: int) -> Panel:
    """The ranking of methods by the likelihood of held-out labels, without the labels that they infer.

    Parameters
    ----------
    rows : sequence of mapping
        `Comparison.table`: one per method, the best first.
    n_labels : int
        Number of labels, each of which was held out once.
    n_folds : int
        Number of folds.

    Returns
    -------
    Panel
        Differences to the best method with 95% intervals over the folds.
    """
    return Panel(
        "methods",
        _best_sentence(rows),
        _HOW_TO_READ_RANKS,
        f"{counted(n_labels, 'label')}, {counted(len(rows), 'method')}",
        _ranking_chart(rows),
        (_ranking_table(rows),),
        (f"Every label is held out once in {n_folds} folds; higher log likelihood is better.",),
        {"best": str(rows[0]["method"])},
    )


def _compared(run: Run, found: ComparedMethods) -> Panel:
    """Show the ranking of all methods, their agreement, and the items on which they differ."""
    names = [str(row["method"]) for row in found.rows]
    n_items = run.annotations.n_items
    n_differ = len(found.differences["item"])
    matrix = _agreement(found, names, n_items)
    heads = ("item", "votes", *names)
    cells = zip(*(found.differences[name] for name in heads))
    rows, n_rows = cut(
        [tuple(None if cell is None else visible(cell, 60) for cell in row) for row in cells], _MOST_ITEMS
    )
    same = percent(1 - n_differ / max(n_items, 1))
    ranking = _ranking_chart(found.rows)
    how = "The map shows the share of items to which two methods give the same label, in per cent."
    return Panel(
        "methods",
        f"{len(names)} methods give the same label to {same} of the items. {_best_sentence(found.rows)}",
        f"{how} {_HOW_TO_READ_RANKS}" if ranking else how,
        f"{counted(n_items, 'item')}, {len(names)} methods",
        (_agreement_map(matrix, names), *ranking),
        (_ranking_table(found.rows), Table("Items whose label depends on the method", heads, rows, n_rows)),
        ("Held-out log likelihood is a mean over held-out labels in five-fold cross-validation; higher is better.",)
        if ranking
        else (),
        {"best": names[0] if ranking else None, "n_differ": n_differ, "agreement": matrix.round(6).tolist()},
    )


def _best_sentence(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return which method predicts held-out labels best, and how many cannot be told from it."""
    if rows[0]["rank"] is None:
        return "There are too few labels to hold some out, so the methods are not ranked."
    gap = [(row["difference_to_best"], row["difference_standard_error"]) for row in rows[1:]]
    near = sum(difference <= 2 * error for difference, error in gap)
    best = visible(rows[0]["method"], 100)
    if len(rows) == 1:
        return f"{best} is the only method."
    if not near:
        return f"{best} predicts held-out labels best, clearly."
    others = "1 other is" if near == 1 else f"{near} others are"
    return f"{best} predicts held-out labels best; {others} within two standard errors of it."


def _ranking_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """Return the table of all methods."""
    keys = [key for key in _COLUMNS if key in rows[0]]
    cells = tuple(tuple(visible(row[key], 100) if key == "method" else row[key] for key in keys) for row in rows)
    return Table("Methods, the best first", tuple(_COLUMNS[key] for key in keys), cells, is_open=True)


def _ranking_chart(rows: Sequence[Mapping[str, Any]]) -> tuple[Picture, ...]:
    """Return the differences of held-out log likelihood to the best method; nothing where none is known."""
    if rows[0]["rank"] is None or len(rows) < 2:
        return ()
    found = []
    for row in rows:
        below, error = row["difference_to_best"], row["difference_standard_error"]
        found.append((visible(row["method"], 80), [Dot(below, below - _Z * error, below + _Z * error)]))
    ends = [edge for _, (dot,) in found for edge in (dot.low, dot.high, dot.value) if math.isfinite(edge)]
    scale = ticks(min(ends), max(ends) or 1.0)
    step = scale[1] - scale[0] if len(scale) > 1 else 1.0
    low, high = math.floor(min(ends) / step) * step, math.ceil(max(ends) / step) * step
    label = "Held-out log likelihood of each method below that of the best, with 95% intervals"
    return (dots(found, label, low=low, high=high or step, rule=0.0, x_title="log likelihood below the best"),)


def _agreement(found: ComparedMethods, names: Sequence[str], n_items: int) -> Array:
    """Return the share of items to which two methods give the same label, shape (methods, methods)."""
    matrix = np.ones((len(names), len(names)))
    for r, one in enumerate(names):
        for c, other in enumerate(names):
            pairs = zip(found.differences[one], found.differences[other])
            matrix[r, c] = 1 - sum(a != b for a, b in pairs) / max(n_items, 1)
    return matrix


def _agreement_map(matrix: Array, names: Sequence[str]) -> Picture:
    """Return the heat map of the agreement of methods."""
    return heat_map(
        np.where(np.eye(len(names), dtype=bool), np.nan, matrix),
        names,
        names,
        "Share of items with the same label, two methods at a time",
        format_cell=lambda v: f"{100 * v:.0f}",
        y_title="method",
        x_title="other method",
        unit="per cent",
        least=math.floor(20 * float(matrix.min())) / 20,
        most=1.0,
    )
