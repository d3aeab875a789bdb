"""The workers who have a label, numbered consecutively; of the others nothing can be learned or imputed."""

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

_LOG_ZERO = -20.0  # log-probability of a class that gold excludes


@dataclass(frozen=True, eq=False)
class ActiveWorkers:
    """The workers with a training label, and their held-out labels.

    Attributes
    ----------
    context : TrainingContext
        The context of the fit.
    active : ndarray of shape (n_active,)
        Codes of the workers with a training label, ascending.
    place : torch.Tensor of shape (n_workers,)
        Number of each worker among the active ones; -1 for all others.
    heldout : Annotations
        Held-out labels of active workers.
    """

    context: TrainingContext
    active: npt.NDArray[np.intp]
    place: torch.Tensor
    heldout: Annotations

    @classmethod
    def of(cls, context: TrainingContext) -> ActiveWorkers:
        """Return the active workers of a context."""
        active = np.unique(context.annotations.worker).astype(np.intp)
        place = torch.full((context.n_workers,), -1)
        place[torch.from_numpy(active)] = torch.arange(len(active))
        held = context.annotations.keep(np.zeros(0, np.intp)) if context.heldout is None else context.heldout
        return cls(context, active, place.to(context.device), held.keep(np.isin(held.worker, active)))

    @property
    def active_context(self) -> TrainingContext:
        """The context, with the held-out labels of active workers only."""
        return replace(self.context, heldout=self.heldout if self.heldout.n_annotations else None)

    def numbered(self, batch: Batch) -> Batch:
        """Return the mini-batch with workers numbered among the active ones."""
        return batch._replace(worker=self.place[batch.worker])

    def batches(self, votes: Annotations, size: int, items: npt.NDArray[np.intp] | None = None) -> Iterator[Batch]:
        """Return mini-batches of items in order, with these labels and numbered workers.

        Parameters
        ----------
        votes : Annotations
            The labels.
        size : int
            Items per mini-batch.
        items : ndarray of int, default=None
            Codes of the items; None takes all.

        Returns
        -------
        iterator of Batch
        """
        items = np.arange(votes.n_items) if items is None else items
        return map(self.numbered, AnnotationBatches(votes, size, items=items, device=self.context.device))


def log_truth(network: nn.Module, x: torch.Tensor, gold: torch.Tensor | None) -> torch.Tensor:
    """Return log p(k | x) of the items, with the known class of gold items.

    Parameters
    ----------
    network : torch.nn.Module
        From features to logits.
    x : torch.Tensor of shape (n_rows, ...)
        Features.
    gold : torch.Tensor of shape (n_rows,) or None
        Known classes, -1 where unknown.

    Returns
    -------
    torch.Tensor of shape (n_rows, n_classes)
    """
    log_z: torch.Tensor = network(x).log_softmax(1)
    if gold is None:
        return log_z
    certain = torch.full_like(log_z, _LOG_ZERO).scatter(1, gold.clamp(min=0).unsqueeze(1), 0.0)
    return torch.where((gold >= 0).unsqueeze(1), certain, log_z)
