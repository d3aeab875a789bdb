"""NeuCrowd (Hao, Ding and Liu 2021, Knowledge and Information Systems): representation learning from crowds' labels.

The paper in order, with the numbers of sections of the preprint, arXiv:2003.09660:

- Sections 3.2 to 3.4, how an embedding is trained (n-tuplets, safety-aware sampling, robust anchor, representation
  learning network, sampling network, joint learning): `neucrowd_training`
- Sections 3.3.3 and 4.3, the downstream logistic regression, its C and the search of hyper-parameters: here, with the
  estimator. `NeuCrowd._fit_setting` has all trainings of one setting in order. The paper numbers no algorithm.
- Section 4.5, component analysis: `safety=None` (NeuCrowd-SA), with `anchor=None` (-SA-RA), with `sampler=False` too
  (-SA-RA-SN)

Ours are the ensemble of `NeuCrowd.plus()`, and `HeldoutRegression`, which gives other representation learners the same
search, so that tables compare like with like.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import torch
from torch import nn

from manyhands import registry
from manyhands._core.arrays import Array, Indices, Mask
from manyhands._core.randomness import Seed
from manyhands.aggregation.base import Aggregator
from manyhands.annotations import Annotations
from manyhands.classifiers.base import CrowdClassifier, FeatureMethod
from manyhands.classifiers.network import (
    FitResult,
    NetworkOptions,
    TrainingContext,
    TrainingData,
    context_for,
    train_network,
)
from manyhands.estimator import Options
from manyhands.exceptions import ParameterError
from manyhands.features import Rows
from manyhands.heldout import split_items
from manyhands.linear import newton_ascent, rotate_to_principal_axes
from manyhands.nn.backbones import Ensemble, outputs
from manyhands.representation.base import (
    REPRESENTATION_CONSTRAINTS,
    RepresentationLearner,
    TrainingSet,
    embed,
    label_confidence,
)
from manyhands.representation.neucrowd_training import (
    ACTIVATIONS,
    ANCHOR_SPACES,
    ANCHORS,
    HeldoutSearch,
    LabelConfidence,
    LogisticHead,
    MemberTraining,
    SafetyAwareSampling,
    TupletLoss,
    Tuplets,
    TupletSampler,
    new_embedder,
    safe_shares,
    train_members,
)
from manyhands.validation import Boolean, Constraint, Number, OneOf

# Settings of `NeuCrowd.plus()`: what helped in our comparisons on a few hundred items
# (docs/results/notes/neucrowd-tried.md).
PLUS: dict[str, Any] = {
    "sampler": False,
    "members": 5,
    "head": LogisticHead(soft_targets=True, skip=True, grid="fine"),
    "search": None,
    "activation": "tanh",
    "warm_up": 1,
    "labels": registry.DEFAULT,
    "embedding_size": 160,
    "learning_rate": 3e-3,
    "batch_size": 64,
    "max_epochs": 29,
    "patience": 5,
    "validation": 0.1,
}


class _EmbeddingMethod(CrowdClassifier):
    """A classifier whose `module_` is an ensemble of `EmbeddingClassifier`, and which embeds too."""

    def transform(self, X: Any) -> Array:
        """Return the embedding of each row.

        Parameters
        ----------
        X : array-like of shape (n_rows, ...)
            Features, of the same shape per row as in `fit`.

        Returns
        -------
        ndarray of shape (n_rows, embedding_size)
            `embedding_size` of the setting that was chosen.
        """
        self._check_fitted()
        networks = self.module_.networks
        size = sum(network.head.in_features - network.inputs.n_features for network in networks)
        return embed(self, [network.inputs.embedder for network in networks], size, X)

    def fit_transform(
        self,
        X: Any,
        annotations: Annotations | Any,
        gold: Mapping[Any, Any] | Sequence[Any] | None = None,
        *,
        ids: Any = None,
        verbose: int = 1,
    ) -> Array:
        """Learn an embedding, and return that of each training row.

        Parameters
        ----------
        X : array-like of shape (n_items, ...)
            Features, matched with items as in `fit`.
        annotations : Annotations or data frame
            The crowd's labels.
        gold : mapping of item id to class or sequence of shape (n_items,), default=None
            Known classes of some items, or the class of each item of the annotations, None where it is not known.
        ids : sequence of shape (n_rows,) or str, default=None
            Item id of each row of X, or the name of the column that has them.
        verbose : {0, 1}, default=1
            1 shows a progress bar in a terminal or notebook after two seconds, 0 does not.

        Returns
        -------
        ndarray of shape (n_rows, embedding_size)
            In the order of the rows of X; `embedding_size` of the setting that was chosen.
        """
        return self.fit(X, annotations, gold, ids=ids, verbose=verbose).transform(X)


class NeuCrowd(_EmbeddingMethod):
    """Embedding learned from tuplets of safe items weighted by confidence, and logistic regression on it.

    It is a representation learner and a classifier: `transform` returns the embedding, and `predict` the class by a
    logistic regression on it, fitted to the aggregator's classes, with C chosen by held-out log-likelihood.

    ``NeuCrowd()`` is the published method: one embedding, safety-aware sampling, a robust anchor, hard tuplets selected
    by a sampling network, and classes by majority vote. Held-out items choose among four settings (`search`): the paper
    sets the learning rate to 0.001, finds the sizes of layers and the L2 penalty by grid search with cross-validation,
    and eta and C of the similarity on a held-out data set; here C of the similarity (`loss.offset`) is not searched.

    Where the paper is silent or cannot be followed: it names no activation and its code has sigmoids; ReLU is the
    default, because the other representation learners have it too, and tables compare all three. The softmax of the
    loss is over the positive and the negatives, as in its code; the print also counts the anchor. Its anchor
    F(sum_i A_i x_i) mixes features without normalisation, which takes F far from all items; the default is the weighted
    mean of embeddings, close to its code (`anchor`, `anchor_space`). The nearest neighbours of an item are one set,
    split by class, as in its code; the text could also mean as many of either sort (``safety__neighbourhood="each"``).
    Adam replaces Adadelta, PyTorch's initial weights normal ones, and an epoch has five mini-batches rather than 234 as
    in its code: the best embedding is reached within a hundred steps. Validation items have labels of the crowd only.

    `NeuCrowd.plus()` (registry name "neucrowd-plus") changes what helped in our comparisons on a few hundred items:
    there is no sampling network and no search; five smaller embeddings with tanh form an ensemble, whose held-out items
    decide when to stop; the regression also uses the features, and learns the aggregator's posterior; classes come
    from the default aggregator rather than the majority vote.

    Use it for a few hundred labelled items; with thousands, `CrowdLayer` is simpler and usually as good.

    Parameters
    ----------
    tuplets : Tuplets, default=Tuplets()
        Tuplets of an epoch.
    confidence : LabelConfidence, default=LabelConfidence()
        Confidence A in the class of an item.
    safety : SafetyAwareSampling or None, default=SafetyAwareSampling()
        Safety-aware sampling; None draws tuplets from all items.
    anchor : {"weighted", "mean", "sum"} or None, default="weighted"
        Robust anchor: the confidence-weighted mean of the anchors of a mini-batch, their weighted sum divided by their
        number (the paper's code), or that sum as printed in the paper; None gives each tuplet its own anchor.
    sampler : bool, default=True
        Whether a sampling network selects hard tuplets.
    loss : TupletLoss, default=TupletLoss()
        Loss of the embedding.
    members : int, default=1
        Number of embeddings. Each of several holds out all labels of a part of the items, and every item is held out
        once; early stopping and C are decided by what is held out. Predictions are the means of the members'.
    head : LogisticHead, default=LogisticHead()
        Logistic regression on the embedding.
    search : HeldoutSearch or None, default=HeldoutSearch()
        Settings of learning rate, `loss.scale`, embedding size and weight decay to choose from: each is trained, and
        the one whose regression has the highest log-likelihood on held-out items is kept. None, or a fit without
        held-out items, uses the parameters as given.
    anchor_space : {"embedding", "features"}, default="embedding"
        What the robust anchor is a mean of: embeddings as in the paper's code, or features as printed, F(sum A x).
    warm_up : int, default=5
        Epochs in which all items are drawn and no hard tuplets are selected. The paper has none; in its code they are
        one epoch of 234 steps, more than the whole training here. On Syn1, five epochs are the first after which
        held-out labels are predicted better than by class shares; the best epoch is between 7 and 13.
    activation : {"relu", "tanh", "sigmoid"}, default="relu"
        "relu" after all layers but the last, or "tanh" or "sigmoid" after every layer of a perceptron and after the
        embedding.
    optimizer : {"adam", "adadelta"}, default="adam"
        Optimizer of both networks.
    labels : str or Aggregator, default="majority-vote"
        The aggregator that gives items their classes, by its registry name or as an instance.
    embedding_size : int, default=32
        Size of the embedding, divided among the members.
    backbone : {"mlp", "convnet"} or callable, default="mlp"
        Network from features to embeddings: a multi-layer perceptron, a small convolutional network, or a function
        (n_features or row shape, embedding_size) -> torch.nn.Module.
    hidden : tuple of int, default=(128,)
        Sizes of the hidden layers.
    dropout : float, default=0.2
        Dropout rate of the hidden layers and, with "tanh" or "sigmoid", of the embedding.
    batch_norm : bool, default=False
        Whether hidden layers are batch-normalised.
    learning_rate : float, default=0.001
        Step size of the optimizer.
    weight_decay : float, default=0.008
        L2 penalty on all weights: `weight_decay` times the weights is added to their gradient.
    batch_size : int, default=256
        Tuplets per mini-batch.
    max_epochs : int, default=180
        Maximal number of epochs after the warm-up.
    patience : int or None, default=15
        Early stopping: epochs without a higher held-out log-likelihood before training stops; None trains for
        `max_epochs`.
    validation : float, default=0.2
        Approximate share of the items whose labels a single member holds out (one of a whole number of equal parts);
        with 0 nothing is held out, by several members neither.
    device : str, default="cpu"
        Device of torch: "cpu", "cuda", "auto" (a GPU where there is one) or another name.
    checkpoint : str, Path or None, default=None
        Folder of checkpoints, from which an interrupted fit resumes with the same result; needs a `random_state`.
    random_state : int, Generator or None, default=None
        Seed of initial weights, tuplets, dropout and held-out items.

    Attributes
    ----------
    confidence_ : ndarray of shape (n_items,)
        A of the items that were trained on, NaN for the others.
    safe_ : ndarray of shape (n_items,)
        Share of the members in whose embedding an item is safe; 0 for items that were not trained on.
    C_ : float
        C of the logistic regression, on inputs of total variance 1.
    best_setting_ : int
        Number of the setting that was chosen, from 0.
    setting_ : dict of str to float
        Parameters that differ in it from those given, by name. Not kept by `save`.
    samplers_ : list of TupletSampler
        The sampling networks; empty without them. Not kept by `save`.
    aggregator_ : Aggregator
        The aggregator that gave items their classes, fitted to all labels; not kept by `save`.
    posterior_ : ndarray of shape (n_items, n_classes)
        Posterior of the training items by the aggregator; rows sum to 1.
    history_ : list of dict
        One dict per epoch: "loss", "sampler" (its loss), "safe" (share of safe items), "heldout" of held-out labels.
    module_ : torch.nn.Module
        The trained networks from features to logits, whose mean is the prediction.

    References
    ----------
    Y. Hao, W. Ding and Z. Liu (2021), NeuCrowd: neural sampling network for representation learning with crowdsourced
    labels, Knowledge and Information Systems.

    Examples
    --------
    >>> import numpy as np
    >>> from manyhands import Annotations, NeuCrowd
    >>> X = np.repeat([[0.0, 1.0], [1.0, 0.0]], 20, axis=0)
    >>> votes = Annotations.from_matrix(np.repeat([[0, 0, 1], [1, 1, 1]], 20, axis=0))
    >>> model = NeuCrowd(embedding_size=10, max_epochs=20, random_state=0).fit(X, votes)
    >>> model.transform(X).shape, model.predict(X[[0, 39]]).tolist()
    ((40, 10), [0, 1])
    """

    _of_items = (*CrowdClassifier._of_items, "aggregator_", "confidence_", "safe_")
    _constraints: ClassVar[dict[str, Constraint]] = REPRESENTATION_CONSTRAINTS | {
        "tuplets": Options(Tuplets),
        "confidence": Options(LabelConfidence),
        "safety": Options(SafetyAwareSampling, optional=True),
        "anchor": OneOf((*ANCHORS, None)),
        "sampler": Boolean(),
        "loss": Options(TupletLoss),
        "members": Number(whole=True, least=1, most=1000),
        "head": Options(LogisticHead),
        "search": Options(HeldoutSearch, optional=True),
        "anchor_space": OneOf(ANCHOR_SPACES),
        "warm_up": Number(whole=True, least=0),
        "activation": OneOf(tuple(ACTIVATIONS)),
        "optimizer": OneOf(("adam", "adadelta")),
    }

    confidence_: Array
    safe_: Mask
    C_: float
    best_setting_: int
    setting_: dict[str, float]
    samplers_: list[TupletSampler]
    aggregator_: Aggregator

    def __init__(
        self,
        tuplets: Tuplets = Tuplets(),
        confidence: LabelConfidence = LabelConfidence(),
        safety: SafetyAwareSampling | None = SafetyAwareSampling(),
        anchor: str | None = "weighted",
        sampler: bool = True,
        loss: TupletLoss = TupletLoss(),
        members: int = 1,
        head: LogisticHead = LogisticHead(),
        *,
        search: HeldoutSearch | None = HeldoutSearch(),
        anchor_space: str = "embedding",
        warm_up: int = 5,
        activation: str = "relu",
        optimizer: str = "adam",
        labels: Any = "majority-vote",
        embedding_size: int = 32,  # as in the authors' code
        backbone: Any = "mlp",
        hidden: tuple[int, ...] = (128,),  # as in the authors' code, which also has 256
        dropout: float = 0.2,  # Section 4.3
        batch_norm: bool = False,
        learning_rate: float = 1e-3,  # Section 4.3
        weight_decay: float = 8e-3,  # as in the authors' code: 2 for the sum of the losses of 256 tuplets
        batch_size: int = 256,  # as in the authors' code
        max_epochs: int = 180,  # ours: 900 steps; the best embedding is reached within a hundred
        patience: int | None = 15,  # the authors' code stops after 15 checks without improvement
        validation: float = 0.2,  # Table 1: 200 of 1,000 items of Syn1 and Syn2
        device: str = "cpu",
        checkpoint: str | Path | None = None,
        random_state: Seed = None,
    ) -> None:
        self.tuplets = tuplets
        self.confidence = confidence
        self.safety = safety
        self.anchor = anchor
        self.sampler = sampler
        self.loss = loss
        self.members = members
        self.head = head
        self.search = search
        self.anchor_space = anchor_space
        self.warm_up = warm_up
        self.activation = activation
        self.optimizer = optimizer
        self.labels = labels
        self.embedding_size = embedding_size
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
        """NeuCrowd as an ensemble without sampling network, whose regression also uses the features.

        Parameters
        ----------
        **changes : object
            Parameters that differ from those of `plus`, by name; `group__option` sets one option of a group.

        Returns
        -------
        NeuCrowd
        """
        return cls(**PLUS).set_params(**changes)

    def _learn(self, context: TrainingContext) -> FitResult:
        """Sections 3.3.3 and 4.3, the search: train each setting, and keep the best on held-out items."""
        settings = self._settings()
        if self.members == 1 and context.heldout is None:
            settings = settings[:1]  # there is nothing to choose by
        fits = []
        for n, setting in enumerate(settings):
            method = self._changed(setting)
            fits.append(method._fit_setting(context_for(method, context, f"setting {n} " if len(settings) > 1 else "")))
        best = int(np.argmax([score for _, score in fits]))
        result, _ = fits[best]
        return replace(result, results={**result.results, "best_setting_": best, "setting_": settings[best]})

    def _fit_setting(self, context: TrainingContext) -> tuple[FitResult, float]:
        """Train with these parameters; also return the mean log-likelihood of the held-out items' classes."""
        # The classes of the items, by majority vote or another aggregator; each of several members holds out others.
        module: Any = context.network()  # a mean of `EmbeddingClassifier`
        embedders, sizes = [network.inputs.embedder for network in module.networks], self._sizes()
        holds_out = self._uses_heldout() and self.validation > 0
        training_sets = _member_training_sets(context, self.labels, len(sizes), holds_out=holds_out)
        # Section 3.4: embedding and sampling network are trained jointly.
        members = [MemberTraining(self, *parts) for parts in zip(training_sets, embedders, sizes)]
        history = train_members(members)
        # Definitions 2 and 3 for all items, in the trained embedding.
        whole = TrainingSet(replace(context, annotations=context.data.annotations, heldout=None), self.labels)
        confidence = label_confidence(whole, self.confidence.kind, shrink=self.confidence.shrink)
        safe = safe_shares(self.safety or SafetyAwareSampling(), whole, embedders, confidence)
        # Section 4.3: the downstream logistic regression, with C chosen on held-out items.
        head = self.head
        choice = fit_heads(module.networks, training_sets, whole, soft_targets=head.soft_targets, grid=head.grid)
        results = {
            "aggregator_": whole.aggregator,
            "confidence_": confidence,
            "safe_": safe,
            "C_": choice.C,
            "samplers_": [member.sampler for member in members if member.sampler is not None],
        }
        posterior, notes = whole.aggregator.posterior_, whole.aggregator.notes_
        return FitResult(module, history, posterior, results, notes), choice.score

    def _settings(self) -> list[dict[str, float]]:
        """The settings to choose from, as changes of parameters."""
        if self.search is None:
            return [{}]
        return self.search.settings(self.learning_rate, self.loss.scale, self.embedding_size, self.weight_decay)

    def _changed(self, setting: Mapping[str, float]) -> NeuCrowd:
        """A new estimator with these parameters changed, and without a search of its own."""
        parameters = {**self.get_params(deep=False), "search": None}
        return type(self)(**parameters).set_params(**setting)

    def _selected(self) -> NeuCrowd:
        """An estimator with the parameters of the setting that was chosen."""
        return self._changed(self._settings()[getattr(self, "best_setting_", 0)])

    def _uses_heldout(self) -> bool:
        return self.patience is not None or self.search is not None

    def _hold_out(
        self, data: TrainingData, share: float, rng: np.random.Generator
    ) -> tuple[Annotations, Annotations | None]:
        """Hold out a share of the items of a single member; several members each hold out others later."""
        if self.members > 1 or share == 0:
            return data.annotations, None
        return member_folds(data, max(round(1 / share), 2), rng)[0]

    def _new_module(self, row_shape: tuple[int, ...], n_classes: int, n_workers: int) -> nn.Module:
        n_features, sizes = math.prod(row_shape) if self.head.skip else 0, self._selected()._sizes()
        embedder = partial(new_embedder, NetworkOptions.of(self), self.activation, row_shape)
        inputs = [HeadInput(embedder(size), n_features) for size in sizes]
        return Ensemble([EmbeddingClassifier(own, size, n_classes) for own, size in zip(inputs, sizes)])

    def _sizes(self) -> list[int]:
        return _member_sizes(self.embedding_size, self.members)


# ----------------------------------------------------------------------------------------------------
# Section 4.3: downstream logistic regression, as the last layer of a network; C by held-out log-likelihood.
#
#     minimise  C sum_ik -r_ik log softmax(V e_i / s + b)_k  +  |V|^2 / 2
#
# r are the (soft) classes of the items, and s^2 is the variance of all columns of e together, so that one C means the
# same whatever the number and the scale of the columns.

GRIDS = {  # values of C
    "decades": (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3, 1e4),  # "ranging from 1e-4 to 1e4"
    "fine": (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0),  # ours: half decades around the values that were chosen
}
_N_FOLDS = 5  # where no items are held out; scikit-learn's number
_MAX_ITEMS = 4000  # of a fold: a few thousand items are enough to choose C
_NEWTON_STEPS = 30  # at most; the regression of one C starts at the solution of the next smaller C
_IMPOSSIBLE = -1e4  # logit of a class that no target has: its probability is 0


class HeadInput(nn.Module):
    """Input of the regression: the embedding and, if there are any `n_features`, the features beside it."""

    ratio: torch.Tensor  # factor of the features, with which both parts have the same variance

    def __init__(self, embedder: nn.Module, n_features: int) -> None:
        super().__init__()
        self.embedder, self.n_features = embedder, n_features
        self.register_buffer("ratio", torch.ones(()))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the input of the regression, of shape (n_rows, embedding_size + n_features)."""
        embedding: torch.Tensor = self.embedder(x)
        return torch.hstack([embedding, self.ratio * x.flatten(1)]) if self.n_features else embedding

    def fit_ratio(self, rows: Rows, items: Indices) -> Array:
        """Set `ratio` from these items, and return their input of the regression.

        Shapes: returns (n, embedding_size + n_features).
        """
        inputs = outputs(self, rows, items).numpy()
        if self.n_features:
            variance = inputs.var(axis=0)
            own, other = float(variance[: -self.n_features].sum()), float(variance[-self.n_features :].sum())
            ratio = np.sqrt(own / other) if own > 0 and other > 0 else 1.0
            inputs[:, -self.n_features :] *= ratio
            self.ratio.mul_(ratio)
        return np.asarray(inputs)


class EmbeddingClassifier(nn.Module):
    """An embedding followed by a linear layer; the network of the embedding alone is `inputs.embedder`."""

    def __init__(self, inputs: HeadInput, embedding_size: int, n_classes: int) -> None:
        super().__init__()
        self.inputs = inputs
        self.head = nn.Linear(embedding_size + inputs.n_features, n_classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the logits, of shape (n_rows, n_classes)."""
        logits: torch.Tensor = self.head(self.inputs(x))
        return logits

    @torch.no_grad()
    def set_head(self, weights: Array) -> None:
        """Set the linear layer to the weights of a regression.

        Shapes: weights (n_inputs + 1, n_classes).
        """
        self.head.weight.copy_(torch.from_numpy(weights[:-1].T))
        self.head.bias.copy_(torch.from_numpy(weights[-1]))


class Split(NamedTuple):
    """One split into training and held-out items."""

    embedding: Array  # (n_items, n_inputs); input of the regression, of all items
    train: Indices  # items to fit to
    test: Indices


class ChosenC(NamedTuple):
    """The C with the largest held-out log-likelihood."""

    C: float
    score: float  # its mean log-likelihood of the held-out classes


def choose_C(splits: Sequence[Split], target: Array, grid: Sequence[float]) -> ChosenC:
    """Return the C with the largest held-out log-likelihood, summed over all splits.

    Shapes: target (n_items, n_classes).
    """
    total, n_heldout = np.zeros(len(grid)), 0
    for embedding, all_train, all_test in splits:
        train, test = _thinned(all_train), _thinned(all_test)
        test_target = target[test]
        n_heldout += len(test)
        for c, weights in enumerate(regressions(embedding[train], target[train], grid)):
            scores = embedding[test] @ weights[:-1] + weights[-1]
            log_p = scores - np.logaddexp.reduce(scores, axis=1)[:, None]
            total[c] += (test_target * np.maximum(log_p, np.log(1e-6))).sum()  # no item alone decides
    best = int(np.argmax(total))
    return ChosenC(grid[best], float(total[best]) / max(n_heldout, 1))


def _thinned(items: Indices) -> Indices:
    """Return at most `_MAX_ITEMS` of the items, evenly spaced from first to last."""
    return items[np.linspace(0, len(items) - 1, _MAX_ITEMS).astype(np.intp)] if len(items) > _MAX_ITEMS else items


def cross_validation_splits(embedding: Array, target: Array, rng: np.random.Generator) -> list[Split]:
    """Return five splits of the items, stratified by the most probable class.

    Shapes: embedding (n_items, n_inputs); target (n_items, n_classes).
    """
    order = rng.permutation(len(target))
    fold = np.empty(len(target), np.intp)
    fold[order[np.argsort(target[order].argmax(axis=1), kind="stable")]] = np.arange(len(target)) % _N_FOLDS
    parts = [(np.flatnonzero(fold != out), np.flatnonzero(fold == out)) for out in range(min(_N_FOLDS, len(target)))]
    return [Split(embedding, train, test) for train, test in parts if len(train)]


def regressions(embedding: Array, target: Array, strengths: Sequence[float]) -> list[Array]:
    """Fit one logistic regression for each C.

    Shapes: embedding (n_items, n_inputs); target (n_items, n_classes).
    """
    classes = np.flatnonzero(target.any(axis=0))
    rows = rotate_to_principal_axes(embedding, standardise=False)
    weights, fits = np.zeros((rows.X.shape[1] + 1, len(classes))), []
    for C in strengths:
        if len(classes) > 1:
            weights = newton_ascent(rows.X, target[:, classes], weights, (rows.variance or 1.0) / C, _NEWTON_STEPS)
        whole = np.zeros((embedding.shape[1] + 1, target.shape[1]))
        whole[-1] = _IMPOSSIBLE
        whole[:, classes] = rows.in_raw_features(weights)
        fits.append(whole)
    return fits


def fit_heads(
    networks: Sequence[EmbeddingClassifier],
    members: Sequence[TrainingSet],
    whole: TrainingSet,
    *,
    soft_targets: bool = False,
    grid: str = "decades",
) -> ChosenC:
    """Fit the logistic regression of each member to all items."""
    posterior = whole.aggregator.posterior_[whole.items]
    target = posterior if soft_targets else np.eye(posterior.shape[1])[whole.target]
    inputs = [network.inputs.fit_ratio(whole.context.data.rows, whole.items) for network in networks]
    splits: list[Split] = []
    for embedding, member in zip(inputs, members):
        train = np.isin(whole.items, member.items)
        if train.all():
            splits += cross_validation_splits(embedding, target, whole.context.rng)
        else:
            splits += [Split(embedding, np.flatnonzero(train), np.flatnonzero(~train))]
    choice = choose_C(splits, target, GRIDS[grid])
    for network, embedding in zip(networks, inputs):
        network.set_head(regressions(embedding, target, (choice.C,))[0])
    return choice


# ----------------------------------------------------------------------------------------------------
# The ensemble (ours): sizes of the members' embeddings, and held-out items of each.

_MIN_ITEMS = 5  # of a fold; with fewer, early stopping would be a matter of chance


def _member_sizes(embedding_size: int, n_members: int) -> list[int]:
    """Return the sizes of the members' embeddings, which differ by at most 1 and sum to `embedding_size`."""
    if n_members > embedding_size:
        raise ParameterError(
            f"The embedding_size {embedding_size} is divided among {n_members} members; raise it to that, or have "
            f"fewer members."
        )
    each, more = divmod(embedding_size, n_members)
    return [each + (m < more) for m in range(n_members)]


def _member_training_sets(
    context: TrainingContext, labels: Any, n_members: int, *, holds_out: bool
) -> list[TrainingSet]:
    """Return the training set of each member."""
    if n_members == 1 or not holds_out:
        return [TrainingSet(context, labels)] * n_members  # the same object: the truth is inferred once for all
    parts = member_folds(context.data, n_members, context.rng)
    return [TrainingSet(replace(context, annotations=votes, heldout=heldout), labels) for votes, heldout in parts]


def member_folds(
    data: TrainingData, n_folds: int, rng: np.random.Generator
) -> list[tuple[Annotations, Annotations | None]]:
    """Split the labels by items: for each fold, the labels of the other items, and the held-out labels of its own."""
    votes = data.annotations
    fold = split_items(votes, n_folds, rng, None if data.gold is None else data.gold >= 0)
    if len(np.unique(votes.item[fold >= 0])) < _MIN_ITEMS * n_folds:
        return [(votes, None)] * n_folds
    return [(votes.keep(np.flatnonzero(fold != m)), votes.keep(np.flatnonzero(fold == m))) for m in range(n_folds)]


# ----------------------------------------------------------------------------------------------------
# Other representation learners with the same regression and search.
#
# The same held-out items stop the training, choose C among decades, and choose one of a few settings, so that tables
# compare losses rather than searches.


class HeldoutRegression(_EmbeddingMethod):
    """Embedding by a representation learner, and logistic regression with C chosen on held-out items."""

    # It is used by the tables of `manyhands reproduce` and is not a method of the registry, so it cannot be saved.

    _constraints: ClassVar[dict[str, Constraint]] = {"heldout_share": Number(least=0, most=0.5)}

    def __init__(
        self,
        learner: RepresentationLearner,
        settings: Sequence[Mapping[str, Any]] = ({},),
        heldout_share: float = 0.2,
    ) -> None:
        self.learner = learner
        self.settings = settings
        self.heldout_share = heldout_share

    def _trains_network(self) -> bool:
        return False  # the learner does

    def check_parameters(self) -> None:
        """Raise a ParameterError unless every parameter, of the learner too, is a value that it may have."""
        super().check_parameters()
        self.learner.check_parameters()

    def _learn(self, context: TrainingContext) -> FitResult:
        return train_network(_SearchedLearner(self), context.data)


class _SearchedLearner(FeatureMethod):
    """The hooks of a network method that trains one learner per setting."""

    def __init__(self, method: HeldoutRegression) -> None:
        self.method, self.learner = method, method.learner

    def __getattr__(self, name: str) -> Any:
        return getattr(self.learner, name)  # the options of the network are the learner's

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return self.learner.get_params(deep)

    def _new_module(self, row_shape: tuple[int, ...], n_classes: int, n_workers: int) -> nn.Module:
        return self.learner._new_module(row_shape, n_classes, n_workers)

    def _uses_heldout(self) -> bool:
        return True

    def _hold_out(
        self, data: TrainingData, share: float, rng: np.random.Generator
    ) -> tuple[Annotations, Annotations | None]:
        """Hold out a share of the items, as NeuCrowd does; the learner's own share of labels is not used."""
        share = self.method.heldout_share
        return member_folds(data, max(round(1 / share), 2), rng)[0] if share else (data.annotations, None)

    def _learn(self, context: TrainingContext) -> FitResult:
        settings = self.method.settings if context.heldout is not None else self.method.settings[:1]
        results, scores = [], []
        for n, setting in enumerate(settings):
            learner = type(self.learner)(**self.learner.get_params(deep=False)).set_params(**setting)
            own = context_for(learner, context, f"setting {n} ")
            result = learner._learn(own)
            whole = TrainingSet(replace(own, annotations=own.data.annotations, heldout=None), learner.labels)
            network = EmbeddingClassifier(HeadInput(result.module, 0), learner.embedding_size, own.n_classes)
            choice = fit_heads([network], [TrainingSet(own, learner.labels)], whole)
            more = {**result.results, "C_": choice.C, "setting_": dict(setting)}
            results.append(replace(result, module=Ensemble([network]), results=more))
            scores.append(choice.score)
        return results[int(np.argmax(scores))]
