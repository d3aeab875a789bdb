"""NeuCrowd: an embedding from tuplets of trusted items, the hard ones among them chosen by a network that learns which.

Every epoch, of two networks that learn in one loop:

    1. safe items: those whose neighbours in the embedding speak for their class; a pool of them and of few others
    2. candidates: many times a batch of tuplets (anchor, positive, n - 2 negatives) from the pool, of one anchor class
    3. the hard ones: those of which the sampling network foretells the largest losses
    4. loss(T) = -log softmax_j( g A_j (c - |F(e_j) - a|) )[positive],  a = sum_i A_i F(e_i) / sum_i A_i of the anchors
    5. a step of the embedding F down the mean loss and lambda |W|^2, one of the sampling network toward the losses

The classes are an aggregator's, and A is how far they are to be trusted (`representation.trust`). Steps 1 and 3 begin
with the second epoch. Logistic regression on the embedding classifies.

Reference: Y. Hao, W. Ding and Z. Liu (2021), NeuCrowd: neural sampling network for representation learning with
crowdsourced labels, Knowledge and Information Systems.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from torch import nn

from manyhands.classifiers.base import Learned
from manyhands.classifiers.bench import Bench
from manyhands.classifiers.network import NetworkClassifier
from manyhands.consensus import pick_classes
from manyhands.nn.backbones import build
from manyhands.nn.networks import outputs
from manyhands.representation.base import (
    REPRESENTATION_CONSTRAINTS,
    RepresentationLearner,
)
from manyhands.representation.linear_head import Classified, fit_head
from manyhands.representation.network import Lesson
from manyhands.representation.neucrowd_epochs import ANCHORS, TupletEpochs
from manyhands.representation.trust import CONFIDENCES
from manyhands.tuplets import RIVALS
from manyhands.validation import Constraint, Maybe, Number, OneOf, Switch

_ACTIVATIONS: dict[str, type[nn.Module]] = {"tanh": nn.Tanh, "sigmoid": nn.Sigmoid, "relu": nn.ReLU}


class NeuCrowd(RepresentationLearner, NetworkClassifier):
    """An embedding from a few hundred items, of tuplets that are safe, trusted and hard; and a classifier on it.

    It is both: `transform` gives the embedding, `predict` what logistic regression makes of it, fitted to the
    aggregator's classes with the C by which cross-validation foretold them best.

    Parameters
    ----------
    n_tuple : items in a tuplet: an anchor, a positive, and the rest are negatives
    safety, robust_anchor, sampler : the three parts of the method, each of which can be left out
    scale, offset : g and c of the loss
    weighting : the trust A of an item "inside" the exponent, exp(g A R), or "outside", A exp(g R)
    confidence : what A is, as in `representation.trust`: "assurance", "mle", "bayesian" or "posterior"
    shrink : A of an item with d labels is multiplied by d / (d + 1)
    anchor : the robust anchor is the "weighted" mean of a batch's anchors, or their weighted "sum" as it is printed, or
        that sum over their number, the "mean"
    hard_rate : so many times as many candidates as a batch has tuplets
    unsafe_share : of the items that are not safe, so many are in the pool
    margin, rival, n_neighbors : an item is safe if its class is ahead by so much of "all" other classes, or of the
        "strongest" of them, among so many neighbours; None is the root of batch_size
    batches_per_epoch : steps of each network in an epoch
    weight_decay : lambda, on the mean loss
    activation : "tanh" or "sigmoid" behind every layer, or "relu" behind all but the last
    optimizer : "adam" or "adadelta"
    labels, embedding_size : the aggregator that gives items their classes; numbers in an embedding
    backbone, hidden, dropout, batch_norm : the network, as in `NetworkMethod`
    learning_rate, batch_size, max_epochs, patience, validation : how it is trained and when it stops; a batch has
        batch_size tuplets
    device, checkpoint, random_state : where, from which folder a killed fit goes on, and the seed

    Attributes
    ----------
    confidence_ : (n_items,) A of the items that were learnt from, NaN for the others
    safe_ : (n_items,) whether an item is safe in the embedding that was learnt; False for those not learnt from
    C_ : of the logistic regression; NaN where a single class was met
    sampler_ : the sampling network, or None; not kept by `save`
    history_ : "loss" of the embedding, "sampler" of the sampling network, "safe" the share of safe items

    Examples
    --------
    >>> import numpy as np
    >>> from manyhands import Annotations, NeuCrowd
    >>> X = np.repeat([[0.0, 1.0], [1.0, 0.0]], 20, axis=0)
    >>> votes = Annotations.from_matrix(np.repeat([[0, 0, 1], [1, 1, 1]], 20, axis=0))
    >>> model = NeuCrowd(embedding_size=2, max_epochs=3, random_state=0).fit(X, votes)
    >>> model.transform(X).shape, model.predict(X[[0, 39]]).tolist()
    ((40, 2), [0, 1])
    """

    _constraints: ClassVar[dict[str, Constraint]] = REPRESENTATION_CONSTRAINTS | {
        "n_tuple": Number(whole=True, least=3),
        "safety": Switch(),
        "robust_anchor": Switch(),
        "sampler": Switch(),
        "scale": Number(above=0),
        "offset": Number(),
        "weighting": OneOf(("inside", "outside")),
        "confidence": OneOf(CONFIDENCES),
        "shrink": Switch(),
        "anchor": OneOf(ANCHORS),
        "hard_rate": Number(whole=True, least=1),
        "unsafe_share": Number(least=0, most=1),
        "margin": Number(least=0),
        "rival": OneOf(RIVALS),
        "n_neighbors": Maybe(Number(whole=True, least=1)),
        "batches_per_epoch": Number(whole=True, least=1),
        "weight_decay": Number(least=0),
        "activation": OneOf(tuple(_ACTIVATIONS)),
        "optimizer": OneOf(("adam", "adadelta")),
    }

    def __init__(
        self,
        n_tuple: int = 5,
        safety: bool = True,
        robust_anchor: bool = True,
        sampler: bool = True,
        scale: float = 2.0,
        offset: float = 1.0,
        weighting: str = "inside",
        confidence: str = "assurance",
        shrink: bool = False,
        anchor: str = "weighted",
        hard_rate: int = 4,
        unsafe_share: float = 0.02,
        margin: float = 0.0,
        rival: str = "all",
        n_neighbors: int | None = None,
        batches_per_epoch: int = 60,
        weight_decay: float = 4e-3,
        activation: str = "tanh",
        optimizer: str = "adam",
        *,
        batch_size: int = 256,
        max_epochs: int = 30,
        **others: Any,
    ) -> None:
        super().__init__(batch_size=batch_size, max_epochs=max_epochs, **others)
        self.n_tuple = n_tuple
        self.safety = safety
        self.robust_anchor = robust_anchor
        self.sampler = sampler
        self.scale = scale
        self.offset = offset
        self.weighting = weighting
        self.confidence = confidence
        self.shrink = shrink
        self.anchor = anchor
        self.hard_rate = hard_rate
        self.unsafe_share = unsafe_share
        self.margin = margin
        self.rival = rival
        self.n_neighbors = n_neighbors
        self.batches_per_epoch = batches_per_epoch
        self.weight_decay = weight_decay
        self.activation = activation
        self.optimizer = optimizer

    def _learn_network(self, bench: Bench) -> Learned:
        module: Any = bench.network()  # a `Classified`
        epochs = TupletEpochs(self, Lesson(bench, self.labels), module.embedder)
        learned = epochs.learn()
        first = learned.results["aggregator_"]
        items = np.flatnonzero(~first.unlabelled_)
        target = pick_classes(first.posterior_[items], np.zeros(len(items), bool))[0]
        embedding = outputs(module.embedder, bench.task.rows, items).numpy()
        head = fit_head(embedding, target, bench.n_classes, bench.rng)
        module.take(head)
        return replace(learned, module=module, results=dict(learned.results) | {"C_": head.C})

    def _embedder(self) -> nn.Module:
        embedder: nn.Module = self.module_.embedder
        return embedder

    def _new_module(self, row_shape: tuple[int, ...], n_classes: int, n_workers: int) -> nn.Module:
        network = self._new_network(row_shape, self.dropout)
        free = [_ACTIVATIONS[self.activation]()] if self.activation != "relu" else []
        dropped = [nn.Dropout(self.dropout)] if free and self.dropout else []
        return Classified(nn.Sequential(network, *free, *dropped), self.embedding_size, n_classes)

    def _new_network(self, row_shape: tuple[int, ...], dropout: float) -> nn.Module:
        """From features to as many numbers as an embedding has."""
        return build(
            self.backbone,
            row_shape,
            self.embedding_size,
            hidden=self.hidden,
            dropout=dropout,
            batch_norm=self.batch_norm,
            activation=_ACTIVATIONS[self.activation],
        )
