"""Heads of workers: a softmax head per worker behind one trunk, and their weighted average (Doctor Net).

p_w(x) = softmax(V_w h + b_w),   h = trunk(x),   p(x) = sum_w s_w(x) p_w(x)
s = softmax(a), or softmax(a + C h), or softmax(a + C B h)
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from manyhands.annotations import Annotations
from manyhands.em.kernels import Array
from manyhands.features import Rows
from manyhands.nn.batches import Batch, Codes
from manyhands.nn.inference import outputs

_NUMBERS = 1 << 22  # probabilities of heads held at a time in prediction


class Heads(nn.Module):
    """A trunk and a softmax head per worker; called with features, it returns the log of the heads' average.

    Parameters
    ----------
    trunk : torch.nn.Module
        From features to `width` numbers.
    width : int
        Inputs of a head.
    n_classes : int
        Outputs of a head.
    n_workers : int
        Number of heads.
    """

    def __init__(self, trunk: nn.Module, width: int, n_classes: int, n_workers: int) -> None:
        super().__init__()
        self.trunk, self.width, self.n_classes = trunk, width, n_classes
        one = nn.Linear(width, n_classes)  # equal initial heads: a worker without labels changes nothing
        start = torch.cat([one.weight.detach().T, one.bias.detach().unsqueeze(0)])
        self.head = nn.Parameter(start.flatten().repeat(n_workers, 1))  # (n_workers, (width + 1) * n_classes)
        self.log_weight = nn.Parameter(torch.zeros(n_workers))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return log p(x), (n_rows, n_classes)."""
        return self.average(self.trunk(x))

    def log_label(self, seen: torch.Tensor, batch: Batch) -> torch.Tensor:
        """Return log p_w(x)[label] of each label of a mini-batch, (n_labels,); only its heads are used."""
        head = F.embedding(batch.worker, self.head).view(-1, self.width + 1, self.n_classes)
        logits = torch.baddbmm(head[:, -1:], seen[batch.row].unsqueeze(1), head[:, :-1]).squeeze(1)
        return -F.cross_entropy(logits, batch.label, reduction="none")

    def weight_logits(self, seen: torch.Tensor) -> torch.Tensor:
        """Return the logits of the weights of all heads given the outputs of the trunk, (n_rows, n_workers)."""
        return self.log_weight.expand(len(seen), -1)

    def weight_groups(self, weight_decay: float) -> list[dict[str, Any]]:
        """Return the parameters of the weights of heads as groups of an optimizer.

        Parameters
        ----------
        weight_decay : float
            L2 penalty of the linear functions of the trunk's outputs; `log_weight` has none here, as an L2 penalty of
            log 0 (a worker without labels) is infinite.

        Returns
        -------
        list of dict
        """
        return [{"params": [self.log_weight]}]

    def average(self, seen: torch.Tensor, away: torch.Tensor | None = None) -> torch.Tensor:
        """Return log sum_w s_w p_w.

        Parameters
        ----------
        seen : torch.Tensor of shape (n_rows, width)
            Outputs of the trunk.
        away : torch.Tensor of bool of shape (n_rows, n_workers), default=None
            Heads that are left out of a row.

        Returns
        -------
        torch.Tensor of shape (n_rows, n_classes)
        """
        weight = self.weight_logits(seen)
        weight = (weight if away is None else weight.masked_fill(away, -torch.inf)).softmax(1)
        total = seen.new_zeros(len(seen), self.n_classes)
        chunk = max(1, _NUMBERS // max(1, len(seen) * self.n_classes))
        for heads, share in zip(torch.split(self.head, chunk), torch.split(weight, chunk, dim=1)):
            table = heads.view(-1, self.width + 1, self.n_classes)
            proba = (torch.einsum("rd,wdk->rwk", seen, table[:, :-1]) + table[:, -1]).softmax(2)
            total = total + torch.einsum("rw,rwk->rk", share, proba)
        return total.clamp(min=1e-30).log()


class HeadsWeightedByItem(Heads):
    """Heads whose weights are a linear function of the trunk's outputs.

    Parameters
    ----------
    trunk : torch.nn.Module
        From features to `width` numbers.
    width : int
        Inputs of a head.
    n_classes : int
        Outputs of a head.
    n_workers : int
        Number of heads.
    bottleneck : int or None
        Rank of the linear function; None does not restrict it.
    """

    def __init__(self, trunk: nn.Module, width: int, n_classes: int, n_workers: int, bottleneck: int | None) -> None:
        super().__init__(trunk, width, n_classes, n_workers)
        # C starts at 0: the second training starts at weights that are the same for all items.
        self.bottleneck = None if bottleneck is None else nn.Linear(width, bottleneck, bias=False)  # B
        self.item_weight = nn.Parameter(torch.zeros(n_workers, width if bottleneck is None else bottleneck))  # C

    def weight_logits(self, seen: torch.Tensor) -> torch.Tensor:
        """Return a + C h or a + C B h, (n_rows, n_workers)."""
        return self.log_weight + (seen if self.bottleneck is None else self.bottleneck(seen)) @ self.item_weight.t()

    def weight_groups(self, weight_decay: float) -> list[dict[str, Any]]:
        """Return the parameters of the weights of heads; B and C have a weight decay."""
        linear = [self.item_weight, *([] if self.bottleneck is None else self.bottleneck.parameters())]
        return [*super().weight_groups(weight_decay), {"params": linear, "weight_decay": weight_decay}]


class _Weights(nn.Module):
    """The weights of heads as a network."""

    def __init__(self, heads: Heads) -> None:
        super().__init__()
        self.heads = heads

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.heads.weight_logits(self.heads.trunk(x)).softmax(1)


def mean_weight(heads: Heads, rows: Rows) -> Array:
    """Return the mean weight of each head over rows of X.

    Parameters
    ----------
    heads : Heads
        The network.
    rows : Rows
        Rows of X; read only where weights depend on them.

    Returns
    -------
    ndarray of shape (n_workers,)
        Weights that sum to 1.
    """
    if not isinstance(heads, HeadsWeightedByItem):
        return np.asarray(heads.log_weight.detach().cpu().double().softmax(0).numpy())
    mean = outputs(_Weights(heads), rows).mean(0).numpy()
    return np.asarray(mean / mean.sum())


def labellers(annotations: Annotations, item: Codes) -> tuple[Codes, Codes]:
    """Return the workers who labelled these items, as pairs of a position in `item` and a worker."""
    size = annotations.n_labels[item]
    place = np.repeat(np.arange(len(item)), size)
    position = np.arange(len(place)) - np.repeat(np.cumsum(size) - size, size) + annotations.start[item][place]
    return place, annotations.worker[position].astype(np.intp)
