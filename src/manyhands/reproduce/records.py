"""Finished cells on disk: one JSON line each, appended whole; what a kill cut off is ignored and counted."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from manyhands.exceptions import ParameterError
from manyhands.writing.locks import held

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

    The lock ends with the process that holds it, however that ends.
    """
    path = Path(path)
    if path.is_symlink() and not path.exists():
        raise ParameterError(f"{path} is a symbolic link that points to nothing. Remove it, or give another folder.")
    path.parent.mkdir(parents=True, exist_ok=True)
    with held(path.with_name(f".{path.name}.lock"), path):
        descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o666)
        try:
            _end_torn_line(descriptor)
            yield lambda record: _append(descriptor, record, path)
        finally:
            os.close(descriptor)


def _append(descriptor: int, record: Record, path: Path) -> None:
    line = json.dumps(record, ensure_ascii=True, allow_nan=False).encode() + b"\n"
    try:
        while line:
            line = line[os.write(descriptor, line) :]
        os.fsync(descriptor)
    except OSError as error:  # of a descriptor, the system does not say which file it is
        raise OSError(error.errno, error.strerror, str(path)) from None


def _end_torn_line(descriptor: int) -> None:
    """What a kill cut off must not swallow the next line."""
    size = os.lseek(descriptor, 0, os.SEEK_END)
    if size:
        os.lseek(descriptor, size - 1, os.SEEK_SET)
        if os.read(descriptor, 1) != b"\n":
            os.write(descriptor, b"\n")
