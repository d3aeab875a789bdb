"""The labels of a DataFrame as a table of shards in Parquet, written once.

    <checkpointDir>/<key>/blocks      small ranges of items, sorted and coded; emptied when the shards are written
    <checkpointDir>/<key>/shards      one row for each shard
    <checkpointDir>/<key>/manifest    written last: without it, what is there is taken for half-written and written anew
    <checkpointDir>/<key>/passes      finished passes of fits
    <checkpointDir>/<key>/tasks       tables beyond 64 MB that executors read

The key is the hash of the rows, so that one checkpoint folder can hold the labels of several DataFrames.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from shutil import rmtree
from typing import Any

import numpy as np

from manyhands.exceptions import AnnotationError, ManyhandsError
from manyhands.sharded.layout import shard_count
from manyhands.spark.engine_errors import raised_clearly
from manyhands.spark.label_columns import DataFrame, LabelColumns, RowProfile, check_table, distinct_values
from manyhands.spark.remote import pack, remote_function
from manyhands.spark.shard_columns import NUMBERS, SCHEMA, SEEN, LayoutSettings
from manyhands.spark.shared_files import is_absent, local_path

Session = Any

FORMAT = 1
_ROWS_PER_BLOCK = 1 << 20  # sorted in the memory of one executor task
_MAX_BLOCKS = 1 << 16


@dataclass(frozen=True)
class Manifest:
    """What is known of a table of shards.

    Attributes
    ----------
    format : int
        Version of the layout of files.
    n_shards : int
        Number of shards.
    present : list of int
        Shards that have items; the others have no row.
    n_items : int
        Number of items.
    n_labels : int
        Number of labels.
    types : dict of str to str
        Types of the columns, by role.
    workers : list
        The workers.
    classes : list
        The classes.
    volumes : list of int
        Number of labels of each worker.
    ledger : dict of str to int
        Rows read, and rows left out by reason.
    fingerprint : str
        Hash of all labels.
    """

    format: int
    n_shards: int
    present: list[int]
    n_items: int
    n_labels: int
    types: dict[str, str]
    workers: list[Any]
    classes: list[Any]
    volumes: list[int]
    ledger: dict[str, int]
    fingerprint: str


def read_manifest(spark: Session, folder: str) -> Manifest | None:
    """The manifest of a table of shards, None where there is none that can be used.

    Parameters
    ----------
    spark : SparkSession
        The session.
    folder : str
        Folder of the table.

    Returns
    -------
    Manifest or None
    """
    if is_absent(f"{folder}/manifest", folder.rpartition("/")[0]):
        return None
    rows = []
    with suppress(Exception):  # engines have errors of their own for a path that does not exist
        rows = spark.read.schema("value string").parquet(f"{folder}/manifest").collect()
    if len(rows) != 1:
        return None
    try:
        found = Manifest(**json.loads(rows[0][0]))
    except (TypeError, ValueError):
        return None
    return found if found.format == FORMAT else None


def write_manifest(spark: Session, folder: str, manifest: Manifest) -> None:
    """Write the manifest, which says that the table is whole.

    Parameters
    ----------
    spark : SparkSession
        The session.
    folder : str
        Folder of the table.
    manifest : Manifest
        The manifest.
    """
    row = spark.createDataFrame([(json.dumps(asdict(manifest)),)], "value string")
    row.coalesce(1).write.mode("overwrite").parquet(f"{folder}/manifest")


@dataclass(frozen=True)
class Written:
    """A table of shards that was just written.

    Attributes
    ----------
    settings : LayoutSettings
        Workers and classes.
    n_shards : int
        Number of shards.
    numbers : list of tuple
        For each shard: its number, and the columns of `blocks.NUMBERS`.
    """

    settings: LayoutSettings
    n_shards: int
    numbers: list[tuple[int, ...]]

    def total(self, name: str) -> int:
        """Sum of a column.

        Parameters
        ----------
        name : str
            One of `blocks.NUMBERS`.

        Returns
        -------
        int
        """
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
    """Code the labels of a DataFrame and write them in shards.

    Parameters
    ----------
    frame : DataFrame
        One row per label.
    columns : LabelColumns
        Its columns.
    profile : RowProfile
        Its number of rows.
    folder : str
        Folder of the table.
    max_table_bytes : int
        Bytes that the confusion matrices of all workers may have.
    n_shards : int, default=None
        Number of shards; None is the number that the layout gives.

    Returns
    -------
    Written

    Raises
    ------
    AnnotationError
        Where there are no labels.
    LimitError
        Where the confusion matrices outgrow the driver.
    """
    labels = columns.labels(frame)
    settings = _settings(labels, columns, max_table_bytes)
    n_blocks = n_shards or 1
    while n_blocks < _MAX_BLOCKS and profile.n_rows > n_blocks * _ROWS_PER_BLOCK:
        n_blocks *= 2
    _write_blocks(labels, settings, n_blocks, folder)
    spark = frame.sparkSession
    found = _numbers(spark, f"{folder}/blocks", "block")
    n_labels = sum(row[2] for row in found)
    if n_labels != profile.n_rows - profile.n_missing - sum(row[3] + row[4] for row in found):
        raise ManyhandsError(
            "The DataFrame gave other rows when it was computed again. Write it to a table first, and fit on that."
        )
    blocks = spark.read.schema(f"block int, {SCHEMA}").parquet(f"{folder}/blocks")
    seen = _seen(blocks, len(settings.classes)) if any(row[4] for row in found) else [True] * len(settings.classes)
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
    found = np.zeros(n_classes, bool)
    for row in blocks.select(SEEN).collect():
        found |= np.frombuffer(bytes(row[0]), np.uint8) > 0
    return [bool(there) for there in found]


def _write_merged(blocks: DataFrame, seen: list[bool], per_shard: int, folder: str) -> None:
    """Write the blocks of each shard as one row."""
    import pyspark.sql.functions as f

    shard = f.floor(f.col("block") / f.lit(per_shard)).cast("int")
    merge = remote_function("merge_blocks", pack((seen,), folder))
    rows = grouped_map(blocks.withColumn("shard", shard).groupBy("shard"), merge, f"shard int, {SCHEMA}")
    rows.write.mode("overwrite").parquet(f"{folder}/shards")


def grouped_map(grouped: Any, function: Any, schema: str) -> DataFrame:
    """Apply a function of an Arrow table to each group, on all versions of Spark.

    Parameters
    ----------
    grouped : GroupedData
        The groups.
    function : callable
        From a table to a table.
    schema : str
        Columns of the result.

    Returns
    -------
    DataFrame
    """
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
