"""Triplet-center embedding: an item is nearer to the centre of its class than to any other centre, by a margin.

    loss = mean of  max(0, D(e_i, c_y) + m - min_{k != y} D(e_i, c_k)),   D half the squared distance

The centres c_k are learnt along with the network, at a rate of their own. NeuCrowd's tables call this "Center"; it is
not the center loss that stands beside a softmax.

Reference: X. He, Y. Zhou, Z. Zhou, S. Bai and X. Bai (2018), Triplet-center loss for multi-view 3D object retrieval,
CVPR.
"""

from __future__ import annotations

from typing import ClassVar, Unpack

import numpy as np
import torch
from torch import nn

from manyhands.classifiers.base import FitResult
from manyhands.classifiers.training_context import TrainingContext
from manyhands.em.kernels import Array
from manyhands.nn.backbones import normalised
from manyhands.nn.class_batches import ClassBatch
from manyhands.nn.metric_losses import triplet_center_loss
from manyhands.representation.base import (
    REPRESENTATION_CONSTRAINTS,
    RepresentationLearner,
    RepresentationParameters,
)
from manyhands.representation.training_set import TrainingSet
from manyhands.validation import Constraint, Maybe, Number, Switch


class Center(RepresentationLearner):
    """An embedding around a learnt centre for each class, nearer to one's own than to any other by a margin.

    pytorch-metric-learning has no such loss.

    Parameters
    ----------
    margin : between halves of squared distances; None is 1 for normalised embeddings, and 5 for others
    center_learning_rate : of plain gradient descent, for the centres
    normalise : embeddings have length 1; centres are free
    labels, embedding_size : the aggregator that gives items their classes; numbers in an embedding
    backbone, hidden, dropout, batch_norm : the network, as in `NetworkMethod`
    learning_rate, batch_size, max_epochs, patience, validation : how it is trained and when it stops
    device, checkpoint, random_state : where, from which folder a killed fit goes on, and the seed

    Attributes
    ----------
    centers_ : (n_classes, embedding_size) the centres; NaN for a class that no item was given

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
        "margin": Maybe(Number(above=0)),
        "center_learning_rate": Number(above=0),
        "normalise": Switch(),
    }

    def __init__(
        self,
        margin: float | None = None,
        center_learning_rate: float = 0.1,
        normalise: bool = True,
        **others: Unpack[RepresentationParameters],
    ) -> None:
        super().__init__(**others)
        self.margin = margin
        self.center_learning_rate = center_learning_rate
        self.normalise = normalise

    def _learn_network(self, context: TrainingContext) -> FitResult:
        training_set = TrainingSet(context, self.labels)
        network = context.network()
        present = training_set.batches.classes  # a centre where there is no item would only stand in the way
        centres = nn.Embedding(len(present), self.embedding_size).to(context.device)
        with torch.no_grad():
            centres.weight.div_(centres.weight.norm(dim=1, keepdim=True))
        place = torch.zeros(context.n_classes, dtype=torch.long, device=context.device)
        place[torch.from_numpy(present).long()] = torch.arange(len(present), device=context.device)
        optimizers = {
            "adam": context.adam(network),
            "centres": torch.optim.SGD(centres.parameters(), lr=self.center_learning_rate),
        }
        margin = (1.0 if self.normalise else 5.0) if self.margin is None else self.margin

        def step(batch: ClassBatch) -> torch.Tensor:
            loss = triplet_center_loss(network(training_set.x(batch)), place[batch.target], centres.weight, margin)
            for optimizer in optimizers.values():
                optimizer.zero_grad(set_to_none=True)
            loss.backward()  # type: ignore[no-untyped-call]
            for optimizer in optimizers.values():
                optimizer.step()
            return loss.detach()

        def all_centres() -> Array:
            found = np.full((context.n_classes, self.embedding_size), np.nan)
            found[present] = centres.weight.detach().double().cpu().numpy()
            return found

        return training_set.train(step, {"network": network, "centres": centres}, optimizers, centers_=all_centres)

    def _new_module(self, row_shape: tuple[int, ...], n_classes: int, n_workers: int) -> nn.Module:
        network = super()._new_module(row_shape, n_classes, n_workers)
        return normalised(network) if self.normalise else network
