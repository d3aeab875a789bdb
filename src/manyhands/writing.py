"""Files that appear whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from manyhands.exceptions import OutputExistsError


def write_files(folder: str | Path, files: Mapping[str, bytes], *, force: bool = False) -> None:
    """Write `files` (name -> content) into `folder`, each atomically; refuse to replace any without `force`.

    All contents are on disk under temporary names before the first one gets its own, so a run that is killed
    leaves what was there before, or files that are whole.
    """
    folder = Path(folder)
    if not force:
        refuse_present(folder, files)
    folder.mkdir(parents=True, exist_ok=True)
    waiting = {folder / f".{name}.{os.getpid()}.tmp": folder / name for name in files}
    try:
        for temporary, content in zip(waiting, files.values()):
            _write_through(temporary, content)
        for temporary, final in waiting.items():
            os.replace(temporary, final)
        _sync_folder(folder)
    finally:
        for temporary in waiting:
            temporary.unlink(missing_ok=True)


def refuse_present(folder: str | Path, names: Iterable[str]) -> None:
    """Refuse to begin what would end in a file that is there already."""
    present = [name for name in names if (Path(folder) / name).exists()]
    if present:
        raise OutputExistsError(f"{folder} already has {', '.join(present)}. Add --force to replace them.")


def _write_through(path: Path, content: bytes) -> None:
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    """Make the new names survive a power cut, where the system lets a folder be opened."""
    if hasattr(os, "O_DIRECTORY"):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
