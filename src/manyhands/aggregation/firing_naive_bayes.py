"""Firing naive Bayes: one step of naive Bayes from the vote, for workers who use one class only.

p(k | labels of i)  ~  (vote_ik + 0.05) ^ vote_power  prod_w p(label of w, or silence | k)
"""

from __future__ import annotations

from typing import ClassVar

from manyhands._core.arrays import Array
from manyhands.aggregation.base import Aggregator, Inference
from manyhands.aggregation.voting import with_gold_and_default
from manyhands.annotations import Annotations
from manyhands.em.decisions import class_totals, overall
from manyhands.em.e_step import Gold, has_no_redundancy
from manyhands.em.firing import SMOOTHING, VOTE_POWER, FiringModel, fit_firing
from manyhands.em.kernels import check_tables, vote_share
from manyhands.validation import Constraint, Number


class FiringNaiveBayes(Aggregator):
    """Naive Bayes in which silence counts, for workers who give one class or nothing.

        firing[w, k, l]  =  p(w gives label l | truth k),   silence the rest, estimated from the vote
        p(k | labels of i)  ~  (vote_ik + 0.05) ^ vote_power  prod_w p(label of w, or silence | k)

    Labelling functions, and moderators who mark what they see, use one class only. A confusion matrix says nothing
    about such a worker; on which items they give their class, and on which they are silent, does. The rates come from
    one step, from a vote in which a worker's label weighs one over the square root of their number of labels: a
    worker who labels nearly everything is less specific. The posterior stays anchored to this vote; EM from here would
    move the classes. Items on which all workers are silent say nothing and are not used.

    Use it for labelling functions and for "mark all that apply". `PooledDawidSkene` recognises a crowd of this kind
    and uses this model. Not for workers who give every item one of several classes: their silence says who was asked,
    and `PooledDawidSkene` uses more of what their labels say.

    Parameters
    ----------
    smoothing : float, default=10.0
        Pseudo-count: items, added to each class, on which a worker gives labels at their average rate.
    vote_power : float, default=0.5
        Power of the vote in the posterior; 0 uses the firing rates alone.

    Attributes
    ----------
    firing_ : ndarray of shape (n_workers, n_classes, n_classes)
        Rates at which workers give labels, indexed [worker, truth, label]; rows (over the label) sum to at most 1, and
        the rest is silence.
    class_prior_ : ndarray of shape (n_classes,)
        Class frequencies among the items with labels, by the posterior.

    References
    ----------
    A. Ratner, S. H. Bach, H. Ehrenberg, J. Fries, S. Wu and C. Re (2017), Snorkel: rapid training data creation with
    weak supervision, PVLDB 11. The labelling functions are theirs, the estimate is not.

    Examples
    --------
    >>> from manyhands import Annotations, FiringNaiveBayes
    >>> votes = Annotations.from_matrix([[0, -1, 1], [0, -1, -1], [-1, 1, 1], [-1, 1, -1], [0, -1, -1]])
    >>> FiringNaiveBayes().fit_predict(votes).tolist()
    [0, 0, 1, 1, 0]
    """

    _constraints: ClassVar[dict[str, Constraint]] = {"smoothing": Number(least=0), "vote_power": Number(least=0)}

    firing_: Array
    class_prior_: Array
    _log_odds: Array  # (n_workers + 1, n_classes, n_classes)
    _log_silence: Array  # (n_workers + 1, n_classes)
    _vote_weight: Array  # (n_workers + 1,)
    _is_vote: bool  # no item has two labels: labels stay as given

    def __init__(self, smoothing: float = SMOOTHING, vote_power: float = VOTE_POWER) -> None:
        self.smoothing = smoothing
        self.vote_power = vote_power

    def _infer(self, annotations: Annotations, gold: Gold) -> Inference:
        check_tables(annotations)
        model, firing = fit_firing(annotations, gold, self.smoothing, self.vote_power)
        is_vote = has_no_redundancy(annotations, gold)
        posterior = _posterior_of(None if is_vote else model, annotations, gold)
        prior = overall(class_totals(posterior, annotations.n_labels == 0)) if is_vote else model.class_prior
        results = {
            "firing_": firing,
            "class_prior_": prior,
            "_log_odds": model.log_odds,
            "_log_silence": model.log_silence,
            "_vote_weight": model.vote_weight,
            "_is_vote": is_vote,
        }
        return Inference(posterior, results=results)

    def _posterior(self, annotations: Annotations, gold: Gold) -> Array:
        tables = self._log_odds, self._log_silence, self._vote_weight, self.class_prior_
        return _posterior_of(None if self._is_vote else FiringModel(*tables, self.vote_power), annotations, gold)


def _posterior_of(model: FiringModel | None, annotations: Annotations, gold: Gold) -> Array:
    """Posterior under the model, or the vote shares without one; shape (n_items, n_classes)."""
    if model is not None:
        return model.posterior(annotations, gold)
    return with_gold_and_default(vote_share(annotations), annotations.n_labels == 0, gold)
