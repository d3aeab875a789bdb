"""What runs on executors: labels of blocks as binary columns, tasks on shards, and the results of a fitted crowd.

The functions take what the engine passes in and arguments that the driver packed (`remote`). They need NumPy and
PyArrow, which every executor that runs Arrow functions has, and no more of the package than `remote.archive` sends.
The driver does not import this module.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from typing import Any
from zlib import crc32

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from manyhands.em.kernels import Packed
from manyhands.exceptions import AnnotationError, ManyhandsError
from manyhands.sharded.labels import Shard, item_hashes, item_order
from manyhands.spark.remote import BY_VALUE, unpack  # noqa: F401  `package_sources.call_by_name` takes `unpack` from here
from manyhands.spark.shards import BINARY, NEEDS_IDS, NUMBERS, SEEN, LayoutSettings

# ----------------------------------------------------------------------------------------------------
# Labels of a block of items as binary columns, in the order of `sharded.labels`.
#
# A block is a range of CRC-32 values of item ids, as a shard is; the blocks of a shard are consecutive. Blocks are
# small enough to be sorted in the memory of one executor task. `shards` describes the columns.


def checksum(*parts: Any) -> int:
    """CRC-32 of buffers, one after the other."""
    crc = 0
    for part in parts:
        crc = crc32(part, crc)
    return crc


def block_of(table: pa.Table, settings: LayoutSettings) -> pa.Table:
    """The labels of one block as one row."""
    texts, item = _ordered_items(table.column("item"))
    worker = _codes(table.column("worker"), settings.workers, "worker")
    label = _codes(table.column("label"), settings.classes, "label")
    n_codes, n_classes = len(settings.workers) * len(settings.classes), len(settings.classes)
    code = worker * n_classes + label
    order = _order_rank(table.column("order")) if settings.has_order else None
    kept = _last_of_pairs(item, worker, code, order, n_codes)
    left_out = len(code) - len(kept)
    identical = _n_identical(item * np.int64(n_codes) + code, kept)
    seen = np.zeros(n_classes, np.uint8)
    seen[label[kept]] = 1
    counts = np.bincount(item[kept], minlength=len(texts)).astype(np.uint32)
    encoded = texts.cast(pa.binary())
    sizes = pc.binary_length(encoded).to_numpy(zero_copy_only=False).astype(np.uint32)
    parts = {
        SEEN: seen.tobytes(),
        "counts": counts.tobytes(),
        "codes": code[kept].astype(np.int32).tobytes(),
        "id_lengths": sizes.tobytes(),
        "id_text": b"".join(encoded.to_pylist()),
    }
    sizes_of = {"n_items": len(texts), "n_labels": len(kept), "n_identical": identical}
    numbers = sizes_of | {"n_conflicting": left_out - identical}
    return _row("block", table.column("block")[0].as_py(), numbers, parts)


def merged(table: pa.Table, seen: list[bool]) -> pa.Table:
    """The blocks of one shard as one row."""
    table = table.take(pc.sort_indices(table.column("block")))
    numbers = {name: pc.sum(table.column(name)).as_py() for name in NUMBERS[:4]}
    parts = {name: b"".join(table.column(name).to_pylist()) for name in BINARY}
    if not all(seen):
        worker, label = np.divmod(np.frombuffer(parts["codes"], np.int32), np.int32(len(seen)))
        place = np.cumsum(seen, dtype=np.int32) - 1
        parts["codes"] = (worker * np.int32(sum(seen)) + place[label]).tobytes()
    parts[SEEN] = np.ones(sum(seen), np.uint8).tobytes()
    return _row("shard", table.column("shard")[0].as_py(), numbers, parts)


def _row(kind: str, number: int, numbers: dict[str, int], parts: dict[str, bytes]) -> pa.Table:
    """One row with its checksums."""
    checks = {
        "check": checksum(parts["counts"], parts["codes"]),
        "id_check": checksum(parts["id_lengths"], parts["id_text"]),
    }
    columns: dict[str, pa.Array] = {kind: pa.array([number], pa.int32())}
    columns |= {name: pa.array([value], pa.int64()) for name, value in (numbers | checks).items()}
    columns |= {name: pa.array([value], pa.binary()) for name, value in parts.items()}
    return pa.table(columns)


def _ordered_items(column: pa.ChunkedArray) -> tuple[pa.Array, npt.NDArray[np.int64]]:
    """The distinct ids in the order of the layout, and the position of each row's id among them."""
    coded = column.combine_chunks().dictionary_encode()
    if isinstance(coded, pa.ChunkedArray):  # of older versions of PyArrow
        coded = coded.combine_chunks()
    ids = coded.dictionary
    texts = ids.to_numpy(zero_copy_only=False)
    order = item_order(texts, item_hashes(texts.tolist()))
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    return ids.take(pa.array(order)), place[coded.indices.to_numpy(zero_copy_only=False)]


def _codes(column: pa.ChunkedArray, ids: list[Any], role: str) -> npt.NDArray[np.int64]:
    """Code of each value."""
    codes = pc.index_in(column, value_set=pa.array(ids).cast(column.type))
    if codes.null_count:
        row = pc.index(pc.is_null(codes), True).as_py()
        raise AnnotationError(
            f"The {role} {column[row].as_py()!r} was not there when the {role}s were listed: the DataFrame gives other "
            f"rows each time it is computed. Write it to a table first."
        )
    return np.asarray(codes.to_numpy(), np.int64)


def _order_rank(column: pa.ChunkedArray) -> npt.NDArray[np.int64]:
    """Rank of each value of the order column; equal values have the same rank, missing ones the lowest."""
    coded = column.combine_chunks().dictionary_encode()
    if isinstance(coded, pa.ChunkedArray):
        coded = coded.combine_chunks()
    order = pc.sort_indices(coded.dictionary).to_numpy()
    rank = np.empty(len(order) + 1, np.int64)
    rank[order] = np.arange(1, len(order) + 1)
    rank[-1] = 0
    return rank[coded.indices.fill_null(len(order)).to_numpy(zero_copy_only=False)]


def _last_of_pairs(
    item: npt.NDArray[np.int64],
    worker: npt.NDArray[np.int64],
    code: npt.NDArray[np.int64],
    order: npt.NDArray[np.int64] | None,
    n_codes: int,
) -> npt.NDArray[np.int64]:
    """Rows to keep, by item and worker: of each pair the last by order, among equals the greatest class."""
    if order is None:
        rows = np.argsort(item * np.int64(n_codes) + code, kind="stable")
    else:
        rows = np.lexsort((code, order, worker, item))
    same = (item[rows[1:]] == item[rows[:-1]]) & (worker[rows[1:]] == worker[rows[:-1]])
    return rows[np.append(~same, True)]


def _n_identical(triple: npt.NDArray[np.int64], kept: npt.NDArray[np.int64]) -> int:
    """Number of rows left out that are the same triple as one that was kept."""
    if len(kept) == len(triple):
        return 0
    return int(np.isin(triple, triple[kept]).sum()) - len(kept)


# ----------------------------------------------------------------------------------------------------
# Tasks on shards, and the items of a fitted crowd.

ITEMS_PER_BATCH = 1 << 15  # of results, which bounds the memory of a task


class ItemIdsNeeded(Exception):
    """A task asked for the ids of items in a pass that did not read them."""


def code_block(table: pa.Table, settings: LayoutSettings) -> pa.Table:
    """The labels of one block of items in the order of the layout, without repeats, as one row."""
    return block_of(table, settings)


def merge_blocks(table: pa.Table, seen: list[bool]) -> pa.Table:
    """Blocks of one shard as one row."""
    return merged(table, seen)


def run_task(
    batches: Iterator[pa.RecordBatch], task: Callable[[Shard], Any], n_workers: int, n_classes: int, id_kind: str
) -> Iterator[pa.RecordBatch]:
    """Run a task on the shards of a partition."""
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
    """The results of the items of a partition."""
    names = pa.array(classes)
    for shard in shards_of(batches, n_workers, len(classes), id_kind):
        result = task(shard)
        ids = pa.array(shard.item_ids())
        posterior = np.ascontiguousarray(result.posterior)
        for first in range(0, len(ids), ITEMS_PER_BATCH):
            part = slice(first, min(first + ITEMS_PER_BATCH, len(ids)))
            rows = posterior[part]
            offsets = np.arange(0, rows.size + 1, len(classes), dtype=np.int32)
            columns = [
                ids[part],
                names.take(pa.array(result.code[part])),
                pa.array(rows.max(axis=1)),
                pa.ListArray.from_arrays(pa.array(offsets), pa.array(rows.ravel())),
            ]
            yield pa.RecordBatch.from_arrays(columns, ["item", "label", "confidence", "probs"])


def confusion_rows(
    batches: Iterator[pa.RecordBatch], confusion: npt.NDArray[np.float64], worker_ids: list[Any], classes: list[Any]
) -> Iterator[pa.RecordBatch]:
    """Confusion matrices of some workers as rows.

    Shapes: confusion (n_workers, n_classes, n_classes).
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
    """Shards from their rows."""
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
