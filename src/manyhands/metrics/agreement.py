"""Inter-annotator agreement: as a share of pairs, and corrected for chance.

Every metric counts items that at least two workers labelled, and pairs of labels of different workers; see
`manyhands.metrics.vote_patterns` for workers who labelled an item twice. Intervals are percentiles over bootstrap
resamples of these items. Workers are the same in all resamples: an interval describes the variation over items for this
crowd, not the variation over crowds. Where all labels agree it has no width, however few the items.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from manyhands._core.arrays import Array
from manyhands._core.randomness import Seed
from manyhands.annotations import Annotations
from manyhands.classes import order_codes
from manyhands.em.kernels import sums_by
from manyhands.exceptions import LimitError
from manyhands.metrics.vote_patterns import (
    Block,
    Bootstrap,
    Distances,
    Positions,
    Scale,
    Statistic,
    Votes,
    WorkerLabels,
    as_block,
    as_table,
    expected_distance,
    find_patterns,
    gather_votes,
    gather_worker_labels,
    on_scale,
    totals,
    unit_scale,
)
from manyhands.validation import Number, OneOf, as_annotations, check_parameters

NO_PAIRS = "no item has labels of two workers"
ONE_CLASS = "all labels that can be compared name one class, so agreement cannot be corrected for chance"


@dataclass(frozen=True)
class Agreement:
    """A coefficient of agreement with its interval.

    Attributes
    ----------
    value : float
        The coefficient; NaN where it is undefined.
    low : float
        Lower end of the interval; NaN without resamples.
    high : float
        Upper end of the interval; NaN without resamples.
    n_items : int
        Number of items that at least two workers labelled.
    n_labels : int
        Number of labels on these items.
    reason : str or None, default=None
        Why the value is undefined; None if it is defined.
    """

    value: float
    low: float
    high: float
    n_items: int
    n_labels: int
    reason: str | None = None


def percent_agreement(
    annotations: Annotations | Any,
    *,
    per: str = "label",
    n_bootstrap: int = 1000,
    confidence: float = 0.95,
    random_state: Seed = 0,
) -> Agreement:
    """Share of pairs of workers who gave an item the same label.

    Not corrected for chance: where one class is frequent, random labels agree often too. Use
    :func:`krippendorff_alpha` or :func:`fleiss_kappa` to compare data sets.

    Parameters
    ----------
    annotations : Annotations or data frame
        The crowd's labels.
    per : {"label", "item", "pair"}, default="label"
        Weight of an item. ``"label"``: its number of workers, which gives the agreement that Krippendorff's alpha
        corrects for chance; ``"item"``: 1, as in Fleiss' kappa; ``"pair"``: its number of pairs, so that items with
        many labels dominate. All three are equal where all items have equally many labels.
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
    >>> votes = Annotations.from_matrix([[0, 0, 0], [1, 1, 0], [1, -1, -1]])
    >>> percent_agreement(votes, n_bootstrap=0).value
    0.6666666666666666
    """
    check_parameters("percent_agreement", {"per": per}, {"per": OneOf(("label", "item", "pair"))})

    def statistic(votes: Votes) -> Statistic:
        m = votes.n_workers
        importance = {"label": m, "item": np.ones_like(m), "pair": m * (m - 1)}[per]
        table = as_table(len(m), as_block(importance * share_of_equals(votes)), as_block(importance))

        def share(weights: Array) -> Array:
            equal, total = totals(weights, table).T
            return equal / total

        return share

    bootstrap = Bootstrap(n_bootstrap, confidence, random_state)
    return measure("percent_agreement", annotations, statistic, bootstrap, NO_PAIRS)


def fleiss_kappa(
    annotations: Annotations | Any, *, n_bootstrap: int = 1000, confidence: float = 0.95, random_state: Seed = 0
) -> Agreement:
    """Fleiss' kappa: agreement corrected for the agreement of labels drawn from the observed class frequencies.

    kappa = (observed - chance) / (1 - chance), where chance is the sum of squared class frequencies. Items may have
    different numbers of labels: observed agreement is the mean over items of the share of equal pairs, and the
    frequency of a class is the mean over the same items of its share of votes. With the same number of labels on every
    item this is Fleiss' formula.

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
    Agreement
        The value with its interval; NaN with a reason where it is undefined.

    References
    ----------
    Fleiss (1971), "Measuring nominal scale agreement among many raters".

    Examples
    --------
    >>> fleiss_kappa(Annotations.from_matrix([[0, 0], [1, 1], [0, 1]]), n_bootstrap=0).value
    0.33333333333333326
    """

    def statistic(votes: Votes) -> Statistic:
        share = votes.weight / votes.n_workers[votes.row]
        cells = votes.row, votes.label, share, votes.n_classes
        table = as_table(votes.n_rows, cells, as_block(share_of_equals(votes)), as_block(np.ones(votes.n_rows)))

        def kappa(weights: Array) -> Array:
            sums = totals(weights, table)
            sums /= sums[:, -1:]  # the number of items
            frequency, equal = sums[:, :-2], sums[:, -2]
            chance = np.einsum("bk,bk->b", frequency, frequency)
            return ratio(equal - chance, 1 - chance, np.sum(frequency > 0, axis=1) > 1)

        return kappa

    bootstrap = Bootstrap(n_bootstrap, confidence, random_state)
    return measure("fleiss_kappa", annotations, statistic, bootstrap, ONE_CLASS)


def item_agreement(annotations: Annotations | Any) -> Array:
    """Share of pairs of workers who gave the item the same label, for each item.

    Parameters
    ----------
    annotations : Annotations or data frame
        The crowd's labels.

    Returns
    -------
    ndarray of shape (n_items,)
        The shares; NaN for items with fewer than two workers.

    Examples
    --------
    >>> item_agreement(Annotations.from_matrix([[0, 0, 1], [1, -1, -1]])).round(3).tolist()
    [0.333, nan]
    """
    annotations = as_annotations(annotations)
    votes, pairable = gather_votes(annotations)
    share = np.full(annotations.n_items, np.nan)
    share[pairable] = share_of_equals(votes)
    return share


def share_of_equals(votes: Votes) -> Array:
    """Share of pairs of different workers whose votes are equal.

    Shapes: returns (n_rows,).
    """
    return 1 - votes.disagreement() / votes.n_workers


def measure(
    name: str,
    annotations: Annotations,
    make_statistic: Callable[[Votes], Statistic],
    bootstrap: Bootstrap,
    if_undefined: str,
) -> Agreement:
    """Compute a coefficient of agreement on all items, and its interval over resamples of items."""
    bootstrap.check(name)
    annotations = as_annotations(annotations)
    votes, pairable = gather_votes(annotations)
    n_items, n_labels = int(pairable.sum()), int(annotations.n_labels[pairable].sum())
    if n_items == 0:
        return Agreement(np.nan, np.nan, np.nan, 0, 0, NO_PAIRS)
    patterns, count = find_patterns(votes)
    statistic = make_statistic(patterns)
    value = float(statistic(count[None].astype(float))[0])
    if np.isnan(value):
        return Agreement(np.nan, np.nan, np.nan, n_items, n_labels, if_undefined)
    low, high = bootstrap.interval(statistic, count, votes.n_classes)
    return Agreement(value, float(low), float(high), n_items, n_labels)


def ratio(above: Array, below: Array, defined: npt.NDArray[np.bool_]) -> Array:
    """Divide where the quotient is defined."""
    return np.divide(above, below, out=np.full_like(above, np.nan), where=defined)


# ----------------------------------------------------------------------------------------------------
# Krippendorff's alpha: 1 - observed / expected disagreement, for any number of labels per item.
#
# Observed disagreement is the mean distance between the labels of two workers on one item, expected disagreement that
# of two labels of any items. The distance depends on the level of measurement: 0 or 1 (nominal), or the squared
# difference of mid-ranks (ordinal) or numbers (interval). The squared differences of all pairs follow from the sums
# of values and of their squares, so no matrix of classes by classes is needed.

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


# ----------------------------------------------------------------------------------------------------
# Weighted kappa: agreement on ordered classes, in which a distance of three grades counts more than one of one grade.
#
#     kappa = 1 - observed / expected distance
#
# Distances are differences of ranks (linear weights) or their squares (quadratic weights). A difference of ranks is the
# number of thresholds between two grades, so linear weights are the sum of squared differences on n_classes - 1
# scales of 0 and 1, and both kinds follow from sums of values and of squares.

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

    References
    ----------
    Cohen (1968), "Weighted kappa: nominal scale agreement with provision for scaled disagreement or partial credit".

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
    with np.errstate(invalid="ignore"):  # 1e-9: only rounding is left where all labels are equal
        return 1 - ratio(observed, expected, expected > 1e-9 * np.maximum(n_met, 1))


def grade_scales(annotations: Annotations, weights: str, order: Sequence[Any] | None) -> Array:
    """Scales on which the sum of squared differences is the distance of two grades, from 0 to 1.

    Shapes: returns (n_classes, n_scales).
    """
    classes = annotations.classes.tolist()
    is_in_order = order is None and (annotations.is_ordered or len(classes) <= 2)
    rank = np.arange(len(classes)) if is_in_order else np.argsort(order_codes(classes, order))
    steps = max(len(classes) - 1, 1)
    if weights == "quadratic":
        return rank[:, None] / steps
    return (rank[:, None] > np.arange(steps)) / np.sqrt(steps)


# ----------------------------------------------------------------------------------------------------
# Agreement and Cohen's kappa of every two workers on the items that both labelled.

_MAX_LABEL_PAIRS = 100_000_000  # about twenty seconds
_CHUNK = 1 << 21  # pairs of labels held at a time
_CONSTRAINTS = {"min_shared": Number(whole=True, least=1), "max_pairs": Number(whole=True, least=1)}


@dataclass(frozen=True)
class PairAgreement:
    """Agreement of pairs of workers; one entry per pair, sorted by the codes of the two workers.

    Attributes
    ----------
    a : ndarray of int of shape (n_pairs,)
        Code of the first worker, whose id is ``annotations.worker_ids[a]``.
    b : ndarray of int of shape (n_pairs,)
        Code of the second worker; larger than `a`.
    n_shared : ndarray of int of shape (n_pairs,)
        Number of items that both labelled.
    agreement : ndarray of shape (n_pairs,)
        Share of these on which both labels are equal.
    kappa : ndarray of shape (n_pairs,)
        Cohen's kappa; NaN where both used one and the same class only.
    n_left_out : int
        Number of further pairs with enough shared items, beyond `max_pairs`.
    linear_kappa : ndarray of shape (n_pairs,) or None, default=None
        Cohen's kappa with linear weights; None without `order`.
    quadratic_kappa : ndarray of shape (n_pairs,) or None, default=None
        Cohen's kappa with quadratic weights; None without `order`.
    """

    a: Positions
    b: Positions
    n_shared: Positions
    agreement: Array
    kappa: Array
    n_left_out: int
    linear_kappa: Array | None = None
    quadratic_kappa: Array | None = None


def pair_agreement(
    annotations: Annotations | Any,
    min_shared: int = 5,
    max_pairs: int = 100_000,
    order: Sequence[Any] | None = None,
) -> PairAgreement:
    """Agreement of every two workers who share items: as a share, and corrected for chance as Cohen's kappa.

    Pairs of labels are processed for a few workers at a time, and only pairs of workers with a common item are stored.
    An item with m labels has m (m - 1) / 2 pairs of labels.

    Parameters
    ----------
    annotations : Annotations or data frame
        The crowd's labels.
    min_shared : int, default=5
        Smallest number of shared items.
    max_pairs : int, default=100000
        Largest number of pairs to return: those with most shared items, and among equal numbers the first.
    order : sequence or None, default=None
        The classes from low to high, for weighted kappa; None has it for ordered annotations only.

    Returns
    -------
    PairAgreement
        One entry per pair.

    Raises
    ------
    LimitError
        If there are more than a hundred million pairs of labels.

    References
    ----------
    Cohen (1960), "A coefficient of agreement for nominal scales".
    Cohen (1968), "Weighted kappa: nominal scale agreement with provision for scaled disagreement or partial credit".

    Examples
    --------
    >>> pairs = pair_agreement(Annotations.from_matrix([[0, 0], [1, 1], [0, 1], [1, 0]]), min_shared=1)
    >>> pairs.n_shared.tolist(), pairs.agreement.tolist(), pairs.kappa.tolist()
    ([4], [0.5], [0.0])
    """
    check_parameters("pair_agreement", {"min_shared": min_shared, "max_pairs": max_pairs}, _CONSTRAINTS)
    annotations = as_annotations(annotations)
    triples = gather_worker_labels(annotations)
    is_ordered = order is not None or annotations.is_ordered
    scales = [grade_scales(annotations, weights, order) for weights in WEIGHTS] if is_ordered else []
    columns, n_found = _empty(len(scales)), 0
    for first, second in _label_pairs(triples, annotations.n_items):
        more = _compare(triples, first, second, annotations, min_shared, scales)
        n_found += len(more[0])
        columns = _most_shared([np.append(old, new) for old, new in zip(columns, more)], max_pairs)
    pair, n_shared, agreement, kappa, *weighted = columns
    a, b = np.divmod(pair.astype(np.int64), max(annotations.n_workers, 1))
    return PairAgreement(a, b, n_shared.astype(np.int64), agreement, kappa, n_found - len(pair), *weighted)


def _label_pairs(triples: WorkerLabels, n_items: int) -> Iterator[tuple[Positions, Positions]]:
    """Positions of two labels of an item, in chunks; the first label is by the worker with the lower code.

    All pairs of a worker with later ones are in one chunk, so that no state is kept between chunks.
    """
    end = np.cumsum(np.bincount(triples.item, minlength=n_items))[triples.item]
    n_after = end - 1 - np.arange(len(end))  # labels of one item are sorted by worker
    n_pairs = int(n_after.sum())
    if n_pairs > _MAX_LABEL_PAIRS:
        raise LimitError(
            f"There are {n_pairs} pairs of labels, more than {_MAX_LABEL_PAIRS}; use a part of the items, "
            f"annotations[rows]."
        )
    order = np.argsort(triples.worker, kind="stable")
    last_of_worker = np.flatnonzero(np.diff(triples.worker[order], append=-1))
    done = np.cumsum(n_after[order])[last_of_worker]  # cumulative number of pairs, by worker
    begin = 0
    while begin < len(order):
        n_before = done[np.searchsorted(last_of_worker, begin) - 1] if begin else 0
        nth = max(np.searchsorted(done, n_before + _CHUNK, side="right") - 1, np.searchsorted(last_of_worker, begin))
        part = order[begin : last_of_worker[nth] + 1]
        begin = int(last_of_worker[nth]) + 1
        first = np.repeat(part, n_after[part])
        second = first + 1 + np.arange(len(first)) - np.repeat(np.cumsum(n_after[part]) - n_after[part], n_after[part])
        yield first, second


def _compare(
    triples: WorkerLabels,
    first: Positions,
    second: Positions,
    annotations: Annotations,
    min_shared: int,
    scales: list[Array],
) -> list[npt.NDArray[Any]]:
    """For each pair of workers among these pairs of labels: key, items shared, agreement, kappa, weighted kappas."""
    others = triples.worker[first] != triples.worker[second]  # not the parts of one split vote
    first, second = first[others], second[others]
    key, pair = np.unique(triples.worker[first] * annotations.n_workers + triples.worker[second], return_inverse=True)
    weight = triples.share[first] * triples.share[second]
    n_shared = np.rint(sums_by(pair, weight, len(key)))
    enough = n_shared >= min_shared
    kept = enough[pair]
    pair, weight = (np.cumsum(enough) - 1)[pair[kept]], weight[kept]
    label_a, label_b = triples.label[first[kept]], triples.label[second[kept]]
    key, n_shared = key[enough], n_shared[enough]
    agreement = sums_by(pair, weight * (label_a == label_b), len(key)) / n_shared
    chance = _chance(pair, weight, label_a, label_b, annotations.n_classes, len(key)) / n_shared**2
    defined = chance < 1 - 1e-12
    kappa = np.divide(agreement - chance, 1 - chance, out=np.full(len(key), np.nan), where=defined)
    weighted = [_weighted(pair, weight, label_a, label_b, scale, n_shared) for scale in scales]
    return [key, n_shared, agreement, kappa, *weighted]


def _weighted(
    pair: Positions, weight: Array, label_a: Positions, label_b: Positions, scales: Array, n_shared: Array
) -> Array:
    """(n_pairs,) weighted kappa: 1 - observed / expected sum of squared differences on the scales."""
    observed, expected = np.zeros(len(n_shared)), np.zeros(len(n_shared))
    for scale in scales.T:
        a, b = scale[label_a], scale[label_b]
        sum_a, sum_b, squares, products = (
            sums_by(pair, weight * values, len(n_shared)) for values in (a, b, a * a + b * b, a * b)
        )
        observed += squares - 2 * products
        expected += squares - 2 * sum_a * sum_b / n_shared
    undefined = np.full(len(n_shared), np.nan)  # where all labels are equal; 1e-9 is above the rounding error
    return 1 - np.divide(observed, expected, out=undefined, where=expected > 1e-9 * n_shared)


def _chance(
    pair: Positions, weight: Array, label_a: Positions, label_b: Positions, n_classes: int, n_pairs: int
) -> Array:
    """(n_pairs,) the sum over classes of the product of the two workers' label counts."""
    cells = [np.unique(pair * n_classes + label, return_inverse=True) for label in (label_a, label_b)]
    named = [sums_by(where, weight, len(cell)) for cell, where in cells]
    both, in_a, in_b = np.intersect1d(cells[0][0], cells[1][0], assume_unique=True, return_indices=True)
    return sums_by(both // max(n_classes, 1), named[0][in_a] * named[1][in_b], n_pairs)


def _most_shared(columns: list[npt.NDArray[Any]], max_pairs: int) -> list[npt.NDArray[Any]]:
    """The pairs with most shared items, in the order of their keys."""
    if len(columns[0]) <= max_pairs:
        return columns
    kept = np.sort(np.argsort(-columns[1].astype(float), kind="stable")[:max_pairs])
    return [values[kept] for values in columns]


def _empty(n_weighted: int) -> list[npt.NDArray[Any]]:
    return [np.zeros(0, np.int64), *(np.zeros(0) for _ in range(3 + n_weighted))]
