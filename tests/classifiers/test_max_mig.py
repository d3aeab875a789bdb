"""Max-MIG: its loss against plain loops, limit cases, and crowds with a wrong majority."""

import math

import numpy as np
import pytest
import torch

from manyhands import Annotations
from manyhands.classifiers import MaxMIG, TwoStage
from manyhands.classifiers.max_mig import FullBatches, LabelAggregator, mig_loss
from manyhands.nn.batches import AnnotationBatches, Batch
from manyhands.testing.crowds import QUICK, feature_crowd, features_of
from manyhands.testing.learners import (
    check_perfect_workers_equal_supervised_training,
    check_resumed_fit_equals_uninterrupted_fit,
)
from reference.slow_networks import slow_softmax

pytestmark = pytest.mark.usefixtures("one_thread")


def quick(**changes):
    """A small Max-MIG with a seed."""
    return MaxMIG(**(QUICK | {"random_state": 0} | changes))


def slow_aggregate(labels, weight, prior):
    """softmax(sum of A_w[., label] + log p) of one item, whose labels are (worker, label)."""
    n = len(prior)
    return slow_softmax([math.log(prior[c]) + math.fsum(weight[w][label][c] for w, label in labels) for c in range(n)])


def slow_mig_loss(h, g, prior):
    """-mean_i (1 + log m_ii) + mean over i != j of m_ij."""
    n = len(h)
    m = [[math.fsum(h[i][c] * g[j][c] / prior[c] for c in range(len(prior))) for j in range(n)] for i in range(n)]
    same = math.fsum(1 + math.log(m[i][i]) for i in range(n)) / n
    pairs = [m[i][j] for i in range(n) for j in range(n) if i != j]
    return math.fsum(pairs) / max(len(pairs), 1) - same


@pytest.mark.parametrize("n_items", [1, 5])
def test_the_loss_equals_plain_loops(n_items):
    """With items of several, one and no labels; with a single item there are no pairs."""
    rng = np.random.default_rng(0)
    confusion, prior = rng.dirichlet(np.ones(3), (4, 3)), np.array([0.2, 0.3, 0.5])
    triples = [(0, 0, 1), (0, 3, 2), (0, 3, 2), (1, 2, 0), (2, 1, 1), (4, 0, 0)]  # (row, worker, label)
    triples = [t for t in triples if t[0] < n_items]
    aggregator = LabelAggregator(confusion, prior)
    batch = Batch(np.arange(n_items), *(torch.tensor(column) for column in zip(*triples)))
    h = rng.dirichlet(np.ones(3), n_items)
    log_g = aggregator(batch)
    weight = np.log(confusion + 0.01).transpose(0, 2, 1).tolist()
    g = [slow_aggregate([(w, k) for row, w, k in triples if row == i], weight, prior) for i in range(n_items)]
    np.testing.assert_allclose(log_g.exp().detach(), g, rtol=1e-5)
    found = mig_loss(torch.from_numpy(h).float().log(), log_g, aggregator.log_prior)
    assert math.isclose(found.item(), slow_mig_loss(h.tolist(), g, prior.tolist()), rel_tol=1e-5)


def test_the_loss_is_minimal_where_both_give_the_truth():
    """Then minus the loss is the mutual information, log 2 for two equal classes; constants give 0."""
    truth = torch.arange(400) % 2
    certain = torch.where(truth.unsqueeze(1) == torch.arange(2), 0.0, -30.0).log_softmax(1)
    constant, prior = torch.zeros(400, 2).log_softmax(1), torch.full((2,), 0.5).log()
    assert abs(mig_loss(certain, certain, prior).item() + math.log(2)) < 0.01
    assert abs(mig_loss(constant, constant, prior).item()) < 1e-5
    assert mig_loss(certain, certain.flip(1), prior) > 10


def test_gold_replaces_labels():
    """Its class has probability 1 whatever the labels are; -1 is no gold; gradients stay finite."""
    aggregator = LabelAggregator(np.full((1, 2, 2), 0.5), np.array([0.4, 0.6]))
    batch = Batch(np.arange(2), torch.tensor([0]), torch.tensor([0]), torch.tensor([1]))
    log_g = aggregator(batch, torch.tensor([0, -1]))
    np.testing.assert_allclose(log_g.exp().detach(), [[1, 0], [0.4, 0.6]], atol=1e-6)
    mig_loss(torch.zeros(2, 2).log_softmax(1), log_g, aggregator.log_prior).backward()
    assert torch.isfinite(aggregator.weight.grad).all()


def test_a_short_last_batch_is_dropped_unless_it_is_the_only_one():
    """60 items in batches of 16 are three batches, of 59 one with all of them, of 100 one."""
    _, votes, _ = feature_crowd(3)
    for size, expected in ((16, [16, 16, 16]), (59, [60]), (100, [60]), (20, [20, 20, 20])):
        batches = FullBatches(AnnotationBatches(votes, size, np.random.default_rng(0)))
        for _ in range(2):
            assert [len(batch.item) for batch in batches] == expected


def naive_majority(n_items=200):
    """Three workers with an accuracy of 0.85, and four spammers who always give class 0."""
    rng = np.random.default_rng(1)
    truth = np.arange(n_items) % 2
    right = rng.random((n_items, 3)) < 0.85
    label = np.where(right, truth[:, None], 1 - truth[:, None])
    return features_of(truth), Annotations.from_matrix(np.hstack([label, np.zeros((n_items, 4), int)])), truth


def test_a_naive_majority_is_identified():
    """Where majority vote gives class 0 almost always, training items and new items are classified correctly."""
    X, votes, truth = naive_majority()
    fresh = features_of(truth, seed=3)
    vote = np.mean(TwoStage("majority-vote", random_state=0, **QUICK).fit(X, votes).predict(fresh) == truth)
    model = quick().fit(X, votes)
    assert vote < 0.7 and np.mean(model.predict(fresh) == truth) > 0.95
    assert np.mean(model.posterior_.argmax(axis=1) == truth) > 0.95
    assert model.worker_accuracy_[:3].min() > 0.75 and model.worker_accuracy_[3:].max() < 0.6
    np.testing.assert_allclose(model.confusion_[3:, :, 0], 1, atol=0.05)


def test_the_posterior_combines_network_and_aggregator():
    """h g / p: the network's probabilities times the aggregator's likelihood of each label."""
    X, votes, _ = feature_crowd(3, accuracy=0.6)
    model = quick(patience=None, max_epochs=3).fit(X, votes)
    log_joint = np.log(model.predict_proba(X))
    np.add.at(log_joint, votes.item, np.log(model.confusion_)[votes.worker, :, votes.label])
    expected = np.exp(log_joint)
    expected /= expected.sum(axis=1, keepdims=True)
    # the weights themselves are rows of logarithms up to a constant per row, which the floor of 0.01 makes nearly equal
    np.testing.assert_allclose(model.posterior_, expected, atol=0.02)


def test_other_parameters_pass_the_checks_of_training():
    """A uniform prior; resuming with another learning rate of the aggregator."""
    check_perfect_workers_equal_supervised_training(MaxMIG("uniform"))
    check_resumed_fit_equals_uninterrupted_fit(MaxMIG(aggregator_learning_rate=0.01))
