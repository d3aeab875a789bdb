"""Measure cells in processes of their own, as many at once as cores and memory allow; each result is saved at once."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
import warnings
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from multiprocessing import connection as connections
from multiprocessing import get_all_start_methods, get_context, parent_process
from pathlib import Path
from typing import Any, Self

from manyhands import datasets
from manyhands._core.progress import report
from manyhands._core.system import available_bytes, peak_bytes
from manyhands.datasets import CrowdDataset
from manyhands.exceptions import ManyhandsError, ParameterError
from manyhands.reproduce import records
from manyhands.reproduce.cells import Cell, Part, cells_of, check_methods, make_part, naming, revisions_of, run_cell
from manyhands.reproduce.records import Record, Records, appending, read_records, rows_file
from manyhands.reproduce.tables import DataSet, Table

# ----------------------------------------------------------------------------------------------------
# Processes for cells and data sets: one thread each, no keyboard interrupts, and none survives its parent.

_PRELOADED = ("manyhands.reproduce.runner", "sklearn.linear_model", "sklearn.pipeline", "scipy.stats", "torch")
# One thread in each process: results do not depend on the number of cores, and processes do not compete for them.
_ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS", "MANYHANDS_THREADS"), "1"
)


def _start_process(target: Callable[[Any], None]) -> tuple[Any, Any]:
    """Start a process that runs `target` with its end of a pipe."""
    context = _context()
    ours, theirs = context.Pipe()
    process = context.Process(target=target, args=(theirs,), daemon=True)
    with _one_thread(), _ignoring_interrupts():
        process.start()
    theirs.close()  # so that the end of the process closes the pipe
    return ours, process


def _end_with_parent() -> None:
    """Make this process end when the process that started it does, however that ends."""
    threading.Thread(target=_wait_for_parent, daemon=True).start()


def _describe_exit(code: int | None) -> str:
    """Return how a process ended, as the end of a sentence."""
    if code is None or code >= 0:
        return f"ended with code {code}"
    name = signal.Signals(-code).name
    return f"was ended by {name}" + (", perhaps for lack of memory" if name == "SIGKILL" else "")


def _wait_for_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)  # at once: no process waits for the result


def _context() -> Any:
    """Return a context that forks processes from one that has loaded the libraries, where the system can.

    Otherwise each process would spend seconds on imports. A fork of this process itself would copy locks of threads.
    """
    if "forkserver" not in get_all_start_methods():
        return get_context("spawn")
    context = get_context("forkserver")
    context.set_forkserver_preload(list(_PRELOADED))
    return context


@contextmanager
def _one_thread() -> Iterator[None]:
    """Set the variables that libraries read when they are loaded, before a new process runs any code of ours."""
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
def _ignoring_interrupts() -> Iterator[None]:
    """Let processes that are started inside the block ignore Ctrl-C; the process that started them ends them."""
    if threading.current_thread() is not threading.main_thread() or sys.platform == "win32":
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


# ----------------------------------------------------------------------------------------------------
# Data sets of a run, each built once: one process builds them, and all cells that need them get a copy.
#
# They are built in a process like those of the cells (one thread), so that a cell computes the same bits as if it had
# built its data itself. Copies are passed on as bytes, and only the most recent ones are kept.

_Built = tuple[Part, list[str]]  # the data, and the categories of the warnings while they were built
_FOLDER = "MANYHANDS_DATA"
_KEEP_MB = 512  # of built data, in the process that distributes them
_LOADED_MB = 1024  # of loaded data sets, in the process that builds from them


class DataBuilder:
    """Builds the data of cells in one process and keeps recent ones; use it as a context manager.

    Examples
    --------
    >>> with DataBuilder() as builder:
    ...     builder.n_built
    0
    """

    def __init__(self, keep_mb: float = _KEEP_MB) -> None:
        self.n_built: int = 0
        self._pipe: Any = None
        self._process: Any = None
        self._recent = _Recent(keep_mb)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the process; a later call of `build` starts another."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._pipe.close()
        self._pipe = self._process = None

    def check(self, cells: Sequence[Cell]) -> None:
        """Build the first part of every data set, and refuse what cannot be built."""
        first: dict[str, Cell] = {}
        for cell in cells:
            first.setdefault(cell.dataset.name, cell)
        for name, cell in first.items():
            with naming(cell.table, f"data set {name!r}"):
                self.build(cell)

    def build(self, cell: Cell) -> bytes:
        """Return the data of a cell, built now or kept from another cell."""
        key = _data_key(cell.dataset, cell.seed, cell.table.first_seed, cell.quick)
        payload: bytes | None = self._recent.get(key)
        if payload is None:
            payload = self._request((cell.dataset, cell.seed, cell.table.first_seed, cell.quick))
            self.n_built += 1
            self._recent.put(key, payload, len(payload))
        return payload

    def get(self, cell: Cell) -> bytes | None:
        """Return the data of a cell as `build`; None if that fails, so that the cell itself records the error."""
        try:
            return self.build(cell)
        except Exception:
            return None

    def _request(self, what: tuple[DataSet, int, int, bool]) -> bytes:
        """Return what the process built; raise its error."""
        if self._process is None:
            self._pipe, self._process = _start_process(_serve)
        try:
            self._pipe.send((*what, os.environ.get(_FOLDER)))
            error = self._pipe.recv()
            if error is None:
                return bytes(self._pipe.recv_bytes())
        except (EOFError, OSError):
            self._process.join()
            how = _describe_exit(self._process.exitcode)
            self.close()
            raise ManyhandsError(f"The process that builds data sets {how}.") from None
        raise error


class _Recent:
    """The most recently used objects, up to a total size."""

    def __init__(self, limit_mb: float) -> None:
        self._limit = limit_mb * 2**20
        self._kept: OrderedDict[str, tuple[Any, int]] = OrderedDict()

    def get(self, key: str) -> Any:
        """Return an object, or None."""
        if key not in self._kept:
            return None
        self._kept.move_to_end(key)
        return self._kept[key][0]

    def put(self, key: str, value: Any, size: int) -> None:
        """Keep an object; forget the least recently used ones beyond the limit."""
        self._kept[key] = (value, size)
        while len(self._kept) > 1 and sum(size for _, size in self._kept.values()) > self._limit:
            self._kept.popitem(last=False)


def _data_key(dataset: DataSet, seed: int, first_seed: int, quick: bool) -> str:
    """Return the same text for cells with the same data."""
    drawn = seed if dataset.depends_on_seed else None
    return json.dumps([asdict(dataset), drawn, first_seed if dataset.folds else None, quick], default=repr)


def _serve(pipe: Any) -> None:
    """Build data sets on request until the pipe is closed."""
    _end_with_parent()
    load = _remembering(datasets.load)
    with suppress(EOFError, OSError):
        while True:
            dataset, seed, first_seed, quick, folder = pipe.recv()
            _set_folder(folder)
            with warnings.catch_warnings(record=True) as raised:
                warnings.simplefilter("always")
                try:
                    part = make_part(dataset, seed, first_seed, quick, load=load)
                except Exception as error:
                    pipe.send(_portable(error))
                    continue
            pipe.send(None)
            pipe.send((part, sorted({warning.category.__name__ for warning in raised})))


def _set_folder(folder: str | None) -> None:
    """Use the folder of data sets of the process that asks, whose environment may have changed since."""
    if folder is None:
        os.environ.pop(_FOLDER, None)
    else:
        os.environ[_FOLDER] = folder


def _portable(error: Exception) -> Exception:
    """Return an error that can be sent: ours as they are, of others the text."""
    return error if isinstance(error, ManyhandsError) else RuntimeError(f"{type(error).__name__}: {error}")


def _remembering(load: Callable[..., CrowdDataset]) -> Callable[..., CrowdDataset]:
    """Return a function that loads each data set once, as long as memory for it is set aside."""
    loaded = _Recent(_LOADED_MB)

    def load_once(name: str, **arguments: Any) -> CrowdDataset:
        key = json.dumps([name, arguments, os.environ.get(_FOLDER)], sort_keys=True, default=repr)
        data: CrowdDataset | None = loaded.get(key)
        if data is None:
            data = load(name, **arguments)
            loaded.put(key, data, _size(data))
        return data

    return load_once


def _size(data: CrowdDataset) -> int:
    """Return the bytes of the features of a data set, which is most of it."""
    return sum(
        int(getattr(X, "nbytes", 0) or getattr(getattr(X, "data", None), "nbytes", 0)) for X in (data.X, data.X_test)
    )


# ----------------------------------------------------------------------------------------------------
# `run`: the cells of a table that have no result row yet, in processes; each row is appended when it is known.

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
        Folder of the rows; None is that of `manyhands.reproduce.records.rows_folder`.
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
        raise ParameterError(f"`jobs=` is {jobs}; it must be 1 or more.")
    if builder is None:
        with DataBuilder() as own:
            more: dict[str, Any] = {"only": only, "jobs": jobs, "retry": retry, "device": device}
            return run(table, out, quick=quick, seeds=seeds, builder=own, **more)
    every = cells_of(table, quick=quick, seeds=seeds, only=only)
    cells = {cell.key: replace(cell, device=device) for cell in every}
    path = rows_file(table, out, quick=quick)
    with appending(path) as append:
        record_of = read_records(path).by_key
        todo = [
            cell
            for key, cell in cells.items()
            if not cell.is_done(record_of.get(key)) or (retry and "error" in record_of[key])
        ]
        check_methods(todo)
        builder.check(todo)
        peaks = [record["peak_mb"] for record in record_of.values() if record.get("peak_mb")]
        _run_all(todo, append, jobs or records.cores(), max(peaks, default=_USUAL_MB), builder)
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
    available = available_bytes()
    try:
        while waiting or running:
            within_memory = jobs if available is None else int(available / 2**20 / (largest_mb * _MARGIN))
            while waiting and len(running) < max(1, min(jobs, within_memory)):
                cell = waiting.popleft()
                pipe, child = _start(cell, None if builder is None else builder.get(cell))
                running[pipe] = child
            for pipe in connections.wait(list(running)):
                result = _receive(pipe, running[pipe])
                if result is None:
                    continue
                append(_describe_cell(running[pipe].cell) | result)
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
    pipe, process = _start_process(_work)
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
        how = _describe_exit(child.process.exitcode)
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


def _describe_cell(cell: Cell) -> Record:
    """Return the part of a result row that is known before the cell is measured."""
    record = {
        "key": cell.key,
        "table": cell.table.name,
        "dataset": cell.dataset.name,
        "row": cell.row.name,
        "seed": cell.seed,
        "quick": cell.quick,
        "method": cell.row.method,
        "parameters": dict(cell.row.parameters),
        "revisions": revisions_of(cell.row),
        "versions": records.versions(),
        "commit": records.commit(),
        "machine": records.machine(),
    }
    return record | ({"device": cell.device} if cell.device else {})


def _work(pipe: Any) -> None:
    """Measure cells until the pipe is closed, or the process that started this one ends."""
    _end_with_parent()
    pipe.send(_READY)
    with suppress(EOFError, OSError):
        while True:
            cell, built = pipe.recv(), pipe.recv()
            pipe.send(_measure_cell(cell, built))


def _measure_cell(cell: Cell, built: _Built | None = None) -> Record:
    """Return the part of a result row that is known after the cell was measured, or why that failed."""
    began = time.perf_counter()
    part, earlier = (None, []) if built is None else built
    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always")
        try:
            outcome = run_cell(cell, part)
            record: Record = {"metrics": outcome.metrics, "chosen": outcome.chosen, "n_test": outcome.n_test}
            record |= {"series": outcome.series} if outcome.series else {}
        except Exception as error:
            record = {"error": " ".join(f"{type(error).__name__}: {error}".split())[:_LONGEST_ERROR]}
    record["warnings"] = sorted({warning.category.__name__ for warning in raised} | set(earlier))
    peak = peak_bytes()
    peak_mb = None if peak is None else round(peak / 2**20, 1)
    return record | {"seconds": round(time.perf_counter() - began, 3), "peak_mb": peak_mb}
