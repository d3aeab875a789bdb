"""Findings about memory: what is available, and the limit of the container or process where it is known."""

from __future__ import annotations

import ctypes
import os
import re
import sys
from contextlib import suppress
from pathlib import Path

from manyhands.workflows.finding import Finding

_LITTLE = 1 << 29  # bytes; a small job needs less, but not by much
_NO_LIMIT = 1 << 60  # bytes; version 1 of control groups states no limit as a huge number


def check_memory() -> Finding:
    """Examine the available memory and its limit.

    Returns
    -------
    Finding
        With the key "memory".
    """
    known = {"available": available_bytes(), "in the machine": physical_bytes(), "limit": limit_bytes()}
    numbers = {name: size for name, size in known.items() if size is not None}
    if not numbers:
        return Finding("memory", "note", "could not be determined on this system")
    found = ", ".join(f"{size / (1 << 30):.1f} GiB {name}" for name, size in numbers.items())
    if limit_bytes() is None:
        found += ", no limit known"
    if min(numbers.values()) < _LITTLE:
        return Finding("memory", "note", found, "Close other programs or raise the limit before large jobs.")
    return Finding("memory", "ok", found)


def available_bytes() -> int | None:
    """Return the memory that programs can still get.

    Returns
    -------
    int or None
        Bytes; None where the system does not state it (macOS).
    """
    if sys.platform == "win32":
        return _windows_memory()[1]
    with suppress(OSError):
        match = re.search(r"^MemAvailable:\s*(\d+) kB", Path("/proc/meminfo").read_text(), re.MULTILINE)
        return int(match[1]) * 1024 if match else None
    return None


def physical_bytes() -> int | None:
    """Return the memory of the machine.

    Returns
    -------
    int or None
        Bytes; None where it is unknown.
    """
    if sys.platform == "win32":
        return _windows_memory()[0]
    with suppress(OSError, ValueError):
        size = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        return size if size > 0 else None
    return None


def limit_bytes() -> int | None:
    """Return the smallest limit on the memory of this process: control groups and the address space.

    Returns
    -------
    int or None
        Bytes; None if no limit is known.
    """
    limits = []
    for file in _limit_files():
        with suppress(OSError, ValueError):  # not there, or "max"
            limits.append(int(file.read_text()))
    with suppress(ImportError, OSError, ValueError):
        import resource  # not on Windows

        limits.append(resource.getrlimit(resource.RLIMIT_AS)[0])
    return min((size for size in limits if 0 < size < _NO_LIMIT), default=None)


def _limit_files() -> list[Path]:
    """Return the files that may state a limit: those of this process' control group and all groups around it."""
    root = Path("/sys/fs/cgroup")
    files = [root / "memory.max", root / "memory" / "memory.limit_in_bytes"]
    with suppress(OSError):
        match = re.search(r"^0::/(.*)$", Path("/proc/self/cgroup").read_text(), re.MULTILINE)
        group = Path(match[1]) if match else Path()
        files += [root / part / "memory.max" for part in (group, *group.parents)]
    return files


def _windows_memory() -> tuple[int | None, int | None]:
    """Return the physical and the available memory on Windows (GlobalMemoryStatusEx)."""
    status = (ctypes.c_uint64 * 8)()  # two 32-bit fields (length, load), then total and available
    ctypes.cast(status, ctypes.POINTER(ctypes.c_uint32))[0] = ctypes.sizeof(status)
    done = getattr(ctypes, "windll").kernel32.GlobalMemoryStatusEx(ctypes.byref(status))  # noqa: B009  # Windows only
    return (status[1], status[2]) if done else (None, None)
