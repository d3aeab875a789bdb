"""Pairs of an item and a worker who may have given no label: drawn from a batch, chosen by how sure a guess is.

How many pairs are drawn goes with the labels of the batch; items x workers are never counted through, unless asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch

from manyhands.nn.batches import Batch
from manyhands.nn.losses import entropy

_LOOKED_AT = 8  # pairs for each that is filled in
_TINY = 1e-6  # an entropy of 0 has no logarithm


class Pairs(NamedTuple):
    """Some pairs of a row of a batch and a worker; pairs of one worker stand together."""

    row: torch.Tensor  # (n_pairs,)
    worker: torch.Tensor  # (n_pairs,)

    def at(self, which: torch.Tensor) -> Pairs:
        """Those of them that a mask or an index says."""
        return Pairs(self.row[which], self.worker[which])


def draw_pairs(
    batch: Batch, n_workers: int, per_label: int | None, rng: np.random.Generator
) -> tuple[Pairs, torch.Tensor]:
    """Different pairs of the batch's rows with workers, and which of these have a label in the batch.

    Parameters
    ----------
    batch : items with their labels; workers are numbered from 0 to n_workers - 1
    n_workers : how many
    per_label : for every label that a worker has here, so many pairs without a label, or as many as there are; None
        takes every worker with every row
    rng : draws them
    """
    n_rows = len(batch.item)
    asked = batch.worker.cpu().numpy() * n_rows + batch.row.cpu().numpy()
    if per_label is None:
        worker, size = np.arange(n_workers), np.full(n_workers, n_rows)
    else:
        worker, n_labels = np.unique(batch.worker.cpu().numpy(), return_counts=True)
        size = np.minimum(n_rows, (per_label + 1) * n_labels)
    # Every worker meets a stretch of one shuffled circle of rows: no row comes twice, and nothing is sorted for it.
    circle, first = rng.permutation(n_rows), rng.integers(0, max(n_rows, 1), len(worker))
    step = np.arange(size.sum()) - np.repeat(np.cumsum(size) - size, size)
    row = circle[(np.repeat(first, size) + step) % max(n_rows, 1)]
    whose = np.repeat(worker, size)
    answered = np.isin(whose * n_rows + row, asked)
    device = batch.row.device
    return Pairs(*(torch.from_numpy(c).to(device) for c in (row, whose))), torch.from_numpy(answered).to(device)


def log_sureness(log_p: torch.Tensor) -> torch.Tensor:
    """(n_pairs,) the logarithm of 1 / H, the weight with which a generated label of that entropy is chosen."""
    return -entropy(log_p).clamp(min=_TINY).log()


def one_of_each(log_p: torch.Tensor) -> torch.Tensor:
    """(n_pairs,) a label for each row of log-probabilities, drawn by them."""
    return (log_p + _gumbel(log_p)).argmax(1)


def at(log_p: torch.Tensor, label: torch.Tensor) -> torch.Tensor:
    """(n_pairs,) the entry of each row that the label says."""
    return log_p.gather(1, label.unsqueeze(1)).squeeze(1)


def choose_pairs(pairs: Pairs, log_weight: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
    """The places of `wanted[w]` pairs of every worker w, without replacement, drawn in proportion to a weight.

    Adding Gumbel noise to the logarithms of weights and taking the largest sums is such a draw. A pair of weight 0 is
    never chosen, so that a worker may get fewer.
    """
    key = log_weight + _gumbel(log_weight)
    order = torch.argsort(key, descending=True, stable=True)
    order = order[torch.argsort(pairs.worker[order], stable=True)]
    size = torch.bincount(pairs.worker, minlength=len(wanted))
    rank = torch.arange(len(order), device=order.device) - (size.cumsum(0) - size)[pairs.worker[order]]
    return order[(rank < wanted[pairs.worker[order]]) & (log_weight[order] > -torch.inf)]


def fill_in(
    batch: Batch,
    n_workers: int,
    answers: Callable[[Pairs], torch.Tensor],
    rng: np.random.Generator,
    *,
    per_label: int | None,
    most_likely: bool,
    taken: Batch | None = None,
) -> tuple[Pairs, torch.Tensor]:
    """Pairs of a batch without a label, and a label for each.

    Parameters
    ----------
    batch : items with their labels; workers are numbered from 0 to n_workers - 1
    n_workers : how many
    answers : from pairs to (n_pairs, n_classes) log-probabilities of their labels
    rng : draws the pairs that are looked at; torch's own generator draws the rest
    per_label : so many for every label that a worker has here, the surer the likelier; None fills in all pairs
    likeliest : the most probable label, or else one drawn by its probability
    taken : further labels of the same items, on whose pairs none is filled in
    """
    pairs, answered = draw_pairs(batch, n_workers, None if per_label is None else _LOOKED_AT * per_label, rng)
    if taken is not None:
        n_rows = len(batch.item)
        answered |= torch.isin(pairs.worker * n_rows + pairs.row, taken.worker * n_rows + taken.row)
    pairs = pairs.at(~answered)
    log_p = answers(pairs)
    if per_label is not None:
        wanted = per_label * torch.bincount(batch.worker, minlength=n_workers)
        chosen = choose_pairs(pairs, log_sureness(log_p), wanted)
        pairs, log_p = pairs.at(chosen), log_p[chosen]
    return pairs, log_p.argmax(1) if most_likely else one_of_each(log_p)


def _gumbel(like: torch.Tensor) -> torch.Tensor:
    return -torch.log(-torch.log(torch.rand_like(like).clamp(min=1e-12)))
