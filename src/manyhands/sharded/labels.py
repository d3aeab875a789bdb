"""Labels in shards: the interface of whatever holds them, and shards in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from manyhands.annotations import Annotations
from manyhands.em.packed import Packed, pack
from manyhands.encoding import Values
from manyhands.exceptions import AnnotationError, ParameterError
from manyhands.grouping import reorder_groups
from manyhands.sharded.layout import N_BLOCKS, id_text, item_hashes, item_order, shard_count, shard_of
from manyhands.sharded.shard_threads import run_in_order

R = TypeVar("R")


@dataclass(frozen=True)
class Shard:
    """The labels of some items, which one task processes as one piece.

    Attributes
    ----------
    number : int
        Number of the shard, from 0.
    packed : Packed
        The labels.
    item_ids : callable
        Returns the ids of the items, in order; called only where they are needed.
    """

    number: int
    packed: Packed
    item_ids: Callable[[], Values]


class ShardedLabels(Protocol):
    """Labels in shards, wherever they are.

    Attributes
    ----------
    n_shards : int
        Number of shards.
    n_items : int
        Number of items.
    n_labels : int
        Number of labels.
    worker_ids : ndarray of shape (n_workers,)
        The workers, in the order of their codes.
    classes : ndarray of shape (n_classes,)
        The classes, in the order of their codes.
    worker_volume : ndarray of shape (n_workers,) of int64
        Number of labels of each worker.
    fingerprint : str
        Changes with every label and with the number of shards; names the records of a run that can be resumed.
    """

    @property
    def n_shards(self) -> int:
        """Number of shards."""

    @property
    def n_items(self) -> int:
        """Number of items."""

    @property
    def n_labels(self) -> int:
        """Number of labels."""

    @property
    def worker_ids(self) -> npt.NDArray[Any]:
        """The workers."""

    @property
    def classes(self) -> npt.NDArray[Any]:
        """The classes."""

    @property
    def worker_volume(self) -> npt.NDArray[np.int64]:
        """Number of labels of each worker."""

    @property
    def fingerprint(self) -> str:
        """Hash of all labels and of the number of shards."""

    def run(self, task: Callable[[Shard], R], what: str) -> Iterator[R]:
        """Run a task on every shard; results come in the order of shards, whatever the order of execution.

        Parameters
        ----------
        task : callable
            Takes a `Shard`; a pure function that can be pickled.
        what : str
            Name under which progress is reported.

        Yields
        ------
        object
            The results.
        """


@dataclass(frozen=True)
class InMemoryShards:
    """Labels in memory, in the order and the shards of the layout; tasks run in threads.

    Built by `from_annotations`.

    Parameters
    ----------
    packed : Packed
        All labels, item after item in the order of the layout.
    item_ids : ndarray of shape (n_items,)
        The items in this order.
    worker_ids : ndarray of shape (n_workers,)
        The workers.
    classes : ndarray of shape (n_classes,)
        The classes.
    first_items : ndarray of shape (n_shards + 1,) of int64
        Items of shard s are `first_items[s]` to `first_items[s + 1] - 1`.
    """

    packed: Packed
    item_ids: npt.NDArray[Any]
    worker_ids: npt.NDArray[Any]
    classes: npt.NDArray[Any]
    first_items: npt.NDArray[np.int64]

    @classmethod
    def from_annotations(cls, annotations: Annotations, n_shards: int | None = None) -> InMemoryShards:
        """Put labels into the order of the layout.

        Parameters
        ----------
        annotations : Annotations
            The crowd's labels, without weights.
        n_shards : int, default=None
            Number of shards, a power of two up to 256; None is the number that the layout gives.

        Returns
        -------
        InMemoryShards

        Raises
        ------
        AnnotationError
            Where labels have weights.
        ParameterError
            Where the number of shards is no power of two up to 256.
        """
        if annotations.weight is not None:
            raise AnnotationError(
                "Labels with weights cannot be fitted in shards. Use the ordinary fit, or `strongest_labels()` first."
            )
        if n_shards is None:
            n_shards = shard_count(annotations.n_annotations, annotations.n_workers, annotations.n_classes)
        if n_shards not in [1 << power for power in range(N_BLOCKS.bit_length())]:
            raise ParameterError(f"The number of shards must be a power of two from 1 to {N_BLOCKS}. Got {n_shards!r}.")
        hashes = item_hashes(annotations.item_ids.tolist())
        order = item_order(annotations.item_ids, hashes)
        _, code = reorder_groups(annotations.start, order, (pack(annotations).code,))
        start = np.concatenate([[0], np.cumsum(annotations.n_labels[order])]).astype(np.int64)
        first_items = np.searchsorted(shard_of(hashes[order], n_shards), np.arange(n_shards + 1))
        return cls(
            Packed(code, None, start, annotations.n_workers, annotations.n_classes),
            annotations.item_ids[order],
            annotations.worker_ids,
            annotations.classes,
            first_items.astype(np.int64),
        )

    @property
    def n_shards(self) -> int:
        """Number of shards."""
        return len(self.first_items) - 1

    @property
    def n_items(self) -> int:
        """Number of items."""
        return len(self.item_ids)

    @property
    def n_labels(self) -> int:
        """Number of labels."""
        return len(self.packed.code)

    @cached_property
    def worker_volume(self) -> npt.NDArray[np.int64]:
        """Number of labels of each worker, shape (n_workers,)."""
        n_classes = self.packed.n_classes
        by_code = np.bincount(self.packed.code, minlength=self.packed.n_workers * n_classes)
        return by_code.reshape(self.packed.n_workers, n_classes).sum(axis=1)

    @cached_property
    def fingerprint(self) -> str:
        """Hash of all labels, ids and shards."""
        found = blake2b(digest_size=16)
        for array in (self.packed.code, self.packed.start, self.first_items):
            found.update(np.ascontiguousarray(array).data)
        for ids in (self.item_ids, self.worker_ids, self.classes):
            found.update("\0".join(map(id_text, ids.tolist())).encode())
        return found.hexdigest()

    def run(self, task: Callable[[Shard], R], what: str) -> Iterator[R]:
        """Run a task on every shard, in threads.

        Parameters
        ----------
        task : callable
            Takes a `Shard`.
        what : str
            Name under which progress is reported.

        Yields
        ------
        object
            The results, in the order of shards.
        """
        return run_in_order(lambda number: task(self.shard(number)), self.n_shards, what)

    def shard(self, number: int) -> Shard:
        """One shard; its arrays share memory with the whole.

        Parameters
        ----------
        number : int
            Number of the shard.

        Returns
        -------
        Shard
        """
        first, last = self.first_items[number : number + 2].tolist()
        start = self.packed.start[first : last + 1]
        code = self.packed.code[start[0] : start[-1]]
        piece = Packed(code, None, start - start[0], self.packed.n_workers, self.packed.n_classes)
        return Shard(number, piece, lambda: self.item_ids[first:last])
