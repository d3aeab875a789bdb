"""Findings about folders: real data sets in MANYHANDS_DATA, and the cache of downloads."""

from __future__ import annotations

import os
import tempfile
from importlib import import_module
from pathlib import Path

from manyhands.exceptions import DownloadError
from manyhands.workflows.finding import Finding, Status, shown_path

_DATA, _CACHE = "MANYHANDS_DATA", "MANYHANDS_CACHE"


def check_data() -> Finding:
    """Examine the folder in MANYHANDS_DATA and count the data sets of the catalogue in it.

    Returns
    -------
    Finding
        With the key "data".
    """
    given = os.environ.get(_DATA)
    if not given:
        advice = f"To use datasets.load, let {_DATA} name the folder of the data sets."
        return Finding("data", "note", f"{_DATA} is not set; only real data sets need it", advice)
    folder = Path(given)
    if not folder.is_dir():
        found = f"{_DATA} is {shown_path(folder)}, which is not a folder"
        return Finding("data", "problem", found, f"Let {_DATA} name the folder of the data sets, or unset it.")
    names = import_module("manyhands.datasets.catalog").names()
    n_found = sum((folder / name).is_dir() for name in names)
    found = f"{n_found} of {len(names)} known data sets in {shown_path(folder)} ({_DATA})"
    if not n_found:
        advice = f"Let {_DATA} name the folder that has a folder for each data set, such as {names[0]}, or unset it."
        return Finding("data", "problem", found, advice)
    return Finding("data", "ok", found)


def check_cache() -> Finding:
    """Examine whether downloads can be stored; no folder is created for it.

    Returns
    -------
    Finding
        With the key "cache". Without MANYHANDS_CACHE, a folder that cannot be written to is a note only: nothing but
        `datasets.fetch` needs it.
    """
    advice = f"To download data sets, let {_CACHE} name a folder that can be written to."
    status: Status = "problem" if os.environ.get(_CACHE) else "note"
    try:
        folder = import_module("manyhands.datasets.fetching").cache_folder()
    except DownloadError:
        return Finding("cache", "note", "there is no home folder to store downloads in", advice)
    try:
        _try_to_write(folder)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        found = f"{shown_path(folder)} cannot be written to ({reason}); only downloads need it"
        return Finding("cache", status, found, advice)
    return Finding("cache", "ok", f"downloads are stored in {shown_path(folder)}, which can be written to")


def _try_to_write(folder: Path) -> None:
    """Create a temporary file in a folder, or in the nearest one around it that exists; it is removed at once."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    with tempfile.TemporaryFile(dir=folder) as file:
        file.write(b"x")
