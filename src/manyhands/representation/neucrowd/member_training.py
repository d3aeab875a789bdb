"""Training of the embeddings of NeuCrowd: the pool of each epoch, its tuplets, and the step of both networks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import torch
from torch import nn

from manyhands.em.kernels import Array
from manyhands.nn.inference import as_tensor, outputs
from manyhands.nn.metric_losses import safe_sqrt, tuplet_losses
from manyhands.nn.train import History, descend
from manyhands.representation.label_confidence import label_confidence
from manyhands.representation.neucrowd.options import LabelConfidence, SafetyAwareSampling, TupletLoss, Tuplets
from manyhands.representation.neucrowd.sampler import TupletSampler
from manyhands.representation.neucrowd.tuplets import Codes, Mask, Pool, choose_pool, safe_items
from manyhands.representation.training_set import TrainingSet

ANCHORS = ("weighted", "mean", "sum")
ANCHOR_SPACES = ("embedding", "features")


@dataclass(frozen=True)
class EmbeddingOptions:
    """The parameters of NeuCrowd that the training of an embedding uses.

    Attributes
    ----------
    tuplets : Tuplets
        Tuplets of an epoch.
    confidence : LabelConfidence
        Confidence in the class of an item.
    safety : SafetyAwareSampling or None
        Safety-aware sampling; None draws from all items.
    anchor : {"weighted", "mean", "sum"} or None
        Robust anchor of a mini-batch; None gives each tuplet its own anchor.
    anchor_space : {"embedding", "features"}
        What the robust anchor is a mean of: embeddings, or features, whose mean is then embedded.
    loss : TupletLoss
        The loss.
    optimizer : {"adam", "adadelta"}
        The optimizer of both networks.
    warm_up : int
        Epochs before safe items and hard tuplets are selected.
    """

    tuplets: Tuplets
    confidence: LabelConfidence
    safety: SafetyAwareSampling | None
    anchor: str | None
    anchor_space: str
    loss: TupletLoss
    optimizer: str
    warm_up: int

    @classmethod
    def of(cls, method: Any) -> EmbeddingOptions:
        """Read the options from the parameters of a NeuCrowd.

        Parameters
        ----------
        method : NeuCrowd
            An estimator that has all these parameters.

        Returns
        -------
        EmbeddingOptions
        """
        return cls(**{option.name: getattr(method, option.name) for option in fields(cls)})


class MemberTraining:
    """Training of one embedding and its sampling network.

    During the warm-up the embedding and the sampling network are hardly trained: all items are in the pool, and the
    first candidates are used. Each part of the method can be left out without a change in what the others draw at
    random.

    Parameters
    ----------
    options : EmbeddingOptions
        Parameters of the method.
    training_set : TrainingSet
        Items and their classes.
    embedder : torch.nn.Module
        Network from features to the embedding.
    size : int
        Size of the embedding, and of the sampling network's vectors.
    new_sampler : callable (size) -> TupletSampler, or None
        Returns an untrained sampling network; None trains without one.

    Attributes
    ----------
    modules : dict of str to torch.nn.Module
        The networks.
    optimizers : dict of str to torch.optim.Optimizer
        Their optimizers.
    warmed_up : bool
        Whether safe items and hard tuplets are selected; `train_members` sets it after the warm-up.
    """

    def __init__(
        self,
        options: EmbeddingOptions,
        training_set: TrainingSet,
        embedder: nn.Module,
        size: int,
        new_sampler: Callable[[int], TupletSampler] | None,
    ) -> None:
        context = training_set.context
        self.options, self.training_set, self.context, self.embedder = options, training_set, context, embedder
        confidence = label_confidence(training_set, options.confidence.kind, shrink=options.confidence.shrink)
        self.confidence = confidence[training_set.items]
        self.weight = torch.from_numpy(self.confidence).float().to(context.device)
        self.optimizers = {"embedding": self._new_optimizer(embedder)}
        self.sampler = None
        if new_sampler is not None:
            with torch.random.fork_rng(devices=()):  # the embedding draws the same numbers with and without
                self.sampler = new_sampler(size).to(context.device)
            self.optimizers["sampler"] = self._new_optimizer(self.sampler)
        self.modules = {"network": embedder} | ({} if self.sampler is None else {"sampler": self.sampler})
        self.warmed_up = False
        self.safe_share = 1.0

    def __iter__(self) -> Iterator[Codes]:
        """Yield the candidates of each mini-batch of an epoch.

        Yields
        ------
        ndarray of int, shape (n_candidates, size of a tuplet)
            Indices of training items.
        """
        tuplets, batch_size, rng = self.options.tuplets, self.context.options.batch_size, self.context.rng
        pool = self._pool()
        anchor_classes = np.resize(rng.permutation(pool.anchor_codes()), tuplets.batches_per_epoch)
        for own in anchor_classes.tolist():
            yield pool.draw(own, batch_size * tuplets.hard_rate, tuplets.size - 2, rng)

    def step(self, candidates: Codes) -> dict[str, torch.Tensor]:
        """Take one step of the embedding and one of the sampling network, on the hard ones among the candidates.

        Parameters
        ----------
        candidates : ndarray of int, shape (n_candidates, size of a tuplet)
            Indices of training items.

        Returns
        -------
        dict of str to torch.Tensor
            "loss" of the embedding, "sampler" of the sampling network, "safe" the share of safe items; those that the
            method has.
        """
        batch_size = self.context.options.batch_size
        chosen = candidates[:batch_size]
        if self.warmed_up and self.sampler is not None:
            index, tuplets = _unique_items(candidates)
            chosen = candidates[self.sampler.hardest(self._x(index), tuplets, batch_size)]
        index, tuplets = _unique_items(chosen)
        x, weight = self._x(index), self.weight[chosen]
        embedding, anchor = self._embed(x, tuplets[:, 0], weight[:, 0])
        losses = self._losses(embedding[tuplets], weight, anchor)
        metrics = {"loss": losses.detach().mean()}
        descend(self.optimizers["embedding"], losses.mean())
        if self.sampler is not None:
            error = (self.sampler(x, tuplets) - losses.detach()).square().mean()
            metrics["sampler"] = descend(self.optimizers["sampler"], error)
        return metrics | ({} if self.options.safety is None else {"safe": torch.tensor(self.safe_share)})

    def _embed(self, x: torch.Tensor, anchors: Codes, weight: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Embeddings of rows and, if it is a mean of features, of the robust anchor of these rows and confidences."""
        if self.options.anchor is None or self.options.anchor_space == "embedding":
            return self.embedder(x), None
        mixed = robust_anchor(x[anchors].flatten(1), weight, self.options.anchor).view(1, *x.shape[1:])
        both = self.embedder(torch.cat([x, mixed]))  # together, since batch normalisation needs several rows
        return both[:-1], both[-1]

    def _losses(self, embedding: torch.Tensor, weight: torch.Tensor, anchor: torch.Tensor | None) -> torch.Tensor:
        """Loss of each tuplet, given embeddings (n_tuplets, size, embedding_size) and confidences of their items."""
        loss = self.options.loss
        if self.options.anchor is None:
            anchor = embedding[:, :1]
        elif anchor is None:
            anchor = robust_anchor(embedding[:, 0], weight[:, 0], self.options.anchor)
        similarity = loss.offset - safe_sqrt((embedding[:, 1:] - anchor).square().sum(2))
        return tuplet_losses(similarity, weight[:, 1:], loss.scale, inside=loss.weighting == "inside")

    def _pool(self) -> Pool:
        """Pool of this epoch: all items, or with safety-aware sampling the safe items and a share of the others."""
        code, safety = self.training_set.batches.code, self.options.safety
        if safety is None or not self.warmed_up:
            return Pool.of(code, np.ones(len(code), bool))
        safe = safe_in_embedding(safety, self.training_set, self.embedder, self.confidence)
        self.safe_share = float(safe.mean())
        chosen = choose_pool(code, safe, safety.unsafe_share, self.options.tuplets.size, self.context.rng)
        return Pool.of(code, chosen)

    def _x(self, index: Codes) -> torch.Tensor:
        return as_tensor(self.context.data.rows, self.training_set.items[index], self.context.device)

    def _new_optimizer(self, module: nn.Module) -> torch.optim.Optimizer:
        if self.options.optimizer == "adadelta":
            shared = self.context.options
            lr, decay = shared.learning_rate, shared.weight_decay
            return torch.optim.Adadelta(module.parameters(), lr=lr, weight_decay=decay, rho=0.95, eps=1e-8)
        return self.context.adam(module)


def train_members(members: Sequence[MemberTraining]) -> History:
    """Train all members in one loop, which stops at the best mean held-out log-likelihood of all of them.

    Epochs of the warm-up are not candidates for the best one: all parts of the method would be without effect there.

    Parameters
    ----------
    members : sequence of MemberTraining
        The members; the context of the first one trains.

    Returns
    -------
    list of dict
        The history: means over the members.
    """
    modules = {f"{name} {m}": module for m, member in enumerate(members) for name, module in member.modules.items()}
    optimizers = {f"{name} {m}": o for m, member in enumerate(members) for name, o in member.optimizers.items()}

    def step(batch: tuple[Codes, ...]) -> dict[str, torch.Tensor]:
        metrics = [member.step(candidates) for member, candidates in zip(members, batch)]
        return {name: torch.stack([each[name] for each in metrics]).mean() for name in metrics[0]}

    def evaluate() -> float:
        heldout = [member.context.heldout for member in members]
        sizes = [0 if labels is None else labels.n_annotations for labels in heldout]
        found = [member.training_set.heldout_log_likelihood(member.embedder) for member in members]
        return float(np.average(found, weights=sizes))

    context, batches, warm_up = members[0].context, _ParallelBatches(members), members[0].options.warm_up
    history: History = []
    if warm_up:
        history += context.train(step, modules, optimizers, batches=batches, max_epochs=warm_up, name="warm-up")
    for member in members:
        member.warmed_up = True
    return history + context.train(step, modules, optimizers, evaluate=evaluate, batches=batches)


class _ParallelBatches:
    """Mini-batches of all members, as tuples."""

    def __init__(self, members: Sequence[MemberTraining]) -> None:
        self.members = members

    def __iter__(self) -> Iterator[tuple[Codes, ...]]:
        return zip(*self.members, strict=True)


def safe_in_embedding(
    options: SafetyAwareSampling, training_set: TrainingSet, embedder: nn.Module, confidence: Array
) -> Mask:
    """Return which training items are safe in the present embedding.

    Parameters
    ----------
    options : SafetyAwareSampling
        Margin, rival and neighbours.
    training_set : TrainingSet
        Items and their classes.
    embedder : torch.nn.Module
        Network from features to the embedding.
    confidence : ndarray of shape (n,)
        Confidence in the classes of the training items.

    Returns
    -------
    ndarray of bool, shape (n,)
    """
    context = training_set.context
    embedding = outputs(embedder, context.data.rows, training_set.items).float().numpy()
    k = int(np.sqrt(context.options.batch_size)) if options.n_neighbors is None else options.n_neighbors
    code = training_set.batches.code
    return safe_items(embedding, code, confidence, k, margin=options.margin, rival=options.rival)


def safe_shares(
    options: SafetyAwareSampling, training_set: TrainingSet, embedders: Sequence[nn.Module], confidence: Array
) -> Array:
    """Return the share of the members in whose embedding each item is safe.

    Parameters
    ----------
    options : SafetyAwareSampling
        Margin, rival and neighbours.
    training_set : TrainingSet
        Items and their classes.
    embedders : sequence of torch.nn.Module
        Networks from features to the members' embeddings.
    confidence : ndarray of shape (n_items,)
        Confidence in the classes of all items.

    Returns
    -------
    ndarray of shape (n_items,)
        0 for items without label and gold.
    """
    items = training_set.items
    shares = np.zeros(training_set.context.data.annotations.n_items)
    for embedder in embedders:
        shares[items] += safe_in_embedding(options, training_set, embedder, confidence[items]) / len(embedders)
    return shares


def robust_anchor(embedding: torch.Tensor, weight: torch.Tensor, kind: str) -> torch.Tensor:
    """Return the robust anchor a of a mini-batch: the mean of its anchors e_j, weighted by the confidences A_j.

        a = sum_j A_j F(e_j) / sum_j A_j

    Parameters
    ----------
    embedding : torch.Tensor of shape (n, embedding_size)
        Embeddings of the anchors.
    weight : torch.Tensor of shape (n,)
        Confidence in their classes; where all are 0, equal weights are used.
    kind : {"weighted", "mean", "sum"}
        Divide by the sum of the weights, by n as in the code of the paper, or not at all as printed in the paper.

    Returns
    -------
    torch.Tensor of shape (embedding_size,)
    """
    weight = torch.where(weight.sum() > 0, weight, torch.ones_like(weight))
    total = (weight.unsqueeze(1) * embedding).sum(0)
    if kind == "sum":
        return total
    return total / (weight.sum() if kind == "weighted" else len(weight))


def _unique_items(tuplets: Codes) -> tuple[Codes, Codes]:
    """Return the items of tuplets, each once, and the tuplets as indices of these."""
    items, index = np.unique(tuplets, return_inverse=True)
    return items, index.reshape(tuplets.shape)
