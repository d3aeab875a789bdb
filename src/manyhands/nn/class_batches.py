"""Batches of P classes with K items each, and the tuplets in them, as arrays of indices.

An epoch is laid out at once, by array operations; nothing walks over items.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch

Codes = npt.NDArray[np.intp]

_ITEMS_OF_A_CLASS = 8  # where there are many classes, a batch holds fewer of them rather than fewer items of each


class ClassBatch(NamedTuple):
    """P classes with K items each, class after class."""

    item: Codes  # (P * K,) which items: rows of X
    target: torch.Tensor  # (P * K,) their classes
    n_classes: int  # P
    n_each: int  # K


class ClassBatches:
    """Batches in which classes have equal shares; a new draw each time it is walked through.

    Each class's items come in turn, in a new order, so a class smaller than its share repeats them.

    Parameters
    ----------
    items, target : (n,) the items that teach something, and their classes
    batch_size : about this many items in a batch: 8 or more of each of its classes, and never fewer than 2
    rng : draws classes and the order of items
    device : where the tensors go
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
        self.n_classes = min(len(self.classes), max(2, batch_size // _ITEMS_OF_A_CLASS))
        self.n_each = max(2, batch_size // max(self.n_classes, 1))

    def __len__(self) -> int:
        return -(-len(self.items) // max(self.n_classes * self.n_each, 1))

    def __iter__(self) -> Iterator[ClassBatch]:
        chosen = self.rng.random((len(self), len(self.classes))).argsort(axis=1)[:, : self.n_classes]
        drawn = np.zeros((len(self), len(self.classes)), np.intp)
        np.put_along_axis(drawn, chosen, 1, axis=1)
        turn = np.take_along_axis(drawn.cumsum(axis=0) - 1, chosen, axis=1)  # how often the class was drawn before
        shuffled = self.rng.permutation(len(self.items))
        by_class = shuffled[np.argsort(self.code[shuffled], kind="stable")]
        start = np.cumsum(self.size) - self.size
        step = turn[:, :, None] * self.n_each + np.arange(self.n_each)  # (batch, class, sample)
        place = by_class[start[chosen][:, :, None] + step % self.size[chosen][:, :, None]]
        for row in place.reshape(len(self), -1):
            target = torch.from_numpy(self.classes[self.code[row]].astype(np.int64)).to(self.device)
            yield ClassBatch(self.items[row], target, self.n_classes, self.n_each)


def draw_tuplets(batch: ClassBatch, n_negatives: int, rng: np.random.Generator) -> tuple[Codes, Codes]:
    """Every row of the batch as an anchor: (n,) another row of its class, (n, n_negatives) rows of other classes.

    Without another class there are no negatives: the second array then has no columns.
    """
    n_classes, n_each = batch.n_classes, batch.n_each
    n = n_classes * n_each
    own, place = np.divmod(np.arange(n), n_each)
    positive = own * n_each + (place + rng.integers(1, n_each, n)) % n_each
    if n_classes == 1:
        return positive, np.zeros((n, 0), np.intp)
    other = (own[:, None] + rng.integers(1, n_classes, (n, n_negatives))) % n_classes
    return positive, other * n_each + rng.integers(0, n_each, (n, n_negatives))
