"""Step 1 of reading: the bytes of files, folders, zip and gzip archives and standard input, within limits.

Nothing is unpacked to disk. No file is mapped into memory: if another program truncates a mapped file, the operating
system ends the process. A file is read into memory, and afterwards it is checked whether it was changed meanwhile.

The file: `Source` and `open_path`; files of a folder; archives and their limits.
"""

from __future__ import annotations

import bz2
import gzip
import io
import os
import stat
import struct
import sys
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import BinaryIO

from manyhands._core.system import check_memory
from manyhands.exceptions import AnnotationError, LimitError

PARQUET = b"PAR1"  # first bytes of a file
_HEAD = 4096  # bytes by which a file is recognised: a block of a disk


@dataclass(frozen=True)
class Source:
    """One file by name."""

    name: str  # name for error messages; its suffix helps to recognise the kind of file
    path: Path | None = None  # the file on disk
    content: bytes | None = None  # the content, if it is in memory
    compressed: Source | None = None  # A gzip file that is unpacked when this file is first read
    # bytes that may still be unpacked from the archive or folder that this is a part of
    budget: _Budget | None = field(default=None, compare=False)

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
        """Return the whole content."""
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
        """Return the same file with its content in memory, so that it is read only once."""
        return self if self.content is not None else replace(self, content=self.read())

    @cached_property
    def _unpacked(self) -> bytes:
        """The content of a compressed file, charged to the budget."""
        assert self.compressed is not None and self.budget is not None
        limit = min(self.budget.left, _max_unpacked(self.compressed.size))
        content = _gunzip(self.compressed, limit + 1)
        if len(content) > limit:
            raise _too_large(self.name, limit)
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
        """Open the file for reading within a block; an error is raised if it was changed before the block ends."""
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
    state = os.fstat(file.fileno())
    return state.st_size, state.st_mtime_ns


def open_path(path: str | Path) -> Source | dict[str, Source]:
    """Open a path."""
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


def unpack(source: Source, budget: _Budget | None = None) -> Source:
    """Return a gzip file as its content, which is unpacked when it is read; any other file as it is."""
    if not source.head.startswith(GZIP):
        return source
    name = source.name[:-3] if source.suffix == ".gz" else source.name
    return Source(name, compressed=source, budget=budget or _Budget(source.size))


def _gunzip(compressed: Source, max_bytes: int) -> bytes:
    """Return the first bytes within a gzip file."""
    with compressed.opened() as file:
        return gunzip(file, compressed.name, max_bytes)


def is_archive(source: Source) -> bool:
    """Whether a file is a zip of files, rather than an XLSX workbook, which is a zip too."""
    if not source.head.startswith((ZIP, EMPTY_ZIP)):
        return False
    with open_zip(source) as archive:
        return not any(name.startswith("xl/") for name in archive.namelist())


def zip_members(source: Source) -> Iterator[tuple[str, Source]]:
    """Read the files in a zip, each whole and within the limits."""
    budget = source.budget or _Budget(source.size)
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
    """Open an archive for reading within a block."""
    with source.opened() as file:
        yield _open_archive(file, source.name)


def _folder_members(folder: Path) -> Iterator[tuple[str, Source]]:
    """Yield all files below a folder, in order of their names; links that lead out of it are not followed."""
    root, budget = folder.resolve(), _Budget(MAX_BYTES)
    for name in sorted(file_names(folder)):
        path = folder / name
        if path.is_file() and path.resolve().is_relative_to(root):
            yield name, unpack(Source(str(path), path), budget)


# ----------------------------------------------------------------------------------------------------
# Paths of the files below a folder, without those of the operating system.

MAX_FILES = 200_000  # of a folder; Ground Truth writes a file per item
_SKIPPED = ("__MACOSX", ".DS_Store", "Thumbs.db")  # files that file managers leave behind


def file_names(folder: Path) -> Iterator[str]:
    """Yield the paths of the files below a folder, relative to it."""

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
    """Whether a path is hidden, or a file that a file manager left behind."""
    return any(part in _SKIPPED or part.startswith(".") for part in PurePosixPath(name).parts)


# ----------------------------------------------------------------------------------------------------
# Archives (zip) and compressed files (gzip, bz2), unpacked in memory and within limits.
#
# An archive of a few kilobytes can be made to unpack to terabytes (a "zip bomb"). So no reader of this package unpacks
# more than `MAX_BYTES` from one file or folder, nor more than `MAX_RATIO` times the size of what is packed, and all of
# them use the functions of this module: `io` for exports, `datasets` for published data.
#
# Nothing is ever extracted to disk, so the name of a member cannot lead anywhere; names that try are refused all the
# same.

MAX_MEMBERS = 10_000  # of a zip; a project has a file per worker or task
MAX_BYTES = 2 << 30  # unpacked, of a whole archive or folder; larger tables are read in parts (`stream/`)
MAX_RATIO = 100  # unpacked to packed; tables and JSON stay well below, deflate reaches 1032
_RATIO_FROM = 10 << 20  # bytes; repetitive text below that size does no harm
_PIECE = 1 << 20  # bytes unpacked at a time
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # the others cannot be unpacked piece by piece
GZIP, ZIP, EMPTY_ZIP = b"\x1f\x8b", b"PK\x03\x04", b"PK\x05\x06"  # first bytes of a file
# What zipfile raises on archives that are damaged, or made to do damage.
_BROKEN = (zipfile.BadZipFile, RuntimeError, OSError, EOFError, ValueError, zlib.error, struct.error)


class _Budget:
    """Number of bytes that may still be unpacked from one file or folder, however its members are nested."""

    def __init__(self, packed: int) -> None:
        self.left = _max_unpacked(packed)

    def spend(self, count: int, name: str) -> None:
        """Subtract unpacked bytes."""
        if count > self.left:
            raise _too_large(name, self.left)
        self.left -= count


def _max_unpacked(packed: int) -> int:
    """Return the largest size to which a file may unpack."""
    return min(MAX_BYTES, max(packed * MAX_RATIO, _RATIO_FROM))


def _too_large(name: str, limit: int) -> LimitError:
    """Return the error for a file that unpacks to more than `limit` bytes."""
    return LimitError(
        f"{name} unpacks to more than the {limit:,} bytes that are read from a file or folder of its size. "
        "If you know where it comes from, unpack it yourself."
    )


def gunzip(file: BinaryIO, name: str, max_bytes: int) -> bytes:
    """Unpack the beginning of a gzip file."""
    try:
        with gzip.open(file) as unpacked:
            content = unpacked.read(max_bytes)
    except (OSError, EOFError, zlib.error) as error:
        raise AnnotationError(f"{name} is not a complete gzip file: {error}. Download it again.") from None
    if content.startswith(GZIP):
        raise AnnotationError(f"{name} is gzipped twice. Unpack it once.")
    return content


def bunzip2(compressed: bytes, name: str) -> bytes:
    """Unpack a bz2 file."""
    limit = _max_unpacked(len(compressed))
    decompressor = bz2.BZ2Decompressor()
    try:
        content = decompressor.decompress(compressed, max_length=limit + 1)
    except (OSError, ValueError) as error:
        raise AnnotationError(f"{name} is not a bz2 file: {error}. Download it again.") from None
    if len(content) > limit:
        raise _too_large(name, limit)
    if not decompressor.eof:
        raise AnnotationError(f"{name} is not a complete bz2 file. Download it again.")
    return content


def _open_archive(file: BinaryIO, name: str) -> zipfile.ZipFile:
    """Open a zip archive."""
    try:
        return zipfile.ZipFile(file)
    except _BROKEN as error:
        raise AnnotationError(f"{name} is not a complete zip file: {error}. Download it again.") from None


def check_zip(archive: zipfile.ZipFile, name: str, budget: _Budget | None = None) -> None:
    """Refuse an archive that is too large once unpacked, or whose members have unsafe names.

    No member unpacks to more than it declares: `zipfile` stops there. So the declared sizes can be checked first.
    """
    entries = archive.infolist()
    packed, unpacked = sum(e.compress_size for e in entries), sum(e.file_size for e in entries)
    if len(entries) > MAX_MEMBERS:
        raise LimitError(f"{name} has {len(entries):,} members; at most {MAX_MEMBERS:,} are read from a zip.")
    if unpacked > MAX_BYTES:
        raise LimitError(f"{name} unpacks to {unpacked:,} bytes; at most {MAX_BYTES:,} are read from a zip.")
    if unpacked > max(packed * MAX_RATIO, _RATIO_FROM):
        raise LimitError(f"{name} unpacks to more than {MAX_RATIO} times its size, as harmful archives do.")
    seen = set()
    for entry in entries:
        called = entry.orig_filename  # zipfile cuts the other name at a NUL
        if _leads_out(called) or stat.S_ISLNK(entry.external_attr >> 16):
            raise AnnotationError(f"{name} has a member called {called[:200]!r}, which leads out of it: not read.")
        if called in seen:
            raise AnnotationError(f"{name} has two members called {called[:200]!r}. Unpack it and give the folder.")
        if entry.flag_bits & 1:
            raise AnnotationError(f"{name} is protected by a password. Unpack it yourself and give the folder.")
        if entry.compress_type not in _METHODS:
            raise AnnotationError(
                f"{name}: {called[:200]!r} is compressed by an unsupported method. Unpack it and give the folder."
            )
        seen.add(called)
    if budget is not None:
        budget.spend(unpacked, name)


def unpack_member(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, name: str) -> Iterator[bytes]:
    """Unpack a member piece by piece, so that a wrong declared size is noticed before the memory is full."""
    try:
        with archive.open(entry) as file:
            while piece := file.read(_PIECE):
                yield piece
    except _BROKEN as error:
        raise AnnotationError(f"{name}: {entry.filename!r} cannot be unpacked: {error}. Download it again.") from None


def read_members(file: BinaryIO, name: str, wanted: Sequence[str]) -> dict[str, bytes]:
    """Read the members of a zip that have these file names, in whatever folder of the archive they are."""
    with _open_archive(file, name) as archive:
        check_zip(archive, name)
        entries = {member: _find_member(archive.infolist(), member, name) for member in wanted}
        return {member: b"".join(unpack_member(archive, entry, name)) for member, entry in entries.items()}


def _find_member(entries: Sequence[zipfile.ZipInfo], wanted: str, name: str) -> zipfile.ZipInfo:
    """Return the member with this file name that lies in the fewest folders."""
    matches = [entry for entry in entries if PurePosixPath(entry.filename).name == wanted and not entry.is_dir()]
    if not matches:
        raise AnnotationError(f"{name} has no member {wanted}, so it is not the expected archive.")
    return min(matches, key=lambda entry: entry.filename.count("/"))


def _leads_out(name: str) -> bool:
    """Whether a member's name is absolute, names a drive, contains ``..`` or a NUL."""
    windows = PureWindowsPath(name)
    parts = PurePosixPath(name).parts + windows.parts
    return bool(PurePosixPath(name).is_absolute() or windows.drive or windows.root or ".." in parts or "\0" in name)
