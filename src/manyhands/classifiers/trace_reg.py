"""Trace regularisation: of all confusion matrices that explain the labels, prefer those with the smallest trace.

    f = softmax(network(x)),   Pi_w = softplus(P_w) / its row sums,   p(label | x, w) = sum_k f_k(x) Pi_w[k, label]
    loss = sum over observed labels of -log p(label | x, w), per item,  +  penalty * mean over workers of trace(Pi_w)

The labels alone do not distinguish a noisy network with accurate workers from an accurate network with noisy workers.
The matrices start near the identity, which attributes the noise to the network; the penalty lowers their diagonal as
far as the likelihood of the labels allows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import nn

from manyhands._core.arrays import Array
from manyhands._core.randomness import Seed
from manyhands.classifiers.network import TrainingContext
from manyhands.classifiers.noise_layer import NOISE_LAYER_CONSTRAINTS, NoiseLayerClassifier, NoiseModel, heldout_metric
from manyhands.nn.batches import Batch
from manyhands.nn.losses import gold_cross_entropy
from manyhands.nn.train import History, descend
from manyhands.nn.worker_layers import Confusion
from manyhands.validation import Constraint, NoneOr, Number


class TraceReg(NoiseLayerClassifier):
    """Neural network with one confusion matrix per worker and a penalty on the traces of the matrices.

    The mean trace of a mini-batch is taken over the workers who labelled in it, so that the cost of a mini-batch does
    not grow with the number of workers. Choose `penalty` by held-out annotations: too large a value makes accurate
    workers look noisy.

    Parameters
    ----------
    penalty : float, default=0.01
        Weight of the mean trace in the loss.
    warm_up : int, default=5
        Number of first epochs without the penalty, until the network is better than its initial state.
    diagonal : float or None, default=None
        Initial diagonal of every confusion matrix; None is the paper's initial value, P = 6 I - 5.
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
        Pi: label distribution of each worker given the true class; rows sum to 1.

    References
    ----------
    R. Tanno, A. Saeedi, S. Sankaranarayanan, D. C. Alexander and N. Silberman (2019), Learning from noisy labels by
    regularized estimation of annotator confusion, CVPR.

    Examples
    --------
    >>> import numpy as np
    >>> from manyhands import Annotations
    >>> from manyhands.classifiers import TraceReg
    >>> X = np.repeat([[0.0, 1.0], [1.0, 0.0]], 20, axis=0)
    >>> votes = Annotations.from_matrix(np.repeat([[0, 0, 1], [1, 1, 1]], 20, axis=0))
    >>> model = TraceReg(learning_rate=0.01, random_state=0).fit(X, votes)
    >>> model.predict([[0.0, 1.0], [1.0, 0.0]]).tolist()
    [0, 1]
    """

    _constraints: ClassVar[dict[str, Constraint]] = NOISE_LAYER_CONSTRAINTS | {
        "penalty": Number(least=0),
        "warm_up": Number(whole=True, least=0),
        "diagonal": NoneOr(Number(above=0, most=0.999)),
    }

    confusion_: Array

    def __init__(
        self,
        penalty: float = 0.01,
        warm_up: int = 5,
        diagonal: float | None = None,
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
        self.penalty = penalty
        self.warm_up = warm_up
        self.diagonal = diagonal
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
        return TraceRegularisedNoise(self.penalty, self.warm_up, self.diagonal)


@dataclass(frozen=True)
class TraceRegularisedNoise(NoiseModel):
    """A confusion matrix per worker whose rows are normalised softplus values, with a penalty on its trace."""

    penalty: float  # weight of the mean trace
    warm_up: int  # epochs without the penalty
    diagonal: float | None  # initial diagonal; None is P = 6 I - 5

    def new_layer(self, context: TrainingContext) -> Confusion:
        """Return the matrices of all workers with the initial diagonal."""
        return Confusion(context.n_workers, context.n_classes, "softplus", self.diagonal)

    def train(self, context: TrainingContext, network: nn.Module, layer: Any, *, resumed: bool = False) -> History:
        """Train without the penalty for `warm_up` epochs, then with it; `resumed` skips the warm-up."""
        optimizer = context.adam(network, layer)

        def descend_with(penalty: float, batch: Batch) -> torch.Tensor:
            logits = network(context.x(batch))  # (n_rows, n_classes)
            log_label, trace = layer.with_trace(logits.log_softmax(1), batch)
            weighted = log_label if batch.weight is None else batch.weight * log_label
            loss = penalty * trace - weighted.sum() / len(batch.item)
            return descend(optimizer, loss + gold_cross_entropy(logits, context.gold(batch)))

        modules, optimizers = {"network": network, "noise": layer}, {"adam": optimizer}
        # A training of its own: early stopping must not return a state that was trained without the penalty.
        max_epochs = context.options.max_epochs
        n_first = 0 if resumed else min(self.warm_up, max_epochs)
        history = context.train(partial(descend_with, 0.0), modules, optimizers, max_epochs=n_first, name="warm-up")
        step, evaluate = partial(descend_with, self.penalty), heldout_metric(context, self, network, layer)
        return history + context.train(step, modules, optimizers, evaluate=evaluate, max_epochs=max_epochs - n_first)
