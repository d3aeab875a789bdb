"""Archives (zip) and compressed files (gzip, bz2), unpacked in memory and within limits.

An archive of a few kilobytes can be made to unpack to terabytes (a "zip bomb"). So no reader of this package unpacks
more than `MAX_BYTES` from one file or folder, nor more than `MAX_RATIO` times the size of what is packed, and all of
them use the functions of this module: `io` for exports, `datasets` for published data.

Nothing is ever extracted to disk, so the name of a member cannot lead anywhere; names that try are refused all the
same.
"""

from __future__ import annotations

import bz2
import gzip
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath, PureWindowsPath
from typing import BinaryIO

from manyhands.exceptions import AnnotationError, LimitError

MAX_MEMBERS = 10_000  # of a zip
MAX_BYTES = 2 << 30  # unpacked, of a whole archive or folder
MAX_RATIO = 100  # unpacked to packed
_RATIO_FROM = 10 << 20  # bytes; repetitive text below that size does no harm
_PIECE = 1 << 20  # bytes unpacked at a time
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # the others cannot be unpacked piece by piece
GZIP, ZIP, EMPTY_ZIP = b"\x1f\x8b", b"PK\x03\x04", b"PK\x05\x06"  # first bytes of a file
# What zipfile raises on archives that are damaged, or made to do damage.
_BROKEN = (zipfile.BadZipFile, RuntimeError, OSError, EOFError, ValueError, zlib.error, struct.error)


class Budget:
    """Number of bytes that may still be unpacked from one file or folder, however its members are nested.

    Parameters
    ----------
    packed : int
        Size in bytes of the packed file; see `max_unpacked`.

    Attributes
    ----------
    left : int
        Bytes that may still be unpacked.
    """

    def __init__(self, packed: int) -> None:
        self.left = max_unpacked(packed)

    def spend(self, count: int, name: str) -> None:
        """Subtract unpacked bytes.

        Parameters
        ----------
        count : int
            Number of bytes that were, or will be, unpacked.
        name : str
            Name of the file, for the error message.

        Raises
        ------
        LimitError
            If more bytes are asked for than are left.
        """
        if count > self.left:
            raise too_large(name, self.left)
        self.left -= count


def max_unpacked(packed: int) -> int:
    """Return the largest size to which a file may unpack.

    Parameters
    ----------
    packed : int
        Size of the packed file in bytes.

    Returns
    -------
    int
        ``packed * MAX_RATIO``, but at least 10 MiB and at most `MAX_BYTES`.
    """
    return min(MAX_BYTES, max(packed * MAX_RATIO, _RATIO_FROM))


def too_large(name: str, limit: int) -> LimitError:
    """Return the error for a file that unpacks to more than `limit` bytes.

    Parameters
    ----------
    name : str
        Name of the file.
    limit : int
        Number of bytes that would have been allowed.

    Returns
    -------
    LimitError
        The error, to be raised by the caller.
    """
    return LimitError(
        f"{name} unpacks to more than the {limit:,} bytes that are read from a file or folder of its size. "
        "If you know where it comes from, unpack it yourself."
    )


def gunzip(file: BinaryIO, name: str, max_bytes: int) -> bytes:
    """Unpack the beginning of a gzip file.

    Parameters
    ----------
    file : binary file
        The compressed file, open for reading.
    name : str
        Its name, for error messages.
    max_bytes : int
        At most this many bytes are unpacked.

    Returns
    -------
    bytes
        The first `max_bytes` bytes of the content, or all of it if there are fewer.

    Raises
    ------
    AnnotationError
        If the file is damaged, or if its content is gzipped again.
    """
    try:
        with gzip.open(file) as unpacked:
            content = unpacked.read(max_bytes)
    except (OSError, EOFError, zlib.error) as error:
        raise AnnotationError(f"{name} is not a complete gzip file: {error}. Download it again.") from None
    if content.startswith(GZIP):
        raise AnnotationError(f"{name} is gzipped twice. Unpack it once.")
    return content


def bunzip2(compressed: bytes, name: str) -> bytes:
    """Unpack a bz2 file.

    Parameters
    ----------
    compressed : bytes
        Content of the bz2 file.
    name : str
        Its name, for error messages.

    Returns
    -------
    bytes
        The unpacked content.

    Raises
    ------
    AnnotationError
        If the file is damaged or not complete.
    LimitError
        If it unpacks to more than `max_unpacked` allows.
    """
    limit = max_unpacked(len(compressed))
    decompressor = bz2.BZ2Decompressor()
    try:
        content = decompressor.decompress(compressed, max_length=limit + 1)
    except (OSError, ValueError) as error:
        raise AnnotationError(f"{name} is not a bz2 file: {error}. Download it again.") from None
    if len(content) > limit:
        raise too_large(name, limit)
    if not decompressor.eof:
        raise AnnotationError(f"{name} is not a complete bz2 file. Download it again.")
    return content


def open_archive(file: BinaryIO, name: str) -> zipfile.ZipFile:
    """Open a zip archive.

    Parameters
    ----------
    file : binary file
        The archive, open for reading.
    name : str
        Its name, for error messages.

    Returns
    -------
    zipfile.ZipFile
        The archive; call `check_zip` before a member is unpacked.

    Raises
    ------
    AnnotationError
        If the archive is damaged.
    """
    try:
        return zipfile.ZipFile(file)
    except _BROKEN as error:
        raise AnnotationError(f"{name} is not a complete zip file: {error}. Download it again.") from None


def check_zip(archive: zipfile.ZipFile, name: str, budget: Budget | None = None) -> None:
    """Refuse an archive that is too large once unpacked, or whose members have unsafe names.

    No member unpacks to more than it declares: `zipfile` stops there. So the declared sizes can be checked first.

    Parameters
    ----------
    archive : zipfile.ZipFile
        The archive.
    name : str
        Its name, for error messages.
    budget : Budget, default=None
        The declared size of all members is subtracted from it.

    Raises
    ------
    LimitError
        If there are more than `MAX_MEMBERS` members, or if they unpack to more than `MAX_BYTES` bytes or `MAX_RATIO`
        times the packed size.
    AnnotationError
        If a name is absolute, contains ``..``, is a link or occurs twice, or if a member is encrypted or compressed by
        another method than deflate.
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
    """Unpack a member piece by piece, so that a wrong declared size is noticed before the memory is full.

    Parameters
    ----------
    archive : zipfile.ZipFile
        The archive.
    entry : zipfile.ZipInfo
        The member.
    name : str
        Name of the archive, for error messages.

    Yields
    ------
    bytes
        The next piece, of at most 1 MiB.

    Raises
    ------
    AnnotationError
        If the member is damaged.
    """
    try:
        with archive.open(entry) as file:
            while piece := file.read(_PIECE):
                yield piece
    except _BROKEN as error:
        raise AnnotationError(f"{name}: {entry.filename!r} cannot be unpacked: {error}. Download it again.") from None


def read_members(file: BinaryIO, name: str, wanted: Sequence[str]) -> dict[str, bytes]:
    """Read the members of a zip that have these file names, in whatever folder of the archive they are.

    Parameters
    ----------
    file : binary file
        The archive, open for reading.
    name : str
        Its name, for error messages.
    wanted : sequence of str
        File names without folders. Of several members with one name, the one in the fewest folders is taken.

    Returns
    -------
    dict of str to bytes
        Content of each wanted member.

    Raises
    ------
    AnnotationError
        If a member is missing, or the archive is damaged.
    LimitError
        If the archive is larger than `check_zip` allows.
    """
    with open_archive(file, name) as archive:
        check_zip(archive, name)
        found = {member: _find_member(archive.infolist(), member, name) for member in wanted}
        return {member: b"".join(unpack_member(archive, entry, name)) for member, entry in found.items()}


def _find_member(entries: Sequence[zipfile.ZipInfo], wanted: str, name: str) -> zipfile.ZipInfo:
    """Return the member with this file name that lies in the fewest folders."""
    found = [entry for entry in entries if PurePosixPath(entry.filename).name == wanted and not entry.is_dir()]
    if not found:
        raise AnnotationError(f"{name} has no member {wanted}, so it is not the expected archive.")
    return min(found, key=lambda entry: entry.filename.count("/"))


def _leads_out(name: str) -> bool:
    """Whether a member's name is absolute, names a drive, contains ``..`` or a NUL."""
    windows = PureWindowsPath(name)
    parts = PurePosixPath(name).parts + windows.parts
    return bool(PurePosixPath(name).is_absolute() or windows.drive or windows.root or ".." in parts or "\0" in name)
