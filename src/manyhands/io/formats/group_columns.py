"""A column of the export that describes workers, such as their country or team."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import polars as pl

from manyhands.exceptions import AnnotationError
from manyhands.io.formats.label_studio_tasks import entries_of, scalar_text, tasks_of
from manyhands.io.formats.label_studio_users import Users
from manyhands.io.formats.long import as_table
from manyhands.io.messages import counted, listed, normalise_name, shorten
from manyhands.io.read.column_lookup import find_column
from manyhands.io.read.documents import Document, Records, Table
from manyhands.io.read.judgements import Judgements

Counts = dict[str, Counter[str]]  # worker -> value of the column -> number of rows

_LABEL_STUDIO = "label-studio"
_MOST_VARYING = 0.5  # share of workers with several values, above which a column is not about workers
_INSTEAD = "give a table of the workers and their groups instead (--groups FILE)"


def count_groups(document: Document, judgements: Judgements, wanted: str) -> Counts:
    """Count what a column says in the rows of each worker.

    Parameters
    ----------
    document : Table, Records, Words or Folder
        A parsed file or folder.
    judgements : Judgements
        What was read from it.
    wanted : str
        Name of the column; in a Label Studio export, of a field of the users (``completed_by``).

    Returns
    -------
    dict of str to Counter
        Worker -> value -> number of rows; empty cells are left out.

    Raises
    ------
    AnnotationError
        If there is no such column, or the export has no rows of workers that it could belong to.
    """
    if judgements.format == _LABEL_STUDIO:
        return _of_users(document, judgements.source, wanted)
    if not isinstance(document, Table) and not (isinstance(document, Records) and document.objects):
        raise _no_columns(judgements)
    table = as_table(document)
    workers = _workers(table, judgements)
    at = find_column(table.header, wanted, "group-column", table.name)
    if table.header[at] in (judgements.mapping.get("item"), judgements.mapping.get("label")):
        raise AnnotationError(f"The column {table.header[at]!r} of {table.name} holds items or labels, not groups.")
    rows = pl.DataFrame({"worker": workers, "group": table.column(at).str.strip_chars()})
    rows = rows.filter(pl.col("worker").is_not_null() & pl.col("group").is_not_null() & (pl.col("group") != ""))
    found: Counts = {}
    for worker, group, n in rows.group_by("worker", "group", maintain_order=True).len().iter_rows():
        found.setdefault(worker, Counter())[group] += n
    return found


def settle_groups(
    parts: list[Counts], wanted: str, source: str, renamed: Mapping[str, str]
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the group of each worker, the most frequent value of the worker's rows.

    Parameters
    ----------
    parts : list of Counts
        What each file says.
    wanted : str
        Name of the column.
    source : str
        Name of the export, for messages.
    renamed : mapping of str to str
        Spelling of a worker in the file -> name, where spellings were merged.

    Returns
    -------
    groups : dict of str to str
        Worker -> group.
    notes : dict of str to str
        ``varying_groups`` if some workers have several values.

    Raises
    ------
    AnnotationError
        If the column is empty, or differs within most workers, so that it does not describe them.
    """
    counts: Counts = {}
    for part in parts:
        for worker, values in part.items():
            counts.setdefault(renamed.get(worker, worker), Counter()).update(values)
    if not counts:
        raise AnnotationError(f"The column {shorten(wanted)!r} of {source} is empty: name another one.")
    groups = {worker: min(values, key=lambda text: (-values[text], text)) for worker, values in counts.items()}
    varying = [worker for worker, values in counts.items() if len(values) > 1]
    if not varying:
        return groups, {}
    example = counts[varying[0]].most_common(2)
    shown = " and ".join(f"{shorten(text)!r} in {counted(n, 'row')}" for text, n in example)
    several = (
        f"{len(varying)} of {counted(len(counts), 'worker')} {'has' if len(varying) == 1 else 'have'} several values"
    )
    sentence = f"{several} in the column {shorten(wanted)!r}, such as {shorten(varying[0])!r}: {shown}"
    if len(varying) > _MOST_VARYING * len(counts):
        raise AnnotationError(f"{sentence}. So it does not describe workers: name one that does, or {_INSTEAD}.")
    return groups, {"varying_groups": f"{sentence}; the most frequent one counts."}


def _workers(table: Table, judgements: Judgements) -> pl.Series:
    """Return the worker of each row of a table, also where a row has several items."""
    if len(table) == len(judgements):
        return judgements.worker
    name = judgements.mapping.get("worker")
    if name not in table.header:
        raise _no_columns(judgements)
    return table.column(table.header.index(name))


def _of_users(document: Document, source: str, wanted: str) -> Counts:
    """Count what the users of a Label Studio export are, by a field of the objects that describe them."""
    users, found, fields = Users(), Counts(), dict[str, None]()
    for task in tasks_of(document):
        for annotation in entries_of(task, "annotations", source) or entries_of(task, "completions", source):
            user: Any = annotation.get("completed_by") if isinstance(annotation, dict) else None
            if not isinstance(user, dict):
                continue
            fields |= dict.fromkeys(user)
            worker, key = users.name(user), _key(user, wanted)
            text = None if key is None else scalar_text(user[key])
            if worker is not None and text is not None and text.strip():
                found.setdefault(worker, Counter())[text.strip()] += 1
    if not any(normalise_name(name) == normalise_name(wanted) for name in fields):
        has = f"they have: {listed(list(fields))}" if fields else "they are named by number only"
        raise AnnotationError(
            f"The users of {source} (completed_by) have no field {shorten(wanted)!r}; {has}. "
            f"Name another, or {_INSTEAD}."
        )
    return found


def _key(user: Mapping[str, Any], wanted: str) -> str | None:
    """Return the field of a user with this name, whatever its spelling."""
    if wanted in user:
        return wanted
    return next((name for name in user if normalise_name(name) == normalise_name(wanted)), None)


def _no_columns(judgements: Judgements) -> AnnotationError:
    """Return the error that an export has no columns that belong to workers."""
    return AnnotationError(
        f"{judgements.source} ({judgements.format}) has no row for each worker's label, so no column of it describes "
        f"workers: {_INSTEAD}."
    )
