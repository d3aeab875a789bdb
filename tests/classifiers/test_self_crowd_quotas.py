"""The class quotas of Self-Crowd in worked numbers and against plain loops."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyhands.classes import imbalance
from manyhands.classifiers.self_crowd import inverse_quotas, levelling_quotas
from reference.slow_selection import slow_quotas

counts = st.lists(st.integers(0, 60), min_size=1, max_size=7)


def test_quotas_of_the_sheet():
    """N' = 100, 200, 400 gives t = 4/7, 2/7, 1/7, whose own R is .43."""
    quotas = inverse_quotas([100, 200, 400], 70)
    assert quotas.tolist() == [40, 20, 10]
    assert imbalance(quotas) == pytest.approx(3 / 7)


@given(counts, st.integers(0, 300))
def test_quotas_sum_to_what_is_asked_and_never_exceed_what_exists(available, total):
    """For both rules; every available class gets at least one, if the total allows, and others get none."""
    for quotas in (inverse_quotas(available, total), levelling_quotas(available[::-1], available, total)):
        assert quotas.sum() == min(total, sum(available))
        assert np.all(quotas >= 0) and np.all(quotas <= available)
    if total >= np.count_nonzero(available):
        assert np.all(inverse_quotas(available, total)[np.array(available) > 0] >= 1)


@given(counts, st.integers(1, 300))
def test_quotas_are_near_those_given_out_one_by_one(available, total):
    """Assigning one at a time to the class furthest below its share ends within one of the quotas."""
    slow = slow_quotas(available, total)
    if slow is not None:
        assert np.abs(inverse_quotas(available, total) - slow).max() <= 1


def test_a_shortage_is_filled_by_the_others_in_proportion():
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


def test_quotas_of_nothing():
    assert levelling_quotas([], [], 3).tolist() == inverse_quotas([], 3).tolist() == []
