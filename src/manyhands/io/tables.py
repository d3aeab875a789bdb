"""Long tables: one row per judgement, with a column each for item, worker and label.

Everything is read as text, so `007` stays `007` and a class called `NA` survives. A row without a label is
counted and left out; where a worker labels an item again, the last row counts.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from manyhands.annotations import Annotations
from manyhands.exceptions import AnnotationError
from manyhands.io.ledger import Ledger

COMMON_NAMES = {
    "item": ("item", "task", "item_id", "task_id", "unit", "unit_id", "question", "question_id", "example", "id"),
    "worker": ("worker", "annotator", "worker_id", "annotator_id", "rater", "user", "labeler", "labeller", "performer"),
    "label": ("label", "answer", "class", "response", "annotation", "judgment", "judgement", "rating", "value"),
}
_SEPARATORS = {".csv": ",", ".tsv": "\t", ".txt": "\t"}


@dataclass(frozen=True)
class Reading:
    """Annotations, where they stood in the file, and what became of every row."""

    annotations: Annotations
    columns: dict[str, str]
    ledger: Ledger


def read_table(
    path: str | Path, *, item: str | None = None, worker: str | None = None, label: str | None = None
) -> Reading:
    """Read a CSV or TSV file with one row per judgement.

    Parameters
    ----------
    path : the file; the first line names the columns
    item, worker, label : the names of the columns, where they are not among the common ones
    """
    path = Path(path)
    frame = _read_text(path)
    named = {"item": item, "worker": worker, "label": label}
    columns = {role: _find_column(frame.columns, role, name, path) for role, name in named.items()}
    table = frame.select(**{role: pl.col(name).fill_null("") for role, name in columns.items()})
    for role in ("item", "worker"):
        _refuse_blank(table, role, columns[role], path)
    labelled = table.filter(pl.col("label").str.strip_chars() != "")
    kept = labelled.unique(["item", "worker"], keep="last", maintain_order=True)
    excluded = {"no_label": len(table) - len(labelled), "duplicate": len(labelled) - len(kept)}
    ledger = Ledger(len(table), len(kept), {reason: count for reason, count in excluded.items() if count})
    annotations = Annotations.from_triples(
        *(kept[role].to_list() for role in columns),
        item_ids=sorted(table["item"].unique().to_list()),
        worker_ids=sorted(table["worker"].unique().to_list()),
    )
    return Reading(annotations, columns, ledger)


def _read_text(path: Path) -> pl.DataFrame:
    """The whole file, every cell as text."""
    if not path.is_file():
        what = "is a folder, not a file" if path.is_dir() else "does not exist"
        raise AnnotationError(f"{path} {what}. Give the path of a CSV or TSV file.")
    separator = _SEPARATORS.get(path.suffix.lower())
    if separator is None:
        raise AnnotationError(f"{path} ends in {path.suffix!r}. Long tables are read from .csv and .tsv files.")
    try:
        return pl.read_csv(path, separator=separator, infer_schema=False)
    except pl.exceptions.NoDataError:
        raise AnnotationError(f"{path} is empty. The first line must name the columns.") from None
    except (pl.exceptions.PolarsError, UnicodeDecodeError) as error:
        raise AnnotationError(_explain(path, separator, error)) from None


def _explain(path: Path, separator: str, error: Exception) -> str:
    """Why a file could not be read, with the line where one can be named."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = csv.reader(file, delimiter=separator, strict=True)
            width = len(next(rows))
            for row in rows:
                if row and len(row) != width:
                    return (
                        f"{path}, line {rows.line_num}: {len(row)} cells where the first line names {width} columns. "
                        f"Put cells that contain {separator!r} or line breaks in double quotes."
                    )
    except UnicodeDecodeError as decoding:
        return f"{path} is not UTF-8 text (byte {decoding.start}). Save it as UTF-8."
    except (csv.Error, StopIteration) as broken:
        return f"{path} cannot be read as a table: {broken}. Check its quotes."
    return f"{path} cannot be read as a table: {str(error).splitlines()[0]}."


def _find_column(columns: list[str], role: str, name: str | None, path: Path) -> str:
    """The column named by the caller, or the one whose name is usual for its role."""
    if name is not None:
        if name not in columns:
            raise AnnotationError(_no_column(repr(name), columns, role, path))
        return name
    lower = {column.strip().lower(): column for column in reversed(columns)}
    for usual in COMMON_NAMES[role]:
        if usual in lower:
            return lower[usual]
    raise AnnotationError(_no_column(f"for the {role}", columns, role, path))


def _no_column(what: str, columns: list[str], role: str, path: Path) -> str:
    return f"Column {what} is not in {path}. It has: {', '.join(columns)}. Name the right one with --{role} COLUMN."


def _refuse_blank(table: pl.DataFrame, role: str, column: str, path: Path) -> None:
    blank = table[role].str.strip_chars() == ""
    if blank.any():
        row = blank.arg_true()[0]
        raise AnnotationError(
            f"{path}, row {row + 1} after the header: the {role} (column {column!r}) is blank. "
            f"Fill it in or remove the row; {int(blank.sum())} such row(s) in all."
        )
