"""Cells in processes of their own, as many at once as cores and memory allow; each is on disk when it is done."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import connection as connections
from multiprocessing import get_all_start_methods, get_context, parent_process
from pathlib import Path
from typing import Any

from manyhands.exceptions import ManyhandsError, ParameterError
from manyhands.progress import report
from manyhands.reproduce import provenance
from manyhands.reproduce.cells import Cell, cells_of, refuse_unusable, run_cell
from manyhands.reproduce.memory import free_mb, peak_mb
from manyhands.reproduce.records import Record, Records, appending, read_records
from manyhands.reproduce.tables import Table

_READY = "ready"
_PRELOADED = ("manyhands.reproduce.runner", "sklearn.linear_model", "sklearn.pipeline", "scipy.stats", "torch")
_USUAL_MB = 700  # what a cell with a network needs, libraries included, until one tells
_SPARE = 1.3  # the next cell may need more than any before
_LONGEST_ERROR = 300
# One thread in each process: results do not depend on how many cores there are, and processes do not fight for them.
_ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS", "MANYHANDS_THREADS"), "1"
)


def run(
    table: Table,
    out: str | Path = "reproduced",
    *,
    quick: bool = False,
    seeds: int | None = None,
    only: Sequence[str] = (),
    jobs: int | None = None,
    retry: bool = False,
) -> Records:
    """Measure the cells of a table that are not measured yet; return all that its file then holds.

    Parameters
    ----------
    out : folder for the file of results; a run that was killed goes on from it
    quick : shrink everything, to see that it works
    seeds, only : how many seeds, and which data sets and rows, as in `cells_of`
    jobs : how many processes at most; None is one for each core. Memory may allow fewer
    retry : try those again that failed before
    """
    if jobs is not None and jobs < 1:
        raise ParameterError(f"--jobs is {jobs}; it must be 1 or more.")
    cells = {cell.key: cell for cell in cells_of(table, quick=quick, seeds=seeds, only=only)}
    path = results_file(table, out)
    with appending(path) as append:
        known = read_records(path).by_key
        todo = [cell for key, cell in cells.items() if key not in known or (retry and "error" in known[key])]
        refuse_unusable(todo)
        peaks = [record["peak_mb"] for record in known.values() if record.get("peak_mb")]
        _run_all(todo, append, jobs or provenance.cores(), max(peaks, default=_USUAL_MB))
    return read_records(path)


def results_file(table: Table, out: str | Path) -> Path:
    """The file of a table's results: <paper>-<table>.jsonl."""
    return Path(out) / f"{table.name.replace('/', '-')}.jsonl"


@dataclass
class _Worker:
    """A process, the cell it is at, and whether it came up."""

    process: Any
    cell: Cell
    is_up: bool = False


def _run_all(cells: Sequence[Cell], append: Callable[[Record], None], jobs: int, largest_mb: float) -> None:
    waiting, running, done = deque(cells), dict[Any, _Worker](), 0
    if cells:
        report(0, len(cells), cells[0].table.name)
    room_mb = free_mb()
    try:
        while waiting or running:
            fitting = jobs if room_mb is None else int(room_mb / (largest_mb * _SPARE))
            while waiting and len(running) < max(1, min(jobs, fitting)):
                line, worker = _start(waiting.popleft())
                running[line] = worker
            for line in connections.wait(list(running)):
                result = _received(line, running[line])
                if result is None:
                    continue
                append(described(running[line].cell) | result)
                largest_mb = max(largest_mb, result.get("peak_mb") or 0)
                done += 1
                report(done, len(cells), cells[0].table.name)
                _go_on(line, running, waiting)
    finally:
        for worker in running.values():
            worker.process.kill()
        for line, worker in running.items():
            worker.process.join()
            line.close()


def _context() -> Any:
    """New processes, forked from one that has loaded the libraries and runs no thread, where there can be one.

    Each would otherwise spend seconds on imports. A fork of this process itself would take threads' locks along.
    """
    if "forkserver" not in get_all_start_methods():
        return get_context("spawn")
    context = get_context("forkserver")
    context.set_forkserver_preload(list(_PRELOADED))
    return context


def _start(cell: Cell) -> tuple[Any, _Worker]:
    context = _context()
    ours, theirs = context.Pipe()
    process = context.Process(target=_work, args=(theirs,), daemon=True)
    with _one_thread(), _deaf():
        process.start()
    theirs.close()  # so that the end of the process is the end of the line
    with suppress(OSError):  # it is dead already, as the next look at it will show
        ours.send(cell)
    return ours, _Worker(process, cell)


def _received(line: Any, worker: _Worker) -> Record | None:
    """What a process says of its cell; None if it only says that it is up."""
    try:
        said = line.recv()
    except (EOFError, OSError):
        worker.process.join()
        how = _how_it_ended(worker.process.exitcode)
        if not worker.is_up:
            raise ManyhandsError(
                f"A process for {worker.cell} did not come up: it {how}. In a script, start runs below "
                f'`if __name__ == "__main__":`.'
            ) from None
        return {"error": f"Its process {how}.", "seconds": None, "peak_mb": None}
    if said == _READY:
        worker.is_up = True
        return None
    return dict(said)


def _how_it_ended(code: int | None) -> str:
    if code is None or code >= 0:
        return f"ended with code {code}"
    name = signal.Signals(-code).name
    return f"was ended by {name}" + (", perhaps for lack of memory" if name == "SIGKILL" else "")


def _go_on(line: Any, running: dict[Any, _Worker], waiting: deque[Cell]) -> None:
    """Each cell gets a process of its own, so that peak memory is its own; quick ones share theirs."""
    worker = running[line]
    if worker.process.is_alive() and worker.cell.quick and waiting:
        worker.cell = waiting.popleft()
        with suppress(OSError):
            line.send(worker.cell)
    else:
        del running[line]
        line.close()


def described(cell: Cell) -> Record:
    """The part of a cell's line that is known before it runs."""
    return {
        "key": cell.key,
        "table": cell.table.name,
        "dataset": cell.dataset.name,
        "row": cell.row.name,
        "seed": cell.seed,
        "quick": cell.quick,
        "method": cell.row.method,
        "parameters": dict(cell.row.parameters),
        "versions": provenance.versions(),
        "commit": provenance.commit(),
        "machine": provenance.machine(),
    }


def _work(line: Any) -> None:
    """The life of a process: cells in, results out, until the line ends or whoever started it does."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    line.send(_READY)
    with suppress(EOFError, OSError):
        while True:
            line.send(measured(line.recv()))


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)  # at once: nobody waits for the result


def measured(cell: Cell) -> Record:
    """The part of a cell's line that is known after it ran, whether or not it went well."""
    began = time.perf_counter()
    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always")
        try:
            outcome = run_cell(cell)
            found: Record = {"metrics": outcome.metrics, "chosen": outcome.chosen, "n_test": outcome.n_test}
        except Exception as error:
            found = {"error": " ".join(f"{type(error).__name__}: {error}".split())[:_LONGEST_ERROR]}
    found["warnings"] = sorted({warning.category.__name__ for warning in raised})
    return found | {"seconds": round(time.perf_counter() - began, 3), "peak_mb": peak_mb()}


@contextmanager
def _one_thread() -> Iterator[None]:
    """Libraries read these when they are loaded, which is before a new process can say anything."""
    before = {name: os.environ.get(name) for name in _ONE_THREAD}
    os.environ.update(_ONE_THREAD)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextmanager
def _deaf() -> Iterator[None]:
    """A process that is started in here never hears Ctrl-C: whoever started it ends it, without a word of its own."""
    if threading.current_thread() is not threading.main_thread() or sys.platform == "win32":
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
