"""CoNAL: the layer against plain loops, and limit cases."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given

from manyhands import Annotations
from manyhands.classifiers import CoNAL, conal
from manyhands.classifiers.conal import CommonNoiseLayer
from manyhands.nn.batches import Batch
from manyhands.testing.crowds import QUICK, feature_crowd, features_of, with_unlabelled
from manyhands.testing.learners import check_workers_without_labels_change_nothing
from reference.slow_networks import slow_crowd_logits, slow_softmax
from strategies import seeds

pytestmark = pytest.mark.usefixtures("one_thread")


def quick(**changes):
    """A small network with a seed."""
    return CoNAL(**(QUICK | {"random_state": 0} | changes))


def perturbed(seed, unit_items=True):
    """A layer of five workers with random weights in double precision; four of them label six items of a batch."""
    rng = np.random.default_rng(seed)
    layer = CommonNoiseLayer(torch.zeros(5, 4), 3, (2, 6, 4), unit_items).double()
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.copy_(torch.tensor(rng.normal(size=parameter.shape)))
    row, worker, label = (torch.tensor(rng.integers(0, n, 20)) for n in (6, 4, 3))
    log_proba = torch.tensor(rng.normal(size=(6, 3))).log_softmax(1)
    return layer, log_proba, torch.tensor(rng.normal(size=(6, 2))), Batch(np.arange(6), row, worker, label)


def slow_unit(vector):
    """Divided by its norm."""
    norm = math.sqrt(math.fsum(value * value for value in vector))
    return [value / norm for value in vector]


def slow_omega(layer, x, worker, unit_items):
    """sigmoid <V x, u> with V x = B (A x + a) + b."""
    vector = x
    for linear in (layer.items[1], layer.items[2]):
        weight, bias = linear.weight.tolist(), linear.bias.tolist()
        vector = [math.fsum(w * v for w, v in zip(row, vector)) + b for row, b in zip(weight, bias)]
    vector = slow_unit(vector) if unit_items else vector
    product = math.fsum(a * b for a, b in zip(vector, slow_unit(layer.workers[worker].tolist())))
    return 1 / (1 + math.exp(-product))


@pytest.mark.parametrize("unit_items", [True, False])
@given(seeds())
def test_the_layer_equals_plain_loops(unit_items, seed):
    """Log-probabilities by a loop over labels, the distance by a loop over workers."""
    layer, log_proba, x, batch = perturbed(seed, unit_items)
    own, common = layer.own.weight.view(5, 3, 3).tolist(), layer.common.tolist()
    expected = []
    for row, worker, label in zip(batch.row.tolist(), batch.worker.tolist(), batch.label.tolist()):
        omega = slow_omega(layer, x[row].tolist(), worker, unit_items)
        proba = log_proba[row].exp().tolist()
        parts = [slow_crowd_logits(proba, matrix, [0.0] * 3) for matrix in (common, own[worker])]
        expected.append(math.log(slow_softmax([omega * c + (1 - omega) * o for c, o in zip(*parts)])[label]))
    np.testing.assert_allclose(layer(log_proba, x, batch).detach().numpy(), expected, rtol=1e-9, atol=1e-12)
    distances = [
        math.sqrt(math.fsum((own[w][k][j] - common[k][j]) ** 2 for k in range(3) for j in range(3)))
        for w in set(batch.worker.tolist())
    ]
    assert layer.distance(batch.worker).item() == pytest.approx(math.fsum(distances), rel=1e-9)


def test_workers_outside_a_batch_have_no_gradient():
    """And at the initial weights, where the distance is 0, its gradient is 0 and not NaN."""
    layer, log_proba, x, batch = perturbed(0)
    (layer(log_proba, x, batch).sum() + layer.distance(batch.worker)).backward()
    for weight in (layer.own.weight, layer.workers):
        assert (weight.grad[4] == 0).all() and (weight.grad[:4].abs().sum(1) > 0).all()
    start = CommonNoiseLayer(torch.zeros(5, 4), 3, (2, 6, 4), True)
    start.distance(batch.worker).backward()
    assert start.distance(batch.worker) == 0 and (start.common.grad == 0).all()
    assert start.distance(batch.worker[:0]) == 0


@given(seeds())
def test_omega_is_bounded_for_unit_vectors(seed):
    """Between sigmoid(-1) and sigmoid(1)."""
    layer, _, x, batch = perturbed(seed)
    omega = layer.omega(x * 100, batch)
    assert omega.min() > 0.2689 and omega.max() < 0.7311


def test_the_loss_is_cross_entropy_minus_the_distance():
    """Initially all matrices are equal, so that omega has no effect: softmax(2 p)."""
    X, votes, _ = feature_crowd(3)
    model = quick(learning_rate=1e-9, max_epochs=1, batch_size=60, patience=None).fit(X, votes)
    proba = model.predict_proba(X).tolist()
    terms = [-math.log(slow_softmax([2 * p for p in proba[i]])[label]) for i, label in zip(votes.item, votes.label)]
    assert model.history_[0]["loss"] == pytest.approx(np.mean(terms), rel=1e-5)
    expected = np.apply_along_axis(slow_softmax, 1, 2 * np.eye(3))
    np.testing.assert_allclose(model.common_confusion_, expected, rtol=1e-5)
    np.testing.assert_allclose(model.confusion_, expected + np.zeros((10, 1, 1)), rtol=1e-5)


def test_the_penalty_moves_workers_away_from_the_common_matrix():
    """A higher weight gives a larger mean distance."""
    X, votes, _ = feature_crowd(3)
    away = []
    for penalty in (0.0, 0.3):
        model = quick(penalty=penalty, patience=None).fit(X, votes)
        away.append(np.abs(model.confusion_ - model.common_confusion_).mean())
    assert away[1] > 1.2 * away[0]


def test_an_error_that_all_workers_share_is_in_the_common_matrix():
    """All workers label class 2 as class 1 in almost half of the cases; the other classes stay correct."""
    truth = np.arange(150) % 3
    rng = np.random.default_rng(0)
    label = np.where((truth[:, None] == 2) & (rng.random((150, 5)) < 0.45), 1, truth[:, None])
    model = quick(patience=None, max_epochs=40).fit(features_of(truth), Annotations.from_matrix(label))
    common = model.common_confusion_
    assert common[2, 1] > 3 * common[2, 0] and common[0].argmax() == 0 and common[1].argmax() == 1


def test_workers_without_labels_change_nothing():
    """With a strong penalty too; their confusion matrix is the mean of common and initial logits."""
    check_workers_without_labels_change_nothing(CoNAL(penalty=0.1))
    X, votes, _ = feature_crowd(3)
    model = quick(penalty=0.1).fit(X, with_unlabelled(votes)[:60])
    assert model.common_share_[-1] == 0.5
    half_and_half = np.apply_along_axis(slow_softmax, 1, 0.5 * np.log(model.common_confusion_) + np.eye(3))
    np.testing.assert_allclose(model.confusion_[-1], half_and_half, rtol=1e-5)


def test_confusion_matrices_mix_by_the_mean_omega_of_a_worker(monkeypatch):
    """The mean over the items that the worker labelled, by loops, weights the common matrix against their own."""
    made = []
    monkeypatch.setattr(conal, "CommonNoiseLayer", lambda *given: made.append(CommonNoiseLayer(*given)) or made[-1])
    X, votes, _ = feature_crowd(3, accuracy=0.7)
    model = quick(unit_items=False).fit(X, votes)
    layer, rows = made[0], X.astype(np.float32).tolist()
    for w in (0, 7):
        share = np.mean([slow_omega(layer, rows[i], w, False) for i in votes.item[votes.worker == w]])
        assert model.common_share_[w] == pytest.approx(share, rel=1e-4) and abs(share - 0.5) > 0.01
        own, common = layer.own.weight[w].detach().view(3, 3).numpy(), layer.common.detach().numpy()
        expected = np.apply_along_axis(slow_softmax, 1, share * common + (1 - share) * own)
        np.testing.assert_allclose(model.confusion_[w], expected, rtol=1e-3)


def test_images_have_item_vectors():
    """Rows of any shape reach the layer."""
    from torch import nn

    X, votes, _ = feature_crowd(2)
    model = quick(backbone=lambda shape, n: nn.Sequential(nn.Flatten(), nn.Linear(4, n)), unit_items=False)
    assert model.fit(X.reshape(-1, 1, 2, 2), votes).common_share_.shape == (10,)


@pytest.mark.parametrize("unit_items", [True, False])
@given(seeds())
def test_the_label_distribution_agrees_with_observed_labels(unit_items, seed):
    """Each label of each worker on each row has the log-probability that `forward` gives it as an observed label."""
    layer, log_proba, x, _ = perturbed(seed, unit_items)
    worker = torch.tensor([0, 2, 3])
    row, label, place = (torch.from_numpy(codes.ravel()) for codes in np.indices((6, 3, 3)))
    expected = layer(log_proba, x, Batch(np.arange(6), row, worker[place], label))
    torch.testing.assert_close(layer.label_distribution(worker)(log_proba, x).flatten(), expected)
