"""AggNet: its EM against plain loops, limit cases, and what checkpoints and early stopping keep of it."""

import numpy as np
import pytest

from manyhands import Annotations
from manyhands.classifiers import AggNet, Raykar
from manyhands.classifiers.aggnet import EMState
from manyhands.classifiers.network import EpochThenUpdate
from manyhands.em.e_step import initial_posterior, posterior_given
from manyhands.em.kernels import pack
from manyhands.testing.crowds import QUICK, feature_crowd, with_unlabelled
from reference.slow_raykar import confusions, truth

pytestmark = [pytest.mark.fast, pytest.mark.usefixtures("one_thread")]


def quick(**changes):
    """A small network with a seed."""
    return AggNet(**(QUICK | {"random_state": 0} | changes))


def triples_of(votes):
    return list(zip(votes.item.tolist(), votes.worker.tolist(), votes.label.tolist()))


class Context:
    """As much of a training context as an EMState needs."""

    device = "cpu"

    def __init__(self, votes, gold=None):
        self.annotations, self.data = votes, self
        self.gold = gold


def test_an_em_step_equals_plain_loops():
    """From the votes: confusion matrices; then the posterior with the network's probabilities, and matrices from it."""
    _, votes, _ = feature_crowd(3, accuracy=0.7)
    proba = np.random.default_rng(0).dirichlet(np.ones(3), votes.n_items)
    state = EMState(Context(votes), 0.3)
    table = confusions(initial_posterior(votes, None), triples_of(votes), 10, 0.3)
    np.testing.assert_allclose(np.exp(state.table()), table, atol=1e-12)
    state.update(np.log(proba))
    posterior = truth(proba, triples_of(votes), table)
    np.testing.assert_allclose(state.posterior.numpy(), posterior, atol=1e-9)
    np.testing.assert_allclose(np.exp(state.table()), confusions(posterior, triples_of(votes), 10, 0.3), atol=1e-9)


def test_gold_determines_the_posterior():
    """Initially and after every update."""
    _, votes, _ = feature_crowd(3, accuracy=0.7)
    gold = np.full(votes.n_items, -1, np.int32)
    gold[5] = 2
    state = EMState(Context(votes, gold), 0.3)
    assert state.posterior[5].tolist() == [0, 0, 1]
    state.update(np.log(np.full((60, 3), 1 / 3)))
    assert state.posterior[5].tolist() == [0, 0, 1] and state.posterior[6].max() < 1


def test_em_updates_once_after_each_epoch(monkeypatch):
    """After its last mini-batch: all mini-batches of an epoch have targets of the same EM step."""
    happened = []
    update, iterate = EMState.update, EpochThenUpdate.__iter__

    def recorded(self):
        for batch in iterate(self):
            happened.append("batch")
            yield batch

    monkeypatch.setattr(EMState, "update", lambda self, log_f: (happened.append("update"), update(self, log_f))[1])
    monkeypatch.setattr(EpochThenUpdate, "__iter__", recorded)
    X, votes, _ = feature_crowd(3)
    quick(max_epochs=2, patience=None).fit(X, votes)
    assert happened == (["batch"] * 4 + ["update"]) * 2


def test_the_posterior_is_an_e_step_with_all_labels():
    """With the network's probabilities and `confusion_`, over held-out labels too."""
    X, votes, _ = feature_crowd(3, accuracy=0.7)
    model = quick().fit(X, votes)
    expected = truth(model.predict_proba(X), triples_of(votes), model.confusion_)
    np.testing.assert_allclose(model.posterior_, expected, atol=1e-9)


def test_early_stopping_restores_the_confusion_matrices_of_the_best_epoch():
    """Stopped early, or trained up to the best epoch: network and confusion matrices are the same."""
    X, votes, _ = feature_crowd(3, accuracy=0.6)
    stopped = quick(max_epochs=60, patience=4).fit(X, votes)
    best = int(np.argmax([epoch["heldout"] for epoch in stopped.history_])) + 1
    assert best < len(stopped.history_)
    cut = quick(max_epochs=best, patience=4).fit(X, votes)
    np.testing.assert_array_equal(stopped.confusion_, cut.confusion_)
    np.testing.assert_array_equal(stopped.predict_proba(X), cut.predict_proba(X))


def test_a_linear_network_is_close_to_raykar():
    """Without hidden layers it is logistic regression in EM: after many epochs, the same posterior and matrices."""
    _, votes, truth = feature_crowd(2, accuracy=0.75, n_items=80)
    X = np.random.default_rng(0).normal(truth[:, None], 1.0, (80, 2))
    exact = Raykar(ridge=1e-3, right=1.0, wrong=1.0, tol=1e-9).fit(X, votes)
    linear = {"hidden": (), "batch_size": 80, "learning_rate": 0.1, "max_epochs": 200}
    found = quick(**linear, smoothing=1.0, patience=None).fit(X, votes)
    np.testing.assert_allclose(found.posterior_, exact.posterior_, atol=0.03)
    np.testing.assert_allclose(found.confusion_, exact.confusion_, atol=0.03)


def test_the_posterior_of_an_item_without_labels_is_the_classifiers():
    """And the evidence is that of the labels alone."""
    votes = Annotations.from_matrix([[0, 1], [-1, -1]])
    proba = np.array([[0.5, 0.5], [0.2, 0.8]])
    posterior, found = posterior_given(pack(votes), np.log(np.full((2, 2, 2), 0.5)), np.log(proba), None)
    np.testing.assert_allclose(posterior, proba)
    assert found.evidence == pytest.approx(np.log(0.25))


def test_the_confusion_matrix_of_a_worker_without_labels_is_uniform():
    X, votes, _ = feature_crowd(3)
    np.testing.assert_allclose(quick(max_epochs=2).fit(X, with_unlabelled(votes)[:60]).confusion_[-1], 1 / 3)
