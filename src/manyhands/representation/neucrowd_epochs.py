"""The epochs of NeuCrowd: the pool of each, its batches of tuplets, and the step of both networks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import nn

from manyhands.classifiers.base import Learned
from manyhands.nn.metric_losses import root, tuplet_losses
from manyhands.nn.networks import as_tensor, outputs
from manyhands.nn.train import descend
from manyhands.nn.tuplet_sampler import TupletSampler
from manyhands.representation.network import Lesson
from manyhands.representation.trust import confidence_of
from manyhands.tuplets import Codes, Mask, Pool, choose_pool, safe_items

if TYPE_CHECKING:
    from manyhands.representation.neucrowd import NeuCrowd

ANCHORS = ("weighted", "mean", "sum")


class TupletEpochs:
    """What `nn.train` walks through, and the step it takes on every batch.

    Before the first step nothing is known of the embedding or of tuplets: all items are in the pool, and of the
    candidates the first ones are taken. Every switch leaves the draws of the others as they are.
    """

    def __init__(self, method: NeuCrowd, lesson: Lesson, embedder: nn.Module) -> None:
        bench = lesson.bench
        self.method, self.lesson, self.bench, self.embedder = method, lesson, bench, embedder
        self.confidence = confidence_of(lesson, method.confidence, shrink=method.shrink)
        self.trust = torch.from_numpy(self.confidence[lesson.items]).float().to(bench.device)
        self.optimizer = self._new_optimizer(embedder)
        self.sampler, self.sampler_optimizer = None, None
        if method.sampler:
            network = method._new_network(bench.task.rows.shape, 0.0)
            self.sampler = TupletSampler(network, method.embedding_size, method.n_tuple).to(bench.device)
            self.sampler_optimizer = self._new_optimizer(self.sampler)
        self.knows = False  # whether anything was learnt before this epoch
        self.safe_share = 1.0

    def learn(self) -> Learned:
        """Train both networks to the end."""
        modules = {"network": self.embedder} | ({} if self.sampler is None else {"sampler": self.sampler})
        optimizers = {"embedding": self.optimizer}
        if self.sampler_optimizer is not None:
            optimizers["sampler"] = self.sampler_optimizer
        return self.lesson.train(
            self.step,
            modules,
            optimizers,
            batches=self,
            confidence_=lambda: self.confidence,
            safe_=self._safe_of_all,
            sampler_=lambda: self.sampler,
        )

    def __iter__(self) -> Iterator[Codes]:
        """(n_candidates, n_tuple) places among the items to learn from, for each batch of an epoch."""
        method, rng = self.method, self.bench.rng
        self.knows = bool(self.optimizer.state)  # a fit that goes on after it was killed has its optimizer's state
        pool = self._pool()
        turns = np.resize(rng.permutation(pool.anchor_codes()), method.batches_per_epoch)
        for own in turns.tolist():
            yield pool.draw(own, method.batch_size * method.hard_rate, method.n_tuple - 2, rng)

    def step(self, candidates: Codes) -> dict[str, torch.Tensor]:
        """One step of the embedding and one of the sampling network, on the hard ones among these tuplets."""
        method = self.method
        chosen = candidates[: method.batch_size]
        if self.knows and self.sampler is not None:
            place, tuplets = _together(candidates)
            chosen = candidates[self.sampler.hardest(self._x(place), tuplets, method.batch_size)]
        place, tuplets = _together(chosen)
        x = self._x(place)
        losses = self._losses(self.embedder(x)[tuplets], self.trust[chosen])
        told = {"loss": losses.detach().mean()}
        descend(self.optimizer, losses.mean() + method.weight_decay * _squared_weights(self.embedder))
        if self.sampler is not None and self.sampler_optimizer is not None:
            missed = (self.sampler(x, tuplets) - losses.detach()).square().mean()
            told["sampler"] = descend(self.sampler_optimizer, missed)
        return told | ({"safe": torch.tensor(self.safe_share)} if method.safety else {})

    def _losses(self, embedding: torch.Tensor, trust: torch.Tensor) -> torch.Tensor:
        """(n_tuplets,) of tuplets (n_tuplets, n_tuple, embedding_size), with the trust in each of their items."""
        method = self.method
        anchor = embedding[:, :1]
        if method.robust_anchor:
            anchor = robust_anchor(embedding[:, 0], trust[:, 0], method.anchor)
        similarity = method.offset - root((embedding[:, 1:] - anchor).square().sum(2))
        return tuplet_losses(similarity, trust[:, 1:], method.scale, inside=method.weighting == "inside")

    def _pool(self) -> Pool:
        code = self.lesson.batches.code
        if not (self.method.safety and self.knows):
            return Pool.of(code, np.ones(len(code), bool))
        safe = self._safe()
        self.safe_share = float(safe.mean())
        chosen = choose_pool(code, safe, self.method.unsafe_share, self.method.n_tuple, self.bench.rng)
        return Pool.of(code, chosen)

    def _safe(self) -> Mask:
        """(n,) which of the items to learn from are safe in the embedding as it is now."""
        method, lesson = self.method, self.lesson
        embedding = outputs(self.embedder, self.bench.task.rows, lesson.items).float().numpy()
        k = int(np.sqrt(method.batch_size)) if method.n_neighbors is None else method.n_neighbors
        trust = self.confidence[lesson.items]
        return safe_items(embedding, lesson.batches.code, trust, k, margin=method.margin, rival=method.rival)

    def _safe_of_all(self) -> Mask:
        found = np.zeros(self.bench.task.annotations.n_items, bool)
        found[self.lesson.items] = self._safe()
        return found

    def _x(self, place: Codes) -> torch.Tensor:
        return as_tensor(self.bench.task.rows, self.lesson.items[place], self.bench.device)

    def _new_optimizer(self, module: nn.Module) -> torch.optim.Optimizer:
        if self.method.optimizer == "adadelta":
            return torch.optim.Adadelta(module.parameters(), lr=self.method.learning_rate, rho=0.95, eps=1e-8)
        return self.bench.adam(module)


def robust_anchor(embedding: torch.Tensor, trust: torch.Tensor, kind: str) -> torch.Tensor:
    """(embedding_size,) the one anchor of a batch: its anchors (n, embedding_size), each as far as it is trusted.

    "weighted" divides their sum by that of the trust, "mean" by their number, "sum" not at all. Where nobody is
    trusted, all are alike.
    """
    trust = torch.where(trust.sum() > 0, trust, torch.ones_like(trust))
    total = (trust.unsqueeze(1) * embedding).sum(0)
    if kind == "sum":
        return total
    return total / (trust.sum() if kind == "weighted" else len(trust))


def _together(tuplets: Codes) -> tuple[Codes, Codes]:
    """The places that tuplets name, each once, and the tuplets as indices of these."""
    place, index = np.unique(tuplets, return_inverse=True)
    return place, index.reshape(tuplets.shape)


def _squared_weights(module: nn.Module) -> torch.Tensor:
    """The squares of all weights, without biases."""
    return sum((p.square().sum() for p in module.parameters() if p.ndim > 1), start=torch.zeros(()))
