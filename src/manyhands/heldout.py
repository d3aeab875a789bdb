"""How well a posterior foretells labels it has not seen: one recipe for every method, and no truth in it.

log sum_k p(k | the item's other labels) confusion[worker, k, label]
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from manyhands.annotations import Annotations
from manyhands.kernels import em_pass, pack
from manyhands.noise import safe_log

Array = npt.NDArray[np.float64]

_STRENGTH = 5.0  # labels that the crowd's habit is worth, in every row of a worker's confusion matrix


def worker_confusions(annotations: Annotations, posterior: Array, strength: float = _STRENGTH) -> Array:
    """(n_workers + 1, n_classes, n_classes): each worker's rows, shrunk toward the crowd's; last, the crowd's own."""
    n_workers, n_classes = annotations.n_workers, annotations.n_classes
    nothing = np.zeros((n_workers, n_classes, n_classes))
    counts = em_pass(pack(annotations), nothing, np.zeros(n_classes), safe_log(posterior)).counts
    crowd = counts.sum(axis=0) + 1.0 / n_classes  # (truth, label)
    crowd /= crowd.sum(axis=1, keepdims=True)
    counts = np.concatenate([counts, np.zeros((1, n_classes, n_classes))]) + strength * crowd
    return counts / counts.sum(axis=2, keepdims=True)


def heldout_log_likelihood(training: Annotations, posterior: Array, heldout: Annotations) -> float:
    """Mean log-likelihood of the labels in `heldout`, which speaks in the codes of `training`.

    An item that was in training starts from its posterior, another one from the class frequencies; the other
    held-out labels of the item are evidence too. Worker code `training.n_workers` is a worker never seen.
    """
    if heldout.n_annotations == 0:
        return float("nan")
    confusion = worker_confusions(training, posterior)
    prior = posterior[training.n_labels > 0].sum(axis=0) + 1.0
    smoothed = (posterior + 0.01 * prior / prior.sum()) / 1.01  # a vote share of 0 is not an impossibility
    row_of = {item: i for i, item in enumerate(training.item_ids.tolist())}
    row = np.array([row_of.get(item, -1) for item in heldout.item_ids.tolist()])
    known = np.where((row >= 0)[:, None], smoothed[row], prior / prior.sum())  # (n_items, n_classes)
    label_given_truth = np.log(confusion)[heldout.worker, :, heldout.label]  # (n_annotations, n_classes)
    evidence = np.log(known)
    np.add.at(evidence, heldout.item, label_given_truth)
    others = evidence[heldout.item] - label_given_truth  # (n_annotations, n_classes), unnormalised
    log_total = np.logaddexp.reduce(others, axis=1)
    return float(np.mean(np.logaddexp.reduce(others + label_given_truth, axis=1) - log_total))
