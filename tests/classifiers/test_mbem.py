"""MBEM: its steps by hand, rounds with new networks, and its results."""

from itertools import pairwise

import numpy as np
import pytest

from manyhands import Annotations
from manyhands.classifiers import MBEM, mbem
from manyhands.classifiers.mbem import posterior_by_predictions
from manyhands.features import as_rows
from manyhands.testing.crowds import QUICK, feature_crowd, with_unlabelled

pytestmark = pytest.mark.usefixtures("one_thread")


def quick(**changes):
    """A small network with a seed."""
    return MBEM(**(QUICK | {"random_state": 0} | changes))


def test_posterior_by_predictions_equals_a_computation_by_hand():
    """The network predicts 0, 0, 1; the labels of worker 0 are 0, 1, 1 and those of worker 1 are 0, -, 0."""
    votes = Annotations.from_matrix([[0, 0], [1, -1], [1, 0]])
    proba = np.array([[0.9, 0.1], [0.6, 0.4], [0.3, 0.7]])
    posterior, confusion, prior = posterior_by_predictions(proba, votes, None, 0.5)
    np.testing.assert_allclose(prior, [2.5 / 4, 1.5 / 4])
    np.testing.assert_allclose(confusion[0], [[0.5, 0.5], [0.25, 0.75]])  # one correct, one wrong; one correct
    np.testing.assert_allclose(confusion[1], [[0.75, 0.25], [0.75, 0.25]])  # one correct; one wrong
    joint = np.array([2.5 * 0.5 * 0.75, 1.5 * 0.25 * 0.75])
    np.testing.assert_allclose(posterior[0], joint / joint.sum())
    joint = np.array([2.5 * 0.5, 1.5 * 0.75])  # without f(x) and without worker 1
    np.testing.assert_allclose(posterior[1], joint / joint.sum())


def test_gold_and_items_without_labels_in_the_posterior():
    """Gold replaces predictions; items without labels keep f(x) and do not enter the class frequencies."""
    votes = Annotations.from_matrix([[0], [1], [-1]])
    proba = np.array([[0.9, 0.1], [0.2, 0.8], [0.3, 0.7]])
    posterior, confusion, prior = posterior_by_predictions(proba, votes, np.array([1, -1, -1], np.int32), 0.5)
    np.testing.assert_allclose(prior, [0.5 / 3, 2.5 / 3])
    np.testing.assert_allclose(confusion[0, 1], [0.5, 0.5])
    np.testing.assert_allclose(confusion[0, 0], [0.5, 0.5])  # class 0 is never predicted: pseudo-counts only
    np.testing.assert_allclose(posterior[0], [0, 1])
    np.testing.assert_allclose(posterior[2], proba[2])


def test_each_round_trains_a_new_network_on_the_posterior(monkeypatch):
    """First on the vote shares; then on the posterior by the predictions of the network before."""
    trained = []
    train = mbem._train

    def recorded(context, posterior, number):
        network, history = train(context, posterior, number)
        trained.append((network, posterior, number))
        return network, history

    monkeypatch.setattr(mbem, "_train", recorded)
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


def test_results_are_computed_from_the_last_network_and_all_labels():
    """Confusion matrices, class frequencies and posterior include held-out labels."""
    X, votes, _ = feature_crowd(3, accuracy=0.7)
    model = quick(smoothing=0.2).fit(X, votes)
    posterior, confusion, prior = posterior_by_predictions(model.predict_proba(X), votes, None, 0.2)
    np.testing.assert_array_equal(model.posterior_, posterior)
    np.testing.assert_array_equal(model.confusion_, confusion)
    np.testing.assert_array_equal(model.class_prior_, prior)


def test_the_confusion_matrix_of_a_worker_without_labels_is_uniform():
    X, votes, _ = feature_crowd(3)
    np.testing.assert_allclose(quick(max_epochs=2).fit(X, with_unlabelled(votes)[:60]).confusion_[-1], 1 / 3)
