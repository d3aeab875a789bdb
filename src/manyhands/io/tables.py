"""Long tables: one row per judgement, with a column each for item, worker and label.

Everything is read as text, so `007` stays `007` and a class called `NA` survives. A blank row and a row without a label
are counted and left out; where a worker labels an item again, the last row counts.
"""

from __future__ import annotations

import csv
import re
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from manyhands.annotations import Annotations
from manyhands.exceptions import AnnotationError, CrowdWarning
from manyhands.io.ledger import Ledger
from manyhands.io.names import find_look_alikes, listed, look_alike_note, plain, shorten

COMMON_NAMES = {
    "item": ("item", "task", "item_id", "task_id", "unit", "unit_id", "question", "question_id", "example", "id"),
    "worker": ("worker", "annotator", "worker_id", "annotator_id", "rater", "user", "labeler", "labeller", "performer"),
    "label": ("label", "answer", "class", "response", "annotation", "judgment", "judgement", "rating", "value"),
}
ENDINGS = ".csv, .tsv or .txt"
_SEPARATORS = {".csv": ",;\t", ".tsv": "\t,;", ".txt": "\t,;"}  # the first that splits the header is taken


@dataclass(frozen=True)
class Reading:
    """Annotations, where they stood in the file, what became of every row, and what a person should know."""

    annotations: Annotations
    columns: dict[str, str]
    ledger: Ledger
    notes: dict[str, str] = field(default_factory=dict)


def read_table(
    path: str | Path, *, item: str | None = None, worker: str | None = None, label: str | None = None
) -> Reading:
    """Read a .csv, .tsv or .txt file with one row per judgement, separated by commas, semicolons or tabs.

    Parameters
    ----------
    path : the file; the first line names the columns
    item, worker, label : the names of the columns, where they are not among the common ones
    """
    path = Path(path)
    frame, header = _read_text(path)
    named = {"item": item, "worker": worker, "label": label}
    place = {role: _find_column(header, role, name, path) for role, name in named.items()}
    table = pl.DataFrame({role: frame.to_series(at).fill_null("") for role, at in place.items()})
    empty = table.select(pl.all().str.strip_chars() == "")
    blank = _blank_rows(frame, empty)
    for role in ("item", "worker"):
        _refuse_empty(empty[role] & ~blank, role, header[place[role]], path)
    filled = table.filter(~blank)
    labelled = table.filter(~empty["label"])
    kept = labelled.unique(["item", "worker"], keep="last", maintain_order=True)
    excluded = {
        "blank": len(table) - len(filled),
        "no_label": len(filled) - len(labelled),
        "duplicate": len(labelled) - len(kept),
    }
    ledger = Ledger(len(table), len(kept), {reason: count for reason, count in excluded.items() if count})
    ids = {role: sorted(filled[role].unique().to_list()) for role in ("item", "worker")}
    annotations = Annotations.from_triples(
        *(kept[role].to_list() for role in place), item_ids=ids["item"], worker_ids=ids["worker"]
    )
    pairs = [pair for role in ids for pair in find_look_alikes(ids[role])]
    notes = {"look_alike_ids": look_alike_note(pairs)} if pairs else {}
    for code_word, sentence in notes.items():
        warnings.warn(f"{code_word}: {sentence}", CrowdWarning, stacklevel=2)
    return Reading(annotations, {role: header[at] for role, at in place.items()}, ledger, notes)


def _read_text(path: Path) -> tuple[pl.DataFrame, list[str]]:
    """The whole file, every cell as text, and the names of its columns."""
    if not path.is_file():
        what = "is a folder, not a file" if path.is_dir() else "does not exist"
        raise AnnotationError(f"{path} {what}. Give the path of a {ENDINGS} file.")
    separators = _SEPARATORS.get(path.suffix.lower())
    if separators is None:
        raise AnnotationError(f"{path} ends in {path.suffix!r}. Long tables are read from {ENDINGS} files.")
    separator, header = separators[0], None
    try:
        separator, header = _read_header(path, separators)
        with path.open("rb") as file:  # polars would take a name for a pattern
            frame = pl.read_csv(file, separator=separator, infer_schema=False)
    except pl.exceptions.NoDataError:
        raise AnnotationError(f"{path} is empty. The first line must name the columns.") from None
    except pl.exceptions.DuplicateError:
        names = [name for name, count in Counter(header).items() if count > 1]
        raise AnnotationError(f"{path} has several columns called {listed(names)}. Rename all but one.") from None
    except (pl.exceptions.PolarsError, UnicodeDecodeError) as error:
        raise AnnotationError(_explain(path, separator, error)) from None
    # polars gives a name that comes again a number; what stands in the file is what the user knows.
    return frame, header if header and len(header) == frame.width else frame.columns


def _read_header(path: Path, separators: str) -> tuple[str, list[str] | None]:
    """The first separator that splits the header, and the names in it; None where they are beyond reading."""
    for separator in separators:
        try:
            header = next((row for _, row in _rows(path, separator)), [])
        except csv.Error:
            break
        if len(header) > 1:
            return separator, header
    return separators[0], None


def _rows(path: Path, separator: str, *, strict: bool = False) -> Iterator[tuple[int, list[str]]]:
    """Every row that is not an empty line, with the number of the line on which it begins."""
    with path.open(newline="", encoding="utf-8-sig") as file:
        rows, line = csv.reader(file, delimiter=separator, strict=strict), 1
        for row in rows:
            if row:
                yield line, row
            line = rows.line_num + 1


def _explain(path: Path, separator: str, error: Exception) -> str:
    """Why a file could not be read, with the line where one can be named."""
    try:
        rows = _rows(path, separator, strict=True)
        width = len(next(rows, (1, []))[1])
        for line, row in rows:
            if len(row) > width:
                return (
                    f"{path}, line {line}: {len(row)} cells where the header names {width} columns. "
                    f"Put cells that contain {separator!r} or line breaks in double quotes."
                )
        text = path.read_bytes().decode()
    except UnicodeDecodeError:
        return f"{path} is not UTF-8 text (byte {_first_bad_byte(path)}). Save it as UTF-8."
    except csv.Error as broken:
        return f"{path} cannot be read as a table: {broken}. Check its quotes."
    # Quoted cells are taken whole; what then still runs into a quote is a bare cell with a quote in it.
    for match in re.finditer(rf'"(?:[^"]|"")*"|[^{separator}"\n]+("?)', text):
        if match[1]:
            line = text.count("\n", 0, match.start()) + 1
            return f"{path}, line {line}: a double quote within a cell. Write it twice, and the cell in double quotes."
    return f"{path} cannot be read as a table: {str(error).splitlines()[0]}."


def _first_bad_byte(path: Path) -> int:
    """Where UTF-8 ends; an error from a stream counts from the start of a block, not of the file."""
    try:
        path.read_bytes().decode()
    except UnicodeDecodeError as error:
        return error.start
    raise AssertionError(f"{path} is UTF-8")


def _find_column(header: list[str], role: str, name: str | None, path: Path) -> int:
    """The place of the column named by the caller, or of the one whose name is usual for its role."""
    found = [at for at, column in enumerate(header) if column == name]
    names = [plain(column) for column in header]
    for wanted in COMMON_NAMES[role] if name is None else [name]:
        found = found or [at for at, column in enumerate(names) if column == plain(wanted)]
    if not found:
        what = f"for the {role}" if name is None else repr(name)
        remedy = f"Name the right one with --{role} COLUMN."
        raise AnnotationError(f"Column {what} is not in {path}. It has: {listed(header)}. {remedy}")
    if len(found) > 1:
        alike = sorted({header[at] for at in found})
        remedy = f"Name the right one with --{role} COLUMN." if len(alike) == len(found) else "Rename all but one."
        said = " and ".join(repr(shorten(column)) for column in alike)
        raise AnnotationError(f"{path} has {len(found)} columns for the {role}, called {said}. {remedy}")
    return found[0]


def _blank_rows(frame: pl.DataFrame, empty: pl.DataFrame) -> pl.Series:
    """The rows in which no cell of the file says anything."""
    blank = empty.select(pl.all_horizontal(pl.all())).to_series()
    candidates = blank.arg_true()
    said = [any(cell and cell.strip() for cell in row) for row in frame[candidates].iter_rows()]
    return blank.scatter(candidates.filter(pl.Series(said, dtype=pl.Boolean)), False)


def _refuse_empty(empty: pl.Series, role: str, column: str, path: Path) -> None:
    if empty.any():
        row = empty.arg_true()[0]
        raise AnnotationError(
            f"{path}, row {row + 1} after the header: the {role} (column {column!r}) is blank. "
            f"Fill it in or remove the row; {int(empty.sum())} such row(s) in all."
        )
