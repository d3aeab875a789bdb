"""How right each worker is: accuracy and recall with 95% credible intervals, and class bias.

Let q be the leave-one-out probability that a label is right. With worker accuracy a, it is right with probability

    r(a) = q a^p / (q a^p + (1 - q) ((1 - a) / (n_classes - 1))^p)

and the sum over labels of (r(a) - a) / (a (1 - a)) is the derivative of the log-likelihood in a. With p = 1, for labels
that are independent given the truth, this is a binomial likelihood with uncertain outcomes: uncertainty about the truth
makes the likelihood flatter, but does not lower the estimate. With the tempering exponent p < 1 of the posterior,
workers make errors on the same items, and a label is weaker evidence. The exponent is estimated from held-out labels,
with a large error where these are few; the posterior is therefore averaged over this p and p = 1.

The prior is hierarchical: a Beta distribution whose mean and strength are estimated from all workers and averaged over,
and a uniform part, so that even a very good crowd may contain a bad worker. With a single worker, or where no label can
be checked, the interval is that of the prior.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv, betaln

from manyhands._core.arrays import Array, Mask
from manyhands.annotations import Annotations
from manyhands.em.collusion import collapse_groups
from manyhands.em.copies import Copies
from manyhands.em.e_step import Gold, posterior_given
from manyhands.em.kernels import sums_by, vote_share
from manyhands.em.noise import safe_log
from manyhands.em.pooled_noise import sum_last
from manyhands.heldout import worker_confusions

# ----------------------------------------------------------------------------------------------------
# Leave-one-out posterior: the truth of each labelled item as it follows from all labels but the worker's own.
#
#     p(k | labels of the others)  ~  posterior[item, k] / confusion[worker, k, label] ^ exponent
#
# No worker is evaluated by their own labels. Gold takes precedence. A label on an item that neither gold nor another
# worker labels cannot be checked and has weight 0.

DOUBT = 0.02  # weight of the uniform distribution in every posterior except gold, because posteriors are overconfident


@dataclass(frozen=True, eq=False)
class LeaveOneOut:
    """Leave-one-out posterior of every label; one row per annotation."""

    annotations: Annotations
    # (n_annotations, n_classes); posterior of the item's truth without the labels of the worker who gave this label
    truth: Array
    # (n_annotations,); 1 for a label that can be checked, 0 where no other worker and no gold labels the item;
    # repeated labels of one worker on one item share a weight of 1
    weight: Array
    n_others: Array  # (n_annotations,); number of labels of other workers on the item
    n_equal: Array  # (n_annotations,); how many of these name the same class

    def by_worker(self, value: Array) -> Array:
        """Sum one value per annotation over the annotations of each worker.

        Shapes: value (n_annotations,); returns (n_workers,).
        """
        return sums_by(self.annotations.worker, value, self.annotations.n_workers)

    def by_label(self, value: Array) -> Array:
        """Sum one value per annotation over the annotations of each worker and label.

        Shapes: value (n_annotations,); returns (n_workers, n_classes).
        """
        votes = self.annotations
        return sums_by(self.cell, value, votes.n_workers * votes.n_classes).reshape(votes.n_workers, votes.n_classes)

    @cached_property
    def cell(self) -> npt.NDArray[np.int64]:
        """(n_annotations,) index of (worker, label) in a flattened (n_workers, n_classes) array."""
        return self.annotations.worker * np.int64(self.annotations.n_classes) + self.annotations.label

    @cached_property
    def p_right(self) -> Array:
        """(n_annotations,) leave-one-out probability that the label is right."""
        return np.take_along_axis(self.truth, self.annotations.label[:, None].astype(np.intp), axis=1)[:, 0]

    @cached_property
    def used(self) -> Array:
        """(n_workers, n_classes) number of checked labels of each class."""
        return self.by_label(self.weight)

    @cached_property
    def met(self) -> Array:
        """(n_workers, n_classes) expected number of checked items whose truth is each class."""
        columns = [self.by_worker(self.weight * column) for column in self.truth.T]
        return np.stack(columns, axis=1) if columns else np.zeros((self.annotations.n_workers, 0))


def derive_tables(annotations: Annotations, posterior: Array, members: Mask, gold: Gold) -> tuple[Array, Array]:
    """Estimate confusion matrices from a posterior, and the posterior that follows from these matrices.

    For methods without confusion matrices. From a vote share of 0, for example, no single vote can be removed; from a
    posterior that is a product of confusion matrices it can.

    Shapes: posterior (n_items, n_classes); members (n_workers,); gold (n_items,); returns confusion (n_workers,
    n_classes, n_classes); returns posterior (n_items, n_classes).
    """
    collapsed = collapse_groups(annotations, members)
    truth = posterior if gold is None else np.where((gold >= 0)[:, None], _one_hot(gold, posterior.shape[1]), posterior)
    confusion = worker_confusions(collapsed, truth)[:-1]
    if members.any():
        n_given = np.bincount(collapsed.worker, minlength=collapsed.n_workers)
        confusion[members] = confusion[np.argmax(np.where(members, n_given, -1))]
    total = truth[annotations.n_labels > 0].sum(axis=0) + 1.0
    return confusion, posterior_given(collapsed, safe_log(confusion), np.log(total / total.sum()))[0]


def posterior_of_tables(
    annotations: Annotations, posterior: Array, confusion: Array, exponent: float, members: Mask
) -> Array:
    """Compute the posterior that is a product of the confusion matrices, from which single labels can be removed.

    A method may release another posterior than that of its model, such as one raised to a power for calibration.

    Shapes: posterior (n_items, n_classes); confusion (n_workers, n_classes, n_classes); members (n_workers,); returns
    (n_items, n_classes).
    """
    total = posterior[annotations.n_labels > 0].sum(axis=0) + 1.0
    log_prior = np.log(total / total.sum())
    collapsed = collapse_groups(annotations, members)
    return posterior_given(collapsed, exponent * safe_log(confusion), exponent * log_prior)[0]


def leave_one_out_posterior(
    annotations: Annotations,
    posterior: Array,
    confusion: Array,
    exponent: float,
    members: Mask,
    gold: Gold,
    copies: Copies | None = None,
) -> LeaveOneOut:
    """Remove each worker's own labels from the posterior of the items they labelled.

    Shapes: posterior (n_items, n_classes); confusion (n_workers, n_classes, n_classes); members (n_workers,); gold
    (n_items,).
    """
    return without_own_labels(annotations, posterior, safe_log(confusion), exponent, members, gold, copies)


def without_own_labels(
    annotations: Annotations,
    posterior: Array,
    log_confusion: Array,
    exponent: float,
    members: Mask,
    gold: Gold,
    copies: Copies | None = None,
) -> LeaveOneOut:
    """The same with the logarithms of the confusion matrices, which parts of a crowd share.

    Of a group of copies, the posterior contains the labels of one worker on each item. They are removed for all of the
    group: a copy is no evidence for its source.

    Shapes: posterior (n_items, n_classes); log_confusion (n_workers, n_classes, n_classes); members (n_workers,);
    gold (n_items,).
    """
    first, own = _own_runs(annotations)
    n_own = np.diff(np.append(first, annotations.n_annotations))
    own_terms = _own_log_likelihood(annotations, log_confusion, members, n_own[own])
    if copies:
        own_terms = _terms_of_groups(annotations, own_terms, n_own[own], copies)
    # Few crowds have workers who labelled an item twice; in the others a label is the only one of its run.
    own_sum = np.repeat(np.add.reduceat(own_terms, first), n_own, axis=0) if len(first) < len(own) else own_terms
    score = safe_log(posterior)[annotations.item] - exponent * own_sum
    score -= score.max(axis=1, keepdims=True)
    np.exp(score, out=score)
    score /= sum_last(score)[:, None]
    truth = (1 - DOUBT) * score + DOUBT / annotations.n_classes
    n_others = (annotations.n_labels[annotations.item] - n_own[own]).astype(float)
    checked = (n_others > 0) & (~members[annotations.worker] | _has_outsider(annotations, members))
    if copies:
        checked &= _has_label_outside(annotations, copies)
    if gold is not None:
        has_gold = gold[annotations.item] >= 0
        truth[has_gold] = _one_hot(gold[annotations.item[has_gold]], annotations.n_classes)
        checked |= has_gold
    n_equal = _n_equal(annotations, own)
    return LeaveOneOut(annotations, truth, checked / n_own[own], n_others, n_equal)


def labels_of_others(loo: LeaveOneOut) -> Array:
    """Count the labels of other workers on the items of each worker, by class.

    Shapes: returns (n_workers, n_classes).
    """
    votes = loo.annotations
    n_votes = np.rint(vote_share(votes) * votes.n_labels[:, None])
    met = np.stack([loo.by_worker(column[votes.item]) for column in n_votes.T], axis=1)
    return met - loo.by_label(votes.n_labels[votes.item] - loo.n_others)


def _own_runs(annotations: Annotations) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.int64]]:
    """Where a worker's labels of one item begin, and (n_annotations,) the index of the run that each belongs to."""
    is_first = np.ones(annotations.n_annotations, bool)
    is_first[1:] = (np.diff(annotations.item) != 0) | (np.diff(annotations.worker) != 0)
    return np.flatnonzero(is_first), np.cumsum(is_first) - 1


def _own_log_likelihood(
    annotations: Annotations, log_confusion: Array, members: Mask, n_own: npt.NDArray[np.int64]
) -> Array:
    """(n_annotations, n_classes) log p(label | truth), which each label adds to the log posterior.

    The posterior contains one label of a colluding group, the most frequent one; for members, this label is removed.
    """
    own = log_confusion[annotations.worker, :, annotations.label]
    inside = members[annotations.worker]
    if inside.any():
        collapsed = collapse_groups(annotations, members)
        of_group = members[collapsed.worker]
        group_label = np.full(annotations.n_items, -1)
        group_label[collapsed.item[of_group]] = collapsed.label[of_group]
        label = group_label[annotations.item[inside]]
        of_label = log_confusion[annotations.worker[inside], :, label]
        own[inside] = np.where((label >= 0)[:, None], of_label, 0.0) / n_own[inside][:, None]
    return own


def _terms_of_groups(annotations: Annotations, own_terms: Array, n_own: npt.NDArray[np.int64], copies: Copies) -> Array:
    """The terms of the labels that count for a group on the item, in the place of those of its members' own labels.

    They are divided by the number of labels that the member has on the item, as the terms are summed over these.

    Shapes: own_terms (n_annotations, n_classes); n_own (n_annotations,); returns (n_annotations, n_classes).
    """
    rows = np.flatnonzero(copies.members[annotations.worker])
    counts = copies.counted_worker(annotations)[rows] == annotations.worker[rows]
    cell = annotations.item[rows] * np.int64(len(copies.group)) + copies.group[annotations.worker[rows]]
    _, cell = np.unique(cell, return_inverse=True)
    terms = own_terms.copy()
    for k, column in enumerate(own_terms.T):
        of_group = sums_by(cell[counts], column[rows[counts]], int(cell.max(initial=-1)) + 1)
        terms[rows, k] = of_group[cell] / n_own[rows]
    return terms


def _has_label_outside(annotations: Annotations, copies: Copies) -> Mask:
    """(n_annotations,) whether a worker of another group, or of none, labelled the item."""
    group = copies.group[annotations.worker]
    inside = group >= 0
    cell = annotations.item * np.int64(len(copies.group)) + group
    _, which, size = np.unique(cell[inside], return_inverse=True, return_counts=True)
    has_other = np.ones(len(group), bool)
    has_other[inside] = size[which] < annotations.n_labels[annotations.item[inside]]
    return has_other


def _has_outsider(annotations: Annotations, members: Mask) -> Mask:
    """(n_annotations,) whether a worker outside the group labelled the item."""
    n_outside = np.bincount(annotations.item[~members[annotations.worker]], minlength=annotations.n_items)
    return np.asarray(n_outside[annotations.item] > 0)


def _n_equal(annotations: Annotations, own: npt.NDArray[np.int64]) -> Array:
    """(n_annotations,) how many other workers' labels on the item name the same class."""
    votes = vote_share(annotations) * annotations.n_labels[:, None]
    same = np.rint(votes[annotations.item, annotations.label])
    if len(own) == 0 or own[-1] == len(own) - 1:  # no worker labelled an item twice
        return np.asarray(same - 1.0, float)
    _, which, n_mine = np.unique(
        own * annotations.n_classes + annotations.label, return_inverse=True, return_counts=True
    )
    return np.asarray(same - n_mine[which], float)


def _one_hot(codes: npt.NDArray[np.int32], n_classes: int) -> Array:
    return np.asarray(codes[:, None] == np.arange(n_classes), float)


# ----------------------------------------------------------------------------------------------------
# The accuracy: its likelihood, its prior across workers, and the interval.

LEVEL = 0.95  # of the credible interval
UNIFORM_SHARE = 0.15  # weight of the uniform distribution in the prior of each worker
PRIOR_MEAN, PRIOR_WORKERS = 0.7, 4.0  # mean accuracy of a crowd, and the number of workers that the prior is worth
_GRID = (np.arange(200) + 0.5) / 200  # accuracies
N_NODES = 51  # probabilities of being right are binned into a histogram
_NODES = np.linspace(0.0, 1.0, N_NODES)
_MEANS = np.arange(0.05, 0.99, 0.05)
_STRENGTHS = np.array([2.0, 4.0, 8.0, 16.0, 32.0])
_CHUNK = 2000  # workers at a time
_MANY_WORKERS = 10_000  # from this number on, workers with equal histograms are estimated together


class AccuracyEstimate(NamedTuple):
    """Posterior mean and 95% interval of the accuracy of each worker.

    Attributes
    ----------
    mean : ndarray of shape (n_workers,)
        Posterior mean.
    low : ndarray of shape (n_workers,)
        Quantile at 2.5%.
    high : ndarray of shape (n_workers,)
        Quantile at 97.5%.
    """

    mean: Array
    low: Array
    high: Array


def estimate_accuracy(loo: LeaveOneOut, tempering_exponent: float) -> AccuracyEstimate:
    """Estimate the share of right labels of each worker.

    Parameters
    ----------
    loo : LeaveOneOut
        Leave-one-out posterior of the truth of each label.
    tempering_exponent : float
        Exponent p of the labels' likelihood in the posterior; 1 for independent labels.

    Returns
    -------
    AccuracyEstimate
        Posterior mean and 95% interval for each worker.
    """
    return accuracy_of_histogram(right_histogram(loo), loo.annotations.n_classes, tempering_exponent)


def accuracy_of_histogram(histogram: Array, n_classes: int, tempering_exponent: float) -> AccuracyEstimate:
    """The same from the sums over the labels of each worker, which may come from several parts of a crowd.

    Shapes: histogram (n_workers, N_NODES).
    """
    exponents = [tempering_exponent] if tempering_exponent == 1.0 else [tempering_exponent, 1.0]
    histogram, size, which = _distinct(histogram)
    density = np.mean([_posterior(_log_likelihood(histogram, n_classes, p), size) for p in exponents], axis=0)
    return AccuracyEstimate(*(value if which is None else value[which] for value in _summary(density)))


def accuracy_of_counts(right: Array, wrong: Array) -> AccuracyEstimate:
    """Estimate the accuracy from expected numbers of right and wrong labels, taken as if they were known.

    The prior is that of `estimate_accuracy`. The interval does not include the uncertainty about the truth, and a
    worker's own labels are part of the posterior that they are compared with.

    Shapes: right (n_workers,); wrong (n_workers,).
    """
    priors, log_hyper = _crowd_priors()
    pieces = [slice(first, first + _CHUNK) for first in range(0, len(right), _CHUNK)]

    def likelihood(part: slice) -> Array:
        log = right[part, None] * np.log(_GRID) + wrong[part, None] * np.log1p(-_GRID)
        return np.exp(log - log.max(axis=1, keepdims=True))

    def normalised(density: Array) -> Array:
        return density / density.sum(axis=1, keepdims=True)

    for part in pieces:
        log_hyper += np.log(np.einsum("wg,hg->wh", likelihood(part), priors)).sum(axis=0)
    share = np.exp(log_hyper - log_hyper.max())
    prior = np.einsum("h,hg->g", share / share.sum(), priors)
    summaries = [_summary(normalised(likelihood(part) * prior)) for part in pieces]
    return AccuracyEstimate(*(np.concatenate(values) for values in zip(*summaries)))


# Labels that a precision counts as, at most: the truth of a function's items follows from functions that err together,
# so more labels do not make the estimate better. On 292 simulated sets of functions (`benchmarks/functions.py`) the
# mean error is .12 and the interval contains 86% of the true precisions; a lower number hardly adds to that.
_LABELS_OF_PRECISION = 4.0


def estimate_precision(annotations: Annotations, posterior: Array) -> AccuracyEstimate:
    """Estimate the precision of workers who use one class each: the mean posterior of their labels.

    The worker's own label is part of this posterior. Without it, nothing speaks for the class of a worker who is alone
    on most of their items, and the estimate is worse.

    Shapes: posterior (n_items, n_classes).
    """
    p_right = posterior[annotations.item, annotations.label]
    n_labels = np.bincount(annotations.worker, minlength=annotations.n_workers)
    mean = (sums_by(annotations.worker, p_right, annotations.n_workers) + PRIOR_MEAN) / (n_labels + 1.0)
    size = np.minimum(n_labels, _LABELS_OF_PRECISION)
    right, wrong, tail = mean * size + 0.5, (1.0 - mean) * size + 0.5, (1 - LEVEL) / 2
    low, high = betaincinv(right, wrong, tail), betaincinv(right, wrong, 1 - tail)
    return AccuracyEstimate(mean, np.minimum(low, mean), np.maximum(high, mean))


def _summary(density: Array) -> AccuracyEstimate:
    """Mean and interval of each row of probabilities on the grid."""
    tail = (1 - LEVEL) / 2
    cumulative = np.cumsum(density, axis=1)
    mean = np.einsum("wg,g->w", density, _GRID)
    return AccuracyEstimate(mean, _quantile(density, cumulative, tail), _quantile(density, cumulative, 1 - tail))


def _distinct(histogram: Array) -> tuple[Array, Array | None, npt.NDArray[np.intp] | None]:
    """For very many workers: one row per distinct histogram, how many workers share it, and the row of each worker."""
    if len(histogram) < _MANY_WORKERS:
        return histogram, None, None
    mark = np.einsum("wn,n->w", histogram, np.sqrt(2.0 + np.arange(histogram.shape[1])))  # irrational: sums differ
    _, first, which, size = np.unique(np.round(mark, 9), return_index=True, return_inverse=True, return_counts=True)
    if 2 * len(first) > len(histogram):
        return histogram, None, None
    return histogram[first], size.astype(float), which


def _posterior(log_likelihood: Array, size: Array | None) -> Array:
    """(n_workers, n_grid) posterior of each accuracy, under the prior averaged over the crowd's hyperparameters."""
    priors, log_hyper = _crowd_priors()
    likelihood = np.exp(log_likelihood - log_likelihood.max(axis=1, keepdims=True))
    for first in range(0, len(likelihood), _CHUNK):
        evidence = np.log(np.einsum("wg,hg->wh", likelihood[first : first + _CHUNK], priors))
        log_hyper += (evidence if size is None else evidence * size[first : first + _CHUNK, None]).sum(axis=0)
    share = np.exp(log_hyper - log_hyper.max())
    density = likelihood * np.einsum("h,hg->g", share / share.sum(), priors)
    return density / density.sum(axis=1, keepdims=True)


def right_histogram(loo: LeaveOneOut) -> Array:
    """Weight of each worker's labels by their leave-one-out probability of being right.

    Shapes: returns (n_workers, N_NODES).
    """
    return histogram_of(loo.annotations.worker, loo.p_right, loo.weight, loo.annotations.n_workers)


def histogram_of(worker: npt.NDArray[np.int32], p_right: Array, weight: Array, n_workers: int) -> Array:
    """The same from columns with an entry for each label.

    Shapes: worker (n_labels,); p_right (n_labels,); weight (n_labels,); returns (n_workers, N_NODES).
    """
    position = p_right * (len(_NODES) - 1)
    below = np.minimum(position.astype(np.int64), len(_NODES) - 2)
    cell = worker * np.int64(len(_NODES)) + below
    size = n_workers * len(_NODES)
    upper = position - below  # linear interpolation between two nodes
    histogram = sums_by(cell, weight * (1 - upper), size) + sums_by(cell + 1, weight * upper, size)
    return histogram.reshape(-1, len(_NODES))


def _log_likelihood(histogram: Array, n_classes: int, exponent: float) -> Array:
    """(n_workers, n_grid) log-likelihood of every accuracy, up to a constant for each worker."""
    return np.einsum("wn,ng->wg", histogram, _node_log_likelihood(n_classes, exponent))


def _node_log_likelihood(n_classes: int, exponent: float) -> Array:
    """(n_nodes, n_grid) log-likelihood of every accuracy for each node of the histogram: the derivative, integrated."""
    if n_classes == 1:
        return np.zeros((len(_NODES), len(_GRID)))  # no label can be wrong
    edge = np.arange(1, len(_GRID)) / len(_GRID)  # between the accuracies of the grid
    right = _NODES[:, None] * edge**exponent
    wrong = (1 - _NODES[:, None]) * ((1 - edge) / (n_classes - 1)) ** exponent
    slope = (right / (right + wrong) - edge) / (edge * (1 - edge))
    return np.pad(np.cumsum(slope, axis=1) / len(_GRID), ((0, 0), (1, 0)))


def _crowd_priors() -> tuple[Array, Array]:
    """(n_priors, n_grid) candidate Beta priors on the grid, and (n_priors,) their log hyperprior."""
    mean, strength = (m.ravel()[:, None] for m in np.meshgrid(_MEANS, _STRENGTHS))
    log_beta = (mean * strength - 1) * np.log(_GRID) + ((1 - mean) * strength - 1) * np.log1p(-_GRID)
    beta = np.exp(log_beta - log_beta.max(axis=1, keepdims=True))
    beta /= beta.sum(axis=1, keepdims=True)
    log_hyper = PRIOR_WORKERS * (PRIOR_MEAN * np.log(mean[:, 0]) + (1 - PRIOR_MEAN) * np.log1p(-mean[:, 0]))
    return (1 - UNIFORM_SHARE) * beta + UNIFORM_SHARE / len(_GRID), log_hyper


def _quantile(density: Array, cumulative: Array, level: float) -> Array:
    """(n_workers,) the quantile of each worker's posterior, interpolated linearly within a cell of the grid."""
    cell = np.argmax(cumulative >= level, axis=1)[:, None]
    inside = np.take_along_axis(density, cell, axis=1)
    before = np.take_along_axis(cumulative, cell, axis=1) - inside
    return np.clip((cell + (level - before) / np.maximum(inside, 1e-300))[:, 0] / len(_GRID), 0.0, 1.0)


# ----------------------------------------------------------------------------------------------------
# Class bias of each worker, and the classes that each worker confuses most often.

MIN_Z = 3.0  # standard deviations from which a class counts as over-used
MIN_COUNT = 2.0  # expected labels from which a confusion is listed
MOST_CONFUSIONS = 3  # that are listed for a worker
Codes = npt.NDArray[np.intp]


class Bias(NamedTuple):
    """The class that each worker over-uses most."""

    code: Codes  # (n_workers,); code of the over-used class; -1 where no class is over-used significantly
    # (n_workers,); share of labels of this class minus its expected share among the worker's items; 0 without such a
    # class
    excess: Array
    z: Array  # (n_workers,); the largest surplus of a class in standard deviations


class Confusions(NamedTuple):
    """The most frequent confusions of each worker, in descending order of their expected count."""

    truth: Codes  # (n_workers, 3); code of the true class; -1 where there are fewer confusions
    label: Codes  # (n_workers, 3); code of the label given in its place; -1 where there are fewer
    n_labels: Array  # (n_workers, 3); expected number of such labels; 0 where there are fewer
    # (n_workers, 3); share of the worker's items of this true class that got this label; 0 where there are fewer
    rate: Array


def find_bias(loo: LeaveOneOut) -> Bias:
    """Find the class that each worker uses more often than it occurs among their items.

    The surplus of a class is the number of labels of this class minus the expected number of items of this class under
    the leave-one-out posterior. As in McNemar's test, its variance counts only labels that differ from the truth:
    right labels are no evidence of a preference.

    References
    ----------
    McNemar (1947), "Note on the sampling error of the difference between correlated proportions or percentages".
    """
    n_checked = np.maximum(loo.used.sum(axis=1), 1e-12)[:, None]
    surplus = loo.used - loo.met
    label = loo.annotations.label
    square = [loo.by_worker(loo.weight * ((label == k) - column) ** 2) for k, column in enumerate(loo.truth.T)]
    z = surplus / np.sqrt(np.stack(square, axis=1) + 1.0)
    top = z.argmax(axis=1)[:, None]
    most = np.take_along_axis(z, top, axis=1)[:, 0]
    excess = np.take_along_axis(surplus / n_checked, top, axis=1)[:, 0]
    is_biased = most >= MIN_Z
    return Bias(np.where(is_biased, top[:, 0], -1), np.where(is_biased, excess, 0.0), most)


def expected_counts(loo: LeaveOneOut, accuracy: Array) -> Array:
    """Count the labels of each worker by truth and label.

    The truth of a labelled item has the posterior that follows from the leave-one-out posterior and the worker's own
    label under a one-coin model with their accuracy. With the leave-one-out posterior alone, every uncertainty of the
    other workers would count as an error of this one.

    Shapes: accuracy (n_workers,); returns (n_workers, n_classes, n_classes).
    """
    annotations = loo.annotations
    n_classes = annotations.n_classes
    right = accuracy[annotations.worker]
    wrong = (1 - right) / max(n_classes - 1, 1)
    posterior = loo.truth * wrong[:, None]
    rows = np.arange(len(right))
    posterior[rows, annotations.label] = loo.p_right * right
    posterior /= np.maximum(posterior.sum(axis=1, keepdims=True), 1e-300)  # exactly 1 on gold, whatever the accuracy is
    posterior *= loo.weight[:, None]
    return np.stack([loo.by_label(column) for column in posterior.T], axis=1)


def find_confusions(counts: Array) -> Confusions:
    """Find the wrong labels that each worker gives most often.

    Shapes: counts (n_workers, n_classes, n_classes).
    """
    n_classes, counts = counts.shape[1], counts.copy()
    rate = counts / np.maximum(counts.sum(axis=2, keepdims=True), 1e-300)
    counts[:, np.arange(n_classes), np.arange(n_classes)] = -1.0
    flat = counts.reshape(len(counts), -1)
    top = np.argsort(-flat, axis=1, kind="stable")[:, :MOST_CONFUSIONS]
    top = np.pad(top, ((0, 0), (0, MOST_CONFUSIONS - top.shape[1])), mode="edge")
    count = np.take_along_axis(flat, top, axis=1)
    listed = (count >= MIN_COUNT) & (np.arange(MOST_CONFUSIONS) < flat.shape[1])
    truth, label = np.divmod(top, n_classes)
    rates = np.take_along_axis(rate.reshape(flat.shape), top, axis=1)
    return Confusions(
        np.where(listed, truth, -1),
        np.where(listed, label, -1),
        np.where(listed, count, 0.0),
        np.where(listed, rates, 0.0),
    )


# ----------------------------------------------------------------------------------------------------
# Recall of each worker for each class: the share of items of this class that they label right.
#
# A worker has few items of some classes, so the estimate is a Beta posterior: the expected number of right and wrong
# labels on items of the class, and a prior from what is known without them. The mean of the prior is the recall of the
# crowd for this class, with its odds multiplied by how much better or worse the worker is in general; its strength is
# the one under which the labels of the crowd are the most probable.

_RECALL_STRENGTHS = np.array([2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0])
_LIMIT = 0.01  # the mean of the prior is not nearer to 0 or 1


class Recall(NamedTuple):
    """Recall of each worker for each class, with the evidence behind it."""

    mean: Array  # (n_workers, n_classes)
    low: Array  # (n_workers, n_classes)
    high: Array  # (n_workers, n_classes)
    n_items: Array  # (n_workers, n_classes); expected number of the worker's checked items that are of this class


def estimate_recall(counts: Array, accuracy: Array) -> Recall:
    """Estimate the recall of each worker for each class.

    Shapes: counts (n_workers, n_classes, n_classes); accuracy (n_workers,).
    """
    right, wrong, n_items = recall_parameters(counts, accuracy)
    tail = (1 - LEVEL) / 2
    interval = betaincinv(right, wrong, tail), betaincinv(right, wrong, 1 - tail)
    return Recall(right / (right + wrong), *interval, n_items)


def recall_parameters(counts: Array, accuracy: Array) -> tuple[Array, Array, Array]:
    """The Beta posterior of the recall of each worker for each class.

    Shapes: counts (n_workers, n_classes, n_classes); accuracy (n_workers,); returns right (n_workers, n_classes);
    returns wrong (n_workers, n_classes); returns n_items (n_workers, n_classes).
    """
    n_items = counts.sum(axis=2)
    right = np.einsum("wkk->wk", counts)
    prior = _prior_mean(right, n_items, accuracy)
    evidence = [_log_evidence(right, n_items, prior, strength) for strength in _RECALL_STRENGTHS]
    strength = _RECALL_STRENGTHS[int(np.argmax(evidence))]
    return right + strength * prior, n_items - right + strength * (1 - prior), n_items


def _prior_mean(right: Array, n_items: Array, accuracy: Array) -> Array:
    """(n_workers, n_classes) recall expected before the worker's labels of this class are seen."""
    total = max(float(n_items.sum()), 1e-12)
    by_class = (right.sum(axis=0) + 1.0) / (n_items.sum(axis=0) + 2.0)
    overall = np.clip((right.sum() + 1.0) / (total + 2.0), _LIMIT, 1 - _LIMIT)
    own = np.clip(accuracy, _LIMIT, 1 - _LIMIT)
    log_odds = _logit(np.clip(by_class, _LIMIT, 1 - _LIMIT)) + (_logit(own) - _logit(overall))[:, None]
    return np.clip(1 / (1 + np.exp(-log_odds)), _LIMIT, 1 - _LIMIT)


def _log_evidence(right: Array, n_items: Array, prior: Array, strength: float) -> float:
    """Log marginal likelihood of all counts, up to a constant."""
    a, b = strength * prior, strength * (1 - prior)
    return float(np.sum(betaln(a + right, b + n_items - right) - betaln(a, b)))


def _logit(p: Array) -> Array:
    return np.asarray(np.log(p) - np.log1p(-p))
