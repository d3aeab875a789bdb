"""A network in two parts, embedding and last layer, and a decoder from embeddings back to rows of X."""

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
    """F = head(body(x)): logits, by way of an embedding from which a linear layer reads the classes."""

    def __init__(self, body: nn.Module, embedding_size: int, n_classes: int) -> None:
        super().__init__()
        self.body, self.head = body, nn.Linear(embedding_size, n_classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.head(self.body(x))
        return logits

    @torch.no_grad()
    def look(self, rows: Rows) -> tuple[torch.Tensor, torch.Tensor]:
        """(n_rows, embedding_size) embeddings, and (n_rows, n_classes) log-probabilities, at rest, on the CPU."""
        embedding = outputs(self.body, rows).float()
        if not bool(embedding.isfinite().all()):
            raise TrainingError("The network's embeddings are no longer finite; lower learning_rate or standardise X.")
        logits = self.head(embedding.to(self.head.weight.device)).cpu().double()
        return embedding, logits.log_softmax(1)

    def read(self, x: torch.Tensor, embedding: torch.Tensor, decoder: Decoder | None) -> torch.Tensor:
        """Logits of rows, and behind them of embeddings: decoded, or else read by the last layer alone."""
        if decoder is None:
            of_embedding: torch.Tensor = self.head(embedding)
            return torch.cat([self(x), of_embedding]) if len(x) else of_embedding
        with torch.no_grad():
            decoded = decoder(embedding)
        logits: torch.Tensor = self(torch.cat([x, decoded]))
        return logits


class Decoder(nn.Module):
    """From embeddings to rows of X, by a perceptron whose layers mirror those of the network."""

    def __init__(self, embedding_size: int, hidden: Sequence[int], row_shape: tuple[int, ...]) -> None:
        super().__init__()
        self.row_shape = row_shape
        self.layers = mlp((embedding_size, *reversed(hidden), math.prod(row_shape)), dropout=0)

    def forward(self, embedding: torch.Tensor) -> torch.Tensor:
        rows: torch.Tensor = self.layers(embedding)
        return rows.reshape(len(rows), *self.row_shape)


def learn_to_decode(
    decoder: Decoder, optimizer: torch.optim.Optimizer, embedding: torch.Tensor, x: torch.Tensor
) -> torch.Tensor:
    """One step toward decoding `embedding` into the rows `x`; the mean squared error before it.

    An embedding with a gradient learns too, if the optimizer knows the network it comes from.
    """
    return descend(optimizer, F.mse_loss(decoder(embedding), x))


def learn_again(
    decoder: Decoder,
    optimizer: torch.optim.Optimizer,
    embedding: torch.Tensor,
    rows: Rows,
    order: Index,
    batch_size: int,
) -> None:
    """Teach the decoder these embeddings of a network that has moved, a batch after the other in this order of rows."""
    device = next(decoder.parameters()).device
    for batch in np.split(order, range(batch_size, len(order), batch_size)):
        learn_to_decode(decoder, optimizer, embedding[batch].to(device), as_tensor(rows, batch, device))
