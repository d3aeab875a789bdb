"""CoNAL: a mistake is either common to all workers or the worker's own.

    p = softmax(network(x)),   omega_iw = sigmoid( <unit(V x_i), unit(u_w)> )   weight of the common noise
    logits of worker w = omega_iw p W_common + (1 - omega_iw) p W_w             logits are mixed, not probabilities
    loss = mean over observed labels of -log softmax(logits)[label]  -  penalty * sum_w ||W_w - W_common||_F

V consists of two linear layers without an activation between them. All matrices start at twice the identity, and the
penalty drives a worker's own matrix away from the common one. As both vectors have length one, omega lies between 0.27
and 0.73.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from manyhands._core.arrays import Array
from manyhands._core.randomness import Seed
from manyhands.classifiers.network import EVALUATED_ROWS, TrainingContext
from manyhands.classifiers.noise_layer import (
    NOISE_LAYER_CONSTRAINTS,
    FeatureNoiseModel,
    NoiseLayerClassifier,
    NoiseModel,
)
from manyhands.nn.batches import AnnotationBatches, Batch
from manyhands.nn.losses import log_softmax_at
from manyhands.nn.worker_layers import CrowdLogits
from manyhands.validation import Boolean, Constraint, Number


class CoNAL(NoiseLayerClassifier):
    """Crowd layer with a noise matrix common to all workers and one of each worker's own.

    Use it where many workers make the same mistakes, for instance because some items are ambiguous. The penalty sums
    over the workers of a mini-batch: its cost does not grow with the crowd, and workers without labels have no effect.

    Parameters
    ----------
    embedding : int, default=20
        Length of the vectors of items and workers whose product gives omega.
    embedding_hidden : int, default=128
        Size of the layer between an item's features and its vector.
    unit_items : bool, default=True
        Whether the items' vectors are normalised to length one; the workers' always are.
    penalty : float, default=1e-05
        Weight of the distance between the workers' matrices and the common one.
    init : str or Aggregator, default="identity"
        Initial layers: twice the identity, or the confusion matrices estimated by this aggregator.
    backbone : {"mlp", "convnet"} or callable, default="mlp"
        Network from features to logits: a multi-layer perceptron, a small convolutional network, or a function
        (n_features or row shape, n_classes) -> torch.nn.Module.
    hidden : tuple of int, default=(128,)
        Sizes of the hidden layers.
    dropout : float, default=0.5
        Dropout rate of the hidden layers.
    batch_norm : bool, default=False
        Whether hidden layers are batch-normalised.
    learning_rate : float, default=0.001
        Step size of Adam.
    weight_decay : float, default=0.0
        L2 penalty of Adam on all weights, those of noise layers included: `weight_decay` times the weights is added to
        their gradient.
    batch_size : int, default=64
        Items per mini-batch.
    max_epochs : int, default=50
        Maximal number of epochs.
    patience : int or None, default=10
        Early stopping: epochs without a higher held-out log-likelihood before training stops; None trains for
        `max_epochs`.
    validation : float, default=0.1
        Share of the labels held out for early stopping; nothing is held out with 0, or with fewer than ten labels.
    device : str, default="cpu"
        Device of torch: "cpu", "cuda", "auto" (a GPU where there is one) or another name.
    checkpoint : str, Path or None, default=None
        Folder of checkpoints, from which an interrupted fit resumes with the same result; needs a `random_state`.
    random_state : int, numpy.random.Generator or None, default=None
        Seed of initial weights, shuffling, dropout and the held-out split.

    Attributes
    ----------
    common_confusion_ : ndarray of shape (n_classes, n_classes)
        Label distribution under the common noise given the true class.
    common_share_ : ndarray of shape (n_workers,)
        Mean of omega over the items that each worker labelled; 0.5 without labels.
    confusion_ : ndarray of shape (n_workers, n_classes, n_classes)
        Label distribution of each worker given the true class, at their mean omega.

    References
    ----------
    Z. Chu, J. Ma and H. Wang (2021), Learning from crowds by modeling common confusions, AAAI.

    Examples
    --------
    >>> import numpy as np
    >>> from manyhands import Annotations
    >>> from manyhands.classifiers import CoNAL
    >>> X = np.repeat([[0.0, 1.0], [1.0, 0.0]], 20, axis=0)
    >>> votes = Annotations.from_matrix(np.repeat([[0, 0, 1], [1, 1, 1]], 20, axis=0))
    >>> model = CoNAL(learning_rate=0.01, random_state=0).fit(X, votes)
    >>> model.predict([[0.0, 1.0], [1.0, 0.0]]).tolist()
    [0, 1]
    """

    _constraints: ClassVar[dict[str, Constraint]] = NOISE_LAYER_CONSTRAINTS | {
        "embedding": Number(whole=True, least=1),
        "embedding_hidden": Number(whole=True, least=1),
        "unit_items": Boolean(),
        "penalty": Number(least=0),
    }

    common_confusion_: Array
    common_share_: Array
    confusion_: Array

    def __init__(
        self,
        embedding: int = 20,
        embedding_hidden: int = 128,
        unit_items: bool = True,
        penalty: float = 1e-5,
        *,
        init: Any = "identity",
        backbone: Any = "mlp",
        hidden: tuple[int, ...] = (128,),
        dropout: float = 0.5,
        batch_norm: bool = False,
        learning_rate: float = 1e-3,
        weight_decay: float = 0.0,
        batch_size: int = 64,
        max_epochs: int = 50,
        patience: int | None = 10,
        validation: float = 0.1,
        device: str = "cpu",
        checkpoint: str | Path | None = None,
        random_state: Seed = None,
    ) -> None:
        self.embedding = embedding
        self.embedding_hidden = embedding_hidden
        self.unit_items = unit_items
        self.penalty = penalty
        self.init = init
        self.backbone = backbone
        self.hidden = hidden
        self.dropout = dropout
        self.batch_norm = batch_norm
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.batch_size = batch_size
        self.max_epochs = max_epochs
        self.patience = patience
        self.validation = validation
        self.device = device
        self.checkpoint = checkpoint
        self.random_state = random_state

    def noise_model(self) -> NoiseModel:
        """Return the label-noise model, for methods that are built on this one.

        Returns
        -------
        NoiseModel
        """
        return CommonNoise(self.embedding, self.embedding_hidden, self.unit_items, self.penalty)


@dataclass(frozen=True)
class CommonNoise(FeatureNoiseModel):
    """Logits of a worker's label as a mixture of a common matrix and the worker's own."""

    embedding: int  # length of the vectors of items and workers
    embedding_hidden: int  # size of the layer between an item's features and its vector
    unit_items: bool  # whether the items' vectors are normalised
    penalty: float  # weight of the distance between own and common matrices

    def new_layer(self, context: TrainingContext) -> CommonNoiseLayer:
        """Return the layer with all matrices at twice the identity."""
        return self._layer(_worker_vectors(context, self.embedding), context.data.rows.shape, context.n_classes)

    def empty_layer(self, row_shape: tuple[int, ...], n_classes: int, n_workers: int) -> CommonNoiseLayer:
        """Return a layer of these sizes, for `load_model`."""
        return self._layer(torch.zeros(n_workers, self.embedding), row_shape, n_classes)

    def _layer(self, vectors: torch.Tensor, row_shape: tuple[int, ...], n_classes: int) -> CommonNoiseLayer:
        sizes = math.prod(row_shape), self.embedding_hidden, self.embedding
        return CommonNoiseLayer(vectors, n_classes, sizes, self.unit_items)

    def loss(self, layer: Any, log_label: torch.Tensor, batch: Batch) -> torch.Tensor:
        """Return the negative log-likelihood minus the penalty on the distance of the matrices."""
        return super().loss(layer, log_label, batch) - self.penalty * layer.distance(batch.worker)

    def results(self, layer: Any, context: TrainingContext) -> dict[str, Array]:
        """Return `common_confusion_`, `confusion_` and `common_share_`."""
        return _results(layer, context)


class CommonNoiseLayer(nn.Module):
    """The common matrix, a matrix per worker, and omega, which weights them for each item and worker.

    Shapes: vectors (n_workers, embedding).
    """

    def __init__(self, vectors: torch.Tensor, n_classes: int, sizes: tuple[int, int, int], unit_items: bool) -> None:
        super().__init__()
        self.unit_items = unit_items
        self.own = CrowdLogits(len(vectors), n_classes, "mw", scale=2.0)
        self.common = nn.Parameter(2.0 * torch.eye(n_classes))
        self.workers = nn.Parameter(vectors)  # u, (n_workers, embedding)
        self.items = nn.Sequential(nn.Flatten(), nn.Linear(*sizes[:2]), nn.Linear(*sizes[1:]))  # V, of x

    @torch.no_grad()
    def initialise_at(self, confusion: Array) -> None:
        """Initialise the workers' own matrices with these confusion matrices and the common one with their mean."""
        self.own.initialise_at(confusion)
        assert self.own.weight is not None
        self.common.copy_(self.own.weight.view(-1, *self.common.shape).exp().mean(0).log())

    def forward(self, log_proba: torch.Tensor, x: torch.Tensor, batch: Batch) -> torch.Tensor:
        """Return the log-probability of each label of the mini-batch, (n_labels,)."""
        proba, omega = log_proba.exp(), self.omega(x, batch).unsqueeze(1)
        own = self.own.logits(proba.index_select(0, batch.row), batch.worker)
        common = (proba @ self.common).index_select(0, batch.row)
        return log_softmax_at(own + omega * (common - own), batch.label)

    def label_distribution(self, worker: torch.Tensor) -> Callable[[torch.Tensor, torch.Tensor], torch.Tensor]:
        """Return a function from log p(k | x) and x to the log-probability of every label of each of these workers."""
        own_logits, vector = self.own.worker_logits(worker), F.normalize(self.workers.index_select(0, worker)).t()

        def distribution(log_proba: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
            own, omega = own_logits(log_proba), (self._items(x) @ vector).sigmoid().unsqueeze(1)
            common = (log_proba.exp() @ self.common).unsqueeze(2)
            return (own + omega * (common - own)).log_softmax(1)

        return distribution

    def omega(self, x: torch.Tensor, batch: Batch) -> torch.Tensor:
        """Return the weight of the common matrix in each label, (n_labels,)."""
        worker = F.normalize(self.workers.index_select(0, batch.worker))
        return (self._items(x).index_select(0, batch.row) * worker).sum(1).sigmoid()

    def _items(self, x: torch.Tensor) -> torch.Tensor:
        item: torch.Tensor = self.items(x)
        return F.normalize(item) if self.unit_items else item

    def away(self, worker: torch.Tensor) -> torch.Tensor:
        """Return W_w - W_common of these workers, (n, n_classes, n_classes)."""
        assert self.own.weight is not None
        return self.own.weight.index_select(0, worker).view(-1, *self.common.shape) - self.common

    def distance(self, worker: torch.Tensor) -> torch.Tensor:
        """Return the sum of ||W_w - W_common||_F over the distinct ones of these workers."""
        return torch.linalg.vector_norm(self.away(torch.unique(worker)).flatten(1), dim=1).sum()


def _worker_vectors(context: TrainingContext, length: int) -> torch.Tensor:
    """Random initial vectors; a worker without labels gets 0, so that no other worker's draw depends on them."""
    active = np.unique(context.annotations.worker)
    vectors = np.zeros((context.n_workers, length), np.float32)
    vectors[active] = np.random.default_rng(context.rng.integers(2**63)).normal(size=(len(active), length))
    return torch.from_numpy(vectors)


@torch.no_grad()
def _results(layer: CommonNoiseLayer, context: TrainingContext) -> dict[str, Array]:
    votes, total = context.data.annotations, np.zeros(context.n_workers)
    for batch in AnnotationBatches(votes, EVALUATED_ROWS, device=context.device):
        omega = layer.omega(context.x(batch), batch).cpu().double().numpy()
        total += np.bincount(batch.worker.cpu().numpy(), omega, context.n_workers)
    n_labels = np.bincount(votes.worker, minlength=context.n_workers)
    share = np.where(n_labels > 0, total / np.maximum(n_labels, 1), 0.5)
    common, all_workers = layer.common.cpu().double(), torch.arange(context.n_workers, device=context.device)
    logits = common + torch.from_numpy(1 - share).view(-1, 1, 1) * layer.away(all_workers).cpu().double()
    confusions = {"common_confusion_": common.softmax(1).numpy(), "confusion_": logits.softmax(2).numpy()}
    return confusions | {"common_share_": share}
