"""Nearest neighbours in an embedding, by scikit-learn's brute-force search (compared in `benchmarks/neighbours.py`)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Points = npt.NDArray[np.float32]  # (n, n_dimensions)
Places = npt.NDArray[np.intp]


def nearest(points: Points, asked: Points, k: int) -> Places:
    """Nearest neighbours of some points among others.

    Parameters
    ----------
    points : ndarray of shape (n, n_dimensions) of float32
        Points to search.
    asked : ndarray of shape (n_asked, n_dimensions) of float32
        Points whose neighbours are wanted.
    k : int
        Number of neighbours.

    Returns
    -------
    ndarray of shape (n_asked, min(k, n)) of int
        Positions in `points`, the nearest first.
    """
    from sklearn.neighbors import NearestNeighbors

    k = min(k, len(points))
    if k == 0 or len(asked) == 0:
        return np.zeros((len(asked), k), np.intp)
    # In more than some fifteen dimensions trees visit nearly every point, and a matrix product is faster.
    search = NearestNeighbors(n_neighbors=k, algorithm="brute").fit(points)
    found: Places = search.kneighbors(asked, return_distance=False).astype(np.intp)
    return found


def nearest_others(points: Points, k: int) -> Places:
    """Nearest neighbours of every point among all other points.

    Parameters
    ----------
    points : ndarray of shape (n, n_dimensions) of float32
        The points.
    k : int
        Number of neighbours.

    Returns
    -------
    ndarray of shape (n, min(k, n - 1)) of int
        Positions of the neighbours, the nearest first; never the point itself, even where others are equal to it.
    """
    found = nearest(points, points, k + 1)
    itself = found == np.arange(len(points))[:, None]
    itself[~itself.any(axis=1), -1] = True  # of many equal points, it was not among the nearest
    return found[~itself].reshape(len(points), found.shape[1] - 1)
