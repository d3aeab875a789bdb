"""Progress reports of long computations.

Computations call `report(done, total, what)`, which costs next to nothing by default. The command line or a notebook
receives the reports inside a `with listening(...)` block; `progress_display.showing` draws bars.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

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
    """Whether reports go anywhere: the call is inside a `listening` block.

    Returns
    -------
    bool
    """
    return _listener.get() is not None


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Send every report inside the block to a listener.

    Parameters
    ----------
    listener : callable
        Called with (done, total, what).

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
