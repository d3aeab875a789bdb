"""Times of labels: days, weeks, and the seconds between two labels of a worker."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime

import numpy as np
import numpy.typing as npt

from manyhands.report.run import Run

Times = npt.NDArray[np.int64]
DAY = 86_400_000_000  # microseconds
_PAUSE = 600.0  # seconds between two labels that are a pause


def dated(run: Run) -> Times | None:
    """Return the time of each label.

    Parameters
    ----------
    run : Run
        The run.

    Returns
    -------
    ndarray of shape (n_annotations,) of int64 or None
        Microseconds since 1970, negative where unknown; None if no two labels have different known times.
    """
    times = None if run.reading is None else run.reading.times
    if times is None or len(times) != run.annotations.n_annotations:
        return None
    known = times[times >= 0]
    return times if len(known) and known.min() < known.max() else None


def pace(when: Times) -> float:
    """Return the median number of seconds between two labels of a worker, pauses left out.

    Parameters
    ----------
    when : ndarray of int64
        Times of the worker's labels.

    Returns
    -------
    float
        Seconds; NaN with fewer than five gaps that are neither pauses nor zero.
    """
    gaps = np.diff(np.sort(when[when >= 0]).astype(float)) / 1e6
    usual = gaps[(gaps > 0) & (gaps < _PAUSE)]
    return float(np.median(usual)) if len(usual) >= 5 else math.nan


def day_names(times: Sequence[int]) -> list[str]:
    """Return dates as text.

    Parameters
    ----------
    times : sequence of int
        Microseconds since 1970.

    Returns
    -------
    list of str
        Such as ``18 Nov``.
    """
    return [f"{at.day} {at:%b}" for at in (datetime.fromtimestamp(time / 1e6, UTC) for time in times)]
