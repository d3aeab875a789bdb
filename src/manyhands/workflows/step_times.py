"""Seconds and peak memory of the steps of a job."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any


class StepTimes:
    """Seconds of each step, and the largest memory that the process had up to its end.

    Attributes
    ----------
    seconds : dict of str to float
        Seconds by step.
    peak_bytes : dict of str to int
        Peak memory (resident set) of the process up to the end of the step; empty where the system does not state it.
    """

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.peak_bytes: dict[str, int] = {}

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Context manager that measures one step.

        Parameters
        ----------
        name : str
            Name of the step.
        """
        begin = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = round(time.perf_counter() - begin, 3)
            peak = peak_memory()
            if peak is not None:
                self.peak_bytes[name] = peak

    def as_dict(self) -> dict[str, Any]:
        """Return both for JSON.

        Returns
        -------
        dict
            ``seconds`` and ``peak_bytes``.
        """
        return {"seconds": dict(self.seconds), "peak_bytes": dict(self.peak_bytes)}


def peak_memory() -> int | None:
    """Return the largest resident set of this process so far.

    Returns
    -------
    int or None
        Bytes; None where the system does not state it (Windows).
    """
    with suppress(OSError):  # rusage would include the peak of the parent before the fork
        found = re.search(r"^VmHWM:\s+([0-9]+) kB", Path("/proc/self/status").read_text(), re.MULTILINE)
        return None if found is None else int(found[1]) * 1024
    with suppress(ImportError):
        import resource

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024
    return None
