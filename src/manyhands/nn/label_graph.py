"""A graph of workers and items with one kind of edge for each label, and a network that foretells edges not there.

    what item i hears       m_i = mean over its labels (w, k) of A_k c_w          c_w a free code of worker w
    what worker w hears     m_w = mean over his labels (i, k) of B_k c_i          c_i = relu(E x_i)
    codes                   v_i = relu(V relu(m_i) + V' c_i),   u_w = relu(U relu(m_w) + U' c_w)
    an edge                 p(k | i, w) = softmax_k(u_w' Q_k v_i)

What is computed grows with edges and nodes, never with items x workers.

Reference: R. van den Berg, T. Kipf and M. Welling (2018), Graph convolutional matrix completion, KDD Deep Learning Day.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import nn
from torch.nn import functional as F

from manyhands.nn.item_worker_pairs import Pairs
from manyhands.nn.label_generator import WorkerCodes


class Edges(NamedTuple):
    """Labels as edges between rows of X and workers."""

    row: torch.Tensor  # (n_edges,)
    worker: torch.Tensor  # (n_edges,)
    label: torch.Tensor  # (n_edges,)

    def at(self, which: torch.Tensor) -> Edges:
        """Those of them that a mask says."""
        return Edges(self.row[which], self.worker[which], self.label[which])


class Heard(NamedTuple):
    """The sum of messages that each node got, and how many these were; both add up over parts of a graph."""

    total: torch.Tensor  # (n_nodes, units)
    degree: torch.Tensor  # (n_nodes,)

    def mean(self) -> torch.Tensor:
        return self.total / self.degree.clamp(min=1).unsqueeze(1)


class LabelGraph(nn.Module):
    """Encoder and decoder.

    Parameters
    ----------
    n_features, n_classes, n_workers : sizes; rows of X of any shape are flattened
    units : of every code
    dropout : share of the codes' numbers that is dropped in training
    """

    def __init__(
        self, n_features: int, n_classes: int, n_workers: int, *, units: int = 64, dropout: float = 0.5
    ) -> None:
        super().__init__()
        self.n_workers = n_workers
        self.item = nn.Sequential(nn.Flatten(), nn.Linear(n_features, units), nn.ReLU())
        self.worker = WorkerCodes(n_workers, units)
        self.to_item = nn.Parameter(torch.randn(n_classes, units, units) / units**0.5)
        self.to_worker = nn.Parameter(torch.randn(n_classes, units, units) / units**0.5)
        self.item_heard, self.item_own = nn.Linear(units, units), nn.Linear(units, units, bias=False)
        self.worker_heard, self.worker_own = nn.Linear(units, units), nn.Linear(units, units, bias=False)
        self.edge = nn.Parameter(torch.randn(n_classes, units, units) / units)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: torch.Tensor, edges: Edges, pairs: Pairs) -> torch.Tensor:
        """(n_pairs, n_classes) log-probabilities of the pairs' labels, where the graph is these rows and edges."""
        own = self.dropout(self.item(x))
        worker = self.worker_code(self.heard_by_workers(own, edges))
        return self.log_label(self._item_code(own, edges), worker, pairs)

    def heard_by_workers(self, own: torch.Tensor, edges: Edges) -> Heard:
        """What the workers hear along these edges from items with codes `own` (n_rows, units)."""
        return _heard(own, self.to_worker, edges.row, edges.worker, edges.label, self.n_workers)

    def worker_code(self, heard: Heard) -> torch.Tensor:
        """(n_workers, units) u."""
        own = self.dropout(self.worker())
        return F.relu(self.worker_heard(self.dropout(F.relu(heard.mean()))) + self.worker_own(own))

    def item_code(self, x: torch.Tensor, edges: Edges) -> torch.Tensor:
        """(n_rows, units) v."""
        return self._item_code(self.dropout(self.item(x)), edges)

    def _item_code(self, own: torch.Tensor, edges: Edges) -> torch.Tensor:
        heard = _heard(self.dropout(self.worker()), self.to_item, edges.worker, edges.row, edges.label, len(own))
        return F.relu(self.item_heard(self.dropout(F.relu(heard.mean()))) + self.item_own(own))

    def log_label(self, item: torch.Tensor, worker: torch.Tensor, pairs: Pairs) -> torch.Tensor:
        """(n_pairs, n_classes) from the codes of rows and workers."""
        turned = torch.einsum("cij,nj->nci", self.edge, item).index_select(0, pairs.row)
        return torch.bmm(turned, worker.index_select(0, pairs.worker).unsqueeze(2)).squeeze(2).log_softmax(1)


def _heard(
    code: torch.Tensor,
    matrix: torch.Tensor,
    source: torch.Tensor,
    target: torch.Tensor,
    label: torch.Tensor,
    n_targets: int,
) -> Heard:
    """Along every edge goes its source's code, turned by the matrix of its label."""
    total = code.new_zeros(n_targets, matrix.shape[1])
    for k, turn in enumerate(matrix):
        edge = (label == k).nonzero().squeeze(1)
        total = total.index_add(0, target[edge], code.index_select(0, source[edge]) @ turn.t())
    return Heard(total, torch.bincount(target, minlength=n_targets).to(code.dtype))
