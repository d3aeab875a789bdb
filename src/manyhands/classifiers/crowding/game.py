"""The game that CrowdInG plays: what is drawn from a batch, and how discriminator, generator and classifier learn.

    draw              y ~ p0 = G(. | x, w, z, noise) on pairs (x, w), with and without a label;  z = C(x)
    discriminator     authentic labels against as many generated ones of every worker, the surer the likelier chosen
    cost of y         look = -log D(y),  inform = -sum_k z_k log q(k | x, w, y)
    generator         min mean (look + lambda inform - mu) G(y) / p0(y)   on items of which C is sure, H(z) <= t
    classifier        min mean (look - mu') G(y; C(x)) / p0(y)            on the others, with G at rest

Costs are those of the labels drawn before any step, so that several steps share one draw; a ratio beyond `clip` has no
gradient. All networks are without dropout here but the discriminator while it learns: a ratio other than 1 comes from
what was learnt, and not from chance.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.nn import functional as F

from manyhands.classifiers.active_workers import ActiveWorkers, log_truth
from manyhands.nn.batches import Batch
from manyhands.nn.item_worker_pairs import Pairs, at, choose_pairs, draw_pairs, log_sureness, one_of_each
from manyhands.nn.label_discriminator import Discriminator
from manyhands.nn.label_generator import Generator
from manyhands.nn.losses import bandit_loss, entropy
from manyhands.nn.train import descend

_GENERATED = 0.9  # how much a generated label counts beside an authentic one
_SPARSITY = 0.01  # weight of the discriminator's squared answers
_FLOOR = 1e-3  # of D in a cost

Figures = dict[str, torch.Tensor]
Known = tuple[torch.Tensor, torch.Tensor]  # features and classes of items


class Draw(NamedTuple):
    """Labels that the generator gave to pairs of a batch, and what is asked of them later."""

    x: torch.Tensor
    log_z: torch.Tensor  # (n_rows, n_classes) log p(k | x); of gold items the known class
    authentic: Pairs
    authentic_label: torch.Tensor
    pairs: Pairs
    noise: torch.Tensor  # (n_pairs, n_classes)
    label: torch.Tensor  # (n_pairs,)
    log_p0: torch.Tensor  # (n_pairs,) of these labels, when they were drawn
    log_weight: torch.Tensor  # (n_pairs,) of being chosen as a generated example; -inf where there is a label
    gold: torch.Tensor | None

    def known(self) -> Known | None:
        """Features and classes of the rows whose class is known; None where none is."""
        if self.gold is None or not bool((self.gold >= 0).any()):
            return None
        return self.x[self.gold >= 0], self.gold[self.gold >= 0]

    def part(self, which: torch.Tensor) -> tuple[Draw, torch.Tensor]:
        """The rows that a mask says with the pairs on them, and which pairs these are; authentic labels stay behind."""
        kept, place = which[self.pairs.row], which.cumsum(0) - 1
        part = self._replace(
            x=self.x[which],
            log_z=self.log_z[which],
            authentic=Pairs(self.authentic.row[:0], self.authentic.worker[:0]),
            authentic_label=self.authentic_label[:0],
            pairs=Pairs(place[self.pairs.row[kept]], self.pairs.worker[kept]),
            noise=self.noise[kept],
            label=self.label[kept],
            log_p0=self.log_p0[kept],
            log_weight=self.log_weight[kept],
            gold=None if self.gold is None else self.gold[which],
        )
        return part, kept


@dataclass(eq=False)
class Game:
    """Three networks, what they learn from, and how they learn; `settings` is the method with its parameters."""

    crowd: ActiveWorkers
    network: nn.Module
    generator: Generator
    discriminator: Discriminator
    settings: Any

    def __post_init__(self) -> None:
        rates = self.settings
        self.network_adam = torch.optim.Adam(self.network.parameters(), lr=rates.classifier_learning_rate)
        self.generator_adam = torch.optim.Adam(self.generator.parameters(), lr=rates.generator_learning_rate)
        self.discriminator_adam = torch.optim.Adam(
            self.discriminator.parameters(),
            lr=rates.discriminator_learning_rate,
            weight_decay=rates.discriminator_decay,
        )

    def log_z(self, x: torch.Tensor, gold: torch.Tensor | None) -> torch.Tensor:
        """(n_rows, n_classes) what is believed of the items, dropout at rest."""
        return log_truth(self.network.eval(), x, gold)

    @torch.no_grad()
    def draw(self, batch: Batch) -> Draw:
        x, gold, batch = self._read(batch)
        log_z = self.log_z(x, gold)
        self.generator.eval()
        per_label, rng = self.settings.pairs_per_label, self.crowd.context.rng
        pairs, answered = draw_pairs(batch, self.generator.n_workers, per_label, rng)
        noise = self.generator.draw_noise(pairs)
        log_p = self.generator(self.generator.inputs(x), log_z.exp(), pairs, noise)
        label = one_of_each(log_p)
        log_weight = torch.zeros_like(log_p[:, 0])
        if self.settings.selection == "entropy":
            log_weight = log_sureness(log_p)
        log_weight[answered] = -torch.inf
        authentic = Pairs(batch.row, batch.worker)
        return Draw(x, log_z, authentic, batch.label, pairs, noise, label, at(log_p, label), log_weight, gold)

    def learn_to_generate(self, batch: Batch) -> Figures:
        """Before the game: the generator learns the labels that workers gave."""
        x, gold, batch = self._read(batch)
        with torch.no_grad():
            z = self.log_z(x, gold).exp()
        self.generator.train()
        pairs = Pairs(batch.row, batch.worker)
        log_p = self.generator(self.generator.inputs(x), z, pairs, self.generator.draw_noise(pairs))
        loss = -at(log_p, batch.label).sum() / max(len(batch.label), 1)
        return {"generator_start": descend(self.generator_adam, loss)}

    def log_label(self, batch: Batch) -> torch.Tensor:
        """(n_labels,) what the generator thinks of labels that it has not seen, by workers whom it has."""
        x, _, batch = self._read(batch)
        pairs = Pairs(batch.row, batch.worker)
        z = self.log_z(x, None).exp()
        log_p = self.generator(self.generator.inputs(x), z, pairs, self.generator.draw_noise(pairs))
        return at(log_p, batch.label)

    def learn_to_tell(self, draw: Draw) -> Figures:
        """Steps of the discriminator and the informer: as many generated labels of every worker as authentic ones."""
        wanted = torch.bincount(draw.authentic.worker, minlength=self.generator.n_workers)
        chosen = choose_pairs(draw.pairs, draw.log_weight, wanted)
        both = Pairs(*(torch.cat(two) for two in zip(draw.authentic, draw.pairs.at(chosen))))
        label = torch.cat([draw.authentic_label, draw.label[chosen]])
        is_real = torch.arange(len(label), device=label.device) < len(draw.authentic_label)
        z = draw.log_z.exp().index_select(0, both.row)
        self.discriminator.train()
        for _ in range(self.settings.inner_steps):
            seen = self.discriminator.see(draw.x)
            logits = self.discriminator.logits(seen, both)
            logit = logits.gather(1, label.unsqueeze(1)).squeeze(1)
            told = _mean(F.softplus(-logit[is_real])) + _GENERATED * _mean(F.softplus(logit[~is_real]))
            inform = -_mean((z * self.discriminator.log_truth(seen, both, label)).sum(1))
            sparse = logits[is_real].sigmoid().square().sum() / max(logits[is_real].numel(), 1)
            loss = told / 2 + _SPARSITY * sparse + self.settings.information * inform
            descend(self.discriminator_adam, loss)
        return {
            "discriminator": told.detach() / 2,
            "seen_as_authentic": _mean((logit[is_real] > 0).float()),
            "seen_as_generated": _mean((logit[~is_real] <= 0).float()),
            "information": _information(z, inform.detach()),
        }

    @torch.no_grad()
    def costs(self, draw: Draw) -> tuple[torch.Tensor, torch.Tensor]:
        """(n_pairs,) `look` and `inform` of every label drawn."""
        self.discriminator.eval()
        seen = self.discriminator.see(draw.x)
        authentic = self.discriminator.logit(seen, draw.pairs, draw.label).sigmoid()
        look = -((authentic + _FLOOR) / (1 + _FLOOR)).log()
        z = draw.log_z.exp().index_select(0, draw.pairs.row)
        return look, -(z * self.discriminator.log_truth(seen, draw.pairs, draw.label)).sum(1)

    def play(self, batch: Batch) -> Figures:
        """One batch of the game."""
        draw = self.draw(batch)
        found = self.learn_to_tell(draw)
        look, inform = self.costs(draw)
        cost = look + self.settings.information * inform
        if not self.settings.two_step:
            return found | self.learn_together(draw, cost)
        is_sure = self.is_sure(draw)
        sure, on_sure = draw.part(is_sure)
        unsure, on_unsure = draw.part(~is_sure)
        found |= self.learn_to_convince(sure, cost[on_sure])
        return found | self.learn_to_classify(unsure, look[on_unsure], draw.known())

    def is_sure(self, draw: Draw) -> torch.Tensor:
        """(n_rows,) of which items the classifier is sure."""
        h = entropy(draw.log_z)
        threshold = self.settings.threshold
        if self.settings.threshold_is == "quantile":
            threshold = float(h.quantile(threshold)) if len(h) else 0.0
        return h <= threshold

    def learn_to_convince(self, draw: Draw, cost: torch.Tensor) -> Figures:
        """Steps of the generator, the classifier at rest."""
        self.generator.eval()
        for _ in range(self.settings.inner_steps):
            log_p = self.generator(self.generator.inputs(draw.x), draw.log_z.exp(), draw.pairs, draw.noise)
            log_ratio = at(log_p, draw.label) - draw.log_p0
            loss = self._bandit(cost, log_ratio)
            descend(self.generator_adam, loss)
        return {"generator": loss.detach(), "generator_ratio": _mean(log_ratio.detach().exp())}

    def learn_to_classify(self, draw: Draw, cost: torch.Tensor, known: Known | None = None) -> Figures:
        """Steps of the classifier, the generator at rest: which z makes labels that look authentic more probable?

        Of `known` items the class is known; they are sure ones, so that they are not among those drawn.
        """
        self.generator.eval().requires_grad_(False)
        inputs = self.generator.inputs(draw.x)
        for _ in range(self.settings.inner_steps):
            log_p = self.generator(inputs, self._z(draw), draw.pairs, draw.noise)
            log_ratio = at(log_p, draw.label) - draw.log_p0
            loss = self._bandit(cost, log_ratio)
            descend(self.network_adam, loss + self._gold_loss(known))
        self.generator.requires_grad_(True)
        return {"classifier": loss.detach(), "classifier_ratio": _mean(log_ratio.detach().exp())}

    def learn_together(self, draw: Draw, cost: torch.Tensor) -> Figures:
        """The one-step update: generator and classifier at once, on all items."""
        self.generator.eval()
        for _ in range(self.settings.inner_steps):
            log_p = self.generator(self.generator.inputs(draw.x), self._z(draw), draw.pairs, draw.noise)
            log_ratio = at(log_p, draw.label) - draw.log_p0
            loss = self._bandit(cost, log_ratio)
            self.generator_adam.zero_grad(set_to_none=True)
            descend(self.network_adam, loss + self._gold_loss(draw.known()))
            self.generator_adam.step()
        return {"generator": loss.detach(), "generator_ratio": _mean(log_ratio.detach().exp())}

    def _read(self, batch: Batch) -> tuple[torch.Tensor, torch.Tensor | None, Batch]:
        """Features and gold of a batch, and the batch with workers numbered among those with a label."""
        return self.crowd.context.x(batch), self.crowd.context.gold(batch), self.crowd.numbered(batch)

    def _z(self, draw: Draw) -> torch.Tensor:
        """(n_rows, n_classes) what the classifier says now, with its gradient; what is known stays as it is."""
        z: torch.Tensor = self.network.eval()(draw.x).softmax(1)
        return z if draw.gold is None else torch.where((draw.gold >= 0).unsqueeze(1), draw.log_z.exp(), z)

    def _gold_loss(self, known: Known | None) -> torch.Tensor | float:
        if known is None:
            return 0.0
        return F.cross_entropy(self.network(known[0]), known[1])

    def _bandit(self, cost: torch.Tensor, log_ratio: torch.Tensor) -> torch.Tensor:
        multiplier = _mean(cost) if self.settings.multiplier is None else self.settings.multiplier
        return bandit_loss(cost, log_ratio, multiplier, self.settings.clip)


def _information(z: torch.Tensor, inform: torch.Tensor) -> torch.Tensor:
    """What labels tell of the truth, in nats, at least: H(mean z) less what is left open; 0 where there are none."""
    if len(z) == 0:
        return z.sum()
    return entropy(z.mean(0, keepdim=True).clamp(min=1e-12).log()).squeeze(0) - inform


def _mean(values: torch.Tensor) -> torch.Tensor:
    """0 where there is none."""
    return values.sum() / max(values.numel(), 1)
