"""Refuse jobs that would need more memory than this process may have."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from manyhands.exceptions import LimitError


def check_memory(n_bytes: float, what: str, remedy: str) -> None:
    """Check, before a job starts, that it can have the memory that it needs.

    The limit is the smallest of the machine's memory, the limit of the container (cgroup v1 and v2) and the address
    space that is left to the process (``ulimit -v``). Memory that other processes use is not considered.

    Parameters
    ----------
    n_bytes : float
        Estimated size.
    what : str
        What needs the memory, in the plural, such as "The weights of the network".
    remedy : str
        A sentence that states what to do.

    Raises
    ------
    LimitError
        Where the estimate is above the limit. Nothing is raised where the limit is unknown.
    """
    limit = _memory_limit()
    if limit is not None and n_bytes > limit:
        raise LimitError(f"{what} need about {_gigabytes(n_bytes)}; there are {_gigabytes(limit)}. {remedy}")


def _gigabytes(n_bytes: float) -> str:
    return f"{n_bytes / 1e9:.0f} GB" if n_bytes >= 10e9 else f"{n_bytes / 1e9:.1f} GB"


def _memory_limit() -> int | None:
    """Bytes that this process may have: the smallest limit that is known, or None."""
    limits = []
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        limits.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        with suppress(OSError, ValueError):  # no such file, or it contains the word "max"
            limits.append(int(Path(path).read_text()))
    with suppress(ImportError, OSError, ValueError):
        import resource

        most = resource.getrlimit(resource.RLIMIT_AS)[0]
        if most not in (resource.RLIM_INFINITY, -1):
            limits.append(max(most - _address_space_used(), 0))
    return min(limits, default=None)


def _address_space_used() -> int:
    """Bytes of address space in use; 0 where the system does not report it."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return 0
