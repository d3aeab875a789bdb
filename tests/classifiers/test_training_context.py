"""The bench of a network method: what its stop rule counts, and that nothing is dropped while it counts."""

import numpy as np
import pytest
import torch

from manyhands import DoctorNet, registry
from manyhands.classifiers.base import FitResult
from manyhands.classifiers.network import NetworkClassifier
from manyhands.exceptions import ParameterError, TrainingError
from manyhands.features import as_rows
from manyhands.heldout import hold_out, worker_confusions
from manyhands.nn.inference import outputs
from manyhands.testing.learners import QUICK
from manyhands.testing.small_crowds import feature_crowd

pytestmark = pytest.mark.usefixtures("one_thread")


def on_bench(use, X, votes, **changes):
    """What `use` makes of the bench of a fit."""
    found = []

    class Using(NetworkClassifier):
        def _learn(self, context):
            found.append(use(context))
            return FitResult(context.network())

    Using(**(QUICK | {"random_state": 0} | changes)).fit(X, votes)
    return found[0]


def log_proba_of(network, X):
    """(n_items, n_classes) in plain numpy, of a network at rest."""
    with torch.no_grad():
        return network.eval()(torch.tensor(X, dtype=torch.float32)).log_softmax(1).double().numpy()


def test_the_held_out_score_is_a_mean_over_labels_at_rest():
    """With much dropout, twice the same number, by hand the same; and training goes on as training."""
    X, votes, _ = feature_crowd(3)

    def use(context):
        network = context.network()

        def log_label(batch):
            return network(context.x(batch)).log_softmax(1)[batch.row, batch.label]

        evaluate = context.heldout_score(log_label, network)
        scores = [evaluate(), evaluate()]
        assert network.training
        return scores, log_proba_of(network, X)

    (first, second), log_proba = on_bench(use, X, votes, dropout=0.5)
    _, heldout = hold_out(votes, 0.1, np.random.default_rng(0))
    by_hand = np.mean([log_proba[item, label] for item, label in zip(heldout.item, heldout.label)])
    assert first == second == pytest.approx(by_hand, rel=1e-6)


def test_outputs_are_those_of_a_network_at_rest():
    """Whatever its mode, which is left as it was."""
    X, votes, _ = feature_crowd(3)

    def use(context):
        network = context.network()
        found = [outputs(network, as_rows(X)) for _ in range(2)]
        assert network.training
        return found, outputs(network.eval(), as_rows(X)), network.training

    (first, second), at_rest, training = on_bench(use, X, votes, dropout=0.5)
    assert torch.equal(first, second) and torch.equal(first, at_rest) and not training


def predicted(proba, confusion, heldout):
    """The mean of log sum_k p(k | x) C_w[k, label] over held-out labels, in plain loops."""
    terms = [
        np.log(sum(proba[item, k] * confusion[worker, k, label] for k in range(3)))
        for item, worker, label in zip(heldout.item, heldout.worker, heldout.label)
    ]
    return pytest.approx(np.mean(terms), rel=1e-5)


def test_training_on_a_target_stops_by_each_workers_own_confusions():
    """With confusions from the labels to learn from and the posterior given."""
    X, votes, truth = feature_crowd(3, accuracy=0.9, n_spammers=4)
    posterior = np.eye(3)[truth] * 0.9 + 0.1 / 3
    training, heldout = hold_out(votes, 0.2, np.random.default_rng(0))

    def use(context):
        network, history = context.train_on(np.eye(3)[truth], posterior)
        return np.exp(log_proba_of(network, X)), history

    still = {"learning_rate": 1e-12, "max_epochs": 1, "dropout": 0.5, "validation": 0.2}
    proba, history = on_bench(use, X, votes, **still)
    assert history[0]["heldout"] == predicted(proba, worker_confusions(training, posterior), heldout)


@pytest.mark.parametrize("method", ["aggnet", "max-mig", "spee-lfc", "trace-reg"])
def test_a_method_with_confusions_stops_by_each_workers_own(method):
    """After one epoch, which is then the best, `confusion_` and the network are those that the stop rule asked."""
    X, votes, _ = feature_crowd(3, accuracy=0.9, n_spammers=4)
    settings = QUICK | {"dropout": 0.5, "max_epochs": 1, "validation": 0.2, "random_state": 0}
    own = {"warm_up": 0} if method == "trace-reg" else {}
    model = registry.create(method, **settings, **own).fit(X, votes)
    _, heldout = hold_out(votes, 0.2, np.random.default_rng(0))
    assert model.history_[0]["heldout"] == predicted(model.predict_proba(X), model.confusion_, heldout)


def test_a_second_training_on_a_resting_network_drops_nothing():
    """Doctor net: with weights that stand still and all items in a batch, every epoch has the same loss."""
    X, votes, _ = feature_crowd(3)
    still = {"dropout": 0.5, "weight_learning_rate": 1e-12, "batch_size": 60, "max_epochs": 4, "patience": None}
    history = DoctorNet(**(QUICK | {"random_state": 0} | still)).fit(X, votes).history_
    found = [epoch["weights"] for epoch in history if "weights" in epoch]
    assert len(found) == 4 and found == pytest.approx([found[0]] * 4, rel=1e-5)


def test_a_training_that_runs_away_is_refused():
    """In its only step, whether held-out labels see it or only the network's answers do; nothing is fitted then."""
    X, votes, _ = feature_crowd(3)
    for changes, sentence in [({}, "heldout became"), ({"patience": None}, "answers are no longer finite")]:
        settings = QUICK | {"max_epochs": 1, "batch_size": 1000, "learning_rate": 1e30, "random_state": 0} | changes
        model = registry.create("crowd-layer", **settings)
        with pytest.raises(TrainingError, match=sentence):
            model.fit(X, votes)
        assert not hasattr(model, "module_")


def test_batch_norm_needs_two_items():
    """One sentence instead of torch's."""
    X, votes, _ = feature_crowd(3)
    with pytest.raises(ParameterError, match="it needs two items and a batch_size of 2"):
        registry.create("crowd-layer", **QUICK | {"batch_norm": True, "batch_size": 1}).fit(X, votes)


def test_too_few_labels_choose_nothing():
    """Nine held-out labels would stop a training by chance; ten are enough."""
    _, votes, _ = feature_crowd(3, n_items=20)
    training, heldout = hold_out(votes, 0.09, np.random.default_rng(0))
    assert heldout is None and training is votes
    assert hold_out(votes, 0.1, np.random.default_rng(0))[1].n_annotations == 10


def test_small_networks_train_on_one_thread(monkeypatch):
    """Whatever torch was told before, and then it is told that again; large ones and networks of one's own use all."""
    seen = []
    monkeypatch.setattr(torch, "set_num_threads", seen.append)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 7)
    X, votes, _ = feature_crowd(3)
    on_bench(lambda context: None, X, votes)
    assert seen == [1, 7]
    on_bench(lambda context: None, X, votes, backbone=torch.nn.Linear)
    assert seen == [1, 7, 7]
