"""Panels of items: the hard ones with their votes, and the classes that are confused."""

from __future__ import annotations

from typing import Any

import numpy as np

from manyhands.report.heat_maps import heat_map
from manyhands.report.item_texts import item_texts
from manyhands.report.panel import Alert, Bar, Panel, Table, chips
from manyhands.report.run import Array, Codes, Run
from manyhands.report.wording import counted, percent, quoted, visible
from manyhands.scorecards import ACCUSATIONS

_MOST_ITEMS = 60
_MOST_IN_MAP = 16  # classes in the heat map
_MOST_PAIRS = 12
_N_EXAMPLES = 3
_MOST_WORK = 1_000_000_000  # labels times classes that are counted within the time a page may take
_STANDS_OUT = 2.0  # times the mean share of a wrong class, from which a confusion is worth the title
_FEW = 2  # labels of an item that are few
_SURE = 0.9
_IN_THE_PAGE = "the data of this page (manyhands inspect PAGE --json)"


def hard_items(run: Run) -> Panel | None:
    """The items of the lowest confidence, with their votes and the reason.

    Parameters
    ----------
    run : Run
        The run.

    Returns
    -------
    Panel or None
        None if no label is below 0.9.
    """
    free = run.labelled.copy()
    free[run.gold_rows] = False
    unsure = np.flatnonzero(free & (run.confidence < _SURE))
    contradicted = _contradicted(run)
    if not len(unsure) and not len(contradicted):
        return None
    order = unsure[np.lexsort((unsure, run.confidence[unsure]))]
    chosen = [*contradicted.tolist()[:10], *order.tolist()]
    flagged = _flagged(run)
    field, texts = item_texts(run, chosen[:_MOST_ITEMS])
    rows = tuple(_item_row(run, row, flagged, texts) for row in chosen[:_MOST_ITEMS])
    heads = ("item", *((field,) if texts else ()), "votes", "label", "posterior", "reason")
    reasons: dict[str, int] = {}
    for row in chosen:
        short = _reason(run, row, flagged)[0]
        reasons[short] = reasons.get(short, 0) + 1
    top = max(reasons, key=lambda name: reasons[name])
    alerts: tuple[Alert, ...] = ()
    if len(contradicted):
        alerts = (
            Alert(
                "warning",
                f"The votes contradict the known class of {counted(len(contradicted), 'item')}: check them.",
                len(contradicted),
                "hard-items",
            ),
        )
    return Panel(
        "hard-items",
        f"{counted(len(chosen), 'item')} {'needs' if len(chosen) == 1 else 'need'} a look; the most frequent "
        f"reason: {top}.",
        "Items whose label is least sure, the least sure first. A chip is a class with its number of votes; the "
        "bar is the posterior of the label.",
        counted(int(run.labelled.sum()), "labelled item"),
        (),
        (
            Table(
                "Items to look at",
                heads,
                rows,
                len(chosen) if len(chosen) > len(rows) else None,
                run.full_labels or _IN_THE_PAGE,
                is_open=True,
            ),
            Table("Reasons", ("reason", "items"), tuple(sorted(reasons.items(), key=lambda entry: -entry[1]))),
        ),
        (),
        {"n": len(chosen), "reasons": reasons, "first": [run.item_name(row) for row in chosen[:5]]},
        alerts,
    )


def confusable(run: Run) -> Panel | None:
    """Which classes are labelled as which others, by the posterior, with examples.

    Parameters
    ----------
    run : Run
        The run.

    Returns
    -------
    Panel or None
        None if nothing is confused.
    """
    a = run.annotations
    if a.n_classes < 2 or not a.n_annotations or a.n_classes * a.n_annotations > _MOST_WORK:
        return None
    counts = _confusions(run)
    total = counts.sum(axis=1)
    order = np.argsort(-total, kind="stable")
    shown = order[: min(_MOST_IN_MAP, a.n_classes)]
    rate = counts / np.maximum(total, 1e-12)[:, None]
    away = counts.copy()
    np.fill_diagonal(away, 0)
    pairs = _top_pairs(away)
    if not pairs:
        return None
    first_k, first_c = pairs[0]
    rows = tuple(
        (run.classes[k], run.classes[c], float(away[k, c]), float(rate[k, c]), ", ".join(_examples(run, k, c)) or None)
        for k, c in pairs
    )
    off = np.where(np.eye(len(shown), dtype=bool), np.nan, rate[np.ix_(shown, shown)])
    labels = [run.classes[int(k)] for k in shown]
    left_out = a.n_classes - len(shown)
    return Panel(
        "confusable-classes",
        _most_confused(run, rate, away, first_k, first_c),
        "Each row is a true class by the posterior, each column a label given in its place, in per cent of the "
        "labels on that class. Right labels are left out.",
        counted(a.n_annotations, "label"),
        (
            heat_map(
                off,
                labels,
                labels,
                "Share of labels on a true class that name another class",
                format_cell=lambda v: f"{100 * v:.0f}",
                y_title="true class",
                x_title="label",
                unit="per cent of the row",
            ),
        ),
        (
            Table(
                "Most frequent confusions",
                ("true class", "labelled as", "labels, expected", "share", "items such as"),
                rows,
            ),
        ),
        (
            f"The picture shows the {len(shown)} most frequent classes; {left_out} more are in the table where "
            "they are confused most.",
        )
        if left_out
        else (),
        {"top": [(run.classes[k], run.classes[c], round(float(away[k, c]), 3)) for k, c in pairs[:3]]},
    )


def _most_confused(run: Run, rate: Array, away: Array, k: int, c: int) -> str:
    """Return the most frequent confusion as a sentence, which says so where no pair of classes stands out."""
    usual = away.sum() / max(run.annotations.n_annotations, 1) / max(len(away) - 1, 1)
    found = f"{quoted(run.classes[k])} is labelled as {quoted(run.classes[c])} most often"
    share = f"in {percent(rate[k, c])} of its labels"
    if len(away) > 2 and rate[k, c] < _STANDS_OUT * usual:
        return f"No two classes are confused much more often than others; {found}, {share}."
    return f"{found}: {share}."


def _item_row(run: Run, row: int, flagged: Codes, texts: dict[int, str]) -> tuple[Any, ...]:
    """Return the cells of one item."""
    votes = chips(run.classes, run.votes[row].tolist())
    text = (visible(texts.get(row, ""), 160),) if texts else ()
    label = run.classes[run.codes[row]] if run.codes[row] >= 0 else None
    return (run.item_name(row), *text, votes, label, Bar(float(run.confidence[row])), _reason(run, row, flagged)[1])


def _reason(run: Run, row: int, flagged: Codes) -> tuple[str, str]:
    """Return why an item is hard: a short name, and a sentence."""
    votes = run.votes[row]
    n, top = int(votes.sum()), int(votes.max(initial=0))
    if row in run.gold_rows:
        return "known class contradicted", "the votes contradict the known class"
    if (n and top == n and n <= _FEW) or n <= 1:
        return "few labels", f"few labels: {counted(n, 'vote')}, too few to be sure"
    if flagged[row] * 2 >= n:
        return "flagged workers", f"{flagged[row]} of {n} votes are from flagged workers"
    if votes[run.codes[row]] < top:
        return "votes overruled", "the most frequent vote is overruled: its voters are less reliable"
    if (votes == top).sum() > 1:
        return "tied votes", "the votes are tied"
    if top < n:
        return "workers disagree", f"workers disagree: {top} of {n} votes for the label"
    return "unreliable voters", "all votes agree, but their workers are not reliable"


def _contradicted(run: Run) -> Codes:
    """Return gold items on which another class has more votes."""
    rows = run.gold_rows
    if not len(rows):
        return rows
    top = run.votes[rows].max(axis=1)
    return rows[top > run.votes[rows, run.codes[rows]]]


def _flagged(run: Run) -> Codes:
    """Return the number of votes of flagged workers on each item, shape (n_items,)."""
    a = run.annotations
    if run.cards is None:
        return np.zeros(a.n_items, np.int64)
    accused = np.array([any(flag in ACCUSATIONS for flag in flags) for flags in run.cards.flags], bool)
    return np.bincount(a.item[accused[a.worker]], minlength=a.n_items)


def _confusions(run: Run) -> Array:
    """Return expected numbers of labels, shape (true class, label)."""
    a = run.annotations
    cells = [np.bincount(a.label, run.model.posterior_[a.item, k], a.n_classes) for k in range(a.n_classes)]
    return np.array(cells)


def _top_pairs(away: Array) -> list[tuple[int, int]]:
    """Return the most frequent confusions as pairs (true class, label)."""
    flat = np.argsort(-away, axis=None, kind="stable")[:_MOST_PAIRS]
    return [(int(at // len(away)), int(at % len(away))) for at in flat if away.flat[at] >= 0.5]


def _examples(run: Run, k: int, c: int) -> list[str]:
    """Return items that are k by the posterior and have votes for c, those with most such votes first."""
    found = np.flatnonzero((run.codes == k) & (run.votes[:, c] > 0))
    order = found[np.lexsort((found, -run.confidence[found], -run.votes[found, c]))]
    return [run.item_name(int(row)) for row in order[:_N_EXAMPLES]]
