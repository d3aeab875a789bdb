"""Files of manyhands that take part in one call, for six walks through the package, beside a limit for each.

    python benchmarks/walks.py                  all walks, as a Markdown table; exits with 1 if one is above its limit
    python benchmarks/walks.py --list WALK      the files of one walk with the functions that ran

A file counts if a Python function of it ran, in any thread, during the second call in this process: by then modules
are loaded and caches filled. Bodies of modules and classes do not count, nor functions that have no file (those that
`dataclass` generates) or are compiled. Models are fitted to the same labels in both calls; a file is read anew.

The walk of `reproduce` measures its cell anew in both calls. Processes that it starts run as threads of this one, so
that their functions count as well.
"""

from __future__ import annotations

import argparse
import inspect
import itertools
import os
import socket
import sys
import tempfile
import threading
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.context import BaseContext
from pathlib import Path
from types import FrameType
from typing import Any
from unittest import mock

import numpy as np

import manyhands as mh
from manyhands.classifiers import CrowdLayer
from manyhands.cli import main as main_of_commands
from manyhands.report import PANELS, make_run, panels_html

Call = Callable[[], object]
Found = Mapping[str, set[str]]

PACKAGE = str(Path(mh.__file__).parent) + os.sep
N_ITEMS = 120
TABLE, DATA_SET, ROW = "difficulty-em/table-1", "Gaussian", "MV"  # the cell that is measured
PANEL = "confidence"


class Recorder:
    """Names of the functions of manyhands that ran, by file."""

    def __init__(self) -> None:
        self.found: dict[str, set[str]] = defaultdict(set)
        self._is_on = False
        threading.setprofile(self._see)  # at once: threads of a pool may be older than the call that is recorded

    def record(self, call: Call) -> Found:
        """Run a call, and return what ran in it."""
        self.found = defaultdict(set)
        self._is_on = True
        sys.setprofile(self._see)
        try:
            call()
        finally:
            sys.setprofile(None)
            self._is_on = False
        return self.found

    def _see(self, frame: FrameType, event: str, _: Any) -> None:
        """Note a function that is entered; only code of functions is optimised, that of modules and classes is not."""
        code = frame.f_code
        if not self._is_on or event != "call" or not code.co_flags & inspect.CO_OPTIMIZED:
            return
        if code.co_filename.startswith(PACKAGE):
            self.found[code.co_filename.removeprefix(PACKAGE)].add(code.co_qualname)


class ThreadProcess(threading.Thread):
    """A thread with the interface of a process; it has its own copies of the connections it is given."""

    exitcode = 0

    def __init__(
        self, group: None = None, target: Any = None, name: str | None = None, args: Any = (), kwargs: Any = None,
        *, daemon: bool | None = None,
    ) -> None:  # fmt: skip
        own = tuple(_copy(value) if isinstance(value, Connection) else value for value in args)
        super().__init__(group, target, name, own, kwargs, daemon=daemon)
        self._connections = [value for value in own if isinstance(value, Connection)]

    def run(self) -> None:
        """Run the target, then close the connections, as the end of a process does."""
        try:
            super().run()
        finally:
            for connection in self._connections:
                connection.close()

    def kill(self) -> None:
        """End the connections, whereupon a target that waits for them returns."""
        for connection in self._connections:
            with suppress(OSError), socket.socket(fileno=os.dup(connection.fileno())) as end:
                end.shutdown(socket.SHUT_RDWR)


def _copy(connection: Connection[Any, Any]) -> Connection[Any, Any]:
    """Return a second object for the same connection, which is closed on its own."""
    return Connection(os.dup(connection.fileno()))


@contextmanager
def processes_as_threads() -> Iterator[None]:
    """Run every process that `multiprocessing` starts as a thread."""
    with ExitStack() as stack:
        for context in BaseContext.__subclasses__():
            stack.enter_context(mock.patch.object(context, "Process", ThreadProcess))
        yield


def run_command(*words: str) -> None:
    """Run the command line in this process, without its output; an exit code other than 0 is an error."""
    with tempfile.TemporaryFile("w+") as output, ExitStack() as stack:
        stack.enter_context(mock.patch.object(sys, "argv", ["manyhands", *words]))
        stack.enter_context(mock.patch.object(sys, "excepthook", sys.excepthook))  # put back afterwards
        stack.enter_context(redirect_stdout(output))
        stack.enter_context(redirect_stderr(output))
        try:
            main_of_commands()
        except SystemExit as end:
            if end.code:
                output.seek(0)
                raise RuntimeError(f"manyhands {' '.join(words)} exited with {end.code}: {output.read()}") from end


def _crowd() -> Any:
    """Return the labels of a small simulated crowd."""
    return mh.simulate.make_crowd(n_items=N_ITEMS, n_workers=10, random_state=0).annotations


def aggregate(folder: Path) -> Call:
    """Return the command that aggregates a CSV file, which reads it and writes a new folder."""
    run_command("simulate", "-o", str(folder / "crowd"), "--items", str(N_ITEMS), "--workers", "10")
    ratings, number = str(folder / "crowd" / "ratings.csv"), itertools.count()
    return lambda: run_command("aggregate", ratings, "-o", str(folder / f"out-{next(number)}"))


def crowd_layer(_: Path) -> Call:
    """Return the fit of a crowd layer, with its predictions."""
    return _learning(lambda: CrowdLayer(max_epochs=2, random_state=0))


def iced(_: Path) -> Call:
    """Return the fit of ICED, with its predictions."""
    return _learning(lambda: mh.ICED(max_epochs=2, random_state=0))


def _learning(make: Callable[[], Any]) -> Call:
    """Return the fit of a classifier to features and labels, with its predictions."""
    annotations = _crowd()
    features = np.random.default_rng(0).normal(size=(N_ITEMS, 4)).astype(np.float32)
    return lambda: make().fit(features, annotations).predict(features)


def reproduce(folder: Path) -> Call:
    """Return the command that measures one cell of a paper's table, into a new folder without rows."""
    number = itertools.count()
    options = ("--quick", "--seeds", "1", "--jobs", "1", "--only", DATA_SET, "--only", ROW)

    def measure() -> None:
        rows = folder / f"rows-{next(number)}"
        with processes_as_threads():
            run_command("reproduce", TABLE, *options, "-o", str(rows))
        _check_one_cell(rows)

    return measure


def _check_one_cell(rows: Path) -> None:
    """Make sure that exactly one cell was measured, without an error."""
    lines = [line for file in rows.glob("*.jsonl") for line in file.read_text(encoding="utf-8").splitlines()]
    if len(lines) != 1 or '"error"' in lines[0]:
        raise RuntimeError(f"Expected one measured cell in {rows}; found {lines}.")


def panel(_: Path) -> Call:
    """Return the drawing of one panel as HTML, of a run from which nothing was shown before."""
    model = mh.PooledDawidSkene().fit(_crowd())
    runs = iter([make_run(model), make_run(model)])
    return lambda: panels_html([PANELS[PANEL](next(runs))])


def majority_vote(_: Path) -> Call:
    """Return the fit of a majority vote."""
    annotations = _crowd()
    return lambda: mh.MajorityVote().fit(annotations)


@dataclass(frozen=True)
class Walk:
    """A call, how many files may take part in it, and what prepares it in an empty folder."""

    title: str
    limit: int
    prepare: Callable[[Path], Call]


WALKS = {
    "aggregate": Walk("`aggregate ratings.csv -o out/`", 66, aggregate),
    "crowd-layer": Walk("`CrowdLayer().fit`, `predict`", 26, crowd_layer),
    "iced": Walk("`ICED().fit`, `predict`", 27, iced),
    "reproduce": Walk(f"one cell of `reproduce {TABLE}`", 41, reproduce),
    "panel": Walk("one panel, `Run` to HTML", 6, panel),
    "majority-vote": Walk("`MajorityVote().fit`", 14, majority_vote),
}


def measure(walk: Walk, recorder: Recorder) -> Found:
    """Return the functions that run in the second call of a walk, by file."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        call = walk.prepare(Path(folder))
        call()
        return recorder.record(call)


def show_table(counts: Mapping[str, int]) -> None:
    """Print the number of files of each walk, beside its limit."""
    print("| walk | files | limit |\n|---|---:|---:|")
    for key, count in counts.items():
        print(f"| {WALKS[key].title} | {count} | {WALKS[key].limit} |")


def show_files(found: Found) -> None:
    """Print the files of a walk, with the functions that ran."""
    for file, functions in sorted(found.items()):
        print(f"{file}: {', '.join(sorted(functions))}")


def main() -> int:
    """Measure the walks, print them, and return 1 if one is above its limit."""
    parser = argparse.ArgumentParser(description="Count the files of manyhands that take part in one call.")
    parser.add_argument("--list", choices=list(WALKS), metavar="WALK", help=f"list its files: {', '.join(WALKS)}")
    listed = parser.parse_args().list
    recorder = Recorder()
    found = {key: measure(WALKS[key], recorder) for key in ([listed] if listed else WALKS)}
    if listed:
        show_files(found[listed])
    else:
        show_table({key: len(files) for key, files in found.items()})
    return int(any(len(files) > WALKS[key].limit for key, files in found.items()))


if __name__ == "__main__":
    sys.exit(main())
