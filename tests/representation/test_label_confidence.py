"""How far classes are to be trusted: any number of votes and classes, any aggregator, gold, and silent items."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyhands import Annotations
from manyhands.representation.label_confidence import CONFIDENCES, confidence_of
from manyhands.representation.training_set import TrainingSet
from strategies import annotations

NAN = np.nan


def training_set(votes, gold=None, posterior=None):
    """A lesson by the majority of these votes, or by an aggregator that believes `posterior`; nothing is trained."""
    data = SimpleNamespace(gold=None if gold is None else np.array(gold))
    found = TrainingSet(SimpleNamespace(annotations=votes, data=data, rng=np.random.default_rng(0)), "majority-vote")
    if posterior is not None:
        believed = SimpleNamespace(posterior_=np.array(posterior, float), unlabelled_=votes.n_labels == 0)
        found.__dict__["aggregator"] = believed
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
    """Over all votes on the item: a silent worker, a repeated one and a class nobody named change nothing."""
    expected = []
    for count in counts(votes):
        first, second = sorted([*count, 0], reverse=True)[:2]
        expected.append((first - second) / sum(count) if sum(count) else NAN)
    np.testing.assert_allclose(confidence_of(training_set(votes), "assurance"), expected, atol=1e-12)


@given(st.integers(2, 6), st.integers(1, 9), st.integers(0, 3))
def test_it_is_0_at_a_tie_and_1_where_all_agree(n_classes, n_votes, fewer):
    """For any number of classes and votes, whatever less frequent classes get beside a tie."""
    tied = [0] * n_votes + [1] * n_votes + [2] * min(fewer, n_votes) * (n_classes > 2)
    votes = matrix([n_classes - 1] * n_votes, tied, tied[::-1], n_classes=n_classes)
    assert confidence_of(training_set(votes), "assurance").tolist() == [1, 0, 0]


@given(st.lists(st.integers(0, 1), min_size=1, max_size=12))
def test_with_two_classes_it_is_that_of_the_paper(labels):
    """|1 - 2/d sum of y|, for odd and even numbers of votes."""
    found = confidence_of(training_set(matrix(labels, n_classes=2)), "assurance")
    assert found.tolist() == [pytest.approx(abs(1 - 2 / len(labels) * sum(labels)), abs=1e-12)]


def test_assurance_by_hand():
    """Five of five, three of five, a tie of four; three of six with two and one for others: never more than is due."""
    votes = matrix([1] * 5, [1, 1, 1, 0, 0], [1, 1, 0, 0], [2, 2, 2, 1, 1, 0], n_classes=4)
    np.testing.assert_allclose(confidence_of(training_set(votes), "assurance"), [1, 0.2, 0, 1 / 6])


@pytest.mark.parametrize("kind", CONFIDENCES)
def test_few_labels_are_trusted_less_where_asked(kind):
    """d / (d + 1) of what it is otherwise; gold stays certain."""
    votes = matrix([0], [1] * 3, [1, 1, 0, 2], [2, 2], n_classes=3)
    plain, shrunk = (confidence_of(training_set(votes), kind, shrink=shrink) for shrink in (False, True))
    np.testing.assert_allclose(shrunk, plain * [1 / 2, 3 / 4, 4 / 5, 2 / 3])
    assert plain.min() > 0
    known = confidence_of(training_set(votes, [1, -1, -1, -1]), kind, shrink=True)
    assert known[0] == 1 and known[1] < 1


@pytest.mark.parametrize("kind", CONFIDENCES)
def test_gold_is_certain_and_silence_is_unknown(kind):
    """Gold has 1 whatever was voted, also where nobody voted; an item with neither has NaN."""
    votes = matrix([0, 0, 1], [1, 0, 1], [], [], [0, 1, 1], n_classes=2)
    found = confidence_of(training_set(votes, [-1, 0, 1, -1, -1]), kind)
    assert found[1:3].tolist() == [1, 1] and np.isnan(found).tolist() == [False] * 3 + [True, False]
    assert (found[[0, 4]] < 1).all()
    silent = confidence_of(training_set(votes), kind)
    assert np.isnan(silent).tolist() == [False, False, True, True, False]


def test_what_the_aggregator_believes():
    """ "posterior" is how far its class is ahead of the next one, and does not count votes."""
    votes = matrix([0, 0, 0], [0, 1, 2], [1], [], n_classes=3)
    believed = [[0.5, 0.3, 0.2], [0.1, 0.1, 0.8], [0.0, 1.0, 0.0], [1 / 3, 1 / 3, 1 / 3]]
    found = confidence_of(training_set(votes, posterior=believed), "posterior")
    np.testing.assert_allclose(found, [0.2, 0.7, 1, NAN])
    by_vote = training_set(matrix([0, 0, 1, 2], [1, 1, 1], [0, 1], n_classes=3))  # of the vote, it is the assurance
    np.testing.assert_allclose(*(confidence_of(by_vote, kind) for kind in ("posterior", "assurance")))


def test_a_class_that_the_vote_contradicts():
    """The aggregator's class counts, not the vote's: assurance is never below 0, and the share is that of its class."""
    votes = matrix([0, 0, 1], [0, 1, 1, 1, 2], [2, 2], n_classes=3)
    otherwise = training_set(votes, posterior=[[0.2, 0.8, 0], [0.1, 0.9, 0], [0.6, 0, 0.4]])
    np.testing.assert_allclose(confidence_of(otherwise, "assurance"), [0, 0.4, 0])
    np.testing.assert_allclose(confidence_of(otherwise, "mle"), [1 / 3, 3 / 5, 0])


def test_the_bayesian_share_is_that_of_items_that_teach():
    """(v + pi d) / 2d, with pi among the items with a class: the silent ones are nobody's."""
    votes = matrix([0, 0, 1], [1, 1], [1], [], [], n_classes=2)
    found = confidence_of(training_set(votes), "bayesian")
    np.testing.assert_allclose(found, [(2 / 3 + 1 / 3) / 2, (1 + 2 / 3) / 2, (1 + 2 / 3) / 2, NAN, NAN])
