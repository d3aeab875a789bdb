"""Which workers of an export are machines: by its own column, by options, or by a table."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from manyhands.exceptions import AnnotationError, CrowdWarning, ParameterError
from manyhands.io.read.kinds_table import read_kinds
from manyhands.io.read.reading import Reading
from manyhands.trust.effective_votes import HUMANS
from manyhands.trust.family_weights import down_weight_families
from manyhands.trust.worker_kinds import MACHINE, WorkerKind, find_machines, groups_of

ALL_MACHINES = "all machines"


@dataclass(frozen=True)
class KindOptions:
    """How the machines among the workers are named.

    Attributes
    ----------
    machines : sequence of str, default=()
        Worker ids, or patterns such as ``"gpt-*"``.
    table : str, Path or None, default=None
        Table with the columns worker and kind, and optionally family, model, prompt, run.
    """

    machines: Sequence[str] = ()
    table: str | Path | None = None

    def check(self) -> None:
        """Refuse both ways at once; no file is opened.

        Raises
        ------
        ParameterError
            If machines are named twice.
        """
        if self.machines and self.table is not None:
            raise ParameterError("--machines and --kinds both name the machines: give only one of them.")

    def kinds(self, reading: Reading) -> dict[Any, WorkerKind]:
        """Return what is known of each worker; the options take precedence over a column of the export.

        Parameters
        ----------
        reading : Reading
            The export.

        Returns
        -------
        dict of worker to WorkerKind
            Workers that are not named are people.

        Raises
        ------
        ParameterError
            If a machine is not a worker of the export.
        AnnotationError
            If the table names no worker of the export.
        """
        workers = reading.annotations.worker_ids.tolist()
        if self.machines:
            names = [name.strip() for text in self.machines for name in text.split(",") if name.strip()]
            return dict.fromkeys(find_machines(workers, names), WorkerKind(MACHINE))
        known = reading.kinds if self.table is None else read_kinds(self.table)
        found = {worker: known[str(worker)] for worker in workers if str(worker) in known}
        if self.table is not None and not found:
            raise AnnotationError(f"{self.table} names no worker of {reading.source}: its column worker has their ids.")
        return found


def machines_of(kinds: dict[Any, WorkerKind]) -> list[Any]:
    """Return the workers that are machines.

    Parameters
    ----------
    kinds : dict of worker to WorkerKind
        What is known of workers.

    Returns
    -------
    list
        Their ids.
    """
    return [worker for worker, known in kinds.items() if known.kind == MACHINE]


def all_groups(reading: Reading, kinds: dict[Any, WorkerKind]) -> dict[str, list[Any]]:
    """Return people and each family of machines as groups.

    Parameters
    ----------
    reading : Reading
        The export.
    kinds : dict of worker to WorkerKind
        What is known of workers.

    Returns
    -------
    dict of str to list
        Name of each group -> workers; empty if no worker is a machine.
    """
    workers = reading.annotations.worker_ids.tolist()
    return groups_of(workers, kinds) if machines_of(kinds) else {}


def weigh_families(reading: Reading, options: KindOptions) -> Reading:
    """Down-weight each family of machines to the votes that it is worth; copies count once.

    Parameters
    ----------
    reading : Reading
        The export.
    options : KindOptions
        How the machines are named.

    Returns
    -------
    Reading
        With weighted labels and the note ``down_weighted``.

    Raises
    ------
    ParameterError
        If no worker is a machine.
    """
    groups = all_groups(reading, options.kinds(reading))
    if not groups:
        raise ParameterError(
            "--down-weight is about machines, but no worker is known to be one: name them with --machines or --kinds."
        )
    before, after = reading.annotations, down_weight_families(reading.annotations, groups)
    parts = []
    for name in [name for name in groups if name != HUMANS]:
        given, counted = (
            votes.keep(np.isin(votes.worker_ids, groups[name])[votes.worker]) for votes in (before, after)
        )
        total = counted.n_annotations if counted.weight is None else float(counted.weight.sum())
        n_items = max(int(np.count_nonzero(given.n_labels)), 1)
        parts.append(f"{given.n_voters.sum() / n_items:.3g} votes per item of {name} count as {total / n_items:.2g}")
    note = f"{'; '.join(parts)}. Copies of a machine count once."
    warnings.warn(f"down_weighted: {note}", CrowdWarning, stacklevel=2)
    times = reading.times if after.n_annotations == before.n_annotations else None  # one for each label
    return replace(reading, annotations=after, times=times, notes=reading.notes | {"down_weighted": note})
