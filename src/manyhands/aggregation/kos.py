"""KOS: workers and items of two classes tell each other, along every label, what all the others say.

    item to worker:  x[i->w] = sum over i's other labels of  sign_iw' y[w'->i]      (sign = +1 or -1, the label)
    worker to item:  y[w->i] = sum over w's other labels of  sign_i'w x[i'->w] / sqrt(labels of w),   at first 1
    decision:        sum over i's labels of  sign_iw reliability[w],   reliability[w] = the same sum over all labels

Reference: D. Karger, S. Oh and D. Shah (2011), Iterative learning for reliable crowdsourcing systems, NeurIPS.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from manyhands.aggregation.base import Aggregator, Gold, Inference
from manyhands.aggregation.vote_shares import shares
from manyhands.annotations import Annotations
from manyhands.em.confusion_em import n_labels_with_gold
from manyhands.em.kernels import Array, sums_by
from manyhands.exceptions import AnnotationError
from manyhands.validation import Constraint, Number


class KOS(Aggregator):
    """Message passing for two classes; a worker who is more often wrong than right is heard the other way round.

    Three things differ from the paper. The first messages are all 1, not random, so nothing depends on a seed or on
    names. A worker's message is divided by the root of their number of labels: in the paper everyone has equally many
    and nothing changes, but in a real crowd the busiest would drown all others. The decision takes a worker's whole
    reliability, the item in question included, so a worker has one weight, and it serves new items too.

    The posterior is the share of the absolute weights behind each class: it ranks items by how clear they are, but is
    not a calibrated probability. With few labels per item and poor workers the messages carry no news and may not
    come to rest (`converged_`); a vote is better then.

    Parameters
    ----------
    max_iter, tol : at most this many rounds; stop when no message moves by more than `tol` (they are of size 1)

    Attributes
    ----------
    reliability_ : (n_workers,) of mean square 1; negative for inverted workers. One whose labels nobody else can
        speak to has the mean

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
    _weight: Array  # (n_workers + 1,) the last worker is one never seen

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
    """(n_workers,) reliabilities, the number of rounds, and whether the messages came to rest."""
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
        if size == 0:  # nobody shares an item with anybody, or each worker has one item: no news travels
            return reliability, n_iter, True
        to_item /= size
        if np.abs(to_item - before).max() <= tol:
            return reliability, n_iter, True
    return reliability, n_iter, False


def _clamp(message: Array, truth: Array) -> Array:
    """A gold item speaks its truth, as loudly as the clearest item; `truth` is 0 where it is not known."""
    largest = float(np.abs(message).max()) or 1.0
    return np.where(truth != 0, truth * largest, message)


def _normalised(annotations: Annotations, gold: Gold, reliability: Array) -> tuple[Array, float]:
    """Reliabilities of mean square 1, with the mean for workers nobody can speak to; and that mean."""
    is_nonzero = reliability != 0
    if not is_nonzero.any():
        return np.ones(annotations.n_workers), 1.0
    reliability = reliability / np.sqrt(np.mean(reliability[is_nonzero] ** 2))
    shared = (n_labels_with_gold(annotations, gold)[annotations.item] >= 2).astype(float)
    known = sums_by(annotations.worker, shared, annotations.n_workers) > 0
    mean = float(reliability[known].mean())
    return np.where(known, reliability, mean), mean


def _signed_vote(annotations: Annotations, weight: Array, gold: Gold) -> Array:
    """The share of absolute weights behind each class; a negative weight stands behind the other class."""
    if annotations.n_classes == 1:
        return np.ones((annotations.n_items, 1))
    signed_weight = weight[annotations.worker]
    class_voted_for = np.where(signed_weight >= 0, annotations.label, 1 - annotations.label)
    votes = sums_by(
        2 * annotations.item.astype(np.int64) + class_voted_for, np.abs(signed_weight), 2 * annotations.n_items
    )
    return shares(votes.reshape(-1, 2), gold)
