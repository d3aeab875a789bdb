"""CrowdInG (Chu and Wang 2021): generative imputation of missing annotations for sparse crowds.

The paper in order:

- Section 3.2, the framework (classifier, generator, discriminator, auxiliary network; Eqs. (1) to (4)), Section 3.3.1,
  the selection of annotations, and Section 3.3.2, the updates of Eqs. (5) and (6): `crowding_game`
- Section 3.3.3, pre-training and two-step update: `CrowdInG._learn`, which has all trainings in order, and
  `crowding_game.Game.step`, which has the updates of a mini-batch. The paper numbers no algorithm; the caption of
  Figure 1 has the steps.
- Section 4.1, hyper-parameters: the options of `CrowdInG`; Section 4.5.1, ablations: `information=0` (CrowdG),
  `sees_items=False` (CrowdInG_U), `sees_workers=False` (CrowdInG_I), `selection="random"` (CrowdInG_R)

Below the estimator: what a fitted generator is used for. `augment` imputes annotations for any other method to learn
from (Section 4.4, DL-CL+InG); the baselines of Section 4.4 are in `imputation`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import torch

from manyhands._core.arrays import Array
from manyhands._core.randomness import Seed, make_generator, torch_seeded
from manyhands.annotations import Annotations
from manyhands.classifiers.base import CrowdClassifier
from manyhands.classifiers.crowding_game import (
    NOISE_DRAWS,
    PLUS,
    Adversarial,
    ClassifierWithGenerator,
    DiscriminatorTraining,
    Game,
    Generator,
    GeneratorTraining,
    Pairs,
    impute_annotations,
    standardised_features,
)
from manyhands.classifiers.network import (
    NETWORK_CONSTRAINTS,
    FitResult,
    TrainingContext,
    check_training_data,
    context_for,
    nested_method,
    rows_and_labels,
    rows_as_fitted,
)
from manyhands.classifiers.noise_layer import INIT
from manyhands.classifiers.self_crowd import predict_pseudo_annotations
from manyhands.estimator import Options
from manyhands.exceptions import AlignmentError, AnnotationError, ParameterError
from manyhands.features import Rows
from manyhands.heldout import align
from manyhands.nn.backbones import Ensemble, as_tensor
from manyhands.nn.batches import AnnotationBatches
from manyhands.validation import Constraint, NameOr, NoneOr, Number

_PRETRAININGS = ("crowd-layer", "conal", "spee-lfc", "trace-reg", "max-mig", "aggnet")
_CHUNK = 1024  # items processed together by a fitted generator, which bounds memory
Triples = npt.NDArray[np.int64]  # (n, 3): item, worker, label


class UncertainLabel(NamedTuple):
    """A label that was not given and that the generator predicts with high entropy."""

    item: Any  # id of the item
    worker: Any  # id of the worker
    entropy: float  # entropy of the predicted label distribution, in nats


class CrowdInG(CrowdClassifier):
    """CrowdInG: a classifier trained further on annotations that an adversarial generator imputes.

    `CrowdInG()` is the method as printed and, where the paper is silent, its published code; where the two differ, the
    form of the code is an option. `CrowdInG.plus()` starts from a better classifier and keeps the forms of the code. On
    real crowds the adversarial training adds little to the classifier that it starts from (docs/results/crowding.md).

    The paper searches mu and the learning rates. Here mu is the mean cost, held-out annotations select the epoch
    (`adversarial__early_stopping`), and learning rates are 3e-4, the largest of the paper's grid, times the factors of
    its code: 3e-4 for the discriminator, 6e-5 for the classifier (1/5) and 3e-3 for the generator (10). The last two
    are outside the grid, which Section 4.1 gives for both modules. (It prints 3.0 x 10^4; the minus signs are lost.)

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
        of the mutual information of the label and z, the classifier's prediction, in nats), "generator" and
        "classifier" (losses), "generator_ratio" and "classifier_ratio" (mean importance ratios after the last step,
        before clipping).
    module_ : ClassifierWithGenerator
        The classifier, with the generator behind it.

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
        hidden: tuple[int, ...] = (128,),  # Section 4.1, like the dropout
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
        gold: Mapping[Any, Any] | Sequence[Any] | None = None,
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
        gold : mapping of item id to class or sequence of shape (n_items,), default=None
            Known classes of some items, or the class of each item of the annotations, None where it is not known. The
            labels on gold items count as all others do.
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
        _check_threshold(self.adversarial)
        if worker_features is not None:
            data = replace(data, worker_features=_check_worker_features(worker_features, data.annotations.n_workers))
        return self._fit(data, verbose)

    def _learn(self, context: TrainingContext) -> FitResult:
        """Train all networks in the order of Section 3.3.3."""
        # "We pre-train the classifier with the observed annotations using [the crowd layer of] [25]": C, here also the
        # mean of several, or another method.
        base = nested_method(self, "pretraining")
        starts = [base._learn(context_for(base, context, f"start-{member}-")) for member in range(self.members)]
        classifier = starts[0].module if self.members == 1 else Ensemble([start.module for start in starts])
        history = [epoch for start in starts for epoch in start.history]
        game = Game(context, classifier, self.generator, self.discriminator, self.adversarial)
        # "With the initialized classifier, we also pre-train the generator and discriminator": G by the likelihood of
        # the observed labels given C, then D and Q against this generator.
        history = history + game.pretrain_generator(self.generator.epochs)
        if self.adversarial.epochs > 0:
            history = history + game.pretrain_discriminator()
            # Section 4.1, "the last 40 epochs": in turns D and Q by Eq. (4), G by Eq. (5) on items with an entropy of
            # at most t, C by Eq. (6) on the others. `Game.step` is one such turn.
            history = history + game.play()
        generator = game.generator.for_workers(game.crowd.place, standardised_features(game.crowd))
        return FitResult(ClassifierWithGenerator(game.network, generator), history)

    def _new_module(self, row_shape: tuple[int, ...], n_classes: int, n_workers: int) -> ClassifierWithGenerator:
        networks = [super(CrowdInG, self)._new_module(row_shape, n_classes, n_workers) for _ in range(self.members)]
        sizes, sees = (math.prod(row_shape), n_classes, n_workers), self.generator
        generator = Generator(*sizes, sees_items=sees.sees_items, sees_workers=sees.sees_workers)
        return ClassifierWithGenerator(networks[0] if self.members == 1 else Ensemble(networks), generator)

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
        _check_argument(NoneOr(Number(whole=True, least=1)), per_label, "per_label", "augment")
        rows, votes = self._aligned(X, annotations)
        triples = _impute(self.module_, rows, votes, per_label, most_likely, make_generator(random_state))
        codes, ids = votes.with_more(*triples.T), {"worker_ids": self.worker_ids_, "classes": self.classes_}
        return Annotations(codes.item, codes.worker, codes.label, item_ids=votes.item_ids, **ids)

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
        rows, worker_ids, n_classes = rows_as_fitted(self, X), self.worker_ids_.tolist(), len(self.classes_)
        if worker not in worker_ids:
            raise AnnotationError(
                f"There is no worker {worker!r} among those that this {type(self).__name__} was fitted with."
            )
        confusion = np.empty((len(rows), n_classes, n_classes))
        for truth in range(n_classes):
            log_labels = _label_distribution(
                self.module_, rows, np.array([worker_ids.index(worker)]), partial(_certain_of, truth, n_classes)
            )
            for first in range(0, len(rows), _CHUNK):
                item = np.arange(first, min(first + _CHUNK, len(rows)))
                confusion[item, truth] = log_labels(item)[:, :, 0].exp().numpy()
        return confusion / confusion.sum(axis=2, keepdims=True)

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
        _check_argument(Number(whole=True, least=1), n, "n", "least_sure")
        rows, votes = self._aligned(X, annotations)
        active = np.unique(votes.worker).astype(np.intp)
        log_labels = _label_distribution(self.module_, rows, active, self.module_.proba)
        best = np.zeros((0, 3))
        for first, _, entropy in predict_pseudo_annotations(log_labels, active, len(self.classes_), [votes]):
            item, column = np.nonzero(np.isfinite(entropy))
            new = np.column_stack([first + item, active[column], entropy[item, column]])
            best = np.concatenate([best, new])
            best = best[np.argsort(-best[:, 2], kind="stable")[:n]]
        item_ids, worker_ids = votes.item_ids.tolist(), self.worker_ids_.tolist()
        return [UncertainLabel(item_ids[int(i)], worker_ids[int(w)], float(h)) for i, w, h in best]

    def _aligned(self, X: Any, annotations: Any) -> tuple[Rows, Annotations]:
        """Return the rows of X, and the annotations in the codes of the fit; unseen workers are refused."""
        rows, votes = rows_and_labels(self, X, annotations)
        if len(rows) != votes.n_items:
            raise AlignmentError(
                f"X has {len(rows)} rows, but the annotations have {votes.n_items} items; row i must be item i."
            )
        name = type(self).__name__
        codes = align(votes, self.worker_ids_, self.classes_, name)
        if codes.n_annotations and codes.worker.max() == len(self.worker_ids_):
            raise AnnotationError(
                f"Some of these labels are by workers that this {name} was not fitted with; fit it with them."
            )
        return rows, codes


def _check_threshold(options: Adversarial) -> None:
    """Refuse a quantile above 1."""
    if options.threshold_is == "quantile" and options.threshold > 1:
        raise ParameterError(
            f"The parameter `adversarial__threshold` of CrowdInG is a share of the items where threshold_is is "
            f"'quantile', and must be at most 1. Got {options.threshold!r}."
        )


def _check_worker_features(worker_features: npt.ArrayLike, n_workers: int) -> npt.NDArray[np.float64]:
    """Return worker features as an array, or refuse them.

    Shapes: worker_features (n_workers, n_worker_features); returns (n_workers, n_worker_features).
    """
    try:
        features = np.asarray(worker_features, float)
    except (TypeError, ValueError):
        raise AlignmentError("worker_features must be numbers, one row per worker; encode its columns first.") from None
    if features.ndim != 2 or len(features) != n_workers or features.shape[1] == 0:
        raise AlignmentError(
            f"worker_features needs a row of at least one number for each of the {n_workers} workers, in the order of "
            f"annotations.worker_ids; its shape is {features.shape}."
        )
    if not np.isfinite(features).all():
        row = int(np.flatnonzero(~np.isfinite(features).all(axis=1))[0])
        raise AlignmentError(f"worker_features has NaN or infinity in row {row}; fill it.")
    return features


# ----------------------------------------------------------------------------------------------------
# What a fitted generator is used for: imputed annotations, and label distributions of workers.


def _impute(
    module: ClassifierWithGenerator,
    rows: Rows,
    votes: Annotations,
    per_label: int | None,
    most_likely: bool,
    rng: np.random.Generator,
) -> Triples:
    """Generate annotations for pairs of item and worker without a label.

    Shapes: returns (n, 3).
    """
    active = np.unique(votes.worker).astype(np.intp)
    place = torch.full((votes.n_workers,), -1)
    place[torch.from_numpy(active)] = torch.arange(len(active))
    place = place.to(module.device)
    triples = [np.zeros((0, 3), np.int64)]
    with torch_seeded(rng), torch.no_grad():
        generator = module.generator.for_workers(torch.from_numpy(active))

        def log_labels(x: torch.Tensor, pairs: Pairs) -> torch.Tensor:
            log_p: torch.Tensor = generator(generator.inputs(x), module.proba(x), pairs, generator.draw_noise(pairs))
            return log_p

        # Shuffled: otherwise a worker whose items are adjacent would get imputed labels among these items only.
        for batch in AnnotationBatches(votes, _CHUNK, rng, items=np.arange(votes.n_items), device=module.device):
            batch = batch._replace(worker=place[batch.worker])
            x = as_tensor(rows, batch.item, module.device)
            pairs, label = impute_annotations(
                batch, len(active), partial(log_labels, x), rng, per_label=per_label, most_likely=most_likely
            )
            row, worker, code = (column.cpu().numpy() for column in (*pairs, label))
            triples.append(np.column_stack([batch.item[row], active[worker], code]))
    return np.concatenate(triples)


def _label_distribution(
    module: ClassifierWithGenerator,
    rows: Rows,
    worker: npt.NDArray[np.intp],
    truth: Callable[[torch.Tensor], torch.Tensor],
) -> Callable[[npt.NDArray[np.intp]], torch.Tensor]:
    """Return a function from items to (n_items, n_classes, n_workers) log-probabilities, averaged over the noise."""
    generator = module.generator.for_workers(torch.from_numpy(worker))
    draws = torch.randn(NOISE_DRAWS, generator.n_classes, generator=torch.Generator().manual_seed(0))
    device = module.device

    @torch.no_grad()
    def log_labels(item: npt.NDArray[np.intp]) -> torch.Tensor:
        x = as_tensor(rows, item, device)
        row, column = np.divmod(np.arange(len(item) * len(worker)), len(worker))
        pairs = Pairs(torch.from_numpy(row).to(device), torch.from_numpy(column).to(device))
        inputs, z = generator.inputs(x), truth(x)
        each = [generator(inputs, z, pairs, noise).cpu() for noise in draws.to(device)]
        log_p = torch.logsumexp(torch.stack(each), 0) - np.log(NOISE_DRAWS)
        return log_p.view(len(item), len(worker), -1).transpose(1, 2)

    return log_labels


def _certain_of(truth: int, n_classes: int, x: torch.Tensor) -> torch.Tensor:
    """One-hot class distribution of items that are all of one class, (n_rows, n_classes)."""
    return torch.zeros(len(x), n_classes, device=x.device).index_fill(1, torch.tensor(truth, device=x.device), 1.0)


def _check_argument(constraint: Constraint, value: Any, name: str, where: str) -> None:
    """Refuse an argument of a method that its constraint does not allow."""
    if not constraint.allows(value):
        raise ParameterError(f"The parameter `{name}` of {where} must be {constraint}. Got {value!r}.")
