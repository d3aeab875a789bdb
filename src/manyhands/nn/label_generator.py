"""Networks that generate a crowd's missing labels, and that judge what was generated.

    generator       p(label | x, w, z, noise)       z = p(k | x), what the classifier says of the item
    discriminator   D = sigmoid(u_w' M_label v_x)   does this label of w on x look authentic?
    informer        q(k | x, w, label)              does it inform about the truth?  It shares u and v with D

Every first layer reads an item's part, a worker's part and a label's part, each of which is computed once and then
gathered by the pairs: what a step costs for each pair is one sum of vectors and one small layer.

Reference: Z. Chu and H. Wang (2021), Improve learning from crowds via generative augmentation, KDD.
"""

from __future__ import annotations

import copy
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import nn
from torch.nn import functional as F

from manyhands.annotations import Annotations
from manyhands.nn.item_worker_pairs import Pairs

_CODE = 20  # of a worker and of an item in the generator
_ITEM_HIDDEN, _HIDDEN = 64, 128
_DROPOUT = 0.5


class WorkerCodes(nn.Module):
    """(n_workers, size) a code for every worker: free, or read from what is known of him."""

    def __init__(
        self, n_workers: int, size: int, known: torch.Tensor | None = None, codes: torch.Tensor | None = None
    ) -> None:
        super().__init__()
        self.known: torch.Tensor | None
        self.register_buffer("known", known, persistent=False)
        self.read = None if known is None else nn.Linear(known.shape[1], size)
        if codes is None and known is None:
            codes = torch.randn(n_workers, size) / size**0.5
        self.free = None if codes is None else nn.Parameter(codes)

    def forward(self) -> torch.Tensor:
        if self.free is not None:
            return self.free
        assert self.read is not None
        codes: torch.Tensor = self.read(self.known)
        return codes


class GeneratorInputs(NamedTuple):
    """What the generator makes of items and workers before any pair is looked at."""

    row: torch.Tensor  # (n_rows, n_hidden)
    worker: torch.Tensor  # (n_workers, n_hidden)


class Generator(nn.Module):
    """Labels that workers would give: log p(label | x, w, z, noise).

    Parameters
    ----------
    n_features, n_classes, n_workers : sizes; rows of X of any shape are flattened
    known : (n_workers, n) what is known of the workers, or None
    sees_items, sees_workers : leave a part out; what is said of the truth, z, stays
    """

    def __init__(
        self,
        n_features: int,
        n_classes: int,
        n_workers: int,
        known: torch.Tensor | None = None,
        *,
        sees_items: bool = True,
        sees_workers: bool = True,
    ) -> None:
        super().__init__()
        self.n_classes, self.n_workers = n_classes, n_workers
        self.item = self.worker = self.codes = None
        if sees_items:
            read = (nn.Flatten(), nn.Linear(n_features, _ITEM_HIDDEN), nn.ReLU(), nn.Dropout(_DROPOUT))
            self.item = nn.Sequential(*read, nn.Linear(_ITEM_HIDDEN, _CODE), *_into_hidden(_CODE))
        if sees_workers:
            self.codes = WorkerCodes(n_workers, _CODE, known)
            self.worker = nn.Sequential(*_into_hidden(_CODE))
        self.truth = nn.Linear(n_classes, _HIDDEN)
        self.noise = nn.Linear(n_classes, _HIDDEN, bias=False)
        self.out = nn.Linear(_HIDDEN, n_classes)

    def inputs(self, x: torch.Tensor) -> GeneratorInputs:
        """What does not depend on z: it is kept while only the classifier learns."""
        row = x.new_zeros(len(x), _HIDDEN) if self.item is None else self.item(x)
        if self.worker is None or self.codes is None:
            return GeneratorInputs(row, x.new_zeros(self.n_workers, _HIDDEN))
        return GeneratorInputs(row, self.worker(self.codes()))

    def forward(self, inputs: GeneratorInputs, z: torch.Tensor, pairs: Pairs, noise: torch.Tensor) -> torch.Tensor:
        """(n_pairs, n_classes) log-probabilities, given z (n_rows, n_classes) and noise.

        Noise is (n_pairs, n_classes), or one draw (n_classes,) for all of them, which is cheaper.
        """
        row, added = inputs.row + self.truth(z), self.noise(noise)
        row = row + added if noise.ndim == 1 else row
        hidden = row.index_select(0, pairs.row) + inputs.worker.index_select(0, pairs.worker)
        hidden = hidden if noise.ndim == 1 else hidden + added
        logits: torch.Tensor = self.out(F.relu(hidden))
        return logits.log_softmax(1)

    def draw_noise(self, pairs: Pairs) -> torch.Tensor:
        return torch.randn(len(pairs.row), self.n_classes, device=pairs.row.device)

    def for_all(self, place: torch.Tensor, known: torch.Tensor | None = None) -> Generator:
        """The same for the workers whose numbers here are `place`, with codes of their own.

        -1 is someone not met before: `known` (n_places, n) tells of him where workers are known by features; else he is
        an average worker.
        """
        wider = copy.deepcopy(self)
        wider.n_workers, place = len(place), place.to(next(self.parameters()).device)
        if self.codes is not None:
            code = self.codes().detach()
            code = torch.cat([code, code.mean(0, keepdim=True)])[place]
            if self.codes.read is not None and known is not None:
                code = self.codes.read(known.to(code.device)).detach()
            wider.codes = WorkerCodes(len(code), code.shape[1], codes=code)
        return wider


class GeneratorBehind(nn.Module):
    """A classifier, with the generator that goes with it; called, it is the classifier."""

    def __init__(self, network: nn.Module, generator: Generator) -> None:
        super().__init__()
        self.network, self.generator = network, generator

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.network(x)
        return logits

    def proba(self, x: torch.Tensor) -> torch.Tensor:
        """(n_rows, n_classes) z, from which the generator goes on."""
        return self(x).softmax(1)

    @property
    def device(self) -> torch.device:
        return next(self.parameters()).device


class Seen(NamedTuple):
    """What the discriminator makes of items, workers and labels before any pair is looked at."""

    worker: torch.Tensor  # (n_workers, size) u
    item: torch.Tensor  # (n_rows, size) v
    label: torch.Tensor  # (n_classes, size, size) M
    turned: torch.Tensor  # (n_rows, n_classes, size) M v


class Discriminator(nn.Module):
    """Whether a label looks authentic, and what it says of the truth.

    Parameters
    ----------
    n_features, n_classes, n_workers : sizes
    known : (n_workers, n) what is known of the workers, or None
    spread : (n_classes, n_classes) how much of each label's matrix every other label takes on, or None: none
    size : of the codes u and v
    """

    def __init__(
        self,
        n_features: int,
        n_classes: int,
        n_workers: int,
        known: torch.Tensor | None = None,
        *,
        spread: torch.Tensor | None = None,
        size: int = 60,
    ) -> None:
        super().__init__()
        self.codes = WorkerCodes(n_workers, size, known)
        self.item = nn.Sequential(nn.Flatten(), nn.Linear(n_features, _HIDDEN), nn.ReLU(), nn.Linear(_HIDDEN, size))
        self.dropout = nn.Dropout(_DROPOUT)
        self.matrix = nn.Parameter(torch.randn(n_classes, size, size) / size)
        self.spread: torch.Tensor | None
        self.register_buffer("spread", spread, persistent=False)
        self.from_worker = nn.Sequential(*_into_hidden(size))
        self.from_item = nn.Sequential(*_into_hidden(size))
        self.from_label = nn.Sequential(nn.Flatten(), nn.Linear(size * size, size), nn.ReLU(), *_into_hidden(size))
        self.out = nn.Linear(_HIDDEN, n_classes)

    def see(self, x: torch.Tensor) -> Seen:
        worker, item = self.dropout(self.codes()), self.dropout(self.item(x))
        label: torch.Tensor = self.matrix
        if self.spread is not None:
            label = label + torch.einsum("cd,dij->cij", self.spread, label)
        return Seen(worker, item, label, torch.einsum("cij,nj->nci", label, item))

    def logits(self, seen: Seen, pairs: Pairs) -> torch.Tensor:
        """(n_pairs, n_classes) u' M_c v for every class c; the sigmoids of a row need not sum to 1."""
        turned, worker = seen.turned.index_select(0, pairs.row), seen.worker.index_select(0, pairs.worker)
        return torch.bmm(turned, worker.unsqueeze(2)).squeeze(2)

    def logit(self, seen: Seen, pairs: Pairs, label: torch.Tensor) -> torch.Tensor:
        """(n_pairs,) of these labels alone."""
        n_classes, size = seen.turned.shape[1:]
        turned = seen.turned.view(-1, size).index_select(0, pairs.row * n_classes + label)
        return (turned * seen.worker.index_select(0, pairs.worker)).sum(1)

    def log_truth(self, seen: Seen, pairs: Pairs, label: torch.Tensor) -> torch.Tensor:
        """(n_pairs, n_classes) log q(k | x, w, label): the informer."""
        worker, item, said = self.from_worker(seen.worker), self.from_item(seen.item), self.from_label(seen.label)
        hidden = worker.index_select(0, pairs.worker) + item.index_select(0, pairs.row) + said.index_select(0, label)
        logits: torch.Tensor = self.out(F.relu(hidden))
        return logits.log_softmax(1)


def label_spread(annotations: Annotations) -> npt.NDArray[np.float64]:
    """(n_classes, n_classes) (A + I) / 2; row c of A says which labels others gave to items that someone called c.

    A label that never met another one keeps to itself.
    """
    n_classes = annotations.n_classes
    votes = np.zeros((annotations.n_items, n_classes))
    np.add.at(votes, (annotations.item, annotations.label), 1.0)
    together = votes.T @ votes
    np.fill_diagonal(together, together.diagonal() - votes.sum(axis=0))  # nobody meets himself
    total = together.sum(axis=1, keepdims=True)
    share = np.divide(together, total, out=np.eye(n_classes), where=total > 0)
    return np.asarray((share + np.eye(n_classes)) / 2)


def _into_hidden(size: int) -> tuple[nn.Module, ...]:
    """A code, made as long as any other, as its part of a hidden layer.

    Layer norm stands where the authors' code has batch norm: it is the same in training and at rest, so that the
    ratios of probabilities before and after a step are those of the step alone; and a single pair is enough for it.
    """
    return nn.LayerNorm(size, elementwise_affine=False), nn.Linear(size, _HIDDEN, bias=False)
