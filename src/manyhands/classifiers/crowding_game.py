"""The networks of CrowdInG and the game between them: Sections 3.2 and 3.3 of Chu and Wang (2021), in their order.

- Section 3.2: pairs of an item x_n and a worker e_r
- Section 3.2.1, generative module: the generator, Eq. (1)
- Section 3.2.2, discriminative module: the discriminator, Eq. (2); label correlation; the auxiliary network, Eq. (3)
- Section 3.3.1, entropy-based annotation selection
- Sections 3.3.2 and 3.3.3: `Game`. `Game.step` trains all networks on one mini-batch, by Eqs. (4) to (6)
- Annotations for others: `impute_annotations`, as Section 4.4 needs them

The options of each part (`GeneratorTraining`, `DiscriminatorTraining`, `Adversarial`) stand at the part: the
hyper-parameters of Section 4.1, and switches for what the print and the authors' code do differently. The estimator,
whose `_learn` has the order of all trainings (Section 3.3.3), is in `crowding`. The paper numbers no algorithm; the
caption of Figure 1 has the steps, which are those of `Game.step`. Its instances, annotators and annotations are items,
workers and labels here.

References
----------
Z. Chu and H. Wang (2021), Improve learning from crowds via generative augmentation, KDD.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import nn
from torch.nn import functional as F

from manyhands._core.system import check_memory
from manyhands.annotations import Annotations
from manyhands.classifiers.network import TrainingContext
from manyhands.classifiers.self_crowd import HeldoutMetric
from manyhands.estimator import OptionGroup
from manyhands.features import Rows
from manyhands.nn.backbones import as_tensor
from manyhands.nn.batches import AnnotationBatches, Batch
from manyhands.nn.losses import bandit_loss, entropy
from manyhands.nn.train import History, descend, run_epoch
from manyhands.validation import Boolean, Constraint, NoneOr, Number, OneOf

# ----------------------------------------------------------------------------------------------------
# The workers who have a label, numbered consecutively; of the others nothing can be learned or imputed.


# Log-probability of a class that gold excludes: e^-20 is 2e-9. It is finite, since an entropy multiplies it by the
# probability, and 0 times infinity is not a number.
_LOG_ZERO = -20.0


@dataclass(frozen=True, eq=False)
class ActiveWorkers:
    """The workers with a training label, and their held-out labels."""

    context: TrainingContext  # the context of the fit
    active: npt.NDArray[np.intp]  # (n_active,); codes of the workers with a training label, ascending
    place: torch.Tensor  # (n_workers,); number of each worker among the active ones; -1 for all others
    heldout: Annotations  # held-out labels of active workers

    @classmethod
    def of(cls, context: TrainingContext) -> ActiveWorkers:
        """Return the active workers of a context."""
        active = np.unique(context.annotations.worker).astype(np.intp)
        place = torch.full((context.n_workers,), -1)
        place[torch.from_numpy(active)] = torch.arange(len(active))
        votes = context.annotations.keep(np.zeros(0, np.intp)) if context.heldout is None else context.heldout
        return cls(context, active, place.to(context.device), votes.keep(np.isin(votes.worker, active)))

    @property
    def active_context(self) -> TrainingContext:
        """The context, with the held-out labels of active workers only."""
        return replace(self.context, heldout=self.heldout if self.heldout.n_annotations else None)

    def numbered(self, batch: Batch) -> Batch:
        """Return the mini-batch with workers numbered among the active ones."""
        return batch._replace(worker=self.place[batch.worker])

    def batches(self, votes: Annotations, size: int, items: npt.NDArray[np.intp] | None = None) -> Iterator[Batch]:
        """Return mini-batches of items in order, with these labels and numbered workers."""
        items = np.arange(votes.n_items) if items is None else items
        return map(self.numbered, AnnotationBatches(votes, size, items=items, device=self.context.device))


def log_truth(network: nn.Module, x: torch.Tensor, gold: torch.Tensor | None) -> torch.Tensor:
    """Return log p(k | x) of the items, with the known class of gold items.

    Shapes: x (n_rows, ...); gold (n_rows,); returns (n_rows, n_classes).
    """
    log_z: torch.Tensor = network(x).log_softmax(1)
    if gold is None:
        return log_z
    certain = torch.full_like(log_z, _LOG_ZERO).scatter(1, gold.clamp(min=0).unsqueeze(1), 0.0)
    return torch.where((gold >= 0).unsqueeze(1), certain, log_z)


# ----------------------------------------------------------------------------------------------------
# Section 3.2: pairs (x_n, e_r) of an item and a worker, most of them without a label.
#
# Without features of the workers, "a one-hot vector" represents a worker, and a linear layer of it is a free embedding.
# All pairs of a mini-batch are taken by default; with `pairs_per_label` their number is proportional to the number of
# its labels.


class Pairs(NamedTuple):
    """Pairs of a row of a mini-batch and a worker; those of one worker are adjacent."""

    row: torch.Tensor  # (n_pairs,); rows of the mini-batch
    worker: torch.Tensor  # (n_pairs,)

    def select(self, which: torch.Tensor) -> Pairs:
        """Select pairs.

        Shapes: which (n_pairs,).
        """
        return Pairs(self.row[which], self.worker[which])


def draw_pairs(
    batch: Batch, n_workers: int, per_label: int | None, rng: np.random.Generator
) -> tuple[Pairs, torch.Tensor]:
    """Sample distinct pairs of a mini-batch's rows with workers.

    Shapes: returns has_label (n_pairs,).
    """
    n_rows = len(batch.item)
    label_cell = batch.worker.cpu().numpy() * n_rows + batch.row.cpu().numpy()
    if per_label is None:
        worker, size = np.arange(n_workers), np.full(n_workers, n_rows)
    else:
        worker, n_labels = np.unique(batch.worker.cpu().numpy(), return_counts=True)
        size = np.minimum(n_rows, (per_label + 1) * n_labels)
    # Every worker gets a contiguous part of one shuffled circle of rows: no row comes twice, and no sort is needed.
    circle, first = rng.permutation(n_rows), rng.integers(0, max(n_rows, 1), len(worker))
    step = np.arange(size.sum()) - np.repeat(np.cumsum(size) - size, size)
    row = circle[(np.repeat(first, size) + step) % max(n_rows, 1)]
    pair_worker = np.repeat(worker, size)
    has_label = np.isin(pair_worker * n_rows + row, label_cell)
    device = batch.row.device
    return Pairs(*(torch.from_numpy(c).to(device) for c in (row, pair_worker))), torch.from_numpy(has_label).to(device)


class WorkerEmbedding(nn.Module):
    """An embedding of every worker: free parameters, or a linear function of the workers' features.

    Shapes: features (n_workers, n_worker_features); codes (n_workers, size).
    """

    projection: nn.Linear | None
    free: nn.Parameter | None

    def __init__(
        self, n_workers: int, size: int, features: torch.Tensor | None = None, codes: torch.Tensor | None = None
    ) -> None:
        super().__init__()
        self.features: torch.Tensor | None
        self.register_buffer("features", features, persistent=False)
        self.projection = None if features is None else nn.Linear(features.shape[1], size)
        if codes is None and features is None:
            codes = torch.randn(n_workers, size) / size**0.5  # ours: embeddings of length about 1
        self.free = None if codes is None else nn.Parameter(codes)

    def forward(self) -> torch.Tensor:
        """(n_workers, size) the embeddings."""
        if self.free is not None:
            return self.free
        assert self.projection is not None
        codes: torch.Tensor = self.projection(self.features)
        return codes


def standardised_features(crowd: ActiveWorkers) -> torch.Tensor | None:
    """Return the worker features, each column with mean 0 and standard deviation 1 over the active workers.

    Shapes: returns (n_workers, n_worker_features).
    """
    features = crowd.context.data.worker_features
    if features is None:
        return None
    active = features[crowd.active]
    spread = active.std(axis=0)
    return torch.from_numpy((features - active.mean(axis=0)) / np.where(spread > 0, spread, 1.0)).float()


# ----------------------------------------------------------------------------------------------------
# Section 3.2.1, generative module: the classifier's z = P(z_n | x_n), and the generator.
#
#     G(label | x, w, noise, z) ~ exp g(label, x, w, noise, z),     noise ~ N(0, I)                      Eq. (1)
#
# The first layer of g reads an item's part, a worker's part, z and the noise. Each part is computed once per item or
# worker and then gathered by the pairs, so that a pair costs one sum of vectors and one small layer. The noise has as
# many dimensions as there are classes, as in the authors' code.

_EMBEDDING_SIZE = 20  # of a worker and of an item in the generator, as in the authors' code
# Section 4.1: "two-layer neural networks with 64 and 128 hidden units", read as in the authors' code: 128 in g and h,
# 64 in the generator's encoder of items.
_HIDDEN, _ITEM_HIDDEN = 128, 64
_DROPOUT = 0.5  # of the classifier in Section 4.1, and of the encoders of items and workers in the authors' code
NOISE_DRAWS = 8  # draws of the noise over which a label's probability is averaged (ours): a third of one draw's spread


@dataclass(frozen=True, repr=False)
class GeneratorTraining(OptionGroup):
    """The generator and its pre-training on the observed labels.

    Parameters
    ----------
    sees_items : bool, default=True
        Whether the generator depends on x (False: CrowdInG_U in the paper).
    sees_workers : bool, default=True
        Whether the generator depends on the worker (False: CrowdInG_I).
    epochs : int, default=50
        Maximal number of epochs of the pre-training.
    learning_rate : float, default=0.003
        Step size of the generator's Adam.
    """

    sees_items: bool = True
    sees_workers: bool = True
    epochs: int = 50  # as in the authors' code
    learning_rate: float = 3e-3  # outside the paper's grid: ten times its largest value, 3e-4, as in the code

    _constraints: ClassVar[dict[str, Constraint]] = {
        "sees_items": Boolean(),
        "sees_workers": Boolean(),
        "epochs": Number(whole=True, least=0),
        "learning_rate": Number(above=0),
    }


class GeneratorInputs(NamedTuple):
    """The parts of the generator's hidden layer that depend on an item or a worker alone."""

    row: torch.Tensor  # (n_rows, n_hidden); part of each item
    worker: torch.Tensor  # (n_workers, n_hidden); part of each worker


class Generator(nn.Module):
    """Eq. (1): distribution of the label that a worker would give to an item, log G(label | x, w, noise, z).

    Shapes: features (n_workers, n_worker_features).
    """

    n_classes: int
    n_workers: int
    item: nn.Sequential | None
    worker: nn.Sequential | None
    codes: WorkerEmbedding | None
    truth: nn.Linear
    noise: nn.Linear
    out: nn.Linear

    def __init__(
        self,
        n_features: int,
        n_classes: int,
        n_workers: int,
        features: torch.Tensor | None = None,
        *,
        sees_items: bool = True,
        sees_workers: bool = True,
    ) -> None:
        super().__init__()
        self.n_classes, self.n_workers = n_classes, n_workers
        self.item = self.worker = self.codes = None
        if sees_items:
            encoder = (nn.Flatten(), nn.Linear(n_features, _ITEM_HIDDEN), nn.ReLU(), nn.Dropout(_DROPOUT))
            self.item = nn.Sequential(
                *encoder, nn.Linear(_ITEM_HIDDEN, _EMBEDDING_SIZE), *_into_hidden(_EMBEDDING_SIZE)
            )
        if sees_workers:
            self.codes = WorkerEmbedding(n_workers, _EMBEDDING_SIZE, features)
            self.worker = nn.Sequential(*_into_hidden(_EMBEDDING_SIZE))
        self.truth = nn.Linear(n_classes, _HIDDEN)
        self.noise = nn.Linear(n_classes, _HIDDEN, bias=False)
        self.out = nn.Linear(_HIDDEN, n_classes)

    def inputs(self, x: torch.Tensor) -> GeneratorInputs:
        """The parts that do not depend on z; they stay valid while only the classifier learns.

        Shapes: x (n_rows, ...).
        """
        row = x.new_zeros(len(x), _HIDDEN) if self.item is None else self.item(x)
        if self.worker is None or self.codes is None:
            return GeneratorInputs(row, x.new_zeros(self.n_workers, _HIDDEN))
        return GeneratorInputs(row, self.worker(self.codes()))

    def forward(self, inputs: GeneratorInputs, z: torch.Tensor, pairs: Pairs, noise: torch.Tensor) -> torch.Tensor:
        """Log-probabilities of the labels of pairs.

        Shapes: z (n_rows, n_classes); noise (n_pairs, n_classes).
        """
        row, noise_part = inputs.row + self.truth(z), self.noise(noise)
        row = row + noise_part if noise.ndim == 1 else row
        hidden = row.index_select(0, pairs.row) + inputs.worker.index_select(0, pairs.worker)
        hidden = hidden if noise.ndim == 1 else hidden + noise_part
        logits: torch.Tensor = self.out(F.relu(hidden))
        return logits.log_softmax(1)

    def draw_noise(self, pairs: Pairs) -> torch.Tensor:
        """(n_pairs, n_classes) standard normal noise for each pair."""
        return torch.randn(len(pairs.row), self.n_classes, device=pairs.row.device)

    def for_workers(self, place: torch.Tensor, features: torch.Tensor | None = None) -> Generator:
        """A copy of the generator for another list of workers, with free embeddings.

        Shapes: place (n_places,); features (n_places, n_worker_features).
        """
        generator = copy.deepcopy(self)
        generator.n_workers, place = len(place), place.to(next(self.parameters()).device)
        if self.codes is not None:
            code = self.codes().detach()
            code = torch.cat([code, code.mean(0, keepdim=True)])[place]
            if self.codes.projection is not None and features is not None:
                code = self.codes.projection(features.to(code.device)).detach()
            generator.codes = WorkerEmbedding(len(code), code.shape[1], codes=code)
        return generator


def _into_hidden(size: int) -> tuple[nn.Module, ...]:
    """Layers from an embedding to its part of a hidden layer: layer normalisation and a linear layer without bias."""
    # The authors' code has batch normalisation instead. Layer normalisation is the same in training and evaluation
    # mode, so that ratios of probabilities before and after a step are those of the step alone, and it works for a
    # single pair.
    return nn.LayerNorm(size, elementwise_affine=False), nn.Linear(size, _HIDDEN, bias=False)


def sample_labels(log_p: torch.Tensor) -> torch.Tensor:
    """Sample a label for each pair from its distribution, by the Gumbel-max trick with torch's global generator.

    Shapes: log_p (n_pairs, n_classes).
    """
    return (log_p + _gumbel(log_p)).argmax(1)


def _gumbel(like: torch.Tensor) -> torch.Tensor:
    """Standard Gumbel noise in the shape of a tensor."""
    return -torch.log(-torch.log(torch.rand_like(like).clamp(min=1e-12)))  # the random number may be 0: no logarithm


def select(log_p: torch.Tensor, label: torch.Tensor) -> torch.Tensor:
    """Log-probability of each pair's label.

    Shapes: log_p (n_pairs, n_classes); label (n_pairs,).
    """
    return log_p.gather(1, label.unsqueeze(1)).squeeze(1)


class ClassifierWithGenerator(nn.Module):
    """A classifier together with the generator that was trained with it; called, it is the classifier."""

    network: nn.Module
    generator: Generator

    def __init__(self, network: nn.Module, generator: Generator) -> None:
        super().__init__()
        self.network, self.generator = network, generator

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(n_rows, n_classes) the classifier's logits."""
        logits: torch.Tensor = self.network(x)
        return logits

    def proba(self, x: torch.Tensor) -> torch.Tensor:
        """(n_rows, n_classes) the classifier's probabilities z, an input of the generator."""
        return self(x).softmax(1)

    @torch.no_grad()
    def label_log_likelihoods(self, rows: Rows, annotations: Annotations) -> npt.NDArray[np.float64]:
        """Log p_G(label | x, worker, z) of labels, averaged over the generator's noise; `score` uses it."""
        self.eval()
        draws = torch.randn(NOISE_DRAWS, self.generator.n_classes, generator=torch.Generator().manual_seed(0))
        likelihoods = [np.zeros(0)]
        for batch in AnnotationBatches(annotations, 1024, device=self.device):
            x, pairs = as_tensor(rows, batch.item, self.device), Pairs(batch.row, batch.worker)
            inputs, z, label = self.generator.inputs(x), self.proba(x), batch.label.unsqueeze(1)
            each = [self.generator(inputs, z, pairs, noise).gather(1, label) for noise in draws.to(self.device)]
            log_p = torch.logsumexp(torch.cat(each, 1).double(), 1) - math.log(NOISE_DRAWS)
            likelihoods.append(log_p.cpu().numpy())
        return np.concatenate(likelihoods)

    @property
    def device(self) -> torch.device:
        """Device of the weights."""
        return next(self.parameters()).device


# ----------------------------------------------------------------------------------------------------
# Section 3.2.2, discriminative module: the discriminator and the auxiliary network.
#
#     discriminator       D(label | x, w) = sigmoid(u_w' M_label v_x)    is the annotation authentic?     Eq. (2)
#     label correlation   M^_c = D^^-1/2 A^ D^^-1/2 M_c W,  A^ = A + I   (the LCA decoder, in the text after Eq. (2))
#     auxiliary network   P_Q(k | x, w, label)                           how informative is it about z?
#     information         L_I = E log P_Q(k | x, w, label) + H(z)        <= mutual information of label and z   Eq. (3)
#
# The auxiliary network shares the embeddings u and v and the matrices M with the discriminator.
#
# As printed, u and v are linear functions of worker and item. The authors' code has a perceptron for v, rows of A + I
# that sum to 1, a residual M, and no W; both forms are here, with (A' + I) / 2 in place of the rows of A + I, where the
# rows of A' are those of A divided by their sums, so that I has the weight 1/2. W is read as one matrix of the size of
# an M_c, which multiplies each of them: over flattened matrices it would have the square of as many entries.
#
# X. Chen, Y. Duan, R. Houthooft, J. Schulman, I. Sutskever and P. Abbeel (2016), InfoGAN: Interpretable representation
# learning by information maximizing generative adversarial nets, NeurIPS, has the variational bound of Eq. (3).


@dataclass(frozen=True, repr=False)
class DiscriminatorTraining(OptionGroup):
    """The discriminator and its training before the adversarial one.

    Parameters
    ----------
    item_embedding : {"linear", "perceptron"}, default="linear"
        Item embedding v in D = sigmoid(u' M_c v): a linear function of x as printed, or a perceptron with one hidden
        layer as in the authors' code.
    label_correlation : bool, default=True
        Whether the discriminator's label matrices share the co-occurrence of labels on the same items.
    correlation : {"symmetric", "residual"}, default="symmetric"
        Form of the label correlation: D^-1/2 (A + I) D^-1/2 M W with a trainable W as printed, or M + (A' + I) M / 2
        without W, the rows of A' those of A divided by their sums; the authors' code has M + D^-1 (A + I) M, which
        normalises the rows of A + I.
    generated_weight : float, default=1.0
        Weight of generated labels in the loss, where authentic ones have 1; the authors' code has 0.9.
    sparsity : float, default=0.01
        Weight of the mean squared output; the paper names the penalty and no value.
    sparsity_on : {"all", "authentic"}, default="all"
        Pairs whose outputs are penalised: authentic and generated ones, or the authentic ones only (ours). The authors'
        code penalises the mean output, not its square, on both.
    selection : {"entropy", "random"}, default="entropy"
        Generated labels that it is trained on: confident ones more probably, or at random (CrowdInG_R); of each worker
        as many as authentic ones.
    epochs : int, default=10
        Number of epochs before the adversarial training.
    learning_rate : float, default=0.0003
        Step size of the discriminator's Adam.
    weight_decay : float, default=0.01
        Weight decay of the discriminator, in place of the method's `weight_decay`.
    """

    item_embedding: str = "linear"
    label_correlation: bool = True
    correlation: str = "symmetric"
    generated_weight: float = 1.0  # Eq. (4)
    sparsity: float = 0.01  # ours
    sparsity_on: str = "all"
    selection: str = "entropy"
    epochs: int = 10  # as in the authors' code
    learning_rate: float = 3e-4  # the largest of the paper's grid
    weight_decay: float = 0.01  # as in the authors' code

    _constraints: ClassVar[dict[str, Constraint]] = {
        "item_embedding": OneOf(("linear", "perceptron")),
        "label_correlation": Boolean(),
        "correlation": OneOf(("symmetric", "residual")),
        "generated_weight": Number(least=0),
        "sparsity": Number(least=0),
        "sparsity_on": OneOf(("all", "authentic")),
        "selection": OneOf(("entropy", "random")),
        "epochs": Number(whole=True, least=0),
        "learning_rate": Number(above=0),
        "weight_decay": Number(least=0),
    }


def label_adjacency(annotations: Annotations, *, symmetric: bool = True) -> npt.NDArray[np.float64]:
    """Normalised adjacency of labels, from their co-occurrence on items."""
    # A_cd is the number of pairs of labels c and d on the same item; two equal labels of an item are such a pair too.
    # The paper's "frequency of label co-occurrence" is read as that number, so that I hardly counts beside A in the
    # printed form; in the other form the rows of A are divided by their sums first, so that I has the weight 1/2.
    n_classes = annotations.n_classes
    votes = np.zeros((annotations.n_items, n_classes))
    np.add.at(votes, (annotations.item, annotations.label), 1.0)
    together = votes.T @ votes
    np.fill_diagonal(together, together.diagonal() - votes.sum(axis=0))  # without pairs of a label with itself
    total = together.sum(axis=1, keepdims=True)
    if symmetric:
        scale = 1 / np.sqrt(total + 1)
        return np.asarray(scale * (together + np.eye(n_classes)) * scale.T)
    share = np.divide(together, total, out=np.eye(n_classes), where=total > 0)
    return np.asarray((share + np.eye(n_classes)) / 2)


class DiscriminatorInputs(NamedTuple):
    """What the discriminator computes of items, workers and labels before it is applied to pairs."""

    worker: torch.Tensor  # (n_workers, size); embeddings u of the workers
    item: torch.Tensor  # (n_rows, size); embeddings v of the items
    label: torch.Tensor  # (n_classes, size, size); matrices M of the labels, smoothed by label correlation
    product: torch.Tensor  # (n_rows, n_classes, size); M_c v for every item and label


class Discriminator(nn.Module):
    """Eq. (2): discriminator of authentic and generated annotations, with the auxiliary network of Eq. (3).

    Shapes: features (n_workers, n_worker_features); spread (n_classes, n_classes).
    """

    def __init__(
        self,
        n_features: int,
        n_classes: int,
        n_workers: int,
        features: torch.Tensor | None = None,
        *,
        spread: torch.Tensor | None = None,
        residual: bool = False,
        perceptron: bool = False,
        size: int = 60,  # of u and v, as in the authors' code
    ) -> None:
        super().__init__()
        self.codes = WorkerEmbedding(n_workers, size, features)
        hidden = (nn.Linear(n_features, _HIDDEN), nn.ReLU()) if perceptron else ()
        self.item = nn.Sequential(nn.Flatten(), *hidden, nn.Linear(_HIDDEN if perceptron else n_features, size))
        self.dropout = nn.Dropout(_DROPOUT)
        # Ours: logits near 0 at the start; the authors' code draws from [0, 1), which gives large logits.
        self.matrix = nn.Parameter(torch.randn(n_classes, size, size) / size)
        self.spread: torch.Tensor | None
        self.register_buffer("spread", spread, persistent=False)
        # W starts as the identity (ours), so that at the start the matrices M are averaged and nothing else.
        self.mix = None if spread is None or residual else nn.Parameter(torch.eye(size))
        self.from_worker = nn.Sequential(*_into_hidden(size))
        self.from_item = nn.Sequential(*_into_hidden(size))
        self.from_label = nn.Sequential(nn.Flatten(), nn.Linear(size * size, size), nn.ReLU(), *_into_hidden(size))
        self.out = nn.Linear(_HIDDEN, n_classes)

    def inputs(self, x: torch.Tensor) -> DiscriminatorInputs:
        """Embeddings and matrices, computed once for a mini-batch.

        Shapes: x (n_rows, ...).
        """
        worker, item = self.dropout(self.codes()), self.dropout(self.item(x))
        label = self._matrices()
        return DiscriminatorInputs(worker, item, label, torch.einsum("cij,nj->nci", label, item))

    def _matrices(self) -> torch.Tensor:
        """(n_classes, size, size) the matrices M of the labels, smoothed by label correlation (the LCA decoder)."""
        if self.spread is None:
            return self.matrix
        average = torch.einsum("cd,dij->cij", self.spread, self.matrix)
        return self.matrix + average if self.mix is None else average @ self.mix

    def logits(self, inputs: DiscriminatorInputs, pairs: Pairs) -> torch.Tensor:
        """Logits of D for every label of each pair."""
        product, worker = inputs.product.index_select(0, pairs.row), inputs.worker.index_select(0, pairs.worker)
        return torch.bmm(product, worker.unsqueeze(2)).squeeze(2)

    def logit(self, inputs: DiscriminatorInputs, pairs: Pairs, label: torch.Tensor) -> torch.Tensor:
        """Logits of D for one label of each pair.

        Shapes: label (n_pairs,).
        """
        n_classes, size = inputs.product.shape[1:]
        product = inputs.product.view(-1, size).index_select(0, pairs.row * n_classes + label)
        return (product * inputs.worker.index_select(0, pairs.worker)).sum(1)

    def log_truth(self, inputs: DiscriminatorInputs, pairs: Pairs, label: torch.Tensor) -> torch.Tensor:
        """The auxiliary network: log P_Q(k | x, w, label), of the class k that the classifier predicts.

        Shapes: label (n_pairs,).
        """
        worker, item = self.from_worker(inputs.worker), self.from_item(inputs.item)
        matrix = self.from_label(inputs.label)
        hidden = worker.index_select(0, pairs.worker) + item.index_select(0, pairs.row) + matrix.index_select(0, label)
        logits: torch.Tensor = self.out(F.relu(hidden))
        return logits.log_softmax(1)


# ----------------------------------------------------------------------------------------------------
# Section 3.3.1, entropy-based annotation selection: P(y) ~ 1 / H(G(x, w, noise, z)), as many as authentic ones.

_TINY = 1e-6  # least entropy, since an entropy of 0 has no inverse; far below that of any label in doubt


def log_inverse_entropy(log_p: torch.Tensor) -> torch.Tensor:
    """Logarithm of the inverse entropy, log(1 / H): the weight of a pair in the selection.

    Shapes: log_p (n_pairs, n_classes).
    """
    return -entropy(log_p).clamp(min=_TINY).log()


def choose_pairs(pairs: Pairs, log_weight: torch.Tensor, n_of_worker: torch.Tensor) -> torch.Tensor:
    """Select a given number of pairs of each worker without replacement, with probability proportional to a weight.

    References
    ----------
    W. Kool, H. van Hoof and M. Welling (2019), Stochastic beams and where to find them: The Gumbel-top-k trick for
    sampling sequences without replacement, ICML.

    Shapes: log_weight (n_pairs,); n_of_worker (n_workers,).
    """
    # The pairs with the largest sums of log-weight and Gumbel noise are such a sample (the Gumbel top-k trick).
    key = log_weight + _gumbel(log_weight)
    order = torch.argsort(key, descending=True, stable=True)
    order = order[torch.argsort(pairs.worker[order], stable=True)]
    size = torch.bincount(pairs.worker, minlength=len(n_of_worker))
    rank = torch.arange(len(order), device=order.device) - (size.cumsum(0) - size)[pairs.worker[order]]
    return order[(rank < n_of_worker[pairs.worker[order]]) & (log_weight[order] > -torch.inf)]


# ----------------------------------------------------------------------------------------------------
# Sections 3.3.2 and 3.3.3: gradient-based optimisation, and two-step update of the generative module.
#
#     draw              y ~ G_0 = G(. | x, w, noise, z) on pairs (x, w), with and without a label;  z = C(x)
#     discriminator     min 1/2 (mean_R -log D(y) + g mean_S -log(1 - D(y))) + s mean D^2 + lambda mean L_Q     Eq. (4)
#                       R: authentic labels; S: as many generated ones of each worker, selected by entropy
#     costs of y        L_G = log(1 - D(y)),   L_Q = -sum_k z_k log P_Q(k | x, w, y) = H(z) - L_I
#     generator         min mean (L_G + lambda L_Q - mu) G(y) / G_0(y)     on items with entropy H(z) <= t     Eq. (5)
#     classifier        min mean (L_G - mu') G(y; C(x)) / G_0(y)           on the others, with G fixed         Eq. (6)
#
# Eqs. (5) and (6) are printed as sums over all N x R pairs; the text of Section 3.3.3 restricts them to items of low
# and of high entropy. In the options of CrowdInG, lambda is `information`, mu is `multiplier` (None: the mean cost), t
# is `threshold`, g is `generated_weight`, and s is `sparsity`; D^2 is the mean over all classes and pairs of R and S
# (`sparsity_on`). L_G may be -log D(y) instead (`generator_loss`), as in the authors' code, which also has g = 0.9.
# The factor 1/2 in Eq. (4) is that of the authors' code.
# L_G = log(1 - D) is never positive, so that with mu = 0 every generated label would become more probable; with the
# mean cost as mu, a common factor of all ratios has no gradient, and their mean stays near 1.
#
# Costs are those of the labels drawn before any step, so that several steps share one draw; an importance ratio beyond
# `clip` has no gradient. Dropout is off in all networks but the discriminator while it is trained, so that an
# importance ratio other than 1 comes from training and not from dropout.

_FLOOR = 1e-3  # of D in the non-saturating cost, -log((D + 0.001) / 1.001) in the authors' code
# Memory of a pair in a step of the generator: about nine arrays of 128 numbers of 4 bytes, and its distribution.
_BYTES = 5000
Figures = dict[str, torch.Tensor]
GoldItems = tuple[torch.Tensor, torch.Tensor]  # features and classes of gold items


@dataclass(frozen=True, repr=False)
class Adversarial(OptionGroup):
    """The adversarial training of classifier, generator and discriminator.

    Parameters
    ----------
    epochs : int, default=40
        Maximal number of epochs; 0 leaves the pre-trained classifier as it is.
    early_stopping : bool, default=True
        Whether held-out annotations choose the epoch, the pre-trained classifier included, and end the training after
        `patience` epochs without improvement; otherwise the last epoch is kept.
    batch_size : int, default=1024
        Items per mini-batch, also in the pre-training of the generator.
    information : float, default=0.5
        Weight lambda of the mutual-information term; 0 leaves it out (CrowdG in the paper).
    threshold : float, default=0.5
        Entropy threshold t: the generator learns on items at or below it, the classifier on the others.
    threshold_is : {"quantile", "nats"}, default="nats"
        Unit of `threshold`: a quantile of the mini-batch's entropies, or nats, as in the authors' code (the paper names
        no unit).
    generator_loss : {"saturating", "non-saturating"}, default="saturating"
        Authenticity cost of a generated label: log(1 - D) as printed, or -log((D + 0.001) / 1.001) as in the authors'
        code. The first is at most 0, the second at least 0.
    multiplier : float or None, default=None
        Baseline mu of the costs: labels of lower cost become more probable, the others less. None is the mean cost of
        the mini-batch, for which the mean importance ratio stays at 1 to first order. The paper searches it; a value
        has to be of the sign of the cost.
    clip : float, default=5.0
        Importance ratio beyond which a label has no gradient.
    two_step : bool, default=True
        Whether generator and classifier are trained in turns on different items; otherwise jointly on all.
    pairs_per_label : int or None, default=None
        Pairs without a label considered for each label of a worker in a mini-batch; None takes all pairs of the
        mini-batch's items with all workers, as the paper does, where they fit into memory (about 5 kB per pair).
    inner_steps : int, default=5
        Steps of each network per mini-batch, as in the authors' code; the paper has them in each epoch.
    learning_rate : float, default=6e-05
        Step size of the classifier's Adam.
    """

    epochs: int = 40  # Section 4.1
    early_stopping: bool = True
    batch_size: int = 1024  # as in the authors' code
    information: float = 0.5  # in the middle of 0.1 to 1, the range of Section 4.5.2
    threshold: float = 0.5  # as in the authors' code for LabelMe; Section 4.5.2 has 0.2 to 0.8
    threshold_is: str = "nats"
    generator_loss: str = "saturating"
    multiplier: float | None = None
    clip: float = 5.0  # ours; the authors' code clips at a value that it does not state
    two_step: bool = True
    pairs_per_label: int | None = None
    inner_steps: int = 5  # Section 4.1: 5 times in each epoch; in each mini-batch as in the authors' code
    learning_rate: float = 6e-5  # outside the paper's grid: a fifth of its largest value, 3e-4, as in the code

    _constraints: ClassVar[dict[str, Constraint]] = {
        "epochs": Number(whole=True, least=0),
        "early_stopping": Boolean(),
        "batch_size": Number(whole=True, least=1),
        "information": Number(least=0),
        "threshold": Number(least=0),
        "threshold_is": OneOf(("quantile", "nats")),
        "generator_loss": OneOf(("saturating", "non-saturating")),
        "multiplier": NoneOr(Number()),
        "clip": Number(least=1),
        "two_step": Boolean(),
        "pairs_per_label": NoneOr(Number(whole=True, least=1)),
        "inner_steps": Number(whole=True, least=1),
        "learning_rate": Number(above=0),
    }


# What `CrowdInG.plus` sets: a better pre-trained classifier, an adaptive entropy threshold, and fewer pairs and smaller
# steps than the paper, since the game adds little on real crowds (docs/results/crowding.md). Pre-training, number of
# networks, `inner_steps` and the classifier's learning rate were chosen in docs/results/notes/crowding-tried.md. The
# item embedding, the generated labels' weight and the loss of the generator are those of the authors' code, and the
# label correlation is close to it; `sparsity_on` is ours, and so are the other numbers.
PLUS: dict[str, Any] = {
    "pretraining": "max-mig",
    "members": 5,
    "generator": GeneratorTraining(learning_rate=1e-3),
    "discriminator": DiscriminatorTraining(
        item_embedding="perceptron",
        correlation="residual",
        generated_weight=0.9,
        sparsity_on="authentic",
        learning_rate=1e-3,
        weight_decay=0.0,
    ),
    "adversarial": Adversarial(
        batch_size=256,
        threshold_is="quantile",
        generator_loss="non-saturating",
        pairs_per_label=4,
        inner_steps=2,
        learning_rate=3e-5,
    ),
}


class Draw(NamedTuple):
    """Labels that the generator drew for pairs of item and worker in a mini-batch."""

    x: torch.Tensor  # (n_rows, ...); features of the items
    log_z: torch.Tensor  # (n_rows, n_classes); log p(k | x) by the classifier; the known class of gold items
    authentic: Pairs  # pairs with an observed label
    authentic_label: torch.Tensor  # (n_labels,)
    pairs: Pairs  # pairs for which labels were drawn
    noise: torch.Tensor  # (n_pairs, n_classes)
    label: torch.Tensor  # (n_pairs,)
    log_p0: torch.Tensor  # (n_pairs,); their log-probability when they were drawn
    # (n_pairs,); log-weight of a pair in the choice of examples for the discriminator; -inf where there is a label
    log_weight: torch.Tensor
    gold: torch.Tensor | None  # (n_rows,)

    def gold_items(self) -> GoldItems | None:
        """Return features and classes of the gold items; None where there are none."""
        if self.gold is None or not bool((self.gold >= 0).any()):
            return None
        return self.x[self.gold >= 0], self.gold[self.gold >= 0]

    def part(self, which: torch.Tensor) -> tuple[Draw, torch.Tensor]:
        """Return the draw restricted to some rows, without its authentic labels, and the mask of its pairs."""
        mask, place = which[self.pairs.row], which.cumsum(0) - 1
        part = self._replace(
            x=self.x[which],
            log_z=self.log_z[which],
            authentic=Pairs(self.authentic.row[:0], self.authentic.worker[:0]),
            authentic_label=self.authentic_label[:0],
            pairs=Pairs(place[self.pairs.row[mask]], self.pairs.worker[mask]),
            noise=self.noise[mask],
            label=self.label[mask],
            log_p0=self.log_p0[mask],
            log_weight=self.log_weight[mask],
            gold=None if self.gold is None else self.gold[which],
        )
        return part, mask


class Game:
    """The three networks of CrowdInG, their optimizers and the steps of each."""

    def __init__(
        self,
        context: TrainingContext,
        network: nn.Module,  # the pre-trained classifier C, from features to logits
        generator: GeneratorTraining,
        discriminator: DiscriminatorTraining,
        adversarial: Adversarial,
    ) -> None:
        self.options, self.discriminator_options = adversarial, discriminator
        self.crowd = crowd = ActiveWorkers.of(context)
        if adversarial.epochs > 0:
            _check_pairs(context, len(crowd.active), adversarial)
        features = standardised_features(crowd)
        features = None if features is None else features[crowd.active]
        sizes = math.prod(context.data.rows.shape), context.n_classes, len(crowd.active)
        sees = {"sees_items": generator.sees_items, "sees_workers": generator.sees_workers}
        self.network = network
        self.generator = Generator(*sizes, features, **sees).to(context.device)
        self.discriminator = _new_discriminator(context, sizes, features, discriminator).to(context.device)
        decay = context.options.weight_decay
        self.network_adam = torch.optim.Adam(network.parameters(), lr=adversarial.learning_rate, weight_decay=decay)
        self.generator_adam = torch.optim.Adam(
            self.generator.parameters(), lr=generator.learning_rate, weight_decay=decay
        )
        self.discriminator_adam = torch.optim.Adam(
            self.discriminator.parameters(), lr=discriminator.learning_rate, weight_decay=discriminator.weight_decay
        )

    def step(self, batch: Batch) -> Figures:
        """Train all three networks on one mini-batch; returns their losses and diagnostics."""
        # Figure 1: "We first sample annotations from annotation distributions provided by the generator."
        # Section 3.3.2: the generative module before the steps is the logging policy G_0 (the print: that of the last
        # epoch; here, as in the authors' code, that before each mini-batch).
        draw = self.draw(batch)
        # Figure 1: "The discriminator and the auxiliary network are trained on the selected annotations."
        # Eq. (4), maximum over D and minimum over Q; Section 3.3.1 selects the annotations by entropy.
        figures = self.train_discriminator(draw)
        # Section 3.3.2: L_G and, up to the constant H(z), -L_I of every label drawn; delta = L_G - lambda L_I.
        authenticity, information = self.costs(draw)
        delta = authenticity + self.options.information * information
        if not self.options.two_step:  # the one-step strategy of Figure 2(b)
            return figures | self.train_jointly(draw, delta)
        # Section 3.3.3: items with an entropy of at most t train the generator, and then the others the classifier.
        is_confident = self.is_confident(draw)
        confident, on_confident = draw.part(is_confident)
        uncertain, on_uncertain = draw.part(~is_confident)
        # Figure 1: "Then, the classifier is first fixed and the generator is updated according to L_G and L_I."
        # Eq. (5), on the confident items.
        figures |= self.train_generator(confident, delta[on_confident])
        # Figure 1: "The generator is fixed and the classifier is updated according to L_G."
        # Eq. (6), on the others.
        return figures | self.train_classifier(uncertain, authenticity[on_uncertain], draw.gold_items())

    @torch.no_grad()
    def draw(self, batch: Batch) -> Draw:
        """Draw labels from the generator for pairs of item and worker in a mini-batch."""
        x, gold, batch = self._read(batch)
        log_z = self.log_z(x, gold)
        self.generator.eval()
        per_label, rng = self.options.pairs_per_label, self.crowd.context.rng
        pairs, has_label = draw_pairs(batch, self.generator.n_workers, per_label, rng)
        noise = self.generator.draw_noise(pairs)
        log_p = self.generator(self.generator.inputs(x), log_z.exp(), pairs, noise)
        label = sample_labels(log_p)
        log_weight = torch.zeros_like(log_p[:, 0])
        if self.discriminator_options.selection == "entropy":
            log_weight = log_inverse_entropy(log_p)
        log_weight[has_label] = -torch.inf
        authentic = Pairs(batch.row, batch.worker)
        return Draw(x, log_z, authentic, batch.label, pairs, noise, label, select(log_p, label), log_weight, gold)

    def log_z(self, x: torch.Tensor, gold: torch.Tensor | None) -> torch.Tensor:
        """Return log p(k | x) of the items by the classifier without dropout, (n_rows, n_classes)."""
        return log_truth(self.network.eval(), x, gold)

    def train_discriminator(self, draw: Draw) -> Figures:
        """Eq. (4), discriminator and auxiliary network: as many generated labels of each worker as authentic ones."""
        n_authentic = torch.bincount(draw.authentic.worker, minlength=self.generator.n_workers)
        index = choose_pairs(draw.pairs, draw.log_weight, n_authentic)
        both = Pairs(*(torch.cat(two) for two in zip(draw.authentic, draw.pairs.select(index))))
        label = torch.cat([draw.authentic_label, draw.label[index]])
        is_real = torch.arange(len(label), device=label.device) < len(draw.authentic_label)
        z = draw.log_z.exp().index_select(0, both.row)
        how = self.discriminator_options
        self.discriminator.train()
        for _ in range(self.options.inner_steps):
            inputs = self.discriminator.inputs(draw.x)
            logits = self.discriminator.logits(inputs, both)
            logit = logits.gather(1, label.unsqueeze(1)).squeeze(1)
            real_loss, fake_loss = _mean(F.softplus(-logit[is_real])), _mean(F.softplus(logit[~is_real]))
            adversarial = real_loss + how.generated_weight * fake_loss  # -V(C, G, D), Eq. (4)
            # -E log P_Q(z | y), Eq. (3); the paper has generated labels only, its code authentic ones too, as here
            inform = -_mean((z * self.discriminator.log_truth(inputs, both, label)).sum(1))
            sparse = _mean((logits if how.sparsity_on == "all" else logits[is_real]).sigmoid().square())
            # The factor 1/2 is that of the authors' code.
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
        """Return the authenticity and information costs of every label drawn, L_G and L_Q, (n_pairs,) each."""
        self.discriminator.eval()
        inputs = self.discriminator.inputs(draw.x)
        logit = self.discriminator.logit(inputs, draw.pairs, draw.label)
        authenticity = F.logsigmoid(-logit)  # log(1 - D)
        if self.options.generator_loss == "non-saturating":
            authenticity = -((logit.sigmoid() + _FLOOR) / (1 + _FLOOR)).log()
        z = draw.log_z.exp().index_select(0, draw.pairs.row)
        return authenticity, -(z * self.discriminator.log_truth(inputs, draw.pairs, draw.label)).sum(1)

    def is_confident(self, draw: Draw) -> torch.Tensor:
        """Section 3.3.3: return the mask of the items whose entropy is at most the threshold t, (n_rows,)."""
        h = entropy(draw.log_z)
        threshold = self.options.threshold
        if self.options.threshold_is == "quantile":
            threshold = float(h.quantile(threshold)) if len(h) else 0.0
        return h <= threshold

    def train_generator(self, draw: Draw, cost: torch.Tensor) -> Figures:
        """Eq. (5): train the generator with the classifier fixed.

        Shapes: cost (n_pairs,).
        """
        self.generator.eval()
        for _ in range(self.options.inner_steps):
            log_p = self.generator(self.generator.inputs(draw.x), draw.log_z.exp(), draw.pairs, draw.noise)
            log_ratio = select(log_p, draw.label) - draw.log_p0
            loss = self._bandit(cost, log_ratio)
            descend(self.generator_adam, loss)
        return {"generator": loss.detach(), "generator_ratio": _mean(log_ratio.detach().exp())}

    def train_classifier(self, draw: Draw, cost: torch.Tensor, gold_items: GoldItems | None = None) -> Figures:
        """Eq. (6): train the classifier with the generator fixed, so that labels that look authentic gain probability.

        Shapes: cost (n_pairs,).
        """
        self.generator.eval().requires_grad_(False)
        inputs = self.generator.inputs(draw.x)
        for _ in range(self.options.inner_steps):
            log_p = self.generator(inputs, self._z(draw), draw.pairs, draw.noise)
            log_ratio = select(log_p, draw.label) - draw.log_p0
            loss = self._bandit(cost, log_ratio)
            descend(self.network_adam, loss + self._gold_loss(gold_items))
        self.generator.requires_grad_(True)
        return {"classifier": loss.detach(), "classifier_ratio": _mean(log_ratio.detach().exp())}

    def train_jointly(self, draw: Draw, cost: torch.Tensor) -> Figures:
        """The one-step strategy of Figure 2(b): train generator and classifier jointly on all items.

        Shapes: cost (n_pairs,).
        """
        # Both have the cost delta of Eq. (5); the print has L_G alone for the classifier, Eq. (6).
        self.generator.eval()
        for _ in range(self.options.inner_steps):
            log_p = self.generator(self.generator.inputs(draw.x), self._z(draw), draw.pairs, draw.noise)
            log_ratio = select(log_p, draw.label) - draw.log_p0
            loss = self._bandit(cost, log_ratio)
            self.generator_adam.zero_grad(set_to_none=True)
            descend(self.network_adam, loss + self._gold_loss(draw.gold_items()))
            self.generator_adam.step()
        return {"generator": loss.detach(), "generator_ratio": _mean(log_ratio.detach().exp())}

    def pretrain_generator(self, max_epochs: int) -> History:
        """Section 3.3.3: maximise the likelihood of the observed labels; that of held-out labels ends the training."""
        context = self.crowd.active_context

        def step(batch: Batch) -> Figures:
            x, gold, batch = self._read(batch)
            with torch.no_grad():
                z = self.log_z(x, gold).exp()
            self.generator.train()
            loss = -self._log_label(x, z, batch).sum() / max(len(batch.label), 1)
            return {"generator_start": descend(self.generator_adam, loss)}

        def log_label(batch: Batch) -> torch.Tensor:
            x, _, batch = self._read(batch)
            return self._log_label(x, self.log_z(x, None).exp(), batch)

        return context.train(
            step,
            {"generator": self.generator},
            {"adam": self.generator_adam},
            evaluate=context.heldout_score(log_label, self.generator),
            batches=context.batches(batch_size=self.options.batch_size),
            max_epochs=max_epochs,
            name="generator",
        )

    def pretrain_discriminator(self) -> History:
        """Section 3.3.3: train discriminator and auxiliary network against the pre-trained generator."""
        context = self.crowd.context

        def step(batch: Batch) -> Figures:
            figures = self.train_discriminator(self.draw(batch))
            return {f"{name}_start": value for name, value in figures.items()}

        return context.train(
            step,
            {"discriminator": self.discriminator},
            {"discriminator": self.discriminator_adam},
            batches=context.batches(batch_size=self.options.batch_size),
            max_epochs=self.discriminator_options.epochs,
            name="discriminator",
        )

    def play(self) -> History:
        """Section 4.1, "the last 40 epochs": `step` on every mini-batch."""
        # Early stopping (ours) compares the classifier by its class-balanced held-out log-likelihood; the pre-trained
        # classifier itself is a candidate, so that the adversarial training can end where it began. Without it
        # (`early_stopping`) the last epoch is kept.
        context = self.crowd.context
        metric, evaluate = HeldoutMetric.from_network(context, self.network), None
        if metric is not None and self.options.early_stopping:
            rows = context.data.rows

            def evaluate() -> float:
                return float(metric.measure(self.network, rows).mean())

        batches = context.batches(batch_size=self.options.batch_size)
        epochs = context.epochs(
            {"discriminator": self.discriminator, "network": self.network, "generator": self.generator},
            {
                "discriminator": self.discriminator_adam,
                "network": self.network_adam,
                "generator": self.generator_adam,
            },
            evaluate=evaluate,
            max_epochs=self.options.epochs,
            name="game",
            score_initial_weights=True,
        )
        for epoch in epochs:
            epochs.record(run_epoch(self.step, batches, epoch))
        return epochs.history

    def _read(self, batch: Batch) -> tuple[torch.Tensor, torch.Tensor | None, Batch]:
        """Features and gold of a mini-batch, and the mini-batch with workers numbered among the active ones."""
        return self.crowd.context.x(batch), self.crowd.context.gold(batch), self.crowd.numbered(batch)

    def _log_label(self, x: torch.Tensor, z: torch.Tensor, batch: Batch) -> torch.Tensor:
        """The generator's log-probability of each label of a mini-batch, (n_labels,)."""
        pairs = Pairs(batch.row, batch.worker)
        log_p = self.generator(self.generator.inputs(x), z, pairs, self.generator.draw_noise(pairs))
        return select(log_p, batch.label)

    def _z(self, draw: Draw) -> torch.Tensor:
        """The classifier's current p(k | x) with its gradient; gold items keep their class."""
        z: torch.Tensor = self.network.eval()(draw.x).softmax(1)
        return z if draw.gold is None else torch.where((draw.gold >= 0).unsqueeze(1), draw.log_z.exp(), z)

    def _gold_loss(self, gold_items: GoldItems | None) -> torch.Tensor | float:
        if gold_items is None:
            return 0.0
        return F.cross_entropy(self.network(gold_items[0]), gold_items[1])

    def _bandit(self, cost: torch.Tensor, log_ratio: torch.Tensor) -> torch.Tensor:
        multiplier = _mean(cost) if self.options.multiplier is None else self.options.multiplier
        return bandit_loss(cost, log_ratio, multiplier, self.options.clip)


def _check_pairs(context: TrainingContext, n_workers: int, options: Adversarial) -> None:
    """Refuse all pairs of item and worker where a mini-batch of them does not fit into memory."""
    if options.pairs_per_label is None:
        n_pairs = min(options.batch_size, context.annotations.n_items) * n_workers
        remedy = "Give a number for adversarial__pairs_per_label, or a smaller adversarial__batch_size."
        check_memory(_BYTES * n_pairs, "All pairs of the items of a mini-batch with all workers", remedy)


def _new_discriminator(
    context: TrainingContext,
    sizes: tuple[int, int, int],
    features: torch.Tensor | None,
    options: DiscriminatorTraining,
) -> Discriminator:
    """Return the untrained discriminator; label correlation is that of the training labels."""
    residual, spread = options.correlation == "residual", None
    if options.label_correlation:
        spread = torch.from_numpy(label_adjacency(context.annotations, symmetric=not residual)).float()
    perceptron = options.item_embedding == "perceptron"
    return Discriminator(*sizes, features, spread=spread, residual=residual, perceptron=perceptron)


def _information(z: torch.Tensor, inform: torch.Tensor) -> torch.Tensor:
    """Lower bound of the mutual information of label and z in nats, H(mean z) - inform; 0 without labels."""
    if len(z) == 0:
        return z.sum()
    log_mean = z.mean(0, keepdim=True).clamp(min=1e-12).log()  # a probability of 0 has no logarithm
    return entropy(log_mean).squeeze(0) - inform


def _mean(values: torch.Tensor) -> torch.Tensor:
    """Mean of the values; 0 where there are none."""
    return values.sum() / max(values.numel(), 1)


# ----------------------------------------------------------------------------------------------------
# Imputed annotations: labels of the generator, or of another model (Section 4.4), for pairs that have none.

_CANDIDATES = 8  # pairs from which the one imputed is selected by entropy (ours): cost stays proportional to the labels


def impute_annotations(
    batch: Batch,
    n_workers: int,
    answers: Callable[[Pairs], torch.Tensor],
    rng: np.random.Generator,
    *,
    per_label: int | None,
    most_likely: bool,
    heldout: Batch | None = None,
) -> tuple[Pairs, torch.Tensor]:
    """Impute annotations: labels for pairs of a mini-batch that have none.

    Shapes: returns label (n_pairs,).
    """
    pairs, has_label = draw_pairs(batch, n_workers, None if per_label is None else _CANDIDATES * per_label, rng)
    if heldout is not None:  # these labels exist, and must not be imputed
        n_rows = len(batch.item)
        has_label |= torch.isin(pairs.worker * n_rows + pairs.row, heldout.worker * n_rows + heldout.row)
    pairs = pairs.select(~has_label)
    log_p = answers(pairs)
    if per_label is not None:
        n_imputed = per_label * torch.bincount(batch.worker, minlength=n_workers)
        index = choose_pairs(pairs, log_inverse_entropy(log_p), n_imputed)
        pairs, log_p = pairs.select(index), log_p[index]
    return pairs, log_p.argmax(1) if most_likely else sample_labels(log_p)
