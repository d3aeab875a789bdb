"""The files of labels of a run in shards, written as the shards come and never whole in memory."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import polars as pl

from manyhands.io.write.hugging_face import parquet_metadata
from manyhands.io.write.label_shards import LabelFigures, LabelRows
from manyhands.io.write.results import class_names
from manyhands.sharded.labels import ShardedLabels
from manyhands.writing import StagedFile, StagedFiles
from manyhands.writing.staged_files import naming

CSV, JSONL, PARQUET = "labels.csv", "labels.jsonl", "labels.parquet"
SHARD_KINDS = {"jsonl": JSONL, "parquet": PARQUET}  # further formats of labels that are written shard by shard
_PARTS = "parts"  # folder of the rows of labels.parquet, which are put together in the end
_ROW_GROUP = 1 << 18  # rows; fixed, so that the bytes do not depend on the shards


def write_labels(labels: ShardedLabels, rows: LabelRows, staged: StagedFiles) -> LabelFigures:
    """Compute the labels of all items and write their files, shard by shard.

    Parameters
    ----------
    labels : ShardedLabels
        The labels of the crowd.
    rows : LabelRows
        The task that makes the rows of a shard.
    staged : StagedFiles
        Where the files are written.

    Returns
    -------
    LabelFigures
        Sums over all items.
    """
    figures = LabelFigures.empty(len(labels.worker_ids), len(labels.classes))
    parts = staged.path / _PARTS
    with ExitStack() as stack:
        csv = stack.enter_context(staged.create(CSV))
        lines = stack.enter_context(staged.create(JSONL)) if "jsonl" in rows.kinds else None
        csv.write(rows.header)
        for number, piece in enumerate(labels.run(rows, "labels")):
            figures.add(piece.figures)
            _append(csv, piece.csv)
            _append(lines, piece.jsonl)
            if "parquet" in rows.kinds:
                _write_part(parts / f"{number:03}.parquet", piece.tables, staged.shown(PARQUET))
    if "parquet" in rows.kinds:
        _put_together(parts, rows, staged)
    return figures


def _append(file: StagedFile | None, contents: list[bytes]) -> None:
    """Append to a file, if it is wanted."""
    if file is not None:
        for content in contents:
            file.write(content)


def _write_part(path: Path, tables: list[pl.DataFrame], shown: Path) -> None:
    """Write the rows of a shard; an empty shard has no part."""
    if tables:
        path.parent.mkdir(exist_ok=True)
        with _naming(shown):
            pl.concat(tables).write_parquet(path, compression="lz4")


def _put_together(parts: Path, rows: LabelRows, staged: StagedFiles) -> None:
    """Write labels.parquet from its parts, a row group at a time."""
    found = sorted(parts.iterdir())
    names = class_names(rows.classes)
    table = pl.scan_parquet(found)
    with _naming(staged.shown(PARQUET)):
        table.sink_parquet(
            staged.path / PARQUET,
            row_group_size=_ROW_GROUP,
            metadata=parquet_metadata(table.collect_schema(), names),
            engine="streaming",
        )
    shutil.rmtree(parts)
    staged.adopt(PARQUET)


@contextmanager
def _naming(shown: Path) -> Iterator[None]:
    """Turn an error of the operating system within polars into one that names the final file."""
    try:
        with naming(shown):
            yield
    except pl.exceptions.PolarsError as error:
        found = re.search(r"os error (\d+)", str(error))
        if found is None:
            raise
        raise OSError(int(found[1]), os.strerror(int(found[1])), str(shown)) from None
