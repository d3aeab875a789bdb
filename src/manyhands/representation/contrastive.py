"""Contrastive embedding (Siamese networks): pairs of one class are attracted, other pairs repelled.

hadsell   mean over the pairs of a mini-batch of  s D^2 + (1 - s) max(0, m - D)^2,   s = 1 for two items of a class
koch      cross-entropy of s with  p(s = 1) = sigmoid(b + sum_d a_d |e_d - e'_d|),   e = sigmoid(network(x))
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import nn

from manyhands.classifiers.training_context import TrainingContext
from manyhands.classifiers.training_data import FitResult
from manyhands.em.kernels import Array
from manyhands.nn.class_batches import ClassBatch
from manyhands.nn.inference import outputs
from manyhands.nn.metric_losses import contrastive_loss, mean_l1_distance, siamese_loss
from manyhands.nn.train import descend
from manyhands.randomness import Seed
from manyhands.representation.base import REPRESENTATION_CONSTRAINTS, RepresentationLearner
from manyhands.representation.training_set import TrainingSet
from manyhands.validation import Constraint, Number, OneOf


class Contrastive(RepresentationLearner):
    """Embedding learned from pairs: items of one class are near each other, items of two classes apart.

    Items have the class that an aggregator infers from the labels. Use it as a simple baseline; with noisy labels `RLL`
    or `NeuCrowd`, which weight items by the agreement of their labels, are usually better. The ContrastiveLoss of
    pytorch-metric-learning is another loss: it has D and m - D without the squares.

    With the loss of Koch et al., the baseline that NeuCrowd's paper cites, embeddings are the outputs of sigmoid units,
    as in the paper, and the weighted L1 distance of two embeddings predicts whether the items are of one class. Weights
    start at -1. There is a bias b, without which two identical items would be of one class with probability 1/2. Pairs
    of one class and other pairs count the same, as in the paper, which draws equally many of both.
    The paper does not say where the bias starts. Here it starts at the mean distance of all pairs of training items in
    the untrained embedding, so that a pair at this distance is of one class with probability 1/2. From 0, pairs of a
    class would attract each other more than other pairs repel, and with many dimensions the embeddings of all items
    would first become nearly the same.

    Parameters
    ----------
    margin : float, default=1.0
        Euclidean distance from which on two items of different classes no longer repel each other; not used by
        "koch".
    loss : {"hadsell", "koch"}, default="hadsell"
        The contrastive loss of Hadsell et al., or the cross-entropy of Koch et al.
    labels : str or Aggregator, default="majority-vote"
        The aggregator that gives items their classes, by its registry name or as an instance.
    embedding_size : int, default=32
        Size of an embedding.
    backbone : {"mlp", "convnet"} or callable, default="mlp"
        Network from features to embeddings: a multi-layer perceptron, a small convolutional network, or a function
        (n_features or row shape, embedding_size) -> torch.nn.Module.
    hidden : tuple of int, default=(128,)
        Sizes of the hidden layers.
    dropout : float, default=0.2
        Dropout rate of the hidden layers.
    batch_norm : bool, default=False
        Whether hidden layers are batch-normalised.
    learning_rate : float, default=0.001
        Step size of Adam.
    weight_decay : float, default=0.0
        L2 penalty of Adam on all weights: `weight_decay` times the weights is added to their gradient.
    batch_size : int, default=64
        Approximate number of items per mini-batch, in equal shares of its classes.
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
    random_state : int, Generator or None, default=None
        Seed of initial weights, shuffling, dropout and the held-out split.

    Attributes
    ----------
    distance_weight_ : ndarray of shape (embedding_size,)
        Weight a of each dimension in the distance; only with "koch".
    aggregator_ : Aggregator
        The aggregator that gave items their classes, fitted to all labels; not kept by `save`.
    classes_ : ndarray of shape (n_classes,)
        The classes, as in the annotations.
    worker_ids_ : ndarray of shape (n_workers,)
        The workers, as in the annotations.
    worker_accuracy_ : ndarray of shape (n_workers,)
        Expected share of correct labels of each worker, with one pseudo-count of accuracy 0.7.
    posterior_ : ndarray of shape (n_items, n_classes)
        Posterior of the training items by the aggregator; rows sum to 1.
    history_ : list of dict
        One dict per epoch: the mean loss, and "heldout" where labels were held out.
    module_ : torch.nn.Module
        The trained network from features to embeddings.
    notes_ : dict of str to str
        What the data do not allow to conclude, by code; each was issued as a `CrowdWarning`.
    n_features_in_ : int
        Number of columns of X in `fit`; only where a row is a vector, not an image.
    feature_names_in_ : ndarray of str of shape (n_features_in_,)
        Names of the columns of X in `fit`; only where X was a data frame with string names.

    References
    ----------
    R. Hadsell, S. Chopra and Y. LeCun (2006), Dimensionality reduction by learning an invariant mapping, CVPR.
    G. Koch, R. Zemel and R. Salakhutdinov (2015), Siamese neural networks for one-shot image recognition, ICML Deep
    Learning Workshop.

    Examples
    --------
    >>> import numpy as np
    >>> from manyhands import Annotations, Contrastive
    >>> X = np.repeat([[0.0, 1.0], [1.0, 0.0]], 20, axis=0)
    >>> votes = Annotations.from_matrix(np.repeat([[0, 0, 1], [1, 1, 1]], 20, axis=0))
    >>> Contrastive(embedding_size=2, random_state=0).fit_transform(X, votes).shape
    (40, 2)
    """

    _constraints: ClassVar[dict[str, Constraint]] = REPRESENTATION_CONSTRAINTS | {
        "margin": Number(above=0),
        "loss": OneOf(("hadsell", "koch")),
    }

    def __init__(
        self,
        margin: float = 1.0,
        loss: str = "hadsell",
        *,
        labels: Any = "majority-vote",
        embedding_size: int = 32,
        backbone: Any = "mlp",
        hidden: tuple[int, ...] = (128,),
        dropout: float = 0.2,
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
        self.margin = margin
        self.loss = loss
        self.labels = labels
        self.embedding_size = embedding_size
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

    def _new_module(self, row_shape: tuple[int, ...], n_classes: int, n_workers: int) -> nn.Module:
        network = super()._new_module(row_shape, n_classes, n_workers)
        return nn.Sequential(network, nn.Sigmoid()) if self.loss == "koch" else network

    def _learn(self, context: TrainingContext) -> FitResult:
        training_set, margin = TrainingSet(context, self.labels), self.margin
        if self.loss == "koch":
            return self._learn_distance(context, training_set)
        return training_set.fit_embedding(lambda e, batch: contrastive_loss(e, batch.target, margin))

    def _learn_distance(self, context: TrainingContext, training_set: TrainingSet) -> FitResult:
        network, distance = context.network(), nn.Linear(self.embedding_size, 1).to(context.device)
        nn.init.constant_(distance.weight, -1.0)  # the farther, the less probably of one class
        start = outputs(network, context.data.rows, training_set.items)
        nn.init.constant_(distance.bias, float(mean_l1_distance(start)))  # from 0, attraction prevails
        optimizer = context.adam(network, distance)

        def step(batch: ClassBatch) -> torch.Tensor:
            embedding = network(training_set.x(batch))
            return descend(optimizer, siamese_loss(embedding, batch.target, distance.weight[0], distance.bias[0]))

        def weight() -> Array:
            return np.asarray(distance.weight[0].detach().cpu().double().numpy())

        modules = {"network": network, "distance": distance}
        return training_set.train(step, modules, {"adam": optimizer}, {"distance_weight_": weight})
