"""Krippendorff's alpha: 1 - observed / expected disagreement, for any number of labels per item.

Observed disagreement is the mean distance between the labels of two workers on one item, expected disagreement that of
two labels of any items. The distance depends on the level of measurement: 0 or 1 (nominal), or the squared difference
of mid-ranks (ordinal) or numbers (interval). The squared differences of all pairs follow from the sums of values and of
their squares, so no matrix of classes by classes is needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from manyhands.annotations import Annotations
from manyhands.exceptions import LimitError
from manyhands.metrics.agreement import NO_PAIRS, ONE_CLASS, Agreement, measure, ratio
from manyhands.metrics.bootstrap import Bootstrap, Statistic
from manyhands.metrics.distances import Distances, expected_distance
from manyhands.metrics.scales import Scale, on_scale, unit_scale
from manyhands.metrics.vote_patterns import Block, Votes, as_block, as_table, find_patterns, gather_votes, totals
from manyhands.randomness import Seed
from manyhands.validation import OneOf, as_annotations, check_parameters

Array = npt.NDArray[np.float64]

_MAX_NUMBERS = 50_000_000  # resamples times classes held for the intervals of all classes
_LEVELS = ("nominal", "ordinal", "interval")


def krippendorff_alpha(
    annotations: Annotations,
    level: str = "nominal",
    values: Scale | None = None,
    *,
    n_bootstrap: int = 1000,
    confidence: float = 0.95,
    random_state: Seed = 0,
) -> Agreement:
    """Krippendorff's alpha: 1 is perfect agreement, 0 is chance agreement; undefined where only one class occurs.

    Handles any number of labels per item and missing labels. Values below 0 mean systematic disagreement.

    Parameters
    ----------
    annotations : Annotations or data frame
        The crowd's labels.
    level : {"nominal", "ordinal", "interval"}, default="nominal"
        Level of measurement. ``"nominal"``: labels are equal or not; ``"ordinal"``: classes have an order;
        ``"interval"``: classes are numbers.
    values : array-like or dict, default=None
        Scale of the levels "ordinal" and "interval": a number for each class, in the order of ``annotations.classes``
        or as ``{class: number}``; for "ordinal" also the classes from low to high. If None, classes must be numbers or
        text that can be read as numbers; alphabetical order is never used.
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

    References
    ----------
    Krippendorff (2011), "Computing Krippendorff's Alpha-Reliability".

    Examples
    --------
    >>> votes = Annotations.from_matrix([[1, 1], [2, 2], [1, 2], [3, 3]])
    >>> [round(krippendorff_alpha(votes, level, n_bootstrap=0).value, 3) for level in ("nominal", "interval")]
    [0.667, 0.821]
    """
    check_parameters("krippendorff_alpha", {"level": level}, {"level": OneOf(_LEVELS)})
    bootstrap = Bootstrap(n_bootstrap, confidence, random_state)
    annotations = as_annotations(annotations)
    if level == "nominal":
        check_parameters("krippendorff_alpha at level 'nominal'", {"values": values}, {"values": OneOf((None,))})
        return measure("krippendorff_alpha", annotations, _nominal, bootstrap, ONE_CLASS)
    if annotations.n_annotations == 0:
        return measure("krippendorff_alpha", annotations, _ordinal, bootstrap, ONE_CLASS)
    scaled = on_scale(annotations, level, values)
    scale = unit_scale(scaled.classes)
    statistic = _ordinal if level == "ordinal" else lambda votes: _interval(votes, scale)
    return measure("krippendorff_alpha", scaled, statistic, bootstrap, ONE_CLASS)


@dataclass(frozen=True)
class ClassAgreement:
    """Agreement on each class, in the order of the annotations' classes.

    Attributes
    ----------
    classes : ndarray of shape (n_classes,)
        The classes.
    value : ndarray of shape (n_classes,)
        Alpha of the class against all others; NaN where no label, or every label, names the class.
    low : ndarray of shape (n_classes,)
        Lower ends of the intervals.
    high : ndarray of shape (n_classes,)
        Upper ends of the intervals.
    n_labels : ndarray of int of shape (n_classes,)
        Number of labels that name the class, on items that at least two workers labelled.
    reason : str or None, default=None
        Why all values are undefined; None if they are not.
    """

    classes: npt.NDArray[Any]
    value: Array
    low: Array
    high: Array
    n_labels: npt.NDArray[np.int64]
    reason: str | None = None


def class_agreement(
    annotations: Annotations | Any, *, n_bootstrap: int = 1000, confidence: float = 0.95, random_state: Seed = 0
) -> ClassAgreement:
    """Krippendorff's alpha of each class against all others.

    A class with a low value is confused with other classes, by its definition or by the workers.

    Parameters
    ----------
    annotations : Annotations or data frame
        The crowd's labels.
    n_bootstrap : int, default=1000
        Number of bootstrap resamples of items for the interval; 0 for no interval.
    confidence : float, default=0.95
        Confidence level of the interval.
    random_state : int, Generator or None, default=0
        Seed of the resamples.

    Returns
    -------
    ClassAgreement
        One value with its interval for each class.

    Raises
    ------
    LimitError
        If resamples times classes are too many to hold in memory.

    Examples
    --------
    >>> votes = Annotations.from_matrix([[0, 0], [0, 0], [1, 2], [2, 1]])
    >>> class_agreement(votes, n_bootstrap=0).value.round(2).tolist()
    [1.0, -0.17, -0.17]
    """
    bootstrap = Bootstrap(n_bootstrap, confidence, random_state)
    bootstrap.check("class_agreement")
    annotations = as_annotations(annotations)
    votes, pairable = gather_votes(annotations)
    if n_bootstrap * annotations.n_classes > _MAX_NUMBERS:
        most = _MAX_NUMBERS // annotations.n_classes
        raise LimitError(
            f"{n_bootstrap} resamples of {annotations.n_classes} classes are too many to hold; use n_bootstrap={most}."
        )
    n_labels = np.bincount(annotations.label[pairable[annotations.item]], minlength=annotations.n_classes)
    if not pairable.any():
        value, low, high = np.full((3, annotations.n_classes), np.nan)
        return ClassAgreement(annotations.classes, value, low, high, n_labels, NO_PAIRS)
    patterns, count = find_patterns(votes)
    statistic = _each_class(patterns)
    value = statistic(count[None].astype(float))[0]
    low, high = bootstrap.interval(statistic, count, 2 * votes.n_classes)
    return ClassAgreement(annotations.classes, value, low, high, n_labels)


def _nominal(votes: Votes) -> Statistic:
    """Alpha with distance 0 for equal and 1 for different labels."""
    table = as_table(votes.n_rows, _cells(votes), as_block(votes.disagreement()))

    def alpha(weights: Array) -> Array:
        sums = totals(weights, table)
        of_class, observed = sums[:, :-1], sums[:, -1]
        n = of_class.sum(axis=1)
        expected = n**2 - np.einsum("bk,bk->b", of_class, of_class)
        return 1 - ratio((n - 1) * observed, expected, _has_two(of_class))

    return alpha


def _interval(votes: Votes, scale: Array) -> Statistic:
    """Alpha with squared differences of the numbers in `scale`, (n_classes,)."""
    observed_of = Distances(votes).observed(scale[:, None])[:, 0]
    observed_in = np.zeros(votes.n_rows)
    observed_in[votes.contested] = observed_of
    table = as_table(votes.n_rows, _cells(votes), as_block(observed_in))

    def alpha(weights: Array) -> Array:
        sums = totals(weights, table)
        of_class, observed = sums[:, :-1], sums[:, -1]
        expected = expected_distance(of_class, np.broadcast_to(scale, of_class.shape))
        return 1 - ratio((of_class.sum(axis=1) - 1) * observed, expected, _has_two(of_class))

    return alpha


def _ordinal(votes: Votes) -> Statistic:
    """Alpha with squared differences of mid-ranks, for classes in ascending order."""
    table = as_table(votes.n_rows, _cells(votes))
    distances = Distances(votes)

    def alpha(weights: Array) -> Array:
        of_class = totals(weights, table)
        n = of_class.sum(axis=1)
        midrank = (np.cumsum(of_class, axis=1) - of_class / 2) / n[:, None]  # differs between resamples
        observed = np.einsum("bp,pb->b", weights[:, votes.contested], distances.observed(midrank.T))
        return 1 - ratio((n - 1) * observed, expected_distance(of_class, midrank), _has_two(of_class))

    return alpha


def _each_class(votes: Votes) -> Statistic:
    """Nominal alpha of each class against all others, (n_resamples, n_classes)."""
    m = votes.n_workers
    differ = 2 * votes.weight * (m[votes.row] - votes.weight) / (m[votes.row] - 1)
    within = 2 * votes.split_share * (1 - votes.split_share) / (m[votes.split_row] - 1)
    k = votes.n_classes
    differing = (
        np.append(votes.row, votes.split_row),
        np.append(votes.label, votes.split_label),
        np.append(differ, -within),
        k,
    )
    table = as_table(votes.n_rows, _cells(votes), differing)

    def alpha(weights: Array) -> Array:
        sums = totals(weights, table)
        of_class, observed = sums[:, :k], sums[:, k:]
        n = of_class.sum(axis=1, keepdims=True)
        others = (of_class > 0).sum(axis=1, keepdims=True) > (of_class > 0)
        return 1 - ratio((n - 1) * observed, 2 * of_class * (n - of_class), (of_class > 0) & others)

    return alpha


def _cells(votes: Votes) -> Block:
    return votes.row, votes.label, votes.weight, votes.n_classes


def _has_two(of_class: Array) -> npt.NDArray[np.bool_]:
    return np.sum(of_class > 0, axis=1) > 1
