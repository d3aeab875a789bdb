"""Majority vote."""

import numpy as np
import pytest
from hypothesis import given

from manyhands import Annotations, MajorityVote, Wawa
from manyhands.testing.crowds import quietly
from reference.slow import slow_pick_classes, slow_vote_share
from strategies import annotations, triples_of

pytestmark = pytest.mark.fast


@given(annotations())
def test_posterior_is_the_share_of_votes(votes):
    """Shares, ties and labels are those of plain loops; items without labels have the overall shares."""
    model = quietly(lambda: MajorityVote().fit(votes))
    share = slow_vote_share(triples_of(votes), votes.n_items, votes.n_classes)
    labelled = votes.n_labels > 0
    np.testing.assert_allclose(model.posterior_[labelled], np.array(share)[labelled], rtol=1e-12)
    overall = np.array(share)[labelled].sum(axis=0) + 1 / votes.n_classes
    for row in model.posterior_[~labelled]:
        np.testing.assert_allclose(row, overall / overall.sum(), rtol=1e-12)
    code, tied = slow_pick_classes(share, ~labelled)
    assert model.labels_.tolist() == [None if k < 0 else votes.classes[k] for k in code]
    assert model.tied_.tolist() == tied


def test_a_tie_goes_to_the_larger_class():
    """Two against two: the class with more votes elsewhere, whatever the order of classes."""
    rows = [["a", "a", "b", "b"], ["b", "b", "b", "b"]]
    for classes in (["a", "b"], ["b", "a"]):
        model = MajorityVote().fit(Annotations.from_matrix(rows, classes=classes))
        assert model.labels_.tolist() == ["b", "b"]
        assert model.tied_.tolist() == [True, False]


def test_ten_thousand_equal_votes_sum_to_one():
    """Shares of any number of votes are exact enough not to be a tie or to miss 1."""
    for n in (3, 7, 49, 1000):
        model = MajorityVote().fit(Annotations.from_matrix([[0] * n, [1] * n]))
        np.testing.assert_allclose(model.posterior_, np.eye(2), atol=1e-15)


@pytest.mark.parametrize("method", [MajorityVote, Wawa])
def test_gold_is_certain_also_of_an_item_without_labels(method):
    """Gold has the whole posterior of its item; an item without labels and gold has the shares of all others."""
    votes = Annotations.from_matrix([[0, 0, 0], [1, 1, 1], [-1, -1, -1], [-1, -1, -1]], classes=[0, 1])
    model = quietly(lambda: method().fit(votes, gold={0: 1, 2: 1}))
    assert model.posterior_[:3].tolist() == [[0.0, 1.0], [0.0, 1.0], [0.0, 1.0]]
    np.testing.assert_allclose(model.posterior_[3], [0.5 / 4, 3.5 / 4])  # three items, and half an item for each class
