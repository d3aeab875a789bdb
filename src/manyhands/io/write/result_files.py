"""The files of one run: tables, summary, and labels in further formats.

The file: outputs that are possible, and their contents; annotations as tables; the same files of a run in shards.
"""

from __future__ import annotations

import io
import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from manyhands._core.spelling import suggest
from manyhands._core.writing import StagedFile, StagedFiles, naming
from manyhands.aggregation.base import Aggregator
from manyhands.annotations import Annotations
from manyhands.em.kernels import Packed
from manyhands.exceptions import AnnotationError, LimitError, ParameterError
from manyhands.io.messages import argument
from manyhands.io.reading import Reading
from manyhands.io.write.results import DECIMALS, class_names, guard_table, id_column, label_frame, to_csv, to_json
from manyhands.io.write.training_table import TRAINING, jsonl, parquet, parquet_frame, parquet_metadata, values_by_item
from manyhands.io.write.workbook import check_workbook
from manyhands.io.write.write_back import (
    SUGGESTIONS,
    Labels,
    check_suggestions,
    check_write_back,
    copies_of_tasks,
    label_studio_tasks,
    predictions_for_tasks,
    refuse_standard_input,
    suggestions,
)
from manyhands.sharded.labels import Groups, Shard, ShardedLabels, join_by_items, join_groups, no_groups
from manyhands.sharded.passes import FinalPass, ItemResults

PREDICTIONS, TASKS, XLSX = "label-studio", "label-studio-tasks", "xlsx"
KINDS = (
    {
        "jsonl": "labels.jsonl",
        "parquet": "labels.parquet",
        XLSX: "results.xlsx",
        PREDICTIONS: "label_studio_predictions.json",
        TASKS: "label_studio_tasks.json",
    }
    | SUGGESTIONS
    | TRAINING
)


def kinds_of(write: Sequence[str]) -> list[str]:
    """Return each format once; ``training:jsonl`` means ``training-jsonl``, ``training:csv`` means training."""
    same = {"training-csv": "training"}
    plain = [kind.replace("training:", "training-") for kind in write]
    return list(dict.fromkeys(same.get(kind, kind) for kind in plain))


def check_kinds(kinds: Sequence[str]) -> None:
    """Refuse unknown formats of labels, before anything is read."""
    unexpected = [kind for kind in kinds if kind not in KINDS]
    if unexpected:
        raise ParameterError(f"Labels cannot be written as {unexpected[0]!r}.{suggest(unexpected[0], KINDS)}")


def check_outputs(kinds: Sequence[str], paths: Sequence[str], reading: Reading) -> None:
    """Refuse outputs that could not be written, before anything is computed."""
    check_kinds(kinds)
    if XLSX in kinds:
        check_workbook(reading.annotations.n_items)
    if PREDICTIONS in kinds and reading.format != "label-studio":
        raise ParameterError(
            f"{reading.source} is not a JSON export of Label Studio, so there are no tasks that predictions could be "
            f"attached to. {argument('write', TASKS)} writes new tasks."
        )
    if {PREDICTIONS, TASKS} & set(kinds) and reading.format == "label-studio":
        check_write_back(paths, reading.question, reading.questions)
    for kind in SUGGESTIONS.keys() & set(kinds):
        refuse_standard_input(paths)
        check_suggestions(kind, reading)


def file_names(kinds: Sequence[str], compare: bool) -> list[str]:
    """Return the names of the files that a run writes."""
    compared = ["methods.csv", "differences.csv"] if compare else []
    return ["labels.csv", "workers.csv", "summary.json", *compared, *(KINDS[kind] for kind in kinds)]


def result_files(
    model: Aggregator,
    reading: Reading,
    paths: Sequence[str],
    tables: Mapping[str, pl.DataFrame],
    run_summary: Mapping[str, Any],
    kinds: Sequence[str],
) -> dict[str, bytes]:
    """Return all files of a run."""
    files = {name: to_csv(table) for name, table in tables.items()} | {"summary.json": to_json(dict(run_summary))}
    if not kinds:
        return files
    labels = label_frame(model)  # ids are not protected for spreadsheets in these formats
    if "jsonl" in kinds:
        files[KINDS["jsonl"]] = jsonl(labels)
    if "parquet" in kinds:
        files[KINDS["parquet"]] = parquet(labels)
    labelled = labels.filter(pl.col("label").is_not_null()).select("item", "label", "confidence")
    label_of = {item: (label, confidence) for item, label, confidence in labelled.iter_rows()}
    return files | write_back(label_of, reading, paths, kinds, run_summary["method"])


def write_back(
    label_of: Labels, reading: Reading, paths: Sequence[str], kinds: Sequence[str], method: str
) -> dict[str, bytes]:
    """Return the files of labels for the tool that the export comes from."""
    version, files = f"manyhands-{method}", {}
    for kind in kinds:
        if kind in (PREDICTIONS, TASKS):
            files[KINDS[kind]] = _for_label_studio(kind, label_of, reading, paths, version)
        elif kind in SUGGESTIONS:
            files[KINDS[kind]] = suggestions(kind, reading, paths, label_of, version)
    return files


def _for_label_studio(kind: str, label_of: Labels, reading: Reading, paths: Sequence[str], version: str) -> bytes:
    """Return predictions for the tasks of a Label Studio export, copies of them, or new tasks of another export."""
    if reading.format != "label-studio":
        fields = None if reading.item_fields is None else values_by_item(reading.item_fields, list(label_of))
        return label_studio_tasks(label_of, fields=fields, from_name=reading.question, model_version=version)
    item = None if reading.columns["item"] == "id" else reading.columns["item"]
    write = predictions_for_tasks if kind == PREDICTIONS else copies_of_tasks
    return write(
        list(paths),
        label_of,
        question=reading.question,
        item=item,
        encoding=reading.encoding,
        model_version=version,
    )


# ----------------------------------------------------------------------------------------------------
# Annotations as long and wide tables.

TARGETS = (".csv", ".tsv", ".jsonl", ".parquet")
_MAX_CELLS = 50_000_000  # of a wide table; as text they take 800 MB, 16 bytes for each
_NULL = pl.Series([None], dtype=pl.String)


def triples_frame(annotations: Annotations, *, unanswered: bool = True) -> pl.DataFrame:
    """Return one row per label."""
    item, worker, label = annotations.item, annotations.worker, annotations.label
    unlabelled = np.flatnonzero(annotations.n_labels == 0)
    at = annotations.start[unlabelled]
    if unanswered and len(unlabelled):  # at their places, so that the table has the items in their order
        item = np.insert(item, at, unlabelled)
        worker, label = np.insert(worker, at, annotations.n_workers), np.insert(label, at, annotations.n_classes)
    columns = {
        "item": (annotations.item_ids, item),
        "worker": (annotations.worker_ids, worker),
        "label": (annotations.classes, label),
    }
    texts = {name: (_text(values.tolist()).extend(_NULL), codes) for name, (values, codes) in columns.items()}
    frame = pl.DataFrame({name: values.gather(codes) for name, (values, codes) in texts.items()})
    if annotations.weight is None:
        return frame
    weight = np.insert(annotations.weight, at, np.nan) if len(item) > annotations.n_annotations else annotations.weight
    return frame.with_columns(pl.Series("weight", weight).fill_nan(None))


def wide_frame(annotations: Annotations) -> pl.DataFrame:
    """Return one row per item and one column per worker, for small crowds."""
    cells = annotations.n_items * annotations.n_workers
    if cells > _MAX_CELLS:
        raise LimitError(f"A wide table would have {cells:,} cells; at most {_MAX_CELLS:,} are made.")
    pairs = annotations.item.astype(np.int64) * annotations.n_workers + annotations.worker
    if len(np.unique(pairs)) < len(pairs):
        raise AnnotationError("A worker has several labels on an item, which a wide table cannot hold.")
    matrix = np.full((annotations.n_items, annotations.n_workers), -1, np.int32)
    matrix[annotations.item, annotations.worker] = annotations.label
    classes = [*(str(value) for value in annotations.classes.tolist()), None]
    columns = {"item": _text(annotations.item_ids.tolist())}
    for w, worker in enumerate(annotations.worker_ids.tolist()):
        columns[f"{worker}"] = pl.Series([classes[code] for code in matrix[:, w]], dtype=pl.String)
    if len(columns) <= annotations.n_workers:
        raise AnnotationError("Two workers have the same name, or one is called 'item': leave out `wide=True`.")
    return pl.DataFrame(columns)


def encode_table(table: pl.DataFrame, ending: str) -> bytes:
    """Return a table in the format of a file's ending."""
    if ending == ".csv":
        return to_csv(table)
    buffer = io.BytesIO()
    if ending == ".tsv":
        table.write_csv(buffer, separator="\t")
    elif ending == ".jsonl":
        table.write_ndjson(buffer)
    else:
        table.write_parquet(buffer)
    return buffer.getvalue()


def _text(values: list[object]) -> pl.Series:
    """Return values as a column of text."""
    return pl.Series([str(value) for value in values], dtype=pl.String)


# ----------------------------------------------------------------------------------------------------
# Labels of items shard by shard, as pieces of labels.csv, labels.jsonl and labels.parquet.
#
# The columns are those of `results.label_frame`, and so are the bytes of each line; only the order of items is that of
# the shards. A piece is made by the thread that read the shard, and the pieces are written in the order of shards.

ITEMS_AT_ONCE = 1 << 17  # items that are one data frame in memory
_CONFIDENT = 0.9  # as `share_above_0.9` of `results.summary`
_UNIT = float(1 << 40)  # a probability is a whole number of such parts


@dataclass
class LabelFigures:
    """Sums over items, for the summary of a run; those of several shards are added in their order."""

    groups: Groups  # (n_workers,); group of each worker, connected by common items
    labels: npt.NDArray[np.int64]  # (n_classes,); number of items with each label
    # number of items, of those without a label, of ties, and of labels with a posterior of at least 0.9
    n_items: int = 0
    # number of items, of those without a label, of ties, and of labels with a posterior of at least 0.9
    n_unlabelled: int = 0
    # number of items, of those without a label, of ties, and of labels with a posterior of at least 0.9
    n_tied: int = 0
    # number of items, of those without a label, of ties, and of labels with a posterior of at least 0.9
    n_confident: int = 0
    # sum of the posterior of each label in units of 2^-40, which is exact whatever the order of items
    confidence: int = 0

    @classmethod
    def empty(cls, n_workers: int, n_classes: int) -> LabelFigures:
        """Return the figures of no items."""
        return cls(no_groups(n_workers), np.zeros(n_classes, np.int64))

    @property
    def mean_confidence(self) -> float | None:
        """Mean posterior of the labels; None without labels."""
        n_labelled = self.n_items - self.n_unlabelled
        return self.confidence / _UNIT / n_labelled if n_labelled else None

    def count(self, packed: Packed, results: ItemResults) -> None:
        """Add items."""
        labelled = results.n_labels > 0
        confidence = results.posterior.max(axis=1)[labelled]
        self.groups = join_by_items(self.groups, packed)
        self.labels += np.bincount(results.code[labelled], minlength=len(self.labels))
        self.n_items += len(labelled)
        self.n_unlabelled += int(np.count_nonzero(~labelled))
        self.n_tied += int(np.count_nonzero(results.tied))
        self.n_confident += int(np.count_nonzero(confidence >= _CONFIDENT))
        self.confidence += int(np.rint(confidence * _UNIT).astype(np.int64).sum())

    def add(self, other: LabelFigures) -> None:
        """Add the figures of other items."""
        self.groups = join_groups(self.groups, other.groups)
        self.labels += other.labels
        for name in ("n_items", "n_unlabelled", "n_tied", "n_confident", "confidence"):
            setattr(self, name, getattr(self, name) + getattr(other, name))


@dataclass
class _LabelPiece:
    """What one shard adds to the files of labels."""

    figures: LabelFigures  # sums over its items
    csv: list[bytes] = field(default_factory=list)  # lines of labels.csv and labels.jsonl, without a header
    jsonl: list[bytes] = field(default_factory=list)  # lines of labels.csv and labels.jsonl, without a header
    tables: list[pl.DataFrame] = field(default_factory=list)


@dataclass(frozen=True)
class LabelRows:
    """The task that makes the rows of the items of a shard.

    Shapes: classes (n_classes,).
    """

    final: FinalPass  # the task that computes the results of items
    classes: npt.NDArray[Any]  # (n_classes,)
    kinds: Sequence[str] = ()  # further formats: "jsonl", "parquet"
    spreadsheet_safe: bool = False  # prevent spreadsheet programs from running cells of labels.csv as formulas

    def __call__(self, shard: Shard) -> _LabelPiece:
        """Run on one shard."""
        piece = _LabelPiece(LabelFigures.empty(shard.packed.n_workers, shard.packed.n_classes))
        for part, ids in _parts(shard):
            results = self.final(part)
            piece.figures.count(part.packed, results)
            table = _item_frame(ids, self.classes, part.packed, results)
            piece.csv.append(self.csv_lines(table))
            if "jsonl" in self.kinds:
                piece.jsonl.append(jsonl(table))
            if "parquet" in self.kinds:
                piece.tables.append(parquet_frame(table))
        return piece

    def csv_lines(self, table: pl.DataFrame, *, header: bool = False) -> bytes:
        """Return rows as CSV."""
        buffer = BytesIO()
        shown = guard_table(table) if self.spreadsheet_safe else table
        shown.write_csv(buffer, include_header=header, float_precision=DECIMALS)
        return buffer.getvalue()

    @property
    def header(self) -> bytes:
        """First line of labels.csv."""
        n_classes = len(self.classes)
        none = Packed(np.zeros(0, np.int32), None, np.zeros(1, np.int64), 0, n_classes)
        empty = np.zeros(0, bool)
        results = ItemResults(0, np.zeros((0, n_classes)), np.zeros(0, np.int32), empty, None, np.zeros(0, np.int64))
        return self.csv_lines(_item_frame([], self.classes, none, results), header=True)


def _parts(shard: Shard) -> Iterator[tuple[Shard, Sequence[Any]]]:
    """Cut a shard into parts whose results fit into little memory, with their ids."""
    packed, ids = shard.packed, shard.item_ids()
    for first in range(0, packed.n_items, ITEMS_AT_ONCE):
        last = min(first + ITEMS_AT_ONCE, packed.n_items)
        start = packed.start[first : last + 1]
        part = Packed(packed.code[start[0] : start[-1]], None, start - start[0], packed.n_workers, packed.n_classes)
        own = ids[first:last]
        yield Shard(shard.number, part, lambda own=own: own), own  # type: ignore[misc]


def _item_frame(ids: Sequence[Any], classes: npt.NDArray[Any], packed: Packed, results: ItemResults) -> pl.DataFrame:
    """Return one row per item, with the columns of `results.label_frame`.

    Shapes: classes (n_classes,).
    """
    names = class_names(classes)
    labelled = results.n_labels > 0
    label = id_column(classes.tolist()).gather(pl.Series(np.where(labelled, results.code, 0)))
    confidence = results.posterior.max(axis=1, initial=0.0)
    return pl.DataFrame(
        {
            "item": pl.Series(ids) if isinstance(ids, np.ndarray) and ids.dtype.kind == "i" else id_column(list(ids)),
            "label": label,
            "confidence": confidence,
            "n_labels": results.n_labels,
            "alerts": _alerts(packed, results),
            **{f"p_{name}": results.posterior[:, k] for k, name in enumerate(names)},
            "labelled": labelled,
        }
    ).select(
        "item",
        *(pl.when("labelled").then(name).alias(name) for name in ("label", "confidence")),
        pl.all().exclude("item", "label", "confidence", "labelled"),
    )


def _alerts(packed: Packed, results: ItemResults) -> pl.Series:
    """Return the alerts of each item, joined by ";"; null without alerts."""
    voted = np.zeros(packed.n_items, bool)
    item = np.repeat(np.arange(packed.n_items), results.n_labels)
    voted[item[results.code[item] == packed.code % np.int32(packed.n_classes)]] = True
    unlabelled = results.n_labels == 0
    state = results.tied + 2 * unlabelled + 4 * (~voted & ~unlabelled)
    words = ("tie", "unlabelled", "unvoted")
    texts = [";".join(word for bit, word in enumerate(words) if code >> bit & 1) or None for code in range(8)]
    return pl.Series(texts, dtype=pl.String).gather(pl.Series(state))


# ----------------------------------------------------------------------------------------------------
# The files of labels of a run in shards, written as the shards come and never whole in memory.

CSV, JSONL, PARQUET = "labels.csv", "labels.jsonl", "labels.parquet"
SHARD_KINDS = {"jsonl": JSONL, "parquet": PARQUET}  # further formats of labels that are written shard by shard
_PARTS = "parts"  # folder of the rows of labels.parquet, which are put together in the end
_ROW_GROUP = 1 << 18  # rows; fixed, so that the bytes do not depend on the shards


def write_labels(labels: ShardedLabels, rows: LabelRows, staged: StagedFiles) -> LabelFigures:
    """Compute the labels of all items and write their files, shard by shard."""
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
    files = sorted(parts.iterdir())
    names = class_names(rows.classes)
    table = pl.scan_parquet(files)
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
        number = re.search(r"os error (\d+)", str(error))
        if number is None:
            raise
        raise OSError(int(number[1]), os.strerror(int(number[1])), str(shown)) from None
