"""The quality report of each worker as a data frame."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from manyhands.aggregation.base import Aggregator
from manyhands.exceptions import LimitError
from manyhands.io.write.results import as_frame, class_names, id_column
from manyhands.scorecards import Scorecards, WorkerCard, score_workers


def worker_frame(
    model: Aggregator, library: str | None = None, *, working_time: Mapping[Any, Any] | None = None
) -> Any:
    """Return one row per worker: the scorecard, and the recall of each class.

    Parameters
    ----------
    model : Aggregator
        A fitted aggregator.
    library : {"pandas", "polars", "pyarrow"} or None, default=None
        Kind of data frame; None for that of the frame which the labels were read from, and polars for other labels.
    working_time : mapping of object to sequence of float or None, default=None
        ``{worker: seconds of their labels}``, where known (``Reading.working_time``).

    Returns
    -------
    polars.DataFrame, pandas.DataFrame or pyarrow.Table
        ``worker`` and the columns of the scorecard (docs/scorecards.md), then ``recall_<class>`` and
        ``items_<class>`` for each class. ``median_seconds`` and ``crowd_median_seconds`` are there if working
        times are known. Where there are too many classes for scorecards to fit into memory, only ``n_labels`` and
        ``accuracy``.

    Examples
    --------
    >>> from manyhands import Annotations, MajorityVote
    >>> votes = Annotations.from_triples(["a", "a", "b"], ["w1", "w2", "w1"], ["cat", "cat", "dog"])
    >>> worker_frame(MajorityVote().fit(votes)).columns[:3]
    ['worker', 'n_labels', 'n_checked']
    """
    names = class_names(model.classes_)
    columns: dict[str, Any] = {"worker": id_column(model.worker_ids_.tolist())}
    try:
        cards = worker_cards(model, working_time)
    except LimitError:
        volume = np.bincount(model.annotations_.worker, minlength=len(model.worker_ids_))
        columns |= {"n_labels": volume, "accuracy": model.worker_accuracy_}
    else:
        columns |= _scorecard(cards, names) | _recall(cards, names)
    return as_frame(model, pl.DataFrame(columns), "worker", library)


def worker_cards(model: Aggregator, working_time: Mapping[Any, Any] | None = None) -> Scorecards:
    """Return the scorecards of a fitted model's workers.

    Parameters
    ----------
    model : Aggregator
        A fitted aggregator.
    working_time : mapping of object to sequence of float or None, default=None
        ``{worker: seconds of their labels}``, where known.

    Returns
    -------
    Scorecards
        One card per worker.

    Raises
    ------
    LimitError
        If they do not fit into memory.
    """
    return score_workers(
        model.annotations_,
        model.posterior_,
        confusion=getattr(model, "confusion_", None),
        tempering_exponent=getattr(model, "tempering_exponent_", 1.0),
        collusion_group=getattr(model, "collusion_group_", None),
        gold=model._gold or None,
        working_time=working_time,
    )


def _scorecard(cards: Scorecards, names: list[str]) -> dict[str, Any]:
    """Return the columns of the scorecards, with classes by name and lists as text."""
    return {
        "n_labels": cards.n_labels,
        "n_checked": cards.n_checked,
        "accuracy": cards.accuracy,
        "accuracy_low": cards.accuracy_low,
        "accuracy_high": cards.accuracy_high,
        "agreement": pl.Series(cards.agreement).fill_nan(None),
        "bias_class": pl.Series([None if k < 0 else names[k] for k in cards.bias_class], dtype=pl.String),
        "bias": pl.Series([b if k >= 0 else None for k, b in zip(cards.bias_class, cards.bias)], dtype=pl.Float64),
        "confusions": pl.Series([_confusions(card) for card in cards], dtype=pl.String),
        **_seconds(cards),
        "flags": pl.Series([";".join(flags) or None for flags in cards.flags], dtype=pl.String),
        "reasons": pl.Series(["; ".join(reasons) or None for reasons in cards.reasons], dtype=pl.String),
    }


def _seconds(cards: Scorecards) -> dict[str, Any]:
    """Return the columns of working times, if there are any."""
    if not cards.n_timed.any():
        return {}
    crowd = pl.Series([cards.crowd_median_seconds]).new_from_index(0, len(cards))
    return {"median_seconds": pl.Series(cards.median_seconds).fill_nan(None), "crowd_median_seconds": crowd}


def _recall(cards: Scorecards, names: list[str]) -> dict[str, Any]:
    """Return the recall of each class, and the expected number of items behind it; null without any."""
    columns: dict[str, Any] = {}
    for k, name in enumerate(names):
        known = cards.recall_items[:, k] > 0
        columns[f"recall_{name}"] = pl.Series(np.where(known, cards.recall[:, k], np.nan)).fill_nan(None)
        columns[f"items_{name}"] = np.round(cards.recall_items[:, k], 1)
    return columns


def _confusions(card: WorkerCard) -> str | None:
    """Return the most frequent confusions as text: ``cat labelled as dog, about 7 (31%)``."""
    made = (f"{k} labelled as {c}, about {n:.0f} ({rate:.0%})" for k, c, n, rate in card.top_confusions)
    return "; ".join(made) or None
