"""Doctor Net: each worker is modelled by a head of one network, and the heads' predictions are averaged.

p_w(x) = softmax(V_w trunk(x) + b_w),   first training: mean over observed labels of -log p_w(x)[label]
p(x) = sum_w s_w(x) p_w(x),   s uniform (DN) or the softmax of a (WDN), a + C h (IWDN), a + C B h (BIWDN), h = trunk(x)
second training, trunk and heads fixed: min over a, B, C of the mean over items of -sum_k t_ik log p(x_i)[k], where t_i
is the vote and the average of item i leaves out the heads of the workers who labelled it
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import nn

from manyhands.classifiers.base import CrowdClassifier
from manyhands.classifiers.network import NETWORK_CONSTRAINTS
from manyhands.classifiers.training_context import TrainingContext
from manyhands.classifiers.training_data import FitResult
from manyhands.em.classifier_em import initial_posterior
from manyhands.nn.backbones import build
from manyhands.nn.batches import Batch
from manyhands.nn.losses import gold_cross_entropy, negative_log_likelihood
from manyhands.nn.train import descend
from manyhands.nn.worker_heads import Heads, HeadsWeightedByItem, labellers, mean_weight
from manyhands.randomness import Seed
from manyhands.validation import Constraint, Number, OneOf

_WIDTH = 128  # inputs of the heads where `hidden` is empty


class DoctorNet(CrowdClassifier):
    """Network with a softmax head per worker, trained on that worker's labels; it predicts the heads' average.

    Heads of workers without labels have no weight. Where every worker labelled every item, no head can be left out, and
    the weights stay at their initial values, proportional to the number of labels. Use it where each worker has many
    labels.

    The weights that depend on the item have a (n_workers), C (n_workers x width) and, with a bottleneck, B (bottleneck
    x width) as parameters, without an activation between B and C. The second training starts with C = 0, and thus at
    the weights of WDN.

    Parameters
    ----------
    weights : {"learned", "uniform", "item", "item-bottleneck"}, default="learned"
        Weights of the heads: learned in a second training (WDN), uniform (DN), or learned as a linear function of the
        last hidden layer, so that they differ between items (IWDN), possibly of low rank (BIWDN).
    weight_learning_rate : float, default=0.03
        Step size of Adam in that second training.
    bottleneck : int, default=3
        Rank of that linear function with "item-bottleneck"; not used otherwise. That the bottleneck is linear and has
        three units is our reading: the text of the paper was not available.
    backbone : {"mlp", "convnet"} or callable, default="mlp"
        Trunk of the network: a multi-layer perceptron, a small convolutional network, or a function
        (n_features or row shape, hidden[-1]) -> torch.nn.Module: the heads read the last hidden layer.
    hidden : tuple of int, default=(128,)
        Sizes of the hidden layers.
    dropout : float, default=0.5
        Dropout rate of the hidden layers.
    batch_norm : bool, default=False
        Whether hidden layers are batch-normalised.
    learning_rate : float, default=0.001
        Step size of Adam.
    weight_decay : float, default=0.0
        L2 penalty of Adam on all weights: `weight_decay` times the weights is added to their gradient. In the second
        training, a is drawn to its initial value instead of 0.
    batch_size : int, default=64
        Items per mini-batch.
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
    random_state : int, numpy.random.Generator or None, default=None
        Seed of initial weights, shuffling, dropout and the held-out split.

    Attributes
    ----------
    worker_weight_ : ndarray of shape (n_workers,)
        Weight of each head in the average; they sum to 1. Where weights depend on the item, their mean over the
        training items.
    classes_ : ndarray of shape (n_classes,)
        The classes, as in the annotations.
    worker_ids_ : ndarray of shape (n_workers,)
        The workers, as in the annotations.
    worker_accuracy_ : ndarray of shape (n_workers,)
        Expected share of correct labels of each worker, with one pseudo-count of accuracy 0.7.
    posterior_ : ndarray of shape (n_items, n_classes)
        Posterior of the training items given features and labels; rows sum to 1.
    history_ : list of dict
        One dict per epoch: the mean of each loss, and "heldout" where labels were held out.
    module_ : torch.nn.Module
        The trained network from features to logits.
    notes_ : dict of str to str
        What the data do not allow to conclude, by code; each was issued as a `CrowdWarning`.
    n_features_in_ : int
        Number of columns of X in `fit`; only where a row is a vector, not an image.
    feature_names_in_ : ndarray of str of shape (n_features_in_,)
        Names of the columns of X in `fit`; only where X was a data frame with string names.

    References
    ----------
    M. Guan, V. Gulshan, A. Dai and G. Hinton (2018), Who said what: modeling individual labelers improves
    classification, AAAI.

    Examples
    --------
    >>> import numpy as np
    >>> from manyhands import Annotations, DoctorNet
    >>> X = np.repeat([[0.0, 1.0], [1.0, 0.0]], 20, axis=0)
    >>> votes = Annotations.from_matrix(np.repeat([[0, 0, 1], [1, 1, 1]], 20, axis=0))
    >>> model = DoctorNet(learning_rate=0.01, random_state=0).fit(X, votes)
    >>> model.predict([[0.0, 1.0], [1.0, 0.0]]).tolist()
    [0, 1]
    """

    _constraints: ClassVar[dict[str, Constraint]] = NETWORK_CONSTRAINTS | {
        "weights": OneOf(("learned", "uniform", "item", "item-bottleneck")),
        "weight_learning_rate": Number(above=0),
        "bottleneck": Number(whole=True, least=1),
    }

    def __init__(
        self,
        weights: str = "learned",
        weight_learning_rate: float = 3e-2,
        bottleneck: int = 3,
        *,
        backbone: Any = "mlp",
        hidden: tuple[int, ...] = (128,),
        dropout: float = 0.5,
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
        self.weights = weights
        self.weight_learning_rate = weight_learning_rate
        self.bottleneck = bottleneck
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

    def _new_module(self, row_shape: tuple[int, ...], n_classes: int, n_workers: int) -> Heads:
        *first, width = self.hidden or (_WIDTH,)
        trunk: list[nn.Module] = [
            build(self.backbone, row_shape, width, hidden=first, dropout=self.dropout, batch_norm=self.batch_norm)
        ]
        trunk += [nn.BatchNorm1d(width)] if self.batch_norm else []
        heads = nn.Sequential(*trunk, nn.ReLU(), nn.Dropout(self.dropout)), width, n_classes, n_workers
        rank = {"item": None, "item-bottleneck": self.bottleneck}
        return HeadsWeightedByItem(*heads, rank[self.weights]) if self.weights in rank else Heads(*heads)

    def _learn(self, context: TrainingContext) -> FitResult:
        network = context.network()
        assert isinstance(network, Heads)
        n_labels = np.bincount(context.annotations.worker, minlength=context.n_workers)
        with np.errstate(divide="ignore"):
            start = np.log(n_labels if self.weights != "uniform" else np.minimum(n_labels, 1))
        network.log_weight.data = torch.from_numpy(start).float().to(context.device)
        history = self._learn_heads(context, network)
        if self.weights != "uniform":
            history = history + self._learn_weights(context, network)
        return FitResult(network, history, results={"worker_weight_": mean_weight(network, context.data.rows)})

    def _learn_heads(self, context: TrainingContext, network: Heads) -> list[dict[str, float]]:
        weights = [*network.trunk.parameters(), network.head]
        optimizer = torch.optim.Adam(weights, lr=self.learning_rate, weight_decay=self.weight_decay)

        def step(batch: Batch) -> torch.Tensor:
            seen = network.trunk(context.x(batch))
            loss = negative_log_likelihood(network.log_label(seen, batch))
            gold = context.gold(batch)
            if gold is not None:
                known = gold >= 0  # gold trains the average: it is no worker's label
                loss = loss + gold_cross_entropy(network.average(seen[known]), gold[known])
            return descend(optimizer, loss)

        def log_label(batch: Batch) -> torch.Tensor:
            return network.log_label(network.trunk(context.x(batch)), batch)

        evaluate = context.heldout_score(log_label, network)
        return context.train(step, {"network": network}, {"adam": optimizer}, evaluate=evaluate)

    def _learn_weights(self, context: TrainingContext, network: Heads) -> list[dict[str, float]]:
        network.head.requires_grad_(False)
        optimizer = torch.optim.Adam(network.weight_groups(self.weight_decay), lr=self.weight_learning_rate)
        start = network.log_weight.detach().clone()
        target = torch.from_numpy(initial_posterior(context.annotations, context.data.gold)).float().to(context.device)

        def average(batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
            """Log p(x) without the heads of the workers who labelled x, and the rows that have a head left."""
            network.eval()  # heads and trunk are fixed
            row, worker = labellers(context.data.annotations, batch.item)
            away = torch.zeros(len(batch.item), context.n_workers, dtype=torch.bool, device=context.device)
            away[row, worker] = True
            left = ((network.log_weight > -torch.inf) & ~away).any(1)
            with torch.no_grad():
                seen = network.trunk(context.x(batch))
            return network.average(seen, away & left.unsqueeze(1)), left

        def step(batch: Batch) -> dict[str, torch.Tensor]:
            log_proba, left = average(batch)
            loss = -(target[batch.item] * log_proba).sum(1)[left].sum() / left.sum().clamp(min=1)
            if self.weight_decay > 0:
                active = start > -torch.inf
                loss = loss + self.weight_decay / 2 * (network.log_weight - start)[active].square().sum()
            return {"weights": descend(optimizer, loss)}

        def log_label(batch: Batch) -> torch.Tensor:
            return average(batch)[0][batch.row, batch.label]

        evaluate = context.heldout_score(log_label, network)
        history = context.train(step, {"network": network}, {"adam": optimizer}, evaluate=evaluate, name="weights")
        network.head.requires_grad_(True)
        return history
