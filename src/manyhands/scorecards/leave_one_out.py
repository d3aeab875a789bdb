"""What everybody else says of the items that a worker labelled: nobody is judged by their own vote.

    p(k | the others)  ~  posterior[item, k] / confusion[worker, k, label] ^ power

Gold stands above all. A label to which neither gold nor another worker speaks proves nothing and gets no weight.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from manyhands.annotations import Annotations
from manyhands.em.collusion import collapse_groups
from manyhands.em.kernels import Array, em_pass, pack, sums_by, vote_share
from manyhands.heldout import worker_confusions
from manyhands.noise import safe_log

Mask = npt.NDArray[np.bool_]
Gold = npt.NDArray[np.int32] | None

DOUBT = 0.02  # of every truth that is not gold: no posterior is as certain as it says


@dataclass(frozen=True, eq=False)
class LeaveOneOut:
    """What the others say of each label, one row per annotation.

    Attributes
    ----------
    truth : (n_annotations, n_classes) p(truth) without the worker's own labels
    weight : (n_annotations,) 0 where nobody else speaks; labels by which a worker repeats an item share one
    n_others, n_equal : (n_annotations,) labels of other workers on the item, and those that name the same class
    """

    annotations: Annotations
    truth: Array
    weight: Array
    n_others: Array
    n_equal: Array

    def by_worker(self, value: Array) -> Array:
        """(n_workers,) sums of one number per annotation."""
        return sums_by(self.annotations.worker, value, self.annotations.n_workers)

    def by_label(self, value: Array) -> Array:
        """(n_workers, n_classes) sums of one number per annotation, by its label."""
        votes = self.annotations
        return sums_by(self.cell, value, votes.n_workers * votes.n_classes).reshape(votes.n_workers, votes.n_classes)

    @cached_property
    def cell(self) -> npt.NDArray[np.int64]:
        """(n_annotations,) one number for each worker and label."""
        return self.annotations.worker * np.int64(self.annotations.n_classes) + self.annotations.label

    @cached_property
    def p_right(self) -> Array:
        """(n_annotations,) the chance that the label is right, as the others see it."""
        return np.take_along_axis(self.truth, self.annotations.label[:, None].astype(np.intp), axis=1)[:, 0]

    @cached_property
    def used(self) -> Array:
        """(n_workers, n_classes) checked labels of each class."""
        return self.by_label(self.weight)

    @cached_property
    def met(self) -> Array:
        """(n_workers, n_classes) expected number of checked items of each class."""
        columns = [self.by_worker(self.weight * column) for column in self.truth.T]
        return np.stack(columns, axis=1) if columns else np.zeros((self.annotations.n_workers, 0))


def derive_tables(annotations: Annotations, posterior: Array, members: Mask, gold: Gold) -> tuple[Array, Array]:
    """Confusion matrices that a posterior implies, and the posterior that they imply in turn.

    For methods without confusion matrices. A vote share of 0 is no impossibility, and nobody's own vote could be taken
    out of it; a posterior that is a product of tables allows that.
    """
    heard = collapse_groups(annotations, members)
    known = posterior if gold is None else np.where((gold >= 0)[:, None], _one_hot(gold, posterior.shape[1]), posterior)
    confusion = worker_confusions(heard, known)[:-1]
    if members.any():
        n_given = np.bincount(heard.worker, minlength=heard.n_workers)
        confusion[members] = confusion[np.argmax(np.where(members, n_given, -1))]
    total = known[annotations.n_labels > 0].sum(axis=0) + 1.0
    found = em_pass(pack(heard), safe_log(confusion), np.log(total / total.sum()), want_posterior=True)
    assert found.posterior is not None
    return confusion, found.posterior


def leave_one_out_posterior(
    annotations: Annotations, posterior: Array, confusion: Array, power: float, members: Mask, gold: Gold
) -> LeaveOneOut:
    """Take each worker's own labels out of the posterior; `members` are those who count as one voice in it."""
    first, own = _own_runs(annotations)
    n_own = np.diff(np.append(first, annotations.n_annotations))
    own_word = np.repeat(np.add.reduceat(_own_words(annotations, confusion, members, n_own[own]), first), n_own, axis=0)
    score = safe_log(posterior)[annotations.item] - power * own_word
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


def labels_of_others(others_posterior: LeaveOneOut) -> Array:
    """(n_workers, n_classes) the labels of other workers that each worker's labels meet on their items."""
    votes = others_posterior.annotations
    n_votes = np.rint(vote_share(votes) * votes.n_labels[:, None])
    met = np.stack([others_posterior.by_worker(column[votes.item]) for column in n_votes.T], axis=1)
    return met - others_posterior.by_label(votes.n_labels[votes.item] - others_posterior.n_others)


def _own_runs(annotations: Annotations) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.int64]]:
    """Where a worker's labels of one item begin, and (n_annotations,) the number of the run that each belongs to."""
    is_first = np.ones(annotations.n_annotations, bool)
    is_first[1:] = (np.diff(annotations.item) != 0) | (np.diff(annotations.worker) != 0)
    return np.flatnonzero(is_first), np.cumsum(is_first) - 1


def _own_words(annotations: Annotations, confusion: Array, members: Mask, n_own: npt.NDArray[np.int64]) -> Array:
    """(n_annotations, n_classes) log p(label | truth), what a label adds to the posterior.

    The posterior holds one label of a group that counts as one, the commonest; members are judged without that one.
    """
    log_confusion = safe_log(confusion)
    word = log_confusion[annotations.worker, :, annotations.label]
    inside = members[annotations.worker]
    if inside.any():
        heard = collapse_groups(annotations, members)
        spoken = members[heard.worker]
        said = np.full(annotations.n_items, -1)
        said[heard.item[spoken]] = heard.label[spoken]
        label = said[annotations.item[inside]]
        theirs = log_confusion[annotations.worker[inside], :, label]
        word[inside] = np.where((label >= 0)[:, None], theirs, 0.0) / n_own[inside][:, None]
    return word


def _has_outsider(annotations: Annotations, members: Mask) -> Mask:
    """(n_annotations,) whether somebody outside the group labelled the item."""
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
