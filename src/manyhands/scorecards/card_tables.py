"""Scorecards as columns of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from manyhands.scorecards.cards import Scorecards, WorkerCard


def card_columns(cards: Scorecards) -> dict[str, Any]:
    """Return the scorecards as columns, with classes as text and lists joined by semicolons.

    Parameters
    ----------
    cards : Scorecards
        Quality reports of all workers.

    Returns
    -------
    dict of str to array or list
        ``worker`` and the columns of the scorecard (docs/scorecards.md); NaN or None where a value is undefined.
    """
    every = list(cards)
    return {
        "worker": [card.worker for card in every],
        "n_labels": cards.n_labels,
        "n_checked": cards.n_checked,
        "accuracy": cards.accuracy,
        "accuracy_low": cards.accuracy_low,
        "accuracy_high": cards.accuracy_high,
        "agreement": cards.agreement,
        "bias_class": [None if card.bias_class is None else str(card.bias_class) for card in every],
        "bias": np.where(cards.bias_class < 0, np.nan, cards.bias),
        "confusions": [confusions_text(card) for card in every],
        **_seconds_columns(cards),
        "flags": [";".join(card.flags) or None for card in every],
        "reasons": ["; ".join(card.reasons) or None for card in every],
        **_recall_columns(cards),
    }


def _seconds_columns(cards: Scorecards) -> dict[str, Any]:
    """Return the columns of working times, if there are any."""
    if not cards.n_timed.any():
        return {}
    crowd = np.full(len(cards), cards.crowd_median_seconds)
    return {"median_seconds": cards.median_seconds, "crowd_median_seconds": crowd}


def _recall_columns(cards: Scorecards) -> dict[str, Any]:
    """Return the recall of each class, and the expected number of items behind it; NaN without any."""
    columns: dict[str, Any] = {}
    for k, name in enumerate(map(str, cards.classes.tolist())):
        n_items = cards.recall_items[:, k]
        columns[f"recall_{name}"] = np.where(n_items > 0, cards.recall[:, k], np.nan)
        columns[f"items_{name}"] = np.round(n_items, 1)
    return columns


def confusions_text(card: WorkerCard) -> str | None:
    """Return the most frequent confusions of a worker as text.

    Parameters
    ----------
    card : WorkerCard
        Quality report of the worker.

    Returns
    -------
    str or None
        Such as ``cat labelled as dog, about 7 (31%)``; None without any.
    """
    made = (f"{k} labelled as {c}, about {n:.0f} ({rate:.0%})" for k, c, n, rate in card.top_confusions)
    return "; ".join(made) or None
