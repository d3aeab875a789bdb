"""The map of all workers: how much each labelled, how well, and who is flagged for what."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import numpy.typing as npt

from manyhands.report.curves import Point, scatter
from manyhands.report.panel import Alert, Panel, Table, cut
from manyhands.report.picture_data import Picture
from manyhands.report.run import Run
from manyhands.report.wording import accusation, counted, interval, joined, visible
from manyhands.scorecards import ACCUSATIONS, Scorecards

SERIES = {"no flag": 0, "random": 1, "one-class": 2, "inverted": 3, "copying": 4, "undecided": 5, "weak": 6, "fast": 7}
_ALSO_UNDECIDED = ("undecided", "too-few-labels")
_MOST_ROWS = 200
_MOST_POINTS = 800  # of the picture


def series_of(flags: tuple[str, ...]) -> str:
    """Return the flag that a worker's mark shows.

    Parameters
    ----------
    flags : tuple of str
        Flags of the worker.

    Returns
    -------
    str
        A key of `SERIES`.
    """
    for flag in ACCUSATIONS:
        if flag in flags:
            return flag
    if "fast" in flags:
        return "fast"
    return "undecided" if any(flag in flags for flag in _ALSO_UNDECIDED) else "no flag"


def order_of_workers(run: Run) -> list[int]:
    """Return the workers in the order of tables: flagged ones first, then by the number of labels.

    Parameters
    ----------
    run : Run
        A run with scorecards.

    Returns
    -------
    list of int
        Codes of the workers.
    """
    assert run.cards is not None
    accused = np.array([any(flag in ACCUSATIONS for flag in flags) for flags in run.cards.flags], bool)
    return np.lexsort((-run.cards.n_labels, ~accused)).tolist()


def worker_map(run: Run) -> Panel | None:
    """Number of labels against accuracy of every worker; shape and colour tell the flag.

    Parameters
    ----------
    run : Run
        The run.

    Returns
    -------
    Panel or None
        None without scorecards.
    """
    cards = run.cards
    if cards is None or not len(cards) or (run.reading is not None and not run.reading.workers_known):
        return None
    kinds = [series_of(flags) for flags in cards.flags]
    counts = Counter(kinds)
    named = np.flatnonzero(cards.n_labels > 0)
    points = _points(run, cards, kinds, named)
    flagged = {flag: counts[flag] for flag in ACCUSATIONS if counts[flag]}
    typical = float(np.median(cards.accuracy[named])) if len(named) else math.nan
    found = joined([f"{n} {accusation(flag, n)}" for flag, n in flagged.items()]) if flagged else "no worker is flagged"
    rows, n_rows = cut([_row(run, w) for w in order_of_workers(run)], _MOST_ROWS)
    head = ("worker", "labels", "accuracy", "95% interval", "agreement", "flags", "reason")
    return Panel(
        "workers",
        f"Half of the workers are right in at least {typical:.0%} of their labels; {found}.",
        "Each mark is a worker: further right means more labels, higher means more of them right. Vertical lines "
        "are 95% intervals"
        + (", left out here as there are many workers" if len(points) > 150 else "")
        + (f"; {_MOST_POINTS} of them are drawn." if len(named) > _MOST_POINTS else "."),
        counted(len(cards), "worker"),
        (_picture(points, counts),),
        (Table("Workers, flagged ones first", head, rows, n_rows, run.full_workers),),
        ("Accuracy is estimated from the other workers' labels on the same items, without the worker's own.",),
        {"n_flagged": sum(flagged.values()), "flags": dict(counts), "median_accuracy": typical},
        _alerts(cards, kinds, flagged),
    )


def _points(run: Run, cards: Scorecards, kinds: list[str], named: npt.NDArray[np.int64]) -> list[Point]:
    """Return the marks of workers with labels, an even selection of very many; flagged ones are drawn last."""
    chosen = named[np.linspace(0, len(named) - 1, _MOST_POINTS).astype(int)] if len(named) > _MOST_POINTS else named
    return [
        Point(
            float(cards.n_labels[w]),
            float(cards.accuracy[w]),
            float(cards.accuracy_low[w]),
            float(cards.accuracy_high[w]),
            SERIES[kinds[w]],
            f"{run.workers[w]}: {cards.accuracy[w]:.2f}, {cards.n_labels[w]} labels, {kinds[w]}",
        )
        for w in sorted(chosen.tolist(), key=lambda w: kinds[w] != "no flag")
    ]


def _picture(points: list[Point], counts: Counter[str]) -> Picture:
    """Return the scatter plot, with the flags that occur in its legend."""
    low = max(0.0, math.floor(min([p.low for p in points if math.isfinite(p.low)], default=0.0) * 10) / 10)
    names = [
        (SERIES[kind], f"{'undecided or few labels' if kind == 'undecided' else kind} ({counts[kind]})")
        for kind in SERIES
        if counts[kind]
    ]
    return scatter(
        points,
        "Accuracy of each worker against the number of labels",
        series=names,
        x_title="labels of the worker (logarithmic)",
        y_title="accuracy",
        low=low,
        high=1.0,
    )


def _alerts(cards: Scorecards, kinds: list[str], flagged: dict[str, int]) -> tuple[Alert, ...]:
    """Return an alert for each flag that says that something is wrong."""
    alerts = []
    for flag, n in flagged.items():
        labels = counted(int(sum(count for count, kind in zip(cards.n_labels, kinds) if kind == flag)), "label")
        severity = "alert" if flag in ("random", "inverted", "copying") else "warning"
        text = f"{counted(n, 'worker')} {accusation(flag, n)}; they gave {labels}."
        alerts.append(Alert(severity, text, n, "workers"))
    return tuple(alerts)


def _row(run: Run, w: int) -> tuple[object, ...]:
    assert run.cards is not None
    card = run.cards[w]
    reasons = visible("; ".join(card.reasons), 400)
    return (
        run.workers[w],
        card.n_labels,
        card.accuracy,
        interval(card.accuracy_low, card.accuracy_high),
        card.agreement,
        ", ".join(card.flags) or None,
        reasons or None,
    )
