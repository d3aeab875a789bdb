"""The groups of options of ICED, one for each step of the paper that can be configured; no torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy.typing as npt

from manyhands.options import OptionGroup
from manyhands.validation import Boolean, Constraint, Number, OneOf, Probabilities


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
    """

    kind: str = "grouped"
    epochs: int = 5

    _constraints: ClassVar[dict[str, Constraint]] = {
        "kind": OneOf(("grouped", "top", "all")),
        "epochs": Number(whole=True, least=1),
    }


@dataclass(frozen=True, repr=False)
class Synthesis(OptionGroup):
    """Options of the synthetic items of minority classes, on which truth inference and the network also train.

    Parameters
    ----------
    delta : {"intent", "paper", "smote"}, default="intent"
        Where a synthetic item lies between two items i and r in the embedding. "intent": near the more certain of
        them, S_r / (S_i + S_r). "paper": S_i / (S_i + S_r) as Eq. 2.5 is printed, near the less certain. "smote":
        uniform.
    delta_noise : float, default=0.2
        Half width of the uniform noise on that position.
    n_neighbors : int, default=5
        Number of nearest candidates among which r is drawn, and of nearest real items from which the labels of a
        synthetic item are taken.
    size : {"fixed", "repeat", "balance"}, default="fixed"
        Number of synthetic items of a class. "fixed": in every round what the class lacks to the largest class of
        the majority vote. "repeat": in every round R per candidate, R computed from the majority vote (the paper's
        R). "balance": what it lacks to the largest class of the labels inferred last.
    candidates : {"agree", "all"}, default="agree"
        Items between which synthetic items are interpolated: "all" items inferred to be of the class, or those that
        the network also assigns to it ("agree").
    labels : {"mode", "sample"}, default="mode"
        Label of a worker for a synthetic item: the most frequent of the worker's labels on its neighbours, or one of
        them drawn at random.
    decoder : {"refit", "frozen", "latent"}, default="refit"
        How the network reads a synthetic embedding. "refit": through a decoder that is updated in every round.
        "frozen": through a decoder as it was pre-trained. "latent": without a decoder and without pre-training;
        synthetic items then train the last layer alone.
    pretrain_epochs : int, default=30
        Epochs of the autoencoder that initialises network and decoder.
    """

    delta: str = "intent"
    delta_noise: float = 0.2
    n_neighbors: int = 5
    size: str = "fixed"
    candidates: str = "agree"
    labels: str = "mode"
    decoder: str = "refit"
    pretrain_epochs: int = 30

    _constraints: ClassVar[dict[str, Constraint]] = {
        "delta": OneOf(("intent", "paper", "smote")),
        "delta_noise": Number(least=0, most=1),
        "n_neighbors": Number(whole=True, least=1),
        "size": OneOf(("fixed", "repeat", "balance")),
        "candidates": OneOf(("agree", "all")),
        "labels": OneOf(("mode", "sample")),
        "decoder": OneOf(("refit", "frozen", "latent")),
        "pretrain_epochs": Number(whole=True, least=0),
    }


@dataclass(frozen=True, repr=False)
class Certainty(OptionGroup):
    """Options of the label certainty S_i = 1 / (variance of the labels of item i + epsilon).

    Parameters
    ----------
    epsilon : float, default=0.01
        Added to the variance. With a much smaller value every unanimous item is so certain that synthetic items are
        copies or midpoints of real ones.
    smoothing : float, default=0.5
        Pseudo-count of votes for every class of an item, so that a single vote is less certain than ten that agree;
        0 is Eq. 2.4 as printed.
    """

    epsilon: float = 0.01
    smoothing: float = 0.5

    _constraints: ClassVar[dict[str, Constraint]] = {"epsilon": Number(above=0), "smoothing": Number(least=0)}


@dataclass(frozen=True, repr=False)
class TruthInference(OptionGroup):
    """Options of the truth inference by Dawid-Skene in every round.

    Parameters
    ----------
    prior : {"estimated", "uniform"} or array-like of shape (n_classes,), default="uniform"
        Class prior: estimated in the M step, fixed at the uniform distribution (which the paper's figures need), or
        given. With `use_features` it has an effect only until the network is trained.
    em : {"soft", "hard"}, default="soft"
        "soft": EM of Dawid and Skene. "hard": classification EM, which counts the most probable classes.
    smoothing : float, default=0.01
        Pseudo-count added to every cell of every confusion matrix.
    shrinkage : float, default=0.0
        Pseudo-labels added to each row of a worker's confusion matrix, distributed as in the mean confusion matrix of
        the crowd.
    use_features : bool, default=False
        Whether the network's class probabilities replace the class prior of an item, once the network is trained.
    """

    prior: str | npt.ArrayLike = "uniform"
    em: str = "soft"
    smoothing: float = 0.01
    shrinkage: float = 0.0
    use_features: bool = False

    _constraints: ClassVar[dict[str, Constraint]] = {
        "prior": Probabilities(("estimated", "uniform")),
        "em": OneOf(("soft", "hard")),
        "smoothing": Number(above=0),
        "shrinkage": Number(least=0),
        "use_features": Boolean(),
    }
