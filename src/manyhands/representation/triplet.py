"""Triplet embedding: an anchor is nearer to an item of its class than to one of another, by a margin.

    loss = mean over triplets of  max(0, D(a, p)^2 - D(a, n)^2 + m)

Triplets are drawn at random, or semi-hard: for every positive pair of a batch the closest negative with D_an > D_ap,
and where there is none the farthest negative.

Reference: F. Schroff, D. Kalenichenko and J. Philbin (2015), FaceNet: a unified embedding for face recognition and
clustering, CVPR.
"""

from __future__ import annotations

from typing import ClassVar, Unpack

import torch
from torch import nn

from manyhands.classifiers.base import FitResult
from manyhands.classifiers.training_context import TrainingContext
from manyhands.nn.backbones import normalised
from manyhands.nn.class_batches import ClassBatch, draw_tuplets
from manyhands.nn.metric_losses import semi_hard_loss, triplet_loss
from manyhands.representation.base import (
    REPRESENTATION_CONSTRAINTS,
    RepresentationLearner,
    RepresentationParameters,
)
from manyhands.representation.training_set import TrainingSet
from manyhands.validation import Constraint, Maybe, Number, OneOf, Switch


class Triplet(RepresentationLearner):
    """An embedding from triplets: nearer to one's own class than to another, by a margin.

    pytorch-metric-learning's TripletMarginLoss is this one if its distance has power 2 and its reducer takes the plain
    mean. Its semi-hard miner is not: it takes all negatives within the margin, and none where none is farther.

    Parameters
    ----------
    selection : "random", one triplet for each item of a batch; or "semi-hard", one for each positive pair
    margin : between squared distances; None is 0.2 for random triplets of normalised embeddings, and 1 otherwise
    normalise : embeddings have length 1
    labels, embedding_size : the aggregator that gives items their classes; numbers in an embedding
    backbone, hidden, dropout, batch_norm : the network, as in `NetworkMethod`
    learning_rate, batch_size, max_epochs, patience, validation : how it is trained and when it stops
    device, checkpoint, random_state : where, from which folder a killed fit goes on, and the seed

    Examples
    --------
    >>> import numpy as np
    >>> from manyhands import Annotations, Triplet
    >>> X = np.repeat([[0.0, 1.0], [1.0, 0.0]], 20, axis=0)
    >>> votes = Annotations.from_matrix(np.repeat([[0, 0, 1], [1, 1, 1]], 20, axis=0))
    >>> Triplet("semi-hard", embedding_size=2, random_state=0).fit_transform(X, votes).shape
    (40, 2)
    """

    _constraints: ClassVar[dict[str, Constraint]] = REPRESENTATION_CONSTRAINTS | {
        "selection": OneOf(("random", "semi-hard")),
        "margin": Maybe(Number(above=0)),
        "normalise": Switch(),
    }

    def __init__(
        self,
        selection: str = "random",
        margin: float | None = None,
        normalise: bool = True,
        **others: Unpack[RepresentationParameters],
    ) -> None:
        super().__init__(**others)
        self.selection = selection
        self.margin = margin
        self.normalise = normalise

    def _learn_network(self, context: TrainingContext) -> FitResult:
        margin = self.margin
        if margin is None:
            margin = 0.2 if self.selection == "random" and self.normalise else 1.0

        def loss(embedding: torch.Tensor, batch: ClassBatch) -> torch.Tensor:
            if self.selection == "semi-hard":
                return semi_hard_loss(embedding, batch.target, margin)
            positive, negative = draw_tuplets(batch, 1, context.rng)
            return triplet_loss(embedding, embedding[positive], embedding[negative], margin)

        return TrainingSet(context, self.labels).learn(loss)

    def _new_module(self, row_shape: tuple[int, ...], n_classes: int, n_workers: int) -> nn.Module:
        network = super()._new_module(row_shape, n_classes, n_workers)
        return normalised(network) if self.normalise else network
