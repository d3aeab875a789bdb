"""How fast workers label: the median seconds per label, beside the crowd's, and workers far faster than the crowd.

A worker is *fast* if they are far below the crowd in both of two senses, on the logarithm of seconds: at most a third
of the crowd's median, and three robust standard deviations below it. The crowd is all workers with ten timed labels or
more, each counted once; its median and its median absolute deviation are not moved by a minority of fast ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from manyhands.em.kernels import Array
from manyhands.exceptions import ParameterError
from manyhands.scorecards.leave_one_out import Mask

MIN_TIMED = 10  # labels with a time below which a worker is not compared
MIN_CROWD = 5  # workers with as many below which there is no crowd to compare with
FRACTION = 1 / 3  # of the crowd's median seconds, at most
MIN_Z = 3.0  # robust standard deviations below the crowd's median, at least

_MIN_SPREAD = 0.2  # of log seconds: a crowd in which all are equally fast still varies by chance
_SHORTEST = 0.1  # seconds; shorter times count as this
_MAD_TO_SD = 1.4826  # of a normal distribution


@dataclass(frozen=True, eq=False)
class WorkingTime:
    """Seconds per label of each worker and of the crowd.

    Attributes
    ----------
    n_timed : ndarray of int of shape (n_workers,)
        Number of labels with a time.
    median : ndarray of shape (n_workers,)
        Median seconds per label; NaN without times.
    crowd_median : float
        Median of the workers' medians; NaN without times.
    is_fast : ndarray of bool of shape (n_workers,)
        Workers far faster than the crowd.
    """

    n_timed: npt.NDArray[np.int64]
    median: Array
    crowd_median: float
    is_fast: Mask


def summarise_time(working_time: Mapping[Any, Any] | None, worker_ids: npt.NDArray[Any]) -> WorkingTime:
    """Summarise the seconds per label of each worker, and find those far faster than the crowd.

    Parameters
    ----------
    working_time : mapping of object to sequence of float, or None
        Worker id -> seconds of their labels.
    worker_ids : ndarray of shape (n_workers,)
        Ids of the workers.

    Returns
    -------
    WorkingTime
        The summary.

    Raises
    ------
    ParameterError
        If a time is negative, infinite or not a number, or a worker is not among the ids.
    """
    ids = worker_ids.tolist()
    given = dict(working_time or {})
    unknown = set(given) - set(ids)
    if unknown:
        raise ParameterError(f"working_time names {sorted(map(str, unknown))[0]!r}, who is no worker of these labels.")
    times = [_checked(given.get(worker, ()), worker) for worker in ids]
    n_timed = np.array([len(seconds) for seconds in times], np.int64)
    median = np.array([np.median(seconds) if len(seconds) else np.nan for seconds in times], float)
    log_median = np.log(np.maximum(median, _SHORTEST))
    compared = n_timed >= MIN_TIMED
    is_fast = np.zeros(len(ids), bool)
    crowd_median = float(np.median(median[compared if compared.any() else n_timed > 0])) if n_timed.any() else np.nan
    if compared.sum() >= MIN_CROWD:
        centre = np.median(log_median[compared])
        spread = max(_MAD_TO_SD * float(np.median(np.abs(log_median[compared] - centre))), _MIN_SPREAD)
        is_fast = compared & (log_median <= centre + np.log(FRACTION)) & (log_median <= centre - MIN_Z * spread)
    return WorkingTime(n_timed, median, crowd_median, is_fast)


def _checked(seconds: Any, worker: Any) -> Array:
    values = np.asarray(seconds, float)
    if values.ndim != 1 or not np.all(np.isfinite(values)) or np.any(values < 0):
        raise ParameterError(
            f"working_time of {worker!r} must be a sequence of seconds, each a number of at least 0. Remove the others."
        )
    return values
