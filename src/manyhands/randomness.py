"""One seed, one generator: how a `random_state` becomes the generators of a fit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import torch

Seed = int | np.integer | np.random.SeedSequence | np.random.Generator | None


def make_generator(random_state: Seed) -> np.random.Generator:
    """Return the one generator of a fit.

    An integer gives the same stream on every machine; a `Generator` is used as it is and moves on;
    None draws fresh entropy. NumPy's global generator is never read and never touched.

    >>> bool(make_generator(0).random() == make_generator(0).random())
    True
    """
    if isinstance(random_state, np.random.Generator):
        return random_state
    return np.random.default_rng(random_state)


@contextmanager
def torch_seeded(rng: np.random.Generator) -> Iterator[None]:
    """Inside the block torch's global generators start from a draw of `rng`; afterwards they are as they were.

    Weights and dropout can draw from no other generator, so the global one is lent and given back.
    """
    import torch

    seed = int(rng.integers(2**63))
    with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
        torch.manual_seed(seed)
        yield


def torch_generator(rng: np.random.Generator, device: str = "cpu") -> torch.Generator:
    """A torch generator of its own, for functions that take one; started from a number drawn from `rng`."""
    import torch

    return torch.Generator(device).manual_seed(int(rng.integers(2**63)))
