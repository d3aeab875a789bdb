"""Majority vote: every label counts the same.

p(k | item) = share of the item's labels that name k
"""

from __future__ import annotations

from typing import ClassVar

from manyhands.aggregation.base import Aggregator, Gold, Inference
from manyhands.aggregation.vote_shares import with_gold_and_default
from manyhands.annotations import Annotations
from manyhands.em.kernels import Array, pack, vote_pass, vote_share
from manyhands.em.table_sizes import has_small_tables


class MajorityVote(Aggregator):
    """Majority vote: the class with the most labels; the posterior is the share of the votes.

    A tie goes to the class that is more frequent overall, then to the first, and is marked in `tied_`. The baseline of
    every comparison, and the fastest method. Use it where workers are about equally good; a vote share is not a
    calibrated probability.

    Attributes
    ----------
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
