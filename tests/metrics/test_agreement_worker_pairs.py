"""Every two workers: plain loops, scikit-learn's Cohen's kappa, and limits before memory is gone."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from manyhands import Annotations
from manyhands.exceptions import AnnotationError, LimitError, ParameterError
from manyhands.metrics import agreement as pairs
from manyhands.metrics import pair_agreement
from strategies import annotations, triples_of


def slow_pairs(votes, min_shared):
    """{(a, b): (n_shared, agreement, kappa)} by plain loops over workers and items."""
    votes_of = {}
    for item, worker, label in triples_of(votes):
        vote = votes_of.setdefault(worker, {}).setdefault(item, np.zeros(votes.n_classes))
        vote[label] += 1
    result = {}
    for a in votes_of:
        for b in votes_of:
            shared = votes_of[a].keys() & votes_of[b].keys()
            if a < b and len(shared) >= min_shared:
                one, other = (np.array([votes_of[w][i] / votes_of[w][i].sum() for i in sorted(shared)]) for w in (a, b))
                agreement = np.mean(np.sum(one * other, axis=1))
                chance = np.sum(one.mean(axis=0) * other.mean(axis=0))
                kappa = np.nan if np.isclose(chance, 1) else (agreement - chance) / (1 - chance)
                result[a, b] = len(shared), agreement, kappa
    return result


@given(annotations(max_items=4, max_workers=3, max_labels=40), st.integers(1, 3), st.sampled_from([1, 7, 1 << 21]))
def test_pairs_are_those_of_plain_loops(votes, min_shared, chunk):
    """With repeated labels and workers without labels, in chunks of any size."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pairs, "_CHUNK", chunk)
        found = pair_agreement(votes, min_shared=min_shared)
    expected = slow_pairs(votes, min_shared)
    assert list(zip(found.a.tolist(), found.b.tolist())) == sorted(expected)
    table = np.array([expected[pair] for pair in sorted(expected)]).reshape(-1, 3)
    np.testing.assert_allclose(np.stack([found.n_shared, found.agreement, found.kappa], axis=1), table, atol=1e-9)
    assert found.n_left_out == 0


def test_kappa_is_that_of_scikit_learn():
    """Two workers on all items."""
    one, other = np.random.default_rng(0).integers(0, 4, (2, 50))
    found = pair_agreement(Annotations.from_matrix(np.stack([one, other], axis=1)))
    assert found.kappa[0] == pytest.approx(cohen_kappa_score(one, other))
    assert found.agreement[0] == np.mean(one == other) and found.n_shared.dtype == np.int64


def test_one_class_is_undefined():
    """Both always give the same label: full agreement, and chance agreement is full too."""
    found = pair_agreement(Annotations.from_matrix([[0, 0]] * 6))
    assert found.agreement.tolist() == [1] and np.isnan(found.kappa).all()


def test_a_worker_is_no_pair_with_himself():
    """A worker who labels every item twice is paired with the other worker only."""
    items, workers = np.repeat(np.arange(8), 3), ["ann", "ann", "bob"] * 8
    votes = Annotations.from_triples(items, workers, ["cat", "dog", "cat"] * 8, duplicates="all")
    found = pair_agreement(votes, min_shared=1)
    assert (found.a.tolist(), found.b.tolist(), found.n_shared.tolist()) == ([0], [1], [8])
    assert found.agreement.tolist() == [0.5]


def test_the_pairs_that_share_most_are_kept(monkeypatch):
    """The other pairs are counted."""
    monkeypatch.setattr(pairs, "_CHUNK", 4)
    rng = np.random.default_rng(0)
    votes = Annotations.from_matrix(np.where(rng.random((40, 8)) < np.linspace(0.2, 0.9, 8), 1, -1))
    everything = pair_agreement(votes, min_shared=1)
    some = pair_agreement(votes, min_shared=1, max_pairs=10)
    assert len(everything.a) == 28 and len(some.a) == 10 and some.n_left_out == 18
    assert sorted(some.n_shared) == sorted(everything.n_shared)[-10:]
    assert some.a.tolist() == sorted(some.a.tolist())


def test_too_many_pairs_are_refused_before_they_are_made(monkeypatch):
    """A thousand labels on one item are half a million pairs."""
    monkeypatch.setattr(pairs, "_MAX_LABEL_PAIRS", 400_000)
    with pytest.raises(LimitError, match="499500 pairs of labels"):
        pair_agreement(Annotations.from_matrix(np.zeros((1, 1000), int)))


def test_no_pair_at_all():
    """No shared items, or no workers: empty arrays."""
    for votes in (Annotations.from_matrix([[0, -1], [-1, 1]]), Annotations.from_triples([], [], [])):
        found = pair_agreement(votes, min_shared=1)
        assert len(found.a) == len(found.kappa) == found.n_left_out == 0


@pytest.mark.parametrize("bad", [{"min_shared": 0}, {"max_pairs": 0}, {"min_shared": "two"}])
def test_limits_are_whole_numbers(bad):
    """One sentence."""
    with pytest.raises(ParameterError, match=next(iter(bad))):
        pair_agreement(Annotations.from_matrix([[0, 1]]), **bad)


def test_a_matrix_is_refused():
    """With the way to build annotations."""
    with pytest.raises(AnnotationError, match=r"Annotations\.from_matrix"):
        pair_agreement([[0, 1]])
