"""Workers whom no method can tell apart: the same labels on items that look alike.

Two workers are exchangeable if some renaming of workers and items that changes no label and no gold takes one to the
other. Every method that is blind to names then says the same of both, so it may look at one and count it twice.
Among a hundred thousand workers with one label each there are a few dozen kinds.

The kinds are found by colour refinement of the graph of items and workers: each round, an item's colour is made from
those of its workers and their labels, and a worker's from those of their items. A partition that no round refines any
more is *equitable*: EM, which computes the same way, can never separate two workers of one colour.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from manyhands.annotations import Annotations
from manyhands.heldout import scatter_bits

Colours = npt.NDArray[np.uint64]

_MAX_LABELS = 4  # per worker, on average; beyond, hardly two workers are alike
_MIN_GROUP_SIZE = 2  # workers per kind, on average, that make it worth while
_MAX_ROUNDS = 12  # until then nearly all workers differ, or no round makes a difference


def exchangeable_workers(
    annotations: Annotations, gold: npt.NDArray[np.int32] | None = None
) -> npt.NDArray[np.int64] | None:
    """(n_workers,) the kind of each worker, from 0; None where most workers are of a kind of their own.

    Parameters
    ----------
    annotations : Annotations
    gold : (n_items,) array of int32, default=None
        The known class of each item, -1 where it is not known.

    Examples
    --------
    >>> votes = Annotations.from_triples("aaabbb", "uvwxyz", "001001")
    >>> kinds_of_workers(votes).tolist()  # u, v, x and y were outvoted by nobody; w and z stand alone on their items
    [0, 0, 1, 0, 0, 1]
    """
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
    """New colours from the old ones and the multiset at the edges; sums modulo 2^64 take them in any order."""
    around = np.zeros_like(colour)
    np.add.at(around, node, scatter_bits(edge))
    return scatter_bits(around ^ scatter_bits(colour))


def _by_first_worker(group: npt.NDArray[np.intp]) -> npt.NDArray[np.int64]:
    """Kinds numbered by the worker who shows them first, so that the numbers of a hash decide nothing."""
    _, first, group = np.unique(group, return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[group]


def merge_workers(annotations: Annotations, group: npt.NDArray[np.int64]) -> Annotations:
    """The same labels with one worker for each kind, who labels an item as often as there are such workers on it.

    Examples
    --------
    >>> votes = Annotations.from_triples("aaabbb", "uvwxyz", "001001")
    >>> merge_workers(votes, kinds_of_workers(votes))
    Annotations(6 labels on 2 items by 2 workers, 2 classes)
    """
    return Annotations(
        annotations.item,
        group[annotations.worker].astype(np.int32),
        annotations.label,
        item_ids=annotations.item_ids,
        worker_ids=np.arange(group.max(initial=-1) + 1),
        classes=annotations.classes,
    )
