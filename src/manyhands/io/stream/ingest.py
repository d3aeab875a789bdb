"""`stream_to_codes`: a long table larger than memory as a `CodeFolder`.

The file: the function, which reads batches, puts their rows on disk and writes the codes; then these parts in their
order: rows as numbers, rows on disk by ranges of items, blocks of the code folder, sorting within a range, stray
classes; and the folder of code folders (the cache).
"""

from __future__ import annotations

import os
import re
import shutil
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from manyhands._core.arrays import Mask
from manyhands._core.progress import report
from manyhands._core.writing import held, naming
from manyhands.exceptions import AnnotationError, CrowdWarning, LimitError, OutputExistsError, ParameterError
from manyhands.io.judgements import Coded, ColumnOptions, code_text, parse_times
from manyhands.io.row_filtering import MOST_LABELS, RARE_CLASSES, Ledger, Strays, find_strays
from manyhands.io.stream.batches import (
    Batch,
    CsvBatches,
    Hashes,
    InputFile,
    JsonBatches,
    ParquetBatches,
    code_texts,
    crc_of_texts,
    find_inputs,
    fingerprint,
    join_texts,
    notes_on_names,
    order_texts,
    refuse_changed,
    refuse_free_text,
    several_questions,
    take_texts,
)
from manyhands.sharded.code_folder import HEADER, CodeFolder, CodeFolderWriter, TextIds, narrow
from manyhands.sharded.labels import N_BLOCKS

_Batches = ParquetBatches | CsvBatches | JsonBatches
_MAX_MEMORY = 1 << 30  # bytes, if the caller allows no other amount: a small machine has them
_LEAST_MEMORY = 256 << 20  # with less, the libraries would leave a batch too few rows to be fast
# Parts of the memory that is allowed, found by measuring peaks at 1 GB; the libraries take 150 MB of it.
_BYTES_PER_ROW = 2500  # of a batch: its cells, their numbers, and what polars keeps for the next one
_BYTES_PER_TEXT_BYTE = 64  # of a CSV file
_BYTES_PER_JSON_BYTE = 128  # of a file of JSON lines: Python objects on the way
_BYTES_PER_SORTED_ROW = 500  # of the rows of a range that are sorted together
_FEWEST_BITS, _MOST_BITS = 8, 12  # of the CRC-32, which cut the rows into ranges
_UNPACKED = 6  # times the size of a gzip file, where it is estimated
_SPARE_DISK = 64 << 20  # bytes that are left free
_STEPS = 1000  # of progress


def stream_to_codes(
    paths: Any,
    *,
    cache: str | Path,
    item: str | None = None,
    worker: str | None = None,
    label: str | None = None,
    max_memory: int | None = None,
    rare_classes: str = "drop",
    keep_integers: bool = False,
    tables: bool = True,
) -> CodeFolder:
    """Read a table with one row per label in parts, and write its labels as codes to a folder of the cache.

    The labels that are kept are those of `manyhands.io.read_export` on the same files. Unlike it, this reads long
    tables only (no other formats, no vote counts, no column per worker), in UTF-8, and does not look for weights,
    known answers or several questions.
    The second call on the same files finds the folder in the cache. Two processes on the same files write it once.
    """
    limit = _MAX_MEMORY if max_memory is None else int(max_memory)
    if limit < _LEAST_MEMORY:
        raise ParameterError(f"`max_memory` is {limit:,} bytes; reading in parts needs at least {_LEAST_MEMORY:,}.")
    if rare_classes not in RARE_CLASSES:
        raise ParameterError(f"`rare_classes` is {rare_classes!r}; in parts, {', '.join(RARE_CLASSES)} are possible.")
    files = find_inputs(paths)
    options = {"item": item, "worker": worker, "label": label, "rare": rare_classes, "integers": keep_integers}
    place = Path(cache)
    folder = place / fingerprint(files, options)
    if not folder.exists():
        _make(place)
        with writing(folder):
            if not folder.exists():  # another process may have written it meanwhile
                _remove_leftovers(place)
                output = _Output(folder, rare_classes, keep_integers, limit, tables)
                _read(files, ColumnOptions(item, worker, label), output, limit)
    codes = CodeFolder(folder)
    _mark_used(folder)
    if tables:
        _check_tables(len(codes.worker_ids), len(codes.classes), limit)
    for code, sentence in codes.ledger.get("notes", {}).items():
        warnings.warn(f"{code}: {sentence}", CrowdWarning, stacklevel=2)
    return codes


def _make(place: Path) -> None:
    """Create the cache folder; a place where that cannot be is named."""
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        what = "is a file" if place.is_file() else f"cannot be created ({error.strerror})"
        raise ParameterError(f"The cache folder {place} {what}. Name another folder with `cache=`.") from None


def _read(files: Sequence[InputFile], options: ColumnOptions, output: _Output, limit: int) -> None:
    """Read all files to a spill file, and write the code folder from it."""
    readers = [_reader(file, options, limit) for file in files]
    _refuse_unlike(readers, files)
    n_rows = _estimate(readers, files)
    most = max(limit // _BYTES_PER_SORTED_ROW, 1)
    bits = min(max((n_rows // most).bit_length(), _FEWEST_BITS), _MOST_BITS)
    coder = _RowCoder(_Dictionary("worker", limit // 4), _Dictionary("label", limit // 8))
    size = sum(file.size for file in files)
    with Spill(_spill_path(output.folder), bits, output.folder) as spill:
        done = 0
        for file, reader in zip(files, readers):
            for code, sentence in reader.columns.notes.items():
                coder.notes.setdefault(code, sentence)
            for batch in reader:
                refuse_changed([file])  # a file that grows might have no end
                spill.add(coder.rows(batch, reader.columns.mapping))
                read = (done + batch.share * file.size) / size
                _check_disk(spill, output.folder, read)
                report(int(_STEPS * read), _STEPS, "reading labels")
            done += file.size
        refuse_changed(files)
        source = files[0].name if len(files) == 1 else f"{files[0].name} and {len(files) - 1} more"
        refuse_free_text(coder.counts_by_label, source, readers[0].columns.mapping["label"])
        shared = set.intersection(*(reader.integers for reader in readers))
        _write_codes(spill, coder, output, readers[0].columns.mapping, shared)


def _reader(file: InputFile, options: ColumnOptions, limit: int) -> _Batches:
    """The rows of a file, in batches that fit into memory."""
    if file.kind == "parquet":
        return ParquetBatches(file, options, max(limit // _BYTES_PER_ROW, 1))
    if file.kind == "jsonl":
        return JsonBatches(file, options, limit // _BYTES_PER_JSON_BYTE)
    return CsvBatches(file, options, limit // _BYTES_PER_TEXT_BYTE)


def _refuse_unlike(readers: Sequence[_Batches], files: Sequence[InputFile]) -> None:
    """Refuse files that take their items from different columns."""
    first = readers[0].columns.mapping["item"]
    for reader, file in zip(readers, files):
        if reader.columns.mapping["item"] != first:
            raise AnnotationError(
                f"Items are {first} in {files[0].name}, but {reader.columns.mapping['item']} in {file.name}. "
                f"Name one with `item=`."
            )


def _estimate(readers: Sequence[_Batches], files: Sequence[InputFile]) -> int:
    """Estimated number of rows."""
    return sum(
        file.size * _UNPACKED // 20 if reader.total is None else reader.total for reader, file in zip(readers, files)
    )


def _check_disk(spill: Spill, folder: Path, share: float) -> None:
    """Refuse to go on where the disk will be full: what is on disk so far shows what the whole takes."""
    whole = spill.n_bytes / max(share, 1e-9)
    needed = 2 * whole - spill.n_bytes + _SPARE_DISK  # the codes and ids take less than the rows they come from
    free = shutil.disk_usage(folder.parent).free
    if needed > free:
        raise LimitError(
            f"{folder.parent} has {free / 1e9:,.1f} GB free; reading these labels in parts needs about "
            f"{needed / 1e9:,.1f} GB more there. Make room, or name another folder with `cache=`."
        )


# ----------------------------------------------------------------------------------------------------
# Rows of a batch as numbers: texts of workers and labels by dictionaries, and which rows count.

_BYTES_PER_ID = 200  # of a text in a dictionary of Python, with its key and number


class _Dictionary:
    """Texts of a role, numbered in the order of their first appearance."""

    def __init__(self, role: str, max_bytes: int) -> None:
        self._role, self._most = role, max(max_bytes // _BYTES_PER_ID, 1000)
        self.number_of: dict[str, int] = {}

    def numbers(self, column: pl.Series) -> npt.NDArray[np.int32]:
        """Return the number of each cell; -1 where it is null or white space.

        Shapes: returns (n_rows,).
        """
        coded = code_text(column, by_appearance=True)
        number_of = self.number_of
        table = [
            -1 if is_empty else number_of.setdefault(text, len(number_of))
            for text, is_empty in zip(coded.values.to_list(), _empty(coded.values).tolist())
        ]
        if len(number_of) > self._most:
            raise LimitError(
                f"There are more than {self._most:,} distinct {self._role}s, which do not fit into the memory that is "
                f"allowed. Check that the right column is read, or raise `max_memory`."
            )
        return np.array([*table, -1], np.int32)[coded.codes]  # code -1, null, takes the last entry


@dataclass
class _RowCoder:
    """Turns batches into rows of numbers, and counts those that are left out."""

    workers: _Dictionary  # the texts so far
    labels: _Dictionary  # the texts so far
    counts: Counter[str] = field(default_factory=Counter)  # "rows_read", and the reasons "blank" and "no_label"
    notes: dict[str, str] = field(default_factory=dict)  # warnings: code -> sentence
    questions: set[str] = field(default_factory=set)  # questions that rows name; more than one is refused
    # rows of each label so far, by number
    label_counts: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))

    def rows(self, batch: Batch, mapping: dict[str, str]) -> _SpilledRows:
        """Return the rows of a batch that are not blank lines, with texts in the order of their CRC-32."""
        self.counts["rows_read"] += len(batch.item)
        for code, sentence in batch.notes.items():
            self.notes.setdefault(code, sentence)
        item, worker, label = batch.item, self.workers.numbers(batch.worker), self.labels.numbers(batch.label)
        items = code_text(item, by_appearance=True)
        no_item = np.append(_empty(items.values), True)[items.codes]
        kept = ~self._blank_lines(batch, no_item & (worker < 0) & (label < 0))
        self._refuse_questions(batch, kept)
        _refuse_nameless(batch, kept, {"item": no_item, "worker": (worker < 0) & (label >= 0)}, mapping)
        time = None if batch.time is None else self._times(batch.time)
        if not kept.all():
            items = code_text(item.filter(pl.Series(kept)), by_appearance=True)
            worker, label = worker[kept], label[kept]
            time = None if time is None else time[kept]
        self.counts["no_label"] += int((label < 0).sum())
        counts = np.bincount(label[label >= 0], minlength=len(self.labels.number_of))
        counts[: len(self.label_counts)] += self.label_counts
        self.label_counts = counts
        return _by_hash(items, worker, label, time)

    @property
    def counts_by_label(self) -> dict[str, int]:
        """Rows of each label so far."""
        return dict(zip(self.labels.number_of, self.label_counts.tolist()))

    def _blank_lines(self, batch: Batch, candidates: Mask) -> Mask:
        """Return which rows are blank lines, and count them."""
        rows = np.flatnonzero(candidates)
        if len(rows):
            candidates = np.zeros_like(candidates)
            candidates[rows] = batch.is_blank(rows)
            self.counts["blank"] += int(candidates.sum())
        return candidates

    def _times(self, column: pl.Series) -> npt.NDArray[np.int64]:
        """Return the times of rows in microseconds."""
        times, notes = parse_times(column)
        for code, sentence in notes.items():
            self.notes.setdefault(code, sentence)
        return times.fill_null(NO_TIME).to_numpy(writable=True)

    def _refuse_questions(self, batch: Batch, kept: Mask) -> None:
        """Refuse rows about several questions."""
        if batch.question is None:
            return
        questions = batch.question.filter(pl.Series(kept)).drop_nulls().unique().str.strip_chars()
        self.questions |= set(questions.to_list()) - {""}
        if len(self.questions) > 1:
            raise AnnotationError(several_questions(self.questions))


def _empty(values: pl.Series) -> Mask:
    """Return which texts are nothing but white space."""
    return (values.str.strip_chars() == "").to_numpy()


def _by_hash(
    items: Coded, worker: npt.NDArray[np.int32], label: npt.NDArray[np.int32], time: npt.NDArray[np.int64] | None
) -> _SpilledRows:
    """Order the texts of items by the first 16 bits of their CRC-32, which ranges of rows are made of."""
    hashes = crc_of_texts(items.values)
    order = np.argsort((hashes >> np.uint32(16)).astype(np.uint16), kind="stable")  # a radix sort
    place = np.empty(len(order), np.int32)
    place[order] = np.arange(len(order), dtype=np.int32)
    return _SpilledRows(join_texts(items.values.gather(order)), hashes[order], place[items.codes], worker, label, time)


def _refuse_nameless(batch: Batch, kept: Mask, wrong: dict[str, Mask], mapping: dict[str, str]) -> None:
    """Refuse a row without an item, and a label without a worker: both are errors in the file."""
    for role, rows in wrong.items():
        rows_there = np.flatnonzero(kept & rows)
        if len(rows_there):
            raise AnnotationError(
                f"{batch.place(int(rows_there[0]))}: the {role} ({mapping.get(role, role)}) is blank. "
                f"Fill it in or remove the row; at least {len(rows_there)} such row(s)."
            )


# ----------------------------------------------------------------------------------------------------
# Rows on disk by ranges of the CRC-32 of their items, so that all rows of an item are found together again.

_CRC_BITS = 32
NO_TIME = np.iinfo(np.int64).min  # of rows without a time, which are the oldest


class _SpilledRows(NamedTuple):
    """Rows whose workers and labels are numbers."""

    texts: TextIds  # texts of items, each of which may occur several times
    hashes: Hashes  # (n_texts,); CRC-32 of each text
    item: npt.NDArray[Any]  # (n_rows,); text of each row
    worker: npt.NDArray[Any]  # (n_rows,); worker of each row; -1 where there is none
    label: npt.NDArray[Any]  # (n_rows,); label of each row; -1 where there is none
    time: npt.NDArray[np.int64] | None  # (n_rows,); microseconds since 1970; None where rows have no times


@dataclass(frozen=True)
class _Stored:
    """An array of a batch in the file, and where the part of each range begins."""

    offset: int
    dtype: np.dtype[Any]
    edges: npt.NDArray[np.uint32]


class Spill:
    """A file of rows in batches; within a batch, rows are ordered by the range of their items.

    Use it as a context manager; the file is removed at the end.
    """

    def __init__(self, path: Path, bits: int, shown: Path) -> None:
        self.path, self.n_parts = path, 1 << bits
        self._shift, self._shown = np.uint32(_CRC_BITS - bits), shown
        self._batches: list[dict[str, _Stored]] = []
        self._file: IO[bytes] | None = None
        self.n_bytes = 0

    def __enter__(self) -> Spill:
        """Create the file."""
        with naming(self._shown):
            self._file = self.path.open("w+b", buffering=0)
        return self

    def __exit__(self, *_: object) -> None:
        """Remove the file."""
        if self._file is not None:
            self._file.close()
        self.path.unlink(missing_ok=True)

    def add(self, rows: _SpilledRows) -> None:
        """Append a batch."""
        part_of_text = (rows.hashes >> self._shift).astype(np.uint16)
        part_of_row = part_of_text[rows.item]
        order = np.argsort(part_of_row, kind="stable")  # a radix sort, for numbers of 16 bits
        ranges = np.arange(self.n_parts + 1)
        of_texts = np.searchsorted(part_of_text, ranges)
        of_rows = np.searchsorted(part_of_row[order], ranges)
        ends = np.concatenate([[0], np.cumsum(rows.texts.n_bytes, dtype=np.int64)])
        item = rows.item[order] - of_texts[part_of_row[order]]  # number of the text within its range
        stored = {
            "n_bytes": self._append(narrow(rows.texts.n_bytes), of_texts),
            "data": self._append(np.frombuffer(rows.texts.data, np.uint8), ends[of_texts]),
            "hashes": self._append(rows.hashes, of_texts),
            "item": self._append(narrow(item), of_rows),
            "worker": self._append(narrow(rows.worker[order] + 1), of_rows),
            "label": self._append(narrow(rows.label[order] + 1), of_rows),
        }
        if rows.time is not None:
            stored["time"] = self._append(rows.time[order], of_rows)
        self._batches.append(stored)

    def _append(self, values: npt.NDArray[Any], edges: npt.NDArray[Any]) -> _Stored:
        """Append an array to the file."""
        assert self._file is not None
        view = np.ascontiguousarray(values).data.cast("B") if len(values) else memoryview(b"")
        stored = _Stored(self.n_bytes, values.dtype, edges.astype(np.uint32))
        while len(view):
            with naming(self._shown):
                n = self._file.write(view)
            self.n_bytes += n
            view = view[n:]
        return stored

    def n_rows(self, part: int) -> int:
        """Return the number of rows of a range."""
        return sum(int(batch["item"].edges[part + 1]) - int(batch["item"].edges[part]) for batch in self._batches)

    def read(self, part: int) -> _SpilledRows:
        """Read the rows of a range, in the order in which they were written."""
        pieces = {name: [self._read(batch[name], part) for batch in self._batches if name in batch] for name in _NAMES}
        n_texts = [len(piece) for piece in pieces["n_bytes"]]
        before = np.cumsum([0, *n_texts])
        item = [piece + np.int64(at) for piece, at in zip(pieces["item"], before)]
        time = None
        if pieces["time"]:
            time = np.concatenate(
                [
                    self._read(batch["time"], part) if "time" in batch else np.full(len(rows), NO_TIME)
                    for batch, rows in zip(self._batches, item)
                ]
            )
        return _SpilledRows(
            TextIds(_joined(pieces["n_bytes"], np.int64), b"".join(piece.tobytes() for piece in pieces["data"])),
            _joined(pieces["hashes"], np.uint32),
            _joined(item, np.int64),
            _joined(pieces["worker"], np.int64) - 1,
            _joined(pieces["label"], np.int64) - 1,
            time,
        )

    def _read(self, stored: _Stored, part: int) -> npt.NDArray[Any]:
        """Read the part of a range from an array of a batch."""
        assert self._file is not None
        first, last = int(stored.edges[part]), int(stored.edges[part + 1])
        values = np.empty(last - first, stored.dtype)
        if len(values):
            self._file.seek(stored.offset + first * stored.dtype.itemsize)
            if self._file.readinto(values.data.cast("B")) != values.nbytes:  # type: ignore[attr-defined]
                raise AnnotationError(f"{self.path} was changed while it was read. Start again.")
        return values


_NAMES = ("n_bytes", "data", "hashes", "item", "worker", "label", "time")


def _joined(pieces: list[npt.NDArray[Any]], dtype: type[Any]) -> npt.NDArray[Any]:
    """Join arrays of different widths."""
    return np.concatenate([np.zeros(0, dtype), *pieces], dtype=dtype)


# ----------------------------------------------------------------------------------------------------
# From rows on disk to the code folder: classes and workers in their order, blocks one after the other, the ledger.

_TABLES = 6  # arrays of the size of all confusion matrices that EM holds at a time
_BYTES_PER_CODED_ROW = 140  # of rows that are sorted together; 70 to 140 were measured
_LARGEST_CODE = 2**31 - 1  # codes are of 32 bits


@dataclass(frozen=True)
class _Output:
    """What is written, and how."""

    folder: Path  # the code folder
    rare_classes: str  # what is done with classes that may be typing errors: "drop", "keep" or "error"
    keep_integers: bool  # whether ids from integer columns stay integers
    max_memory: int  # bytes of memory to stay within
    with_tables: bool  # whether confusion matrices of all workers must fit into it


def _check_tables(n_workers: int, n_classes: int, limit: int) -> None:
    """Refuse a crowd whose confusion matrices do not fit into a limit of memory."""
    needed = 8.0 * _TABLES * n_workers * n_classes**2
    if needed > limit:
        raise LimitError(
            f"Confusion matrices for {n_workers:,} workers and {n_classes:,} classes take about {needed / 1e9:,.1f} "
            f"GB; {limit / 1e9:,.1f} GB are allowed. Raise `max_memory`, use majority-vote, or merge rare classes."
        )


def _write_codes(spill: Spill, coder: _RowCoder, output: _Output, mapping: dict[str, str], integers: set[str]) -> None:
    """Write the code folder."""
    names, workers = list(coder.labels.number_of), list(coder.workers.number_of)
    if not names:
        raise AnnotationError(
            f"None of the {coder.counts['rows_read']:,} rows has a label in column {mapping['label']!r}. Check the "
            f"file, or name another column with `label=`."
        )
    common = int((coder.label_counts > MOST_LABELS).sum())
    if output.with_tables:
        _check_tables(len(workers), common, output.max_memory)
    _check_ranges(spill, output.max_memory)
    kept_types = integers if output.keep_integers else set()
    dropped = np.zeros(len(names), bool)
    note: dict[str, str] = {}
    while True:
        writer = _Blocks(spill, output, workers, names, dropped, kept_types)
        strays_left = writer.write(coder, mapping, note, is_last=bool(dropped.any()))
        if strays_left is None:
            return
        dropped, strays = strays_left  # rare: labels that are left out change the codes of all others
        note = {"stray_classes": strays.note(output.rare_classes)} if strays.counts else {}


def _check_ranges(spill: Spill, limit: int) -> None:
    """Refuse a range of items that does not fit into memory: an item that has a large part of all rows."""
    most = max(map(spill.n_rows, range(spill.n_parts)))
    if most * _BYTES_PER_CODED_ROW > limit:
        raise LimitError(
            f"{most:,} rows must be sorted together, about {most * _BYTES_PER_CODED_ROW / 1e9:,.1f} GB, and "
            f"{limit / 1e9:,.1f} GB of memory are allowed: one item may have a large part of all rows. Check the item "
            f"column, or raise `max_memory`."
        )


class _Blocks:
    """One attempt to write the code folder, with some labels left out."""

    def __init__(
        self,
        spill: Spill,
        output: _Output,
        workers: list[str],
        names: list[str],
        dropped: npt.NDArray[np.bool_],
        integers: set[str],
    ) -> None:
        self._spill, self._output, self._names, self._dropped = spill, output, names, dropped
        self._integer_items = "item" in integers
        self._workers, of_worker = _in_order(workers, range(len(workers)), "worker" in integers)
        self._classes, self._of_label = _in_order(names, np.flatnonzero(~dropped).tolist(), "label" in integers)
        self._numbering = Numbering(of_worker, len(workers), dropped)
        if len(workers) * len(self._classes) > _LARGEST_CODE:
            raise LimitError(
                f"{len(workers):,} workers times {len(self._classes):,} classes are more than the {_LARGEST_CODE:,} "
                f"codes that a label can have. Check the columns, or merge rare classes."
            )

    def write(
        self, coder: _RowCoder, mapping: dict[str, str], note: dict[str, str], is_last: bool
    ) -> tuple[npt.NDArray[np.bool_], Strays] | None:
        """Write all blocks; labels that must be left out are returned, and the folder is then not kept."""
        counts, n_repeats, n_dropped = _LabelCounts(len(self._names)), 0, 0
        per_block = self._spill.n_parts // N_BLOCKS
        with CodeFolderWriter(self._output.folder, self._workers, self._classes) as writer:
            for block in range(N_BLOCKS):
                parts = []
                for part in range(block * per_block, (block + 1) * per_block):
                    parts.append(pack_rows(self._spill.read(part), self._numbering))
                    counts.add(parts[-1])
                    n_repeats += parts[-1].n_repeats
                    n_dropped += parts[-1].n_dropped
                self._add(writer, block, parts)
                report(block + 1, N_BLOCKS, "sorting labels")
            if not is_last:
                is_stray, strays = counts.strays(self._names)
                if strays.counts and self._output.rare_classes == "error":
                    raise AnnotationError(f"stray_classes: {strays.note('error')}")
                if strays.counts and self._output.rare_classes == "keep":
                    is_stray[:], note = False, {"stray_classes": strays.note("keep")}
                missing = is_stray | (counts.counts == 0)
                if missing.any():
                    return missing, strays
            excluded = {"blank": coder.counts["blank"], "no_label": coder.counts["no_label"]}
            excluded |= {"duplicate": n_repeats, "stray_class": n_dropped}
            kept = int(counts.counts.sum())
            of_class = {name: int(n) for name, n in zip(self._names, counts.counts) if n}
            notes = coder.notes | note | notes_on_names(of_class, self._workers)
            ledger = Ledger(coder.counts["rows_read"], kept, {reason: n for reason, n in excluded.items() if n})
            writer.finish(ledger.as_dict() | {"notes": notes, "mapping": mapping})
        return None

    def _add(self, writer: CodeFolderWriter, block: int, parts: list[_PackedRows]) -> None:
        """Write the parts of a block."""
        worker, label = (np.concatenate([getattr(part, name) for part in parts]) for name in ("worker", "label"))
        codes = worker * len(self._classes) + self._of_label[label]
        ids = TextIds(np.concatenate([part.ids.n_bytes for part in parts]), b"".join(part.ids.data for part in parts))
        n_labels = np.concatenate([part.n_labels for part in parts])
        own_ids: Any = [int(text) for text in ids.decoded()] if self._integer_items else ids
        writer.add_block(block, n_labels, codes.astype(np.int32), own_ids)


def _in_order(texts: list[str], chosen: Any, integers: bool) -> tuple[list[Any], npt.NDArray[np.int64]]:
    """Return values in the order of `Annotations`, and the code of each text; -1 for those that are not chosen."""
    values = {number: int(texts[number]) if integers else texts[number] for number in chosen}
    order = sorted(values, key=values.__getitem__)
    code = np.full(len(texts), -1, np.int64)
    code[order] = np.arange(len(order))
    return [values[number] for number in order], code


# ----------------------------------------------------------------------------------------------------
# The rows of a range of items as codes: sorted by item and worker, one label for each pair.

_KEY_BITS = 63  # item, worker and label in one integer, whose sign stays free


class _PackedRows(NamedTuple):
    """Labels of some items in the order of the layout."""

    ids: TextIds
    n_labels: npt.NDArray[np.int64]  # (n_items,); labels of each item; 0 where all of its rows were left out
    # (n_labels,); worker and label (as it was numbered in the file) of each label that is kept, item after item
    worker: npt.NDArray[np.int64]
    # (n_labels,); worker and label (as it was numbered in the file) of each label that is kept, item after item
    label: npt.NDArray[np.int64]
    item: npt.NDArray[np.int64]  # (n_labels,); number of the item of each label
    n_repeats: int  # labels that were left out because a later one of the worker on the item counts
    n_dropped: int  # labels of classes that are left out


@dataclass(frozen=True)
class Numbering:
    """What the numbers that workers and labels got in the file become."""

    worker: npt.NDArray[np.int64]  # (n_workers,); code of each worker
    n_workers: int
    dropped: npt.NDArray[np.bool_]  # (n_labels,); labels that are left out, by their number in the file


def pack_rows(rows: _SpilledRows, numbering: Numbering) -> _PackedRows:
    """Sort rows by item and worker; of several labels of a worker on an item, the last counts.

    Labels are left out as typing errors after that, as where a file is read whole: an earlier label does not come
    back in place of one that is left out.
    """
    codes, first = code_texts(rows.texts)
    ids = take_texts(rows.texts, first)
    order = order_texts(ids, rows.hashes[first])
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    given = np.flatnonzero(rows.label >= 0)
    if rows.time is not None:
        given = given[np.argsort(rows.time[given], kind="stable")]
    key = rank[codes[rows.item[given]]] * numbering.n_workers + numbering.worker[rows.worker[given]]
    key, sequence = _sorted_pairs(key, len(order) * max(numbering.n_workers, 1))
    is_last = np.ones(len(key), bool)
    np.not_equal(key[1:], key[:-1], out=is_last[:-1])
    key, label = key[is_last], rows.label[given[sequence[is_last]]]
    n_repeats = len(given) - len(key)
    kept = ~numbering.dropped[label]
    key, label, n_dropped = key[kept], label[kept], int(len(label) - kept.sum())
    item, worker = np.divmod(key, max(numbering.n_workers, 1))
    n_labels = np.bincount(item, minlength=len(order))
    return _PackedRows(take_texts(ids, order), n_labels, worker, label, item, n_repeats, n_dropped)


def _sorted_pairs(key: npt.NDArray[np.int64], limit: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return keys below `limit` in order, and where each was; equal keys stay in the order in which they came."""
    bits = max(len(key) - 1, 1).bit_length()
    if limit.bit_length() + bits > _KEY_BITS:
        order = np.argsort(key, kind="stable")
        return key[order], order
    both = np.sort(key << bits | np.arange(len(key)))  # faster than a stable sort of positions
    return both >> bits, both & ((1 << bits) - 1)


# ----------------------------------------------------------------------------------------------------
# Classes that are left out as typing errors, found while the rows of a file are packed.


class _LabelCounts:
    """Number of labels of each class, and the rows of the rarest."""

    def __init__(self, n_labels: int) -> None:
        self.counts = np.zeros(n_labels, np.int64)
        self._rows: list[npt.NDArray[np.int64]] = []
        self._n_items = 0

    def add(self, rows: _PackedRows) -> None:
        """Count the labels of some items."""
        self.counts += np.bincount(rows.label, minlength=len(self.counts))
        rare = self.counts <= MOST_LABELS
        if rare.any():
            chosen = rare[rows.label]
            self._rows.append(np.stack([rows.item[chosen] + self._n_items, rows.worker[chosen], rows.label[chosen]]))
        self._n_items += len(rows.n_labels)

    def strays(self, names: list[str]) -> tuple[npt.NDArray[np.bool_], Strays]:
        """Return which classes are left out, by the rule for files that are read whole.

        Shapes: returns is_stray (n_labels,).
        """
        rows = np.concatenate([np.zeros((3, 0), np.int64), *self._rows], axis=1)
        rows = rows[:, self.counts[rows[2]] <= MOST_LABELS]
        numbers = np.array(sorted(set(rows[2].tolist()), key=names.__getitem__), np.int64)
        place = np.full(len(names), -1, np.int32)
        place[numbers] = np.arange(len(numbers))
        nothing, values = (pl.Series(texts, dtype=pl.String) for texts in ([], [names[number] for number in numbers]))
        item, worker = (np.unique(part, return_inverse=True)[1].astype(np.int32) for part in rows[:2])
        coded = {
            "item": Coded(item, nothing),
            "worker": Coded(worker, nothing),
            "label": Coded(place[rows[2]], values),
        }
        codes, strays = find_strays(coded, slice(None), (), n_labels=int(self.counts.sum()))
        is_stray = np.zeros(len(self.counts), bool)
        is_stray[numbers[codes]] = True
        return is_stray, strays


# ----------------------------------------------------------------------------------------------------
# The folder of code folders: where it is, what it holds, and removal of what is not needed any more.

PASSES = "passes"  # folder of the records of finished passes of runs that did not end, in the cache
_KEY = re.compile(r"[0-9a-f]{32}")
_LEFTOVER = re.compile(r"([0-9a-f]{32})\.(part|spill|removed)")
_LOCK = re.compile(r"[0-9a-f]{32}(\.reading)?\.lock")


@dataclass(frozen=True)
class _CacheEntry:
    """A code folder of the cache, or the records of the passes of a run that did not end."""

    path: Path
    n_bytes: int
    last_used: float  # time of the last use, in seconds since 1970


def cache_entries(cache: str | Path) -> list[_CacheEntry]:
    """List the code folders of a cache and the records of runs that did not end, the last used first."""
    entries = []
    folders = [path for path in _folders(Path(cache)) if (path / HEADER).is_file()]
    for path in [*folders, *_folders(Path(cache) / PASSES)]:
        if _KEY.fullmatch(path.name):
            with suppress(FileNotFoundError):  # another process removes it now
                sizes = [file.stat().st_size for file in path.iterdir()]
                entries.append(_CacheEntry(path, sum(sizes), path.stat().st_mtime))
    return sorted(entries, key=lambda entry: -entry.last_used)


def remove_entries(cache: str | Path, *, keep: int = 0) -> int:
    """Remove the entries that were not used for the longest time; the next run on their files writes them again.

    Records of a run that goes on now stay. A run that reads a code folder now ends with an error where it is removed.
    """
    place = Path(cache)
    _remove_leftovers(place)
    kept = removed = 0
    for entry in cache_entries(place):
        kept += entry.n_bytes
        if kept > keep:
            kept -= entry.n_bytes
            with suppress(OutputExistsError), held(entry.path.with_name(f"{entry.path.name}.lock"), entry.path):
                gone = entry.path.with_name(f"{entry.path.name}.removed")
                entry.path.rename(gone)  # half a folder is never found under its name
                shutil.rmtree(gone, ignore_errors=True)
                removed += entry.n_bytes
    return removed


def _mark_used(folder: Path) -> None:
    """Note that a code folder is used now."""
    with suppress(OSError):  # of another user
        os.utime(folder)


def _spill_path(folder: Path) -> Path:
    """Return the file to which rows are written before they become the code folder."""
    return folder.with_name(f"{folder.name}.spill")


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Context manager that lets one process at a time write a code folder; others wait for it."""
    with held(_lock(folder.parent, folder.name), folder, wait=float("inf")):
        yield


def _remove_leftovers(cache: Path) -> None:
    """Remove what killed processes left in a cache; what a process is writing stays."""
    for path in _folders(cache):
        leftover = _LEFTOVER.fullmatch(path.name)
        if leftover is not None:
            with suppress(OutputExistsError), held(_lock(cache, leftover[1]), path):
                if path.is_dir():
                    shutil.rmtree(path, ignore_errors=True)
                else:
                    path.unlink(missing_ok=True)
        elif _LOCK.fullmatch(path.name):
            with suppress(OutputExistsError), held(path, path):
                pass  # the lock of a process that has ended is removed with this one


def _lock(cache: Path, key: str) -> Path:
    """The lock of an entry."""
    return cache / f"{key}.reading.lock"


def _folders(cache: Path) -> list[Path]:
    """What is in the cache; nothing where there is none."""
    return sorted(cache.iterdir()) if cache.is_dir() else []
