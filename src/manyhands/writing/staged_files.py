"""Files that are too large for memory: written piece by piece under a temporary name, with a running checksum.

They lie in the temporary folder of their run, inside the output folder, and are moved into place together with its
other files. If the run is killed before that, the next run removes them.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, NamedTuple

NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL
NEW |= getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


class Digest(NamedTuple):
    """Size and checksum of a file.

    Attributes
    ----------
    size : int
        Size in bytes.
    sha256 : str
        Checksum in hexadecimal digits.
    """

    size: int
    sha256: str


def digest_of(content: bytes) -> Digest:
    """Size and checksum of a content in memory.

    Parameters
    ----------
    content : bytes
        The content.

    Returns
    -------
    Digest
    """
    return Digest(len(content), hashlib.sha256(content).hexdigest())


def digest_of_file(path: Path) -> Digest:
    """Size and checksum of a file, which is read piece by piece.

    Parameters
    ----------
    path : Path
        The file.

    Returns
    -------
    Digest
    """
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
        return Digest(file.tell(), found)


class StagedFile:
    """A file that is being written; created by `StagedFiles.create`.

    Parameters
    ----------
    file : file object
        Where the bytes go.
    shown : Path
        The final file, which errors name.
    """

    def __init__(self, file: BinaryIO, shown: Path) -> None:
        self._file, self._shown = file, shown
        self._size, self._sum = 0, hashlib.sha256()

    def write(self, content: bytes) -> int:
        """Append to the file.

        Parameters
        ----------
        content : bytes
            The next bytes.

        Returns
        -------
        int
            Their number.
        """
        with naming(self._shown):
            self._file.write(content)
        self._sum.update(content)
        self._size += len(content)
        return len(content)

    @property
    def digest(self) -> Digest:
        """Size and checksum of what was written so far."""
        return Digest(self._size, self._sum.hexdigest())


class StagedFiles:
    """The temporary folder of a run, and the files in it; created by `Output.stage`.

    Parameters
    ----------
    folder : Path
        The output folder, which must exist.
    key : str
        Key in the name of the temporary folder.

    Attributes
    ----------
    path : Path
        The temporary folder; only this user has access.
    digests : dict of str to Digest
        The finished files by their name.
    """

    def __init__(self, folder: Path, key: str) -> None:
        self._folder = folder
        self.path = make_temporary(folder, key)
        self.digests: dict[str, Digest] = {}

    def shown(self, name: str) -> Path:
        """The final path of a file, which errors name.

        Parameters
        ----------
        name : str
            Final name of the file.

        Returns
        -------
        Path
        """
        return self._folder / name

    @contextmanager
    def create(self, name: str) -> Iterator[StagedFile]:
        """Context manager that writes one file; it is finished, and on disk, at the end of the block.

        Parameters
        ----------
        name : str
            Final name of the file.

        Yields
        ------
        StagedFile
            The open file.
        """
        shown = self.shown(name)
        with naming(shown):
            file = open(os.open(self.path / name, NEW, 0o666), "wb")  # noqa: SIM115  # closed below
        with file:
            staged = StagedFile(file, shown)
            yield staged
            with naming(shown):
                file.flush()
                os.fsync(file.fileno())
        self.digests[name] = staged.digest

    def adopt(self, name: str) -> None:
        """Count a file that a library wrote to `path` as finished.

        Parameters
        ----------
        name : str
            Final name of the file.
        """
        with naming(self.shown(name)):
            descriptor = os.open(self.path / name, os.O_RDWR | getattr(os, "O_CLOEXEC", 0))
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            self.digests[name] = digest_of_file(self.path / name)


def make_temporary(folder: Path, key: str) -> Path:
    """A new temporary folder with a random name and access for this user only.

    Parameters
    ----------
    folder : Path
        The output folder.
    key : str
        Key of the lock.

    Returns
    -------
    Path
    """
    path = folder / f".{key}-{secrets.token_hex(8)}.tmp"  # the pattern of staging._leftovers
    path.mkdir(mode=0o700)
    return path


@contextmanager
def naming(shown: Path) -> Iterator[None]:
    """Context manager in which an error of the operating system names the final file and not the temporary one.

    Parameters
    ----------
    shown : Path
        The final file.
    """
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(shown)) from None
