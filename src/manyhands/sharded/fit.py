"""`fit`: the methods that run on labels in shards, with the EM and the noise models of the ordinary ones."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from manyhands import registry
from manyhands._core import elementary
from manyhands._core.arrays import Array
from manyhands.aggregation.base import (
    NO_REDUNDANCY,
    NOT_CONVERGED,
    SINGLE_CLASS,
    Aggregator,
    EMAggregator,
    Inference,
    copies_note,
    results_of_em,
    with_estimates_of_leads,
)
from manyhands.aggregation.pooled import (
    PRIOR_ITEMS,
    Departure,
    Fitter,
    PooledDawidSkene,
    PooledFit,
    departure_from_vote,
    fit_of_one_accuracy,
    fit_of_pooled_em,
    fit_one_accuracy,
    fit_pooled,
    one_accuracy_model,
    pooled_noise,
    pooled_notes,
    tempered_results,
    worker_results,
)
from manyhands.aggregation.tempering import Tempering, choose_exponent, chosen_power, has_low_volume
from manyhands.annotations import Annotations
from manyhands.em.collusion import (
    CollusionGroups,
    collapse_groups,
    exchangeable_workers,
    merge_workers,
)
from manyhands.em.confusion_em import ConfusionEM, ConfusionEMFit, fit_from_starts, labels_as_given
from manyhands.em.copies import Copies, find_group_and_copies, no_copies
from manyhands.em.e_step import posterior_given
from manyhands.em.firing import is_one_class_crowd, is_one_class_table
from manyhands.em.kernels import Packed, are_small_tables, check_table_size, rows_of, thread_count
from manyhands.em.noise import safe_log
from manyhands.em.priors import PRIOR_ACCURACY, EstimatedPrior
from manyhands.exceptions import AnnotationError, CrowdWarning, ParameterError
from manyhands.scorecards.accuracy import (
    DOUBT,
    N_NODES,
    AccuracyEstimate,
    accuracy_of_counts,
    accuracy_of_histogram,
    histogram_of,
    recall_parameters,
    right_histogram,
    without_own_labels,
)
from manyhands.sharded.labels import Partial, Shard, ShardedLabels, View, annotations_of, item_pieces
from manyhands.sharded.passes import (
    FinalPass,
    ModelPosterior,
    PassLog,
    PooledPosterior,
    Posterior,
    SamplePass,
    ShardedSource,
    Statistics,
    StatisticsPass,
    VotePosterior,
    as_result,
    summed_statistics,
)

# ----------------------------------------------------------------------------------------------------
# A sample of items that the data alone decide: what a method needs to see at once, however large the crowd is.

MAX_SAMPLE = 1_999_999  # labels; a crowd with no more is its own sample


class Sample(NamedTuple):
    """Some items of a crowd with all their labels."""

    annotations: Annotations  # the labels, with numbers in the place of ids; all workers and classes of the crowd
    is_everything: bool  # whether these are all labels of the crowd


def sample_items(labels: ShardedLabels) -> Sample:
    """Gather the first items of every shard, or all items of a crowd of ordinary size.

    The order of the layout is that of a hash, so that the first items of a shard are a random sample of them.
    """
    is_everything = labels.n_labels <= MAX_SAMPLE
    task = SamplePass(None if is_everything else MAX_SAMPLE // labels.n_shards)
    codes, sizes = zip(*labels.run(task, "shards: sample"))
    start = np.concatenate([[0], np.cumsum(np.concatenate(sizes))]).astype(np.int64)
    packed = Packed(np.concatenate(codes), None, start, len(labels.worker_ids), len(labels.classes))
    return Sample(annotations_of(packed), is_everything)


# ----------------------------------------------------------------------------------------------------
# Pooled Dawid-Skene on labels in shards.
#
# EM, and what is done to each item at the end, use all labels. The search for a colluding group, the departure of the
# fit from the vote, and the exponent that predicts held-out labels best use a sample of items that the data alone
# decide; a crowd of ordinary size is its own sample.

Groups = npt.NDArray[np.int64]


@dataclass(frozen=True)
class PooledOutcome:
    """What the fit of Pooled Dawid-Skene on shards found."""

    posterior: PooledPosterior  # the fitted method, as it computes the posterior of items
    # (n_workers, n_classes, n_classes); expected counts of the last E step; None where a group was collapsed
    counts: Array | None
    em: ConfusionEMFit[Any]
    results: dict[str, Any]  # fitted attributes, by name
    notes: dict[str, str]  # limitations of the result, by code
    n_labelled: int  # number of items with labels
    n_compared: int  # number of items with at least two


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


ONE_CLASS_ON_SHARDS = (
    "Many labels come from workers who use one class only: labelling functions, or people who mark what they see. The "
    "model for them (firing-naive-bayes), in which silence counts, needs the labels in memory; on shards the result is "
    "the majority vote. Fit a part of the items in memory."
)


def fit_pooled_on_shards(method: PooledDawidSkene, labels: ShardedLabels, log: PassLog | None) -> PooledOutcome:
    """Fit Pooled Dawid-Skene."""
    sample = sample_items(labels)
    group, copies = None, no_copies(len(labels.worker_ids))
    if method.detect_collusion:
        group, copies = find_group_and_copies(sample.annotations, labels.worker_volume)
    crowd = _collapsed(labels, log, sample, group, copies)
    worker_volume = crowd.by_label.sum(axis=1)
    fitter: Fitter = partial(fit_pooled, prior_strength=method.prior_strength)
    fit, view = _fit_types(crowd, method, worker_volume)
    departure = _departure(crowd, fit, view, worker_volume)
    use_one_class = is_one_class_table(crowd.by_label) or is_one_class_crowd(sample.annotations)
    if departure.is_doubtful or use_one_class:
        fitter = fit_one_accuracy
        fit = _fit_one_accuracy(crowd, method)
    tempering = Tempering(1.0)
    if method.calibrate and not fit.no_redundancy:
        tempering = choose_exponent(_active_workers(crowd), None, fitter, method.n_folds)
    members = np.zeros(len(labels.worker_ids), bool) if group is None else group.members
    results = worker_results(fit, members, worker_volume) | {"copy_groups_": copies.group, "_copy_rank": copies.rank}
    exponent = 1.0 if tempering.exponent is None else tempering.exponent
    results |= tempered_results(fit, results["confusion_"], exponent)
    results["_unseen_worker"] = fit.unseen_worker
    results["_used_rule"] = method._rule(fit, departure, use_one_class)
    results["crowd_power_"] = 1.0 if fit.no_redundancy else chosen_power(method.temper, tempering)
    results["_is_sybil_group"] = group is not None and group.max_labels is not None
    for name in ("confusion_", "worker_types_", "_log_confusion"):
        results[name] = with_estimates_of_leads(results[name], copies, worker_volume)
    notes = pooled_notes(labels.worker_volume, len(labels.classes), tempering.exponent, group, departure)
    if use_one_class:
        notes["one_class_workers"] = ONE_CLASS_ON_SHARDS
    if copies:
        notes["copies"] = copies_note(copies, labels.worker_ids, _n_changed(method, sample, group, copies))
    return _outcome(crowd, fit, results, notes)


def _n_changed(method: PooledDawidSkene, sample: Sample, group: CollusionGroups | None, copies: Copies) -> int | None:
    """How many labels change because copies count as one vote; None where the sample is not the crowd."""
    if not sample.is_everything:
        return None
    votes = sample.annotations, copies.without(sample.annotations)
    before, after = (method._infer_collapsed(one, None, group=group).posterior.argmax(axis=1) for one in votes)
    return int(np.count_nonzero((before != after) & (sample.annotations.n_labels > 0)))


def _collapsed(
    labels: ShardedLabels, log: PassLog | None, sample: Sample, group: CollusionGroups | None, copies: Copies
) -> _Crowd:
    """The crowd without copied labels, and with its colluding group as one voter: the member with the most labels."""
    view, annotations = None, copies.without(sample.annotations)
    if copies:
        view = _one_vote_view(copies)
    if group is not None:
        representative = int(np.argmax(np.where(group.members, labels.worker_volume, -1)))
        view = replace(view or View(len(labels.worker_ids)), members=group.members, representative=representative)
        annotations = collapse_groups(annotations, group.members, representative)
    votes = ShardedSource(labels, view, log).vote_partial()
    return _Crowd(labels, log, view, annotations, sample.is_everything, votes)


def _one_vote_view(copies: Copies) -> View:
    """The labels that count."""
    return View(len(copies.group), copy_group=copies.group, copy_rank=copies.rank)


def _with_groups(crowd: _Crowd, group: Groups) -> View:
    """The view of the crowd with merged workers."""
    view = crowd.view or View(len(crowd.labels.worker_ids))
    return replace(view, n_workers=int(group.max()) + 1, group=group)


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
    read = {
        "confusion_",
        "collusion_group_",
        "copy_groups_",
        "_copy_rank",
        "crowd_power_",
        "_used_rule",
        "_is_sybil_group",
    }
    model = ModelPosterior(rows_of(table, crowd.labels.n_labels), log_prior)
    posterior = PooledPosterior(model, crowd.view, {name: results[name] for name in read})
    counts = None  # collapsed members have no counts of their own
    if crowd.view is None:
        counts = ShardedSource(crowd.labels, None, crowd.log).em_pass(table, log_prior).counts
    sizes = crowd.votes.n_labelled, crowd.votes.n_compared
    return PooledOutcome(posterior, counts, fit.table, results, notes, *sizes)


# ----------------------------------------------------------------------------------------------------
# The workers of a fit on shards as a table: accuracy with an interval, and recall of each class.


@dataclass(frozen=True, eq=False)
class HistogramPass:
    """The task that sums, for each worker, leave-one-out probabilities of being right.

    Shapes: log_rows (n_workers * n_classes, n_classes).
    """

    model: ModelPosterior  # the posterior that is a product of the confusion matrices
    view: View | None  # the colluding group as one voter, where there is one
    # (n_workers * n_classes, n_classes); logarithms of these matrices, a row for each worker and label: what is
    # removed for a worker's own label
    log_rows: Array
    exponent: float  # tempering exponent of the labels' likelihood in the posterior

    def __call__(self, shard: Shard) -> Array:
        """Run on one shard.

        Shapes: returns (n_workers, N_NODES).
        """
        packed = shard.packed
        posterior, _ = self.model(packed if self.view is None else self.view(packed))
        histograms = np.zeros((packed.n_workers, N_NODES))
        for first, last, part in item_pieces(packed, least=8 * packed.n_workers):  # each part sums for all workers
            if len(part.code):
                histograms += self._of_items(part, posterior[first:last])
        return histograms

    def _of_items(self, packed: Packed, posterior: Array) -> Array:
        """The histogram of some items."""
        worker = packed.code // np.int32(packed.n_classes)
        members = np.zeros(packed.n_workers, bool)
        if self.view is not None and self.view.members is not None:
            members = self.view.members
        copies = no_copies(packed.n_workers)
        if self.view is not None and self.view.copy_group is not None and self.view.copy_rank is not None:
            copies = replace(copies, group=self.view.copy_group, rank=self.view.copy_rank)
        if (members | copies.members)[worker].any() or _has_repeats(worker, packed.start):
            votes = annotations_of(packed)
            log_confusion = self.log_rows.reshape(-1, packed.n_classes, packed.n_classes).transpose(0, 2, 1)
            loo = without_own_labels(votes, posterior, log_confusion, self.exponent, members, None, copies)
            return right_histogram(loo)
        # Otherwise every label is in the posterior as it is: that of a worker on an item is removed row by row.
        n_labels = np.diff(packed.start)
        score = np.repeat(safe_log(posterior), n_labels, axis=0) - self.exponent * self.log_rows[packed.code]
        score -= score.max(axis=1, keepdims=True)
        elementary.exp(score, out=score)
        p_right = score[np.arange(len(score)), packed.label] / np.einsum("ak->a", score)
        p_right = (1 - DOUBT) * p_right + DOUBT / packed.n_classes
        checked = np.repeat((n_labels > 1).astype(np.float64), n_labels)
        return histogram_of(worker, p_right, checked, packed.n_workers)


def _has_repeats(worker: npt.NDArray[np.int32], start: npt.NDArray[np.int64]) -> bool:
    """Whether a worker labelled an item twice; the labels of an item are sorted by worker."""
    same = worker[1:] == worker[:-1]
    first = start[1:-1]
    same[first[(first > 0) & (first < len(worker))] - 1] = False  # two items
    return bool(same.any())


def leave_one_out_accuracy(
    labels: ShardedLabels, results: Mapping[str, Any], class_totals: Array, view: View | None
) -> AccuracyEstimate:
    """Estimate the accuracy of each worker as the scorecards do, by one pass over the labels.

    Shapes: class_totals (n_classes,).
    """
    exponent = float(results.get("tempering_exponent_", 1.0))
    log_rows = rows_of(safe_log(results["confusion_"]), labels.n_labels)
    total = class_totals + 1.0
    model = ModelPosterior(exponent * log_rows, exponent * np.log(total / total.sum()))
    summed: Array | None = None
    for part in labels.run(HistogramPass(model, view, log_rows, exponent), "shards: workers"):
        summed = part if summed is None else np.add(summed, part, out=summed)
    assert summed is not None
    return accuracy_of_histogram(summed, len(labels.classes), exponent)


def worker_columns(
    names: Mapping[str, npt.NDArray[Any]], accuracy: AccuracyEstimate, counts: Array | None, classes: npt.NDArray[Any]
) -> dict[str, npt.NDArray[Any]]:
    """The columns of the table.

    Shapes: counts (n_workers, n_classes, n_classes); classes (n_classes,).
    """
    columns = dict(names) | dict(zip(("accuracy", "accuracy_low", "accuracy_high"), accuracy))
    if counts is None:
        return columns
    right, wrong, n_items = recall_parameters(counts, accuracy.mean)
    recall = np.where(n_items > 0, right / (right + wrong), np.nan)
    for k, name in enumerate(map(str, classes.tolist())):
        columns |= {f"recall_{name}": recall[:, k], f"items_{name}": np.round(n_items[:, k], 1)}
    return columns


# ----------------------------------------------------------------------------------------------------
# The outcome of a fit on shards: everything but the items, which the final task computes shard by shard.


@dataclass(frozen=True, eq=False)
class ShardedFit:
    """A fitted crowd."""

    method: Aggregator  # the method with its parameters, not fitted
    worker_ids: npt.NDArray[Any]  # (n_workers,)
    classes: npt.NDArray[Any]  # (n_classes,)
    worker_volume: npt.NDArray[np.int64]  # (n_workers,); number of labels of each worker
    n_items: int
    n_labels: int
    # (n_workers, n_classes, n_classes); expected counts [worker, truth, label] of the last E step, where the method
    # has them
    counts: Array | None
    class_totals: Array  # (n_classes,); expected number of items of each class
    n_right: Array  # (n_workers,); expected number of right labels of each worker on items with at least two labels
    n_checked: Array  # (n_workers,); number of labels of each worker on these items
    n_iter: int  # number of passes over the data
    converged: bool  # whether the method converged within `max_iter`
    history: list[float]  # objective after each iteration; empty for methods without one
    # fitted attributes of the method, by the names that they have on the estimator, such as "confusion_"
    results: dict[str, Any]
    notes: dict[str, str]  # limitations of the result, by code, such as "no_redundancy"
    final_task: FinalPass  # the task that computes the results of the items of a shard (`ItemResults`); can be pickled

    def with_note(self, code: str, sentence: str) -> ShardedFit:
        """The same fit with one more note."""
        return replace(self, notes=self.notes | {code: sentence})

    def worker_table(self, labels: ShardedLabels | None = None) -> dict[str, npt.NDArray[Any]]:
        """The workers as columns: labels, accuracy with a 95% interval, and recall of each class."""
        if labels is None or self.confusion is None or not self.n_checked.any():
            accuracy = accuracy_of_counts(self.n_right, np.maximum(self.n_checked - self.n_right, 0.0))
        else:
            view = getattr(self.final_task.posterior, "view", None)
            if view is None and "copy_groups_" not in self.results:  # a copy is no evidence for its source
                _, copies = find_group_and_copies(sample_items(labels).annotations, labels.worker_volume)
                view = _one_vote_view(copies) if copies else None
            accuracy = leave_one_out_accuracy(labels, self.results, self.class_totals, view)
        n_checked = np.rint(self.n_checked).astype(np.int64)
        names = {"worker": self.worker_ids, "n_labels": self.worker_volume, "n_checked": n_checked}
        return worker_columns(names, accuracy, self.counts, self.classes)

    def model(self) -> Aggregator:
        """The fitted method without items: for predictions on new labels, and for `save`."""
        made = type(self.method)(**self.method.get_params(deep=False))
        empty = np.zeros(0, np.int32)
        nothing = Annotations.from_codes((empty, empty, empty), (np.zeros(0, int), self.worker_ids, self.classes))
        posterior = np.zeros((0, len(self.classes)))
        of_items = {"withheld_": np.zeros(0, bool), "_model_posterior": posterior}
        results = self.results | {name: of_items[name] for name in of_items if name in made._of_items}
        inference = Inference(posterior, self.counts, self.n_iter, self.converged, self.history, results)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CrowdWarning)  # about a crowd without labels
            made._store(nothing, {}, None, inference)
        made._class_totals, made.worker_accuracy_, made.notes_ = self.class_totals, self.worker_accuracy, self.notes
        return made

    @property
    def worker_accuracy(self) -> Array:
        """Share of right labels of each worker, shape (n_workers,), with one pseudo-count of accuracy 0.7."""
        return np.asarray((self.n_right + PRIOR_ACCURACY) / (self.n_checked + 1.0))

    @property
    def confusion(self) -> Array | None:
        """Confusion matrices [worker, truth, label], where the method has them."""
        return self.results.get("confusion_")

    @property
    def class_prior(self) -> Array | None:
        """Class frequencies, where the method has them."""
        return self.results.get("class_prior_")


# ----------------------------------------------------------------------------------------------------
# `fit`: one function for each method.

METHODS = ("dawid-skene", "mace", "majority-vote", "one-coin", "pooled-dawid-skene")  # those that run on shards

# Arrays of the size of all confusion matrices that a fit holds at its peak, beside one for each thread; measured with
# 4 x 10^6 labels, 10^5 workers and 8 classes.
PEAK_TABLES = {"dawid-skene": 13, "mace": 13, "majority-vote": 5, "one-coin": 13, "pooled-dawid-skene": 24}


def fit(method: Aggregator, labels: ShardedLabels, *, log: PassLog | None = None) -> ShardedFit:
    """Infer the truth of every item of a crowd whose labels are in shards.

    The result is that of the ordinary fit up to the order in which numbers are added: the same labels, and posteriors
    within about 1e-9. Its bits depend on the labels alone.

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
    method.check_parameters()
    if labels.n_labels == 0:
        raise AnnotationError("There are no labels to fit. Check the input, and which rows were left out.")
    n_workers, n_classes = len(labels.worker_ids), len(labels.classes)
    if name != "majority-vote" or are_small_tables(n_workers, n_classes, labels.n_labels):
        check_table_size(n_workers, n_classes, PEAK_TABLES[name] + min(thread_count(), labels.n_shards))
    outcome = _FITS[name](method, labels, log)
    return outcome if log is None or not log.notes else outcome.with_note("unusable_records", " ".join(log.notes))


def method_name(method: Aggregator) -> str:
    """The name of a method that runs on shards."""
    for name in METHODS:
        if type(method) is registry.get(name):
            return name
    listed = ", ".join(METHODS)
    raise ParameterError(f"{type(method).__name__} does not run on labels in shards; {listed} do. Use one of these.")


def _fit_by_em(method: Any, labels: ShardedLabels, log: PassLog | None) -> ShardedFit:
    """A method that is EM with confusion matrices and nothing else."""
    if method.n_init != 1:
        raise ParameterError(f"Random starts need all items in memory: use n_init=1 on shards. Got {method.n_init!r}.")
    result, start = em_on_shards(method, labels, log)
    results = results_of_em(result, elementary.exp(result.log_confusion)) | method._em_results(result)
    posterior = ModelPosterior(rows_of(result.used_log_confusion, labels.n_labels), result.params.log_prior)
    if start.n_compared < start.n_labelled:
        statistics = summed_statistics(labels.run(StatisticsPass(posterior), "shards: workers"))
    else:
        statistics = _statistics_of_counts(result.final.counts, result.final.totals)
    return sharded_fit(
        method,
        labels,
        posterior,
        statistics._replace(totals=result.final.totals),
        counts=result.final.counts,
        em=result,
        results=results,
        no_redundancy=result.no_redundancy,
    )


def em_on_shards(
    method: EMAggregator, labels: ShardedLabels, log: PassLog | None
) -> tuple[ConfusionEMFit[Any], Partial]:
    """EM from the vote shares on labels in shards."""
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
    outcome = fit_pooled_on_shards(method, labels, log)
    statistics = summed_statistics(labels.run(StatisticsPass(outcome.posterior), "shards: workers"))
    if outcome.counts is not None and outcome.n_compared == outcome.n_labelled:
        statistics = _statistics_of_counts(outcome.counts, statistics.totals)
    return sharded_fit(
        method,
        labels,
        outcome.posterior,
        statistics,
        counts=outcome.counts,
        em=outcome.em,
        results=outcome.results,
        no_redundancy=outcome.n_compared == 0,
        notes=outcome.notes,
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

    Shapes: counts (n_workers, n_classes, n_classes).
    """
    notes_of_fit = _notes(labels, counts, em, no_redundancy)
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
        notes=notes_of_fit | ({} if notes is None else notes),
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
