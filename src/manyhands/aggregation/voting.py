"""Voting: what the voting methods share, the majority vote, and Wawa, which weights votes by agreement with it."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import numpy.typing as npt

from manyhands._core.arrays import Array
from manyhands.aggregation.base import Aggregator, Inference
from manyhands.annotations import Annotations
from manyhands.em.decisions import TIE, overall
from manyhands.em.e_step import Gold
from manyhands.em.kernels import has_small_tables, pack, vote_pass, vote_share, weighted_votes

# ----------------------------------------------------------------------------------------------------
# From summed votes to a posterior.


def shares(votes: Array, gold: Gold) -> Array:
    """Votes divided by their sum, with gold where it is known.

    Shapes: votes (n_items, n_classes); gold (n_items,); returns (n_items, n_classes).
    """
    total = votes.sum(axis=1, keepdims=True)
    share = np.divide(votes, total, out=votes, where=total > 0)
    return with_gold_and_default(share, total[:, 0] <= 0, gold)


def with_gold_and_default(share: Array, unlabelled: npt.NDArray[np.bool_], gold: Gold) -> Array:
    """Vote shares with gold where it is known, and the overall class shares for items without labels and gold.

    Shapes: share (n_items, n_classes); unlabelled (n_items,); gold (n_items,); returns (n_items, n_classes).
    """
    if gold is not None:
        gold_items = np.flatnonzero(gold >= 0)
        share[gold_items] = 0.0
        share[gold_items, gold[gold_items]] = 1.0
        unlabelled = unlabelled & (gold < 0)
    if unlabelled.any():
        share[unlabelled] = overall(share[~unlabelled].sum(axis=0))
    return share


# ----------------------------------------------------------------------------------------------------
# Majority vote: every label counts the same.
#
# p(k | item) = share of the item's labels that name k


class MajorityVote(Aggregator):
    """Majority vote: the class with the most labels; the posterior is the share of the votes.

    A tie goes to the class that is more frequent overall, then to the first, and is marked in `tied_`. The baseline of
    every comparison, and the fastest method. Use it where workers are about equally good; a vote share is not a
    calibrated probability.

    Examples
    --------
    >>> from manyhands import Annotations, MajorityVote
    >>> votes = Annotations.from_triples([1, 1, 1, 2], ["a", "b", "c", "a"], ["cat", "cat", "dog", "dog"])
    >>> MajorityVote().fit_predict(votes).tolist()
    ['cat', 'dog']
    """

    _takes_weights: ClassVar[bool] = True

    def __init__(self) -> None:  # explicit, so that the signature is empty
        pass

    def _infer(self, annotations: Annotations, gold: Gold) -> Inference:
        if gold is not None or not has_small_tables(annotations):
            return Inference(self._posterior(annotations, gold))
        votes = vote_pass(pack(annotations), want_posterior=True)  # vote shares, and expected counts in the same pass
        assert votes.posterior is not None
        return Inference(with_gold_and_default(votes.posterior, annotations.n_labels == 0, gold), votes.counts)

    def _posterior(self, annotations: Annotations, gold: Gold) -> Array:
        return with_gold_and_default(vote_share(annotations), annotations.n_labels == 0, gold)


# ----------------------------------------------------------------------------------------------------
# Wawa, worker agreement with aggregate: votes weighted by how often each worker agrees with the majority.
#
#     skill[w]     =  mean over w's labels of consensus[i, label_iw],   consensus = the majority vote
#     p(k | item)  ~  sum over the item's labels that name k of skill[w]


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


_MIN_WEIGHT = 1e-6  # weight of a worker who never agreed, so that their label still decides an item without others


def _consensus(annotations: Annotations, gold: Gold) -> Array:
    """One for the majority's class, divided where several classes have the most votes; shape (n_items, n_classes)."""
    share = shares(vote_share(annotations), gold)
    best = share >= share.max(axis=1, keepdims=True) - TIE
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
