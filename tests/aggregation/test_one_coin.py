"""One-coin Dawid-Skene: its M step, its table, its limits."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyhands import Annotations, OneCoin
from manyhands.em.noise import OneCoinNoise
from manyhands.testing.crowds import easy_crowd
from reference.slow import slow_one_coin_accuracy
from strategies import seeds


@given(seeds(), st.integers(1, 5), st.sampled_from([0.0, 1.0, 7.5]))
def test_m_step_is_that_of_the_reference(seed, n_classes, smoothing):
    """Expected right labels over all labels, with a Beta prior; a worker without labels has the prior."""
    counts = np.random.default_rng(seed).gamma(0.5, size=(4, n_classes, n_classes))
    counts[0] = 0.0
    noise = OneCoinNoise(n_classes, smoothing, 0.7)
    expected = slow_one_coin_accuracy(counts.tolist(), smoothing, 0.7)
    np.testing.assert_allclose(noise.solve(counts, None), expected, rtol=1e-12)


def test_m_step_is_the_best_one():
    """No other accuracy gives a higher  sum(counts * log_confusion) + penalty."""
    counts = np.random.default_rng(0).gamma(2.0, size=(1, 3, 3))
    noise = OneCoinNoise(3, 1.5, 0.7)

    def objective(accuracy):
        return np.sum(counts * noise.log_confusion(accuracy)) + noise.log_penalty(accuracy)

    best = noise.solve(counts, None)
    assert all(objective(best) >= objective(np.array([a])) for a in np.linspace(0.01, 0.99, 99))


def test_table_has_one_accuracy_and_even_errors():
    """The diagonal is the accuracy, the rest of each row is shared evenly; one class leaves nothing to err."""
    table = np.exp(OneCoinNoise(3, 1.0, 0.7).log_confusion(np.array([0.8, 0.4])))
    np.testing.assert_allclose(table[0], [[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]])
    np.testing.assert_allclose(table.sum(axis=2), 1.0)
    assert OneCoinNoise(1, 1.0, 0.7).log_confusion(np.array([0.3])).tolist() == [[[0.0]]]


def test_planted_accuracies_are_found():
    """With many labels the estimates are close to what was planted."""
    rng = np.random.default_rng(0)
    truth, planted = rng.integers(0, 4, 3000), np.array([0.9, 0.8, 0.7, 0.6, 0.5])
    right = rng.random((3000, 5)) < planted
    label = np.where(right, truth[:, None], (truth[:, None] + rng.integers(1, 4, (3000, 5))) % 4)
    model = OneCoin().fit(Annotations.from_matrix(label))
    np.testing.assert_allclose(model.accuracy_, planted, atol=0.03)
    np.testing.assert_allclose(
        np.diagonal(model.confusion_, axis1=1, axis2=2), np.repeat(model.accuracy_[:, None], 4, 1)
    )


def test_worker_without_labels_has_the_prior_accuracy():
    """A worker without labels has the prior accuracy."""
    votes = Annotations.from_matrix([[0, 0, -1], [1, 1, -1], [0, 0, -1]])
    assert OneCoin(prior_accuracy=0.65).fit(votes).accuracy_[2] == pytest.approx(0.65)


def test_smoothing_draws_toward_the_prior_accuracy():
    """With a prior worth a thousand labels all accuracies stay close to it."""
    votes, _ = easy_crowd(2)
    accuracy = OneCoin(smoothing=1000.0, prior_accuracy=0.6).fit(votes).accuracy_
    np.testing.assert_allclose(accuracy, 0.6, atol=0.02)
