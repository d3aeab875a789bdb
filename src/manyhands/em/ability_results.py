"""Estimates of a model with abilities and difficulties, in the form of fitted attributes."""

from __future__ import annotations

from typing import Any

import numpy as np

from manyhands.annotations import Annotations
from manyhands.em.kernels import Array, sums_by
from manyhands.noise.ability_model import AbilityModel
from manyhands.noise.difficulty import EASIEST, Abilities, p_right


def results(model: AbilityModel, workers: Abilities, posterior: Array, d: Array) -> dict[str, Any]:
    """Estimates about workers and items, by the names of the fitted attributes.

    Parameters
    ----------
    model : AbilityModel
        The noise model.
    workers : Abilities
        The estimated abilities.
    posterior : ndarray of shape (n_items, n_classes)
        p(truth | labels).
    d : ndarray of shape (n_items,)
        Easiness of the items.

    Returns
    -------
    dict of str to ndarray
        `ability_`, `expertise_` with its interval, `difficulty_` and `item_accuracy_`.
    """
    votes = model.votes
    low, high = model.intervals(workers, posterior, d)
    expertise, lowest, highest = (
        p_right(ability, EASIEST, votes.n_classes) for ability in (workers.ability, low, high)
    )
    return {
        "ability_": workers.ability,
        "expertise_": expertise,
        "expertise_low_": lowest,
        "expertise_high_": highest,
        "difficulty_": 1 - d / EASIEST,
        "item_accuracy_": item_accuracy(votes, workers.ability, posterior, d),
    }


def item_accuracy(votes: Annotations, ability: Array, posterior: Array, d: Array) -> Array:
    """Expected share of right labels on each item.

    For an item without labels it is that of an average worker; workers without labels do not count in that average.

    Parameters
    ----------
    votes : Annotations
        The labels.
    ability : ndarray of shape (n_workers, n_classes)
        Abilities.
    posterior : ndarray of shape (n_items, n_classes)
        p(truth | labels).
    d : ndarray of shape (n_items,)
        Easiness of the items.

    Returns
    -------
    ndarray of shape (n_items,)
    """
    total = np.zeros(votes.n_items)
    unlabelled = np.zeros(votes.n_items)
    average = ability[np.unique(votes.worker)].mean(axis=0)
    for c in range(votes.n_classes):
        right = p_right(ability[votes.worker, c], d[votes.item], votes.n_classes)
        total += sums_by(votes.item, posterior[votes.item, c] * right, votes.n_items)
        unlabelled += posterior[:, c] * p_right(average[c], d, votes.n_classes)
    return np.where(votes.n_labels > 0, total / np.maximum(votes.n_labels, 1), unlabelled)
