"""SpeeLFC: a worker's label distribution is a mixture of the rows of their confusion matrix, weighted by p(k | x).

    f = softmax(network(x)),   Pi_w[k, .] = softmax(A_w[k, .]),   p(label | x, w) = sum_k f_k(x) Pi_w[k, label]
    loss = mean over observed labels of -log p(label | x, w)

    SpeeLFC-D:   Pi_w(x)[k, .] = softmax(d(x) A_w[k, .]) in place of Pi_w,   d(x) > 0,   1 / d(x) the difficulty of x

Unlike the crowd layer's logits, f and Pi are probabilities: no second softmax follows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import nn

from manyhands._core.arrays import Array
from manyhands._core.randomness import Seed
from manyhands.classifiers.network import TrainingContext
from manyhands.classifiers.noise_layer import (
    NOISE_LAYER_CONSTRAINTS,
    FeatureNoiseModel,
    NoiseLayerClassifier,
    NoiseModel,
)
from manyhands.nn.backbones import outputs
from manyhands.nn.batches import AnnotationBatches, Batch
from manyhands.nn.losses import log_mixture
from manyhands.nn.worker_layers import Confusion
from manyhands.validation import Boolean, Constraint, Number

# ----------------------------------------------------------------------------------------------------
# Confusion matrices that depend on the difficulty of the item: the logits of a row are multiplied by a scale of x.
#
#     C_w(x)[k, .] = softmax(d(x) A_w[k, .]),   d(x) = exp(2 tanh(g(x) / 2)),   1 / d(x) is the difficulty of x
#
# g has one hidden layer and starts at 0, and d at 1. d stays between exp(-2) and exp(2): where it could reach 0, all
# labels of an item would be equally probable whatever the class, and some fits lost a class to such items.

_RANGE = 2.0  # largest absolute value of log d(x)


class ItemScale(nn.Module):
    """d(x): a positive number for each item, from its features."""

    def __init__(self, n_features: int, hidden: int) -> None:
        super().__init__()
        last = nn.Linear(hidden, 1)
        self.layers = nn.Sequential(nn.Flatten(), nn.Linear(n_features, hidden), nn.ReLU(), last)
        nn.init.zeros_(last.weight)
        nn.init.zeros_(last.bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return d(x), (n_rows, 1)."""
        return (_RANGE * (self.layers(x) / _RANGE).tanh()).exp()


class ScaledConfusion(nn.Module):
    """Confusion matrix per worker, whose rows' logits are multiplied by d(x)."""

    def __init__(self, own: Confusion, scale: ItemScale) -> None:
        super().__init__()
        self.own, self.scale, self.n_classes = own, scale, own.n_classes

    def initialise_at(self, confusion: Array) -> None:
        """Set the parameters to these confusion matrices, (n_workers, n_classes, n_classes), at d = 1."""
        self.own.initialise_at(confusion)

    def forward(self, log_proba: torch.Tensor, x: torch.Tensor, batch: Batch) -> torch.Tensor:
        """Return the log-probability of each label of a mini-batch.

        Shapes: log_proba (n_rows, n_classes); x (n_rows, ...); returns (n_labels,).
        """
        log_c = self.log_confusion(x, batch)
        log_column = log_c[torch.arange(len(log_c), device=log_c.device), :, batch.label]
        return log_mixture(log_proba.index_select(0, batch.row), log_column)

    def log_confusion(self, x: torch.Tensor, batch: Batch) -> torch.Tensor:
        """Return log C_w(x) for the item and the worker of each label, (n_labels, truth, label)."""
        free = self.own.weight.index_select(0, batch.worker).view(-1, self.n_classes, self.n_classes)
        scale: torch.Tensor = self.scale(x).index_select(0, batch.row)
        return (scale.unsqueeze(2) * free).log_softmax(1).transpose(1, 2)

    def label_distribution(self, worker: torch.Tensor) -> Callable[[torch.Tensor, torch.Tensor], torch.Tensor]:
        """Return a function from log p(k | x) and x to the log-probability of every label of each of these workers.

        Shapes: worker (n_workers,).
        """
        free = self.own.weight.index_select(0, worker).view(-1, self.n_classes, self.n_classes).permute(2, 1, 0)

        def distribution(log_proba: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
            scale = self.scale(x).unsqueeze(2)  # one class at a time: all at once would be classes times the memory
            of_class = ((scale * row).log_softmax(1) + log_proba[:, k, None, None] for k, row in enumerate(free))
            total = next(of_class)
            for other in of_class:
                total = torch.logaddexp(total, other)
            return total

        return distribution

    @torch.no_grad()
    def mean_confusion(self, batches: Iterable[tuple[torch.Tensor, Batch]]) -> Array:
        """Return the mean of C_w(x) over the items that each worker labelled; at d = 1 without labels.

        Shapes: returns (n_workers, n_classes, n_classes).
        """
        total = torch.zeros(self.own.n_workers, self.n_classes, self.n_classes, dtype=torch.float64)
        size = np.zeros(self.own.n_workers)
        for x, batch in batches:
            worker = batch.worker.cpu()
            total.index_add_(0, worker, self.log_confusion(x, batch).cpu().double().exp())
            size += np.bincount(worker.numpy(), minlength=len(size))
        table = np.where((size > 0)[:, None, None], total.numpy(), self.own.confusion())
        return np.asarray(table / table.sum(axis=2, keepdims=True))


_CHUNK = 256  # items of which confusion matrices are held at a time, for all workers: bounds the memory


class SpeeLFC(NoiseLayerClassifier):
    """Neural network with one confusion matrix per worker, trained jointly by the likelihood of the labels.

    The probabilistic form of the crowd layer: the confusion matrices are proper, which makes them easy to interpret.

    The paper's variant with a difficulty for each item (SpeeLFC-D) is ``difficulty=True``. The text with its formula
    was not available, so this is a reading of it: the logits A_w[k, .] of each row are multiplied by d(x) > 0, which a
    small network of its own predicts from the features. d is 1 at the beginning and between exp(-2) and exp(2); at
    d = 0 all labels would be equally probable, and the larger d is, the nearer a row is to its most probable label.
    The difficulty of an item is 1 / d(x): it is the same for all workers. Only products of d and A matter, so that a
    common factor of all difficulties means nothing; and an item whose labels disagree may be difficult or of uncertain
    class, which p(k | x) explains as well.

    Parameters
    ----------
    diagonal : float, default=0.8
        Initial diagonal of every confusion matrix where `init` is "identity".
    difficulty : bool, default=False
        Whether confusion matrices depend on the item's difficulty (SpeeLFC-D).
    difficulty_hidden : int, default=32
        Size of the hidden layer of the network that predicts d(x); not used without `difficulty`.
    init : str or Aggregator, default="identity"
        Initial confusion matrices: `diagonal` for every worker, or those estimated by this aggregator.
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
    confusion_ : ndarray of shape (n_workers, n_classes, n_classes)
        Pi: label distribution of each worker given the true class; rows sum to 1. With `difficulty` its mean over the
        items that the worker labelled.
    difficulty_ : ndarray of shape (n_items,)
        1 / d(x) of the training items; only with `difficulty`.

    References
    ----------
    Z. Chen, H. Wang, H. Sun, P. Chen, T. Han, X. Liu and J. Yang (2020), Structured probabilistic end-to-end learning
    from crowds, IJCAI.

    Examples
    --------
    >>> import numpy as np
    >>> from manyhands import Annotations
    >>> from manyhands.classifiers import SpeeLFC
    >>> X = np.repeat([[0.0, 1.0], [1.0, 0.0]], 20, axis=0)
    >>> votes = Annotations.from_matrix(np.repeat([[0, 0, 1], [1, 1, 1]], 20, axis=0))
    >>> model = SpeeLFC(learning_rate=0.01, random_state=0).fit(X, votes)
    >>> model.predict([[0.0, 1.0], [1.0, 0.0]]).tolist()
    [0, 1]
    """

    _of_items: ClassVar[tuple[str, ...]] = (*NoiseLayerClassifier._of_items, "difficulty_")
    _constraints: ClassVar[dict[str, Constraint]] = NOISE_LAYER_CONSTRAINTS | {
        "diagonal": Number(above=0, most=0.999),
        "difficulty": Boolean(),
        "difficulty_hidden": Number(whole=True, least=1),
    }

    confusion_: Array
    difficulty_: Array

    def __init__(
        self,
        diagonal: float = 0.8,
        difficulty: bool = False,
        difficulty_hidden: int = 32,
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
        self.diagonal = diagonal
        self.difficulty = difficulty
        self.difficulty_hidden = difficulty_hidden
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
        scaled = ScaledConfusionNoise(self.diagonal, self.difficulty_hidden)
        return scaled if self.difficulty else SoftmaxConfusionNoise(self.diagonal)


@dataclass(frozen=True)
class SoftmaxConfusionNoise(NoiseModel):
    """A confusion matrix per worker whose rows are softmaxes of free parameters."""

    diagonal: float  # initial diagonal of every matrix

    def new_layer(self, context: TrainingContext) -> Confusion:
        """Return the matrices of all workers with the initial diagonal."""
        return Confusion(context.n_workers, context.n_classes, "softmax", self.diagonal)


@dataclass(frozen=True)
class ScaledConfusionNoise(FeatureNoiseModel):
    """A confusion matrix per worker, the logits of which are multiplied by d(x)."""

    diagonal: float  # initial diagonal of every matrix
    hidden: int  # size of the hidden layer of d

    def new_layer(self, context: TrainingContext) -> ScaledConfusion:
        """Return the matrices of all workers with the initial diagonal, and d = 1 for all items."""
        return self.empty_layer(context.data.rows.shape, context.n_classes, context.n_workers)

    def empty_layer(self, row_shape: tuple[int, ...], n_classes: int, n_workers: int) -> ScaledConfusion:
        """Return a layer of these sizes, for `load_model`."""
        own = Confusion(n_workers, n_classes, "softmax", self.diagonal)
        return ScaledConfusion(own, ItemScale(math.prod(row_shape), self.hidden))

    def results(self, layer: Any, context: TrainingContext) -> dict[str, Array]:
        """Return `confusion_` and `difficulty_`."""
        batches = AnnotationBatches(context.data.annotations, _CHUNK, device=context.device)
        scale = outputs(layer.scale, context.data.rows).squeeze(1).numpy()
        confusion = layer.mean_confusion((context.x(batch), batch) for batch in batches)
        return {"confusion_": confusion, "difficulty_": 1 / scale}
