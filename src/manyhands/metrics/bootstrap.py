"""Bootstrap percentile intervals over resamples of items."""

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
_DRAW_ITEMS = 8  # with this many times fewer patterns than items, multinomial draws of patterns are faster

_CONSTRAINTS: dict[str, Constraint] = {
    "n_bootstrap": Number(whole=True, least=0),
    "confidence": Number(above=0, most=1),
    "random_state": RandomState(),
}


@dataclass(frozen=True)
class Bootstrap:
    """Settings of a bootstrap.

    Attributes
    ----------
    n_bootstrap : int
        Number of resamples; 0 for no interval.
    confidence : float
        Confidence level of the interval.
    random_state : int, Generator or None
        Seed of the resamples.
    """

    n_bootstrap: int
    confidence: float
    random_state: Seed

    def check(self, name: str) -> None:
        """Raise ParameterError for settings that are not allowed.

        Parameters
        ----------
        name : str
            Name of the public function, for the message.
        """
        check_parameters(name, vars(self), _CONSTRAINTS)

    def interval(self, statistic: Statistic, count: npt.NDArray[np.int64], width: int) -> tuple[Array, Array]:
        """Compute the percentile interval of a statistic over resamples of items.

        Parameters
        ----------
        statistic : callable
            From weights (n_resamples, n_patterns) to (n_resamples, ...) values, NaN where undefined.
        count : ndarray of int of shape (n_patterns,)
            Number of items with each pattern; a resample of items is drawn as new numbers.
        width : int
            Numbers per resample that the statistic holds in memory.

        Returns
        -------
        low : ndarray
            Lower ends; NaN without resamples, with a single item, or where all resamples are undefined.
        high : ndarray
            Upper ends.
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
            yield np.array([np.bincount(pattern[drawn], minlength=n_patterns) for drawn in items], float)


def _quantiles(values: Array, levels: tuple[float, float]) -> Array:
    """(2, ...) quantiles over the first axis, ignoring NaN; NaN where all values are NaN."""
    flat = values.reshape(len(values), -1)
    result = np.full((2, flat.shape[1]), np.nan)
    for column, of_column in enumerate(flat.T):
        defined = of_column[~np.isnan(of_column)]
        if len(defined):
            result[:, column] = np.quantile(defined, levels)
    return result.reshape(2, *values.shape[1:])
