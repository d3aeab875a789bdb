"""Groups of workers that a report compares: from a table, or from a column of the export."""

from __future__ import annotations

import warnings
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from manyhands.exceptions import AnnotationError, CrowdWarning
from manyhands.io.messages import counted, shorten
from manyhands.io.read.companion_tables import open_table
from manyhands.io.read.reading import Reading

FEWEST = 2  # workers of a group that is compared, and groups


def groups_of_workers(
    reading: Reading, table: str | Path | None, column: str | None
) -> tuple[Reading, dict[Any, str] | None]:
    """Return the group of each worker.

    Parameters
    ----------
    reading : Reading
        The export, read with the column of the groups if one was named.
    table : str, Path or None
        Table with a column of workers and one of their groups.
    column : str or None
        Column of the export that describes workers.

    Returns
    -------
    reading : Reading
        The export, with the note ``one_group`` if the groups cannot be compared.
    groups : dict of worker to str or None
        Worker -> group; None if neither was given.

    Raises
    ------
    AnnotationError
        If the table names no worker, or has other columns than these two.
    """
    if table is None and column is None:
        return reading, None
    workers = reading.annotations.worker_ids.tolist()
    known = reading.groups if table is None else _from_table(table, reading)
    groups = {worker: known[str(worker)] for worker in workers if str(worker) in known}
    has_labels = np.bincount(reading.annotations.worker, minlength=len(workers)) > 0
    sizes = Counter(groups[worker] for worker, given in zip(workers, has_labels) if given and worker in groups)
    if sum(size >= FEWEST for size in sizes.values()) >= FEWEST:
        return reading, groups
    found = ", ".join(f"{shorten(name)} ({size})" for name, size in sizes.most_common(3)) or "none"
    what = f"column {shorten(str(column))!r}" if table is None else f"table {table}"
    sentence = (
        f"The {what} divides the workers with labels into {counted(len(sizes), 'group')} (workers in the largest: "
        f"{found}); a comparison needs two groups of two workers or more, so there is none."
    )
    warnings.warn(f"one_group: {sentence}", CrowdWarning, stacklevel=2)
    return replace(reading, notes=reading.notes | {"one_group": sentence}), groups


def _from_table(path: str | Path, reading: Reading) -> dict[str, str]:
    """Return the group of each worker of the export; the column of workers is the one that holds their ids."""
    table = open_table(path, "groups")
    known = set(map(str, reading.annotations.worker_ids.tolist()))
    columns = [table.column(at).to_list() for at in range(len(table.header))]
    hits = [sum(value in known for value in column) for column in columns]
    if not any(hits):
        raise AnnotationError(f"{path} names no worker of {reading.source}: a column must hold their ids.")
    at = hits.index(max(hits))
    others = [column for place, column in enumerate(columns) if place != at]
    if len(others) != 1:
        found = counted(len(others), "column")
        raise AnnotationError(f"{path} has {found} beside that of the workers: keep one, that of the groups.")
    return {worker: str(group) for worker, group in zip(columns[at], others[0]) if group and worker in known}
