"""Majority vote: every label counts the same.

p(k | item) = share of the item's labels that say k
"""

from __future__ import annotations

from manyhands.aggregation.base import Aggregator, Gold, Inference
from manyhands.aggregation.vote_shares import filled_in
from manyhands.annotations import Annotations
from manyhands.em.kernels import Array, has_small_tables, pack, vote_pass, vote_share


class MajorityVote(Aggregator):
    """The class most often chosen; the posterior is the share of the votes.

    A tie goes to the class that is larger overall, then to the first, and is marked in `tied_`.

    Examples
    --------
    >>> from manyhands import Annotations, MajorityVote
    >>> votes = Annotations.from_triples([1, 1, 1, 2], ["a", "b", "c", "a"], ["cat", "cat", "dog", "dog"])
    >>> MajorityVote().fit_predict(votes).tolist()
    ['cat', 'dog']
    """

    def __init__(self) -> None:
        pass  # the signature says that there are no parameters

    def _infer(self, annotations: Annotations, gold: Gold) -> Inference:
        if gold is not None or not has_small_tables(annotations):
            return Inference(self._posterior(annotations, gold))
        votes = vote_pass(pack(annotations), want_posterior=True)  # shares and, in the same read, who is right
        assert votes.posterior is not None
        return Inference(filled_in(votes.posterior, annotations.n_labels == 0, gold), votes.counts)

    def _posterior(self, annotations: Annotations, gold: Gold) -> Array:
        return filled_in(vote_share(annotations), annotations.n_labels == 0, gold)
