"""Measure cells in processes of their own, as many at once as cores and memory allow; each result is saved at once."""

from __future__ import annotations

import time
import warnings
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from multiprocessing import connection as connections
from pathlib import Path
from typing import Any

from manyhands.exceptions import ManyhandsError, ParameterError
from manyhands.progress import report
from manyhands.reproduce import provenance
from manyhands.reproduce.cells import Cell, cells_of, check_methods, run_cell
from manyhands.reproduce.data_builder import Built, DataBuilder
from manyhands.reproduce.process_memory import free_mb, peak_mb
from manyhands.reproduce.processes import describe_exit, end_with_parent, start_process
from manyhands.reproduce.records import Record, Records, appending, read_records
from manyhands.reproduce.revisions import revisions_of
from manyhands.reproduce.row_folders import rows_file
from manyhands.reproduce.tables import Table

_READY = "ready"
_USUAL_MB = 700  # memory of a cell with a network, libraries included, before one is measured
_MARGIN = 1.3  # the next cell may need more memory than any before
_LONGEST_ERROR = 300


def run(
    table: Table,
    out: str | Path | None = None,
    *,
    quick: bool = False,
    seeds: int | None = None,
    only: Sequence[str] = (),
    jobs: int | None = None,
    retry: bool = False,
    device: str | None = None,
    builder: DataBuilder | None = None,
) -> Records:
    """Measure the cells of a table that have no result row yet, and append their rows.

    Interrupting a run loses nothing but unfinished cells: the same call resumes from the rows that exist.

    Parameters
    ----------
    table : Table
        What to measure.
    out : str, Path or None, default=None
        Folder of the rows; None is that of `manyhands.reproduce.row_folders.rows_folder`.
    quick : bool, default=False
        Reduce everything, to test that it runs; the figures have no meaning.
    seeds : int or None, default=None
        Number of seeds; None takes that of the table.
    only : sequence of str, default=()
        Names of data sets and rows to which the table is restricted.
    jobs : int or None, default=None
        Number of processes at most; None is one per core. Memory may allow fewer.
    retry : bool, default=False
        Measure cells again that failed before.
    device : str or None, default=None
        Device on which networks are trained; None is that of each row.
    builder : DataBuilder or None, default=None
        Builder of the data sets, if several tables share one.

    Returns
    -------
    Records
        All rows of the table's file.

    Raises
    ------
    ParameterError
        If an option is invalid or a method does not exist.
    OutputExistsError
        If another run is appending to the same file.
    """
    if jobs is not None and jobs < 1:
        raise ParameterError(f"--jobs is {jobs}; it must be 1 or more.")
    if builder is None:
        with DataBuilder() as own:
            more: dict[str, Any] = {"only": only, "jobs": jobs, "retry": retry, "device": device}
            return run(table, out, quick=quick, seeds=seeds, builder=own, **more)
    every = cells_of(table, quick=quick, seeds=seeds, only=only)
    cells = {cell.key: replace(cell, device=device) for cell in every}
    path = rows_file(table, out, quick=quick)
    with appending(path) as append:
        known = read_records(path).by_key
        todo = [
            cell for key, cell in cells.items() if not cell.is_done(known.get(key)) or (retry and "error" in known[key])
        ]
        check_methods(todo)
        builder.check(todo)
        peaks = [record["peak_mb"] for record in known.values() if record.get("peak_mb")]
        _run_all(todo, append, jobs or provenance.cores(), max(peaks, default=_USUAL_MB), builder)
    return read_records(path)


@dataclass
class _Child:
    """A child process, the cell that it measures, and whether it has started."""

    process: Any
    cell: Cell
    has_started: bool = False


def _run_all(
    cells: Sequence[Cell],
    append: Callable[[Record], None],
    jobs: int,
    largest_mb: float,
    builder: DataBuilder | None = None,
) -> None:
    """Measure all cells, in their order, and append each row when it is known."""
    waiting, running, done = deque(cells), dict[Any, _Child](), 0
    if cells:
        report(0, len(cells), cells[0].table.name)
    room_mb = free_mb()
    try:
        while waiting or running:
            within_memory = jobs if room_mb is None else int(room_mb / (largest_mb * _MARGIN))
            while waiting and len(running) < max(1, min(jobs, within_memory)):
                cell = waiting.popleft()
                pipe, child = _start(cell, None if builder is None else builder.get(cell))
                running[pipe] = child
            for pipe in connections.wait(list(running)):
                result = _receive(pipe, running[pipe])
                if result is None:
                    continue
                append(describe_cell(running[pipe].cell) | result)
                largest_mb = max(largest_mb, result.get("peak_mb") or 0)
                done += 1
                report(done, len(cells), cells[0].table.name)
                _reuse_or_end(pipe, running, waiting, builder)
    finally:
        for child in running.values():
            child.process.kill()
        for pipe, child in running.items():
            child.process.join()
            pipe.close()


def _start(cell: Cell, data: bytes | None) -> tuple[Any, _Child]:
    """Start a process for a cell."""
    pipe, process = start_process(_work)
    _send(pipe, cell, data)
    return pipe, _Child(process, cell)


def _send(pipe: Any, cell: Cell, data: bytes | None) -> None:
    """Send a cell and its data; a process that has ended is noticed when its result is received."""
    with suppress(OSError):
        pipe.send(cell)
        if data is None:
            pipe.send(None)
        else:
            pipe.send_bytes(data)


def _receive(pipe: Any, child: _Child) -> Record | None:
    """Return the result of a process, an error if it ended, None if it has only started."""
    try:
        received = pipe.recv()
    except (EOFError, OSError):
        child.process.join()
        how = describe_exit(child.process.exitcode)
        if not child.has_started:
            raise ManyhandsError(
                f"A process for {child.cell} did not start: it {how}. In a script, start runs below "
                f'`if __name__ == "__main__":`.'
            ) from None
        return {"error": f"Its process {how}.", "seconds": None, "peak_mb": None}
    if received == _READY:
        child.has_started = True
        return None
    return dict(received)


def _reuse_or_end(
    pipe: Any, running: dict[Any, _Child], waiting: deque[Cell], builder: DataBuilder | None = None
) -> None:
    """Give a quick process its next cell; other cells have a process each, so that peak memory is their own."""
    child = running[pipe]
    if child.process.is_alive() and child.cell.quick and waiting:
        child.cell = waiting.popleft()
        _send(pipe, child.cell, None if builder is None else builder.get(child.cell))
    else:
        del running[pipe]
        pipe.close()


def describe_cell(cell: Cell) -> Record:
    """Return the part of a result row that is known before the cell is measured.

    Parameters
    ----------
    cell : Cell
        The cell.

    Returns
    -------
    dict
        Key, names, seed, parameters, revisions of the methods, versions, commit, kind of machine and, if one was asked
        for, the device.
    """
    found = {
        "key": cell.key,
        "table": cell.table.name,
        "dataset": cell.dataset.name,
        "row": cell.row.name,
        "seed": cell.seed,
        "quick": cell.quick,
        "method": cell.row.method,
        "parameters": dict(cell.row.parameters),
        "revisions": revisions_of(cell.row),
        "versions": provenance.versions(),
        "commit": provenance.commit(),
        "machine": provenance.machine(),
    }
    return found | ({"device": cell.device} if cell.device else {})


def _work(pipe: Any) -> None:
    """Measure cells until the pipe is closed, or the process that started this one ends."""
    end_with_parent()
    pipe.send(_READY)
    with suppress(EOFError, OSError):
        while True:
            cell, built = pipe.recv(), pipe.recv()
            pipe.send(measure_cell(cell, built))


def measure_cell(cell: Cell, built: Built | None = None) -> Record:
    """Return the part of a result row that is known after the cell was measured, or why that failed.

    Parameters
    ----------
    cell : Cell
        The cell.
    built : tuple or None, default=None
        Its data, and the categories of warnings while they were built.

    Returns
    -------
    dict
        ``metrics``, ``chosen``, ``n_test`` and, if the table has any, ``series``, or ``error``; ``warnings``,
        ``seconds`` and ``peak_mb``.
    """
    began = time.perf_counter()
    part, earlier = (None, []) if built is None else built
    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always")
        try:
            outcome = run_cell(cell, part)
            found: Record = {"metrics": outcome.metrics, "chosen": outcome.chosen, "n_test": outcome.n_test}
            found |= {"series": outcome.series} if outcome.series else {}
        except Exception as error:
            found = {"error": " ".join(f"{type(error).__name__}: {error}".split())[:_LONGEST_ERROR]}
    found["warnings"] = sorted({warning.category.__name__ for warning in raised} | set(earlier))
    return found | {"seconds": round(time.perf_counter() - began, 3), "peak_mb": peak_mb()}
