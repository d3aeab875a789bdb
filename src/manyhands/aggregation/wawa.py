"""Wawa, worker agreement with aggregate: votes weighted by how often each worker agrees with the majority.

    skill[w]     =  mean over w's labels of consensus[i, label_iw],   consensus = the majority vote
    p(k | item)  ~  sum over the item's labels that name k of skill[w]

References
----------
Appen (2021), Calculating worker agreement with aggregate; also in Toloka's crowd-kit.
"""

from __future__ import annotations

import numpy as np

from manyhands.aggregation.base import Aggregator, Gold, Inference
from manyhands.aggregation.vote_shares import shares
from manyhands.annotations import Annotations
from manyhands.em.kernels import Array, vote_share, weighted_votes


class Wawa(Aggregator):
    """Worker agreement with aggregate: a second vote, weighted by each worker's agreement with the first.

        skill[w]     =  mean over w's labels of consensus[i, label_iw],   consensus = the majority vote
        p(k | item)  ~  sum over the item's labels that name k of skill[w]

    Where the first vote is tied among m classes, a label for one of these agrees by 1/m. The consensus of a gold item
    is its truth. The posterior is the share of the weighted votes.

    Use it as a fast improvement of the majority vote, with any number of classes and workers. Not where the majority is
    often wrong; the EM methods use more of the data.

    Attributes
    ----------
    skill_ : ndarray of shape (n_workers,)
        Share of the worker's labels that agree with the majority; the mean for workers without labels.
    classes_ : ndarray of shape (n_classes,)
        The classes, in the order of the columns of `posterior_`.
    item_ids_ : ndarray of shape (n_items,)
        The items, in the order of the rows of `posterior_`.
    worker_ids_ : ndarray of shape (n_workers,)
        The workers.
    posterior_ : ndarray of shape (n_items, n_classes)
        p(truth | labels) of each item; rows sum to 1.
    labels_ : ndarray of shape (n_items,)
        Inferred class of each item, in the caller's own values; None for an item without labels.
    worker_accuracy_ : ndarray of shape (n_workers,)
        Expected share of right labels under `posterior_`, with one pseudo-count of accuracy 0.7.
    tied_ : ndarray of shape (n_items,) of bool
        Items on which several classes have the largest probability.
    unlabelled_ : ndarray of shape (n_items,) of bool
        Items without a label and without gold.
    n_iter_ : int
        Number of passes over the data.
    converged_ : bool
        Whether the method converged within `max_iter`.
    history_ : list of float
        Objective after each iteration; empty for methods without one.
    notes_ : dict of str to str
        Limitations of the result, by code, such as "no_redundancy"; each was also issued as a CrowdWarning.
    annotations_ : Annotations
        The annotations that were passed to `fit`.

    References
    ----------
    Appen (2021), Calculating worker agreement with aggregate; also in Toloka's crowd-kit.

    Examples
    --------
    >>> from manyhands import Annotations, Wawa
    >>> votes = Annotations.from_matrix([[0, 0, 1], [1, 1, 1], [0, 0, 1], [0, -1, 1]])
    >>> model = Wawa().fit(votes)
    >>> model.skill_.tolist()
    [0.875, 1.0, 0.375]
    >>> model.labels_.tolist()
    [0, 1, 0, 0]
    """

    skill_: Array
    _weight: Array  # (n_workers + 1,) the last worker is an unseen one

    def __init__(self) -> None:  # explicit, so that the signature is empty
        pass

    def _infer(self, annotations: Annotations, gold: Gold) -> Inference:
        skill, mean = _agreement(annotations, _consensus(annotations, gold))
        weight = np.append(skill, mean)
        return Inference(_second_vote(annotations, weight, gold), results={"skill_": skill, "_weight": weight})

    def _posterior(self, annotations: Annotations, gold: Gold) -> Array:
        return _second_vote(annotations, self._weight, gold)


_TIE = 1e-9  # vote shares closer than this count as equal
_MIN_WEIGHT = 1e-6  # weight of a worker who never agreed, so that their label still decides an item without others


def _consensus(annotations: Annotations, gold: Gold) -> Array:
    """One for the majority's class, divided where several classes have the most votes; shape (n_items, n_classes)."""
    share = shares(vote_share(annotations), gold)
    best = share >= share.max(axis=1, keepdims=True) - _TIE
    consensus: Array = best / best.sum(axis=1, keepdims=True)
    return consensus


def _agreement(annotations: Annotations, consensus: Array) -> tuple[Array, float]:
    """Expected share of labels that agree with the consensus, shape (n_workers,), and the mean over workers."""
    agrees = consensus[annotations.item, annotations.label]
    right = np.bincount(annotations.worker, weights=agrees, minlength=annotations.n_workers)
    total = np.bincount(annotations.worker, minlength=annotations.n_workers)
    mean = float(np.mean(right[total > 0] / total[total > 0]))
    return np.divide(right, total, out=np.full(len(total), mean), where=total > 0), mean


def _second_vote(annotations: Annotations, weight: Array, gold: Gold) -> Array:
    """Posterior of the weighted vote, shape (n_items, n_classes)."""
    return shares(weighted_votes(annotations, np.maximum(weight, _MIN_WEIGHT)[annotations.worker]), gold)
