"""Starting points of EM: the vote shares, the gold items, and random restarts.

EM finds a local optimum, so its start decides which one. All methods share these:

    vote      each item's posterior is the share of its labels (gold where known)
    gold      worker parameters from the gold items alone; tried only where the majority vote contradicts gold
    random    the mean of the vote shares and a draw from a uniform Dirichlet
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from manyhands.annotations import Annotations
from manyhands.em.e_step import Gold, expected_counts, pass_with_posterior, posterior_given
from manyhands.em.kernels import Array, Packed, PassResult, pack, vote_pass, vote_share
from manyhands.noise import safe_log

MIN_WRONG_ON_GOLD = 3  # gold items on which the vote is wrong; fewer may be wrong gold
_GOLD_PER_WRONG = 4  # gold items for each one on which the vote is wrong
_TIE = 1e-9


def initial_posterior(annotations: Annotations, gold: Gold) -> Array:
    """Posterior to start EM from: vote shares, the gold class where it is known, uniform for items without labels.

    Parameters
    ----------
    annotations : Annotations
        The crowd's labels.
    gold : ndarray of shape (n_items,) of int32 or None
        Class code of each item whose truth is known, -1 elsewhere.

    Returns
    -------
    ndarray of shape (n_items, n_classes)
        Rows sum to 1.

    Examples
    --------
    >>> votes = Annotations.from_matrix([[0, 0, 1, 1], [0, -1, 1, -1]])
    >>> initial_posterior(votes, np.array([-1, 1], np.int32)).tolist()
    [[0.5, 0.5], [0.0, 1.0]]
    """
    share = vote_share(annotations)
    share[annotations.n_labels == 0] = 1.0 / max(annotations.n_classes, 1)
    if gold is not None:
        known = np.flatnonzero(gold >= 0)
        share[known] = np.eye(annotations.n_classes)[gold[known]]
    return share


def posterior_from_gold(annotations: Annotations, gold: Gold, pseudo: float | Array) -> Array | None:
    """Posterior under confusion matrices estimated on the gold items alone.

    Parameters
    ----------
    annotations : Annotations
        The crowd's labels.
    gold : ndarray of shape (n_items,) of int32 or None
        Class code of each item whose truth is known, -1 elsewhere.
    pseudo : float or ndarray of shape (n_classes, n_classes)
        Pseudo-counts added to each cell [truth, label] of each confusion matrix; above 0.

    Returns
    -------
    ndarray of shape (n_items, n_classes) or None
        None unless the majority vote is wrong on significantly more than half of the gold items
        (`gold_overrules_vote`): only then can gold point to a better optimum than the vote.
    """
    if gold is None or not gold_overrules_vote(annotations, gold):
        return None
    on_gold = labels_on_gold(annotations, gold)
    log_confusion = log_confusions(pack(on_gold), initial_posterior(on_gold, gold), pseudo)
    uniform = np.zeros((annotations.n_items, annotations.n_classes))
    return posterior_given(annotations, log_confusion, uniform, gold)[0]


def initial_posteriors(
    annotations: Annotations, gold: Gold, pseudo: float | Array, generators: Iterable[np.random.Generator] = ()
) -> list[Array]:
    """All starting points: the vote shares, gold where it overrules the vote, and one random restart per generator.

    Parameters
    ----------
    annotations : Annotations
        The crowd's labels.
    gold : ndarray of shape (n_items,) of int32 or None
        Class code of each item whose truth is known, -1 elsewhere.
    pseudo : float or ndarray of shape (n_classes, n_classes)
        Pseudo-counts of `posterior_from_gold`.
    generators : iterable of numpy.random.Generator, default=()
        One for each random restart.

    Returns
    -------
    list of ndarray of shape (n_items, n_classes)
        The start from the vote comes first.
    """
    vote, from_gold = initial_posterior(annotations, gold), posterior_from_gold(annotations, gold, pseudo)
    mixed = [mixed_with_random(vote, rng) for rng in generators]
    return [vote, *mixed] if from_gold is None else [vote, from_gold, *mixed]


def vote_statistics(
    annotations: Annotations, packed: Packed, offset: Array | None, rng: np.random.Generator | None = None
) -> PassResult:
    """Expected counts with the vote shares, or a random mixture with them, in the place of the posterior.

    Parameters
    ----------
    annotations : Annotations
        The crowd's labels.
    packed : Packed
        The same labels, packed.
    offset : ndarray of shape (n_items, n_classes) or None
        What gold adds to the log prior (`gold_offset`); it replaces the vote shares of gold items.
    rng : numpy.random.Generator, default=None
        Generator of a random restart; None is the start from the vote.

    Returns
    -------
    PassResult
        Counts and class totals, from which the first M step starts.
    """
    if rng is None and offset is None:
        return vote_pass(packed)
    share = vote_share(annotations)
    if rng is not None:
        share = mixed_with_random(share, rng)
    log_posterior = safe_log(share)
    if offset is not None:
        is_gold = (offset < 0).any(axis=1)
        log_posterior[is_gold] = offset[is_gold]
    return pass_with_posterior(packed, log_posterior)


def mixed_with_random(share: Array, rng: np.random.Generator) -> Array:
    """Random restart: the mean of these shares and a draw from a uniform Dirichlet for each item.

    Parameters
    ----------
    share : ndarray of shape (n_items, n_classes)
        Vote shares.
    rng : numpy.random.Generator
        Source of the draws.

    Returns
    -------
    ndarray of shape (n_items, n_classes)
    """
    n_items, n_classes = share.shape
    return 0.5 * share + 0.5 * rng.dirichlet(np.ones(n_classes), n_items)


def labels_on_gold(annotations: Annotations, gold: Gold) -> Annotations:
    """The labels of gold items only; all items, workers and classes stay."""
    assert gold is not None
    return annotations.keep((gold >= 0)[annotations.item])


def log_confusions(packed: Packed, posterior: Array, pseudo: float | Array) -> Array:
    """The M step of confusion matrices with a closed form: log of the smoothed and normalised expected counts.

    Parameters
    ----------
    packed : Packed
        The labels.
    posterior : ndarray of shape (n_items, n_classes)
        p(truth) of every item.
    pseudo : float or ndarray of shape (n_classes, n_classes)
        Pseudo-counts added to each cell [truth, label]; above 0.

    Returns
    -------
    ndarray of shape (n_workers, n_classes, n_classes)
        log p(label | truth), indexed [worker, truth, label].
    """
    counts = expected_counts(packed, posterior) + pseudo
    return np.log(counts) - np.log(counts.sum(axis=2, keepdims=True))


def wrong_on_gold(annotations: Annotations, gold: Gold) -> tuple[int, int]:
    """Count the gold items on which the majority vote is wrong.

    Parameters
    ----------
    annotations : Annotations
        The crowd's labels.
    gold : ndarray of shape (n_items,) of int32 or None
        Class code of each item whose truth is known, -1 elsewhere.

    Returns
    -------
    n_wrong : int
        Gold items on which another class has more votes than the gold class; a tie is not wrong.
    n_known : int
        Gold items that have labels.

    Examples
    --------
    >>> votes = Annotations.from_matrix([[0, 0, 1], [0, 1, -1], [1, 1, 1]])
    >>> wrong_on_gold(votes, np.array([1, 1, -1], np.int32))
    (1, 2)
    """
    if gold is None:
        return 0, 0
    known = np.flatnonzero((gold >= 0) & (annotations.n_labels > 0))
    share = vote_share(annotations[known])
    is_behind = share[np.arange(len(known)), gold[known]] < share.max(axis=1, initial=0.0) - _TIE
    return int(is_behind.sum()), len(known)


def gold_contradicts_vote(annotations: Annotations, gold: Gold) -> bool:
    """Whether the vote is wrong on at least a quarter of the gold items, and on at least three.

    Then a start from gold is tried. One gold item is not enough: in a crowd that agrees, it could invert all labels,
    and it may itself be wrong.

    Parameters
    ----------
    annotations : Annotations
        The crowd's labels.
    gold : ndarray of shape (n_items,) of int32 or None
        Class code of each item whose truth is known, -1 elsewhere.

    Returns
    -------
    bool
    """
    wrong, known = wrong_on_gold(annotations, gold)
    return wrong >= MIN_WRONG_ON_GOLD and _GOLD_PER_WRONG * wrong >= known


def gold_overrules_vote(annotations: Annotations, gold: Gold) -> bool:
    """Whether the vote is wrong on more than half of the gold items, by three standard deviations.

    Parameters
    ----------
    annotations : Annotations
        The crowd's labels.
    gold : ndarray of shape (n_items,) of int32 or None
        Class code of each item whose truth is known, -1 elsewhere.

    Returns
    -------
    bool
    """
    wrong, known = wrong_on_gold(annotations, gold)
    return 2 * wrong - known > 3 * np.sqrt(known)
