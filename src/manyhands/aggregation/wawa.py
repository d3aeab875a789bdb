"""Wawa, worker agreement with aggregate: votes weighted by how often each worker agrees with the majority.

    skill[w]     =  mean over w's labels of consensus[i, label_iw],   consensus = the majority vote
    p(k | item)  ~  sum over the item's labels that say k of skill[w]

Reference: Appen (2021), Calculating worker agreement with aggregate; also in Toloka's crowd-kit.
"""

from __future__ import annotations

import numpy as np

from manyhands.aggregation.base import Aggregator, Gold, Inference
from manyhands.aggregation.vote_shares import shares
from manyhands.annotations import Annotations
from manyhands.em.kernels import Array, vote_share, weighted_votes


class Wawa(Aggregator):
    """A second vote, in which a worker counts for as much as they agreed with the first one.

    Where the first vote is tied among m classes, a label for one of these agrees by 1/m. A gold item's consensus
    is its truth. The posterior is the share of the weighted votes.

    Attributes
    ----------
    skill_ : (n_workers,) share of the worker's labels that agree with the majority; the mean for silent workers

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
    _weight: Array  # (n_workers + 1,) the last worker is one never seen

    def __init__(self) -> None:
        pass  # the signature says that there are no parameters

    def _infer(self, annotations: Annotations, gold: Gold) -> Inference:
        skill, mean = _agreement(annotations, _consensus(annotations, gold))
        weight = np.append(skill, mean)
        return Inference(_second_vote(annotations, weight, gold), results={"skill_": skill, "_weight": weight})

    def _posterior(self, annotations: Annotations, gold: Gold) -> Array:
        return _second_vote(annotations, self._weight, gold)


_TIE = 1e-9  # vote shares closer than this are the same
_LEAST = 1e-6  # what a worker who never agreed still counts, so that a voice beats silence


def _consensus(annotations: Annotations, gold: Gold) -> Array:
    """(n_items, n_classes) one for the majority's class, divided where several classes have the most votes."""
    share = shares(vote_share(annotations), gold)
    best = share >= share.max(axis=1, keepdims=True) - _TIE
    consensus: Array = best / best.sum(axis=1, keepdims=True)
    return consensus


def _agreement(annotations: Annotations, consensus: Array) -> tuple[Array, float]:
    """(n_workers,) the expected share of labels that agree with the consensus, and the mean over workers."""
    agrees = consensus[annotations.item, annotations.label]
    right = np.bincount(annotations.worker, weights=agrees, minlength=annotations.n_workers)
    total = np.bincount(annotations.worker, minlength=annotations.n_workers)
    mean = float(np.mean(right[total > 0] / total[total > 0]))
    return np.divide(right, total, out=np.full(len(total), mean), where=total > 0), mean


def _second_vote(annotations: Annotations, weight: Array, gold: Gold) -> Array:
    return shares(weighted_votes(annotations, np.maximum(weight, _LEAST)[annotations.worker]), gold)
