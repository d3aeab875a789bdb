"""Mini-batches of P classes with K items each, and the tuplets in them, as arrays of indices.

An epoch is laid out at once, by array operations; there is no loop over items.

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

Codes = npt.NDArray[np.intp]

_ITEMS_PER_CLASS = 8  # with many classes, a mini-batch holds fewer of them rather than fewer items of each


class ClassBatch(NamedTuple):
    """A mini-batch of P classes with K items each, class after class.

    Attributes
    ----------
    item : array of int of shape (P * K,)
        Items: row numbers of X.
    target : tensor of int64 of shape (P * K,)
        Their classes.
    n_classes : int
        P.
    n_each : int
        K.
    """

    item: Codes
    target: torch.Tensor
    n_classes: int
    n_each: int


class ClassBatches:
    """Mini-batches in which classes are equally frequent, sampled anew in each epoch.

    The classes of a mini-batch are drawn without replacement. Within an epoch the items of a class come in a shuffled
    order and start again when they are used up, so a class with few items repeats them. An epoch has about as many
    items as there are.

    Parameters
    ----------
    items : array of int of shape (n,)
        Items to train on: row numbers of X.
    target : array of int of shape (n,)
        Their classes.
    batch_size : int
        Approximate number of items in a mini-batch: at least 8 of each of its classes where there are many, and never
        fewer than 2.
    rng : numpy Generator
        Draws classes and the order of items.
    device : torch.device or str, default="cpu"
        Device of the tensors.

    Attributes
    ----------
    n_classes : int
        P, classes in a mini-batch.
    n_each : int
        K, items of each of them.
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

    Parameters
    ----------
    batch : ClassBatch
        P classes with K items each; n = P K.
    n_negatives : int
        Negatives of each anchor.
    rng : numpy Generator
        Draws them, uniformly and with replacement.

    Returns
    -------
    positive : array of int of shape (n,)
        For each anchor another row of its class.
    negative : array of int of shape (n, n_negatives)
        For each anchor rows of other classes; of shape (n, 0) where there is no other class.
    """
    n_classes, n_each = batch.n_classes, batch.n_each
    n = n_classes * n_each
    own, place = np.divmod(np.arange(n), n_each)
    positive = own * n_each + (place + rng.integers(1, n_each, n)) % n_each
    if n_classes == 1:
        return positive, np.zeros((n, 0), np.intp)
    other = (own[:, None] + rng.integers(1, n_classes, (n, n_negatives))) % n_classes
    return positive, other * n_each + rng.integers(0, n_each, (n, n_negatives))
