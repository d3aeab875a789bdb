"""Mini-batches of an epoch followed by an update: how EM steps alternate with epochs of a network."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any


class EpochThenUpdate:
    """The mini-batches of an epoch; when they are used up, `update()` is called once.

    Parameters
    ----------
    batches : iterable
        The mini-batches; iterated anew in every epoch.
    update : callable () -> None
        Called at the end of each epoch, such as an E step with the network as it is then.
    """

    def __init__(self, batches: Iterable[Any], update: Callable[[], None]) -> None:
        self.batches, self.update = batches, update

    def __iter__(self) -> Iterator[Any]:
        yield from self.batches
        self.update()
