"""Generator, discriminator and auxiliary network compared with plain loops over pairs; their options."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings

from manyhands.classifiers.crowding_game import (
    ClassifierWithGenerator,
    Discriminator,
    Generator,
    Pairs,
    label_adjacency,
)
from reference.slow_generated import slow_adjacency, slow_generator, slow_log_truth, slow_logit
from strategies import annotations

N_FEATURES, N_CLASSES, N_WORKERS = 4, 3, 2
ROW, WORKER, LABEL = [0, 2, 2, 1], [1, 0, 1, 1], [2, 0, 1, 2]


@pytest.fixture
def pairs():
    torch.manual_seed(0)
    return Pairs(torch.tensor(ROW), torch.tensor(WORKER))


@pytest.fixture
def x():
    return torch.from_numpy(np.random.default_rng(0).normal(size=(3, N_FEATURES))).float()


def z_of(x):
    return torch.linspace(0, 1, len(x) * N_CLASSES).view(-1, N_CLASSES).softmax(1)


def generated(generator, x, pairs, noise, z=None):
    return generator.eval()(generator.inputs(x), z_of(x) if z is None else z, pairs, noise)


@torch.no_grad()
def test_the_generator_equals_the_reference(x, pairs):
    generator = Generator(N_FEATURES, N_CLASSES, N_WORKERS)
    noise, z = generator.draw_noise(pairs), z_of(x)
    found = generated(generator, x, pairs, noise)
    expected = [
        slow_generator(generator, x[i].tolist(), z[i].tolist(), w, noise[n].tolist())
        for n, (i, w) in enumerate(zip(ROW, WORKER))
    ]
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found.exp().sum(1).numpy(), 1.0, rtol=1e-6)
    one = generated(generator, x, pairs, noise[0])  # one draw for all pairs
    torch.testing.assert_close(one, generated(generator, x, pairs, noise[:1].expand(4, -1)))


@pytest.mark.parametrize("perceptron", [False, True])
@pytest.mark.parametrize("residual", [False, True])
@pytest.mark.parametrize("spread", [None, torch.tensor([[0.5, 0.3, 0.2], [0.1, 0.8, 0.1], [0.0, 0.0, 1.0]])])
@torch.no_grad()
def test_discriminator_and_auxiliary_network_equal_the_reference(x, pairs, spread, residual, perceptron):
    """In the printed form (linear v, a trainable W) and in that of the authors' code."""
    how = {"residual": residual, "perceptron": perceptron}
    discriminator = Discriminator(N_FEATURES, N_CLASSES, N_WORKERS, spread=spread, size=5, **how).eval()
    assert (discriminator.mix is None) == (spread is None or residual)
    if discriminator.mix is not None:
        torch.testing.assert_close(discriminator.mix, torch.eye(5))
        discriminator.mix += torch.randn(5, 5)
    seen, label = discriminator.inputs(x), torch.tensor(LABEL)
    triples = [(x[i].tolist(), w, y) for i, w, y in zip(ROW, WORKER, LABEL)]
    expected = [slow_logit(discriminator, *triple) for triple in triples]
    np.testing.assert_allclose(discriminator.logit(seen, pairs, label).numpy(), expected, rtol=1e-4, atol=1e-5)
    every = [[slow_logit(discriminator, *triple[:2], c) for c in range(N_CLASSES)] for triple in triples]
    np.testing.assert_allclose(discriminator.logits(seen, pairs).numpy(), every, rtol=1e-4, atol=1e-5)
    expected = [slow_log_truth(discriminator, *triple) for triple in triples]
    np.testing.assert_allclose(discriminator.log_truth(seen, pairs, label).numpy(), expected, rtol=1e-4, atol=1e-5)


@settings(max_examples=40)
@given(annotations(n_classes=3))
def test_label_adjacency_equals_the_reference(votes):
    for symmetric in (True, False):
        found = label_adjacency(votes, symmetric=symmetric)
        np.testing.assert_allclose(found, slow_adjacency(votes, votes.n_classes, symmetric), atol=1e-12)
    np.testing.assert_allclose(label_adjacency(votes, symmetric=False).sum(axis=1), 1.0)


def test_the_weight_of_label_correlation_is_trained(x, pairs):
    discriminator = Discriminator(N_FEATURES, N_CLASSES, N_WORKERS, spread=torch.eye(N_CLASSES), size=5)
    discriminator.logits(discriminator.inputs(x), pairs).sum().backward()
    assert discriminator.mix.grad.abs().sum() > 0


@torch.no_grad()
def test_a_generator_without_items_or_workers_does_not_distinguish_them(x, pairs):
    noise, z = torch.zeros(4, N_CLASSES), torch.full((3, N_CLASSES), 1 / N_CLASSES)
    for parts, alike in (({"sees_items": False}, (0, 2, 3)), ({"sees_workers": False}, (1, 2))):
        generator = Generator(N_FEATURES, N_CLASSES, N_WORKERS, **parts)
        found = generated(generator, x, pairs, noise, z)
        for n in alike[1:]:
            torch.testing.assert_close(found[n], found[alike[0]])
    seen = generated(Generator(N_FEATURES, N_CLASSES, N_WORKERS), x, pairs, noise, z)
    assert not torch.allclose(seen[1], seen[2]) and not torch.allclose(seen[0], seen[3])


@torch.no_grad()
def test_workers_with_the_same_features_have_the_same_distribution(x, pairs):
    """In the generator and in the discriminator."""
    known, noise = torch.ones(N_WORKERS, 2), torch.zeros(4, N_CLASSES)
    found = generated(Generator(N_FEATURES, N_CLASSES, N_WORKERS, known), x, pairs, noise)
    torch.testing.assert_close(found[1], found[2])
    discriminator = Discriminator(N_FEATURES, N_CLASSES, N_WORKERS, known).eval()
    logits = discriminator.logits(discriminator.inputs(x), pairs)
    torch.testing.assert_close(logits[1], logits[2])


@torch.no_grad()
def test_an_unknown_worker_gets_the_mean_embedding(x, pairs):
    generator = Generator(N_FEATURES, N_CLASSES, N_WORKERS).eval()
    copied = generator.for_workers(torch.tensor([1, -1, 0]))
    assert copied.n_workers == 3 and generator.n_workers == N_WORKERS
    torch.testing.assert_close(copied.codes.free[0], generator.codes.free[1])
    torch.testing.assert_close(copied.codes.free[1], generator.codes.free.mean(0))
    noise = generator.draw_noise(pairs)
    renamed = Pairs(pairs.row, torch.tensor([2, 0])[pairs.worker])
    torch.testing.assert_close(generated(copied, x, renamed, noise), generated(generator, x, pairs, noise))


def test_a_classifier_with_its_generator_is_the_classifier(x):
    network = torch.nn.Linear(N_FEATURES, N_CLASSES)
    module = ClassifierWithGenerator(network, Generator(N_FEATURES, N_CLASSES, N_WORKERS))
    torch.testing.assert_close(module(x), network(x))
    torch.testing.assert_close(module.proba(x), network(x).softmax(1))
