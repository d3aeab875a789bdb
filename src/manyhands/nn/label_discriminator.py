"""CrowdInG's discriminator and auxiliary network, which score generated annotations.

    discriminator       D(label | x, w) = sigmoid(u_w' M_label v_x)    is the annotation authentic?
    auxiliary network   q(k | x, w, label)                             how informative is it about the true class?

The auxiliary network gives the mutual-information term: E log q(k | x, w, label) + H(z) is a lower bound of the mutual
information of a generated annotation and the true class. It shares the embeddings u and v and the matrices M with the
discriminator. With label correlation the matrices are smoothed over labels that occur together (`label_adjacency`).

As printed, u and v are linear functions of worker and item, and the smoothed matrices are D^-1/2 (A + I) D^-1/2 M W.
The authors' code has a perceptron for v, rows of A + I that sum to 1, a residual M, and no W; both forms are here. W is
read as one matrix of the size of an M_c, which multiplies each of them: over flattened matrices it would have the
square of as many entries.

References
----------
Z. Chu and H. Wang (2021), Improve learning from crowds via generative augmentation, KDD.

X. Chen et al. (2016), InfoGAN: Interpretable representation learning by information maximizing generative adversarial
nets, NeurIPS: the variational bound of mutual information.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import nn
from torch.nn import functional as F

from manyhands.annotations import Annotations
from manyhands.nn.item_worker_pairs import Pairs
from manyhands.nn.label_generator import DROPOUT, HIDDEN, WorkerEmbedding, into_hidden


class DiscriminatorInputs(NamedTuple):
    """What the discriminator computes of items, workers and labels before it is applied to pairs.

    Attributes
    ----------
    worker : tensor of shape (n_workers, size)
        Embeddings u of the workers.
    item : tensor of shape (n_rows, size)
        Embeddings v of the items.
    label : tensor of shape (n_classes, size, size)
        Matrices M of the labels, smoothed by label correlation.
    product : tensor of shape (n_rows, n_classes, size)
        M_c v for every item and label.
    """

    worker: torch.Tensor
    item: torch.Tensor
    label: torch.Tensor
    product: torch.Tensor


class Discriminator(nn.Module):
    """Discriminator of authentic and generated annotations, with the auxiliary network of the mutual-information term.

    Parameters
    ----------
    n_features : int
        Number of features; rows of X of any shape are flattened.
    n_classes : int
        Number of classes.
    n_workers : int
        Number of workers.
    known : tensor of shape (n_workers, n) or None, default=None
        Features of the workers, or None.
    spread : tensor of shape (n_classes, n_classes) or None, default=None
        Normalised adjacency of labels (see `label_adjacency`). None leaves the matrices as they are.
    residual : bool, default=False
        Whether the smoothed matrices are M + spread M; otherwise they are (spread M) W, where W begins as the identity.
    perceptron : bool, default=False
        Whether the item embedding v is a perceptron with one hidden layer; otherwise it is linear.
    size : int, default=60
        Size of the embeddings u and v.
    """

    def __init__(
        self,
        n_features: int,
        n_classes: int,
        n_workers: int,
        known: torch.Tensor | None = None,
        *,
        spread: torch.Tensor | None = None,
        residual: bool = False,
        perceptron: bool = False,
        size: int = 60,
    ) -> None:
        super().__init__()
        self.codes = WorkerEmbedding(n_workers, size, known)
        hidden = (nn.Linear(n_features, HIDDEN), nn.ReLU()) if perceptron else ()
        self.item = nn.Sequential(nn.Flatten(), *hidden, nn.Linear(HIDDEN if perceptron else n_features, size))
        self.dropout = nn.Dropout(DROPOUT)
        self.matrix = nn.Parameter(torch.randn(n_classes, size, size) / size)
        self.spread: torch.Tensor | None
        self.register_buffer("spread", spread, persistent=False)
        self.mix = None if spread is None or residual else nn.Parameter(torch.eye(size))
        self.from_worker = nn.Sequential(*into_hidden(size))
        self.from_item = nn.Sequential(*into_hidden(size))
        self.from_label = nn.Sequential(nn.Flatten(), nn.Linear(size * size, size), nn.ReLU(), *into_hidden(size))
        self.out = nn.Linear(HIDDEN, n_classes)

    def inputs(self, x: torch.Tensor) -> DiscriminatorInputs:
        """Embeddings and matrices, computed once for a mini-batch.

        Parameters
        ----------
        x : tensor of shape (n_rows, ...)
            Features.

        Returns
        -------
        DiscriminatorInputs
            Of these rows, all workers and all labels.
        """
        worker, item = self.dropout(self.codes()), self.dropout(self.item(x))
        label = self._matrices()
        return DiscriminatorInputs(worker, item, label, torch.einsum("cij,nj->nci", label, item))

    def _matrices(self) -> torch.Tensor:
        """(n_classes, size, size) the matrices M of the labels, smoothed by label correlation."""
        if self.spread is None:
            return self.matrix
        smoothed = torch.einsum("cd,dij->cij", self.spread, self.matrix)
        return self.matrix + smoothed if self.mix is None else smoothed @ self.mix

    def logits(self, seen: DiscriminatorInputs, pairs: Pairs) -> torch.Tensor:
        """Logits of D for every label of each pair.

        Parameters
        ----------
        seen : DiscriminatorInputs
            What `inputs` returned.
        pairs : Pairs
            Pairs of these rows and workers.

        Returns
        -------
        tensor of shape (n_pairs, n_classes)
            u' M_c v for every class c; the sigmoids of a row need not sum to 1.
        """
        product, worker = seen.product.index_select(0, pairs.row), seen.worker.index_select(0, pairs.worker)
        return torch.bmm(product, worker.unsqueeze(2)).squeeze(2)

    def logit(self, seen: DiscriminatorInputs, pairs: Pairs, label: torch.Tensor) -> torch.Tensor:
        """Logits of D for one label of each pair.

        Parameters
        ----------
        seen : DiscriminatorInputs
            What `inputs` returned.
        pairs : Pairs
            Pairs of these rows and workers.
        label : tensor of int64 of shape (n_pairs,)
            Their labels.

        Returns
        -------
        tensor of shape (n_pairs,)
            u' M_label v.
        """
        n_classes, size = seen.product.shape[1:]
        product = seen.product.view(-1, size).index_select(0, pairs.row * n_classes + label)
        return (product * seen.worker.index_select(0, pairs.worker)).sum(1)

    def log_truth(self, seen: DiscriminatorInputs, pairs: Pairs, label: torch.Tensor) -> torch.Tensor:
        """The auxiliary network: log-probabilities of the true class, given an annotation.

        Parameters
        ----------
        seen : DiscriminatorInputs
            What `inputs` returned.
        pairs : Pairs
            Pairs of these rows and workers.
        label : tensor of int64 of shape (n_pairs,)
            Their labels.

        Returns
        -------
        tensor of shape (n_pairs, n_classes)
            log q(k | x, w, label).
        """
        worker, item, given = self.from_worker(seen.worker), self.from_item(seen.item), self.from_label(seen.label)
        hidden = worker.index_select(0, pairs.worker) + item.index_select(0, pairs.row) + given.index_select(0, label)
        logits: torch.Tensor = self.out(F.relu(hidden))
        return logits.log_softmax(1)


def label_adjacency(annotations: Annotations, *, symmetric: bool = True) -> npt.NDArray[np.float64]:
    """Normalised adjacency of labels, from their co-occurrence on items.

    A_cd is the number of pairs of labels c and d on the same item; two equal labels of an item are such a pair too.

    Parameters
    ----------
    annotations : Annotations
        The labels.
    symmetric : bool, default=True
        Whether A + I is normalised as D^-1/2 (A + I) D^-1/2, where D has its row sums. Otherwise the rows of A are
        divided by their sums first, and those of A + I by 2.

    Returns
    -------
    array of shape (n_classes, n_classes)
        A symmetric matrix, or one whose rows sum to 1. A label that never occurs together with another one has a row
        of the identity.
    """
    n_classes = annotations.n_classes
    votes = np.zeros((annotations.n_items, n_classes))
    np.add.at(votes, (annotations.item, annotations.label), 1.0)
    together = votes.T @ votes
    np.fill_diagonal(together, together.diagonal() - votes.sum(axis=0))  # without pairs of a label with itself
    total = together.sum(axis=1, keepdims=True)
    if symmetric:
        scale = 1 / np.sqrt(total + 1)
        return np.asarray(scale * (together + np.eye(n_classes)) * scale.T)
    share = np.divide(together, total, out=np.eye(n_classes), where=total > 0)
    return np.asarray((share + np.eye(n_classes)) / 2)
