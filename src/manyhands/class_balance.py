"""How many of each class: the imbalance ratio, quotas, and a choice that keeps to them.

Quotas are plain counts, one for each class, that sum to what is asked for wherever there is enough. What is chosen is
what scores lowest within each quota, and is found in a stream of candidates that is never held whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Counts = npt.NDArray[np.int64]
Shares = npt.NDArray[np.float64]

_FEW = 1 << 14  # candidates beyond what is wanted that are not worth a look yet


def imbalance(counts: npt.ArrayLike) -> float:
    """R = (largest - smallest) / sum over all classes: 0 is balanced, 1 is one class alone, NaN is nothing at all.

    >>> imbalance([3, 1, 0])
    0.75
    """
    n_of_class = np.asarray(counts, np.float64)
    total = n_of_class.sum()
    return float((n_of_class.max() - n_of_class.min()) / total) if total > 0 else float("nan")


def up_to_largest(counts: npt.ArrayLike) -> Counts:
    """(n_classes,) how many each class lacks to be as large as the largest.

    >>> up_to_largest([5, 2, 0]).tolist()
    [0, 3, 5]
    """
    n_of_class = np.asarray(counts, np.int64)
    return n_of_class.max(initial=0) - n_of_class


def inverse_quotas(available: npt.ArrayLike, total: int) -> Counts:
    """(n_classes,) quotas in inverse proportion to what is available of each class, so that rare ones come first.

    They sum to `total`, or to all there is; no quota exceeds what is available. What a class cannot give the others
    give, in the same proportion. Every class that is there at all gets one, if `total` allows.

    >>> inverse_quotas([100, 200, 400], 70).tolist()
    [40, 20, 10]
    >>> inverse_quotas([3, 200, 400], 63).tolist()
    [3, 40, 20]
    """
    stock = np.asarray(available, np.int64)
    return share_out(total, np.where(stock > 0, 1 / np.maximum(stock, 1), 0.0), stock)


def levelling_quotas(counts: npt.ArrayLike, available: npt.ArrayLike, total: int) -> Counts:
    """(n_classes,) quotas that lift the smallest classes first, as water fills a vessel, from `counts` as they are.

    They sum to `total`, or to all there is; no quota exceeds what is available.

    >>> levelling_quotas([10, 4, 0], [100, 100, 100], 16).tolist()
    [0, 6, 10]
    """
    before, stock = np.asarray(counts, np.int64), np.asarray(available, np.int64)
    total = int(min(total, stock.sum()))
    low, high = int(before.min(initial=0)), int((before + stock).max(initial=0))
    while low < high:  # the highest level for which there is enough
        middle = (low + high + 1) // 2
        low, high = (middle, high) if _raised(before, stock, middle).sum() <= total else (low, middle - 1)
    quotas = _raised(before, stock, low)
    raised = np.flatnonzero(_raised(before, stock, low + 1) > quotas)  # less is left than one for each of these
    quotas[raised[: total - int(quotas.sum())]] += 1
    return quotas


def _raised(before: Counts, stock: Counts, level: int) -> Counts:
    return np.clip(level - before, 0, stock)


def share_out(total: int, weight: npt.ArrayLike, available: npt.ArrayLike | None = None) -> Counts:
    """Whole numbers in proportion to weights that sum to `total`, or to all that is available.

    The largest remainders are rounded up. Whoever has a weight gets one at least, if `total` allows; whoever has none
    gets nothing, whatever is available.

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
    by_fraction = np.argsort(quotas - share, kind="stable")  # largest fractions first; whole shares are not raised
    room = by_fraction[(quotas < stock)[by_fraction]]
    quotas[room[: total - int(quotas.sum())]] += 1
    for starved in np.flatnonzero((quotas == 0) & (stock > 0)):
        if quotas.max() > 1:
            quotas[quotas.argmax()] -= 1
            quotas[starved] = 1
    return quotas


def lowest(score: npt.NDArray[np.floating], tie: npt.NDArray[np.floating], n: int) -> npt.NDArray[np.intp]:
    """The places of the `n` lowest scores, in their order of places; among equals, of those with the lowest `tie`."""
    if n >= len(score):
        return np.arange(len(score))
    if n == 0:
        return np.zeros(0, np.intp)
    cut = np.partition(score, n - 1)[n - 1]
    below, equal = np.flatnonzero(score < cut), np.flatnonzero(score == cut)
    drawn = equal[np.argsort(tie[equal], kind="stable")[: n - len(below)]]
    return np.sort(np.concatenate([below, drawn]))


class Candidates(NamedTuple):
    """Part of a stream: the number of its first candidate, the class of each, and the score of each: low is good.

    Numbers go on by one; a score that is infinite belongs to nobody.
    """

    first: int
    label: npt.NDArray[np.int16]
    score: npt.NDArray[np.float32]


def select(
    stream: Callable[[], Iterable[Candidates]],
    n_classes: int,
    total: int,
    rng: np.random.Generator,
    quotas: Callable[[Counts, int], Counts] | None = None,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The numbers and classes of `total` candidates with the lowest scores, by number; equals are drawn from.

    With `quotas(available, total)`, so many of each class, given how many the stream had. What is held at a time is a
    small multiple of `total`, whatever the stream: while it runs, a class keeps twice what its quota would be by now.
    Where that was too few, as a stream sorted by class can have it, `stream` is called again, with quotas known.
    """
    rng = np.random.default_rng(rng.integers(2**63))  # how many ties there are shows in nothing else
    if quotas is None:
        lists = [Shortlist(total)]
        _read(stream(), lists, n_classes, rng)
        wanted = np.array([total])
    else:
        lists = [Shortlist(total) for _ in range(n_classes)]
        wanted = quotas(_read(stream(), lists, n_classes, rng, lambda seen: 2 * quotas(seen, total)), total)
        if any(n > shortlist.sure for n, shortlist in zip(wanted.tolist(), lists)):
            lists = [Shortlist(n) for n in wanted.tolist()]
            _read(stream(), lists, n_classes, rng)
    chosen = np.sort(np.concatenate([shortlist.take(n) for shortlist, n in zip(lists, wanted.tolist())]))
    return chosen // n_classes, chosen % n_classes


def _read(
    stream: Iterable[Candidates],
    lists: list[Shortlist],
    n_classes: int,
    rng: np.random.Generator,
    quota_so_far: Callable[[Counts], Counts] | None = None,
) -> Counts:
    """Put candidates on the list of their class, or all on a single one; (n_classes,) how many there were."""
    available = np.zeros(n_classes, np.int64)
    for first, label, score in stream:
        available += np.bincount(label[np.isfinite(score)], minlength=n_classes)
        if quota_so_far is not None:
            for shortlist, n in zip(lists, quota_so_far(available).tolist()):
                shortlist.most = n
        cut = np.array([shortlist.cut for shortlist in lists], np.float32)
        near = np.flatnonzero(score <= (cut[0] if len(lists) == 1 else cut[label]))
        group = label[near] if len(lists) > 1 else np.zeros(len(near), np.int16)
        near = near[np.argsort(group, kind="stable")]
        number, tie = (near + first) * n_classes + label[near], rng.random(len(near), np.float32)
        edges = np.cumsum(np.bincount(group, minlength=len(lists)))[:-1]
        for shortlist, *columns in zip(lists, *(np.split(column, edges) for column in (number, score[near], tie))):
            shortlist.add(*columns)
    return available


@dataclass
class Shortlist:
    """Of a stream of candidates the `most` that score lowest, and few more at a time."""

    most: int
    cut: float = float(np.finfo(np.float32).max)  # nobody above it is looked for any more
    sure: float = np.inf  # of so many lowest, none was lost
    _parts: list[tuple[npt.NDArray[np.int64], npt.NDArray[np.float32], npt.NDArray[np.float32]]] = field(
        default_factory=list
    )
    _n_held: int = 0

    def add(self, number: npt.NDArray[np.int64], score: npt.NDArray[np.float32], tie: npt.NDArray[np.float32]) -> None:
        """Candidates by number, their scores, and what decides between equal scores."""
        self._parts.append((number, score, tie))
        self._n_held += len(number)
        if self._n_held >= self.most + max(self.most // 4, _FEW):
            self._shorten(self.most)

    def take(self, n: int) -> npt.NDArray[np.int64]:
        """The `n` lowest."""
        self._shorten(n)
        return self._parts[0][0]

    def _shorten(self, n: int) -> None:
        number, score, tie = (np.concatenate(columns) for columns in zip(*(self._parts or [_NO_CANDIDATES])))
        kept = lowest(score, tie, n)
        self._parts, self._n_held = [(number[kept], score[kept], tie[kept])], len(kept)
        if len(kept) == n < len(number):
            self.sure = min(self.sure, n)
            self.cut = float(score[kept].max()) if n else -np.inf


_NO_CANDIDATES = np.zeros(0, np.int64), np.zeros(0, np.float32), np.zeros(0, np.float32)
