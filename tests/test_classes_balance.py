"""Balance of classes in worked numbers and against plain loops, and selection from a stream within quotas."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyhands._core import neighbours
from manyhands._core.neighbours import Candidates, lowest, select
from manyhands.classes import imbalance, share_out, shift_prior, up_to_largest
from manyhands.classifiers.self_crowd import inverse_quotas
from manyhands.metrics import imbalance_ratio
from reference.slow_selection import slow_choice
from strategies import seeds


def test_imbalance_of_counts():
    """Largest minus smallest over the total (Eq. 6); unused classes count, and no item at all gives NaN."""
    assert imbalance([3, 1, 0]) == 0.75 and imbalance([5, 5]) == 0 and imbalance([7]) == 0
    assert math.isnan(imbalance([0, 0]))
    assert imbalance([4, 1, 2]) == imbalance_ratio({"a": 4, "b": 1, "c": 2})


@given(seeds(), st.integers(2, 5))
def test_shift_prior_is_bayes_rule(seed, n_classes):
    """Against plain loops over a joint distribution p(x, k): the posterior under the new prior, and back again."""
    rng = np.random.default_rng(seed)
    x_given_class = rng.dirichlet(np.ones(6), n_classes)  # (n_classes, 6 values of x)
    old, new = rng.dirichlet(np.ones(n_classes)) + 0.01, rng.dirichlet(np.ones(n_classes)) + 0.01

    def posterior(prior):
        joint = [[prior[k] * x_given_class[k, x] for k in range(n_classes)] for x in range(6)]
        return np.array([[p / sum(row) for p in row] for row in joint])

    np.testing.assert_allclose(shift_prior(posterior(old), old, new), posterior(new), rtol=1e-9)
    np.testing.assert_allclose(shift_prior(posterior(old), 7 * old), posterior(np.ones(n_classes)), rtol=1e-9)


def test_shift_prior_with_empty_classes():
    """A class without training items stays finite; a wanted share of 0 removes a class; no mass left is the prior."""
    assert np.allclose(shift_prior([[0.5, 0.5, 0.0]], [0.5, 0.5, 0.0]), [[0.5, 0.5, 0.0]])
    assert np.allclose(shift_prior([[0.5, 0.3, 0.2]], [1, 1, 1], [1, 1, 0]), [[0.625, 0.375, 0.0]])
    assert shift_prior([[0.0, 0.0, 1.0]], [1, 1, 1], [1, 3, 0]).tolist() == [[0.25, 0.75, 0.0]]


def test_up_to_largest():
    assert up_to_largest([5, 2, 0]).tolist() == [0, 3, 5]
    assert up_to_largest([]).tolist() == []


def test_a_weight_of_zero_gets_nothing():
    """Even where candidates of that class are available."""
    assert share_out(5, [0, 0], [3, 3]).tolist() == [0, 0]
    assert share_out(5, [1, 0], [3, 3]).tolist() == [3, 0]
    assert share_out(5, [2, 0, 2], [9, 9, 9]).tolist() == [3, 0, 2]


@given(seeds(), st.integers(0, 40))
def test_lowest_is_the_beginning_of_a_sort(seed, n):
    rng = np.random.default_rng(seed)
    score, tie = rng.integers(0, 5, 30).astype(np.float32), rng.random(30, np.float32)
    assert lowest(score, tie, n).tolist() == sorted(np.lexsort((tie, score))[:n].tolist())


@pytest.fixture(scope="module")
def few():
    """Lists are shortened when four are too many, not sixteen thousand."""
    before, neighbours._FEW = neighbours._FEW, 4
    yield
    neighbours._FEW = before


def in_parts(label, score, rng):
    """A stream of all candidates, cut at random places."""
    edges = [0, *np.sort(rng.integers(0, len(label), 12)).tolist(), len(label)]
    return [Candidates(a, label[a:b].astype(np.int16), score[a:b].astype(np.float32)) for a, b in pairwise(edges)]


@pytest.mark.parametrize("is_sorted", [False, True])
@pytest.mark.parametrize("quotas", [None, inverse_quotas])
@given(seeds(), st.integers(1, 25))
def test_selection_from_a_stream_is_that_of_a_sort(few, is_sorted, quotas, seed, total):
    """However the stream is split into chunks, the lowest within each quota are found.

    In a stream sorted by class, dropped candidates may be missing at the end: then the stream is read again.
    """
    rng = np.random.default_rng(seed)
    label, score = rng.choice(3, 200, p=[0.7, 0.25, 0.05]), rng.permutation(200).astype(float)
    label = np.sort(label) if is_sorted else label
    score[rng.random(200) < 0.2] = np.inf
    candidates = [(i, None, c, s) for i, (c, s) in enumerate(zip(label.tolist(), score.tolist())) if s < np.inf]
    available = np.bincount([g[2] for g in candidates], minlength=4)
    wanted = [total] if quotas is None else quotas(available, total).tolist()
    expected = slow_choice(candidates, [0] * len(candidates), wanted, by_class=quotas is not None)
    found = select(lambda: in_parts(label, score, np.random.default_rng(seed)), 4, total, rng, quotas)
    assert [*zip(*(column.tolist() for column in found))] == [(g[0], g[2]) for g in expected]


def test_a_stream_is_read_again_only_where_too_much_was_dropped(few):
    """Quotas estimated on the way are enough where classes are mixed, but not in a stream sorted by class."""
    rng = np.random.default_rng(0)
    label = np.sort(rng.choice(3, 3000, p=[0.5, 0.3, 0.2]))
    for classes, n_read in ((rng.permutation(label), 1), (label[::-1].copy(), 2)):
        calls = []

        def stream(classes=classes, calls=calls):
            calls.append(1)
            scores = np.random.default_rng(1).random(3000, np.float32)
            for i in range(0, 3000, 50):
                yield Candidates(i, classes[i : i + 50].astype(np.int16), scores[i : i + 50])

        chosen, found = select(stream, 3, 60, rng, inverse_quotas)
        assert len(calls) == n_read and len(chosen) == 60
        assert np.bincount(found).tolist() == inverse_quotas(np.bincount(label), 60).tolist()


def test_equals_are_drawn_from(few):
    """Of forty equals ten are chosen; over many seeds each of them about as often, the first and the last alike."""
    label, score = np.zeros(40, int), np.ones(40)
    chosen = np.zeros(40)
    for seed in range(400):
        rng = np.random.default_rng(seed)
        found, _ = select(lambda s=seed: in_parts(label, score, np.random.default_rng(s + 1000)), 1, 10, rng)
        chosen[found] += 1
    assert chosen.sum() == 4000
    assert np.abs(chosen - 100).max() < 40  # four and a half standard deviations
    parts = in_parts(label, score, np.random.default_rng(5))
    same = [select(lambda: parts, 1, 10, np.random.default_rng(7)) for _ in range(2)]
    np.testing.assert_array_equal(same[0][0], same[1][0])


def test_a_stream_is_not_held_whole(monkeypatch):
    """Of a long stream little more than the requested number is kept."""
    monkeypatch.setattr(neighbours, "_FEW", 8)
    held = []
    shorten = neighbours.Shortlist._shorten
    monkeypatch.setattr(
        neighbours.Shortlist, "_shorten", lambda self, n: (held.append(self._n_held), shorten(self, n))[1]
    )
    rng = np.random.default_rng(0)
    score = rng.random(2000, np.float32)
    parts = [Candidates(i, np.zeros(10, np.int16), score[i : i + 10]) for i in range(0, 2000, 10)]
    chosen, _ = select(lambda: parts, 1, 20, rng)
    assert chosen.tolist() == sorted(np.argsort(score)[:20].tolist())
    assert max(held) <= 20 + 8 + 10 and len(held) < 40
