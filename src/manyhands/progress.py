"""What long work reports, and who listens.

Work calls `report(done, total, what)`; by default nobody listens and the call costs next to nothing.
The command line or a notebook listens for the time of a `with listening(...)` block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Listener = Callable[[int, int, str], None]

_listener: ContextVar[Listener | None] = ContextVar("manyhands_progress", default=None)


def report(done: int, total: int, what: str) -> None:
    """Tell whoever listens that `done` of at most `total` steps of `what` are behind us."""
    listener = _listener.get()
    if listener is not None:
        listener(done, total, what)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Send every report inside the block to `listener`.

    >>> heard = []
    >>> with listening(lambda done, total, what: heard.append((done, total, what))):
    ...     report(1, 3, "EM")
    >>> heard
    [(1, 3, 'EM')]
    """
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)
