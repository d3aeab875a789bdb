"""Losses compared with reference implementations in plain loops; the bandit loss and its gradient."""

import numpy as np
import pytest
import torch
from hypothesis import given

from manyhands.nn.losses import (
    bandit_loss,
    gold_cross_entropy,
    log_mixture,
    negative_log_likelihood,
    soft_cross_entropy,
)
from reference.slow_networks import slow_gold_cross_entropy, slow_soft_cross_entropy
from strategies import probability_rows, seeds

pytestmark = pytest.mark.fast


@given(seeds())
def test_losses_equal_the_reference(seed):
    """Cross-entropy with soft targets, and with the ground truth of some rows."""
    rng = np.random.default_rng(seed)
    logits, target = torch.tensor(rng.normal(0, 3, (7, 4))), probability_rows(rng, 7, 4)
    found = soft_cross_entropy(logits, torch.tensor(target))
    assert found.item() == pytest.approx(slow_soft_cross_entropy(logits.tolist(), target.tolist()), rel=1e-9)
    gold = rng.integers(-1, 4, 7)
    found = gold_cross_entropy(logits, torch.tensor(gold))
    assert found.item() == pytest.approx(slow_gold_cross_entropy(logits.tolist(), gold.tolist()), rel=1e-9)


def test_without_labels_losses_are_zero():
    """A mini-batch without labels or without ground truth has a loss of 0, not NaN, and a gradient."""
    logits = torch.randn(3, 2, requires_grad=True)
    assert negative_log_likelihood(torch.zeros(0)).item() == 0
    assert gold_cross_entropy(logits, None).item() == 0
    loss = gold_cross_entropy(logits, torch.full((3,), -1))
    loss.backward()
    assert loss.item() == 0 and (logits.grad == 0).all()


def test_mixtures_of_tiny_probabilities_do_not_underflow():
    """exp(-1000) is represented in log space."""
    found = log_mixture(torch.tensor([[-1000.0, -2000.0]]), torch.tensor([[-1.0, -1.0]]))
    assert found.item() == pytest.approx(-1001)


def test_the_bandit_gradient_at_ratio_one_is_the_policy_gradient_with_a_baseline():
    """At ratio 1, d mean (cost - mu) p(y) / p0(y) is mean (cost - mu) d log p(y); by finite differences."""
    theta = torch.tensor([0.3, -0.2], dtype=torch.float64, requires_grad=True)
    label, cost, mu = torch.tensor([0, 1, 1]), torch.tensor([0.4, 1.5, 0.1], dtype=torch.float64), 0.7
    log_p0 = theta.detach().log_softmax(0)[label]
    (gradient,) = torch.autograd.grad(bandit_loss(cost, theta.log_softmax(0)[label] - log_p0, mu, 5.0), theta)

    def weighted(t):
        return float(((cost - mu) * t.log_softmax(0)[label]).mean())

    step = 1e-6 * torch.eye(2, dtype=torch.float64)
    slopes = [(weighted(theta.detach() + h) - weighted(theta.detach() - h)) / 2e-6 for h in step]
    np.testing.assert_allclose(gradient.numpy(), slopes, rtol=1e-6)


def test_a_common_shift_of_cost_and_multiplier_changes_no_gradient():
    ratio = torch.tensor([0.5, 0.1, -0.3], requires_grad=True)
    cost = torch.tensor([0.2, 0.9, 1.4])
    (one,) = torch.autograd.grad(bandit_loss(cost, ratio, 0.5, 5.0), ratio)
    (other,) = torch.autograd.grad(bandit_loss(cost + 3, ratio, 3.5, 5.0), ratio)
    torch.testing.assert_close(one, other)


def test_a_clipped_ratio_has_no_gradient():
    log_ratio = torch.tensor([np.log(7.0), np.log(2.0), 1000.0], requires_grad=True)
    loss = bandit_loss(torch.ones(3), log_ratio, 0.0, 5.0)
    assert loss.item() == pytest.approx((5 + 2 + 5) / 3)
    (gradient,) = torch.autograd.grad(loss, log_ratio)
    np.testing.assert_allclose(gradient.numpy(), [0, 2 / 3, 0], rtol=1e-5)
    assert bandit_loss(torch.zeros(0), torch.zeros(0), 0.0, 5.0).item() == 0
