"""ICED: W. Wang, J. Thekinen, X. Liu, Z. Liu and J. Tang, Learning from imbalanced crowdsourced labeled data, SDM.

From top to bottom in the order of the paper, with its numbers of sections, equations and algorithms:

- Section 2.2, framework overview: the classifier F = FC(G(x)), `EmbeddingNetwork`
- Section 2.3, true label inference (Eq. 2.1 and 2.2): `infer_true_labels`
- Section 2.4, synthetic data generation (Eq. 2.3 to 2.5): `synthesise`, `synthetic_labels`, `Decoder`
- Section 2.5, warm-up training strategy: `WarmUpTraining` (Algorithm 2 is in Appendix A, which is not at hand)
- Section 2.6, algorithm (Algorithm 1): `ICED._learn`, line by line; `Rounds` has its steps

The options of each step (`TruthInference`, `Synthesis`, `Certainty`, `WarmUp`) stand at the step. `ICED.plus()` is our
variant. Nothing here has the size items x workers: time and memory grow with the number of labels.

References
----------
A. P. Dawid and A. M. Skene (1979), Maximum likelihood estimation of observer error-rates using the EM algorithm,
Journal of the Royal Statistical Society: Series C 28 (Section 2.3).
N. Chawla, K. Bowyer, L. Hall and W. Kegelmeyer (2002), SMOTE: synthetic minority over-sampling technique, JAIR 16
(Section 2.4).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import nn
from torch.nn import functional as F

from manyhands._core.arrays import Array, Indices
from manyhands._core.neighbours import Points, nearest, nearest_others
from manyhands._core.randomness import Seed
from manyhands.annotations import Annotations
from manyhands.classes import up_to_largest
from manyhands.classifiers.base import CrowdClassifier
from manyhands.classifiers.network import NETWORK_CONSTRAINTS, FitResult, NetworkOptions, TrainingContext, new_backbone
from manyhands.em.confusion_em import ConfusionEM, fit_confusion_em
from manyhands.em.decisions import pick_classes
from manyhands.em.driver import run_em
from manyhands.em.e_step import Gold, has_no_redundancy, initial_posterior
from manyhands.em.kernels import PackedLabels, em_pass, pack, vote_share
from manyhands.em.noise import safe_log
from manyhands.em.priors import IMPOSSIBLE, ClassPrior, FixedPrior, class_prior, gold_offset
from manyhands.estimator import OptionGroup, Options
from manyhands.exceptions import TrainingError
from manyhands.features import Rows
from manyhands.heldout import worker_confusions
from manyhands.nn.backbones import as_tensor, mlp, outputs
from manyhands.nn.batches import AnnotationBatches, Batch, Codes
from manyhands.nn.losses import log_mixture, soft_cross_entropy
from manyhands.nn.train import Epochs, History, descend, run_epoch
from manyhands.validation import Boolean, Constraint, NoneOr, Number, OneOf, Probabilities

# ----------------------------------------------------------------------------------------------------
# Section 2.2, framework overview: the classifier F consists of a feature extractor G and a fully connected layer FC.


class EmbeddingNetwork(nn.Module):
    """Classifier F: the feature extractor G (`body`) and the fully connected layer FC (`head`)."""

    def __init__(self, body: nn.Module, embedding_size: int, n_classes: int) -> None:
        super().__init__()
        self.body, self.head = body, nn.Linear(embedding_size, n_classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the logits of rows of X, of shape (n_rows, n_classes)."""
        logits: torch.Tensor = self.head(self.body(x))
        return logits

    @torch.no_grad()
    def embed_and_classify(self, rows: Rows) -> tuple[torch.Tensor, torch.Tensor]:
        """Return embeddings z = G(x) and class log-probabilities of all rows, in evaluation mode, on the CPU."""
        embedding = outputs(self.body, rows).float()
        if not bool(embedding.isfinite().all()):
            raise TrainingError("The network's embeddings are no longer finite; lower learning_rate or standardise X.")
        logits = self.head(embedding.to(self.head.weight.device)).cpu().double()
        return embedding, logits.log_softmax(1)

    def logits_of_both(self, x: torch.Tensor, embedding: torch.Tensor, decoder: Decoder | None) -> torch.Tensor:
        """Return the logits of real rows, followed by those of synthetic embeddings, decoded or as they are.

        Shapes: x (n_real, ...); embedding (n_synthetic, embedding_size); returns (n_real + n_synthetic, n_classes).
        """
        if decoder is None:
            of_embedding: torch.Tensor = self.head(embedding)
            return torch.cat([self(x), of_embedding]) if len(x) else of_embedding
        with torch.no_grad():
            rows = decoder(embedding)
        logits: torch.Tensor = self(torch.cat([x, rows]))
        return logits


# ----------------------------------------------------------------------------------------------------
# Section 2.3, true label inference: EM of Dawid and Skene on the crowdsourced labels Y.
#
#     Eq. 2.1    Q(Y | Psi, Phi, T) ~ prod_i p(T_i = t_i) prod_w Psi_w(t_i, y_iw)
#     Psi        Psi_w(c, l) = d(w, c, l) / d(w, c),   labels l of worker w on items whose true label is c
#     Phi        Phi_c = items whose true label is estimated as c / items
#     Eq. 2.2    p(T_i = c | Y, Psi, Phi) ~ Phi_c prod_w Psi_w(c, y_iw)
#
# As published the labels T are hard (`_hard_em`). `ICED.plus()` runs soft EM, with class probabilities from the
# classifier and with confusion matrices that are shrunk toward the mean confusion matrix of the crowd.


_MAX_ITERATIONS = 100  # of one inference, ours; hard EM ends after a few, and the next round continues anyway
_TOLERANCE = 1e-6  # that of `DawidSkene`


@dataclass(frozen=True, repr=False)
class TruthInference(OptionGroup):
    """Options of the truth inference by Dawid-Skene in every round.

    Parameters
    ----------
    prior : {"estimated", "uniform", "uniform-start"} or array-like of shape (n_classes,), default="estimated"
        Class prior. "estimated": in every M step, as published. "uniform-start": uniform in the first E step, then
        estimated in every M step, as Sections 2.4 and 3.3 describe Dawid and Skene's method. "uniform": fixed at the
        uniform distribution. An array fixes it at these values. With `use_features` it has an effect only until the
        network is trained.
    em : {"hard", "soft"}, default="hard"
        "hard": confusion matrices by counts of the current labels, as published (classification EM). "soft": EM of
        Dawid and Skene, which counts the probabilities of the classes.
    smoothing : float, default=0.01
        Pseudo-count added to every cell of every confusion matrix.
    shrinkage : float, default=0.0
        Pseudo-labels added to each row of a worker's confusion matrix, distributed as in the mean confusion matrix of
        the crowd.
    use_features : bool, default=False
        Whether the network's class probabilities replace the class prior of an item, once the network is trained.
    """

    prior: str | npt.ArrayLike = "estimated"
    em: str = "hard"
    smoothing: float = 0.01  # the paper has none; without it a label never seen of a worker excludes a class
    shrinkage: float = 0.0
    use_features: bool = False

    _constraints: ClassVar[dict[str, Constraint]] = {
        "prior": Probabilities(("estimated", "uniform", "uniform-start")),
        "em": OneOf(("hard", "soft")),
        "smoothing": Number(above=0),
        "shrinkage": Number(least=0),
        "use_features": Boolean(),
    }


class TruthEstimate(NamedTuple):
    """Result of truth inference."""

    posterior: Array  # (n_items, n_classes); posterior of the items
    confusion: Array  # (n_workers, n_classes, n_classes); confusion matrices, as [worker, truth, label]


class ShrunkParams(NamedTuple):
    """Parameters of `ShrunkConfusions`."""

    log_confusion: Array  # (n_workers, n_classes, n_classes)
    crowd: Array  # (n_classes, n_classes); mean confusion matrix of the crowd, toward which they were shrunk


@dataclass(frozen=True)
class ShrunkConfusions:
    """Psi: one confusion matrix per worker; `plus` shrinks it toward the mean confusion matrix of the crowd.

        confusion[w, c, l] ~ counts[w, c, l] + smoothing + shrinkage * crowd[c, l]

    Here counts[w, c, l] is the paper's d(w, c, l). Without shrinkage this is `ConfusionNoise`. With it, `solve` does
    not maximise the objective exactly: the crowd's matrix, which is taken as given, is computed from the same counts.
    """

    smoothing: float  # pseudo-count of every cell, above 0
    shrinkage: float = 0.0  # pseudo-labels per row, distributed as the crowd's

    def solve(self, counts: Array, previous: ShrunkParams | None) -> ShrunkParams:
        """Return the parameters given counts or expected counts (M-step).

        Shapes: counts (n_workers, n_classes, n_classes).
        """
        crowd = counts.sum(axis=0) + 1.0 / counts.shape[2]  # ours: one pseudo-label per row, so that no row is empty
        crowd /= crowd.sum(axis=1, keepdims=True)
        labels = counts + self.smoothing + self.shrinkage * crowd
        return ShrunkParams(np.log(labels) - np.log(labels.sum(axis=2, keepdims=True)), crowd)

    def log_confusion(self, params: ShrunkParams) -> Array:
        """Return log p(label | truth) as [worker, truth, label]."""
        return params.log_confusion

    def log_penalty(self, params: ShrunkParams) -> float:
        """Return the log prior density of the parameters that the pseudo-counts stand for."""
        weight = self.smoothing + self.shrinkage * params.crowd
        return float((weight * params.log_confusion).sum())


def infer_true_labels(
    annotations: Annotations,
    gold: Gold,
    noise: ShrunkConfusions,
    prior: str | npt.ArrayLike,
    *,
    hard: bool = False,
    log_class_proba: Array | None = None,
) -> TruthEstimate:
    """Infer the true labels by EM from the majority vote: hard as published (`_hard_em`), or that of Dawid and Skene.

    Without redundancy it is soft EM, in which nothing can be compared: the labels are taken as they are.

    Shapes: gold (n_items,); prior (n_classes,); log_class_proba (n_items, n_classes).
    """
    class_model = _class_prior(annotations, gold, prior, noise.smoothing)
    offset = gold_offset(gold, annotations.n_classes)
    if log_class_proba is not None:
        offset = log_class_proba if offset is None else log_class_proba + offset
    model = ConfusionEM(PackedLabels(pack(annotations), offset), noise, class_model)
    first_prior = None
    if _is_named(prior, "uniform-start"):
        first_prior = _class_prior(annotations, gold, "uniform", noise.smoothing).solve(np.zeros(annotations.n_classes))
    redundant = log_class_proba is not None or not has_no_redundancy(annotations, gold)
    if hard and redundant:
        return _hard_em(model, first_prior)
    if log_class_proba is not None or (redundant and first_prior is not None):
        return _soft_em(model, initial_posterior(annotations, gold), first_prior)
    fit = fit_confusion_em(annotations, noise, class_model, gold=gold, max_iter=_MAX_ITERATIONS, tol=_TOLERANCE)
    assert fit.final.posterior is not None
    return TruthEstimate(fit.final.posterior, np.exp(fit.log_confusion))


def _class_prior(annotations: Annotations, gold: Gold, prior: str | npt.ArrayLike, smoothing: float) -> ClassPrior:
    """Return the class prior; a uniform one excludes classes without any label, which would attract all odd items."""
    if not _is_named(prior, "uniform"):
        prior = "estimated" if _is_named(prior, "uniform-start") else prior
        return class_prior(prior, annotations.n_classes, smoothing)
    has_label = np.zeros(annotations.n_classes, bool)
    has_label[annotations.label] = True
    if gold is not None:
        has_label[gold[gold >= 0]] = True
    return FixedPrior(np.where(has_label, -np.log(max(has_label.sum(), 1)), IMPOSSIBLE))


def _is_named(prior: str | npt.ArrayLike, name: str) -> bool:
    """Whether the prior is the one of this name."""
    return isinstance(prior, str) and prior == name


def _hard_em(model: ConfusionEM[ShrunkParams], first_prior: Array | None) -> TruthEstimate:
    """The EM of Section 2.3: true labels T are hard (classification EM); from the majority vote, until none changes.

    The paper does not say where EM starts.
    """
    labels = _in_memory(model)
    packed, n_classes = labels.packed, labels.n_classes
    no_item = np.zeros(packed.n_items, bool)  # every item gets a class; without labels, by the prior
    votes = np.repeat(np.eye(n_classes)[None], packed.n_workers, axis=0)  # a score of 1 for every vote
    posterior = em_pass(packed, votes, np.zeros(n_classes), labels.offset, want_posterior=True).posterior
    if first_prior is not None and posterior is not None:
        start = np.eye(n_classes)[pick_classes(posterior, no_item)[0]]
        posterior = _posterior_under(model, start, first_prior)
    true_labels = None
    for _ in range(_MAX_ITERATIONS):
        assert posterior is not None
        # Choose the label with the largest probability as the estimated true label T.
        previous, true_labels = true_labels, pick_classes(posterior, no_item)[0]
        if previous is not None and np.array_equal(previous, true_labels):
            break
        # E step: the likelihood Q(Y | Psi, Phi, T), Eq. 2.1, by the counts d(w, c, l) and the items per class under T.
        statistics = _expected_statistics(model, np.eye(n_classes)[true_labels])
        # M step: Psi = d(w, c, l) / d(w, c) and Phi = share of the items of class c maximise the likelihood.
        params = model.maximise(statistics, None)
        # M step, refined true labels: Eq. 2.2, p(T_i = c | Y, Psi, Phi) ~ Phi_c prod_w Psi_w(c, y_iw).
        posterior = model.pass_at(params, want_posterior=True).posterior
    assert posterior is not None
    return TruthEstimate(posterior, np.exp(params.noise.log_confusion))


def _soft_em(model: ConfusionEM[ShrunkParams], start: Array, first_prior: Array | None) -> TruthEstimate:
    """EM from this initial posterior; with a class prior of its own in the first E step."""
    if first_prior is not None:
        start = _posterior_under(model, start, first_prior)
    statistics = _expected_statistics(model, start)
    result = run_em(model, statistics, max_iter=_MAX_ITERATIONS, tol=_TOLERANCE)
    posterior = model.pass_at(result.params, want_posterior=True).posterior
    assert posterior is not None
    return TruthEstimate(posterior, np.exp(result.params.noise.log_confusion))


def _posterior_under(model: ConfusionEM[ShrunkParams], start: Array, log_prior: Array) -> Array:
    """Posterior by one M step from `start` and one E step with this class prior."""
    params = model.maximise(_expected_statistics(model, start), None)
    posterior = model.pass_at(replace(params, log_prior=log_prior), want_posterior=True).posterior
    assert posterior is not None
    return posterior


def _expected_statistics(model: ConfusionEM[ShrunkParams], posterior: Array) -> Array:
    """Counts d(w, c, l) and items per class under this posterior, (n_items, n_classes), as one flat array."""
    packed, n_classes = _in_memory(model).packed, model.labels.n_classes
    no_labels = np.zeros((packed.n_workers, n_classes, n_classes))
    return model.statistics(em_pass(packed, no_labels, np.zeros(n_classes), safe_log(posterior)), None)


def _in_memory(model: ConfusionEM[ShrunkParams]) -> PackedLabels:
    """Return the labels of the model, which `infer_true_labels` packed."""
    assert isinstance(model.labels, PackedLabels)
    return model.labels


def one_hot(posterior: Array) -> Array:
    """Return the hard labels T: 1 for the most probable class of each row, else 0.

    Shapes: posterior (n_items, n_classes); returns (n_items, n_classes).
    """
    code, _ = pick_classes(posterior, np.zeros(len(posterior), bool))
    return np.asarray(np.eye(posterior.shape[1])[code])


def log_class_shares(posterior: Array) -> Array:
    """Return the log share of each class; a pseudo-count of one item per class (ours) keeps the log finite.

    Examples
    --------
    >>> np.exp(log_class_shares(np.array([[1.0, 0.0], [1.0, 0.0]]))).tolist()
    [0.75, 0.25]

    Shapes: posterior (n_items, n_classes); returns (n_classes,).
    """
    return np.asarray(np.log((posterior.sum(axis=0) + 1.0) / (len(posterior) + posterior.shape[1])))


# ----------------------------------------------------------------------------------------------------
# Section 2.4, synthetic data generation: minority items in the embedding, and labels of the workers on them.
#
#     candidates    the m items whose inferred true label is the minority class
#     Eq. 2.3       z' = z_i + delta (z_r - z_i),   r one of the k nearest candidates of i (Section 4.2: within the
#                   class); R times for each candidate
#     Eq. 2.4       S_i = 1 / (variance of the labels of item i + epsilon)
#     Eq. 2.5       delta = S_i / (S_i + S_r) + eta
#     labels of z'  by the labels of the k nearest real items
#     Q             decoder, pre-trained, that maps z' to the space of the features

# Per class, and of the real items among which neighbours are searched; of more items a random subset is taken. The
# search compares all pairs: 25 million distances for this many (ours; the paper has at most 3,080 items).
MAX_CANDIDATES = 5_000
_REFIT_EPOCHS = 3  # of the decoder in a round, with decoder="refit"; our choice, the paper has no such step


@dataclass(frozen=True, repr=False)
class Synthesis(OptionGroup):
    """Options of the synthetic items of minority classes, on which truth inference and the network also train.

    Parameters
    ----------
    delta : {"intent", "paper", "smote"}, default="intent"
        Where a synthetic item lies between two items i and r in the embedding. "intent": near the more certain of
        them, S_r / (S_i + S_r), as the text of the paper describes it. "paper": S_i / (S_i + S_r) as Eq. 2.5 is
        printed, which is near the less certain one. "smote": uniform.
    delta_noise : float, default=0.2
        Half width of the uniform noise on that position.
    n_neighbors : int, default=5
        Number of nearest candidates among which r is drawn, and of nearest real items from which the labels of a
        synthetic item are taken.
    size : {"repeat", "fixed", "balance"}, default="repeat"
        Number of synthetic items of a class. "repeat": in every round R per candidate, as published, where R + 1 is
        the ratio of the largest class to this one by the labels of the first synthesis. "fixed": in every round what
        the class lacks to the largest class by these labels. "balance": what it lacks by the labels inferred last.
    candidates : {"all", "agree"}, default="all"
        Items between which synthetic items are interpolated: "all" items inferred to be of the class, as published,
        or those that the network also assigns to it ("agree").
    first_labels : {"inferred", "vote"}, default="inferred"
        Labels of the first synthesis: those of a truth inference on the original labels, as in Section 2.4 of the
        paper, or the majority vote.
    labels : {"mode", "sample"}, default="mode"
        Label of a worker for a synthetic item: the most frequent of the worker's labels on its neighbours, or one of
        them drawn at random.
    decoder : {"frozen", "refit", "latent"}, default="frozen"
        How the network reads a synthetic embedding. "frozen": through a decoder as it was pre-trained, as published.
        "refit": through a decoder that is updated in every round, since the embedding changes. "latent": without a
        decoder and without pre-training; synthetic items then train the last layer alone.
    pretrain_epochs : int, default=30
        Epochs of the autoencoder that initialises network and decoder.
    """

    delta: str = "intent"
    delta_noise: float = 0.2  # ours; the paper gives no value
    n_neighbors: int = 5  # that of SMOTE; the paper gives no value
    size: str = "repeat"
    candidates: str = "all"
    first_labels: str = "inferred"
    labels: str = "mode"
    decoder: str = "frozen"
    pretrain_epochs: int = 30  # ours; the paper gives no value

    _constraints: ClassVar[dict[str, Constraint]] = {
        "delta": OneOf(("intent", "paper", "smote")),
        "delta_noise": Number(least=0, most=1),
        "n_neighbors": Number(whole=True, least=1),
        "size": OneOf(("repeat", "fixed", "balance")),
        "candidates": OneOf(("all", "agree")),
        "first_labels": OneOf(("inferred", "vote")),
        "labels": OneOf(("mode", "sample")),
        "decoder": OneOf(("frozen", "refit", "latent")),
        "pretrain_epochs": Number(whole=True, least=0),
    }


class SyntheticLabels(NamedTuple):
    """Labels of synthetic points as triples."""

    point: npt.NDArray[np.int64]  # index of the synthetic point
    worker: npt.NDArray[np.int64]  # code of the worker
    label: npt.NDArray[np.int64]  # code of the class


class SyntheticItems(NamedTuple):
    """Synthetic items and their labels."""

    points: Points
    labels: SyntheticLabels  # labels of the workers
    n_of_class: npt.NDArray[np.int64]  # number of items generated from the candidates of each class


def synthesise(
    options: Synthesis,
    annotations: Annotations,
    embedding: Points,
    certainty: Array,
    candidates: Sequence[Indices],
    n_wanted: npt.NDArray[np.int64],
    rng: np.random.Generator,
) -> SyntheticItems:
    """Generate synthetic items from the candidates of each class, with labels of the workers.

    Shapes: certainty (n_items,).
    """
    k, rule, noise = options.n_neighbors, options.delta, options.delta_noise
    points_of_class = [
        synthetic_points(embedding[c], certainty[c], n, rng, k=k, rule=rule, noise=noise)
        for c, n in zip(candidates, n_wanted.tolist())
    ]
    points = np.concatenate([embedding[:0], *points_of_class])
    items = np.flatnonzero(annotations.n_labels)
    real = items[random_subset(len(items), MAX_CANDIDATES, rng)]
    neighbours = real[nearest(embedding[real], points, k)]
    labels = synthetic_labels(annotations, neighbours, options.labels, rng)
    return SyntheticItems(points, labels, np.array([*map(len, points_of_class)], np.int64))


def synthesis_plan(
    size: str,
    items: Indices,
    true_labels: npt.NDArray[Any],
    n_at_first: npt.NDArray[Any],
    predictions: npt.NDArray[Any] | None = None,
) -> tuple[list[Indices], npt.NDArray[np.int64]]:
    """Return the m candidates of each class, by the inferred true labels, and how many items to generate from them."""
    n_classes = len(n_at_first)
    candidates = [items[true_labels == k] for k in range(n_classes)]
    if predictions is not None:
        subsets = [own[predictions[own] == k] for k, own in enumerate(candidates)]  # those on which both agree
        candidates = [both if len(both) > 1 else own for both, own in zip(subsets, candidates)]
    n_candidates = np.array([*map(len, candidates)], np.int64)
    n_inferred = np.bincount(true_labels, minlength=n_classes)
    return candidates, synthesis_counts(size, n_at_first, n_inferred, n_candidates)


def synthesis_counts(
    size: str, n_at_first: npt.NDArray[Any], n_inferred: npt.NDArray[Any], n_candidates: npt.NDArray[Any]
) -> npt.NDArray[np.int64]:
    """Return the number of synthetic items of each class: R x m with "repeat".

    Examples
    --------
    >>> synthesis_counts("repeat", np.array([90, 10]), np.array([80, 20]), np.array([80, 15])).tolist()
    [0, 120]
    """
    if size == "repeat":
        repeats = np.rint(n_at_first.max(initial=0) / np.maximum(n_at_first, 1)) - 1
        return np.asarray(np.where(n_at_first > 0, repeats * n_candidates, 0), np.int64)
    return up_to_largest(n_inferred if size == "balance" else n_at_first)


def synthetic_points(
    candidates: Points,
    certainty: Array,
    n_wanted: int,
    rng: np.random.Generator,
    *,
    k: int = 5,  # this and the noise as in `Synthesis`
    rule: str = "intent",
    noise: float = 0.2,
) -> Points:
    """Return points between candidates of one class and their neighbours; each starts about equally many of them.

    Shapes: certainty (n,).
    """
    if len(candidates) < 2 or n_wanted <= 0:
        return candidates[:0]
    subset = random_subset(len(candidates), MAX_CANDIDATES, rng)
    candidates, certainty = candidates[subset], certainty[subset]
    neighbours = nearest_others(candidates, k)  # step (i) of Section 2.4
    begin = np.resize(rng.permutation(len(candidates)), n_wanted)
    end = neighbours[begin, rng.integers(neighbours.shape[1], size=n_wanted)]  # step (ii)
    delta = interpolation_weights(rule, certainty[begin], certainty[end], noise, rng)
    return interpolate(candidates[begin], candidates[end], delta)


def random_subset(n: int, most: int, rng: np.random.Generator) -> Indices:
    """Return the numbers below n, or `most` of them at random, in increasing order."""
    return np.arange(n) if n <= most else np.sort(rng.choice(n, most, replace=False))


def interpolate(point: Points, other: Points, delta: Array) -> Points:
    """Return z' = z + delta (z_r - z) for each row (Eq. 2.3), of shape (n, n_dimensions)."""
    return np.asarray(point + delta[:, None].astype(point.dtype) * (other - point))


@dataclass(frozen=True, repr=False)
class Certainty(OptionGroup):
    """Options of the label certainty S_i = 1 / (variance of the labels of item i + epsilon).

    Parameters
    ----------
    epsilon : float, default=1e-06
        Added to the variance, small as published (the paper gives no value). A unanimous item is then far more certain
        than any other, and only the noise on the position separates synthetic items from copies of such an item, and
        from midpoints of two; 0.01 has a smoother effect.
    smoothing : float, default=0.0
        Pseudo-count of votes for every class of an item; 0 is Eq. 2.4 as printed. With 0.5 a single vote is less
        certain than ten that agree, which matters where items have different numbers of labels.
    """

    epsilon: float = 1e-6  # "a small constant to avoid numerical issue"; the paper gives no value
    smoothing: float = 0.0  # Eq. 2.4 as printed

    _constraints: ClassVar[dict[str, Constraint]] = {"epsilon": Number(above=0), "smoothing": Number(least=0)}


def label_certainty(
    annotations: Annotations,
    gold: npt.NDArray[np.int32] | None = None,
    *,
    epsilon: float = 1e-6,
    smoothing: float = 0.0,
) -> Array:
    """Return the label certainty score S of each item (Definition 2, Eq. 2.4).

    The variance is half the mean squared distance of one-hot labels from their mean, (1 - sum_k p_ik^2) / 2, which is
    p (1 - p) for two classes; so it is defined for any number of them.

    Examples
    --------
    >>> votes = Annotations.from_matrix([[0, 0, 0, 0], [0, 0, 0, 1], [0, 0, 1, 1], [0, -1, -1, -1]])
    >>> label_certainty(votes, epsilon=0.01).round(2).tolist()
    [100.0, 5.06, 3.85, 100.0]
    >>> label_certainty(votes, epsilon=0.01, smoothing=0.5).round(2).tolist()
    [10.0, 4.55, 3.85, 5.06]

    Shapes: gold (n_items,); returns (n_items,).
    """
    n_labels, n_classes = annotations.n_labels[:, None], max(annotations.n_classes, 1)
    with np.errstate(invalid="ignore"):
        share = (vote_share(annotations) * n_labels + smoothing) / (n_labels + smoothing * n_classes)
    share[annotations.n_labels == 0] = 1.0 / n_classes
    variance = (1.0 - np.square(share).sum(axis=1)) / 2
    if gold is not None:
        variance[gold >= 0] = 0.0
    return np.asarray(1.0 / (np.maximum(variance, 0.0) + epsilon))


def certainty_by(options: Certainty, annotations: Annotations, gold: npt.NDArray[np.int32] | None = None) -> Array:
    """Return the label certainty score of each item, with the options of ICED.

    Shapes: gold (n_items,); returns (n_items,).
    """
    return label_certainty(annotations, gold, epsilon=options.epsilon, smoothing=options.smoothing)


def interpolation_weights(
    rule: str, certainty: Array, of_neighbour: Array, noise: float, rng: np.random.Generator
) -> Array:
    """Return delta (Eq. 2.5) of each pair of an item i and its neighbour r: 0 is the item, 1 the neighbour.

    With "paper" it is S_i / (S_i + S_r) + eta, as printed; with "intent" S_r / (S_i + S_r) + eta, which moves z' toward
    the more certain one, as the text below Eq. 2.5 asks for.

    Shapes: certainty (n,); of_neighbour (n,); returns (n,).
    """
    if rule == "smote":
        return rng.random(len(certainty))
    numerator = of_neighbour if rule == "intent" else certainty
    delta = numerator / (certainty + of_neighbour) + rng.uniform(-noise, noise, len(certainty))
    return np.asarray(np.clip(delta, 0.0, 1.0))  # delta is in range [0, 1] (Eq. 2.3)


def synthetic_labels(
    annotations: Annotations, neighbours: npt.NDArray[Any], rule: str, rng: np.random.Generator
) -> SyntheticLabels:
    """Generate the workers' labels of points: each labels a point as they labelled its k nearest real items.

    A worker who labelled c of the k neighbours labels the point with probability c / k, so that points are labelled as
    sparsely as items are.
    """
    k, n_workers, n_classes = neighbours.shape[1], annotations.n_workers, annotations.n_classes
    flat = neighbours.ravel()
    size = annotations.n_labels[flat]
    position = np.arange(size.sum()) - np.repeat(np.cumsum(size) - size - annotations.start[flat], size)
    point, rank = np.divmod(np.repeat(np.arange(len(flat)), size), max(k, 1))
    pair = point * n_workers + annotations.worker[position]
    entry = np.sort((pair * n_classes + annotations.label[position]) * max(k, 1) + rank)  # one key sorts fastest
    entry, rank = np.divmod(entry, max(k, 1))
    pair, label = np.divmod(entry, n_classes)
    first = np.flatnonzero(np.diff(pair, prepend=-1))  # start of the labels of each pair of point and worker
    n_given = np.diff(first, append=len(pair))
    is_labelled = rng.random(len(first)) * k < n_given
    if rule == "sample":
        label_of_pair = label[first + (rng.random(len(first)) * n_given).astype(np.int64)]
    else:
        label_of_pair = _most_frequent(entry, rank, first, n_classes, k)
    point, worker = np.divmod(pair[first], n_workers)
    return SyntheticLabels(point[is_labelled], worker[is_labelled], label_of_pair[is_labelled])


def _most_frequent(
    entry: npt.NDArray[np.int64], rank: npt.NDArray[np.int64], first: npt.NDArray[np.intp], n_classes: int, k: int
) -> npt.NDArray[np.int64]:
    """Return the most frequent label of each pair, of shape (n_pairs,).

    Ties go to the label of the nearest item, then to the lower code. `entry` is pair * n_classes + label, sorted, then
    by rank; the labels of a pair start at `first`.
    """
    run = np.flatnonzero(np.diff(entry, prepend=-1))  # start of equal labels of a pair
    if len(run) == 0:
        return np.zeros(0, np.int64)
    times = np.diff(run, append=len(entry))
    worth = ((times * k) + (k - 1 - rank[run])) * n_classes + (n_classes - 1 - entry[run] % n_classes)
    best = np.maximum.reduceat(worth, np.searchsorted(run, first))
    return np.asarray(n_classes - 1 - best % n_classes)


def augment(annotations: Annotations, synthetic: SyntheticItems) -> Annotations:
    """Append synthetic items and their labels to the real ones."""
    labels = synthetic.labels
    return Annotations(
        np.concatenate([annotations.item, labels.point + annotations.n_items]),
        np.concatenate([annotations.worker, labels.worker]),
        np.concatenate([annotations.label, labels.label]),
        item_ids=np.arange(annotations.n_items + len(synthetic.points)),
        worker_ids=np.arange(annotations.n_workers),
        classes=np.arange(annotations.n_classes),
    )


class Decoder(nn.Module):
    """Decoder Q from embeddings to rows of X: a multi-layer perceptron with the network's layers in reverse."""

    def __init__(self, embedding_size: int, hidden: Sequence[int], row_shape: tuple[int, ...]) -> None:
        super().__init__()
        self.row_shape = row_shape
        self.layers = mlp((embedding_size, *reversed(hidden), math.prod(row_shape)), dropout=0)

    def forward(self, embedding: torch.Tensor) -> torch.Tensor:
        """Return the decoded rows, of shape (n, *row_shape)."""
        rows: torch.Tensor = self.layers(embedding)
        return rows.reshape(len(rows), *self.row_shape)


def reconstruction_step(
    decoder: Decoder, optimizer: torch.optim.Optimizer, embedding: torch.Tensor, x: torch.Tensor
) -> torch.Tensor:
    """Take one optimisation step on the mean squared reconstruction error.

    Shapes: embedding (n, embedding_size); x (n, ...).
    """
    return descend(optimizer, F.mse_loss(decoder(embedding), x))


# ----------------------------------------------------------------------------------------------------
# Section 2.5, warm-up training strategy: the network learns the majority vote, from less to more certain items.
#
# Algorithm 2 is in the paper's Appendix A, which is not in the text at hand; the steps follow Sections 2.5 and 3.4, in
# their order: label certainty scores, majority vote, four groups of items; training on all but the low certainty group,
# from the third-highest to the highest.


N_GROUPS = 4  # Section 2.5: low, third-highest, second-highest and highest certainty
# Up to this number of distinct certainties each is a level of its own; with more, the items are divided by rank (ours).
# The paper's crowds are below this bound: 15 workers who label all items of two classes have eight levels, and these
# crowds have at most 11 workers (Table 1).
_MAX_LEVELS = 8
_DIGITS = 12  # certainties that agree to this digit are equal: sums of the same shares in another order differ


@dataclass(frozen=True, repr=False)
class WarmUp(OptionGroup):
    """Options of the warm-up: the network learns the majority vote, from less to more certain items.

    Parameters
    ----------
    kind : {"grouped", "top", "all"}, default="grouped"
        "grouped": three groups of items one after the other, from less to more certain, as published (ICED-w in
        Table 3). "top": the items of these three groups at once (Trad-II). "all": all items at once (Trad-I).
    epochs : int, default=5
        Epochs for each of the three groups; three times as many where they are trained at once.
    batch_size : int or None, default=None
        Items per mini-batch of the warm-up; None takes that of the method. A small group gives few gradient steps:
        one per epoch where it has no more items than a mini-batch.
    stratified : bool, default=False
        How groups are formed. False: by the certainty of all items together, as published; with noisy workers the
        most certain group may then have hardly any item of a small class. True: a quarter of the items of each voted
        class in each group, from less to more certain; equally certain items are divided at random.
    """

    kind: str = "grouped"
    epochs: int = 5  # as in Table 3 on Gisette; on the two smaller sets the paper has 2
    batch_size: int | None = None
    stratified: bool = False

    _constraints: ClassVar[dict[str, Constraint]] = {
        "kind": OneOf(("grouped", "top", "all")),
        "epochs": Number(whole=True, least=1),
        "batch_size": NoneOr(Number(whole=True, least=1)),
        "stratified": Boolean(),
    }


class WarmUpTraining:
    """Algorithm 2 by Sections 2.5 and 3.4: training of the network on the majority vote, group after group."""

    def __init__(
        self, method: ICED, context: TrainingContext, network: nn.Module, optimizer: torch.optim.Optimizer
    ) -> None:
        self.method, self.context, self.network, self.optimizer = method, context, network, optimizer
        self.items = context.batches().items
        vote = one_hot(initial_posterior(context.annotations, context.data.gold))
        self.target = torch.from_numpy(vote).float().to(context.device)
        self.log_share = torch.from_numpy(log_class_shares(vote[self.items])).float().to(context.device)

    def train(self) -> History:
        """Train on one group after the other, from the third-highest certainty to the highest."""
        options = self.method.warm_up
        if options is None:
            return []
        history: History = []
        modules, optimizers = {"network": self.network}, {"adam": self.optimizer}
        n_epochs = options.epochs * (1 if options.kind == "grouped" else N_GROUPS - 1)
        for number, items in enumerate(self.stages()):
            batches, name = self.context.batches(items, options.batch_size), f"warm-up-{number}"
            epochs = self.context.train(self.step, modules, optimizers, batches=batches, max_epochs=n_epochs, name=name)
            history += [epoch | {"warm_up_items": float(len(items))} for epoch in epochs]
        return history

    def stages(self) -> list[npt.NDArray[np.intp]]:
        """Return the items of each stage; a stage of a single item is left out."""
        items, group = self.items, self._groups()[self.items]
        stages = {
            "all": [items],
            "top": [items[group > 0]],
            "grouped": [items[group == number] for number in range(1, N_GROUPS)],
        }
        options = self.method.warm_up
        return [] if options is None else [stage for stage in stages[options.kind] if len(stage) > 1]

    def _groups(self) -> npt.NDArray[np.int64]:
        """Group of each item by the certainty of its votes; gold is in the last group, and forms no group itself."""
        annotations, gold = self.context.annotations, self.context.data.gold
        group, has_votes = np.full(annotations.n_items, N_GROUPS - 1), annotations.n_labels > 0
        certainty = certainty_by(self.method.certainty, annotations)[has_votes]
        if self.method.warm_up is not None and self.method.warm_up.stratified:
            vote = initial_posterior(annotations, None)[has_votes].argmax(axis=1)
            group[has_votes] = stratified_groups(certainty, vote, self.context.rng)
        else:
            group[has_votes] = certainty_groups(certainty)
        return group if gold is None else np.where(gold >= 0, N_GROUPS - 1, group)

    def step(self, batch: Batch) -> dict[str, torch.Tensor]:
        """Take one optimisation step on a mini-batch."""
        logits = self.network(self.context.x(batch)) + (self.log_share if self.method.balanced_loss else 0.0)
        return {"warm_up": descend(self.optimizer, soft_cross_entropy(logits, self.target[batch.item]))}


def certainty_groups(certainty: Array) -> npt.NDArray[np.int64]:
    """Return the group of each item, from 0 (low certainty) to 3 (the highest).

    Up to eight distinct values are grouped by value: the three highest are groups 1 to 3, all below are group 0. More
    values are cut into quarters of the items; items of equal certainty stay together.

    Examples
    --------
    >>> certainty_groups(np.array([5.0, 1.0, 2.0, 2.0, 9.0, 0.5])).tolist()
    [2, 0, 1, 1, 3, 0]

    Shapes: certainty (n_items,); returns (n_items,).
    """
    if len(certainty) == 0:
        return np.zeros(0, np.int64)
    level, position, size = np.unique(np.round(certainty, _DIGITS), return_inverse=True, return_counts=True)
    if len(level) <= _MAX_LEVELS:
        group = np.maximum(np.arange(len(level)) - len(level) + N_GROUPS, 0)
    else:
        middle = (np.cumsum(size) - size / 2) / len(certainty)  # mean rank of a level, as a share of the items
        group = (N_GROUPS * middle).astype(np.int64)
    return np.asarray(group[position].astype(np.int64))


def stratified_groups(
    certainty: Array, vote: npt.NDArray[np.integer[Any]], rng: np.random.Generator
) -> npt.NDArray[np.int64]:
    """Return the group of each item, from 0 to 3, with a quarter of the items of each voted class in each group.

    Examples
    --------
    >>> stratified_groups(np.arange(8.0), np.array([0] * 4 + [1] * 4), np.random.default_rng(0)).tolist()
    [0, 1, 2, 3, 0, 1, 2, 3]

    Shapes: certainty (n_items,); vote (n_items,); returns (n_items,).
    """
    group, tie_break = np.zeros(len(certainty), np.int64), rng.random(len(certainty))
    for k in np.unique(vote):
        own = np.flatnonzero(vote == k)
        order = np.lexsort((tie_break[own], np.round(certainty[own], _DIGITS)))
        # The rank counts from the most certain item, so that fewer than four items are in the highest groups.
        group[own[order]] = N_GROUPS - 1 - N_GROUPS * np.arange(len(own))[::-1] // len(own)
    return group


# ----------------------------------------------------------------------------------------------------
# Section 2.6, algorithm: `ICED._learn` is Algorithm 1; `Rounds` has its steps, `PosteriorState` what rounds hand on.
#
# The variant `ICED.plus()`:
#
#     q = softmax(F(x) + log pi),   r_ik ~ q_ik prod_w confusion[w, k, label_iw],   loss = -sum_ik r_ik log q_ik
#
# where pi are the class shares, so that softmax(F(x)) is p(k | x) under a uniform class prior.


class PosteriorState(nn.Module):
    """What a round infers and the next one uses: a module, so that checkpoints and early stopping keep it.

    Posterior, confusion matrices and class shares; initially those of the majority vote.

    Shapes: gold (n_items,).
    """

    posterior: torch.Tensor  # (n_items, n_classes); posterior of the real items
    first_posterior: torch.Tensor  # (n_items, n_classes); the posterior of the first round; NaN before it
    # (n_workers + 1, n_classes, n_classes); log p(label | truth) as [worker, label, truth]; the last worker is an
    # unseen one
    log_column: torch.Tensor
    log_prior: torch.Tensor  # (n_classes,); log share of each class among the real items
    # (n_classes,); log share of each class among the items that the network was trained on last; NaN if there are
    # none yet
    log_training_prior: torch.Tensor
    n_rounds: torch.Tensor  # (); number of rounds so far

    def __init__(self, annotations: Annotations, gold: Gold, items: Codes, *, network_trained: bool) -> None:
        super().__init__()
        n_workers, n_classes = annotations.n_workers, annotations.n_classes
        start = initial_posterior(annotations, gold)
        share = torch.from_numpy(log_class_shares(one_hot(start[items]))).float()
        self.register_buffer("posterior", torch.from_numpy(start))
        self.register_buffer("first_posterior", torch.full_like(self.posterior, torch.nan))
        self.register_buffer("log_column", torch.zeros(n_workers + 1, n_classes, n_classes))
        self.register_buffer("log_prior", share)
        no_share = torch.full_like(share, torch.nan)
        self.register_buffer("log_training_prior", share.clone() if network_trained else no_share)
        self.register_buffer("n_rounds", torch.zeros((), dtype=torch.float64))

    def update(self, **values: Array) -> None:
        """Set buffers to new values."""
        for name, value in values.items():
            getattr(self, name).copy_(torch.from_numpy(value))

    def most_probable(self, items: Codes) -> npt.NDArray[np.int32]:
        """Return the most probable class of each of these items.

        Shapes: items (n,); returns (n,).
        """
        return pick_classes(self.posterior.cpu().numpy()[items], np.zeros(len(items), bool))[0]

    @property
    def before_first_round(self) -> bool:
        """Whether no round was run yet."""
        return bool(self.first_posterior.isnan().any())

    @property
    def network_trained(self) -> bool:
        """Whether the network was trained on any labels yet."""
        return not bool(self.log_training_prior.isnan().any())


_BATCH_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm)


class Rounds:
    """What the rounds of Algorithm 1 share: the network, what was inferred last, and the steps of lines 3 to 5."""

    target: torch.Tensor  # (n_items + n_points, n_classes); targets of real and synthetic items in this round
    points: torch.Tensor  # (n_points, embedding_size); synthetic embeddings of this round
    metrics: dict[str, float]  # figures of this round for the history

    def __init__(
        self,
        method: ICED,
        context: TrainingContext,
        network: EmbeddingNetwork,
        decoder: Decoder | None,
        optimizer: torch.optim.Optimizer,
        *,
        warmed_up: bool,
    ) -> None:
        self.method, self.context = method, context
        self.network, self.decoder, self.optimizer = network, decoder, optimizer
        self.decoder_optimizer = None if decoder is None else context.adam(decoder)
        self.has_batch_norm = any(isinstance(module, _BATCH_NORMS) for module in network.modules())
        self.items = context.batches().items
        state = PosteriorState(context.annotations, context.data.gold, self.items, network_trained=warmed_up)
        self.state = state.to(context.device)
        self.noise = ShrunkConfusions(method.inference.smoothing, method.inference.shrinkage)
        # "We first apply the true label inference module to obtain estimated true labels T" (Section 2.4).
        if method.synthesis is not None and method.synthesis.first_labels == "inferred":
            self.state.update(posterior=self.infer(context.annotations, None).posterior)
        self.n_at_first = np.bincount(self.state.most_probable(self.items), minlength=context.n_classes)

    def epochs(self) -> Epochs:
        """Lines 2 and 6: the rounds until the model converges or the maximum epoch is reached."""
        modules: dict[str, nn.Module] = {"network": self.network, "state": self.state}
        optimizers = {"adam": self.optimizer}
        if self.decoder is not None and self.decoder_optimizer is not None:
            modules["decoder"], optimizers["decoder"] = self.decoder, self.decoder_optimizer
        evaluate = self.context.heldout_score(self.log_label, self.network)
        return self.context.epochs(modules, optimizers, evaluate=evaluate, until=self.method._has_converged)

    def synthesise(self, annotations: Annotations, embedding: torch.Tensor, log_proba: torch.Tensor) -> SyntheticItems:
        """Line 3: generate synthetic items of the classes that are small by the labels inferred last (Section 2.4).

        Shapes: embedding (n_items, embedding_size); log_proba (n_items, n_classes).
        """
        options, context, points = self.method.synthesis, self.context, embedding.numpy()
        if options is None:
            # The draw is not used; without it, seeds would give other results on more than MAX_CANDIDATES items.
            random_subset(int(np.count_nonzero(annotations.n_labels)), MAX_CANDIDATES, context.rng)
            return _no_synthetic_items(points, context.n_classes)
        predictions = log_proba.argmax(1).numpy() if options.candidates == "agree" else None
        true_labels = self.state.most_probable(self.items)
        candidates, n_wanted = synthesis_plan(options.size, self.items, true_labels, self.n_at_first, predictions)
        if n_wanted.any() and options.decoder == "refit":
            self._refit_decoder(embedding)
        certainty = certainty_by(self.method.certainty, annotations, context.data.gold)
        return synthesise(options, annotations, points, certainty, candidates, n_wanted, context.rng)

    def _refit_decoder(self, embedding: torch.Tensor) -> None:
        """Train the decoder for a few epochs on the embeddings of the network, whose weights have changed.

        Shapes: embedding (n_items, embedding_size).
        """
        context, decoder, optimizer = self.context, self.decoder, self.decoder_optimizer
        if decoder is None or optimizer is None:
            return
        rows, batch_size, device = context.data.rows, context.options.batch_size, next(decoder.parameters()).device
        for _ in range(_REFIT_EPOCHS):
            order = context.rng.permutation(random_subset(len(embedding), MAX_CANDIDATES, context.rng))
            for batch in np.split(order, range(batch_size, len(order), batch_size)):
                reconstruction_step(decoder, optimizer, embedding[batch].to(device), as_tensor(rows, batch, device))

    def infer(self, labels: Annotations, log_proba: torch.Tensor | None) -> TruthEstimate:
        """Line 4: infer the true labels from real and synthetic labels, and from the network where it is used.

        Shapes: log_proba (n_items, n_classes).
        """
        options, gold, log_class_proba = self.method.inference, self.context.data.gold, None
        prior = options.prior
        n_synthetic = labels.n_items - self.context.annotations.n_items
        if gold is not None:
            gold = np.append(gold, np.full(n_synthetic, -1, gold.dtype))
        if log_proba is not None and options.use_features and self.state.network_trained:
            real = (log_proba + self.log_shift().cpu()).log_softmax(1).numpy()
            log_class_proba = np.concatenate([real, np.zeros((n_synthetic, labels.n_classes))])
            prior = "uniform"
        hard = options.em == "hard"
        return infer_true_labels(labels, gold, self.noise, prior, hard=hard, log_class_proba=log_class_proba)

    def update(
        self, labels: Annotations, synthetic: SyntheticItems, truth: TruthEstimate, log_proba: torch.Tensor
    ) -> None:
        """Keep what was inferred: the targets of this round, and what the next round and the history need.

        Shapes: log_proba (n_items, n_classes).
        """
        before = self.state.most_probable(self.items)
        target = truth.posterior if self.method.soft_targets else one_hot(truth.posterior)
        self._keep_first_posterior(synthetic, log_proba)
        self.target = torch.from_numpy(target).float().to(self.context.device)
        self.points = torch.from_numpy(synthetic.points).to(self.context.device)
        self._update_state(truth.posterior, log_class_shares(target[self._training_items(labels)]))
        self.state.n_rounds += 1
        self._record_metrics(before, truth.posterior, synthetic)

    def _training_items(self, labels: Annotations) -> npt.NDArray[np.intp]:
        """Real items with a label or gold, and synthetic items with a label."""
        n_items = self.context.annotations.n_items
        return np.append(self.items, n_items + np.flatnonzero(labels.n_labels[n_items:]))

    def _keep_first_posterior(self, synthetic: SyntheticItems, log_proba: torch.Tensor) -> None:
        """In the first round, keep the posterior given all labels, held-out ones included."""
        if self.state.before_first_round:
            labels = self.context.data.annotations
            posterior = self.infer(augment(labels, synthetic), log_proba).posterior[: labels.n_items]
            self.state.update(first_posterior=posterior)

    def _update_state(self, posterior: Array, log_training_prior: Array) -> None:
        """Keep the inference on the real items, and the class shares of the network's training set."""
        annotations = self.context.annotations
        posterior = posterior[: annotations.n_items]
        log_confusion = np.log(worker_confusions(annotations, posterior))
        self.state.update(
            posterior=posterior,
            log_column=log_confusion.transpose(0, 2, 1),
            log_prior=log_class_shares(posterior[self.items]),
            log_training_prior=log_training_prior,
        )

    def _record_metrics(self, before: npt.NDArray[np.int32], posterior: Array, synthetic: SyntheticItems) -> None:
        """Compute the figures of this round for the history."""
        prior = zip(self.context.annotations.classes.tolist(), posterior[self.items].mean(axis=0).tolist())
        self.metrics = {
            "round": float(self.state.n_rounds),
            "agreement": float(np.mean(before == self.state.most_probable(self.items))),
            "n_synthetic": float(len(synthetic.points)),
            **{f"prior {name}": share for name, share in prior},
        }

    def batches(self, labels: Annotations) -> AnnotationBatches:
        """Return the shuffled mini-batches of the augmented labels for one epoch."""
        context, items = self.context, self._training_items(labels)
        batch_size = context.options.batch_size
        return AnnotationBatches(labels, batch_size, context.rng, items=items, device=context.device)

    def step(self, batch: Batch) -> dict[str, float | torch.Tensor]:
        """Line 5: take one optimisation step on a mini-batch of real and synthetic items."""
        logits, target = self.logits_and_targets(batch)
        logits = logits + (self.state.log_training_prior if self.method.balanced_loss else 0.0)
        return {"loss": descend(self.optimizer, soft_cross_entropy(logits, target)), **self.metrics}

    def logits_and_targets(self, batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the logits of a mini-batch of real and synthetic items, and their targets.

        Shapes: returns logits (n_rows, n_classes); returns target (n_rows, n_classes).
        """
        context, n_items = self.context, self.context.annotations.n_items
        real, synthetic = batch.item[batch.item < n_items], batch.item[batch.item >= n_items]
        if self.decoder is None and len(real) == 1 and len(synthetic) and self.has_batch_norm:
            real = real[:0]  # batch normalisation needs more than one row
        x = as_tensor(context.data.rows, real, context.device)
        logits = self.network.logits_of_both(x, self.points[synthetic - n_items], self.decoder)
        return logits, self.target[np.append(real, synthetic)]

    def log_label(self, batch: Batch) -> torch.Tensor:
        """Return the log-probability of each held-out label of a mini-batch, for early stopping."""
        log_proba = (self.network(self.context.x(batch)).log_softmax(1) + self.log_shift()).log_softmax(1)
        return log_mixture(log_proba[batch.row], self.state.log_column[batch.worker, batch.label])

    def log_shift(self) -> torch.Tensor:
        """Return what is added to the network's log-probabilities to obtain those under the items' class shares.

        A network with a balanced loss assumes a uniform class prior, another one the class shares of its training set.
        """
        return self.state.log_prior - (0.0 if self.method.balanced_loss else self.state.log_training_prior)

    def result(self, history: History) -> FitResult:
        """Run the last inference, with all labels, and return what was learned."""
        labels, gold = self.context.data.annotations, self.context.data.gold
        embedding, log_proba = self.network.embed_and_classify(self.context.data.rows)
        synthetic = self.synthesise(labels, embedding, log_proba)
        truth, original = self.infer(augment(labels, synthetic), log_proba), self.infer(labels, None)
        posterior = truth.posterior[: labels.n_items]
        no_source = (labels.n_labels == 0) & (True if gold is None else gold < 0)
        shift = (self.log_shift() if self.state.network_trained else torch.zeros(labels.n_classes)).cpu().double()
        posterior[no_source] = (log_proba + shift).softmax(1).numpy()[no_source]
        is_first = self.state.before_first_round
        results = {
            "confusion_": truth.confusion,
            "class_prior_": posterior[~no_source].mean(axis=0),
            "posterior_original_": original.posterior,
            "posterior_first_": posterior.copy() if is_first else self.state.first_posterior.cpu().numpy(),
            "certainty_": certainty_by(self.method.certainty, labels, gold),
            "log_shift_": shift.numpy(),
            "n_synthetic_": synthetic.n_of_class,
        }
        return FitResult(self.network, history, posterior, results)


def _no_synthetic_items(embedding: Points, n_classes: int) -> SyntheticItems:
    """Return an empty set of synthetic items."""
    empty = np.zeros(0, np.int64)
    return SyntheticItems(embedding[:0], SyntheticLabels(empty, empty, empty), np.zeros(n_classes, np.int64))


# What `ICED.plus()` sets, also where it is the default of `ICED()` today; chosen on simulated imbalanced crowds, see
# docs/results/notes/iced-tried.md.
_PLUS: dict[str, Any] = {
    "warm_up": WarmUp(kind="grouped", epochs=5),
    "synthesis": None,
    "certainty": Certainty(epsilon=0.01, smoothing=0.5),
    "inference": TruthInference(prior="estimated", em="soft", shrinkage=5.0, use_features=True),
    "soft_targets": True,
    "balanced_loss": True,
    "embedding_size": 32,
    "max_epochs": 100,
    "patience": 20,
    "stable_rounds": None,
}


class ICED(CrowdClassifier):
    """ICED: truth inference and a network for imbalanced classes, with synthetic items of the minority classes.

    ``ICED()`` is the published method. An autoencoder initialises the network, and a warm-up trains it on the majority
    vote from less to more certain items. Then every epoch interpolates R synthetic items from each item that is
    inferred to be of a minority class, in the embedding, infers the true labels of real and synthetic items by
    classification EM with an estimated class prior, and trains the network on them, through the pre-trained decoder,
    until the inferred labels hardly change.

    Where the paper contradicts itself or leaves a value open, this is the reading:

    - Eq. 2.5 is printed as delta = S_i / (S_i + S_r), which puts z' = z_i + delta (z_r - z_i) near z_r where x_i is the
      more certain item, while the text asks for z' near the embedding of higher certainty. ``ICED()`` follows the text
      (``synthesis__delta="intent"``); "paper" is the printed sign.
    - The class prior is estimated in every M step, as the equations say. Sections 2.4 and 3.3 say that Dawid and
      Skene's method is initialised with a uniform prior (``inference__prior="uniform-start"``); Section 2.3 does not
      say where EM starts, here from the majority vote. What Section 3.3 and Figure 2 show (Dawid-Skene far below the
      majority vote on the original labels) is obtained only with a fixed prior, ``inference__prior="uniform"``.
    - The algorithm of the warm-up (Algorithm 2) is in Appendix A, which is not in the text at hand; its steps follow
      Sections 2.5 and 3.4.
    - "Until convergence": in `stable_rounds` rounds in a row, no more than a share of `label_tolerance` of the inferred
      labels of real items changes, or `max_epochs` is reached. As every round draws other synthetic items, some labels
      of noisy crowds change in each round.
    - R is computed from the labels of the first synthesis so that classes would be balanced. The range of the noise on
      delta, epsilon, the number of neighbours and all sizes of the network are not printed; a worker's label for a
      synthetic item is the most frequent of their labels on its neighbours (``synthesis__labels="mode"``).

    `ICED.plus()` (registry name "iced-plus") is our variant: there are no synthetic items; the loss balances classes
    instead, by adding the log class shares to the logits (Menon et al.); truth inference by soft EM shrinks confusion
    matrices toward the crowd's, which matters for workers with few labels, and uses the network's predictions; the
    network learns the posterior rather than hard labels, with early stopping.

    Use it where classes are imbalanced and a classifier is wanted that treats them equally: with `balanced_loss`,
    `predict_proba` is under a uniform class prior, while `posterior_` is under the class shares of the items. Where
    classes are balanced, `CrowdLayer` or `TwoStage` is simpler and faster.

    Parameters
    ----------
    warm_up : WarmUp or None, default=WarmUp()
        Warm-up on the majority vote; None for none.
    synthesis : Synthesis or None, default=Synthesis()
        Synthetic items of minority classes, and the autoencoder that they need; None for none.
    certainty : Certainty, default=Certainty()
        Label certainty of items.
    inference : TruthInference, default=TruthInference()
        Truth inference in every round.
    soft_targets : bool, default=False
        Whether the network learns the posterior rather than its most probable class.
    balanced_loss : bool, default=False
        Whether the log class shares are added to the logits in the loss, so that the network does not learn them. A
        class without any label then keeps some probability in `predict_proba`.
    embedding_size : int, default=64
        Size of the embedding; a function given as backbone must return a module with as many outputs.
    backbone : {"mlp", "convnet"} or callable, default="mlp"
        Network from features to the embedding: a multi-layer perceptron, a small convolutional network, or a function
        (n_features or row shape, embedding_size) -> torch.nn.Module.
    hidden : tuple of int, default=(128,)
        Sizes of the hidden layers.
    dropout : float, default=0.5
        Dropout rate of the hidden layers.
    batch_norm : bool, default=False
        Whether hidden layers are batch-normalised.
    learning_rate : float, default=0.001
        Step size of Adam.
    weight_decay : float, default=0.0
        L2 penalty of Adam on all weights, those of noise layers included: `weight_decay` times the weights is added to
        their gradient.
    batch_size : int, default=64
        Items per mini-batch.
    max_epochs : int, default=50
        Maximal number of rounds, each of one epoch; 0 trains by the warm-up alone.
    stable_rounds : int or None, default=10
        Convergence: training stops after this number of rounds in a row in which the inferred labels of real items
        were unchanged, up to `label_tolerance`; None does not stop for this reason.
    label_tolerance : float, default=0.01
        Largest share of the inferred labels that may change in a round that counts as unchanged.
    patience : int or None, default=None
        Early stopping: epochs without a higher held-out log-likelihood before training stops; None trains for
        `max_epochs`.
    validation : float, default=0.1
        Share of the labels held out for early stopping; nothing is held out with 0, or with fewer than ten labels.
    device : str, default="cpu"
        Device of torch: "cpu", "cuda", "auto" (a GPU where there is one) or another name.
    checkpoint : str, Path or None, default=None
        Folder of checkpoints, from which an interrupted fit resumes with the same result; needs a `random_state`.
    random_state : int, Generator or None, default=None
        Seed of initial weights, shuffling, dropout, synthetic items and the held-out split.

    Attributes
    ----------
    confusion_ : ndarray of shape (n_workers, n_classes, n_classes)
        Confusion matrices [worker, truth, label] of the last inference; rows (over the label) sum to 1.
    class_prior_ : ndarray of shape (n_classes,)
        Share of each class among the items with a label or gold, by the last inference.
    posterior_original_ : ndarray of shape (n_items, n_classes)
        Posterior by truth inference on the original labels alone (D&S-orig in the paper).
    posterior_first_ : ndarray of shape (n_items, n_classes)
        Posterior of the first round (D&S-first in the paper); `posterior_` is that after the last.
    certainty_ : ndarray of shape (n_items,)
        Label certainty of the items.
    log_shift_ : ndarray of shape (n_classes,)
        What is added to log `predict_proba` to obtain, up to a constant, log-probabilities under the class shares of
        the items. `score` and the posterior of items without labels use it.
    n_synthetic_ : ndarray of int, shape (n_classes,)
        Number of synthetic items of the last inference, by the class of their candidates.
    history_ : list of dict
        One dict per epoch: the loss "reconstruction" of the autoencoder, "warm_up" of the warm-up, "loss" of the
        rounds; of each round also its number "round", "agreement", the share of labels that are as in the round before,
        "n_synthetic", "prior ..." for each class, and "heldout" where labels were held out.

    References
    ----------
    W. Wang, J. Thekinen, X. Liu, Z. Liu and J. Tang, Learning from imbalanced crowdsourced labeled data, SDM.
    A. P. Dawid and A. M. Skene (1979), Maximum likelihood estimation of observer error-rates using the EM algorithm,
    Journal of the Royal Statistical Society: Series C 28.
    A. Menon et al. (2021), Long-tail learning via logit adjustment, ICLR.

    Examples
    --------
    >>> import numpy as np
    >>> from manyhands import ICED, Annotations
    >>> X = np.repeat([[0.0, 1.0], [1.0, 0.0]], [20, 5], axis=0)
    >>> votes = Annotations.from_matrix(np.repeat([[0, 0, 1], [1, 1, 1]], [20, 5], axis=0))
    >>> model = ICED.plus(learning_rate=0.01, random_state=0).fit(X, votes)
    >>> model.predict([[0.0, 1.0], [1.0, 0.0]]).tolist()
    [0, 1]
    >>> ICED().set_params(synthesis__n_neighbors=3)
    ICED(synthesis=Synthesis(n_neighbors=3))
    """

    _of_items = (*CrowdClassifier._of_items, "posterior_original_", "posterior_first_", "certainty_")
    _constraints: ClassVar[dict[str, Constraint]] = NETWORK_CONSTRAINTS | {
        "warm_up": Options(WarmUp, optional=True),
        "synthesis": Options(Synthesis, optional=True),
        "certainty": Options(Certainty),
        "inference": Options(TruthInference),
        "soft_targets": Boolean(),
        "balanced_loss": Boolean(),
        "embedding_size": Number(whole=True, least=1),
        "max_epochs": Number(whole=True, least=0),
        "stable_rounds": NoneOr(Number(whole=True, least=1)),
        "label_tolerance": Number(least=0, most=1),
    }
    _for_each_class = ("log_shift_",)

    log_shift_: Array
    confusion_: Array
    class_prior_: Array
    posterior_original_: Array
    posterior_first_: Array
    certainty_: Array
    n_synthetic_: npt.NDArray[Any]

    def __init__(
        self,
        warm_up: WarmUp | None = WarmUp(),
        synthesis: Synthesis | None = Synthesis(),
        certainty: Certainty = Certainty(),
        inference: TruthInference = TruthInference(),
        soft_targets: bool = False,
        balanced_loss: bool = False,
        *,
        embedding_size: int = 64,  # this and all settings of the network up to the batch size are ours; not printed
        backbone: Any = "mlp",
        hidden: tuple[int, ...] = (128,),
        dropout: float = 0.5,
        batch_norm: bool = False,
        learning_rate: float = 1e-3,
        weight_decay: float = 0.0,
        batch_size: int = 64,
        max_epochs: int = 50,  # this and the next two are ours; Section 2.6 has no numbers
        stable_rounds: int | None = 10,
        label_tolerance: float = 0.01,
        patience: int | None = None,
        validation: float = 0.1,
        device: str = "cpu",
        checkpoint: str | Path | None = None,
        random_state: Seed = None,
    ) -> None:
        self.warm_up = warm_up
        self.synthesis = synthesis
        self.certainty = certainty
        self.inference = inference
        self.soft_targets = soft_targets
        self.balanced_loss = balanced_loss
        self.embedding_size = embedding_size
        self.backbone = backbone
        self.hidden = hidden
        self.dropout = dropout
        self.batch_norm = batch_norm
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.batch_size = batch_size
        self.max_epochs = max_epochs
        self.stable_rounds = stable_rounds
        self.label_tolerance = label_tolerance
        self.patience = patience
        self.validation = validation
        self.device = device
        self.checkpoint = checkpoint
        self.random_state = random_state

    @classmethod
    def plus(cls, **changes: Any) -> Self:
        """ICED with a balanced loss and features in the truth inference instead of synthetic items.

        Parameters
        ----------
        **changes : object
            Parameters that differ from those of `plus`, by name; `group__option` sets one option of a group.

        Returns
        -------
        ICED
        """
        return cls(**_PLUS).set_params(**changes)

    def _new_module(self, row_shape: tuple[int, ...], n_classes: int, n_workers: int) -> EmbeddingNetwork:
        body = new_backbone(NetworkOptions.of(self), row_shape, self.embedding_size)
        return EmbeddingNetwork(body, self.embedding_size, n_classes)

    def _training_prior_proba(self, proba: Array) -> Array:
        product = proba * np.exp(self.log_shift_)
        return np.asarray(product / product.sum(axis=1, keepdims=True))

    def _uniform_prior_proba(self, proba: Array) -> Array:
        return proba if self.balanced_loss else super()._uniform_prior_proba(proba)

    def _learn(self, context: TrainingContext) -> FitResult:
        """Algorithm 1 of the paper (Section 2.6), line by line."""
        # A prior for another number of classes is refused before any training.
        class_prior(self.inference.prior, context.n_classes, self.inference.smoothing)
        network = context.network()
        assert isinstance(network, EmbeddingNetwork)
        decoder, pretraining = self._pretrain(context, network)
        optimizer = context.adam(network)
        # Line 1: conduct warm-up training (Algorithm 2, by Sections 2.5 and 3.4).
        warm_up = WarmUpTraining(self, context, network, optimizer).train()
        rounds = Rounds(self, context, network, decoder, optimizer, warmed_up=bool(warm_up))
        # Line 2: repeat
        epochs = rounds.epochs()
        for number in epochs:
            # Line 3: generate synthetic minority samples and corresponding crowdsourced labels (Section 2.4).
            embedding, log_proba = network.embed_and_classify(context.data.rows)
            synthetic = rounds.synthesise(context.annotations, embedding, log_proba)
            labels = augment(context.annotations, synthetic)
            # Line 4: obtain the inferred true labels T' of the augmented crowdsourced labels (Section 2.3).
            truth = rounds.infer(labels, log_proba)
            rounds.update(labels, synthetic, truth, log_proba)
            # Line 5: train the classifier F on the augmented samples and the inferred labels T'.
            epochs.record(run_epoch(rounds.step, rounds.batches(labels), number))
        # Line 6: until the model converges (`_has_converged`) or the maximum epoch (`max_epochs`) is reached.
        return rounds.result(pretraining + warm_up + epochs.history)

    def _has_converged(self, rounds: History) -> bool:
        """Line 6: whether the inferred labels were unchanged in the last `stable_rounds` rounds."""
        # The mean of equal figures over the mini-batches of a round is exact up to rounding.
        n_rounds, least = self.stable_rounds, 1 - self.label_tolerance - 1e-9
        if n_rounds is None or len(rounds) < n_rounds:
            return False
        return all(epoch["agreement"] >= least for epoch in rounds[-n_rounds:])

    def _pretrain(self, context: TrainingContext, network: EmbeddingNetwork) -> tuple[Decoder | None, History]:
        """Pre-train the decoder Q of Section 2.4, and with it the embedding G, as an autoencoder of all rows."""
        if self.synthesis is None or self.synthesis.decoder == "latent":
            return None, []
        decoder = Decoder(self.embedding_size, self.hidden, context.data.rows.shape).to(context.device)
        optimizer = context.adam(network.body, decoder)

        def step(batch: Batch) -> dict[str, torch.Tensor]:
            x = context.x(batch)
            return {"reconstruction": reconstruction_step(decoder, optimizer, network.body(x), x)}

        modules, optimizers = {"network": network, "decoder": decoder}, {"adam": optimizer}
        batches, epochs = context.batches(np.arange(context.annotations.n_items)), self.synthesis.pretrain_epochs
        history = context.train(step, modules, optimizers, batches=batches, max_epochs=epochs, name="autoencoder")
        return decoder, history
