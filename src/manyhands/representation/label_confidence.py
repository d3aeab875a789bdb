"""How far the class of an item is to be trusted, by the labels on it.

Of d labels v name the item's class, and u the class named most often among the others:

    mle        v / d
    assurance  (v - u) / d, at least 0: 0 at a tie, 1 where all agree; with two classes it is |1 - 2 v / d|
    bayesian   (v + pi d) / (2 d), with pi the share of that class among the items
    posterior  how far its class is ahead of the next one in what the aggregator believes
"""

from __future__ import annotations

import numpy as np

from manyhands.em.kernels import Array
from manyhands.representation.training_set import TrainingSet

CONFIDENCES = ("assurance", "mle", "bayesian", "posterior")


def confidence_of(training_set: TrainingSet, kind: str, *, shrink: bool = False) -> Array:
    """(n_items,) how far the class of each item is to be trusted; 1 where it is gold, NaN where there is none.

    Where it is to `shrink`, it is multiplied by d / (d + 1): a single label is no unanimous crowd.
    """
    votes, gold = training_set.context.annotations, training_set.context.data.gold
    code = np.full(votes.n_items, -1)
    code[training_set.items] = training_set.target
    if kind == "posterior":
        found = _lead(training_set.aggregator.posterior_, code)
    else:
        count = np.zeros((votes.n_items, votes.n_classes))
        np.add.at(count, (votes.item, votes.label), 1.0)
        found = (_lead(count, code) if kind == "assurance" else _own(count, code)) / np.maximum(votes.n_labels, 1)
    if kind == "bayesian":
        found = (
            found + np.bincount(training_set.target, minlength=votes.n_classes)[code] / len(training_set.items)
        ) / 2
    if shrink:
        found = found * votes.n_labels / (votes.n_labels + 1)
    if gold is not None:
        found = np.where(gold >= 0, 1.0, found)
    return np.where(code >= 0, found, np.nan)


def _own(count: Array, code: np.typing.NDArray[np.int_]) -> Array:
    """(n_items,) what each row has in its own column."""
    return np.asarray(np.take_along_axis(count, code[:, None], axis=1)[:, 0])


def _lead(count: Array, code: np.typing.NDArray[np.int_]) -> Array:
    """(n_items,) by how much that is more than what the row has in any other, at least 0."""
    rest = count.copy()
    np.put_along_axis(rest, code[:, None], 0.0, axis=1)
    return np.maximum(_own(count, code) - rest.max(axis=1), 0.0)
