"""What all methods that train a network share, from the parameters to the trained network.

`NetworkOptions` are their parameters, `TrainingData` is the checked input of a fit, `TrainingContext` what a method has
at hand while it learns, `FitResult` what it returns. `train_network` builds the context and lets the method learn.
Below it stand the rows of X of later calls, the truth by an aggregator or by classifier and labels, and methods that
are parameters of other methods. The base class, whose `fit` calls these functions, is `base.FeatureMethod`.
"""

from __future__ import annotations

import hashlib
import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from manyhands import registry
from manyhands._core.arrays import Array
from manyhands._core.randomness import Seed, make_generator, seed_unset, torch_seeded
from manyhands.aggregation.base import Aggregator
from manyhands.annotations import Annotations
from manyhands.em.e_step import Gold, posterior_given
from manyhands.em.noise import safe_log
from manyhands.em.priors import gold_by_item, gold_codes
from manyhands.estimator import BaseEstimator
from manyhands.exceptions import AlignmentError, CrowdWarning, ParameterError, TrainingError
from manyhands.features import (
    Names,
    Rows,
    as_rows,
    check_feature_names,
    feature_names_of,
    fingerprint,
    id_column_of,
    match_rows,
    reordered,
    warn_of_missing_names,
    without_column,
)
from manyhands.heldout import worker_confusions
from manyhands.validation import (
    Boolean,
    Constraint,
    Device,
    Folder,
    LayerSizes,
    NameOr,
    NoneOr,
    Number,
    RandomState,
    check_annotations,
)

if TYPE_CHECKING:
    import torch
    from torch import nn

    from manyhands.classifiers.base import FeatureMethod
    from manyhands.nn.batches import AnnotationBatches, Batch
    from manyhands.nn.train import Epochs


# ----------------------------------------------------------------------------------------------------
# The parameters that all network methods share: architecture, optimizer, early stopping, device, seed.


@dataclass(frozen=True)
class NetworkOptions:
    """The parameters that all network methods share; `NETWORK_CONSTRAINTS` has their legal values.

    Hidden layer, dropout, mini-batches and epochs are those of the demonstration of the crowd layer on LabelMe
    (F. Rodrigues and F. Pereira, 2018), the step size is Adam's own default.
    """

    backbone: Any = "mlp"  # network from features to logits
    hidden: tuple[int, ...] = (128,)  # sizes of the hidden layers
    dropout: float = 0.5  # dropout rate of the hidden layers
    batch_norm: bool = False  # batch normalisation of the hidden layers
    learning_rate: float = 1e-3  # step size of Adam
    weight_decay: float = 0.0  # L2 penalty of Adam on all weights
    batch_size: int = 64
    max_epochs: int = 50  # maximal number of epochs
    patience: int | None = 10  # early stopping: epochs without a higher held-out log-likelihood before training stops
    validation: float = 0.1  # share of the labels held out for early stopping
    device: str = "cpu"
    checkpoint: str | Path | None = None
    random_state: Seed = None

    @classmethod
    def of(cls, method: Any) -> NetworkOptions:
        """Read the options from the parameters of a network method."""
        return cls(**{option.name: getattr(method, option.name) for option in fields(cls)})


# What the parameters of every network method may be.
NETWORK_CONSTRAINTS: dict[str, Constraint] = {
    "backbone": NameOr(("mlp", "convnet"), "__call__", "a function (n_features or shape, n_classes) -> torch Module"),
    "hidden": LayerSizes(),
    "dropout": Number(least=0, most=0.99),  # with 1 no hidden unit would be left
    "batch_norm": Boolean(),
    "learning_rate": Number(above=0),
    "weight_decay": Number(least=0),
    "batch_size": Number(whole=True, least=1),
    "max_epochs": Number(whole=True, least=1),
    "patience": NoneOr(Number(whole=True, least=1)),
    "validation": Number(least=0, most=0.5),  # at least as many labels to learn from as held out
    "device": Device(),
    "checkpoint": Folder(),
    "random_state": RandomState(),
}

# What a parameter that names an aggregator may be.
AGGREGATOR = NameOr(tuple(registry.names("aggregator")), "fit_predict", "an aggregator")


# ----------------------------------------------------------------------------------------------------
# What a method with features learns from (`TrainingData`), and what it returns (`FitResult`).


@dataclass(frozen=True)
class TrainingData:
    """Validated input of `fit`."""

    rows: Rows  # features of the items; row i belongs to item i
    annotations: Annotations  # the crowd's labels, with the items in the order of their sorted ids
    gold: Gold  # (n_items,); code of the known class of each item, -1 where it is unknown; None without gold
    # (n_workers, n_worker_features); features of the workers, for the methods that use them
    worker_features: Array | None = None
    # (n_features,); names of the columns of X; None where X is no data frame with string names
    feature_names: Names | None = None
    # the crowd's labels, with the items in the order of the caller, in which results are returned; None for that of
    # `annotations`
    given: Annotations | None = None
    id_column: str | None = None  # the column of X that had the ids of the items

    @property
    def n_training_items(self) -> int:
        """Number of items that have a label or gold."""
        labelled = self.annotations.n_labels > 0
        return int(np.count_nonzero(labelled if self.gold is None else labelled | (self.gold >= 0)))


@dataclass(frozen=True)
class FitResult:
    """What `_learn` returns; the base class turns it into fitted attributes.

    Attributes
    ----------
    module : object
        The trained model: a torch module or a scikit-learn classifier.
    history : list of dict
        One dict per epoch or EM iteration.
    posterior : ndarray of shape (n_items, n_classes) or None
        Posterior of the training items given features and labels. None: the base computes it from the classifier's
        probabilities and the confusion matrices that they imply.
    results : mapping of str to object
        Further fitted attributes; each name ends in an underscore.
    notes : mapping of str to str
        What the data do not allow to conclude, by code; each becomes a `CrowdWarning`.
    noise_layer : object or None
        The trained noise layer, if its label noise depends on the features of the item: `score` uses it.
    """

    module: Any
    history: list[dict[str, float]] = field(default_factory=list)
    posterior: Array | None = None
    results: Mapping[str, Any] = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)
    noise_layer: Any = None


def check_training_data(
    method: BaseEstimator,
    X: Any,
    annotations: Annotations,
    gold: Mapping[Any, Any] | Sequence[Any] | None,
    ids: Any = None,
) -> TrainingData:
    """Validate the parameters of a method and the arguments of its `fit`, and sort the items by their ids.

    Shapes: ids (n_rows,).
    """
    method.check_parameters()
    annotations = check_annotations(annotations, who=type(method).__name__)
    gold = gold_by_item(gold, annotations.item_ids)
    matched = match_rows(X, annotations, ids)
    names, rows = feature_names_of(matched.X), matched.rows()
    in_order = matched.annotations.with_sorted_items()
    rows = reordered(rows, matched.annotations.sorting_order)
    gold_code = gold_codes(gold, in_order.item_ids, in_order.classes)
    return TrainingData(
        rows, in_order, gold_code, feature_names=names, given=matched.annotations, id_column=matched.id_column
    )


# ----------------------------------------------------------------------------------------------------
# The training context of a fit: data, held-out labels, device, random generator, and the one training loop.
#
# torch is imported when a network is trained, not before.

EVALUATED_ROWS = 1024  # items at a time in evaluation: bounds the memory, and more at a time is not faster


@dataclass(frozen=True, eq=False)
class TrainingContext:
    """All that a method needs while it learns. Methods without a network use `data` and `rng` only.

    Attributes
    ----------
    data : TrainingData
        Features, all labels, gold.
    annotations : Annotations
        The labels to learn from: those that are not held out.
    heldout : Annotations or None
        The labels that only early stopping sees.
    rng : numpy.random.Generator
        The generator of this fit; torch's global generator is seeded from it for the duration of the fit.
    options : NetworkOptions
        Network, optimizer and stopping parameters.
    new_network : callable () -> torch.nn.Module
        Returns a new, untrained network.
    device : torch.device or str
        Where networks are trained.
    identity : mapping of str to str
        Data and parameters of this fit as text; a checkpoint belongs to one identity.
    folder : Path or None
        Folder of this fit's checkpoints.
    weight : ndarray of shape (n_annotations,) or None
        Weight of each label in the loss; None means 1 each.
    stage : str
        Prefix of the names of trainings, where several follow each other in one fit.
    """

    data: TrainingData
    annotations: Annotations
    heldout: Annotations | None
    rng: np.random.Generator
    options: NetworkOptions = field(default_factory=NetworkOptions)
    new_network: Callable[[], nn.Module] | None = None
    device: torch.device | str = "cpu"
    identity: Mapping[str, str] = field(default_factory=dict)
    folder: Path | None = None
    weight: Array | None = None
    stage: str = ""

    @property
    def n_workers(self) -> int:
        """Number of workers."""
        return self.annotations.n_workers

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return self.annotations.n_classes

    def with_options(self, **changes: Any) -> Self:
        """Return a context in which some of the options differ.

        Parameters
        ----------
        **changes : object
            Options of `NetworkOptions` by name.

        Returns
        -------
        TrainingContext
        """
        return replace(self, options=replace(self.options, **changes))

    def network(self) -> nn.Module:
        """Return a new, untrained network on the device."""
        assert self.new_network is not None
        return self.new_network().to(self.device)

    def adam(self, *modules: nn.Module) -> torch.optim.Adam:
        """Return Adam over the parameters of these modules, with the method's learning rate and weight decay.

        Parameters
        ----------
        *modules : torch.nn.Module
            The modules to be trained.

        Returns
        -------
        torch.optim.Adam
        """
        import torch

        parameters = [p for m in modules for p in m.parameters()]
        return torch.optim.Adam(parameters, lr=self.options.learning_rate, weight_decay=self.options.weight_decay)

    def x(self, batch: Batch) -> torch.Tensor:
        """Return the features of the items of a mini-batch, of shape (n_rows, ...)."""
        from manyhands.nn.backbones import as_tensor

        return as_tensor(self.data.rows, batch.item, self.device)

    def gold(self, batch: Batch) -> torch.Tensor | None:
        """Return the known classes of a mini-batch.

        Parameters
        ----------
        batch : Batch
            A mini-batch.

        Returns
        -------
        torch.Tensor of shape (n_rows,) or None
            Class codes, -1 where the class is unknown; None without any gold.
        """
        import torch

        if self.data.gold is None:
            return None
        return torch.from_numpy(self.data.gold[batch.item].astype(np.int64)).to(self.device)

    def batches(self, items: npt.NDArray[np.intp] | None = None, batch_size: int | None = None) -> AnnotationBatches:
        """Return shuffled mini-batches of items, each with its training labels.

        Parameters
        ----------
        items : ndarray of int, default=None
            Codes of the items; None takes those with a label or gold.
        batch_size : int, default=None
            Items per mini-batch; None takes the method's.

        Returns
        -------
        AnnotationBatches
        """
        from manyhands.nn.batches import AnnotationBatches

        if items is None:
            wanted = self.annotations.n_labels > 0
            wanted = wanted if self.data.gold is None else wanted | (self.data.gold >= 0)
            items = np.flatnonzero(wanted)
        return AnnotationBatches(
            self.annotations,
            self.options.batch_size if batch_size is None else batch_size,
            self.rng,
            items=items,
            device=self.device,
            weight=self.weight,
        )

    def heldout_score(self, log_label: Callable[[Batch], torch.Tensor], *modules: nn.Module) -> Callable[[], float]:
        """Return a function that computes the mean held-out log-likelihood.

        Parameters
        ----------
        log_label : callable (Batch) -> torch.Tensor of shape (n_labels,)
            Log-probability of each label of a mini-batch.
        *modules : torch.nn.Module
            The modules to be put into evaluation mode.

        Returns
        -------
        callable () -> float
        """
        import torch

        from manyhands.nn.batches import AnnotationBatches

        def evaluate() -> float:
            assert self.heldout is not None
            batches = AnnotationBatches(self.heldout, EVALUATED_ROWS, device=self.device)
            for module in modules:
                module.eval()
            with torch.no_grad():
                total = sum(float(log_label(batch).cpu().double().sum()) for batch in batches)
            for module in modules:
                module.train()
            return total / self.heldout.n_annotations

        return evaluate

    def train(
        self,
        step: Callable[[Any], Any],
        modules: Mapping[str, nn.Module],
        optimizers: Mapping[str, torch.optim.Optimizer],
        *,
        evaluate: Callable[[], float] | None = None,
        until: Callable[[list[dict[str, float]]], bool] | None = None,
        batches: Any = None,
        max_epochs: int | None = None,
        name: str = "training",
        score_initial_weights: bool = False,
    ) -> list[dict[str, float]]:
        """Run the training loop (`nn.train.train`) with the method's options.

        Parameters
        ----------
        step : callable (Batch) -> loss or dict of losses
            One optimisation step.
        modules : mapping of str to torch.nn.Module
            All modules that steps change, for early stopping and checkpoints.
        optimizers : mapping of str to torch.optim.Optimizer
            All optimizers that steps use.
        evaluate : callable () -> float, default=None
            Held-out log-likelihood, by which early stopping decides.
        until : callable (history) -> bool, default=None
            Training also stops after the epoch after which this is true of its history.
        batches : iterable of mini-batches, default=None
            None takes `self.batches()`.
        max_epochs : int, default=None
            None takes the method's.
        name : str, default="training"
            Name of this training; trainings of one fit have different names.
        score_initial_weights : bool, default=False
            Whether early stopping may return to the weights before the first epoch.

        Returns
        -------
        list of dict
            The history: mean losses of each epoch.
        """
        from manyhands.nn.train import train

        epochs = self.epochs(
            modules,
            optimizers,
            evaluate=evaluate,
            until=until,
            max_epochs=max_epochs,
            name=name,
            score_initial_weights=score_initial_weights,
        )
        return train(step, self.batches() if batches is None else batches, epochs)

    def epochs(
        self,
        modules: Mapping[str, nn.Module],
        optimizers: Mapping[str, torch.optim.Optimizer],
        *,
        evaluate: Callable[[], float] | None = None,
        until: Callable[[list[dict[str, float]]], bool] | None = None,
        max_epochs: int | None = None,
        name: str = "training",
        score_initial_weights: bool = False,
    ) -> Epochs:
        """Return the epochs of a training, for a method with a loop of its own; parameters as in `train`."""
        from manyhands.nn.train import Checkpoint, EarlyStopping, Epochs

        name = self.stage + name
        stop = None
        if evaluate is not None and self.heldout is not None and self.options.patience is not None:
            stop = EarlyStopping(evaluate, modules, self.options.patience)
        checkpoint = None
        if self.folder is not None:
            path = self.folder / f"{name}.checkpoint"
            checkpoint = Checkpoint(path, self.identity, modules, optimizers, self.rng)
        n_epochs = self.options.max_epochs if max_epochs is None else max_epochs
        return Epochs(n_epochs, stop, until, checkpoint, name, score_initial_weights)

    def train_on(
        self, target: Array, posterior: Array, *, name: str = "training"
    ) -> tuple[nn.Module, list[dict[str, float]]]:
        """Train a new network on soft targets by cross-entropy.

        Parameters
        ----------
        target : ndarray of shape (n_items, n_classes)
            Target distribution of each item.
        posterior : ndarray of shape (n_items, n_classes)
            Posterior from which the workers' confusion matrices are computed for the held-out log-likelihood.
        name : str, default="training"
            Name of this training.

        Returns
        -------
        network : torch.nn.Module
        history : list of dict
        """
        import torch

        from manyhands.nn.losses import log_mixture, soft_cross_entropy
        from manyhands.nn.train import descend

        network = self.network()
        optimizer = self.adam(network)
        wanted = torch.from_numpy(target).float().to(self.device)
        log_confusion = torch.from_numpy(np.log(worker_confusions(self.annotations, posterior))).float()
        log_column = log_confusion.transpose(1, 2).to(self.device)  # (n_workers + 1, label, truth)

        def step(batch: Batch) -> torch.Tensor:
            item = torch.from_numpy(batch.item).to(self.device)
            return descend(optimizer, soft_cross_entropy(network(self.x(batch)), wanted[item]))

        def log_label(batch: Batch) -> torch.Tensor:
            log_proba = network(self.x(batch)).log_softmax(1)[batch.row]
            return log_mixture(log_proba, log_column[batch.worker, batch.label])

        evaluate = self.heldout_score(log_label, network)
        return network, self.train(step, {"network": network}, {"adam": optimizer}, evaluate=evaluate, name=name)


# ----------------------------------------------------------------------------------------------------
# Training the network of a method: the context from the method's options, the checks, the network itself.

# Rows of X, equally spaced, on which a trained network is checked for finite outputs: weights that are not finite
# show on any row, so that a few do.
_CHECKED_ROWS = 100


def train_network(method: FeatureMethod, data: TrainingData) -> FitResult:
    """Build the training context of a network method, let it learn, and check what it learned."""
    from manyhands.nn.backbones import choose_device, suited_threads

    options = NetworkOptions.of(method)
    device = choose_device(options.device)
    _check_options(method, options, data)
    identity = _identity(method, options, data) if options.checkpoint is not None else {}
    folder = None if options.checkpoint is None else Path(options.checkpoint) / _short_hash(repr(identity).encode())
    rng = make_generator(options.random_state)
    training, heldout = method._hold_out(data, options.validation if method._uses_heldout() else 0.0, rng)
    new_network = network_maker(method, data)
    context = TrainingContext(data, training, heldout, rng, options, new_network, device, identity, folder)
    with torch_seeded(rng), suited_threads(_multiplications(options, data.rows.shape)):
        result = method._learn(context)
    _refuse_infinite(result.module.eval(), data.rows)
    _clear(folder)
    return result


def network_maker(method: FeatureMethod, data: TrainingData) -> Any:
    """Return a function () -> new, untrained network of this method for this data."""
    votes = data.annotations
    return partial(method._new_module, data.rows.shape, votes.n_classes, votes.n_workers)


def context_for(method: FeatureMethod, context: TrainingContext, stage: str = "") -> TrainingContext:
    """Return the context in which another network method, nested in the one being fitted, learns."""
    return replace(
        context,
        options=NetworkOptions.of(method),
        new_network=network_maker(method, context.data),
        stage=context.stage + stage,
    )


def new_backbone(options: NetworkOptions, row_shape: tuple[int, ...], n_outputs: int) -> nn.Module:
    """Return a new network with the backbone, hidden layers, dropout and batch normalisation of these options."""
    from manyhands.nn.backbones import build

    return build(
        options.backbone,
        row_shape,
        n_outputs,
        hidden=options.hidden,
        dropout=options.dropout,
        batch_norm=options.batch_norm,
    )


def _short_hash(content: Any) -> str:
    """Return a BLAKE2 hash of these bytes as 32 hexadecimal digits."""
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def _check_options(method: FeatureMethod, options: NetworkOptions, data: TrainingData) -> None:
    if options.checkpoint is not None and options.random_state is None:
        raise ParameterError(
            f"A {type(method).__name__} with a checkpoint needs a random_state: without it, a resumed fit would "
            f"give another result."
        )
    if options.batch_norm and min(options.batch_size, data.n_training_items) < 2:
        raise ParameterError("batch_norm needs at least two items in a batch: two labelled items and batch_size >= 2.")


def _multiplications(options: NetworkOptions, row_shape: tuple[int, ...]) -> int | None:
    """Multiplications per mini-batch of a multi-layer perceptron, one output assumed; None for other networks."""
    if not (isinstance(options.backbone, str) and options.backbone == "mlp"):
        return None
    return options.batch_size * sum(a * b for a, b in pairwise((math.prod(row_shape), *options.hidden, 1)))


def _identity(method: FeatureMethod, options: NetworkOptions, data: TrainingData) -> dict[str, str]:
    """Data and parameters of a fit as text; fits that differ in anything use different checkpoints."""
    parameters = {name: _as_text(value) for name, value in method.get_params().items() if name != "checkpoint"}
    if isinstance(options.random_state, np.random.Generator):
        parameters["random_state"] = repr(options.random_state.bit_generator.state)
    votes = data.annotations
    codes = np.concatenate([votes.item, votes.worker, votes.label, [votes.n_items, votes.n_workers, votes.n_classes]])
    return {
        "method": type(method).__name__,
        **parameters,
        "X": fingerprint(data.rows),
        "annotations": _short_hash(codes.data),
        "gold": _hash_of(data.gold),
        "worker features": _hash_of(data.worker_features),
    }


def _hash_of(array: npt.NDArray[Any] | None) -> str:
    return _short_hash(b"" if array is None else np.ascontiguousarray(array).data)


def _as_text(value: Any) -> str:
    """A parameter as text that is the same in every process; a function's address in memory is not."""
    if callable(value) and hasattr(value, "__qualname__"):
        return f"{value.__module__}.{value.__qualname__}"
    return repr(value)


def _refuse_infinite(module: nn.Module, rows: Rows) -> None:
    """Refuse a network whose last step led to outputs that are not finite."""
    from manyhands.nn.backbones import outputs

    some = np.unique(np.linspace(0, len(rows) - 1, _CHECKED_ROWS).astype(np.intp))
    if not bool(outputs(module, rows, some).isfinite().all()):
        raise TrainingError("The network's outputs are no longer finite; lower learning_rate or standardise X.")


def _clear(folder: Path | None) -> None:
    """Remove the checkpoints of a finished fit; other files in the folder stay."""
    if folder is None:
        return
    for path in folder.glob("*.checkpoint"):
        path.unlink()
    with suppress(OSError):  # the folder holds something else
        folder.rmdir()


class EpochThenUpdate:
    """The mini-batches of an epoch, then one call of `update()`: how EM steps alternate with epochs of a network."""

    batches: Iterable[Any]
    update: Callable[[], None]

    def __init__(self, batches: Iterable[Any], update: Callable[[], None]) -> None:
        self.batches, self.update = batches, update

    def __iter__(self) -> Iterator[Any]:
        yield from self.batches
        self.update()


# ----------------------------------------------------------------------------------------------------
# Rows of X after `fit`: the same columns and the same shape of a row as `fit` saw.


def rows_as_fitted(method: FeatureMethod, X: Any) -> Rows:
    """Return the rows of X, or refuse them if their columns or their shape are not those that `fit` saw."""
    method._check_fitted()
    name, fitted = type(method).__name__, vars(method).get("feature_names_in_")
    X, names = _without_ids(method, X, fitted)
    check_feature_names(name, fitted, names)
    rows = as_rows(X)
    if rows.shape != method._row_shape:
        raise AlignmentError(f"A row of X has shape {rows.shape}, but this {name} was fitted with {method._row_shape}.")
    warn_of_missing_names(name, fitted, names)
    return rows


def rows_and_labels(method: FeatureMethod, X: Any, annotations: Any) -> tuple[Rows, Annotations]:
    """Return the rows of X as `rows_as_fitted` does, matched with the items of annotations."""
    matched = match_rows(X, check_annotations(annotations))
    return reordered(rows_as_fitted(method, matched.X), matched.order), matched.annotations


def _without_ids(method: FeatureMethod, X: Any, fitted: Names | None) -> tuple[Any, Names | None]:
    """Return X without a column of ids that `fit` did not use as a feature, and the names of its columns."""
    column = getattr(method, "_id_column", None) or id_column_of(X)
    names = feature_names_of(X)
    if column is None or names is None or fitted is None or column in fitted or column not in names:
        return X, names
    X = without_column(X, column)
    return X, feature_names_of(X)


# ----------------------------------------------------------------------------------------------------
# From features and labels to the truth: by an aggregator, and by a classifier and the labels; notes on the labels.


def infer_truth(aggregator: Any, data: TrainingData, annotations: Annotations, rng: np.random.Generator) -> Aggregator:
    """Fit an aggregator to annotations and gold."""
    seed = int(rng.integers(2**31))  # drawn whether or not the aggregator uses it: later draws do not depend on it
    if isinstance(aggregator, str):
        first = registry.create_seeded(aggregator, seed)
    else:
        first = seed_unset(type(aggregator)(**aggregator.get_params(deep=False)), np.random.default_rng(seed))
    gold = None
    if data.gold is not None:
        gold_items = np.flatnonzero(data.gold >= 0)
        gold = dict(zip(annotations.item_ids[gold_items].tolist(), annotations.classes[data.gold[gold_items]].tolist()))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CrowdWarning)  # its notes become the method's, which warns once
        fitted: Aggregator = first.fit(annotations, gold)
    return fitted


def combine(proba: Array, annotations: Annotations, gold: Gold) -> Array:
    """Return the posterior given features and labels: p(k | x, labels) ~ p(k | x) prod_w confusion[w, k, label_w].

    Shapes: proba (n_items, n_classes); gold (n_items,); returns (n_items, n_classes).
    """
    log_confusion = np.log(worker_confusions(annotations, proba))[:-1]
    return posterior_given(annotations, log_confusion, safe_log(proba), gold)[0]


# ----------------------------------------------------------------------------------------------------
# Network methods nested in another one, such as the base method of Self-Crowd: how they get their parameters.


def nested_method(owner: BaseEstimator, parameter: str, also: Sequence[str] = ()) -> Any:
    """Return the method that a parameter names or is, with the parameters that it shares with its owner.

    The network options, `init` and the parameters in `also` are those of the owner, which builds the networks. An
    instance keeps its other parameters. If it was given a shared parameter that differs both from the default and
    from the owner's value, one of the two would be ignored, so it is refused.
    """
    inner = getattr(owner, parameter)
    kind = registry.get(inner) if isinstance(inner, str) else type(inner)
    shared = shared_parameters(owner, kind, {*NETWORK_CONSTRAINTS, "init", *also})
    if isinstance(inner, str):
        return registry.create(inner, **shared)
    own, default = inner.get_params(deep=False), kind().get_params(deep=False)
    for name in sorted(shared.keys() - {"random_state"}):  # the seed always comes from the owner
        if _comparable(own[name]) not in (_comparable(default[name]), _comparable(shared[name])):
            whose = type(owner).__name__
            raise ParameterError(
                f"The {parameter} of a {whose} has {name}={own[name]!r}; give {name} to {whose} instead, "
                f"which builds the networks."
            )
    method = kind(**(own | shared))
    method.check_parameters()
    return method


def shared_parameters(owner: BaseEstimator, kind: type[Any], names: set[str] | None = None) -> dict[str, Any]:
    """Return the owner's values of the parameters that a class of estimators has too."""
    theirs = owner.get_params(deep=False)
    return {
        name: theirs[name] for name in kind().get_params(deep=False) if name in theirs and (not names or name in names)
    }


def _comparable(value: Any) -> str:
    """A parameter as text that is the same for equal values of different types."""
    value = tuple(value) if isinstance(value, list) else value.item() if isinstance(value, np.generic) else value
    return repr(value)


# ----------------------------------------------------------------------------------------------------
# Devices of methods: which parameter selects the device of a method.


def device_parameter(estimator: Any) -> str | None:
    """Return the name of the parameter that selects the device on which a method trains its network.

    Examples
    --------
    >>> import manyhands as mh
    >>> device_parameter(mh.classifiers.CrowdLayer()), device_parameter(mh.classifiers.PriorAdjusted("aggnet"))
    ('device', 'classifier__device')
    >>> device_parameter(mh.classifiers.TwoStage(classifier="logistic-regression"))
    """
    parameters = estimator.get_params(deep=False)
    if "device" in parameters:
        return "device" if estimator._trains_network() else None
    inner = parameters.get("classifier")
    if isinstance(inner, str):
        inner = registry.create(inner) if inner in registry.names("classifier") else None
    own = None if not hasattr(inner, "get_params") else device_parameter(inner)
    return None if own is None else f"classifier__{own}"
