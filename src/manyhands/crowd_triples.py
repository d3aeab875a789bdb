"""Sparse triples of item, worker and label: their counts, their groups and the sorted order of their items."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from manyhands.grouping import Groups, starts, starts_of_sorted, unlabelled_pairs
from manyhands.immutable import ImmutableArrays, frozen
from manyhands.item_order import Order, sorting_order
from manyhands.label_weights import pair_of_label
from manyhands.model_html import annotations_html
from manyhands.sorting import Codes


class CrowdTriples(ImmutableArrays):
    """Codes of items, workers and labels, sorted, with the values that they stand for; see `Annotations`.

    Attributes
    ----------
    item : ndarray of shape (n_annotations,) of int32
        Item codes, ascending; read-only.
    worker : ndarray of shape (n_annotations,) of int32
        Worker codes; read-only.
    label : ndarray of shape (n_annotations,) of int32
        Class codes; read-only.
    item_ids : ndarray of shape (n_items,)
        The items; read-only.
    worker_ids : ndarray of shape (n_workers,)
        The workers; read-only.
    classes : ndarray of shape (n_classes,)
        The classes; read-only.
    weight : ndarray of shape (n_annotations,) or None
        Weight of each label; None where all are 1. Read-only.
    """

    _fields = ("item", "worker", "label", "item_ids", "worker_ids", "classes")

    item: Codes
    worker: Codes
    label: Codes
    item_ids: npt.NDArray[Any]
    worker_ids: npt.NDArray[Any]
    classes: npt.NDArray[Any]
    weight: npt.NDArray[np.float64] | None = None

    def __eq__(self, other: object) -> bool:
        same = super().__eq__(other)
        if same is not True:
            return same
        mine, others = self.weight, getattr(other, "weight", None)
        return mine is None and others is None if mine is None or others is None else np.array_equal(mine, others)

    __hash__ = None  # as of all immutable arrays

    def __getstate__(self) -> dict[str, npt.NDArray[Any]]:
        return super().__getstate__() | ({} if self.weight is None else {"weight": self.weight})

    @property
    def n_items(self) -> int:
        """Number of items, with or without labels."""
        return len(self.item_ids)

    @property
    def n_workers(self) -> int:
        """Number of workers, with or without labels."""
        return len(self.worker_ids)

    @property
    def n_classes(self) -> int:
        """Number of classes, used or not."""
        return len(self.classes)

    @property
    def n_annotations(self) -> int:
        """Number of labels."""
        return len(self.item)

    @property
    def shape(self) -> tuple[int]:
        """`(n_items,)`, which scikit-learn requires of `y`."""
        return (self.n_items,)

    def __len__(self) -> int:
        return self.n_items

    def __repr__(self) -> str:
        return (
            f"Annotations({self.n_annotations} labels on {self.n_items} items "
            f"by {self.n_workers} workers, {self.n_classes} classes)"
        )

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the size, the classes and the first labels."""
        return annotations_html(self)

    @cached_property
    def start(self) -> npt.NDArray[np.int64]:
        """Where each item's annotations begin, shape (n_items + 1,): those of item i are at `start[i]:start[i + 1]`."""
        return frozen(starts_of_sorted(self.item, self.n_items))

    @cached_property
    def by_item(self) -> Groups:
        """Annotations grouped by item; they are stored in this order already."""
        return Groups(self.start, frozen(np.arange(self.n_annotations)))

    @cached_property
    def by_worker(self) -> Groups:
        """Annotations grouped by worker, items ascending within a worker."""
        order = np.argsort(self.worker, kind="stable")
        return Groups(frozen(starts(self.worker, self.n_workers)), frozen(order))

    @cached_property
    def n_labels(self) -> npt.NDArray[np.int64]:
        """Number of labels of each item, shape (n_items,)."""
        return frozen(np.diff(self.start))

    @cached_property
    def n_voters(self) -> npt.NDArray[np.int64]:
        """Number of votes of each item, shape (n_items,): its labels, or its workers where labels have weights."""
        if self.weight is None:
            return self.n_labels
        first = np.flatnonzero(np.diff(pair_of_label(self.item, self.worker), prepend=-1))
        return frozen(np.bincount(self.item[first], minlength=self.n_items))

    @cached_property
    def worker_volume(self) -> npt.NDArray[Any]:
        """Number of labels of each worker, shape (n_workers,); the sum of their weights where they have some."""
        return frozen(np.bincount(self.worker, weights=self.weight, minlength=self.n_workers))

    @cached_property
    def _sorting_order(self) -> Order | None:
        """Positions of the items in the order of their sorted ids; None where the ids are sorted already."""
        return sorting_order(self.item_ids)

    def unanswered(self, block_size: int = 1024) -> Iterator[tuple[Codes, Codes]]:
        """Iterate over the (item, worker) pairs without a label, in blocks of items.

        Parameters
        ----------
        block_size : int, default=1024
            Number of items per block.

        Yields
        ------
        item : ndarray of int32
            Item codes of the pairs.
        worker : ndarray of int32
            Worker codes of the pairs.
        """
        return unlabelled_pairs(self.start, self.item, self.worker, self.n_workers, block_size)
