"""Who can foretell the labels that workers did not give: a crowd layer, its rival's teaching, a graph network.

Each gives `answers(batch, pairs)`: from items with their labels, and pairs of these rows with workers, to (n_pairs,
n_classes) log p(label | x, w). Workers are numbered among those with a label.
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
from manyhands.nn.item_worker_pairs import Pairs, at, choose_pairs, draw_pairs, one_of_each
from manyhands.nn.label_discriminator import Discriminator
from manyhands.nn.label_graph import Edges, Heard, LabelGraph
from manyhands.nn.losses import gold_cross_entropy, negative_log_likelihood
from manyhands.nn.train import descend

_STRETCH = 1024  # items looked at together where nothing is learnt
_HIDDEN_EDGES = 0.5  # share of the labels that the graph does not show, and that are foretold
_GRAPH_STEPS, _GRAPH_RATE = 4, 1e-2
_PAIRS_PER_LABEL = 8  # looked at in a step of the game
_GENERATOR_RATE, _DISCRIMINATOR_RATE = 1e-4, 1e-3

Answers = Callable[[Batch, Pairs], torch.Tensor]
Figures = dict[str, torch.Tensor]


@dataclass(frozen=True, eq=False)
class LayerImputer:
    """A network with a crowd layer behind it, at rest."""

    crowd: ActiveWorkers
    network: nn.Module
    noise: Any

    def answers(self, batch: Batch, pairs: Pairs) -> torch.Tensor:
        return self.log_label(self.crowd.context.x(batch), self.crowd.context.gold(batch), pairs)

    def log_label(self, x: torch.Tensor, gold: torch.Tensor | None, pairs: Pairs) -> torch.Tensor:
        truth = log_truth(self.network.eval(), x, gold).exp().index_select(0, pairs.row)
        worker = torch.from_numpy(self.crowd.active).to(x.device)[pairs.worker]
        logits: torch.Tensor = self.noise.logits(truth, worker)
        return logits.log_softmax(1)


class Draw(NamedTuple):
    """Labels drawn from a layer on pairs of a batch, and those that workers gave."""

    x: torch.Tensor
    gold: torch.Tensor | None
    authentic: Pairs
    authentic_label: torch.Tensor
    pairs: Pairs
    label: torch.Tensor  # (n_pairs,)
    chosen: torch.Tensor  # which of the pairs, none of them with a label, stand against the authentic ones


class AdversarialImputer:
    """A layer, and the discriminator that tells what is drawn from it from what workers said."""

    def __init__(self, layer: LayerImputer) -> None:
        crowd = layer.crowd
        sizes = math.prod(crowd.context.data.rows.shape), crowd.context.n_classes, len(crowd.active)
        self.layer, self.crowd = layer, crowd
        self.discriminator = Discriminator(*sizes).to(crowd.context.device)
        learnt = [*layer.network.parameters(), *layer.noise.parameters()]
        self.layer_adam = torch.optim.Adam(learnt, lr=_GENERATOR_RATE)
        self.discriminator_adam = torch.optim.Adam(self.discriminator.parameters(), lr=_DISCRIMINATOR_RATE)

    @torch.no_grad()
    def draw(self, batch: Batch) -> Draw:
        context, n_heard = self.crowd.context, len(self.crowd.active)
        x, gold, batch = context.x(batch), context.gold(batch), self.crowd.numbered(batch)
        pairs, answered = draw_pairs(batch, n_heard, _PAIRS_PER_LABEL, context.rng)
        label = one_of_each(self.layer.log_label(x, gold, pairs))
        weight = torch.zeros(len(label), device=x.device).masked_fill(answered, -torch.inf)
        chosen = choose_pairs(pairs, weight, torch.bincount(batch.worker, minlength=n_heard))
        return Draw(x, gold, Pairs(batch.row, batch.worker), batch.label, pairs, label, chosen)

    def learn_to_tell(self, draw: Draw) -> torch.Tensor:
        """A step of the discriminator: authentic labels against as many drawn ones of every worker."""
        self.discriminator.train()
        seen = self.discriminator.see(draw.x)
        real = self.discriminator.logit(seen, draw.authentic, draw.authentic_label)
        drawn = self.discriminator.logit(seen, draw.pairs.at(draw.chosen), draw.label[draw.chosen])
        loss = negative_log_likelihood(F.logsigmoid(real)) + negative_log_likelihood(F.logsigmoid(-drawn))
        return descend(self.discriminator_adam, loss / 2)

    def learn_to_convince(self, draw: Draw) -> Figures:
        """A step of the layer: labels that look more authentic than others become more probable."""
        with torch.no_grad():
            self.discriminator.eval()
            seen = self.discriminator.see(draw.x)
            reward = F.softplus(self.discriminator.logit(seen, draw.pairs, draw.label))
            mean = reward.sum() / max(len(reward), 1)
        log_p = at(self.layer.log_label(draw.x, draw.gold, draw.pairs), draw.label)
        loss = negative_log_likelihood((reward - mean) * log_p)
        if draw.gold is not None:
            loss = loss + gold_cross_entropy(self.layer.network(draw.x), draw.gold)
        descend(self.layer_adam, loss)
        return {"generator": loss.detach(), "reward": mean}

    def play(self, batch: Batch) -> Figures:
        """One batch of the game."""
        draw = self.draw(batch)
        return {"discriminator": self.learn_to_tell(draw)} | self.learn_to_convince(draw)


class GraphImputer:
    """A network over the graph of labels: some of them are hidden from it, and it learns to foretell these."""

    def __init__(self, crowd: ActiveWorkers) -> None:
        context = crowd.context
        sizes = math.prod(context.data.rows.shape), context.n_classes, len(crowd.active)
        self.crowd, self.network = crowd, LabelGraph(*sizes).to(context.device)
        self.adam = torch.optim.Adam(self.network.parameters(), lr=_GRAPH_RATE)

    def learn(self, batch: Batch) -> Figures:
        """Steps on a batch; were the labels to be foretold in the graph, it would learn to read them off."""
        x, batch = self.crowd.context.x(batch), self.crowd.numbered(batch)
        edges = edges_of(batch)
        for _ in range(_GRAPH_STEPS):
            hidden = torch.rand(len(batch.label), device=x.device) < _HIDDEN_EDGES
            asked = edges.at(hidden)
            log_p = self.network(x, edges.at(~hidden), Pairs(asked.row, asked.worker))
            loss = descend(self.adam, negative_log_likelihood(at(log_p, asked.label)))
        return {"graph": loss}

    def score(self) -> float:
        """The mean log-likelihood of held-out labels, given all others; of workers without others nothing is known."""
        context = self.crowd.judged
        answers = self.rested()

        def log_label(batch: Batch) -> torch.Tensor:
            (seen,) = self.crowd.batches(context.annotations, len(batch.item), batch.item)
            asked = self.crowd.numbered(batch)
            return at(answers(seen, Pairs(asked.row, asked.worker)), asked.label)

        return context.heldout_score(log_label, self.network)()

    @torch.no_grad()
    def rested(self) -> Answers:
        """What it foretells now, from all labels that are seen."""
        context, network = self.crowd.context, self.network.eval()
        active = Heard(torch.zeros((), device=context.device), torch.zeros((), device=context.device))
        for batch in self.crowd.batches(context.annotations, _STRETCH):
            more = network.heard_by_workers(network.item(context.x(batch)), edges_of(batch))
            active = Heard(active.total + more.total, active.degree + more.degree)
        worker = network.worker_code(active)

        def answers(batch: Batch, pairs: Pairs) -> torch.Tensor:
            return network.log_label(network.item_code(context.x(batch), edges_of(batch)), worker, pairs)

        return answers


def edges_of(batch: Batch) -> Edges:
    return Edges(batch.row, batch.worker, batch.label)
