"""Krippendorff's alpha: 1 - observed / expected disagreement, for any number of labels per item.

Observed disagreement is that of two workers on one item, expected that of two labels from anywhere. What "far apart"
means is the level of measurement. On a scale, the squared distances of all pairs follow from the sums of values and of
their squares, so no table of classes against classes is needed; ordinal distances are those of mid-ranks.
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
from manyhands.validation import OneOf, check_parameters

Array = npt.NDArray[np.float64]

_MOST_NUMBERS = 50_000_000  # resamples times classes that are held for the intervals of all classes
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
    """Krippendorff's alpha; 1 is perfect, 0 is chance, and undefined where only one class occurs.

    Parameters
    ----------
    level : "nominal": classes are equal or not; "ordinal": they have an order; "interval": they are numbers
    values : for the other levels than nominal. A number for each class (in the order of `annotations.classes`, or by
        class in a dict), or, for "ordinal", the classes from low to high. Without it, classes are numbers or text that
        reads as numbers, and refused otherwise: the order of the alphabet says nothing
    n_bootstrap : resamples of items for the interval; 0 for none
    confidence : of the interval
    random_state : seed of the resamples

    References
    ----------
    Krippendorff (2011), "Computing Krippendorff's Alpha-Reliability".

    >>> votes = Annotations.from_matrix([[1, 1], [2, 2], [1, 2], [3, 3]])
    >>> [round(krippendorff_alpha(votes, level, n_bootstrap=0).value, 3) for level in ("nominal", "interval")]
    [0.667, 0.821]
    """
    check_parameters("krippendorff_alpha", {"level": level}, {"level": OneOf(_LEVELS)})
    bootstrap = Bootstrap(n_bootstrap, confidence, random_state)
    if level == "nominal":
        check_parameters("krippendorff_alpha at level 'nominal'", {"values": values}, {"values": OneOf((None,))})
        return measure("krippendorff_alpha", annotations, _nominal, bootstrap, ONE_CLASS)
    if not isinstance(annotations, Annotations) or annotations.n_annotations == 0:
        return measure("krippendorff_alpha", annotations, _ordinal, bootstrap, ONE_CLASS)
    scaled = on_scale(annotations, level, values)
    scale = unit_scale(scaled.classes)
    statistic = _ordinal if level == "ordinal" else lambda votes: _interval(votes, scale)
    return measure("krippendorff_alpha", scaled, statistic, bootstrap, ONE_CLASS)


@dataclass(frozen=True)
class ClassAgreement:
    """Agreement on each class, in the order of the annotations' classes."""

    classes: npt.NDArray[Any]
    value: Array  # NaN where nobody, or everybody, named the class
    low: Array
    high: Array
    n_labels: npt.NDArray[np.int64]  # that name the class, on items that at least two workers labelled
    reason: str | None = None


def class_agreement(
    annotations: Annotations, *, n_bootstrap: int = 1000, confidence: float = 0.95, random_state: Seed = 0
) -> ClassAgreement:
    """Krippendorff's alpha of each class against all others: which classes do workers tell apart?

    Parameters are those of `krippendorff_alpha`.

    >>> votes = Annotations.from_matrix([[0, 0], [0, 0], [1, 2], [2, 1]])
    >>> class_agreement(votes, n_bootstrap=0).value.round(2).tolist()
    [1.0, -0.17, -0.17]
    """
    bootstrap = Bootstrap(n_bootstrap, confidence, random_state)
    bootstrap.check("class_agreement")
    votes, pairable = gather_votes(annotations)
    if n_bootstrap * annotations.n_classes > _MOST_NUMBERS:
        most = _MOST_NUMBERS // annotations.n_classes
        raise LimitError(
            f"{n_bootstrap} resamples of {annotations.n_classes} classes are too much to hold; take n_bootstrap={most}."
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
    table = as_table(votes.n_rows, _cells(votes), as_block(votes.disagreement()))

    def alpha(weights: Array) -> Array:
        sums = totals(weights, table)
        of_class, observed = sums[:, :-1], sums[:, -1]
        n = of_class.sum(axis=1)
        expected = n**2 - np.einsum("bk,bk->b", of_class, of_class)
        return 1 - ratio((n - 1) * observed, expected, _has_two(of_class))

    return alpha


def _interval(votes: Votes, scale: Array) -> Statistic:
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
    table = as_table(votes.n_rows, _cells(votes))
    distances = Distances(votes)

    def alpha(weights: Array) -> Array:
        of_class = totals(weights, table)
        n = of_class.sum(axis=1)
        midrank = (np.cumsum(of_class, axis=1) - of_class / 2) / n[:, None]  # other in every resample
        observed = np.einsum("bp,pb->b", weights[:, votes.contested], distances.observed(midrank.T))
        return 1 - ratio((n - 1) * observed, expected_distance(of_class, midrank), _has_two(of_class))

    return alpha


def _each_class(votes: Votes) -> Statistic:
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
