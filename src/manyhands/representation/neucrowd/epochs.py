"""The epochs of NeuCrowd: the pool of each, its batches of tuplets, and the step of both networks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import nn

from manyhands.nn.inference import as_tensor, outputs
from manyhands.nn.metric_losses import safe_sqrt, tuplet_losses
from manyhands.nn.train import History, descend
from manyhands.representation.label_confidence import confidence_of
from manyhands.representation.neucrowd.sampler import TupletSampler
from manyhands.representation.neucrowd.tuplets import Codes, Mask, Pool, choose_pool, safe_items
from manyhands.representation.training_set import TrainingSet

ANCHORS = ("weighted", "mean", "sum")


class Member:
    """An embedding of a `NeuCrowd` and its sampling network, with the items that they learn from.

    Before the first step nothing is known of the embedding or of tuplets: all items are in the pool, and of the
    candidates the first ones are taken. Every switch leaves the draws of the others as they are.
    """

    def __init__(self, method: Any, training_set: TrainingSet, embedder: nn.Module, size: int) -> None:
        context = training_set.context
        self.method, self.training_set, self.context, self.embedder = method, training_set, context, embedder
        self.confidence = confidence_of(training_set, method.confidence, shrink=method.shrink)[training_set.items]
        self.trust = torch.from_numpy(self.confidence).float().to(context.device)
        self.optimizers = {"embedding": self._new_optimizer(embedder)}
        self.sampler = None
        if method.sampler:
            with torch.random.fork_rng(devices=()):  # what the embedding draws is the same with and without
                network = method._new_network(context.data.rows.shape, size, dropout=0.0)
                self.sampler = TupletSampler(network, size, method.n_tuple).to(context.device)
            self.optimizers["sampler"] = self._new_optimizer(self.sampler)
        self.modules = {"network": embedder} | ({} if self.sampler is None else {"sampler": self.sampler})
        self.knows = False  # whether anything was learnt before this epoch
        self.safe_share = 1.0

    def __iter__(self) -> Iterator[Codes]:
        """(n_candidates, n_tuple) places among the items to learn from, for each batch of an epoch."""
        method, rng = self.method, self.context.rng
        self.knows = bool(self.optimizers["embedding"].state)  # also where a killed fit goes on
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
        penalty = method.weight_decay * _squared_weights(self.embedder)
        descend(self.optimizers["embedding"], losses.mean() + penalty)
        if self.sampler is not None:
            missed = (self.sampler(x, tuplets) - losses.detach()).square().mean()
            told["sampler"] = descend(self.optimizers["sampler"], missed)
        return told | ({"safe": torch.tensor(self.safe_share)} if method.safety else {})

    def _losses(self, embedding: torch.Tensor, trust: torch.Tensor) -> torch.Tensor:
        """(n_tuplets,) of tuplets (n_tuplets, n_tuple, embedding_size), with the trust in each of their items."""
        method = self.method
        anchor = embedding[:, :1]
        if method.robust_anchor:
            anchor = robust_anchor(embedding[:, 0], trust[:, 0], method.anchor)
        similarity = method.offset - safe_sqrt((embedding[:, 1:] - anchor).square().sum(2))
        return tuplet_losses(similarity, trust[:, 1:], method.scale, inside=method.weighting == "inside")

    def _pool(self) -> Pool:
        code = self.training_set.batches.code
        if not (self.method.safety and self.knows):
            return Pool.of(code, np.ones(len(code), bool))
        safe = safe_now(self.method, self.training_set, self.embedder, self.confidence)
        self.safe_share = float(safe.mean())
        chosen = choose_pool(code, safe, self.method.unsafe_share, self.method.n_tuple, self.context.rng)
        return Pool.of(code, chosen)

    def _x(self, place: Codes) -> torch.Tensor:
        return as_tensor(self.context.data.rows, self.training_set.items[place], self.context.device)

    def _new_optimizer(self, module: nn.Module) -> torch.optim.Optimizer:
        if self.method.optimizer == "adadelta":
            return torch.optim.Adadelta(module.parameters(), lr=self.method.learning_rate, rho=0.95, eps=1e-8)
        return self.context.adam(module)


def train_together(members: Sequence[Member]) -> History:
    """All members in one loop, so that they stop together, where they foretell best what each of them left out."""
    modules = {f"{name} {m}": module for m, member in enumerate(members) for name, module in member.modules.items()}
    optimizers = {f"{name} {m}": o for m, member in enumerate(members) for name, o in member.optimizers.items()}

    def step(batch: tuple[Codes, ...]) -> dict[str, torch.Tensor]:
        told = [member.step(candidates) for member, candidates in zip(members, batch)]
        return {name: torch.stack([each[name] for each in told]).mean() for name in told[0]}

    def evaluate() -> float:
        asked = [member.context.heldout for member in members]
        sizes = [0 if labels is None else labels.n_annotations for labels in asked]
        found = [member.training_set.predicted(member.embedder) for member in members]
        return float(np.average(found, weights=sizes))

    return members[0].context.train(step, modules, optimizers, evaluate=evaluate, batches=_Side(members))


class _Side:
    """Batches of all members, side by side."""

    def __init__(self, members: Sequence[Member]) -> None:
        self.members = members

    def __iter__(self) -> Iterator[tuple[Codes, ...]]:
        return zip(*self.members, strict=True)


def safe_now(
    method: Any, training_set: TrainingSet, embedder: nn.Module, confidence: np.typing.NDArray[np.float64]
) -> Mask:
    """(n,) which of the items to learn from are safe in the embedding as it is now."""
    embedding = outputs(embedder, training_set.context.data.rows, training_set.items).float().numpy()
    k = int(np.sqrt(method.batch_size)) if method.n_neighbors is None else method.n_neighbors
    return safe_items(embedding, training_set.batches.code, confidence, k, margin=method.margin, rival=method.rival)


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
