"""Memory of the machine and of this process, seconds and peak memory of a job's steps, files read within limits."""

from __future__ import annotations

import ctypes
import json
import os
import re
import sys
import time
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from manyhands.exceptions import LimitError, ParameterError

# ----------------------------------------------------------------------------------------------------
# Memory, in bytes: of the machine, of the limits on this process, what can still be had, and the peak so far.
#
# A function returns None where the system does not report the number.

_GROUPS = Path("/sys/fs/cgroup")
_SMALL = 1 << 20  # bytes; to ask for the limits takes longer than a job that needs less
_NO_LIMIT = 1 << 60  # bytes; version 1 of control groups states no limit as a huge number
_LIMIT_FILES = {  # file with the limit of a control group -> its use, and the name of its reclaimable cache
    "memory.max": ("memory.current", "inactive_file"),  # version 2
    "memory.limit_in_bytes": ("memory.usage_in_bytes", "total_inactive_file"),  # version 1
}


def physical_bytes() -> int | None:
    """Return the memory of the machine."""
    if sys.platform == "win32":
        return _windows_memory()[0]
    with suppress(OSError, ValueError):
        size = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        return size if size > 0 else None
    return None


def limit_bytes() -> int | None:
    """Return the smallest limit on this process: of control groups, the address space and the private memory."""
    limits = [limit for limit, _ in _group_limits()] + [limit for limit, _ in _process_limits()]
    return min(limits, default=None)


def available_bytes() -> int | None:
    """Return the memory that this process can still get: of the machine, and within each limit."""
    free = _windows_memory()[1] if sys.platform == "win32" else _kilobytes(Path("/proc/meminfo"), "MemAvailable")
    rooms = [max(limit - used, 0) for limit, used in (*_group_limits(), *_process_limits())]
    return min([*rooms, *([] if free is None else [free])], default=None)


def peak_bytes() -> int | None:
    """Return the largest resident set of this process so far."""
    if Path("/proc/self/status").exists():  # rusage would include the peak of the parent before the fork
        return _kilobytes(Path("/proc/self/status"), "VmHWM")
    with suppress(ImportError):
        import resource  # not on Windows

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024
    return None


def check_memory(n_bytes: float, what: str, remedy: str) -> None:
    """Check, before a job starts, that it can have the memory that it needs.

    The limit is the smallest of the machine's memory, the limits of the container (cgroup v1 and v2) and what is left
    of the limits on the process (``ulimit -v``, ``ulimit -d``). Memory that other processes use is not considered:
    they may end.
    """
    if n_bytes < _SMALL:
        return
    limits = [limit for limit, _ in _group_limits()] + [max(limit - used, 0) for limit, used in _process_limits()]
    machine = physical_bytes()
    most = min([*limits, *([] if machine is None else [machine])], default=None)
    if most is not None and n_bytes > most:
        raise LimitError(f"{what} need about {_gigabytes(n_bytes)}; there are {_gigabytes(most)}. {remedy}")


def _gigabytes(n_bytes: float) -> str:
    return f"{n_bytes / 1e9:.0f} GB" if n_bytes >= 10e9 else f"{n_bytes / 1e9:.1f} GB"


def _group_limits() -> list[tuple[int, int]]:
    """The limit and the use of this process' control group and of all groups around it, where they have a limit.

    Cached pages of files do not count as used: the system gives them back before it refuses memory.
    """
    limits = []
    for folder in _group_folders():
        for name, (use, cache) in _LIMIT_FILES.items():
            limit = _number(folder / name, r"\A(\d+)$")  # "max" is no limit
            if limit is not None and 0 < limit < _NO_LIMIT:
                used = _number(folder / use, r"\A(\d+)$") or 0
                limits.append((limit, max(used - (_number(folder / "memory.stat", rf"^{cache} (\d+)$") or 0), 0)))
    return limits


def _group_folders() -> list[Path]:
    """The folders that may state a limit: the roots of both versions, and the groups of this process in version 2."""
    folders = [_GROUPS, _GROUPS / "memory"]
    with suppress(OSError):
        match = re.search(r"^0::/(.+)$", Path("/proc/self/cgroup").read_text(encoding="utf-8"), re.MULTILINE)
        group = Path(match[1]) if match else Path()
        folders += [_GROUPS / part for part in (group, *group.parents) if part != Path()]
    return folders


def _process_limits() -> list[tuple[int, int]]:
    """The limits on the address space and on the private memory of this process, and what it uses of them.

    Private memory counts as unused (``ulimit -d``): most of what the system counts is stacks of threads that are
    reserved and never touched.
    """
    limits = []
    with suppress(ImportError, OSError, ValueError):
        import resource  # not on Windows

        pages = _number(Path("/proc/self/statm"), r"\A(\d+) ") or 0
        for kind, used in ((resource.RLIMIT_AS, pages * os.sysconf("SC_PAGE_SIZE")), (resource.RLIMIT_DATA, 0)):
            most = resource.getrlimit(kind)[0]
            if 0 < most < _NO_LIMIT:  # no limit is -1 or the largest number
                limits.append((most, used))
    return limits


def _kilobytes(path: Path, name: str) -> int | None:
    """Return the number of a line "name:  123 kB" of a system file, in bytes."""
    number = _number(path, rf"^{name}:\s+(\d+) kB")
    return None if number is None else number * 1024


def _number(path: Path, pattern: str) -> int | None:
    """Return the number that a pattern finds in a system file; None where there is no such file or number."""
    try:
        match = re.search(pattern, path.read_text(encoding="utf-8"), re.MULTILINE)
    except OSError:
        return None
    return None if match is None else int(match[1])


def _windows_memory() -> tuple[int | None, int | None]:
    """Return the physical and the available memory on Windows (GlobalMemoryStatusEx)."""
    status = (ctypes.c_uint64 * 8)()  # two 32-bit fields (length, load), then total and available
    ctypes.cast(status, ctypes.POINTER(ctypes.c_uint32))[0] = ctypes.sizeof(status)
    done = getattr(ctypes, "windll").kernel32.GlobalMemoryStatusEx(ctypes.byref(status))  # noqa: B009  # Windows only
    return (status[1], status[2]) if done else (None, None)


# ----------------------------------------------------------------------------------------------------
# Seconds and peak memory of the steps of a job.


class StepTimes:
    """Seconds of each step, and the largest memory that the process had up to its end."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.peak_bytes: dict[str, int] = {}

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Context manager that measures one step."""
        begin = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = round(time.perf_counter() - begin, 3)
            peak = peak_bytes()
            if peak is not None:
                self.peak_bytes[name] = peak

    def as_dict(self) -> dict[str, Any]:
        """Return both for JSON."""
        return {"seconds": dict(self.seconds), "peak_bytes": dict(self.peak_bytes)}


# ----------------------------------------------------------------------------------------------------
# Files that hold options or a model, read whole within a limit; TOML of limited depth.
#
# Sizes are checked before anything is read: a sparse file of gigabytes takes no space on disk, and whoever sends a
# model or a file of options can make one.

MAX_OPTIONS = 1 << 20  # bytes of a file of options; a file with every option of every command has under 10 kB
_MAX_TENSOR_HEADER = 100_000_000  # bytes; the limit of safetensors itself
_MOST_DOTS = 50  # in one key; Python's parser takes minutes for thousands
_DEEPEST = 20  # lists and tables within each other
_FLATTER = f"Use at most {_DEEPEST} lists and tables within each other."
_MOST_BITS = 10_000  # of a whole number: Python writes no number of more than 4300 digits


def read_limited(path: str | Path, most: int) -> bytes:
    """Read a file of at most `most` bytes; a larger one is refused before it is read."""
    with Path(path).open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size <= most:
            content = file.read(most + 1)  # a device states no size, and a file may grow
            if len(content) <= most:
                return content
            size = len(content)
    raise LimitError(
        f"{path} has {_megabytes(size)}; at most {_megabytes(most)} are read. Give the file that was meant."
    )


def read_tensors(path: str | Path) -> bytes:
    """Read a safetensors file if it is exactly as long as its header says, and fits into memory with its arrays."""
    with Path(path).open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        length = int.from_bytes(file.read(8), "little")
        if length > min(size - 8, _MAX_TENSOR_HEADER):
            raise ValueError(f"{Path(path).name} is cut off, or has no header")
        header = json.loads(file.read(length))
        ends = [one["data_offsets"][1] for name, one in header.items() if name != "__metadata__"]
        stated = 8 + length + max(ends, default=0)
        if stated != size:
            raise ValueError(f"{Path(path).name} has {size:,} bytes, and its header describes {stated:,}")
        check_memory(2 * size, f"The arrays of {path}", "Load it on a machine with more memory.")  # and their copies
        file.seek(0)
        return file.read(size)


def _megabytes(n_bytes: int) -> str:
    return f"{n_bytes / 1e9:,.1f} GB" if n_bytes >= 1e9 else f"{n_bytes / 1e6:,.1f} MB"


def parse_toml(text: str, name: str) -> dict[str, Any]:
    """Parse TOML of limited size and depth; beyond it, Python's parser is slow or fails with a traceback.

    `name` is how error messages name the document, such as ``"The table iced/table-2"``.
    """
    if len(text) > MAX_OPTIONS:
        raise ParameterError(f"{name} has {len(text):,} characters; at most {MAX_OPTIONS:,} are read.")
    if any(part.count(".") > _MOST_DOTS for part in re.split(r"[=\[\]{},#\n]", text)):
        raise ParameterError(f"{name} is nested too deep. {_FLATTER}")
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ParameterError(f"{name} is not TOML: {error}.") from None
    except RecursionError:
        raise ParameterError(f"{name} is nested too deep. {_FLATTER}") from None
    except (ValueError, OverflowError):  # Python does not read integers of thousands of digits
        raise ParameterError(f"{name} has a number with too many digits. Write fewer.") from None
    if any(isinstance(value, int) and value.bit_length() > _MOST_BITS for value in _values(table, name)):
        raise ParameterError(f"{name} has a number with too many digits. Write fewer.")  # hexadecimal, say
    return table


def _values(table: dict[str, Any], name: str) -> Iterator[Any]:
    """Yield every value within the tables and lists of a document; those that are nested too deep are refused."""
    level: list[Any] = [table]
    for _ in range(_DEEPEST + 1):
        inside = [value for part in level for value in (part.values() if isinstance(part, dict) else part)]
        yield from inside
        level = [value for value in inside if isinstance(value, dict | list)]
        if not level:
            return
    raise ParameterError(f"{name} is nested too deep. {_FLATTER}")
