"""What all learners of representations train by: classes for the items, batches of them, and when to stop.

The stop rule asks how well the embedding foretells held-out labels. For that it classifies by the nearest class mean,

    p(k | e) ~ share_k exp(-|e - mean_k|^2 / (2 s^2)),   p(label of w | e) = sum_k p(k | e) C_w[k, label]

with means, shares and s^2 = mean |e - mean_k|^2 from the training items, and C from the labels to learn from: one
yardstick for all losses. (With a variance for each of 32 correlated dimensions it would be sure of all it says.)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from manyhands.aggregation.base import Aggregator
from manyhands.classifiers.base import FitResult, infer_truth
from manyhands.classifiers.training_context import TrainingContext
from manyhands.em.decisions import pick_classes
from manyhands.heldout import worker_confusions

if TYPE_CHECKING:
    import torch
    from torch import nn

    from manyhands.nn.class_batches import ClassBatch, ClassBatches


@dataclass(frozen=True, eq=False)
class TrainingSet:
    """The bench, and what the aggregator made of the labels on it: each item's class.

    Held-out labels are unknown to the aggregator too, until the training is over.
    """

    context: TrainingContext
    labels: Any  # an aggregator, by its name or as an instance

    @cached_property
    def aggregator(self) -> Aggregator:
        return infer_truth(self.labels, self.context.data, self.context.annotations, self.context.rng)

    @cached_property
    def items(self) -> npt.NDArray[np.intp]:
        """(n,) the items that teach something."""
        return np.flatnonzero(~self.aggregator.unlabelled_)

    @cached_property
    def target(self) -> npt.NDArray[np.int32]:
        """(n,) the classes of these items."""
        posterior = self.aggregator.posterior_[self.items]
        return pick_classes(posterior, np.zeros(len(self.items), bool))[0]

    @cached_property
    def batches(self) -> ClassBatches:
        from manyhands.nn.class_batches import ClassBatches

        context = self.context
        return ClassBatches(self.items, self.target, context.method.batch_size, context.rng, device=context.device)

    def x(self, batch: ClassBatch) -> torch.Tensor:
        """(n_rows, ...) the features of a batch."""
        from manyhands.nn.inference import as_tensor

        return as_tensor(self.context.data.rows, batch.item, self.context.device)

    def learn(self, loss: Callable[[torch.Tensor, ClassBatch], torch.Tensor]) -> FitResult:
        """One network by one loss of its embeddings of a batch."""
        from manyhands.nn.train import descend

        network = self.context.network()
        optimizer = self.context.adam(network)

        def step(batch: ClassBatch) -> torch.Tensor:
            return descend(optimizer, loss(network(self.x(batch)), batch))

        return self.train(step, {"network": network}, {"adam": optimizer})

    def train(
        self,
        step: Callable[[ClassBatch], Any],
        modules: Mapping[str, nn.Module],
        optimizers: Mapping[str, torch.optim.Optimizer],
        **results: Callable[[], Any],
    ) -> FitResult:
        """Train, and say what was learnt: `modules["network"]` is the embedding; results are asked for at the end."""
        network, context = modules["network"], self.context
        history = context.train(
            step, modules, optimizers, evaluate=lambda: self.predicted(network), batches=self.batches
        )
        first = self.aggregator
        if context.heldout is not None:
            first = infer_truth(self.labels, context.data, context.data.annotations, context.rng)  # now of all labels
        found = {name: result() for name, result in results.items()}
        return FitResult(network, history, first.posterior_, {"aggregator_": first} | found, first.notes_)

    def predicted(self, network: nn.Module) -> float:
        """The mean log-likelihood of the held-out labels, by an embedding."""
        from manyhands.nn.inference import outputs
        from manyhands.nn.losses import log_mixture

        heldout = self.context.heldout
        assert heldout is not None
        asked, row = np.unique(heldout.item.astype(np.intp), return_inverse=True)
        rows = self.context.data.rows
        log_proba = class_mean_log_proba(
            outputs(network, rows, self.items), self.batches.code, outputs(network, rows, asked)
        )
        log_column = self._log_column[heldout.worker.astype(np.intp), heldout.label.astype(np.intp)]
        return float(log_mixture(log_proba[row], log_column).mean())

    @cached_property
    def _log_column(self) -> torch.Tensor:
        """[worker, label, truth], of the truths that some item has."""
        import torch

        confusion = worker_confusions(self.context.annotations, self.aggregator.posterior_)
        return torch.from_numpy(np.log(confusion)).transpose(1, 2)[:, :, self.batches.classes]


def class_mean_log_proba(embedding: torch.Tensor, code: npt.NDArray[np.intp], asked: torch.Tensor) -> torch.Tensor:
    """(n_asked, n_codes) log p(k | e) by distance to the class means of an embedding, one scatter for all."""
    import torch

    from manyhands.nn.metric_losses import squared_distances

    place = torch.from_numpy(code)
    size = torch.bincount(place).to(embedding.dtype)
    mean = embedding.new_zeros(len(size), embedding.shape[1]).index_add_(0, place, embedding) / size.unsqueeze(1)
    spread = (embedding - embedding.mean(0)).square().sum(1).mean()
    scatter = (embedding - mean[place]).square().sum(1).mean() + 1e-6 * spread + 1e-12  # collapsed classes have none
    return (size.log() - squared_distances(asked, mean) / (2 * scatter)).log_softmax(1)
