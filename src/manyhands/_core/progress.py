"""Progress reports of long computations.

Computations call `report(done, total, what)`, which costs next to nothing by default. The command line or a notebook
receives the reports inside a `with listening(...)` block; `showing` draws bars.
"""

from __future__ import annotations

import multiprocessing
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from html import escape
from importlib import import_module
from typing import Any, Protocol

from manyhands.exceptions import ParameterError

Listener = Callable[[int, int, str], None]
_listener: ContextVar[Listener | None] = ContextVar("manyhands_progress", default=None)


def report(done: int, total: int, what: str) -> None:
    """Report that `done` of at most `total` steps are finished.

    Parameters
    ----------
    done : int
        Finished steps.
    total : int
        Maximum number of steps.
    what : str
        Name of the computation.
    """
    listener = _listener.get()
    if listener is not None:
        listener(done, total, what)


def is_heard() -> bool:
    """Whether reports go anywhere: the call is inside a `listening` block."""
    return _listener.get() is not None


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Send every report inside the block to a listener.

    Examples
    --------
    >>> reports = []
    >>> with listening(lambda done, total, what: reports.append((done, total, what))):
    ...     report(1, 3, "EM")
    >>> reports
    [(1, 3, 'EM')]
    """
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


# ----------------------------------------------------------------------------------------------------
# Progress bars: what `progress.report` is called with, shown in a terminal or a notebook after two seconds.
#
# In a terminal the bar is drawn by rich on standard error and removed at the end. In a notebook it is an HTML element
# that IPython updates in place; no widget library is needed. Where neither is there (a script in a pipe, a worker
# process, a thread), nothing is shown.

DELAY = 2.0  # seconds before anything is shown
_REDRAW = 0.2  # seconds between two updates in a notebook
_SPEED_SECONDS = 3600.0  # period over which speed is averaged for the remaining time; a step may take minutes


class Display(Protocol):
    """Where a bar is drawn."""

    def update(self, done: int, total: int, what: str) -> None:
        """Show that `done` of at most `total` steps are finished."""

    def close(self) -> None:
        """Remove the bar."""


@contextmanager
def showing(verbose: int = 1) -> Iterator[None]:
    """Show progress reports inside the block as bars, where somebody can see them.

    Inside the block of an outer call, which shows all reports already, it does nothing.
    """
    if verbose not in (0, 1):
        raise ParameterError(f"verbose must be 0 (no progress bar) or 1. Got {verbose!r}.")
    if is_heard():
        yield
        return
    make = _display() if verbose else None
    bar = _LateBar(make) if make is not None else _SILENT
    try:
        with listening(bar):
            yield
    finally:
        bar.close()


class _Silence:
    """A listener that shows nothing, and keeps calls inside the block from showing anything."""

    def __call__(self, done: int, total: int, what: str) -> None:
        pass

    def close(self) -> None:
        pass


_SILENT = _Silence()


class _LateBar:
    """A listener whose display opens after the delay, whether a report comes then or not."""

    def __init__(self, make: Callable[[], Display]) -> None:
        self.make, self.lock = make, threading.Lock()
        self.display: Display | None = None
        self.last: tuple[int, int, str] | None = None
        self.timer = threading.Timer(DELAY, self.open)
        self.timer.daemon = True
        self.timer.start()

    def __call__(self, done: int, total: int, what: str) -> None:
        with self.lock:
            self.last = (done, total, what)
            if self.display is not None:
                self.display.update(done, total, what)

    def open(self) -> None:
        """Open the display and show the last report; called by the timer."""
        with self.lock:
            if self.timer is not None and self.display is None:
                self.display = self.make()
                if self.last is not None:
                    self.display.update(*self.last)

    def close(self) -> None:
        """Remove the display, or keep it from opening."""
        with self.lock:
            self.timer.cancel()
            self.timer = None  # type: ignore[assignment]  # an `open` that waits for the lock does nothing
            if self.display is not None:
                self.display.close()


def _display() -> Callable[[], Display] | None:
    """Return what makes a display where this process has one; other threads and worker processes have none."""
    if threading.current_thread() is not threading.main_thread():
        return None
    if multiprocessing.current_process().name != "MainProcess":
        return None
    if _in_notebook():
        return NotebookBar
    return TerminalBar if sys.stderr is not None and sys.stderr.isatty() else None


def _in_notebook() -> bool:
    """Whether this process is the kernel of a notebook, which is the case only where IPython is loaded."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return getattr(shell, "kernel", None) is not None


class TerminalBar:
    """Bars on standard error, one per kind of work."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import Progress

        console = Console(stderr=True)
        options: dict[str, Any] = {"transient": True, "redirect_stdout": False}  # data on standard output stay bytes
        self.progress = Progress(console=console, speed_estimate_period=_SPEED_SECONDS, **options)
        self.tasks: dict[str, Any] = {}
        self.progress.start()

    def update(self, done: int, total: int, what: str) -> None:
        """Show that `done` of at most `total` steps are finished."""
        from rich.markup import escape as escape_markup

        if what not in self.tasks:
            self.tasks[what] = self.progress.add_task(escape_markup(_printable(what)), total=total)
        self.progress.update(self.tasks[what], completed=done, total=total)

    def close(self) -> None:
        """Remove the bars."""
        self.progress.stop()


class NotebookBar:
    """An HTML element below the cell, one line per kind of work."""

    def __init__(self) -> None:
        ipython = import_module("IPython.display")  # a notebook has it; this package does not ask for it
        self.html, self.drawn = ipython.HTML, 0.0
        self.lines: dict[str, str] = {}
        self.handle = ipython.display(ipython.HTML(""), display_id=True)

    def update(self, done: int, total: int, what: str) -> None:
        """Show that `done` of at most `total` steps are finished."""
        self.lines[what] = notebook_line(done, total, what)
        if time.monotonic() - self.drawn >= _REDRAW or done >= total:
            self.drawn = time.monotonic()
            self.handle.update(self.html("".join(self.lines.values())))

    def close(self) -> None:
        """Remove the element."""
        self.handle.update(self.html(""))


def notebook_line(done: int, total: int, what: str) -> str:
    """Return one kind of work as HTML."""
    bar = f'<progress value="{done}" max="{max(total, 1)}" style="width:16em;vertical-align:middle"></progress>'
    text = f"{escape(_printable(what))}: {done:,} of at most {total:,}"
    return f'<div style="color:inherit;font-size:90%">{bar} {text}</div>'


def _printable(text: str) -> str:
    return "".join(letter if letter.isprintable() else " " for letter in text)
