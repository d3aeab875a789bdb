"""Held-out labels: splits and folds of labels, and how well a posterior predicts labels that it has not seen.

    log sum_k p(k | the item's other labels) p(label | k, worker, item)

p(label | k, worker, item) is the confusion matrix of the worker (the common recipe), or that of the method itself where
it models more than confusion matrices. Either is a distribution over the labels and needs no ground truth, so methods
can be compared by it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from manyhands._core import elementary
from manyhands._core.arrays import Array
from manyhands._core.encoding import scatter_bits
from manyhands.annotations import Annotations, pair_of_label
from manyhands.em.e_step import expected_counts
from manyhands.em.kernels import pack
from manyhands.validation import check_known

# ----------------------------------------------------------------------------------------------------
# Splits of labels: one held-out set for early stopping, and folds of labels or items for cross-validation.

_MIN_HELDOUT = 10  # labels; with fewer the held-out log-likelihood is mostly noise


def hold_out(
    annotations: Annotations, share: float, rng: np.random.Generator
) -> tuple[Annotations, Annotations | None]:
    """Split labels at random into training and held-out labels, for early stopping or the choice of a parameter."""
    n_heldout = round(share * annotations.n_annotations)
    if n_heldout < _MIN_HELDOUT:
        return annotations, None
    order = rng.permutation(annotations.n_annotations)
    return annotations.keep(np.sort(order[n_heldout:])), annotations.keep(np.sort(order[:n_heldout]))


def split_items(
    annotations: Annotations, n_folds: int, rng: np.random.Generator, excluded: npt.NDArray[np.bool_] | None = None
) -> npt.NDArray[np.intp]:
    """Folds for cross-validation over items: all labels of an item are in the same fold.

    Shapes: excluded (n_items,); returns (n_annotations,).
    """
    is_split = annotations.n_labels > 0 if excluded is None else (annotations.n_labels > 0) & ~excluded
    items = rng.permutation(np.flatnonzero(is_split))
    fold = np.full(annotations.n_items, -1)
    fold[items] = np.arange(len(items)) % n_folds
    return fold[annotations.item]


def split_labels(annotations: Annotations, n_folds: int) -> npt.NDArray[np.int64]:
    """Folds for cross-validation over labels: the labels of one item are in different folds where possible.

    The folds depend on the pattern of the labels alone, not on names, codes, a seed or the order of rows, so that a
    method that uses cross-validation is invariant to renaming.

    Shapes: returns (n_annotations,).
    """
    if annotations.weight is not None:  # all labels of one worker on one item are one vote
        votes = split_labels(annotations.strongest_labels(), n_folds)
        return votes[pair_of_label(annotations.item, annotations.worker)]
    mark = _fingerprints(annotations)
    rank = _rank_in_item(annotations, mark)
    first = np.zeros(annotations.n_items, np.uint64)  # first fold of each item, a hash of its labels
    np.add.at(first, annotations.item, mark)
    first_fold = (scatter_bits(first) % np.uint64(n_folds)).astype(np.int64)
    return np.asarray((first_fold[annotations.item] + rank) % n_folds)


_MAX_COMPARISONS = 16  # per label: with so many it is faster to compare all labels of an item than to sort them


def _rank_in_item(annotations: Annotations, mark: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    """The rank of each label among those of its item by its mark, then by its position; shape (n_annotations,).

    Shapes: mark (n_annotations,).
    """
    n_labels = annotations.n_labels
    nth = np.arange(len(mark)) - np.repeat(annotations.start[:-1], n_labels)
    most = int(n_labels.max(initial=0))
    if most * most * annotations.n_items > _MAX_COMPARISONS * len(mark):
        order, rank = np.lexsort((mark, annotations.item)), np.empty(len(mark), np.int64)
        rank[order] = nth
        return rank
    padded = np.full((most, annotations.n_items), np.iinfo(np.uint64).max)
    padded[nth, annotations.item] = mark
    ranks = np.zeros(padded.shape, np.int64)
    for i, one in enumerate(padded):
        for j, other in enumerate(padded):
            ranks[i] += other <= one if j < i else other < one
    return ranks[nth, annotations.item]


def _fingerprints(annotations: Annotations, rounds: int = 3) -> npt.NDArray[np.uint64]:
    """A hash of each label and its neighbourhood, shape (n_annotations,), invariant to renaming.

    Colour refinement on the bipartite graph of items and workers: in each round, the colour of an item is computed from
    the colours of its workers and of the classes they named, the colour of a worker from those of their items. Three
    rounds reach the workers of the items of an item's workers, which tell most labels apart. Sums are taken modulo
    2^64, so their order does not matter.
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


# ----------------------------------------------------------------------------------------------------
# The log-likelihood of held-out labels, by confusion matrices from a posterior or by the method itself.

# A choice of ours that all methods share, so that scores are comparable: a worker with five labels of a class counts
# as much as the crowd.
_PRIOR_STRENGTH = 5.0  # pseudo-counts in every row of a worker's confusion matrix, distributed as the pooled counts

# What a method's `score_kind` may be: p(label | ...) of the method itself, or the common recipe.
OWN, COMMON = "own", "confusion matrices"


def worker_confusions(annotations: Annotations, posterior: Array, strength: float = _PRIOR_STRENGTH) -> Array:
    """Confusion matrices of all workers from a posterior, shrunk toward the pooled one.

    Shapes: posterior (n_items, n_classes); returns (n_workers + 1, n_classes, n_classes).
    """
    n_classes = annotations.n_classes
    counts = expected_counts(pack(annotations), posterior)
    pooled = counts.sum(axis=0) + 1.0 / n_classes  # (truth, label)
    pooled /= pooled.sum(axis=1, keepdims=True)
    counts = np.concatenate([counts, np.zeros((1, n_classes, n_classes))]) + strength * pooled
    return counts / counts.sum(axis=2, keepdims=True)


def leave_one_out_log_likelihoods(
    training: Annotations, posterior: Array, heldout: Annotations, label_given_truth: Array | None = None
) -> Array:
    """Held-out log-likelihood of each label given the other labels of its item.

    Shapes: posterior (n_items, n_classes); label_given_truth (n_annotations, n_classes); returns (n_annotations,).
    """
    prior = class_shares(training, posterior)
    smoothed = smooth(posterior, prior)
    row_of = {item: i for i, item in enumerate(training.item_ids.tolist())}
    row = np.array([row_of.get(item, -1) for item in heldout.item_ids.tolist()])
    before = np.where((row >= 0)[:, None], smoothed[row], prior)  # (n_items, n_classes)
    if label_given_truth is None:
        confusion = worker_confusions(training, posterior)
        label_given_truth = elementary.log(confusion)[heldout.worker, :, heldout.label]  # (n_annotations, n_classes)
    evidence = elementary.log(before)
    if heldout.weight is not None:
        return _weighted_log_likelihoods(evidence, heldout, label_given_truth)
    np.add.at(evidence, heldout.item, label_given_truth)
    others = evidence[heldout.item] - label_given_truth  # (n_annotations, n_classes), unnormalised
    log_total = np.logaddexp.reduce(others, axis=1)
    return np.asarray(np.logaddexp.reduce(others + label_given_truth, axis=1) - log_total)


def _weighted_log_likelihoods(evidence: Array, heldout: Annotations, label_given_truth: Array) -> Array:
    """The same for labels with weights; no label of the same worker on the item is evidence."""
    assert heldout.weight is not None
    weighted = heldout.weight[:, None] * label_given_truth
    np.add.at(evidence, heldout.item, weighted)
    pair = pair_of_label(heldout.item, heldout.worker)
    own = np.zeros((int(pair.max(initial=-1)) + 1, evidence.shape[1]))
    np.add.at(own, pair, weighted)
    others = evidence[heldout.item] - own[pair]
    log_total = np.logaddexp.reduce(others, axis=1)
    return np.asarray(np.logaddexp.reduce(others + label_given_truth, axis=1) - log_total)


def mean_score(log_likelihoods: Array, weight: Array | None = None) -> float:
    """Mean of the log-likelihoods of labels; NaN without any.

    Shapes: log_likelihoods (n_annotations,); weight (n_annotations,).
    """
    if weight is not None and len(log_likelihoods):
        return float(np.average(log_likelihoods, weights=weight))
    return float(np.mean(log_likelihoods)) if len(log_likelihoods) else float("nan")


# Weight of the class frequencies beside a posterior of weight 1: a probability of 0 does not mean impossible. Ours.
_FREQUENCY_WEIGHT = 0.01


def smooth(proba: Array, shares: Array) -> Array:
    """Class probabilities mixed with a hundredth of the class frequencies.

    Shapes: proba (n_items, n_classes); shares (n_classes,); returns (n_items, n_classes).
    """
    return (proba + _FREQUENCY_WEIGHT * shares) / (1 + _FREQUENCY_WEIGHT)


def predictive_log_likelihood(proba: Array, confusion: Array, shares: Array, heldout: Annotations) -> float:
    """Mean held-out log-likelihood of labels under a classifier, which sees no labels of the items.

        mean of log sum_k p(k | x) confusion[worker, k, label]

    Shapes: proba (n_items, n_classes); confusion (n_workers + 1, n_classes, n_classes); shares (n_classes,).
    """
    return mean_score(label_log_likelihoods(proba, confusion, shares, heldout))


def label_log_likelihoods(proba: Array, confusion: Array, shares: Array, heldout: Annotations) -> Array:
    """Held-out log-likelihood of each label under a classifier; its mean is `predictive_log_likelihood`.

    Shapes: proba (n_items, n_classes); confusion (n_workers + 1, n_classes, n_classes); shares (n_classes,); returns
    (n_annotations,).
    """
    joint = (
        smooth(proba, shares)[heldout.item] * confusion[heldout.worker, :, heldout.label]
    )  # (n_annotations, n_classes)
    return np.asarray(elementary.log(joint.sum(axis=1)))


def known_workers(confusion: Array) -> npt.NDArray[np.bool_]:
    """Workers who have a label in training, from their confusion matrices: those of all others are the pooled one.

    Shapes: confusion (n_workers + 1, n_classes, n_classes); returns (n_workers + 1,).
    """
    return np.asarray((confusion != confusion[-1]).any(axis=(1, 2)))


def class_shares(annotations: Annotations, posterior: Array) -> Array:
    """Class frequencies among labelled items, with one pseudo-item of each class.

    Shapes: posterior (n_items, n_classes); returns (n_classes,).
    """
    totals = posterior[annotations.n_labels > 0].sum(axis=0) + 1.0
    return np.asarray(totals / totals.sum())


def align(annotations: Annotations, worker_ids: npt.NDArray[Any], classes: npt.NDArray[Any], who: str) -> Annotations:
    """Annotations in the codes of a fitted model, with one additional worker for all unseen ones.

    Shapes: worker_ids (n_workers,); classes (n_classes,).
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
        weight=annotations.weight,
    )
