"""Class bias of each worker, and the classes that each worker confuses most often."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from manyhands.em.kernels import Array
from manyhands.scorecards.leave_one_out import LeaveOneOut

MIN_Z = 3.0  # standard deviations from which a class counts as over-used
MIN_COUNT = 2.0  # expected labels from which a confusion is listed
MOST_CONFUSIONS = 3

Codes = npt.NDArray[np.intp]


class Bias(NamedTuple):
    """The class that each worker over-uses most.

    Attributes
    ----------
    code : ndarray of int of shape (n_workers,)
        Code of the over-used class; -1 where no class is over-used significantly.
    excess : ndarray of shape (n_workers,)
        Share of labels of this class minus its expected share among the worker's items; 0 without such a class.
    z : ndarray of shape (n_workers,)
        The largest surplus of a class in standard deviations.
    """

    code: Codes
    excess: Array
    z: Array


class Confusions(NamedTuple):
    """The most frequent confusions of each worker, in descending order of their expected count.

    Attributes
    ----------
    truth : ndarray of int of shape (n_workers, 3)
        Code of the true class; -1 where there are fewer confusions.
    label : ndarray of int of shape (n_workers, 3)
        Code of the label given in its place; -1 where there are fewer.
    n_labels : ndarray of shape (n_workers, 3)
        Expected number of such labels; 0 where there are fewer.
    rate : ndarray of shape (n_workers, 3)
        Share of the worker's items of this true class that got this label; 0 where there are fewer.
    """

    truth: Codes
    label: Codes
    n_labels: Array
    rate: Array


def find_bias(loo: LeaveOneOut) -> Bias:
    """Find the class that each worker uses more often than it occurs among their items.

    The surplus of a class is the number of labels of this class minus the expected number of items of this class under
    the leave-one-out posterior. As in McNemar's test, its variance counts only labels that differ from the truth:
    right labels are no evidence of a preference.

    Parameters
    ----------
    loo : LeaveOneOut
        Leave-one-out posterior of the truth of each label.

    Returns
    -------
    Bias
        The class with the largest surplus in standard deviations, for each worker.

    References
    ----------
    McNemar (1947), "Note on the sampling error of the difference between correlated proportions or percentages".
    """
    n_checked = np.maximum(loo.used.sum(axis=1), 1e-12)[:, None]
    surplus = loo.used - loo.met
    label = loo.annotations.label
    square = [loo.by_worker(loo.weight * ((label == k) - column) ** 2) for k, column in enumerate(loo.truth.T)]
    z = surplus / np.sqrt(np.stack(square, axis=1) + 1.0)
    top = z.argmax(axis=1)[:, None]
    most = np.take_along_axis(z, top, axis=1)[:, 0]
    excess = np.take_along_axis(surplus / n_checked, top, axis=1)[:, 0]
    is_biased = most >= MIN_Z
    return Bias(np.where(is_biased, top[:, 0], -1), np.where(is_biased, excess, 0.0), most)


def expected_counts(loo: LeaveOneOut, accuracy: Array) -> Array:
    """Count the labels of each worker by truth and label.

    The truth of a labelled item has the posterior that follows from the leave-one-out posterior and the worker's own
    label under a one-coin model with their accuracy. With the leave-one-out posterior alone, every uncertainty of the
    other workers would count as an error of this one.

    Parameters
    ----------
    loo : LeaveOneOut
        Leave-one-out posterior of the truth of each label.
    accuracy : ndarray of shape (n_workers,)
        Accuracy of each worker.

    Returns
    -------
    ndarray of shape (n_workers, n_classes, n_classes)
        Expected number of checked labels, [worker, truth, label].
    """
    annotations = loo.annotations
    n_classes = annotations.n_classes
    right = accuracy[annotations.worker]
    wrong = (1 - right) / max(n_classes - 1, 1)
    posterior = loo.truth * wrong[:, None]
    rows = np.arange(len(right))
    posterior[rows, annotations.label] = loo.p_right * right
    posterior /= np.maximum(posterior.sum(axis=1, keepdims=True), 1e-300)  # exactly 1 on gold, whatever the accuracy is
    posterior *= loo.weight[:, None]
    return np.stack([loo.by_label(column) for column in posterior.T], axis=1)


def find_confusions(counts: Array) -> Confusions:
    """Find the wrong labels that each worker gives most often.

    Parameters
    ----------
    counts : ndarray of shape (n_workers, n_classes, n_classes)
        Expected number of checked labels, [worker, truth, label].

    Returns
    -------
    Confusions
        Up to three pairs (truth, label) for each worker.
    """
    n_classes, counts = counts.shape[1], counts.copy()
    rate = counts / np.maximum(counts.sum(axis=2, keepdims=True), 1e-300)
    counts[:, np.arange(n_classes), np.arange(n_classes)] = -1.0
    flat = counts.reshape(len(counts), -1)
    top = np.argsort(-flat, axis=1, kind="stable")[:, :MOST_CONFUSIONS]
    top = np.pad(top, ((0, 0), (0, MOST_CONFUSIONS - top.shape[1])), mode="edge")
    count = np.take_along_axis(flat, top, axis=1)
    listed = (count >= MIN_COUNT) & (np.arange(MOST_CONFUSIONS) < flat.shape[1])
    truth, label = np.divmod(top, n_classes)
    rates = np.take_along_axis(rate.reshape(flat.shape), top, axis=1)
    return Confusions(
        np.where(listed, truth, -1),
        np.where(listed, label, -1),
        np.where(listed, count, 0.0),
        np.where(listed, rates, 0.0),
    )
