"""What all methods with a layer per worker behind the network share: where the layers start, and how both are trained.

    network(x) -> p(k | x) -> layer of worker w -> log p(label | x, w)

Labels alone do not tie the network's classes to their names: any layer may undo what the network renames. Only the
start does. At the identity, every worker is believed, and where most workers always give one answer, the network learns
to give it too. Started at what an aggregator says of each worker, the layers know the spammers before training begins.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

from manyhands import registry
from manyhands.classifiers.base import FitResult, infer_truth
from manyhands.classifiers.network import NETWORK_CONSTRAINTS, NetworkClassifier, NetworkParameters
from manyhands.classifiers.training_context import TrainingContext
from manyhands.em.kernels import Array
from manyhands.heldout import worker_confusions
from manyhands.validation import Constraint, NameOr

if TYPE_CHECKING:
    import torch
    from torch import nn

    from manyhands.nn.batches import Batch
    from manyhands.nn.train import History

    # (n, n_classes) log p(k | x), and a function that reads x -> (n, n_classes, n_workers)
    AnswersTo = Callable[[torch.Tensor, Callable[[], torch.Tensor]], torch.Tensor]

# What the parameters of every method with a layer per worker may be.
NOISE_LAYER_CONSTRAINTS: dict[str, Constraint] = NETWORK_CONSTRAINTS | {
    "start": NameOr(("identity", *registry.names("aggregator")), "fit_predict", "an aggregator"),
}


class NoiseLayerParameters(NetworkParameters, total=False):
    """The parameters of every method with a layer per worker, for `**others: Unpack[NoiseLayerParameters]`."""

    start: Any


class NoiseLayerClassifier(NetworkClassifier):
    """A network and a layer per worker behind it; a method implements `_noise_layer`.

    Where more than log p(k | x) enters the layer, or more than the likelihood the loss, it also implements `_log_label`
    and `_answers_of`, or `_loss` and `_learn_layers`.

    Parameters
    ----------
    start : "identity", where workers are believed, or the aggregator whose confusion matrices the layers start at
    network : the parameters of `NetworkClassifier`
    """

    _constraints: ClassVar[dict[str, Constraint]] = NOISE_LAYER_CONSTRAINTS

    def __init__(self, *, start: Any = "identity", **network: Any) -> None:
        super().__init__(**network)
        self.start = start

    @abstractmethod
    def _noise_layer(self, context: TrainingContext) -> Any:
        """The layer at the identity: log p(label | x, w) from log p(k | x) and a batch; `start_at`, `confusion`."""

    def _learn_network(self, context: TrainingContext) -> FitResult:
        network, noise = context.network(), self._started_layer(context)
        history = self._learn_layers(context, network, noise)
        return FitResult(network, history, results=self._results(context, noise))

    def _learn_layers(self, context: TrainingContext, network: nn.Module, noise: Any, *, warm: bool = False) -> History:
        """Train both; `warm` where they were trained before, on fewer labels."""
        from manyhands.nn.losses import gold_cross_entropy
        from manyhands.nn.train import descend

        optimizer = context.adam(network, noise)

        def step(batch: Batch) -> torch.Tensor:
            x = context.x(batch)
            logits = network(x)  # (n_rows, n_classes)
            loss = self._loss(noise, self._log_label(noise, logits.log_softmax(1), x, batch), batch)
            return descend(optimizer, loss + gold_cross_entropy(logits, context.gold(batch)))

        evaluate = self._evaluate(context, network, noise)
        return context.train(step, {"network": network, "noise": noise}, {"adam": optimizer}, evaluate=evaluate)

    def _log_label(self, noise: Any, log_proba: torch.Tensor, x: torch.Tensor, batch: Batch) -> torch.Tensor:
        """(n_labels,) log-probability of each label of a batch, given log p(k | x) and x of its rows."""
        found: torch.Tensor = noise(log_proba, batch)
        return found

    def _answers_of(self, noise: Any, worker: torch.Tensor) -> AnswersTo:
        """From log p(k | x), and x if asked for, to the log-probability of every answer of each of these workers."""
        answers = noise.answers_of(worker)
        return lambda log_proba, x: answers(log_proba)

    def _loss(self, noise: Any, log_label: torch.Tensor, batch: Batch) -> torch.Tensor:
        from manyhands.nn.losses import negative_log_likelihood

        return negative_log_likelihood(log_label, batch.weight)

    def _results(self, context: TrainingContext, noise: Any) -> dict[str, Array]:
        """What the layer says of the workers."""
        return {"confusion_": noise.confusion()}

    def _started_layer(self, context: TrainingContext) -> Any:
        noise = self._noise_layer(context)
        if not (isinstance(self.start, str) and self.start == "identity"):
            # Held-out labels are unknown to the aggregator too.
            believed = infer_truth(self.start, context.data, context.annotations, context.rng).posterior_
            noise.start_at(worker_confusions(context.annotations, believed)[:-1])
        return noise.to(context.device)

    def _evaluate(self, context: TrainingContext, network: nn.Module, noise: nn.Module) -> Callable[[], float]:
        """The mean log-likelihood of held-out labels."""

        def log_label(batch: Batch) -> torch.Tensor:
            x = context.x(batch)
            return self._log_label(noise, network(x).log_softmax(1), x, batch)

        return context.heldout_score(log_label, network, noise)
