"""Losses beside their plain-loop twins."""

import numpy as np
import pytest
import torch
from hypothesis import given

from manyhands.nn.losses import gold_cross_entropy, log_mixture, negative_log_likelihood, soft_cross_entropy
from reference.slow_networks import slow_gold_cross_entropy, slow_soft_cross_entropy
from strategies import probability_rows, seeds


@given(seeds())
def test_losses_are_their_slow_twins(seed):
    """Soft targets, and known classes on some rows."""
    rng = np.random.default_rng(seed)
    logits, target = torch.tensor(rng.normal(0, 3, (7, 4))), probability_rows(rng, 7, 4)
    found = soft_cross_entropy(logits, torch.tensor(target))
    assert found.item() == pytest.approx(slow_soft_cross_entropy(logits.tolist(), target.tolist()), rel=1e-9)
    gold = rng.integers(-1, 4, 7)
    found = gold_cross_entropy(logits, torch.tensor(gold))
    assert found.item() == pytest.approx(slow_gold_cross_entropy(logits.tolist(), gold.tolist()), rel=1e-9)


def test_nothing_observed_costs_nothing():
    """A batch without labels or without gold has a loss of 0, not of NaN, with a gradient."""
    logits = torch.randn(3, 2, requires_grad=True)
    assert negative_log_likelihood(torch.zeros(0)).item() == 0
    assert gold_cross_entropy(logits, None).item() == 0
    loss = gold_cross_entropy(logits, torch.full((3,), -1))
    loss.backward()
    assert loss.item() == 0 and (logits.grad == 0).all()


def test_mixtures_of_tiny_probabilities_do_not_vanish():
    """In log space, exp(-1000) is a number like any other."""
    found = log_mixture(torch.tensor([[-1000.0, -2000.0]]), torch.tensor([[-1.0, -1.0]]))
    assert found.item() == pytest.approx(-1001)
