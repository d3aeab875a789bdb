"""Losses and log-likelihoods: functions of tensors, computed in log space; below them the losses of metric learning.

Shapes: n_rows items of a mini-batch, n_labels observed labels on them, n_classes classes.
"""

from __future__ import annotations

import torch
from torch.nn import functional as F
from torch.nn.functional import softplus


def soft_cross_entropy(logits: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """Cross-entropy with soft targets: mean over rows i of -sum_k target_ik log softmax(logits_i)_k.

    Shapes: logits (n_rows, n_classes); target (n_rows, n_classes).
    """
    return -(target * logits.log_softmax(1)).sum(1).mean()


def log_mixture(log_proba: torch.Tensor, log_column: torch.Tensor) -> torch.Tensor:
    """Log-likelihood of labels under a mixture over the latent class: log sum_k p(k | x) p(label | k, worker).

    Shapes: log_proba (n_labels, n_classes); log_column (n_labels, n_classes).
    """
    return torch.logsumexp(log_proba + log_column, 1)


def log_softmax_at(logits: torch.Tensor, label: torch.Tensor) -> torch.Tensor:
    """Log-likelihood of labels under a softmax: log softmax(logits_a)[label_a].

    The softmax is taken along the first axis of the transpose: torch is half as fast along few adjacent classes.

    Shapes: logits (n_labels, n_classes); label (n_labels,).
    """
    return logits.t().log_softmax(0).gather(0, label.unsqueeze(0)).squeeze(0)


def negative_log_likelihood(log_label: torch.Tensor, weight: torch.Tensor | None = None) -> torch.Tensor:
    """Negative mean log-likelihood, -sum_a w_a log p(label_a) / sum_a w_a; 0 where there are no labels.

    Shapes: log_label (n_labels,); weight (n_labels,).
    """
    if weight is None:
        return -log_label.sum() / max(len(log_label), 1)
    return -(weight * log_label).sum() / weight.sum().clamp(min=_TINY)


def gold_cross_entropy(logits: torch.Tensor, gold: torch.Tensor | None) -> torch.Tensor:
    """Cross-entropy of items with known ground truth: mean of -log softmax(logits_i)[gold_i]; 0 where there are none.

    Shapes: logits (n_rows, n_classes); gold (n_rows,).
    """
    if gold is None:
        return logits.new_zeros(())
    n_gold = (gold >= 0).sum().clamp(min=1)
    return F.cross_entropy(logits, gold, ignore_index=-1, reduction="sum") / n_gold


def entropy(log_proba: torch.Tensor) -> torch.Tensor:
    """Shannon entropy H = -sum_k p_k log p_k of each row, in nats.

    Shapes: log_proba (n_rows, n_classes).
    """
    return -(log_proba.exp() * log_proba).sum(1)


def bandit_loss(
    cost: torch.Tensor, log_ratio: torch.Tensor, multiplier: torch.Tensor | float, max_ratio: float
) -> torch.Tensor:
    """Off-policy (counterfactual) risk of logged bandit feedback: mean of (cost - multiplier) min(ratio, max_ratio).

    Labels were drawn from a policy p0 and got a cost each; ratio = p(label) / p0(label) is the importance weight of
    the policy p that is learnt. Minimising the loss makes labels with a cost below the multiplier more probable and
    the others less. A ratio beyond the bound has no gradient.

    References
    ----------
    T. Joachims, A. Swaminathan and M. de Rijke (2018), Deep learning with logged bandit feedback, ICLR (BanditNet).

    Shapes: cost (n,); log_ratio (n,); multiplier ().
    """
    ratio = log_ratio.clamp(max=20.0).exp().clamp(max=max_ratio)  # e^20 is finite and beyond any bound
    return ((cost - multiplier) * ratio).sum() / max(len(ratio), 1)


# ----------------------------------------------------------------------------------------------------
# Losses of metric learning: functions of embeddings.
#
# D is the Euclidean distance, sqrt(max(D^2, 1e-12)), since the square root has no gradient at 0. Where a mini-batch has
# no pair or triplet, a loss is 0 and has a gradient of 0.
#
# The library pytorch-metric-learning has the published triplet and lifted losses under certain options (``LpDistance``
# without normalisation, of power 2 for triplets, and ``MeanReducer``), and the tests compare these functions with it.
# It is not called here for three reasons. In mini-batches of more than 25 items it computes distances by differences
# of products, which places identical points 0.004 apart. Its lifted loss builds arrays of positive pairs x negative
# pairs (36 times the time at 64 items, 4 GB each at 256 items of two classes). And it lacks the other losses: its
# contrastive loss uses D and m - D without squares, or with power=2 D^2 and m - D^2; its semi-hard miner takes every
# negative between D_ap and D_ap + m rather than the closest beyond D_ap; it has no triplet-center loss; and its
# tuplet losses have neither confidences nor two networks.

_TINY = 1e-12  # least square of a distance, and least confidence of which a logarithm is taken
_NEVER = -1e30  # stands for log 0; finite, so that no gradient depends on how infinities cancel


def squared_distances(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Squared Euclidean distances |a_i - b_j|^2, from differences: exactly 0 for identical points.

    Shapes: one (n, d); other (m, d).
    """
    return (one.unsqueeze(1) - other.unsqueeze(0)).square().sum(2)


def safe_sqrt(squared: torch.Tensor) -> torch.Tensor:
    """Distances D from squared distances, sqrt(max(D^2, 1e-12)), with a finite gradient everywhere."""
    return squared.clamp(min=_TINY).sqrt()


def contrastive_loss(embedding: torch.Tensor, target: torch.Tensor, margin: float) -> torch.Tensor:
    """Contrastive loss: mean over pairs i < j of D_ij^2 if both are of one class, else max(0, margin - D_ij)^2.

    References
    ----------
    R. Hadsell, S. Chopra and Y. LeCun (2006), Dimensionality reduction by learning an invariant mapping, CVPR.

    Shapes: embedding (n, d); target (n,).
    """
    squared = squared_distances(embedding, embedding)
    apart = (margin - safe_sqrt(squared)).clamp(min=0).square()
    each = torch.where(_same(target), squared, apart)
    return _mean(each, torch.ones_like(each, dtype=torch.bool).triu(1))


def siamese_loss(
    embedding: torch.Tensor, target: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor
) -> torch.Tensor:
    """Cross-entropy of whether two items are of one class, p(same) = sigmoid(bias + sum_d weight_d |e_id - e_jd|).

    The mean over the pairs i < j of one class and the mean over the other pairs count the same.

    References
    ----------
    G. Koch, R. Zemel and R. Salakhutdinov (2015), Siamese neural networks for one-shot image recognition, ICML Deep
    Learning Workshop.

    Shapes: embedding (n, d); target (n,); weight (d,); bias ().
    """
    logit = bias + (embedding.unsqueeze(1) - embedding.unsqueeze(0)).abs() @ weight
    once, same = torch.ones_like(logit, dtype=torch.bool).triu(1), _same(target)
    return (_mean(softplus(-logit), once & same) + _mean(softplus(logit), once & ~same)) / 2


def mean_l1_distance(embedding: torch.Tensor) -> torch.Tensor:
    """Mean over the pairs i < j of the L1 distance sum_d |e_id - e_jd|, without an array of all pairs.

    Shapes: embedding (n, d).
    """
    n, ordered = len(embedding), embedding.double().sort(0).values
    # the r-th smallest of n values is subtracted from by n - 1 - r larger ones, and subtracts r smaller ones
    times = 2 * torch.arange(n, dtype=ordered.dtype, device=ordered.device) - (n - 1)
    return (times @ ordered).sum() / max(n * (n - 1) / 2, 1)


def triplet_loss(anchor: torch.Tensor, positive: torch.Tensor, negative: torch.Tensor, margin: float) -> torch.Tensor:
    """Triplet loss: mean over triplets of max(0, D(a, p)^2 - D(a, n)^2 + margin).

    References
    ----------
    F. Schroff, D. Kalenichenko and J. Philbin (2015), FaceNet: A unified embedding for face recognition and
    clustering, CVPR.

    Shapes: anchor (n, d); positive (n, d); negative (n, n_negatives, d).
    """
    near = (anchor - positive).square().sum(1, keepdim=True)
    far = (anchor.unsqueeze(1) - negative).square().sum(2)
    return (near - far + margin).clamp(min=0).sum() / max(far.numel(), 1)


def semi_hard_loss(embedding: torch.Tensor, target: torch.Tensor, margin: float) -> torch.Tensor:
    """Triplet loss with semi-hard negatives: mean over positive pairs (a, p) of max(0, D_ap^2 - D_an^2 + margin).

    n is the closest negative with D_an > D_ap; where there is none, the farthest negative.

    References
    ----------
    F. Schroff, D. Kalenichenko and J. Philbin (2015), FaceNet: A unified embedding for face recognition and
    clustering, CVPR.

    Shapes: embedding (n, d); target (n,).
    """
    squared, same = squared_distances(embedding, embedding), _same(target)
    far = squared.masked_fill(same, float("inf")).sort(1).values  # each anchor's negatives, the closest first
    n_negatives = (~same).sum(1, keepdim=True)
    beyond = torch.searchsorted(far.detach(), squared.detach(), right=True)
    chosen = far.gather(1, beyond.minimum(n_negatives - 1).clamp(min=0))
    return _mean((squared - chosen + margin).clamp(min=0), _pairs(same) & (n_negatives > 0))


def lifted_loss(embedding: torch.Tensor, target: torch.Tensor, margin: float) -> torch.Tensor:
    """Lifted-structure loss: 1 / (2 |P|) sum over positive pairs (i, j) of max(0, J_ij)^2.

    Each pair is compared with all negatives N of both of its items, by a smooth maximum:

        J_ij = log(sum_{k in N(i)} exp(margin - D_ik) + sum_{l in N(j)} exp(margin - D_jl)) + D_ij

    References
    ----------
    H. O. Song, Y. Xiang, S. Jegelka and S. Savarese (2016), Deep metric learning via lifted structured feature
    embedding, CVPR.

    Shapes: embedding (n, d); target (n,).
    """
    distance, same = safe_sqrt(squared_distances(embedding, embedding)), _same(target)
    pushing = (margin - distance).masked_fill(same, _NEVER).logsumexp(1)
    J = torch.logaddexp(pushing.unsqueeze(0), pushing.unsqueeze(1)) + distance
    return _mean(J.clamp(min=0).square(), _pairs(same)) / 2


def triplet_center_loss(
    embedding: torch.Tensor, target: torch.Tensor, centres: torch.Tensor, margin: float
) -> torch.Tensor:
    """Triplet-center loss: mean of max(0, D(e, c_own) + margin - min_other D(e, c_other)), D = |e - c|^2 / 2.

    References
    ----------
    X. He, Y. Zhou, Z. Zhou, S. Bai and X. Bai (2018), Triplet-center loss for multi-view 3D object retrieval, CVPR.

    Shapes: embedding (n, d); target (n,); centres (n_classes, d).
    """
    if len(centres) < 2:
        return (embedding.sum() + centres.sum()) * 0
    half = squared_distances(embedding, centres) / 2
    own = half.gather(1, target.unsqueeze(1)).squeeze(1)
    other = half.scatter(1, target.unsqueeze(1), float("inf")).amin(1)
    return (own + margin - other).clamp(min=0).mean()


def tuplet_loss(
    similarity: torch.Tensor, confidence: torch.Tensor, scale: float, *, inside: bool = False
) -> torch.Tensor:
    """Mean of `tuplet_losses` over tuplets.

    Shapes: similarity (n, 1 + n_negatives); confidence (n, 1 + n_negatives).
    """
    return tuplet_losses(similarity, confidence, scale, inside=inside).mean()


def tuplet_losses(
    similarity: torch.Tensor, confidence: torch.Tensor, scale: float, *, inside: bool = False
) -> torch.Tensor:
    """Negative log-likelihood -log p_0 of the positive of each tuplet under a softmax over its members.

    The confidences are factors outside the exponent (RLL), or stand inside it (NeuCrowd):

        p_j = w_j exp(scale R_j) / sum_l w_l exp(scale R_l)         outside
        p_j = exp(scale w_j R_j) / sum_l exp(scale w_l R_l)         inside

    References
    ----------
    G. Xu, W. Ding, J. Tang, S. Yang, G. Y. Huang and Z. Liu (2019), Learning effective embeddings from crowdsourced
    labels: An educational case study, ICDE (RLL).

    Y. Hao, W. Ding and Z. Liu (2021), NeuCrowd: Neural sampling network for representation learning with crowdsourced
    labels, Knowledge and Information Systems.

    Shapes: similarity (n, 1 + n_negatives); confidence (n, 1 + n_negatives).
    """
    weighted = confidence * similarity if inside else similarity + confidence.clamp(min=_TINY).log() / scale
    return -(scale * weighted).log_softmax(1)[:, 0]


def _same(target: torch.Tensor) -> torch.Tensor:
    """(n, n) whether two items are of one class."""
    return target.unsqueeze(0) == target.unsqueeze(1)


def _pairs(same: torch.Tensor) -> torch.Tensor:
    """(n, n) whether two different items are of one class: the ordered positive pairs."""
    return same & ~torch.eye(len(same), dtype=torch.bool, device=same.device)


def _mean(each: torch.Tensor, counted: torch.Tensor) -> torch.Tensor:
    """Mean of the entries under a mask; 0 where the mask is empty."""
    return torch.where(counted, each, 0.0).sum() / counted.sum().clamp(min=1)
