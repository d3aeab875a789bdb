"""How far the default method departs from the votes: its exponent, when it overrules, and the power across crowds.

The exponent of the posterior is the one that predicts held-out labels best, by cross-validation over labels:

    p(k | labels of i)  ~  (prior[k] prod_w confusion[w, k, label_iw]) ^ exponent

Workers err on the same hard items, so their labels carry less information than independent ones, and the posterior of
an independence model is overconfident. An exponent below 1 corrects this; it never changes which class is most
probable.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from manyhands._core import elementary
from manyhands._core.arrays import Array, Mask
from manyhands.annotations import Annotations, pair_of_label
from manyhands.em.collusion import collapse_groups, merge_workers
from manyhands.em.decisions import TIE
from manyhands.em.e_step import Gold, posterior_given
from manyhands.em.kernels import sums_by, vote_share, weighted_votes
from manyhands.em.noise import safe_log
from manyhands.em.pooled_noise import sum_last
from manyhands.heldout import split_labels
from manyhands.validation import NameOrNumber, Number

# ----------------------------------------------------------------------------------------------------
# The power of the posterior that was learnt across crowds with known truth.
#
#     q_k  ~  (p_k + 0.001) ^ power
#
# Held-out labels show how much workers err together as far as other labels reveal it. They cannot show an error that
# the whole crowd shares, so that the posterior stays too confident: on 17 real crowds the power with the best log
# loss has the median 0.64. It is the default. Where held-out labels show that workers err independently, it is
# blended with 1.


# Median of the MAP powers of 17 crowds under log power ~ N(log .64, .6^2): benchmarks/default_method.py prints it
# (docs/results/default-method.md). Also the scale that calibration starts from.
CROWD_POWER = 0.64
FLOOR = 0.001  # added to every probability, so that a certain error costs a finite log loss
# Standard errors by which independent errors must predict held-out labels better until the power is 1: beyond two, the
# difference is significant at 5% (docs/results/default-method.md).
FULL_INDEPENDENCE = 2.0


def blended_power(power: float, independence: float) -> float:
    """The power learnt across crowds, closer to 1 the more clearly the errors of this crowd are independent.

    Examples
    --------
    >>> blended_power(0.64, -3.0), round(blended_power(0.64, 1.0), 3), blended_power(0.64, 5.0)
    (0.64, 0.8, 1.0)
    """
    blend = min(max(independence / FULL_INDEPENDENCE, 0.0), 1.0)
    if blend in (0.0, 1.0):
        return power if blend == 0.0 else 1.0
    return float(elementary.exp((1.0 - blend) * elementary.log(power)))


def raise_to(posterior: Array, power: float) -> Array:
    """The posterior raised to a power; which class is most probable stays.

    Examples
    --------
    >>> raise_to(np.array([[0.8, 0.2]]), 0.5).round(3).tolist()
    [[0.666, 0.334]]

    Shapes: posterior (n_items, n_classes); returns (n_items, n_classes).
    """
    if power == 1.0:
        return posterior
    raised = elementary.exp(power * elementary.log(posterior + FLOOR))
    return np.asarray(raised / raised.sum(axis=1, keepdims=True))


# ----------------------------------------------------------------------------------------------------
# When the default method may overrule the plurality of an item's labels.
#
# EM overrules the plurality for two kinds of reasons. Some workers answer at random, or invert the classes, and are
# discounted: that holds whatever else is true. Or the model reads class-specific confusions and class frequencies into
# the labels: where workers err together, these describe the shared error and not the workers, and following them
# costs up to nine points of accuracy against the vote. Without known answers the two cannot be told apart by a
# statistic of the crowd, but they can be by item: a label has support where it wins, or ties, once the workers who
# are identified as bad are discounted and all others have one vote each.
#
#     votes of w for class k = [label = k] if log_odds_w > 0.3, p(k | label, k != label, w) if log_odds_w < 0, else 0
#     log_odds_w = log(a_w (n_classes - 1) / (1 - a_w)),      a_w the mean of the diagonal of confusion_w

MIN_LOG_ODDS = 0.3  # of a worker with a full vote: accuracy .57 with two classes, .31 with four
MIN_GROUP_LOG_ODDS = 0.6  # of a colluding group that keeps its votes; by chance an attack reaches .3
ADVANTAGE = 0.01  # of the class that is named over the ones that the model finds more probable
_LEAST, _MOST = 1e-3, 1.0 - 1e-3  # bounds of an accuracy, so that its log-odds are finite


def log_odds(confusion: Array) -> Array:
    """Weight of a vote of each worker in a one-coin model with equally frequent classes.

    Examples
    --------
    >>> log_odds(np.array([np.full((2, 2), 0.5), [[0.75, 0.25], [0.25, 0.75]]])).round(3).tolist()
    [0.0, 1.099]

    Shapes: confusion (n_workers, n_classes, n_classes); returns (n_workers,).
    """
    n_classes = confusion.shape[1]
    accuracy = np.clip(np.einsum("wkk->w", confusion) / n_classes, _LEAST, _MOST)
    return np.asarray(elementary.log(accuracy * max(n_classes - 1, 1) / (1.0 - accuracy)))


def discounted_votes(annotations: Annotations, weight: Array, confusion: Array) -> Array:
    """One vote for every worker, none for random workers; a label of an inverted worker counts for what it means.

    The label of a worker with negative log-odds is a vote for the other classes for which that worker gives it: class
    k gets a share of it in proportion to confusion[k, label]. It is a full vote from log-odds of -0.3.

    Examples
    --------
    >>> votes = Annotations.from_matrix([[0, 0, 0]], classes=[0, 1])
    >>> inverted = np.array([[0.25, 0.75], [0.75, 0.25]])
    >>> confusion = np.array([1 - inverted, np.full((2, 2), 0.5), inverted])
    >>> discounted_votes(votes, log_odds(confusion), confusion).tolist()
    [[1.0, 1.0]]

    Shapes: weight (n_workers,); confusion (n_workers, n_classes, n_classes); returns (n_items, n_classes).
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

    Shapes: posterior (n_items, n_classes); confusion (n_workers, n_classes, n_classes); group (n_workers,); fixed
    (n_items,); returns posterior (n_items, n_classes); returns withheld (n_items,).
    """
    largest = _largest(posterior)
    if rule == "never":
        named = _largest(np.where(_largest(vote_share(annotations)), posterior, -1.0))
    else:
        # A group whose members know the classes keeps its votes: families of similar workers agree beyond independence
        # too, and are not an attack.
        weight = log_odds(confusion)
        is_attack = group.any() and (always_collapse or weight[group].max() <= MIN_GROUP_LOG_ODDS)
        votes = collapse_groups(annotations, group) if is_attack else annotations
        named = _supported_labels(votes, posterior, largest, weight, confusion)
    withheld = np.any(named != largest, axis=1) & ~fixed
    if not withheld.any():
        return posterior, withheld
    limited = posterior.copy()
    limited[withheld] = _shared_equally(posterior[withheld], named[withheld])
    return limited, withheld


def _supported_labels(votes: Annotations, posterior: Array, largest: Mask, weight: Array, confusion: Array) -> Mask:
    """The classes named for each item, shape (n_items, n_classes): of the model with support, else of the plurality."""
    winners = _largest(vote_share(votes))
    counts = discounted_votes(votes, weight, confusion)
    discounted = _largest(counts)
    if votes.weight is not None:  # evenly divided votes make all workers look random: then nobody supports a label
        discounted &= counts.max(axis=1, keepdims=True) > 0
    one_coin = _softmax(weighted_votes(votes, weight[votes.worker]))
    plurality = _largest(np.where(winners, posterior + one_coin, -1.0))
    has_support = np.any(largest & discounted & ~winners, axis=1, keepdims=True)
    return np.where(has_support, largest, plurality)


def _largest(score: Array) -> Mask:
    """All classes of each item whose score is the largest, up to rounding."""
    return score >= score.max(axis=1, keepdims=True) - TIE


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


# ----------------------------------------------------------------------------------------------------
# The exponent that predicts held-out labels best.

# The grid is finer below .2.
EXPONENTS = np.array([0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0])
FOLD_ITERATIONS = 25  # maximum number of EM iterations in a fold, where rough worker parameters are enough
FOLD_ITERATIONS_LOW_VOLUME = 8  # the same for many workers with few labels each, where an iteration costs most
MAX_HELDOUT_LABELS = 50_000  # further folds are skipped
MIN_HELDOUT_LABELS = 50  # with fewer, no exponent is chosen
MAX_LABELS = 2_000_000  # labels; of a larger crowd a sample of items is used
MAX_LABELS_LOW_VOLUME = 20_000  # the same for many workers with few labels, whose matrices are most of the work
LOW_VOLUME_CROWDS = ((5_000, 5.0), (500, 1.5))  # (minimum number of workers, maximum mean number of labels)
_DEPENDENT = 0.6  # exponent that stands for errors which depend on one another, in the test of independence


@dataclass(frozen=True)
class Tempering:
    """Outcome of the cross-validation over labels."""

    exponent: float | None = None  # one of `EXPONENTS`; None where there are too few held-out labels
    # mean held-out log-likelihood at exponent 1 minus that at .6, in standard errors; positive where workers err
    # independently
    independence: float = 0.0


class FittedCrowd(Protocol):
    """A fitted noise model, as tempering needs it."""

    @property
    def confusion(self) -> Array:
        """Confusion matrices, shape (n_workers, n_classes, n_classes)."""

    @property
    def log_prior(self) -> Array:
        """Log class prior, shape (n_classes,)."""


Fitter = Callable[[Annotations, Gold, int, float], FittedCrowd]  # (annotations, gold, max_iter, tol) -> fit


def choose_exponent(annotations: Annotations, gold: Gold, fitter: Fitter, n_folds: int) -> Tempering:
    """The largest exponent within one standard error of the best mean held-out log-likelihood.

    Labels are split into folds. For each fold the model is fitted to the other labels, and each held-out label is
    predicted from the tempered posterior given the other labels of its item.

    Shapes: gold (n_items,).
    """
    sample, gold = _sample_of_items(annotations, gold)
    fold = split_labels(sample, n_folds)
    scores: list[Array] = []
    for k in range(n_folds):
        if sum(map(len, scores)) < MAX_HELDOUT_LABELS:
            scores.append(_heldout_scores(sample, gold, fitter, fold == k))
    score = np.concatenate(scores)  # (n_held_out, n_exponents)
    if len(score) < MIN_HELDOUT_LABELS:
        return Tempering()
    best = int(score.mean(axis=0).argmax())
    loss = score[:, [best]] - score
    near = loss.mean(axis=0) <= loss.std(axis=0) / np.sqrt(len(loss))
    gain = score[:, -1] - score[:, int(np.flatnonzero(EXPONENTS == _DEPENDENT)[0])]
    error = float(gain.std()) / np.sqrt(len(gain))
    independence = float(gain.mean() / error) if error > 0 else 0.0
    return Tempering(float(EXPONENTS[np.flatnonzero(near).max()]), independence)


def _sample_of_items(annotations: Annotations, gold: Gold) -> tuple[Annotations, Gold]:
    """All items of a crowd of ordinary size; evenly spaced ones of a very large crowd or one with very many workers."""
    step = annotations.n_annotations // (MAX_LABELS_LOW_VOLUME if is_low_volume(annotations) else MAX_LABELS) + 1
    if step == 1:
        return annotations, gold
    sample = annotations[::step]
    has_label = np.bincount(sample.worker, minlength=sample.n_workers) > 0
    # Workers without a label in the sample cost memory and add nothing.
    sample = merge_workers(sample, np.maximum(np.cumsum(has_label) - 1, 0))
    return sample, None if gold is None else gold[::step]


def _heldout_scores(annotations: Annotations, gold: Gold, fitter: Fitter, out: npt.NDArray[np.bool_]) -> Array:
    """Held-out log-likelihood of the labels in `out` for each exponent, shape (n_held_out, n_exponents)."""
    rest = annotations.keep(~out)
    held = annotations.keep(out & (rest.n_labels > 0)[annotations.item])
    if rest.n_annotations == 0 or held.n_annotations == 0:
        return np.zeros((0, len(EXPONENTS)))
    fit = fitter(rest, gold, FOLD_ITERATIONS_LOW_VOLUME if is_low_volume(annotations) else FOLD_ITERATIONS, 0.0)
    posterior, _ = posterior_given(rest, safe_log(fit.confusion), fit.log_prior, gold)
    log_p = safe_log(posterior)[held.item]  # (n_held_out, n_classes)
    p_label = fit.confusion[held.worker, :, held.label]
    log_p -= log_p.max(axis=1, keepdims=True)
    scores = []
    for exponent in EXPONENTS:
        p = elementary.exp(exponent * log_p)
        scores.append(safe_log(sum_last(p * p_label) / sum_last(p)))
    table = np.stack(scores, axis=1)
    return table if held.weight is None else _mean_by_vote(table, held, held.weight)


def _mean_by_vote(scores: Array, held: Annotations, weight: Array) -> Array:
    """Weighted means of the scores of all labels that one worker gave to one item, which are one vote."""
    pair = pair_of_label(held.item, held.worker)
    first = np.flatnonzero(np.diff(pair, prepend=-1))
    return np.add.reduceat(weight[:, None] * scores, first) / np.add.reduceat(weight, first)[:, None]


def is_low_volume(annotations: Annotations) -> bool:
    """Whether there are many workers with few labels each.

    Then little can be inferred about any of them, and most of the work is in their confusion matrices.
    """
    return has_low_volume(annotations.worker_volume)


def has_low_volume(worker_volume: npt.NDArray[Any]) -> bool:
    """The same from the number of labels of each worker.

    Shapes: worker_volume (n_workers,).
    """
    n_active, n_labels = np.count_nonzero(worker_volume), worker_volume.sum()
    return any(n_active >= least and n_labels <= most * n_active for least, most in LOW_VOLUME_CROWDS)


# ----------------------------------------------------------------------------------------------------
# From the posterior of a model to the one that is released: limited overruling, and the power learnt across crowds.

# Posterior probabilities closer than this are tied: EM stops no closer to its optimum, and files have six decimals.
FLAT = 1e-6
RULES = ("never", "supported", "always")  # of the parameter `overrule`
TEMPER = NameOrNumber(("crowds", "none"), Number(above=0, most=10))  # constraint of the parameter `temper`


def chosen_power(temper: str | float, tempering: Tempering) -> float:
    """Power of the posterior by the parameter `temper`."""
    if isinstance(temper, str):
        return blended_power(CROWD_POWER, tempering.independence) if temper == "crowds" else 1.0
    return float(temper)


def ties_by_vote(annotations: Annotations, posterior: Array, fixed: Mask) -> tuple[Array, Mask]:
    """The posterior in which the vote decides between classes that the fit leaves tied, and where it does.

    A fit that takes all workers of an item for random says nothing about it, and the tie would go to the most frequent
    class. Classes that are tied in the vote too stay tied.

    Examples
    --------
    >>> votes = Annotations.from_matrix([[1, 1, 0], [1, 0, -1]])
    >>> posterior, decided = ties_by_vote(votes, np.full((2, 2), 0.5), np.zeros(2, bool))
    >>> posterior.round(3).tolist(), decided.tolist()
    ([[0.498, 0.502], [0.5, 0.5]], [True, False])

    Shapes: posterior (n_items, n_classes); fixed (n_items,); returns posterior (n_items, n_classes); returns decided
    (n_items,).
    """
    tied = posterior >= posterior.max(axis=1, keepdims=True) - FLAT
    rows = np.flatnonzero((tied.sum(axis=1) > 1) & ~fixed)
    decided = np.zeros(len(posterior), bool)
    if not len(rows):
        return posterior, decided
    named = _largest(np.where(tied[rows], vote_share(annotations)[rows], -1.0))
    is_decided = np.any(named != tied[rows], axis=1)
    rows, named = rows[is_decided], named[is_decided]
    decided[rows] = True
    released = posterior.copy()
    released[rows] = _shared_equally(posterior[rows], named)
    return released, decided


def release(
    annotations: Annotations, posterior: Array, gold: Gold, results: Mapping[str, Any]
) -> tuple[Array, npt.NDArray[np.bool_]]:
    """The posterior after overruling and the power of the crowds, and which items are withheld.

    Items with gold stay certain, and items without labels keep the class shares.

    Shapes: posterior (n_items, n_classes); gold (n_items,); returns posterior (n_items, n_classes); returns withheld
    (n_items,).
    """
    fixed = annotations.n_labels == 0
    fixed = fixed if gold is None else fixed | (gold >= 0)
    withheld = np.zeros(annotations.n_items, bool)
    if results["_used_rule"] != "always":
        posterior, withheld = limit_overruling(
            annotations,
            posterior,
            results["confusion_"],
            results["collusion_group_"],
            results["_used_rule"],
            fixed,
            always_collapse=results["_is_sybil_group"],
        )
    posterior, _ = ties_by_vote(annotations, posterior, fixed)
    if results["crowd_power_"] == 1.0:
        return posterior, withheld
    raised = raise_to(posterior, results["crowd_power_"])
    raised[fixed] = posterior[fixed]
    return raised, withheld
