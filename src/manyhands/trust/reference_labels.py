"""Reference labels with the probability that they are wrong, to which the labels of other workers are compared."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from manyhands.annotations import Annotations
from manyhands.exceptions import CrowdWarning

_MOST_PAIRS = 2_000_000
_CHUNK = 1 << 16  # pairs whose reference is computed at a time
Array = npt.NDArray[np.float64]
Codes = npt.NDArray[np.integer[Any]]


@dataclass(frozen=True)
class Reference:
    """Log-odds of the classes of each item, by a one-coin model of the workers that decide the reference.

    Attributes
    ----------
    scores : ndarray of shape (n_items, n_classes)
        Logarithm of the posterior up to a constant: class prior, and the weight of each label.
    weight : ndarray of shape (n_workers,)
        Weight of a label of each worker; 0 for workers that do not decide the reference.
    voted : ndarray of int of shape (n_items,)
        Number of labels that decide it.
    """

    scores: Array
    weight: Array
    voted: Codes

    def of_pairs(self, annotations: Annotations, a: Codes, b: Codes) -> tuple[Codes, Array]:
        """Return the reference of each pair of labels, which neither of the two decides.

        Parameters
        ----------
        annotations : Annotations
            The labels.
        a : ndarray of int of shape (n_pairs,)
            Places of the first labels.
        b : ndarray of int of shape (n_pairs,)
            Places of the second labels, on the same items.

        Returns
        -------
        label : ndarray of int of shape (n_pairs,)
            The class with the largest posterior; -1 if no other label decides it.
        wrong : ndarray of shape (n_pairs,)
            Posterior probability that it is wrong.
        """
        label, wrong = np.empty(len(a), np.int64), np.empty(len(a))
        for start in range(0, len(a), _CHUNK):
            part = slice(start, start + _CHUNK)
            item = annotations.item[a[part]]
            scores, row, left = self.scores[item].copy(), np.arange(len(item)), self.voted[item].copy()
            for at in (a[part], b[part]):
                weight = self.weight[annotations.worker[at]]
                scores[row, annotations.label[at]] -= weight
                left -= weight != 0
            scores -= scores.max(axis=1, keepdims=True)
            odds = np.exp(scores)
            label[part] = np.where(left > 0, scores.argmax(axis=1), -1)
            wrong[part] = 1 - 1 / odds.sum(axis=1)
        return label, wrong


def fit_reference(annotations: Annotations, voters: npt.NDArray[np.bool_]) -> Reference:
    """Fit a one-coin model to the labels that decide the reference.

    Parameters
    ----------
    annotations : Annotations
        All labels.
    voters : ndarray of bool of shape (n_annotations,)
        The labels that decide the reference.

    Returns
    -------
    Reference
        Scores of the classes, from which single labels can be taken out.
    """
    from manyhands.aggregation.one_coin import OneCoin

    codes = [column[voters] for column in (annotations.item, annotations.worker, annotations.label)]
    ids = {"item_ids": np.arange(annotations.n_items), "worker_ids": np.arange(annotations.n_workers)}
    chosen = Annotations(*codes, **ids, classes=np.arange(annotations.n_classes))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CrowdWarning)  # notes on a fit that only serves to compare
        model: Any = OneCoin().fit(chosen)
    k = annotations.n_classes
    right = np.clip(model.accuracy_, 1e-3, 1 - 1e-3)
    labelled = np.bincount(codes[1], minlength=annotations.n_workers) > 0
    weight = np.where(labelled, np.log(right * max(k - 1, 1) / (1 - right)), 0.0)
    scores = np.tile(np.log(np.maximum(model.class_prior_, 1e-12)), (annotations.n_items, 1))
    np.add.at(scores, (codes[0], codes[2]), weight[codes[1]])
    return Reference(scores, weight, np.bincount(codes[0], minlength=annotations.n_items))


def label_pairs(annotations: Annotations, inside: npt.NDArray[np.bool_]) -> tuple[Codes, Codes]:
    """Return the places of both labels of every pair of different workers on one item.

    Parameters
    ----------
    annotations : Annotations
        All labels.
    inside : ndarray of bool of shape (n_annotations,)
        Labels of the group whose workers are paired.

    Returns
    -------
    a : ndarray of int of shape (n_pairs,)
        Places of the first labels. Beyond two million pairs, those of evenly spaced items.
    b : ndarray of int of shape (n_pairs,)
        Places of the second labels.
    """
    rows = np.flatnonzero(inside)
    item = annotations.item[rows]
    size = np.bincount(item, minlength=annotations.n_items)
    n_pairs = int((size * (size - 1) // 2).sum())
    if n_pairs > _MOST_PAIRS:
        rows = rows[item % -(-n_pairs // _MOST_PAIRS) == 0]
        item = annotations.item[rows]
        size = np.bincount(item, minlength=annotations.n_items)
    later = np.cumsum(size)[item] - np.arange(len(rows)) - 1  # labels of the item after this one: rows are sorted
    first = np.repeat(np.arange(len(rows)), later)
    second = first + 1 + np.arange(len(first)) - np.repeat(np.cumsum(later) - later, later)
    a, b = rows[first], rows[second]
    different = annotations.worker[a] != annotations.worker[b]
    return a[different], b[different]
