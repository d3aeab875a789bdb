"""CrowdInG: a generator fills in the labels that workers did not give, and must make them look real and informative.

    1. train a classifier C on the labels:                 z = p(k | x)                  `pretraining`
    2. train a generator on the labels, given z:           G = p(label | x, w, z, noise)
    3. train a discriminator and an informer on labels and on what G generates
    4. in turns, by costs that the generated labels have:  discriminator, generator where C is sure, C where it is not

What is new to C comes from the workers who did not label an item: would their labels look like those they do give, were
the truth z? (`adversaries.py` has the equations.)

Reference: Z. Chu and H. Wang (2021), Improve learning from crowds via generative augmentation, KDD.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Self, Unpack

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from manyhands.annotations import Annotations
from manyhands.classifiers.active_workers import ActiveWorkers
from manyhands.classifiers.base import FitResult
from manyhands.classifiers.crowding.augment import GeneratedLabels
from manyhands.classifiers.crowding.game import Game
from manyhands.classifiers.network import NETWORK_CONSTRAINTS, NetworkClassifier, NetworkParameters
from manyhands.classifiers.noise_layer import NOISE_LAYER_CONSTRAINTS
from manyhands.classifiers.self_training import HeldoutMetric
from manyhands.classifiers.training_context import TrainingContext
from manyhands.classifiers.wrapping import wrapped_method
from manyhands.exceptions import AlignmentError, ParameterError
from manyhands.nn.backbones import Mean
from manyhands.nn.batches import Batch
from manyhands.nn.label_discriminator import Discriminator, label_spread
from manyhands.nn.label_generator import Generator, GeneratorBehind
from manyhands.nn.train import History
from manyhands.validation import Constraint, Maybe, NameOr, Number, OneOf, Switch

# What the paper and its code do where the defaults do otherwise.
_AS_PUBLISHED: dict[str, Any] = {
    "pretraining": "crowd-layer",
    "members": 1,
    "threshold_is": "nats",
    "pairs_per_label": None,
    "inner_steps": 5,
    "adversarial_batch_size": 1024,
    "classifier_learning_rate": 6e-5,
    "generator_learning_rate": 3e-3,
    "discriminator_learning_rate": 3e-4,
    "discriminator_decay": 0.01,
}

_PRETRAININGS = ("crowd-layer", "conal", "spee-lfc", "trace-reg", "max-mig", "aggnet")


class CrowdInG(GeneratedLabels, NetworkClassifier):
    """A classifier that goes on learning from labels that its generator fills in for workers who gave none.

    Workers without a label are left out. With `adversarial_epochs=0` the classifier is that of its pre-training, to the
    last bit, and the generator is there all the same. `CrowdInG.as_published()` has the settings of the paper;
    on real crowds the game adds little to what it starts from, so that the defaults have a better start
    (docs/results/crowding.md).

    Parameters
    ----------
    pretraining : the method that trains the classifier first: "crowd-layer" as in the paper, "conal", "spee-lfc",
        "trace-reg", "max-mig", "aggnet", or such a method with parameters of its own. `start` and the network's
        parameters are those given here
    start : where the layers of a crowd layer start, as in `CrowdLayer`
    members : so many networks are trained first, from different starts; the classifier is their mean
    information : weight of the information that a generated label must carry about the truth; 0 goes without (CrowdG)
    threshold : the classifier is sure of an item where the entropy of its answer is at most this; the generator learns
        on these, the classifier on the others
    threshold_is : "quantile", the share of a batch's items that are sure ones; "nats" as in the paper
    multiplier : labels that cost less than this are made more probable, the others less; None is the mean cost
    clip : a label that is already so many times as probable as when it was drawn is left alone
    sees_items, sees_workers : whether the generator knows x (without: CrowdInG_U) and who is asked (without:
        CrowdInG_I)
    selection : generated labels that the discriminator learns from: the surer the likelier ("entropy"), or "random"
        (CrowdInG_R); of every worker as many as authentic ones
    two_step : generator and classifier learn in turns, on items of their own; without, together on all
    label_correlation : the discriminator's matrices of labels that meet on the same items take on from each other
    pairs_per_label : for every label of a worker in a batch, so many pairs without one are looked at; None takes all
        items of the batch with all workers, as the paper does
    inner_steps : of each network on one batch
    generator_epochs, discriminator_epochs : of their own training before the game
    adversarial_epochs : of the game, at most; 0 leaves the classifier as it was trained first
    adversarial_batch_size : items in a batch from step 2 on
    classifier_learning_rate : of Adam in the game
    generator_learning_rate, discriminator_learning_rate : of Adam, before the game too
    discriminator_decay : of the discriminator's weights; 0.01 in the authors' code, which in long games holds it back
    backbone, hidden, dropout, batch_norm : the classifier, as in `NetworkClassifier`
    learning_rate, batch_size, max_epochs : of its pre-training
    patience : every training but the discriminator's stops after so many epochs without a better likelihood of held-out
        labels, and gives back the best; the game may end where it began. None trains to the end
    validation : share of the labels held out for that
    device, checkpoint, random_state : where, from which folder a killed fit goes on, and the seed

    Attributes
    ----------
    history_ : epochs of all trainings in their order. Those of the game have "discriminator" (its loss),
        "seen_as_authentic" and "seen_as_generated" (the shares that it tells right), "information" (what authentic and
        generated labels tell of the truth, in nats, at least; noise where `information=0` teaches nobody), "generator"
        and "classifier" (losses), "generator_ratio" and "classifier_ratio" (mean importance weights after the last
        step, before clipping)

    Examples
    --------
    >>> import numpy as np
    >>> from manyhands import Annotations, CrowdInG
    >>> X = np.repeat([[0.0, 1.0], [1.0, 0.0]], 30, axis=0)
    >>> votes = Annotations.from_matrix(np.repeat([[0, 0, -1], [1, -1, 1]], 30, axis=0))
    >>> model = CrowdInG(learning_rate=0.01, random_state=0).fit(X, votes)
    >>> model.predict([[0.0, 1.0], [1.0, 0.0]]).tolist()
    [0, 1]
    >>> model.augment(X, votes).n_annotations > votes.n_annotations
    True
    """

    _constraints: ClassVar[dict[str, Constraint]] = NETWORK_CONSTRAINTS | {
        "pretraining": NameOr(_PRETRAININGS, "_learn_network", "a method that trains a network"),
        "start": NOISE_LAYER_CONSTRAINTS["start"],
        "members": Number(whole=True, least=1),
        "information": Number(least=0),
        "threshold": Number(least=0),
        "threshold_is": OneOf(("quantile", "nats")),
        "multiplier": Maybe(Number()),
        "clip": Number(least=1),
        "sees_items": Switch(),
        "sees_workers": Switch(),
        "selection": OneOf(("entropy", "random")),
        "two_step": Switch(),
        "label_correlation": Switch(),
        "pairs_per_label": Maybe(Number(whole=True, least=1)),
        "inner_steps": Number(whole=True, least=1),
        "generator_epochs": Number(whole=True, least=0),
        "discriminator_epochs": Number(whole=True, least=0),
        "adversarial_epochs": Number(whole=True, least=0),
        "adversarial_batch_size": Number(whole=True, least=1),
        "classifier_learning_rate": Number(above=0),
        "generator_learning_rate": Number(above=0),
        "discriminator_learning_rate": Number(above=0),
        "discriminator_decay": Number(least=0),
    }

    def __init__(
        self,
        pretraining: Any = "max-mig",
        start: Any = "identity",
        members: int = 5,
        information: float = 0.5,
        threshold: float = 0.5,
        threshold_is: str = "quantile",
        multiplier: float | None = None,
        clip: float = 5.0,
        sees_items: bool = True,
        sees_workers: bool = True,
        selection: str = "entropy",
        two_step: bool = True,
        label_correlation: bool = True,
        pairs_per_label: int | None = 4,
        inner_steps: int = 2,
        generator_epochs: int = 50,
        discriminator_epochs: int = 10,
        adversarial_epochs: int = 40,
        adversarial_batch_size: int = 256,
        classifier_learning_rate: float = 3e-5,
        generator_learning_rate: float = 1e-3,
        discriminator_learning_rate: float = 1e-3,
        discriminator_decay: float = 0.0,
        **network: Unpack[NetworkParameters],
    ) -> None:
        super().__init__(**network)
        self.pretraining = pretraining
        self.start = start
        self.members = members
        self.information = information
        self.threshold = threshold
        self.threshold_is = threshold_is
        self.multiplier = multiplier
        self.clip = clip
        self.sees_items = sees_items
        self.sees_workers = sees_workers
        self.selection = selection
        self.two_step = two_step
        self.label_correlation = label_correlation
        self.pairs_per_label = pairs_per_label
        self.inner_steps = inner_steps
        self.generator_epochs = generator_epochs
        self.discriminator_epochs = discriminator_epochs
        self.adversarial_epochs = adversarial_epochs
        self.adversarial_batch_size = adversarial_batch_size
        self.classifier_learning_rate = classifier_learning_rate
        self.generator_learning_rate = generator_learning_rate
        self.discriminator_learning_rate = discriminator_learning_rate
        self.discriminator_decay = discriminator_decay

    @classmethod
    def as_published(cls, **changes: Any) -> Self:
        """With the settings of the paper and, where it is silent, of its code; the stop rule still sees no truth."""
        return cls(**(_AS_PUBLISHED | changes))

    def fit(
        self,
        X: Any,
        annotations: Annotations,
        gold: Mapping[Any, Any] | None = None,
        worker_features: npt.ArrayLike | None = None,
    ) -> Self:
        """Learn from features and labels; row i of X is item i of the annotations.

        Parameters
        ----------
        X : array, mapped file, sparse matrix, images (n, channels, height, width), tensor, or a getter of rows
        annotations : the crowd's labels; items without any are legal
        gold : {item: class} where the truth is known; what workers said on gold items counts as ever
        worker_features : (n_workers, n) what is known of every worker, in the order of `annotations.worker_ids`;
            without it, every worker is known by who he is
        """
        data = self._training_data(X, annotations, gold)
        if self.threshold_is == "quantile" and self.threshold > 1:
            raise ParameterError(
                f"The parameter 'threshold' of CrowdInG is a share of the items where threshold_is is 'quantile', "
                f"and must be at most 1. Got {self.threshold!r}."
            )
        if worker_features is not None:
            data = replace(data, worker_features=_checked(worker_features, annotations.n_workers))
        return self._fit(data)

    def _learn_network(self, context: TrainingContext) -> FitResult:
        base = wrapped_method(self, "pretraining")
        stages = [f"{context.stage}start-{member}-" for member in range(self.members)]
        first = [base._learn_network(replace(context, method=base, stage=stage)) for stage in stages]
        network = first[0].module if self.members == 1 else Mean([learned.module for learned in first])
        game = self._game(context, network)
        history = [epoch for learned in first for epoch in learned.history] + self._learn_to_generate(game)
        if self.adversarial_epochs > 0:
            history = history + self._play(game, context)
        generator = game.generator.for_all(game.crowd.place, _standard_features(game.crowd))
        return FitResult(GeneratorBehind(game.network, generator), history)

    def _new_module(self, row_shape: tuple[int, ...], n_classes: int, n_workers: int) -> GeneratorBehind:
        made = [super(CrowdInG, self)._new_module(row_shape, n_classes, n_workers) for _ in range(self.members)]
        network = made[0] if self.members == 1 else Mean(made)
        sizes = math.prod(row_shape), n_classes, n_workers
        generator = Generator(*sizes, sees_items=self.sees_items, sees_workers=self.sees_workers)
        return GeneratorBehind(network, generator)

    def _game(self, context: TrainingContext, network: nn.Module) -> Game:
        """Step 2 and 3: the networks beside the classifier."""
        crowd = ActiveWorkers.of(context)
        everybody = _standard_features(crowd)
        known = None if everybody is None else everybody[crowd.active]
        sizes = math.prod(context.data.rows.shape), context.n_classes, len(crowd.active)
        spread = torch.from_numpy(label_spread(context.annotations)).float() if self.label_correlation else None
        generator = Generator(*sizes, known, sees_items=self.sees_items, sees_workers=self.sees_workers)
        discriminator = Discriminator(*sizes, known, spread=spread)
        to = context.device
        return Game(crowd, network, generator.to(to), discriminator.to(to), self)

    def _learn_to_generate(self, game: Game) -> History:
        modules, optimizers = {"generator": game.generator}, {"adam": game.generator_adam}
        context = game.crowd.judged
        evaluate = context.heldout_score(game.log_label, game.generator)
        return context.train(
            game.learn_to_generate,
            modules,
            optimizers,
            evaluate=evaluate,
            batches=context.batches(batch_size=self.adversarial_batch_size),
            max_epochs=self.generator_epochs,
            name="generator",
        )

    def _play(self, game: Game, context: TrainingContext) -> History:
        """Steps 3 and 4."""
        batches = context.batches(batch_size=self.adversarial_batch_size)
        judges, judges_adam = {"discriminator": game.discriminator}, {"discriminator": game.discriminator_adam}

        def tell(batch: Batch) -> dict[str, torch.Tensor]:
            found = game.learn_to_tell(game.draw(batch))
            return {f"{name}_start": figure for name, figure in found.items()}

        before = context.train(
            tell, judges, judges_adam, batches=batches, max_epochs=self.discriminator_epochs, name="discriminator"
        )
        metric = HeldoutMetric.made(context, game.network)
        evaluate = None
        if metric is not None:
            rows = context.data.rows

            def evaluate() -> float:
                return float(metric.measure(game.network, rows).mean())

        return before + context.train(
            game.play,
            judges | {"network": game.network, "generator": game.generator},
            judges_adam | {"network": game.network_adam, "generator": game.generator_adam},
            evaluate=evaluate,
            batches=batches,
            max_epochs=self.adversarial_epochs,
            name="game",
            start_counts=True,
        )


def _standard_features(crowd: ActiveWorkers) -> torch.Tensor | None:
    """(n_workers, n) what is known of the workers, each column with mean 0 and spread 1 over those with a label."""
    known = crowd.context.data.worker_features
    if known is None:
        return None
    active = known[crowd.active]
    spread = active.std(axis=0)
    return torch.from_numpy((known - active.mean(axis=0)) / np.where(spread > 0, spread, 1.0)).float()


def _checked(worker_features: npt.ArrayLike, n_workers: int) -> npt.NDArray[np.float64]:
    try:
        known = np.asarray(worker_features, float)
    except (TypeError, ValueError):
        raise AlignmentError(
            "worker_features must be numbers, a row for each worker; encode its columns first."
        ) from None
    if known.ndim != 2 or len(known) != n_workers or known.shape[1] == 0:
        raise AlignmentError(
            f"worker_features needs a row of at least one number for each of the {n_workers} workers, in the order of "
            f"annotations.worker_ids; its shape is {known.shape}."
        )
    if not np.isfinite(known).all():
        row = int(np.flatnonzero(~np.isfinite(known).all(axis=1))[0])
        raise AlignmentError(f"worker_features has NaN or infinity in row {row}; fill it.")
    return known
