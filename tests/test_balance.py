"""How many of each class: quotas in worked numbers and beside plain loops, and a choice that keeps to them."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyhands.balance import (
    Candidates,
    imbalance,
    inverse_quotas,
    levelling_quotas,
    lowest,
    select,
    up_to_largest,
)
from manyhands.metrics import imbalance_ratio
from reference.slow_selection import slow_quotas
from strategies import seeds

counts = st.lists(st.integers(0, 60), min_size=1, max_size=7)


def test_imbalance_of_counts():
    """The largest less the smallest over all: Eq. 6; classes nobody has count, and nothing at all has no imbalance."""
    assert imbalance([3, 1, 0]) == 0.75 and imbalance([5, 5]) == 0 and imbalance([7]) == 0
    assert math.isnan(imbalance([0, 0]))
    assert imbalance([4, 1, 2]) == imbalance_ratio({"a": 4, "b": 1, "c": 2})


def test_up_to_largest():
    assert up_to_largest([5, 2, 0]).tolist() == [0, 3, 5]
    assert up_to_largest([]).tolist() == []


def test_quotas_of_the_sheet():
    """N' = 100, 200, 400 gives t = 4/7, 2/7, 1/7, whose own R is .43."""
    quotas = inverse_quotas([100, 200, 400], 70)
    assert quotas.tolist() == [40, 20, 10]
    assert imbalance(quotas) == pytest.approx(3 / 7)


@given(counts, st.integers(0, 300))
def test_quotas_sum_to_what_is_asked_and_never_exceed_what_exists(available, total):
    """For both rules; a class that is there gets at least one, if there are enough to go round, and others get none."""
    for quotas in (inverse_quotas(available, total), levelling_quotas(available[::-1], available, total)):
        assert quotas.sum() == min(total, sum(available))
        assert np.all(quotas >= 0) and np.all(quotas <= available)
    if total >= np.count_nonzero(available):
        assert np.all(inverse_quotas(available, total)[np.array(available) > 0] >= 1)


@given(counts, st.integers(1, 300))
def test_quotas_are_near_those_given_out_one_by_one(available, total):
    """Handing them out singly, always to the class furthest below its share, ends within one of the quotas."""
    slow = slow_quotas(available, total)
    if slow is not None:
        assert np.abs(inverse_quotas(available, total) - slow).max() <= 1


def test_what_a_rare_class_cannot_give_the_others_give_in_proportion():
    assert inverse_quotas([3, 200, 400], 63).tolist() == [3, 40, 20]
    assert inverse_quotas([0, 5, 0], 9).tolist() == [0, 5, 0]
    assert inverse_quotas([9, 9], 1).sum() == 1


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), min_size=1, max_size=6), st.integers(0, 100))
def test_levels_are_those_of_pouring_one_by_one(pairs, total):
    """Each goes to the class that is smallest so far, of those that have any left."""
    before, available = np.array(pairs).T
    level, quota = before.copy(), np.zeros_like(before)
    for _ in range(min(total, available.sum())):
        c = min(np.flatnonzero(quota < available), key=lambda c: level[c])
        level[c], quota[c] = level[c] + 1, quota[c] + 1
    assert levelling_quotas(before, available, total).tolist() == quota.tolist()


@given(seeds(), st.integers(0, 40))
def test_lowest_is_the_beginning_of_a_sort(seed, n):
    rng = np.random.default_rng(seed)
    score, tie = rng.integers(0, 5, 30).astype(np.float32), rng.random(30, np.float32)
    assert lowest(score, tie, n).tolist() == sorted(np.lexsort((tie, score))[:n].tolist())


@given(seeds(), st.integers(1, 25))
def test_selection_from_a_stream_is_that_of_a_sort(seed, total):
    """However the stream is cut, and whatever is forgotten on the way, the lowest within each quota are found."""
    rng = np.random.default_rng(seed)
    n = 200
    who, group = rng.permutation(10 * n)[:n], rng.integers(0, 3, n)
    score, tie = rng.integers(0, 9, n).astype(np.float32), rng.random(n, np.float32)
    edges = [0, *np.sort(rng.integers(0, n, 12)).tolist(), n]
    parts = [Candidates(who[a:b], group[a:b], score[a:b], tie[a:b]) for a, b in pairwise(edges)]
    quotas = inverse_quotas(np.bincount(group, minlength=4), total)
    expected = []
    for c, quota in enumerate(quotas):
        of_class = np.flatnonzero(group == c)
        expected += who[of_class[np.lexsort((tie[of_class], score[of_class]))[:quota]]].tolist()
    assert select(parts, 4, total, inverse_quotas).tolist() == sorted(expected)


def test_a_stream_is_not_held_whole(monkeypatch):
    """Of a long stream no more is kept than is asked for, and a little."""
    from manyhands import balance

    monkeypatch.setattr(balance, "_FEW", 8)
    held = []
    shorten = balance.Shortlist._shorten
    monkeypatch.setattr(balance.Shortlist, "_shorten", lambda self, n: (held.append(self._n_held), shorten(self, n))[1])
    rng = np.random.default_rng(0)

    def stream():
        for i in range(200):
            score = rng.random(10, np.float32)
            yield Candidates(np.arange(10 * i, 10 * i + 10), np.zeros(10, int), score, score)

    chosen = select(stream(), 1, 20, inverse_quotas)
    assert len(chosen) == 20 and max(held) <= 20 + 8 + 10 and len(held) < 40
