"""Whether workers agree: as a share, and beyond chance.

Every figure counts items that at least two workers labelled, and pairs of labels of different workers; see
`manyhands.metrics.vote_patterns` for workers who labelled an item twice. Intervals are percentiles over resamples of these
items. Workers stay the same in all resamples, so an interval speaks of other items for this crowd, not of other crowds;
where all agree it has no width, however few the items.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from manyhands.annotations import Annotations
from manyhands.metrics.bootstrap import Bootstrap, Statistic
from manyhands.metrics.vote_patterns import Votes, as_block, as_table, find_patterns, gather_votes, totals
from manyhands.randomness import Seed
from manyhands.validation import OneOf, check_parameters

Array = npt.NDArray[np.float64]

NO_PAIRS = "no item has labels of two workers"
ONE_CLASS = "all labels that can be compared name one class, so agreement cannot be told from chance"


@dataclass(frozen=True)
class Agreement:
    """A figure of agreement and its interval; NaN with a reason where it is undefined."""

    value: float
    low: float
    high: float
    n_items: int  # that at least two workers labelled
    n_labels: int  # on these items
    reason: str | None = None


def percent_agreement(
    annotations: Annotations,
    *,
    per: str = "label",
    n_bootstrap: int = 1000,
    confidence: float = 0.95,
    random_state: Seed = 0,
) -> Agreement:
    """The share of pairs of workers who gave an item the same label.

    Parameters
    ----------
    per : what counts alike. "label": an item counts as much as it has workers, which is the agreement that
        Krippendorff's alpha corrects for chance; "item": all items count alike, as in Fleiss' kappa; "pair": all pairs
        of workers count alike, so items with many labels dominate. The same where all items have equally many
    n_bootstrap : resamples of items for the interval; 0 for none
    confidence : of the interval
    random_state : seed of the resamples

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
            equal, all_of_them = totals(weights, table).T
            return equal / all_of_them

        return share

    bootstrap = Bootstrap(n_bootstrap, confidence, random_state)
    return measure("percent_agreement", annotations, statistic, bootstrap, NO_PAIRS)


def fleiss_kappa(
    annotations: Annotations, *, n_bootstrap: int = 1000, confidence: float = 0.95, random_state: Seed = 0
) -> Agreement:
    """Fleiss' kappa: agreement beyond that of workers who draw classes at random, with the frequencies observed.

    Items may have different numbers of labels: observed agreement is the mean over items of the share of equal pairs,
    and the frequency of a class is the mean over the same items of its share of votes. With the same number of labels
    on every item this is Fleiss' formula. Other parameters are those of `percent_agreement`.

    References
    ----------
    Fleiss (1971), "Measuring nominal scale agreement among many raters".

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


def item_agreement(annotations: Annotations) -> Array:
    """(n_items,) the share of pairs of workers who gave the item the same label; NaN with fewer than two workers.

    >>> item_agreement(Annotations.from_matrix([[0, 0, 1], [1, -1, -1]])).round(3).tolist()
    [0.333, nan]
    """
    votes, pairable = gather_votes(annotations)
    share = np.full(annotations.n_items, np.nan)
    share[pairable] = share_of_equals(votes)
    return share


def share_of_equals(votes: Votes) -> Array:
    """(n_rows,) the share of pairs of different workers who said the same."""
    return 1 - votes.disagreement() / votes.n_workers


def measure(
    name: str,
    annotations: Annotations,
    make_statistic: Callable[[Votes], Statistic],
    bootstrap: Bootstrap,
    if_undefined: str,
) -> Agreement:
    """A figure of agreement, on all items and on resamples of them."""
    bootstrap.check(name)
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
    """`above / below` where that is defined, NaN elsewhere."""
    return np.divide(above, below, out=np.full_like(above, np.nan), where=defined)
