"""`fit`: the methods that run on labels in shards, with the EM and the noise models of the ordinary ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from manyhands import elementary, registry
from manyhands.aggregation.base import Aggregator
from manyhands.aggregation.em_fit import ConfusionMethod, results_of_em
from manyhands.aggregation.limitations import NO_REDUNDANCY, NOT_CONVERGED, SINGLE_CLASS
from manyhands.aggregation.pooled_dawid_skene import PooledDawidSkene
from manyhands.em.confusion_em import ConfusionEM, ConfusionEMFit, fit_from_starts, labels_as_given
from manyhands.em.kernels import rows_of
from manyhands.em.table_sizes import are_small_tables, check_table_size
from manyhands.em.threads import thread_count
from manyhands.exceptions import AnnotationError, ParameterError
from manyhands.sharded.items import (
    FinalPass,
    ModelPosterior,
    Posterior,
    Statistics,
    StatisticsPass,
    VotePosterior,
    summed_statistics,
)
from manyhands.sharded.labels import ShardedLabels
from manyhands.sharded.partial import Partial
from manyhands.sharded.pass_log import PassLog
from manyhands.sharded.passes import ShardedSource, as_result
from manyhands.sharded.pooled_shards import fit_pooled_on_shards
from manyhands.sharded.sharded_fit import ShardedFit

Array = npt.NDArray[np.float64]

METHODS = ("dawid-skene", "mace", "majority-vote", "one-coin", "pooled-dawid-skene")  # those that run on shards

# Arrays of the size of all confusion matrices that a fit holds at its peak, beside one for each thread; measured with
# 4 x 10^6 labels, 10^5 workers and 8 classes.
PEAK_TABLES = {"dawid-skene": 13, "mace": 13, "majority-vote": 5, "one-coin": 13, "pooled-dawid-skene": 24}


def fit(method: Aggregator, labels: ShardedLabels, *, log: PassLog | None = None) -> ShardedFit:
    """Infer the truth of every item of a crowd whose labels are in shards.

    The result is that of the ordinary fit up to the order in which numbers are added: the same labels, and posteriors
    within about 1e-9. Its bits depend on the labels alone.

    Parameters
    ----------
    method : Aggregator
        One of the methods in `METHODS`, with its parameters; it is not changed.
    labels : ShardedLabels
        The labels.
    log : PassLog, default=None
        Record of finished passes (`PassLog.of`), with which a run that was ended continues; None keeps none.

    Returns
    -------
    ShardedFit

    Raises
    ------
    ParameterError
        Where the method does not run on shards, or one of its parameters does not.
    AnnotationError
        Where there are no labels.
    LimitError
        Where the confusion matrices of all workers exceed the memory.

    Examples
    --------
    >>> from manyhands import DawidSkene
    >>> from manyhands.annotations import Annotations
    >>> from manyhands.sharded.labels import InMemoryShards
    >>> votes = Annotations.from_matrix([[0, 0, 1], [1, 1, 1], [0, 0, 0], [1, 1, 0]])
    >>> shards = InMemoryShards.from_annotations(votes)
    >>> found = fit(DawidSkene(), shards)
    >>> [shard.code.tolist() for shard in shards.run(found.final_task, "items")], shards.item_ids.tolist()
    ([[0, 1, 1, 0]], [2, 3, 1, 0])
    """
    name = method_name(method)
    method._check_parameters()
    if labels.n_labels == 0:
        raise AnnotationError("There are no labels to fit. Check the input, and which rows were left out.")
    n_workers, n_classes = len(labels.worker_ids), len(labels.classes)
    if name != "majority-vote" or are_small_tables(n_workers, n_classes, labels.n_labels):
        check_table_size(n_workers, n_classes, PEAK_TABLES[name] + min(thread_count(), labels.n_shards))
    found = _FITS[name](method, labels, log)
    return found if log is None or not log.notes else found.with_note("unusable_records", " ".join(log.notes))


def method_name(method: Aggregator) -> str:
    """The name of a method that runs on shards.

    Parameters
    ----------
    method : Aggregator
        Any aggregator.

    Returns
    -------
    str
        One of `METHODS`.

    Raises
    ------
    ParameterError
        Where it does not run on shards.
    """
    for name in METHODS:
        if type(method) is registry.get(name):
            return name
    listed = ", ".join(METHODS)
    raise ParameterError(f"{type(method).__name__} does not run on labels in shards; {listed} do. Use one of these.")


def _fit_by_em(method: Any, labels: ShardedLabels, log: PassLog | None) -> ShardedFit:
    """A method that is EM with confusion matrices and nothing else."""
    if method.n_init != 1:
        raise ParameterError(f"Random starts need all items in memory: use n_init=1 on shards. Got {method.n_init!r}.")
    found, start = em_on_shards(method, labels, log)
    results = results_of_em(found, elementary.exp(found.log_confusion)) | method._em_results(found)
    posterior = ModelPosterior(rows_of(found.used_log_confusion, labels.n_labels), found.params.log_prior)
    if start.n_compared < start.n_labelled:
        statistics = summed_statistics(labels.run(StatisticsPass(posterior), "shards: workers"))
    else:
        statistics = _statistics_of_counts(found.final.counts, found.final.totals)
    return sharded_fit(
        method,
        labels,
        posterior,
        statistics._replace(totals=found.final.totals),
        counts=found.final.counts,
        em=found,
        results=results,
        no_redundancy=found.no_redundancy,
    )


def em_on_shards(
    method: ConfusionMethod, labels: ShardedLabels, log: PassLog | None
) -> tuple[ConfusionEMFit[Any], Partial]:
    """EM from the vote shares on labels in shards.

    Parameters
    ----------
    method : ConfusionMethod
        The estimator.
    labels : ShardedLabels
        The labels.
    log : PassLog or None
        Record of finished passes.

    Returns
    -------
    fit : ConfusionEMFit
        The fitted model, whose last E step has no posterior.
    start : Partial
        The numbers of items with labels and with at least two, without the counts of the votes.
    """
    source = ShardedSource(labels, log=log)
    model: ConfusionEM[Any] = ConfusionEM(source, *method._em_model(source.n_classes))
    start = source.vote_partial()
    sizes = start._replace(counts=np.zeros((0, 0)))
    if start.n_compared == 0:
        return labels_as_given(model), sizes
    starts = [as_result(start)]
    del start  # its memory is free once EM has begun
    return fit_from_starts(model, starts, max_iter=method.max_iter, tol=method.tol), sizes


def _fit_vote(method: Aggregator, labels: ShardedLabels, log: PassLog | None) -> ShardedFit:
    """The majority vote: one pass, with expected counts unless they would be larger than the labels."""
    if not are_small_tables(len(labels.worker_ids), len(labels.classes), labels.n_labels):
        return _fit_vote_without_counts(method, labels)
    start = ShardedSource(labels, log=log).vote_partial()
    counts = as_result(start).counts
    posterior = VotePosterior(start.totals)
    if start.n_compared < start.n_labelled:
        statistics = summed_statistics(labels.run(StatisticsPass(posterior), "shards: workers"))
    else:
        statistics = _statistics_of_counts(counts, start.totals)
    return sharded_fit(
        method,
        labels,
        posterior,
        statistics._replace(totals=start.totals),
        counts=counts,
        no_redundancy=start.n_compared == 0,
    )


def _fit_vote_without_counts(method: Aggregator, labels: ShardedLabels) -> ShardedFit:
    """The majority vote of very many workers."""
    nothing = VotePosterior(np.zeros(len(labels.classes)))  # of items without labels, which do not count
    statistics = summed_statistics(labels.run(StatisticsPass(nothing), "shards: votes"))
    single = labels.n_labels > 1 and np.count_nonzero(statistics.totals > 0) == 1
    return sharded_fit(
        method,
        labels,
        VotePosterior(statistics.totals),
        statistics,
        no_redundancy=not statistics.checked.any(),
        notes={"single_class": SINGLE_CLASS} if single else {},
    )


def _fit_pooled(method: PooledDawidSkene, labels: ShardedLabels, log: PassLog | None) -> ShardedFit:
    """Pooled Dawid-Skene, whose posterior is released after overruling and the power of the crowds."""
    found = fit_pooled_on_shards(method, labels, log)
    statistics = summed_statistics(labels.run(StatisticsPass(found.posterior), "shards: workers"))
    if found.counts is not None and found.n_compared == found.n_labelled:
        statistics = _statistics_of_counts(found.counts, statistics.totals)
    return sharded_fit(
        method,
        labels,
        found.posterior,
        statistics,
        counts=found.counts,
        em=found.em,
        results=found.results,
        no_redundancy=found.n_compared == 0,
        notes=found.notes,
    )


def _statistics_of_counts(counts: Array, totals: Array) -> Statistics:
    """The statistics where every labelled item has at least two labels."""
    return Statistics(totals, np.trace(counts, axis1=1, axis2=2), counts.sum(axis=(1, 2)))


def sharded_fit(
    method: Aggregator,
    labels: ShardedLabels,
    posterior: Posterior,
    statistics: Statistics,
    *,
    counts: Array | None = None,
    em: ConfusionEMFit[Any] | None = None,
    results: dict[str, Any] | None = None,
    no_redundancy: bool = False,
    notes: dict[str, str] | None = None,
) -> ShardedFit:
    """Collect the outcome of a method.

    Parameters
    ----------
    method : Aggregator
        The method.
    labels : ShardedLabels
        The labels.
    posterior : Posterior
        The fitted method, as it computes the posterior of items.
    statistics : Statistics
        Sums over all items.
    counts : ndarray of shape (n_workers, n_classes, n_classes), default=None
        Expected counts of the last E step; None where the method has none.
    em : ConfusionEMFit, default=None
        Outcome of EM; None for a method without.
    results : dict of str to object, default=None
        Fitted attributes of the method, by name.
    no_redundancy : bool, default=False
        Whether no item has two labels.
    notes : dict of str to str, default=None
        Limitations of the result that are the method's own, by code.

    Returns
    -------
    ShardedFit
    """
    found = _notes(labels, counts, em, no_redundancy)
    return ShardedFit(
        method=method,
        worker_ids=labels.worker_ids,
        classes=labels.classes,
        worker_volume=labels.worker_volume,
        n_items=labels.n_items,
        n_labels=labels.n_labels,
        counts=counts,
        class_totals=statistics.totals,
        n_right=statistics.right,
        n_checked=statistics.checked,
        n_iter=1 if em is None else em.n_iter,
        converged=True if em is None else em.converged,
        history=[] if em is None else em.history,
        results={} if results is None else results,
        notes=found | ({} if notes is None else notes),
        final_task=FinalPass(posterior, statistics.totals),
    )


def _notes(
    labels: ShardedLabels, counts: Array | None, em: ConfusionEMFit[Any] | None, no_redundancy: bool
) -> dict[str, str]:
    """Limitations of the result that apply to all methods, by code."""
    notes = {}
    if no_redundancy:
        notes["no_redundancy"] = NO_REDUNDANCY
    if labels.n_labels > 1 and counts is not None and np.count_nonzero(counts.sum(axis=(0, 1)) > 0) == 1:
        notes["single_class"] = SINGLE_CLASS
    if em is not None and not em.converged:
        notes["not_converged"] = NOT_CONVERGED.format(em.n_iter)
    return notes


_FITS: dict[str, Callable[[Any, ShardedLabels, PassLog | None], ShardedFit]] = {
    "dawid-skene": _fit_by_em,
    "mace": _fit_by_em,
    "majority-vote": _fit_vote,
    "one-coin": _fit_by_em,
    "pooled-dawid-skene": _fit_pooled,
}
