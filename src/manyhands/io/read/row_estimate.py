"""How many rows a file has, without reading it: from the footer of a Parquet file, or from the first lines of text."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from manyhands.io.read.archives import GZIP
from manyhands.io.read.parquet import FOOTER
from manyhands.io.read.sources import PARQUET
from manyhands.io.read.thrift import Reader, ThriftError

_SAMPLE = 1 << 20  # bytes of text from which the length of a line is estimated
_MAX_FOOTER = 1 << 28  # bytes; an estimate needs no more
_PARQUET_ROW = 4  # bytes of a row of a Parquet file whose footer cannot be read, packed


class FileSize(NamedTuple):
    """Size of the files of an export.

    Attributes
    ----------
    n_rows : int
        Rows; an estimate for text files.
    n_bytes : int
        Bytes on disk.
    unpacked : int
        Bytes without gzip; an estimate for gzip files.
    """

    n_rows: int
    n_bytes: int
    unpacked: int


def measure_files(files: Sequence[str | Path]) -> FileSize | None:
    """Estimate the number of rows of files and folders.

    Parameters
    ----------
    files : sequence of str or Path
        The files of an export; of a folder, all files in it.

    Returns
    -------
    FileSize or None
        None for standard input, and for files that cannot be opened; reading them gives the error message.
    """
    if any(str(name) == "-" for name in files):
        return None
    try:
        sizes = [_measure(path) for name in files for path in _files_of(Path(name))]
    except OSError:
        return None
    return FileSize(*(sum(column) for column in zip(*sizes))) if sizes else None


def _files_of(path: Path) -> Iterator[Path]:
    """Yield a file, or the files of a folder."""
    if path.is_dir():
        yield from (inner for inner in sorted(path.rglob("*")) if inner.is_file())
    else:
        yield path


def _measure(path: Path) -> FileSize:
    """Return the size of one file."""
    n_bytes = path.stat().st_size
    with path.open("rb") as file:
        head = file.read(_SAMPLE)
        if head.startswith(PARQUET):
            file.seek(max(n_bytes - 8, 0))
            length = int.from_bytes(file.read(4), "little")
            file.seek(max(n_bytes - 8 - length, 0))
            footer = file.read(length) if length <= _MAX_FOOTER else b""
            return FileSize(_rows_in_footer(footer, n_bytes), n_bytes, n_bytes)
    unpacked = n_bytes
    if head.startswith(GZIP):
        unpacker = zlib.decompressobj(wbits=31)
        try:
            text = unpacker.decompress(head, 4 * _SAMPLE)
        except zlib.error:
            text = b""
        used = len(head) - len(unpacker.unconsumed_tail) - len(unpacker.unused_data)
        unpacked = int(n_bytes * max(len(text) / max(used, 1), 1.0))
        head = text
    lines = max(head.count(b"\n"), 1)
    return FileSize(int(unpacked * lines / max(len(head), 1)), n_bytes, unpacked)


def _rows_in_footer(footer: bytes, n_bytes: int) -> int:
    """Return the number of rows that a footer states; reading the file checks whether it is true."""
    try:
        n_rows: int = Reader(footer, 0, len(footer)).struct(FOOTER)[3]
    except ThriftError:
        return n_bytes // _PARQUET_ROW
    return max(n_rows, 0)
