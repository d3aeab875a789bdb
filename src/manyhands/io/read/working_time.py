"""Working time: how many seconds a worker spent on a label, as annotation tools write it.

Label Studio has ``lead_time``, MTurk ``WorkTimeInSeconds``; other tools write when a task was begun and submitted.
Times are used for a summary of each worker only; a time that cannot be read is null, and counted in a note.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from manyhands.io.messages import normalise_name
from manyhands.io.read.documents import Table
from manyhands.io.read.durations import parse_seconds
from manyhands.io.read.times import Notes

NAMES = (  # of columns with a number of seconds, as tools and people name them
    "lead_time", "worktimeinseconds", "work_time_in_seconds", "working_time", "work_time", "seconds",
    "duration_seconds", "duration_in_seconds", "time_spent", "time_spent_seconds", "timespentinseconds",
    "time_spent_in_seconds", "response_time", "answer_time", "elapsed_seconds", "seconds_spent", "seconds_to_label",
    "seconds_to_create",
)  # fmt: skip
_MILLISECONDS = ("lead_time_ms", "duration_ms", "response_time_ms", "time_spent_ms", "elapsed_ms", "working_time_ms")
ROLE = "working_time"  # in the mapping of a file


def seconds_of(values: Sequence[Any]) -> tuple[pl.Series | None, Notes]:
    """Parse the durations of JSON objects.

    Parameters
    ----------
    values : sequence of object
        A number or a text for each row; anything else is no time.

    Returns
    -------
    seconds : polars.Series of float or None
        Seconds of each row; None if there are none.
    notes : dict of str to str
        A note on texts that cannot be read.
    """
    texts = [
        str(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else None for value in values
    ]
    seconds, notes = parse_seconds(pl.Series(texts, dtype=pl.String))
    return (seconds if seconds.count() else None), notes


def find_seconds(table: Table, taken: Collection[int]) -> tuple[pl.Series | None, dict[str, str], Notes]:
    """Find and parse the column of working times of a table, by its name.

    Parameters
    ----------
    table : Table
        The table.
    taken : collection of int
        Positions of columns that are something else.

    Returns
    -------
    seconds : polars.Series of float or None
        Seconds of each row; None if there is no such column, or it has no numbers.
    mapping : dict of str to str
        ``{"working_time": name of the column}``; empty if there is none.
    notes : dict of str to str
        A note on texts that cannot be read.
    """
    names = [normalise_name(name) for name in table.header]
    for known, factor in ((NAMES, 1.0), (_MILLISECONDS, 1e-3)):
        found = [at for at, name in enumerate(names) if name in map(normalise_name, known) and at not in taken]
        if found:
            seconds, notes = parse_seconds(table.column(found[0]))
            return (seconds * factor, {ROLE: table.header[found[0]]}, notes) if seconds.count() else (None, {}, {})
    return None, {}, {}


def times_of_labels(
    times: pl.Series | None, kept: Any, triples: Sequence[npt.NDArray[np.int32]], unknown: int
) -> npt.NDArray[np.int64] | None:
    """Return the time of each label in the order of the annotations.

    Parameters
    ----------
    times : polars.Series of int or None
        Microseconds since 1970 of each row; None if the file has none.
    kept : slice or ndarray of bool
        Which of the rows count.
    triples : sequence of three ndarrays of int of shape (n_kept,)
        Item, worker and label of each row that counts.
    unknown : int
        What stands for an unknown time.

    Returns
    -------
    ndarray of int64 of shape (n_kept,) or None
        Sorted by item, worker and label, as annotations are.
    """
    if times is None:
        return None
    item, worker, label = triples
    order = np.lexsort((label, worker, item))
    sorted_times: npt.NDArray[np.int64] = times.fill_null(unknown).to_numpy()[kept][order]
    return sorted_times


def time_by_worker(
    seconds: pl.Series | None, kept: Any, worker: npt.NDArray[np.int32], worker_ids: npt.NDArray[Any]
) -> dict[Any, npt.NDArray[np.float64]]:
    """Collect the working times of each worker's labels.

    Parameters
    ----------
    seconds : polars.Series of float or None
        Seconds of each row; None if the file has none.
    kept : slice or ndarray of bool
        Which of the rows count.
    worker : ndarray of int of shape (n_kept,)
        Worker of each row that counts.
    worker_ids : ndarray of shape (n_workers,)
        Ids of the workers.

    Returns
    -------
    dict of object to ndarray
        Worker id -> seconds of their labels, for workers who have some.
    """
    if seconds is None:
        return {}
    values = seconds.to_numpy()[kept]
    known = np.flatnonzero(np.isfinite(values))
    order = known[np.argsort(worker[known], kind="stable")]
    if not len(order):
        return {}
    codes, first = np.unique(worker[order], return_index=True)
    ids = worker_ids[codes].tolist()
    return dict(zip(ids, np.split(values[order].astype(float), first[1:])))
