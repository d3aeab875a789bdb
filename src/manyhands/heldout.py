"""Held-out log-likelihood and cross-validation over labels: how well a posterior predicts labels it has not seen.

    log sum_k p(k | the item's other labels) confusion[worker, k, label]

The computation is the same for every method and needs no ground truth, so methods can be compared by it. Splits:
`hold_out` for one held-out set (early stopping), `split_labels` and `split_items` for the folds of cross-validation.
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

_MIN_HELDOUT = 10  # labels; with fewer the held-out log-likelihood is mostly noise
_PRIOR_STRENGTH = 5.0  # pseudo-counts in every row of a worker's confusion matrix, distributed as the pooled counts


def worker_confusions(annotations: Annotations, posterior: Array, strength: float = _PRIOR_STRENGTH) -> Array:
    """Confusion matrices of all workers from a posterior, shrunk toward the pooled one.

    Parameters
    ----------
    annotations : Annotations
        The training labels.
    posterior : ndarray of shape (n_items, n_classes)
        p(truth) of every item.
    strength : float, default=5.0
        Pseudo-counts in every row, distributed as the pooled counts are.

    Returns
    -------
    ndarray of shape (n_workers + 1, n_classes, n_classes)
        Indexed [worker, truth, label]; rows sum to 1. The last matrix is the pooled one, for unseen workers.
    """
    n_classes = annotations.n_classes
    counts = expected_counts(pack(annotations), posterior)
    pooled = counts.sum(axis=0) + 1.0 / n_classes  # (truth, label)
    pooled /= pooled.sum(axis=1, keepdims=True)
    counts = np.concatenate([counts, np.zeros((1, n_classes, n_classes))]) + strength * pooled
    return counts / counts.sum(axis=2, keepdims=True)


def heldout_log_likelihood(training: Annotations, posterior: Array, heldout: Annotations) -> float:
    """Mean held-out log-likelihood of labels, given the posterior of the training labels.

    An item of the training set starts from its posterior, another one from the class frequencies; the other held-out
    labels of the item are evidence too (leave-one-out within the held-out set).

    Parameters
    ----------
    training : Annotations
        The training labels.
    posterior : ndarray of shape (n_items, n_classes)
        Posterior of the items of `training`.
    heldout : Annotations
        Held-out labels in the codes of `training`, see `align`; the worker code `training.n_workers` is an unseen
        worker.

    Returns
    -------
    float
        Mean over the held-out labels, higher is better; NaN without any.
    """
    if heldout.n_annotations == 0:
        return float("nan")
    confusion = worker_confusions(training, posterior)
    prior = class_shares(training, posterior)
    smoothed = (posterior + 0.01 * prior) / 1.01  # a vote share of 0 does not mean that the class is impossible
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
    """Mean held-out log-likelihood of labels under a classifier, which sees no labels of the items.

        mean of log sum_k p(k | x) confusion[worker, k, label]

    Parameters
    ----------
    proba : ndarray of shape (n_items, n_classes)
        Class probabilities of the items of `heldout`.
    confusion : ndarray of shape (n_workers + 1, n_classes, n_classes)
        Confusion matrices of `worker_confusions`.
    shares : ndarray of shape (n_classes,)
        Class frequencies in training, for smoothing.
    heldout : Annotations
        Held-out labels; the last worker code is an unseen worker.

    Returns
    -------
    float
        Mean over the held-out labels, higher is better; NaN without any.
    """
    if heldout.n_annotations == 0:
        return float("nan")
    return float(np.mean(label_log_likelihoods(proba, confusion, shares, heldout)))


def label_log_likelihoods(proba: Array, confusion: Array, shares: Array, heldout: Annotations) -> Array:
    """Held-out log-likelihood of each label under a classifier; its mean is `predictive_log_likelihood`.

    Parameters
    ----------
    proba : ndarray of shape (n_items, n_classes)
        Class probabilities of the items of `heldout`.
    confusion : ndarray of shape (n_workers + 1, n_classes, n_classes)
        Confusion matrices of `worker_confusions`.
    shares : ndarray of shape (n_classes,)
        Class frequencies in training, for smoothing.
    heldout : Annotations
        Held-out labels; the last worker code is an unseen worker.

    Returns
    -------
    ndarray of shape (n_annotations,)
    """
    smoothed = (proba + 0.01 * shares) / 1.01
    joint = smoothed[heldout.item] * confusion[heldout.worker, :, heldout.label]  # (n_annotations, n_classes)
    return np.asarray(elementary.log(joint.sum(axis=1)))


def class_shares(annotations: Annotations, posterior: Array) -> Array:
    """Class frequencies among labelled items, with one pseudo-item of each class.

    Parameters
    ----------
    annotations : Annotations
        The labels.
    posterior : ndarray of shape (n_items, n_classes)
        p(truth) of every item.

    Returns
    -------
    ndarray of shape (n_classes,)
        Sums to 1.
    """
    totals = posterior[annotations.n_labels > 0].sum(axis=0) + 1.0
    return np.asarray(totals / totals.sum())


def align(annotations: Annotations, worker_ids: npt.NDArray[Any], classes: npt.NDArray[Any], who: str) -> Annotations:
    """Annotations in the codes of a fitted model, with one additional worker for all unseen ones.

    Parameters
    ----------
    annotations : Annotations
        Labels in codes of their own.
    worker_ids : ndarray of shape (n_workers,)
        Workers of the model.
    classes : ndarray of shape (n_classes,)
        Classes of the model.
    who : str
        Name of the model, for error messages.

    Returns
    -------
    Annotations
        The same items and labels; the worker code `n_workers` stands for all unseen workers.

    Raises
    ------
    AnnotationError
        Where a label is not among the classes.
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
    """Split labels at random into a training set and a held-out set, for early stopping or the choice of a parameter.

    Parameters
    ----------
    annotations : Annotations
        The labels.
    share : float
        Share of the labels to hold out.
    rng : numpy.random.Generator
        Source of the split.

    Returns
    -------
    training : Annotations
        Labels to train on.
    heldout : Annotations or None
        Held-out labels; None where there would be fewer than ten.
    """
    n_heldout = round(share * annotations.n_annotations)
    if n_heldout < _MIN_HELDOUT:
        return annotations, None
    order = rng.permutation(annotations.n_annotations)
    return annotations.keep(np.sort(order[n_heldout:])), annotations.keep(np.sort(order[:n_heldout]))


def split_items(
    annotations: Annotations, n_folds: int, rng: np.random.Generator, excluded: npt.NDArray[np.bool_] | None = None
) -> npt.NDArray[np.intp]:
    """Folds for cross-validation over items: all labels of an item are in the same fold.

    Parameters
    ----------
    annotations : Annotations
        The labels.
    n_folds : int
        Number of folds.
    rng : numpy.random.Generator
        Source of the split.
    excluded : ndarray of shape (n_items,) of bool, default=None
        Items whose labels get no fold.

    Returns
    -------
    ndarray of shape (n_annotations,) of int
        Fold of each label, -1 for labels of excluded items.
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

    Parameters
    ----------
    annotations : Annotations
        The labels.
    n_folds : int
        Number of folds.

    Returns
    -------
    ndarray of shape (n_annotations,) of int
        Fold of each label.
    """
    mark = _fingerprints(annotations)
    order = np.lexsort((mark, annotations.item))
    rank = np.arange(len(order)) - np.repeat(annotations.start[:-1], annotations.n_labels)
    first = np.zeros(annotations.n_items, np.uint64)  # first fold of each item, a hash of its labels
    np.add.at(first, annotations.item, mark)
    fold = np.empty(len(order), np.int64)
    fold[order] = ((scatter_bits(first) % np.uint64(n_folds)).astype(np.int64)[annotations.item] + rank) % n_folds
    return fold


def _fingerprints(annotations: Annotations, rounds: int = 3) -> npt.NDArray[np.uint64]:
    """A hash of each label and its neighbourhood, shape (n_annotations,), invariant to renaming.

    Colour refinement on the bipartite graph of items and workers: in each round, the colour of an item is computed from
    the colours of its workers and of the classes they named, the colour of a worker from those of their items. Sums are
    taken modulo 2^64, so their order does not matter.
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
    """Hash 64-bit numbers (the finaliser of SplitMix64).

    Parameters
    ----------
    x : ndarray of uint64
        Numbers.

    Returns
    -------
    ndarray of uint64
    """
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
