"""Weighted kappa: agreement on ordered classes, in which a distance of three grades counts more than one of one grade.

    kappa = 1 - observed / expected distance

Distances are differences of ranks (linear weights) or their squares (quadratic weights). A difference of ranks is the
number of thresholds between two grades, so linear weights are the sum of squared differences on n_classes - 1 scales of
0 and 1, and both kinds follow from sums of values and of squares.

References
----------
Cohen (1968), "Weighted kappa: nominal scale agreement with provision for scaled disagreement or partial credit".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from manyhands.annotations import Annotations
from manyhands.class_order import order_codes
from manyhands.em.kernels import sums_by
from manyhands.metrics.agreement import ONE_CLASS, Agreement, measure, ratio
from manyhands.metrics.bootstrap import Bootstrap, Statistic
from manyhands.metrics.distances import Distances, expected_distance
from manyhands.metrics.vote_patterns import Votes, as_block, as_table, totals
from manyhands.randomness import Seed
from manyhands.validation import OneOf, check_parameters

Array = npt.NDArray[np.float64]

WEIGHTS = ("linear", "quadratic")


def weighted_kappa(
    annotations: Annotations,
    weights: str = "quadratic",
    order: Sequence[Any] | None = None,
    *,
    n_bootstrap: int = 1000,
    confidence: float = 0.95,
    random_state: Seed = 0,
) -> Agreement:
    """Weighted kappa of a crowd, for any number of workers and labels per item.

    Observed distance is the mean over items of the mean distance between the labels of two workers; expected distance
    is that of two labels drawn from the class frequencies, as in `fleiss_kappa`, which it equals for two classes.

    Parameters
    ----------
    annotations : Annotations
        The crowd's labels.
    weights : {"linear", "quadratic"}, default="quadratic"
        Distances of grades: differences of ranks, or their squares.
    order : sequence or None, default=None
        The classes from low to high; None for ordered annotations, numbers and words of known scales.
    n_bootstrap : int, default=1000
        Number of bootstrap resamples of items for the interval; 0 for no interval.
    confidence : float, default=0.95
        Confidence level of the interval.
    random_state : int, Generator or None, default=0
        Seed of the resamples.

    Returns
    -------
    Agreement
        The value with its interval; NaN with a reason where it is undefined.

    Examples
    --------
    >>> votes = Annotations.from_matrix([[1, 1], [2, 2], [1, 2], [3, 3]])
    >>> [round(weighted_kappa(votes, weights, n_bootstrap=0).value, 3) for weights in ("linear", "quadratic")]
    [0.704, 0.795]
    """
    check_parameters("weighted_kappa", {"weights": weights}, {"weights": OneOf(WEIGHTS)})
    bootstrap = Bootstrap(n_bootstrap, confidence, random_state)
    scales = grade_scales(annotations, weights, order)

    def statistic(votes: Votes) -> Statistic:
        share = votes.weight / votes.n_workers[votes.row]
        observed = np.zeros(votes.n_rows)
        observed[votes.contested] = Distances(votes).observed(scales).sum(axis=1) / votes.n_workers[votes.contested]
        cells = votes.row, votes.label, share, votes.n_classes
        table = as_table(votes.n_rows, cells, as_block(observed), as_block(np.ones(votes.n_rows)))

        def kappa(resamples: Array) -> Array:
            sums = totals(resamples, table)
            sums /= sums[:, -1:]  # the number of items
            frequency, distance = sums[:, :-2], sums[:, -2]
            columns = (np.broadcast_to(scale, frequency.shape) for scale in scales.T)
            expected = np.sum([expected_distance(frequency, scale) for scale in columns], axis=0)
            return 1 - ratio(distance, expected, np.sum(frequency > 0, axis=1) > 1)

        return kappa

    return measure("weighted_kappa", annotations, statistic, bootstrap, ONE_CLASS)


def worker_weighted_kappa(
    annotations: Annotations, weights: str = "quadratic", order: Sequence[Any] | None = None
) -> Array:
    """Weighted kappa of each worker against all others on the same items.

    Observed distance is the mean over the worker's labels of their mean distance to the labels of others on the item;
    expected distance is that of the worker's labels to the others' labels on any of these items.

    Parameters
    ----------
    annotations : Annotations
        The crowd's labels.
    weights : {"linear", "quadratic"}, default="quadratic"
        Distances of grades: differences of ranks, or their squares.
    order : sequence or None, default=None
        The classes from low to high; None for ordered annotations, numbers and words of known scales.

    Returns
    -------
    ndarray of shape (n_workers,)
        1 is perfect agreement, 0 is chance; NaN where a worker has no label on an item that others labelled too, or
        where all these labels name one class.

    Examples
    --------
    >>> votes = Annotations.from_matrix([[1, 1, 3], [2, 2, 3], [3, 3, 3], [1, 1, 3]])
    >>> worker_weighted_kappa(votes).round(2).tolist()
    [0.38, 0.38, 0.0]
    """
    check_parameters("worker_weighted_kappa", {"weights": weights}, {"weights": OneOf(WEIGHTS)})
    scales = grade_scales(annotations, weights, order)
    item, worker, n_workers = annotations.item, annotations.worker, annotations.n_workers
    is_new = (np.diff(item, prepend=-1) != 0) | (np.diff(worker, prepend=-1) != 0)
    pair = np.cumsum(is_new) - 1  # (item, worker); labels are sorted by item, then worker
    n_own = np.bincount(pair, minlength=1)[pair]
    n_others = annotations.n_labels[item] - n_own
    met = n_others > 0
    weight = np.where(met, 1.0 / np.maximum(n_others, 1), 0.0)
    n_met = sums_by(worker, met.astype(float), n_workers)
    observed, expected = np.zeros(n_workers), np.zeros(n_workers)
    for scale in scales.T:
        own, others = [], []
        for power in (1, 2):
            x = scale[annotations.label] ** power
            of_others = sums_by(item, x, annotations.n_items)[item] - sums_by(pair, x, annotations.n_annotations)[pair]
            own.append(np.where(met, x, 0.0))
            others.append(of_others * weight)
        sums = [sums_by(worker, value, n_workers) for value in (*own, *others)]
        product = sums_by(worker, own[0] * others[0], n_workers)
        observed += sums[1] + sums[3] - 2 * product
        expected += sums[1] + sums[3] - 2 * ratio(sums[0] * sums[2], n_met, n_met > 0)
    with np.errstate(invalid="ignore"):
        return 1 - ratio(observed, expected, expected > 1e-9 * np.maximum(n_met, 1))


def grade_scales(annotations: Annotations, weights: str, order: Sequence[Any] | None) -> Array:
    """Scales on which the sum of squared differences is the distance of two grades, from 0 to 1.

    Parameters
    ----------
    annotations : Annotations
        The crowd's labels.
    weights : {"linear", "quadratic"}
        Distances of grades.
    order : sequence or None
        The classes from low to high, see `order_codes`; ordered annotations and two classes need none.

    Returns
    -------
    ndarray of shape (n_classes, n_scales)
        One scale for quadratic weights, one per threshold for linear weights.
    """
    classes = annotations.classes.tolist()
    is_in_order = order is None and (annotations.is_ordered or len(classes) <= 2)
    rank = np.arange(len(classes)) if is_in_order else np.argsort(order_codes(classes, order))
    steps = max(len(classes) - 1, 1)
    if weights == "quadratic":
        return rank[:, None] / steps
    return (rank[:, None] > np.arange(steps)) / np.sqrt(steps)
