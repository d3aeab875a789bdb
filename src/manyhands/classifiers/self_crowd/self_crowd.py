"""Self-Crowd: self-training on pseudo-annotations that are selected so that rare classes survive.

    1. train network and noise layers on the labels:  p(label | x, w)
    2. for each pair (i, w) without a label:          y_iw = argmax p(label | x_i, w),  H_iw = entropy
    3. select M pseudo-annotations: of the N'_c of class c the M_c = M (1 / N'_c) / sum_c' (1 / N'_c') of lowest entropy
    4. add them to the labels, train again, and continue with step 2.

Confident pseudo-annotations are mostly of frequent classes, so that selection by confidence alone makes the frequent
classes more frequent. The quotas of step 3 select more of a class, the rarer it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from manyhands.class_balance import Candidates, Counts, inverse_quotas, levelling_quotas, select
from manyhands.classifiers.base import CrowdClassifier
from manyhands.classifiers.fitting import combine
from manyhands.classifiers.nested_methods import nested_method
from manyhands.classifiers.network import context_for
from manyhands.classifiers.noise_layer import NOISE_LAYER_CONSTRAINTS, NoiseModel, initial_layer
from manyhands.classifiers.self_training import HeldoutMetric, LabelPool, RoundRecord, round_results
from manyhands.classifiers.training_context import TrainingContext
from manyhands.classifiers.training_data import FitResult
from manyhands.nn.inference import as_tensor, probabilities
from manyhands.nn.pseudo_annotations import PseudoAnnotationBlock, predict_pseudo_annotations
from manyhands.noise import safe_log
from manyhands.randomness import Seed
from manyhands.validation import Boolean, Constraint, FractionOrCount, NameOr, NoneOr, Number, OneOf

_BASES = ("crowd-layer", "conal", "spee-lfc", "trace-reg")

# The settings of `SelfCrowd.plus` that differ from the paper's.
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
    largest and the smallest class swapped: R = (largest - smallest) / total. 14 rounds of 10,000 pseudo-annotations
    fit only the ten augmented copies of each image of the paper's LabelMe: 10,000 are 1.8 % of its 564,530 pairs
    without a label, and `per_round` is that share. "R stays low" (Figure 3) cannot hold for the pseudo-annotations of
    a round, since Eq. 5 is inverse to the pool and so selects more of rare classes than of frequent ones; it is read
    as a statement about labels and pseudo-annotations together.

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
        and pseudo-annotations together as "combined_..."; and "heldout" (mean class-balanced held-out log-likelihood)
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
    classes_ : ndarray of shape (n_classes,)
        The classes, as in the annotations.
    worker_ids_ : ndarray of shape (n_workers,)
        The workers, as in the annotations.
    worker_accuracy_ : ndarray of shape (n_workers,)
        Expected share of correct labels of each worker, with one pseudo-count of accuracy 0.7.
    posterior_ : ndarray of shape (n_items, n_classes)
        Posterior of the training items given features and labels; rows sum to 1.
    history_ : list of dict
        One dict per epoch: the mean of each loss, and "heldout" where labels were held out.
    module_ : torch.nn.Module
        The trained network from features to logits.
    notes_ : dict of str to str
        What the data do not allow to conclude, by code; each was issued as a `CrowdWarning`.
    n_features_in_ : int
        Number of columns of X in `fit`; only where a row is a vector, not an image.
    feature_names_in_ : ndarray of str of shape (n_features_in_,)
        Names of the columns of X in `fit`; only where X was a data frame with string names.

    References
    ----------
    Y. Shi, S.-Y. Li and S.-J. Huang (2021), Learning from crowds with sparse and imbalanced annotations, arXiv
    2107.05039.

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

    def __init__(
        self,
        base: Any = "crowd-layer",
        evidence: str = "features",
        selection: str = "balanced",
        quota: str = "pool",
        rounds: int = 14,
        per_round: float = 0.018,
        round_patience: int | None = None,
        pseudo_weight: float = 1.0,
        warm_start: bool = False,
        warm_epochs: int = 5,
        *,
        init: Any = "identity",
        backbone: Any = "mlp",
        hidden: tuple[int, ...] = (128,),
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
        base = nested_method(self, "base")
        model: NoiseModel = base.noise_model()
        context = context_for(base, context)
        pool = LabelPool(context.annotations, context.heldout)
        n_per_round = pool.n_per_round(self.per_round)
        network, layer = context.network(), initial_layer(context, model, self.init)
        epochs = model.train(context, network, layer)
        record = RoundRecord(self.round_patience, HeldoutMetric.from_network(context, network), context.data.rows)
        record.add(epochs, network, layer)
        while len(record) <= self.rounds and not record.is_over:
            candidates = partial(self._candidates, context, model, network, layer, pool)
            selected = self._select(candidates, pool, n_per_round, context.rng)
            if len(selected) == 0:
                break
            pool = pool.with_pseudo(selected)
            if not self.warm_start:
                network, layer = context.network(), initial_layer(context, model, self.init)
            epochs = model.train(self._round_context(context, pool), network, layer, resumed=self.warm_start)
            record.add(epochs, network, layer)
        network, layer = record.kept
        results = model.results(layer, context) | round_results(record, pool)
        return FitResult(network, record.history, results=results, notes=self._notes(record))

    def _uses_heldout(self) -> bool:
        return self.patience is not None or self.round_patience is not None

    def _notes(self, record: RoundRecord) -> dict[str, str]:
        if self.round_patience is None or self.validation == 0 or record.metric is not None or len(record) == 1:
            return {}
        return {"rounds_not_compared": "There are too few labels to hold any out, so the rounds could not be compared."}

    def _round_context(self, context: TrainingContext, pool: LabelPool) -> TrainingContext:
        """Step 4: the context in which a round trains on labels and pseudo-annotations together."""
        if self.warm_start:
            context = context.with_options(max_epochs=self.warm_epochs)
        weight = None if self.pseudo_weight == 1 else pool.weight(self.pseudo_weight)
        stage = f"{context.stage}round-{len(pool.pseudo)}-"
        return replace(context, annotations=pool.all, weight=weight, stage=stage)

    def _candidates(
        self, context: TrainingContext, model: NoiseModel, network: nn.Module, layer: nn.Module, pool: LabelPool
    ) -> Iterator[PseudoAnnotationBlock]:
        """Step 2: the most probable label of each worker on each item without one, and its entropy."""
        rows, device, worker = context.data.rows, context.device, torch.from_numpy(pool.workers).to(context.device)
        proba = probabilities(network, rows)  # (n_items, n_classes)
        if self.evidence == "labels":
            proba = combine(proba, context.annotations, context.data.gold)
        log_proba = torch.from_numpy(safe_log(proba)).float().to(device)
        with torch.no_grad():
            distribution = model.label_distribution(layer, worker)

        def log_labels(item: npt.NDArray[np.intp]) -> torch.Tensor:
            found: torch.Tensor = distribution(log_proba[item[0] : item[-1] + 1], lambda: as_tensor(rows, item, device))
            return found

        return predict_pseudo_annotations(log_labels, pool.workers, context.n_classes, pool.taken)

    def _select(
        self,
        candidates: Callable[[], Iterator[PseudoAnnotationBlock]],
        pool: LabelPool,
        n: int,
        rng: np.random.Generator,
    ) -> npt.NDArray[np.int64]:
        """Step 3: the items, workers and labels of the selected pseudo-annotations, (n, 3)."""
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
