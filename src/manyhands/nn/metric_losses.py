"""Losses of metric learning: plain functions of embeddings.

D is the Euclidean distance, sqrt(max(squared, 1e-12)): the root has no gradient at 0. Where a batch has no pair or
triplet to judge, a loss is 0 and has a gradient of 0.

pytorch-metric-learning gives the published triplet and lifted losses when told to (LpDistance without normalising, of
power 2 for triplets, MeanReducer), and the tests hold these functions against it. It is not called here: in batches of
more than 25 its distances are differences of products, which puts identical points 0.004 apart, and its lifted loss
fills arrays of positive pairs x negative pairs (36 times the time at 64 items, 4 GB each at 256 items of two classes).
Its defaults are other losses: embeddings normalised, and means over what is not 0. The rest it does not have: its
contrastive loss has D and m - D without the squares, or with power=2 D^2 and m - D^2; its semi-hard miner takes every
negative between D_ap and D_ap + m rather than the closest beyond D_ap; a triplet-center loss is missing; its tuplet
losses know neither confidence nor two networks.
"""

from __future__ import annotations

import torch

_TINY = 1e-12
_NEVER = -1e30  # the logarithm of nothing; finite, so that no gradient depends on how infinities cancel


def squared_distances(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """(n, m) |a_i - b_j|^2, from differences: exactly 0 for identical points."""
    return (one.unsqueeze(1) - other.unsqueeze(0)).square().sum(2)


def root(squared: torch.Tensor) -> torch.Tensor:
    """D from D^2, with a finite gradient everywhere."""
    return squared.clamp(min=_TINY).sqrt()


def contrastive_loss(embedding: torch.Tensor, target: torch.Tensor, margin: float) -> torch.Tensor:
    """Mean over pairs of D^2 where both are of a class, else max(0, margin - D)^2."""
    squared = squared_distances(embedding, embedding)
    apart = (margin - root(squared)).clamp(min=0).square()
    each = torch.where(_same(target), squared, apart)
    return _mean(each, torch.ones_like(each, dtype=torch.bool).triu(1))


def triplet_loss(anchor: torch.Tensor, positive: torch.Tensor, negative: torch.Tensor, margin: float) -> torch.Tensor:
    """Mean of max(0, D(a, p)^2 - D(a, n)^2 + margin); anchors and positives (n, d), negatives (n, n_negatives, d)."""
    near = (anchor - positive).square().sum(1, keepdim=True)
    far = (anchor.unsqueeze(1) - negative).square().sum(2)
    return (near - far + margin).clamp(min=0).sum() / max(far.numel(), 1)


def semi_hard_loss(embedding: torch.Tensor, target: torch.Tensor, margin: float) -> torch.Tensor:
    """Mean over positive pairs of max(0, D_ap^2 - D_an^2 + margin), n the closest negative with D_an > D_ap.

    Where no negative is farther than the positive, n is the farthest negative.
    """
    squared, same = squared_distances(embedding, embedding), _same(target)
    far = squared.masked_fill(same, float("inf")).sort(1).values  # each anchor's negatives first, the closest in front
    n_negatives = (~same).sum(1, keepdim=True)
    beyond = torch.searchsorted(far.detach(), squared.detach(), right=True)
    chosen = far.gather(1, beyond.minimum(n_negatives - 1).clamp(min=0))
    return _mean((squared - chosen + margin).clamp(min=0), _pairs(same) & (n_negatives > 0))


def lifted_loss(embedding: torch.Tensor, target: torch.Tensor, margin: float) -> torch.Tensor:
    """1 / (2 |P|) sum over positive pairs of max(0, J_ij)^2, with all negatives of both ends in

    J_ij = log(sum_{k in N(i)} exp(margin - D_ik) + sum_{l in N(j)} exp(margin - D_jl)) + D_ij.
    """
    distance, same = root(squared_distances(embedding, embedding)), _same(target)
    pushing = (margin - distance).masked_fill(same, _NEVER).logsumexp(1)
    J = torch.logaddexp(pushing.unsqueeze(0), pushing.unsqueeze(1)) + distance
    return _mean(J.clamp(min=0).square(), _pairs(same)) / 2


def triplet_center_loss(
    embedding: torch.Tensor, target: torch.Tensor, centres: torch.Tensor, margin: float
) -> torch.Tensor:
    """Mean of max(0, D(e, c_own) + margin - min_other D(e, c_other)), D half the squared distance; 0 with one centre.

    `target` holds rows of `centres`.
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
    """The mean of `tuplet_losses`."""
    return tuplet_losses(similarity, confidence, scale, inside=inside).mean()


def tuplet_losses(
    similarity: torch.Tensor, confidence: torch.Tensor, scale: float, *, inside: bool = False
) -> torch.Tensor:
    """(n,) -log p(positive) of each tuplet, both arguments (n, 1 + n_negatives) with the positive first.

    p_j ~ w_j exp(scale R_j) as in RLL, or exp(scale w_j R_j) with the confidence `inside`, as in NeuCrowd.
    """
    weighted = confidence * similarity if inside else similarity + confidence.clamp(min=_TINY).log() / scale
    return -(scale * weighted).log_softmax(1)[:, 0]


def _same(target: torch.Tensor) -> torch.Tensor:
    return target.unsqueeze(0) == target.unsqueeze(1)


def _pairs(same: torch.Tensor) -> torch.Tensor:
    """Ordered pairs of one class, without those of a row with itself."""
    return same & ~torch.eye(len(same), dtype=torch.bool, device=same.device)


def _mean(each: torch.Tensor, counted: torch.Tensor) -> torch.Tensor:
    """The mean over those that count; 0 where none does."""
    return torch.where(counted, each, 0.0).sum() / counted.sum().clamp(min=1)
