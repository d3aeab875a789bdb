"""A crowd of any size: block b of 256 follows from (seed, b) alone, so that no part needs another one.

Every item has five labels of five workers. Worker w names the truth k with probability accuracy[w, k], the next class
with half of the rest, and any other class with the other half.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

N_BLOCKS = 256
LABELS_PER_ITEM = 5


@dataclass(frozen=True)
class HugeCrowd:
    """A crowd that is generated block by block."""

    n_labels: int
    n_classes: int
    n_workers: int
    seed: int = 0

    @property
    def n_items(self) -> int:
        return self.n_labels // LABELS_PER_ITEM

    @property
    def class_shares(self) -> npt.NDArray[np.float64]:
        """The most frequent class is three times as frequent as the rarest."""
        shares = np.linspace(3.0, 1.0, self.n_classes)
        return shares / shares.sum()

    @property
    def accuracy(self) -> npt.NDArray[np.float64]:
        """Probability that worker w names truth k, shape (n_workers, n_classes)."""
        return np.random.default_rng([self.seed, N_BLOCKS]).uniform(0.5, 0.95, (self.n_workers, self.n_classes))

    def confusion(self) -> npt.NDArray[np.float64]:
        """The planted confusion matrices, indexed [worker, truth, label]."""
        n_classes, accuracy = self.n_classes, self.accuracy
        rest = 1.0 - accuracy
        found = np.zeros((self.n_workers, n_classes, n_classes))
        for truth in range(n_classes):
            others = [label for label in range(n_classes) if label != truth]
            found[:, truth, others] = rest[:, [truth]] / (2 * len(others))
            found[:, truth, (truth + 1) % n_classes] += rest[:, truth] / 2
            found[:, truth, truth] = accuracy[:, truth]
        return found

    def blocks(self) -> Iterator[tuple[npt.NDArray[np.int64], npt.NDArray[np.int32], npt.NDArray[np.int8]]]:
        """Labels of each item, codes worker * n_classes + label, and the truth, block after block."""
        accuracy = self.accuracy.astype(np.float32)
        edges = np.linspace(0, self.n_items, N_BLOCKS + 1).astype(np.int64)
        for block, size in enumerate(np.diff(edges)):
            yield self._block(block, int(size), accuracy)

    def _block(
        self, block: int, n_items: int, accuracy: npt.NDArray[np.float32]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32], npt.NDArray[np.int8]]:
        rng = np.random.default_rng([self.seed, block])
        n_classes, n_workers = self.n_classes, self.n_workers
        truth = np.searchsorted(np.cumsum(self.class_shares)[:-1], rng.random(n_items, np.float32)).astype(np.int32)
        first = rng.integers(n_workers, size=n_items, dtype=np.int32)
        step = rng.integers(1, n_workers // LABELS_PER_ITEM, size=n_items, dtype=np.int32)
        worker = (first[:, None] + step[:, None] * np.arange(LABELS_PER_ITEM, dtype=np.int32)) % n_workers
        worker.sort(axis=1)
        draw = rng.random((n_items, LABELS_PER_ITEM), np.float32)
        right = accuracy[worker, truth[:, None]]
        other = rng.integers(1, n_classes, size=(n_items, LABELS_PER_ITEM), dtype=np.int32)
        shift = np.where(draw < right, 0, np.where(draw < (1 + right) / 2, 1, other))
        label = (truth[:, None] + shift) % n_classes
        code = (worker * np.int32(n_classes) + label).astype(np.int32).ravel()
        return np.full(n_items, LABELS_PER_ITEM), code, truth.astype(np.int8)
