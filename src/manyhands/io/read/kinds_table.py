"""Tables of workers that say which of them are machines."""

from __future__ import annotations

from pathlib import Path

from manyhands.exceptions import AnnotationError
from manyhands.io.formats.worker_columns import COLUMN_NAMES, find_named, kinds_of_workers
from manyhands.io.messages import listed, shorten
from manyhands.io.read.companion_tables import open_table
from manyhands.trust.worker_kinds import WorkerKind, kind_from_word

_WORKER = "worker worker_id annotator annotator_id rater name id"


def read_kinds(path: str | Path) -> dict[str, WorkerKind]:
    """Read a table of workers: which are machines, and of which family, model, prompt and run.

    Parameters
    ----------
    path : str or Path
        A table with the columns worker and kind, and optionally family, model, prompt, run.

    Returns
    -------
    dict of str to WorkerKind
        Worker -> what is known.

    Raises
    ------
    AnnotationError
        If a column is missing, or a kind is not a word such as human or machine.
    """
    table = open_table(path, "kinds of workers")
    worker, kind = find_named(table, _WORKER), find_named(table, COLUMN_NAMES["kind"])
    if worker is None or kind is None:
        raise AnnotationError(
            f"{path} needs the columns worker and kind (human or machine). It has: {listed(table.header)}."
        )
    for row, word in enumerate(table.column(kind).to_list()):
        if word and word.strip() and kind_from_word(word) is None:
            raise AnnotationError(f"{table.place(row)}: the kind is {shorten(word)!r}; it must be human or machine.")
    return kinds_of_workers(table, table.column(worker))
