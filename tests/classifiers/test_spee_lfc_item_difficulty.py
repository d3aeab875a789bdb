"""Confusion matrices scaled by item against plain loops."""

import math

import numpy as np
import torch
from hypothesis import given

from manyhands.classifiers.spee_lfc import ItemScale, ScaledConfusion
from manyhands.nn.batches import Batch
from manyhands.nn.worker_layers import Confusion
from reference.slow_networks import slow_mixture_log_label, slow_softmax
from strategies import seeds


def some_layer(seed):
    """A layer of five workers and three classes in double precision, with random parameters."""
    layer = ScaledConfusion(Confusion(5, 3, "softmax", 0.8), ItemScale(2, 4)).double()
    generator = torch.Generator().manual_seed(seed % 2**31)
    for parameter in layer.parameters():
        parameter.data = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
    return layer


def some_batch(seed, n_labels=20):
    """log p(k | x) and x of six rows, and labels on them by four of the five workers."""
    rng = np.random.default_rng(seed)
    log_proba = torch.tensor(rng.normal(size=(6, 3))).log_softmax(1)
    row, worker, label = (torch.tensor(rng.integers(0, n, n_labels)) for n in (6, 4, 3))
    return log_proba, torch.tensor(rng.normal(size=(6, 2))), Batch(np.arange(6), row, worker, label)


def slow_scale(scale, x):
    """A perceptron with one hidden layer, then exp(2 tanh(g / 2))."""
    first, last = scale.layers[1], scale.layers[3]
    hidden = [
        max(0.0, b + math.fsum(w * v for w, v in zip(weights, x)))
        for weights, b in zip(first.weight.tolist(), first.bias.tolist())
    ]
    total = last.bias.item() + math.fsum(w * h for w, h in zip(last.weight[0].tolist(), hidden))
    return math.exp(2 * math.tanh(total / 2))


def slow_confusions(layer, x):
    """C_w(x) of all workers, [worker][truth][label]."""
    free, scale = layer.own.weight.detach().view(5, 3, 3), slow_scale(layer.scale, x)
    return [
        [slow_softmax([scale * free[w, label, k].item() for label in range(3)]) for k in range(3)] for w in range(5)
    ]


@given(seeds())
def test_the_likelihood_of_labels_equals_plain_loops(seed):
    """Each label by the matrices of its own item."""
    layer, (log_proba, x, batch) = some_layer(seed), some_batch(seed)
    found = layer(log_proba, x, batch).detach()
    labels = zip(batch.row.tolist(), batch.worker.tolist(), batch.label.tolist())
    for log_label, (row, w, label) in zip(found.tolist(), labels):
        confusions = slow_confusions(layer, x[row].tolist())
        [expected] = slow_mixture_log_label(log_proba.exp().tolist(), [(row, w, label)], confusions)
        np.testing.assert_allclose(log_label, expected, rtol=1e-8, atol=1e-10)


@given(seeds())
def test_the_distribution_of_all_labels_equals_plain_loops(seed):
    """For a choice of workers, in its order; probabilities sum to 1."""
    layer, (log_proba, x, _) = some_layer(seed), some_batch(seed)
    found = layer.label_distribution(torch.tensor([4, 0]))(log_proba, x).exp().detach()
    assert found.shape == (6, 3, 2)
    for i in range(6):
        confusions, proba = slow_confusions(layer, x[i].tolist()), log_proba[i].exp().tolist()
        for place, w in enumerate((4, 0)):
            expected = [math.fsum(proba[k] * confusions[w][k][label] for k in range(3)) for label in range(3)]
            np.testing.assert_allclose(found[i, :, place], expected, rtol=1e-8)


def test_the_scale_is_one_before_training_and_stays_within_its_range():
    """Also for features that are far from those of training."""
    x = torch.randn(5, 2, generator=torch.Generator().manual_seed(0))
    scale = ItemScale(2, 4)
    np.testing.assert_allclose(scale(x).detach(), np.ones((5, 1)), rtol=1e-6)
    for output, expected in ((1e4, math.exp(2)), (-1e4, math.exp(-2))):
        scale.layers[3].bias.data.fill_(output)
        np.testing.assert_allclose(scale(x).detach(), np.full((5, 1), expected), rtol=1e-6)
