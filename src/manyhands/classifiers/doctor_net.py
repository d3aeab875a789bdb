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
from torch.nn import functional as F

from manyhands._core.arrays import Array
from manyhands._core.randomness import Seed
from manyhands.annotations import Annotations
from manyhands.classifiers.base import CrowdClassifier
from manyhands.classifiers.network import NETWORK_CONSTRAINTS, FitResult, TrainingContext
from manyhands.em.e_step import initial_posterior
from manyhands.features import Rows
from manyhands.nn.backbones import build, outputs
from manyhands.nn.batches import Batch, Codes
from manyhands.nn.losses import gold_cross_entropy, negative_log_likelihood
from manyhands.nn.train import descend
from manyhands.validation import Constraint, Number, OneOf

# ----------------------------------------------------------------------------------------------------
# Heads of workers: a softmax head per worker behind one trunk, and their weighted average (Doctor Net).
#
# p_w(x) = softmax(V_w h + b_w),   h = trunk(x),   p(x) = sum_w s_w(x) p_w(x)
# s = softmax(a), or softmax(a + C h), or softmax(a + C B h)

_NUMBERS = 1 << 22  # probabilities of heads held at a time in prediction: 16 MB


class Heads(nn.Module):
    """A trunk and a softmax head per worker; called with features, it returns the log of the heads' average."""

    def __init__(self, trunk: nn.Module, width: int, n_classes: int, n_workers: int) -> None:
        super().__init__()
        self.trunk, self.width, self.n_classes = trunk, width, n_classes
        one = nn.Linear(width, n_classes)  # equal initial heads: a worker without labels changes nothing
        start = torch.cat([one.weight.detach().T, one.bias.detach().unsqueeze(0)])
        self.head = nn.Parameter(start.flatten().repeat(n_workers, 1))  # (n_workers, (width + 1) * n_classes)
        self.log_weight = nn.Parameter(torch.zeros(n_workers))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return log p(x), (n_rows, n_classes)."""
        return self.average(self.trunk(x))

    def log_label(self, seen: torch.Tensor, batch: Batch) -> torch.Tensor:
        """Return log p_w(x)[label] of each label of a mini-batch, (n_labels,); only its heads are used."""
        head = F.embedding(batch.worker, self.head).view(-1, self.width + 1, self.n_classes)
        logits = torch.baddbmm(head[:, -1:], seen[batch.row].unsqueeze(1), head[:, :-1]).squeeze(1)
        return -F.cross_entropy(logits, batch.label, reduction="none")

    def weight_logits(self, seen: torch.Tensor) -> torch.Tensor:
        """Return the logits of the weights of all heads given the outputs of the trunk, (n_rows, n_workers)."""
        return self.log_weight.expand(len(seen), -1)

    def weight_groups(self, weight_decay: float) -> list[dict[str, Any]]:
        """Return the parameters of the weights of heads as groups of an optimizer."""
        return [{"params": [self.log_weight]}]

    def average(self, seen: torch.Tensor, away: torch.Tensor | None = None) -> torch.Tensor:
        """Return log sum_w s_w p_w.

        Shapes: seen (n_rows, width); away (n_rows, n_workers); returns (n_rows, n_classes).
        """
        weight = self.weight_logits(seen)
        weight = (weight if away is None else weight.masked_fill(away, -torch.inf)).softmax(1)
        total = seen.new_zeros(len(seen), self.n_classes)
        chunk = max(1, _NUMBERS // max(1, len(seen) * self.n_classes))
        for heads, share in zip(torch.split(self.head, chunk), torch.split(weight, chunk, dim=1)):
            table = heads.view(-1, self.width + 1, self.n_classes)
            proba = (torch.einsum("rd,wdk->rwk", seen, table[:, :-1]) + table[:, -1]).softmax(2)
            total = total + torch.einsum("rw,rwk->rk", share, proba)
        return total.clamp(min=1e-30).log()


class HeadsWeightedByItem(Heads):
    """Heads whose weights are a linear function of the trunk's outputs."""

    def __init__(self, trunk: nn.Module, width: int, n_classes: int, n_workers: int, bottleneck: int | None) -> None:
        super().__init__(trunk, width, n_classes, n_workers)
        # C starts at 0: the second training starts at weights that are the same for all items.
        self.bottleneck = None if bottleneck is None else nn.Linear(width, bottleneck, bias=False)  # B
        self.item_weight = nn.Parameter(torch.zeros(n_workers, width if bottleneck is None else bottleneck))  # C

    def weight_logits(self, seen: torch.Tensor) -> torch.Tensor:
        """Return a + C h or a + C B h, (n_rows, n_workers)."""
        return self.log_weight + (seen if self.bottleneck is None else self.bottleneck(seen)) @ self.item_weight.t()

    def weight_groups(self, weight_decay: float) -> list[dict[str, Any]]:
        """Return the parameters of the weights of heads; B and C have a weight decay."""
        linear = [self.item_weight, *([] if self.bottleneck is None else self.bottleneck.parameters())]
        return [*super().weight_groups(weight_decay), {"params": linear, "weight_decay": weight_decay}]


class _Weights(nn.Module):
    """The weights of heads as a network."""

    def __init__(self, heads: Heads) -> None:
        super().__init__()
        self.heads = heads

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.heads.weight_logits(self.heads.trunk(x)).softmax(1)


def mean_weight(heads: Heads, rows: Rows) -> Array:
    """Return the mean weight of each head over rows of X.

    Shapes: returns (n_workers,).
    """
    if not isinstance(heads, HeadsWeightedByItem):
        return np.asarray(heads.log_weight.detach().cpu().double().softmax(0).numpy())
    mean = outputs(_Weights(heads), rows).mean(0).numpy()
    return np.asarray(mean / mean.sum())


def labellers(annotations: Annotations, item: Codes) -> tuple[Codes, Codes]:
    """Return the workers who labelled these items, as pairs of a position in `item` and a worker."""
    size = annotations.n_labels[item]
    place = np.repeat(np.arange(len(item)), size)
    position = np.arange(len(place)) - np.repeat(np.cumsum(size) - size, size) + annotations.start[item][place]
    return place, annotations.worker[position].astype(np.intp)


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

    References
    ----------
    M. Guan, V. Gulshan, A. Dai and G. Hinton (2018), Who said what: modeling individual labelers improves
    classification, AAAI.

    Examples
    --------
    >>> import numpy as np
    >>> from manyhands import Annotations
    >>> from manyhands.classifiers import DoctorNet
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

    worker_weight_: Array

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
                has_gold = gold >= 0  # gold trains the average: it is no worker's label
                loss = loss + gold_cross_entropy(network.average(seen[has_gold]), gold[has_gold])
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
