"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import re
import tempfile
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from manyhands.exceptions import OutputExistsError, ParameterError

_SIGNALS_ASK = os.name == "posix"  # elsewhere, asking for a process by a signal may end it
_AN_HOUR = 3600  # seconds; no file waits that long for its name


def write_files(folder: str | Path, files: Mapping[str, bytes], *, force: bool = False) -> None:
    """Write `files` (name -> content) into `folder`, each atomically; refuse to replace any without `force`.

    All contents are on disk under temporary names before the first one gets its own, so a run that is killed
    leaves what was there before, or files that are whole. Its temporary files go with the next run that succeeds.
    """
    folder = Path(folder)
    if not force:
        refuse_present(folder, files)
    folder.mkdir(parents=True, exist_ok=True)
    waiting = {folder / f".{name}.{os.getpid()}.tmp": folder / name for name in files}  # known to _clear_leftovers
    try:
        for temporary, content in zip(waiting, files.values()):
            _write_through(temporary, content)
        for temporary, final in waiting.items():
            os.replace(temporary, final)
        _sync_folder(folder)
        _clear_leftovers(folder, files)
    finally:
        for temporary in waiting:
            temporary.unlink(missing_ok=True)


def refuse_present(folder: str | Path, names: Iterable[str]) -> None:
    """Refuse to begin what would end in a file that is there already."""
    present = [name for name in names if (Path(folder) / name).exists()]
    if present:
        raise OutputExistsError(f"{folder} already has {', '.join(present)}. Add --force to replace them.")


def refuse_unwritable(folder: str | Path, names: Iterable[str] = ()) -> None:
    """Refuse to begin what would end in a folder that cannot be made or written to; nothing is left behind.

    Only an attempt tells: whoever may do everything is allowed to write where no file can be.
    """
    folder = Path(folder)
    for name in names:
        if (folder / name).is_dir():
            raise ParameterError(f"{folder / name} is a folder, and cannot be replaced by a file. Give another name.")
    try:
        nearest = next(path for path in (folder, *folder.absolute().parents) if os.path.lexists(path))
        with tempfile.TemporaryFile(dir=nearest):
            pass
    except NotADirectoryError:
        raise ParameterError(f"{nearest} is not a folder, so nothing can be written to {folder}.") from None
    except OSError as error:
        raise ParameterError(f"Nothing can be written to {folder}: {error.strerror}. Give another folder.") from None


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


def _clear_leftovers(folder: Path, names: Iterable[str]) -> None:
    """Remove the temporary files of runs that were killed; those of a run that still lives are left to it."""
    temporary = re.compile(rf"\.(?:{'|'.join(map(re.escape, names))})\.([0-9]{{1,9}})\.tmp")
    with suppress(OSError):  # somebody was faster, or has it open; what was asked for is done
        for path in folder.iterdir():
            found = temporary.fullmatch(path.name)
            if found and not _may_be_written(path, int(found[1])):
                path.unlink()


def _may_be_written(path: Path, process: int) -> bool:
    try:
        if not _SIGNALS_ASK:
            return time.time() - path.stat().st_mtime < _AN_HOUR
        os.kill(process, 0)
    except (ProcessLookupError, FileNotFoundError):
        return False
    except OSError:  # it lives, and is somebody else's
        return True
    return True
