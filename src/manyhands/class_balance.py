"""Class balance: the imbalance ratio, class quotas, and probabilities under another class prior.

Quotas are counts, one for each class, that sum to the requested total wherever there are enough candidates. Candidates
are then selected from a stream by `stream_selection`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from manyhands.stream_selection import Candidates as Candidates
from manyhands.stream_selection import Counts as Counts
from manyhands.stream_selection import select as select

Shares = npt.NDArray[np.float64]

_LEAST_SHARE = 1e-12  # of a class that no training item has


def imbalance(counts: npt.ArrayLike) -> float:
    """Imbalance ratio R = (largest - smallest) / total of class counts.

    Parameters
    ----------
    counts : array-like of shape (n_classes,)
        Number of items of each class.

    Returns
    -------
    float
        0 is balanced, 1 is a single class, NaN is no item at all.

    Examples
    --------
    >>> imbalance([3, 1, 0])
    0.75
    """
    n_of_class = np.asarray(counts, np.float64)
    total = n_of_class.sum()
    return float((n_of_class.max() - n_of_class.min()) / total) if total > 0 else float("nan")


def shift_prior(proba: npt.ArrayLike, shares: npt.ArrayLike, prior: npt.ArrayLike | None = None) -> Shares:
    """Class probabilities for data whose class frequencies differ from those of the training data.

        p'(k | x) = p(k | x) prior_k / shares_k / sum_c p(c | x) prior_c / shares_c

    This is Bayes' rule with another prior, if p(x | k) is the same in both data sets.

    Parameters
    ----------
    proba : array-like of shape (n_items, n_classes)
        Predicted class probabilities of each item.
    shares : array-like of shape (n_classes,)
        Class frequencies of the training data, for instance the column means of `posterior_`. They need not sum to 1.
    prior : array-like of shape (n_classes,) or None, default=None
        Wanted class frequencies, which need not sum to 1; None is the same for all classes.

    Returns
    -------
    ndarray of shape (n_items, n_classes)
        Rows sum to 1. A class without any share in training keeps the probability that a share of 1e-12 gives it. A row
        that has no mass on the classes of the prior becomes the prior.

    Examples
    --------
    >>> shift_prior([[0.75, 0.25]], shares=[0.75, 0.25]).tolist()
    [[0.5, 0.5]]
    >>> shift_prior([[0.5, 0.5]], shares=[0.5, 0.5], prior=[3, 1]).tolist()
    [[0.75, 0.25]]
    """
    p, before = np.asarray(proba, np.float64), np.asarray(shares, np.float64)
    wanted = np.ones(p.shape[1]) if prior is None else np.asarray(prior, np.float64)
    wanted = wanted / wanted.sum()
    ratio = wanted / np.maximum(before / before.sum(), _LEAST_SHARE)
    shifted = p * (ratio / ratio.max())  # the largest ratio is 1, so that no product overflows
    total = shifted.sum(axis=1, keepdims=True)
    return np.where(total > 0, shifted / np.where(total > 0, total, 1.0), wanted)


def estimated_shares(posterior: Shares) -> Shares:
    """Class frequencies of training items by the posterior of a method, at least half an item of each class.

    Parameters
    ----------
    posterior : ndarray of shape (n_items, n_classes)
        Posterior of the training items.

    Returns
    -------
    ndarray of shape (n_classes,)
        The `shares` of `shift_prior`; without the floor, a class that nobody named would get all the mass.
    """
    return np.maximum(posterior.mean(axis=0), 0.5 / len(posterior))


def up_to_largest(counts: npt.ArrayLike) -> Counts:
    """How many items each class lacks to be as frequent as the most frequent one.

    Parameters
    ----------
    counts : array-like of shape (n_classes,)
        Number of items of each class.

    Returns
    -------
    ndarray of shape (n_classes,) of int

    Examples
    --------
    >>> up_to_largest([5, 2, 0]).tolist()
    [0, 3, 5]
    """
    n_of_class = np.asarray(counts, np.int64)
    return n_of_class.max(initial=0) - n_of_class


def inverse_quotas(available: npt.ArrayLike, total: int) -> Counts:
    """Quotas in inverse proportion to the number of candidates of each class, so that rare classes come first.

        t_c = (1 / N_c) / sum_c' (1 / N_c'),   M_c = t_c M        (Eq. 4 and 5 of Self-Crowd)

    with N_c the number of candidates of class c (`available`) and M the requested number (`total`), then rounded.
    What a class cannot provide is taken from the others, in the same proportion. Every class with candidates gets at
    least one, if `total` allows.

    Parameters
    ----------
    available : array-like of shape (n_classes,)
        Number of candidates of each class, which no quota exceeds.
    total : int
        Requested number.

    Returns
    -------
    ndarray of shape (n_classes,) of int
        Sums to `total`, or to all candidates.

    Examples
    --------
    >>> inverse_quotas([100, 200, 400], 70).tolist()
    [40, 20, 10]
    >>> inverse_quotas([3, 200, 400], 63).tolist()
    [3, 40, 20]
    """
    stock = np.asarray(available, np.int64)
    return share_out(total, np.where(stock > 0, 1 / np.maximum(stock, 1), 0.0), stock)


def levelling_quotas(counts: npt.ArrayLike, available: npt.ArrayLike, total: int) -> Counts:
    """Quotas that raise the least frequent classes first, until all have the same count (water filling).

    Parameters
    ----------
    counts : array-like of shape (n_classes,)
        Present number of items of each class.
    available : array-like of shape (n_classes,)
        Number of candidates of each class, which no quota exceeds.
    total : int
        Requested number.

    Returns
    -------
    ndarray of shape (n_classes,) of int
        Sums to `total`, or to all candidates.

    Examples
    --------
    >>> levelling_quotas([10, 4, 0], [100, 100, 100], 16).tolist()
    [0, 6, 10]
    """
    before, stock = np.asarray(counts, np.int64), np.asarray(available, np.int64)
    total = int(min(total, stock.sum()))
    low, high = int(before.min(initial=0)), int((before + stock).max(initial=0))
    while low < high:  # binary search for the highest level that can be reached
        middle = (low + high + 1) // 2
        low, high = (middle, high) if _raised(before, stock, middle).sum() <= total else (low, middle - 1)
    quotas = _raised(before, stock, low)
    raised = np.flatnonzero(_raised(before, stock, low + 1) > quotas)  # fewer are left than one for each of these
    quotas[raised[: total - int(quotas.sum())]] += 1
    return quotas


def _raised(before: Counts, stock: Counts, level: int) -> Counts:
    """How many candidates raise each class to this level."""
    return np.clip(level - before, 0, stock)


def share_out(total: int, weight: npt.ArrayLike, available: npt.ArrayLike | None = None) -> Counts:
    """Integers in proportion to weights, by the largest remainder method.

    Every positive weight gets at least one, if `total` allows; a weight of 0 gets nothing, whatever is available.

    Parameters
    ----------
    total : int
        Requested sum.
    weight : array-like of shape (n,)
        Weights, at least 0.
    available : array-like of shape (n,), default=None
        Upper limits; None is no limit.

    Returns
    -------
    ndarray of shape (n,) of int
        Sums to `total`, or to all that is available.

    Examples
    --------
    >>> share_out(110, [10, 1]).tolist(), share_out(5, [1000, 1, 1]).tolist()
    ([100, 10], [3, 1, 1])
    """
    weight = np.asarray(weight, np.float64)
    stock = np.where(weight > 0, total if available is None else np.asarray(available, np.int64), 0)
    total = int(min(total, stock.sum()))
    share = np.zeros(len(weight))
    is_open = stock > 0
    while is_open.any():
        left = total - share[~is_open].sum()
        share[is_open] = left * weight[is_open] / weight[is_open].sum()
        full = is_open & (share > stock)
        if not full.any():
            break
        share[full] = stock[full]
        is_open &= ~full
    quotas = np.floor(share + 1e-9).astype(np.int64)
    by_fraction = np.argsort(quotas - share, kind="stable")  # largest fractions first; whole shares are not rounded up
    room = by_fraction[(quotas < stock)[by_fraction]]
    quotas[room[: total - int(quotas.sum())]] += 1
    for starved in np.flatnonzero((quotas == 0) & (stock > 0)):
        if quotas.max() > 1:
            quotas[quotas.argmax()] -= 1
            quotas[starved] = 1
    return quotas
