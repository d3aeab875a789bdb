"""Labels of synthetic items: each worker labels a synthetic item as they labelled its nearest real items."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from manyhands.annotations import Annotations


class SyntheticLabels(NamedTuple):
    """Labels of synthetic points as triples.

    Attributes
    ----------
    point : ndarray of int, shape (n_labels,)
        Index of the synthetic point.
    worker : ndarray of int, shape (n_labels,)
        Code of the worker.
    label : ndarray of int, shape (n_labels,)
        Code of the class.
    """

    point: npt.NDArray[np.int64]
    worker: npt.NDArray[np.int64]
    label: npt.NDArray[np.int64]


def synthetic_labels(
    annotations: Annotations, neighbours: npt.NDArray[Any], rule: str, rng: np.random.Generator
) -> SyntheticLabels:
    """Generate the workers' labels of points from their labels on the nearest real items.

    A worker who labelled c of the k neighbours labels the point with probability c / k, so that points are labelled as
    sparsely as items are.

    Parameters
    ----------
    annotations : Annotations
        Labels of the real items.
    neighbours : ndarray of int, shape (n_points, k)
        Codes of the nearest real items of each point, the nearest first.
    rule : {"mode", "sample"}
        "mode": the worker's most frequent label on the neighbours; of equally frequent ones, that of the nearest
        item. "sample": the worker's label on one of them, drawn at random.
    rng : numpy.random.Generator
        Draws who labels, and the samples.

    Returns
    -------
    SyntheticLabels
    """
    k, n_workers, n_classes = neighbours.shape[1], annotations.n_workers, annotations.n_classes
    flat = neighbours.ravel()
    size = annotations.n_labels[flat]
    position = np.arange(size.sum()) - np.repeat(np.cumsum(size) - size - annotations.start[flat], size)
    point, rank = np.divmod(np.repeat(np.arange(len(flat)), size), max(k, 1))
    pair = point * n_workers + annotations.worker[position]
    entry = np.sort((pair * n_classes + annotations.label[position]) * max(k, 1) + rank)  # one key sorts fastest
    entry, rank = np.divmod(entry, max(k, 1))
    pair, label = np.divmod(entry, n_classes)
    first = np.flatnonzero(np.diff(pair, prepend=-1))  # start of the labels of each pair of point and worker
    n_given = np.diff(first, append=len(pair))
    is_labelled = rng.random(len(first)) * k < n_given
    if rule == "sample":
        chosen = label[first + (rng.random(len(first)) * n_given).astype(np.int64)]
    else:
        chosen = _most_frequent(entry, rank, first, n_classes, k)
    point, worker = np.divmod(pair[first], n_workers)
    return SyntheticLabels(point[is_labelled], worker[is_labelled], chosen[is_labelled])


def _most_frequent(
    entry: npt.NDArray[np.int64], rank: npt.NDArray[np.int64], first: npt.NDArray[np.intp], n_classes: int, k: int
) -> npt.NDArray[np.int64]:
    """Return the most frequent label of each pair, of shape (n_pairs,).

    Ties go to the label of the nearest item, then to the lower code. `entry` is pair * n_classes + label, sorted, then
    by rank; the labels of a pair start at `first`.
    """
    run = np.flatnonzero(np.diff(entry, prepend=-1))  # start of equal labels of a pair
    if len(run) == 0:
        return np.zeros(0, np.int64)
    times = np.diff(run, append=len(entry))
    worth = ((times * k) + (k - 1 - rank[run])) * n_classes + (n_classes - 1 - entry[run] % n_classes)
    best = np.maximum.reduceat(worth, np.searchsorted(run, first))
    return np.asarray(n_classes - 1 - best % n_classes)
