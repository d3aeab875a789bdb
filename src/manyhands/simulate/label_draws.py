"""Random labels for given annotations: from confusion matrices, or from probabilities of being right."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from manyhands.randomness import Seed, make_generator
from manyhands.sorting import Codes

Array = npt.NDArray[np.float64]

_CHUNK = 1 << 20  # labels drawn at a time, to bound the memory of temporary arrays


def draw_labels(confusion: Array, worker: Codes, truth: Codes, random_state: Seed = None) -> Codes:
    """Draw one label from `confusion[worker, truth]` for each annotation.

    Parameters
    ----------
    confusion : ndarray of shape (n_workers, n_classes, n_classes)
        Confusion matrices [worker, truth, label].
    worker : ndarray of int of shape (n_annotations,)
        Worker of each annotation.
    truth : ndarray of int of shape (n_annotations,)
        True class of the item of each annotation.
    random_state : int, Generator or None, default=None
        Seed or generator of all random draws.

    Returns
    -------
    ndarray of int32 of shape (n_annotations,)
        The labels.

    Examples
    --------
    >>> always_next = np.array([[[0.0, 1.0], [1.0, 0.0]]])
    >>> draw_labels(always_next, np.zeros(3, np.int32), np.array([0, 1, 1], np.int32)).tolist()
    [1, 0, 0]
    """
    rng = make_generator(random_state)
    n_workers, n_classes, _ = confusion.shape
    width = 1 << (n_classes - 1).bit_length()
    cumulative = np.full((n_workers * n_classes, width), np.inf)  # no draw exceeds the last class, even after rounding
    cumulative[:, : n_classes - 1] = np.cumsum(confusion, axis=2).reshape(-1, n_classes)[:, :-1]
    label = np.empty(len(worker), np.int32)
    for first in range(0, len(worker), _CHUNK):
        part = slice(first, first + _CHUNK)
        row = worker[part].astype(np.int64) * n_classes + truth[part]
        label[part] = _find(cumulative, row, rng.random(len(row)))
    return label


def _find(cumulative: Array, row: npt.NDArray[np.int64], u: Array) -> npt.NDArray[np.int64]:
    """How many entries of `cumulative[row]` are at most u: a vectorised binary search."""
    flat, width = cumulative.ravel(), cumulative.shape[1]
    begin = row * width
    found = begin.copy()
    step = width // 2
    while step:
        found += step * (flat[found + step - 1] <= u)
        step //= 2
    return found - begin


def draw_right_or_wrong(accuracy: Array, truth: Codes, n_classes: int, random_state: Seed = None) -> Codes:
    """Draw the true class with probability `accuracy`, and otherwise one of the other classes uniformly.

    Parameters
    ----------
    accuracy : ndarray of shape (n_annotations,)
        Probability that the label of each annotation is right.
    truth : ndarray of int of shape (n_annotations,)
        True class of the item of each annotation.
    n_classes : int
        Number of classes.
    random_state : int, Generator or None, default=None
        Seed or generator of all random draws.

    Returns
    -------
    ndarray of int32 of shape (n_annotations,)
        The labels.

    Examples
    --------
    >>> draw_right_or_wrong(np.array([1.0, 0.0]), np.array([1, 1]), n_classes=2).tolist()
    [1, 0]
    """
    rng = make_generator(random_state)
    is_wrong = rng.random(len(truth)) >= accuracy
    step = 1 + rng.integers(max(n_classes - 1, 1), size=len(truth))
    return np.asarray((truth + is_wrong * step) % n_classes, np.int32)
