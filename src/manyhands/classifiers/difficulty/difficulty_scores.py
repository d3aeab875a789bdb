"""Held-out labels under difficulty EM: p(label | x, worker) with the difficulty of the item."""

from __future__ import annotations

from typing import Any

import numpy as np

from manyhands.annotations import Annotations
from manyhands.em.kernels import Array
from manyhands.heldout import known_workers, smooth
from manyhands.noise import safe_log
from manyhands.noise.difficulty import EASIEST, Abilities, easiness, with_floor
from manyhands.noise.label_scores import label_given_truth, other_votes_easiness


def difficulty_log_likelihoods(method: Any, proba: Array, annotations: Annotations) -> Array:
    """Return log sum_k p(k | x) p(label | k, ability of the worker, easiness of the item) of held-out labels.

    The easiness comes from what is known of an item beside the label: p(k | x) where the difficulty follows from the
    classifier or the posterior, and the other labels of the item where it follows from the votes; items without other
    labels then have the mean easiness of the training items. Workers without a label in the fit have the mean ability.

    Parameters
    ----------
    method : CrowdClassifier
        A fitted method with abilities and difficulties.
    proba : ndarray of shape (n_items, n_classes)
        p(k | x).
    annotations : Annotations
        Labels of these items in the codes of the fit; the last worker code is an unseen worker.

    Returns
    -------
    ndarray of shape (n_annotations,)
    """
    truth = smooth(proba, method._shares)[annotations.item]  # (n_annotations, n_classes)
    log_label = label_given_truth(annotations, _workers(method), _easiness_of_labels(method, proba, annotations))
    return np.asarray(np.logaddexp.reduce(np.log(truth) + log_label, axis=1))


def _easiness_of_labels(method: Any, proba: Array, annotations: Annotations) -> Array:
    """Easiness of the item of each label, (n_annotations,), which does not depend on the label itself."""
    if method.difficulty == "constant":
        return np.full(annotations.n_annotations, EASIEST)
    if method.difficulty != "votes":
        return with_floor(easiness(proba), method.floor_)[annotations.item]
    by_others = other_votes_easiness(annotations, np.nan, method.vote_smoothing)
    average = EASIEST * (1 - float(method.difficulty_.mean()))
    return np.where(np.isnan(by_others), average, with_floor(by_others, method.floor_))


def _workers(method: Any) -> Abilities:
    """Return the abilities, with one more worker for unseen ones; free errors are those of the confusion matrices."""
    known = known_workers(method._confusions)
    ability = np.vstack([method.ability_, method.ability_[:1]])
    ability[~known] = method.ability_[known[:-1]].mean(axis=0) if known.any() else method.ability_.mean(axis=0)
    if method.errors == "uniform":
        return Abilities(ability, None)
    wrong = np.where(np.eye(ability.shape[1], dtype=bool), 0.0, method._confusions)
    return Abilities(ability, safe_log(wrong) - safe_log(wrong.sum(axis=2, keepdims=True)))
