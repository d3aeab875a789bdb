"""`stream_to_codes`: a long table larger than memory as a `CodeFolder`."""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from manyhands.exceptions import AnnotationError, CrowdWarning, LimitError, ParameterError
from manyhands.io.read.judgements import ColumnOptions
from manyhands.io.read.stray_classes import RARE_CLASSES
from manyhands.io.stream.cache import mark_used, remove_leftovers, spill_path, writing
from manyhands.io.stream.code_blocks import Table, check_tables, write_codes
from manyhands.io.stream.coding import Dictionary, RowCoder
from manyhands.io.stream.csv_batches import CsvBatches
from manyhands.io.stream.inputs import InputFile, find_inputs, fingerprint, refuse_changed
from manyhands.io.stream.json_batches import JsonBatches
from manyhands.io.stream.name_checks import refuse_free_text
from manyhands.io.stream.parquet_batches import ParquetBatches
from manyhands.io.stream.spill import Spill
from manyhands.progress import report
from manyhands.sharded.code_files import CodeFolder

Batches = ParquetBatches | CsvBatches | JsonBatches

MAX_MEMORY = 1 << 30
_LEAST_MEMORY = 256 << 20
# Parts of the memory that is allowed, found by measuring peaks at 1 GB; the libraries take 150 MB of it.
_BYTES_PER_ROW = 2500  # of a batch: its cells, their numbers, and what polars keeps for the next one
_BYTES_PER_TEXT_BYTE = 64  # of a CSV file
_BYTES_PER_JSON_BYTE = 128
_BYTES_PER_SORTED_ROW = 500  # of the rows of a range that are sorted together
_FEWEST_BITS, _MOST_BITS = 8, 12  # of the CRC-32, which cut the rows into ranges
_UNPACKED = 6  # times the size of a gzip file, where it is estimated
_SPARE_DISK = 64 << 20
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

    Parameters
    ----------
    paths : str, Path, or list of these
        Parquet, CSV or JSON lines, gzipped or not; files, or folders whose files are read in the order of their names.
    cache : str or Path
        Folder for code folders; it is created.
    item : str, default=None
        Column with the item ids; None finds it by its name.
    worker : str, default=None
        Column with the worker ids; None finds it by its name.
    label : str, default=None
        Column with the labels; None finds it by its name.
    max_memory : int, default=None
        Bytes of memory to stay within; None for 1 GB. At least 256 MB.
    rare_classes : {"drop", "keep", "error"}, default="drop"
        What is done with the labels of classes so rare that they may be typing errors, as in `read_export`.
    keep_integers : bool, default=False
        Whether ids from integer columns of Parquet files stay integers, as those of a data frame; otherwise ids are
        text, as those of all files.
    tables : bool, default=True
        Whether confusion matrices of all workers must fit into `max_memory`.

    Returns
    -------
    CodeFolder
        The labels; its `ledger` counts every row, and has the notes.

    Raises
    ------
    AnnotationError
        Where a file cannot be read, a column is missing, or a row has no item or no worker.
    LimitError
        Where disk or memory are too small.
    """
    limit = MAX_MEMORY if max_memory is None else int(max_memory)
    if limit < _LEAST_MEMORY:
        raise ParameterError(f"max_memory is {limit:,} bytes; reading in parts needs at least {_LEAST_MEMORY:,}.")
    if rare_classes not in RARE_CLASSES:
        raise ParameterError(f"rare_classes is {rare_classes!r}; in parts, {', '.join(RARE_CLASSES)} are possible.")
    files = find_inputs(paths)
    options = {"item": item, "worker": worker, "label": label, "rare": rare_classes, "integers": keep_integers}
    place = Path(cache)
    folder = place / fingerprint(files, options)
    if not folder.exists():
        _make(place)
        with writing(folder):
            if not folder.exists():  # another process may have written it meanwhile
                remove_leftovers(place)
                table = Table(folder, rare_classes, keep_integers, limit, tables)
                _read(files, ColumnOptions(item, worker, label), table, limit)
    found = CodeFolder(folder)
    mark_used(folder)
    if tables:
        check_tables(len(found.worker_ids), len(found.classes), limit)
    for code, sentence in found.ledger.get("notes", {}).items():
        warnings.warn(f"{code}: {sentence}", CrowdWarning, stacklevel=2)
    return found


def _make(place: Path) -> None:
    """Create the cache folder; a place where that cannot be is named."""
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        what = "is a file" if place.is_file() else f"cannot be created ({error.strerror})"
        raise ParameterError(f"The cache folder {place} {what}. Name another folder with --cache.") from None


def _read(files: Sequence[InputFile], options: ColumnOptions, table: Table, limit: int) -> None:
    """Read all files to a spill file, and write the code folder from it."""
    readers = [_reader(file, options, limit) for file in files]
    _refuse_unlike(readers, files)
    n_rows = _estimate(readers, files)
    most = max(limit // _BYTES_PER_SORTED_ROW, 1)
    bits = min(max((n_rows // most).bit_length(), _FEWEST_BITS), _MOST_BITS)
    coder = RowCoder(Dictionary("worker", limit // 4), Dictionary("label", limit // 8))
    size = sum(file.size for file in files)
    with Spill(spill_path(table.folder), bits, table.folder) as spill:
        done = 0
        for file, reader in zip(files, readers):
            for code, sentence in reader.columns.notes.items():
                coder.notes.setdefault(code, sentence)
            for batch in reader:
                refuse_changed([file])  # a file that grows might have no end
                spill.add(coder.rows(batch, reader.columns.mapping))
                read = (done + batch.share * file.size) / size
                _check_disk(spill, table.folder, read)
                report(int(_STEPS * read), _STEPS, "reading labels")
            done += file.size
        refuse_changed(files)
        source = files[0].name if len(files) == 1 else f"{files[0].name} and {len(files) - 1} more"
        refuse_free_text(coder.counts_by_label, source, readers[0].columns.mapping["label"])
        shared = set.intersection(*(reader.integers for reader in readers))
        write_codes(spill, coder, table, readers[0].columns.mapping, shared)


def _reader(file: InputFile, options: ColumnOptions, limit: int) -> Batches:
    """The rows of a file, in batches that fit into memory."""
    if file.kind == "parquet":
        return ParquetBatches(file, options, max(limit // _BYTES_PER_ROW, 1))
    if file.kind == "jsonl":
        return JsonBatches(file, options, limit // _BYTES_PER_JSON_BYTE)
    return CsvBatches(file, options, limit // _BYTES_PER_TEXT_BYTE)


def _refuse_unlike(readers: Sequence[Batches], files: Sequence[InputFile]) -> None:
    """Refuse files that take their items from different columns."""
    first = readers[0].columns.mapping["item"]
    for reader, file in zip(readers, files):
        if reader.columns.mapping["item"] != first:
            raise AnnotationError(
                f"Items are {first} in {files[0].name}, but {reader.columns.mapping['item']} in {file.name}. "
                f"Name one with --item."
            )


def _estimate(readers: Sequence[Batches], files: Sequence[InputFile]) -> int:
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
            f"{needed / 1e9:,.1f} GB more there. Make room, or name another folder with --cache."
        )
