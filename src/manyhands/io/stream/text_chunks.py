"""Text files in parts of whole lines, also gzipped ones."""

from __future__ import annotations

import gzip
import re
import zlib
from codecs import BOM_UTF8
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO, NamedTuple, cast

import numpy as np

from manyhands.exceptions import AnnotationError
from manyhands.io.read.text import ENCODING_ADVICE
from manyhands.io.stream.inputs import InputFile

_LONGEST = 64 << 20  # bytes without a line end that are kept in memory


class Lines(NamedTuple):
    """Some lines of a file.

    Attributes
    ----------
    first : int
        Number of the first line, from 1.
    offset : int
        Position of the first byte in the unpacked file.
    content : bytes
        The lines.
    share : float
        How much of the file has been read with them, from 0 to 1.
    """

    first: int
    offset: int
    content: bytes
    share: float


def read_lines(file: InputFile, n_bytes: int, quoted: bool) -> Iterator[Lines]:
    """Yield a UTF-8 text file in parts of whole lines.

    Parameters
    ----------
    file : InputFile
        The file.
    n_bytes : int
        Size of a part; a part is longer where a line is.
    quoted : bool
        Whether line ends within double quotes belong to a cell, as in CSV.

    Yields
    ------
    Lines

    Raises
    ------
    AnnotationError
        Where the file is not UTF-8, is damaged, or has no line ends.
    """
    first, offset, rest = 1, 0, b""
    with _opened(file) as (raw, unpacked):
        while True:
            read = _read(file, unpacked, n_bytes)
            is_end = not read
            if offset == 0 and not rest and read.startswith(BOM_UTF8):
                offset, read = len(BOM_UTF8), read[len(BOM_UTF8) :]
            _refuse_nul(file, read, first + rest.count(b"\n"))
            content = rest + read
            cut = (_last_line_end(content, quoted) + 1) if not is_end else len(content)
            if cut:
                share = 1.0 if is_end else min(raw.tell() / max(file.size, 1), 1.0)
                yield Lines(first, offset, content[:cut], share)
            first, offset, rest = first + content.count(b"\n", 0, cut), offset + cut, content[cut:]
            if is_end:
                return
            if len(rest) > max(_LONGEST, n_bytes):
                raise AnnotationError(
                    f"{file.name}, after line {first - 1}: {len(rest):,} bytes without the end of a row. "
                    f"Check the quotes and the line ends."
                )


def first_lines(file: InputFile, n_bytes: int, quoted: bool) -> Lines:
    """Return the first part of a file, by which its columns are chosen.

    Parameters
    ----------
    file : InputFile
        The file.
    n_bytes : int
        Size of the part.
    quoted : bool
        Whether line ends within double quotes belong to a cell, as in CSV.

    Returns
    -------
    Lines

    Raises
    ------
    AnnotationError
        Where there is nothing in the file, or its lines end with CR alone.
    """
    found = next(read_lines(file, n_bytes, quoted), None)
    if found is None:
        raise AnnotationError(f"{file.name} is empty. Export it again.")
    if b"\r" in found.content and b"\n" not in found.content:
        raise AnnotationError(
            f"{file.name} has lines that end with CR alone, which are not read in parts. Save it with LF or CR LF as "
            f"line ends."
        )
    return found


def placed_in_file(error: AnnotationError, n_lines: int, n_bytes: int) -> AnnotationError:
    """Return an error about a part of a file as one about the file.

    Parameters
    ----------
    error : AnnotationError
        The error, whose lines and bytes are counted from the beginning of the part.
    n_lines : int
        Lines of the file above the part.
    n_bytes : int
        Bytes of the file before the part.

    Returns
    -------
    AnnotationError
        With the numbers of the file, and without the advice to name an encoding: parts are read as UTF-8 only.
    """
    text = re.sub(r"\bline (\d+)", lambda found: f"line {int(found[1]) + n_lines}", str(error))
    text = re.sub(r"\bbyte (\d+)", lambda found: f"byte {int(found[1]) + n_bytes}", text)
    return AnnotationError(text.replace(ENCODING_ADVICE, ""))


def _last_line_end(content: bytes, quoted: bool) -> int:
    """Return where the last line ends that is complete; -1 where none is."""
    end = content.rfind(b"\n")
    if end < 0 or not quoted or b'"' not in content:
        return end
    # A line end is within a cell if the number of quotes before it is odd: a quote in a cell is written twice.
    cells = np.frombuffer(content, np.uint8)
    quotes, ends = np.flatnonzero(cells == ord('"')), np.flatnonzero(cells == ord("\n"))
    outside = ends[np.searchsorted(quotes, ends) % 2 == 0]
    return int(outside[-1]) if len(outside) else -1


@contextmanager
def _opened(file: InputFile) -> Iterator[tuple[BinaryIO, BinaryIO]]:
    """Open a file: its bytes on disk, and what they unpack to."""
    try:
        raw = file.path.open("rb")
    except OSError as error:
        raise AnnotationError(f"{file.path} cannot be opened: {error.strerror}.") from None
    with raw:
        yield raw, cast(BinaryIO, gzip.GzipFile(fileobj=raw)) if file.is_compressed else raw


def _read(file: InputFile, unpacked: BinaryIO, n_bytes: int) -> bytes:
    """Read some bytes; a damaged gzip file is named."""
    try:
        return unpacked.read(n_bytes)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise AnnotationError(f"{file.path} is damaged: {str(error).rstrip('.')}. Export it again.") from None
    except OSError as error:
        raise AnnotationError(f"{file.path} cannot be read: {error.strerror}.") from None


def _refuse_nul(file: InputFile, content: bytes, first: int) -> None:
    """Refuse UTF-16 and UTF-32, which have NUL bytes, and files that are no text."""
    at = content.find(b"\0")
    if at >= 0:
        raise AnnotationError(
            f"{file.name}, line {first + content.count(bytes([10]), 0, at)}: a NUL byte, which UTF-8 text never has. "
            f"Only UTF-8 is read in parts: save the file as UTF-8."
        )
