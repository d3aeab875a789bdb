"""Finished cells on disk: one JSON line each, appended whole; what a kill cut off is ignored and counted."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from manyhands.exceptions import OutputExistsError

Record = dict[str, Any]


@dataclass(frozen=True)
class Records:
    """What a file of results holds: the last line of each key, and how many lines were torn."""

    by_key: Mapping[str, Record] = field(default_factory=dict)
    n_torn: int = 0

    def find(self, key: str) -> Record | None:
        return self.by_key.get(key)


def read_records(path: str | Path) -> Records:
    """All lines of a file that are whole; none if there is no file."""
    try:
        lines = Path(path).read_bytes().split(b"\n")
    except FileNotFoundError:
        return Records()
    parsed = [_parsed(line) for line in lines if line.strip()]
    whole = [record for record in parsed if record is not None]
    return Records({record["key"]: record for record in whole}, len(parsed) - len(whole))


def _parsed(line: bytes) -> Record | None:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):  # cut off, not text, or nested as no cell is
        return None
    return record if isinstance(record, dict) and _is_cell(record) else None


def _is_cell(record: dict[str, Any]) -> bool:
    """Whether a line says what a cell gave, in numbers, or why it gave nothing."""
    figures, peak = record.get("metrics"), record.get("peak_mb")
    numbers = isinstance(figures, dict) and all(_is_number(value) for value in figures.values())
    gave = numbers if "metrics" in record else isinstance(record.get("error"), str)
    return (
        gave
        and isinstance(record.get("key"), str)
        and ("error" in record) != ("metrics" in record)
        and _is_number(peak)
    )


def _is_number(value: Any) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


@contextmanager
def appending(path: str | Path) -> Iterator[Callable[[Record], None]]:
    """Hold a file of results alone; what is given to the function inside the block is on disk when it returns.

    The lock is the system's, on the file itself: it ends with the process that holds it, however that ends.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o666)
    try:
        if not _lock(descriptor):
            raise OutputExistsError(
                f"Another run is writing {path}. Wait for it to end, or give another folder with --out."
            )
        _end_torn_line(descriptor)
        yield lambda record: _append(descriptor, record)
    finally:
        os.close(descriptor)


def _append(descriptor: int, record: Record) -> None:
    line = json.dumps(record, ensure_ascii=True, allow_nan=False).encode() + b"\n"
    while line:
        line = line[os.write(descriptor, line) :]
    os.fsync(descriptor)


def _end_torn_line(descriptor: int) -> None:
    """What a kill cut off must not swallow the next line."""
    size = os.lseek(descriptor, 0, os.SEEK_END)
    if size:
        os.lseek(descriptor, size - 1, os.SEEK_SET)
        if os.read(descriptor, 1) != b"\n":
            os.write(descriptor, b"\n")


if sys.platform == "win32":
    import msvcrt

    def _lock(descriptor: int) -> bool:
        os.lseek(descriptor, 1 << 40, os.SEEK_SET)  # beyond what is written: there, a locked byte cannot be read
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:
    import fcntl

    def _lock(descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
