"""CrowdInG's generator: the distribution of a worker's label on an item, for labels that workers did not give.

    generator       p_G(label | x, w, z, noise),     z = p(k | x) of the classifier,  noise ~ N(0, I)

The first layer reads an item's part, a worker's part, z and the noise. Each part is computed once per item or worker
and then gathered by the pairs, so that a pair costs one sum of vectors and one small layer.

References
----------
Z. Chu and H. Wang (2021), Improve learning from crowds via generative augmentation, KDD.
"""

from __future__ import annotations

import copy
import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import nn
from torch.nn import functional as F

from manyhands.annotations import Annotations
from manyhands.features import Rows
from manyhands.nn.batches import AnnotationBatches
from manyhands.nn.inference import as_tensor
from manyhands.nn.item_worker_pairs import Pairs

EMBEDDING_SIZE = 20  # of a worker and of an item in the generator
HIDDEN = 128  # units of hidden layers
DROPOUT = 0.5
_ITEM_HIDDEN = 64
_DRAWS = 8  # draws of the noise over which the likelihood of a label is averaged


class WorkerEmbedding(nn.Module):
    """An embedding of every worker: free parameters, or a linear function of the workers' features.

    Parameters
    ----------
    n_workers : int
        Number of workers.
    size : int
        Size of an embedding.
    known : tensor of shape (n_workers, n) or None, default=None
        Features of the workers; None where there are none.
    codes : tensor of shape (n_workers, size) or None, default=None
        Initial embeddings, which are then free parameters. None draws them from N(0, 1 / size), unless there are
        features.
    """

    def __init__(
        self, n_workers: int, size: int, known: torch.Tensor | None = None, codes: torch.Tensor | None = None
    ) -> None:
        super().__init__()
        self.known: torch.Tensor | None
        self.register_buffer("known", known, persistent=False)
        self.projection = None if known is None else nn.Linear(known.shape[1], size)
        if codes is None and known is None:
            codes = torch.randn(n_workers, size) / size**0.5
        self.free = None if codes is None else nn.Parameter(codes)

    def forward(self) -> torch.Tensor:
        """(n_workers, size) the embeddings."""
        if self.free is not None:
            return self.free
        assert self.projection is not None
        codes: torch.Tensor = self.projection(self.known)
        return codes


class GeneratorInputs(NamedTuple):
    """The parts of the generator's hidden layer that depend on an item or a worker alone.

    Attributes
    ----------
    row : tensor of shape (n_rows, n_hidden)
        Part of each item.
    worker : tensor of shape (n_workers, n_hidden)
        Part of each worker.
    """

    row: torch.Tensor
    worker: torch.Tensor


class Generator(nn.Module):
    """Distribution of the label that a worker would give to an item: log p_G(label | x, w, z, noise).

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
    sees_items : bool, default=True
        Whether the distribution depends on x other than through z.
    sees_workers : bool, default=True
        Whether it depends on the worker.
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
            read = (nn.Flatten(), nn.Linear(n_features, _ITEM_HIDDEN), nn.ReLU(), nn.Dropout(DROPOUT))
            self.item = nn.Sequential(*read, nn.Linear(_ITEM_HIDDEN, EMBEDDING_SIZE), *into_hidden(EMBEDDING_SIZE))
        if sees_workers:
            self.codes = WorkerEmbedding(n_workers, EMBEDDING_SIZE, known)
            self.worker = nn.Sequential(*into_hidden(EMBEDDING_SIZE))
        self.truth = nn.Linear(n_classes, HIDDEN)
        self.noise = nn.Linear(n_classes, HIDDEN, bias=False)
        self.out = nn.Linear(HIDDEN, n_classes)

    def inputs(self, x: torch.Tensor) -> GeneratorInputs:
        """The parts that do not depend on z; they stay valid while only the classifier learns.

        Parameters
        ----------
        x : tensor of shape (n_rows, ...)
            Features.

        Returns
        -------
        GeneratorInputs
            Parts of these rows and of all workers.
        """
        row = x.new_zeros(len(x), HIDDEN) if self.item is None else self.item(x)
        if self.worker is None or self.codes is None:
            return GeneratorInputs(row, x.new_zeros(self.n_workers, HIDDEN))
        return GeneratorInputs(row, self.worker(self.codes()))

    def forward(self, inputs: GeneratorInputs, z: torch.Tensor, pairs: Pairs, noise: torch.Tensor) -> torch.Tensor:
        """Log-probabilities of the labels of pairs.

        Parameters
        ----------
        inputs : GeneratorInputs
            Parts of items and workers.
        z : tensor of shape (n_rows, n_classes)
            Class probabilities of the items.
        pairs : Pairs
            Pairs of these rows and workers.
        noise : tensor of shape (n_pairs, n_classes) or (n_classes,)
            Noise of each pair, or one draw for all of them, which is cheaper.

        Returns
        -------
        tensor of shape (n_pairs, n_classes)
            log p_G(label | x, w, z, noise).
        """
        row, added = inputs.row + self.truth(z), self.noise(noise)
        row = row + added if noise.ndim == 1 else row
        hidden = row.index_select(0, pairs.row) + inputs.worker.index_select(0, pairs.worker)
        hidden = hidden if noise.ndim == 1 else hidden + added
        logits: torch.Tensor = self.out(F.relu(hidden))
        return logits.log_softmax(1)

    def draw_noise(self, pairs: Pairs) -> torch.Tensor:
        """(n_pairs, n_classes) standard normal noise for each pair."""
        return torch.randn(len(pairs.row), self.n_classes, device=pairs.row.device)

    def for_workers(self, place: torch.Tensor, known: torch.Tensor | None = None) -> Generator:
        """A copy of the generator for another list of workers, with free embeddings.

        Parameters
        ----------
        place : tensor of int64 of shape (n_places,)
            Code of each new worker in this generator; -1 for a worker who is not in it, and who gets the mean
            embedding.
        known : tensor of shape (n_places, n) or None, default=None
            Features of the new workers, from which embeddings are computed where this generator reads features.

        Returns
        -------
        Generator
            With n_places workers.
        """
        copied = copy.deepcopy(self)
        copied.n_workers, place = len(place), place.to(next(self.parameters()).device)
        if self.codes is not None:
            code = self.codes().detach()
            code = torch.cat([code, code.mean(0, keepdim=True)])[place]
            if self.codes.projection is not None and known is not None:
                code = self.codes.projection(known.to(code.device)).detach()
            copied.codes = WorkerEmbedding(len(code), code.shape[1], codes=code)
        return copied


class ClassifierWithGenerator(nn.Module):
    """A classifier together with the generator that was trained with it; called, it is the classifier.

    Parameters
    ----------
    network : torch.nn.Module
        The classifier, from features to (n_rows, n_classes) logits.
    generator : Generator
        The generator.
    """

    def __init__(self, network: nn.Module, generator: Generator) -> None:
        super().__init__()
        self.network, self.generator = network, generator

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(n_rows, n_classes) the classifier's logits."""
        logits: torch.Tensor = self.network(x)
        return logits

    def proba(self, x: torch.Tensor) -> torch.Tensor:
        """(n_rows, n_classes) the classifier's probabilities z, an input of the generator."""
        return self(x).softmax(1)

    @torch.no_grad()
    def label_log_likelihoods(self, rows: Rows, annotations: Annotations) -> npt.NDArray[np.float64]:
        """Log p_G(label | x, worker, z) of labels, averaged over the generator's noise; `score` uses it.

        Parameters
        ----------
        rows : Rows
            Features of the items.
        annotations : Annotations
            Labels of these items, by workers of the generator and in its codes.

        Returns
        -------
        array of shape (n_annotations,)
        """
        self.eval()
        drawn = torch.randn(_DRAWS, self.generator.n_classes, generator=torch.Generator().manual_seed(0))
        found = [np.zeros(0)]
        for batch in AnnotationBatches(annotations, 1024, device=self.device):
            x, pairs = as_tensor(rows, batch.item, self.device), Pairs(batch.row, batch.worker)
            inputs, z, label = self.generator.inputs(x), self.proba(x), batch.label.unsqueeze(1)
            each = [self.generator(inputs, z, pairs, noise).gather(1, label) for noise in drawn.to(self.device)]
            log_p = torch.logsumexp(torch.cat(each, 1).double(), 1) - math.log(_DRAWS)
            found.append(log_p.cpu().numpy())
        return np.concatenate(found)

    @property
    def device(self) -> torch.device:
        """Device of the weights."""
        return next(self.parameters()).device


def into_hidden(size: int) -> tuple[nn.Module, ...]:
    """Layers from an embedding to its part of a hidden layer: layer normalisation and a linear layer without bias.

    The authors' code has batch normalisation instead. Layer normalisation is the same in training and evaluation mode,
    so that ratios of probabilities before and after a step are those of the step alone, and it works for a single pair.

    Parameters
    ----------
    size : int
        Size of the embedding.

    Returns
    -------
    tuple of torch.nn.Module
        Layers from (n, size) to (n, 128).
    """
    return nn.LayerNorm(size, elementwise_affine=False), nn.Linear(size, HIDDEN, bias=False)
