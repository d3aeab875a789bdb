"""Tasks on shards in several threads, with results in the order of shards and a bounded number of them in memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from manyhands.em.threads import thread_count
from manyhands.progress import report

R = TypeVar("R")


def run_in_order(job: Callable[[int], R], n_jobs: int, what: str) -> Iterator[R]:
    """Run `job(0)` to `job(n_jobs - 1)` in threads and yield their results in this order.

    At most one job more than there are threads has been started and not yet handed over, so that memory is bounded
    where the caller is slower than the jobs. An error ends the run: it is raised once the jobs under way have ended.

    Parameters
    ----------
    job : callable
        Takes the number of the job.
    n_jobs : int
        Number of jobs.
    what : str
        Name under which progress is reported.

    Yields
    ------
    object
        The results, by number.
    """
    n_threads = min(thread_count(), n_jobs)
    if n_threads <= 1:
        for number in range(n_jobs):
            yield job(number)
            report(number + 1, n_jobs, what)
        return
    # Threads of their own: jobs may use the pool of `em.threads` themselves, and would wait for one another in it.
    with ThreadPoolExecutor(n_threads, thread_name_prefix="manyhands-shard") as pool:
        waiting: deque[Future[R]] = deque()
        try:
            for number in range(n_jobs):
                waiting.append(pool.submit(job, number))
                if len(waiting) > n_threads:
                    yield waiting.popleft().result()
                    report(number - n_threads + 1, n_jobs, what)
            while waiting:
                yield waiting.popleft().result()
                report(n_jobs - len(waiting), n_jobs, what)
        finally:
            for future in waiting:  # after an error, or where the caller stopped early
                future.cancel()
