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

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from torch import nn

from manyhands import registry
from manyhands.annotations import Annotations
from manyhands.classifiers.base import FitResult, TrainingData
from manyhands.classifiers.network import NetworkClassifier
from manyhands.classifiers.training_context import TrainingContext
from manyhands.exceptions import ParameterError
from manyhands.heldout import split_items
from manyhands.nn.backbones import Ensemble, build
from manyhands.representation.base import REPRESENTATION_CONSTRAINTS, RepresentationLearner
from manyhands.representation.label_confidence import CONFIDENCES, confidence_of
from manyhands.representation.neucrowd.epochs import ANCHORS, Member, safe_now, train_together
from manyhands.representation.neucrowd.linear_head import Classified, Seen, Split, choose_strength, folds, regressions
from manyhands.representation.neucrowd.tuplets import RIVALS
from manyhands.representation.training_set import TrainingSet
from manyhands.validation import Boolean, Constraint, NoneOr, Number, OneOf

# What the paper and its code do where the defaults do otherwise. Adam and tanh stand for Adadelta and sigmoids, which
# take many times as many steps; and an epoch is five batches where the code has 234, since the best embedding is found
# within a hundred steps: of longer epochs the first is the best, and in that one no part of the method has begun.
_AS_PUBLISHED: dict[str, Any] = {
    "sampler": True,
    "labels": "majority-vote",
    "members": 1,
    "soft": False,
    "skip": False,
    "embedding_size": 32,
    "batch_size": 256,
    "learning_rate": 1e-3,
    "max_epochs": 180,
    "patience": 30,
    "validation": 0.2,
}

_FEW = 5  # items in a fold, or a training would stop by chance
_ACTIVATIONS: dict[str, type[nn.Module]] = {"tanh": nn.Tanh, "sigmoid": nn.Sigmoid, "relu": nn.ReLU}


class NeuCrowd(RepresentationLearner, NetworkClassifier):
    """Embeddings from a few hundred labelled items, of tuplets that are safe and trusted, and a classifier on them.

    It is both: `transform` gives the embedding, `predict` what logistic regression makes of it, fitted to the
    aggregator's classes with the C by which it foretells best the classes of items that it left out.

    `NeuCrowd.as_published()` is nearer to the paper: one embedding, hard tuplets chosen by a sampling network, classes
    from the vote. By default there is no such network, since hard tuplets helped nowhere; there are several embeddings,
    and the regression sees the features too (docs/results/neucrowd.md).

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
    hard_rate : so many times as many candidates as a batch has tuplets; they are drawn without a sampling network too
    unsafe_share : of the items that are not safe, so many are in the pool
    margin, rival, n_neighbors : an item is safe if its class is ahead by so much of "all" other classes, or of the
        "strongest" of them, among so many neighbours; None is the root of batch_size
    batches_per_epoch : steps of each network in an epoch, with anchors of one class in each: of many classes an epoch
        may see a few
    weight_decay : lambda, on the mean loss
    activation : "tanh" or "sigmoid" behind every layer of a perceptron and behind the embedding, or "relu" behind all
        but the last
    optimizer : "adam" or "adadelta"
    members : so many embeddings are learnt; each leaves out all labels of some of the items, every item is left out
        once, and by what is left out it is decided when they stop, and C. Answers are the means of theirs
    soft : the regression learns what the aggregator believes of an item rather than its likeliest class
    skip : the regression sees the features too, beside the embedding and as important; they are then held as an array
        of items x features for every member, sparse ones too
    labels : the aggregator that gives items their classes
    embedding_size : numbers in an embedding, shared out among the members
    backbone, hidden, dropout, batch_norm : the network, as in `NetworkMethod`
    learning_rate, batch_size, max_epochs, patience : how it is trained and when it stops; batch_size counts tuplets
    validation : about the share of the items whose labels a single member leaves out, one part of a whole number of
        equal parts; 0 leaves out none, of several members too
    device, checkpoint, random_state : where, from which folder a killed fit goes on, and the seed

    Attributes
    ----------
    confidence_ : (n_items,) A of the items that were learnt from, NaN for the others
    safe_ : (n_items,) share of the members in whose embedding an item is safe; 0 for those not learnt from
    C_ : of the logistic regression, as in `representation.linear_head`
    samplers_ : the sampling networks, none without them; not kept by `save`
    history_ : "loss" of the embedding, "sampler" of the sampling network, "safe" the share of safe items

    Examples
    --------
    >>> import numpy as np
    >>> from manyhands import Annotations, NeuCrowd
    >>> X = np.repeat([[0.0, 1.0], [1.0, 0.0]], 20, axis=0)
    >>> votes = Annotations.from_matrix(np.repeat([[0, 0, 1], [1, 1, 1]], 20, axis=0))
    >>> model = NeuCrowd(labels="majority-vote", embedding_size=10, random_state=0).fit(X, votes)
    >>> model.transform(X).shape, model.predict(X[[0, 39]]).tolist()
    ((40, 10), [0, 1])
    """

    _constraints: ClassVar[dict[str, Constraint]] = REPRESENTATION_CONSTRAINTS | {
        "n_tuple": Number(whole=True, least=3),
        "safety": Boolean(),
        "robust_anchor": Boolean(),
        "sampler": Boolean(),
        "scale": Number(above=0),
        "offset": Number(),
        "weighting": OneOf(("inside", "outside")),
        "confidence": OneOf(CONFIDENCES),
        "shrink": Boolean(),
        "anchor": OneOf(ANCHORS),
        "hard_rate": Number(whole=True, least=1),
        "unsafe_share": Number(least=0, most=1),
        "margin": Number(least=0),
        "rival": OneOf(RIVALS),
        "n_neighbors": NoneOr(Number(whole=True, least=1)),
        "batches_per_epoch": Number(whole=True, least=1),
        "weight_decay": Number(least=0),
        "activation": OneOf(tuple(_ACTIVATIONS)),
        "optimizer": OneOf(("adam", "adadelta")),
        "members": Number(whole=True, least=1, most=1000),
        "soft": Boolean(),
        "skip": Boolean(),
    }

    def __init__(
        self,
        n_tuple: int = 5,
        safety: bool = True,
        robust_anchor: bool = True,
        sampler: bool = False,
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
        batches_per_epoch: int = 5,
        weight_decay: float = 4e-3,
        activation: str = "tanh",
        optimizer: str = "adam",
        members: int = 5,
        soft: bool = True,
        skip: bool = True,
        *,
        labels: Any = registry.DEFAULT,
        embedding_size: int = 160,
        learning_rate: float = 3e-3,
        max_epochs: int = 30,
        patience: int | None = 5,
        **others: Any,
    ) -> None:
        given: dict[str, Any] = {"labels": labels, "embedding_size": embedding_size, "learning_rate": learning_rate}
        super().__init__(**given, max_epochs=max_epochs, patience=patience, **others)
        self.members = members
        self.soft = soft
        self.skip = skip
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

    @classmethod
    def as_published(cls, **changes: Any) -> Self:
        """With the settings of the paper or its code, as far as they make sense; the stop rule still sees no truth."""
        return cls(**(_AS_PUBLISHED | changes))

    def _learn_network(self, context: TrainingContext) -> FitResult:
        module: Any = context.network()  # a mean of `Classified`
        members = [
            Member(self, training_set, network.seen.embedder, size)
            for training_set, network, size in zip(self._lessons(context), module.networks, self._sizes())
        ]
        history = train_together(members)
        whole = TrainingSet(replace(context, annotations=context.data.annotations, heldout=None), self.labels)
        confidence = confidence_of(whole, self.confidence, shrink=self.shrink)
        safe = np.zeros(context.data.annotations.n_items)
        for network in module.networks:
            safe[whole.items] += safe_now(self, whole, network.seen.embedder, confidence[whole.items]) / len(members)
        results = {
            "aggregator_": whole.aggregator,
            "confidence_": confidence,
            "safe_": safe,
            "C_": self._classify(module.networks, members, whole),
            "samplers_": [member.sampler for member in members if member.sampler is not None],
        }
        return FitResult(module, history, whole.aggregator.posterior_, results, whole.aggregator.notes_)

    def _hold_out(
        self, data: TrainingData, share: float, rng: np.random.Generator
    ) -> tuple[Annotations, Annotations | None]:
        """Of a single member the share of items, of several none yet: each of them leaves out others."""
        if self.members > 1 or share == 0:
            return data.annotations, None
        return _left_out(data, max(round(1 / share), 2), rng)[0]

    def _lessons(self, context: TrainingContext) -> list[TrainingSet]:
        """What each member learns from: several leave out all labels of some items, and every item is left out once."""
        if self.members == 1 or not self._compares() or self.validation == 0:
            return [TrainingSet(context, self.labels)] * self.members  # the truth is inferred once for all
        parts = _left_out(context.data, self.members, context.rng)
        return [TrainingSet(replace(context, annotations=kept, heldout=left), self.labels) for kept, left in parts]

    def _classify(self, networks: Sequence[Any], members: Sequence[Member], whole: TrainingSet) -> float:
        """Fit the regression of each member to all items, with a C chosen for all of them; return that."""
        posterior = whole.aggregator.posterior_[whole.items]
        target = posterior if self.soft else np.eye(posterior.shape[1])[whole.target]
        seen = [network.seen.balance(whole.context.data.rows, whole.items) for network in networks]
        sights: list[Split] = []
        for embedding, member in zip(seen, members):
            taught = np.isin(whole.items, member.training_set.items)
            if taught.all():
                sights += folds(embedding, target, whole.context.rng)
            else:
                sights += [Split(embedding, np.flatnonzero(taught), np.flatnonzero(~taught))]
        C = choose_strength(sights, target)
        for network, embedding in zip(networks, seen):
            network.classify_by(regressions(embedding, target, (C,))[0])
        return C

    def _embedders(self) -> list[nn.Module]:
        return [network.seen.embedder for network in self.module_.networks]

    def _new_module(self, row_shape: tuple[int, ...], n_classes: int, n_workers: int) -> nn.Module:
        n_features = math.prod(row_shape) if self.skip else 0
        seen = [Seen(self._new_embedder(row_shape, size), n_features) for size in self._sizes()]
        return Ensemble([Classified(own, size, n_classes) for own, size in zip(seen, self._sizes())])

    def _sizes(self) -> list[int]:
        """How many numbers of an embedding each member has."""
        if self.members > self.embedding_size:
            raise ParameterError(
                f"The embedding_size {self.embedding_size} is shared out among {self.members} members; raise it to "
                f"that, or have fewer members."
            )
        each, more = divmod(self.embedding_size, self.members)
        return [each + (m < more) for m in range(self.members)]

    def _new_embedder(self, row_shape: tuple[int, ...], size: int) -> nn.Module:
        network = self._new_network(row_shape, size, self.dropout)
        if self.activation == "relu":
            return network
        dropped = [nn.Dropout(self.dropout)] if self.dropout else []
        return nn.Sequential(network, _ACTIVATIONS[self.activation](), *dropped)

    def _new_network(self, row_shape: tuple[int, ...], size: int, dropout: float) -> nn.Module:
        """From features to so many numbers."""
        return build(
            self.backbone,
            row_shape,
            size,
            hidden=self.hidden,
            dropout=dropout,
            batch_norm=self.batch_norm,
            activation=_ACTIVATIONS[self.activation],
        )


def _left_out(
    data: TrainingData, n_folds: int, rng: np.random.Generator
) -> list[tuple[Annotations, Annotations | None]]:
    """For each fold of the items the labels of the others, and its own; None, and no fold, where items are few.

    Gold teaches whatever is left out, so that items of known class are in no fold.
    """
    votes = data.annotations
    fold = split_items(votes, n_folds, rng, None if data.gold is None else data.gold >= 0)
    if len(np.unique(votes.item[fold >= 0])) < _FEW * n_folds:
        return [(votes, None)] * n_folds
    return [(votes.keep(np.flatnonzero(fold != m)), votes.keep(np.flatnonzero(fold == m))) for m in range(n_folds)]
