"""From labels and a posterior to the cards of all workers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from manyhands.annotations import Annotations
from manyhands.em.collusion import CollusionGroups
from manyhands.em.kernels import Array
from manyhands.em.priors import gold_codes
from manyhands.exceptions import AlignmentError, ParameterError
from manyhands.scorecards.accuracy import estimate_accuracy
from manyhands.scorecards.biases import find_bias, find_confusions
from manyhands.scorecards.cards import Scorecards
from manyhands.scorecards.copying import Couples, find_collusion_groups, find_couples
from manyhands.scorecards.informativeness import judge_knowledge
from manyhands.scorecards.leave_one_out import (
    LeaveOneOut,
    Mask,
    derive_tables,
    labels_of_others,
    leave_one_out_posterior,
)
from manyhands.scorecards.reasons import explain
from manyhands.validation import Number, check_annotations, check_memory, check_parameters

_COPIES = 6  # arrays of labels x classes held at a time


def score_workers(
    annotations: Annotations,
    posterior: Array,
    *,
    confusion: Array | None = None,
    power: float = 1.0,
    collusion_group: Mask | None = None,
    gold: Mapping[Any, Any] | None = None,
) -> Scorecards:
    """Say of every worker how far they can be trusted, how surely that is known, and what is wrong.

    Parameters
    ----------
    annotations : the crowd's labels
    posterior : (n_items, n_classes) what a method made of them
    confusion : (n_workers, n_classes, n_classes) the matrices behind the posterior (`confusion_`), so that a worker's
        own vote can be taken out of it; without them, matrices and a posterior are derived from `posterior`
    power : how far a label counts as independent in the posterior (`tempering_exponent_` of `PooledDawidSkene`)
    one_voice : (n_workers,) bool, the workers who count as one in the posterior (`collusion_group_`)
    gold : {item: class} where the truth is known

    Examples
    --------
    >>> from manyhands import PooledDawidSkene
    >>> from manyhands.simulate import make_crowd
    >>> crowd = make_crowd(bad="constant", bad_share=0.1, target=1, random_state=0)
    >>> model = PooledDawidSkene().fit(crowd.annotations)
    >>> cards = score_workers(crowd.annotations, model.posterior_, confusion=model.confusion_, power=model.power_)
    >>> cards[int(crowd.is_bad.argmax())].flags
    ('one-class',)
    """
    check_annotations(annotations)
    check_parameters("score_workers", {"power": power}, {"power": Number(above=0)})
    posterior, confusion = _check_shapes(annotations, posterior, confusion)
    nobody = np.zeros(annotations.n_workers, bool)
    members = nobody if collusion_group is None else _check_mask(annotations, collusion_group)
    codes = gold_codes(gold, annotations.item_ids, annotations.classes)
    voices = find_collusion_groups(annotations)
    if confusion is None:
        members, power = voices[0].members if voices else nobody, 1.0
        confusion, posterior = derive_tables(annotations, posterior, members, codes)
    others_posterior = leave_one_out_posterior(annotations, posterior, confusion, power, members, codes)
    in_a_voice = np.logical_or.reduce([voice.members for voice in voices], axis=0) if voices else nobody
    return _fill_in(others_posterior, power, voices, find_couples(others_posterior, confusion, in_a_voice))


def _fill_in(
    others_posterior: LeaveOneOut, power: float, voices: list[CollusionGroups], couples: Couples
) -> Scorecards:
    """All that the cards hold, from what the others say."""
    annotations = others_posterior.annotations
    n_checked = others_posterior.by_worker((others_posterior.weight > 0).astype(float))
    estimate, bias = estimate_accuracy(others_posterior, power), find_bias(others_posterior)
    flagged, partners = explain(
        others_posterior, n_checked, judge_knowledge(others_posterior, estimate.high), voices, couples
    )
    confused = find_confusions(others_posterior, estimate.mean)
    agreement, by_chance = _agreement(others_posterior)
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
        flags=tuple(tuple(reasons) for reasons in flagged),
        reasons=tuple(tuple(reasons.values()) for reasons in flagged),
        partners=tuple(partners),
    )


def _check_shapes(annotations: Annotations, posterior: Array, confusion: Array | None) -> tuple[Array, Array | None]:
    n_items, n_workers, n_classes = annotations.n_items, annotations.n_workers, annotations.n_classes
    posterior = np.asarray(posterior, float)
    if posterior.shape != (n_items, n_classes):
        raise AlignmentError(
            f"The posterior must be (items, classes) = {(n_items, n_classes)} like the annotations. "
            f"Got {posterior.shape}."
        )
    if not (np.all(posterior >= 0) and np.all(np.isfinite(posterior))):
        raise ParameterError("The posterior must hold probabilities; some of its numbers are negative or no numbers.")
    if confusion is not None and np.shape(confusion) != (n_workers, n_classes, n_classes):
        raise AlignmentError(
            f"Confusion matrices must be (workers, truth, label) = {(n_workers, n_classes, n_classes)} like the "
            f"annotations. Got {np.shape(confusion)}."
        )
    check_memory(
        8.0 * (_COPIES * annotations.n_annotations * n_classes + 3 * n_workers * n_classes**2),
        f"Scorecards of {annotations.n_annotations} labels and {n_classes} classes",
        "Score a part of the items.",
    )
    return posterior, None if confusion is None else np.asarray(confusion, float)


def _check_mask(annotations: Annotations, collusion_group: Mask) -> Mask:
    mask = np.asarray(collusion_group, bool)
    if mask.shape != (annotations.n_workers,):
        raise AlignmentError(
            f"one_voice must hold one truth value for each of the {annotations.n_workers} workers. Got {mask.shape}."
        )
    return mask


def _agreement(others_posterior: LeaveOneOut) -> tuple[Array, Array]:
    """The share of others' labels that equal a worker's, and the same with labels shuffled among the worker's items."""
    n_met = others_posterior.by_worker(others_posterior.n_others)
    habit = others_posterior.by_label(np.ones(len(others_posterior.weight)))
    habit /= np.maximum(habit.sum(axis=1, keepdims=True), 1.0)
    with np.errstate(invalid="ignore"):
        agreement = others_posterior.by_worker(others_posterior.n_equal) / n_met
        return agreement, np.sum(habit * labels_of_others(others_posterior), axis=1) / n_met
