"""How a worker errs, as layers that backpropagate: log p(label | x, worker) of the observed labels, and of no others.

    crowd layer     softmax_l( sum_k p(k | x) W_w[k, l] )[label]         MW; VW, VB, VW-B and SW are special cases
    confusion       log sum_k p(k | x) C_w[k, label]                     rows of C by softmax or by softplus

A layer is called with log p(k | x) of the rows of a batch and with the batch. What it computes grows with the labels of
the batch, never with items x workers.

References: F. Rodrigues and F. Pereira (2018), Deep learning from crowds, AAAI. Z. Chen et al. (2020), Structured
probabilistic end-to-end learning from crowds, IJCAI. R. Tanno et al. (2019), Learning from noisy labels by
regularized estimation of annotator confusion, CVPR.
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

Answers = Callable[[torch.Tensor], torch.Tensor]  # log p(k | x), (n, n_classes) -> (n, n_classes, n_workers)

FORMS = ("mw", "vw", "vb", "vw-b", "sw")
_SMALL = 32  # classes up to which multiplying and adding beats torch's products of many small matrices
_TINY = 1e-30  # a number that still has a logarithm
_LEAST = 1e-3  # probability of an answer where a layer starts


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

    @torch.no_grad()
    def start_at(self, confusion: npt.NDArray[np.float64]) -> None:
        """Begin where a sure network makes workers answer like this; forms of few weights come as near as they can."""
        log_table = torch.from_numpy(_log_floored(confusion)).float()
        diagonal = log_table.diagonal(dim1=1, dim2=2)
        wrong = torch.log1p(-diagonal.exp()).clamp(min=math.log(_LEAST))  # of a single class there is no wrong answer
        odds = diagonal - wrong + math.log(max(self.n_classes - 1, 1))
        if self.form == "mw":
            self._set(self.weight, log_table.flatten(1))
        elif self.form != "vb":
            self._set(self.weight, odds if self.form != "sw" else odds.mean(1, keepdim=True))
        else:
            self._set(self.bias, log_table.exp().mean(1).log())

    @staticmethod
    def _set(parameter: nn.Parameter | None, value: torch.Tensor) -> None:
        assert parameter is not None
        parameter.copy_(value)

    def forward(self, log_proba: torch.Tensor, batch: Batch) -> torch.Tensor:
        """(n_labels,) log-probability of each label of the batch, given log p(k | x) of its rows."""
        logits = self.logits(log_proba.exp().index_select(0, batch.row), batch.worker)
        return log_softmax_at(logits, batch.label)

    def logits(self, proba: torch.Tensor, worker: torch.Tensor) -> torch.Tensor:
        """(n, n_classes) how `worker` would answer where the truth is distributed as `proba`, row by row."""
        if self.weight is not None and self.form == "mw":
            return _rows_times(proba, self.weight.index_select(0, worker).view(-1, self.n_classes, self.n_classes))
        if self.weight is not None:
            proba = proba * self.weight.index_select(0, worker)
        return proba if self.bias is None else proba + self.bias.index_select(0, worker)

    def answers_of(self, worker: torch.Tensor) -> Answers:
        """From log p(k | x) of some rows to the log-probability of every answer of each of these workers."""
        logits = self.logits_of(worker)
        return lambda log_proba: logits(log_proba).log_softmax(1)

    def logits_of(self, worker: torch.Tensor) -> Answers:
        """The logits behind `answers_of`."""
        if self.weight is not None and self.form == "mw":
            table = _beside(self.weight.index_select(0, worker).view(-1, self.n_classes, self.n_classes))
            return lambda log_proba: _every_row_times(log_proba.exp(), table, self.n_classes)
        weight = None if self.weight is None else self.weight.index_select(0, worker).t()
        bias = None if self.bias is None else self.bias.index_select(0, worker).t()

        def logits(log_proba: torch.Tensor) -> torch.Tensor:
            found = log_proba.exp().unsqueeze(2).expand(-1, -1, len(worker))
            found = found if weight is None else found * weight
            return found if bias is None else found + bias

        return logits

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
        return self._log_label(log_proba, batch, *self._heard(batch.worker))

    def with_trace(self, log_proba: torch.Tensor, batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
        """What `forward` gives, and Tanno's penalty: the mean trace of C over the distinct workers of the batch."""
        log_c, place = self._heard(batch.worker)
        return self._log_label(log_proba, batch, log_c, place), _mean_trace(log_c)

    def mean_trace(self, worker: torch.Tensor) -> torch.Tensor:
        """The mean trace of C over the distinct ones of these workers; 0 where there are none."""
        return _mean_trace(self._heard(worker)[0])

    @torch.no_grad()
    def start_at(self, confusion: npt.NDArray[np.float64]) -> None:
        """Begin with these confusion matrices."""
        log_column = torch.from_numpy(_log_floored(confusion)).float().transpose(1, 2)  # the label first
        free = log_column if self.rows == "softmax" else log_column.exp().expm1().log()
        self.weight.copy_(free.reshape(len(free), -1))

    def log_rows(self, worker: torch.Tensor) -> torch.Tensor:
        """(n, truth, label) log C of these workers."""
        return self._log_c(self.weight.index_select(0, worker)).permute(1, 2, 0)

    def answers_of(self, worker: torch.Tensor) -> Answers:
        """From log p(k | x) of some rows to the log-probability of every answer of each of these workers."""
        table = _beside(self.log_rows(worker).exp())
        return lambda log_proba: _every_row_times(log_proba.exp(), table, self.n_classes).clamp(min=_TINY).log()

    def _heard(self, worker: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """`_log_c` of the distinct ones of these workers, and the place of each of these in it.

        Who is silent is left out, so that his presence changes no bit; a crowd that is all there is not copied.
        """
        heard = torch.zeros(self.n_workers, dtype=torch.bool, device=worker.device).index_fill_(0, worker, True)
        if heard.all():
            return self._log_c(self.weight), worker
        place = (heard.cumsum(0) - 1).index_select(0, worker)
        return self._log_c(self.weight.index_select(0, heard.nonzero().squeeze(1))), place

    def _log_c(self, free: torch.Tensor) -> torch.Tensor:
        """(label, n, truth) log C: a column is one stretch of memory, and labels are summed over stretch by stretch."""
        free = free.view(-1, self.n_classes, self.n_classes).transpose(0, 1).contiguous()
        score = free if self.rows == "softmax" else F.softplus(free).clamp(min=_TINY).log()
        return score.log_softmax(0)  # of the logarithm of softplus: softplus divided by its row sums

    def _log_label(
        self, log_proba: torch.Tensor, batch: Batch, log_c: torch.Tensor, place: torch.Tensor
    ) -> torch.Tensor:
        log_column = log_c.view(-1, self.n_classes).index_select(0, batch.label * log_c.shape[1] + place)
        return log_mixture(log_proba.index_select(0, batch.row), log_column)

    @torch.no_grad()
    def confusion(self) -> npt.NDArray[np.float64]:
        """[worker, truth, label], rows sum to 1."""
        return _as_confusion([self.log_rows(worker) for worker in _stretches(self)], self.n_classes)


def _rows_times(rows: torch.Tensor, matrices: torch.Tensor) -> torch.Tensor:
    """(n, l) each of the rows (n, k) times its own one of the matrices (n, k, l)."""
    if rows.shape[1] > _SMALL:
        return torch.bmm(rows.unsqueeze(1), matrices).squeeze(1)
    return (rows.unsqueeze(2) * matrices).sum(1)


def _beside(matrices: torch.Tensor) -> torch.Tensor:
    """(k, l * n) the matrices (n, k, l) side by side, workers last: along few classes torch is slow."""
    return matrices.permute(1, 2, 0).reshape(matrices.shape[1], -1).contiguous()


def _every_row_times(rows: torch.Tensor, table: torch.Tensor, n_labels: int) -> torch.Tensor:
    """(r, l, n) each of the rows (r, k) times every one of the matrices that stand beside each other in the table."""
    return (rows @ table).view(len(rows), n_labels, -1)


def _mean_trace(log_c: torch.Tensor) -> torch.Tensor:
    """The mean trace over the workers of `log_c`; 0 where there are none."""
    return log_c.diagonal(dim1=0, dim2=2).exp().sum() / max(log_c.shape[1], 1)


def _start(n_classes: int, rows: str, diagonal: float | None) -> tuple[float, float]:
    """Free numbers on and off the diagonal that give this diagonal."""
    if rows == "softplus" and diagonal is None:
        return 1.0, -5.0
    share = 0.8 if diagonal is None else diagonal
    odds = share / (1 - share) * max(n_classes - 1, 1)  # of the diagonal against one other cell
    if rows == "softmax":
        return math.log(odds), 0.0
    return math.log(math.expm1(1.0)), math.log(math.expm1(1.0 / odds))


def _log_floored(confusion: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Log C without rows that exclude a label: where nothing is believed possible, no gradient ever comes."""
    floored = np.clip(confusion, _LEAST, None)
    return np.asarray(np.log(floored / floored.sum(axis=2, keepdims=True)))


def _stretches(layer: CrowdLogits | Confusion, size: int = 4096) -> tuple[torch.Tensor, ...]:
    device = next(layer.parameters()).device
    return torch.split(torch.arange(layer.n_workers, device=device), size)


def _as_confusion(log_rows: list[torch.Tensor], n_classes: int) -> npt.NDArray[np.float64]:
    """Log rows of stretches of workers as one array whose rows sum to 1 in 64 bits."""
    if not log_rows:
        return np.zeros((0, n_classes, n_classes))
    table = torch.cat(log_rows).double().exp().cpu().numpy()
    return np.asarray(table / table.sum(axis=2, keepdims=True))
