"""Processes for cells and data sets: one thread each, no keyboard interrupts, and none survives its parent."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import get_all_start_methods, get_context, parent_process
from typing import Any

_PRELOADED = ("manyhands.reproduce.runner", "sklearn.linear_model", "sklearn.pipeline", "scipy.stats", "torch")
# One thread in each process: results do not depend on the number of cores, and processes do not compete for them.
_ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS", "MANYHANDS_THREADS"), "1"
)


def start_process(target: Callable[[Any], None]) -> tuple[Any, Any]:
    """Start a process that runs `target` with its end of a pipe.

    Parameters
    ----------
    target : callable
        Function of a module, called with a `multiprocessing` connection.

    Returns
    -------
    connection : multiprocessing.connection.Connection
        Our end of the pipe; it is at its end when the process is.
    process : multiprocessing.Process
        The process.
    """
    context = _context()
    ours, theirs = context.Pipe()
    process = context.Process(target=target, args=(theirs,), daemon=True)
    with _one_thread(), _ignoring_interrupts():
        process.start()
    theirs.close()  # so that the end of the process closes the pipe
    return ours, process


def end_with_parent() -> None:
    """Make this process end when the process that started it does, however that ends."""
    threading.Thread(target=_wait_for_parent, daemon=True).start()


def describe_exit(code: int | None) -> str:
    """Return how a process ended, as the end of a sentence.

    Parameters
    ----------
    code : int or None
        Exit code, negative for a signal.

    Returns
    -------
    str
        Such as ``ended with code 1``.
    """
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
