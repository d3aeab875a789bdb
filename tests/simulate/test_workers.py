"""Label noise: confusion matrices with the stated rows, and labels drawn with their probabilities."""

from __future__ import annotations

import numpy as np
import pytest

from manyhands.exceptions import ParameterError
from manyhands.simulate import (
    accuracy_to_ability,
    difficulty_accuracy,
    draw_accuracy,
    draw_labels,
    draw_right_or_wrong,
    glad_accuracy,
    hammer_spammer,
    label_items,
    make_truth,
    one_coin,
    random_confusion,
    two_coin,
)

pytestmark = pytest.mark.fast


def shown_confusion(crowd):
    """Counts [worker, truth, label] of a crowd."""
    a = crowd.annotations
    counts = np.zeros((a.n_workers, a.n_classes, a.n_classes))
    np.add.at(counts, (a.worker, crowd.truth[a.item], a.label), 1)
    return counts


def chi_square(counts, expected_share):
    """Pearson's statistic of counts against the shares of each row, and its degrees of freedom."""
    expected = counts.sum(-1, keepdims=True) * expected_share
    possible = expected > 0
    assert counts[~possible].sum() == 0
    statistic = ((counts - expected)[possible] ** 2 / expected[possible]).sum()
    return statistic, possible.sum() - possible.any(-1).sum()


@pytest.mark.parametrize("n_classes", [2, 3, 5, 8])
def test_labels_follow_the_confusion_matrices(n_classes):
    """With many labels the observed confusion matrix is the given one, within six deviations of chi-square."""
    planted = random_confusion(np.full(6, 0.6), n_classes, strength=4, random_state=1)
    crowd = label_items(make_truth(8000, n_classes, 0), planted, random_state=0)
    statistic, freedom = chi_square(shown_confusion(crowd), planted)
    assert abs(statistic - freedom) < 6 * np.sqrt(2 * freedom)


def test_impossible_labels_are_never_drawn():
    """Zeros in a confusion matrix stay zeros, the last class included."""
    confusion = np.array([[[0, 1, 0], [0.5, 0, 0.5], [0, 1.0, 0]]])
    truth = make_truth(3000, 3, 0)
    label = draw_labels(confusion, np.zeros(3000, np.int32), truth, random_state=0)
    assert set(label[truth == 0]) == {1} and set(label[truth == 1]) == {0, 2} and set(label[truth == 2]) == {1}


def test_one_coin_and_two_coin_matrices():
    """One coin has one diagonal; two coins put sensitivity on class 1 and specificity on class 0."""
    assert np.allclose(one_coin([0.7, 0.4], 4).diagonal(axis1=1, axis2=2).T, [0.7, 0.4])
    assert np.allclose(one_coin([0.7, 0.4], 4).sum(-1), 1)
    assert np.allclose(two_coin([0.9, 0.8], [0.6, 0.7])[:, 1, 1], [0.9, 0.8])
    assert np.allclose(two_coin([0.9, 0.8], [0.6, 0.7])[:, 0, 0], [0.6, 0.7])
    assert one_coin([0.5], 1).tolist() == [[[1.0]]]


def test_random_confusion_is_centred_on_the_accuracy():
    """The mean diagonal is the accuracy, and a larger strength reduces the spread of the rows."""
    loose, tight = (random_confusion(np.full(2000, 0.7), 3, s, 0).diagonal(axis1=1, axis2=2) for s in (2, 200))
    assert abs(loose.mean() - 0.7) < 0.02 and abs(tight.mean() - 0.7) < 0.005
    assert loose.std() > 5 * tight.std()
    assert np.allclose(random_confusion([0.8], 3, 1e-4, 0).sum(-1), 1)


def test_hammers_and_spammers():
    """A worker, or with class_wise a row of theirs, is the identity or uniform, with the given probability."""
    whole, rows = hammer_spammer(4000, 3, 0.4, random_state=0), hammer_spammer(4000, 3, 0.4, True, 0)
    assert abs(np.mean(whole[:, 0, 0] == 1) - 0.4) < 0.04 and abs(np.mean(rows[:, 2, 2] == 1) - 0.4) < 0.04
    assert np.array_equal(whole[:, 0, 0], whole[:, 2, 2])
    assert not np.array_equal(rows[:, 0, 0], rows[:, 2, 2])
    assert np.allclose(rows.sum(-1), 1) and set(np.unique(rows).round(3)) == {0, 0.333, 1}


def test_ability_and_difficulty():
    """Labels of a boundary item are random, the easiest has the given accuracy, for two classes and for more."""
    for n_classes in (2, 5):
        ability = accuracy_to_ability([0.6, 0.9], n_classes)
        assert np.allclose(difficulty_accuracy(ability, 0.0, n_classes), 1 / n_classes)
        assert np.allclose(difficulty_accuracy(ability, 0.25, n_classes), [0.6, 0.9])
    assert np.isclose(glad_accuracy(-1.0, 2.0), 1 - glad_accuracy(1.0, 2.0))
    assert np.isclose(glad_accuracy(1.0, 2.0), 1 / (1 + np.exp(-2)))


def test_wrong_labels_are_spread_over_the_other_classes():
    """The truth has the given frequency, and the other classes are equally frequent."""
    label = draw_right_or_wrong(np.full(30_000, 0.4), np.full(30_000, 2), 4, random_state=0)
    assert np.abs(np.bincount(label) / 30_000 - [0.2, 0.2, 0.4, 0.2]).max() < 0.015


def test_accuracies_as_asked():
    """One for all, a range, a spread around one, or one for each."""
    assert draw_accuracy(3, 0.8).tolist() == [0.8] * 3
    ranged = draw_accuracy(2000, (0.6, 0.8), random_state=0)
    assert ranged.min() >= 0.6 and ranged.max() <= 0.8 and abs(ranged.mean() - 0.7) < 0.01
    spread = draw_accuracy(2000, 0.7, 0.1, random_state=0)
    assert abs(spread.std() - 0.1) < 0.01 and spread.max() <= 0.98
    assert draw_accuracy(2, [0.9, 0.1]).tolist() == [0.9, 0.1]


@pytest.mark.parametrize("accuracy", [1.2, -0.1, float("nan"), (0.8, 0.6), [0.5, 0.6], (0.1, 0.2, 0.3, 0.4)])
def test_impossible_accuracies_are_refused(accuracy):
    """An accuracy is a probability, and there is one for all, a range, or one for each of the three workers."""
    with pytest.raises(ParameterError, match="accuracy"):
        draw_accuracy(3, accuracy)


def test_other_impossible_workers_are_refused():
    """Each refusal names its parameter."""
    with pytest.raises(ParameterError, match="`spread`"):
        draw_accuracy(3, 0.8, -1)
    with pytest.raises(ParameterError, match="2 sensitivities and 1 specificities"):
        two_coin([0.9, 0.8], [0.7])
    with pytest.raises(ParameterError, match="`hammers`"):
        hammer_spammer(3, 2, 1.5)
    with pytest.raises(ParameterError, match="`strength`"):
        random_confusion([0.8], 2, 0)
