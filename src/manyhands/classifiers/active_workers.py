"""The workers with a label, numbered among themselves: of all others there is nothing to learn, nothing to fill in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from manyhands.annotations import Annotations
from manyhands.classifiers.training_context import TrainingContext
from manyhands.nn.batches import AnnotationBatches, Batch

_NEVER = -20.0  # the logarithm of a probability that is next to nothing


@dataclass(frozen=True, eq=False)
class ActiveWorkers:
    """Who has a label, and what is seen and held out of these."""

    context: TrainingContext
    active: npt.NDArray[np.intp]  # in ascending order
    place: torch.Tensor  # (n_workers,) the number of each worker among them; -1 for all others
    heldout: Annotations  # by workers with another label

    @classmethod
    def of(cls, context: TrainingContext) -> ActiveWorkers:
        active = np.unique(context.annotations.worker).astype(np.intp)
        place = torch.full((context.n_workers,), -1)
        place[torch.from_numpy(active)] = torch.arange(len(active))
        held = context.annotations.keep(np.zeros(0, np.intp)) if context.heldout is None else context.heldout
        return cls(context, active, place.to(context.device), held.keep(np.isin(held.worker, active)))

    @property
    def judged(self) -> TrainingContext:
        """The bench, with held-out labels of those alone of whom another label is seen."""
        return replace(self.context, heldout=self.heldout if self.heldout.n_annotations else None)

    def numbered(self, batch: Batch) -> Batch:
        """The batch with workers numbered among those with a label."""
        return batch._replace(worker=self.place[batch.worker])

    def batches(self, votes: Annotations, size: int, items: npt.NDArray[np.intp] | None = None) -> Iterator[Batch]:
        """Items in their order, all of them or these, with these labels."""
        items = np.arange(votes.n_items) if items is None else items
        return map(self.numbered, AnnotationBatches(votes, size, items=items, device=self.context.device))


def log_truth(network: nn.Module, x: torch.Tensor, gold: torch.Tensor | None) -> torch.Tensor:
    """(n_rows, n_classes) what is believed of items: what the network says, or the class that is known."""
    log_z: torch.Tensor = network(x).log_softmax(1)
    if gold is None:
        return log_z
    sure = torch.full_like(log_z, _NEVER).scatter(1, gold.clamp(min=0).unsqueeze(1), 0.0)
    return torch.where((gold >= 0).unsqueeze(1), sure, log_z)
