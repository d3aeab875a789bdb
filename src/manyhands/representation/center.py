"""Triplet-center embedding: an item is nearer to the centre of its class than to any other centre, by a margin.

    loss = mean of  max(0, D(e_i, c_y) + m - min_{k != y} D(e_i, c_k)),   D half the squared distance

The centres c_k are trained along with the network, at a learning rate of their own. NeuCrowd's tables call this
"Center"; it is not the center loss that is added to a softmax loss.
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
from manyhands.nn.backbones import normalised
from manyhands.nn.class_batches import ClassBatch
from manyhands.nn.metric_losses import triplet_center_loss
from manyhands.randomness import Seed
from manyhands.representation.base import REPRESENTATION_CONSTRAINTS, RepresentationLearner
from manyhands.representation.training_set import TrainingSet
from manyhands.validation import Boolean, Constraint, NoneOr, Number


class Center(RepresentationLearner):
    """Embedding around a learned centre for each class; an item is nearer to its own than to any other, by a margin.

    Items have the class that an aggregator infers from the labels. pytorch-metric-learning has no such loss.

    Parameters
    ----------
    margin : float or None, default=None
        Margin between halves of squared distances; None is 1 for normalised embeddings, and 5 for others.
    center_learning_rate : float, default=0.1
        Step size of plain gradient descent, for the centres.
    normalise : bool, default=True
        Whether embeddings are scaled to length 1; centres are not.
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
        L2 penalty on all weights and on the centres: `weight_decay` times them is added to their gradient.
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
    centers_ : ndarray of shape (n_classes, embedding_size)
        The centres; NaN for a class without items.
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
    X. He, Y. Zhou, Z. Zhou, S. Bai and X. Bai (2018), Triplet-center loss for multi-view 3D object retrieval, CVPR.

    Examples
    --------
    >>> import numpy as np
    >>> from manyhands import Annotations, Center
    >>> X = np.repeat([[0.0, 1.0], [1.0, 0.0]], 20, axis=0)
    >>> votes = Annotations.from_matrix(np.repeat([[0, 0, 1], [1, 1, 1]], 20, axis=0))
    >>> Center(embedding_size=2, random_state=0).fit(X, votes).centers_.shape
    (2, 2)
    """

    _constraints: ClassVar[dict[str, Constraint]] = REPRESENTATION_CONSTRAINTS | {
        "margin": NoneOr(Number(above=0)),
        "center_learning_rate": Number(above=0),
        "normalise": Boolean(),
    }

    def __init__(
        self,
        margin: float | None = None,
        center_learning_rate: float = 0.1,
        normalise: bool = True,
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
        self.center_learning_rate = center_learning_rate
        self.normalise = normalise
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

    def _learn(self, context: TrainingContext) -> FitResult:
        training_set = TrainingSet(context, self.labels)
        network = context.network()
        present = training_set.batches.classes  # a centre of a class without items would only repel others
        centres = nn.Embedding(len(present), self.embedding_size).to(context.device)
        with torch.no_grad():
            centres.weight.div_(centres.weight.norm(dim=1, keepdim=True))
        index = torch.zeros(context.n_classes, dtype=torch.long, device=context.device)
        index[torch.from_numpy(present).long()] = torch.arange(len(present), device=context.device)
        optimizers = {
            "adam": context.adam(network),
            "centres": torch.optim.SGD(
                centres.parameters(), lr=self.center_learning_rate, weight_decay=self.weight_decay
            ),
        }
        margin = (1.0 if self.normalise else 5.0) if self.margin is None else self.margin

        def step(batch: ClassBatch) -> torch.Tensor:
            loss = triplet_center_loss(network(training_set.x(batch)), index[batch.target], centres.weight, margin)
            for optimizer in optimizers.values():
                optimizer.zero_grad(set_to_none=True)
            loss.backward()  # type: ignore[no-untyped-call]
            for optimizer in optimizers.values():
                optimizer.step()
            return loss.detach()

        def all_centres() -> Array:
            found = np.full((context.n_classes, self.embedding_size), np.nan)
            found[present] = centres.weight.detach().cpu().double().numpy()
            return found

        modules = {"network": network, "centres": centres}
        return training_set.train(step, modules, optimizers, {"centers_": all_centres})

    def _new_module(self, row_shape: tuple[int, ...], n_classes: int, n_workers: int) -> nn.Module:
        network = super()._new_module(row_shape, n_classes, n_workers)
        return normalised(network) if self.normalise else network
