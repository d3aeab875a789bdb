"""Manifest: which files of a folder belong to which run, with their sizes and checksums.

`manifest.json` is the last file of a run to be moved into place. While a run writes, or after it was killed, the
manifest and the files do not match, and `verify_folder` reports it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import NamedTuple

from manyhands.exceptions import OutputExistsError, ParameterError
from manyhands.writing.staged_files import Digest, digest_of_file
from manyhands.writing.staging import checksum

MANIFEST = "manifest.json"
SCHEMA = 2
_AGAIN = "Run the command that writes it again, with --force."


class Entry(NamedTuple):
    """One file of a manifest.

    Attributes
    ----------
    run : str
        Id of its run.
    size : int
        Size in bytes.
    sha256 : str
        Checksum.
    """

    run: str
    size: int
    sha256: str


def make_manifest(folder: Path, files: Mapping[str, Digest]) -> tuple[bytes, list[str]]:
    """The manifest of `files` and of other runs in the folder.

    The id of a run is a checksum of its files, so that the same run gives the same manifest.

    Parameters
    ----------
    folder : Path
        The folder, whose present manifest is read.
    files : mapping of str to Digest
        Size and checksum of each new file by its name.

    Returns
    -------
    manifest : bytes
        Content of the new manifest.
    stale : list of str
        Files of a replaced run that are not replaced and stay in the folder.
    """
    sums = {name: digest.sha256 for name, digest in files.items()}
    run = checksum(json.dumps(sums, sort_keys=True).encode())[:16]
    before = _own_manifest(folder) or {}
    replaced = {entry.run for name, entry in before.items() if name in files}
    kept = {name: entry for name, entry in before.items() if entry.run not in replaced}
    entries = kept | {name: Entry(run, *digest) for name, digest in files.items()}
    parsed = {"schema": SCHEMA, "files": {name: entry._asdict() for name, entry in sorted(entries.items())}}
    stale = [name for name in before if name not in entries and (folder / name).is_file()]
    return (json.dumps(parsed, indent=1) + "\n").encode(), stale


def refuse_foreign_manifest(folder: Path) -> None:
    """Refuse to replace a manifest.json that manyhands did not write.

    Parameters
    ----------
    folder : Path
        The folder.

    Raises
    ------
    OutputExistsError
        Where there is one.
    """
    if os.path.lexists(folder / MANIFEST) and _own_manifest(folder) is None:
        raise OutputExistsError(
            f"{folder} already has {MANIFEST}, which this version of manyhands did not write. Add --force to replace "
            "it, or give another folder."
        )


def read_manifest(folder: str | Path) -> dict[str, Entry]:
    """The entries of a folder's manifest by file name.

    Parameters
    ----------
    folder : str or Path
        A folder that manyhands wrote.

    Returns
    -------
    dict of str to Entry

    Raises
    ------
    ParameterError
        Where there is no manifest, or it cannot be read.
    """
    path = Path(folder) / MANIFEST
    if not path.is_file():
        raise ParameterError(
            f"{folder} has no {MANIFEST}: manyhands did not write this folder, or was killed while it wrote. {_AGAIN}"
        )
    try:
        parsed = json.loads(path.read_bytes())
        if (schema := parsed["schema"]) == SCHEMA:
            return {str(name): Entry(str(e["run"]), int(e["size"]), str(e["sha256"])) for name, e in _items(parsed)}
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError, OverflowError):
        raise ParameterError(
            f"{path} cannot be read: it is truncated, or not a manifest of manyhands. {_AGAIN}"
        ) from None
    raise ParameterError(f"{path} has the schema {str(schema)[:20]}; this version reads {SCHEMA}. {_AGAIN}")


def _items(parsed: dict[str, dict[str, dict[str, str]]]) -> list[tuple[str, dict[str, str]]]:
    """Names and entries of a parsed manifest; names of files in other folders are refused."""
    odd = [name for name in parsed["files"] if Path(name).name != name]
    if odd:
        raise ValueError("a manifest names files of its own folder only")
    return list(parsed["files"].items())


def verify_folder(folder: str | Path, names: Collection[str] | None = None) -> list[str]:
    """Check that the files of a folder are those of its manifest, complete and of the same run.

    Parameters
    ----------
    folder : str or Path
        A folder that a command of manyhands wrote with ``-o``.
    names : collection of str, default=None
        The files that must be there and must come from one run; None checks all that the manifest names.

    Returns
    -------
    list of str
        The files that were checked.

    Raises
    ------
    ParameterError
        Where a file is missing, truncated, changed, or of another run than the others.
    """
    folder, entries = Path(folder), read_manifest(folder)
    wanted = list(entries if names is None else names)
    for name in wanted:
        if name not in entries or not (folder / name).is_file():
            raise ParameterError(f"{folder} is incomplete: {name} is missing. {_AGAIN}")
        if digest_of_file(folder / name) != entries[name][1:]:
            raise ParameterError(
                f"{folder / name} is not the file that {MANIFEST} names: a run was killed while it wrote, or the file "
                f"was truncated or changed. {_AGAIN}"
            )
    if names is not None and len({entries[name].run for name in wanted}) > 1:
        raise ParameterError(
            f"{folder} has {', '.join(wanted)} of several runs, which do not belong together. {_AGAIN}"
        )
    return wanted


def _own_manifest(folder: Path) -> dict[str, Entry] | None:
    """The entries of a manifest written by manyhands; None where there is none, or it is foreign or a link."""
    if (folder / MANIFEST).is_symlink():
        return None
    try:
        return read_manifest(folder)
    except (ParameterError, OSError):
        return None
