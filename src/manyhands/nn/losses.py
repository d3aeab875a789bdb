"""Losses and log-likelihoods: functions of tensors, computed in log space.

Shapes: n_rows items of a mini-batch, n_labels observed labels on them, n_classes classes.
"""

from __future__ import annotations

import torch
from torch.nn import functional as F


def soft_cross_entropy(logits: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """Cross-entropy with soft targets: mean over rows i of -sum_k target_ik log softmax(logits_i)_k.

    Parameters
    ----------
    logits : tensor of shape (n_rows, n_classes)
        Outputs of a network.
    target : tensor of shape (n_rows, n_classes)
        Class probabilities, such as posteriors of an E step; each row sums to 1.

    Returns
    -------
    tensor of shape ()
        The loss.
    """
    return -(target * logits.log_softmax(1)).sum(1).mean()


def log_mixture(log_proba: torch.Tensor, log_column: torch.Tensor) -> torch.Tensor:
    """Log-likelihood of labels under a mixture over the latent class: log sum_k p(k | x) p(label | k, worker).

    Parameters
    ----------
    log_proba : tensor of shape (n_labels, n_classes)
        log p(k | x) of each label's item.
    log_column : tensor of shape (n_labels, n_classes)
        log p(label | k, worker) of each label: the label's column of the worker's confusion matrix.

    Returns
    -------
    tensor of shape (n_labels,)
        Log-probability of each label.
    """
    return torch.logsumexp(log_proba + log_column, 1)


def log_softmax_at(logits: torch.Tensor, label: torch.Tensor) -> torch.Tensor:
    """Log-likelihood of labels under a softmax: log softmax(logits_a)[label_a].

    The softmax is taken along the first axis of the transpose: torch is half as fast along few adjacent classes.

    Parameters
    ----------
    logits : tensor of shape (n_labels, n_classes)
        Logits of each label's distribution.
    label : tensor of int64 of shape (n_labels,)
        Labels.

    Returns
    -------
    tensor of shape (n_labels,)
        Log-probability of each label.
    """
    return logits.t().log_softmax(0).gather(0, label.unsqueeze(0)).squeeze(0)


def negative_log_likelihood(log_label: torch.Tensor, weight: torch.Tensor | None = None) -> torch.Tensor:
    """Negative mean log-likelihood, -sum_a w_a log p(label_a) / sum_a w_a; 0 where there are no labels.

    Parameters
    ----------
    log_label : tensor of shape (n_labels,)
        Log-probability of each label.
    weight : tensor of shape (n_labels,) or None, default=None
        Weight of each label; None means 1.

    Returns
    -------
    tensor of shape ()
        The loss.
    """
    if weight is None:
        return -log_label.sum() / max(len(log_label), 1)
    return -(weight * log_label).sum() / weight.sum().clamp(min=1e-12)


def gold_cross_entropy(logits: torch.Tensor, gold: torch.Tensor | None) -> torch.Tensor:
    """Cross-entropy of items with known ground truth: mean of -log softmax(logits_i)[gold_i]; 0 where there are none.

    Parameters
    ----------
    logits : tensor of shape (n_rows, n_classes)
        Outputs of a network.
    gold : tensor of int64 of shape (n_rows,) or None
        Classes of the items; -1 where the class is unknown. None means that all are.

    Returns
    -------
    tensor of shape ()
        The loss.
    """
    if gold is None:
        return logits.new_zeros(())
    known = (gold >= 0).sum().clamp(min=1)
    return F.cross_entropy(logits, gold, ignore_index=-1, reduction="sum") / known


def entropy(log_proba: torch.Tensor) -> torch.Tensor:
    """Shannon entropy H = -sum_k p_k log p_k of each row, in nats.

    Parameters
    ----------
    log_proba : tensor of shape (n_rows, n_classes)
        Logarithms of probabilities, finite.

    Returns
    -------
    tensor of shape (n_rows,)
        Entropies, between 0 and log n_classes.
    """
    return -(log_proba.exp() * log_proba).sum(1)


def bandit_loss(
    cost: torch.Tensor, log_ratio: torch.Tensor, multiplier: torch.Tensor | float, max_ratio: float
) -> torch.Tensor:
    """Off-policy (counterfactual) risk of logged bandit feedback: mean of (cost - multiplier) min(ratio, max_ratio).

    Labels were drawn from a policy p0 and got a cost each; ratio = p(label) / p0(label) is the importance weight of
    the policy p that is learnt. Minimising the loss makes labels with a cost below the multiplier more probable and
    the others less. A ratio beyond the bound has no gradient.

    Parameters
    ----------
    cost : tensor of shape (n,)
        Cost of each drawn label.
    log_ratio : tensor of shape (n,)
        log p(label) - log p0(label), with the gradient.
    multiplier : float or tensor of shape ()
        Lagrange multiplier of the self-normalised risk, a baseline of the cost.
    max_ratio : float
        Bound of the importance weights (clipping).

    Returns
    -------
    tensor of shape ()
        The loss; 0 where nothing was drawn.

    References
    ----------
    T. Joachims, A. Swaminathan and M. de Rijke (2018), Deep learning with logged bandit feedback, ICLR (BanditNet).
    """
    ratio = log_ratio.clamp(max=20.0).exp().clamp(max=max_ratio)  # e^20 is finite and beyond any bound
    return ((cost - multiplier) * ratio).sum() / max(len(ratio), 1)
