"""Groups of options of CrowdInG: its generator, its discriminator and the adversarial training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from manyhands.exceptions import ParameterError
from manyhands.options import OptionGroup
from manyhands.validation import Boolean, Constraint, NoneOr, Number, OneOf


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
    epochs: int = 50
    learning_rate: float = 3e-3

    _constraints: ClassVar[dict[str, Constraint]] = {
        "sees_items": Boolean(),
        "sees_workers": Boolean(),
        "epochs": Number(whole=True, least=0),
        "learning_rate": Number(above=0),
    }


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
        Form of the label correlation: D^-1/2 (A + I) D^-1/2 M W with a trainable W as printed, or M + D^-1 (A + I) M
        without W as in the authors' code.
    generated_weight : float, default=1.0
        Weight of generated labels in the loss, where authentic ones have 1; the authors' code has 0.9.
    sparsity : float, default=0.01
        Weight of the mean squared output; the paper names the penalty and no value.
    sparsity_on : {"all", "authentic"}, default="all"
        Pairs whose outputs are penalised: authentic and generated ones, or the authentic ones only.
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
    generated_weight: float = 1.0
    sparsity: float = 0.01
    sparsity_on: str = "all"
    selection: str = "entropy"
    epochs: int = 10
    learning_rate: float = 3e-4
    weight_decay: float = 0.01

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
        Unit of `threshold`: a quantile of the mini-batch's entropies, or nats as in the paper.
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
        Steps of each network per mini-batch.
    learning_rate : float, default=6e-05
        Step size of the classifier's Adam.
    """

    epochs: int = 40
    early_stopping: bool = True
    batch_size: int = 1024
    information: float = 0.5
    threshold: float = 0.5
    threshold_is: str = "nats"
    generator_loss: str = "saturating"
    multiplier: float | None = None
    clip: float = 5.0
    two_step: bool = True
    pairs_per_label: int | None = None
    inner_steps: int = 5
    learning_rate: float = 6e-5

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

    def check_threshold(self) -> None:
        """Refuse a quantile above 1.

        Raises
        ------
        ParameterError
            If the threshold is a quantile and above 1.
        """
        if self.threshold_is == "quantile" and self.threshold > 1:
            raise ParameterError(
                f"The parameter 'adversarial__threshold' of CrowdInG is a share of the items where threshold_is is "
                f"'quantile', and must be at most 1. Got {self.threshold!r}."
            )


# The forms of the authors' code, where it departs from the print. `CrowdInG.plus` keeps them.
_CODE_DISCRIMINATOR: dict[str, Any] = {
    "item_embedding": "perceptron",
    "correlation": "residual",
    "generated_weight": 0.9,
    "sparsity": 0.01,
    "sparsity_on": "authentic",
}

# What `CrowdInG.plus` sets: a better pre-trained classifier, fewer pairs and steps, an adaptive entropy threshold.
PLUS: dict[str, Any] = {
    "pretraining": "max-mig",
    "members": 5,
    "generator": GeneratorTraining(learning_rate=1e-3),
    "discriminator": DiscriminatorTraining(learning_rate=1e-3, weight_decay=0.0, **_CODE_DISCRIMINATOR),
    "adversarial": Adversarial(
        batch_size=256,
        threshold_is="quantile",
        generator_loss="non-saturating",
        pairs_per_label=4,
        inner_steps=2,
        learning_rate=3e-5,
    ),
}
