"""What is inside zip and bz2 files, read into memory within limits; nothing is ever extracted by name."""

from __future__ import annotations

import bz2
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from manyhands.exceptions import AnnotationError, LimitError

MAX_MEMBERS = 1000
MAX_RATIO = 100
MAX_BYTES = 2_000_000_000


def read_members(path: Path, wanted: Sequence[str], max_bytes: int = MAX_BYTES) -> dict[str, bytes]:
    """The contents of the members with these file names, in whatever folder of the archive they lie."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
            if len(members) > MAX_MEMBERS:
                raise LimitError(f"{path} holds {len(members)} files; more than {MAX_MEMBERS} are refused.")
            found = {name: _find(members, name, path) for name in wanted}
            for member in found.values():
                _refuse_bomb(member.file_size, member.compress_size, f"{member.filename} in {path}", max_bytes)
            if sum(member.file_size for member in found.values()) > max_bytes:
                raise LimitError(f"The files in {path} are larger than {max_bytes} bytes together; they are refused.")
            return {name: archive.read(member) for name, member in found.items()}
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, NotImplementedError) as error:
        raise AnnotationError(
            f"{path} is not a zip file that can be read: {error}. Delete it to fetch it again."
        ) from None


def read_bz2(path: Path, max_bytes: int = MAX_BYTES) -> bytes:
    """The content of a bz2 file."""
    packed = path.read_bytes()
    limit = min(max_bytes, MAX_RATIO * len(packed))
    decompressor = bz2.BZ2Decompressor()
    try:
        content = decompressor.decompress(packed, max_length=limit + 1)
    except (OSError, ValueError) as error:
        raise AnnotationError(
            f"{path} is not a bz2 file that can be read: {error}. Delete it to fetch it again."
        ) from None
    _refuse_bomb(len(content), len(packed), str(path), max_bytes)
    if not decompressor.eof:
        raise AnnotationError(f"{path} ends before its content does. Delete it to fetch it again.")
    return content


def _find(members: list[zipfile.ZipInfo], name: str, path: Path) -> zipfile.ZipInfo:
    fitting = [member for member in members if PurePosixPath(member.filename).name == name and not member.is_dir()]
    if not fitting:
        raise AnnotationError(f"{path} has no {name}, so it is not the archive it should be.")
    return min(fitting, key=lambda member: member.filename.count("/"))


def _refuse_bomb(n_bytes: int, n_packed: int, what: str, max_bytes: int) -> None:
    if n_bytes > max_bytes or n_bytes > MAX_RATIO * max(n_packed, 1):
        raise LimitError(
            f"{what} would unpack from {n_packed} to {n_bytes} bytes or more; beyond {max_bytes} bytes, "
            f"or {MAX_RATIO} times its size, that is refused."
        )
