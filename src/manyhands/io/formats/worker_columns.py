"""Columns that say what a worker is: a person or a machine, and which model, prompt and run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from manyhands.exceptions import AnnotationError
from manyhands.io.messages import normalise_name, shorten
from manyhands.io.read.documents import Table

if TYPE_CHECKING:
    from manyhands.trust.worker_kinds import WorkerKind

COLUMN_NAMES = {
    "kind": "kind worker_kind annotator_kind worker_type annotator_type",
    "family": "family model_family worker_family",
    "model": "model model_name",
    "prompt": "prompt prompt_name prompt_id",
    "run": "run run_id run_name",
}


def kinds_of_workers(table: Table, workers: pl.Series) -> dict[str, WorkerKind]:
    """Return what a table says of each worker, if it has a column of kinds.

    Parameters
    ----------
    table : Table
        A long table.
    workers : polars.Series of str
        The worker of each row.

    Returns
    -------
    dict of str to WorkerKind
        Worker -> kind; empty if no column has only words such as human, machine, model, LLM.

    Raises
    ------
    AnnotationError
        If a worker is a person in one row and a machine in another.
    """
    columns = {role: at for role in COLUMN_NAMES if (at := find_named(table, COLUMN_NAMES[role])) is not None}
    if "kind" not in columns:
        return {}
    from manyhands.trust.worker_kinds import WorkerKind, kind_from_word  # only few tables have such a column

    words = table.column(columns["kind"]).drop_nulls().unique().to_list()
    if not words or any(kind_from_word(word) is None for word in words if word.strip()):
        return {}  # another kind of thing
    rows = pl.DataFrame([workers.rename("worker"), *(table.column(at).rename(role) for role, at in columns.items())])
    found: dict[str, WorkerKind] = {}
    for row in rows.unique(maintain_order=True).iter_rows(named=True):
        worker, kind = row["worker"], kind_from_word(row["kind"] or "")
        if worker is None or kind is None:
            continue
        more = {role: (row[role] or "").strip() for role in columns if role != "kind"}
        if found.setdefault(worker, WorkerKind(kind, **more)).kind != kind:
            raise AnnotationError(
                f"{table.name}: the worker {shorten(worker)!r} is a person in some rows and a machine in others "
                f"({table.header[columns['kind']]}). Give the two different ids."
            )
    return found


def find_named(table: Table, names: str) -> int | None:
    """Return the column with one of these names.

    Parameters
    ----------
    table : Table
        The table.
    names : str
        Names separated by spaces, the most usual first.

    Returns
    -------
    int or None
        Position of the column.
    """
    header = [normalise_name(name) for name in table.header]
    found = [header.index(name) for name in map(normalise_name, names.split()) if name in header]
    return found[0] if found else None
