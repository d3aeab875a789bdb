"""Random numbers: how a `random_state` becomes the one generator of a fit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

Seed = int | np.integer | np.random.SeedSequence | np.random.Generator | None


def make_generator(random_state: Seed) -> np.random.Generator:
    """The generator of a fit.

    NumPy's global generator is never read and never changed.

    Examples
    --------
    >>> bool(make_generator(0).random() == make_generator(0).random())
    True
    """
    if isinstance(random_state, np.random.Generator):
        return random_state
    return np.random.default_rng(random_state)


@contextmanager
def torch_seeded(rng: np.random.Generator) -> Iterator[None]:
    """Context manager that seeds torch's global generators from `rng` and restores their state afterwards.

    Weight initialisation and dropout of torch can use no other generator.
    """
    import torch

    seed = int(rng.integers(2**63))
    with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
        torch.manual_seed(seed)
        yield


def seed_unset(estimator: Any, rng: np.random.Generator) -> Any:
    """Seed every `random_state` that is None in an estimator and in the estimators that it wraps.

    scikit-learn would draw from NumPy's global generator instead.
    """
    parameters = estimator.get_params()
    unset = [name for name in sorted(parameters) if name.split("__")[-1] == "random_state" and parameters[name] is None]
    return estimator.set_params(**{name: int(rng.integers(2**31)) for name in unset})
