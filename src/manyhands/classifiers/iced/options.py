"""The groups of options of ICED, one for each step of the paper that can be configured; no torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy.typing as npt

from manyhands.options import OptionGroup
from manyhands.validation import Boolean, Constraint, NoneOr, Number, OneOf, Probabilities


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
    epochs: int = 5
    batch_size: int | None = None
    stratified: bool = False

    _constraints: ClassVar[dict[str, Constraint]] = {
        "kind": OneOf(("grouped", "top", "all")),
        "epochs": Number(whole=True, least=1),
        "batch_size": NoneOr(Number(whole=True, least=1)),
        "stratified": Boolean(),
    }


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
        Labels of the first synthesis: those of a truth inference on the original labels, as in section 2.4 of the
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
    delta_noise: float = 0.2
    n_neighbors: int = 5
    size: str = "repeat"
    candidates: str = "all"
    first_labels: str = "inferred"
    labels: str = "mode"
    decoder: str = "frozen"
    pretrain_epochs: int = 30

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

    epsilon: float = 1e-6
    smoothing: float = 0.0

    _constraints: ClassVar[dict[str, Constraint]] = {"epsilon": Number(above=0), "smoothing": Number(least=0)}


@dataclass(frozen=True, repr=False)
class TruthInference(OptionGroup):
    """Options of the truth inference by Dawid-Skene in every round.

    Parameters
    ----------
    prior : {"estimated", "uniform", "uniform-start"} or array-like of shape (n_classes,), default="estimated"
        Class prior. "estimated": in every M step, as published. "uniform-start": uniform in the first E step, then
        estimated in every M step. "uniform": fixed at the uniform distribution. An array fixes it at these values.
        With `use_features` it has an effect only until the network is trained.
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
    smoothing: float = 0.01
    shrinkage: float = 0.0
    use_features: bool = False

    _constraints: ClassVar[dict[str, Constraint]] = {
        "prior": Probabilities(("estimated", "uniform", "uniform-start")),
        "em": OneOf(("hard", "soft")),
        "smoothing": Number(above=0),
        "shrinkage": Number(least=0),
        "use_features": Boolean(),
    }
