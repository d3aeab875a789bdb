"""The tasks at the end of a fit: the posterior of every item, its class, and what items say about workers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from manyhands.em.decisions import overall, pick_classes
from manyhands.em.kernels import em_items, sums_by
from manyhands.em.packed import Packed
from manyhands.em.plain_pass import vote_shares
from manyhands.sharded.labels import Shard
from manyhands.sharded.passes import zero_counts
from manyhands.sharded.views import item_pieces

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]


class Posterior(Protocol):
    """How a fitted method turns labels into the posterior of their items; can be pickled."""

    def __call__(self, packed: Packed) -> tuple[Array, Mask | None]:
        """Posterior, shape (n_items, n_classes), and which items are withheld, None where the method withholds none."""


@dataclass(frozen=True)
class ModelPosterior:
    """The posterior given confusion matrices and class prior; that of an item without labels is the class prior.

    Parameters
    ----------
    rows : ndarray of shape (n_workers * n_classes, n_classes)
        log p(label | truth), a row for each worker and label (`em.kernels.rows_of`).
    log_prior : ndarray of shape (n_classes,)
        log p(truth).
    spare : list of ndarray
        Count tables that may be overwritten; never sent elsewhere.
    """

    rows: Array
    log_prior: Array
    spare: list[Array] = field(default_factory=list, repr=False, compare=False)

    def __call__(self, packed: Packed) -> tuple[Array, Mask | None]:
        """The posterior of some items.

        Parameters
        ----------
        packed : Packed
            Their labels.

        Returns
        -------
        posterior : ndarray of shape (n_items, n_classes)
            p(truth | labels).
        withheld : None
            No item is withheld.
        """
        posterior = np.empty((packed.n_items, packed.n_classes))
        counts = zero_counts(packed, self.spare)  # the pass computes them too
        totals = np.zeros(packed.n_classes)
        em_items(packed, 0, packed.n_items, self.rows, self.log_prior, None, counts, totals, posterior)
        self.spare.append(counts)
        return posterior, None

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"spare": []}


@dataclass(frozen=True)
class VotePosterior:
    """The share of the votes; that of an item without labels is the share of each class in the whole crowd.

    Parameters
    ----------
    totals : ndarray of shape (n_classes,)
        Sum of the vote shares of all items.
    """

    totals: Array

    def __call__(self, packed: Packed) -> tuple[Array, Mask | None]:
        """The posterior of some items.

        Parameters
        ----------
        packed : Packed
            Their labels.

        Returns
        -------
        posterior : ndarray of shape (n_items, n_classes)
            Vote shares.
        withheld : None
            No item is withheld.
        """
        share = vote_shares(packed, 0, packed.n_items)
        share[np.diff(packed.start) == 0] = overall(self.totals)
        return share, None


class Statistics(NamedTuple):
    """What the posteriors of items say about classes and workers; those of several shards are added.

    Attributes
    ----------
    totals : ndarray of shape (n_classes,)
        Expected number of labelled items of each class.
    right : ndarray of shape (n_workers,)
        Expected number of right labels of each worker, on items with at least two labels.
    checked : ndarray of shape (n_workers,)
        Number of labels of each worker on these items.
    """

    totals: Array
    right: Array
    checked: Array


@dataclass(frozen=True)
class StatisticsPass:
    """The task that sums posteriors by class and by worker.

    Parameters
    ----------
    posterior : Posterior
        The fitted method.
    """

    posterior: Posterior

    def __call__(self, shard: Shard) -> Statistics:
        """Run on one shard.

        Parameters
        ----------
        shard : Shard
            The labels.

        Returns
        -------
        Statistics
        """
        packed = shard.packed
        posterior, _ = self.posterior(packed)
        sums = [np.zeros(size) for size in (packed.n_classes, packed.n_workers, packed.n_workers)]
        for first, last, part in item_pieces(packed):
            for total, more in zip(sums, _statistics_of(part, posterior[first:last])):
                total += more
        return Statistics(*sums)


def _statistics_of(packed: Packed, posterior: Array) -> Statistics:
    """The statistics of some items."""
    n_labels = np.diff(packed.start)
    totals = np.einsum("ik->k", posterior[n_labels > 0])
    weight = np.repeat((n_labels > 1).astype(np.float64), n_labels)
    item = np.repeat(np.arange(packed.n_items), n_labels)
    worker = packed.code // np.int32(packed.n_classes)
    right = sums_by(worker, weight * posterior[item, packed.label], packed.n_workers)
    return Statistics(totals, right, sums_by(worker, weight, packed.n_workers))


def summed_statistics(parts: Iterable[Statistics]) -> Statistics:
    """The sum over all shards, in their order.

    Parameters
    ----------
    parts : iterable of Statistics
        Those of the shards; at least one.

    Returns
    -------
    Statistics
    """
    found: Statistics | None = None
    for part in parts:
        found = part if found is None else Statistics(*(a + b for a, b in zip(found, part)))
    assert found is not None
    return found


class ItemResults(NamedTuple):
    """The results of the items of one shard, in their order.

    Attributes
    ----------
    number : int
        Number of the shard.
    posterior : ndarray of shape (n_items, n_classes)
        p(truth | labels); rows sum to 1.
    code : ndarray of shape (n_items,) of int32
        Code of the most probable class, -1 for items without labels.
    tied : ndarray of shape (n_items,) of bool
        Items on which several classes have the largest probability.
    withheld : ndarray of shape (n_items,) of bool or None
        Items on which the plurality is named in place of the class of the model; None where the method has none.
    n_labels : ndarray of shape (n_items,) of int64
        Number of labels of each item.
    """

    number: int
    posterior: Array
    code: npt.NDArray[np.int32]
    tied: Mask
    withheld: Mask | None
    n_labels: npt.NDArray[np.int64]


@dataclass(frozen=True)
class FinalPass:
    """The task that computes the results of the items of a shard.

    Parameters
    ----------
    posterior : Posterior
        The fitted method.
    class_totals : ndarray of shape (n_classes,)
        Expected number of items of each class in the whole crowd, which decides ties.
    """

    posterior: Posterior
    class_totals: Array

    def __call__(self, shard: Shard) -> ItemResults:
        """Run on one shard.

        Parameters
        ----------
        shard : Shard
            The labels.

        Returns
        -------
        ItemResults
        """
        posterior, withheld = self.posterior(shard.packed)
        n_labels = np.diff(shard.packed.start)
        code, tied = pick_classes(posterior, n_labels == 0, self.class_totals)
        return ItemResults(shard.number, posterior, code, tied, withheld, n_labels)
