"""AggNet: a network and the workers' confusion matrices by EM, one epoch per iteration.

    E step: r_ik ~ f_k(x_i) prod_w confusion[w, k, label_iw]
    M step: confusion[w, k, l] ~ smoothing + sum of r_ik over the items that w labelled l;   f by one epoch on targets r

EM starts with r = the vote shares. This is `Raykar` with a network in place of logistic regression. The M step of the
network is only one epoch (generalised EM), so the likelihood may fall.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import nn

from manyhands._core.arrays import Array
from manyhands._core.randomness import Seed
from manyhands.classifiers.base import CrowdClassifier
from manyhands.classifiers.network import NETWORK_CONSTRAINTS, EpochThenUpdate, FitResult, TrainingContext
from manyhands.em.e_step import initial_posterior, log_confusions, posterior_given
from manyhands.em.kernels import pack
from manyhands.em.noise import safe_log
from manyhands.nn.backbones import probabilities
from manyhands.nn.batches import Batch
from manyhands.nn.losses import log_mixture, soft_cross_entropy
from manyhands.nn.train import descend
from manyhands.validation import Constraint, Number


class AggNet(CrowdClassifier):
    """Network trained on a posterior that EM updates after every epoch, with a confusion matrix per worker.

    Gold enters the posterior. The final posterior uses all labels, held-out ones included. Use it where features need
    a network and workers have different confusion matrices; for linear classifiers `Raykar` is exact EM and faster.

    Parameters
    ----------
    smoothing : float, default=0.1
        Pseudo-count added to every cell of every confusion matrix.
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
        L2 penalty of Adam on all weights: `weight_decay` times the weights is added to their gradient.
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
        Confusion matrix of each worker; rows (over the label) sum to 1.

    References
    ----------
    S. Albarqouni et al. (2016), AggNet: deep learning from crowds for mitosis detection in breast cancer histology
    images, IEEE Transactions on Medical Imaging 35. The paper has two classes; this is its form for many.

    Examples
    --------
    >>> import numpy as np
    >>> from manyhands import Annotations
    >>> from manyhands.classifiers import AggNet
    >>> X = np.repeat([[0.0, 1.0], [1.0, 0.0]], 20, axis=0)
    >>> votes = Annotations.from_matrix(np.repeat([[0, 0, 1], [1, 1, 1]], 20, axis=0))
    >>> model = AggNet(learning_rate=0.01, random_state=0).fit(X, votes)
    >>> model.predict([[0.0, 1.0], [1.0, 0.0]]).tolist()
    [0, 1]
    """

    _constraints: ClassVar[dict[str, Constraint]] = NETWORK_CONSTRAINTS | {"smoothing": Number(above=0)}

    confusion_: Array

    def __init__(
        self,
        smoothing: float = 0.1,
        *,
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
        self.smoothing = smoothing
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

    def _learn(self, context: TrainingContext) -> FitResult:
        network = context.network()
        optimizer = context.adam(network)
        state = EMState(context, self.smoothing)

        def step(batch: Batch) -> torch.Tensor:
            return descend(optimizer, soft_cross_entropy(network(context.x(batch)), state.target(batch)))

        def log_label(batch: Batch) -> torch.Tensor:
            log_proba = network(context.x(batch)).log_softmax(1)[batch.row]
            return log_mixture(log_proba, state.log_column(batch))

        modules = {"network": network, "state": state}  # the best epoch has its own confusion matrices
        evaluate = context.heldout_score(log_label, network)
        epochs = EpochThenUpdate(context.batches(), lambda: state.update(_log_f(network, context)))
        history = context.train(step, modules, {"adam": optimizer}, evaluate=evaluate, batches=epochs)
        table = state.table()
        posterior = posterior_given(pack(context.data.annotations), table, _log_f(network, context), context.data.gold)[
            0
        ]
        return FitResult(network, history, posterior, {"confusion_": np.exp(table)})


class EMState(nn.Module):
    """Posterior and confusion matrices between epochs: buffers, so that checkpoints and early stopping keep them."""

    posterior: torch.Tensor  # (n_items, n_classes)
    log_confusion: torch.Tensor  # [worker, truth, label]

    def __init__(self, context: TrainingContext, smoothing: float) -> None:
        super().__init__()
        self.packed, self.gold, self.smoothing = pack(context.annotations), context.data.gold, smoothing
        start = initial_posterior(context.annotations, self.gold)
        self.register_buffer("posterior", torch.from_numpy(start))
        self.register_buffer("log_confusion", torch.from_numpy(log_confusions(self.packed, start, smoothing)))
        self.to(context.device)

    def update(self, log_f: Array) -> None:
        """Do an E step with log f(x), (n_items, n_classes), then the M step of the confusion matrices."""
        posterior, _ = posterior_given(self.packed, self.table(), log_f, self.gold)
        table = log_confusions(self.packed, posterior, self.smoothing)
        self.posterior.copy_(torch.from_numpy(posterior))
        self.log_confusion.copy_(torch.from_numpy(table))

    def table(self) -> Array:
        """Return the log confusion matrices, [worker, truth, label]."""
        return self.log_confusion.cpu().double().numpy()

    def target(self, batch: Batch) -> torch.Tensor:
        """Return the posterior of the items of a mini-batch, (n_rows, n_classes)."""
        return self.posterior[torch.from_numpy(batch.item)].float()

    def log_column(self, batch: Batch) -> torch.Tensor:
        """Return log p(label | truth) of the labels of a mini-batch, (n_labels, n_classes)."""
        return self.log_confusion[batch.worker, :, batch.label].float()


def _log_f(network: nn.Module, context: TrainingContext) -> Array:
    """Log f(x) of the training items, (n_items, n_classes)."""
    return safe_log(probabilities(network, context.data.rows))
