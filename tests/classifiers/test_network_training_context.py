"""The training context of a network method: its held-out score, and that dropout is off while it is computed."""

import numpy as np
import pytest
import torch

from manyhands import registry
from manyhands.classifiers import CrowdLayer, DoctorNet
from manyhands.classifiers.network import FitResult
from manyhands.exceptions import ParameterError, TrainingError
from manyhands.features import as_rows
from manyhands.heldout import hold_out, worker_confusions
from manyhands.nn.backbones import outputs
from manyhands.testing.crowds import QUICK, feature_crowd

pytestmark = pytest.mark.usefixtures("one_thread")


def in_context(use, X, votes, **changes):
    """The result of `use(context)` in the training context of a fit."""
    found = []

    class Using(CrowdLayer):
        def _learn(self, context):
            found.append(use(context))
            return FitResult(context.network())

    Using(**(QUICK | {"random_state": 0} | changes)).fit(X, votes)
    return found[0]


def log_proba_of(network, X):
    """log p(k | x) of a network in evaluation mode, (n_items, n_classes), in numpy."""
    with torch.no_grad():
        return network.eval()(torch.tensor(X, dtype=torch.float32)).log_softmax(1).double().numpy()


def test_the_held_out_score_is_a_mean_over_labels_without_dropout():
    """Equal in two evaluations and to plain numpy; the network is in training mode afterwards."""
    X, votes, _ = feature_crowd(3)

    def use(context):
        network = context.network()

        def log_label(batch):
            return network(context.x(batch)).log_softmax(1)[batch.row, batch.label]

        evaluate = context.heldout_score(log_label, network)
        scores = [evaluate(), evaluate()]
        assert network.training
        return scores, log_proba_of(network, X)

    (first, second), log_proba = in_context(use, X, votes, dropout=0.5)
    _, heldout = hold_out(votes, 0.1, np.random.default_rng(0))
    by_hand = np.mean([log_proba[item, label] for item, label in zip(heldout.item, heldout.label)])
    assert first == second == pytest.approx(by_hand, rel=1e-6)


def test_outputs_are_those_of_evaluation_mode():
    """Whatever the mode of the network, which does not change."""
    X, votes, _ = feature_crowd(3)

    def use(context):
        network = context.network()
        found = [outputs(network, as_rows(X)) for _ in range(2)]
        assert network.training
        return found, outputs(network.eval(), as_rows(X)), network.training

    (first, second), expected, training = in_context(use, X, votes, dropout=0.5)
    assert torch.equal(first, second) and torch.equal(first, expected) and not training


def predicted(proba, confusion, heldout):
    """The mean of log sum_k p(k | x) C_w[k, label] over held-out labels, in plain loops."""
    terms = [
        np.log(sum(proba[item, k] * confusion[worker, k, label] for k in range(3)))
        for item, worker, label in zip(heldout.item, heldout.worker, heldout.label)
    ]
    return pytest.approx(np.mean(terms), rel=1e-5)


def test_training_on_targets_is_stopped_by_the_held_out_log_likelihood():
    """With confusion matrices from the training labels and the posterior given."""
    X, votes, truth = feature_crowd(3, accuracy=0.9, n_spammers=4)
    posterior = np.eye(3)[truth] * 0.9 + 0.1 / 3
    training, heldout = hold_out(votes, 0.2, np.random.default_rng(0))

    def use(context):
        network, history = context.train_on(np.eye(3)[truth], posterior)
        return np.exp(log_proba_of(network, X)), history

    still = {"learning_rate": 1e-12, "max_epochs": 1, "dropout": 0.5, "validation": 0.2}
    proba, history = in_context(use, X, votes, **still)
    assert history[0]["heldout"] == predicted(proba, worker_confusions(training, posterior), heldout)


@pytest.mark.parametrize("method", ["aggnet", "max-mig", "spee-lfc", "trace-reg"])
def test_methods_with_confusion_matrices_are_stopped_by_the_held_out_log_likelihood(method):
    """After a single epoch, `confusion_` and the network are those of the held-out score."""
    X, votes, _ = feature_crowd(3, accuracy=0.9, n_spammers=4)
    settings = QUICK | {"dropout": 0.5, "max_epochs": 1, "validation": 0.2, "random_state": 0}
    own = {"warm_up": 0} if method == "trace-reg" else {}
    model = registry.create(method, **settings, **own).fit(X, votes)
    _, heldout = hold_out(votes, 0.2, np.random.default_rng(0))
    assert model.history_[0]["heldout"] == predicted(model.predict_proba(X), model.confusion_, heldout)


def test_training_weights_of_heads_does_not_use_dropout():
    """Doctor net: with a learning rate of almost 0 and all items in one batch, every epoch has the same loss."""
    X, votes, _ = feature_crowd(3)
    still = {"dropout": 0.5, "weight_learning_rate": 1e-12, "batch_size": 60, "max_epochs": 4, "patience": None}
    history = DoctorNet(**(QUICK | {"random_state": 0} | still)).fit(X, votes).history_
    found = [epoch["weights"] for epoch in history if "weights" in epoch]
    assert len(found) == 4 and found == pytest.approx([found[0]] * 4, rel=1e-5)


def test_a_training_that_diverges_is_refused():
    """By the held-out score, or by the network's outputs at the end; the estimator stays unfitted."""
    X, votes, _ = feature_crowd(3)
    for changes, sentence in [({}, "heldout became"), ({"patience": None}, "outputs are no longer finite")]:
        settings = QUICK | {"max_epochs": 1, "batch_size": 1000, "learning_rate": 1e30, "random_state": 0} | changes
        model = registry.create("crowd-layer", **settings)
        with pytest.raises(TrainingError, match=sentence):
            model.fit(X, votes)
        assert not hasattr(model, "module_")


def test_batch_norm_needs_two_items():
    """Our own error instead of torch's."""
    X, votes, _ = feature_crowd(3)
    with pytest.raises(ParameterError, match="batch_norm needs at least two items in a batch"):
        registry.create("crowd-layer", **QUICK | {"batch_norm": True, "batch_size": 1}).fit(X, votes)


def test_fewer_than_ten_labels_are_not_held_out():
    """Nine held-out labels would stop a training by chance."""
    _, votes, _ = feature_crowd(3, n_items=20)
    training, heldout = hold_out(votes, 0.09, np.random.default_rng(0))
    assert heldout is None and training is votes
    assert hold_out(votes, 0.1, np.random.default_rng(0))[1].n_annotations == 10


def test_small_networks_train_on_one_thread(monkeypatch):
    """And torch's number of threads is restored; large networks and those of the caller use all threads."""
    seen = []
    monkeypatch.setattr(torch, "set_num_threads", seen.append)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 7)
    X, votes, _ = feature_crowd(3)
    in_context(lambda context: None, X, votes)
    assert seen == [1, 7]
    in_context(lambda context: None, X, votes, backbone=torch.nn.Linear)
    assert seen == [1, 7, 7]
