"""Lifted structure embedding: every positive pair of a batch against all negatives of both its ends.

    J_ij = log( sum_{k in N(i)} exp(m - D_ik) + sum_{l in N(j)} exp(m - D_jl) ) + D_ij
    loss = 1 / (2 |P|) sum over positive pairs P of max(0, J_ij)^2

Reference: H. O. Song, Y. Xiang, S. Jegelka and S. Savarese (2016), Deep metric learning via lifted structured feature
embedding, CVPR.
"""

from __future__ import annotations

from typing import ClassVar, Unpack

from manyhands.classifiers.base import FitResult
from manyhands.classifiers.training_context import TrainingContext
from manyhands.nn.metric_losses import lifted_loss
from manyhands.representation.base import (
    REPRESENTATION_CONSTRAINTS,
    RepresentationLearner,
    RepresentationParameters,
)
from manyhands.representation.training_set import TrainingSet
from manyhands.validation import Constraint, Number


class Lifted(RepresentationLearner):
    """An embedding from all pairs of a batch at once: each positive pair against all negatives of its two ends.

    pytorch-metric-learning's LiftedStructureLoss is this one if its distance does not normalise; it takes an array of
    positive x negative pairs, and here an array of items x items is enough.

    Parameters
    ----------
    margin : m above, in Euclidean distance
    labels, embedding_size : the aggregator that gives items their classes; numbers in an embedding
    backbone, hidden, dropout, batch_norm : the network, as in `NetworkMethod`
    learning_rate, batch_size, max_epochs, patience, validation : how it is trained and when it stops
    device, checkpoint, random_state : where, from which folder a killed fit goes on, and the seed

    Examples
    --------
    >>> import numpy as np
    >>> from manyhands import Annotations, Lifted
    >>> X = np.repeat([[0.0, 1.0], [1.0, 0.0]], 20, axis=0)
    >>> votes = Annotations.from_matrix(np.repeat([[0, 0, 1], [1, 1, 1]], 20, axis=0))
    >>> Lifted(embedding_size=2, random_state=0).fit_transform(X, votes).shape
    (40, 2)
    """

    _constraints: ClassVar[dict[str, Constraint]] = REPRESENTATION_CONSTRAINTS | {"margin": Number(above=0)}

    def __init__(self, margin: float = 1.0, **others: Unpack[RepresentationParameters]) -> None:
        super().__init__(**others)
        self.margin = margin

    def _learn_network(self, context: TrainingContext) -> FitResult:
        return TrainingSet(context, self.labels).learn(lambda e, batch: lifted_loss(e, batch.target, self.margin))
