"""A network in two parts, embedding G and last layer FC, and a decoder Q from embeddings back to rows of X."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from manyhands.exceptions import TrainingError
from manyhands.features import Index, Rows
from manyhands.nn.backbones import mlp
from manyhands.nn.inference import as_tensor, outputs
from manyhands.nn.train import descend


class EmbeddingNetwork(nn.Module):
    """Classifier F = head(body(x)) with an embedding body(x) and a linear last layer.

    Parameters
    ----------
    body : torch.nn.Module
        From rows of X to embeddings (G in the paper).
    embedding_size : int
        Size of an embedding.
    n_classes : int
        Number of logits.
    """

    def __init__(self, body: nn.Module, embedding_size: int, n_classes: int) -> None:
        super().__init__()
        self.body, self.head = body, nn.Linear(embedding_size, n_classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the logits of rows of X, of shape (n_rows, n_classes)."""
        logits: torch.Tensor = self.head(self.body(x))
        return logits

    @torch.no_grad()
    def embed_and_classify(self, rows: Rows) -> tuple[torch.Tensor, torch.Tensor]:
        """Return embeddings and class log-probabilities of all rows, in evaluation mode, on the CPU.

        Parameters
        ----------
        rows : Rows
            Features.

        Returns
        -------
        embedding : torch.Tensor of float32, shape (n_rows, embedding_size)
        log_proba : torch.Tensor of float64, shape (n_rows, n_classes)
        """
        embedding = outputs(self.body, rows).float()
        if not bool(embedding.isfinite().all()):
            raise TrainingError("The network's embeddings are no longer finite; lower learning_rate or standardise X.")
        logits = self.head(embedding.to(self.head.weight.device)).cpu().double()
        return embedding, logits.log_softmax(1)

    def logits_of_both(self, x: torch.Tensor, embedding: torch.Tensor, decoder: Decoder | None) -> torch.Tensor:
        """Return the logits of real rows, followed by those of synthetic embeddings.

        Parameters
        ----------
        x : torch.Tensor of shape (n_real, ...)
            Real rows of X.
        embedding : torch.Tensor of shape (n_synthetic, embedding_size)
            Synthetic embeddings.
        decoder : Decoder or None
            Maps the embeddings to rows of X, which pass through the whole network; None applies the last layer to the
            embeddings directly.

        Returns
        -------
        torch.Tensor of shape (n_real + n_synthetic, n_classes)
        """
        if decoder is None:
            of_embedding: torch.Tensor = self.head(embedding)
            return torch.cat([self(x), of_embedding]) if len(x) else of_embedding
        with torch.no_grad():
            decoded = decoder(embedding)
        logits: torch.Tensor = self(torch.cat([x, decoded]))
        return logits


class Decoder(nn.Module):
    """Multi-layer perceptron from embeddings to rows of X (Q in the paper), with the network's layers in reverse.

    Parameters
    ----------
    embedding_size : int
        Size of an embedding.
    hidden : sequence of int
        Sizes of the hidden layers of the network.
    row_shape : tuple of int
        Shape of one row of X.
    """

    def __init__(self, embedding_size: int, hidden: Sequence[int], row_shape: tuple[int, ...]) -> None:
        super().__init__()
        self.row_shape = row_shape
        self.layers = mlp((embedding_size, *reversed(hidden), math.prod(row_shape)), dropout=0)

    def forward(self, embedding: torch.Tensor) -> torch.Tensor:
        """Return the decoded rows, of shape (n, *row_shape)."""
        rows: torch.Tensor = self.layers(embedding)
        return rows.reshape(len(rows), *self.row_shape)


def reconstruction_step(
    decoder: Decoder, optimizer: torch.optim.Optimizer, embedding: torch.Tensor, x: torch.Tensor
) -> torch.Tensor:
    """Take one optimisation step on the mean squared reconstruction error.

    Parameters
    ----------
    decoder : Decoder
        The decoder.
    optimizer : torch.optim.Optimizer
        Optimizer of the decoder, and of the network where that is trained too (as an autoencoder).
    embedding : torch.Tensor of shape (n, embedding_size)
        Embeddings of the rows.
    x : torch.Tensor of shape (n, ...)
        The rows to reconstruct.

    Returns
    -------
    torch.Tensor
        The loss before the step.
    """
    return descend(optimizer, F.mse_loss(decoder(embedding), x))


def refit_decoder(
    decoder: Decoder,
    optimizer: torch.optim.Optimizer,
    embedding: torch.Tensor,
    rows: Rows,
    order: Index,
    batch_size: int,
) -> None:
    """Train the decoder for one epoch on the embeddings of a network whose weights have changed.

    Parameters
    ----------
    decoder : Decoder
        The decoder; the network stays as it is.
    optimizer : torch.optim.Optimizer
        Optimizer of the decoder.
    embedding : torch.Tensor of shape (n_rows, embedding_size)
        Embeddings of all rows.
    rows : Rows
        Features.
    order : ndarray of int
        Rows to use, in the order of the mini-batches.
    batch_size : int
        Rows per mini-batch.
    """
    device = next(decoder.parameters()).device
    for batch in np.split(order, range(batch_size, len(order), batch_size)):
        reconstruction_step(decoder, optimizer, embedding[batch].to(device), as_tensor(rows, batch, device))
