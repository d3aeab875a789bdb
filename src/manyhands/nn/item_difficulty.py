"""Confusion matrices that depend on the difficulty of the item: the logits of a row are multiplied by a scale of x.

    C_w(x)[k, .] = softmax(d(x) A_w[k, .]),   d(x) = exp(2 tanh(g(x) / 2)),   1 / d(x) is the difficulty of x

g has one hidden layer and starts at 0, and d at 1. d stays between exp(-2) and exp(2): where it could reach 0, all
labels of an item would be equally probable whatever the class, and some fits lost a class to such items.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import torch
from torch import nn

from manyhands.em.kernels import Array
from manyhands.nn.batches import Batch
from manyhands.nn.losses import log_mixture
from manyhands.nn.worker_layers import Confusion

_RANGE = 2.0  # largest absolute value of log d(x)


class ItemScale(nn.Module):
    """d(x): a positive number for each item, from its features.

    Parameters
    ----------
    n_features : int
        Numbers in a row of X.
    hidden : int
        Size of the hidden layer.
    """

    def __init__(self, n_features: int, hidden: int) -> None:
        super().__init__()
        last = nn.Linear(hidden, 1)
        self.layers = nn.Sequential(nn.Flatten(), nn.Linear(n_features, hidden), nn.ReLU(), last)
        nn.init.zeros_(last.weight)
        nn.init.zeros_(last.bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return d(x), (n_rows, 1)."""
        return (_RANGE * (self.layers(x) / _RANGE).tanh()).exp()


class ScaledConfusion(nn.Module):
    """Confusion matrix per worker, whose rows' logits are multiplied by d(x).

    Parameters
    ----------
    own : Confusion
        The matrices at d = 1, with rows by softmax.
    scale : ItemScale
        d(x).
    """

    def __init__(self, own: Confusion, scale: ItemScale) -> None:
        super().__init__()
        self.own, self.scale, self.n_classes = own, scale, own.n_classes

    def initialise_at(self, confusion: Array) -> None:
        """Set the parameters to these confusion matrices, (n_workers, n_classes, n_classes), at d = 1."""
        self.own.initialise_at(confusion)

    def forward(self, log_proba: torch.Tensor, x: torch.Tensor, batch: Batch) -> torch.Tensor:
        """Return the log-probability of each label of a mini-batch.

        Parameters
        ----------
        log_proba : torch.Tensor of shape (n_rows, n_classes)
            log p(k | x) of the rows.
        x : torch.Tensor of shape (n_rows, ...)
            Their features.
        batch : Batch
            Their labels.

        Returns
        -------
        torch.Tensor of shape (n_labels,)
        """
        log_c = self.log_confusion(x, batch)
        log_column = log_c[torch.arange(len(log_c), device=log_c.device), :, batch.label]
        return log_mixture(log_proba.index_select(0, batch.row), log_column)

    def log_confusion(self, x: torch.Tensor, batch: Batch) -> torch.Tensor:
        """Return log C_w(x) for the item and the worker of each label, (n_labels, truth, label)."""
        free = self.own.weight.index_select(0, batch.worker).view(-1, self.n_classes, self.n_classes)
        scale: torch.Tensor = self.scale(x).index_select(0, batch.row)
        return (scale.unsqueeze(2) * free).log_softmax(1).transpose(1, 2)

    def label_distribution(self, worker: torch.Tensor) -> Callable[[torch.Tensor, torch.Tensor], torch.Tensor]:
        """Return a function from log p(k | x) and x to the log-probability of every label of each of these workers.

        Parameters
        ----------
        worker : torch.Tensor of shape (n_workers,)
            Codes of the workers.

        Returns
        -------
        callable (log_proba, x) -> torch.Tensor of shape (n_rows, n_classes, n_workers)
        """
        free = self.own.weight.index_select(0, worker).view(-1, self.n_classes, self.n_classes).permute(2, 1, 0)

        def distribution(log_proba: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
            scale = self.scale(x).unsqueeze(2)  # one class at a time: all at once would be classes times the memory
            of_class = ((scale * row).log_softmax(1) + log_proba[:, k, None, None] for k, row in enumerate(free))
            found = next(of_class)
            for other in of_class:
                found = torch.logaddexp(found, other)
            return found

        return distribution

    @torch.no_grad()
    def mean_confusion(self, batches: Iterable[tuple[torch.Tensor, Batch]]) -> Array:
        """Return the mean of C_w(x) over the items that each worker labelled; at d = 1 without labels.

        Parameters
        ----------
        batches : iterable of (x, Batch)
            Features and labels of all items.

        Returns
        -------
        ndarray of shape (n_workers, n_classes, n_classes)
            Rows sum to 1.
        """
        total = torch.zeros(self.own.n_workers, self.n_classes, self.n_classes, dtype=torch.float64)
        size = np.zeros(self.own.n_workers)
        for x, batch in batches:
            worker = batch.worker.cpu()
            total.index_add_(0, worker, self.log_confusion(x, batch).cpu().double().exp())
            size += np.bincount(worker.numpy(), minlength=len(size))
        table = np.where((size > 0)[:, None, None], total.numpy(), self.own.confusion())
        return np.asarray(table / table.sum(axis=2, keepdims=True))
