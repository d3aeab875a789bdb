"""Free memory of the machine and peak memory of this process; None where the system does not report it."""

from __future__ import annotations

import re
import sys
from pathlib import Path

_GROUP = Path("/sys/fs/cgroup")


def free_mb() -> float | None:
    """Return the memory that can still be used, of the machine or of the control group of this process.

    Returns
    -------
    float or None
        Megabytes.
    """
    free = _figure(Path("/proc/meminfo"), "MemAvailable")
    try:
        limit = float((_GROUP / "memory.max").read_text())  # "max" is not a number
        group = (limit - float((_GROUP / "memory.current").read_text())) / 2**20
    except (OSError, ValueError):
        return free
    return group if free is None else min(free, group)


def peak_mb() -> float | None:
    """Return the peak memory of this process.

    Returns
    -------
    float or None
        Megabytes, with one decimal.
    """
    peak = _figure(Path("/proc/self/status"), "VmHWM")  # rusage includes that of the parent before the fork
    if peak is None and sys.platform == "darwin":
        import resource

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return None if peak is None else round(peak, 1)


def _figure(path: Path, name: str) -> float | None:
    """Return the number of a line "name:  123 kB" of a system file, in megabytes."""
    try:
        found = re.search(rf"^{name}:\s+([0-9]+) kB", path.read_text(), re.MULTILINE)
    except OSError:
        return None
    return None if found is None else int(found[1]) / 1024
