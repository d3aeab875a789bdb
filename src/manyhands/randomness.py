"""One seed, one generator: how a `random_state` becomes the generators of a fit."""

from __future__ import annotations

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
