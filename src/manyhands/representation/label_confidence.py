"""Confidence in the class of an item, computed from its labels.

An item has d labels; v of them are the item's class, and u the most frequent one of the other classes:

    mle        v / d
    assurance  (v - u) / d, at least 0: 0 at a tie, 1 for unanimous labels; |1 - 2 v / d| with two classes
    bayesian   (v + pi d) / (2 d), with pi the share of that class among the items
    posterior  margin of the class over the second most probable one in the aggregator's posterior
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from manyhands.em.kernels import Array
from manyhands.representation.training_set import TrainingSet

CONFIDENCES = ("assurance", "mle", "bayesian", "posterior")


def label_confidence(training_set: TrainingSet, kind: str, *, shrink: bool = False) -> Array:
    """Return the confidence in the class of each item.

    Parameters
    ----------
    training_set : TrainingSet
        Labels, gold and the classes of the items.
    kind : {"assurance", "mle", "bayesian", "posterior"}
        The formula, as in the docstring of this module.
    shrink : bool, default=False
        Multiply by d / (d + 1), so that a single label is less certain than several that agree.

    Returns
    -------
    ndarray of shape (n_items,)
        1 for gold items, NaN for items without label and gold.
    """
    votes, gold = training_set.context.annotations, training_set.context.data.gold
    code = np.full(votes.n_items, -1)
    code[training_set.items] = training_set.target
    if kind == "posterior":
        found = _margin(training_set.aggregator.posterior_, code)
    else:
        count = np.zeros((votes.n_items, votes.n_classes))
        np.add.at(count, (votes.item, votes.label), 1.0)
        found = (_margin(count, code) if kind == "assurance" else _own(count, code)) / np.maximum(votes.n_labels, 1)
    if kind == "bayesian":
        share = np.bincount(training_set.target, minlength=votes.n_classes)[code] / len(training_set.items)
        found = (found + share) / 2
    if shrink:
        found = found * votes.n_labels / (votes.n_labels + 1)
    if gold is not None:
        found = np.where(gold >= 0, 1.0, found)
    return np.where(code >= 0, found, np.nan)


def _own(count: Array, code: npt.NDArray[np.int_]) -> Array:
    """Return the entry of each row in the column of its class, of shape (n_items,)."""
    return np.asarray(np.take_along_axis(count, code[:, None], axis=1)[:, 0])


def _margin(count: Array, code: npt.NDArray[np.int_]) -> Array:
    """Return the difference of that entry to the largest other one of the row, at least 0."""
    rest = count.copy()
    np.put_along_axis(rest, code[:, None], 0.0, axis=1)
    return np.maximum(_own(count, code) - rest.max(axis=1), 0.0)
