"""Step 1 of reading: the bytes of files, folders, zip and gzip archives and standard input, within limits.

Nothing is unpacked to disk. No file is mapped into memory: if another program truncates a mapped file, the operating
system ends the process. A file is read into memory, and afterwards it is checked whether it was changed meanwhile.
"""

from __future__ import annotations

import io
import os
import stat
import sys
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from manyhands.exceptions import AnnotationError, LimitError
from manyhands.io.read.archives import (
    EMPTY_ZIP,
    GZIP,
    MAX_BYTES,
    ZIP,
    Budget,
    check_zip,
    gunzip,
    max_unpacked,
    open_archive,
    too_large,
    unpack_member,
)
from manyhands.io.read.folders import file_names, is_system_file
from manyhands.validation import check_memory

PARQUET = b"PAR1"  # first bytes of a file
_HEAD = 4096  # bytes by which a file is recognised


@dataclass(frozen=True)
class Source:
    """One file by name.

    Attributes
    ----------
    name : str
        Name for error messages; its suffix helps to recognise the kind of file.
    path : Path or None
        The file on disk.
    content : bytes or None
        The content, if it is in memory.
    compressed : Source or None
        A gzip file that is unpacked when this file is first read.
    budget : Budget or None
        Bytes that may still be unpacked from the archive or folder that this is a part of.
    """

    name: str
    path: Path | None = None
    content: bytes | None = None
    compressed: Source | None = None
    budget: Budget | None = field(default=None, compare=False)

    @cached_property
    def head(self) -> bytes:
        """The first 4096 bytes, by which a file is recognised."""
        if self.content is not None:
            return self.content[:_HEAD]
        if self.compressed is not None:
            return _gunzip(self.compressed, _HEAD)
        with self.opened() as file:
            return file.read(_HEAD)

    @property
    def suffix(self) -> str:
        """The ending of the name in lower case, such as ``".csv"``."""
        return PurePosixPath(self.name).suffix.lower()

    @property
    def stem(self) -> str:
        """The last part of the name without its suffix."""
        return PurePosixPath(self.name).stem

    def read(self) -> bytes:
        """Return the whole content.

        Returns
        -------
        bytes
            The content, unpacked if it was compressed.

        Raises
        ------
        AnnotationError
            If the file cannot be read, is damaged, or changes meanwhile.
        LimitError
            If it does not fit into memory, or unpacks to too much.
        """
        if self.content is not None:
            return self.content
        if self.compressed is not None:
            return self._unpacked
        check_memory(self.size, f"The bytes of {self.name}", "Cut the file into parts, and read each.")
        try:
            with self.opened() as file:
                return file.read()
        except OSError as error:
            raise AnnotationError(f"{self.name} cannot be read: {error.strerror}.") from None
        except MemoryError:
            raise LimitError(f"{self.name} does not fit into memory. Cut it into parts, and read each.") from None

    def loaded(self) -> Source:
        """Return the same file with its content in memory, so that it is read only once.

        Returns
        -------
        Source
            A source with `content`.
        """
        return self if self.content is not None else replace(self, content=self.read())

    @cached_property
    def _unpacked(self) -> bytes:
        """The content of a compressed file, charged to the budget."""
        assert self.compressed is not None and self.budget is not None
        limit = min(self.budget.left, max_unpacked(self.compressed.size))
        content = _gunzip(self.compressed, limit + 1)
        if len(content) > limit:
            raise too_large(self.name, limit)
        self.budget.spend(len(content), self.name)
        return content

    @property
    def size(self) -> int:
        """Size in bytes; of a compressed file that was not read yet, the size of its head."""
        if self.content is not None:
            return len(self.content)
        if self.compressed is not None:
            return len(self._unpacked if "_unpacked" in self.__dict__ else self.head)
        assert self.path is not None
        try:
            return self.path.stat().st_size
        except OSError as error:
            raise AnnotationError(f"{self.name} cannot be opened: {error.strerror}.") from None

    @contextmanager
    def opened(self) -> Iterator[BinaryIO]:
        """Open the file for reading within a block; an error is raised if it was changed before the block ends.

        Yields
        ------
        binary file
            The open file.
        """
        if self.content is not None or self.path is None:
            yield io.BytesIO(self.read())
            return
        try:
            file = self.path.open("rb")
        except OSError as error:
            raise AnnotationError(f"{self.name} cannot be opened: {error.strerror}.") from None
        with file:
            before = _state(file)
            try:
                yield file
            except Exception:
                self._refuse_changed(file, before)  # which may be the cause
                raise
            self._refuse_changed(file, before)

    def _refuse_changed(self, file: BinaryIO, before: tuple[int, int]) -> None:
        """Refuse a file whose size or time differs from before."""
        if _state(file) != before:
            raise AnnotationError(
                f"{self.name} was changed while it was read. Wait until it is written, and read it again."
            ) from None


def _state(file: BinaryIO) -> tuple[int, int]:
    """Return size and modification time of a file, which change whenever something is written to it."""
    found = os.fstat(file.fileno())
    return found.st_size, found.st_mtime_ns


def open_path(path: str | Path) -> Source | dict[str, Source]:
    """Open a path.

    Parameters
    ----------
    path : str or Path
        A file, a folder, a zip or gzip file, or ``"-"`` for standard input.

    Returns
    -------
    Source or dict of str to Source
        The file (unpacked if it is gzipped), or the members of a folder or zip by their path within it.

    Raises
    ------
    AnnotationError
        If the path does not exist or cannot be opened.
    LimitError
        If a folder or archive has too many files, or unpacks to too much.
    """
    if str(path) == "-":
        return _opened(Source("standard input", content=sys.stdin.buffer.read()))
    try:
        path = Path(path)
        kind = path.stat().st_mode
    except FileNotFoundError:
        message = f"{path} does not exist. Give the path of an export: a file, a folder or a zip."
        raise AnnotationError(message) from None
    except (OSError, TypeError, ValueError) as error:
        cause = error.strerror if isinstance(error, OSError) else error
        raise AnnotationError(f"{str(path)[:200]!r} cannot be opened: {cause}. Give the path of an export.") from None
    if stat.S_ISDIR(kind):
        return dict(_folder_members(path))
    if not stat.S_ISREG(kind):
        raise AnnotationError(f"{path} is neither a file nor a folder. Give the path of an export.")
    return _opened(Source(str(path), path))


def _opened(source: Source) -> Source | dict[str, Source]:
    """Return a file, or the members of an archive."""
    source = unpack(source)
    return dict(zip_members(source)) if is_archive(source) else source


def unpack(source: Source, budget: Budget | None = None) -> Source:
    """Return a gzip file as its content, which is unpacked when it is read; any other file as it is.

    Parameters
    ----------
    source : Source
        The file.
    budget : Budget or None, default=None
        Bytes that may be unpacked; None for those of a file of this size.

    Returns
    -------
    Source
        The content, without ``.gz`` in its name.
    """
    if not source.head.startswith(GZIP):
        return source
    name = source.name[:-3] if source.suffix == ".gz" else source.name
    return Source(name, compressed=source, budget=budget or Budget(source.size))


def _gunzip(compressed: Source, max_bytes: int) -> bytes:
    """Return the first bytes within a gzip file."""
    with compressed.opened() as file:
        return gunzip(file, compressed.name, max_bytes)


def is_archive(source: Source) -> bool:
    """Whether a file is a zip of files, rather than an XLSX workbook, which is a zip too.

    Parameters
    ----------
    source : Source
        The file.

    Returns
    -------
    bool
        True for a zip that is not a workbook.
    """
    if not source.head.startswith((ZIP, EMPTY_ZIP)):
        return False
    with open_zip(source) as archive:
        return not any(name.startswith("xl/") for name in archive.namelist())


def zip_members(source: Source) -> Iterator[tuple[str, Source]]:
    """Read the files in a zip, each whole and within the limits.

    Parameters
    ----------
    source : Source
        The archive.

    Yields
    ------
    name : str
        Path of the member within the archive.
    member : Source
        The member.

    Raises
    ------
    AnnotationError
        If the archive is damaged, or holds another archive.
    LimitError
        If it unpacks to too much.
    """
    budget = source.budget or Budget(source.size)
    with open_zip(source) as archive:
        check_zip(archive, source.name, budget)
        for entry in archive.infolist():
            if entry.is_dir() or is_system_file(entry.filename):
                continue
            content = b"".join(unpack_member(archive, entry, source.name))
            member = unpack(Source(f"{source.name}/{entry.filename}", content=content, budget=budget), budget)
            if is_archive(member):
                raise AnnotationError(
                    f"{member.name} is a zip within a zip. Unpack the outer one and give that folder."
                )
            yield entry.filename, member


@contextmanager
def open_zip(source: Source) -> Iterator[zipfile.ZipFile]:
    """Open an archive for reading within a block.

    Parameters
    ----------
    source : Source
        The archive.

    Yields
    ------
    zipfile.ZipFile
        The open archive.
    """
    with source.opened() as file:
        yield open_archive(file, source.name)


def _folder_members(folder: Path) -> Iterator[tuple[str, Source]]:
    """Yield all files below a folder, in order of their names; links that lead out of it are not followed."""
    root, budget = folder.resolve(), Budget(MAX_BYTES)
    for name in sorted(file_names(folder)):
        path = folder / name
        if path.is_file() and path.resolve().is_relative_to(root):
            yield name, unpack(Source(str(path), path), budget)
