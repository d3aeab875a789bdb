"""RLL: tuplets of an anchor, a positive and some negatives, weighted by how far the labels are to be trusted.

    p(positive) = w+ exp(g R+) / sum_j w_j exp(g R_j) over the positive and the negatives,   loss = -log p(positive)
    R = cos(query(anchor), document(j)), two networks;   w = v / d  or  (v + pi d) / (2 d)

An item has d labels, v of which name its class, and pi is the share of that class among the items. In NeuCrowd's tables
RLL is NeuCrowd without its three parts: one network, R = 1 - D, and the confidence inside the exponent, exp(g A R).

Reference: G. Xu, W. Ding, J. Tang, S. Yang, G. Y. Huang and Z. Liu (2019), Learning effective embeddings from
crowdsourced labels: an educational case study, ICDE.
"""

from __future__ import annotations

from typing import ClassVar, Unpack

import numpy as np
import torch
from torch import nn

from manyhands.classifiers.base import FitResult
from manyhands.classifiers.training_context import TrainingContext
from manyhands.nn.backbones import normalised
from manyhands.nn.class_batches import ClassBatch, draw_tuplets
from manyhands.nn.metric_losses import root, tuplet_loss
from manyhands.nn.train import descend
from manyhands.representation.base import (
    REPRESENTATION_CONSTRAINTS,
    RepresentationLearner,
    RepresentationParameters,
)
from manyhands.representation.label_confidence import confidence_of
from manyhands.representation.training_set import TrainingSet
from manyhands.validation import Constraint, Maybe, Number, OneOf


class RLL(RepresentationLearner):
    """An embedding from tuplets that trust an item as far as its labels agree.

    The embedding is the query network's. pytorch-metric-learning's tuplet losses know no confidence.

    Parameters
    ----------
    similarity : "cosine" as in RLL, two networks and w exp(g R); "distance" as in NeuCrowd, one and exp(g w R)
    n_negatives : items of other classes in a tuplet
    scale : g; None is 10 for the cosine and 2 for the distance
    confidence : "bayesian" (v + pi d) / 2d, "mle" v / d, or "assurance", as in `representation.trust`
    labels, embedding_size : the aggregator that gives items their classes; numbers in an embedding
    backbone, hidden, dropout, batch_norm : the network, as in `NetworkMethod`
    learning_rate, batch_size, max_epochs, patience, validation : how it is trained and when it stops
    device, checkpoint, random_state : where, from which folder a killed fit goes on, and the seed

    Attributes
    ----------
    confidence_ : (n_items,) w of the items that were learnt from, NaN for the others

    Examples
    --------
    >>> import numpy as np
    >>> from manyhands import RLL, Annotations
    >>> X = np.repeat([[0.0, 1.0], [1.0, 0.0]], 20, axis=0)
    >>> votes = Annotations.from_matrix(np.repeat([[0, 0, 1], [1, 1, 1]], 20, axis=0))
    >>> RLL(embedding_size=2, random_state=0).fit_transform(X, votes).shape
    (40, 2)
    """

    _constraints: ClassVar[dict[str, Constraint]] = REPRESENTATION_CONSTRAINTS | {
        "similarity": OneOf(("cosine", "distance")),
        "n_negatives": Number(whole=True, least=1),
        "scale": Maybe(Number(above=0)),
        "confidence": OneOf(("bayesian", "mle", "assurance")),
    }

    def __init__(
        self,
        similarity: str = "cosine",
        n_negatives: int = 3,
        scale: float | None = None,
        confidence: str = "bayesian",
        **others: Unpack[RepresentationParameters],
    ) -> None:
        super().__init__(**others)
        self.similarity = similarity
        self.n_negatives = n_negatives
        self.scale = scale
        self.confidence = confidence

    def _learn_network(self, context: TrainingContext) -> FitResult:
        training_set = TrainingSet(context, self.labels)
        cosine = self.similarity == "cosine"
        scale = (10.0 if cosine else 2.0) if self.scale is None else self.scale
        weight = confidence_of(training_set, self.confidence)
        trust = torch.from_numpy(weight).float().to(context.device)
        networks = {"network": context.network()} | ({"document": context.network()} if cosine else {})
        query, document = networks["network"], networks.get("document", networks["network"])
        optimizer = context.adam(*networks.values())
        compare = cosine_of_units if cosine else closeness

        def step(batch: ClassBatch) -> torch.Tensor:
            x = training_set.x(batch)
            anchor = query(x)
            other = document(x) if cosine else anchor
            positive, negative = draw_tuplets(batch, self.n_negatives, context.rng)
            members = np.column_stack([positive, negative])  # (n, 1 + n_negatives) rows of the batch
            similarity = compare(anchor.unsqueeze(1), other[members])
            loss = tuplet_loss(similarity, trust[batch.item[members]], scale, inside=not cosine)
            return descend(optimizer, loss)

        return training_set.train(step, networks, {"adam": optimizer}, confidence_=lambda: weight)

    def _new_module(self, row_shape: tuple[int, ...], n_classes: int, n_workers: int) -> nn.Module:
        network = super()._new_module(row_shape, n_classes, n_workers)
        return normalised(network) if self.similarity == "cosine" else network


def cosine_of_units(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """The cosine between vectors of length 1."""
    return (one * other).sum(-1)


def closeness(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """1 - D."""
    return 1 - root((one - other).square().sum(-1))
