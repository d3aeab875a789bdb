"""Doctor net: heads and their weighted average against plain loops, heads left out, learned weights."""

import math

import numpy as np
import pytest
import torch

from manyhands import Annotations
from manyhands.classifiers import DoctorNet, doctor_net
from manyhands.classifiers.doctor_net import Heads, HeadsWeightedByItem, labellers
from manyhands.nn.batches import Batch
from manyhands.testing.crowds import QUICK, feature_crowd, features_of, with_unlabelled
from manyhands.testing.learners import (
    check_perfect_workers_equal_supervised_training,
    check_workers_without_labels_change_nothing,
)
from reference.slow_networks import slow_softmax

pytestmark = pytest.mark.usefixtures("one_thread")


def quick(**changes):
    """A small doctor net with a seed."""
    return DoctorNet(**(QUICK | {"random_state": 0} | changes))


def some_heads(n_workers=4, width=2, n_classes=3):
    """Heads on the features themselves, with random parameters."""
    heads = Heads(torch.nn.Identity(), width, n_classes, n_workers)
    rng = torch.Generator().manual_seed(0)
    heads.head.data = torch.randn(heads.head.shape, generator=rng)
    heads.log_weight.data = torch.randn(n_workers, generator=rng)
    return heads


def slow_head(heads, x, w):
    """softmax(V_w x + b_w) in plain loops."""
    table = heads.head.detach()[w].view(heads.width + 1, heads.n_classes).tolist()
    return slow_softmax([
        table[-1][k] + math.fsum(x[d] * table[d][k] for d in range(heads.width)) for k in range(heads.n_classes)
    ])  # fmt: skip


def slow_average(heads, x, left_out):
    """The weighted average of all heads but those left out."""
    used = [w for w in range(len(heads.log_weight)) if w not in left_out]
    share = slow_softmax([heads.log_weight[w].item() for w in used])
    found = [slow_head(heads, x, w) for w in used]
    return [math.fsum(s * p[k] for s, p in zip(share, found)) for k in range(heads.n_classes)]


def test_the_likelihood_of_a_label_uses_the_head_of_its_worker():
    """log p_w(x)[label], and no head of another worker gets a gradient."""
    heads, x = some_heads(), torch.tensor([[1.0, -2.0], [0.5, 0.0]])
    batch = Batch(np.arange(2), torch.tensor([0, 0, 1]), torch.tensor([3, 1, 3]), torch.tensor([2, 0, 1]))
    found = heads.log_label(x, batch)
    triples = [(0, 3, 2), (0, 1, 0), (1, 3, 1)]
    expected = [math.log(slow_head(heads, x[row].tolist(), w)[k]) for row, w, k in triples]
    np.testing.assert_allclose(found.detach(), expected, rtol=1e-5)
    found.sum().backward()
    assert (heads.head.grad.abs().sum(1) > 0).tolist() == [False, True, False, True]


@pytest.mark.parametrize("numbers", [1, 1 << 22])
def test_the_average_equals_plain_loops(numbers, monkeypatch):
    """With all heads in one chunk or one by one; with heads left out per row; with a head of weight 0."""
    monkeypatch.setattr(doctor_net, "_NUMBERS", numbers)
    heads, x = some_heads(), torch.tensor([[1.0, -2.0], [0.5, 0.0], [0.0, 3.0]])
    left_out = torch.tensor([[True, False, True, False], [False] * 4, [True, True, True, False]])
    expected = [slow_average(heads, x[i].tolist(), set(np.flatnonzero(left_out[i]))) for i in range(3)]
    np.testing.assert_allclose(heads.average(x, left_out).exp().detach(), expected, rtol=1e-5)
    every_head = [slow_average(heads, row.tolist(), set()) for row in x]
    np.testing.assert_allclose(heads(x).exp().detach(), every_head, rtol=1e-5)
    heads.log_weight.data[2] = -torch.inf
    np.testing.assert_allclose(heads(x)[0].exp().detach(), slow_average(heads, x[0].tolist(), {2}), rtol=1e-5)


@pytest.mark.parametrize("bottleneck", [None, 1, 3])
def test_weights_by_item_equal_plain_loops(bottleneck):
    """Softmax over workers of a + C h or a + C B h, with heads left out and a head of weight 0."""
    heads = HeadsWeightedByItem(torch.nn.Identity(), 2, 3, 4, bottleneck)
    rng = torch.Generator().manual_seed(1)
    for parameter in heads.parameters():
        parameter.data = torch.randn(parameter.shape, generator=rng)
    heads.log_weight.data[1] = -torch.inf
    x, left_out = [[1.0, -2.0], [0.5, 0.0]], [{0}, set()]
    away = torch.tensor([[True, False, False, False], [False] * 4])
    found = heads.average(torch.tensor(x), away).exp().detach()
    for i, row in enumerate(x):
        inner = row if bottleneck is None else [
            math.fsum(b * v for b, v in zip(weights, row)) for weights in heads.bottleneck.weight.tolist()
        ]  # fmt: skip
        used = [w for w in (0, 2, 3) if w not in left_out[i]]
        logits = [
            heads.log_weight[w].item() + math.fsum(c * v for c, v in zip(heads.item_weight[w].tolist(), inner))
            for w in used
        ]
        pairs = list(zip(slow_softmax(logits), used))
        expected = [math.fsum(share * slow_head(heads, row, w)[k] for share, w in pairs) for k in range(3)]
        np.testing.assert_allclose(found[i], expected, rtol=1e-5)


def test_labellers_are_pairs_of_position_and_worker():
    """An item without labels has none, and items may come in any order."""
    votes = Annotations.from_matrix([[0, -1, 1], [-1, -1, -1], [-1, 1, 0]])
    place, worker = labellers(votes, np.array([2, 1, 0]))
    assert list(zip(place.tolist(), worker.tolist())) == [(0, 1), (0, 2), (2, 0), (2, 2)]


def test_uniform_weights_are_equal_for_all_workers_with_labels():
    """DN: there is no second training."""
    X, votes, _ = feature_crowd(3)
    model = quick(weights="uniform").fit(X, votes)
    np.testing.assert_allclose(model.worker_weight_, 0.1, rtol=1e-6)
    assert all("weights" not in epoch for epoch in model.history_)


def test_initial_weights_are_the_numbers_of_labels():
    """Where every worker labelled every item, no head can be left out and the weights do not change."""
    truth = np.arange(60) % 3
    complete = Annotations.from_matrix(np.column_stack([truth, truth, np.zeros(60, int)]))  # weights would move
    model = quick(patience=None).fit(features_of(truth), complete)
    np.testing.assert_allclose(model.worker_weight_, 1 / 3, rtol=1e-6)
    X, votes, _ = feature_crowd(3)
    still = quick(weight_learning_rate=1e-12, patience=None).fit(X, votes)
    n_labels = np.bincount(votes.worker)
    np.testing.assert_allclose(still.worker_weight_, n_labels / n_labels.sum(), rtol=1e-5)


def test_a_head_that_disagrees_with_other_workers_loses_weight():
    """One worker labels items of one class only, so that their head is wrong on the items of other workers."""
    truth = np.arange(150) % 3
    label = np.where(np.random.default_rng(0).random((150, 4)) < 0.5, truth[:, None], -1)
    votes = Annotations.from_matrix(np.column_stack([label, np.where(truth == 0, 0, -1)]))
    still = quick(weight_learning_rate=1e-12).fit(features_of(truth), votes)
    model = quick(weight_learning_rate=0.1).fit(features_of(truth), votes)
    assert still.worker_weight_[4] > 0.1 and model.worker_weight_[4] < still.worker_weight_[4] / 3
    second = [epoch for epoch in model.history_ if "weights" in epoch]
    assert second[-1]["weights"] < second[0]["weights"] and "heldout" in second[0]


def test_gold_on_items_without_labels_is_used():
    """A class without any label is learned from gold alone."""
    truth = np.arange(90) % 3
    label = np.where(truth < 2, truth, -1)
    votes = Annotations.from_matrix(np.column_stack([label, label]), classes=[0, 1, 2])
    gold = {i: 2 for i in np.flatnonzero(truth == 2).tolist()}
    fresh = features_of(truth, seed=3)
    with_gold, without = (quick(patience=None).fit(features_of(truth), votes, known) for known in (gold, None))
    assert np.mean(without.predict(fresh) == truth) < 0.7 and np.mean(with_gold.predict(fresh) == truth) > 0.95


def specialists():
    """Two workers who label every third item each; one errs on positive first features, the other on negative ones."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    X[:, 0] += np.sign(X[:, 0])
    truth = (X[:, 1] > 0).astype(int)
    right = np.column_stack([X[:, 0] > 0, X[:, 0] < 0, np.full(400, True)])
    label = np.where(right, truth[:, None], 1 - truth[:, None])
    asked = np.column_stack([rng.random((400, 2)) < 0.4, rng.random(400) < 0.2])
    return X, Annotations.from_matrix(np.where(asked, label, -1)), right


@pytest.mark.parametrize("weights", ["item", "item-bottleneck"])
def test_weights_by_item_prefer_the_worker_who_is_right_there(weights):
    """The first worker is right where the first feature is positive, the second where it is negative."""
    X, votes, right = specialists()
    model = quick(weights=weights, weight_learning_rate=0.03, max_epochs=40, hidden=(16,)).fit(X, votes)
    with torch.no_grad():
        module = model.module_.eval()
        share = module.weight_logits(module.trunk(torch.from_numpy(X).float())).softmax(1).numpy()
    first = right[:, 0]
    assert share[first, 0].mean() > 1.5 * share[~first, 0].mean()
    assert share[~first, 1].mean() > 1.5 * share[first, 1].mean()
    np.testing.assert_allclose(model.worker_weight_, share.mean(axis=0), rtol=1e-4)
    one_weight = quick(weights="learned", max_epochs=40, hidden=(16,)).fit(X, votes)
    assert last_weight_loss(model) < last_weight_loss(one_weight) - 0.03


def last_weight_loss(model):
    """The loss of the second training in its last epoch."""
    return [epoch["weights"] for epoch in model.history_ if "weights" in epoch][-1]


@pytest.mark.parametrize("weights", ["item", "item-bottleneck"])
def test_weights_by_item_start_at_the_numbers_of_labels(weights):
    """C = 0; a bottleneck has the given rank."""
    X, votes, _ = feature_crowd(3)
    still = quick(weights=weights, bottleneck=2, weight_learning_rate=1e-12, patience=None).fit(X, votes)
    n_labels = np.bincount(votes.worker)
    np.testing.assert_allclose(still.worker_weight_, n_labels / n_labels.sum(), rtol=1e-5)
    rank = 8 if weights == "item" else 2
    assert still.module_.item_weight.shape == (10, rank)
    assert (still.module_.bottleneck is None) == (weights == "item")


@pytest.mark.parametrize("weights", ["learned", "item", "item-bottleneck"])
def test_weight_decay_reaches_the_second_training(weights):
    """A strong decay keeps the weights of workers at the numbers of labels, also with a worker without labels."""
    X, votes, _ = feature_crowd(3)
    votes, n_labels = with_unlabelled(votes)[:60], np.append(np.bincount(votes.worker), 0)
    free, held = (quick(weights=weights, weight_learning_rate=0.3, weight_decay=d, patience=None) for d in (0.0, 100.0))
    start = n_labels / n_labels.sum()
    away = [np.abs(model.fit(X, votes).worker_weight_ - start).max() for model in (free, held)]
    assert away[1] < away[0] / 2


@pytest.mark.parametrize("hidden", [(), (6,), (8, 6)])
def test_the_input_of_heads_is_the_last_hidden_layer(hidden):
    """With batch normalisation; of size 128 where no hidden layer is given."""
    X, votes, _ = feature_crowd(2)
    model = quick(hidden=hidden, batch_norm=True, max_epochs=2).fit(X, votes)
    assert model.module_.head.shape == (10, ((hidden or (128,))[-1] + 1) * 2)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)


def test_uniform_weights_pass_the_checks_of_training():
    """`test_every_method` checks the learned ones."""
    check_workers_without_labels_change_nothing(DoctorNet("uniform"))
    check_perfect_workers_equal_supervised_training(DoctorNet("uniform"))
