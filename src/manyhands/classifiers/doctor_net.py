"""Doctor net: every worker is modelled by a head of one network, and the heads' opinions are averaged.

    p_w(x) = softmax(V_w trunk(x) + b_w),   first: mean over observed labels of -log p_w(x)[label]
    p(x) = sum_w s_w p_w(x),   s uniform (DN) or s = softmax(a) (WDN)
    then, trunk and heads at rest: mean over items of -sum_k t_ik log p(x_i)[k] over a, where t_i is the vote and
    the average of item i leaves out the heads of those who labelled it

Reference: M. Guan, V. Gulshan, A. Dai and G. Hinton (2018), Who said what: modeling individual labelers improves
classification, AAAI.
"""

from __future__ import annotations

from typing import ClassVar, Unpack

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from manyhands.annotations import Annotations
from manyhands.classifiers.base import FitResult
from manyhands.classifiers.network import NETWORK_CONSTRAINTS, NetworkClassifier, NetworkParameters
from manyhands.classifiers.training_context import TrainingContext
from manyhands.em.classifier_em import initial_posterior
from manyhands.nn.backbones import build
from manyhands.nn.batches import Batch, Codes
from manyhands.nn.losses import gold_cross_entropy, negative_log_likelihood
from manyhands.nn.train import descend
from manyhands.validation import Constraint, Number, OneOf

_WIDTH = 128  # what the heads read where `hidden` is empty
_NUMBERS = 1 << 22  # of probabilities of heads held at a time in prediction


class DoctorNet(NetworkClassifier):
    """A network with a head per worker that learns this worker's labels; it predicts the heads' average.

    Heads of workers without labels have no weight. Where every worker labelled every item, no head could be left
    out, and weights stay as they start: by the number of labels.

    Parameters
    ----------
    weights : "learned" (WDN) in a second training, or "uniform" (DN)
    weight_learning_rate : of Adam in that second training
    backbone, hidden, dropout, batch_norm : the trunk, as in `NetworkClassifier`; heads read its last hidden layer, and
        a function given as backbone must make a module with hidden[-1] outputs
    learning_rate, batch_size, max_epochs, patience, validation : how it is trained and when it stops
    device, checkpoint, random_state : where, from which folder a killed fit goes on, and the seed

    Attributes
    ----------
    worker_weight_ : (n_workers,) the weight of each head in the average; they sum to 1

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
        "weights": OneOf(("learned", "uniform")),
        "weight_learning_rate": Number(above=0),
    }

    def __init__(
        self, weights: str = "learned", weight_learning_rate: float = 3e-2, **network: Unpack[NetworkParameters]
    ) -> None:
        super().__init__(**network)
        self.weights = weights
        self.weight_learning_rate = weight_learning_rate

    def _new_module(self, row_shape: tuple[int, ...], n_classes: int, n_workers: int) -> Heads:
        *first, width = self.hidden or (_WIDTH,)
        trunk: list[nn.Module] = [
            build(self.backbone, row_shape, width, hidden=first, dropout=self.dropout, batch_norm=self.batch_norm)
        ]
        trunk += [nn.BatchNorm1d(width)] if self.batch_norm else []
        return Heads(nn.Sequential(*trunk, nn.ReLU(), nn.Dropout(self.dropout)), width, n_classes, n_workers)

    def _learn_network(self, context: TrainingContext) -> FitResult:
        network = context.network()
        assert isinstance(network, Heads)
        n_labels = np.bincount(context.annotations.worker, minlength=context.n_workers)
        with np.errstate(divide="ignore"):
            start = np.log(n_labels if self.weights == "learned" else np.minimum(n_labels, 1))
        network.log_weight.data = torch.from_numpy(start).float().to(context.device)
        history = self._learn_heads(context, network)
        if self.weights == "learned":
            history = history + self._learn_weights(context, network)
        weight = network.log_weight.detach().double().softmax(0).cpu().numpy()
        return FitResult(network, history, results={"worker_weight_": weight})

    def _learn_heads(self, context: TrainingContext, network: Heads) -> list[dict[str, float]]:
        optimizer = torch.optim.Adam([*network.trunk.parameters(), network.head], lr=self.learning_rate)

        def step(batch: Batch) -> torch.Tensor:
            seen = network.trunk(context.x(batch))
            loss = negative_log_likelihood(network.log_label(seen, batch))
            gold = context.gold(batch)
            if gold is not None:
                known = gold >= 0  # gold teaches the average: it is nobody's own label
                loss = loss + gold_cross_entropy(network.average(seen[known]), gold[known])
            return descend(optimizer, loss)

        def log_label(batch: Batch) -> torch.Tensor:
            return network.log_label(network.trunk(context.x(batch)), batch)

        evaluate = context.heldout_score(log_label, network)
        return context.train(step, {"network": network}, {"adam": optimizer}, evaluate=evaluate)

    def _learn_weights(self, context: TrainingContext, network: Heads) -> list[dict[str, float]]:
        network.head.requires_grad_(False)
        optimizer = torch.optim.Adam([network.log_weight], lr=self.weight_learning_rate)
        target = torch.from_numpy(initial_posterior(context.annotations, context.data.gold)).float().to(context.device)

        def average(batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
            """log p(x) without the heads of those who labelled x, and which rows have a head left."""
            network.eval()  # heads and trunk are at rest
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
            return {"weights": descend(optimizer, loss)}

        def log_label(batch: Batch) -> torch.Tensor:
            return average(batch)[0][batch.row, batch.label]

        evaluate = context.heldout_score(log_label, network)
        history = context.train(step, {"network": network}, {"adam": optimizer}, evaluate=evaluate, name="weights")
        network.head.requires_grad_(True)
        return history


class Heads(nn.Module):
    """A trunk and a softmax head for each worker; called with features, it gives the log of the heads' average."""

    def __init__(self, trunk: nn.Module, width: int, n_classes: int, n_workers: int) -> None:
        super().__init__()
        self.trunk, self.width, self.n_classes = trunk, width, n_classes
        one = nn.Linear(width, n_classes)  # all heads start alike, so that a worker without labels changes nothing
        start = torch.cat([one.weight.detach().T, one.bias.detach().unsqueeze(0)])
        self.head = nn.Parameter(start.flatten().repeat(n_workers, 1))  # (n_workers, (width + 1) * n_classes)
        self.log_weight = nn.Parameter(torch.zeros(n_workers))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.average(self.trunk(x))

    def log_label(self, seen: torch.Tensor, batch: Batch) -> torch.Tensor:
        """(n_labels,) log p_w(x)[label] of each label of a batch, whose workers' heads alone are gathered."""
        head = F.embedding(batch.worker, self.head).view(-1, self.width + 1, self.n_classes)
        logits = torch.baddbmm(head[:, -1:], seen[batch.row].unsqueeze(1), head[:, :-1]).squeeze(1)
        return -F.cross_entropy(logits, batch.label, reduction="none")

    def average(self, seen: torch.Tensor, away: torch.Tensor | None = None) -> torch.Tensor:
        """(n_rows, n_classes) log sum_w s_w p_w; `away` (n_rows, n_workers) are heads that are left out of a row."""
        weight = self.log_weight.expand(len(seen), -1)
        weight = (weight if away is None else weight.masked_fill(away, -torch.inf)).softmax(1)
        total = seen.new_zeros(len(seen), self.n_classes)
        stretch = max(1, _NUMBERS // max(1, len(seen) * self.n_classes))
        for heads, share in zip(torch.split(self.head, stretch), torch.split(weight, stretch, dim=1)):
            table = heads.view(-1, self.width + 1, self.n_classes)
            proba = (torch.einsum("rd,wdk->rwk", seen, table[:, :-1]) + table[:, -1]).softmax(2)
            total = total + torch.einsum("rw,rwk->rk", share, proba)
        return total.clamp(min=1e-30).log()


def labellers(annotations: Annotations, item: Codes) -> tuple[Codes, Codes]:
    """Who labelled these items: pairs of a place in `item` and a worker."""
    size = annotations.n_labels[item]
    place = np.repeat(np.arange(len(item)), size)
    position = np.arange(len(place)) - np.repeat(np.cumsum(size) - size, size) + annotations.start[item][place]
    return place, annotations.worker[position].astype(np.intp)
