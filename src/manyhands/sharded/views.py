"""The labels of a shard as a fit reads them: with a colluding group as one voter, and with workers merged."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from manyhands.annotations import Annotations
from manyhands.em.collusion import collapse_groups
from manyhands.em.packed import Packed

Mask = npt.NDArray[np.bool_]

_LABELS_AT_ONCE = 1 << 18


@dataclass(frozen=True, eq=False)
class View:
    """A pure function of the labels of a shard, which every pass of a fit applies.

    Parameters
    ----------
    n_workers : int
        Number of workers after it.
    members : ndarray of shape (n_workers,) of bool, default=None
        Workers of a colluding group, who become one voter.
    representative : int, default=0
        The member who gets the labels of the group.
    group : ndarray of shape (n_workers,) of int, default=None
        Number of the worker that each worker is merged into.
    """

    n_workers: int
    members: Mask | None = None
    representative: int = 0
    group: npt.NDArray[np.int64] | None = None

    def __call__(self, packed: Packed) -> Packed:
        """Labels as the fit reads them.

        Parameters
        ----------
        packed : Packed
            The labels of a shard.

        Returns
        -------
        Packed
            In the same order; merged workers are not sorted again.
        """
        if self.members is not None and self.members[packed.code // np.int32(packed.n_classes)].any():
            collapsed = collapse_groups(annotations_of(packed), self.members, self.representative)
            packed = packed_of(collapsed)
        if self.group is None:
            return packed
        worker, label = np.divmod(packed.code, np.int32(packed.n_classes))
        code = (self.group[worker] * packed.n_classes + label).astype(np.int32)
        return Packed(code, label, packed.start, self.n_workers, packed.n_classes)

    @property
    def arrays(self) -> list[npt.NDArray[Any]]:
        """All that it depends on, for the record of a pass."""
        parts = [np.array([self.n_workers, self.representative]), self.members, self.group]
        return [np.zeros(0) if part is None else part for part in parts]


def annotations_of(packed: Packed) -> Annotations:
    """Packed labels as annotations, with numbers in the place of ids.

    Parameters
    ----------
    packed : Packed
        The labels.

    Returns
    -------
    Annotations
    """
    item = np.repeat(np.arange(packed.n_items, dtype=np.int32), np.diff(packed.start))
    worker, label = np.divmod(packed.code, np.int32(packed.n_classes))
    ids = tuple(np.arange(n) for n in (packed.n_items, packed.n_workers, packed.n_classes))
    return Annotations._from_codes((item, worker, label), ids, _sorting_order=None)


def packed_of(annotations: Annotations) -> Packed:
    """Annotations as packed labels; unlike `em.packed.pack`, it does not check the size of tables.

    Parameters
    ----------
    annotations : Annotations
        The labels.

    Returns
    -------
    Packed
    """
    code = annotations.worker * np.int32(annotations.n_classes)
    code += annotations.label
    return Packed(code, annotations.label, annotations.start, annotations.n_workers, annotations.n_classes)


def item_pieces(packed: Packed, least: int = 0) -> Iterator[tuple[int, int, Packed]]:
    """The items of a shard a part at a time, so that a large shard needs little memory beside its results.

    Parameters
    ----------
    packed : Packed
        The labels of the shard.
    least : int, default=0
        Number of labels that a part should have at least, where each costs as much as this.

    Yields
    ------
    first : int
        First item of the part.
    last : int
        Item after its last one.
    part : Packed
        Their labels.
    """
    at_once = max(_LABELS_AT_ONCE, least)
    n_pieces = -(-len(packed.code) // at_once)
    cuts = np.searchsorted(packed.start[:-1], np.arange(1, n_pieces) * at_once).tolist()
    for first, last in pairwise([0, *cuts, packed.n_items]):
        if first < last:
            start = packed.start[first : last + 1]
            code = packed.code[start[0] : start[-1]]
            yield first, last, Packed(code, None, start - start[0], packed.n_workers, packed.n_classes)
