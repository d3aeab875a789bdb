"""The adversarial training of CrowdInG: discriminator, generator and classifier learn in turns.

    draw              y ~ p0 = G(. | x, w, z, noise) on pairs (x, w), with and without a label;  z = C(x)
    discriminator     min L_D = 1/2 (mean_R -log D(y) + g mean_S -log(1 - D(y))) + s mean D^2 + lambda mean L_Q
                      R: authentic labels; S: as many generated ones of each worker, confident ones more probably
    cost of y         authenticity L_G = log(1 - D(y)),  information L_Q = -sum_k z_k log q(k | x, w, y)
    generator         min mean (L_G + lambda L_Q - mu) G(y) / p0(y)    on items with entropy H(z) <= t
    classifier        min mean (L_G - mu') G(y; C(x)) / p0(y)          on the others, with G fixed

In the options of CrowdInG, lambda is `information`, mu is `multiplier` (None: the mean cost), t is `threshold`, g is
`generated_weight`, and s is `sparsity`; D^2 is the mean over all classes and the pairs of R and S (`sparsity_on`).
L_G may be -log D(y) instead (`generator_loss`), as in the authors' code, which also has g = 0.9. L_G = log(1 - D) is
never positive, so that with mu = 0 every generated label would become more probable; with the mean cost as mu, a common
factor of all ratios has no gradient, and their mean stays near 1.

Costs are those of the labels drawn before any step, so that several steps share one draw; an importance ratio beyond
`clip` has no gradient. Dropout is off in all networks but the discriminator while it is trained, so that an importance
ratio other than 1 comes from training and not from dropout.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F

from manyhands.classifiers.active_workers import ActiveWorkers, log_truth
from manyhands.classifiers.crowding.draw import Draw, Known
from manyhands.classifiers.crowding.options import Adversarial, DiscriminatorTraining
from manyhands.nn.batches import Batch
from manyhands.nn.item_worker_pairs import Pairs, choose_pairs, draw_pairs, log_inverse_entropy, sample_labels, select
from manyhands.nn.label_discriminator import Discriminator
from manyhands.nn.label_generator import Generator
from manyhands.nn.losses import bandit_loss, entropy
from manyhands.nn.train import descend

_FLOOR = 1e-3  # added to D before its logarithm in the non-saturating cost

Figures = dict[str, torch.Tensor]


@dataclass(eq=False)
class Game:
    """The three networks of CrowdInG, their optimizers and the steps of each.

    Attributes
    ----------
    crowd : ActiveWorkers
        Labels and workers.
    network : torch.nn.Module
        The classifier C, from features to logits.
    generator : Generator
        The generator G.
    discriminator : Discriminator
        The discriminator D and, sharing its embeddings, q of the mutual-information term.
    options : Adversarial
        Parameters of the adversarial training.
    discriminator_options : DiscriminatorTraining
        Parameters of the discriminator.
    generator_learning_rate : float
        Step size of the generator's Adam.
    """

    crowd: ActiveWorkers
    network: nn.Module
    generator: Generator
    discriminator: Discriminator
    options: Adversarial
    discriminator_options: DiscriminatorTraining
    generator_learning_rate: float

    def __post_init__(self) -> None:
        decay = self.crowd.context.options.weight_decay
        self.network_adam = torch.optim.Adam(
            self.network.parameters(), lr=self.options.learning_rate, weight_decay=decay
        )
        self.generator_adam = torch.optim.Adam(
            self.generator.parameters(), lr=self.generator_learning_rate, weight_decay=decay
        )
        self.discriminator_adam = torch.optim.Adam(
            self.discriminator.parameters(),
            lr=self.discriminator_options.learning_rate,
            weight_decay=self.discriminator_options.weight_decay,
        )

    def log_z(self, x: torch.Tensor, gold: torch.Tensor | None) -> torch.Tensor:
        """Return log p(k | x) of the items by the classifier without dropout, (n_rows, n_classes)."""
        return log_truth(self.network.eval(), x, gold)

    @torch.no_grad()
    def draw(self, batch: Batch) -> Draw:
        """Draw labels from the generator for pairs of item and worker in a mini-batch."""
        x, gold, batch = self._read(batch)
        log_z = self.log_z(x, gold)
        self.generator.eval()
        per_label, rng = self.options.pairs_per_label, self.crowd.context.rng
        pairs, answered = draw_pairs(batch, self.generator.n_workers, per_label, rng)
        noise = self.generator.draw_noise(pairs)
        log_p = self.generator(self.generator.inputs(x), log_z.exp(), pairs, noise)
        label = sample_labels(log_p)
        log_weight = torch.zeros_like(log_p[:, 0])
        if self.discriminator_options.selection == "entropy":
            log_weight = log_inverse_entropy(log_p)
        log_weight[answered] = -torch.inf
        authentic = Pairs(batch.row, batch.worker)
        return Draw(x, log_z, authentic, batch.label, pairs, noise, label, select(log_p, label), log_weight, gold)

    def pretrain_generator(self, batch: Batch) -> Figures:
        """Pre-training step of the generator: maximise the likelihood of the observed labels."""
        x, gold, batch = self._read(batch)
        with torch.no_grad():
            z = self.log_z(x, gold).exp()
        self.generator.train()
        pairs = Pairs(batch.row, batch.worker)
        log_p = self.generator(self.generator.inputs(x), z, pairs, self.generator.draw_noise(pairs))
        loss = -select(log_p, batch.label).sum() / max(len(batch.label), 1)
        return {"generator_start": descend(self.generator_adam, loss)}

    def log_label(self, batch: Batch) -> torch.Tensor:
        """Return the generator's log-probability of held-out labels, (n_labels,)."""
        x, _, batch = self._read(batch)
        pairs = Pairs(batch.row, batch.worker)
        z = self.log_z(x, None).exp()
        log_p = self.generator(self.generator.inputs(x), z, pairs, self.generator.draw_noise(pairs))
        return select(log_p, batch.label)

    def train_discriminator(self, draw: Draw) -> Figures:
        """Train discriminator and information term: as many generated labels of each worker as authentic ones."""
        wanted = torch.bincount(draw.authentic.worker, minlength=self.generator.n_workers)
        chosen = choose_pairs(draw.pairs, draw.log_weight, wanted)
        both = Pairs(*(torch.cat(two) for two in zip(draw.authentic, draw.pairs.select(chosen))))
        label = torch.cat([draw.authentic_label, draw.label[chosen]])
        is_real = torch.arange(len(label), device=label.device) < len(draw.authentic_label)
        z = draw.log_z.exp().index_select(0, both.row)
        how = self.discriminator_options
        self.discriminator.train()
        for _ in range(self.options.inner_steps):
            seen = self.discriminator.inputs(draw.x)
            logits = self.discriminator.logits(seen, both)
            logit = logits.gather(1, label.unsqueeze(1)).squeeze(1)
            real, generated = _mean(F.softplus(-logit[is_real])), _mean(F.softplus(logit[~is_real]))
            adversarial = real + how.generated_weight * generated
            inform = -_mean((z * self.discriminator.log_truth(seen, both, label)).sum(1))
            sparse = _mean((logits if how.sparsity_on == "all" else logits[is_real]).sigmoid().square())
            loss = adversarial / 2 + how.sparsity * sparse + self.options.information * inform
            descend(self.discriminator_adam, loss)
        return {
            "discriminator": adversarial.detach() / 2,
            "seen_as_authentic": _mean((logit[is_real] > 0).float()),
            "seen_as_generated": _mean((logit[~is_real] <= 0).float()),
            "information": _information(z, inform.detach()),
        }

    @torch.no_grad()
    def costs(self, draw: Draw) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the authenticity and information costs of every label drawn, (n_pairs,) each."""
        self.discriminator.eval()
        seen = self.discriminator.inputs(draw.x)
        logit = self.discriminator.logit(seen, draw.pairs, draw.label)
        authenticity = F.logsigmoid(-logit)  # log(1 - D)
        if self.options.generator_loss == "non-saturating":
            authenticity = -((logit.sigmoid() + _FLOOR) / (1 + _FLOOR)).log()
        z = draw.log_z.exp().index_select(0, draw.pairs.row)
        return authenticity, -(z * self.discriminator.log_truth(seen, draw.pairs, draw.label)).sum(1)

    def step(self, batch: Batch) -> Figures:
        """Train all three networks on one mini-batch; returns their losses and diagnostics."""
        draw = self.draw(batch)
        found = self.train_discriminator(draw)
        authenticity, inform = self.costs(draw)
        cost = authenticity + self.options.information * inform
        if not self.options.two_step:
            return found | self.train_jointly(draw, cost)
        is_confident = self.is_confident(draw)
        confident, on_confident = draw.part(is_confident)
        uncertain, on_uncertain = draw.part(~is_confident)
        found |= self.train_generator(confident, cost[on_confident])
        return found | self.train_classifier(uncertain, authenticity[on_uncertain], draw.known())

    def is_confident(self, draw: Draw) -> torch.Tensor:
        """Return the mask of the items whose entropy is at most the threshold, (n_rows,)."""
        h = entropy(draw.log_z)
        threshold = self.options.threshold
        if self.options.threshold_is == "quantile":
            threshold = float(h.quantile(threshold)) if len(h) else 0.0
        return h <= threshold

    def train_generator(self, draw: Draw, cost: torch.Tensor) -> Figures:
        """Train the generator with the classifier fixed."""
        self.generator.eval()
        for _ in range(self.options.inner_steps):
            log_p = self.generator(self.generator.inputs(draw.x), draw.log_z.exp(), draw.pairs, draw.noise)
            log_ratio = select(log_p, draw.label) - draw.log_p0
            loss = self._bandit(cost, log_ratio)
            descend(self.generator_adam, loss)
        return {"generator": loss.detach(), "generator_ratio": _mean(log_ratio.detach().exp())}

    def train_classifier(self, draw: Draw, cost: torch.Tensor, known: Known | None = None) -> Figures:
        """Train the classifier with the generator fixed: z moves so that authentic labels become more probable.

        Parameters
        ----------
        draw : Draw
            Labels drawn on items of high entropy.
        cost : torch.Tensor of shape (n_pairs,)
            Cost of each label.
        known : tuple of torch.Tensor, default=None
            Features and classes of gold items, which have entropy 0 and are never in `draw`.

        Returns
        -------
        dict of str to torch.Tensor
            Loss and mean importance ratio.
        """
        self.generator.eval().requires_grad_(False)
        inputs = self.generator.inputs(draw.x)
        for _ in range(self.options.inner_steps):
            log_p = self.generator(inputs, self._z(draw), draw.pairs, draw.noise)
            log_ratio = select(log_p, draw.label) - draw.log_p0
            loss = self._bandit(cost, log_ratio)
            descend(self.network_adam, loss + self._gold_loss(known))
        self.generator.requires_grad_(True)
        return {"classifier": loss.detach(), "classifier_ratio": _mean(log_ratio.detach().exp())}

    def train_jointly(self, draw: Draw, cost: torch.Tensor) -> Figures:
        """Train generator and classifier in one step on all items (the one-step ablation)."""
        self.generator.eval()
        for _ in range(self.options.inner_steps):
            log_p = self.generator(self.generator.inputs(draw.x), self._z(draw), draw.pairs, draw.noise)
            log_ratio = select(log_p, draw.label) - draw.log_p0
            loss = self._bandit(cost, log_ratio)
            self.generator_adam.zero_grad(set_to_none=True)
            descend(self.network_adam, loss + self._gold_loss(draw.known()))
            self.generator_adam.step()
        return {"generator": loss.detach(), "generator_ratio": _mean(log_ratio.detach().exp())}

    def _read(self, batch: Batch) -> tuple[torch.Tensor, torch.Tensor | None, Batch]:
        """Features and gold of a mini-batch, and the mini-batch with workers numbered among the active ones."""
        return self.crowd.context.x(batch), self.crowd.context.gold(batch), self.crowd.numbered(batch)

    def _z(self, draw: Draw) -> torch.Tensor:
        """The classifier's current p(k | x) with its gradient; gold items keep their known class."""
        z: torch.Tensor = self.network.eval()(draw.x).softmax(1)
        return z if draw.gold is None else torch.where((draw.gold >= 0).unsqueeze(1), draw.log_z.exp(), z)

    def _gold_loss(self, known: Known | None) -> torch.Tensor | float:
        if known is None:
            return 0.0
        return F.cross_entropy(self.network(known[0]), known[1])

    def _bandit(self, cost: torch.Tensor, log_ratio: torch.Tensor) -> torch.Tensor:
        multiplier = _mean(cost) if self.options.multiplier is None else self.options.multiplier
        return bandit_loss(cost, log_ratio, multiplier, self.options.clip)


def _information(z: torch.Tensor, inform: torch.Tensor) -> torch.Tensor:
    """Lower bound of the mutual information of label and truth in nats, H(mean z) - inform; 0 without labels."""
    if len(z) == 0:
        return z.sum()
    return entropy(z.mean(0, keepdim=True).clamp(min=1e-12).log()).squeeze(0) - inform


def _mean(values: torch.Tensor) -> torch.Tensor:
    """Mean of the values; 0 where there are none."""
    return values.sum() / max(values.numel(), 1)
