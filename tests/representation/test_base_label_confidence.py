"""Confidence in classes: any number of votes and classes, any aggregator, gold, and unlabelled items."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyhands import Annotations
from manyhands.representation.base import TrainingSet, label_confidence
from manyhands.representation.neucrowd_training import LabelConfidence
from strategies import annotations

pytestmark = pytest.mark.fast

NAN = np.nan
KINDS = LabelConfidence._constraints["kind"].values


def training_set(votes, gold=None, posterior=None):
    """A training set by the majority of these votes, or by an aggregator with this posterior; nothing is trained."""
    data = SimpleNamespace(gold=None if gold is None else np.array(gold))
    found = TrainingSet(SimpleNamespace(annotations=votes, data=data, rng=np.random.default_rng(0)), "majority-vote")
    if posterior is not None:
        aggregator = SimpleNamespace(posterior_=np.array(posterior, float), unlabelled_=votes.n_labels == 0)
        found.__dict__["aggregator"] = aggregator
    return found


def matrix(*rows, n_classes):
    """Annotations of rows of labels, of any lengths."""
    item = np.repeat(np.arange(len(rows)), [len(row) for row in rows])
    place = np.concatenate([np.arange(len(row)) for row in rows])
    label = np.concatenate([np.array(row, int) for row in rows])
    longest = max(len(row) for row in rows)
    return Annotations(
        item, place, label, item_ids=range(len(rows)), worker_ids=range(longest), classes=range(n_classes)
    )


def counts(votes):
    """For each item, how many labels name each class."""
    found = [[0] * votes.n_classes for _ in range(votes.n_items)]
    for i, label in zip(votes.item.tolist(), votes.label.tolist()):
        found[i][label] += 1
    return found


@given(annotations())
def test_assurance_is_the_margin_between_the_two_largest_counts(votes):
    """Over all votes on the item: a worker without labels, a repeated one and a class without votes change nothing."""
    expected = []
    for count in counts(votes):
        first, second = sorted([*count, 0], reverse=True)[:2]
        expected.append((first - second) / sum(count) if sum(count) else NAN)
    np.testing.assert_allclose(label_confidence(training_set(votes), "assurance"), expected, atol=1e-12)


@given(st.integers(2, 6), st.integers(1, 9), st.integers(0, 3))
def test_it_is_0_at_a_tie_and_1_where_all_agree(n_classes, n_votes, fewer):
    """For any number of classes and votes, whatever less frequent classes get beside a tie."""
    tied = [0] * n_votes + [1] * n_votes + [2] * min(fewer, n_votes) * (n_classes > 2)
    votes = matrix([n_classes - 1] * n_votes, tied, tied[::-1], n_classes=n_classes)
    assert label_confidence(training_set(votes), "assurance").tolist() == [1, 0, 0]


@given(st.lists(st.integers(0, 1), min_size=1, max_size=12))
def test_with_two_classes_it_is_that_of_the_paper(labels):
    """|1 - 2/d sum of y|, for odd and even numbers of votes."""
    found = label_confidence(training_set(matrix(labels, n_classes=2)), "assurance")
    assert found.tolist() == [pytest.approx(abs(1 - 2 / len(labels) * sum(labels)), abs=1e-12)]


def test_assurance_by_hand():
    """Five of five, three of five, a tie of four; three of six with two and one for others: by hand."""
    votes = matrix([1] * 5, [1, 1, 1, 0, 0], [1, 1, 0, 0], [2, 2, 2, 1, 1, 0], n_classes=4)
    np.testing.assert_allclose(label_confidence(training_set(votes), "assurance"), [1, 0.2, 0, 1 / 6])


@pytest.mark.parametrize("kind", KINDS)
def test_few_labels_have_less_confidence_with_shrink(kind):
    """d / (d + 1) of what it is otherwise; gold stays certain."""
    votes = matrix([0], [1] * 3, [1, 1, 0, 2], [2, 2], n_classes=3)
    plain, shrunk = (label_confidence(training_set(votes), kind, shrink=shrink) for shrink in (False, True))
    np.testing.assert_allclose(shrunk, plain * [1 / 2, 3 / 4, 4 / 5, 2 / 3])
    assert plain.min() > 0
    known = label_confidence(training_set(votes, [1, -1, -1, -1]), kind, shrink=True)
    assert known[0] == 1 and known[1] < 1


@pytest.mark.parametrize("kind", KINDS)
def test_gold_is_certain_and_unlabelled_items_are_nan(kind):
    """Gold has 1 whatever the votes, also without votes; an item with neither has NaN."""
    votes = matrix([0, 0, 1], [1, 0, 1], [], [], [0, 1, 1], n_classes=2)
    found = label_confidence(training_set(votes, [-1, 0, 1, -1, -1]), kind)
    assert found[1:3].tolist() == [1, 1] and np.isnan(found).tolist() == [False] * 3 + [True, False]
    assert (found[[0, 4]] < 1).all()
    without = label_confidence(training_set(votes), kind)
    assert np.isnan(without).tolist() == [False, False, True, True, False]


def test_the_margin_in_the_posterior():
    """The kind "posterior" is the margin over the next class, and does not count votes."""
    votes = matrix([0, 0, 0], [0, 1, 2], [1], [], n_classes=3)
    posterior = [[0.5, 0.3, 0.2], [0.1, 0.1, 0.8], [0.0, 1.0, 0.0], [1 / 3, 1 / 3, 1 / 3]]
    found = label_confidence(training_set(votes, posterior=posterior), "posterior")
    np.testing.assert_allclose(found, [0.2, 0.7, 1, NAN])
    by_vote = training_set(matrix([0, 0, 1, 2], [1, 1, 1], [0, 1], n_classes=3))  # of the vote, it is the assurance
    np.testing.assert_allclose(*(label_confidence(by_vote, kind) for kind in ("posterior", "assurance")))


def test_a_class_that_the_vote_contradicts():
    """The aggregator's class counts, not the vote's: assurance is never below 0, and the share is that of its class."""
    votes = matrix([0, 0, 1], [0, 1, 1, 1, 2], [2, 2], n_classes=3)
    otherwise = training_set(votes, posterior=[[0.2, 0.8, 0], [0.1, 0.9, 0], [0.6, 0, 0.4]])
    np.testing.assert_allclose(label_confidence(otherwise, "assurance"), [0, 0.4, 0])
    np.testing.assert_allclose(label_confidence(otherwise, "mle"), [1 / 3, 3 / 5, 0])


def test_the_bayesian_share_is_that_of_training_items():
    """(v + pi d) / 2d, with pi among the items with a class, unlabelled ones excluded."""
    votes = matrix([0, 0, 1], [1, 1], [1], [], [], n_classes=2)
    found = label_confidence(training_set(votes), "bayesian")
    np.testing.assert_allclose(found, [(2 / 3 + 1 / 3) / 2, (1 + 2 / 3) / 2, (1 + 2 / 3) / 2, NAN, NAN])
