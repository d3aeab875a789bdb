"""The sampling network: the perceptron that it equals, and whether it learns the losses."""

from functools import cache

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr
from torch import nn

from manyhands.nn.losses import safe_sqrt, tuplet_losses
from manyhands.representation.neucrowd_training import Pool, TupletSampler

pytestmark = pytest.mark.usefixtures("one_thread")

N_POSITIONS, SIZE = 4, 3


def small():
    """A sampler of tuplets of four, and seven rows of two features with tuplets of them, rows in several places."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        sampler = TupletSampler(nn.Linear(2, SIZE), SIZE, N_POSITIONS).double()
        x = torch.randn(7, 2, dtype=torch.float64)
    tuplets = np.array([[0, 1, 2, 3], [3, 2, 1, 0], [4, 4, 5, 6], [0, 1, 2, 6], [6, 5, 5, 0]])
    return sampler, x, tuplets


def joined_perceptron(sampler, x, tuplet):
    """v . relu(W [S(e_1), S(e_2), ...] + b) + c of one tuplet, by loops and from the same weights."""
    w, b = (value.tolist() for value in (sampler.parts.weight, sampler.parts.bias))
    v, c = sampler.head.weight[0].tolist(), sampler.head.bias.item()
    features = [[max(number, 0.0) for number in sampler.network(x[row]).tolist()] for row in tuplet]
    hidden = [
        sum(
            sum(weight * number for weight, number in zip(w[position * SIZE + unit], features[position]))
            + b[position * SIZE + unit]
            for position in range(len(tuplet))
        )
        for unit in range(SIZE)
    ]
    return sum(weight * max(number, 0.0) for weight, number in zip(v, hidden)) + c


@pytest.mark.parametrize("n_positions", [N_POSITIONS, 2])
def test_it_is_a_perceptron_on_the_joined_items(n_positions):
    """One number for each tuplet; also for tuplets without negatives, where there is one class."""
    sampler, x, tuplets = small()
    predicted = sampler(x, tuplets[:, :n_positions])
    assert predicted.shape == (5,)
    expected = [joined_perceptron(sampler, x, tuplet[:n_positions]) for tuplet in tuplets.tolist()]
    np.testing.assert_allclose(predicted.tolist(), expected, rtol=1e-12)
    assert abs(expected[0] - expected[1]) > 1e-3  # positions matter: both tuplets are of the same rows


def test_each_item_is_processed_once():
    """The network processes seven rows for five tuplets of four, and so does the first layer after it."""
    sampler, x, tuplets = small()
    seen = []
    for module in (sampler.network, sampler.parts):
        module.register_forward_hook(lambda module, given, found: seen.append(len(found)))
    sampler(x, tuplets)
    assert seen == [7, 7]


def test_every_weight_learns():
    """Gradients reach the network of the items, the part of each position, and the head."""
    sampler, x, tuplets = small()
    sampler(x, tuplets).square().mean().backward()
    for name, weights in sampler.named_parameters():
        assert weights.grad is not None and weights.grad.abs().sum() > 0, name
    assert (sampler.parts.weight.grad.view(N_POSITIONS, -1).abs().sum(1) > 0).all()


def test_the_hardest_are_those_with_the_largest_predicted_losses():
    """The wanted number, the hardest first, or all where there are fewer; without gradients."""
    sampler, x, tuplets = small()
    order = np.argsort(-sampler(x, tuplets).detach().numpy()).tolist()
    for n_wanted in (1, 3, 5, 9):
        found = sampler.hardest(x, tuplets, n_wanted)
        assert found.tolist() == order[:n_wanted] and np.issubdtype(found.dtype, np.integer)
    assert all(weights.grad is None for weights in sampler.parameters())


@cache
def trained():
    """A sampler trained on the losses of tuplets by a fixed embedding; rows, tuplets and losses."""
    rng = np.random.default_rng(0)
    code = np.arange(60) % 2
    x = torch.tensor(rng.normal(0, 1, (60, 4)), dtype=torch.float32)
    embedding = torch.tanh(x @ torch.tensor(rng.normal(0, 0.7, (4, 3)), dtype=torch.float32))
    pool = Pool.of(code, np.ones(60, bool))
    tuplets = np.concatenate([pool.draw(own, 300, 3, rng) for own in (0, 1)])
    member = embedding[tuplets]
    similarity = 1 - safe_sqrt((member[:, 1:] - member[:, :1]).square().sum(2))
    loss = tuplet_losses(similarity, torch.ones(similarity.shape), 2.0)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        sampler = TupletSampler(nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 16)), 16, 5)
    adam = torch.optim.Adam(sampler.parameters(), lr=0.01)
    history = []
    for _ in range(200):
        error = (sampler(x, tuplets) - loss).square().mean()
        adam.zero_grad()
        error.backward()
        adam.step()
        history.append(error.item())
    return sampler, x, tuplets, loss.numpy(), history


def test_predicted_losses_correlate_with_losses():
    """Ranks of predicted and true losses correlate, and the error falls below that of predicting the mean."""
    sampler, x, tuplets, loss, history = trained()
    with torch.no_grad():
        predicted = sampler(x, tuplets).numpy()
    assert spearmanr(predicted, loss).statistic > 0.5
    assert history[-1] < 0.5 * loss.var() and history[-1] < history[0]


def test_chosen_tuplets_are_harder_than_random_ones():
    """The mean true loss of a quarter of the tuplets, chosen by predicted loss, and of all of them."""
    sampler, x, tuplets, loss, _ = trained()
    assert loss[sampler.hardest(x, tuplets, 150)].mean() > loss.mean() + 0.5 * loss.std()
