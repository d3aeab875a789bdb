"""When the default method may overrule the plurality of an item's labels.

EM overrules the plurality for two kinds of reasons. Some workers answer at random, or invert the classes, and are
discounted: that holds whatever else is true. Or the model reads class-specific confusions and class frequencies into
the labels: where workers err together, these describe the shared error and not the workers, and following them costs up
to nine points of accuracy against the vote. Without known answers the two cannot be told apart by a statistic of the
crowd, but they can be by item: a label has support where it wins, or ties, once the workers who are identified as bad
are discounted and all others have one vote each.

    votes of w for class k = [label = k] if log_odds_w > 0.3, p(k | label, k != label, w) if log_odds_w < 0, else 0
    log_odds_w = log(a_w (n_classes - 1) / (1 - a_w)),      a_w the mean of the diagonal of confusion_w
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from manyhands import elementary
from manyhands.annotations import Annotations
from manyhands.em.collusion import collapse_groups
from manyhands.em.kernels import Array, sums_by, vote_share, weighted_votes

MIN_LOG_ODDS = 0.3  # of a worker with a full vote: accuracy .57 with two classes, .31 with four
MIN_GROUP_LOG_ODDS = 0.6  # of a colluding group that keeps its votes; by chance an attack reaches .3
ADVANTAGE = 0.01  # of the class that is named over the ones that the model finds more probable
_TIE = 1e-9
_LEAST, _MOST = 1e-3, 1.0 - 1e-3  # bounds of an accuracy, so that its log-odds are finite

Mask = npt.NDArray[np.bool_]


def log_odds(confusion: Array) -> Array:
    """Weight of a vote of each worker in a one-coin model with equally frequent classes.

    Parameters
    ----------
    confusion : ndarray of shape (n_workers, n_classes, n_classes)
        Confusion matrices.

    Returns
    -------
    ndarray of shape (n_workers,)
        0 for a worker whose labels say nothing, negative for one who inverts the classes.

    Examples
    --------
    >>> log_odds(np.array([np.full((2, 2), 0.5), [[0.75, 0.25], [0.25, 0.75]]])).round(3).tolist()
    [0.0, 1.099]
    """
    n_classes = confusion.shape[1]
    accuracy = np.clip(np.einsum("wkk->w", confusion) / n_classes, _LEAST, _MOST)
    return np.asarray(elementary.log(accuracy * max(n_classes - 1, 1) / (1.0 - accuracy)))


def discounted_votes(annotations: Annotations, weight: Array, confusion: Array) -> Array:
    """One vote for every worker, none for random workers; a label of an inverted worker counts for what it means.

    The label of a worker with negative log-odds is a vote for the other classes for which that worker gives it: class
    k gets a share of it in proportion to confusion[k, label]. It is a full vote from log-odds of -0.3.

    Parameters
    ----------
    annotations : Annotations
        The crowd's labels.
    weight : ndarray of shape (n_workers,)
        Log-odds of the workers.
    confusion : ndarray of shape (n_workers, n_classes, n_classes)
        Confusion matrices.

    Returns
    -------
    ndarray of shape (n_items, n_classes)
        Votes for each class.

    Examples
    --------
    >>> votes = Annotations.from_matrix([[0, 0, 0]], classes=[0, 1])
    >>> inverted = np.array([[0.25, 0.75], [0.75, 0.25]])
    >>> confusion = np.array([1 - inverted, np.full((2, 2), 0.5), inverted])
    >>> discounted_votes(votes, log_odds(confusion), confusion).tolist()
    [[1.0, 1.0]]
    """
    counts = weighted_votes(annotations, (weight > MIN_LOG_ODDS).astype(float)[annotations.worker])
    rows = np.flatnonzero((weight < 0)[annotations.worker])
    if len(rows):
        worker, label = annotations.worker[rows], annotations.label[rows]
        meaning = confusion[worker, :, label].copy()  # (n_rows, n_classes)
        meaning[np.arange(len(rows)), label] = 0.0
        size = np.minimum(-weight[worker] / MIN_LOG_ODDS, 1.0) / np.maximum(meaning.sum(axis=1), _LEAST)
        if annotations.weight is not None:
            size *= annotations.weight[rows]
        meaning *= size[:, None]
        for k in range(annotations.n_classes):
            counts[:, k] += sums_by(annotations.item[rows], meaning[:, k], annotations.n_items)
    return counts


def limit_overruling(
    annotations: Annotations,
    posterior: Array,
    confusion: Array,
    group: Mask,
    rule: str,
    fixed: Mask,
    *,
    always_collapse: bool = False,
) -> tuple[Array, Mask]:
    """The posterior with the labels that the rule allows.

    Where a label is not allowed, the plurality is named instead. It and the classes that the model finds more probable
    keep their joint probability in about equal parts: the labels do not tell which of them is right. Several winners
    of the plurality are decided by the sum of the posterior and that of the one-coin model ("supported"), or by the
    posterior ("never").

    Parameters
    ----------
    annotations : Annotations
        The crowd's labels.
    posterior : ndarray of shape (n_items, n_classes)
        Posterior of the model.
    confusion : ndarray of shape (n_workers, n_classes, n_classes)
        Confusion matrices.
    group : ndarray of shape (n_workers,) of bool
        Workers of the colluding group.
    rule : {"never", "supported"}
        Which labels other than the plurality are allowed: none, or those with support.
    fixed : ndarray of shape (n_items,) of bool
        Items whose posterior must not be changed, such as those with gold.
    always_collapse : bool, default=False
        Count the group as one voter even if its members seem to know the classes.

    Returns
    -------
    posterior : ndarray of shape (n_items, n_classes)
        The given array where no item changes.
    withheld : ndarray of shape (n_items,) of bool
        Items that are named otherwise than by the model.
    """
    found = _largest(posterior)
    if rule == "never":
        named = _largest(np.where(_largest(vote_share(annotations)), posterior, -1.0))
    else:
        # A group whose members know the classes keeps its votes: families of similar workers agree beyond independence
        # too, and are not an attack.
        weight = log_odds(confusion)
        is_attack = group.any() and (always_collapse or weight[group].max() <= MIN_GROUP_LOG_ODDS)
        votes = collapse_groups(annotations, group) if is_attack else annotations
        named = _supported_labels(votes, posterior, found, weight, confusion)
    withheld = np.any(named != found, axis=1) & ~fixed
    if not withheld.any():
        return posterior, withheld
    limited = posterior.copy()
    limited[withheld] = _shared_equally(posterior[withheld], named[withheld])
    return limited, withheld


def _supported_labels(votes: Annotations, posterior: Array, found: Mask, weight: Array, confusion: Array) -> Mask:
    """The classes named for each item, shape (n_items, n_classes): of the model with support, else of the plurality."""
    winners = _largest(vote_share(votes))
    counts = discounted_votes(votes, weight, confusion)
    discounted = _largest(counts)
    if votes.weight is not None:  # evenly divided votes make all workers look random: then nobody supports a label
        discounted &= counts.max(axis=1, keepdims=True) > 0
    one_coin = _softmax(weighted_votes(votes, weight[votes.worker]))
    plurality = _largest(np.where(winners, posterior + one_coin, -1.0))
    has_support = np.any(found & discounted & ~winners, axis=1, keepdims=True)
    return np.where(has_support, found, plurality)


def _largest(score: Array) -> Mask:
    """All classes of each item whose score is the largest, up to rounding."""
    return score >= score.max(axis=1, keepdims=True) - _TIE


def _softmax(score: Array) -> Array:
    score = elementary.exp(score - score.max(axis=1, keepdims=True))
    return np.asarray(score / score.sum(axis=1, keepdims=True))


def _shared_equally(posterior: Array, named: Mask) -> Array:
    """The joint probability of the named classes and of all more probable ones, divided almost equally among them."""
    least = np.min(np.where(named, posterior, np.inf), axis=1, keepdims=True)
    pooled = named | (posterior >= least)
    share = np.where(named, 1.0 + ADVANTAGE, pooled.astype(float))
    mass = np.sum(posterior * pooled, axis=1, keepdims=True)
    return np.where(pooled, mass * share / share.sum(axis=1, keepdims=True), posterior)
