"""Mini-batches of items with their observed labels; never an array of items x workers.

An epoch is laid out once, by array operations over its items; a mini-batch is a slice of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from manyhands.annotations import Annotations

Codes = npt.NDArray[np.intp]


class Batch(NamedTuple):
    """A mini-batch: some items, and every label on them.

    Label a is ``label[a]``, given by ``worker[a]`` to the item ``item[row[a]]``.

    Attributes
    ----------
    item : array of int of shape (n_rows,)
        Items: row numbers of X.
    row : tensor of int64 of shape (n_labels,)
        Position of each label's item in `item`.
    worker : tensor of int64 of shape (n_labels,)
        Worker codes.
    label : tensor of int64 of shape (n_labels,)
        Class codes.
    weight : tensor of float32 of shape (n_labels,) or None
        Weight of each label in the loss; None means 1.
    """

    item: Codes
    row: torch.Tensor
    worker: torch.Tensor
    label: torch.Tensor
    weight: torch.Tensor | None = None


class AnnotationBatches:
    """Mini-batches of items with all their labels, in a new order in each epoch.

    Iterating over it is one epoch.

    Parameters
    ----------
    annotations : Annotations
        The labels.
    batch_size : int
        Number of items in a mini-batch. A single item that would be left over joins the last mini-batch, since batch
        normalisation needs two.
    rng : numpy Generator or None, default=None
        Shuffles the items in each epoch; None keeps their order.
    items : array of int or None, default=None
        Items of an epoch; None means those with a label.
    device : torch.device or str, default="cpu"
        Device of the tensors.
    weight : array of shape (n_annotations,) or None, default=None
        Weight of each label in the loss; None means 1.
    """

    def __init__(
        self,
        annotations: Annotations,
        batch_size: int,
        rng: np.random.Generator | None = None,
        *,
        items: Codes | None = None,
        device: torch.device | str = "cpu",
        weight: npt.NDArray[np.float64] | None = None,
    ) -> None:
        self.annotations, self.batch_size, self.rng, self.device = annotations, batch_size, rng, device
        self.weight = None if weight is None else torch.from_numpy(weight).float()
        self.items = np.flatnonzero(annotations.n_labels) if items is None else np.asarray(items, np.intp)

    def __len__(self) -> int:
        return len(self._edges()) - 1

    def __iter__(self) -> Iterator[Batch]:
        item = self.items if self.rng is None else self.rng.permutation(self.items)
        begin, size = self.annotations.start[item], self.annotations.n_labels[item]
        end = np.concatenate([[0], np.cumsum(size)])  # where the labels of each item end in this epoch
        position = np.arange(end[-1]) + np.repeat(begin - end[:-1], size)
        codes = self.annotations.worker[position], self.annotations.label[position]
        place = np.repeat(np.arange(len(item)), size)
        row, worker, label = (torch.from_numpy(c.astype(np.int64)).to(self.device) for c in (place, *codes))
        weight = None if self.weight is None else self.weight[torch.from_numpy(position)].to(self.device)
        for first, last in zip(self._edges(), self._edges()[1:]):
            labels = slice(int(end[first]), int(end[last]))
            label_weight = None if weight is None else weight[labels]
            yield Batch(item[first:last], row[labels] - first, worker[labels], label[labels], label_weight)

    def _edges(self) -> list[int]:
        """Positions of the first item of each mini-batch, and the end of the last one."""
        edges = [*range(0, len(self.items), self.batch_size), len(self.items)]
        if len(edges) > 2 and edges[-1] - edges[-2] == 1:
            del edges[-2]
        return edges if len(self.items) else [0]
