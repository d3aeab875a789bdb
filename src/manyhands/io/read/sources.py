"""Where bytes come from: files, folders, zip and gzip archives, standard input; each opened within limits.

Nothing is ever unpacked to disk, so the name of a member cannot lead anywhere; names that try are refused all the same.
No file is mapped into memory: where somebody cuts off a mapped file, the system ends the process. A file is read into
memory of our own, and whether it changed meanwhile is looked at afterwards.
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
from manyhands.validation import check_memory

MAX_FILES = 200_000  # of a folder; Ground Truth writes a file per item
PARQUET = b"PAR1"  # first bytes of a file
_HEAD = 4096  # bytes by which a file is recognised
_SKIPPED = ("__MACOSX", ".DS_Store", "Thumbs.db")  # files that file managers leave behind


@dataclass(frozen=True)
class Source:
    """One file by name: on disk (`path`), already in memory (`content`), or unpacked when it is first read (`compressed`)."""

    name: str
    path: Path | None = None
    content: bytes | None = None
    compressed: Source | None = None
    budget: Budget | None = field(default=None, compare=False)  # of whatever this is a part of

    @cached_property
    def head(self) -> bytes:
        """The first bytes, by which a file is known."""
        if self.content is not None:
            return self.content[:_HEAD]
        if self.compressed is not None:
            return _gunzip(self.compressed, _HEAD)
        with self.opened() as file:
            return file.read(_HEAD)

    @property
    def suffix(self) -> str:
        return PurePosixPath(self.name).suffix.lower()

    @property
    def stem(self) -> str:
        return PurePosixPath(self.name).stem

    def read(self) -> bytes:
        """All of it."""
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
        """The same file with its content in memory, so that it is read once whatever is asked of it."""
        return self if self.content is not None else replace(self, content=self.read())

    @cached_property
    def _unpacked(self) -> bytes:
        assert self.compressed is not None and self.budget is not None
        most = min(self.budget.left, max_unpacked(self.compressed.size))
        content = _gunzip(self.compressed, most + 1)
        if len(content) > most:
            raise too_large(self.name, most)
        self.budget.spend(len(content), self.name)
        return content

    @property
    def size(self) -> int:
        """In bytes; of what is still packed only whether there are any, which does not need all of it."""
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
        """What to read the content from, within a block; one sentence where the file changes before its end."""
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
                self._refuse_changed(file, before)  # which may be why
                raise
            self._refuse_changed(file, before)

    def _refuse_changed(self, file: BinaryIO, before: tuple[int, int]) -> None:
        if _state(file) != before:
            raise AnnotationError(
                f"{self.name} was changed while it was read. Wait until it is written, and read it again."
            ) from None


def _state(file: BinaryIO) -> tuple[int, int]:
    """What changes whenever somebody writes to a file: its size, and the time."""
    found = os.fstat(file.fileno())
    return found.st_size, found.st_mtime_ns


def open_path(path: str | Path) -> Source | dict[str, Source]:
    """The file at `path` (unpacked where it is gzipped), or the members of a folder or zip by name."""
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
    source = unpack(source)
    return dict(zip_members(source)) if is_archive(source) else source


def unpack(source: Source, budget: Budget | None = None) -> Source:
    """A gzipped file as what is inside it, unpacked once it is read; any other as it is."""
    if not source.head.startswith(GZIP):
        return source
    name = source.name[:-3] if source.suffix == ".gz" else source.name
    return Source(name, compressed=source, budget=budget or Budget(source.size))


def _gunzip(compressed: Source, max_bytes: int) -> bytes:
    """Return the first bytes within a gzip file."""
    with compressed.opened() as file:
        return gunzip(file, compressed.name, max_bytes)


def is_archive(source: Source) -> bool:
    """Whether this is a zip of files, rather than a workbook, which is a zip too."""
    if not source.head.startswith((ZIP, EMPTY_ZIP)):
        return False
    with open_zip(source) as archive:
        return not any(name.startswith("xl/") for name in archive.namelist())


def zip_members(source: Source) -> Iterator[tuple[str, Source]]:
    """The files in a zip by name, each read whole within the limits."""
    budget = source.budget or Budget(source.size)
    with open_zip(source) as archive:
        check_zip(archive, source.name, budget)
        for entry in archive.infolist():
            if entry.is_dir() or _is_system_file(entry.filename):
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
    """An archive to read from within a block."""
    with source.opened() as file:
        yield open_archive(file, source.name)


def _folder_members(folder: Path) -> Iterator[tuple[str, Source]]:
    """All files below a folder, in order of their names; links that lead out of it are not followed."""
    root, budget = folder.resolve(), Budget(MAX_BYTES)
    for name in sorted(_file_names(folder)):
        path = folder / name
        if path.is_file() and path.resolve().is_relative_to(root):
            yield name, unpack(Source(str(path), path), budget)


def _file_names(folder: Path) -> Iterator[str]:
    """What is called a file below a folder; nobody is made to wait for the rest where there are too many."""

    def refuse(error: OSError) -> None:
        raise AnnotationError(f"{error.filename} cannot be opened: {error.strerror}.") from None

    count = 0
    for parent, _, names in os.walk(folder, onerror=refuse):
        for name in names:
            relative = (Path(parent) / name).relative_to(folder).as_posix()
            if _is_system_file(relative):
                continue
            count += 1
            if count > MAX_FILES:
                raise LimitError(f"{folder} has more than {MAX_FILES:,} files. Give a folder that holds one export.")
            yield relative


def _is_system_file(name: str) -> bool:
    return any(part in _SKIPPED or part.startswith(".") for part in PurePosixPath(name).parts)
