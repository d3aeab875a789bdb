"""MBEM: confusion matrices from the network's own predictions, even where each item has a single label.

1. train f on the vote shares
2. t_i = argmax f(x_i)
3. confusion matrices and class frequencies q by counting the labels against t
4. r_ik ~ q_k prod_w confusion[w, k, label_iw]
5. train a new f on r, and continue with step 2
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from torch import nn

from manyhands._core.arrays import Array
from manyhands._core.randomness import Seed
from manyhands.annotations import Annotations
from manyhands.classifiers.base import CrowdClassifier
from manyhands.classifiers.network import NETWORK_CONSTRAINTS, FitResult, TrainingContext
from manyhands.em.e_step import Gold, initial_posterior, log_confusions, posterior_given
from manyhands.em.kernels import pack
from manyhands.em.noise import safe_log
from manyhands.nn.backbones import probabilities
from manyhands.validation import Constraint, Number


class MBEM(CrowdClassifier):
    """Model-bootstrapped EM: networks trained in rounds, each on the posterior given by the previous one.

    Made for one label per item, where aggregators cannot learn about workers. A class that the network never predicts
    leaves its rows of the confusion matrices at the pseudo-counts: where classes are rare, look at `confusion_` first.

    Parameters
    ----------
    rounds : int, default=2
        How often a new network is trained after the first.
    smoothing : float, default=0.01
        Pseudo-count added to every cell of every confusion matrix, and to every class frequency.
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
        Confusion matrix of each worker by the last network's predictions; rows (over the label) sum to 1.
    class_prior_ : ndarray of shape (n_classes,)
        Class frequencies by the last network's predictions.

    References
    ----------
    A. Khetan, Z. Lipton and A. Anandkumar (2018), Learning from noisy singly-labeled data, ICLR. The authors' code
    leaves out q in step 4; here it is as in the paper.

    Examples
    --------
    >>> import numpy as np
    >>> from manyhands import Annotations
    >>> from manyhands.classifiers import MBEM
    >>> X = np.repeat([[0.0, 1.0], [1.0, 0.0]], 20, axis=0)
    >>> votes = Annotations.from_matrix(np.repeat([[0, 0, 1], [1, 1, 1]], 20, axis=0))
    >>> model = MBEM(learning_rate=0.01, random_state=0).fit(X, votes)
    >>> model.predict([[0.0, 1.0], [1.0, 0.0]]).tolist()
    [0, 1]
    """

    _constraints: ClassVar[dict[str, Constraint]] = NETWORK_CONSTRAINTS | {
        "rounds": Number(whole=True, least=1),
        "smoothing": Number(above=0),
    }

    confusion_: Array
    class_prior_: Array

    def __init__(
        self,
        rounds: int = 2,
        smoothing: float = 0.01,
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
        self.rounds = rounds
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
        gold = context.data.gold
        target = initial_posterior(context.annotations, gold)
        network, history = _train(context, target, 0)
        for number in range(1, self.rounds + 1):
            proba = probabilities(network, context.data.rows)
            target, _, _ = posterior_by_predictions(proba, context.annotations, gold, self.smoothing)
            network, round_history = _train(context, target, number)
            history += round_history
        proba = probabilities(network, context.data.rows)
        posterior, confusion, prior = posterior_by_predictions(proba, context.data.annotations, gold, self.smoothing)
        return FitResult(network, history, posterior, {"confusion_": confusion, "class_prior_": prior})


def posterior_by_predictions(
    proba: Array, annotations: Annotations, gold: Gold, smoothing: float
) -> tuple[Array, Array, Array]:
    """Steps 2 to 4: posterior, confusion matrices and class frequencies from a network's predictions.

    Shapes: proba (n_items, n_classes); gold (n_items,); returns posterior (n_items, n_classes); returns confusion
    (n_workers, n_classes, n_classes); returns prior (n_classes,).
    """
    packed, n_classes = pack(annotations), annotations.n_classes
    predicted = proba.argmax(axis=1) if gold is None else np.where(gold >= 0, gold, proba.argmax(axis=1))
    table = log_confusions(packed, np.eye(n_classes)[predicted], smoothing)
    labelled = annotations.n_labels > 0
    prior: Array = np.bincount(predicted[labelled], minlength=n_classes) + np.float64(smoothing)
    prior /= prior.sum()
    before = np.where(labelled[:, None], np.log(prior), safe_log(proba))
    posterior, _ = posterior_given(packed, table, before, gold)
    return posterior, np.exp(table), prior


def _train(context: TrainingContext, posterior: Array, number: int) -> tuple[nn.Module, list[dict[str, float]]]:
    network, history = context.train_on(posterior, posterior, name=f"round-{number}")
    return network, [epoch | {"round": float(number)} for epoch in history]
