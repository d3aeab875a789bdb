"""Checks of the output folder before any work begins."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

from manyhands.exceptions import OutputExistsError, ParameterError


def refuse_present(folder: str | Path, names: Iterable[str]) -> None:
    """Refuse to start a run whose output files, or symbolic links in their place, exist already.

    Parameters
    ----------
    folder : str or Path
        Where the files are to be written.
    names : iterable of str
        Their names.

    Raises
    ------
    OutputExistsError
        Where one of them exists.
    """
    folder = Path(folder)
    present = [name for name in names if os.path.lexists(folder / name)]
    if present:
        message = f"{folder} already has {', '.join(present)}. Add --force to replace them."
        links = [name for name in present if (folder / name).is_symlink()]
        if links:
            message += f" Of {', '.join(links)}, the symbolic link itself is replaced, not the file that it points to."
        raise OutputExistsError(message)


def refuse_unwritable(folder: str | Path, names: Iterable[str] = ()) -> None:
    """Refuse to start a run whose output folder cannot be created or written to; nothing is left behind.

    A temporary file is created as a test, because permissions alone are not reliable: a superuser has them even where
    no file can be written.

    Parameters
    ----------
    folder : str or Path
        Where files are to be written; it need not exist.
    names : iterable of str, default=()
        Their names, none of which may be a folder.

    Raises
    ------
    ParameterError
        Where the folder cannot be written to.
    """
    folder = Path(folder)
    for name in names:
        if (folder / name).is_dir():
            raise ParameterError(f"{folder / name} is a folder, and cannot be replaced by a file. Give another name.")
    nearest = next(path for path in (folder, *folder.absolute().parents) if os.path.lexists(path))
    if nearest.is_symlink() and not nearest.exists():
        raise ParameterError(
            f"{nearest} is a symbolic link that points to nothing, so nothing can be written to {folder}. "
            "Remove the link, or give another folder."
        )
    try:
        with tempfile.TemporaryFile(dir=nearest):
            pass
    except NotADirectoryError:
        raise ParameterError(f"{nearest} is not a folder, so nothing can be written to {folder}.") from None
    except OSError as error:
        raise unwritable(folder, error) from None


def unwritable(folder: Path, error: OSError) -> ParameterError:
    """The error for a folder that cannot be written to.

    Parameters
    ----------
    folder : Path
        The folder.
    error : OSError
        The error of the operating system.

    Returns
    -------
    ParameterError
    """
    return ParameterError(f"Nothing can be written to {folder}: {error.strerror}. Give another folder.")
