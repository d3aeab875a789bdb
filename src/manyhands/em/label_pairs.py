"""Pairs of labels that two workers gave to one item: the data in which copied answers show."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from manyhands.annotations import Annotations

Positions = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


MIN_LABELS = 3  # labels of an item: a pair, and another one as evidence of the truth
_MAX_PAIRS = 200_000
_MAX_WORK = 50_000_000  # pairs times the size of a confusion matrix
_MAX_LABELS = 30  # labels used of one item, where not all pairs are used


class LabelPairs(NamedTuple):
    """Labels of items with at least three labels, and the pairs of labels that two workers gave to one item.

    Attributes
    ----------
    item : ndarray of shape (n_labels,) of int
        Item of each label, ascending and without gaps.
    worker : ndarray of shape (n_labels,) of int
        Worker of each label, coded among `workers`.
    label : ndarray of shape (n_labels,) of int
        The labels.
    a : ndarray of shape (n_pairs,) of int
        Position of the first label of each pair.
    b : ndarray of shape (n_pairs,) of int
        Position of the second label of each pair.
    workers : ndarray of int
        The codes of these workers in the annotations.
    n_classes : int
        Number of classes.
    """

    item: Positions
    worker: Positions
    label: Positions
    a: Positions
    b: Positions
    workers: Positions
    n_classes: int

    @property
    def equal(self) -> Mask:
        """Whether the two labels of each pair are equal, shape (n_pairs,)."""
        return self.label[self.a] == self.label[self.b]


def label_pairs(annotations: Annotations) -> LabelPairs:
    """Pairs of labels to compare: all of them, or a sample of items where there are too many.

    Parameters
    ----------
    annotations : Annotations
        The crowd's labels.

    Returns
    -------
    LabelPairs
    """
    chosen = _sample(annotations)
    _, item, n_labels = np.unique(annotations.item[chosen], return_inverse=True, return_counts=True)
    workers, worker = np.unique(annotations.worker[chosen], return_inverse=True)
    nth = np.arange(len(item)) - np.repeat(np.cumsum(n_labels) - n_labels, n_labels)
    n_after = np.repeat(n_labels, n_labels) - 1 - nth  # each label is paired with those after it
    a = np.repeat(np.arange(len(item)), n_after)
    b = a + 1 + np.arange(len(a)) - np.repeat(np.cumsum(n_after) - n_after, n_after)
    others = worker[a] != worker[b]  # a worker may have labelled an item twice
    label = annotations.label[chosen].astype(np.int64)
    return LabelPairs(item, worker, label, a[others], b[others], workers.astype(np.int64), annotations.n_classes)


def _sample(annotations: Annotations) -> Positions:
    """Positions of the labels to use: all on items that have three, or as many as make up `_MAX_PAIRS` pairs."""
    n_labels = annotations.n_labels
    rows = np.flatnonzero(n_labels >= MIN_LABELS)
    most_pairs = min(_MAX_PAIRS, _MAX_WORK // annotations.n_classes**2)
    if _n_pairs(n_labels[rows]) <= most_pairs:
        return np.flatnonzero((n_labels >= MIN_LABELS)[annotations.item])
    n_pairs = _n_pairs(np.minimum(n_labels[rows], _MAX_LABELS))
    n_rows = max(1, min(len(rows), int(len(rows) * (most_pairs / n_pairs))))
    is_chosen = np.zeros(annotations.n_items, bool)
    is_chosen[rows[np.linspace(0, len(rows) - 1, n_rows).astype(int)]] = True
    chosen = np.flatnonzero(is_chosen[annotations.item])
    # Labels of an item with many are drawn at random, so that all workers meet, but the same in every run.
    order = np.lexsort((np.random.default_rng(0).random(len(chosen)), annotations.item[chosen]))
    n_chosen = n_labels[is_chosen]
    nth = np.arange(len(chosen)) - np.repeat(np.cumsum(n_chosen) - n_chosen, n_chosen)
    return np.sort(chosen[order[nth < _MAX_LABELS]])


def _n_pairs(n_labels: Positions) -> int:
    """Number of pairs of labels of items with these numbers of labels."""
    return int(np.sum(n_labels * (n_labels - 1) // 2))


def both_ways(pairs: LabelPairs) -> tuple[Positions, Positions]:
    """Every pair in both directions: a label, and another one of the same item.

    Parameters
    ----------
    pairs : LabelPairs
        The pairs.

    Returns
    -------
    mine : ndarray of shape (2 * n_pairs,) of int
        Position of one label.
    other : ndarray of shape (2 * n_pairs,) of int
        Position of the other label.
    """
    return np.append(pairs.a, pairs.b), np.append(pairs.b, pairs.a)
