"""KOS: message passing between workers and items of two classes.

    item to worker:  x[i->w] = sum over the other labels of i of  sign_iw' y[w'->i]      (sign = +1 or -1, the label)
    worker to item:  y[w->i] = sum over the other labels of w of  sign_i'w x[i'->w] / sqrt(labels of w),   initially 1
    decision:        sum over the labels of i of  sign_iw reliability[w],   reliability[w]: the same sum over all labels

References
----------
D. Karger, S. Oh and D. Shah (2011), Iterative learning for reliable crowdsourcing systems, NeurIPS.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from manyhands._core.arrays import Array
from manyhands.aggregation.base import Aggregator, Inference
from manyhands.aggregation.voting import shares
from manyhands.annotations import Annotations
from manyhands.em.e_step import Gold, n_labels_with_gold
from manyhands.em.kernels import sums_by
from manyhands.exceptions import AnnotationError
from manyhands.validation import Constraint, Number


class KOS(Aggregator):
    """KOS message passing for two classes; labels of a worker who is usually wrong count for the other class.

    Items send each worker what their other labels imply, workers send each item how reliable their other labels are,
    until the messages converge (see the module for the formulas).

    Three things differ from the paper. The first messages are all 1, not random, so nothing depends on a seed or on
    names. A worker's message is divided by the square root of their number of labels: in the paper all have equally
    many and nothing changes, but in a real crowd the workers with the most labels would dominate all others. The
    decision uses a worker's whole reliability, the item in question included, so each worker has one weight, and it
    applies to new items too.

    The posterior is the share of the absolute weights of each class: it ranks items by how clear they are, but is not a
    calibrated probability. Use it for two classes and a regular assignment of workers to items. With few labels per
    item and poor workers the messages carry no information and may not converge (`converged_`); a vote is better then.

    Parameters
    ----------
    max_iter : int, default=100
        Maximum number of rounds of messages.
    tol : float, default=1e-4
        Stop when no message changes by more than this; their root mean square is 1.

    Attributes
    ----------
    reliability_ : ndarray of shape (n_workers,)
        Reliabilities of mean square 1; negative for workers who are usually wrong. Workers who share no item with
        others have the mean.

    References
    ----------
    D. Karger, S. Oh and D. Shah (2011), Iterative learning for reliable crowdsourcing systems, NeurIPS.

    Examples
    --------
    >>> from manyhands import KOS, Annotations
    >>> votes = Annotations.from_matrix([[0, 0, 1], [1, 1, 0], [0, 0, 1], [1, 1, 0]])
    >>> model = KOS().fit(votes)
    >>> model.labels_.tolist()
    [0, 1, 0, 1]
    >>> bool(model.reliability_[2] < 0)
    True
    """

    _constraints: ClassVar[dict[str, Constraint]] = {
        "max_iter": Number(whole=True, least=1),
        "tol": Number(least=0),
    }

    reliability_: Array
    _weight: Array  # (n_workers + 1,) the last worker is an unseen one

    def __init__(self, max_iter: int = 100, tol: float = 1e-4) -> None:
        self.max_iter = max_iter
        self.tol = tol

    def _infer(self, annotations: Annotations, gold: Gold) -> Inference:
        if annotations.n_classes > 2:
            raise AnnotationError(
                f"KOS is for two classes, but there are {annotations.n_classes}; use mace or dawid-skene instead."
            )
        reliability, n_iter, converged = _pass_messages(annotations, gold, self.max_iter, self.tol)
        reliability, mean = _normalised(annotations, gold, reliability)
        weight = np.append(reliability, mean)
        return Inference(
            _signed_vote(annotations, weight, gold),
            n_iter=n_iter,
            converged=converged,
            results={"reliability_": reliability, "_weight": weight},
        )

    def _posterior(self, annotations: Annotations, gold: Gold) -> Array:
        return _signed_vote(annotations, self._weight, gold)


def _pass_messages(annotations: Annotations, gold: Gold, max_iter: int, tol: float) -> tuple[Array, int, bool]:
    """Reliabilities, shape (n_workers,), the number of rounds, and whether the messages converged."""
    item, worker = annotations.item, annotations.worker
    sign = 2.0 * annotations.label - 1.0
    truth = None if gold is None else np.where(gold >= 0, 2.0 * gold - 1.0, 0.0)[item]
    scale = 1 / np.sqrt(np.maximum(np.bincount(worker, minlength=annotations.n_workers), 1))  # (n_workers,)
    to_item = np.ones(len(sign))
    for n_iter in range(1, max_iter + 1):
        message = sign * to_item
        to_worker = sums_by(item, message, annotations.n_items)[item] - message
        if truth is not None:
            to_worker = _clamp(to_worker, truth)
        message = sign * to_worker * scale[worker]
        reliability = sums_by(worker, message, annotations.n_workers)
        before, to_item = to_item, reliability[worker] - message
        size = float(np.sqrt(np.mean(to_item**2)))
        if size == 0:  # no shared items, or one item per worker: the messages carry no information
            return reliability, n_iter, True
        to_item /= size
        if np.abs(to_item - before).max() <= tol:
            return reliability, n_iter, True
    return reliability, n_iter, False


def _clamp(message: Array, truth: Array) -> Array:
    """Messages with those of gold items set to their truth (+1 or -1, 0 elsewhere) at the largest magnitude."""
    largest = float(np.abs(message).max()) or 1.0
    return np.where(truth != 0, truth * largest, message)


def _normalised(annotations: Annotations, gold: Gold, reliability: Array) -> tuple[Array, float]:
    """Reliabilities of mean square 1, with the mean for workers who share no item; and that mean."""
    is_nonzero = reliability != 0
    if not is_nonzero.any():
        return np.ones(annotations.n_workers), 1.0
    reliability = reliability / np.sqrt(np.mean(reliability[is_nonzero] ** 2))
    shared = (n_labels_with_gold(annotations, gold)[annotations.item] >= 2).astype(float)
    has_shared = sums_by(annotations.worker, shared, annotations.n_workers) > 0
    mean = float(reliability[has_shared].mean())
    return np.where(has_shared, reliability, mean), mean


def _signed_vote(annotations: Annotations, weight: Array, gold: Gold) -> Array:
    """The share of absolute weights of each class; a negative weight counts for the other class."""
    if annotations.n_classes == 1:
        return np.ones((annotations.n_items, 1))
    signed_weight = weight[annotations.worker]
    class_voted_for = np.where(signed_weight >= 0, annotations.label, 1 - annotations.label)
    votes = sums_by(
        2 * annotations.item.astype(np.int64) + class_voted_for, np.abs(signed_weight), 2 * annotations.n_items
    )
    return shares(votes.reshape(-1, 2), gold)
