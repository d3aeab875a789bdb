"""Nearest neighbours in an embedding, by scikit-learn's brute-force search (compared in `benchmarks/neighbours.py`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Points = npt.NDArray[np.float32]  # (n, n_dimensions)
Places = npt.NDArray[np.intp]


def nearest(points: Points, queries: Points, k: int) -> Places:
    """Nearest neighbours of some points, `queries`, among others.

    Shapes: points (n, n_dimensions); queries (n_queries, n_dimensions); returns (n_queries, min(k, n)).
    """
    from sklearn.neighbors import NearestNeighbors

    k = min(k, len(points))
    if k == 0 or len(queries) == 0:
        return np.zeros((len(queries), k), np.intp)
    # In more than some fifteen dimensions trees visit nearly every point, and a matrix product is faster.
    search = NearestNeighbors(n_neighbors=k, algorithm="brute").fit(points)
    neighbours: Places = search.kneighbors(queries, return_distance=False).astype(np.intp)
    return neighbours


def nearest_others(points: Points, k: int) -> Places:
    """Nearest neighbours of every point among all other points.

    Shapes: points (n, n_dimensions); returns (n, min(k, n - 1)).
    """
    neighbours = nearest(points, points, k + 1)
    itself = neighbours == np.arange(len(points))[:, None]
    itself[~itself.any(axis=1), -1] = True  # of many equal points, it was not among the nearest
    return neighbours[~itself].reshape(len(points), neighbours.shape[1] - 1)


# ----------------------------------------------------------------------------------------------------
# Selection of the candidates with the lowest scores from a stream, with class quotas and in bounded memory.

Counts = npt.NDArray[np.int64]
_FEW = 1 << 14  # candidates held beyond the quota before the list is shortened; ours: less than a megabyte
_NO_CANDIDATES = np.zeros(0, np.int64), np.zeros(0, np.float32), np.zeros(0, np.float32)


class Candidates(NamedTuple):
    """A chunk of a stream of candidates."""

    first: int  # number of its first candidate; numbers increase by one
    label: npt.NDArray[np.int16]  # class of each candidate
    score: npt.NDArray[np.float32]  # score of each candidate, low is good; infinite for entries that are no candidates


def select(
    stream: Callable[[], Iterable[Candidates]],
    n_classes: int,
    total: int,
    rng: np.random.Generator,
    quotas: Callable[[Counts, int], Counts] | None = None,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Select the candidates with the lowest scores from a stream, with or without class quotas; ties are random.

    The memory used is a small multiple of `total`, whatever the length of the stream: while it runs, a class keeps
    twice its quota given the candidates so far. Where that was too few, as in a stream sorted by class, `stream` is
    called again, with the quotas known.
    """
    rng = np.random.default_rng(rng.integers(2**63))  # the number of ties does not affect later draws
    if quotas is None:
        lists = [Shortlist(total)]
        _read(stream(), lists, n_classes, rng)
        quota = np.array([total])
    else:
        lists = [Shortlist(total) for _ in range(n_classes)]
        quota = quotas(_read(stream(), lists, n_classes, rng, lambda seen: 2 * quotas(seen, total)), total)
        if any(n > shortlist.sure for n, shortlist in zip(quota.tolist(), lists)):
            lists = [Shortlist(n) for n in quota.tolist()]
            _read(stream(), lists, n_classes, rng)
    entry = np.sort(np.concatenate([shortlist.take(n) for shortlist, n in zip(lists, quota.tolist())]))
    return entry // n_classes, entry % n_classes


def _read(
    stream: Iterable[Candidates],
    lists: list[Shortlist],
    n_classes: int,
    rng: np.random.Generator,
    quota_so_far: Callable[[Counts], Counts] | None = None,
) -> Counts:
    """Add candidates to the list of their class, or to a single list; returns the counts of each class."""
    available = np.zeros(n_classes, np.int64)
    for first, label, score in stream:
        available += np.bincount(label[np.isfinite(score)], minlength=n_classes)
        if quota_so_far is not None:
            for shortlist, n in zip(lists, quota_so_far(available).tolist()):
                shortlist.most = n
        cut = np.array([shortlist.cut for shortlist in lists], np.float32)
        near = np.flatnonzero(score <= (cut[0] if len(lists) == 1 else cut[label]))
        group = label[near] if len(lists) > 1 else np.zeros(len(near), np.int16)
        near = near[np.argsort(group, kind="stable")]
        number, tie = (near + first) * n_classes + label[near], rng.random(len(near), np.float32)
        edges = np.cumsum(np.bincount(group, minlength=len(lists)))[:-1]
        for shortlist, *columns in zip(lists, *(np.split(column, edges) for column in (number, score[near], tie))):
            shortlist.add(*columns)
    return available


@dataclass
class Shortlist:
    """The candidates of a stream with the lowest scores, and few more at a time."""

    most: int  # how many to keep
    cut: float = float(np.finfo(np.float32).max)  # candidates above it are ignored
    sure: float = np.inf  # none of this many lowest was dropped
    _parts: list[tuple[npt.NDArray[np.int64], npt.NDArray[np.float32], npt.NDArray[np.float32]]] = field(
        default_factory=list
    )
    _n_held: int = 0

    def add(self, number: npt.NDArray[np.int64], score: npt.NDArray[np.float32], tie: npt.NDArray[np.float32]) -> None:
        """Add candidates."""
        self._parts.append((number, score, tie))
        self._n_held += len(number)
        if self._n_held >= self.most + max(self.most // 4, _FEW):
            self._shorten(self.most)

    def take(self, n: int) -> npt.NDArray[np.int64]:
        """The numbers of the `n` candidates with the lowest scores."""
        self._shorten(n)
        return self._parts[0][0]

    def _shorten(self, n: int) -> None:
        """Drop all but the `n` lowest, and lower the cut accordingly."""
        number, score, tie = (np.concatenate(columns) for columns in zip(*(self._parts or [_NO_CANDIDATES])))
        best = lowest(score, tie, n)
        self._parts, self._n_held = [(number[best], score[best], tie[best])], len(best)
        if len(best) == n < len(number):
            self.sure = min(self.sure, n)
            self.cut = float(score[best].max()) if n else -np.inf


def lowest(score: npt.NDArray[np.floating], tie: npt.NDArray[np.floating], n: int) -> npt.NDArray[np.intp]:
    """Positions of the `n` lowest scores, ascending; among equal scores those with the lowest `tie`.

    Shapes: score (m,); tie (m,); returns (min(n, m),).
    """
    if n >= len(score):
        return np.arange(len(score))
    if n == 0:
        return np.zeros(0, np.intp)
    cut = np.partition(score, n - 1)[n - 1]
    below, equal = np.flatnonzero(score < cut), np.flatnonzero(score == cut)
    ties = equal[np.argsort(tie[equal], kind="stable")[: n - len(below)]]
    return np.sort(np.concatenate([below, ties]))
