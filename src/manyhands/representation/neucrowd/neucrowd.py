"""NeuCrowd: an embedding learned from tuplets of items weighted by confidence, and a classifier on it.

Every epoch, two networks train in one loop:

    1. safe items: those whose neighbours in the embedding support their class; a pool of them and of few others
    2. candidates: many tuplets (anchor, positive, n - 2 negatives) from the pool, with anchors of one class
    3. hard tuplets: those with the largest losses predicted by the sampling network
    4. loss(T) = -log softmax_j(eta A_j (C - |F(e_j) - a|))[positive],  a = sum_i A_i F(e_i) / sum_i A_i of the anchors
    5. a step of the embedding F on the mean loss, one of the sampling network toward the losses

Classes are an aggregator's, A is the confidence in them (`label_confidence`); eta is `loss.scale`, C `loss.offset`.
Steps 1 and 3 start after the warm-up. Logistic regression on the embedding classifies; held-out items choose its C, the
learning rate, eta, the embedding size and the weight decay.
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
from manyhands.classifiers.network import context_for
from manyhands.classifiers.network_options import NetworkOptions
from manyhands.classifiers.training_context import TrainingContext
from manyhands.classifiers.training_data import FitResult, TrainingData
from manyhands.nn.backbones import Ensemble
from manyhands.options import Options
from manyhands.randomness import Seed
from manyhands.representation.base import REPRESENTATION_CONSTRAINTS
from manyhands.representation.neucrowd.embedding_classifier import fit_transform, transform
from manyhands.representation.neucrowd.embedding_network import ACTIVATIONS, new_embedder, new_network
from manyhands.representation.neucrowd.ensemble import item_folds, member_sizes
from manyhands.representation.neucrowd.linear_head import EmbeddingClassifier, HeadInput
from manyhands.representation.neucrowd.member_training import ANCHOR_SPACES, ANCHORS, EmbeddingOptions
from manyhands.representation.neucrowd.options import (
    HeldoutSearch,
    LabelConfidence,
    LogisticHead,
    SafetyAwareSampling,
    TupletLoss,
    Tuplets,
)
from manyhands.representation.neucrowd.plus_settings import PLUS
from manyhands.representation.neucrowd.sampler import TupletSampler
from manyhands.representation.neucrowd.setting_fit import Setting, fit_setting
from manyhands.validation import Boolean, Constraint, Number, OneOf


class NeuCrowd(CrowdClassifier):
    """Embedding learned from tuplets of safe items weighted by confidence, and logistic regression on it.

    It is a representation learner and a classifier: `transform` returns the embedding, and `predict` the class by a
    logistic regression on it, fitted to the aggregator's classes, with C chosen by held-out log-likelihood.

    ``NeuCrowd()`` is the published method: one embedding, safety-aware sampling, a robust anchor, hard tuplets selected
    by a sampling network, classes by majority vote, and hyper-parameters chosen on held-out items. Where the paper is
    silent or cannot be followed: it names no activation and its code has sigmoids; ReLU is the default, because the
    other representation learners have it too, and tables compare all three. Its anchor F(sum_i A_i x_i) mixes features
    without normalisation, which takes F far from all items; the default is the weighted mean of embeddings, close to
    its code (`anchor`, `anchor_space`). Adam replaces Adadelta, and an epoch has five mini-batches rather than 234 as
    in its code: the best embedding is reached within a hundred steps. Validation items have labels of the crowd only.

    `NeuCrowd.plus()` (registry name "neucrowd-plus") changes what helped in our comparisons on a few hundred items:
    there is no sampling network and no search; five smaller embeddings with tanh form an ensemble, whose held-out items
    decide when to stop; the regression also uses the features, and learns the aggregator's posterior; classes come
    from the default aggregator rather than the majority vote.

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
    search : HeldoutSearch or None, default=HeldoutSearch()
        Settings of learning rate, `loss.scale`, embedding size and weight decay to choose from: each is trained, and
        the one whose regression has the highest log-likelihood on held-out items is kept. None, or a fit without
        held-out items, uses the parameters as given.
    anchor_space : {"embedding", "features"}, default="embedding"
        What the robust anchor is a mean of: embeddings as in the paper's code, or features as printed, F(sum A x).
    warm_up : int, default=5
        Epochs in which all items are drawn and no hard tuplets are selected. The paper has none; in its code they are
        one epoch of 234 steps, more than the whole training here. On Syn1, five epochs are the first after which
        held-out labels are predicted better than by class shares; the best epoch is between 7 and 13.
    activation : {"relu", "tanh", "sigmoid"}, default="relu"
        "relu" after all layers but the last, or "tanh" or "sigmoid" after every layer of a perceptron and after the
        embedding.
    optimizer : {"adam", "adadelta"}, default="adam"
        Optimizer of both networks.
    labels : str or Aggregator, default="majority-vote"
        The aggregator that gives items their classes, by its registry name or as an instance.
    embedding_size : int, default=32
        Size of the embedding, divided among the members.
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
        Maximal number of epochs after the warm-up.
    patience : int or None, default=15
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
    best_setting_ : int
        Number of the setting that was chosen, from 0.
    setting_ : dict of str to float
        Parameters that differ in it from those given, by name. Not kept by `save`.
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
        One dict per epoch: "loss", "sampler" (its loss), "safe" (share of safe items), "heldout" of held-out labels.
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

    _of_items = (*CrowdClassifier._of_items, "aggregator_", "confidence_", "safe_")
    _constraints: ClassVar[dict[str, Constraint]] = REPRESENTATION_CONSTRAINTS | {
        "tuplets": Options(Tuplets),
        "confidence": Options(LabelConfidence),
        "safety": Options(SafetyAwareSampling, optional=True),
        "anchor": OneOf((*ANCHORS, None)),
        "sampler": Boolean(),
        "loss": Options(TupletLoss),
        "members": Number(whole=True, least=1, most=1000),
        "head": Options(LogisticHead),
        "search": Options(HeldoutSearch, optional=True),
        "anchor_space": OneOf(ANCHOR_SPACES),
        "warm_up": Number(whole=True, least=0),
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
        search: HeldoutSearch | None = HeldoutSearch(),
        anchor_space: str = "embedding",
        warm_up: int = 5,
        activation: str = "relu",
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
        patience: int | None = 15,
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
        self.search = search
        self.anchor_space = anchor_space
        self.warm_up = warm_up
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

    transform = transform
    fit_transform = fit_transform

    def _learn(self, context: TrainingContext) -> FitResult:
        settings = self._settings()
        if self.members == 1 and context.heldout is None:
            settings = settings[:1]  # there is nothing to choose by
        fits = []
        for n, setting in enumerate(settings):
            model = self._changed(setting)
            own = context_for(model, context, f"setting {n} " if len(settings) > 1 else "")
            fits.append(fit_setting(model._setting(own), own))
        best = int(np.argmax([fit.score for fit in fits]))
        result = fits[best].result
        return replace(result, results={**result.results, "best_setting_": best, "setting_": settings[best]})

    def _setting(self, context: TrainingContext) -> Setting:
        """Parameters of one setting, for the rows of this context."""
        new_sampler = partial(self._new_sampler, context.data.rows.shape) if self.sampler else None
        holds_out = self._uses_heldout() and self.validation > 0
        return Setting(self.labels, self._sizes(), EmbeddingOptions.of(self), self.head, new_sampler, holds_out)

    def _settings(self) -> list[dict[str, float]]:
        """The settings to choose from, as changes of parameters."""
        if self.search is None:
            return [{}]
        return self.search.settings(self.learning_rate, self.loss.scale, self.embedding_size, self.weight_decay)

    def _changed(self, setting: Mapping[str, float]) -> NeuCrowd:
        """A new estimator with these parameters changed, and without a search of its own."""
        given = {**self.get_params(deep=False), "search": None}
        return type(self)(**given).set_params(**setting)

    def _selected(self) -> NeuCrowd:
        """An estimator with the parameters of the setting that was chosen."""
        return self._changed(self._settings()[getattr(self, "best_setting_", 0)])

    def _uses_heldout(self) -> bool:
        return self.patience is not None or self.search is not None

    def _hold_out(
        self, data: TrainingData, share: float, rng: np.random.Generator
    ) -> tuple[Annotations, Annotations | None]:
        """Hold out a share of the items of a single member; several members each hold out others later."""
        if self.members > 1 or share == 0:
            return data.annotations, None
        return item_folds(data, max(round(1 / share), 2), rng)[0]

    def _new_module(self, row_shape: tuple[int, ...], n_classes: int, n_workers: int) -> nn.Module:
        n_features, sizes = math.prod(row_shape) if self.head.skip else 0, self._selected()._sizes()
        embedder = partial(new_embedder, NetworkOptions.of(self), self.activation, row_shape)
        inputs = [HeadInput(embedder(size), n_features) for size in sizes]
        return Ensemble([EmbeddingClassifier(own, size, n_classes) for own, size in zip(inputs, sizes)])

    def _new_sampler(self, row_shape: tuple[int, ...], size: int) -> TupletSampler:
        network = new_network(NetworkOptions.of(self), self.activation, row_shape, size, dropout=0.0)
        return TupletSampler(network, size, self.tuplets.size)

    def _sizes(self) -> list[int]:
        return member_sizes(self.embedding_size, self.members)
