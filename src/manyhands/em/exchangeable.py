"""Exchangeable workers: those that no method can distinguish, because their labels and items look the same.

Two workers are exchangeable if some renaming of workers and items that changes no label and no gold takes one to the
other. Every method that does not depend on names then gives both the same estimates, so one of them can be computed and
counted twice. Among a hundred thousand workers with one label each there are a few dozen such groups.

The groups are found by colour refinement of the bipartite graph of items and workers: in each round, the colour of an
item is computed from those of its workers and their labels, and the colour of a worker from those of their items. A
partition that no round refines any more is *equitable*: EM, which computes the same way, can never separate two workers
of one colour.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from manyhands.annotations import Annotations
from manyhands.heldout import scatter_bits

Colours = npt.NDArray[np.uint64]

_MAX_LABELS = 4  # per worker, on average; with more, hardly two workers are exchangeable
_MIN_GROUP_SIZE = 2  # workers per group, on average, below which merging does not pay
_MAX_ROUNDS = 12  # by then nearly all workers differ, or the partition is equitable


def exchangeable_workers(
    annotations: Annotations, gold: npt.NDArray[np.int32] | None = None
) -> npt.NDArray[np.int64] | None:
    """Group the workers that no method can distinguish.

    Parameters
    ----------
    annotations : Annotations
        The crowd's labels.
    gold : ndarray of shape (n_items,) of int32, default=None
        Class code of each item whose truth is known, -1 elsewhere.

    Returns
    -------
    ndarray of shape (n_workers,) of int or None
        The group of each worker, numbered from 0; None where merging would not pay, since most workers are in a group
        of their own.

    Examples
    --------
    >>> votes = Annotations.from_triples("aaabbb", "uvwxyz", "001001")
    >>> exchangeable_workers(votes).tolist()  # w and z disagree with the two others on their item
    [0, 0, 1, 0, 0, 1]
    """
    if annotations.weight is not None:  # the colours do not know weights, so no two workers are merged
        return None
    item, worker = annotations.item, annotations.worker
    n_labels = np.bincount(worker, minlength=annotations.n_workers)
    if annotations.n_annotations > _MAX_LABELS * np.count_nonzero(n_labels):
        return None
    label = scatter_bits(annotations.label.astype(np.uint64))
    item_colour = annotations.n_labels.astype(np.uint64)
    if gold is not None:
        item_colour = item_colour + (gold.astype(np.int64) + 2).astype(np.uint64) * np.uint64(1 << 40)
    item_colour, worker_colour = scatter_bits(item_colour), scatter_bits(n_labels.astype(np.uint64))
    n_groups = 0
    for _ in range(_MAX_ROUNDS):
        item_colour = _refine(item_colour, item, worker_colour[worker] ^ label)
        worker_colour = _refine(worker_colour, worker, item_colour[item] ^ label)
        before, (names, group) = n_groups, np.unique(worker_colour, return_inverse=True)
        n_groups = len(names)
        if n_groups * _MIN_GROUP_SIZE > annotations.n_workers:
            return None
        if n_groups == before:
            return _by_first_worker(group)
    return None


def _refine(colour: Colours, node: npt.NDArray[np.int32], edge: Colours) -> Colours:
    """New colours from the old ones and the multiset at the edges; sums modulo 2^64 do not depend on the order."""
    around = np.zeros_like(colour)
    np.add.at(around, node, scatter_bits(edge))
    return scatter_bits(around ^ scatter_bits(colour))


def _by_first_worker(group: npt.NDArray[np.intp]) -> npt.NDArray[np.int64]:
    """Groups numbered by their first worker, so that the values of a hash decide nothing."""
    _, first, group = np.unique(group, return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[group]


def merge_workers(annotations: Annotations, group: npt.NDArray[np.int64]) -> Annotations:
    """The same labels with one worker for each group, who labels an item as often as members of the group did.

    Parameters
    ----------
    annotations : Annotations
        The crowd's labels.
    group : ndarray of shape (n_workers,) of int
        The group of each worker, numbered from 0.

    Returns
    -------
    Annotations
        With as many workers as there are groups.

    Examples
    --------
    >>> votes = Annotations.from_triples("aaabbb", "uvwxyz", "001001")
    >>> merge_workers(votes, exchangeable_workers(votes))
    Annotations(6 labels on 2 items by 2 workers, 2 classes)
    """
    return Annotations(
        annotations.item,
        group[annotations.worker].astype(np.int32),
        annotations.label,
        item_ids=annotations.item_ids,
        worker_ids=np.arange(group.max(initial=-1) + 1),
        classes=annotations.classes,
        weight=annotations.weight,
    )
