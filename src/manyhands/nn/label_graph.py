"""Graph network that predicts missing labels: graph convolutional matrix completion with one edge type per label.

Items and workers are the nodes of a bipartite graph, and a label k of worker w on item i is an edge of type k.

    messages to item i      m_i = mean over its labels (w, k) of A_k c_w          c_w a free embedding of worker w
    messages to worker w    m_w = mean over their labels (i, k) of B_k c_i        c_i = relu(E x_i)
    embeddings (encoder)    v_i = relu(V relu(m_i) + V' c_i),   u_w = relu(U relu(m_w) + U' c_w)
    labels (decoder)        p(k | i, w) = softmax_k(u_w' Q_k v_i)

Time and memory are proportional to edges and nodes, never to items x workers.

References
----------
R. van den Berg, T. Kipf and M. Welling (2018), Graph convolutional matrix completion, KDD Deep Learning Day.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import nn
from torch.nn import functional as F

from manyhands.nn.item_worker_pairs import Pairs
from manyhands.nn.label_generator import WorkerEmbedding


class Edges(NamedTuple):
    """Labels as edges between rows of X and workers.

    Attributes
    ----------
    row : tensor of int64 of shape (n_edges,)
        Rows.
    worker : tensor of int64 of shape (n_edges,)
        Worker codes.
    label : tensor of int64 of shape (n_edges,)
        Labels: the types of the edges.
    """

    row: torch.Tensor
    worker: torch.Tensor
    label: torch.Tensor

    def select(self, which: torch.Tensor) -> Edges:
        """Select the edges under a mask of shape (n_edges,)."""
        return Edges(self.row[which], self.worker[which], self.label[which])


class MessageSum(NamedTuple):
    """Sum and number of the messages to each node; both add up over parts of a graph.

    Attributes
    ----------
    total : tensor of shape (n_nodes, units)
        Sum of messages.
    degree : tensor of shape (n_nodes,)
        Number of messages.
    """

    total: torch.Tensor
    degree: torch.Tensor

    def mean(self) -> torch.Tensor:
        """(n_nodes, units) the mean message of each node; 0 where there is none."""
        return self.total / self.degree.clamp(min=1).unsqueeze(1)


class LabelGraph(nn.Module):
    """Encoder and decoder of the graph of labels.

    Parameters
    ----------
    n_features : int
        Number of features; rows of X of any shape are flattened.
    n_classes : int
        Number of classes: types of edges.
    n_workers : int
        Number of workers.
    units : int, default=64
        Size of every embedding.
    dropout : float, default=0.5
        Dropout probability of embeddings in training.
    """

    def __init__(
        self, n_features: int, n_classes: int, n_workers: int, *, units: int = 64, dropout: float = 0.5
    ) -> None:
        super().__init__()
        self.n_workers = n_workers
        self.item = nn.Sequential(nn.Flatten(), nn.Linear(n_features, units), nn.ReLU())
        self.worker = WorkerEmbedding(n_workers, units)
        self.to_item = nn.Parameter(torch.randn(n_classes, units, units) / units**0.5)
        self.to_worker = nn.Parameter(torch.randn(n_classes, units, units) / units**0.5)
        self.item_message, self.item_own = nn.Linear(units, units), nn.Linear(units, units, bias=False)
        self.worker_message, self.worker_own = nn.Linear(units, units), nn.Linear(units, units, bias=False)
        self.edge = nn.Parameter(torch.randn(n_classes, units, units) / units)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: torch.Tensor, edges: Edges, pairs: Pairs) -> torch.Tensor:
        """Log-probabilities of the labels of pairs, in the graph of these rows and edges.

        Parameters
        ----------
        x : tensor of shape (n_rows, ...)
            Features.
        edges : Edges
            Known labels.
        pairs : Pairs
            Pairs to predict; their own labels should not be among the edges.

        Returns
        -------
        tensor of shape (n_pairs, n_classes)
            log p(k | i, w).
        """
        own = self.dropout(self.item(x))
        worker = self.worker_embedding(self.messages_to_workers(own, edges))
        return self.log_label(self._item_embedding(own, edges), worker, pairs)

    def messages_to_workers(self, own: torch.Tensor, edges: Edges) -> MessageSum:
        """Messages from items to workers along these edges.

        Parameters
        ----------
        own : tensor of shape (n_rows, units)
            Embeddings c of the items' features.
        edges : Edges
            Labels on these items.

        Returns
        -------
        MessageSum
            For each of the n_workers workers.
        """
        return _messages(own, self.to_worker, edges.row, edges.worker, edges.label, self.n_workers)

    def worker_embedding(self, messages: MessageSum) -> torch.Tensor:
        """(n_workers, units) the workers' embeddings u, from the messages to them."""
        own = self.dropout(self.worker())
        return F.relu(self.worker_message(self.dropout(F.relu(messages.mean()))) + self.worker_own(own))

    def item_embedding(self, x: torch.Tensor, edges: Edges) -> torch.Tensor:
        """(n_rows, units) the items' embeddings v, from features (n_rows, ...) and the labels on them."""
        return self._item_embedding(self.dropout(self.item(x)), edges)

    def _item_embedding(self, own: torch.Tensor, edges: Edges) -> torch.Tensor:
        """`item_embedding` from the embeddings c of the features."""
        messages = _messages(self.dropout(self.worker()), self.to_item, edges.worker, edges.row, edges.label, len(own))
        return F.relu(self.item_message(self.dropout(F.relu(messages.mean()))) + self.item_own(own))

    def log_label(self, item: torch.Tensor, worker: torch.Tensor, pairs: Pairs) -> torch.Tensor:
        """Decoder: log-probabilities of the labels of pairs.

        Parameters
        ----------
        item : tensor of shape (n_rows, units)
            Embeddings v of the items.
        worker : tensor of shape (n_workers, units)
            Embeddings u of the workers.
        pairs : Pairs
            Pairs to predict.

        Returns
        -------
        tensor of shape (n_pairs, n_classes)
            log p(k | i, w).
        """
        product = torch.einsum("cij,nj->nci", self.edge, item).index_select(0, pairs.row)
        return torch.bmm(product, worker.index_select(0, pairs.worker).unsqueeze(2)).squeeze(2).log_softmax(1)


def _messages(
    embedding: torch.Tensor,
    matrix: torch.Tensor,
    source: torch.Tensor,
    target: torch.Tensor,
    label: torch.Tensor,
    n_targets: int,
) -> MessageSum:
    """Messages to n_targets nodes: along every edge, its source's embedding times the matrix of its label."""
    total = embedding.new_zeros(n_targets, matrix.shape[1])
    for k, weight in enumerate(matrix):
        edge = (label == k).nonzero().squeeze(1)
        total = total.index_add(0, target[edge], embedding.index_select(0, source[edge]) @ weight.t())
    return MessageSum(total, torch.bincount(target, minlength=n_targets).to(embedding.dtype))
