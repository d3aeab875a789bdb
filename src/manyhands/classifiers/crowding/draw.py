"""Labels drawn from CrowdInG's generator for the pairs of item and worker in a mini-batch."""

from __future__ import annotations

from typing import NamedTuple

import torch

from manyhands.nn.item_worker_pairs import Pairs

Known = tuple[torch.Tensor, torch.Tensor]  # features and classes of gold items


class Draw(NamedTuple):
    """Labels that the generator drew for pairs of item and worker in a mini-batch.

    Attributes
    ----------
    x : torch.Tensor of shape (n_rows, ...)
        Features of the items.
    log_z : torch.Tensor of shape (n_rows, n_classes)
        log p(k | x) by the classifier; the known class of gold items.
    authentic : Pairs
        Pairs with an observed label.
    authentic_label : torch.Tensor of shape (n_labels,)
        Their labels.
    pairs : Pairs
        Pairs for which labels were drawn.
    noise : torch.Tensor of shape (n_pairs, n_classes)
        The generator's noise.
    label : torch.Tensor of shape (n_pairs,)
        The labels drawn.
    log_p0 : torch.Tensor of shape (n_pairs,)
        Their log-probability when they were drawn.
    log_weight : torch.Tensor of shape (n_pairs,)
        Log-weight of a pair in the choice of examples for the discriminator; -inf where there is a label.
    gold : torch.Tensor of shape (n_rows,) or None
        Known classes.
    """

    x: torch.Tensor
    log_z: torch.Tensor
    authentic: Pairs
    authentic_label: torch.Tensor
    pairs: Pairs
    noise: torch.Tensor
    label: torch.Tensor
    log_p0: torch.Tensor
    log_weight: torch.Tensor
    gold: torch.Tensor | None

    def known(self) -> Known | None:
        """Return features and classes of the gold items; None where there are none."""
        if self.gold is None or not bool((self.gold >= 0).any()):
            return None
        return self.x[self.gold >= 0], self.gold[self.gold >= 0]

    def part(self, which: torch.Tensor) -> tuple[Draw, torch.Tensor]:
        """Return the draw restricted to some rows, without its authentic labels, and the mask of the pairs kept."""
        kept, place = which[self.pairs.row], which.cumsum(0) - 1
        part = self._replace(
            x=self.x[which],
            log_z=self.log_z[which],
            authentic=Pairs(self.authentic.row[:0], self.authentic.worker[:0]),
            authentic_label=self.authentic_label[:0],
            pairs=Pairs(place[self.pairs.row[kept]], self.pairs.worker[kept]),
            noise=self.noise[kept],
            label=self.label[kept],
            log_p0=self.log_p0[kept],
            log_weight=self.log_weight[kept],
            gold=None if self.gold is None else self.gold[which],
        )
        return part, kept
