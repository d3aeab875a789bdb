"""The embedding and the sampling network of NeuCrowd: Sections 3.2 to 3.4 of Hao, Ding and Liu (2021), in their order.

- Section 3.2: n-tuplets (Definition 1)
- Section 3.3.1: safety-aware sampling: label assurance (Definition 2), safe items (Definition 3), the pool of an epoch
- Section 3.3.2: robust anchor generation (Definition 4)
- Section 3.3.3: representation learning network
- Section 3.3.4: n-tuplet sampling network
- Section 3.4: joint learning paradigm. `train_members` has the epochs, `MemberTraining.step` the paper's Steps 1 to 3
- Section 4.3: options of the logistic regression and of the search of hyper-parameters

The groups of options of `NeuCrowd` stand at the part to which they belong; the estimator is in `neucrowd`. The paper
numbers no equation and no algorithm; its examples are items here. Numbers of sections and definitions are those of the
preprint, arXiv:2003.09660.

References
----------
Y. Hao, W. Ding and Z. Liu (2021), NeuCrowd: neural sampling network for representation learning with crowdsourced
labels, Knowledge and Information Systems.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from manyhands._core.arrays import Array, Mask
from manyhands._core.neighbours import Points, nearest, nearest_others
from manyhands.classifiers.network import NetworkOptions
from manyhands.em.decisions import TIE
from manyhands.estimator import OptionGroup
from manyhands.nn.backbones import as_tensor, build, outputs
from manyhands.nn.losses import safe_sqrt, tuplet_losses
from manyhands.nn.train import Epochs, History, descend, run_epoch
from manyhands.representation.base import TrainingSet, label_confidence
from manyhands.validation import Boolean, Constraint, NoneOr, Number, OneOf

if TYPE_CHECKING:
    from manyhands.representation.neucrowd import NeuCrowd


# ----------------------------------------------------------------------------------------------------
# Section 3.2: n-tuplets (Definition 1).
#
# An n-tuplet (e*, e+, e1-, ...) is an anchor, a positive of its class and n - 2 negatives of other classes; here an
# array of the indices of its items, in this order.

Codes = npt.NDArray[np.intp]


@dataclass(frozen=True, repr=False)
class Tuplets(OptionGroup):
    """Options of the tuplets that an epoch draws.

    Parameters
    ----------
    size : int, default=5
        Items in a tuplet: an anchor, a positive, and size - 2 negatives (n in the paper).
    hard_rate : int, default=4
        Number of candidates per tuplet of a mini-batch. The sampling network selects the hard ones; without it the
        first ones are used, and the candidates are drawn all the same, so that both variants see the same draws.
    batches_per_epoch : int, default=5
        Steps in an epoch, each with anchors of one class; with many classes an epoch may not reach all of them.
    """

    size: int = 5  # Section 4.3
    hard_rate: int = 4  # ours; the paper and its code have no value
    batches_per_epoch: int = 5  # ours; 234 in the authors' code, but the best embedding is reached in a hundred steps

    _constraints: ClassVar[dict[str, Constraint]] = {
        "size": Number(whole=True, least=3),
        "hard_rate": Number(whole=True, least=1),
        "batches_per_epoch": Number(whole=True, least=1),
    }


class Pool(NamedTuple):
    """Items to draw tuplets from, sorted by class."""

    items: Codes  # indices of the items
    start: Codes  # where each class starts in `items`
    size: Codes  # number of items of each class

    @classmethod
    def of(cls, code: Codes, mask: Mask) -> Pool:
        """Return the pool of the items under a mask."""
        items = np.flatnonzero(mask)
        size = np.bincount(code[items], minlength=code.max(initial=-1) + 1)
        return cls(items[np.argsort(code[items], kind="stable")], np.cumsum(size) - size, size)

    def anchor_codes(self) -> Codes:
        """Return the classes with at least two items; if there is none, those with one, which is its own positive."""
        pairs = np.flatnonzero(self.size > 1)
        return pairs if len(pairs) else np.flatnonzero(self.size)

    def draw(self, own: int, n_tuplets: int, n_negatives: int, rng: np.random.Generator) -> Codes:
        """Draw tuplets with anchors of one class."""
        size = int(self.size[own])
        anchor = rng.integers(size, size=n_tuplets)
        positive = (anchor + rng.integers(min(1, size - 1), size, size=n_tuplets)) % size
        others = np.flatnonzero(self.size)
        others = others[others != own]
        pair = self.start[own] + np.column_stack([anchor, positive])
        if len(others) == 0:
            return self.items[pair]
        other = others[rng.integers(len(others), size=(n_tuplets, n_negatives))]
        negative = self.start[other] + (rng.random((n_tuplets, n_negatives)) * self.size[other]).astype(np.intp)
        return self.items[np.hstack([pair, negative])]


# ----------------------------------------------------------------------------------------------------
# Section 3.3.1: safety-aware sampling.
#
# Definition 2, label assurance: A(e_i) = |1 - 2/d sum_j y_ij|, the confidence in the class of an item; for more than
# two classes, with gold and other formulas it is `base.label_confidence`.
#
# Definition 3, safe item:
#
#     e_i is safe  <=>  sum of A(e_p) over N_i+  >  sum of A(e_q) over N_i-  +  delta
#
# The k = sqrt(batch size) nearest neighbours of e_i in the present embedding are read as one set, of which N_i+ has the
# class of e_i and N_i- another one, as in the authors' code. "The k nearest positive neighbours" could also be k of
# either sort (`neighbourhood="each"`); the sums then do not say which sort is nearer. "Higher probabilities" of safe
# items are those of the authors' code: tuplets are drawn from all safe items and from a fiftieth of the others.

RIVALS = ("all", "strongest")
NEIGHBOURHOODS = ("one", "each")
_BLOCK = 4096  # items processed at once, which bounds memory where classes are many


@dataclass(frozen=True, repr=False)
class LabelConfidence(OptionGroup):
    """Options of the confidence A in the class of an item, computed from its labels.

    Parameters
    ----------
    kind : {"assurance", "mle", "bayesian", "posterior"}, default="assurance"
        The formula. Of d labels v are the item's class, and u its most frequent other class: "assurance" (v - u) / d,
        as published; "mle" v / d; "bayesian" (v + pi d) / (2 d), pi the share of the class; "posterior" the margin in
        the aggregator's posterior.
    shrink : bool, default=False
        Multiply by d / (d + 1), so that a single label is less certain than several that agree.
    """

    kind: str = "assurance"
    shrink: bool = False

    _constraints: ClassVar[dict[str, Constraint]] = {
        "kind": OneOf(("assurance", "mle", "bayesian", "posterior")),
        "shrink": Boolean(),
    }


@dataclass(frozen=True, repr=False)
class SafetyAwareSampling(OptionGroup):
    """Options of safety-aware sampling: tuplets are drawn from safe items and few others.

    An item is safe if, among its nearest neighbours in the embedding, the confidence of those of its class exceeds
    that of the others by more than a margin.

    Parameters
    ----------
    margin : float, default=0.0
        The margin (delta in the paper).
    rival : {"all", "strongest"}, default="all"
        What the class of an item is compared with: all other classes together, or the strongest of them.
    n_neighbors : int or None, default=None
        Number of neighbours; None is the square root of `batch_size`, rounded down.
    unsafe_share : float, default=0.02
        Share of the unsafe items from which tuplets are drawn too.
    neighbourhood : {"one", "each"}, default="one"
        Reading of the k nearest neighbours: "one" set, which is split by class; or k "each", of the class of the item
        and of other classes. The text allows both, the authors' code has the first.
    """

    margin: float = 0.0  # as in the authors' code
    rival: str = "all"
    n_neighbors: int | None = None
    unsafe_share: float = 0.02  # as in the authors' code
    neighbourhood: str = "one"  # as in the authors' code

    _constraints: ClassVar[dict[str, Constraint]] = {
        "margin": Number(least=0),
        "rival": OneOf(("all", "strongest")),
        "n_neighbors": NoneOr(Number(whole=True, least=1)),
        "unsafe_share": Number(least=0, most=1),
        "neighbourhood": OneOf(NEIGHBOURHOODS),
    }


def safe_items(
    embedding: Points,
    code: Codes,
    confidence: Array,
    k: int,
    *,
    margin: float = 0.0,
    rival: str = "all",
    neighbourhood: str = "one",
) -> Mask:
    """Definition 3: return which items are safe, since their neighbours support their class.

    Shapes: confidence (n,).
    """
    each = neighbourhood == "each"
    neighbours = positive_and_negative(embedding, code, k) if each else nearest_others(embedding, k)
    starts = range(0, len(code), _BLOCK)
    parts = [_leads(code[i : i + _BLOCK], neighbours[i : i + _BLOCK], code, confidence, rival) for i in starts]
    return np.concatenate([np.zeros(0), *parts]) > margin + TIE  # a tie is not safe


def positive_and_negative(embedding: Points, code: Codes, k: int) -> npt.NDArray[np.intp]:
    """Return the k nearest other items of the own class, then the k nearest of other classes; fewer where there are.

    Examples
    --------
    >>> points = np.array([[0.0], [1.0], [2.0], [5.0], [6.0]], np.float32)
    >>> positive_and_negative(points, np.array([0, 0, 0, 1, 1]), 1).tolist()
    [[1, 3], [0, 3], [1, 3], [4, 2], [3, 2]]

    Shapes: returns (n, 2 * k); with a class of k items or fewer, as many of each sort as all items have.
    """
    n_of_class = np.bincount(code)
    sizes = n_of_class[n_of_class > 0]
    k = min(k, int(sizes.min()) - 1, len(code) - int(sizes.max()))
    found = np.zeros((len(code), 2 * max(k, 0)), np.intp)
    for c in np.unique(code) if k > 0 else []:
        own, others = np.flatnonzero(code == c), np.flatnonzero(code != c)
        found[own, :k] = own[nearest_others(embedding[own], k)]
        found[own, k:] = others[nearest(embedding[others], embedding[own], k)]
    return found


def _leads(own: Codes, neighbours: Codes, code: Codes, confidence: Array, rival: str) -> Array:
    """Lead of the own class over its rivals in the summed confidence of the neighbours, of shape (n,)."""
    support = np.zeros((len(own), int(code.max()) + 1))
    row = np.arange(len(own))
    np.add.at(support, (row[:, None], code[neighbours]), confidence[neighbours])
    for_own = support[row, own]
    support[row, own] = 0.0
    return np.asarray(for_own - (support.sum(axis=1) if rival == "all" else support.max(axis=1)))


def safe_in_embedding(
    options: SafetyAwareSampling, training_set: TrainingSet, embedder: nn.Module, confidence: Array
) -> Mask:
    """Return which training items are safe in the present embedding.

    Shapes: confidence (n,).
    """
    context = training_set.context
    embedding = outputs(embedder, context.data.rows, training_set.items).float().numpy()
    k = int(np.sqrt(context.options.batch_size)) if options.n_neighbors is None else options.n_neighbors
    code = training_set.batches.code
    reading = options.neighbourhood
    return safe_items(embedding, code, confidence, k, margin=options.margin, rival=options.rival, neighbourhood=reading)


def safe_shares(
    options: SafetyAwareSampling, training_set: TrainingSet, embedders: Sequence[nn.Module], confidence: Array
) -> Array:
    """Return the share of the members in whose embedding each item is safe.

    Shapes: confidence (n_items,); returns (n_items,).
    """
    items = training_set.items
    shares = np.zeros(training_set.context.data.annotations.n_items)
    for embedder in embedders:
        shares[items] += safe_in_embedding(options, training_set, embedder, confidence[items]) / len(embedders)
    return shares


def choose_pool(code: Codes, safe: Mask, unsafe_share: float, least: int, rng: np.random.Generator) -> Mask:
    """Return the pool of items from which tuplets are drawn: the safe items and a random share of the others.

    Examples
    --------
    >>> choose_pool(np.array([0, 0, 0, 1, 1]), np.array([1, 1, 0, 0, 0], bool), 0.0, 2, np.random.default_rng(0))
    array([ True,  True, False,  True,  True])
    """
    unsafe = np.flatnonzero(~safe)
    pool = safe.copy()
    pool[rng.permutation(unsafe)[: int(np.ceil(unsafe_share * len(unsafe)))]] = True
    too_few = np.bincount(code[pool], minlength=code.max(initial=0) + 1) < least
    return np.asarray(pool | too_few[code])


# ----------------------------------------------------------------------------------------------------
# Section 3.3.2: robust anchor generation (Definition 4).
#
#     e_r* = sum_j A(e_cj) e*_cj     over the anchors of the mini-batch, in place of each of them
#
# As printed, the sum is of features and not normalised, so that it is far from all items; `anchor` and `anchor_space`
# of `NeuCrowd` choose what is summed and what the sum is divided by: "sum" does not divide it, as printed; "weighted"
# divides it by sum_j A(e_cj) (ours), and "mean" by the number of anchors, as in the authors' code.

ANCHORS = ("weighted", "mean", "sum")
ANCHOR_SPACES = ("embedding", "features")


def robust_anchor(embedding: torch.Tensor, weight: torch.Tensor, kind: str) -> torch.Tensor:
    """Definition 4: return the robust anchor of a mini-batch, the sum of its anchors weighted by confidence, or a mean.

    Shapes: embedding (n, embedding_size); weight (n,); returns (embedding_size,).
    """
    weight = torch.where(weight.sum() > 0, weight, torch.ones_like(weight))
    total = (weight.unsqueeze(1) * embedding).sum(0)
    if kind == "sum":
        return total
    return total / (weight.sum() if kind == "weighted" else len(weight))


# ----------------------------------------------------------------------------------------------------
# Section 3.3.3: representation learning network.
#
#     p(e+ | e_r*) = exp(eta A(e+) R(F(e+), F(e_r*))) / sum_j exp(eta A(e_j) R(F(e_j), F(e_r*)))
#     R(u, v) = C - |u - v|
#
# The print sums over all e_j of T, the anchor included; here, as in the authors' code, over the positive and the
# negatives only. The loss of a tuplet is -log p (`nn.losses.tuplet_losses`). "2 fully-connected layers" (Section 4.3);
# the paper names no activation.

ACTIVATIONS: dict[str, type[nn.Module]] = {"tanh": nn.Tanh, "sigmoid": nn.Sigmoid, "relu": nn.ReLU}


@dataclass(frozen=True, repr=False)
class TupletLoss(OptionGroup):
    """Options of the loss `-log softmax_j( scale A_j (offset - |F(e_j) - anchor|) )[positive]`.

    Parameters
    ----------
    scale : float, default=2.0
        eta in the paper.
    offset : float, default=1.0
        C in the paper's similarity C - distance.
    weighting : {"inside", "outside"}, default="inside"
        Position of the confidence A: exp(scale A R) as in the paper, or A exp(scale R) as in its code.
    """

    scale: float = 2.0  # as in the authors' code, like the offset; the paper prints neither
    offset: float = 1.0
    weighting: str = "inside"

    _constraints: ClassVar[dict[str, Constraint]] = {
        "scale": Number(above=0),
        "offset": Number(),
        "weighting": OneOf(("inside", "outside")),
    }


def new_network(
    options: NetworkOptions, activation: str, row_shape: tuple[int, ...], size: int, *, dropout: float
) -> nn.Module:
    """Return a new network from features to vectors."""
    return build(
        options.backbone,
        row_shape,
        size,
        hidden=options.hidden,
        dropout=dropout,
        batch_norm=options.batch_norm,
        activation=ACTIVATIONS[activation],
    )


def new_embedder(options: NetworkOptions, activation: str, row_shape: tuple[int, ...], size: int) -> nn.Module:
    """Return a new network from features to an embedding."""
    network = new_network(options, activation, row_shape, size, dropout=options.dropout)
    if activation == "relu":
        return network
    dropout = [nn.Dropout(options.dropout)] if options.dropout else []
    return nn.Sequential(network, ACTIVATIONS[activation](), *dropout)


# ----------------------------------------------------------------------------------------------------
# Section 3.3.4: n-tuplet sampling network, which predicts the losses of tuplets, so that hard ones are selected.
#
#     predicted loss(T) = v . relu( sum_p W_p S(e_p) + b ) + c
#
# S is one network for all items, followed by a relu, and p the position in the tuplet. This is a perceptron on the
# concatenation of S(e_1), S(e_2), ..., whose first layer is computed once per item rather than once per tuplet.


class TupletSampler(nn.Module):
    """Sampling network."""

    def __init__(self, network: nn.Module, size: int, n_positions: int) -> None:
        super().__init__()
        self.network, self.size, self.n_positions = network, size, n_positions
        self.parts = nn.Linear(size, n_positions * size)
        self.head = nn.Linear(size, 1)

    def forward(self, x: torch.Tensor, tuplets: Codes) -> torch.Tensor:
        """Return the predicted loss of each tuplet.

        Shapes: x (n_rows, ...); returns (n_tuplets,).
        """
        part = self.parts(torch.relu(self.network(x))).view(len(x), self.n_positions, self.size)
        total = part[tuplets, np.arange(tuplets.shape[1])].sum(1)
        loss: torch.Tensor = self.head(torch.relu(total)).squeeze(1)
        return loss

    @torch.no_grad()
    def hardest(self, x: torch.Tensor, tuplets: Codes, n_tuplets: int) -> Codes:
        """Return the tuplets with the largest predicted losses.

        Shapes: x (n_rows, ...).
        """
        best = self(x, tuplets).topk(min(n_tuplets, len(tuplets))).indices
        return np.asarray(best.cpu().numpy())


# ----------------------------------------------------------------------------------------------------
# Section 3.4: joint learning paradigm.
#
# An epoch has a pool of items, a few mini-batches of candidates from it (the set T), each with anchors of one class,
# and for each mini-batch the paper's Steps 1 to 3.


class MemberTraining:
    """Training of one embedding and its sampling network."""

    # During the warm-up, when embedding and sampling network are hardly trained, all items are in the pool, and the
    # first candidates are used. Each part of the method can be left out without a change in what the others draw at
    # random.

    def __init__(self, method: NeuCrowd, training_set: TrainingSet, embedder: nn.Module, size: int) -> None:
        context = training_set.context
        self.method, self.training_set, self.context, self.embedder = method, training_set, context, embedder
        confidence = label_confidence(training_set, method.confidence.kind, shrink=method.confidence.shrink)
        self.confidence = confidence[training_set.items]
        self.weight = torch.from_numpy(self.confidence).float().to(context.device)
        self.optimizers = {"embedding": self._new_optimizer(embedder)}
        self.sampler = None
        if method.sampler:
            with torch.random.fork_rng(devices=()):  # the embedding draws the same numbers with and without
                # dropout=0 is ours: Section 4.3 has 0.2 in both networks; with it the scores that rank tuplets would be
                # random.
                network = new_network(context.options, method.activation, context.data.rows.shape, size, dropout=0.0)
                self.sampler = TupletSampler(network, size, method.tuplets.size).to(context.device)
            self.optimizers["sampler"] = self._new_optimizer(self.sampler)
        self.modules = {"network": embedder} | ({} if self.sampler is None else {"sampler": self.sampler})
        self.warmed_up = False
        self.safe_share = 1.0

    def candidates(self) -> Iterator[Codes]:
        """Yield T, the candidates of each mini-batch of an epoch: tuplets of one anchor class from the pool."""
        tuplets, batch_size, rng = self.method.tuplets, self.context.options.batch_size, self.context.rng
        pool = self._pool()
        # A reading: one anchor class per mini-batch, in turn, so that one robust anchor can stand for all anchors. The
        # paper does not say; in the authors' code anchors are always of the positive class.
        anchor_classes = np.resize(rng.permutation(pool.anchor_codes()), tuplets.batches_per_epoch)
        for own in anchor_classes.tolist():
            yield pool.draw(own, batch_size * tuplets.hard_rate, tuplets.size - 2, rng)

    def step(self, candidates: Codes) -> dict[str, torch.Tensor]:
        """Train both networks on one mini-batch: Steps 1 to 3 of Section 3.4."""
        # Step 1: the sampling network scores every tuplet of T; those with higher scores are selected into H.
        batch_size = self.context.options.batch_size
        hard = candidates[:batch_size]
        if self.warmed_up and self.sampler is not None:
            index, tuplets = _unique_items(candidates)
            hard = candidates[self.sampler.hardest(self._x(index), tuplets, batch_size)]
        # Step 2: the representation network uses H for its optimisation, and passes on the training losses L. The
        # robust anchor (Definition 4) is that of H, and Step 1 scores tuplets with their own anchors, as in the
        # authors' code; the print already has it in T.
        index, tuplets = _unique_items(hard)
        x, weight = self._x(index), self.weight[hard]
        embedding, anchor = self._embed(x, tuplets[:, 0], weight[:, 0])
        losses = self._losses(embedding[tuplets], weight, anchor)
        metrics = {"loss": losses.detach().mean()}
        descend(self.optimizers["embedding"], losses.mean())
        # Step 3: the sampling network fine-tunes its parameters by the square loss toward L (Section 3.3.4).
        if self.sampler is not None:
            error = (self.sampler(x, tuplets) - losses.detach()).square().mean()
            metrics["sampler"] = descend(self.optimizers["sampler"], error)
        return metrics | ({} if self.method.safety is None else {"safe": torch.tensor(self.safe_share)})

    def _pool(self) -> Pool:
        """Section 3.3.1: the pool of this epoch, all items or the safe ones and a share of the others."""
        code, safety = self.training_set.batches.code, self.method.safety
        if safety is None or not self.warmed_up:
            return Pool.of(code, np.ones(len(code), bool))
        safe = safe_in_embedding(safety, self.training_set, self.embedder, self.confidence)
        self.safe_share = float(safe.mean())
        mask = choose_pool(code, safe, safety.unsafe_share, self.method.tuplets.size, self.context.rng)
        return Pool.of(code, mask)

    def _embed(self, x: torch.Tensor, anchors: Codes, weight: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Embeddings of rows and, if it is a mean of features, of the robust anchor of these rows and confidences."""
        if self.method.anchor is None or self.method.anchor_space == "embedding":
            return self.embedder(x), None
        anchor = robust_anchor(x[anchors].flatten(1), weight, self.method.anchor).view(1, *x.shape[1:])
        both = self.embedder(torch.cat([x, anchor]))  # together, since batch normalisation needs several rows
        return both[:-1], both[-1]

    def _losses(self, embedding: torch.Tensor, weight: torch.Tensor, anchor: torch.Tensor | None) -> torch.Tensor:
        """Section 3.3.3: loss of each tuplet, from embeddings (n_tuplets, size, embedding_size) and confidences."""
        loss = self.method.loss
        if self.method.anchor is None:
            anchor = embedding[:, :1]
        elif anchor is None:
            anchor = robust_anchor(embedding[:, 0], weight[:, 0], self.method.anchor)
        similarity = loss.offset - safe_sqrt((embedding[:, 1:] - anchor).square().sum(2))
        return tuplet_losses(similarity, weight[:, 1:], loss.scale, inside=loss.weighting == "inside")

    def _x(self, index: Codes) -> torch.Tensor:
        return as_tensor(self.context.data.rows, self.training_set.items[index], self.context.device)

    def _new_optimizer(self, module: nn.Module) -> torch.optim.Optimizer:
        if self.method.optimizer == "adadelta":
            shared = self.context.options
            lr, decay = shared.learning_rate, shared.weight_decay
            # rho and eps are the defaults of TensorFlow 1.8, which the paper used (Section 4.3)
            return torch.optim.Adadelta(module.parameters(), lr=lr, weight_decay=decay, rho=0.95, eps=1e-8)
        return self.context.adam(module)


def train_members(members: Sequence[MemberTraining]) -> History:
    """Section 3.4: train all members in one loop, which stops at the best mean of their held-out log-likelihoods."""
    # Epochs of the warm-up are not candidates for the best one: all parts of the method would be without effect there.
    modules = {f"{name} {m}": module for m, member in enumerate(members) for name, module in member.modules.items()}
    optimizers = {f"{name} {m}": o for m, member in enumerate(members) for name, o in member.optimizers.items()}

    def step(candidates: tuple[Codes, ...]) -> dict[str, torch.Tensor]:
        metrics = [member.step(tuplets) for member, tuplets in zip(members, candidates)]
        return {name: torch.stack([each[name] for each in metrics]).mean() for name in metrics[0]}

    def evaluate() -> float:
        heldout = [member.context.heldout for member in members]
        sizes = [0 if labels is None else labels.n_annotations for labels in heldout]
        scores = [member.training_set.heldout_log_likelihood(member.embedder) for member in members]
        return float(np.average(scores, weights=sizes))

    def run(epochs: Epochs) -> History:
        for epoch in epochs:
            batches = zip(*(member.candidates() for member in members), strict=True)
            epochs.record(run_epoch(step, batches, epoch))
        return epochs.history

    context, warm_up = members[0].context, members[0].method.warm_up
    history: History = []
    if warm_up:
        history += run(context.epochs(modules, optimizers, max_epochs=warm_up, name="warm-up"))
    for member in members:
        member.warmed_up = True
    return history + run(context.epochs(modules, optimizers, evaluate=evaluate))


def _unique_items(tuplets: Codes) -> tuple[Codes, Codes]:
    """Return the items of tuplets, each once, and the tuplets as indices of these."""
    items, index = np.unique(tuplets, return_inverse=True)
    return items, index.reshape(tuplets.shape)


# ----------------------------------------------------------------------------------------------------
# Section 4.3: options of the downstream logistic regression, and of the search of hyper-parameters, which are in
# `neucrowd`.


@dataclass(frozen=True, repr=False)
class LogisticHead(OptionGroup):
    """Options of the logistic regression on the embedding.

    Parameters
    ----------
    soft_targets : bool, default=False
        Whether the regression learns the aggregator's posterior rather than its most probable class.
    skip : bool, default=False
        Skip connection: whether the regression also uses the features, scaled to the variance of the embedding. They
        are then held as a dense array of items x features for every member, sparse features too.
    grid : {"decades", "fine"}, default="decades"
        Values of C to choose from: 1e-4, 1e-3, ..., 1e4 as in the paper, or 0.1, 0.3, 1, ..., 300.
    """

    soft_targets: bool = False
    skip: bool = False
    grid: str = "decades"

    _constraints: ClassVar[dict[str, Constraint]] = {
        "soft_targets": Boolean(),
        "skip": Boolean(),
        "grid": OneOf(("decades", "fine")),
    }


@dataclass(frozen=True, repr=False)
class HeldoutSearch(OptionGroup):
    """Options of the search of settings: each of four is trained, and held-out items decide.

    The settings are: the parameters as given; another learning rate; another `loss.scale` (eta); another embedding
    size together with another weight decay, since a larger embedding needs more of it. Each option is the factor by
    which a parameter is multiplied.

    In the paper the sizes of layers and the L2 penalty are found by grid search with cross-validation, and the learning
    rate is set to 0.001 (Section 4.3); eta and C of the similarity are set on a held-out data set (Section 3.3.3). It
    prints no grid. Here C, which is `loss.offset`, is not searched, and the learning rate is (ours). With the defaults
    of `NeuCrowd` the other factors give values that the authors' code has: eta 2 and 5, 32 and 64 dimensions, and an L2
    penalty of 0.008 and 0.02 (2 and 5 for the sum over 256 tuplets).

    Parameters
    ----------
    learning_rate : float, default=2.0
        Factor of the learning rate, in the second setting.
    scale : float, default=2.5
        Factor of `loss.scale`, in the third setting.
    embedding_size : int, default=2
        Factor of the embedding size, in the fourth setting.
    weight_decay : float, default=2.5
        Factor of the weight decay, in the fourth setting.
    """

    learning_rate: float = 2.0  # ours
    scale: float = 2.5  # eta 2 and 5, as in the authors' code
    embedding_size: int = 2  # 32 and 64 dimensions, as in the authors' code
    weight_decay: float = 2.5  # 2 and 5 for the sum over a mini-batch, as in the authors' code

    _constraints: ClassVar[dict[str, Constraint]] = {
        "learning_rate": Number(above=0),
        "scale": Number(above=0),
        "embedding_size": Number(whole=True, least=1),
        "weight_decay": Number(least=0),
    }

    def settings(
        self, learning_rate: float, scale: float, embedding_size: int, weight_decay: float
    ) -> list[dict[str, float]]:
        """Return the four settings, as changes of parameters.

        Parameters
        ----------
        learning_rate : float
            That of the method, which the second setting multiplies.
        scale : float
            That of the loss; the third setting has another.
        embedding_size : int
            That of the method.
        weight_decay : float
            That of the method.

        Returns
        -------
        list of dict

        Examples
        --------
        >>> HeldoutSearch().settings(0.001, 2.0, 32, 0.008)[1:3]
        [{'learning_rate': 0.002}, {'loss__scale': 5.0}]
        """
        return [
            {},
            {"learning_rate": self.learning_rate * learning_rate},
            {"loss__scale": self.scale * scale},
            {
                "embedding_size": self.embedding_size * embedding_size,
                "weight_decay": self.weight_decay * weight_decay,
            },
        ]
