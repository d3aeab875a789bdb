"""Votes that are counted without naming the workers: a column ``<class>_count`` for each class.

Workers cannot be distinguished, so every vote is a judgement by ``vote 1``, ``vote 2`` and so on of its item;
`Judgements.workers_known` is False, as these are not persons.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from manyhands.exceptions import AnnotationError, LimitError
from manyhands.io.formats.long import as_table
from manyhands.io.messages import normalise_name, shorten
from manyhands.io.read.column_lookup import find_column
from manyhands.io.read.documents import Document, Records, Table
from manyhands.io.read.judgements import ColumnOptions, Judgements

QUESTION = "label"
MAX_VOTES = 50_000_000  # of a whole file; a count with a few zeros too many would fill the memory
_TOTAL, _ENDING = "count", "_count"
_BY_NUMBER = "the number of the row"


def is_counts(document: Document) -> bool:
    """Whether a document has counts of two or more classes, and their total.

    Parameters
    ----------
    document : Document
        A parsed file.

    Returns
    -------
    bool
        True if it has such columns.
    """
    if isinstance(document, Table):
        header = document.header
    else:
        header = list(document.first) if isinstance(document, Records) and document.objects else []
    return _TOTAL in header and len(_class_columns(header)) > 1


def read_counts(document: Document, options: ColumnOptions, item_names: Sequence[str]) -> Judgements:
    """Read every vote as a judgement of an unknown worker; an item without votes is a row without a label.

    Parameters
    ----------
    document : Document
        A parsed file.
    options : ColumnOptions
        Columns that the caller named.
    item_names : sequence of str
        Usual names of the column of items.

    Returns
    -------
    Judgements
        One row per vote.

    Raises
    ------
    AnnotationError
        If the counts are not valid.
    LimitError
        If there are more than `MAX_VOTES` votes.
    """
    for role in ("worker", "label"):
        options.refuse(role, "counts", "counts of votes alone")
    table = as_table(document)
    at_classes = _class_columns(table.header)
    if not at_classes:
        raise AnnotationError(f"{table.name} has no column that ends in {_ENDING}, so it counts no votes.")
    items, item_location = _items(table, options, item_names)
    counts = np.stack([_numbers(table, at, items) for at in at_classes], axis=1)  # (n_items, n_classes)
    votes = counts.sum(axis=1)
    _check_total(table, items, votes)
    classes = [table.header[at].removesuffix(_ENDING) for at in at_classes]
    n_rows = np.maximum(votes, 1)
    if n_rows.sum() > MAX_VOTES:
        raise LimitError(f"{table.name} counts {int(votes.sum()):,} votes; at most {MAX_VOTES:,} are read at once.")
    row_item = np.repeat(np.arange(len(votes)), n_rows)
    position = np.arange(len(row_item)) - np.repeat(np.cumsum(n_rows) - n_rows, n_rows)
    chosen = np.full(len(row_item), len(classes))  # beyond the classes: no label
    chosen[votes[row_item] > 0] = np.repeat(np.tile(np.arange(len(classes)), len(votes)), counts.ravel())
    voters = pl.Series([f"vote {at + 1}" for at in range(int(n_rows.max(initial=0)))], dtype=pl.String)
    has_vote = pl.Series(votes[row_item] > 0, dtype=pl.Boolean)
    return Judgements(
        table.name,
        "counts",
        item=items.gather(row_item),
        worker=pl.select(pl.when(has_vote).then(voters.gather(position))).to_series(),
        answers={QUESTION: pl.Series([*classes, None], dtype=pl.String).gather(chosen)},
        mapping={"item": item_location, "worker": "not in the file", "label": f"<class>{_ENDING}"},
        notes={"workers_unknown": "The file counts votes without naming the workers, so there are no worker results."},
        workers_known=False,
        items_numbered=item_location == _BY_NUMBER,
    )


def _class_columns(header: Sequence[str]) -> list[int]:
    """Return the columns of counts."""
    return [at for at, name in enumerate(header) if name.endswith(_ENDING) and name != _ENDING]


def _items(table: Table, options: ColumnOptions, names: Sequence[str]) -> tuple[pl.Series, str]:
    """Return the column of items and its name; the number of the row if there is none."""
    if options.item is not None:
        at: int | None = find_column(table.header, options.item, "item", table.name)
    else:
        known = [normalise_name(name) for name in table.header]
        at = next((known.index(normalise_name(name)) for name in names if normalise_name(name) in known), None)
    if at is None:
        return pl.Series([str(row + 1) for row in range(len(table))], dtype=pl.String), _BY_NUMBER
    return table.column(at), table.header[at]


def _numbers(table: Table, at: int, items: pl.Series) -> npt.NDArray[np.int64]:
    """Return a column of counts; a blank cell is 0."""
    text = table.column(at).fill_null("").str.strip_chars()
    numbers = text.replace("", "0").str.replace(r"\.0*$", "")
    wrong = ~numbers.str.contains(r"^[0-9]{1,9}$")
    if wrong.any():
        row = int(wrong.arg_max() or 0)
        raise AnnotationError(
            f"{table.name}, item {shorten(items[row] or '')!r}: {table.header[at]} is {shorten(text[row])!r}, "
            "which is not a number of votes. Correct it."
        )
    return numbers.cast(pl.Int64).to_numpy()


def _check_total(table: Table, items: pl.Series, votes: npt.NDArray[np.int64]) -> None:
    """Check the counts of each item against the total that the file states."""
    if _TOTAL not in table.header:
        return
    total = _numbers(table, table.header.index(_TOTAL), items)
    wrong = np.flatnonzero(total != votes)
    if len(wrong):
        row = int(wrong[0])
        raise AnnotationError(
            f"{table.name}, item {shorten(items[row] or '')!r}: {votes[row]} votes in the columns {_ENDING}, but "
            f"{_TOTAL} is {total[row]}; {len(wrong)} such item(s). Is the column of a class missing?"
        )
