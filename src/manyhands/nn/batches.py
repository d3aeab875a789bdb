"""Mini-batches: of items with their observed labels (`AnnotationBatches`), and of classes with their items.

There is never an array of items x workers. An epoch is laid out once, by array operations over its items; a mini-batch
is a slice of it. Metric learning draws P classes with K items each (`ClassBatches`), and tuplets in them.

References
----------
A. Hermans, L. Beyer and B. Leibe (2017), In defense of the triplet loss for person re-identification, arXiv 1703.07737:
"PK sampling".
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
    """

    item: Codes  # (n_rows,); items: row numbers of X
    row: torch.Tensor  # (n_labels,); position of each label's item in `item`
    worker: torch.Tensor  # (n_labels,)
    label: torch.Tensor  # (n_labels,)
    weight: torch.Tensor | None = None  # (n_labels,); weight of each label in the loss; None means 1


class AnnotationBatches:
    """Mini-batches of items with all their labels, in a new order in each epoch.

    Iterating over it is one epoch.

    Shapes: weight (n_annotations,).
    """

    annotations: Annotations
    batch_size: int
    rng: np.random.Generator | None
    device: torch.device | str
    weight: torch.Tensor | None
    items: Codes

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
        """Positions of the first item of each mini-batch, and the end of the last one.

        A last mini-batch of one item joins the one before it: batch normalisation needs two.
        """
        edges = [*range(0, len(self.items), self.batch_size), len(self.items)]
        if len(edges) > 2 and edges[-1] - edges[-2] == 1:
            del edges[-2]
        return edges if len(self.items) else [0]


# ----------------------------------------------------------------------------------------------------
# Mini-batches of P classes with K items each, and the tuplets in them, as arrays of indices.
#
# An epoch is laid out at once, by array operations; there is no loop over items.

# With many classes, a mini-batch holds fewer of them rather than fewer items of each: a choice of ours, below which an
# anchor would have few positives.
_ITEMS_PER_CLASS = 8


class ClassBatch(NamedTuple):
    """A mini-batch of P classes with K items each, class after class."""

    item: Codes  # (P * K,); items: row numbers of X
    target: torch.Tensor  # (P * K,)
    n_classes: int
    n_each: int


class ClassBatches:
    """Mini-batches in which classes are equally frequent, sampled anew in each epoch.

    The classes of a mini-batch are drawn without replacement. Within an epoch the items of a class come in a shuffled
    order and start again when they are used up, so a class with few items repeats them. An epoch has about as many
    items as there are.

    Shapes: items (n,); target (n,).
    """

    def __init__(
        self,
        items: Codes,
        target: npt.NDArray[np.integer],
        batch_size: int,
        rng: np.random.Generator,
        *,
        device: torch.device | str = "cpu",
    ) -> None:
        self.items, self.rng, self.device = items, rng, device
        self.classes, self.code = np.unique(target, return_inverse=True)
        self.size = np.bincount(self.code)
        self.n_classes = min(len(self.classes), max(2, batch_size // _ITEMS_PER_CLASS))
        self.n_each = max(2, batch_size // max(self.n_classes, 1))

    def __len__(self) -> int:
        return -(-len(self.items) // max(self.n_classes * self.n_each, 1))

    def __iter__(self) -> Iterator[ClassBatch]:
        chosen = self.rng.random((len(self), len(self.classes))).argsort(axis=1)[:, : self.n_classes]
        drawn = np.zeros((len(self), len(self.classes)), np.intp)
        np.put_along_axis(drawn, chosen, 1, axis=1)
        times = np.take_along_axis(drawn.cumsum(axis=0) - 1, chosen, axis=1)  # how often the class was drawn before
        shuffled = self.rng.permutation(len(self.items))
        by_class = shuffled[np.argsort(self.code[shuffled], kind="stable")]
        start = np.cumsum(self.size) - self.size
        step = times[:, :, None] * self.n_each + np.arange(self.n_each)  # (batch, class, sample)
        place = by_class[start[chosen][:, :, None] + step % self.size[chosen][:, :, None]]
        for row in place.reshape(len(self), -1):
            target = torch.from_numpy(self.classes[self.code[row]].astype(np.int64)).to(self.device)
            yield ClassBatch(self.items[row], target, self.n_classes, self.n_each)


def draw_tuplets(batch: ClassBatch, n_negatives: int, rng: np.random.Generator) -> tuple[Codes, Codes]:
    """Draw a tuplet for every row of a mini-batch as its anchor: a positive and several negatives.

    Shapes: returns positive (n,); returns negative (n, n_negatives).
    """
    n_classes, n_each = batch.n_classes, batch.n_each
    n = n_classes * n_each
    own, place = np.divmod(np.arange(n), n_each)
    positive = own * n_each + (place + rng.integers(1, n_each, n)) % n_each
    if n_classes == 1:
        return positive, np.zeros((n, 0), np.intp)
    other = (own[:, None] + rng.integers(1, n_classes, (n, n_negatives))) % n_classes
    return positive, other * n_each + rng.integers(0, n_each, (n, n_negatives))
