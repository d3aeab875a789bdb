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
from manyhands.classifiers.base import Learned, infer_truth
from manyhands.classifiers.bench import Bench
from manyhands.classifiers.network import NETWORK_CONSTRAINTS, NetworkClassifier, NetworkParameters
from manyhands.heldout import worker_confusions
from manyhands.validation import Constraint, NameOr

if TYPE_CHECKING:
    import torch
    from torch import nn

    from manyhands.nn.batches import Batch

# What the parameters of every method with a layer per worker may be.
NOISE_LAYER_CONSTRAINTS: dict[str, Constraint] = NETWORK_CONSTRAINTS | {
    "start": NameOr(("identity", *registry.names("aggregator")), "fit_predict", "an aggregator"),
}


class NoiseLayerParameters(NetworkParameters, total=False):
    """The parameters of every method with a layer per worker, for `**others: Unpack[NoiseLayerParameters]`."""

    start: Any


class NoiseLayerClassifier(NetworkClassifier):
    """A network and a layer per worker behind it; a method implements `_noise_layer`.

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
    def _noise_layer(self, bench: Bench) -> Any:
        """The layer at the identity: log p(label | x, w) from log p(k | x) and a batch; `start_at`, `confusion`."""

    def _learn_network(self, bench: Bench) -> Learned:
        from manyhands.nn.losses import gold_cross_entropy, negative_log_likelihood
        from manyhands.nn.train import descend

        network, noise = bench.network(), self._started_layer(bench)
        optimizer = bench.adam(network, noise)

        def step(batch: Batch) -> torch.Tensor:
            logits = network(bench.x(batch))  # (n_rows, n_classes)
            loss = negative_log_likelihood(noise(logits.log_softmax(1), batch))
            return descend(optimizer, loss + gold_cross_entropy(logits, bench.gold(batch)))

        evaluate = self._evaluate(bench, network, noise)
        history = bench.train(step, {"network": network, "noise": noise}, {"adam": optimizer}, evaluate=evaluate)
        return Learned(network, history, results={"confusion_": noise.confusion()})

    def _started_layer(self, bench: Bench) -> Any:
        noise = self._noise_layer(bench)
        if not (isinstance(self.start, str) and self.start == "identity"):
            # Held-out labels are unknown to the aggregator too.
            believed = infer_truth(self.start, bench.task, bench.annotations, bench.rng).posterior_
            noise.start_at(worker_confusions(bench.annotations, believed)[:-1])
        return noise.to(bench.device)

    def _evaluate(self, bench: Bench, network: nn.Module, noise: nn.Module) -> Callable[[], float]:
        """The mean log-likelihood of held-out labels."""

        def log_label(batch: Batch) -> torch.Tensor:
            found: torch.Tensor = noise(network(bench.x(batch)).log_softmax(1), batch)
            return found

        return bench.heldout_score(log_label, network, noise)
