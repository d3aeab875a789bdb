"""`SparkShards`: the labels of a DataFrame in shards, on which tasks run as one action each."""

from __future__ import annotations

import json
import pickle
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from hashlib import blake2b
from shutil import rmtree
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from manyhands._core.encoding import as_ids, encode
from manyhands._core.progress import report
from manyhands._core.spelling import did_you_mean
from manyhands.em.kernels import Packed
from manyhands.exceptions import AnnotationError, CrowdWarning, LimitError, ManyhandsError, ParameterError
from manyhands.sharded.labels import Shard, id_text, shard_count
from manyhands.spark.remote import is_absent, local_path, pack, raised_clearly, remote_function

# ----------------------------------------------------------------------------------------------------
# The three columns of a DataFrame: which types they may have, and the labels in one form.
#
# Only the DataFrame API is used, so that everything runs on classic clusters, through Spark Connect and on engines that
# speak its protocol.

DataFrame = Any  # classic and Connect sessions have classes of their own
INTEGERS = ("tinyint", "smallint", "int", "bigint")
_ALLOWED = {
    "item": ("string", *INTEGERS),
    "worker": ("string", *INTEGERS),
    "label": ("string", *INTEGERS, "boolean", "float", "double"),
}
_SUM_OF = 1 << 28  # checksums of rows are summed modulo this: 2^34 rows stay below 2^63


@dataclass(frozen=True)
class LabelColumns:
    """Names and types of the columns of labels."""

    item: str  # column with the item
    worker: str  # column with the worker
    label: str  # column with the label
    order: str | None  # column that says which of several labels of a worker on an item is the last
    types: dict[str, str]  # types of the three columns, by role, as Spark writes them
    as_text: bool  # whether workers and classes that are numbers are ordered as text, as the readers of files do

    @classmethod
    def of(
        cls, frame: DataFrame, item: str, worker: str, label: str, order: str | None, *, as_text: bool = False
    ) -> LabelColumns:
        """Check the columns of a DataFrame."""
        types = {field.name: field.dataType.simpleString() for field in frame.schema.fields}
        names = {"item": item, "worker": worker, "label": label}
        for role, name in [*names.items(), ("order", order)]:
            if name is not None and name not in types:
                raise ParameterError(
                    f"{role}Col is {name!r}, but the DataFrame has no such column; it has {', '.join(types)}."
                    f"{did_you_mean(name, list(types))}"
                )
        if len(set(names.values())) < len(names):
            raise ParameterError(
                f"itemCol, workerCol and labelCol must be three columns. Got {item}, {worker}, {label}."
            )
        for role, name in names.items():
            if types[name] not in _ALLOWED[role]:
                raise AnnotationError(
                    f"The {role} column {name!r} has type {types[name]}; it must be string"
                    f"{', boolean, a number' if role == 'label' else ' or an integer type'}. "
                    f"Cast it, for example to string."
                )
        return cls(item, worker, label, order, {role: types[name] for role, name in names.items()}, as_text)

    @property
    def id_kind(self) -> str:
        """Kind of the item ids: "text" or "integer"."""
        return "text" if self.types["item"] == "string" else "integer"

    def labels(self, frame: DataFrame) -> DataFrame:
        """Rows with all three values, as item (text), worker, label and, if there is one, order."""
        kept = frame.filter(~self._missing())
        columns = [
            _column(self.item).cast("string").alias("item"),
            _column(self.worker).alias("worker"),
            _column(self.label).alias("label"),
        ]
        if self.order is not None:
            columns.append(_column(self.order).alias("order"))
        return kept.select(*columns)

    def _missing(self) -> Any:
        """Whether a row lacks one of the three values."""
        missing = None
        for role in ("item", "worker", "label"):
            part = self._lacks(role)
            missing = part if missing is None else missing | part
        return missing

    def _lacks(self, role: str) -> Any:
        """Whether a row lacks one value: null, or NaN for labels that are numbers."""
        import pyspark.sql.functions as f

        column = _column(getattr(self, role))
        if self.types[role] in ("float", "double"):
            return column.isNull() | f.isnan(column)
        return column.isNull()

    def profile(self, frame: DataFrame) -> RowProfile:
        """Number of rows, missing values and a hash of all rows that does not depend on their order: one action."""
        import pyspark.sql.functions as f

        names = [name for name in (self.item, self.worker, self.label, self.order) if name is not None]
        # A missing value is written as a character that text does not contain.
        row = f.concat_ws("\u001f", *(f.coalesce(_column(name).cast("string"), f.lit("\u0000")) for name in names))
        counts = [f.sum(f.when(self._lacks(role), 1).otherwise(0)).alias(role) for role in ("item", "worker", "label")]
        totals = frame.agg(
            f.count(f.lit(1)).alias("rows"),
            f.sum(f.when(self._missing(), 1).otherwise(0)).alias("missing"),
            *counts,
            f.sum(f.crc32(row.cast("binary")) % _SUM_OF).alias("crc"),
            f.sum(f.xxhash64(row) % _SUM_OF).alias("hash"),
        ).collect()[0]
        n = {name: int(totals[name] or 0) for name in ("rows", "missing", "item", "worker", "label", "crc", "hash")}
        nulls = {role: n[role] for role in ("item", "worker", "label")}
        return RowProfile(n["rows"], n["missing"], nulls, (n["crc"], n["hash"]))

    def key(self, profile: RowProfile, n_shards: int | None) -> str:
        """Name of the labels: of the columns, their types and the content of all rows."""
        parts = [
            1,
            self.item,
            self.worker,
            self.label,
            self.order,
            sorted(self.types.items()),
            profile,
            n_shards,
            self.as_text,
        ]
        return blake2b(repr(parts).encode(), digest_size=12).hexdigest()


@dataclass(frozen=True)
class RowProfile:
    """What one pass over the rows finds."""

    n_rows: int
    n_missing: int  # rows that lack an item, a worker or a label
    nulls: dict[str, int]  # missing values of each column, by role
    hashes: tuple[int, int]  # two sums of hashes of rows


def _column(name: str) -> Any:
    """A column by its name, which may contain dots and spaces."""
    import pyspark.sql.functions as f

    return f.col(quoted(name))


def quoted(name: str) -> str:
    """A column's name in quotes, so that it may contain dots and spaces.

    Examples
    --------
    >>> quoted("a.b")
    '`a.b`'
    """
    return "`" + name.replace("`", "``") + "`"


def distinct_values(labels: DataFrame, role: str, limit: int, why: str, *, as_text: bool) -> npt.NDArray[Any]:
    """The distinct values of a column in the order of their codes."""
    rows = labels.select(role).distinct().limit(limit + 1).collect()
    if len(rows) > limit:
        raise LimitError(f"There are more than {limit:,} {role}s, {why}")
    values = [row[0] for row in rows]
    if as_text:
        by_text = {id_text(value): value for value in values}
        return as_ids([by_text[text] for text in encode(list(by_text), None, role)[1].tolist()], role)
    return encode(values, None, role)[1]


def check_table(n_workers: int, n_classes: int, limit: int) -> None:
    """Refuse confusion matrices that outgrow the driver."""
    size = n_workers * n_classes**2 * 8
    if size > limit:
        raise LimitError(
            f"{n_workers:,} workers x {n_classes:,} classes x {n_classes:,} classes are {n_workers * n_classes**2:,} "
            f"numbers, {size / 1e9:.1f} GB for each table on the driver; the limit is {limit / 1e9:.1f} GB. "
            f"Merge rare classes, leave out workers with few labels, or raise maxTableBytes on a larger driver."
        )


# ----------------------------------------------------------------------------------------------------
# Columns of the tables of blocks and of shards.
#
# shard or block    its number
# n_items           number of items
# n_labels          number of labels
# n_identical       rows left out because a worker gave an item the same label again
# n_conflicting     rows left out because a worker gave an item another label too
# check             CRC-32 of counts and codes
# id_check          CRC-32 of the ids
# counts            labels of each item, uint32
# codes             worker * n_classes + label of each label, int32
# id_lengths        bytes of each id, uint32
# id_text           the ids, UTF-8

NUMBERS = ("n_items", "n_labels", "n_identical", "n_conflicting", "check", "id_check")
BINARY = ("counts", "codes", "id_lengths", "id_text")  # one after the other for a shard
SEEN = "seen"
PASS_COLUMNS = ("shard", "check", "counts", "codes")  # what a pass reads
SCHEMA = ", ".join([*(f"{name} bigint" for name in NUMBERS), *(f"{name} binary" for name in (SEEN, *BINARY))])


@dataclass(frozen=True)
class LayoutSettings:
    """What an executor must know to code labels."""

    workers: list[Any]  # the workers, in the order of their codes
    classes: list[Any]  # the classes, in the order of their codes
    has_order: bool  # whether a column says which of a worker's labels on an item is the last


# ----------------------------------------------------------------------------------------------------
# The labels of a DataFrame as a table of shards in Parquet, written once.
#
#     <checkpointDir>/<key>/blocks      small ranges of items, sorted and coded; emptied when the shards are written
#     <checkpointDir>/<key>/shards      one row for each shard
#     <checkpointDir>/<key>/manifest    written last: without it, what is there is taken for half-written and written
#     anew
#     <checkpointDir>/<key>/passes      finished passes of fits
#     <checkpointDir>/<key>/tasks       tables beyond 64 MB that executors read
#
# The key is the hash of the rows, so that one checkpoint folder can hold the labels of several DataFrames.

Session = Any
FORMAT = 1
_ROWS_PER_BLOCK = 1 << 20  # sorted in the memory of one executor task
_MAX_BLOCKS = 1 << 16  # bound of their number


@dataclass(frozen=True)
class Manifest:
    """What is known of a table of shards."""

    format: int  # version of the layout of files
    n_shards: int
    present: list[int]  # shards that have items; the others have no row
    n_items: int
    n_labels: int
    types: dict[str, str]  # types of the columns, by role
    workers: list[Any]
    classes: list[Any]
    volumes: list[int]  # number of labels of each worker
    ledger: dict[str, int]  # rows read, and rows left out by reason
    fingerprint: str  # hash of all labels


def read_manifest(spark: Session, folder: str) -> Manifest | None:
    """The manifest of a table of shards, None where there is none that can be used."""
    if is_absent(f"{folder}/manifest", folder.rpartition("/")[0]):
        return None
    rows = []
    with suppress(Exception):  # engines have errors of their own for a path that does not exist
        rows = spark.read.schema("value string").parquet(f"{folder}/manifest").collect()
    if len(rows) != 1:
        return None
    try:
        manifest = Manifest(**json.loads(rows[0][0]))
    except (TypeError, ValueError):
        return None
    return manifest if manifest.format == FORMAT else None


def write_manifest(spark: Session, folder: str, manifest: Manifest) -> None:
    """Write the manifest, which says that the table is whole."""
    row = spark.createDataFrame([(json.dumps(asdict(manifest)),)], "value string")
    row.coalesce(1).write.mode("overwrite").parquet(f"{folder}/manifest")


@dataclass(frozen=True)
class Written:
    """A table of shards that was just written."""

    settings: LayoutSettings
    n_shards: int
    numbers: list[tuple[int, ...]]  # for each shard: its number, and the columns of `blocks.NUMBERS`

    def total(self, name: str) -> int:
        """Sum of a column."""
        return sum(row[1 + NUMBERS.index(name)] for row in self.numbers)


@raised_clearly
def write_shards(
    frame: DataFrame,
    columns: LabelColumns,
    profile: RowProfile,
    folder: str,
    max_table_bytes: int,
    n_shards: int | None = None,
) -> Written:
    """Code the labels of a DataFrame and write them in shards."""
    labels = columns.labels(frame)
    settings = _settings(labels, columns, max_table_bytes)
    n_blocks = n_shards or 1
    while n_blocks < _MAX_BLOCKS and profile.n_rows > n_blocks * _ROWS_PER_BLOCK:
        n_blocks *= 2
    _write_blocks(labels, settings, n_blocks, folder)
    spark = frame.sparkSession
    blocks_written = _numbers(spark, f"{folder}/blocks", "block")
    n_labels = sum(row[2] for row in blocks_written)
    if n_labels != profile.n_rows - profile.n_missing - sum(row[3] + row[4] for row in blocks_written):
        raise ManyhandsError(
            "The DataFrame gave other rows when it was computed again. Write it to a table first, and fit on that."
        )
    blocks = spark.read.schema(f"block int, {SCHEMA}").parquet(f"{folder}/blocks")
    seen = (
        _seen(blocks, len(settings.classes))
        if any(row[4] for row in blocks_written)
        else [True] * len(settings.classes)
    )
    settings = replace(settings, classes=[value for value, there in zip(settings.classes, seen) if there])
    if n_shards is None:
        n_shards = shard_count(n_labels, len(settings.workers), len(settings.classes))
    _write_merged(blocks, seen, n_blocks // n_shards, folder)
    written = Written(settings, n_shards, _numbers(spark, f"{folder}/shards", "shard"))
    _discard(blocks, f"{folder}/blocks")
    return written


def _settings(labels: DataFrame, columns: LabelColumns, max_table_bytes: int) -> LayoutSettings:
    """Workers and classes, which are collected; refused where they outgrow the driver."""
    reason = "whose confusion matrices outgrow the driver. Check labelCol, or merge rare classes."
    classes = distinct_values(labels, "label", 32768, reason, as_text=columns.as_text)
    if len(classes) == 0:
        raise AnnotationError("The DataFrame has no labels: no row has an item, a worker and a label.")
    limit = max_table_bytes // (8 * len(classes) ** 2)
    reason = (
        f"so that workers x {len(classes)} classes x {len(classes)} classes x 8 bytes are more than the "
        f"{max_table_bytes / 1e9:.1f} GB that a table may have on the driver. Check workerCol, merge rare classes, or "
        f"raise maxTableBytes on a larger driver."
    )
    workers = distinct_values(labels, "worker", limit, reason, as_text=columns.as_text)
    check_table(len(workers), len(classes), max_table_bytes)
    return LayoutSettings(workers.tolist(), classes.tolist(), columns.order is not None)


def _write_blocks(labels: DataFrame, settings: LayoutSettings, n_blocks: int, folder: str) -> None:
    """Sort and code the labels of each block on the executors."""
    import pyspark.sql.functions as f

    shift = 32 - (n_blocks.bit_length() - 1)
    block = f.shiftright(f.crc32(f.col("item").cast("binary")), shift).cast("int")
    code = remote_function("code_block", pack((settings,), folder))
    rows = grouped_map(labels.withColumn("block", block).groupBy("block"), code, f"block int, {SCHEMA}")
    rows.write.mode("overwrite").parquet(f"{folder}/blocks")


def _seen(blocks: DataFrame, n_classes: int) -> list[bool]:
    """Which classes are left: all labels of a class may have been left out as repeats."""
    mask = np.zeros(n_classes, bool)
    for row in blocks.select(SEEN).collect():
        mask |= np.frombuffer(bytes(row[0]), np.uint8) > 0
    return [bool(there) for there in mask]


def _write_merged(blocks: DataFrame, seen: list[bool], per_shard: int, folder: str) -> None:
    """Write the blocks of each shard as one row."""
    import pyspark.sql.functions as f

    shard = f.floor(f.col("block") / f.lit(per_shard)).cast("int")
    merge = remote_function("merge_blocks", pack((seen,), folder))
    rows = grouped_map(blocks.withColumn("shard", shard).groupBy("shard"), merge, f"shard int, {SCHEMA}")
    rows.write.mode("overwrite").parquet(f"{folder}/shards")


def grouped_map(grouped: Any, function: Any, schema: str) -> DataFrame:
    """Apply a function of an Arrow table to each group, on all versions of Spark."""
    if hasattr(grouped, "applyInArrow"):
        return grouped.applyInArrow(function, schema)

    def through_pandas(frame: Any) -> Any:  # Spark 3.5
        import pyarrow

        return function(pyarrow.Table.from_pandas(frame, preserve_index=False)).to_pandas()

    through_pandas.__annotations__ = {}
    return grouped.applyInPandas(through_pandas, schema)


def _numbers(spark: Session, path: str, kind: str) -> list[tuple[int, ...]]:
    """Number, sizes and checksums of all blocks or shards, in order."""
    frame = spark.read.schema(f"{kind} int, {SCHEMA}").parquet(path).select(kind, *NUMBERS)
    return sorted(tuple(row) for row in frame.collect())


def _discard(blocks: DataFrame, path: str) -> None:
    """Free the space of the blocks: a local folder is removed, any other is overwritten by no rows."""
    local = local_path(path)
    if local is not None and local.exists():
        rmtree(local, ignore_errors=True)
        return
    with suppress(Exception):  # what is left over does no harm
        empty = blocks.sparkSession.createDataFrame([], blocks.schema)
        empty.write.mode("overwrite").parquet(path)


R = TypeVar("R")
_RESULT_BYTES = 400_000_000  # results that one action collects; drivers refuse more than 1 GB by default
NEEDS_IDS = b"I"  # payload of a task that needs the ids of items


@dataclass(frozen=True)
class VolumePass:
    """Counts the labels of each worker in one shard."""

    def __call__(self, shard: Shard) -> npt.NDArray[np.int64]:
        """Run on one shard.

        Shapes: returns (n_workers,).
        """
        packed = shard.packed
        return np.bincount(packed.code // np.int32(packed.n_classes), minlength=packed.n_workers).astype(np.int64)


class SparkShards:
    """Labels in a table of shards that executors read (`sharded.labels.ShardedLabels`).

    Built by `from_frame`.
    """

    def __init__(self, spark: Session, folder: str, manifest: Manifest) -> None:
        self.spark, self.folder, self.manifest = spark, folder, manifest
        self.worker_ids: npt.NDArray[Any] = as_ids(manifest.workers, "worker")
        self.classes: npt.NDArray[Any] = as_ids(manifest.classes, "class")
        self.worker_volume: npt.NDArray[np.int64] = np.array(manifest.volumes, np.int64)

    @classmethod
    def from_frame(
        cls,
        frame: DataFrame,
        checkpoint_dir: str,
        *,
        item: str = "item",
        worker: str = "worker",
        label: str = "label",
        order: str | None = None,
        max_table_bytes: int = 2_000_000_000,
        n_shards: int | None = None,
        as_text: bool = False,
    ) -> SparkShards:
        """Write the labels of a DataFrame in shards, or find those that an earlier run wrote."""
        columns = LabelColumns.of(frame, item, worker, label, order, as_text=as_text)
        profile = columns.profile(frame)
        folder = f"{str(checkpoint_dir).rstrip('/')}/{columns.key(profile, n_shards)}"
        manifest = read_manifest(frame.sparkSession, folder)
        if manifest is None:
            written = write_shards(frame, columns, profile, folder, max_table_bytes, n_shards)
            shards = cls(frame.sparkSession, folder, _manifest(columns, profile, written))
            shards.worker_volume = sum(shards.run(VolumePass(), "labels of workers"), np.zeros(1, np.int64))
            manifest = _manifest(columns, profile, written, shards.worker_volume.tolist())
            write_manifest(frame.sparkSession, folder, manifest)
        _warn(manifest.ledger, item, worker, label, order)
        return cls(frame.sparkSession, folder, manifest)

    @property
    def n_shards(self) -> int:
        """Number of shards."""
        return self.manifest.n_shards

    @property
    def n_items(self) -> int:
        """Number of items."""
        return self.manifest.n_items

    @property
    def n_labels(self) -> int:
        """Number of labels."""
        return self.manifest.n_labels

    @property
    def fingerprint(self) -> str:
        """Hash of all labels, ids and shards."""
        return self.manifest.fingerprint

    @property
    def id_kind(self) -> str:
        """Kind of the item ids: "text" or "integer"."""
        return "text" if self.manifest.types["item"] == "string" else "integer"

    def table(self) -> DataFrame:
        """The rows of the shards."""
        return self.spark.read.schema(f"shard int, {SCHEMA}").parquet(f"{self.folder}/shards")

    def run(self, task: Callable[[Shard], R], what: str) -> Iterator[R]:
        """Run a task on every shard: one action, or several where the results are large."""
        sizes = (len(self.worker_ids), len(self.classes), self.id_kind)
        function = remote_function("run_task", pack((task, *sizes), self.folder))
        per_action = max(1, _RESULT_BYTES // (8 * len(self.worker_ids) * len(self.classes) ** 2 + 1))
        for first in range(0, self.n_shards, per_action):
            last = min(first + per_action, self.n_shards)
            payloads = self._collect(function, first, last)
            for number in range(first, last):
                yield (
                    pickle.loads(memoryview(payloads.pop(number))[1:])
                    if number in payloads
                    else task(self._empty(number))
                )
                report(number + 1, self.n_shards, what)

    def _empty(self, number: int) -> Shard:
        """A shard that no item belongs to, which has no row."""
        sizes = (len(self.worker_ids), len(self.classes))
        packed = Packed(np.zeros(0, np.int32), None, np.zeros(1, np.int64), *sizes)
        return Shard(number, packed, lambda: np.zeros(0, object))

    @raised_clearly
    def _collect(self, function: Any, first: int, last: int, *, with_ids: bool = False) -> dict[int, bytes]:
        """Results of the shards from `first` to `last - 1`, by number."""
        columns = [*PASS_COLUMNS, *(("id_lengths", "id_text") if with_ids else ())]
        rows = self.table().select(*columns)
        if (first, last) != (0, self.n_shards):
            rows = rows.filter(f"shard >= {first} and shard < {last}")
        # A shard whose task was run twice has the same result twice.
        payloads = {
            int(row[0]): bytes(row[1]) for row in rows.mapInArrow(function, "shard int, payload binary").collect()
        }
        missing = [number for number in self.manifest.present if first <= number < last and number not in payloads]
        if missing:
            raise ManyhandsError(
                f"Shards {', '.join(map(str, missing[:5]))}{' and others' if len(missing) > 5 else ''} of "
                f"{self.n_shards} are missing in {self.folder}. Delete this folder and fit again."
            )
        if not with_ids and any(payload[:1] == NEEDS_IDS for payload in payloads.values()):
            return self._collect(function, first, last, with_ids=True)
        return payloads


def _manifest(
    columns: LabelColumns, profile: RowProfile, written: Written, volumes: list[int] | None = None
) -> Manifest:
    """What is known of a table after it was written; an empty shard has no row."""
    settings = written.settings
    ids = [columns.types, settings.workers, settings.classes, written.n_shards, written.numbers]
    ledger = {"rows": profile.n_rows, "missing": profile.n_missing}
    ledger |= {f"missing_{role}": n for role, n in profile.nulls.items()}
    ledger |= {name: written.total(f"n_{name}") for name in ("identical", "conflicting")}
    return Manifest(
        format=FORMAT,
        n_shards=written.n_shards,
        present=[row[0] for row in written.numbers],
        n_items=written.total("n_items"),
        n_labels=written.total("n_labels"),
        types=columns.types,
        workers=settings.workers,
        classes=settings.classes,
        volumes=[0] * len(settings.workers) if volumes is None else volumes,
        ledger=ledger,
        fingerprint=blake2b(repr(ids).encode(), digest_size=16).hexdigest(),
    )


def _warn(ledger: dict[str, int], item: str, worker: str, label: str, order: str | None) -> None:
    """Say which rows were left out."""
    if ledger["missing"]:
        named = {"item": item, "worker": worker, "label": label}
        parts = [
            f"{ledger[f'missing_{role}']:,} without {name}" for role, name in named.items() if ledger[f"missing_{role}"]
        ]
        warnings.warn(
            f"missing_values: {ledger['missing']:,} of {ledger['rows']:,} rows were left out, {', '.join(parts)}.",
            CrowdWarning,
            stacklevel=4,
        )
    if ledger["conflicting"]:
        kept = f"the last by {order}" if order else "the greatest in the order of the classes (set orderCol to choose)"
        warnings.warn(
            f"repeated_labels: {ledger['conflicting']:,} rows were left out where a worker gave one item several "
            f"labels: {kept} was kept. {ledger['identical']:,} rows repeat another one.",
            CrowdWarning,
            stacklevel=4,
        )
