"""Work shared among threads, with results that never depend on how many there are.

MANYHANDS_THREADS bounds the number of threads.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


_PARTS = 4  # pieces of an array; fixed, so that results never depend on the number of threads
_MIN_SPREAD = 1 << 14  # numbers; fewer are done before a second thread has started


def spread(function: Callable[..., Array], x: Array) -> Array:
    """Apply an element-wise function to an array, with large arrays split among the threads.

    Parameters
    ----------
    function : callable
        A NumPy or SciPy function of single numbers that takes `out`.
    x : ndarray
        Its argument.

    Returns
    -------
    ndarray of the shape of `x`
    """
    if x.size < _MIN_SPREAD:
        return function(x)
    result = np.empty_like(x)
    edges = np.linspace(0, len(x), _PARTS + 1).astype(int)

    def part(i: int) -> float:
        function(x[edges[i] : edges[i + 1]], out=result[edges[i] : edges[i + 1]])
        return 0.0

    run_in_threads(part, _PARTS)
    return result


def run_in_threads(job: Callable[[int], float], n_jobs: int) -> list[float]:
    """Run `job(0)` to `job(n_jobs - 1)` in the threads of a pool; the calling thread takes part.

    Parameters
    ----------
    job : callable
        Takes the number of the job and returns a float.
    n_jobs : int
        Number of jobs.

    Returns
    -------
    list of float
        The results, by number.
    """
    results = [0.0] * n_jobs
    todo = deque(range(n_jobs))

    def work() -> None:
        while todo:
            with suppress(IndexError):  # another thread took the last one
                number = todo.popleft()
                results[number] = job(number)

    helpers = [_pool(os.getpid()).submit(work) for _ in range(min(thread_count(), n_jobs) - 1)]
    work()
    for helper in helpers:
        helper.result()
    return results


def thread_count() -> int:
    """Number of threads: MANYHANDS_THREADS where it is set, otherwise the cores this process may use.

    Returns
    -------
    int
    """
    asked = os.environ.get("MANYHANDS_THREADS", "")
    if asked.isdigit() and int(asked) > 0:
        return int(asked)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def _pool(process: int) -> ThreadPoolExecutor:
    """The threads of this process; a forked child has another process number and starts its own."""
    return ThreadPoolExecutor(thread_count(), thread_name_prefix="manyhands")
