"""Sampling network: predicts the losses of tuplets, so that hard ones are found among many candidates.

    predicted loss(T) = v . relu( sum_p W_p S(e_p) + b ) + c

S is one network for all items, followed by a relu, and p the position in the tuplet. This is a perceptron on the
concatenation of S(e_1), S(e_2), ..., whose first layer is computed once per item rather than once per tuplet.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

Codes = npt.NDArray[np.intp]


class TupletSampler(nn.Module):
    """Sampling network.

    Parameters
    ----------
    network : torch.nn.Module
        From the features of an item to S, of length `size`.
    size : int
        Length of S.
    n_positions : int
        Items in a tuplet.
    """

    def __init__(self, network: nn.Module, size: int, n_positions: int) -> None:
        super().__init__()
        self.network, self.size, self.n_positions = network, size, n_positions
        self.parts = nn.Linear(size, n_positions * size)
        self.head = nn.Linear(size, 1)

    def forward(self, x: torch.Tensor, tuplets: Codes) -> torch.Tensor:
        """Return the predicted loss of each tuplet.

        Parameters
        ----------
        x : torch.Tensor of shape (n_rows, ...)
            Features of items.
        tuplets : ndarray of int, shape (n_tuplets, n_positions)
            Rows of x.

        Returns
        -------
        torch.Tensor of shape (n_tuplets,)
        """
        part = self.parts(torch.relu(self.network(x))).view(len(x), self.n_positions, self.size)
        joined = part[tuplets, np.arange(tuplets.shape[1])].sum(1)
        predicted: torch.Tensor = self.head(torch.relu(joined)).squeeze(1)
        return predicted

    @torch.no_grad()
    def hardest(self, x: torch.Tensor, tuplets: Codes, n_wanted: int) -> Codes:
        """Return the tuplets with the largest predicted losses.

        Parameters
        ----------
        x : torch.Tensor of shape (n_rows, ...)
            Features of items.
        tuplets : ndarray of int, shape (n_tuplets, n_positions)
            Rows of x.
        n_wanted : int
            Number of tuplets to select.

        Returns
        -------
        ndarray of int, shape (min(n_wanted, n_tuplets),)
            Indices of tuplets, by decreasing predicted loss.
        """
        best = self(x, tuplets).topk(min(n_wanted, len(tuplets))).indices
        return np.asarray(best.cpu().numpy())
