"""Contrastive embedding (Siamese networks): pairs of a class are drawn together, other pairs pushed a margin apart.

    loss = mean over the pairs of a batch of  s D^2 + (1 - s) max(0, m - D)^2,   s = 1 for two items of a class

Reference: R. Hadsell, S. Chopra and Y. LeCun (2006), Dimensionality reduction by learning an invariant mapping, CVPR.
"""

from __future__ import annotations

from typing import ClassVar, Unpack

from manyhands.classifiers.base import FitResult
from manyhands.classifiers.training_context import TrainingContext
from manyhands.nn.metric_losses import contrastive_loss
from manyhands.representation.base import (
    REPRESENTATION_CONSTRAINTS,
    RepresentationLearner,
    RepresentationParameters,
)
from manyhands.representation.training_set import TrainingSet
from manyhands.validation import Constraint, Number


class Contrastive(RepresentationLearner):
    """An embedding from pairs: near where the crowd names one class, a margin apart where it names two.

    pytorch-metric-learning's ContrastiveLoss is another loss: it has D and m - D without the squares.

    Parameters
    ----------
    margin : from this Euclidean distance on, items of different classes leave each other alone
    labels, embedding_size : the aggregator that gives items their classes; numbers in an embedding
    backbone, hidden, dropout, batch_norm : the network, as in `NetworkMethod`
    learning_rate, batch_size, max_epochs, patience, validation : how it is trained and when it stops
    device, checkpoint, random_state : where, from which folder a killed fit goes on, and the seed

    Examples
    --------
    >>> import numpy as np
    >>> from manyhands import Annotations, Contrastive
    >>> X = np.repeat([[0.0, 1.0], [1.0, 0.0]], 20, axis=0)
    >>> votes = Annotations.from_matrix(np.repeat([[0, 0, 1], [1, 1, 1]], 20, axis=0))
    >>> Contrastive(embedding_size=2, random_state=0).fit_transform(X, votes).shape
    (40, 2)
    """

    _constraints: ClassVar[dict[str, Constraint]] = REPRESENTATION_CONSTRAINTS | {"margin": Number(above=0)}

    def __init__(self, margin: float = 1.0, **others: Unpack[RepresentationParameters]) -> None:
        super().__init__(**others)
        self.margin = margin

    def _learn_network(self, context: TrainingContext) -> FitResult:
        return TrainingSet(context, self.labels).learn(lambda e, batch: contrastive_loss(e, batch.target, self.margin))
