"""RLL: tuplets of an anchor, a positive and some negatives, weighted by the confidence in their classes.

    p(positive) = w+ exp(g R+) / sum_j w_j exp(g R_j) over the positive and the negatives,   loss = -log p(positive)
    R = cos(query(anchor), document(j)), two networks;   w = v / d  or  (v + pi d) / (2 d)

An item has d labels, v of which are its class, and pi is the share of that class among the items. In NeuCrowd's tables
RLL is NeuCrowd without its three parts: one network, R = 1 - D, and the confidence inside the exponent, exp(g A R).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import nn

from manyhands.classifiers.training_context import TrainingContext
from manyhands.classifiers.training_data import FitResult
from manyhands.nn.backbones import normalised
from manyhands.nn.class_batches import ClassBatch, draw_tuplets
from manyhands.nn.metric_losses import safe_sqrt, tuplet_loss
from manyhands.nn.train import descend
from manyhands.randomness import Seed
from manyhands.representation.base import REPRESENTATION_CONSTRAINTS, RepresentationLearner
from manyhands.representation.label_confidence import label_confidence
from manyhands.representation.training_set import TrainingSet
from manyhands.validation import Constraint, NoneOr, Number, OneOf


class RLL(RepresentationLearner):
    """RLL: embedding learned from tuplets in which each item is weighted by the agreement of its labels.

    Items have the class that an aggregator infers from the labels. The embedding is the output of the query network.
    Use it for a few hundred items with several labels each; `NeuCrowd` extends it. The tuplet losses of
    pytorch-metric-learning have no confidence weights.

    Parameters
    ----------
    similarity : {"cosine", "distance"}, default="cosine"
        "cosine": as in RLL, two networks and w exp(g R). "distance": as in NeuCrowd, one network and exp(g w R).
    n_negatives : int, default=3
        Items of other classes in a tuplet.
    scale : float or None, default=None
        g in the formula; None is 10 for the cosine and 2 for the distance.
    confidence : {"bayesian", "mle", "assurance"}, default="bayesian"
        The weight w: "bayesian" (v + pi d) / (2 d), "mle" v / d, or "assurance" (v - u) / d, u the labels of the most
        frequent other class.
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
    confidence_ : ndarray of shape (n_items,)
        w of the items that were trained on, NaN for the others.
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
    G. Xu, W. Ding, J. Tang, S. Yang, G. Y. Huang and Z. Liu (2019), Learning effective embeddings from crowdsourced
    labels: an educational case study, ICDE.

    Examples
    --------
    >>> import numpy as np
    >>> from manyhands import RLL, Annotations
    >>> X = np.repeat([[0.0, 1.0], [1.0, 0.0]], 20, axis=0)
    >>> votes = Annotations.from_matrix(np.repeat([[0, 0, 1], [1, 1, 1]], 20, axis=0))
    >>> RLL(embedding_size=2, random_state=0).fit_transform(X, votes).shape
    (40, 2)
    """

    _of_items: ClassVar[tuple[str, ...]] = (*RepresentationLearner._of_items, "confidence_")
    _constraints: ClassVar[dict[str, Constraint]] = REPRESENTATION_CONSTRAINTS | {
        "similarity": OneOf(("cosine", "distance")),
        "n_negatives": Number(whole=True, least=1),
        "scale": NoneOr(Number(above=0)),
        "confidence": OneOf(("bayesian", "mle", "assurance")),
    }

    def __init__(
        self,
        similarity: str = "cosine",
        n_negatives: int = 3,
        scale: float | None = None,
        confidence: str = "bayesian",
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
        self.similarity = similarity
        self.n_negatives = n_negatives
        self.scale = scale
        self.confidence = confidence
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
        cosine = self.similarity == "cosine"
        scale = (10.0 if cosine else 2.0) if self.scale is None else self.scale
        confidence = label_confidence(training_set, self.confidence)
        weight = torch.from_numpy(confidence).float().to(context.device)
        networks = {"network": context.network()} | ({"document": context.network()} if cosine else {})
        query, document = networks["network"], networks.get("document", networks["network"])
        optimizer = context.adam(*networks.values())
        similarity_of = cosine_of_units if cosine else one_minus_distance

        def step(batch: ClassBatch) -> torch.Tensor:
            x = training_set.x(batch)
            anchor = query(x)
            other = document(x) if cosine else anchor
            positive, negative = draw_tuplets(batch, self.n_negatives, context.rng)
            members = np.column_stack([positive, negative])  # (n, 1 + n_negatives) rows of the batch
            similarity = similarity_of(anchor.unsqueeze(1), other[members])
            loss = tuplet_loss(similarity, weight[batch.item[members]], scale, inside=not cosine)
            return descend(optimizer, loss)

        return training_set.train(step, networks, {"adam": optimizer}, {"confidence_": lambda: confidence})

    def _new_module(self, row_shape: tuple[int, ...], n_classes: int, n_workers: int) -> nn.Module:
        network = super()._new_module(row_shape, n_classes, n_workers)
        return normalised(network) if self.similarity == "cosine" else network


def cosine_of_units(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Return the cosine similarity of vectors of length 1, over the last dimension."""
    return (one * other).sum(-1)


def one_minus_distance(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Return 1 - D, D the Euclidean distance over the last dimension."""
    return 1 - safe_sqrt((one - other).square().sum(-1))
