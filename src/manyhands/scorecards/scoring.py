"""From labels and a posterior to the quality reports of all workers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from manyhands.annotations import Annotations
from manyhands.em.collusion import CollusionGroups
from manyhands.em.kernels import Array
from manyhands.em.priors import gold_codes
from manyhands.exceptions import AlignmentError, ParameterError
from manyhands.progress import report
from manyhands.progress_display import showing
from manyhands.scorecards.accuracy import estimate_accuracy
from manyhands.scorecards.biases import expected_counts, find_bias, find_confusions
from manyhands.scorecards.cards import Scorecards
from manyhands.scorecards.copying import CopyingPairs, find_copying_pairs, find_groups
from manyhands.scorecards.informativeness import assess_informativeness
from manyhands.scorecards.leave_one_out import (
    LeaveOneOut,
    Mask,
    derive_tables,
    labels_of_others,
    leave_one_out_posterior,
    posterior_of_tables,
)
from manyhands.scorecards.reasons import explain, explain_time
from manyhands.scorecards.recall import estimate_recall
from manyhands.scorecards.seconds_per_label import WorkingTime, summarise_time
from manyhands.validation import Number, check_annotations, check_memory, check_parameters

_STEPS = 4  # that progress is reported of
_ARRAYS = 6  # arrays of annotations x classes held at a time


def score_workers(
    annotations: Annotations | Any,
    posterior: Array,
    *,
    confusion: Array | None = None,
    tempering_exponent: float = 1.0,
    collusion_group: Mask | None = None,
    gold: Mapping[Any, Any] | None = None,
    working_time: Mapping[Any, Any] | None = None,
    verbose: int = 1,
) -> Scorecards:
    """Make a quality report for each worker: accuracy with a 95% interval, class bias, confusions and flags.

    Every worker is evaluated by the leave-one-out posterior, in which their own labels have no part. Errors that most
    of the crowd makes together cannot be found in this way; only gold shows them.

    Parameters
    ----------
    annotations : Annotations or data frame
        The crowd's labels; of labels with weights, the strongest one of each worker and item.
    posterior : ndarray of shape (n_items, n_classes)
        Posterior of the truth of each item, of any method (``posterior_``).
    confusion : ndarray of shape (n_workers, n_classes, n_classes), default=None
        Confusion matrices [worker, truth, label] behind the posterior (``confusion_``), from which a worker's own
        labels are removed. Without them, confusion matrices and a new posterior are derived from `posterior`.
    tempering_exponent : float, default=1.0
        Exponent of the labels' likelihood in the posterior (``tempering_exponent_`` of ``PooledDawidSkene``); below 1
        if labels are not independent given the truth. Not used without `confusion`.
    collusion_group : ndarray of bool of shape (n_workers,), default=None
        Workers whose labels count once in the posterior (``collusion_group_``). Not used without `confusion`.
    gold : dict, default=None
        ``{item: class}`` where the truth is known; takes precedence over all labels.
    working_time : mapping of object to sequence of float, default=None
        ``{worker: seconds of their labels}``, where known (``Reading.working_time``).
    verbose : {0, 1}, default=1
        1 shows a progress bar in a terminal or notebook after two seconds, 0 does not.

    Returns
    -------
    Scorecards
        One report for each worker, also for workers without labels.

    Raises
    ------
    AlignmentError
        If an array does not have the shape that the annotations require.
    ParameterError
        If the posterior holds no probabilities, or a working time is not a number of at least 0.
    LimitError
        If the arrays would not fit into memory.

    Examples
    --------
    >>> from manyhands import PooledDawidSkene
    >>> from manyhands.simulate import make_crowd
    >>> crowd = make_crowd(bad="constant", bad_share=0.1, target=1, random_state=0)
    >>> model = PooledDawidSkene().fit(crowd.annotations)
    >>> cards = score_workers(
    ...     crowd.annotations,
    ...     model.posterior_,
    ...     confusion=model.confusion_,
    ...     tempering_exponent=model.tempering_exponent_,
    ... )
    >>> cards[int(crowd.is_bad.argmax())].flags
    ('one-class',)
    """
    annotations = check_annotations(annotations, takes_weights=True).strongest_labels()
    check_parameters(
        "score_workers", {"tempering_exponent": tempering_exponent}, {"tempering_exponent": Number(above=0)}
    )
    posterior, confusion = _check_shapes(annotations, posterior, confusion)
    given = annotations, posterior
    if annotations._sorting_order is not None:  # the same bits in every order of the items
        posterior, annotations = posterior[annotations._sorting_order], annotations._with_sorted_items()
    no_worker = np.zeros(annotations.n_workers, bool)
    members = no_worker if collusion_group is None else _check_mask(annotations, collusion_group)
    codes = gold_codes(gold, annotations.item_ids, annotations.classes)
    time = summarise_time(working_time, annotations.worker_ids)
    with showing(verbose):
        report(0, _STEPS, "scorecards")
        groups = find_groups(annotations)
        report(1, _STEPS, "scorecards")
        if confusion is None:
            members, tempering_exponent = groups[0].members if groups else no_worker, 1.0
            confusion, posterior = derive_tables(annotations, posterior, members, codes)
        else:
            posterior = posterior_of_tables(annotations, posterior, confusion, tempering_exponent, members)
        loo = leave_one_out_posterior(annotations, posterior, confusion, tempering_exponent, members, codes)
        report(2, _STEPS, "scorecards")
        in_group = np.logical_or.reduce([group.members for group in groups], axis=0) if groups else no_worker
        pairs = find_copying_pairs(loo, confusion, in_group)
        report(3, _STEPS, "scorecards")
        cards = _make_cards(loo, tempering_exponent, groups, pairs, time)
    return replace(cards, annotations=given[0], posterior=given[1])


def _make_cards(
    loo: LeaveOneOut,
    tempering_exponent: float,
    groups: list[CollusionGroups],
    pairs: CopyingPairs,
    time: WorkingTime,
) -> Scorecards:
    """All columns of the reports, from the leave-one-out posterior."""
    annotations = loo.annotations
    n_checked = loo.by_worker((loo.weight > 0).astype(float))
    estimate, bias = estimate_accuracy(loo, tempering_exponent), find_bias(loo)
    copies = np.isin(np.arange(annotations.n_workers), [w for group in groups for w in np.flatnonzero(group.members)])
    found, crowd = assess_informativeness(loo, estimate.high, tempering_exponent, copies)
    flagged, partners = explain(loo, n_checked, found, crowd, groups, pairs)
    explain_time(flagged, time)
    counts = expected_counts(loo, estimate.mean)
    confused, recall = find_confusions(counts), estimate_recall(counts, estimate.mean)
    agreement, by_chance = _agreement(loo)
    return Scorecards(
        worker_ids=annotations.worker_ids,
        classes=annotations.classes,
        n_labels=np.bincount(annotations.worker, minlength=annotations.n_workers),
        n_checked=n_checked.astype(np.int64),
        accuracy=estimate.mean,
        accuracy_low=estimate.low,
        accuracy_high=estimate.high,
        agreement=agreement,
        agreement_by_chance=by_chance,
        bias_class=bias.code,
        bias=bias.excess,
        confused_truth=confused.truth,
        confused_label=confused.label,
        confused_count=confused.n_labels,
        confused_rate=confused.rate,
        recall=recall.mean,
        recall_low=recall.low,
        recall_high=recall.high,
        recall_items=recall.n_items,
        n_timed=time.n_timed,
        median_seconds=time.median,
        crowd_median_seconds=time.crowd_median,
        flags=tuple(tuple(reasons) for reasons in flagged),
        reasons=tuple(tuple(reasons.values()) for reasons in flagged),
        partners=tuple(partners),
        frame_library=annotations.frame_library,
    )


def _check_shapes(annotations: Annotations, posterior: Array, confusion: Array | None) -> tuple[Array, Array | None]:
    n_items, n_workers, n_classes = annotations.n_items, annotations.n_workers, annotations.n_classes
    posterior = np.asarray(posterior, float)
    if posterior.shape != (n_items, n_classes):
        raise AlignmentError(
            f"The posterior must have shape (items, classes) = {(n_items, n_classes)} like the annotations. "
            f"Got {posterior.shape}."
        )
    if not (np.all(posterior >= 0) and np.all(np.isfinite(posterior))):
        raise ParameterError(
            "The posterior must hold probabilities; some of its numbers are negative, infinite or NaN."
        )
    if confusion is not None and np.shape(confusion) != (n_workers, n_classes, n_classes):
        raise AlignmentError(
            f"Confusion matrices must have shape (workers, truth, label) = {(n_workers, n_classes, n_classes)} like "
            f"the annotations. Got {np.shape(confusion)}."
        )
    check_memory(
        8.0 * (_ARRAYS * annotations.n_annotations * n_classes + 5 * n_workers * n_classes**2),
        f"Scorecards of {annotations.n_annotations} labels and {n_classes} classes",
        "Score a part of the items at a time.",
    )
    return posterior, None if confusion is None else np.asarray(confusion, float)


def _check_mask(annotations: Annotations, collusion_group: Mask) -> Mask:
    mask = np.asarray(collusion_group, bool)
    if mask.shape != (annotations.n_workers,):
        raise AlignmentError(
            f"collusion_group must hold one boolean for each of the {annotations.n_workers} workers. "
            f"Got shape {mask.shape}."
        )
    return mask


def _agreement(loo: LeaveOneOut) -> tuple[Array, Array]:
    """Share of others' labels that equal a worker's, and the same with labels shuffled among the worker's items."""
    n_met = loo.by_worker(loo.n_others)
    label_share = loo.by_label(np.ones(len(loo.weight)))
    label_share /= np.maximum(label_share.sum(axis=1, keepdims=True), 1.0)
    with np.errstate(invalid="ignore"):
        agreement = loo.by_worker(loo.n_equal) / n_met
        return agreement, np.sum(label_share * labels_of_others(loo), axis=1) / n_met
