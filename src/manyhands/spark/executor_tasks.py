"""What runs on executors: tasks on shards, and the items of a fitted crowd.

Functions take what the engine passes in and arguments that the driver packed. They need NumPy and PyArrow, which every
executor that runs Arrow functions has, and no more of the package than `remote.archive` sends.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from manyhands.em.packed import Packed
from manyhands.exceptions import ManyhandsError
from manyhands.sharded.labels import Shard
from manyhands.spark.blocks import block_of, checksum, merged
from manyhands.spark.shard_columns import LayoutSettings
from manyhands.spark.shared_files import read_bytes

BY_VALUE, BY_FILE, NEEDS_IDS = b"V", b"F", b"I"
ITEMS_PER_BATCH = 1 << 15


class ItemIdsNeeded(Exception):
    """A task asked for the ids of items in a pass that did not read them."""


def unpack(arguments: bytes) -> tuple[Any, ...]:
    """Arguments that the driver packed.

    Parameters
    ----------
    arguments : bytes
        The pickled tuple, or the path of the file that contains it.

    Returns
    -------
    tuple
    """
    if arguments[:1] == BY_FILE:
        return _from_file(arguments[1:].decode())
    return pickle.loads(memoryview(arguments)[1:])


@lru_cache(maxsize=2)
def _from_file(path: str) -> tuple[Any, ...]:
    """Arguments in a file; the shards of one worker process read it once."""
    return pickle.loads(read_bytes(path))


def code_block(table: pa.Table, settings: LayoutSettings) -> pa.Table:
    """The labels of one block of items in the order of the layout, without repeats, as one row.

    Parameters
    ----------
    table : pyarrow.Table
        Labels: block, item (text), worker, label, and the order of repeats if there is one.
    settings : LayoutSettings
        Workers, classes and the number of blocks.

    Returns
    -------
    pyarrow.Table
    """
    return block_of(table, settings)


def merge_blocks(table: pa.Table, seen: list[bool]) -> pa.Table:
    """Blocks of one shard as one row.

    Parameters
    ----------
    table : pyarrow.Table
        Rows of blocks, with the number of their shard.
    seen : list of bool
        Classes that occur in any block.

    Returns
    -------
    pyarrow.Table
    """
    return merged(table, seen)


def run_task(
    batches: Iterator[pa.RecordBatch], task: Callable[[Shard], Any], n_workers: int, n_classes: int, id_kind: str
) -> Iterator[pa.RecordBatch]:
    """Run a task on the shards of a partition.

    Parameters
    ----------
    batches : iterator of pyarrow.RecordBatch
        Rows of shards.
    task : callable
        Takes a `Shard`.
    n_workers : int
        Number of workers.
    n_classes : int
        Number of classes.
    id_kind : str
        Kind of the item ids: "text" or "integer".

    Yields
    ------
    pyarrow.RecordBatch
        Number of the shard and the pickled result.
    """
    for shard in shards_of(batches, n_workers, n_classes, id_kind):
        try:
            payload = BY_VALUE + pickle.dumps(task(shard), protocol=5)
        except ItemIdsNeeded:
            payload = NEEDS_IDS
        yield pa.RecordBatch.from_arrays(
            [pa.array([shard.number], pa.int32()), pa.array([payload], pa.binary())], ["shard", "payload"]
        )


def item_rows(
    batches: Iterator[pa.RecordBatch],
    task: Callable[[Shard], Any],
    n_workers: int,
    id_kind: str,
    classes: list[Any],
) -> Iterator[pa.RecordBatch]:
    """The results of the items of a partition.

    Parameters
    ----------
    batches : iterator of pyarrow.RecordBatch
        Rows of shards, with the ids of their items.
    task : callable
        The final task of a fit.
    n_workers : int
        Number of workers.
    id_kind : str
        Kind of the item ids: "text" or "integer".
    classes : list
        The classes.

    Yields
    ------
    pyarrow.RecordBatch
        Item, label, confidence and probabilities.
    """
    names = pa.array(classes)
    for shard in shards_of(batches, n_workers, len(classes), id_kind):
        found = task(shard)
        ids = pa.array(shard.item_ids())
        posterior = np.ascontiguousarray(found.posterior)
        for first in range(0, len(ids), ITEMS_PER_BATCH):
            part = slice(first, min(first + ITEMS_PER_BATCH, len(ids)))
            rows = posterior[part]
            offsets = np.arange(0, rows.size + 1, len(classes), dtype=np.int32)
            columns = [
                ids[part],
                names.take(pa.array(found.code[part])),
                pa.array(rows.max(axis=1)),
                pa.ListArray.from_arrays(pa.array(offsets), pa.array(rows.ravel())),
            ]
            yield pa.RecordBatch.from_arrays(columns, ["item", "label", "confidence", "probs"])


def confusion_rows(
    batches: Iterator[pa.RecordBatch], confusion: npt.NDArray[np.float64], worker_ids: list[Any], classes: list[Any]
) -> Iterator[pa.RecordBatch]:
    """Confusion matrices of some workers as rows.

    Parameters
    ----------
    batches : iterator of pyarrow.RecordBatch
        Codes of workers.
    confusion : ndarray of shape (n_workers, n_classes, n_classes)
        Confusion matrices [worker, truth, label].
    worker_ids : list
        The workers.
    classes : list
        The classes.

    Yields
    ------
    pyarrow.RecordBatch
        Worker, truth, label and probability.
    """
    names, workers, n_classes = pa.array(classes), pa.array(worker_ids), len(classes)
    truth = np.repeat(np.arange(n_classes, dtype=np.int32), n_classes)
    label = np.tile(np.arange(n_classes, dtype=np.int32), n_classes)
    for batch in batches:
        for code in batch.column(0).to_pylist():
            columns = [
                workers.take(pa.array(np.full(n_classes**2, code))),
                names.take(pa.array(truth)),
                names.take(pa.array(label)),
                pa.array(np.ascontiguousarray(confusion[code]).ravel()),
            ]
            yield pa.RecordBatch.from_arrays(columns, ["worker", "truth", "label", "probability"])


def shards_of(batches: Iterator[pa.RecordBatch], n_workers: int, n_classes: int, id_kind: str) -> Iterator[Shard]:
    """Shards from their rows.

    Parameters
    ----------
    batches : iterator of pyarrow.RecordBatch
        Rows of shards.
    n_workers : int
        Number of workers.
    n_classes : int
        Number of classes.
    id_kind : str
        Kind of the item ids: "text" or "integer".

    Yields
    ------
    Shard

    Raises
    ------
    ManyhandsError
        Where a shard is not what was written.
    """
    for batch in batches:
        for row in range(batch.num_rows):
            yield _shard(batch, row, n_workers, n_classes, id_kind)


def _shard(batch: pa.RecordBatch, row: int, n_workers: int, n_classes: int, id_kind: str) -> Shard:
    """The shard in one row."""
    values = {name: batch.column(name)[row] for name in batch.schema.names}
    number = values["shard"].as_py()
    counts, codes = (values[name].as_buffer() for name in ("counts", "codes"))
    if checksum(counts, codes) != values["check"].as_py():
        raise ManyhandsError(f"Shard {number} of the checkpoint is not what was written. Delete the checkpoint folder.")
    start = np.concatenate([[0], np.cumsum(np.frombuffer(counts, np.uint32), dtype=np.int64)])
    packed = Packed(np.frombuffer(codes, np.int32).copy(), None, start, n_workers, n_classes)

    def item_ids() -> Any:
        if "id_text" not in values:
            raise ItemIdsNeeded
        return _ids(values["id_lengths"].as_buffer(), values["id_text"].as_buffer(), id_kind)

    return Shard(number, packed, item_ids)


def _ids(lengths: pa.Buffer, text: pa.Buffer, kind: str) -> npt.NDArray[Any]:
    """Ids of items as text or as integers."""
    sizes = np.frombuffer(lengths, np.uint32)
    offsets = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
    texts = pa.LargeStringArray.from_buffers(len(sizes), pa.py_buffer(offsets), text)
    if kind == "integer":
        return np.asarray(texts.cast(pa.int64()).to_numpy(zero_copy_only=False))
    return np.asarray(texts.to_numpy(zero_copy_only=False))
