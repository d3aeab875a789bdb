"""Percentile intervals: what a figure would be had other items of the same kind been labelled."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from manyhands.randomness import Seed, make_generator
from manyhands.validation import Constraint, Number, RandomState, check_parameters

Array = npt.NDArray[np.float64]
Statistic = Callable[[Array], Array]  # (n_resamples, n_patterns) weights -> (n_resamples, ...), NaN where undefined

_CHUNK = 1 << 22  # numbers held at a time
_DRAW_ITEMS = 8  # so many times fewer patterns than items, and drawing counts of patterns is the faster way

_CONSTRAINTS: dict[str, Constraint] = {
    "n_bootstrap": Number(whole=True, least=0),
    "confidence": Number(above=0, most=1),
    "random_state": RandomState(),
}


@dataclass(frozen=True)
class Bootstrap:
    """How many resamples, how wide an interval, which seed."""

    n_bootstrap: int
    confidence: float
    random_state: Seed

    def check(self, name: str) -> None:
        check_parameters(name, vars(self), _CONSTRAINTS)

    def interval(self, statistic: Statistic, count: npt.NDArray[np.int64], width: int) -> tuple[Array, Array]:
        """Lower and upper bound of `statistic` over resamples of items, drawn as numbers of items of each pattern.

        `count` is how many items show each pattern, `width` how many numbers per resample the statistic holds.
        Resamples in which it is undefined are left out; without a resample, or with a single item, bounds are NaN.
        """
        if self.n_bootstrap == 0 or count.sum() < 2:
            nothing = np.full_like(statistic(count[None].astype(float))[0], np.nan)
            return nothing, nothing.copy()
        chunk = max(1, _CHUNK // max(len(count), width))
        rng = make_generator(self.random_state)
        drawn = [statistic(part) for part in _resamples(count, self.n_bootstrap, chunk, rng)]
        low, high = _quantiles(np.concatenate(drawn), ((1 - self.confidence) / 2, (1 + self.confidence) / 2))
        return low, high


def _resamples(count: npt.NDArray[np.int64], n_bootstrap: int, chunk: int, rng: np.random.Generator) -> Iterator[Array]:
    """Counts of each pattern among as many items as there are, a chunk of resamples at a time."""
    n_items, n_patterns = int(count.sum()), len(count)
    pattern = np.repeat(np.arange(n_patterns), count)
    for first in range(0, n_bootstrap, chunk):
        size = min(chunk, n_bootstrap - first)
        if n_patterns * _DRAW_ITEMS < n_items:
            yield rng.multinomial(n_items, count / n_items, size=size).astype(float)
        else:
            items = (rng.integers(0, n_items, n_items) for _ in range(size))
            yield np.array([np.bincount(pattern[some], minlength=n_patterns) for some in items], float)


def _quantiles(values: Array, levels: tuple[float, float]) -> Array:
    """(2, ...) quantiles over the first axis of what is not NaN; NaN where nothing is left."""
    flat = values.reshape(len(values), -1)
    result = np.full((2, flat.shape[1]), np.nan)
    for column, those in enumerate(flat.T):
        defined = those[~np.isnan(those)]
        if len(defined):
            result[:, column] = np.quantile(defined, levels)
    return result.reshape(2, *values.shape[1:])
