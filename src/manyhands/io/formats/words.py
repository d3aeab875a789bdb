"""Text files without a header: a matrix of integers, or triples of coder, item and label (as in NLTK)."""

from __future__ import annotations

import re
from dataclasses import replace

import polars as pl

from manyhands.exceptions import AnnotationError
from manyhands.io.documents import Document, Table, Words
from manyhands.io.formats.long import has_roles
from manyhands.io.formats.wide import cells_as_judgements
from manyhands.io.judgements import ColumnOptions, Judgements

_NUMBER = re.compile(r"-?\d+(\.0*)?|nan", re.IGNORECASE)
_CLEARLY = 3  # the column with this many times more distinct values than the other holds the items, not the workers


def recognise(document: Document) -> str | None:
    """Recognise rows of integers as a matrix, and rows of three words as triples; three integers may be either."""
    rows = _rows(document)
    if not rows or has_roles(rows[0]):  # a header after all
        return None
    numbers = all(_NUMBER.fullmatch(word) for row in rows for word in row)
    three = all(len(row) == 3 for row in rows)
    if not numbers:
        return "nltk" if three and isinstance(document, Words) else None
    if isinstance(document, Words) and three and not any("-1" in row for row in rows):
        raise AnnotationError(
            f"{document.name} has three numbers in every line: a matrix of three workers, or triples. "
            'Name the format: `format="matrix"` or `format="nltk"`.'
        )
    return "matrix"


def read(document: Document, format_name: str, options: ColumnOptions) -> Judgements:
    """Read a matrix without names, or triples without a header."""
    rows = _rows(document)
    if not rows:
        raise AnnotationError(f"{document.name} is not lines of words without a header. Leave `format` out.")
    width = len(rows[0])
    uneven = next((at for at, row in enumerate(rows, start=1) if len(row) != width), None)
    if uneven is not None:
        raise AnnotationError(f"{document.name}, line {uneven}: {len(rows[uneven - 1])} words; the first has {width}.")
    if format_name == "nltk":
        return _read_triples(document.name, rows)
    return _read_matrix(document.name, rows, options)


def _rows(document: Document) -> list[list[str]]:
    """Return the lines of a file without a header; of a table, only if its header is a line of labels itself."""
    if isinstance(document, Words):
        return document.rows
    if isinstance(document, Table) and "-1" in document.header and all(map(_NUMBER.fullmatch, document.header)):
        return [document.header, *([cell or "" for cell in row] for row in document.frame.iter_rows())]
    return []


def _read_matrix(name: str, rows: list[list[str]], options: ColumnOptions) -> Judgements:
    """Read a matrix: items are rows and workers are columns, both numbered from 0."""
    words = {word for row in rows for word in row}
    has_missing = "-1" in words or any(word.lower() == "nan" for word in words)
    if not options.missing and words & {"0", "0.", "0.0"} and not has_missing:
        raise AnnotationError(
            f'{name} has 0 but no -1: is 0 a class, or no label? Add `missing="0"`, or `missing="-1"` if 0 is a class.'
        )
    cells = [pl.Series([row[at] for row in rows], dtype=pl.String) for at in range(len(rows[0]))]
    cells = [cell.set(cell.str.to_lowercase() == "nan", None) for cell in cells]
    items = pl.Series([str(at) for at in range(len(rows))], dtype=pl.String)
    workers = [str(at) for at in range(len(cells))]
    return replace(cells_as_judgements(name, "matrix", items, workers, cells, options.missing), items_numbered=True)


def _read_triples(name: str, rows: list[list[str]]) -> Judgements:
    """Read triples: coder first, as in NLTK, unless the first column holds the items; a note states the order."""
    if len(rows[0]) != 3:
        raise AnnotationError(f"{name} has {len(rows[0])} words in a line; triples have three: coder, item, label.")
    columns = [pl.Series([row[at] for row in rows], dtype=pl.String) for at in range(3)]
    first, second = columns[0].n_unique(), columns[1].n_unique()
    coder, item = (1, 0) if first >= max(_CLEARLY * second, _CLEARLY + second) else (0, 1)
    place = {0: "first", 1: "second"}
    message = (
        f"The {place[coder]} word of each line was taken for the worker, the {place[item]} for the item; check it."
    )
    return Judgements(
        name,
        "nltk",
        item=columns[item],
        worker=columns[coder],
        answers={"label": columns[2]},
        mapping={"item": f"word {item + 1}", "worker": f"word {coder + 1}", "label": "word 3"},
        notes={"order_of_words": message},
    )
