"""Self-Crowd: Y. Shi, S.-Y. Li and S.-J. Huang (2021), Learning from crowds with sparse and imbalanced annotations.

From top to bottom in the order of the paper, with its numbers of sections, equations and the algorithm:

- Section 2, the Self-Crowd framework: the training data D with its pseudo-annotations, `LabelPool`
- Section 2.1, deep crowdlayer base learning model (Eq. 1 and 2): any `noise_layer.NoiseModel`, by default `CrowdLayer`
- Section 2.2, distribution aware confidence measure: `predict_pseudo_annotations` (Eq. 1 and 3), and the quotas
  `inverse_quotas` (Eq. 4 and 5) within which `SelfCrowd._select` selects
- Section 2.2, Algorithm 1: `SelfCrowd._learn`
- Section 3.2, results: class-imbalance ratio of each round (Eq. 6), `_round_results`

The paper does not say when the "expected performance" is reached; `HeldoutMetric` and `RoundRecord` are our rule.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from manyhands._core.arrays import Array
from manyhands._core.neighbours import Candidates, Counts, select
from manyhands._core.randomness import Seed
from manyhands.annotations import Annotations
from manyhands.classes import imbalance, share_out
from manyhands.classifiers.base import CrowdClassifier
from manyhands.classifiers.network import FitResult, TrainingContext, combine, context_for, nested_method
from manyhands.classifiers.noise_layer import NOISE_LAYER_CONSTRAINTS, NoiseModel, initial_layer
from manyhands.em.noise import safe_log
from manyhands.features import Rows
from manyhands.heldout import class_shares, label_log_likelihoods, worker_confusions
from manyhands.nn.backbones import as_tensor, probabilities
from manyhands.nn.train import History
from manyhands.validation import Boolean, Constraint, FractionOrCount, NameOr, NoneOr, Number, OneOf

# ----------------------------------------------------------------------------------------------------
# Section 2, the Self-Crowd framework: D = the observed labels, to which pseudo-annotations are added.


@dataclass(frozen=True, eq=False)
class LabelPool:
    """The training data D: observed labels and the pseudo-annotations selected so far; held-out labels beside it."""

    labels: Annotations  # the observed labels, from which the method learns
    heldout: Annotations | None  # labels by which rounds are compared
    # (n, 3); item, worker and label of the pseudo-annotations, one array per round
    pseudo: tuple[npt.NDArray[np.int64], ...] = ()

    @cached_property
    def all(self) -> Annotations:
        """Observed labels and pseudo-annotations together."""
        return self.labels.with_more(*np.concatenate(self.pseudo).T) if self.pseudo else self.labels

    @cached_property
    def workers(self) -> npt.NDArray[np.intp]:
        """The workers who have a label; of the others nothing can be learned."""
        return np.unique(self.labels.worker).astype(np.intp)

    @property
    def no_candidates(self) -> list[Annotations]:
        """Annotations whose pairs of item and worker get no pseudo-annotation."""
        return [self.all] if self.heldout is None else [self.all, self.heldout]

    @property
    def counts(self) -> Counts:
        """Number of labels and pseudo-annotations of each class, (n_classes,)."""
        return np.bincount(self.all.label, minlength=self.all.n_classes)

    def n_per_round(self, per_round: float) -> int:
        """Return M of Eq. 4, the number of pseudo-annotations to add in a round."""
        if per_round >= 1:
            return int(per_round)
        active = np.isin(np.concatenate([a.worker for a in self.no_candidates]), self.workers)
        n_pairs = len(np.unique(np.concatenate([_pair_codes(a) for a in self.no_candidates])[active]))
        return max(1, round(per_round * (self.all.n_items * len(self.workers) - n_pairs)))

    def with_pseudo(self, triples: npt.NDArray[np.int64]) -> LabelPool:
        """Return a pool with these further pseudo-annotations, (n, 3)."""
        return replace(self, pseudo=(*self.pseudo, triples))

    def weight(self, pseudo_weight: float) -> npt.NDArray[np.float64]:
        """Return the weight in the loss of each annotation of `all`: 1 for a label, `pseudo_weight` otherwise."""
        return np.where(np.isin(_pair_codes(self.all), _pair_codes(self.labels)), 1.0, pseudo_weight)


def _pair_codes(annotations: Annotations) -> npt.NDArray[np.int64]:
    return annotations.item.astype(np.int64) * annotations.n_workers + annotations.worker


# ----------------------------------------------------------------------------------------------------
# Section 2.1, deep crowdlayer base learning model.
#
#     Eq. 1    p(label | x, w) = softmax(f(x) W_w),   f(x) the softmax output of the network
#     Eq. 2    L = sum over items and workers with a label of the loss of that label
#
# Both are those of the base method: its network f, its noise layers W, and `NoiseModel.train`, which has the mean over
# the labels of a mini-batch in place of the sum.


_BASES = ("crowd-layer", "conal", "spee-lfc", "trace-reg")  # the paper has the crowd layer


# ----------------------------------------------------------------------------------------------------
# Section 2.2, distribution aware confidence measure: pseudo-annotations of pairs without a label.
#
#     pseudo-annotation of (i, w)  =  argmax_c p_c,   p_c = p(label = c | x_i, w) of Eq. 1
#     Eq. 3    entropy = -sum_c p_c log p_c;   a low one means a confident prediction
#     Eq. 4    M_c = t_c M pseudo-annotations of class c are selected, those of lowest entropy;   sum_c t_c = 1
#     Eq. 5    t_c ~ 1 / N'_c,   N'_c pseudo-annotations of class c among all the generated ones
#
# The quotas M_c are integers that sum to M wherever there are enough candidates (`inverse_quotas`; `levelling_quotas`
# is ours); `_core.neighbours.select` then selects candidates from a stream.
#
# Confident pseudo-annotations are mostly of frequent classes, so that selection by confidence alone makes the frequent
# classes more frequent. The quotas of Eq. 4 select more of a class, the rarer it is.
#
# Pseudo-annotations are computed for a block of items at a time, so that memory stays at a few million numbers whatever
# the number of pairs; an array over all items, workers and classes is never built.


_BLOCK_NUMBERS = 1 << 19  # log-probabilities in a block, ours: these stay in the processor's cache


class PseudoAnnotationBlock(NamedTuple):
    """Pseudo-annotations of a block of consecutive items by each of some workers."""

    first: int  # the first item of the block
    label: npt.NDArray[np.int16]  # (n_block, n_workers); the most likely label of each pair; the first one of a tie
    # (n_block, n_workers); entropy of the label's distribution in nats (Eq. 3); infinite where the pair has a label
    entropy: npt.NDArray[np.float32]


@torch.no_grad()
def predict_pseudo_annotations(
    log_answers: Callable[[npt.NDArray[np.intp]], torch.Tensor],
    worker: npt.NDArray[np.intp],
    n_classes: int,
    no_candidates: Sequence[Annotations],
) -> Iterator[PseudoAnnotationBlock]:
    """Predict the labels of all pairs of an item and one of these workers, and their entropy (Eq. 3).

    Pairs with a label in `no_candidates` have an infinite entropy.

    Shapes: worker (n_workers,).
    """
    n_items = no_candidates[0].n_items
    place = np.full(no_candidates[0].n_workers, -1)
    place[worker] = np.arange(len(worker))
    block = max(1, _BLOCK_NUMBERS // max(1, len(worker) * n_classes))
    for first in range(0, n_items, block):
        last = min(first + block, n_items)
        log_proba = log_answers(np.arange(first, last))
        entropy = -(log_proba.exp() * log_proba).sum(1).cpu().numpy()
        for labels in no_candidates:
            begin, end = labels.start[[first, last]]
            item, column = labels.item[begin:end] - first, place[labels.worker[begin:end]]
            entropy[item[column >= 0], column[column >= 0]] = np.inf
        yield PseudoAnnotationBlock(first, _most_likely(log_proba).cpu().numpy(), entropy)


def _most_likely(log_proba: torch.Tensor) -> torch.Tensor:
    """(n, n_workers) the most likely label, the first of a tie; ten times as fast as torch's argmax on this axis."""
    highest = log_proba.amax(1)
    label = torch.zeros(highest.shape, dtype=torch.int16, device=log_proba.device)
    for k in reversed(range(log_proba.shape[1])):
        label.masked_fill_(log_proba[:, k] == highest, k)
    return label


def inverse_quotas(available: npt.ArrayLike, total: int) -> Counts:
    """Quotas in inverse proportion to the number of candidates of each class, so that rare classes come first.

        t_c = (1 / N'_c) / sum_k (1 / N'_k),   M_c = t_c M        (Eq. 4 and 5)

    with N'_c the number of candidates of class c (`available`) and M the requested number (`total`), then rounded.
    What a class cannot provide is taken from the others, in the same proportion. Every class with candidates gets at
    least one, if `total` allows.

    Examples
    --------
    >>> inverse_quotas([100, 200, 400], 70).tolist()
    [40, 20, 10]
    >>> inverse_quotas([3, 200, 400], 63).tolist()
    [3, 40, 20]

    Shapes: available (n_classes,); returns (n_classes,).
    """
    stock = np.asarray(available, np.int64)
    return share_out(total, np.where(stock > 0, 1 / np.maximum(stock, 1), 0.0), stock)


def levelling_quotas(counts: npt.ArrayLike, available: npt.ArrayLike, total: int) -> Counts:
    """Quotas that raise the least frequent classes first, until all have the same count (not in the paper).

    Examples
    --------
    >>> levelling_quotas([10, 4, 0], [100, 100, 100], 16).tolist()
    [0, 6, 10]

    Shapes: counts (n_classes,); available (n_classes,); returns (n_classes,).
    """
    before, stock = np.asarray(counts, np.int64), np.asarray(available, np.int64)
    total = int(min(total, stock.sum()))
    low, high = int(before.min(initial=0)), int((before + stock).max(initial=0))
    while low < high:  # binary search for the highest level that can be reached
        middle = (low + high + 1) // 2
        low, high = (middle, high) if _up_to_level(before, stock, middle).sum() <= total else (low, middle - 1)
    quotas = _up_to_level(before, stock, low)
    next_class = np.flatnonzero(_up_to_level(before, stock, low + 1) > quotas)  # the rest is less than one for each
    quotas[next_class[: total - int(quotas.sum())]] += 1
    return quotas


def _up_to_level(before: Counts, stock: Counts, level: int) -> Counts:
    """How many candidates raise each class to this level."""
    return np.clip(level - before, 0, stock)


# ----------------------------------------------------------------------------------------------------
# Line 13 of Algorithm 1, "until expected performance reached": held-out labels compare rounds (not in the paper).


@dataclass(frozen=True, eq=False)
class HeldoutMetric:
    """Class-balanced held-out log-likelihood of a classifier: one metric for all rounds, fixed after the first.

    It uses the classifier's p(k | x) and confusion matrices from the observed labels, not the noise layers: those
    become overconfident about a worker the more pseudo-annotations of that worker they were trained on. Each label
    is weighted by the inverse of the posterior frequency of its item's class, so that all classes count the same.
    """

    heldout: Annotations
    confusion: Array  # (n_workers + 1, n_classes, n_classes); confusion matrices from the observed labels
    shares: Array  # (n_classes,)
    weight: Array  # (n_annotations,); weight of each held-out label; the mean is 1

    @classmethod
    def from_network(cls, context: TrainingContext, network: nn.Module) -> HeldoutMetric | None:
        """Return the metric that follows from the posterior of a first network; None without held-out labels."""
        if context.heldout is None:
            return None
        votes = context.annotations
        posterior = combine(probabilities(network, context.data.rows), votes, context.data.gold)
        shares = class_shares(votes, posterior)
        weight = (posterior / shares).sum(axis=1)[context.heldout.item]
        return cls(context.heldout, worker_confusions(votes, posterior), shares, weight / weight.mean())

    def measure(self, network: nn.Module, rows: Rows) -> Array:
        """Return the weighted log-likelihood of each held-out label, (n_annotations,).

        Shapes: returns (n_annotations,).
        """
        item = np.unique(self.heldout.item).astype(np.intp)
        proba = np.zeros((self.heldout.n_items, len(self.shares)))
        proba[item] = probabilities(network, rows, item)
        return self.weight * label_log_likelihoods(proba, self.confusion, self.shares, self.heldout)


@dataclass
class RoundRecord:
    """The history of self-training rounds, and the network of the last round that is as good as the best.

    Held-out labels are few, so a round counts as as good as the best where the mean difference in log-likelihood,
    label by label, is within one standard error. Without held-out labels rounds cannot be compared.
    """

    patience: int | None  # stop after this many rounds that are worse; None keeps the last round
    metric: HeldoutMetric | None
    rows: Rows  # features of all items
    heldout: list[Array] = field(default_factory=list)  # log-likelihood of each held-out label, per round
    history: History = field(default_factory=list)  # epochs of all rounds
    best: int = 0  # number of the round that is kept
    modules: Any = None  # network and noise layer of that round

    def __len__(self) -> int:
        return len(self.heldout)

    def add(self, epochs: History, network: nn.Module, layer: nn.Module) -> None:
        """Record a round: its epochs, its network and its noise layer."""
        self.history += [epoch | {"round": float(len(self))} for epoch in epochs]
        empty = np.zeros(0)
        self.heldout.append(empty if self.metric is None else self.metric.measure(network, self.rows))
        if self.patience is None or _is_as_good(self.heldout[-1], self.heldout):
            self.best, self.modules = len(self) - 1, copy.deepcopy((network, layer))

    @property
    def is_over(self) -> bool:
        """Whether `patience` rounds have passed since the one that is kept."""
        return self.patience is not None and len(self) - 1 - self.best >= self.patience


def _is_as_good(this: Array, rounds: list[Array]) -> bool:
    """Whether a round is within one standard error (ours) of the best one."""
    if len(this) < 2:
        return True
    best = max(rounds, key=lambda scores: float(scores.mean()))
    difference = best - this
    return bool(difference.mean() <= difference.std(ddof=1) / math.sqrt(len(difference)))


# ----------------------------------------------------------------------------------------------------
# Section 2.2, Algorithm 1: the Self-Crowd framework. `SelfCrowd._learn` has its lines, the methods below it the steps.


# The settings of `SelfCrowd.plus` that differ from the paper's; chosen on simulated crowds (see its docstring).
_PLUS = {"evidence": "labels", "rounds": 4, "round_patience": 2, "pseudo_weight": 0.3, "init": "dawid-skene"}
_PLUS_TRAINING = {"weight_decay": 0.0, "batch_size": 64, "max_epochs": 50, "patience": 10, "validation": 0.1}


class SelfCrowd(CrowdClassifier):
    """Self-training for sparse and imbalanced crowds: pseudo-annotations are added in rounds, rare classes first.

    A noise-layer method is trained in rounds. After each round, pseudo-annotations for pairs of item and worker
    without a label are selected within class quotas and added to the labels; then a new network is trained. Workers
    without labels and held-out pairs get no pseudo-annotations.

    The defaults are the paper's settings: a crowd layer from the identity, hard pseudo-annotations of weight 1, all
    14 rounds, no held-out labels, L2 weight decay on all layers. `SelfCrowd.plus` has ours, which stop by held-out
    labels. Features are used as they are. Scaling is part of the setting: with few steps and weight decay, features
    scaled to mean 0 and variance 1 give other results than features as a pretrained network computes them.

    Where the print contradicts itself, this is the reading. Section 2.2 says that the majority is oversampled and the
    minority undersampled; abstract and Eq. 4 and 5 say the opposite, which is implemented. The text of Eq. 6 has the
    largest and the smallest class swapped: R = (largest - smallest) / total. 14 rounds of 10,000 pseudo-annotations fit
    only the ten augmented copies of each image of the paper's LabelMe: 10,000 are 1.8 % of its 564,530 pairs without a
    label, and `per_round` is that share. As we read Figure 3b, the pseudo-annotations of each round have a low R; this
    cannot follow from Eq. 5, which is inverse to the pool and so selects more of rare classes than of frequent ones.
    That the method "greatly alleviates the class-imbalance" (Section 3.2, Figure 3c) is said of labels and
    pseudo-annotations together, where it holds. Where a class has fewer candidates than its M_c, the other classes
    get the rest. The paper's 25 epochs of batch 512 are 500 gradient steps a round on its 10,000 augmented rows; with
    the same defaults they are 50 on 1,000 rows.

    Use it where items have few labels and some classes are rare; with many labels per item the base method is faster.

    Parameters
    ----------
    base : {"crowd-layer", "conal", "spee-lfc", "trace-reg"} or estimator, default="crowd-layer"
        The noise-layer method that is trained, by name or with parameters of its own, as in ``CrowdLayer(form="vw")``.
        `init` and the network options are those given here.
    evidence : {"features", "labels"}, default="features"
        Class distribution of an item from which pseudo-annotations are computed: "features" takes the network's
        p(k | x), as in the paper; "labels" the posterior given features and observed labels.
    selection : {"balanced", "confidence", "random"}, default="balanced"
        How pseudo-annotations are selected: within a quota per class, the most confident overall, or at random.
    quota : {"pool", "combined"}, default="pool"
        "pool": inversely proportional to the candidates of each class, as in the paper; "combined": more of the
        classes that are smallest among labels and pseudo-annotations so far.
    rounds : int, default=14
        Maximal number of rounds; 0 is the base method.
    per_round : float or int, default=0.018
        Pseudo-annotations added in each round: a share of the pairs without a label if below 1, or their number.
    round_patience : int or None, default=None
        Early stopping: rounds whose held-out log-likelihood is worse than the best by more than a standard error
        before the rounds stop; the last round before these is returned. None returns the last round; so does a crowd
        that is too small to hold out ten labels.
    pseudo_weight : float, default=1.0
        Weight of a pseudo-annotation in the loss; a label has weight 1.
    warm_start : bool, default=False
        Whether a round continues with the weights of the round before, for `warm_epochs`, instead of new ones.
    warm_epochs : int, default=5
        Maximal number of epochs of each round with a warm start.
    init : str or Aggregator, default="identity"
        Initial noise layers: the identity, or the confusion matrices estimated by this aggregator.
    backbone : {"mlp", "convnet"} or callable, default="mlp"
        Network from features to logits: a multi-layer perceptron, a small convolutional network, or a function
        (n_features or row shape, n_classes) -> torch.nn.Module.
    hidden : tuple of int, default=(128,)
        Sizes of the hidden layers.
    dropout : float, default=0.5
        Dropout rate of the hidden layers.
    batch_norm : bool, default=False
        Whether hidden layers are batch-normalised.
    learning_rate : float, default=0.001
        Step size of Adam.
    weight_decay : float, default=0.0005
        L2 penalty of Adam on all weights, those of noise layers included: `weight_decay` times the weights is added to
        their gradient.
    batch_size : int, default=512
        Items per mini-batch.
    max_epochs : int, default=25
        Maximal number of epochs of each round.
    patience : int or None, default=None
        Early stopping: epochs without a higher held-out log-likelihood before training stops; None trains for
        `max_epochs`.
    validation : float, default=0.0
        Share of the labels held out for early stopping of epochs and rounds; nothing is held out with 0, or with fewer
        than ten labels.
    device : str, default="cpu"
        Device of torch: "cpu", "cuda", "auto" (a GPU where there is one) or another name.
    checkpoint : str, Path or None, default=None
        Folder of checkpoints, from which an interrupted fit resumes with the same result; needs a `random_state`.
    random_state : int, numpy.random.Generator or None, default=None
        Seed of initial weights, shuffling, dropout and the held-out split.

    Attributes
    ----------
    rounds_ : list of dict
        One dict per "round" from 0: "n_selected"; of the pseudo-annotations of this round "selected_imbalance" (R of
        Eq. 6), "selected_shares" (of each class) and "selected_spread" (their standard deviation); the same of labels
        and pseudo-annotations together as `combined_...`; and "heldout" (mean class-balanced held-out log-likelihood)
        where labels are held out.
    best_round_ : int
        The round whose network is `module_`.
    selected_counts_ : ndarray of shape (n_rounds, n_classes)
        Pseudo-annotations selected in each round, by class.
    combined_counts_ : ndarray of shape (n_rounds, n_classes)
        Labels and pseudo-annotations together, by class.
    pseudo_annotations_ : Annotations
        The pseudo-annotations that `module_` was trained on; they are not saved.
    confusion_ : ndarray of shape (n_workers, n_classes, n_classes)
        Label distribution of each worker given the true class by the noise layers; other attributes of the base
        method's noise model are set too.

    References
    ----------
    Y. Shi, S.-Y. Li and S.-J. Huang (2021), Learning from crowds with sparse and imbalanced annotations, arXiv
    2107.05039.
    F. Rodrigues and F. Pereira (2018), Deep learning from crowds, AAAI (the crowd layer, Section 2.1).

    Examples
    --------
    >>> import numpy as np
    >>> from manyhands import Annotations, SelfCrowd
    >>> X = np.repeat([[0.0, 1.0], [1.0, 0.0]], 30, axis=0)
    >>> votes = Annotations.from_matrix(np.repeat([[0, 0, -1], [1, -1, 1]], 30, axis=0))
    >>> model = SelfCrowd(rounds=2, learning_rate=0.01, random_state=0).fit(X, votes)
    >>> model.predict([[0.0, 1.0], [1.0, 0.0]]).tolist()
    [0, 1]
    """

    _of_items: ClassVar[tuple[str, ...]] = (*CrowdClassifier._of_items, "pseudo_annotations_")
    _constraints: ClassVar[dict[str, Constraint]] = NOISE_LAYER_CONSTRAINTS | {
        "base": NameOr(_BASES, "noise_model", "a noise-layer method"),
        "evidence": OneOf(("features", "labels")),
        "selection": OneOf(("balanced", "confidence", "random")),
        "quota": OneOf(("pool", "combined")),
        "rounds": Number(whole=True, least=0),
        "per_round": FractionOrCount(),
        "round_patience": NoneOr(Number(whole=True, least=1)),
        "pseudo_weight": Number(above=0),
        "warm_start": Boolean(),
        "warm_epochs": Number(whole=True, least=1),
    }

    rounds_: list[dict[str, Any]]
    best_round_: int
    selected_counts_: npt.NDArray[Any]
    combined_counts_: npt.NDArray[Any]
    pseudo_annotations_: Annotations
    confusion_: Array

    def __init__(
        self,
        base: Any = "crowd-layer",
        evidence: str = "features",
        selection: str = "balanced",
        quota: str = "pool",
        rounds: int = 14,  # Section 3.2
        per_round: float = 0.018,  # Section 3.2: 10,000, as a share of the augmented LabelMe (see the docstring)
        round_patience: int | None = None,
        pseudo_weight: float = 1.0,
        warm_start: bool = False,
        warm_epochs: int = 5,  # ours; without a warm start each round trains a new network
        *,
        init: Any = "identity",
        backbone: Any = "mlp",
        hidden: tuple[int, ...] = (128,),  # this and dropout, learning rate, weight decay, batches, epochs: Section 3.1
        dropout: float = 0.5,
        batch_norm: bool = False,
        learning_rate: float = 1e-3,
        weight_decay: float = 5e-4,
        batch_size: int = 512,
        max_epochs: int = 25,
        patience: int | None = None,
        validation: float = 0.0,
        device: str = "cpu",
        checkpoint: str | Path | None = None,
        random_state: Seed = None,
    ) -> None:
        self.base = base
        self.evidence = evidence
        self.selection = selection
        self.quota = quota
        self.rounds = rounds
        self.per_round = per_round
        self.round_patience = round_patience
        self.pseudo_weight = pseudo_weight
        self.warm_start = warm_start
        self.warm_epochs = warm_epochs
        self.init = init
        self.backbone = backbone
        self.hidden = hidden
        self.dropout = dropout
        self.batch_norm = batch_norm
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.batch_size = batch_size
        self.max_epochs = max_epochs
        self.patience = patience
        self.validation = validation
        self.device = device
        self.checkpoint = checkpoint
        self.random_state = random_state

    @classmethod
    def plus(cls, **changes: Any) -> Self:
        """Self-Crowd with our settings, which were chosen on simulated crowds with an imbalance of ten to one.

        A crowd layer from Dawid-Skene's confusion matrices, pseudo-annotations that also use the item's labels, with
        weight 0.3, at most four rounds, held-out labels that stop epochs and rounds, and no weight decay.

        Parameters
        ----------
        **changes : object
            Constructor parameters that differ.

        Returns
        -------
        SelfCrowd
        """
        return cls().set_params(**(_PLUS | _PLUS_TRAINING | changes))

    def _learn(self, context: TrainingContext) -> FitResult:
        """Algorithm 1 of the paper, line by line."""
        base = nested_method(self, "base")
        model: NoiseModel = base.noise_model()
        context = context_for(base, context)
        # Lines 1 to 3: input D; M of Eq. 4 is set by the user.
        pool = LabelPool(context.annotations, context.heldout)
        n_per_round = pool.n_per_round(self.per_round)
        # Lines 5 and 6: train the crowdlayer model using the loss in Eq. 2 on D.
        network, layer = context.network(), initial_layer(context, model, self.init)
        epochs = model.train(context, network, layer)
        record = RoundRecord(self.round_patience, HeldoutMetric.from_network(context, network), context.data.rows)
        record.add(epochs, network, layer)
        # Line 8: repeat, until (line 13) all rounds are over or held-out labels show no better performance.
        while len(record) <= self.rounds and not record.is_over:
            # Lines 7 and 9: predict the pseudo-annotations of each worker on unannotated instances using Eq. 1, and
            # calculate their confidence scores according to Eq. 3. Line 7 stands under "Initialization" in the paper;
            # here it is repeated in every round ("We iteratively predict the unobserved annotations", Section 2.2), and
            # both are computed block by block while line 11 selects.
            candidates = partial(self._candidates, context, model, network, layer, pool)
            # Lines 10 and 11: calculate the selection number M_c of each class according to Eq. 4, and select the M_c
            # most confident pseudo-annotations within each class.
            triples = self._select(candidates, pool, n_per_round, context.rng)
            if len(triples) == 0:
                break
            # Line 12: add the selected pseudo-annotations to the training data and retrain the crowdlayer model.
            pool = pool.with_pseudo(triples)
            if not self.warm_start:
                network, layer = context.network(), initial_layer(context, model, self.init)
            epochs = model.train(self._round_context(context, pool), network, layer, resumed=self.warm_start)
            record.add(epochs, network, layer)
        # Line 4: output the classifier f.
        network, layer = record.modules
        results = model.results(layer, context) | _round_results(record, pool)
        return FitResult(network, record.history, results=results, notes=self._notes(record))

    def _candidates(
        self, context: TrainingContext, model: NoiseModel, network: nn.Module, layer: nn.Module, pool: LabelPool
    ) -> Iterator[PseudoAnnotationBlock]:
        """Lines 7 and 9: the most probable label of each worker on each item without one, and its entropy."""
        rows, device, worker = context.data.rows, context.device, torch.from_numpy(pool.workers).to(context.device)
        proba = probabilities(network, rows)  # (n_items, n_classes)
        if self.evidence == "labels":
            proba = combine(proba, context.annotations, context.data.gold)
        log_proba = torch.from_numpy(safe_log(proba)).float().to(device)
        with torch.no_grad():
            distribution = model.label_distribution(layer, worker)

        def log_labels(item: npt.NDArray[np.intp]) -> torch.Tensor:
            log_label: torch.Tensor = distribution(
                log_proba[item[0] : item[-1] + 1], lambda: as_tensor(rows, item, device)
            )
            return log_label

        return predict_pseudo_annotations(log_labels, pool.workers, context.n_classes, pool.no_candidates)

    def _select(
        self,
        candidates: Callable[[], Iterator[PseudoAnnotationBlock]],
        pool: LabelPool,
        n: int,
        rng: np.random.Generator,
    ) -> npt.NDArray[np.int64]:
        """Lines 10 and 11: the items, workers and labels of the selected pseudo-annotations, (n, 3)."""
        n_workers = len(pool.workers)

        def stream() -> Iterator[Candidates]:
            for first, label, entropy in candidates():
                score = entropy
                if self.selection == "random":
                    score = np.where(np.isfinite(entropy), rng.random(entropy.shape, np.float32), entropy)
                yield Candidates(first * n_workers, label.ravel(), score.ravel())

        def levelling(available: Counts, total: int) -> Counts:
            return levelling_quotas(pool.counts, available, total)

        rule = inverse_quotas if self.quota == "pool" else levelling
        quotas = rule if self.selection == "balanced" else None
        pair, label = select(stream, pool.all.n_classes, n, rng, quotas)
        item, column = np.divmod(pair, n_workers)
        return np.column_stack([item, pool.workers[column], label])

    def _round_context(self, context: TrainingContext, pool: LabelPool) -> TrainingContext:
        """Line 12: the context in which a round trains on labels and pseudo-annotations together."""
        if self.warm_start:
            context = context.with_options(max_epochs=self.warm_epochs)
        weight = None if self.pseudo_weight == 1 else pool.weight(self.pseudo_weight)
        stage = f"{context.stage}round-{len(pool.pseudo)}-"
        return replace(context, annotations=pool.all, weight=weight, stage=stage)

    def _uses_heldout(self) -> bool:
        return self.patience is not None or self.round_patience is not None

    def _notes(self, record: RoundRecord) -> dict[str, str]:
        if self.round_patience is None or self.validation == 0 or record.metric is not None or len(record) == 1:
            return {}
        return {"rounds_not_compared": "There are too few labels to hold any out, so the rounds could not be compared."}


# ----------------------------------------------------------------------------------------------------
# Section 3.2, results: what Figure 3 shows of each round.
#
#     Eq. 6    R = (N_max - N_min) / N_anno,   of the annotations of the most and the least frequent class


def _round_results(record: RoundRecord, pool: LabelPool) -> dict[str, Any]:
    """Return the fitted attributes about the rounds: counts, imbalance ratios, held-out scores, pseudo-annotations."""
    n_classes = pool.all.n_classes
    counts = np.bincount(pool.labels.label, minlength=n_classes)
    additions = np.array([np.zeros(n_classes, int), *(np.bincount(p[:, 2], minlength=n_classes) for p in pool.pseudo)])
    totals = counts + additions.cumsum(axis=0)
    rounds = [
        {"round": float(number), "n_selected": float(additions[number].sum())}
        | _class_figures("selected", additions[number])
        | _class_figures("combined", totals[number])
        | ({"heldout": float(heldout.mean())} if len(heldout) else {})
        for number, heldout in enumerate(record.heldout)
    ]
    empty = pool.labels.keep(np.zeros(0, np.intp))
    pseudo = np.concatenate([np.zeros((0, 3), np.int64), *pool.pseudo[: record.best]])
    return {
        "rounds_": rounds,
        "best_round_": record.best,
        "selected_counts_": additions,
        "combined_counts_": totals,
        "pseudo_annotations_": empty.with_more(*pseudo.T),
    }


def _class_figures(whose: str, counts: Counts) -> dict[str, Any]:
    """Imbalance ratio R (Eq. 6), class shares and their standard deviation; nothing where nothing was counted."""
    if counts.sum() == 0:
        return {}
    shares = counts / counts.sum()
    return {
        f"{whose}_imbalance": imbalance(counts),
        f"{whose}_spread": float(shares.std()),
        f"{whose}_shares": shares.tolist(),
    }
