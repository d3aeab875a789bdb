"""One seed, one generator: how a `random_state` becomes the generators of a fit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

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


def seed_unset(estimator: Any, rng: np.random.Generator) -> Any:
    """Give every `random_state` that is None in an estimator, and in what it wraps, a number drawn from `rng`.

    scikit-learn would draw from NumPy's global generator instead.
    """
    parameters = estimator.get_params()
    unset = [name for name in sorted(parameters) if name.split("__")[-1] == "random_state" and parameters[name] is None]
    return estimator.set_params(**{name: int(rng.integers(2**31)) for name in unset})
