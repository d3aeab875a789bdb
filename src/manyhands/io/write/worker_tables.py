"""The quality report of each worker as a data frame."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from manyhands.aggregation.base import Aggregator
from manyhands.exceptions import LimitError
from manyhands.io.write.frame_libraries import as_table
from manyhands.io.write.grade_columns import worker_grades
from manyhands.io.write.results import as_frame, class_names, id_column
from manyhands.scorecards import Scorecards, score_workers
from manyhands.scorecards.card_tables import card_columns


def worker_frame(
    model: Aggregator,
    library: str | None = None,
    *,
    working_time: Mapping[Any, Any] | None = None,
    cards: Scorecards | None = None,
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
    cards : Scorecards or None, default=None
        The scorecards, where they are made already; None makes them.

    Returns
    -------
    polars.DataFrame, pandas.DataFrame or pyarrow.Table
        ``worker`` and the columns of the scorecard (docs/scorecards.md), then ``recall_<class>`` and
        ``items_<class>`` for each class and, for ordered classes, the columns of `worker_grades`. ``median_seconds``
        and ``crowd_median_seconds`` are there if working times are known. Where there are too many classes for
        scorecards to fit into memory, only ``n_labels`` and ``accuracy``.

    Examples
    --------
    >>> from manyhands import Annotations, MajorityVote
    >>> votes = Annotations.from_triples(["a", "a", "b"], ["w1", "w2", "w1"], ["cat", "cat", "dog"])
    >>> worker_frame(MajorityVote().fit(votes)).columns[:3]
    ['worker', 'n_labels', 'n_checked']
    """
    class_names(model.classes_)  # refuses classes that would share a column
    columns: dict[str, Any] = {"worker": id_column(model.worker_ids_.tolist())}
    try:
        cards = worker_cards(model, working_time) if cards is None else cards
    except LimitError:
        volume = np.bincount(model.annotations_.worker, minlength=len(model.worker_ids_))
        columns |= {"n_labels": volume, "accuracy": model.worker_accuracy_}
    else:
        columns |= as_table(card_columns(cards)).drop("worker").to_dict()
    return as_frame(model, pl.DataFrame(columns | worker_grades(model)), "worker", library)


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
