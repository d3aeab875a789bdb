"""A network that foretells the losses of tuplets, so that the hard ones among many can be told without trying them.

    hardness(T) = v . relu( sum_p W_p S(e_p) + b ) + c

S is one network for all items, with a relu behind it, and p the place in the tuplet. That is a perceptron on the
joined S(e_1), S(e_2), ..., whose first layer is computed once for each item instead of once for each tuplet that the
item is in.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

Codes = npt.NDArray[np.intp]


class TupletSampler(nn.Module):
    """Foretells the losses of tuplets.

    Parameters
    ----------
    network : from the features of an item to the `size` numbers of S
    n_places : items in a tuplet
    """

    def __init__(self, network: nn.Module, size: int, n_places: int) -> None:
        super().__init__()
        self.network, self.size, self.n_places = network, size, n_places
        self.parts = nn.Linear(size, n_places * size)
        self.head = nn.Linear(size, 1)

    def forward(self, x: torch.Tensor, tuplets: Codes) -> torch.Tensor:
        """(n_tuplets,) the loss foretold for tuplets (n_tuplets, n_places) of rows of x."""
        part = self.parts(torch.relu(self.network(x))).view(len(x), self.n_places, self.size)
        joined = part[tuplets, np.arange(tuplets.shape[1])].sum(1)
        predicted: torch.Tensor = self.head(torch.relu(joined)).squeeze(1)
        return predicted

    @torch.no_grad()
    def hardest(self, x: torch.Tensor, tuplets: Codes, n_wanted: int) -> Codes:
        """(n_wanted,) which of the tuplets are foretold the largest losses."""
        best = self(x, tuplets).topk(min(n_wanted, len(tuplets))).indices
        return np.asarray(best.cpu().numpy())
