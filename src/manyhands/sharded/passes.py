"""The tasks of EM on one shard, and their sum in the order of shards.

`ShardedSource` is the `LabelSource` of shards: `ConfusionEM` runs on it as it runs on labels in memory.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from manyhands.em.kernels import aligned_zeros, em_items, rows_of, votes_of
from manyhands.em.packed import Packed, PassResult
from manyhands.sharded.labels import Shard, ShardedLabels
from manyhands.sharded.partial import Partial, summed
from manyhands.sharded.pass_log import PassLog, digest_of
from manyhands.sharded.views import View

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class EMPass:
    """The task of an E step: expected counts of one shard at given parameters.

    Parameters
    ----------
    rows : ndarray of shape (n_workers * n_classes, n_classes)
        log p(label | truth), a row for each worker and label (`em.kernels.rows_of`).
    log_prior : ndarray of shape (n_classes,)
        log p(truth).
    view : View, default=None
        What is done to the labels of the shard first.
    spare : list of ndarray
        Count tables that earlier tasks of this process no longer need; never sent elsewhere.
    """

    rows: Array
    log_prior: Array
    view: View | None = None
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
        packed = shard.packed if self.view is None else self.view(shard.packed)
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
    view : View, default=None
        What is done to the labels of the shard first.
    spare : list of ndarray
        Count tables that earlier tasks of this process no longer need; never sent elsewhere.
    """

    view: View | None = None
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
        packed = shard.packed if self.view is None else self.view(shard.packed)
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
    view : View, default=None
        What every pass does to the labels of a shard first.
    log : PassLog, default=None
        Record of finished passes; None keeps none.
    spare : list of ndarray
        Count tables that passes use again.
    """

    labels: ShardedLabels
    view: View | None = None
    log: PassLog | None = None
    spare: list[Array] = field(default_factory=list, repr=False, compare=False)

    @property
    def n_workers(self) -> int:
        """Number of workers."""
        return len(self.labels.worker_ids) if self.view is None else self.view.n_workers

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
        rows, log_prior = rows_of(log_confusion, self.labels.n_labels), np.ascontiguousarray(log_prior, np.float64)
        task = EMPass(rows, log_prior, self.view, self.spare)
        return as_result(self._step("shards of a pass", task, rows, log_prior))

    def vote_pass(self) -> PassResult:
        """The pass in which each item's posterior is its vote share.

        Returns
        -------
        PassResult
        """
        return as_result(self.vote_partial())

    def vote_partial(self) -> Partial:
        """The same with the numbers of items that have labels, and that have at least two.

        Returns
        -------
        Partial
        """
        return self._step("shards: votes", VotePass(self.view, self.spare))

    def _step(self, what: str, task: Callable[[Shard], Partial], *parameters: Array) -> Partial:
        """Run a task on all shards, unless there is a record of it, and add up the results."""

        def compute() -> Partial:
            return summed(self.labels.run(task, what), self.spare)

        if self.log is None:
            return compute()
        viewed = [] if self.view is None else self.view.arrays
        return self.log.step(digest_of(type(task).__name__, *parameters, *viewed), compute)


def em_pass(labels: ShardedLabels, log_confusion: Array, log_prior: Array) -> PassResult:
    """The E step and its expected counts over all shards.

    Parameters
    ----------
    labels : ShardedLabels
        The labels.
    log_confusion : ndarray of shape (n_workers, n_classes, n_classes)
        log p(label | truth), indexed [worker, truth, label].
    log_prior : ndarray of shape (n_classes,)
        log p(truth).

    Returns
    -------
    PassResult
        Without posterior.
    """
    return ShardedSource(labels).em_pass(log_confusion, log_prior)


def vote_pass(labels: ShardedLabels) -> PassResult:
    """The pass over all shards in which each item's posterior is its vote share.

    Parameters
    ----------
    labels : ShardedLabels
        The labels.

    Returns
    -------
    PassResult
        With evidence 0 and without posterior.
    """
    return ShardedSource(labels).vote_pass()
