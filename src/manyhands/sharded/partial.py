"""What one shard adds to a pass, and the sum of all shards in their order."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from manyhands.em.threads import thread_count

Array = npt.NDArray[np.float64]


class Partial(NamedTuple):
    """What one shard adds to a pass.

    Attributes
    ----------
    counts : ndarray of shape (n_workers * n_classes, n_classes)
        Expected counts: a row for each worker and label, a column for each truth.
    totals : ndarray of shape (n_classes,)
        Expected number of labelled items of each class.
    evidence : float
        log p(labels), summed over the items.
    n_labelled : int, default=0
        Number of items with labels; counted in the pass of the votes.
    n_compared : int, default=0
        Number of items with at least two labels; counted in the pass of the votes.
    """

    counts: Array
    totals: Array
    evidence: float
    n_labelled: int = 0
    n_compared: int = 0


def summed(partials: Iterable[Partial], spare: list[Array]) -> Partial:
    """The sum of all partial results, added in their order to the first.

    Parameters
    ----------
    partials : iterable of Partial
        Results of the shards, in the order of shards; at least one.
    spare : list of ndarray
        Receives count tables that are no longer needed, as many as threads can use.

    Returns
    -------
    Partial
    """
    found: Partial | None = None
    for partial in partials:
        if found is None:
            found = partial
            continue
        np.add(found.counts, partial.counts, out=found.counts)
        found = Partial(
            found.counts,
            found.totals + partial.totals,
            found.evidence + partial.evidence,
            found.n_labelled + partial.n_labelled,
            found.n_compared + partial.n_compared,
        )
        if len(spare) <= thread_count():  # where tasks run elsewhere, nobody takes any
            spare.append(partial.counts)
    assert found is not None
    return found
