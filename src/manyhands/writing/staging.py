"""Staging: files are written to a temporary folder and moved into place once all of them are on disk.

A journal is written with them. A run that is killed before the first file is moved leaves everything unchanged; one
that is killed later leaves a mixed set, which the next run completes from the journal.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from manyhands.writing.staged_files import NEW, Digest, StagedFiles, digest_of, digest_of_file, make_temporary, naming

_JOURNAL = ".journal"


def checksum(content: bytes) -> str:
    """SHA-256 of a content, in hexadecimal digits.

    Parameters
    ----------
    content : bytes
        The content.

    Returns
    -------
    str
    """
    return digest_of(content).sha256


def place(folder: Path, key: str, files: Mapping[str, bytes], staged: StagedFiles | None = None) -> None:
    """Write files into a folder, replacing existing ones; the lock of `key` must be held.

    An interruption by the keyboard while files are moved takes effect once all of them are moved.

    Parameters
    ----------
    folder : Path
        The folder.
    key : str
        Key in the name of the temporary folder.
    files : mapping of str to bytes
        The content of each file by its name.
    staged : StagedFiles or None, default=None
        Further files of the set, which were written to their temporary folder already; they are moved first.
    """
    staging = make_temporary(folder, key) if staged is None else staged.path
    digests: dict[str, Digest] = {} if staged is None else dict(staged.digests)
    moving = False
    try:
        for name, content in files.items():
            _write_through(staging / name, content, folder / name)
            digests[name] = digest_of(content)
        if len(digests) > 1:
            journal = {name: digest.sha256 for name, digest in digests.items()}
            _write_through(staging / _JOURNAL, json.dumps(journal).encode(), folder)
            _sync(staging)
        moving = True
        try:
            _move(staging, folder, digests)
        except KeyboardInterrupt:
            _move(staging, folder, digests)
            raise
        finally:
            moving = any((staging / name).exists() for name in digests)
        _sync(folder)
    finally:
        if not moving:  # otherwise the next run completes it
            shutil.rmtree(staging, ignore_errors=True)


def recover(folder: Path, key: str) -> None:
    """Complete what killed runs had begun to move into place, and remove the rest; the lock must be held.

    Parameters
    ----------
    folder : Path
        The folder.
    key : str
        Key in the name of the temporary folders.
    """
    for staging in _leftovers(folder, key):
        journal = _journal(staging)
        if journal and _is_begun(staging, folder, journal):
            _move(staging, folder, journal)
            _sync(folder)
        shutil.rmtree(staging, ignore_errors=True)


def _write_through(path: Path, content: bytes, shown: Path) -> None:
    """Write a new file and wait for the disk; an error names the final file."""
    with naming(shown), open(os.open(path, NEW, 0o666), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _move(staging: Path, folder: Path, names: Iterable[str]) -> None:
    """Move files into place, skipping those already moved."""
    for name in names:
        with suppress(FileNotFoundError):  # it has been moved already
            os.replace(staging / name, folder / name)


def _sync(folder: Path) -> None:
    """Flush the folder to disk, where the system supports it, so that the new names survive a power failure."""
    if hasattr(os, "O_DIRECTORY"):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            with suppress(OSError):  # some network file systems cannot
                os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _leftovers(folder: Path, key: str) -> Iterator[Path]:
    """The temporary folders of killed runs of this user; those of other users are ignored for security."""
    name = re.compile(rf"\.{re.escape(key)}-[0-9a-f]{{16}}\.tmp")
    with suppress(OSError):
        for path in sorted(folder.iterdir()):
            if name.fullmatch(path.name):
                status = path.lstat()
                if stat.S_ISDIR(status.st_mode) and (sys.platform == "win32" or status.st_uid == os.geteuid()):
                    yield path


def _journal(staging: Path) -> dict[str, str]:
    """Names and checksums of a set; empty where the journal is missing or incomplete."""
    try:
        parsed = json.loads((staging / _JOURNAL).read_bytes())
        return {str(name): str(value) for name, value in parsed.items() if Path(name).name == name}
    except (OSError, ValueError, AttributeError, RecursionError):
        return {}


def _is_begun(staging: Path, folder: Path, journal: Mapping[str, str]) -> bool:
    """Whether some of the files were moved, and all still have their checksums."""
    moved = [name for name in journal if not (staging / name).exists()]
    try:
        return bool(moved) and all(
            digest_of_file((folder if name in moved else staging) / name).sha256 == value
            for name, value in journal.items()
        )
    except OSError:
        return False
