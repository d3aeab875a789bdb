"""The folder of code folders: where it is, what it holds, and removal of what is not needed any more."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from manyhands.exceptions import OutputExistsError
from manyhands.sharded.code_writer import HEADER
from manyhands.writing.locks import held

PASSES = "passes"  # folder of the records of finished passes of runs that did not end, in the cache
_KEY = re.compile(r"[0-9a-f]{32}")
_LEFTOVER = re.compile(r"([0-9a-f]{32})\.(part|spill|removed)")
_LOCK = re.compile(r"[0-9a-f]{32}(\.reading)?\.lock")


@dataclass(frozen=True)
class CacheEntry:
    """A code folder of the cache, or the records of the passes of a run that did not end.

    Attributes
    ----------
    path : Path
        The folder.
    n_bytes : int
        Bytes on disk.
    last_used : float
        Time of the last use, in seconds since 1970.
    """

    path: Path
    n_bytes: int
    last_used: float


def cache_entries(cache: str | Path) -> list[CacheEntry]:
    """List the code folders of a cache and the records of runs that did not end, the last used first.

    Parameters
    ----------
    cache : str or Path
        The cache folder.

    Returns
    -------
    list of CacheEntry
    """
    found = []
    folders = [path for path in _folders(Path(cache)) if (path / HEADER).is_file()]
    for path in [*folders, *_folders(Path(cache) / PASSES)]:
        if _KEY.fullmatch(path.name):
            with suppress(FileNotFoundError):  # another process removes it now
                sizes = [file.stat().st_size for file in path.iterdir()]
                found.append(CacheEntry(path, sum(sizes), path.stat().st_mtime))
    return sorted(found, key=lambda entry: -entry.last_used)


def remove_entries(cache: str | Path, *, keep: int = 0) -> int:
    """Remove the entries that were not used for the longest time; the next run on their files writes them again.

    Records of a run that goes on now stay. A run that reads a code folder now ends with an error where it is removed.

    Parameters
    ----------
    cache : str or Path
        The cache folder.
    keep : int, default=0
        Bytes that may stay; 0 removes all.

    Returns
    -------
    int
        Bytes that were removed.
    """
    place = Path(cache)
    remove_leftovers(place)
    kept = removed = 0
    for entry in cache_entries(place):
        kept += entry.n_bytes
        if kept > keep:
            kept -= entry.n_bytes
            with suppress(OutputExistsError), held(entry.path.with_name(f"{entry.path.name}.lock"), entry.path):
                gone = entry.path.with_name(f"{entry.path.name}.removed")
                entry.path.rename(gone)  # half a folder is never found under its name
                shutil.rmtree(gone, ignore_errors=True)
                removed += entry.n_bytes
    return removed


def mark_used(folder: Path) -> None:
    """Note that a code folder is used now.

    Parameters
    ----------
    folder : Path
        The folder.
    """
    with suppress(OSError):  # of another user
        os.utime(folder)


def spill_path(folder: Path) -> Path:
    """Return the file to which rows are written before they become the code folder.

    Parameters
    ----------
    folder : Path
        The code folder.

    Returns
    -------
    Path
    """
    return folder.with_name(f"{folder.name}.spill")


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Context manager that lets one process at a time write a code folder; others wait for it.

    Parameters
    ----------
    folder : Path
        The code folder.
    """
    with held(_lock(folder.parent, folder.name), folder, wait=float("inf")):
        yield


def remove_leftovers(cache: Path) -> None:
    """Remove what killed processes left in a cache; what a process is writing stays.

    Parameters
    ----------
    cache : Path
        The cache folder.
    """
    for path in _folders(cache):
        found = _LEFTOVER.fullmatch(path.name)
        if found is not None:
            with suppress(OutputExistsError), held(_lock(cache, found[1]), path):
                if path.is_dir():
                    shutil.rmtree(path, ignore_errors=True)
                else:
                    path.unlink(missing_ok=True)
        elif _LOCK.fullmatch(path.name):
            with suppress(OutputExistsError), held(path, path):
                pass  # the lock of a process that has ended is removed with this one


def _lock(cache: Path, key: str) -> Path:
    """The lock of an entry."""
    return cache / f"{key}.reading.lock"


def _folders(cache: Path) -> list[Path]:
    """What is in the cache; nothing where there is none."""
    return sorted(cache.iterdir()) if cache.is_dir() else []
