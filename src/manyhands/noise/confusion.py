"""A full confusion matrix for every worker (Dawid and Skene 1979).

p(label = l | truth = k, worker = w) = confusion[w, k, l]
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from manyhands import elementary
from manyhands.noise import Array, safe_log


@dataclass(frozen=True)
class ConfusionNoise:
    """Confusion matrices, each row with a symmetric Dirichlet prior worth `smoothing` labels per cell.

    The parameters are their logarithms: table and penalty both need these, and nothing else is needed.
    """

    smoothing: float

    def solve(self, counts: Array, previous: Array | None) -> Array:
        labels = counts + self.smoothing  # (n_workers, n_classes, n_classes)
        if self.smoothing == 0:
            labels[labels.sum(axis=2) == 0] = 1.0  # a worker who never met the class knows nothing of it
        log = safe_log if self.smoothing == 0 else elementary.log
        return np.asarray(log(labels) - elementary.log(labels.sum(axis=2, keepdims=True)))

    def log_table(self, params: Array) -> Array:
        return params

    def log_penalty(self, params: Array) -> float:
        return self.smoothing * float(params.sum())
