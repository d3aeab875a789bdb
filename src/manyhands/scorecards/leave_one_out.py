"""Leave-one-out posterior: the truth of each labelled item as it follows from all labels but the worker's own.

    p(k | labels of the others)  ~  posterior[item, k] / confusion[worker, k, label] ^ exponent

No worker is evaluated by their own labels. Gold takes precedence. A label on an item that neither gold nor another
worker labels cannot be checked and has weight 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from manyhands.annotations import Annotations
from manyhands.em.collusion import collapse_groups
from manyhands.em.e_step import posterior_given
from manyhands.em.kernels import Array, sums_by, vote_share
from manyhands.heldout import worker_confusions
from manyhands.noise import safe_log

Mask = npt.NDArray[np.bool_]
Gold = npt.NDArray[np.int32] | None

DOUBT = 0.02  # weight of the uniform distribution in every posterior except gold, because posteriors are overconfident


@dataclass(frozen=True, eq=False)
class LeaveOneOut:
    """Leave-one-out posterior of every label; one row per annotation.

    Attributes
    ----------
    annotations : Annotations
        The crowd's labels.
    truth : ndarray of shape (n_annotations, n_classes)
        Posterior of the item's truth without the labels of the worker who gave this label.
    weight : ndarray of shape (n_annotations,)
        1 for a label that can be checked, 0 where no other worker and no gold labels the item; repeated labels of one
        worker on one item share a weight of 1.
    n_others : ndarray of shape (n_annotations,)
        Number of labels of other workers on the item.
    n_equal : ndarray of shape (n_annotations,)
        How many of these name the same class.
    """

    annotations: Annotations
    truth: Array
    weight: Array
    n_others: Array
    n_equal: Array

    def by_worker(self, value: Array) -> Array:
        """Sum one value per annotation over the annotations of each worker.

        Parameters
        ----------
        value : ndarray of shape (n_annotations,)
            One value per annotation.

        Returns
        -------
        ndarray of shape (n_workers,)
            The sums.
        """
        return sums_by(self.annotations.worker, value, self.annotations.n_workers)

    def by_label(self, value: Array) -> Array:
        """Sum one value per annotation over the annotations of each worker and label.

        Parameters
        ----------
        value : ndarray of shape (n_annotations,)
            One value per annotation.

        Returns
        -------
        ndarray of shape (n_workers, n_classes)
            The sums.
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

    Parameters
    ----------
    annotations : Annotations
        The crowd's labels.
    posterior : ndarray of shape (n_items, n_classes)
        Posterior of any method.
    members : ndarray of bool of shape (n_workers,)
        Members of a colluding group whose labels count once.
    gold : ndarray of int of shape (n_items,) or None
        Class codes where the truth is known, -1 elsewhere.

    Returns
    -------
    confusion : ndarray of shape (n_workers, n_classes, n_classes)
        Confusion matrices [worker, truth, label]; members share one.
    posterior : ndarray of shape (n_items, n_classes)
        One E step with these matrices.
    """
    collapsed = collapse_groups(annotations, members)
    known = posterior if gold is None else np.where((gold >= 0)[:, None], _one_hot(gold, posterior.shape[1]), posterior)
    confusion = worker_confusions(collapsed, known)[:-1]
    if members.any():
        n_given = np.bincount(collapsed.worker, minlength=collapsed.n_workers)
        confusion[members] = confusion[np.argmax(np.where(members, n_given, -1))]
    total = known[annotations.n_labels > 0].sum(axis=0) + 1.0
    return confusion, posterior_given(collapsed, safe_log(confusion), np.log(total / total.sum()))[0]


def posterior_of_tables(
    annotations: Annotations, posterior: Array, confusion: Array, exponent: float, members: Mask
) -> Array:
    """Compute the posterior that is a product of the confusion matrices, from which single labels can be removed.

    A method may release another posterior than that of its model, such as one raised to a power for calibration.

    Parameters
    ----------
    annotations : Annotations
        The crowd's labels.
    posterior : ndarray of shape (n_items, n_classes)
        Posterior that was released; only its class shares are used.
    confusion : ndarray of shape (n_workers, n_classes, n_classes)
        Confusion matrices behind it, [worker, truth, label].
    exponent : float
        Tempering exponent of the labels' likelihood and of the class prior.
    members : ndarray of bool of shape (n_workers,)
        Members of a colluding group whose labels count once.

    Returns
    -------
    ndarray of shape (n_items, n_classes)
        One E step with these matrices.
    """
    total = posterior[annotations.n_labels > 0].sum(axis=0) + 1.0
    log_prior = np.log(total / total.sum())
    collapsed = collapse_groups(annotations, members)
    return posterior_given(collapsed, exponent * safe_log(confusion), exponent * log_prior)[0]


def leave_one_out_posterior(
    annotations: Annotations, posterior: Array, confusion: Array, exponent: float, members: Mask, gold: Gold
) -> LeaveOneOut:
    """Remove each worker's own labels from the posterior of the items they labelled.

    Parameters
    ----------
    annotations : Annotations
        The crowd's labels.
    posterior : ndarray of shape (n_items, n_classes)
        Posterior that includes all labels.
    confusion : ndarray of shape (n_workers, n_classes, n_classes)
        Confusion matrices behind it, [worker, truth, label].
    exponent : float
        Tempering exponent of the labels' likelihood in it.
    members : ndarray of bool of shape (n_workers,)
        Members of a colluding group whose labels count once in it.
    gold : ndarray of int of shape (n_items,) or None
        Class codes where the truth is known, -1 elsewhere.

    Returns
    -------
    LeaveOneOut
        One row per annotation.
    """
    return without_own_labels(annotations, posterior, safe_log(confusion), exponent, members, gold)


def without_own_labels(
    annotations: Annotations, posterior: Array, log_confusion: Array, exponent: float, members: Mask, gold: Gold
) -> LeaveOneOut:
    """The same with the logarithms of the confusion matrices, which parts of a crowd share.

    Parameters
    ----------
    annotations : Annotations
        The labels of the crowd or of some of its items.
    posterior : ndarray of shape (n_items, n_classes)
        Posterior that includes all labels.
    log_confusion : ndarray of shape (n_workers, n_classes, n_classes)
        Logarithms of the confusion matrices behind it, [worker, truth, label].
    exponent : float
        Tempering exponent of the labels' likelihood in it.
    members : ndarray of bool of shape (n_workers,)
        Members of a colluding group whose labels count once in it.
    gold : ndarray of int of shape (n_items,) or None
        Class codes where the truth is known, -1 elsewhere.

    Returns
    -------
    LeaveOneOut
        One row per annotation.
    """
    first, own = _own_runs(annotations)
    n_own = np.diff(np.append(first, annotations.n_annotations))
    own_terms = _own_log_likelihood(annotations, log_confusion, members, n_own[own])
    own_sum = np.repeat(np.add.reduceat(own_terms, first), n_own, axis=0)
    score = safe_log(posterior)[annotations.item] - exponent * own_sum
    score -= score.max(axis=1, keepdims=True)
    np.exp(score, out=score)
    score /= score.sum(axis=1, keepdims=True)
    truth = (1 - DOUBT) * score + DOUBT / annotations.n_classes
    n_others = (annotations.n_labels[annotations.item] - n_own[own]).astype(float)
    checked = (n_others > 0) & (~members[annotations.worker] | _has_outsider(annotations, members))
    if gold is not None:
        known = gold[annotations.item] >= 0
        truth[known] = _one_hot(gold[annotations.item[known]], annotations.n_classes)
        checked |= known
    n_equal = _n_equal(annotations, own)
    return LeaveOneOut(annotations, truth, checked / n_own[own], n_others, n_equal)


def labels_of_others(loo: LeaveOneOut) -> Array:
    """Count the labels of other workers on the items of each worker, by class.

    Parameters
    ----------
    loo : LeaveOneOut
        Leave-one-out posterior of the truth of each label.

    Returns
    -------
    ndarray of shape (n_workers, n_classes)
        The counts; an item that a worker labelled twice counts twice.
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


def _has_outsider(annotations: Annotations, members: Mask) -> Mask:
    """(n_annotations,) whether a worker outside the group labelled the item."""
    n_outside = np.bincount(annotations.item[~members[annotations.worker]], minlength=annotations.n_items)
    return np.asarray(n_outside[annotations.item] > 0)


def _n_equal(annotations: Annotations, own: npt.NDArray[np.int64]) -> Array:
    """(n_annotations,) how many other workers' labels on the item name the same class."""
    votes = vote_share(annotations) * annotations.n_labels[:, None]
    same = np.rint(votes[annotations.item, annotations.label])
    _, which, n_mine = np.unique(
        own * annotations.n_classes + annotations.label, return_inverse=True, return_counts=True
    )
    return np.asarray(same - n_mine[which], float)


def _one_hot(codes: npt.NDArray[np.int32], n_classes: int) -> Array:
    return np.asarray(codes[:, None] == np.arange(n_classes), float)
