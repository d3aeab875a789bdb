"""Result rows on disk: one JSON line per finished cell; lines that a kill left incomplete are ignored and counted."""

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
    """Rows of a file.

    Attributes
    ----------
    by_key : mapping of str to dict, default={}
        The last row of each key.
    n_torn : int, default=0
        Number of incomplete lines.
    """

    by_key: Mapping[str, Record] = field(default_factory=dict)
    n_torn: int = 0

    def find(self, key: str) -> Record | None:
        """Return the row of a cell.

        Parameters
        ----------
        key : str
            `Cell.key`.

        Returns
        -------
        dict or None
            None if the cell was not measured.
        """
        return self.by_key.get(key)


def read_records(path: str | Path) -> Records:
    """Read all complete lines of a file.

    Parameters
    ----------
    path : str or Path
        The file; it need not exist.

    Returns
    -------
    Records
        Its rows.
    """
    try:
        lines = Path(path).read_bytes().split(b"\n")
    except FileNotFoundError:
        return Records()
    parsed = [_parsed(line) for line in lines if line.strip()]
    whole = [record for record in parsed if record is not None]
    return Records({record["key"]: record for record in whole}, len(parsed) - len(whole))


def _parsed(line: bytes) -> Record | None:
    """Return a row, None if the line is not one."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):  # incomplete, not text, or nested too deep
        return None
    return record if isinstance(record, dict) and _is_cell(record) else None


def _is_cell(record: dict[str, Any]) -> bool:
    """Return whether a line has either numeric metrics or an error, and series of numbers if any."""
    figures, peak = record.get("metrics"), record.get("peak_mb")
    numbers = isinstance(figures, dict) and all(_is_number(value) for value in figures.values())
    has_result = numbers if "metrics" in record else isinstance(record.get("error"), str)
    return (
        has_result
        and isinstance(record.get("key"), str)
        and ("error" in record) != ("metrics" in record)
        and _is_number(peak)
        and _are_series(record.get("series", {}))
    )


def _are_series(found: Any) -> bool:
    """Return whether a value has lists of numbers, or lists of such lists, or null, by name."""
    return isinstance(found, dict) and all(
        one is None or (isinstance(one, list) and all(map(_is_point, one))) for one in found.values()
    )


def _is_point(value: Any) -> bool:
    """Return whether a value is a number, null, or a list of them."""
    return all(map(_is_number, value)) if isinstance(value, list) else _is_number(value)


def _is_number(value: Any) -> bool:
    """Return whether a value is a number or null."""
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


@contextmanager
def appending(path: str | Path) -> Iterator[Callable[[Record], None]]:
    """Lock a file of rows while the block runs; each row is on disk when the function that is yielded returns.

    The lock ends with the process that holds it, however that ends.

    Parameters
    ----------
    path : str or Path
        The file; it and its folder are made.

    Yields
    ------
    callable
        Appends one row.

    Raises
    ------
    OutputExistsError
        If another process holds the file.
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
    """Write one row and wait until it is on disk."""
    line = json.dumps(record, ensure_ascii=True, allow_nan=False).encode() + b"\n"
    try:
        while line:
            line = line[os.write(descriptor, line) :]
        os.fsync(descriptor)
    except OSError as error:  # the error of a descriptor does not name its file
        raise OSError(error.errno, error.strerror, str(path)) from None


def _end_torn_line(descriptor: int) -> None:
    """End an incomplete last line, so that the next row is not appended to it."""
    size = os.lseek(descriptor, 0, os.SEEK_END)
    if size:
        os.lseek(descriptor, size - 1, os.SEEK_SET)
        if os.read(descriptor, 1) != b"\n":
            os.write(descriptor, b"\n")
