"""Durations as annotation tools write them: seconds, clock times, and the time between start and end of a task."""

from __future__ import annotations

import polars as pl

from manyhands.io.read.times import Notes, parse_times

_CLOCK = r"^(?:(\d+):)?(\d{1,2}):(\d{2}(?:\.\d+)?)$"
_MICROSECONDS = 1e6


def parse_seconds(column: pl.Series) -> tuple[pl.Series, Notes]:
    """Parse a column of durations.

    Parameters
    ----------
    column : polars.Series of str
        Numbers of seconds, or clock times such as ``"1:05"`` and ``"0:01:05"``.

    Returns
    -------
    seconds : polars.Series of float
        Seconds; null where a text cannot be read, or is negative.
    notes : dict of str to str
        A note with the number of texts that cannot be read; empty if there are none.
    """
    text = column.cast(pl.String).str.strip_chars()
    seconds = text.cast(pl.Float64, strict=False)
    if seconds.null_count() > text.null_count():
        parts = pl.DataFrame({"text": text}).select(
            pl.col("text").str.extract(_CLOCK, group).cast(pl.Float64, strict=False).alias(name)
            for group, name in ((1, "hours"), (2, "minutes"), (3, "seconds"))
        )
        clock = parts["hours"].fill_null(0.0) * 3600 + parts["minutes"] * 60 + parts["seconds"]
        seconds = seconds.fill_null(clock)
    seconds = pl.select(pl.when(seconds.is_finite() & (seconds >= 0)).then(seconds)).to_series()
    unread = text.filter(seconds.is_null() & text.is_not_null())
    unread = unread.filter(unread != "")
    if not len(unread):
        return seconds, {}
    message = f"{len(unread)} working time(s) could not be read (such as {unread[0][:40]!r}); they are left out."
    return seconds, {"unparsed_working_times": message}


def seconds_between(begun: pl.Series, submitted: pl.Series) -> pl.Series | None:
    """Seconds between two columns of times.

    Parameters
    ----------
    begun : polars.Series of str
        When a task was begun.
    submitted : polars.Series of str
        When it was submitted.

    Returns
    -------
    polars.Series of float or None
        Seconds, null where a time cannot be read or the task ends before it begins; None if there are none at all.
    """
    start, end = parse_times(begun)[0], parse_times(submitted)[0]
    seconds = (end - start).cast(pl.Float64) / _MICROSECONDS
    seconds = pl.select(pl.when(seconds >= 0).then(seconds)).to_series()
    return seconds if seconds.count() else None


def divide_by_task(seconds: pl.Series | None, *keys: pl.Series) -> pl.Series | None:
    """Divide the time of a task that shows several items by their number.

    Parameters
    ----------
    seconds : polars.Series of float or None
        Seconds of the whole task, for each of its rows.
    *keys : polars.Series
        Columns that are equal for the rows of one task.

    Returns
    -------
    polars.Series of float or None
        Seconds for each row.
    """
    if seconds is None:
        return None
    rows = pl.DataFrame([column.alias(str(at)) for at, column in enumerate(keys)])
    n_rows = rows.select(pl.len().over(rows.columns)).to_series()
    return seconds / n_rows
