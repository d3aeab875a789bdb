"""How much memory there is, and how much a process took; None where the system does not say."""

from __future__ import annotations

import re
import sys
from pathlib import Path

_GROUP = Path("/sys/fs/cgroup")


def free_mb() -> float | None:
    """What can still be used: of the machine, or of the group that this process is confined to."""
    free = _figure(Path("/proc/meminfo"), "MemAvailable")
    try:
        limit = float((_GROUP / "memory.max").read_text())  # "max" is no number
        group = (limit - float((_GROUP / "memory.current").read_text())) / 2**20
    except (OSError, ValueError):
        return free
    return group if free is None else min(free, group)


def peak_mb() -> float | None:
    """The most memory that this process ever held."""
    peak = _figure(Path("/proc/self/status"), "VmHWM")  # rusage would count that of whoever started us
    if peak is None and sys.platform == "darwin":
        import resource

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return None if peak is None else round(peak, 1)


def _figure(path: Path, name: str) -> float | None:
    """A line "name:  123 kB" of a file of the system, in MB."""
    try:
        found = re.search(rf"^{name}:\s+([0-9]+) kB", path.read_text(), re.MULTILINE)
    except OSError:
        return None
    return None if found is None else int(found[1]) / 1024
