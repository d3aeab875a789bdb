"""CrowdInG: a generator imputes missing annotations that must look authentic and be informative about the truth.

    1. train a classifier C on the labels:                 z = p(k | x)                  `pretraining`
    2. train a generator on the labels, given z:           G = p(label | x, w, z, noise)
    3. train a discriminator and an information network on observed and generated labels
    4. in turns: discriminator; generator where C is confident; C where it is not, by the costs of generated labels

New information for C comes from workers who did not label an item: would their labels look authentic if the truth
were z? The equations are in `game.py`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy.typing as npt

from manyhands.annotations import Annotations
from manyhands.classifiers.base import CrowdClassifier
from manyhands.classifiers.crowding.adversarial_training import new_game, play, pretrain_generator
from manyhands.classifiers.crowding.augment import (
    FittedGenerator,
    UncertainLabel,
    check_argument,
    impute,
    most_uncertain,
    worker_confusion_by_item,
)
from manyhands.classifiers.crowding.options import PLUS, Adversarial, DiscriminatorTraining, GeneratorTraining
from manyhands.classifiers.crowding.worker_features import check_worker_features, standardised_features
from manyhands.classifiers.fitting import fit_method, rows_and_labels, rows_as_fitted
from manyhands.classifiers.nested_methods import nested_method
from manyhands.classifiers.network import NETWORK_CONSTRAINTS, context_for
from manyhands.classifiers.noise_layer import INIT
from manyhands.classifiers.training_context import TrainingContext
from manyhands.classifiers.training_data import FitResult, check_training_data
from manyhands.em.kernels import Array
from manyhands.nn.backbones import Ensemble
from manyhands.nn.label_generator import ClassifierWithGenerator, Generator
from manyhands.options import Options
from manyhands.randomness import Seed, make_generator
from manyhands.validation import Constraint, NameOr, NoneOr, Number

_PRETRAININGS = ("crowd-layer", "conal", "spee-lfc", "trace-reg", "max-mig", "aggnet")


class CrowdInG(CrowdClassifier):
    """CrowdInG: a classifier trained further on annotations that an adversarial generator imputes.

    `CrowdInG()` is the method as printed and, where the paper is silent, its published code; where the two differ, the
    form of the code is an option. `CrowdInG.plus()` starts from a better classifier and keeps the forms of the code. On
    real crowds the adversarial training adds little to the classifier that it starts from (docs/results/crowding.md).

    The paper selects the epoch, mu and the learning rates on validation items. Here held-out annotations select the
    epoch (`adversarial__early_stopping`), mu is the mean cost, and learning rates are from the paper's grid.

    Workers without labels are left out. Generator and discriminator read X as vectors: images are flattened to pixels.

    Parameters
    ----------
    pretraining : {"crowd-layer", "conal", "spee-lfc", "trace-reg", "max-mig", "aggnet"} or estimator, \
default="crowd-layer"
        Network method that trains the classifier first, by name or with parameters of its own. `init` and the network
        options are those given here.
    init : str or Aggregator, default="identity"
        Initial noise layers of a pre-training with noise layers: the identity, or confusion matrices of an aggregator.
    members : int, default=1
        Number of networks that are pre-trained from different initial weights; the classifier is their mean.
    generator : GeneratorTraining, default=GeneratorTraining()
        What the generator depends on, and its pre-training.
    discriminator : DiscriminatorTraining, default=DiscriminatorTraining()
        The discriminator's examples and its training.
    adversarial : Adversarial, default=Adversarial()
        The adversarial training: epochs, mutual-information term, entropy threshold, importance weights.
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
    weight_decay : float, default=0.0
        L2 penalty of Adam on all weights, those of noise layers included: `weight_decay` times the weights is added to
        their gradient.
    batch_size : int, default=64
        Items per mini-batch.
    max_epochs : int, default=50
        Maximal number of epochs.
    patience : int or None, default=10
        Early stopping: epochs without a higher held-out log-likelihood before training stops; None trains for
        `max_epochs`.
    validation : float, default=0.1
        Share of the labels held out for early stopping; nothing is held out with 0, or with fewer than ten labels.
    device : str, default="cpu"
        Device of torch: "cpu", "cuda", "auto" (a GPU where there is one) or another name.
    checkpoint : str, Path or None, default=None
        Folder of checkpoints, from which an interrupted fit resumes with the same result; needs a `random_state`.
    random_state : int, numpy.random.Generator or None, default=None
        Seed of initial weights, shuffling, dropout and the held-out split.

    Attributes
    ----------
    history_ : list of dict
        Epochs of all trainings in order. Those of the adversarial training have "discriminator" (its loss),
        "seen_as_authentic" and "seen_as_generated" (shares that it classifies correctly), "information" (lower bound
        of the mutual information of label and truth, in nats), "generator" and "classifier" (losses),
        "generator_ratio" and "classifier_ratio" (mean importance ratios after the last step, before clipping).
    module_ : ClassifierWithGenerator
        The classifier, with the generator behind it.
    classes_ : ndarray of shape (n_classes,)
        The classes, as in the annotations.
    worker_ids_ : ndarray of shape (n_workers,)
        The workers, as in the annotations.
    worker_accuracy_ : ndarray of shape (n_workers,)
        Expected share of correct labels of each worker, with one pseudo-count of accuracy 0.7.
    posterior_ : ndarray of shape (n_items, n_classes)
        Posterior of the training items given features and labels; rows sum to 1.
    notes_ : dict of str to str
        What the data do not allow to conclude, by code; each was issued as a `CrowdWarning`.
    n_features_in_ : int
        Number of columns of X in `fit`; only where a row is a vector, not an image.
    feature_names_in_ : ndarray of str of shape (n_features_in_,)
        Names of the columns of X in `fit`; only where X was a data frame with string names.

    References
    ----------
    Z. Chu and H. Wang (2021), Improve learning from crowds via generative augmentation, KDD.

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
        "pretraining": NameOr(_PRETRAININGS, "_learn", "a method that trains a network"),
        "init": INIT,
        "members": Number(whole=True, least=1),
        "generator": Options(GeneratorTraining),
        "discriminator": Options(DiscriminatorTraining),
        "adversarial": Options(Adversarial),
    }

    module_: ClassifierWithGenerator

    def __init__(
        self,
        pretraining: Any = "crowd-layer",
        init: Any = "identity",
        members: int = 1,
        generator: GeneratorTraining = GeneratorTraining(),  # noqa: B008  # it is frozen
        discriminator: DiscriminatorTraining = DiscriminatorTraining(),  # noqa: B008
        adversarial: Adversarial = Adversarial(),  # noqa: B008
        *,
        backbone: Any = "mlp",
        hidden: tuple[int, ...] = (128,),
        dropout: float = 0.5,
        batch_norm: bool = False,
        learning_rate: float = 1e-3,
        weight_decay: float = 0.0,
        batch_size: int = 64,
        max_epochs: int = 50,
        patience: int | None = 10,
        validation: float = 0.1,
        device: str = "cpu",
        checkpoint: str | Path | None = None,
        random_state: Seed = None,
    ) -> None:
        self.pretraining = pretraining
        self.init = init
        self.members = members
        self.generator = generator
        self.discriminator = discriminator
        self.adversarial = adversarial
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
        """CrowdInG that starts from five Max-MIG networks, with fewer and smaller adversarial steps.

        Parameters
        ----------
        **changes : object
            Constructor parameters that differ; `group__option` for one option of a group.

        Returns
        -------
        CrowdInG
        """
        return cls(**PLUS).set_params(**changes)

    def fit(
        self,
        X: Any,
        annotations: Annotations | Any,
        gold: Mapping[Any, Any] | None = None,
        worker_features: npt.ArrayLike | None = None,
        *,
        ids: Any = None,
        verbose: int = 1,
    ) -> Self:
        """Learn from features and labels.

        Parameters
        ----------
        X : array-like, sparse matrix, memory map, images, tensor or row getter, shape (n_items, ...)
            Features, matched with items as in `CrowdClassifier.fit`.
        annotations : Annotations or data frame
            The crowd's labels; items without labels are allowed. A frame is read as `manyhands.read_annotations` does.
        gold : mapping of item id to class, default=None
            Known classes of some items. The labels on gold items count as all others do.
        worker_features : array-like of shape (n_workers, n_worker_features), default=None
            Features of the workers in the order of `annotations.worker_ids`; None gives each worker a free code.
        ids : sequence of shape (n_rows,) or str, default=None
            Item id of each row of X, or the name of the column that has them.
        verbose : {0, 1}, default=1
            1 shows a progress bar in a terminal or notebook after two seconds, 0 does not.

        Returns
        -------
        self
        """
        data = check_training_data(self, X, annotations, gold, ids)
        self.adversarial.check_threshold()
        if worker_features is not None:
            data = replace(data, worker_features=check_worker_features(worker_features, data.annotations.n_workers))
        fit_method(self, data, verbose)
        return self

    def augment(
        self,
        X: Any,
        annotations: Annotations | Any,
        *,
        per_label: int | None = 1,
        most_likely: bool = False,
        random_state: Seed = None,
    ) -> Annotations:
        """Return annotations together with imputed ones, for any method to learn from.

        Parameters
        ----------
        X : array-like of shape (n_items, ...)
            Features of the items.
        annotations : Annotations or data frame
            Their labels, by workers of the fit.
        per_label : int or None, default=1
            Imputed annotations for each label of a worker, on items that they did not label, confident ones more
            probably; None imputes every pair of an item and a worker with a label.
        most_likely : bool, default=False
            Impute the most probable label instead of one drawn from the distribution.
        random_state : int, numpy.random.Generator or None, default=None
            Seed of the draws.

        Returns
        -------
        Annotations
        """
        check_argument(NoneOr(Number(whole=True, least=1)), per_label, "per_label", "augment")
        (rows, annotations), fitted = rows_and_labels(self, X, annotations), self._generator()
        known = fitted.aligned(rows, annotations)
        imputed = impute(fitted, rows, known, per_label, most_likely, make_generator(random_state))
        codes, ids = known.with_more(*imputed.T), {"worker_ids": self.worker_ids_, "classes": self.classes_}
        return Annotations(codes.item, codes.worker, codes.label, item_ids=known.item_ids, **ids)

    def explain_worker(self, worker: Any, X: Any) -> Array:
        """Return the label distribution of a worker on each item, given each possible true class.

        Parameters
        ----------
        worker : object
            Id of a worker of the fit.
        X : array-like of shape (n_rows, ...)
            Features of the items.

        Returns
        -------
        ndarray of shape (n_rows, n_classes, n_classes)
            Probabilities [i, truth, label]; that of a truth that the features exclude is an extrapolation.
        """
        return worker_confusion_by_item(self._generator(), worker, rows_as_fitted(self, X))

    def least_sure(self, X: Any, annotations: Annotations | Any, n: int = 10) -> list[UncertainLabel]:
        """Return the n missing labels whose predicted distribution has the highest entropy.

        Parameters
        ----------
        X : array-like of shape (n_items, ...)
            Features of the items.
        annotations : Annotations or data frame
            Their labels; only workers who have a label there are considered.
        n : int, default=10
            How many to return.

        Returns
        -------
        list of UncertainLabel
            Item, worker and entropy, the most uncertain first.
        """
        check_argument(Number(whole=True, least=1), n, "n", "least_sure")
        (rows, annotations), fitted = rows_and_labels(self, X, annotations), self._generator()
        return most_uncertain(fitted, rows, known := fitted.aligned(rows, annotations), known.item_ids.tolist(), n)

    def _generator(self) -> FittedGenerator:
        return FittedGenerator(self.module_, self.worker_ids_, self.classes_, type(self).__name__)

    def _learn(self, context: TrainingContext) -> FitResult:
        base = nested_method(self, "pretraining")
        first = [base._learn(context_for(base, context, f"start-{member}-")) for member in range(self.members)]
        network = first[0].module if self.members == 1 else Ensemble([result.module for result in first])
        game = new_game(context, network, self.generator, self.discriminator, self.adversarial)
        history = [epoch for result in first for epoch in result.history]
        history = history + pretrain_generator(game, self.generator.epochs)
        if self.adversarial.epochs > 0:
            history = history + play(game, context)
        generator = game.generator.for_workers(game.crowd.place, standardised_features(game.crowd))
        return FitResult(ClassifierWithGenerator(game.network, generator), history)

    def _new_module(self, row_shape: tuple[int, ...], n_classes: int, n_workers: int) -> ClassifierWithGenerator:
        made = [super(CrowdInG, self)._new_module(row_shape, n_classes, n_workers) for _ in range(self.members)]
        sizes, sees = (math.prod(row_shape), n_classes, n_workers), self.generator
        generator = Generator(*sizes, sees_items=sees.sees_items, sees_workers=sees.sees_workers)
        return ClassifierWithGenerator(made[0] if self.members == 1 else Ensemble(made), generator)
