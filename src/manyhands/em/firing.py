"""Workers who use one class only: labelling functions, and moderators who mark what they see.

Such a worker gives their class or nothing, so that a confusion matrix says nothing about them. What carries information
is on which items they give it. The model is one of *firing*:

    p(w gives label l | truth k) = firing[w, k, l],     p(w is silent | truth k) = 1 - sum_l firing[w, k, l]

The file: whether a crowd is of this kind; the vote in which narrow workers count more; the firing rates, and the
posterior that follows from them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from manyhands._core import elementary
from manyhands._core.arrays import Array
from manyhands.annotations import Annotations, pair_of_label
from manyhands.em.decisions import overall
from manyhands.em.e_step import Gold, pass_with_posterior, posterior_given
from manyhands.em.kernels import pack, vote_share, weighted_votes
from manyhands.em.noise import safe_log

# ----------------------------------------------------------------------------------------------------
# Whether labels come from workers who use one class only: most of them, or many beside workers with several classes.
#
# A worker of a crowd in which class c has the share s_c of all labels gives n labels of class c in a row with
# probability s_c^n. Workers for whom this is rarer than `BY_CHANCE` use one class only. The two limits were chosen on
# simulated crowds (`benchmarks/functions.py`): 97.7% of 299 sets of labelling functions are recognised, and in the
# others one class has more than 88% of the labels. None of 400 ordinary crowds is, with 2 to 5 classes, some with a
# class of 95%, and up to 70% constant spammers; where half of the workers are, at least a quarter of the labels come
# from workers with several classes.
#
# Among functions there may be classifiers, which give several classes and have many labels. Then one question tells
# functions from constant spammers: do the others name c more often where a worker who uses c alone gives it? With
# spammers this agreement is 0 beyond chance: none of 2,000 crowds with 15 to 70% of them is above both limits. With a
# fifth of the labels from functions, Dawid-Skene often collapses to one class, and the firing model does not. Functions
# of one class must have more labels: in a crowd with one frequent class, honest workers may use it alone.

ONE_CLASS = "one-class"  # name of the worker type
BY_CHANCE = 0.01  # probability that a worker uses one class only by chance
MIN_ONE_CLASS_SHARE = 0.5  # of all labels, from workers who use one class only although they labelled enough
MAX_SEVERAL_CLASSES_SHARE = 0.2  # of all labels, from workers who use several classes
MIN_SHARE_BESIDE_OTHERS = 0.2  # of all labels, from workers who use one class only, where others use several
MIN_SHARE_OF_ONE_CLASS = 0.3  # the same where all of them use the same class
MIN_KAPPA = 0.05  # agreement of these with the others beyond chance
MIN_DEVIATIONS = 4.0  # standard deviations of this agreement above 0


def is_one_class_crowd(annotations: Annotations) -> bool:
    """Whether workers use one class only although they labelled enough items: most of them, or many, and no spammers.

    Labels with weights are those of judges who spread them over the classes; they are never of this kind.
    """
    if annotations.weight is not None:
        return False
    cell = annotations.worker * np.int64(annotations.n_classes) + annotations.label
    counts = np.bincount(cell, minlength=annotations.n_workers * annotations.n_classes)
    counts = counts.reshape(annotations.n_workers, annotations.n_classes)
    return is_one_class_table(counts) or _has_functions_beside_others(annotations, counts)


def is_one_class_table(counts: npt.NDArray[np.int64]) -> bool:
    """Whether most labels are of this kind, from the number of labels of each worker for each class.

    Shapes: counts (n_workers, n_classes).
    """
    n_labels, volume = int(counts.sum()), counts.sum(axis=1)
    uses = (counts > 0).sum(axis=1)
    if np.count_nonzero(counts.sum(axis=0)) < 2 or volume[uses > 1].sum() > MAX_SEVERAL_CLASSES_SHARE * n_labels:
        return False  # nearly every crowd
    own = counts[_uses_one_class(counts)].sum(axis=0)
    return bool(np.count_nonzero(own) >= 2 and own.sum() >= MIN_ONE_CLASS_SHARE * n_labels)


def _uses_one_class(counts: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Workers who use one class only although they labelled enough items.

    Shapes: counts (n_workers, n_classes); returns (n_workers,).
    """
    log_share = elementary.log(np.maximum(counts.sum(axis=0), 1) / max(int(counts.sum()), 1))
    is_enough = counts.sum(axis=1) * log_share[counts.argmax(axis=1)] < elementary.log(BY_CHANCE)
    return np.asarray(((counts > 0).sum(axis=1) == 1) & is_enough)


def _has_functions_beside_others(annotations: Annotations, counts: npt.NDArray[np.int64]) -> bool:
    """Whether many labels are of workers who use one class each, and workers who use several agree with them.

    Shapes: counts (n_workers, n_classes).
    """
    has_several = (counts > 0).sum(axis=1) > 1
    if not has_several.any():
        return False
    is_one = _uses_one_class(counts)
    of_class = counts[is_one].sum(axis=0)
    least = MIN_SHARE_BESIDE_OTHERS if np.count_nonzero(of_class) >= 2 else MIN_SHARE_OF_ONE_CLASS
    if of_class.sum() < max(least * counts.sum(), 1):
        return False
    n_items, n_classes = annotations.n_items, annotations.n_classes
    own, other = is_one[annotations.worker], has_several[annotations.worker]
    usual = np.bincount(annotations.label[other], minlength=n_classes) / np.count_nonzero(other)
    cell = annotations.item[other] * np.int64(n_classes) + annotations.label[other]
    item, label = annotations.item[own], annotations.label[own]
    same = np.bincount(cell, minlength=n_items * n_classes)[item * np.int64(n_classes) + label]
    met, share = np.bincount(annotations.item[other], minlength=n_items)[item], usual[label]
    beyond = float(same.sum() - (met * share).sum())
    possible, variance = float((met * (1.0 - share)).sum()), float((met * share * (1.0 - share)).sum())
    return beyond > MIN_KAPPA * possible and beyond > MIN_DEVIATIONS * variance**0.5


def one_class_note(annotations: Annotations) -> str:
    """What kind of crowd this is, how its silence is read, and what to do where that is wrong."""
    lowest = np.full(annotations.n_workers, annotations.n_classes, np.int32)
    highest = np.full(annotations.n_workers, -1, np.int32)
    np.minimum.at(lowest, annotations.worker, annotations.label)
    np.maximum.at(highest, annotations.worker, annotations.label)
    is_one = lowest == highest
    return (
        f"{int(np.count_nonzero(is_one))} workers, who gave {np.mean(is_one[annotations.worker]):.0%} of the labels, "
        f"use one class only: labelling functions, or people who mark what they see. Where they are silent counts as "
        f"information, as in the method firing-naive-bayes. If they are silent on items that they were not asked "
        f"about, choose another method."
    )


# ----------------------------------------------------------------------------------------------------
# The firing model: one step of naive Bayes from the vote.
#
#     start       q_ik  ~  sum over the labels of i that name k of 1 / sqrt(volume_w)       (the narrow vote)
#     firing      firing[w, k, l] = (sum of q_ik over the items that w labelled l + smoothing p_wl) /
#                                   (sum of q_ik over all labelled items + smoothing)
#     posterior   p(k | i)  ~  (q_ik + VOTE_FLOOR)^VOTE_POWER prod_w firing[w, k, label_iw], silence included
#
# p_wl is the share of the labelled items that w labels l. There is no class prior: the shares of classes in a vote of
# functions follow how many functions somebody wrote for each class. Further steps move away from the vote.
#
# A worker who labels everything is less specific, hence the root. It and all constants were chosen on simulated sets of
# labelling functions (`benchmarks/functions.py`), by the mean gain over the vote among settings with few sets more than
# a point behind it.

SMOOTHING = 10.0  # items with the average rate of the worker, added to every class
VOTE_POWER = 0.5  # of the vote in the posterior, which stays anchored to it
VOTE_FLOOR = 0.05  # added to vote shares, so that a class without votes is not excluded
_LEAST = 1e-6  # of a rate, so that logarithms are finite; the same for all classes, so that it cancels


@dataclass(frozen=True)
class FiringModel:
    """Firing rates as the posterior of items needs them; the last worker stands for those that `fit` did not see."""

    log_odds: Array  # (n_workers + 1, n_classes, n_classes); log of firing over silence, indexed [worker, truth, label]
    log_silence: Array  # (n_workers + 1, n_classes); log p(silent | truth); 0 for unseen workers
    vote_weight: Array  # (n_workers + 1,); weight of a label in the narrow vote
    class_prior: Array  # (n_classes,); posterior of an item without labels
    vote_power: float = VOTE_POWER

    def posterior(self, annotations: Annotations, gold: Gold) -> Array:
        """p(truth | labels and silence of all workers); items without labels have the class prior.

        Shapes: gold (n_items,); returns (n_items, n_classes).
        """
        n_workers = annotations.n_workers
        log_prior = self.vote_power * elementary.log(narrow_vote(annotations, self.vote_weight) + VOTE_FLOOR)
        log_prior += self.log_silence.sum(axis=0)
        pair = pair_of_label(annotations.item, annotations.worker)
        again = np.flatnonzero(np.diff(pair, prepend=-1) == 0)  # the silence of a worker is removed once per item
        np.add.at(log_prior, annotations.item[again], self.log_silence[annotations.worker[again]])
        log_prior[annotations.n_labels == 0] = elementary.log(self.class_prior)
        return posterior_given(annotations, self.log_odds[:n_workers], log_prior, gold)[0]


def narrow_vote(annotations: Annotations, weight: Array) -> Array:
    """Vote shares in which every label has the weight of its worker; uniform for an item without labels.

    Shapes: weight (n_workers,); returns (n_items, n_classes).
    """
    votes = weighted_votes(annotations, weight[annotations.worker])
    votes[annotations.n_labels == 0] = 1.0
    return np.asarray(votes / votes.sum(axis=1, keepdims=True))


def fit_firing(
    annotations: Annotations, gold: Gold, smoothing: float = SMOOTHING, vote_power: float = VOTE_POWER
) -> tuple[FiringModel, Array]:
    """Estimate the firing rates from the narrow vote, and gold where it is known.

    Shapes: gold (n_items,); returns firing (n_workers, n_classes, n_classes).
    """
    volume = np.maximum(np.bincount(annotations.worker, minlength=annotations.n_workers), 1).astype(float)
    weight = 1.0 / np.sqrt(np.append(volume, volume.mean()))  # a root has the same bits on every processor
    start = narrow_vote(annotations, weight)
    if gold is not None:
        gold_items = np.flatnonzero(gold >= 0)
        start[gold_items] = np.eye(annotations.n_classes)[gold[gold_items]]
    result = pass_with_posterior(pack(annotations), safe_log(start))
    firing, silent = _rates(annotations, result.counts, result.totals, smoothing)
    silent = np.maximum(silent, _LEAST)
    crowd = result.counts.sum(axis=0) + 1.0 / annotations.n_classes  # (truth, label); of a worker who is not silent
    unseen = safe_log(crowd / crowd.sum(axis=1, keepdims=True))
    log_odds = np.concatenate([safe_log(np.maximum(firing, _LEAST)) - safe_log(silent)[:, :, None], unseen[None]])
    log_silence = np.concatenate([safe_log(silent), np.zeros((1, annotations.n_classes))])
    prior = np.full(annotations.n_classes, 1.0 / annotations.n_classes)
    model = FiringModel(log_odds, log_silence, weight, prior, vote_power)
    labelled = annotations.n_labels > 0
    prior = overall(model.posterior(annotations, gold)[labelled].sum(axis=0))
    return FiringModel(log_odds, log_silence, weight, prior, vote_power), firing


def _rates(annotations: Annotations, counts: Array, totals: Array, smoothing: float) -> tuple[Array, Array]:
    """Firing rates, and the rate of silence, of each worker in each class.

    Shapes: counts (n_workers, n_classes, n_classes); totals (n_classes,); returns firing (n_workers, n_classes,
    n_classes); returns silent (n_workers, n_classes).
    """
    n_labelled = max(int(np.count_nonzero(annotations.n_labels)), 1)
    mean = counts.sum(axis=1) / n_labelled  # (n_workers, n_classes)
    mean /= np.maximum(mean.sum(axis=1, keepdims=True), 1.0)  # repeated labels may be more than the items
    silent = np.maximum(totals - counts.sum(axis=2), 0.0) + smoothing * (1.0 - mean.sum(axis=1, keepdims=True))
    firing = counts + smoothing * mean[:, None, :]
    total = firing.sum(axis=2) + silent
    total = np.where(total > 0, total, 1.0)  # no label of this class, and no smoothing
    return firing / total[:, :, None], silent / total


# ----------------------------------------------------------------------------------------------------
# What labelling functions are described by: coverage, overlap, conflict.


@dataclass(frozen=True)
class Firings:
    """How often each worker gives a label, and how often others do so on the same items."""

    coverage: Array  # (n_workers,); share of all items that the worker labels
    overlap: Array  # (n_workers,); share of these that another worker labels too
    conflict: Array  # (n_workers,); share of these that another worker labels otherwise


def firings_of(annotations: Annotations) -> Firings:
    """Count the firings of each worker; overlap and conflict are NaN for a worker without labels.

    Examples
    --------
    >>> found = firings_of(Annotations.from_matrix([[0, 1], [0, -1], [-1, -1], [0, 0]]))
    >>> found.coverage.tolist(), found.overlap.round(2).tolist(), found.conflict.round(2).tolist()
    ([0.75, 0.5], [0.67, 1.0], [0.33, 0.5])
    """
    item, worker = annotations.item, annotations.worker
    votes = np.rint(vote_share(annotations) * annotations.n_labels[:, None])
    pair = pair_of_label(item, worker)
    n_own = np.bincount(pair)[pair] if len(pair) else np.zeros(0)
    is_shared = annotations.n_labels[item] > n_own
    is_contested = votes[item, annotations.label] < annotations.n_labels[item]
    is_contested &= is_shared  # else the worker contradicts themselves
    n_items, n_shared, n_contested = (
        np.bincount(worker[mask], 1.0 / n_own[mask], annotations.n_workers)
        for mask in (np.ones(len(worker), bool), is_shared, is_contested)
    )
    with np.errstate(invalid="ignore"):
        return Firings(n_items / max(annotations.n_items, 1), n_shared / n_items, n_contested / n_items)
