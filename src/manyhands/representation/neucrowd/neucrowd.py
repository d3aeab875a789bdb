"""NeuCrowd: an embedding learned from tuplets of items weighted by confidence, and a classifier on it.

Every epoch, two networks train in one loop:

    1. safe items: those whose neighbours in the embedding support their class; a pool of them and of few others
    2. candidates: many tuplets (anchor, positive, n - 2 negatives) from the pool, with anchors of one class
    3. hard tuplets: those with the largest losses predicted by the sampling network
    4. loss(T) = -log softmax_j(eta A_j (C - |F(e_j) - a|))[positive],  a = sum_i A_i F(e_i) / sum_i A_i of the anchors
    5. a step of the embedding F on the mean loss and lambda |W|^2, one of the sampling network toward the losses

Classes are an aggregator's, A is the confidence in them (`label_confidence`); eta is `loss.scale`, C `loss.offset`.
Steps 1 and 3 start with the second epoch. Logistic regression on the embedding classifies.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from torch import nn

from manyhands.annotations import Annotations
from manyhands.classifiers.base import CrowdClassifier
from manyhands.classifiers.network_options import NetworkOptions
from manyhands.classifiers.training_context import TrainingContext
from manyhands.classifiers.training_data import FitResult, TrainingData
from manyhands.em.kernels import Array
from manyhands.nn.backbones import Ensemble
from manyhands.options import Options
from manyhands.randomness import Seed
from manyhands.representation.base import REPRESENTATION_CONSTRAINTS, embed
from manyhands.representation.label_confidence import label_confidence
from manyhands.representation.neucrowd.embedding_network import ACTIVATIONS, new_embedder, new_network
from manyhands.representation.neucrowd.ensemble import fit_heads, item_folds, member_sizes, member_training_sets
from manyhands.representation.neucrowd.linear_head import EmbeddingClassifier, HeadInput
from manyhands.representation.neucrowd.member_training import (
    ANCHORS,
    EmbeddingOptions,
    MemberTraining,
    safe_shares,
    train_members,
)
from manyhands.representation.neucrowd.options import (
    LabelConfidence,
    LogisticHead,
    SafetyAwareSampling,
    TupletLoss,
    Tuplets,
)
from manyhands.representation.neucrowd.plus_settings import PLUS
from manyhands.representation.neucrowd.sampler import TupletSampler
from manyhands.representation.training_set import TrainingSet
from manyhands.validation import Boolean, Constraint, Number, OneOf


class NeuCrowd(CrowdClassifier):
    """Embedding learned from tuplets of safe items weighted by confidence, and logistic regression on it.

    It is a representation learner and a classifier: `transform` returns the embedding, and `predict` the class by a
    logistic regression on it, fitted to the aggregator's classes, with C chosen by held-out log-likelihood.

    ``NeuCrowd()`` is the published method as far as it is specified: one embedding of 32 numbers, safety-aware
    sampling, a robust anchor, hard tuplets selected by a sampling network, classes by majority vote. Adam and tanh
    replace Adadelta and sigmoids, which need many times as many steps, and an epoch has five mini-batches, not 234 as
    in the paper's code: the best embedding is reached within a hundred steps, and two parts start with epoch two.

    `NeuCrowd.plus()` (registry name "neucrowd-plus") changes what helped in our comparisons on a few hundred items:
    there is no sampling network, since hard tuplets improved nothing; five smaller embeddings form an ensemble, whose
    held-out items decide when to stop; the regression also uses the features, and learns the aggregator's posterior;
    classes come from the default aggregator rather than the majority vote.

    Use it for a few hundred labelled items; with thousands, `CrowdLayer` is simpler and usually as good.

    Parameters
    ----------
    tuplets : Tuplets, default=Tuplets()
        Tuplets of an epoch.
    confidence : LabelConfidence, default=LabelConfidence()
        Confidence A in the class of an item.
    safety : SafetyAwareSampling or None, default=SafetyAwareSampling()
        Safety-aware sampling; None draws tuplets from all items.
    anchor : {"weighted", "mean", "sum"} or None, default="weighted"
        Robust anchor: the confidence-weighted mean of the anchors of a mini-batch, their weighted sum divided by their
        number (the paper's code), or that sum as printed in the paper; None gives each tuplet its own anchor.
    sampler : bool, default=True
        Whether a sampling network selects hard tuplets.
    loss : TupletLoss, default=TupletLoss()
        Loss of the embedding.
    members : int, default=1
        Number of embeddings. Each of several holds out all labels of a part of the items, and every item is held out
        once; early stopping and C are decided by what is held out. Predictions are the means of the members'.
    head : LogisticHead, default=LogisticHead()
        Logistic regression on the embedding.
    activation : {"tanh", "sigmoid", "relu"}, default="tanh"
        "tanh" or "sigmoid" after every layer of a perceptron and after the embedding, or "relu" after all layers but
        the last.
    optimizer : {"adam", "adadelta"}, default="adam"
        Optimizer of both networks.
    labels : str or Aggregator, default="majority-vote"
        The aggregator that gives items their classes, by its registry name or as an instance.
    embedding_size : int, default=32
        Size of an embedding, divided among the members.
    backbone : {"mlp", "convnet"} or callable, default="mlp"
        Network from features to embeddings: a multi-layer perceptron, a small convolutional network, or a function
        (n_features or row shape, embedding_size) -> torch.nn.Module.
    hidden : tuple of int, default=(128,)
        Sizes of the hidden layers.
    dropout : float, default=0.2
        Dropout rate of the hidden layers and, with "tanh" or "sigmoid", of the embedding.
    batch_norm : bool, default=False
        Whether hidden layers are batch-normalised.
    learning_rate : float, default=0.001
        Step size of the optimizer.
    weight_decay : float, default=0.008
        L2 penalty on all weights: `weight_decay` times the weights is added to their gradient.
    batch_size : int, default=256
        Tuplets per mini-batch.
    max_epochs : int, default=180
        Maximal number of epochs.
    patience : int or None, default=30
        Early stopping: epochs without a higher held-out log-likelihood before training stops; None trains for
        `max_epochs`.
    validation : float, default=0.2
        Approximate share of the items whose labels a single member holds out (one of a whole number of equal parts);
        with 0 nothing is held out, by several members neither.
    device : str, default="cpu"
        Device of torch: "cpu", "cuda", "auto" (a GPU where there is one) or another name.
    checkpoint : str, Path or None, default=None
        Folder of checkpoints, from which an interrupted fit resumes with the same result; needs a `random_state`.
    random_state : int, Generator or None, default=None
        Seed of initial weights, tuplets, dropout and held-out items.

    Attributes
    ----------
    confidence_ : ndarray of shape (n_items,)
        A of the items that were trained on, NaN for the others.
    safe_ : ndarray of shape (n_items,)
        Share of the members in whose embedding an item is safe; 0 for items that were not trained on.
    C_ : float
        C of the logistic regression, on inputs of total variance 1.
    samplers_ : list of TupletSampler
        The sampling networks; empty without them. Not kept by `save`.
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
        One dict per epoch: "loss" of the embedding, "sampler" of the sampling network, "safe" the share of safe items,
        and "heldout" where labels were held out.
    module_ : torch.nn.Module
        The trained networks from features to logits, whose mean is the prediction.
    notes_ : dict of str to str
        What the data do not allow to conclude, by code; each was issued as a `CrowdWarning`.
    n_features_in_ : int
        Number of columns of X in `fit`; only where a row is a vector, not an image.
    feature_names_in_ : ndarray of str of shape (n_features_in_,)
        Names of the columns of X in `fit`; only where X was a data frame with string names.

    References
    ----------
    Y. Hao, W. Ding and Z. Liu (2021), NeuCrowd: neural sampling network for representation learning with crowdsourced
    labels, Knowledge and Information Systems.

    Examples
    --------
    >>> import numpy as np
    >>> from manyhands import Annotations, NeuCrowd
    >>> X = np.repeat([[0.0, 1.0], [1.0, 0.0]], 20, axis=0)
    >>> votes = Annotations.from_matrix(np.repeat([[0, 0, 1], [1, 1, 1]], 20, axis=0))
    >>> model = NeuCrowd(embedding_size=10, max_epochs=20, random_state=0).fit(X, votes)
    >>> model.transform(X).shape, model.predict(X[[0, 39]]).tolist()
    ((40, 10), [0, 1])
    """

    _constraints: ClassVar[dict[str, Constraint]] = REPRESENTATION_CONSTRAINTS | {
        "tuplets": Options(Tuplets),
        "confidence": Options(LabelConfidence),
        "safety": Options(SafetyAwareSampling, optional=True),
        "anchor": OneOf((*ANCHORS, None)),
        "sampler": Boolean(),
        "loss": Options(TupletLoss),
        "members": Number(whole=True, least=1, most=1000),
        "head": Options(LogisticHead),
        "activation": OneOf(tuple(ACTIVATIONS)),
        "optimizer": OneOf(("adam", "adadelta")),
    }

    def __init__(
        self,
        tuplets: Tuplets = Tuplets(),
        confidence: LabelConfidence = LabelConfidence(),
        safety: SafetyAwareSampling | None = SafetyAwareSampling(),
        anchor: str | None = "weighted",
        sampler: bool = True,
        loss: TupletLoss = TupletLoss(),
        members: int = 1,
        head: LogisticHead = LogisticHead(),
        *,
        activation: str = "tanh",
        optimizer: str = "adam",
        labels: Any = "majority-vote",
        embedding_size: int = 32,
        backbone: Any = "mlp",
        hidden: tuple[int, ...] = (128,),
        dropout: float = 0.2,
        batch_norm: bool = False,
        learning_rate: float = 1e-3,
        weight_decay: float = 8e-3,
        batch_size: int = 256,
        max_epochs: int = 180,
        patience: int | None = 30,
        validation: float = 0.2,
        device: str = "cpu",
        checkpoint: str | Path | None = None,
        random_state: Seed = None,
    ) -> None:
        self.tuplets = tuplets
        self.confidence = confidence
        self.safety = safety
        self.anchor = anchor
        self.sampler = sampler
        self.loss = loss
        self.members = members
        self.head = head
        self.activation = activation
        self.optimizer = optimizer
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

    @classmethod
    def plus(cls, **changes: Any) -> Self:
        """NeuCrowd as an ensemble without sampling network, whose regression also uses the features.

        Parameters
        ----------
        **changes : object
            Parameters that differ from those of `plus`, by name; `group__option` sets one option of a group.

        Returns
        -------
        NeuCrowd
        """
        return cls(**PLUS).set_params(**changes)

    def transform(self, X: Any) -> Array:
        """Return the embedding of each row.

        Parameters
        ----------
        X : array-like of shape (n_rows, ...)
            Features, of the same shape per row as in `fit`.

        Returns
        -------
        ndarray of shape (n_rows, embedding_size)
        """
        self._check_fitted()
        return embed(self, [network.inputs.embedder for network in self.module_.networks], self.embedding_size, X)

    def fit_transform(self, X: Any, annotations: Annotations, gold: Mapping[Any, Any] | None = None) -> Array:
        """Learn an embedding, and return that of each training row.

        Parameters
        ----------
        X : array-like of shape (n_items, ...)
            Features; row i belongs to item i of the annotations.
        annotations : Annotations
            The crowd's labels.
        gold : mapping of item id to class, default=None
            Known classes of some items.

        Returns
        -------
        ndarray of shape (n_items, embedding_size)
        """
        return self.fit(X, annotations, gold).transform(X)

    def _learn(self, context: TrainingContext) -> FitResult:
        module: Any = context.network()  # a mean of `EmbeddingClassifier`
        embedders = [network.inputs.embedder for network in module.networks]
        holds_out = self._uses_heldout() and self.validation > 0
        training_sets = member_training_sets(context, self.labels, self.members, holds_out=holds_out)
        options = EmbeddingOptions(self.tuplets, self.confidence, self.safety, self.anchor, self.loss, self.optimizer)
        new_sampler = partial(self._new_sampler, context.data.rows.shape) if self.sampler else None
        members = [
            MemberTraining(options, training_set, embedder, size, new_sampler)
            for training_set, embedder, size in zip(training_sets, embedders, self._sizes())
        ]
        history = train_members(members)
        whole = TrainingSet(replace(context, annotations=context.data.annotations, heldout=None), self.labels)
        confidence = label_confidence(whole, self.confidence.kind, shrink=self.confidence.shrink)
        results = {
            "aggregator_": whole.aggregator,
            "confidence_": confidence,
            "safe_": safe_shares(self.safety or SafetyAwareSampling(), whole, embedders, confidence),
            "C_": fit_heads(module.networks, training_sets, whole, soft_targets=self.head.soft_targets),
            "samplers_": [member.sampler for member in members if member.sampler is not None],
        }
        return FitResult(module, history, whole.aggregator.posterior_, results, whole.aggregator.notes_)

    def _hold_out(
        self, data: TrainingData, share: float, rng: np.random.Generator
    ) -> tuple[Annotations, Annotations | None]:
        """Hold out a share of the items of a single member; several members each hold out others later."""
        if self.members > 1 or share == 0:
            return data.annotations, None
        return item_folds(data, max(round(1 / share), 2), rng)[0]

    def _new_module(self, row_shape: tuple[int, ...], n_classes: int, n_workers: int) -> nn.Module:
        n_features = math.prod(row_shape) if self.head.skip else 0
        embedder = partial(new_embedder, NetworkOptions.of(self), self.activation, row_shape)
        inputs = [HeadInput(embedder(size), n_features) for size in self._sizes()]
        return Ensemble([EmbeddingClassifier(own, size, n_classes) for own, size in zip(inputs, self._sizes())])

    def _new_sampler(self, row_shape: tuple[int, ...], size: int) -> TupletSampler:
        network = new_network(NetworkOptions.of(self), self.activation, row_shape, size, dropout=0.0)
        return TupletSampler(network, size, self.tuplets.size)

    def _sizes(self) -> list[int]:
        return member_sizes(self.embedding_size, self.members)
