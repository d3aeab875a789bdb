"""Noise-layer methods: a network, and behind it one layer per worker that models the worker's label noise.

    network(x) -> p(k | x) -> noise layer of worker w -> log p(label | x, w)

The labels alone do not identify the network's classes: a noise layer can undo any permutation of them. Only the initial
layers tie the outputs to class names. Initialised at the identity (workers are assumed to be correct), the network
learns to repeat a spammer's label where most workers are spammers; initialised with the confusion matrices of an
aggregator (``init="dawid-skene"``), the layers model the spammers from the beginning of the training.

A `NoiseModel` holds what differs between methods, and `NoiseLayerClassifier` is what they have in common.
`fit_noise_model` and the functions below it train any of them; they also serve the methods that are built on a
noise-layer method (Self-Crowd, imputation, CrowdInG).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

from manyhands import registry
from manyhands._core.arrays import Array
from manyhands.classifiers.base import CrowdClassifier
from manyhands.classifiers.network import NETWORK_CONSTRAINTS, FitResult, TrainingContext, infer_truth
from manyhands.heldout import worker_confusions
from manyhands.validation import Constraint, NameOr

if TYPE_CHECKING:
    import torch
    from torch import nn

    from manyhands.nn.batches import Batch
    from manyhands.nn.train import History

    # log p(k | x) of shape (n, n_classes), and a function that returns x -> (n, n_classes, n_workers)
    LabelDistribution = Callable[[torch.Tensor, Callable[[], torch.Tensor]], torch.Tensor]

# What the parameter `init` of a noise-layer method may be.
INIT: Constraint = NameOr(("identity", *registry.names("aggregator")), "fit_predict", "an aggregator")

# What the parameters of every noise-layer method may be.
NOISE_LAYER_CONSTRAINTS: dict[str, Constraint] = NETWORK_CONSTRAINTS | {"init": INIT}


class NoiseModel(ABC):
    """The label-noise model of a noise-layer method.

    A method implements `new_layer`; it overrides the others where more than log p(k | x) enters its layer, or more
    than the log-likelihood its loss. Instances hold the method's own parameters and no tensors.

    A model whose noise depends on the features of the item other than through p(k | x) is a `FeatureNoiseModel`.
    """

    sees_features: ClassVar[bool] = False  # whether the layer is kept, saved with the classifier and used by `score`

    @abstractmethod
    def new_layer(self, context: TrainingContext) -> Any:
        """Return the noise layer of all workers at its initial values.

        Parameters
        ----------
        context : TrainingContext
            Sizes and random generator.

        Returns
        -------
        torch.nn.Module
            With `initialise_at(confusion)` and `confusion()`; called with log p(k | x) and a mini-batch it returns the
            log-probability of each label.
        """

    def log_label(self, layer: Any, log_proba: torch.Tensor, x: torch.Tensor, batch: Batch) -> torch.Tensor:
        """Return the log-probability of each label of a mini-batch.

        Parameters
        ----------
        layer : torch.nn.Module
            The noise layer.
        log_proba : torch.Tensor of shape (n_rows, n_classes)
            log p(k | x) of the items.
        x : torch.Tensor of shape (n_rows, ...)
            Features of the items.
        batch : Batch
            The labels.

        Returns
        -------
        torch.Tensor of shape (n_labels,)
        """
        log_p: torch.Tensor = layer(log_proba, batch)
        return log_p

    def loss(self, layer: Any, log_label: torch.Tensor, batch: Batch) -> torch.Tensor:
        """Return the loss of a mini-batch: by default the mean negative log-likelihood of its labels.

        Parameters
        ----------
        layer : torch.nn.Module
            The noise layer, for penalties on it.
        log_label : torch.Tensor of shape (n_labels,)
            Log-probability of each label.
        batch : Batch
            The labels and their weights.

        Returns
        -------
        torch.Tensor
            A scalar.
        """
        from manyhands.nn.losses import negative_log_likelihood

        return negative_log_likelihood(log_label, batch.weight)

    def label_distribution(self, layer: Any, worker: torch.Tensor) -> LabelDistribution:
        """Return a function that computes the label distribution of each of these workers on given items.

        Parameters
        ----------
        layer : torch.nn.Module
            The noise layer.
        worker : torch.Tensor of int
            Codes of the workers.

        Returns
        -------
        callable (log_proba, x) -> torch.Tensor of shape (n_rows, n_classes, n_workers)
            Log-probability of every label, given log p(k | x) and a function that returns the features.
        """
        distribution = layer.label_distribution(worker)
        return lambda log_proba, x: distribution(log_proba)

    def results(self, layer: Any, context: TrainingContext) -> dict[str, Array]:
        """Return the fitted attributes that the layer yields: by default `confusion_`."""
        return {"confusion_": layer.confusion()}

    def train(self, context: TrainingContext, network: nn.Module, layer: Any, *, resumed: bool = False) -> History:
        """Train network and noise layer jointly on the labels of the context.

        Parameters
        ----------
        context : TrainingContext
            Labels, options and generator.
        network : torch.nn.Module
            From features to logits.
        layer : torch.nn.Module
            The noise layer.
        resumed : bool, default=False
            Whether both were trained before, on fewer labels.

        Returns
        -------
        list of dict
            The history.
        """
        from manyhands.nn.losses import gold_cross_entropy
        from manyhands.nn.train import descend

        optimizer = context.adam(network, layer)

        def step(batch: Batch) -> torch.Tensor:
            x = context.x(batch)
            logits = network(x)  # (n_rows, n_classes)
            loss = self.loss(layer, self.log_label(layer, logits.log_softmax(1), x, batch), batch)
            return descend(optimizer, loss + gold_cross_entropy(logits, context.gold(batch)))

        evaluate = heldout_metric(context, self, network, layer)
        return context.train(step, {"network": network, "noise": layer}, {"adam": optimizer}, evaluate=evaluate)


class FeatureNoiseModel(NoiseModel):
    """A noise model whose layer is called with the features of the items too, and is kept with the classifier."""

    sees_features: ClassVar[bool] = True

    @abstractmethod
    def empty_layer(self, row_shape: tuple[int, ...], n_classes: int, n_workers: int) -> Any:
        """Return a layer of these sizes whose weights `load_model` then sets.

        Parameters
        ----------
        row_shape : tuple of int
            Shape of a row of X.
        n_classes : int
            Number of classes.
        n_workers : int
            Number of workers.

        Returns
        -------
        torch.nn.Module
        """

    def log_label(self, layer: Any, log_proba: torch.Tensor, x: torch.Tensor, batch: Batch) -> torch.Tensor:
        """Return the log-probability of each label, given log p(k | x) and x."""
        log_p: torch.Tensor = layer(log_proba, x, batch)
        return log_p

    def label_distribution(self, layer: Any, worker: torch.Tensor) -> LabelDistribution:
        """Return the label distribution of these workers as a function of log p(k | x) and x."""
        distribution = layer.label_distribution(worker)
        return lambda log_proba, x: distribution(log_proba, x())


class NoiseLayerClassifier(CrowdClassifier):
    """Base of the noise-layer methods: a method has the parameter `init` and implements `noise_model`."""

    init: Any

    @abstractmethod
    def noise_model(self) -> NoiseModel:
        """Return the label-noise model, for methods that are built on this one.

        Returns
        -------
        NoiseModel
        """

    def _learn(self, context: TrainingContext) -> FitResult:
        return fit_noise_model(context, self.noise_model(), self.init)


def fit_noise_model(context: TrainingContext, model: NoiseModel, init: Any) -> FitResult:
    """Train a new network and a new noise layer."""
    network, layer = context.network(), initial_layer(context, model, init)
    history = model.train(context, network, layer)
    for_score = layer if model.sees_features else None
    return FitResult(network, history, results=model.results(layer, context), noise_layer=for_score)


def initial_layer(context: TrainingContext, model: NoiseModel, init: Any) -> Any:
    """Return a new noise layer on the device, at the identity or at the confusion matrices of an aggregator."""
    layer = model.new_layer(context)
    if not (isinstance(init, str) and init == "identity"):
        posterior = infer_truth(init, context.data, context.annotations, context.rng).posterior_
        layer.initialise_at(worker_confusions(context.annotations, posterior)[:-1])
    return layer.to(context.device)


def heldout_metric(context: TrainingContext, model: NoiseModel, network: nn.Module, layer: Any) -> Callable[[], float]:
    """Return a function that computes the mean held-out log-likelihood by network and noise layer."""

    def log_label(batch: Batch) -> torch.Tensor:
        x = context.x(batch)
        return model.log_label(layer, network(x).log_softmax(1), x, batch)

    return context.heldout_score(log_label, network, layer)
