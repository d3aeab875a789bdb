"""How well a posterior foretells labels it has not seen: one recipe for every method, and no truth in it.

log sum_k p(k | the item's other labels) confusion[worker, k, label]
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from manyhands import elementary
from manyhands.annotations import Annotations
from manyhands.em.e_step import expected_counts
from manyhands.em.kernels import pack
from manyhands.validation import check_known

Array = npt.NDArray[np.float64]

_MIN_HELDOUT = 10  # labels; fewer stop a training by chance
_PRIOR_STRENGTH = 5.0  # labels that the crowd's habit is worth, in every row of a worker's confusion matrix


def worker_confusions(annotations: Annotations, posterior: Array, strength: float = _PRIOR_STRENGTH) -> Array:
    """(n_workers + 1, n_classes, n_classes): each worker's rows, shrunk toward the crowd's; last, the crowd's own."""
    n_classes = annotations.n_classes
    counts = expected_counts(pack(annotations), posterior)
    pooled = counts.sum(axis=0) + 1.0 / n_classes  # (truth, label)
    pooled /= pooled.sum(axis=1, keepdims=True)
    counts = np.concatenate([counts, np.zeros((1, n_classes, n_classes))]) + strength * pooled
    return counts / counts.sum(axis=2, keepdims=True)


def heldout_log_likelihood(training: Annotations, posterior: Array, heldout: Annotations) -> float:
    """Mean log-likelihood of the labels in `heldout`, which speaks in the codes of `training`.

    An item that was in training starts from its posterior, another one from the class frequencies; the other
    held-out labels of the item are evidence too. Worker code `training.n_workers` is a worker never seen.
    """
    if heldout.n_annotations == 0:
        return float("nan")
    confusion = worker_confusions(training, posterior)
    prior = class_shares(training, posterior)
    smoothed = (posterior + 0.01 * prior) / 1.01  # a vote share of 0 is not an impossibility
    row_of = {item: i for i, item in enumerate(training.item_ids.tolist())}
    row = np.array([row_of.get(item, -1) for item in heldout.item_ids.tolist()])
    known = np.where((row >= 0)[:, None], smoothed[row], prior)  # (n_items, n_classes)
    label_given_truth = elementary.log(confusion)[heldout.worker, :, heldout.label]  # (n_annotations, n_classes)
    evidence = elementary.log(known)
    np.add.at(evidence, heldout.item, label_given_truth)
    others = evidence[heldout.item] - label_given_truth  # (n_annotations, n_classes), unnormalised
    log_total = np.logaddexp.reduce(others, axis=1)
    return float(np.mean(np.logaddexp.reduce(others + label_given_truth, axis=1) - log_total))


def predictive_log_likelihood(proba: Array, confusion: Array, shares: Array, heldout: Annotations) -> float:
    """Mean of log sum_k p(k | x) confusion[worker, k, label]: the recipe for a classifier, who sees no other labels.

    `proba` (n_items, n_classes) is about the items of `heldout`, whose last worker code is one never seen;
    `confusion` is that of `worker_confusions`, and `shares` the class frequencies in training.
    """
    if heldout.n_annotations == 0:
        return float("nan")
    return float(np.mean(predicted(proba, confusion, shares, heldout)))


def predicted(proba: Array, confusion: Array, shares: Array, heldout: Annotations) -> Array:
    """(n_annotations,) the log-likelihood of each label, whose mean is `heldout_log_likelihood`."""
    smoothed = (proba + 0.01 * shares) / 1.01
    joint = smoothed[heldout.item] * confusion[heldout.worker, :, heldout.label]  # (n_annotations, n_classes)
    return np.asarray(elementary.log(joint.sum(axis=1)))


def class_shares(annotations: Annotations, posterior: Array) -> Array:
    """(n_classes,) the class frequencies among labelled items, with one more item of each class."""
    totals = posterior[annotations.n_labels > 0].sum(axis=0) + 1.0
    return np.asarray(totals / totals.sum())


def align(annotations: Annotations, worker_ids: npt.NDArray[Any], classes: npt.NDArray[Any], who: str) -> Annotations:
    """These annotations in the codes of these workers and classes, with one more worker for all others.

    `who` was fitted with them: the name stands in the sentence that refuses a class it does not know.
    """
    worker_of = {worker: w for w, worker in enumerate(worker_ids.tolist())}
    class_of = {value: k for k, value in enumerate(classes.tolist())}
    values = annotations.classes.tolist()
    used = [values[k] for k in np.unique(annotations.label)]
    check_known(used, class_of, "Classes", f"This {who} was fitted without them; fit it again.")
    worker = np.array([worker_of.get(worker, len(worker_of)) for worker in annotations.worker_ids.tolist()], int)
    label = np.array([class_of.get(value, 0) for value in values], int)
    return Annotations(
        annotations.item,
        worker[annotations.worker],
        label[annotations.label],
        item_ids=annotations.item_ids,
        worker_ids=np.arange(len(worker_of) + 1),
        classes=classes,
    )


def hold_out(
    annotations: Annotations, share: float, rng: np.random.Generator
) -> tuple[Annotations, Annotations | None]:
    """Labels to learn from, and this share of them for a choice or a stop rule; None where that is under ten."""
    n_heldout = round(share * annotations.n_annotations)
    if n_heldout < _MIN_HELDOUT:
        return annotations, None
    order = rng.permutation(annotations.n_annotations)
    return annotations.keep(np.sort(order[n_heldout:])), annotations.keep(np.sort(order[:n_heldout]))


def split_items(
    annotations: Annotations, n_folds: int, rng: np.random.Generator, excluded: npt.NDArray[np.bool_] | None = None
) -> npt.NDArray[np.intp]:
    """(n_annotations,) a fold for each label, all labels of an item in the same one.

    The labels of items that are `excluded` have no fold: they get -1.
    """
    is_split = annotations.n_labels > 0 if excluded is None else (annotations.n_labels > 0) & ~excluded
    items = rng.permutation(np.flatnonzero(is_split))
    fold = np.full(annotations.n_items, -1)
    fold[items] = np.arange(len(items)) % n_folds
    return fold[annotations.item]


def split_labels(annotations: Annotations, n_folds: int) -> npt.NDArray[np.int64]:
    """(n_annotations,) a fold for each label; the labels of one item fall into different folds where they can.

    The folds depend on the pattern of the labels alone, not on names, codes or the order of rows, so that a method
    that holds labels out is as blind to renaming as any other.
    """
    mark = _fingerprints(annotations)
    order = np.lexsort((mark, annotations.item))
    rank = np.arange(len(order)) - np.repeat(annotations.start[:-1], annotations.n_labels)
    first = np.zeros(annotations.n_items, np.uint64)  # an item's first fold: drawn from what is on it
    np.add.at(first, annotations.item, mark)
    fold = np.empty(len(order), np.int64)
    fold[order] = ((scatter_bits(first) % np.uint64(n_folds)).astype(np.int64)[annotations.item] + rank) % n_folds
    return fold


def _fingerprints(annotations: Annotations, rounds: int = 3) -> npt.NDArray[np.uint64]:
    """(n_annotations,) a number that two labels share only where their surroundings look alike.

    Colour refinement on the graph of items and workers: each round, an item's colour is made from the colours of
    its workers and of the classes they named, a worker's from those of his items. Sums are taken modulo 2^64, so
    their order does not matter.
    """
    item, worker, label = annotations.item, annotations.worker, annotations.label
    class_colour = scatter_bits(np.bincount(label, minlength=annotations.n_classes).astype(np.uint64))
    item_colour = scatter_bits(annotations.n_labels.astype(np.uint64))
    worker_colour = scatter_bits(np.bincount(worker, minlength=annotations.n_workers).astype(np.uint64))
    for _ in range(rounds):
        new_item, new_worker = np.zeros_like(item_colour), np.zeros_like(worker_colour)
        np.add.at(new_item, item, scatter_bits(worker_colour[worker] ^ class_colour[label]))
        np.add.at(new_worker, worker, scatter_bits(item_colour[item] + class_colour[label]))
        item_colour, worker_colour = scatter_bits(new_item), scatter_bits(new_worker)
    return scatter_bits(item_colour[item] + scatter_bits(worker_colour[worker] ^ class_colour[label]))


def scatter_bits(x: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Scatter 64-bit numbers (the finaliser of SplitMix64)."""
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
