"""Held-out log-likelihood and cross-validation over labels: how well a posterior predicts labels it has not seen.

    log sum_k p(k | the item's other labels) p(label | k, worker, item)

p(label | k, worker, item) is the confusion matrix of the worker (the common recipe), or that of the method itself where
it models more than confusion matrices. Either is a distribution over the labels and needs no ground truth, so methods
can be compared by it. Splits of labels are in `label_splits`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from manyhands import elementary
from manyhands.annotations import Annotations
from manyhands.em.e_step import expected_counts
from manyhands.em.kernels import pack
from manyhands.label_splits import hold_out as hold_out
from manyhands.label_splits import scatter_bits as scatter_bits
from manyhands.label_splits import split_items as split_items
from manyhands.label_splits import split_labels as split_labels
from manyhands.label_weights import pair_of_label
from manyhands.validation import check_known

Array = npt.NDArray[np.float64]

_PRIOR_STRENGTH = 5.0  # pseudo-counts in every row of a worker's confusion matrix, distributed as the pooled counts

# What a method's `score_kind` may be: p(label | ...) of the method itself, or the common recipe.
OWN, COMMON = "own", "confusion matrices"


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
    return mean_score(leave_one_out_log_likelihoods(training, posterior, heldout))


def leave_one_out_log_likelihoods(
    training: Annotations, posterior: Array, heldout: Annotations, label_given_truth: Array | None = None
) -> Array:
    """Held-out log-likelihood of each label given the other labels of its item.

    Parameters
    ----------
    training : Annotations
        The training labels.
    posterior : ndarray of shape (n_items, n_classes)
        Posterior of the items of `training`.
    heldout : Annotations
        Held-out labels in the codes of `training`, see `align`.
    label_given_truth : ndarray of shape (n_annotations, n_classes) or None, default=None
        log p(label | truth) of each held-out label for each possible truth; None takes confusion matrices.

    Returns
    -------
    ndarray of shape (n_annotations,)
    """
    prior = class_shares(training, posterior)
    smoothed = smooth(posterior, prior)
    row_of = {item: i for i, item in enumerate(training.item_ids.tolist())}
    row = np.array([row_of.get(item, -1) for item in heldout.item_ids.tolist()])
    known = np.where((row >= 0)[:, None], smoothed[row], prior)  # (n_items, n_classes)
    if label_given_truth is None:
        confusion = worker_confusions(training, posterior)
        label_given_truth = elementary.log(confusion)[heldout.worker, :, heldout.label]  # (n_annotations, n_classes)
    evidence = elementary.log(known)
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

    Parameters
    ----------
    log_likelihoods : ndarray of shape (n_annotations,)
        Log-likelihood of each label.
    weight : ndarray of shape (n_annotations,) or None, default=None
        Weight of each label; None is 1 each.

    Returns
    -------
    float
    """
    if weight is not None and len(log_likelihoods):
        return float(np.average(log_likelihoods, weights=weight))
    return float(np.mean(log_likelihoods)) if len(log_likelihoods) else float("nan")


def smooth(proba: Array, shares: Array) -> Array:
    """Class probabilities with one percent of class frequencies: a probability of 0 does not mean impossible.

    Parameters
    ----------
    proba : ndarray of shape (n_items, n_classes)
        Class probabilities.
    shares : ndarray of shape (n_classes,)
        Class frequencies.

    Returns
    -------
    ndarray of shape (n_items, n_classes)
    """
    return (proba + 0.01 * shares) / 1.01


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
    return mean_score(label_log_likelihoods(proba, confusion, shares, heldout))


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
    joint = (
        smooth(proba, shares)[heldout.item] * confusion[heldout.worker, :, heldout.label]
    )  # (n_annotations, n_classes)
    return np.asarray(elementary.log(joint.sum(axis=1)))


def known_workers(confusion: Array) -> npt.NDArray[np.bool_]:
    """Workers who have a label in training, from their confusion matrices: those of all others are the pooled one.

    Parameters
    ----------
    confusion : ndarray of shape (n_workers + 1, n_classes, n_classes)
        Confusion matrices of `worker_confusions`.

    Returns
    -------
    ndarray of shape (n_workers + 1,) of bool
        False for the last, which stands for unseen workers.
    """
    return np.asarray((confusion != confusion[-1]).any(axis=(1, 2)))


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
        weight=annotations.weight,
    )
