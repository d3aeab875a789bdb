"""Losses: plain functions of tensors, in log space."""

from __future__ import annotations

import torch
from torch.nn import functional as F


def soft_cross_entropy(logits: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """Mean over rows of -sum_k target[k] log softmax(logits)[k]; `target` (n_rows, n_classes) sums to 1 along rows."""
    return -(target * logits.log_softmax(1)).sum(1).mean()


def log_mixture(log_proba: torch.Tensor, log_column: torch.Tensor) -> torch.Tensor:
    """(n_labels,) log sum_k p(k) p(label | k), from log p(k) and log p(label | k), both (n_labels, n_classes)."""
    return torch.logsumexp(log_proba + log_column, 1)


def log_softmax_at(logits: torch.Tensor, label: torch.Tensor) -> torch.Tensor:
    """(n_labels,) log softmax(logits)[label] of each row of (n_labels, n_classes).

    Classes come first while it is computed: along few classes that lie side by side, torch is twice as slow.
    """
    return logits.t().log_softmax(0).gather(0, label.unsqueeze(0)).squeeze(0)


def negative_log_likelihood(log_label: torch.Tensor, weight: torch.Tensor | None = None) -> torch.Tensor:
    """Minus the mean log-probability of the labels, each as often as its weight says; 0 where there is none."""
    if weight is None:
        return -log_label.sum() / max(len(log_label), 1)
    return -(weight * log_label).sum() / weight.sum().clamp(min=1e-12)


def gold_cross_entropy(logits: torch.Tensor, gold: torch.Tensor | None) -> torch.Tensor:
    """Mean cross entropy of the rows whose class is known; `gold` (n_rows,) is -1 elsewhere. 0 where none is."""
    if gold is None:
        return logits.new_zeros(())
    known = (gold >= 0).sum().clamp(min=1)
    return F.cross_entropy(logits, gold, ignore_index=-1, reduction="sum") / known


def entropy(log_proba: torch.Tensor) -> torch.Tensor:
    """(n_rows,) -sum_k p log p of each row."""
    return -(log_proba.exp() * log_proba).sum(1)


def bandit_loss(
    cost: torch.Tensor, log_ratio: torch.Tensor, multiplier: torch.Tensor | float, most: float
) -> torch.Tensor:
    """Mean of (cost - multiplier) * min(ratio, most): costs that were logged under one policy, judged for another.

    Draws that cost less than the multiplier become more probable, the others less; what is already `most` times as
    probable as when it was drawn is left alone. 0 where there is none.
    """
    ratio = log_ratio.clamp(max=20.0).exp().clamp(max=most)  # e^20 is finite and beyond any bound
    return ((cost - multiplier) * ratio).sum() / max(len(ratio), 1)
