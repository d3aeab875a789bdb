"""How a worker errs, as layers that backpropagate: log p(label | x, worker) of the observed labels, and of no others.

    crowd layer     softmax_l( sum_k p(k | x) W_w[k, l] )[label]         MW; VW, VB, VW-B and SW are special cases
    confusion       log sum_k p(k | x) C_w[k, label]                     rows of C by softmax or by softplus

A layer is called with log p(k | x) of the rows of a batch and with the batch. What it computes grows with the labels of
the batch and the workers who gave them, not with all workers.

References: F. Rodrigues and F. Pereira (2018), Deep learning from crowds, AAAI. Z. Chen et al. (2020), Structured
probabilistic end-to-end learning from crowds, IJCAI. R. Tanno et al. (2019), Learning from noisy labels by
regularized estimation of annotator confusion, CVPR.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import torch
from torch import nn
from torch.nn import functional as F

from manyhands.nn.batches import Batch
from manyhands.nn.losses import log_mixture

FORMS = ("mw", "vw", "vb", "vw-b", "sw")


class CrowdLogits(nn.Module):
    """The crowd layer: a worker's logits from the network's probabilities, starting at the identity.

    Parameters
    ----------
    n_workers, n_classes : sizes
    form : "mw" a matrix per worker, "vw" a weight per class, "vb" a bias per class, "vw-b" both, "sw" one weight
    scale : the start is `scale` times the identity
    """

    def __init__(self, n_workers: int, n_classes: int, form: str = "mw", scale: float = 1.0) -> None:
        super().__init__()
        self.form, self.n_workers, self.n_classes = form, n_workers, n_classes
        start = {"mw": torch.eye(n_classes).flatten(), "sw": torch.ones(1)}.get(form, torch.ones(n_classes))
        self.weight = nn.Parameter(scale * start.repeat(n_workers, 1)) if form != "vb" else None
        self.bias = nn.Parameter(torch.zeros(n_workers, n_classes)) if form in ("vb", "vw-b") else None

    def forward(self, log_proba: torch.Tensor, batch: Batch) -> torch.Tensor:
        """(n_labels,) log-probability of each label of the batch, given log p(k | x) of its rows."""
        logits = self.logits(log_proba.exp()[batch.row], batch.worker)
        return -F.cross_entropy(logits, batch.label, reduction="none")

    def logits(self, proba: torch.Tensor, worker: torch.Tensor) -> torch.Tensor:
        """(n, n_classes) how `worker` would answer where the truth is distributed as `proba`, row by row."""
        if self.weight is not None and self.form == "mw":
            matrix = F.embedding(worker, self.weight).view(-1, self.n_classes, self.n_classes)
            return torch.bmm(proba.unsqueeze(1), matrix).squeeze(1)
        if self.weight is not None:
            proba = proba * F.embedding(worker, self.weight)
        return proba if self.bias is None else proba + F.embedding(worker, self.bias)

    @torch.no_grad()
    def confusion(self) -> npt.NDArray[np.float64]:
        """[worker, truth, label]: how each worker would answer if the network were sure of the truth."""

        def log_rows(worker: torch.Tensor) -> torch.Tensor:
            sure = torch.eye(self.n_classes, device=worker.device).repeat(len(worker), 1)
            logits = self.logits(sure, worker.repeat_interleave(self.n_classes))
            return logits.log_softmax(1).view(-1, self.n_classes, self.n_classes)

        return _as_confusion([log_rows(worker) for worker in _stretches(self)], self.n_classes)


class Confusion(nn.Module):
    """A confusion matrix per worker, in which only the column of the observed label is gathered.

    Parameters
    ----------
    n_workers, n_classes : sizes
    rows : "softmax" (SpeeLFC) or "softplus" (Tanno), how free numbers become rows that sum to 1
    diagonal : what the diagonal starts at; None with "softplus" means Tanno's 6 I - 5
    """

    def __init__(self, n_workers: int, n_classes: int, rows: str = "softmax", diagonal: float | None = 0.8) -> None:
        super().__init__()
        self.rows, self.n_workers, self.n_classes = rows, n_workers, n_classes
        on, off = _start(n_classes, rows, diagonal)
        start = torch.full((n_classes, n_classes), off).fill_diagonal_(on)
        self.weight = nn.Parameter(start.flatten().repeat(n_workers, 1))

    def forward(self, log_proba: torch.Tensor, batch: Batch) -> torch.Tensor:
        """(n_labels,) log-probability of each label of the batch, given log p(k | x) of its rows."""
        worker, place = torch.unique(batch.worker, return_inverse=True)
        free = self._free(worker)
        column = free.view(-1, self.n_classes).index_select(0, place * self.n_classes + batch.label)
        log_column = self._log(column) - self._log_total(free).index_select(0, place)  # (n_labels, truth)
        return log_mixture(log_proba[batch.row], log_column)

    def log_rows(self, worker: torch.Tensor) -> torch.Tensor:
        """(n, truth, label) log C of these workers."""
        free = self._free(worker)
        return (self._log(free) - self._log_total(free).unsqueeze(1)).transpose(1, 2)

    def _free(self, worker: torch.Tensor) -> torch.Tensor:
        """(n, label, truth): the label stands first, so that its column is one stretch of memory."""
        return self.weight.index_select(0, worker).view(-1, self.n_classes, self.n_classes)

    def _log(self, free: torch.Tensor) -> torch.Tensor:
        return free if self.rows == "softmax" else F.softplus(free).clamp(min=1e-30).log()

    def _log_total(self, free: torch.Tensor) -> torch.Tensor:
        """(n, truth) the logarithm of what each row of C is divided by."""
        return free.logsumexp(1) if self.rows == "softmax" else F.softplus(free).sum(1).log()

    def mean_trace(self, worker: torch.Tensor) -> torch.Tensor:
        """The mean trace of C over the distinct ones of these workers: Tanno's penalty, which lowers the diagonal."""
        return self.log_rows(torch.unique(worker)).diagonal(dim1=1, dim2=2).exp().sum(1).mean()

    @torch.no_grad()
    def confusion(self) -> npt.NDArray[np.float64]:
        """[worker, truth, label], rows sum to 1."""
        return _as_confusion([self.log_rows(worker) for worker in _stretches(self)], self.n_classes)


def _start(n_classes: int, rows: str, diagonal: float | None) -> tuple[float, float]:
    """Free numbers on and off the diagonal that give this diagonal."""
    if rows == "softplus" and diagonal is None:
        return 1.0, -5.0
    share = 0.8 if diagonal is None else diagonal
    odds = share / (1 - share) * max(n_classes - 1, 1)  # of the diagonal against one other cell
    if rows == "softmax":
        return math.log(odds), 0.0
    return math.log(math.expm1(1.0)), math.log(math.expm1(1.0 / odds))


def _stretches(layer: CrowdLogits | Confusion, size: int = 4096) -> tuple[torch.Tensor, ...]:
    device = next(layer.parameters()).device
    return torch.split(torch.arange(layer.n_workers, device=device), size)


def _as_confusion(log_rows: list[torch.Tensor], n_classes: int) -> npt.NDArray[np.float64]:
    """Log rows of stretches of workers as one array whose rows sum to 1 in 64 bits."""
    if not log_rows:
        return np.zeros((0, n_classes, n_classes))
    table = torch.cat(log_rows).double().exp().cpu().numpy()
    return np.asarray(table / table.sum(axis=2, keepdims=True))
