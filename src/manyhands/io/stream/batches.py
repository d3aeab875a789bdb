"""The rows of a long table in batches of bounded size, from Parquet, CSV and JSON lines.

A batch has texts as one piece of bytes, so that no Python object is made for a cell. The file: the input files and
their fingerprint; `Batch` and the choice of columns; Parquet; lines of text files; CSV; JSON lines; operations on texts
as bytes; checks of names.
"""

from __future__ import annotations

import gzip
import json
import re
import zlib
from codecs import BOM_UTF8
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import pairwise
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, NamedTuple, cast
from zlib import crc32

import numpy as np
import numpy.typing as npt
import polars as pl

from manyhands._core import elementary
from manyhands.exceptions import AnnotationError, SeveralQuestionsError
from manyhands.io.documents import Document, Records, Table, as_text, frame_as_text, looks_like_json, parse_json
from manyhands.io.formats import read_document
from manyhands.io.formats.long import COMMON_NAMES, blank_repeated_headers
from manyhands.io.judgements import ORDER, ColumnOptions
from manyhands.io.messages import listed, normalise_name, shorten
from manyhands.io.row_filtering import fold_class, fold_id, may_mean_missing, refuse_labels, spelling_groups
from manyhands.io.sources import EMPTY_ZIP, GZIP, PARQUET, ZIP, Source, file_names
from manyhands.io.text_tables import ENCODING_ADVICE, header_lines, read_text_table
from manyhands.sharded.code_folder import TextIds

# ----------------------------------------------------------------------------------------------------
# The files that are read in parts: which they are, of which kind, and their fingerprint.

_SAMPLED = 1 << 20  # bytes at the beginning, the middle and the end of a file that are part of its fingerprint
_VERSION = 1  # of the fingerprint and of what is read; a change makes every code folder be written again
_TABLES = (".csv", ".tsv", ".txt", ".parquet", ".json", ".jsonl", ".ndjson", ".manifest", "")
_READ_IN_PARTS = "Parquet, CSV and JSON lines, gzipped or not, one file or a folder of them"


@dataclass(frozen=True)
class InputFile:
    """A file that is read in parts."""

    path: Path
    name: str  # name for error messages, without ``.gz``; its suffix says how a text file is read
    kind: str  # what is in it
    is_compressed: bool  # whether it is a gzip file
    size: int
    time: int  # time of the last change, in nanoseconds


def find_inputs(paths: Any) -> list[InputFile]:
    """Return the files of one table, in the order in which their rows count; files of a folder by their names."""
    several = paths if isinstance(paths, list | tuple) else [paths]
    files = [_input(path) for path in _files(map(Path, several)) if path.stat().st_size]
    if not files:
        shown = several[0] if len(several) == 1 else list(several)
        raise AnnotationError(f"{shown} holds no rows to read. Give {_READ_IN_PARTS}.")
    return files


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
            raise AnnotationError(f"{path} does not exist. Give {_READ_IN_PARTS}.")


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
        raise AnnotationError(f"{path} is of a kind that is not read in parts. Write it as {_READ_IN_PARTS}.")
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
    """Return a text that changes with the files and with how they are read; their names are not part of it."""
    digest = blake2b(json.dumps([_VERSION, dict(options)], sort_keys=True).encode(), digest_size=16)
    for file in files:
        digest.update(f"\0{file.kind} {file.size} {file.time}\0".encode())
        with file.path.open("rb") as opened:
            for at in (0, max(file.size // 2 - _SAMPLED // 2, 0), max(file.size - _SAMPLED, 0)):
                opened.seek(at)
                digest.update(opened.read(_SAMPLED))
    return digest.hexdigest()


def refuse_changed(files: Iterable[InputFile]) -> None:
    """Refuse files that were changed since they were found."""
    for file in files:
        try:
            status = file.path.stat()
        except OSError:
            status = None
        if status is None or (status.st_size, status.st_mtime_ns) != (file.size, file.time):
            raise AnnotationError(
                f"{file.path} was changed while it was read. Wait until it is written, and start again."
            )


# ----------------------------------------------------------------------------------------------------
# `Batch`: some rows of a file; and which columns of the file hold items, workers and labels.

Rows = npt.NDArray[np.intp]
_ROLES = ("item", "worker", "label", "time", "question")


@dataclass(frozen=True)
class Batch:
    """Some rows of a file."""

    item: pl.Series  # the cells; null where they are empty
    worker: pl.Series  # the cells; null where they are empty
    label: pl.Series  # the cells; null where they are empty
    time: pl.Series | None  # times of the rows; None where the file has none
    question: pl.Series | None  # question of each row; None where the file has no such column
    place: Callable[[int], str]  # file and line of a row, for error messages
    # of some rows, whether all cells are empty: those are blank lines
    is_blank: Callable[[Rows], npt.NDArray[np.bool_]]
    share: float  # how much of the file has been read with this batch, from 0 to 1
    notes: dict[str, str] = field(default_factory=dict)  # warnings: code -> sentence


@dataclass(frozen=True)
class _Columns:
    """Where a file has what."""

    # role ("item", "worker", "label", and "time" or "question" where the file has them) -> position
    place: dict[str, int]
    mapping: dict[str, str]  # role -> name of the column
    notes: dict[str, str]  # warnings: code -> sentence

    def batch_columns(self, frame: pl.DataFrame) -> dict[str, pl.Series | None]:
        """Return the columns of a `Batch` from a frame whose columns are in the order of the file."""
        return {role: frame.to_series(self.place[role]) if role in self.place else None for role in _ROLES}


def _choose_columns(sample: Document, header: Sequence[str], options: ColumnOptions) -> _Columns:
    """Choose the columns by the first rows of a file, with the rules by which whole files are read."""
    try:
        judgements = read_document(sample, options)
    except SeveralQuestionsError as error:
        raise AnnotationError(several_questions(error.questions)) from None
    if judgements.format != "long":
        raise AnnotationError(
            f"{sample.name} is in the format {judgements.format!r}; only tables with one row per label are read in "
            f"parts. Convert it with manyhands convert, or name the columns with `item=`, `worker=` and `label=`."
        )
    if judgements.refusal is not None:
        raise AnnotationError(str(judgements.refusal))
    if judgements.swapped is not None:
        raise AnnotationError(
            f"{sample.name} has pairwise verdicts with their order of presentation "
            f"({judgements.mapping[ORDER]}). The two orders are not kept apart where a file is read "
            f"in parts: read it in memory, or give a file with a part of the pairs."
        )
    notes = dict(judgements.notes)
    mapping = {role: name for role, name in judgements.mapping.items() if role in _ROLES}
    place = {role: list(header).index(name) for role, name in mapping.items()}
    question = _find_question(header)
    if question is not None and question not in place.values():
        place["question"] = question
    if "gold" in judgements.mapping:
        notes["gold_not_read"] = (
            f"The known answers in column {judgements.mapping['gold']!r} are not read where a file is read in parts. "
            f"Compare labels.csv with them afterwards."
        )
    return _Columns(place, mapping, notes)


def _find_question(header: Sequence[str]) -> int | None:
    """Return the column that names the question of a row, if there is one."""
    names = [normalise_name(name) for name in header]
    for wanted in COMMON_NAMES["question"]:
        places = [at for at, name in enumerate(names) if name == normalise_name(wanted)]
        if places:
            return places[0] if len(places) == 1 else None
    return None


# ----------------------------------------------------------------------------------------------------
# Rows of a Parquet file in batches: slices of the file, each read by itself.

_SAMPLE_ROWS = 10_000  # rows by which the columns are chosen
_EXACT = 2.0**53  # beyond it not every integer has a float of its own


class ParquetBatches:
    """The rows of a Parquet file."""

    def __init__(self, file: InputFile, options: ColumnOptions, n_rows: int) -> None:
        self._file, self._step = file, n_rows
        with _explained(file.name):
            self._scan = pl.scan_parquet(file.path, glob=False, hive_partitioning=False)
            schema = self._scan.collect_schema()
            self.total = int(self._scan.select(pl.len()).collect().item())
            sample = self._scan.head(_SAMPLE_ROWS).collect()
        self._names = schema.names()
        self.columns: _Columns = _choose_columns(
            Table(file.name, *frame_as_text(sample), typed=sample), self._names, options
        )
        types = {role: schema[self._names[at]] for role, at in self.columns.place.items()}
        self.integers = {role for role, kind in types.items() if kind.is_integer()}
        self._floats = [  # of ids; times may have fractions
            self._names[self.columns.place[role]]
            for role, kind in types.items()
            if kind.is_float() and role not in ("time", "question")
        ]

    def __iter__(self) -> Iterator[Batch]:
        """Yield the batches."""
        self._refuse_fractions()
        wanted = list(dict.fromkeys(self._names[at] for at in self.columns.place.values()))
        for begin in range(0, self.total, self._step):
            with _explained(self._file.name):
                frame = self._scan.select(wanted).slice(begin, self._step).collect()
            frame = frame.with_columns(pl.col(name).fill_nan(None).cast(pl.Int64) for name in self._floats)
            cells = dict(zip(wanted, frame_as_text(frame)[0].get_columns()))
            columns = {
                role: cells[self._names[self.columns.place[role]]] if role in self.columns.place else None
                for role in _ROLES
            }
            yield Batch(
                **columns,  # type: ignore[arg-type]  # item, worker and label are there
                place=lambda row, begin=begin: f"{self._file.name}, row {begin + row + 1}",  # type: ignore[misc]
                is_blank=lambda rows, begin=begin: self._is_blank(begin, rows),  # type: ignore[misc]
                share=min((begin + self._step) / max(self.total, 1), 1.0),
            )

    def _refuse_fractions(self) -> None:
        """Refuse floats that are not exact integers: the text of 1.0 would depend on the rows read together with it."""
        for name in self._floats:
            given = pl.col(name).cast(pl.Float64).fill_nan(None)
            whole = ((given == given.round()) & (given.abs() < _EXACT)).all()
            for begin in range(0, self.total, self._step):
                with _explained(self._file.name):
                    all_whole = self._scan.select(name).slice(begin, self._step).select(whole).collect().item()
                if not all_whole:
                    raise AnnotationError(
                        f"{self._file.name}: column {shorten(name)!r} holds fractions, or numbers beyond 2^53, which "
                        f"are not read as ids in parts. Write the column as text or as integers."
                    )

    def _is_blank(self, begin: int, rows: Rows) -> npt.NDArray[np.bool_]:
        """Whether all cells of some rows are empty, in the columns that were not read too."""
        first, last = int(rows[0]), int(rows[-1])
        with _explained(self._file.name):
            frame = self._scan.slice(begin + first, last - first + 1).collect()
        cells = frame_as_text(frame[(rows - first).tolist()])[0]
        return np.array([not any(cell and cell.strip() for cell in row) for row in cells.iter_rows()], bool)


@contextmanager
def _explained(name: str) -> Iterator[None]:
    """Context manager in which errors of polars name the file in one sentence."""
    try:
        yield
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        cause = str(error).partition("\n")[0][:200]  # a panic of polars is not derived from Exception
        raise AnnotationError(f"{name} cannot be read as Parquet: {cause.rstrip('.')}. Write it again.") from None


# ----------------------------------------------------------------------------------------------------
# Text files in parts of whole lines, also gzipped ones.

_LONGEST = 64 << 20  # bytes without a line end that are kept in memory


class _Lines(NamedTuple):
    """Some lines of a file."""

    first: int  # number of the first line, from 1
    offset: int  # position of the first byte in the unpacked file
    content: bytes
    share: float  # how much of the file has been read with them, from 0 to 1


def read_lines(file: InputFile, n_bytes: int, quoted: bool) -> Iterator[_Lines]:
    """Yield a UTF-8 text file in parts of whole lines."""
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
                yield _Lines(first, offset, content[:cut], share)
            first, offset, rest = first + content.count(b"\n", 0, cut), offset + cut, content[cut:]
            if is_end:
                return
            if len(rest) > max(_LONGEST, n_bytes):
                raise AnnotationError(
                    f"{file.name}, after line {first - 1}: {len(rest):,} bytes without the end of a row. "
                    f"Check the quotes and the line ends."
                )


def _first_lines(file: InputFile, n_bytes: int, quoted: bool) -> _Lines:
    """Return the first part of a file, by which its columns are chosen."""
    lines = next(read_lines(file, n_bytes, quoted), None)
    if lines is None:
        raise AnnotationError(f"{file.name} is empty. Export it again.")
    if b"\r" in lines.content and b"\n" not in lines.content:
        raise AnnotationError(
            f"{file.name} has lines that end with CR alone, which are not read in parts. Save it with LF or CR LF as "
            f"line ends."
        )
    return lines


def _placed_in_file(error: AnnotationError, n_lines: int, n_bytes: int) -> AnnotationError:
    """Return an error about a part of a file as one about the file."""
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


# ----------------------------------------------------------------------------------------------------
# Rows of a text table in batches: parts of whole lines, each read below the header as a table of its own.

_SAMPLE_BYTES = 1 << 20  # bytes by which the columns are chosen
_LAST_ONLY = "footer"  # a note that is true of the last line of a file only


class CsvBatches:
    """The rows of a text table."""

    def __init__(self, file: InputFile, options: ColumnOptions, n_bytes: int) -> None:
        self._file, self._step = file, n_bytes
        start = _first_lines(file, min(_SAMPLE_BYTES, n_bytes), quoted=True)
        source = Source(file.name, content=start.content)
        try:
            sample = read_text_table(source)
        except AnnotationError as error:
            raise _placed_in_file(error, 0, start.offset) from None
        self._head = header_lines(source)
        self._header = sample.header
        table = Table(file.name, sample.frame, sample.header, sample.locate, notes=sample.notes)
        self.columns: _Columns = _choose_columns(table, sample.header, options)
        per_row = (len(start.content) - len(self._head)) / max(len(sample.frame), 1)
        self.total = None if file.is_compressed or not per_row else int(file.size / per_row)
        self.integers: set[str] = set()

    def __iter__(self) -> Iterator[Batch]:
        """Yield the batches."""
        for lines in read_lines(self._file, self._step, quoted=True):
            begun = len(self._head) if lines.first == 1 else 0
            if begun < len(lines.content):
                yield self._batch(lines, lines.content[begun:])

    def _batch(self, lines: _Lines, rows: bytes) -> Batch:
        """Read some lines as a table."""
        n_head = self._head.count(b"\n")
        lines_more = lines.first - 1 if lines.first == 1 else lines.first - 1 - n_head
        bytes_more = lines.offset if lines.first == 1 else lines.offset - len(self._head)
        source = Source(self._file.name, content=self._head + rows)
        try:
            frame, header, locate, notes = read_text_table(source)
        except AnnotationError as error:
            raise _placed_in_file(error, lines_more, bytes_more) from None
        table = blank_repeated_headers(Table(self._file.name, frame, header, notes=notes))

        def place(row: int) -> str:
            location = None if locate is None else locate(row)
            if location is None:
                return f"{self._file.name}, a row from line {lines.first} on"
            return f"{self._file.name}, line {int(location.split()[-1]) + lines_more}"

        def is_blank(rows: Rows) -> npt.NDArray[np.bool_]:
            return table.blank_lines().to_numpy()[rows]

        return Batch(
            **self.columns.batch_columns(table.frame),  # type: ignore[arg-type]  # item, worker and label are there
            place=place,
            is_blank=is_blank,
            share=lines.share,
            notes={code: note for code, note in table.notes.items() if code != _LAST_ONLY or lines.share == 1.0},
        )


# ----------------------------------------------------------------------------------------------------
# Rows of a file of JSON lines in batches.

_SAMPLE = 1 << 20  # bytes by which the fields are chosen
_INTEGER = rb" ?(?:0|-?[1-9][0-9]{0,17})(?=[,}])"  # of 64 bits; fractions and powers of ten are none
_KINDS = {str: "text", int: "numbers", float: "numbers", bool: "truth values", list: "lists", dict: "objects"}


class JsonBatches:
    """The rows of a file of JSON lines: flat objects, each on a line."""

    def __init__(self, file: InputFile, options: ColumnOptions, n_bytes: int) -> None:
        self._file, self._step = file, n_bytes
        start = _first_lines(file, min(_SAMPLE, n_bytes), quoted=False)
        objects, _ = self._objects(start)
        self._keys = list(dict.fromkeys(key for entry in objects for key in entry))
        self.columns: _Columns = _choose_columns(Records(file.name, objects), self._keys, options)
        self.total = None if file.is_compressed else int(file.size * len(objects) / len(start.content))
        self.integers: set[str] = set()
        self._kind = {  # role -> type of its first value
            role: next((type(value) for entry in objects if (value := entry.get(self._keys[at])) is not None), str)
            for role, at in self.columns.place.items()
        }
        self._is_noted: set[str] = set()

    def __iter__(self) -> Iterator[Batch]:
        """Yield the batches."""
        for lines in read_lines(self._file, self._step, quoted=False):
            columns = self._simple_columns(lines.content)
            if columns is not None:
                yield self._batch(lines, columns, {}, lambda lines=lines: self._objects(lines)[0])  # type: ignore[misc]
                continue
            objects, notes = self._objects(lines)
            if objects:
                columns, more = self._any_columns(lines, objects)
                yield self._batch(lines, columns, notes | more, lambda objects=objects: objects)  # type: ignore[misc]

    def _simple_columns(self, content: bytes) -> dict[str, pl.Series] | None:
        """Read fields that are all text or all integers with polars; None where that is not certain.

        polars writes fractions and nested values in its own way, and takes the first of two values of a key. So it
        reads only parts in which every object has each field once, with a value of the type of the first one.
        """
        if b"\\ud" in content or b"\\uD" in content:  # unpaired surrogates are refused elsewhere
            return None
        names = {role: self._keys[at] for role, at in self.columns.place.items()}
        counts = {role: _count_values(content, name, self._kind.get(role, str)) for role, name in names.items()}
        if min(counts.values()) <= 0:
            return None
        try:
            frame = pl.read_ndjson(content, schema=dict.fromkeys(names.values(), pl.String))
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException):
            return None
        if any(n != len(frame) for n in counts.values()) or any(frame.null_count().row(0)):
            return None
        return {role: frame[name] for role, name in names.items()}

    def _objects(self, lines: _Lines) -> tuple[list[dict[str, Any]], dict[str, str]]:
        """Parse some lines, and note keys that occur twice; errors name the line of the file."""
        try:
            values, notes = parse_json(Source(self._file.name, content=lines.content))
        except AnnotationError as error:
            raise _placed_in_file(error, lines.first - 1, lines.offset) from None
        values = values if isinstance(values, list) else [values]
        odd = next((at for at, value in enumerate(values) if not isinstance(value, dict)), None)
        if odd is not None:
            raise AnnotationError(f"{_place(self._file, lines, odd)}: not an object. Write one object per line.")
        return values, notes

    def _any_columns(self, lines: _Lines, objects: list[dict[str, Any]]) -> tuple[dict[str, pl.Series], dict[str, str]]:
        """Take the fields that are needed out of objects, whatever their types, and note mixed types."""
        columns: dict[str, pl.Series] = {}
        notes: dict[str, str] = {}
        for role, at in self.columns.place.items():
            values = [entry.get(self._keys[at]) for entry in objects]
            notes |= self._note_types(role, values, lines)
            columns[role] = pl.Series([as_text(value) for value in values], dtype=pl.String)
        return columns, notes

    def _batch(
        self,
        lines: _Lines,
        columns: dict[str, pl.Series],
        notes: dict[str, str],
        objects: Callable[[], list[dict[str, Any]]],
    ) -> Batch:
        """Make a batch of columns."""

        def is_blank(rows: Rows) -> npt.NDArray[np.bool_]:
            entries = objects()
            texts = ([as_text(value) for value in entries[row].values()] for row in rows.tolist())
            return np.array([not any(text and text.strip() for text in row) for row in texts], bool)

        return Batch(
            **{role: columns.get(role) for role in _ROLES},  # type: ignore[arg-type]  # item, worker, label are there
            place=lambda row: _place(self._file, lines, row),
            is_blank=is_blank,
            share=lines.share,
            notes=notes,
        )

    def _note_types(self, role: str, values: list[Any], lines: _Lines) -> dict[str, str]:
        """Return the note on a field that holds values of two types, with the line of the first of the second."""
        kinds = set(map(type, values)) - {type(None)}
        if not kinds or role in self._is_noted:
            return {}
        first = self._kind[role]
        if kinds == {first}:
            return {}
        row = next(at for at, value in enumerate(values) if value is not None and type(value) is not first)
        self._is_noted.add(role)
        field = shorten(self._keys[self.columns.place[role]])
        return {
            f"mixed_types_{role}": f"Field {field!r} of {self._file.name} holds {_KINDS[first]}, and "
            f"{_KINDS[type(values[row])]} from {_place(self._file, lines, row).rpartition(', ')[2]} on: "
            f"{shorten(as_text(values[row]) or '')!r}. All are read as text."
        }


def _count_values(content: bytes, name: str, kind: type) -> int:
    """Return how many objects have a field, if each value of it is of one type: text or an integer; otherwise -1."""
    key = json.dumps(name, ensure_ascii=False).encode() + b":"
    n = content.count(key)
    if kind is str:
        return n if n == content.count(key + b'"') + content.count(key + b' "') else -1
    if kind is int:
        return n if n == len(re.findall(re.escape(key) + _INTEGER, content)) else -1
    return -1


def _place(file: InputFile, lines: _Lines, row: int) -> str:
    """Return file and line of an object; blank lines are counted."""
    given = [at for at, line in enumerate(lines.content.split(b"\n")) if line.strip()]
    return f"{file.name}, line {lines.first + given[row]}"


# ----------------------------------------------------------------------------------------------------
# Texts as one piece of bytes: their CRC-32, the distinct ones among them, and their order in the layout.

Hashes = npt.NDArray[np.uint32]
_TOGETHER = 1 << 15  # texts that are copied at a time
_columns = elementary.load("_columns")
_SEED = (hash("manyhands") | 1) % 2**64  # drawn for each process, so that no file can be made of colliding texts


def crc_of_texts(texts: pl.Series) -> Hashes:
    """Return the CRC-32 of each text, by which the layout orders items.

    Examples
    --------
    >>> crc_of_texts(pl.Series(["a", "17"])).tolist()
    [3904355907, 1060745282]

    Shapes: returns (n,).
    """
    hashes = np.empty(len(texts), np.int32)
    compute = getattr(_columns, "crc_text", None)
    if compute is None or compute(texts.__arrow_c_stream__(), hashes) < 0:
        return np.fromiter((crc32(text.encode()) for text in texts.to_list()), np.uint32, len(texts))
    return hashes.view(np.uint32)


def join_texts(texts: pl.Series) -> TextIds:
    """Return texts as their lengths and one piece of bytes."""
    joined = texts.str.join("").item() if len(texts) else ""
    return TextIds(texts.str.len_bytes().to_numpy().astype(np.int64), joined.encode())


def code_texts(texts: TextIds) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
    """Number the distinct texts in the order of their first appearance.

    Examples
    --------
    >>> codes, first = code_texts(TextIds(np.array([1, 2, 1]), b"abca"))
    >>> codes.tolist(), first.tolist()
    ([0, 1, 0], [0, 1])

    Shapes: returns codes (n,); returns first (n_distinct,).
    """
    compute = getattr(_columns, "code_joined_text", None)
    if compute is None:
        return _code_by_dictionary(texts)
    lengths = np.ascontiguousarray(texts.n_bytes, np.int64)
    codes, first = np.empty(len(lengths), np.int32), np.empty(len(lengths), np.int64)
    n_distinct = compute(_SEED, np.frombuffer(texts.data, np.uint8), lengths, codes, first)
    return codes, first[:n_distinct].copy()


def _code_by_dictionary(texts: TextIds) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
    """The same without the compiled function."""
    ends = np.cumsum(texts.n_bytes, dtype=np.int64).tolist()
    code_of: dict[bytes, int] = {}
    codes = np.fromiter(
        (code_of.setdefault(texts.data[begin:end], len(code_of)) for begin, end in pairwise([0, *ends])),
        np.int32,
        len(ends),
    )
    first = np.full(len(code_of), len(codes), np.int64)
    np.minimum.at(first, codes, np.arange(len(codes)))
    return codes, first


def take_texts(texts: TextIds, rows: npt.NDArray[np.int64]) -> TextIds:
    """Return some of the texts, in the order of `rows`."""
    begins = np.cumsum(texts.n_bytes, dtype=np.int64) - texts.n_bytes
    lengths = np.asarray(texts.n_bytes, np.int64)[rows]
    data, pieces = np.frombuffer(texts.data, np.uint8), []
    for first in range(0, len(rows), _TOGETHER):  # positions of bytes take more memory than the bytes
        some = slice(first, first + _TOGETHER)
        ends = np.cumsum(lengths[some])
        at = np.arange(ends[-1]) + np.repeat(begins[rows[some]] - (ends - lengths[some]), lengths[some])
        pieces.append(data[at].tobytes())
    return TextIds(lengths, b"".join(pieces))


def order_texts(texts: TextIds, hashes: Hashes) -> npt.NDArray[np.int64]:
    """Return the order of distinct texts in the layout: by CRC-32, then by their bytes.

    Shapes: hashes (n,); returns (n,).
    """
    order = np.argsort(hashes, kind="stable")
    ordered = hashes[order]
    same = np.flatnonzero(ordered[1:] == ordered[:-1])
    if len(same):
        ends = np.cumsum(texts.n_bytes, dtype=np.int64)
        begins = ends - texts.n_bytes
        for value in np.unique(ordered[same]):  # two texts of 50,000 share a CRC-32 about once in three files
            first, last = np.searchsorted(ordered, value, "left"), np.searchsorted(ordered, value, "right")
            part = order[first:last].tolist()
            order[first:last] = sorted(part, key=lambda at: texts.data[begins[at] : ends[at]])
    return order.astype(np.int64, copy=False)


# ----------------------------------------------------------------------------------------------------
# Checks of names where a file is read in parts: free text, missing labels, spellings, several questions.

_MOST_WORKERS = 100_000  # whose spellings are compared; it takes some microseconds for each
_REMEDY = "Names are not changed where a file is read in parts: change them in the file."


def refuse_free_text(counts: Mapping[str, int], source: str, column: str) -> None:
    """Refuse labels that are not classes, by the rule for files that are read whole."""
    names, numbers = np.array(list(counts), object), np.array(list(counts.values()), np.int64)
    refusal = refuse_labels(names, numbers, source, column)
    if refusal is not None:
        raise AnnotationError(refusal)


def notes_on_names(classes: Mapping[Any, int], workers: Sequence[Any]) -> dict[str, str]:
    """Return notes on classes that may mean a missing label, and on names that differ in spelling only."""
    notes = {}
    counts = {name: n for name, n in classes.items() if isinstance(name, str)}
    missing = [repr(shorten(name)) for name in counts if may_mean_missing(name)]
    if missing:
        notes["class_like_missing"] = (
            f"{len(missing)} class(es) may mean that there is no label, and were kept: {listed(missing)}. {_REMEDY}"
        )
    ids = dict.fromkeys(workers if len(workers) <= _MOST_WORKERS else [], 0)
    ids = {name: 0 for name in ids if isinstance(name, str)}
    for code, names, fold in (("classes", counts, fold_class), ("workers", ids, fold_id)):
        groups = spelling_groups(names, fold)
        if groups:
            alike = listed([" and ".join(ascii(shorten(name)) for name in group) for group in groups])
            notes[f"look_alike_{code}"] = (
                f"Some {code} differ in case, spaces or Unicode form only, and were kept apart: {alike}. {_REMEDY}"
            )
    return notes


def several_questions(names: Collection[str]) -> str:
    """Return the error about rows of several questions: which one is meant is chosen where files are read whole."""
    return (
        f"The file holds answers to several questions ({listed(sorted(names)[:5])}), of which one cannot be chosen "
        f"where a file is read in parts. Give a file with the rows of one question."
    )
