"""The posterior that Pooled Dawid-Skene releases, shard by shard."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from manyhands.aggregation.safeguards import release
from manyhands.em.packed import Packed
from manyhands.sharded.items import ModelPosterior
from manyhands.sharded.views import View, annotations_of

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

_LABELS_AT_ONCE = 1 << 19  # so that a large shard needs little memory beside its posterior


@dataclass(frozen=True, eq=False)
class PooledPosterior:
    """Posterior of the model, then limited overruling and the power learnt across crowds.

    Parameters
    ----------
    model : ModelPosterior
        The tempered model.
    view : View or None
        The colluding group as one voter, where there is one.
    results : dict of str to object
        What `aggregation.safeguards.release` reads.
    """

    model: ModelPosterior
    view: View | None
    results: dict[str, Any]

    def __call__(self, packed: Packed) -> tuple[Array, Mask | None]:
        """The released posterior of some items.

        Parameters
        ----------
        packed : Packed
            Their labels.

        Returns
        -------
        posterior : ndarray of shape (n_items, n_classes)
            p(truth | labels).
        withheld : ndarray of shape (n_items,) of bool
            Items on which the plurality is named in place of the class of the model.
        """
        posterior, _ = self.model(packed if self.view is None else self.view(packed))
        withheld = np.zeros(packed.n_items, bool)
        for first, last in _pieces(packed.start):
            votes = annotations_of(_items(packed, first, last))
            posterior[first:last], withheld[first:last] = release(votes, posterior[first:last], None, self.results)
        return posterior, withheld


def _pieces(start: npt.NDArray[np.int64]) -> list[tuple[int, int]]:
    """Ranges of items with about `_LABELS_AT_ONCE` labels each."""
    n_items, n_pieces = len(start) - 1, -(-int(start[-1]) // _LABELS_AT_ONCE)
    cuts = np.searchsorted(start, np.arange(1, n_pieces) * _LABELS_AT_ONCE).tolist()
    edges = [0, *(cut for cut in cuts if cut < n_items), n_items]
    return [(first, last) for first, last in pairwise(edges) if first < last]


def _items(packed: Packed, first: int, last: int) -> Packed:
    """The items from `first` to `last`."""
    start = packed.start[first : last + 1]
    code = packed.code[start[0] : start[-1]]
    return Packed(code, None, start - start[0], packed.n_workers, packed.n_classes)
