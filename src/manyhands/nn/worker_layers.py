"""Noise layers: models of each worker's label noise as torch modules, evaluated at the observed labels only.

    crowd layer     log softmax_l( sum_k p(k | x) W_w[k, l] )[label]     MW; VW, VB, VW-B and SW are special cases
    confusion       log sum_k p(k | x) C_w[k, label]                     rows of C by softmax or by softplus

A layer is called with log p(k | x) of the rows of a mini-batch and with the mini-batch. Time and memory grow with the
number of labels in the mini-batch, never with items x workers.

References
----------
F. Rodrigues and F. Pereira (2018), Deep learning from crowds, AAAI.
Z. Chen et al. (2020), Structured probabilistic end-to-end learning from crowds, IJCAI.
R. Tanno et al. (2019), Learning from noisy labels by regularized estimation of annotator confusion, CVPR.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import torch
from torch import nn
from torch.nn import functional as F

from manyhands.nn.batches import Batch
from manyhands.nn.losses import log_mixture, log_softmax_at

# From log p(k | x) of shape (n, n_classes) to one value per row, label and worker, (n, n_classes, n_workers).
WorkerOutputs = Callable[[torch.Tensor], torch.Tensor]

FORMS = ("mw", "vw", "vb", "vw-b", "sw")
_SMALL = 32  # number of classes up to which multiply-and-sum is faster than torch's batched matrix product
_TINY = 1e-30  # least value of which a logarithm is taken, well above the least normal 32-bit float
_DIAGONAL = 0.8  # initial probability of a right label where none is stated: workers are mostly right; ours
_MIN_PROBABILITY = 1e-3  # least probability of a label in initial confusion matrices, see `_log_clipped`


class CrowdLogits(nn.Module):
    """Crowd layer: logits of a worker's label as a linear function of the network's class probabilities.

    All workers start at the identity, or at given confusion matrices with `initialise_at`.
    """

    def __init__(self, n_workers: int, n_classes: int, form: str = "mw", scale: float = 1.0) -> None:
        super().__init__()
        self.form, self.n_workers, self.n_classes = form, n_workers, n_classes
        start = {"mw": torch.eye(n_classes).flatten(), "sw": torch.ones(1)}.get(form, torch.ones(n_classes))
        self.weight = nn.Parameter(scale * start.repeat(n_workers, 1)) if form != "vb" else None
        self.bias = nn.Parameter(torch.zeros(n_workers, n_classes)) if form in ("vb", "vw-b") else None

    @torch.no_grad()
    def initialise_at(self, confusion: npt.NDArray[np.float64]) -> None:
        """Set the parameters so that one-hot class probabilities give these label distributions.

        "mw" reproduces the matrices, "vw", "vw-b" and "sw" their diagonals (the mean of them for "sw"), and "vb" the
        mean label distribution of each worker.

        Shapes: confusion (n_workers, n_classes, n_classes).
        """
        log_confusion = torch.from_numpy(_log_clipped(confusion)).float()
        diagonal = log_confusion.diagonal(dim1=1, dim2=2)
        # With a single class the probability of a wrong label is 0, and its logarithm infinite.
        wrong = torch.log1p(-diagonal.exp()).clamp(min=math.log(_MIN_PROBABILITY))
        log_odds = diagonal - wrong + math.log(max(self.n_classes - 1, 1))
        if self.form == "mw":
            self._set(self.weight, log_confusion.flatten(1))
        elif self.form != "vb":
            self._set(self.weight, log_odds if self.form != "sw" else log_odds.mean(1, keepdim=True))
        else:
            self._set(self.bias, log_confusion.exp().mean(1).log())

    @staticmethod
    def _set(parameter: nn.Parameter | None, value: torch.Tensor) -> None:
        assert parameter is not None
        parameter.copy_(value)

    def forward(self, log_proba: torch.Tensor, batch: Batch) -> torch.Tensor:
        """Return the log-probability of each label of a mini-batch.

        Shapes: log_proba (n_rows, n_classes); returns (n_labels,).
        """
        logits = self.logits(log_proba.exp().index_select(0, batch.row), batch.worker)
        return log_softmax_at(logits, batch.label)

    def logits(self, proba: torch.Tensor, worker: torch.Tensor) -> torch.Tensor:
        """Return the logits of a label for each pair of class probabilities and worker.

        Shapes: proba (n, n_classes); worker (n,); returns (n, n_classes).
        """
        if self.weight is not None and self.form == "mw":
            return _batched_product(proba, self.weight.index_select(0, worker).view(-1, self.n_classes, self.n_classes))
        if self.weight is not None:
            proba = proba * self.weight.index_select(0, worker)
        return proba if self.bias is None else proba + self.bias.index_select(0, worker)

    def label_distribution(self, worker: torch.Tensor) -> WorkerOutputs:
        """Return a function from log p(k | x) to the log-probability of every label of each of these workers.

        Shapes: worker (n_workers,).
        """
        logits = self.worker_logits(worker)
        return lambda log_proba: logits(log_proba).log_softmax(1)

    def worker_logits(self, worker: torch.Tensor) -> WorkerOutputs:
        """Return the function that computes the logits of `label_distribution`, of the same shapes."""
        if self.weight is not None and self.form == "mw":
            table = _side_by_side(self.weight.index_select(0, worker).view(-1, self.n_classes, self.n_classes))
            return lambda log_proba: _product_with_all(log_proba.exp(), table, self.n_classes)
        weight = None if self.weight is None else self.weight.index_select(0, worker).t()
        bias = None if self.bias is None else self.bias.index_select(0, worker).t()

        def logits(log_proba: torch.Tensor) -> torch.Tensor:
            value = log_proba.exp().unsqueeze(2).expand(-1, -1, len(worker))
            value = value if weight is None else value * weight
            return value if bias is None else value + bias

        return logits

    @torch.no_grad()
    def confusion(self) -> npt.NDArray[np.float64]:
        """Return the label distribution of each worker given one-hot class probabilities, [worker, truth, label]."""

        def log_rows(worker: torch.Tensor) -> torch.Tensor:
            one_hot = torch.eye(self.n_classes, device=worker.device).repeat(len(worker), 1)
            logits = self.logits(one_hot, worker.repeat_interleave(self.n_classes))
            return logits.log_softmax(1).view(-1, self.n_classes, self.n_classes)

        return _as_confusion([log_rows(worker) for worker in _chunks(self)], self.n_classes)


class Confusion(nn.Module):
    """Confusion matrix per worker; a forward pass reads only the column of each observed label."""

    def __init__(
        self, n_workers: int, n_classes: int, rows: str = "softmax", diagonal: float | None = _DIAGONAL
    ) -> None:
        super().__init__()
        self.rows, self.n_workers, self.n_classes = rows, n_workers, n_classes
        on, off = _initial_parameters(n_classes, rows, diagonal)
        start = torch.full((n_classes, n_classes), off).fill_diagonal_(on)
        self.weight = nn.Parameter(start.flatten().repeat(n_workers, 1))

    def forward(self, log_proba: torch.Tensor, batch: Batch) -> torch.Tensor:
        """Return the log-probability of each label of a mini-batch, (n_labels,), given log p(k | x) of its rows."""
        return self._log_label(log_proba, batch, *self._distinct_log_c(batch.worker))

    def with_trace(self, log_proba: torch.Tensor, batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the result of `forward` and the penalty of Tanno et al.

        Shapes: log_proba (n_rows, n_classes); returns log_label (n_labels,).
        """
        log_c, place = self._distinct_log_c(batch.worker)
        return self._log_label(log_proba, batch, log_c, place), _mean_trace(log_c)

    @torch.no_grad()
    def initialise_at(self, confusion: npt.NDArray[np.float64]) -> None:
        """Set the parameters to these confusion matrices.

        Shapes: confusion (n_workers, n_classes, n_classes).
        """
        log_column = torch.from_numpy(_log_clipped(confusion)).float().transpose(1, 2)  # [worker, label, truth]
        free = log_column if self.rows == "softmax" else log_column.exp().expm1().log()
        self.weight.copy_(free.reshape(len(free), -1))

    def log_rows(self, worker: torch.Tensor) -> torch.Tensor:
        """Return log C of these workers, (n_workers, truth, label)."""
        return self._log_c(self.weight.index_select(0, worker)).permute(1, 2, 0)

    def label_distribution(self, worker: torch.Tensor) -> WorkerOutputs:
        """Return a function from log p(k | x) to the log-probability of every label of each of these workers.

        Shapes: worker (n_workers,).
        """
        table = _side_by_side(self.log_rows(worker).exp())
        return lambda log_proba: _product_with_all(log_proba.exp(), table, self.n_classes).clamp(min=_TINY).log()

    def _distinct_log_c(self, worker: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return `_log_c` of the distinct ones of these workers, and the position of each given worker in it.

        Workers outside the mini-batch are left out, so that their number changes no bit of the result. Where all
        workers are in the mini-batch, the parameters are not copied.
        """
        present = torch.zeros(self.n_workers, dtype=torch.bool, device=worker.device).index_fill_(0, worker, True)
        if present.all():
            return self._log_c(self.weight), worker
        place = (present.cumsum(0) - 1).index_select(0, worker)
        return self._log_c(self.weight.index_select(0, present.nonzero().squeeze(1))), place

    def _log_c(self, free: torch.Tensor) -> torch.Tensor:
        """Return log C as [label, worker, truth]: a column is contiguous, and sums over labels run along memory."""
        free = free.view(-1, self.n_classes, self.n_classes).transpose(0, 1).contiguous()
        score = free if self.rows == "softmax" else F.softplus(free).clamp(min=_TINY).log()
        return score.log_softmax(0)  # softmax of log softplus is softplus divided by the row sum

    def _log_label(
        self, log_proba: torch.Tensor, batch: Batch, log_c: torch.Tensor, place: torch.Tensor
    ) -> torch.Tensor:
        log_column = log_c.view(-1, self.n_classes).index_select(0, batch.label * log_c.shape[1] + place)
        return log_mixture(log_proba.index_select(0, batch.row), log_column)

    @torch.no_grad()
    def confusion(self) -> npt.NDArray[np.float64]:
        """Return the confusion matrices, [worker, truth, label]; rows sum to 1."""
        return _as_confusion([self.log_rows(worker) for worker in _chunks(self)], self.n_classes)


def _batched_product(rows: torch.Tensor, matrices: torch.Tensor) -> torch.Tensor:
    """Return row i times matrix i, (n, l), of rows (n, k) and matrices (n, k, l)."""
    if rows.shape[1] > _SMALL:
        return torch.bmm(rows.unsqueeze(1), matrices).squeeze(1)
    return (rows.unsqueeze(2) * matrices).sum(1)


def _side_by_side(matrices: torch.Tensor) -> torch.Tensor:
    """Return matrices (n, k, l) as one matrix (k, l * n); workers vary fastest, since there are few classes."""
    return matrices.permute(1, 2, 0).reshape(matrices.shape[1], -1).contiguous()


def _product_with_all(rows: torch.Tensor, table: torch.Tensor, n_labels: int) -> torch.Tensor:
    """Return every row (r, k) times every matrix of `_side_by_side`, (r, l, n)."""
    return (rows @ table).view(len(rows), n_labels, -1)


def _mean_trace(log_c: torch.Tensor) -> torch.Tensor:
    """Mean trace of log C [label, worker, truth] over its workers; 0 where there are none."""
    return log_c.diagonal(dim1=0, dim2=2).exp().sum() / max(log_c.shape[1], 1)


def _initial_parameters(n_classes: int, rows: str, diagonal: float | None) -> tuple[float, float]:
    """Unconstrained parameters on and off the diagonal that give this diagonal."""
    if rows == "softplus" and diagonal is None:
        return 1.0, -5.0  # as in the code of Tanno et al.: a diagonal of .995 with two classes, .956 with ten
    share = _DIAGONAL if diagonal is None else diagonal
    odds = share / (1 - share) * max(n_classes - 1, 1)  # of the diagonal against one other cell
    if rows == "softmax":
        return math.log(odds), 0.0
    return math.log(math.expm1(1.0)), math.log(math.expm1(1.0 / odds))


def _log_clipped(confusion: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Log C with every probability at least 0.001: a label of probability 0 would never have a gradient."""
    clipped = np.clip(confusion, _MIN_PROBABILITY, None)
    return np.asarray(np.log(clipped / clipped.sum(axis=2, keepdims=True)))


def _chunks(layer: CrowdLogits | Confusion, size: int = 4096) -> tuple[torch.Tensor, ...]:
    """Codes of all workers in chunks, which bounds the memory of `confusion`."""
    device = next(layer.parameters()).device
    return torch.split(torch.arange(layer.n_workers, device=device), size)


def _as_confusion(log_rows: list[torch.Tensor], n_classes: int) -> npt.NDArray[np.float64]:
    """Log rows of chunks of workers as one array whose rows sum to 1 in double precision."""
    if not log_rows:
        return np.zeros((0, n_classes, n_classes))
    table = torch.cat(log_rows).cpu().double().exp().numpy()
    return np.asarray(table / table.sum(axis=2, keepdims=True))
