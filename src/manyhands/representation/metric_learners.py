"""The representation learners that NeuCrowd is compared with: one loss of the embeddings of a mini-batch each.

`Center`, `Contrastive` (Siamese networks), `Lifted` and `Triplet` learn from the classes that an aggregator gives to
the items (group 2 and, with another aggregator than the vote, group 3 of NeuCrowd's Section 4.2); `RLL` weights items
by the agreement of their labels too. The losses are in `nn.losses`; `TrainingSet.fit_embedding` trains by any of them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import nn

from manyhands._core.arrays import Array
from manyhands._core.randomness import Seed
from manyhands.classifiers.network import FitResult, TrainingContext
from manyhands.nn.backbones import normalised, outputs
from manyhands.nn.batches import ClassBatch, draw_tuplets
from manyhands.nn.losses import (
    contrastive_loss,
    lifted_loss,
    mean_l1_distance,
    safe_sqrt,
    semi_hard_loss,
    siamese_loss,
    triplet_center_loss,
    triplet_loss,
    tuplet_loss,
)
from manyhands.representation.base import (
    REPRESENTATION_CONSTRAINTS,
    RepresentationLearner,
    TrainingSet,
    label_confidence,
)
from manyhands.validation import Boolean, Constraint, NoneOr, Number, OneOf


class _MetricLearner(RepresentationLearner):
    """A learner of this module: its loss is minimised over mini-batches by `TrainingSet.fit_embedding`."""

    def __init__(
        self,
        labels: Any,
        embedding_size: int,
        backbone: Any,
        hidden: tuple[int, ...],
        dropout: float,
        batch_norm: bool,
        learning_rate: float,
        weight_decay: float,
        batch_size: int,
        max_epochs: int,
        patience: int | None,
        validation: float,
        device: str,
        checkpoint: str | Path | None,
        random_state: Seed,
    ) -> None:
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

    def _new_module(self, row_shape: tuple[int, ...], n_classes: int, n_workers: int) -> nn.Module:
        network = super()._new_module(row_shape, n_classes, n_workers)
        return normalised(network) if self._normalises() else network

    def _normalises(self) -> bool:
        """Whether embeddings are scaled to length 1."""
        return False


# ----------------------------------------------------------------------------------------------------
# Triplet-center embedding: an item is nearer to the centre of its class than to any other centre, by a margin.
#
#     loss = mean of  max(0, D(e_i, c_y) + m - min_{k != y} D(e_i, c_k)),   D half the squared distance
#
# The centres c_k are trained along with the network, at a learning rate of their own. NeuCrowd's Table 2 calls this
# "Centered", Section 4.2 "Center"; it is not the center loss that is added to a softmax loss.


class Center(_MetricLearner):
    """Embedding around a learned centre for each class; an item is nearer to its own than to any other, by a margin.

    Items have the class that an aggregator infers from the labels. pytorch-metric-learning has no such loss.

    Parameters
    ----------
    margin : float or None, default=None
        Margin between halves of squared distances; None is 1 for normalised embeddings, and 5 for others.
    center_learning_rate : float, default=0.1
        Step size of plain gradient descent, for the centres.
    normalise : bool, default=True
        Whether embeddings are scaled to length 1; centres are not.
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
        L2 penalty on all weights and on the centres: `weight_decay` times them is added to their gradient.
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
    centers_ : ndarray of shape (n_classes, embedding_size)
        The centres; NaN for a class without items.

    References
    ----------
    X. He, Y. Zhou, Z. Zhou, S. Bai and X. Bai (2018), Triplet-center loss for multi-view 3D object retrieval, CVPR.

    Examples
    --------
    >>> import numpy as np
    >>> from manyhands import Annotations
    >>> from manyhands.representation import Center
    >>> X = np.repeat([[0.0, 1.0], [1.0, 0.0]], 20, axis=0)
    >>> votes = Annotations.from_matrix(np.repeat([[0, 0, 1], [1, 1, 1]], 20, axis=0))
    >>> Center(embedding_size=2, random_state=0).fit(X, votes).centers_.shape
    (2, 2)
    """

    _constraints: ClassVar[dict[str, Constraint]] = REPRESENTATION_CONSTRAINTS | {
        "margin": NoneOr(Number(above=0)),
        "center_learning_rate": Number(above=0),
        "normalise": Boolean(),
    }

    centers_: Array

    def __init__(
        self,
        margin: float | None = None,
        center_learning_rate: float = 0.1,  # ours: plain gradient descent needs larger steps than Adam
        normalise: bool = True,
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
        super().__init__(
            labels, embedding_size, backbone, hidden, dropout, batch_norm, learning_rate, weight_decay,
            batch_size, max_epochs, patience, validation, device, checkpoint, random_state,
        )  # fmt: skip
        self.margin = margin
        self.center_learning_rate = center_learning_rate
        self.normalise = normalise

    def _learn(self, context: TrainingContext) -> FitResult:
        training_set = TrainingSet(context, self.labels)
        network = context.network()
        classes = training_set.batches.classes  # a centre of a class without items would only repel others
        centres = nn.Embedding(len(classes), self.embedding_size).to(context.device)
        with torch.no_grad():
            centres.weight.div_(centres.weight.norm(dim=1, keepdim=True))
        index = torch.zeros(context.n_classes, dtype=torch.long, device=context.device)
        index[torch.from_numpy(classes).long()] = torch.arange(len(classes), device=context.device)
        sgd = torch.optim.SGD(centres.parameters(), lr=self.center_learning_rate, weight_decay=self.weight_decay)
        # Ours: half a squared distance is at most 2 between points of length 1, and has no bound between others.
        margin = (1.0 if self.normalise else 5.0) if self.margin is None else self.margin

        def loss(embedding: torch.Tensor, batch: ClassBatch) -> torch.Tensor:
            return triplet_center_loss(embedding, index[batch.target], centres.weight, margin)

        def all_centres() -> Array:
            points = np.full((context.n_classes, self.embedding_size), np.nan)
            points[classes] = centres.weight.detach().cpu().double().numpy()
            return points

        modules = {"network": network, "centres": centres}
        optimizers = {"adam": context.adam(network), "centres": sgd}
        return training_set.fit_embedding(loss, modules, optimizers, {"centers_": all_centres})

    def _normalises(self) -> bool:
        return self.normalise


# ----------------------------------------------------------------------------------------------------
# Contrastive embedding (Siamese networks): pairs of one class are attracted, other pairs repelled.
#
# hadsell   mean over the pairs of a mini-batch of  s D^2 + (1 - s) max(0, m - D)^2,   s = 1 for two items of a class
# koch      cross-entropy of s with  p(s = 1) = sigmoid(b + sum_d a_d |e_d - e'_d|),   e = sigmoid(network(x))


class Contrastive(_MetricLearner):
    """Embedding learned from pairs: items of one class are near each other, items of two classes apart.

    Items have the class that an aggregator infers from the labels. Use it as a simple baseline; with noisy labels `RLL`
    or `NeuCrowd`, which weight items by the agreement of their labels, are usually better. The ContrastiveLoss of
    pytorch-metric-learning is another loss: it has D and m - D without the squares.

    With the loss of Koch et al., the baseline that NeuCrowd's paper cites, embeddings are the outputs of sigmoid units,
    as in theirs, and the weighted L1 distance of two embeddings predicts whether the items are of one class. Weights
    start at -1. There is a bias b, without which two identical items would be of one class with probability 1/2. Pairs
    of one class and other pairs count the same, as in theirs, where equally many of both are drawn.
    Koch et al. do not say where the bias starts. Here it starts at the mean distance of all pairs of training items in
    the untrained embedding, so that a pair at this distance is of one class with probability 1/2. From 0, pairs of a
    class would attract each other more than other pairs repel, and with many dimensions the embeddings of all items
    would first become nearly the same.

    Parameters
    ----------
    margin : float, default=1.0
        Euclidean distance from which on two items of different classes no longer repel each other; not used by
        "koch".
    loss : {"hadsell", "koch"}, default="hadsell"
        The contrastive loss of Hadsell et al., or the cross-entropy of Koch et al.
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
    distance_weight_ : ndarray of shape (embedding_size,)
        Weight a of each dimension in the distance; only with "koch".

    References
    ----------
    R. Hadsell, S. Chopra and Y. LeCun (2006), Dimensionality reduction by learning an invariant mapping, CVPR.
    G. Koch, R. Zemel and R. Salakhutdinov (2015), Siamese neural networks for one-shot image recognition, ICML Deep
    Learning Workshop.

    Examples
    --------
    >>> import numpy as np
    >>> from manyhands import Annotations
    >>> from manyhands.representation import Contrastive
    >>> X = np.repeat([[0.0, 1.0], [1.0, 0.0]], 20, axis=0)
    >>> votes = Annotations.from_matrix(np.repeat([[0, 0, 1], [1, 1, 1]], 20, axis=0))
    >>> Contrastive(embedding_size=2, random_state=0).fit_transform(X, votes).shape
    (40, 2)
    """

    _constraints: ClassVar[dict[str, Constraint]] = REPRESENTATION_CONSTRAINTS | {
        "margin": Number(above=0),
        "loss": OneOf(("hadsell", "koch")),
    }

    distance_weight_: Array

    def __init__(
        self,
        margin: float = 1.0,  # ours
        loss: str = "hadsell",
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
        super().__init__(
            labels, embedding_size, backbone, hidden, dropout, batch_norm, learning_rate, weight_decay,
            batch_size, max_epochs, patience, validation, device, checkpoint, random_state,
        )  # fmt: skip
        self.margin = margin
        self.loss = loss

    def _new_module(self, row_shape: tuple[int, ...], n_classes: int, n_workers: int) -> nn.Module:
        network = super()._new_module(row_shape, n_classes, n_workers)
        return nn.Sequential(network, nn.Sigmoid()) if self.loss == "koch" else network

    def _learn(self, context: TrainingContext) -> FitResult:
        training_set, margin = TrainingSet(context, self.labels), self.margin
        if self.loss == "koch":
            return self._learn_distance(context, training_set)
        return training_set.fit_embedding(lambda e, batch: contrastive_loss(e, batch.target, margin))

    def _learn_distance(self, context: TrainingContext, training_set: TrainingSet) -> FitResult:
        network, distance = context.network(), nn.Linear(self.embedding_size, 1).to(context.device)
        nn.init.constant_(distance.weight, -1.0)  # the farther, the less probably of one class
        start = outputs(network, context.data.rows, training_set.items)
        nn.init.constant_(distance.bias, float(mean_l1_distance(start)))  # from 0, attraction prevails
        weight, bias = distance.weight, distance.bias

        def loss(embedding: torch.Tensor, batch: ClassBatch) -> torch.Tensor:
            return siamese_loss(embedding, batch.target, weight[0], bias[0])

        modules = {"network": network, "distance": distance}
        results = {"distance_weight_": lambda: np.asarray(weight[0].detach().cpu().double().numpy())}
        return training_set.fit_embedding(loss, modules, results=results)


# ----------------------------------------------------------------------------------------------------
# Lifted structure embedding: every positive pair of a mini-batch against all negatives of both its items.
#
# J_ij = log( sum_{k in N(i)} exp(m - D_ik) + sum_{l in N(j)} exp(m - D_jl) ) + D_ij
# loss = 1 / (2 |P|) sum over positive pairs P of max(0, J_ij)^2


class Lifted(_MetricLearner):
    """Embedding learned from all pairs of a mini-batch at once: each positive pair against all negatives of its items.

    Items have the class that an aggregator infers from the labels. The LiftedStructureLoss of pytorch-metric-learning
    is this loss if its distance does not normalise; it needs an array of positive x negative pairs, where an array of
    items x items is enough here.

    Parameters
    ----------
    margin : float, default=1.0
        m in the formula, in Euclidean distance.
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

    References
    ----------
    H. O. Song, Y. Xiang, S. Jegelka and S. Savarese (2016), Deep metric learning via lifted structured feature
    embedding, CVPR.

    Examples
    --------
    >>> import numpy as np
    >>> from manyhands import Annotations
    >>> from manyhands.representation import Lifted
    >>> X = np.repeat([[0.0, 1.0], [1.0, 0.0]], 20, axis=0)
    >>> votes = Annotations.from_matrix(np.repeat([[0, 0, 1], [1, 1, 1]], 20, axis=0))
    >>> Lifted(embedding_size=2, random_state=0).fit_transform(X, votes).shape
    (40, 2)
    """

    _constraints: ClassVar[dict[str, Constraint]] = REPRESENTATION_CONSTRAINTS | {"margin": Number(above=0)}

    def __init__(
        self,
        margin: float = 1.0,  # ours
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
        super().__init__(
            labels, embedding_size, backbone, hidden, dropout, batch_norm, learning_rate, weight_decay,
            batch_size, max_epochs, patience, validation, device, checkpoint, random_state,
        )  # fmt: skip
        self.margin = margin

    def _learn(self, context: TrainingContext) -> FitResult:
        margin = self.margin
        return TrainingSet(context, self.labels).fit_embedding(lambda e, batch: lifted_loss(e, batch.target, margin))


# ----------------------------------------------------------------------------------------------------
# RLL: tuplets of an anchor, a positive and some negatives, weighted by the confidence in their classes.
#
#     p(positive) = w+ exp(g R+) / sum_j w_j exp(g R_j) over the positive and the negatives,   loss = -log p(positive)
#     R = cos(query(anchor), document(j)), two networks;   w = v / d  or  (v + pi d) / (2 d)
#
# An item has d labels, v of which are its class, and pi is the share of that class among the items. In NeuCrowd's
# tables RLL is NeuCrowd without its three parts: one network, R = 1 - D, and the confidence inside the exponent,
# exp(g A R).


class RLL(_MetricLearner):
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

    References
    ----------
    G. Xu, W. Ding, J. Tang, S. Yang, G. Y. Huang and Z. Liu (2019), Learning effective embeddings from crowdsourced
    labels: an educational case study, ICDE.

    Examples
    --------
    >>> import numpy as np
    >>> from manyhands import Annotations
    >>> from manyhands.representation import RLL
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

    confidence_: Array

    def __init__(
        self,
        similarity: str = "cosine",
        n_negatives: int = 3,  # tuplets of five items, as in NeuCrowd (Section 4.3)
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
        super().__init__(
            labels, embedding_size, backbone, hidden, dropout, batch_norm, learning_rate, weight_decay,
            batch_size, max_epochs, patience, validation, device, checkpoint, random_state,
        )  # fmt: skip
        self.similarity = similarity
        self.n_negatives = n_negatives
        self.scale = scale
        self.confidence = confidence

    def _learn(self, context: TrainingContext) -> FitResult:
        training_set = TrainingSet(context, self.labels)
        cosine = self.similarity == "cosine"
        scale = (10.0 if cosine else 2.0) if self.scale is None else self.scale  # of RLL's and of NeuCrowd's code
        confidence = label_confidence(training_set, self.confidence)
        weight = torch.from_numpy(confidence).float().to(context.device)
        networks = {"network": context.network()} | ({"document": context.network()} if cosine else {})
        similarity_of = _cosine_of_units if cosine else _one_minus_distance

        def loss(anchor: torch.Tensor, batch: ClassBatch) -> torch.Tensor:
            other = networks["document"](training_set.x(batch)) if cosine else anchor
            positive, negative = draw_tuplets(batch, self.n_negatives, context.rng)
            members = np.column_stack([positive, negative])  # (n, 1 + n_negatives) rows of the batch
            similarity = similarity_of(anchor.unsqueeze(1), other[members])
            return tuplet_loss(similarity, weight[batch.item[members]], scale, inside=not cosine)

        return training_set.fit_embedding(loss, networks, results={"confidence_": lambda: confidence})

    def _normalises(self) -> bool:
        return self.similarity == "cosine"


def _cosine_of_units(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Return the cosine similarity of vectors of length 1, over the last dimension."""
    return (one * other).sum(-1)


def _one_minus_distance(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Return 1 - D, D the Euclidean distance over the last dimension."""
    return 1 - safe_sqrt((one - other).square().sum(-1))


# ----------------------------------------------------------------------------------------------------
# Triplet embedding: an anchor is nearer to an item of its class than to one of another class, by a margin.
#
#     loss = mean over triplets of  max(0, D(a, p)^2 - D(a, n)^2 + m)
#
# Triplets are drawn at random, or semi-hard: for every positive pair of a mini-batch the closest negative with
# D_an > D_ap, or the farthest negative where there is none.


class Triplet(_MetricLearner):
    """Embedding learned from triplets: an item is nearer to its own class than to another, by a margin.

    Items have the class that an aggregator infers from the labels. The TripletMarginLoss of pytorch-metric-learning is
    this loss if its distance has power 2 and its reducer takes the plain mean. Its semi-hard miner is another one: it
    takes all negatives within the margin, and none where none is farther than the positive.

    Parameters
    ----------
    selection : {"random", "semi-hard"}, default="random"
        "random": one triplet for each item of a mini-batch. "semi-hard": one for each positive pair.
    margin : float or None, default=None
        Margin between squared distances; None is 0.2 for random triplets of normalised embeddings, and 1 otherwise.
    normalise : bool, default=True
        Whether embeddings are scaled to length 1.
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

    References
    ----------
    F. Schroff, D. Kalenichenko and J. Philbin (2015), FaceNet: a unified embedding for face recognition and clustering,
    CVPR.

    Examples
    --------
    >>> import numpy as np
    >>> from manyhands import Annotations
    >>> from manyhands.representation import Triplet
    >>> X = np.repeat([[0.0, 1.0], [1.0, 0.0]], 20, axis=0)
    >>> votes = Annotations.from_matrix(np.repeat([[0, 0, 1], [1, 1, 1]], 20, axis=0))
    >>> Triplet("semi-hard", embedding_size=2, random_state=0).fit_transform(X, votes).shape
    (40, 2)
    """

    _constraints: ClassVar[dict[str, Constraint]] = REPRESENTATION_CONSTRAINTS | {
        "selection": OneOf(("random", "semi-hard")),
        "margin": NoneOr(Number(above=0)),
        "normalise": Boolean(),
    }

    def __init__(
        self,
        selection: str = "random",
        margin: float | None = None,
        normalise: bool = True,
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
        super().__init__(
            labels, embedding_size, backbone, hidden, dropout, batch_norm, learning_rate, weight_decay,
            batch_size, max_epochs, patience, validation, device, checkpoint, random_state,
        )  # fmt: skip
        self.selection = selection
        self.margin = margin
        self.normalise = normalise

    def _learn(self, context: TrainingContext) -> FitResult:
        margin = self.margin
        # 1 is the default of TensorFlow's semi-hard loss, and ours for embeddings that are not scaled to length 1.
        if margin is None:
            margin = 0.2 if self.selection == "random" and self.normalise else 1.0  # 0.2 is FaceNet's

        def loss(embedding: torch.Tensor, batch: ClassBatch) -> torch.Tensor:
            if self.selection == "semi-hard":
                return semi_hard_loss(embedding, batch.target, margin)
            positive, negative = draw_tuplets(batch, 1, context.rng)
            return triplet_loss(embedding, embedding[positive], embedding[negative], margin)

        return TrainingSet(context, self.labels).fit_embedding(loss)

    def _normalises(self) -> bool:
        return self.normalise
