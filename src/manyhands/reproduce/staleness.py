"""Stale result rows: those that no cell of the table uses any more, and why."""

from __future__ import annotations

from collections import Counter

from manyhands import registry
from manyhands.reproduce.cells import Cell
from manyhands.reproduce.records import Record, Records
from manyhands.reproduce.revisions import revisions_of
from manyhands.reproduce.tables import DataSet, Row, Table


def describe_stale(table: Table, records: Records) -> list[str]:
    """Return one sentence per reason for which rows of a table's file are not used.

    Rows are never removed from the file. A row is stale if its method is not in the registry (renamed or removed), if
    the revision of a method has changed, if the table has no such data set or row, or if its settings have changed.

    Parameters
    ----------
    table : Table
        The whole table, not restricted to some rows.
    records : Records
        The rows of its file.

    Returns
    -------
    list of str
        Sentences, the most frequent reason first; empty if all rows are current.
    """
    reasons = Counter(
        (str(record.get("row")), reason)
        for record in records.by_key.values()
        if (reason := _why_stale(table, record)) is not None
    )
    return [f"{_count(n)} of {row!r}: {reason}" for (row, reason), n in reasons.most_common()]


def _why_stale(table: Table, record: Record) -> str | None:
    """Return why no cell has the key of this row; None if one has."""
    rows = [row for row in table.measured if row.name == record.get("row")]
    sets = [dataset for dataset in table.datasets if dataset.name == record.get("dataset")]
    here = [row.on(dataset.name) for row in rows for dataset in sets]
    seed, quick = record.get("seed"), bool(record.get("quick"))
    if not isinstance(seed, int):
        return "the row does not name its seed"
    cells = [Cell(table, dataset, row.on(dataset.name), seed, quick) for dataset in sets for row in rows]
    if any(cell.key == record["key"] for cell in cells):
        return None
    method = record.get("method")
    if method not in registry.names():
        return f"there is no method {method!r} any more"
    return _changed_revision(here, record) or _changed_table(sets, rows, record)


def _changed_revision(rows: list[Row], record: Record) -> str | None:
    """Return which revision has changed, of methods that the row still uses."""
    if not isinstance(before := record.get("revisions"), dict):
        return "measured before methods had revisions"
    for row in rows:
        for method, now in revisions_of(row).items():
            if method in before and before[method] != now:
                return f"measured with revision {before[method]} of {method}, which is {now} now"
    return None


def _changed_table(sets: list[DataSet], rows: list[Row], record: Record) -> str:
    """Return what is no longer in the table, or that settings have changed."""
    if not sets:
        return f"the table has no data set {record.get('dataset')!r} any more"
    if not rows:
        return "the table has no such row any more"
    return "the data set or the parameters have changed"


def _count(n: int) -> str:
    return f"{n} stale row{'s' if n != 1 else ''}"
