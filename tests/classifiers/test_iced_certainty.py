"""Label certainty: Eq. 2.4 in numbers, its limits, and groups from less to more certain."""

import numpy as np
import pytest

from manyhands import Annotations
from manyhands.classifiers.iced import certainty_groups, label_certainty, stratified_groups
from manyhands.testing.crowds import easy_crowd, with_unlabelled
from reference.slow_synthesis import slow_certainty


def test_two_classes_are_the_variance_of_the_papers_binary_labels():
    """1 / (p (1 - p) + epsilon), with a small and a tiny epsilon."""
    votes = Annotations.from_matrix([[1, 1, 1, 1], [1, 1, 1, 0], [1, 1, 0, 0]])
    p = np.array([1.0, 0.75, 0.5])
    for epsilon in (0.01, 1e-6):
        expected = 1 / (p * (1 - p) + epsilon)
        np.testing.assert_allclose(label_certainty(votes, epsilon=epsilon, smoothing=0), expected)


@pytest.mark.parametrize("n_classes", [2, 3, 7])
@pytest.mark.parametrize("smoothing", [0.0, 0.5, 2.0])
def test_is_the_slow_one(n_classes, smoothing):
    """On sparse crowds, with any pseudo-count."""
    votes, _ = easy_crowd(n_classes, n_items=25, n_workers=6, per_item=3, accuracy=0.5)
    votes = votes.keep(np.arange(votes.n_annotations) % 5 > 0)
    labels = [votes.label[votes.item == i].tolist() for i in range(25)]
    expected = [slow_certainty(given, n_classes, 0.01, smoothing) for given in labels]
    np.testing.assert_allclose(label_certainty(votes, epsilon=0.01, smoothing=smoothing), expected)


def test_limits():
    """Between those of an even vote and of a unanimous one; more labels that agree are more certain."""
    agreeing = Annotations.from_matrix([[2, -1, -1], [2, 2, -1], [2, 2, 2], [0, 1, 2]], classes=[0, 1, 2])
    one, two, three, split = label_certainty(agreeing, epsilon=0.01, smoothing=0.5)
    assert split < one < two < three < 100
    assert split == pytest.approx(1 / (1 / 3 + 0.01))
    np.testing.assert_allclose(label_certainty(agreeing, epsilon=0.01)[:3], 100)


def test_unlabelled_items_and_gold():
    """An item without labels has the lowest certainty, gold the highest."""
    votes = with_unlabelled(easy_crowd(3)[0])
    for smoothing in (0.0, 0.5):
        certainty = label_certainty(votes, epsilon=0.01, smoothing=smoothing)
        assert certainty[-1] == pytest.approx(1 / (1 / 3 + 0.01)) and certainty[-1] <= certainty.min() + 1e-12
    gold = np.full(votes.n_items, -1, np.int32)
    gold[[0, -1]] = 1
    np.testing.assert_allclose(label_certainty(votes, gold)[[0, -1]], 1e6)
    np.testing.assert_array_equal(label_certainty(votes, gold)[1:-1], label_certainty(votes)[1:-1])


def test_one_class_is_certain():
    """With a single class every item has the highest certainty."""
    np.testing.assert_allclose(label_certainty(Annotations.from_matrix(np.zeros((4, 3), int))), 1e6)


@pytest.mark.parametrize(("n_workers", "groups"), [(7, [3, 2, 1, 0]), (5, [3, 2, 1]), (9, [3, 2, 1, 0, 0])])
def test_groups_are_the_numbers_of_dissenters(n_workers, groups):
    """All items have as many votes: with seven workers there are four groups, by 0, 1, 2 and 3 dissenting votes."""
    label = np.array([[w < dissent for w in range(n_workers)] for dissent in range(len(groups))], int)
    found = certainty_groups(label_certainty(Annotations.from_matrix(label)))
    assert found.tolist() == groups


def test_many_levels_are_cut_into_quarters():
    """A quarter in each group, ties together, whatever the order of the items."""
    certainty = np.random.default_rng(0).permutation(np.arange(40) / 7)
    group = certainty_groups(certainty)
    np.testing.assert_array_equal(group, (certainty * 7).round().astype(int) // 10)
    tied = np.concatenate([np.full(60, 1.0), np.arange(40) / 7 + 2])
    assert set(certainty_groups(tied)[:60].tolist()) == {1}


def test_all_equally_certain_is_one_group_and_the_highest():
    """No item is left out of a warm-up where all certainties are equal."""
    assert certainty_groups(np.full(5, 100.0)).tolist() == [3] * 5
    assert certainty_groups(np.full(5, 100.0) + np.arange(5) * 1e-14).tolist() == [3] * 5
    assert certainty_groups(np.zeros(0)).tolist() == []


@pytest.mark.parametrize("sizes", [(40, 8), (41, 9), (30, 3, 1)])
def test_stratified_groups_have_a_quarter_of_each_class(sizes):
    """Up to one item; within a class no item of a lower group is more certain than one of a higher group."""
    rng = np.random.default_rng(0)
    vote = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    certainty = rng.integers(0, 3, len(vote)).astype(float)
    group = stratified_groups(certainty, vote, rng)
    for k, size in enumerate(sizes):
        own = vote == k
        n_of_group = np.bincount(group[own], minlength=4)
        assert n_of_group.sum() == size and n_of_group.max() - n_of_group.min() <= 1 and n_of_group[3] > 0
        for lower in range(3):
            below, above = certainty[own & (group == lower)], certainty[own & (group > lower)]
            assert below.max(initial=-1) <= above.min(initial=9)
