"""The nearest points of an embedding, by scikit-learn; `benchmarks/neighbours.py` says why by that."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Points = npt.NDArray[np.float32]  # (n, n_dimensions)
Places = npt.NDArray[np.intp]


def nearest(points: Points, asked: Points, k: int) -> Places:
    """(n_asked, at most k) the places in `points` of the nearest ones, the nearest first."""
    from sklearn.neighbors import NearestNeighbors

    k = min(k, len(points))
    if k == 0 or len(asked) == 0:
        return np.zeros((len(asked), k), np.intp)
    # In more than some fifteen dimensions trees look at nearly every point, and a matrix product does that faster.
    search = NearestNeighbors(n_neighbors=k, algorithm="brute").fit(points)
    found: Places = search.kneighbors(asked, return_distance=False).astype(np.intp)
    return found


def nearest_others(points: Points, k: int) -> Places:
    """(n, at most k) for each point the places of those nearest to it, itself left out even where others are equal."""
    found = nearest(points, points, k + 1)
    itself = found == np.arange(len(points))[:, None]
    itself[~itself.any(axis=1), -1] = True  # of many equal points, it was not among the nearest
    return found[~itself].reshape(len(points), found.shape[1] - 1)
