"""The files that are read in parts: which they are, of which kind, and their fingerprint."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path, PurePosixPath
from typing import Any

from manyhands.exceptions import AnnotationError
from manyhands.io.read.archives import EMPTY_ZIP, GZIP, ZIP
from manyhands.io.read.folders import file_names
from manyhands.io.read.json_files import looks_like_json
from manyhands.io.read.sources import PARQUET, Source

_SAMPLED = 1 << 20  # bytes at the beginning, the middle and the end of a file that are part of its fingerprint
_VERSION = 1  # of the fingerprint and of what is read; a change makes every code folder be written again
_TABLES = (".csv", ".tsv", ".txt", ".parquet", ".json", ".jsonl", ".ndjson", ".manifest", "")
READ_IN_PARTS = "Parquet, CSV and JSON lines, gzipped or not, one file or a folder of them"


@dataclass(frozen=True)
class InputFile:
    """A file that is read in parts.

    Attributes
    ----------
    path : Path
        Where it is.
    name : str
        Name for error messages, without ``.gz``; its suffix says how a text file is read.
    kind : {"parquet", "csv", "jsonl"}
        What is in it.
    is_compressed : bool
        Whether it is a gzip file.
    size : int
        Bytes on disk.
    time : int
        Time of the last change, in nanoseconds.
    """

    path: Path
    name: str
    kind: str
    is_compressed: bool
    size: int
    time: int


def find_inputs(paths: Any) -> list[InputFile]:
    """Return the files of one table, in the order in which their rows count; files of a folder by their names.

    Parameters
    ----------
    paths : str, Path, or list of these
        Files and folders.

    Returns
    -------
    list of InputFile

    Raises
    ------
    AnnotationError
        Where a path does not exist, there is nothing to read, or a file is of a kind that is not read in parts.
    """
    given = paths if isinstance(paths, list | tuple) else [paths]
    found = [_input(path) for path in _files(map(Path, given)) if path.stat().st_size]
    if not found:
        shown = given[0] if len(given) == 1 else list(given)
        raise AnnotationError(f"{shown} holds no rows to read. Give {READ_IN_PARTS}.")
    return found


def _files(paths: Iterable[Path]) -> Iterable[Path]:
    """Yield files, and the files below folders."""
    for path in paths:
        if path.is_dir():
            if (path / "_delta_log").exists():
                raise AnnotationError(
                    f"{path} is a Delta table, whose folder keeps files with rows that do not count any more. Write "
                    f"it as Parquet, or read it with Spark."
                )
            names = (name for name in sorted(file_names(path)) if not _is_of_engine(name))
            yield from (path / name for name in names)
        elif path.is_file():
            yield path
        else:
            raise AnnotationError(f"{path} does not exist. Give {READ_IN_PARTS}.")


def _is_of_engine(name: str) -> bool:
    """Whether an engine wrote a file for itself, such as ``_SUCCESS`` or ``_metadata``: all of them skip such names."""
    return any(part.startswith("_") for part in PurePosixPath(name).parts)


def _input(path: Path) -> InputFile:
    """Describe a file by its first bytes and its name."""
    source = Source(str(path), path)
    is_compressed = source.head.startswith(GZIP)
    if is_compressed:
        name = source.name[:-3] if source.suffix == ".gz" else source.name
        source = Source(name, compressed=source)
    if source.head.startswith((ZIP, EMPTY_ZIP)) or source.suffix not in _TABLES:
        raise AnnotationError(f"{path} is of a kind that is not read in parts. Write it as {READ_IN_PARTS}.")
    kind = "csv"
    if source.head.startswith(PARQUET):
        kind = "parquet"
    elif source.suffix == ".parquet":
        raise AnnotationError(f"{path} has a wrong name: its content is not that of a .parquet file.")
    elif source.suffix not in (".csv", ".tsv") and looks_like_json(source):
        kind = "jsonl"
    if kind == "parquet" and is_compressed:
        raise AnnotationError(f"{path} is a gzipped Parquet file. Unpack it; Parquet is compressed within.")
    if kind == "jsonl" and source.head.lstrip()[:1] == b"[":
        raise AnnotationError(f"{path} is one JSON list, which is not read in parts. Write an object per line.")
    status = path.stat()
    return InputFile(path, source.name, kind, is_compressed, status.st_size, status.st_mtime_ns)


def fingerprint(files: Sequence[InputFile], options: Mapping[str, Any]) -> str:
    """Return a text that changes with the files and with how they are read; their names are not part of it.

    Parameters
    ----------
    files : sequence of InputFile
        The files.
    options : mapping
        How they are read.

    Returns
    -------
    str
        32 hexadecimal digits.
    """
    found = blake2b(json.dumps([_VERSION, dict(options)], sort_keys=True).encode(), digest_size=16)
    for file in files:
        found.update(f"\0{file.kind} {file.size} {file.time}\0".encode())
        with file.path.open("rb") as opened:
            for at in (0, max(file.size // 2 - _SAMPLED // 2, 0), max(file.size - _SAMPLED, 0)):
                opened.seek(at)
                found.update(opened.read(_SAMPLED))
    return found.hexdigest()


def refuse_changed(files: Iterable[InputFile]) -> None:
    """Refuse files that were changed since they were found.

    Parameters
    ----------
    files : iterable of InputFile
        The files.

    Raises
    ------
    AnnotationError
        Where size or time of one differs.
    """
    for file in files:
        try:
            status = file.path.stat()
        except OSError:
            status = None
        if status is None or (status.st_size, status.st_mtime_ns) != (file.size, file.time):
            raise AnnotationError(
                f"{file.path} was changed while it was read. Wait until it is written, and start again."
            )
