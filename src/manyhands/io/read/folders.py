"""Paths of the files below a folder, without those of the operating system."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from manyhands.exceptions import AnnotationError, LimitError

MAX_FILES = 200_000  # of a folder; Ground Truth writes a file per item
_SKIPPED = ("__MACOSX", ".DS_Store", "Thumbs.db")  # files that file managers leave behind


def file_names(folder: Path) -> Iterator[str]:
    """Yield the paths of the files below a folder, relative to it.

    Parameters
    ----------
    folder : Path
        The folder.

    Yields
    ------
    str
        A path with forward slashes.

    Raises
    ------
    AnnotationError
        If a folder cannot be opened.
    LimitError
        As soon as there are more than `MAX_FILES` files.
    """

    def refuse(error: OSError) -> None:
        raise AnnotationError(f"{error.filename} cannot be opened: {error.strerror}.") from None

    count = 0
    for parent, _, names in os.walk(folder, onerror=refuse):
        for name in names:
            relative = (Path(parent) / name).relative_to(folder).as_posix()
            if is_system_file(relative):
                continue
            count += 1
            if count > MAX_FILES:
                raise LimitError(f"{folder} has more than {MAX_FILES:,} files. Give a folder that holds one export.")
            yield relative


def is_system_file(name: str) -> bool:
    """Whether a path is hidden, or a file that a file manager left behind.

    Parameters
    ----------
    name : str
        A path with forward slashes.

    Returns
    -------
    bool
        True if the file should be skipped.
    """
    return any(part in _SKIPPED or part.startswith(".") for part in PurePosixPath(name).parts)
