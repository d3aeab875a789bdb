"""The tasks of EM on one shard, and their sum in the order of shards.

`ShardedSource` is the `LabelSource` of shards: `ConfusionEM` runs on it as it runs on labels in memory.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from manyhands.em.kernels import aligned_zeros, em_items, rows_of, votes_of
from manyhands.em.packed import Packed, PassResult
from manyhands.em.table_sizes import check_table_size
from manyhands.em.threads import thread_count
from manyhands.sharded.labels import Shard, ShardedLabels

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


@dataclass(frozen=True)
class EMPass:
    """The task of an E step: expected counts of one shard at given parameters.

    Parameters
    ----------
    rows : ndarray of shape (n_workers * n_classes, n_classes)
        log p(label | truth), a row for each worker and label (`em.kernels.rows_of`).
    log_prior : ndarray of shape (n_classes,)
        log p(truth).
    spare : list of ndarray
        Count tables that earlier tasks of this process no longer need; never sent elsewhere.
    """

    rows: Array
    log_prior: Array
    spare: list[Array] = field(default_factory=list, repr=False, compare=False)

    def __call__(self, shard: Shard) -> Partial:
        """Run on one shard.

        Parameters
        ----------
        shard : Shard
            The labels.

        Returns
        -------
        Partial
        """
        packed = shard.packed
        counts, totals = zero_counts(packed, self.spare), np.zeros(packed.n_classes)
        evidence = em_items(packed, 0, packed.n_items, self.rows, self.log_prior, None, counts, totals, None)
        return Partial(counts, totals, evidence)

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"spare": []}


@dataclass(frozen=True)
class VotePass:
    """The task of the start: counts of one shard if each item's posterior were its vote share.

    Parameters
    ----------
    spare : list of ndarray
        Count tables that earlier tasks of this process no longer need; never sent elsewhere.
    """

    spare: list[Array] = field(default_factory=list, repr=False, compare=False)

    def __call__(self, shard: Shard) -> Partial:
        """Run on one shard.

        Parameters
        ----------
        shard : Shard
            The labels.

        Returns
        -------
        Partial
            With evidence 0.
        """
        packed = shard.packed
        counts, totals = zero_counts(packed, self.spare), np.zeros(packed.n_classes)
        votes_of(packed, 0, packed.n_items, counts, totals, None)
        n_labels = np.diff(packed.start)
        return Partial(counts, totals, 0.0, int(np.count_nonzero(n_labels)), int(np.count_nonzero(n_labels > 1)))

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"spare": []}


def zero_counts(packed: Packed, spare: list[Array]) -> Array:
    """A count table of zeros: a spare one, or a new one.

    Parameters
    ----------
    packed : Packed
        Labels, for their numbers of workers and classes.
    spare : list of ndarray
        Tables that may be overwritten; one is taken from it.

    Returns
    -------
    ndarray of shape (n_workers * n_classes, n_classes)
    """
    with suppress(IndexError):  # there is none
        counts = spare.pop()
        counts[...] = 0.0
        return counts
    return aligned_zeros((packed.n_workers * packed.n_classes, packed.n_classes))


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


def em_pass(
    labels: ShardedLabels, log_confusion: Array, log_prior: Array, spare: list[Array] | None = None
) -> PassResult:
    """The E step and its expected counts over all shards.

    Parameters
    ----------
    labels : ShardedLabels
        The labels.
    log_confusion : ndarray of shape (n_workers, n_classes, n_classes)
        log p(label | truth), indexed [worker, truth, label].
    log_prior : ndarray of shape (n_classes,)
        log p(truth).
    spare : list of ndarray, default=None
        Count tables to use again, such as those of the pass before.

    Returns
    -------
    PassResult
        Without posterior.
    """
    spare = [] if spare is None else spare
    task = EMPass(rows_of(log_confusion, labels.n_labels), np.ascontiguousarray(log_prior, np.float64), spare)
    return as_result(summed(labels.run(task, "labels of a pass"), spare))


def vote_pass(labels: ShardedLabels, spare: list[Array] | None = None) -> PassResult:
    """The pass over all shards in which each item's posterior is its vote share.

    Parameters
    ----------
    labels : ShardedLabels
        The labels.
    spare : list of ndarray, default=None
        Count tables to use again.

    Returns
    -------
    PassResult
        With evidence 0 and without posterior.
    """
    spare = [] if spare is None else spare
    return as_result(vote_partial(labels, spare))


def vote_partial(labels: ShardedLabels, spare: list[Array]) -> Partial:
    """The same with the numbers of items that have labels, and that have at least two.

    Parameters
    ----------
    labels : ShardedLabels
        The labels.
    spare : list of ndarray
        Count tables to use again.

    Returns
    -------
    Partial
    """
    return summed(labels.run(VotePass(spare), "votes"), spare)


def as_result(found: Partial) -> PassResult:
    """The sum of all shards as EM reads it.

    Parameters
    ----------
    found : Partial
        The sum.

    Returns
    -------
    PassResult
        Without posterior; its counts share memory with the sum.
    """
    n_classes = len(found.totals)
    counts = found.counts.reshape(-1, n_classes, n_classes).transpose(0, 2, 1)
    return PassResult(counts, found.totals, found.evidence, None)


@dataclass(frozen=True)
class ShardedSource:
    """Shards as the labels that EM passes over (`em.label_source.LabelSource`).

    Parameters
    ----------
    labels : ShardedLabels
        The labels.
    spare : list of ndarray
        Count tables that passes use again.

    Raises
    ------
    LimitError
        Where the confusion matrices of all workers exceed the memory.
    """

    labels: ShardedLabels
    spare: list[Array] = field(default_factory=list, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_table_size(self.n_workers, self.n_classes)

    @property
    def n_workers(self) -> int:
        """Number of workers."""
        return len(self.labels.worker_ids)

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.labels.classes)

    def em_pass(self, log_confusion: Array, log_prior: Array, *, want_posterior: bool = False) -> PassResult:
        """The E step and its expected counts; the posterior of all items is never returned.

        Parameters
        ----------
        log_confusion : ndarray of shape (n_workers, n_classes, n_classes)
            log p(label | truth), indexed [worker, truth, label].
        log_prior : ndarray of shape (n_classes,)
            log p(truth).
        want_posterior : bool, default=False
            Ignored.

        Returns
        -------
        PassResult
        """
        return em_pass(self.labels, log_confusion, log_prior, self.spare)

    def vote_pass(self) -> PassResult:
        """The pass in which each item's posterior is its vote share.

        Returns
        -------
        PassResult
        """
        return vote_pass(self.labels, self.spare)
