"""Figures of a crowd itself, whatever method is fitted: sizes, agreement, accuracy of workers, class shares.

Ground truth is used here as in `measures`, after the fit.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from manyhands.class_balance import imbalance
from manyhands.metrics import fleiss_kappa
from manyhands.reproduce.metric_names import OF_CROWD
from manyhands.reproduce.splits import Part


def crowd_figures(part: Part) -> dict[str, float]:
    """Describe the training part of a data set.

    Parameters
    ----------
    part : Part
        Labels of the training items and their truth.

    Returns
    -------
    dict of str to float
        Keys begin with ``crowd.``. ``items``, ``workers`` and ``features`` are their numbers, ``kappa`` is Fleiss'
        kappa of the labels. ``labels_per_item`` and ``items_per_worker`` are means; ``annotated_spread`` is the
        standard deviation of the class shares of the labels, ``annotated_imbalance`` their imbalance ratio. Where the
        truth is known, ``last_class_share`` is the share of the last class (of two: the positive one),
        ``truth_spread`` and ``truth_imbalance`` are those of the truth, and ``worker_accuracy`` and
        ``worker_accuracy_spread`` mean and standard deviation over the workers of their share of correct labels.
    """
    votes = part.annotations
    figures = {
        "items": len(votes),
        "workers": votes.n_workers,
        "features": math.nan if part.X is None else math.prod(part.X.shape[1:]),
        "kappa": fleiss_kappa(votes, n_bootstrap=0).value,
        "labels_per_item": votes.n_annotations / max(1, votes.n_items),
        "items_per_worker": votes.n_annotations / max(1, votes.n_workers),
    }
    figures |= _of_classes("annotated", np.bincount(votes.label, minlength=votes.n_classes))
    known = part.has_truth
    if part.y_train is not None and known.any():
        of_class = [sum(value == one for value in part.y_train[known].tolist()) for one in votes.classes.tolist()]
        figures |= _of_classes("truth", np.array(of_class)) | _worker_accuracy(part)
        figures["last_class_share"] = of_class[-1] / sum(of_class)
    return {OF_CROWD + name: float(value) for name, value in figures.items()}


def _of_classes(whose: str, counts: npt.NDArray[np.int64]) -> dict[str, float]:
    """Spread of the class shares, and the imbalance ratio."""
    shares = counts / max(1, counts.sum())
    return {f"{whose}_spread": float(shares.std()), f"{whose}_imbalance": imbalance(counts)}


def _worker_accuracy(part: Part) -> dict[str, float]:
    """Mean and standard deviation over the workers who labelled an item of known truth; each worker counts once."""
    votes, known = part.annotations, part.has_truth
    assert part.y_train is not None
    labels = votes.classes[votes.label].tolist()
    is_right = np.array([label == truth for label, truth in zip(labels, part.y_train[votes.item].tolist())], float)
    counted = known[votes.item]
    n_labels = np.bincount(votes.worker[counted], minlength=votes.n_workers)
    n_right = np.bincount(votes.worker[counted], is_right[counted], minlength=votes.n_workers)
    accuracy = n_right[n_labels > 0] / n_labels[n_labels > 0]
    return {"worker_accuracy": float(accuracy.mean()), "worker_accuracy_spread": float(accuracy.std())}
