"""Inter-annotator agreement: as a share of pairs, and corrected for chance.

Every metric counts items that at least two workers labelled, and pairs of labels of different workers; see
`manyhands.metrics.vote_patterns` for workers who labelled an item twice. Intervals are percentiles over bootstrap
resamples of these items. Workers are the same in all resamples: an interval describes the variation over items for this
crowd, not the variation over crowds. Where all labels agree it has no width, however few the items.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from manyhands.annotations import Annotations
from manyhands.metrics.bootstrap import Bootstrap, Statistic
from manyhands.metrics.vote_patterns import Votes, as_block, as_table, find_patterns, gather_votes, totals
from manyhands.randomness import Seed
from manyhands.validation import OneOf, as_annotations, check_parameters

Array = npt.NDArray[np.float64]

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

    Parameters
    ----------
    votes : Votes
        Votes on items, or on patterns of items.

    Returns
    -------
    ndarray of shape (n_rows,)
        The share for each row.
    """
    return 1 - votes.disagreement() / votes.n_workers


def measure(
    name: str,
    annotations: Annotations,
    make_statistic: Callable[[Votes], Statistic],
    bootstrap: Bootstrap,
    if_undefined: str,
) -> Agreement:
    """Compute a coefficient of agreement on all items, and its interval over resamples of items.

    Parameters
    ----------
    name : str
        Name of the public function, for error messages.
    annotations : Annotations or data frame
        The crowd's labels.
    make_statistic : callable
        From votes to a function of weights (n_resamples, n_rows) that gives the coefficient of each resample.
    bootstrap : Bootstrap
        Number of resamples, confidence level and seed.
    if_undefined : str
        Reason to give where the coefficient is NaN.

    Returns
    -------
    Agreement
        The coefficient with its interval.
    """
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
    """Divide where the quotient is defined.

    Parameters
    ----------
    above : ndarray
        Numerators.
    below : ndarray
        Denominators.
    defined : ndarray of bool
        Where to divide.

    Returns
    -------
    ndarray
        ``above / below`` where `defined`, NaN elsewhere.
    """
    return np.divide(above, below, out=np.full_like(above, np.nan), where=defined)
