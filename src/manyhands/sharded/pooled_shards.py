"""Pooled Dawid-Skene on labels in shards.

EM, and what is done to each item at the end, use all labels. The search for a colluding group, the departure of the fit
from the vote, and the exponent that predicts held-out labels best use a sample of items that the data alone decide
(`item_sample`); a crowd of ordinary size is its own sample.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from manyhands.aggregation.pooled_dawid_skene import PooledDawidSkene
from manyhands.aggregation.pooled_fit import (
    PRIOR_ITEMS,
    Fitter,
    PooledFit,
    fit_of_one_accuracy,
    fit_of_pooled_em,
    fit_one_accuracy,
    fit_pooled,
    one_accuracy_model,
    pooled_noise,
)
from manyhands.aggregation.pooled_results import pooled_notes, tempered_results, worker_results
from manyhands.aggregation.safeguards import chosen_power
from manyhands.aggregation.tempering import Tempering, choose_exponent, has_low_volume
from manyhands.aggregation.vote_departure import Departure, departure_from_vote
from manyhands.annotations import Annotations
from manyhands.em.collusion import CollusionGroups, collapse_groups, find_colluding_groups
from manyhands.em.confusion_em import ConfusionEM, ConfusionEMFit, fit_from_starts, labels_as_given
from manyhands.em.e_step import posterior_given
from manyhands.em.exchangeable import exchangeable_workers, merge_workers
from manyhands.em.kernels import rows_of
from manyhands.em.priors import EstimatedPrior
from manyhands.sharded.item_sample import Sample, sample_items
from manyhands.sharded.items import ModelPosterior
from manyhands.sharded.labels import ShardedLabels
from manyhands.sharded.partial import Partial
from manyhands.sharded.pass_log import PassLog
from manyhands.sharded.passes import ShardedSource, as_result
from manyhands.sharded.pooled_posterior import PooledPosterior
from manyhands.sharded.views import View

Array = npt.NDArray[np.float64]
Groups = npt.NDArray[np.int64]


@dataclass(frozen=True)
class PooledOutcome:
    """What the fit of Pooled Dawid-Skene on shards found.

    Attributes
    ----------
    posterior : PooledPosterior
        The fitted method, as it computes the posterior of items.
    counts : ndarray of shape (n_workers, n_classes, n_classes) or None
        Expected counts of the last E step; None where a group was collapsed.
    em : ConfusionEMFit
        Outcome of EM.
    results : dict of str to object
        Fitted attributes, by name.
    notes : dict of str to str
        Limitations of the result, by code.
    n_labelled : int
        Number of items with labels.
    n_compared : int
        Number of items with at least two.
    """

    posterior: PooledPosterior
    counts: Array | None
    em: ConfusionEMFit[Any]
    results: dict[str, Any]
    notes: dict[str, str]
    n_labelled: int
    n_compared: int


@dataclass(frozen=True)
class _Crowd:
    """A crowd after its colluding group was collapsed: its labels, the sample, and what the votes say."""

    labels: ShardedLabels
    log: PassLog | None
    view: View | None  # the collapsed group
    sample: Annotations
    is_everything: bool
    votes: Partial

    @property
    def by_label(self) -> npt.NDArray[np.int64]:
        """Number of labels of each worker for each class, (n_workers, n_classes): shares of one item sum to 1."""
        return np.rint(self.votes.counts.sum(axis=1)).astype(np.int64).reshape(-1, len(self.labels.classes))


def fit_pooled_on_shards(method: PooledDawidSkene, labels: ShardedLabels, log: PassLog | None) -> PooledOutcome:
    """Fit Pooled Dawid-Skene.

    Parameters
    ----------
    method : PooledDawidSkene
        The method with its parameters.
    labels : ShardedLabels
        The labels.
    log : PassLog or None
        Record of finished passes.

    Returns
    -------
    PooledOutcome
    """
    sample = sample_items(labels)
    group = find_colluding_groups(sample.annotations, labels.worker_volume) if method.detect_collusion else None
    crowd = _collapsed(labels, log, sample, group)
    worker_volume = crowd.by_label.sum(axis=1)
    fitter: Fitter = partial(fit_pooled, prior_strength=method.prior_strength)
    fit, view = _fit_types(crowd, method, worker_volume)
    departure = _departure(crowd, fit, view, worker_volume)
    if departure.is_doubtful:
        fitter = fit_one_accuracy
        fit = _fit_one_accuracy(crowd, method)
    tempering = Tempering(1.0)
    if method.calibrate and not fit.no_redundancy:
        tempering = choose_exponent(_active_workers(crowd), None, fitter, method.n_folds)
    members = np.zeros(len(labels.worker_ids), bool) if group is None else group.members
    results = worker_results(fit, members, worker_volume)
    exponent = 1.0 if tempering.exponent is None else tempering.exponent
    results |= tempered_results(fit, results["confusion_"], exponent)
    results["_unseen_worker"] = fit.unseen_worker
    results["_used_rule"] = method._rule(fit, departure, False)
    results["crowd_power_"] = 1.0 if fit.no_redundancy else chosen_power(method.temper, tempering)
    results["_is_sybil_group"] = group is not None and group.max_labels is not None
    notes = pooled_notes(labels.worker_volume, len(labels.classes), tempering.exponent, group, departure)
    return _outcome(crowd, fit, results, notes)


def _collapsed(labels: ShardedLabels, log: PassLog | None, sample: Sample, group: CollusionGroups | None) -> _Crowd:
    """The crowd with its colluding group as one voter: the member with the most labels."""
    view, annotations = None, sample.annotations
    if group is not None:
        representative = int(np.argmax(np.where(group.members, labels.worker_volume, -1)))
        view = View(len(labels.worker_ids), group.members, representative)
        annotations = collapse_groups(annotations, group.members, representative)
    votes = ShardedSource(labels, view, log).vote_partial()
    return _Crowd(labels, log, view, annotations, sample.is_everything, votes)


def _with_groups(crowd: _Crowd, group: Groups) -> View:
    """The view of the crowd with merged workers."""
    members, representative = (None, 0) if crowd.view is None else (crowd.view.members, crowd.view.representative)
    return View(int(group.max()) + 1, members, representative, group)


def _fit_types(crowd: _Crowd, method: PooledDawidSkene, worker_volume: Groups) -> tuple[PooledFit, View | None]:
    """Variational EM with worker types; exchangeable workers are merged where the sample is the crowd."""
    n_classes = len(crowd.labels.classes)
    single_class = not crowd.by_label[:, 1:].any()
    use_newton = has_low_volume(worker_volume) or single_class or crowd.votes.n_labelled < n_classes
    group = exchangeable_workers(crowd.sample) if crowd.is_everything else None
    noise = pooled_noise(n_classes, worker_volume, group, method.prior_strength, use_newton)
    view = crowd.view if group is None else _with_groups(crowd, group)
    source = ShardedSource(crowd.labels, view, crowd.log)
    start = crowd.votes if group is None else source.vote_partial()
    table = _em(ConfusionEM(source, noise, EstimatedPrior(PRIOR_ITEMS)), start, method, stop_early=use_newton)
    return fit_of_pooled_em(table, noise, group), view


def _fit_one_accuracy(crowd: _Crowd, method: PooledDawidSkene) -> PooledFit:
    """EM with one accuracy for all workers: the labels are those of the vote."""
    n_workers = len(crowd.labels.worker_ids)
    noise, prior = one_accuracy_model(len(crowd.labels.classes))
    source = ShardedSource(crowd.labels, _with_groups(crowd, np.zeros(n_workers, np.int64)), crowd.log)
    table = _em(ConfusionEM(source, noise, prior), source.vote_partial(), method)
    return fit_of_one_accuracy(table, noise, n_workers)


def _em(
    model: ConfusionEM[Any], start: Partial, method: PooledDawidSkene, *, stop_early: bool = False
) -> ConfusionEMFit[Any]:
    """EM from the votes, or the labels as given where there is nothing to compare."""
    if start.n_compared == 0:
        return labels_as_given(model)
    return fit_from_starts(model, [as_result(start)], max_iter=method.max_iter, tol=method.tol, stop_early=stop_early)


def _departure(crowd: _Crowd, fit: PooledFit, view: View | None, worker_volume: Groups) -> Departure:
    """How far the fit departs from the vote on the items of the sample."""
    merged = crowd.sample
    if view is not None and view.group is not None:
        merged = merge_workers(merged, view.group)
    posterior, _ = posterior_given(merged, fit.table.used_log_confusion, fit.log_prior)
    return departure_from_vote(crowd.sample, None, posterior, worker_volume)


def _active_workers(crowd: _Crowd) -> Annotations:
    """The sample without the workers that have no label in it, who cost memory and add nothing."""
    if crowd.is_everything:
        return crowd.sample
    has_label = np.bincount(crowd.sample.worker, minlength=crowd.sample.n_workers) > 0
    return merge_workers(crowd.sample, np.maximum(np.cumsum(has_label) - 1, 0))


def _outcome(crowd: _Crowd, fit: PooledFit, results: dict[str, Any], notes: dict[str, str]) -> PooledOutcome:
    """The E step with the tempered model, and the task that releases the posterior of items."""
    table, log_prior = results["_log_confusion"][:-1], results["_log_prior"]
    read = {"confusion_", "collusion_group_", "crowd_power_", "_used_rule", "_is_sybil_group"}
    model = ModelPosterior(rows_of(table, crowd.labels.n_labels), log_prior)
    posterior = PooledPosterior(model, crowd.view, {name: results[name] for name in read})
    counts = None  # collapsed members have no counts of their own
    if crowd.view is None:
        counts = ShardedSource(crowd.labels, None, crowd.log).em_pass(table, log_prior).counts
    sizes = crowd.votes.n_labelled, crowd.votes.n_compared
    return PooledOutcome(posterior, counts, fit.table, results, notes, *sizes)
