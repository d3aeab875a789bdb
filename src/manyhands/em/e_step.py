"""The E step and the expected counts of the M step for confusion matrices; starting points of EM; redundancy.

    E step    p(truth_i = k | labels of i)  ~  prior[k] prod_w confusion[w, k, label_iw]
    counts    counts[w, k, l] = sum of p(truth_i = k | labels of i) over the items i that worker w labelled l

Both are calls of `em_pass`, the fused pass over the annotations; gold labels replace the posterior of their items.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from manyhands._core.arrays import Array
from manyhands.annotations import Annotations
from manyhands.em.decisions import TIE
from manyhands.em.kernels import Packed, PassResult, em_pass, pack, vote_pass, vote_share
from manyhands.em.noise import safe_log
from manyhands.em.priors import gold_offset

Gold = npt.NDArray[np.int32] | None


def posterior_given(
    annotations: Annotations | Packed, log_confusion: Array, log_prior: Array, gold: Gold = None
) -> tuple[Array, PassResult]:
    """The E step: posterior of every item given confusion matrices and class priors.

    Examples
    --------
    >>> votes = Annotations.from_matrix([[0, 0], [0, 1]])
    >>> confusion = np.array([[[0.9, 0.1], [0.1, 0.9]], [[0.6, 0.4], [0.4, 0.6]]])
    >>> posterior, result = posterior_given(votes, np.log(confusion), np.log([0.5, 0.5]))
    >>> posterior.round(3).tolist()
    [[0.931, 0.069], [0.857, 0.143]]

    Shapes: log_confusion (n_workers, n_classes, n_classes); log_prior (n_classes,); gold (n_items,); returns
    posterior (n_items, n_classes).
    """
    packed = annotations if isinstance(annotations, Packed) else pack(annotations)
    offset = gold_offset(gold, packed.n_classes)
    if log_prior.ndim == 2:
        offset = log_prior if offset is None else log_prior + offset
        log_prior = np.zeros(packed.n_classes)
    result = em_pass(packed, log_confusion, log_prior, offset, want_posterior=True)
    assert result.posterior is not None
    return result.posterior, result


def expected_counts(packed: Packed, posterior: Array) -> Array:
    """Sufficient statistics of the M step: expected number of labels in each cell of each confusion matrix.

    Shapes: posterior (n_items, n_classes); returns (n_workers, n_classes, n_classes).
    """
    return pass_with_posterior(packed, safe_log(posterior)).counts


def pass_with_posterior(packed: Packed, log_posterior: Array) -> PassResult:
    """Pass over the labels in which the posterior is given, not inferred.

    Confusion matrices of ones and a prior of ones leave the posterior of each item at `log_posterior`.

    Shapes: log_posterior (n_items, n_classes).
    """
    zeros = np.zeros((packed.n_workers, packed.n_classes, packed.n_classes))
    return em_pass(packed, zeros, np.zeros(packed.n_classes), log_posterior)


# ----------------------------------------------------------------------------------------------------
# Starting points of EM: the vote shares, the gold items, and random restarts.
#
# EM finds a local optimum, so its start decides which one. All methods share these:
#
#     vote      each item's posterior is the share of its labels (gold where known)
#     gold      worker parameters from the gold items alone; tried only where the majority vote contradicts gold
#     random    the mean of the vote shares and a draw from a uniform Dirichlet

MIN_WRONG_ON_GOLD = 3  # gold items on which the vote is wrong; fewer may be wrong gold
_GOLD_PER_WRONG = 4  # gold items for each one on which the vote is wrong


def initial_posterior(annotations: Annotations, gold: Gold) -> Array:
    """Posterior to start EM from: vote shares, the gold class where it is known, uniform for items without labels.

    Examples
    --------
    >>> votes = Annotations.from_matrix([[0, 0, 1, 1], [0, -1, 1, -1]])
    >>> initial_posterior(votes, np.array([-1, 1], np.int32)).tolist()
    [[0.5, 0.5], [0.0, 1.0]]

    Shapes: gold (n_items,); returns (n_items, n_classes).
    """
    share = vote_share(annotations)
    share[annotations.n_labels == 0] = 1.0 / max(annotations.n_classes, 1)
    if gold is not None:
        gold_items = np.flatnonzero(gold >= 0)
        share[gold_items] = np.eye(annotations.n_classes)[gold[gold_items]]
    return share


def posterior_from_gold(annotations: Annotations, gold: Gold, pseudo: float | Array) -> Array | None:
    """Posterior under confusion matrices estimated on the gold items alone.

    Shapes: gold (n_items,); pseudo (n_classes, n_classes); returns (n_items, n_classes).
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

    Shapes: gold (n_items,); pseudo (n_classes, n_classes).
    """
    vote, from_gold = initial_posterior(annotations, gold), posterior_from_gold(annotations, gold, pseudo)
    mixed = [mixed_with_random(vote, rng) for rng in generators]
    return [vote, *mixed] if from_gold is None else [vote, from_gold, *mixed]


def vote_statistics(
    annotations: Annotations, packed: Packed, offset: Array | None, rng: np.random.Generator | None = None
) -> PassResult:
    """Expected counts with the vote shares, or a random mixture with them, in the place of the posterior.

    Shapes: offset (n_items, n_classes).
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

    Shapes: share (n_items, n_classes); returns (n_items, n_classes).
    """
    n_items, n_classes = share.shape
    return 0.5 * share + 0.5 * rng.dirichlet(np.ones(n_classes), n_items)


def labels_on_gold(annotations: Annotations, gold: Gold) -> Annotations:
    """The labels of gold items only; all items, workers and classes stay."""
    assert gold is not None
    return annotations.keep((gold >= 0)[annotations.item])


def log_confusions(packed: Packed, posterior: Array, pseudo: float | Array) -> Array:
    """The M step of confusion matrices with a closed form: log of the smoothed and normalised expected counts.

    Shapes: posterior (n_items, n_classes); pseudo (n_classes, n_classes); returns (n_workers, n_classes, n_classes).
    """
    counts = expected_counts(packed, posterior) + pseudo
    return np.log(counts) - np.log(counts.sum(axis=2, keepdims=True))


def wrong_on_gold(annotations: Annotations, gold: Gold) -> tuple[int, int]:
    """Count the gold items on which the majority vote is wrong.

    Examples
    --------
    >>> votes = Annotations.from_matrix([[0, 0, 1], [0, 1, -1], [1, 1, 1]])
    >>> wrong_on_gold(votes, np.array([1, 1, -1], np.int32))
    (1, 2)

    Shapes: gold (n_items,).
    """
    if gold is None:
        return 0, 0
    gold_items = np.flatnonzero((gold >= 0) & (annotations.n_labels > 0))
    share = vote_share(annotations[gold_items])
    is_behind = share[np.arange(len(gold_items)), gold[gold_items]] < share.max(axis=1, initial=0.0) - TIE
    return int(is_behind.sum()), len(gold_items)


def gold_contradicts_vote(annotations: Annotations, gold: Gold) -> bool:
    """Whether the vote is wrong on at least a quarter of the gold items, and on at least three.

    Then a start from gold is tried. One gold item is not enough: in a crowd that agrees, it could invert all labels,
    and it may itself be wrong.

    Shapes: gold (n_items,).
    """
    wrong, n_gold = wrong_on_gold(annotations, gold)
    return wrong >= MIN_WRONG_ON_GOLD and _GOLD_PER_WRONG * wrong >= n_gold


def gold_overrules_vote(annotations: Annotations, gold: Gold) -> bool:
    """Whether the vote is wrong on more than half of the gold items, by three standard deviations.

    Shapes: gold (n_items,).
    """
    wrong, n_gold = wrong_on_gold(annotations, gold)
    return 2 * wrong - n_gold > 3 * np.sqrt(n_gold)


# ----------------------------------------------------------------------------------------------------
# EM with a classifier in the place of the class prior: the steps that several methods share, without torch.
#
#     E step    r_ik  ~  f_k(x_i) prod_w confusion[w, k, label_iw]
#     M step    confusion[w, k, l]  ~  pseudo[k, l] + sum of r_ik over the items that worker w labelled l,
#               and the classifier f is fitted to the targets r
#
# The E step is `posterior_given` with log f(x) as the log prior of each item, the M step of the confusion matrices is
# `log_confusions`; starting points are above.


def class_names(confusion: Array) -> npt.NDArray[np.intp]:
    """Match the estimated classes to the class names, which a classifier fitted by EM may have permuted.

    The classes stay as they are unless all workers together do no better than chance. Otherwise classes are assigned
    to names so that the summed confusion matrices have the largest possible diagonal (Hungarian algorithm).

    Examples
    --------
    >>> class_names(np.array([[[0.2, 0.8], [0.9, 0.1]]])).tolist()
    [1, 0]

    Shapes: confusion (n_workers, n_classes, n_classes); returns (n_classes,).
    """
    n_workers, n_classes = confusion.shape[:2]
    if n_classes < 2 or np.trace(confusion, axis1=1, axis2=2).sum() > n_workers:
        return np.arange(n_classes)
    from scipy.optimize import linear_sum_assignment

    assigned: npt.NDArray[np.intp] = linear_sum_assignment(confusion.sum(axis=0).T, maximize=True)[1]
    return assigned


# ----------------------------------------------------------------------------------------------------
# Whether labels can be compared with one another at all.


def n_labels_with_gold(annotations: Annotations, gold: npt.NDArray[np.int32] | None) -> npt.NDArray[np.int64]:
    """Number of sources of information on each item: its votes, and gold where it is known.

    Shapes: gold (n_items,); returns (n_items,).
    """
    return annotations.n_voters if gold is None else annotations.n_voters + (gold >= 0)


def has_no_redundancy(annotations: Annotations, gold: npt.NDArray[np.int32] | None) -> bool:
    """Whether no item has two labels, or a label and gold.

    Then labels cannot be compared, and nothing can be inferred about any worker.

    Shapes: gold (n_items,).
    """
    n_sources = n_labels_with_gold(annotations, gold)
    return bool(n_sources.max(initial=0, where=annotations.n_labels > 0) <= 1)
