"""From posteriors to one class per item."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyhands.em import kernels, plain_pass
from manyhands.em.decisions import pick_classes
from reference.slow import slow_pick_classes

pytestmark = pytest.mark.fast

probability = st.sampled_from([0.0, 0.25, 0.5, 1.0])
rows = st.integers(1, 4).flatmap(
    lambda k: st.lists(st.lists(probability, min_size=k, max_size=k), min_size=1, max_size=9)
)


@given(rows, st.randoms(use_true_random=False))
def test_picks_are_those_of_the_reference(posterior, random):
    """With many ties, and items without labels."""
    unlabelled = [random.random() < 0.3 for _ in posterior]
    code, tied = pick_classes(np.array(posterior), np.array(unlabelled))
    assert (code.tolist(), tied.tolist()) == slow_pick_classes(posterior, unlabelled)


def test_a_tie_goes_to_the_larger_class_then_to_the_first():
    """The class with more mass overall wins; with equal mass, the one that comes first; both are flagged."""
    labelled = np.zeros(3, bool)
    code, tied = pick_classes(np.array([[0.5, 0.5], [0.1, 0.9], [0.4, 0.6]]), labelled)
    assert (code.tolist(), tied.tolist()) == ([1, 1, 1], [True, False, False])
    code, tied = pick_classes(np.array([[0.5, 0.5], [0.1, 0.9], [0.9, 0.1]]), labelled)
    assert (code.tolist(), tied.tolist()) == ([0, 1, 0], [True, False, False])


def test_sums_in_another_order_are_still_a_tie():
    """Differences of rounding do not decide."""
    code, tied = pick_classes(
        np.array([[0.1 + 0.2, 0.3, 0.4 - 1e-12 + 1e-12], [0.35, 0.35 + 1e-13, 0.3]]), np.zeros(2, bool)
    )
    assert tied.tolist() == [False, True]
    assert code.tolist() == [2, 0] or code.tolist() == [2, 1]


def test_unlabelled_items_do_not_break_ties():
    """A hundred items without labels, all leaning to class 1 by their prior, do not move a tie."""
    posterior = np.vstack([[[0.5, 0.5], [0.9, 0.1]], np.tile([0.1, 0.9], (100, 1))])
    unlabelled = np.arange(102) >= 2
    code, tied = pick_classes(posterior, unlabelled)
    assert code[:2].tolist() == [0, 0] and set(code[2:]) == {-1}
    assert tied.tolist() == [True] + [False] * 101


def test_chunks_change_nothing(monkeypatch):
    """The plain path, chunk after chunk, picks what the compiled one picks."""
    posterior = np.random.default_rng(0).dirichlet(np.ones(3), 50).round(1)
    whole = pick_classes(posterior, np.zeros(50, bool))
    monkeypatch.setattr(kernels, "_columns", None)
    monkeypatch.setattr(plain_pass, "CHUNK", 7)
    for one, other in zip(whole, pick_classes(posterior, np.zeros(50, bool))):
        np.testing.assert_array_equal(one, other)
