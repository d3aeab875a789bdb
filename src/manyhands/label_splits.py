"""Splits of labels: one held-out set for early stopping, and folds of labels or items for cross-validation."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from manyhands.annotations import Annotations
from manyhands.label_weights import pair_of_label

_MIN_HELDOUT = 10  # labels; with fewer the held-out log-likelihood is mostly noise


def hold_out(
    annotations: Annotations, share: float, rng: np.random.Generator
) -> tuple[Annotations, Annotations | None]:
    """Split labels at random into a training set and a held-out set, for early stopping or the choice of a parameter.

    Parameters
    ----------
    annotations : Annotations
        The labels.
    share : float
        Share of the labels to hold out.
    rng : numpy.random.Generator
        Source of the split.

    Returns
    -------
    training : Annotations
        Labels to train on.
    heldout : Annotations or None
        Held-out labels; None where there would be fewer than ten.
    """
    n_heldout = round(share * annotations.n_annotations)
    if n_heldout < _MIN_HELDOUT:
        return annotations, None
    order = rng.permutation(annotations.n_annotations)
    return annotations.keep(np.sort(order[n_heldout:])), annotations.keep(np.sort(order[:n_heldout]))


def split_items(
    annotations: Annotations, n_folds: int, rng: np.random.Generator, excluded: npt.NDArray[np.bool_] | None = None
) -> npt.NDArray[np.intp]:
    """Folds for cross-validation over items: all labels of an item are in the same fold.

    Parameters
    ----------
    annotations : Annotations
        The labels.
    n_folds : int
        Number of folds.
    rng : numpy.random.Generator
        Source of the split.
    excluded : ndarray of shape (n_items,) of bool, default=None
        Items whose labels get no fold.

    Returns
    -------
    ndarray of shape (n_annotations,) of int
        Fold of each label, -1 for labels of excluded items.
    """
    is_split = annotations.n_labels > 0 if excluded is None else (annotations.n_labels > 0) & ~excluded
    items = rng.permutation(np.flatnonzero(is_split))
    fold = np.full(annotations.n_items, -1)
    fold[items] = np.arange(len(items)) % n_folds
    return fold[annotations.item]


def split_labels(annotations: Annotations, n_folds: int) -> npt.NDArray[np.int64]:
    """Folds for cross-validation over labels: the labels of one item are in different folds where possible.

    The folds depend on the pattern of the labels alone, not on names, codes, a seed or the order of rows, so that a
    method that uses cross-validation is invariant to renaming.

    Parameters
    ----------
    annotations : Annotations
        The labels.
    n_folds : int
        Number of folds.

    Returns
    -------
    ndarray of shape (n_annotations,) of int
        Fold of each label.
    """
    if annotations.weight is not None:  # all labels of one worker on one item are one vote
        votes = split_labels(annotations.strongest_labels(), n_folds)
        return votes[pair_of_label(annotations.item, annotations.worker)]
    mark = _fingerprints(annotations)
    order = np.lexsort((mark, annotations.item))
    rank = np.arange(len(order)) - np.repeat(annotations.start[:-1], annotations.n_labels)
    first = np.zeros(annotations.n_items, np.uint64)  # first fold of each item, a hash of its labels
    np.add.at(first, annotations.item, mark)
    fold = np.empty(len(order), np.int64)
    fold[order] = ((scatter_bits(first) % np.uint64(n_folds)).astype(np.int64)[annotations.item] + rank) % n_folds
    return fold


def _fingerprints(annotations: Annotations, rounds: int = 3) -> npt.NDArray[np.uint64]:
    """A hash of each label and its neighbourhood, shape (n_annotations,), invariant to renaming.

    Colour refinement on the bipartite graph of items and workers: in each round, the colour of an item is computed from
    the colours of its workers and of the classes they named, the colour of a worker from those of their items. Sums are
    taken modulo 2^64, so their order does not matter.
    """
    item, worker, label = annotations.item, annotations.worker, annotations.label
    class_colour = scatter_bits(np.bincount(label, minlength=annotations.n_classes).astype(np.uint64))
    item_colour = scatter_bits(annotations.n_labels.astype(np.uint64))
    worker_colour = scatter_bits(np.bincount(worker, minlength=annotations.n_workers).astype(np.uint64))
    for _ in range(rounds):
        new_item, new_worker = np.zeros_like(item_colour), np.zeros_like(worker_colour)
        np.add.at(new_item, item, scatter_bits(worker_colour[worker] ^ class_colour[label]))
        np.add.at(new_worker, worker, scatter_bits(item_colour[item] + class_colour[label]))
        item_colour, worker_colour = scatter_bits(new_item), scatter_bits(new_worker)
    return scatter_bits(item_colour[item] + scatter_bits(worker_colour[worker] ^ class_colour[label]))


def scatter_bits(x: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Hash 64-bit numbers (the finaliser of SplitMix64).

    Parameters
    ----------
    x : ndarray of uint64
        Numbers.

    Returns
    -------
    ndarray of uint64
    """
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
