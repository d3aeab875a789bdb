"""Streams of items with their labels: only what was observed, never items x workers.

An epoch is laid out once, by array operations over its items; a batch is a slice of it.
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
    """Some items, and every label on them: label a says `label[a]` by `worker[a]` on item `item[row[a]]`."""

    item: Codes  # (n_rows,) which items: rows of X
    row: torch.Tensor  # (n_labels,) the place of a label's item in `item`
    worker: torch.Tensor  # (n_labels,)
    label: torch.Tensor  # (n_labels,)
    weight: torch.Tensor | None = None  # (n_labels,) how much each label counts; None is 1


class AnnotationBatches:
    """Items in batches of about `batch_size` with all their labels, in a new order each time it is walked through.

    Parameters
    ----------
    annotations : the labels
    batch_size : items in a batch; a last item alone joins the batch before it, since batch norm needs two
    rng : shuffles the items; None leaves them in their order
    items : which items; None means those with a label
    device : where the tensors go
    weight : (n_annotations,) how much each label counts; None is 1
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
            counts = None if weight is None else weight[labels]
            yield Batch(item[first:last], row[labels] - first, worker[labels], label[labels], counts)

    def _edges(self) -> list[int]:
        """Where batches begin, and where the last one ends."""
        edges = [*range(0, len(self.items), self.batch_size), len(self.items)]
        if len(edges) > 2 and edges[-1] - edges[-2] == 1:
            del edges[-2]
        return edges if len(self.items) else [0]
