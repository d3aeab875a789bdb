"""Crowd layer: behind the network, one layer per worker maps class probabilities to the logits of the worker's label.

p = softmax(network(x)),   logits of worker w = p W_w  (MW),  p * v_w  (VW),  p + b_w  (VB),  p * v_w + b_w  (VW-B)
loss = mean over observed labels of -log softmax(logits of worker w)[label]
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from manyhands._core.arrays import Array
from manyhands._core.randomness import Seed
from manyhands.classifiers.network import TrainingContext
from manyhands.classifiers.noise_layer import NOISE_LAYER_CONSTRAINTS, NoiseLayerClassifier, NoiseModel
from manyhands.nn.worker_layers import FORMS, CrowdLogits
from manyhands.validation import Constraint, OneOf


class CrowdLayer(NoiseLayerClassifier):
    """Neural network with one noise layer per worker, trained end to end on the crowd's labels.

    The network outputs class probabilities p(x); worker w's layer maps them to the distribution of w's label. Only
    observed labels enter the loss. Nothing but the initialisation ties the network's outputs to class names: start
    from an aggregator (``init="dawid-skene"``) where many workers may be spammers, and keep early stopping on.

    Use it where items have features and several workers label, with a few labels per worker and class at least. With
    very few labels per worker a method with fewer parameters per worker (``form="vw"``, or `TwoStage`) is safer.

    Parameters
    ----------
    form : {"mw", "vw", "vb", "vw-b", "sw"}, default="mw"
        Shape of a worker's layer: a full matrix, a weight per class, a bias per class, both, or one scalar.
    init : str or Aggregator, default="identity"
        Initial layers: the identity (workers are assumed to be correct), or the confusion matrices estimated by this
        aggregator.
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
        Label distribution of each worker given the true class: the layer's output where the network is certain.

    References
    ----------
    F. Rodrigues and F. Pereira (2018), Deep learning from crowds, AAAI.

    Examples
    --------
    >>> import numpy as np
    >>> from manyhands import Annotations
    >>> from manyhands.classifiers import CrowdLayer
    >>> X = np.repeat([[0.0, 1.0], [1.0, 0.0]], 20, axis=0)
    >>> votes = Annotations.from_matrix(np.repeat([[0, 0, 1], [1, 1, 1]], 20, axis=0))
    >>> model = CrowdLayer(learning_rate=0.01, random_state=0).fit(X, votes)
    >>> model.predict([[0.0, 1.0], [1.0, 0.0]]).tolist()
    [0, 1]
    """

    _constraints: ClassVar[dict[str, Constraint]] = NOISE_LAYER_CONSTRAINTS | {"form": OneOf(FORMS)}

    confusion_: Array

    def __init__(
        self,
        form: str = "mw",
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
        self.form = form
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
        return CrowdLayerNoise(self.form)


@dataclass(frozen=True)
class CrowdLayerNoise(NoiseModel):
    """Logits of a worker's label as a linear function of the class probabilities."""

    form: str  # shape of a worker's layer

    def new_layer(self, context: TrainingContext) -> CrowdLogits:
        """Return the layers of all workers at the identity."""
        return CrowdLogits(context.n_workers, context.n_classes, self.form)
