"""A full confusion matrix for every worker (Dawid and Skene 1979).

p(label = l | truth = k, worker = w) = confusion[w, k, l]
"""

from __future__ import annotations

from dataclasses import dataclass

from manyhands.noise import Array, safe_log


@dataclass(frozen=True)
class ConfusionNoise:
    """Confusion matrices, each row with a symmetric Dirichlet prior worth `smoothing` labels per cell.

    The parameters are their logarithms: table and penalty both need these, and nothing else is needed.
    """

    smoothing: float

    def solve(self, counts: Array, previous: Array | None) -> Array:
        confusion = counts + self.smoothing  # (n_workers, n_classes, n_classes)
        total = confusion.sum(axis=2, keepdims=True)
        empty = total == 0  # only without smoothing: a worker who never met the class knows nothing of it
        confusion[empty[:, :, 0]] = 1.0
        total[empty] = counts.shape[2]
        confusion /= total
        return safe_log(confusion)

    def log_table(self, params: Array) -> Array:
        return params

    def log_penalty(self, params: Array) -> float:
        return self.smoothing * float(params.sum())
