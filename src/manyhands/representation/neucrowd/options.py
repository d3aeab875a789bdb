"""The groups of options of NeuCrowd, one for each part of the paper that can be configured; no torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from manyhands.options import OptionGroup
from manyhands.validation import Boolean, Constraint, NoneOr, Number, OneOf


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

    size: int = 5
    hard_rate: int = 4
    batches_per_epoch: int = 5

    _constraints: ClassVar[dict[str, Constraint]] = {
        "size": Number(whole=True, least=3),
        "hard_rate": Number(whole=True, least=1),
        "batches_per_epoch": Number(whole=True, least=1),
    }


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
    """

    margin: float = 0.0
    rival: str = "all"
    n_neighbors: int | None = None
    unsafe_share: float = 0.02

    _constraints: ClassVar[dict[str, Constraint]] = {
        "margin": Number(least=0),
        "rival": OneOf(("all", "strongest")),
        "n_neighbors": NoneOr(Number(whole=True, least=1)),
        "unsafe_share": Number(least=0, most=1),
    }


@dataclass(frozen=True, repr=False)
class TupletLoss(OptionGroup):
    """Options of the loss -log softmax_j( scale A_j (offset - |F(e_j) - anchor|) )[positive].

    Parameters
    ----------
    scale : float, default=2.0
        eta in the paper.
    offset : float, default=1.0
        C in the paper's similarity C - distance.
    weighting : {"inside", "outside"}, default="inside"
        Position of the confidence A: exp(scale A R) as in the paper, or A exp(scale R) as in its code.
    """

    scale: float = 2.0
    offset: float = 1.0
    weighting: str = "inside"

    _constraints: ClassVar[dict[str, Constraint]] = {
        "scale": Number(above=0),
        "offset": Number(),
        "weighting": OneOf(("inside", "outside")),
    }


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
    which a parameter is multiplied. The paper searches these four parameters and does not print its grid; with the
    defaults of `NeuCrowd` the factors give values that its code has: eta 2 and 5, 32 and 64 dimensions, and an L2
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

    learning_rate: float = 2.0
    scale: float = 2.5
    embedding_size: int = 2
    weight_decay: float = 2.5

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
            Learning rate as given.
        scale : float
            `loss.scale` as given.
        embedding_size : int
            Embedding size as given.
        weight_decay : float
            Weight decay as given.

        Returns
        -------
        list of dict of str to float
            Parameters of `NeuCrowd` by name; the first is empty.

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
