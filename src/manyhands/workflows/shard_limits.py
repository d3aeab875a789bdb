"""What a run out of core needs: the least memory and disk, compared with what there is before the long part begins."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from manyhands.em.threads import thread_count
from manyhands.exceptions import LimitError, ManyhandsError
from manyhands.io.read.row_estimate import FileSize
from manyhands.sharded.fits import PEAK_TABLES
from manyhands.sharded.labels import ShardedLabels
from manyhands.validation import show_size
from manyhands.workflows.finding import shown_path

PROGRAM = 200_000_000  # bytes of the program, its libraries and the batches that are read
_PER_LABEL, _PER_ITEM = 60, 40  # bytes of a shard in memory; the sums by worker need more than the codes
_SLICE = 1 << 17  # items that are one data frame
_USUAL_PASSES = 50
_FULL = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)


def least_memory(labels: ShardedLabels, method: str) -> int:
    """Estimate the memory that a run on shards needs, however small the shards are.

    Parameters
    ----------
    labels : ShardedLabels
        The labels.
    method : str
        Registry name of the aggregator.

    Returns
    -------
    int
        Bytes.
    """
    return PROGRAM + sum(_memory_of_parts(labels, method))


def _memory_of_parts(labels: ShardedLabels, method: str) -> tuple[int, int]:
    """Return the bytes of all tables by worker, and those of the shards of all threads."""
    n_workers, n_classes = len(labels.worker_ids), len(labels.classes)
    threads = min(thread_count(), labels.n_shards)
    tables = PEAK_TABLES[method] + threads
    shard = (_PER_LABEL * labels.n_labels + _PER_ITEM * labels.n_items) // labels.n_shards
    frames = min(_SLICE, labels.n_items) * (24 * n_classes + 200)
    return 8 * tables * n_workers * n_classes**2, threads * (shard + frames)


def check_memory_of_shards(labels: ShardedLabels, method: str, allowed: int | None) -> None:
    """Refuse a limit below the least memory, before EM begins.

    Parameters
    ----------
    labels : ShardedLabels
        The labels.
    method : str
        Registry name of the aggregator.
    allowed : int or None
        Bytes that the job may have; None if unknown.

    Raises
    ------
    LimitError
        If it is too little; the sentence names the least limit.
    """
    needed = least_memory(labels, method)
    if allowed is not None and needed > allowed:
        n_workers, n_classes = len(labels.worker_ids), len(labels.classes)
        tables, shards = _memory_of_parts(labels, method)
        threads = min(thread_count(), labels.n_shards)
        other = ", or merge rare classes" if tables > shards else ", or set MANYHANDS_THREADS=1" if threads > 1 else ""
        raise LimitError(
            f"{method} on {n_workers:,} workers and {n_classes:,} classes needs at least {show_size(needed)} of memory "
            f"(tables of {n_workers:,} x {n_classes:,}^2 numbers {show_size(tables)}, {threads} shard(s) of "
            f"{labels.n_labels // labels.n_shards:,} labels at a time {show_size(shards)}), and {show_size(allowed)} "
            f"may be used. Give --max-memory {_typed(needed)} or more{other}."
        )


def _typed(n_bytes: int) -> str:
    """Return a size that is at least this large, as an option is typed."""
    return f"{-(-n_bytes // 1_000_000)}MB"


def disk_for_codes(size: FileSize) -> int:
    """Estimate the disk that the codes of an export need while they are made.

    Parameters
    ----------
    size : FileSize
        Rows and bytes of its files.

    Returns
    -------
    int
        Bytes: rows by ranges of items with the text of their ids, and then the codes.
    """
    text = min(size.unpacked, 16 * size.n_rows)  # ids of items; the names of workers and classes are kept once
    return 20 * size.n_rows + 2 * text


def disk_for_labels(labels: ShardedLabels, kinds: Sequence[str]) -> int:
    """Estimate the disk that the files of labels need.

    Parameters
    ----------
    labels : ShardedLabels
        The labels.
    kinds : sequence of str
        Further formats than CSV: "jsonl", "parquet".

    Returns
    -------
    int
        Bytes.
    """
    n_classes = len(labels.classes)
    names = sum(len(str(name)) + 4 for name in labels.classes.tolist())
    per_item = 40 + 9 * n_classes
    per_item += 110 + 9 * n_classes + names if "jsonl" in kinds else 0  # every line names all classes
    per_item += 2 * (40 + 4 * n_classes) if "parquet" in kinds else 0  # once in parts, once put together
    return per_item * labels.n_items


def disk_for_passes(labels: ShardedLabels) -> int:
    """Return the disk that the records of some passes need.

    Parameters
    ----------
    labels : ShardedLabels
        The labels.

    Returns
    -------
    int
        Bytes of as many passes as a fit usually has.
    """
    return _USUAL_PASSES * 8 * len(labels.worker_ids) * len(labels.classes) ** 2


def check_disk(folder: Path, n_bytes: int, what: str, remedy: str) -> None:
    """Refuse a job whose files do not fit on the disk.

    Parameters
    ----------
    folder : Path
        Where the files will be; it need not exist.
    n_bytes : int
        Their estimated size.
    what : str
        What they are, in the plural.
    remedy : str
        A sentence that says what to do.

    Raises
    ------
    LimitError
        If less is free.
    """
    nearest = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    free = shutil.disk_usage(nearest).free
    if n_bytes > free:
        raise LimitError(
            f"{what} need about {show_size(n_bytes)} of disk in {shown_path(folder)}, and {show_size(free)} are free. "
            f"{remedy}"
        )


@contextmanager
def limits_named(folder: Path, allowed: int | None) -> Iterator[None]:
    """Context manager in which a full disk, or memory that the system refuses, becomes one sentence with what to do.

    Parameters
    ----------
    folder : Path
        The folder of the cache.
    allowed : int or None
        Bytes that the job may have; None if unknown.

    Raises
    ------
    ManyhandsError
        If a file cannot grow.
    LimitError
        If the system gives no more memory.
    """
    try:
        yield
    except MemoryError as error:
        if isinstance(error, LimitError):
            raise
        limit = "" if allowed is None else f" The job was to stay within {show_size(allowed)}."
        raise LimitError(
            f"The system gave no more memory to this process ({error or 'no reason is known'}).{limit} Raise the limit "
            f"of the process or close other programs; the same command then goes on. No file of the result was changed."
        ) from None
    except OSError as error:
        if error.errno not in _FULL:
            raise
        where = error.filename if error.filename is not None else shown_path(folder)
        raise ManyhandsError(
            f"The disk is full: {where} cannot grow ({error.strerror}). Make room, or give another folder with -o or "
            f"--cache; the same command then goes on. No file of the result was changed."
        ) from None
