"""MBEM: its steps in worked numbers, rounds from scratch, and what is said at the end."""

from itertools import pairwise

import numpy as np
import pytest

from manyhands import MBEM, Annotations
from manyhands.classifiers import mbem
from manyhands.classifiers.mbem import posterior_by_predictions
from manyhands.features import as_rows
from manyhands.testing.learners import QUICK
from manyhands.testing.small_crowds import feature_crowd, with_unlabelled

pytestmark = pytest.mark.usefixtures("one_thread")


def quick(**changes):
    """A small network with a seed."""
    return MBEM(**(QUICK | {"random_state": 0} | changes))


def test_worked_numbers():
    """The network answers 0, 0, 1; Ann says 0, 1, 1 and Bob 0, -, 0: counts, frequencies and posterior by hand."""
    votes = Annotations.from_matrix([[0, 0], [1, -1], [1, 0]])
    proba = np.array([[0.9, 0.1], [0.6, 0.4], [0.3, 0.7]])
    posterior, confusion, prior = posterior_by_predictions(proba, votes, None, 0.5)
    np.testing.assert_allclose(prior, [2.5 / 4, 1.5 / 4])
    np.testing.assert_allclose(confusion[0], [[0.5, 0.5], [0.25, 0.75]])  # Ann: one right, one wrong; one right
    np.testing.assert_allclose(confusion[1], [[0.75, 0.25], [0.75, 0.25]])  # Bob: one right; one wrong
    said = np.array([2.5 * 0.5 * 0.75, 1.5 * 0.25 * 0.75])
    np.testing.assert_allclose(posterior[0], said / said.sum())
    said = np.array([2.5 * 0.5, 1.5 * 0.75])  # neither f(x) nor Bob has a say
    np.testing.assert_allclose(posterior[1], said / said.sum())


def test_gold_and_silence_in_the_posterior():
    """Gold counts as the answer; an item without labels has the network's word and is no part of the frequencies."""
    votes = Annotations.from_matrix([[0], [1], [-1]])
    proba = np.array([[0.9, 0.1], [0.2, 0.8], [0.3, 0.7]])
    posterior, confusion, prior = posterior_by_predictions(proba, votes, np.array([1, -1, -1], np.int32), 0.5)
    np.testing.assert_allclose(prior, [0.5 / 3, 2.5 / 3])
    np.testing.assert_allclose(confusion[0, 1], [0.5, 0.5])
    np.testing.assert_allclose(confusion[0, 0], [0.5, 0.5])  # the network never answers 0: nothing is known
    np.testing.assert_allclose(posterior[0], [0, 1])
    np.testing.assert_allclose(posterior[2], proba[2])


def test_each_round_trains_afresh_on_the_posterior(monkeypatch):
    """The vote shares first; then, from new weights, what the labels say by the answers of the network before."""
    trained = []
    train = mbem._train

    def noted(context, posterior, number):
        network, history = train(context, posterior, number)
        trained.append((network, posterior, number))
        return network, history

    monkeypatch.setattr(mbem, "_train", noted)
    X, votes, _ = feature_crowd(3, accuracy=0.7)
    model = quick(rounds=3, patience=None).fit(X, votes)
    assert [number for _, _, number in trained] == [0, 1, 2, 3]
    assert len({id(network) for network, _, _ in trained}) == 4 and model.module_ is trained[-1][0]
    share = np.array([np.bincount(votes.label[votes.item == i], minlength=3) / 5 for i in range(60)])
    np.testing.assert_allclose(trained[0][1], share)
    for (network, _, _), (_, posterior, _) in pairwise(trained):
        expected = posterior_by_predictions(model._proba(network, as_rows(X)), votes, None, 0.01)[0]
        np.testing.assert_array_equal(posterior, expected)
    assert [epoch["round"] for epoch in model.history_] == [0.0] * 25 + [1.0] * 25 + [2.0] * 25 + [3.0] * 25


def test_what_is_said_is_the_last_networks_view_of_all_labels():
    """Confusion matrices, frequencies and posterior, with the labels that were held out."""
    X, votes, _ = feature_crowd(3, accuracy=0.7)
    model = quick(smoothing=0.2).fit(X, votes)
    posterior, confusion, prior = posterior_by_predictions(model.predict_proba(X), votes, None, 0.2)
    np.testing.assert_array_equal(model.posterior_, posterior)
    np.testing.assert_array_equal(model.confusion_, confusion)
    np.testing.assert_array_equal(model.class_prior_, prior)


def test_of_a_silent_worker_nothing_is_known():
    """All his answers are equally likely."""
    X, votes, _ = feature_crowd(3)
    np.testing.assert_allclose(quick(max_epochs=2).fit(X, with_unlabelled(votes)[:60]).confusion_[-1], 1 / 3)
