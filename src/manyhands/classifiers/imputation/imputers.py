"""Models that impute missing annotations: a crowd layer, a crowd layer trained adversarially, a graph network.

Each provides `log_labels(batch, pairs)`: from items with their labels, and pairs of these rows with workers, to
log p(label | x, w) of shape (n_pairs, n_classes). Workers are numbered among the active ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.nn import functional as F

from manyhands.classifiers.active_workers import ActiveWorkers, log_truth
from manyhands.nn.batches import Batch
from manyhands.nn.item_worker_pairs import Pairs, choose_pairs, draw_pairs, sample_labels, select
from manyhands.nn.label_discriminator import Discriminator
from manyhands.nn.label_graph import Edges, LabelGraph, MessageSum
from manyhands.nn.losses import gold_cross_entropy, negative_log_likelihood
from manyhands.nn.train import descend

_CHUNK = 1024  # items processed together without gradients
_HIDDEN_EDGES = 0.5  # share of the labels that are hidden from the graph and predicted
_GRAPH_STEPS, _GRAPH_RATE = 4, 1e-2
_PAIRS_PER_LABEL = 8  # pairs considered for each label in an adversarial step
_GENERATOR_RATE, _DISCRIMINATOR_RATE = 1e-4, 1e-3

LogLabels = Callable[[Batch, Pairs], torch.Tensor]
Figures = dict[str, torch.Tensor]


@dataclass(frozen=True, eq=False)
class LayerImputer:
    """A trained network with a crowd layer behind it.

    Attributes
    ----------
    crowd : ActiveWorkers
        The workers and the context.
    network : torch.nn.Module
        From features to logits.
    noise : CrowdLogits
        The crowd layer.
    """

    crowd: ActiveWorkers
    network: nn.Module
    noise: Any

    def log_labels(self, batch: Batch, pairs: Pairs) -> torch.Tensor:
        """Return log p(label | x, w) of pairs of a mini-batch, (n_pairs, n_classes)."""
        return self.log_label(self.crowd.context.x(batch), self.crowd.context.gold(batch), pairs)

    def log_label(self, x: torch.Tensor, gold: torch.Tensor | None, pairs: Pairs) -> torch.Tensor:
        """Return the same from features and known classes."""
        truth = log_truth(self.network.eval(), x, gold).exp().index_select(0, pairs.row)
        worker = torch.from_numpy(self.crowd.active).to(x.device)[pairs.worker]
        logits: torch.Tensor = self.noise.logits(truth, worker)
        return logits.log_softmax(1)


class Draw(NamedTuple):
    """Labels drawn from a crowd layer on pairs of a mini-batch, and the observed labels.

    Attributes
    ----------
    x : torch.Tensor of shape (n_rows, ...)
        Features.
    gold : torch.Tensor of shape (n_rows,) or None
        Known classes.
    authentic : Pairs
        Pairs with an observed label.
    authentic_label : torch.Tensor of shape (n_labels,)
        Their labels.
    pairs : Pairs
        Pairs for which labels were drawn.
    label : torch.Tensor of shape (n_pairs,)
        The labels drawn.
    chosen : torch.Tensor of int
        Which of the pairs, all without a label, are the discriminator's generated examples.
    """

    x: torch.Tensor
    gold: torch.Tensor | None
    authentic: Pairs
    authentic_label: torch.Tensor
    pairs: Pairs
    label: torch.Tensor
    chosen: torch.Tensor


class AdversarialImputer:
    """A crowd layer, and the discriminator that separates labels drawn from it from observed ones.

    Parameters
    ----------
    layer : LayerImputer
        The pre-trained crowd layer.
    """

    def __init__(self, layer: LayerImputer) -> None:
        crowd = layer.crowd
        sizes = math.prod(crowd.context.data.rows.shape), crowd.context.n_classes, len(crowd.active)
        self.layer, self.crowd = layer, crowd
        self.discriminator = Discriminator(*sizes).to(crowd.context.device)
        learnt = [*layer.network.parameters(), *layer.noise.parameters()]
        decay = crowd.context.options.weight_decay
        self.layer_adam = torch.optim.Adam(learnt, lr=_GENERATOR_RATE, weight_decay=decay)
        judging = self.discriminator.parameters()
        self.discriminator_adam = torch.optim.Adam(judging, lr=_DISCRIMINATOR_RATE, weight_decay=decay)

    @torch.no_grad()
    def draw(self, batch: Batch) -> Draw:
        """Draw labels from the crowd layer for pairs of a mini-batch."""
        context, n_active = self.crowd.context, len(self.crowd.active)
        x, gold, batch = context.x(batch), context.gold(batch), self.crowd.numbered(batch)
        pairs, answered = draw_pairs(batch, n_active, _PAIRS_PER_LABEL, context.rng)
        label = sample_labels(self.layer.log_label(x, gold, pairs))
        weight = torch.zeros(len(label), device=x.device).masked_fill(answered, -torch.inf)
        chosen = choose_pairs(pairs, weight, torch.bincount(batch.worker, minlength=n_active))
        return Draw(x, gold, Pairs(batch.row, batch.worker), batch.label, pairs, label, chosen)

    def train_discriminator(self, draw: Draw) -> torch.Tensor:
        """Train the discriminator: authentic labels against as many drawn ones of each worker."""
        self.discriminator.train()
        seen = self.discriminator.inputs(draw.x)
        real = self.discriminator.logit(seen, draw.authentic, draw.authentic_label)
        drawn = self.discriminator.logit(seen, draw.pairs.select(draw.chosen), draw.label[draw.chosen])
        loss = negative_log_likelihood(F.logsigmoid(real)) + negative_log_likelihood(F.logsigmoid(-drawn))
        return descend(self.discriminator_adam, loss / 2)

    def train_layer(self, draw: Draw) -> Figures:
        """Train the crowd layer by policy gradient: labels that look authentic become more probable."""
        with torch.no_grad():
            self.discriminator.eval()
            seen = self.discriminator.inputs(draw.x)
            reward = F.softplus(self.discriminator.logit(seen, draw.pairs, draw.label))
            mean = reward.sum() / max(len(reward), 1)
        log_p = select(self.layer.log_label(draw.x, draw.gold, draw.pairs), draw.label)
        loss = negative_log_likelihood((reward - mean) * log_p)
        if draw.gold is not None:
            loss = loss + gold_cross_entropy(self.layer.network(draw.x), draw.gold)
        descend(self.layer_adam, loss)
        return {"generator": loss.detach(), "reward": mean}

    def step(self, batch: Batch) -> Figures:
        """Train discriminator and crowd layer on one mini-batch."""
        draw = self.draw(batch)
        return {"discriminator": self.train_discriminator(draw)} | self.train_layer(draw)


class GraphImputer:
    """A graph network over labels: some are hidden from the graph, and it learns to predict them.

    Parameters
    ----------
    crowd : ActiveWorkers
        The workers and the context.
    """

    def __init__(self, crowd: ActiveWorkers) -> None:
        context = crowd.context
        sizes = math.prod(context.data.rows.shape), context.n_classes, len(crowd.active)
        self.crowd, self.network = crowd, LabelGraph(*sizes).to(context.device)
        decay = context.options.weight_decay
        self.adam = torch.optim.Adam(self.network.parameters(), lr=_GRAPH_RATE, weight_decay=decay)

    def learn(self, batch: Batch) -> Figures:
        """Train on a mini-batch; the labels to be predicted are not in the graph."""
        x, batch = self.crowd.context.x(batch), self.crowd.numbered(batch)
        edges = edges_of(batch)
        for _ in range(_GRAPH_STEPS):
            hidden = torch.rand(len(batch.label), device=x.device) < _HIDDEN_EDGES
            asked = edges.select(hidden)
            log_p = self.network(x, edges.select(~hidden), Pairs(asked.row, asked.worker))
            loss = descend(self.adam, negative_log_likelihood(select(log_p, asked.label)))
        return {"graph": loss}

    def score(self) -> float:
        """Return the mean held-out log-likelihood given the other labels of the active workers."""
        context = self.crowd.active_context
        log_labels = self.imputer()

        def log_label(batch: Batch) -> torch.Tensor:
            (seen,) = self.crowd.batches(context.annotations, len(batch.item), batch.item)
            asked = self.crowd.numbered(batch)
            return select(log_labels(seen, Pairs(asked.row, asked.worker)), asked.label)

        return context.heldout_score(log_label, self.network)()

    @torch.no_grad()
    def imputer(self) -> LogLabels:
        """Return `log_labels` of the trained network, given all training labels."""
        context, network = self.crowd.context, self.network.eval()
        received = MessageSum(torch.zeros((), device=context.device), torch.zeros((), device=context.device))
        for batch in self.crowd.batches(context.annotations, _CHUNK):
            more = network.messages_to_workers(network.item(context.x(batch)), edges_of(batch))
            received = MessageSum(received.total + more.total, received.degree + more.degree)
        worker = network.worker_embedding(received)

        def log_labels(batch: Batch, pairs: Pairs) -> torch.Tensor:
            return network.log_label(network.item_embedding(context.x(batch), edges_of(batch)), worker, pairs)

        return log_labels


def edges_of(batch: Batch) -> Edges:
    """Return the labels of a mini-batch as edges of the graph."""
    return Edges(batch.row, batch.worker, batch.label)
