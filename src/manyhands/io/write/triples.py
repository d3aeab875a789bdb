"""Annotations as long and wide tables."""

from __future__ import annotations

import io

import numpy as np
import polars as pl

from manyhands.annotations import Annotations
from manyhands.exceptions import AnnotationError, LimitError
from manyhands.io.write.results import to_csv

TARGETS = (".csv", ".tsv", ".jsonl", ".parquet")
_MAX_CELLS = 50_000_000
_NULL = pl.Series([None], dtype=pl.String)


def triples_frame(annotations: Annotations, *, unanswered: bool = True) -> pl.DataFrame:
    """Return one row per label.

    Parameters
    ----------
    annotations : Annotations
        The labels.
    unanswered : bool, default=True
        Add a row without worker and label for every item that has no labels.

    Returns
    -------
    polars.DataFrame
        ``task``, ``worker`` and ``label`` as text, and ``weight`` where labels have weights.
    """
    item, worker, label = annotations.item, annotations.worker, annotations.label
    unlabelled = np.flatnonzero(annotations.n_labels == 0)
    at = annotations.start[unlabelled]
    if unanswered and len(unlabelled):  # at their places, so that the table has the items in their order
        item = np.insert(item, at, unlabelled)
        worker, label = np.insert(worker, at, annotations.n_workers), np.insert(label, at, annotations.n_classes)
    columns = {
        "task": (annotations.item_ids, item),
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
    """Return one row per item and one column per worker, for small crowds.

    Parameters
    ----------
    annotations : Annotations
        The labels.

    Returns
    -------
    polars.DataFrame
        ``item`` and a column per worker; null where there is no label.

    Raises
    ------
    LimitError
        If the table would have more than 50 million cells.
    AnnotationError
        If a worker has several labels on an item, or two workers have the same name.
    """
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
        raise AnnotationError("Two workers have the same name, or one is called 'item': leave out --wide.")
    return pl.DataFrame(columns)


def encode_table(table: pl.DataFrame, ending: str) -> bytes:
    """Return a table in the format of a file's ending.

    Parameters
    ----------
    table : polars.DataFrame
        The table.
    ending : {".csv", ".tsv", ".jsonl", ".parquet"}
        The ending.

    Returns
    -------
    bytes
        Content of the file.
    """
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
