"""The posterior that Pooled Dawid-Skene releases, shard by shard."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from manyhands.aggregation.safeguards import release
from manyhands.em.packed import Packed
from manyhands.sharded.items import ModelPosterior
from manyhands.sharded.views import View, annotations_of, item_pieces

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]


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
        for first, last, part in item_pieces(packed):
            votes = annotations_of(part)
            posterior[first:last], withheld[first:last] = release(votes, posterior[first:last], None, self.results)
        return posterior, withheld
