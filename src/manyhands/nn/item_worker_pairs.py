"""Pairs of an item and a worker, most of them without a label: sampling, selection by entropy, imputed annotations.

The number of sampled pairs is proportional to the labels of the mini-batch; all pairs of items and workers are taken
only on request.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch

from manyhands.nn.batches import Batch
from manyhands.nn.losses import entropy

_CANDIDATES = 8  # candidate pairs for each imputed annotation
_TINY = 1e-6  # least entropy, since an entropy of 0 has no logarithm


class Pairs(NamedTuple):
    """Pairs of a row of a mini-batch and a worker; those of one worker are adjacent.

    Attributes
    ----------
    row : tensor of int64 of shape (n_pairs,)
        Rows of the mini-batch.
    worker : tensor of int64 of shape (n_pairs,)
        Worker codes.
    """

    row: torch.Tensor
    worker: torch.Tensor

    def select(self, which: torch.Tensor) -> Pairs:
        """Select pairs.

        Parameters
        ----------
        which : tensor of bool of shape (n_pairs,) or of int64 of shape (n,)
            Mask or positions.

        Returns
        -------
        Pairs
            The selected pairs.
        """
        return Pairs(self.row[which], self.worker[which])


def draw_pairs(
    batch: Batch, n_workers: int, per_label: int | None, rng: np.random.Generator
) -> tuple[Pairs, torch.Tensor]:
    """Sample distinct pairs of a mini-batch's rows with workers.

    Parameters
    ----------
    batch : Batch
        Items with their labels; workers are numbered from 0 to n_workers - 1.
    n_workers : int
        Number of workers.
    per_label : int or None
        A worker with m labels in the mini-batch gets min(n_rows, (per_label + 1) m) pairs, so that at least about
        ``per_label * m`` of them are without a label. None takes every worker with every row.
    rng : numpy Generator
        Draws the pairs.

    Returns
    -------
    pairs : Pairs
        The sample.
    labelled : tensor of bool of shape (n_pairs,)
        Whether a pair has a label in the mini-batch.
    """
    n_rows = len(batch.item)
    observed = batch.worker.cpu().numpy() * n_rows + batch.row.cpu().numpy()
    if per_label is None:
        worker, size = np.arange(n_workers), np.full(n_workers, n_rows)
    else:
        worker, n_labels = np.unique(batch.worker.cpu().numpy(), return_counts=True)
        size = np.minimum(n_rows, (per_label + 1) * n_labels)
    # Every worker gets a contiguous part of one shuffled circle of rows: no row comes twice, and no sort is needed.
    circle, first = rng.permutation(n_rows), rng.integers(0, max(n_rows, 1), len(worker))
    step = np.arange(size.sum()) - np.repeat(np.cumsum(size) - size, size)
    row = circle[(np.repeat(first, size) + step) % max(n_rows, 1)]
    pair_worker = np.repeat(worker, size)
    labelled = np.isin(pair_worker * n_rows + row, observed)
    device = batch.row.device
    return Pairs(*(torch.from_numpy(c).to(device) for c in (row, pair_worker))), torch.from_numpy(labelled).to(device)


def log_inverse_entropy(log_p: torch.Tensor) -> torch.Tensor:
    """Logarithm of the inverse entropy, log(1 / H): CrowdInG's weight of a pair in entropy-based selection.

    Parameters
    ----------
    log_p : tensor of shape (n_pairs, n_classes)
        Log-probabilities of each pair's label.

    Returns
    -------
    tensor of shape (n_pairs,)
        -log max(H, 1e-6).
    """
    return -entropy(log_p).clamp(min=_TINY).log()


def sample_labels(log_p: torch.Tensor) -> torch.Tensor:
    """Sample a label for each pair from its distribution, by the Gumbel-max trick with torch's global generator.

    Parameters
    ----------
    log_p : tensor of shape (n_pairs, n_classes)
        Log-probabilities of each pair's label.

    Returns
    -------
    tensor of int64 of shape (n_pairs,)
        Labels.
    """
    return (log_p + _gumbel(log_p)).argmax(1)


def select(log_p: torch.Tensor, label: torch.Tensor) -> torch.Tensor:
    """Log-probability of each pair's label.

    Parameters
    ----------
    log_p : tensor of shape (n_pairs, n_classes)
        Log-probabilities of all labels.
    label : tensor of int64 of shape (n_pairs,)
        Labels.

    Returns
    -------
    tensor of shape (n_pairs,)
        ``log_p[a, label[a]]``.
    """
    return log_p.gather(1, label.unsqueeze(1)).squeeze(1)


def choose_pairs(pairs: Pairs, log_weight: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
    """Select a given number of pairs of each worker without replacement, with probability proportional to a weight.

    The pairs with the largest sums of log-weight and Gumbel noise are such a sample (the Gumbel top-k trick).

    Parameters
    ----------
    pairs : Pairs
        Candidates.
    log_weight : tensor of shape (n_pairs,)
        Logarithm of each pair's weight; -inf excludes a pair.
    wanted : tensor of int64 of shape (n_workers,)
        Number of pairs of each worker; fewer are selected where fewer have a positive weight.

    Returns
    -------
    tensor of int64 of shape (n_selected,)
        Positions of the selected pairs, worker by worker.

    References
    ----------
    W. Kool, H. van Hoof and M. Welling (2019), Stochastic beams and where to find them: The Gumbel-top-k trick for
    sampling sequences without replacement, ICML.
    """
    key = log_weight + _gumbel(log_weight)
    order = torch.argsort(key, descending=True, stable=True)
    order = order[torch.argsort(pairs.worker[order], stable=True)]
    size = torch.bincount(pairs.worker, minlength=len(wanted))
    rank = torch.arange(len(order), device=order.device) - (size.cumsum(0) - size)[pairs.worker[order]]
    return order[(rank < wanted[pairs.worker[order]]) & (log_weight[order] > -torch.inf)]


def impute_annotations(
    batch: Batch,
    n_workers: int,
    answers: Callable[[Pairs], torch.Tensor],
    rng: np.random.Generator,
    *,
    per_label: int | None,
    most_likely: bool,
    taken: Batch | None = None,
) -> tuple[Pairs, torch.Tensor]:
    """Impute annotations: labels for pairs of a mini-batch that have none.

    Parameters
    ----------
    batch : Batch
        Items with their labels; workers are numbered from 0 to n_workers - 1.
    n_workers : int
        Number of workers.
    answers : callable
        From pairs to (n_pairs, n_classes) log-probabilities of their labels.
    rng : numpy Generator
        Draws the candidate pairs; torch's global generator draws the rest.
    per_label : int or None
        Imputed annotations of a worker for each label that the worker has in the mini-batch, selected among eight
        times as many candidates with probability proportional to 1 / entropy. None imputes all pairs.
    most_likely : bool
        Take the most likely label; otherwise one sampled from the distribution.
    taken : Batch or None, default=None
        Further labels of the same items (held-out ones, for example), whose pairs are not imputed.

    Returns
    -------
    pairs : Pairs
        Pairs without a label.
    label : tensor of int64 of shape (n_pairs,)
        Their imputed labels.
    """
    pairs, labelled = draw_pairs(batch, n_workers, None if per_label is None else _CANDIDATES * per_label, rng)
    if taken is not None:
        n_rows = len(batch.item)
        labelled |= torch.isin(pairs.worker * n_rows + pairs.row, taken.worker * n_rows + taken.row)
    pairs = pairs.select(~labelled)
    log_p = answers(pairs)
    if per_label is not None:
        wanted = per_label * torch.bincount(batch.worker, minlength=n_workers)
        chosen = choose_pairs(pairs, log_inverse_entropy(log_p), wanted)
        pairs, log_p = pairs.select(chosen), log_p[chosen]
    return pairs, log_p.argmax(1) if most_likely else sample_labels(log_p)


def _gumbel(like: torch.Tensor) -> torch.Tensor:
    """Standard Gumbel noise in the shape of a tensor."""
    return -torch.log(-torch.log(torch.rand_like(like).clamp(min=1e-12)))
