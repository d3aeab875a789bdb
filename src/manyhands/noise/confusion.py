"""A full confusion matrix for every worker (Dawid and Skene 1979).

    p(label = l | truth = k, worker = w) = confusion[w, k, l]

Papers on learning with noisy labels call it the transition matrix T of the worker.
"""

from __future__ import annotations

from dataclasses import dataclass

from manyhands import elementary
from manyhands.noise import Array, safe_log


@dataclass(frozen=True)
class ConfusionNoise:
    """Confusion matrices with a symmetric Dirichlet prior on each row.

    The parameters are their logarithms, shape (n_workers, n_classes, n_classes).

    Parameters
    ----------
    smoothing : float
        Pseudo-count added to each cell.
    """

    smoothing: float

    def solve(self, counts: Array, previous: Array | None) -> Array:
        """The M step in closed form: log of the smoothed and normalised counts.

        Parameters
        ----------
        counts : ndarray of shape (n_workers, n_classes, n_classes)
            Expected counts.
        previous : ndarray or None
            Ignored.

        Returns
        -------
        ndarray of shape (n_workers, n_classes, n_classes)
        """
        labels = counts + self.smoothing  # (n_workers, n_classes, n_classes)
        if self.smoothing == 0:
            labels[labels.sum(axis=2) == 0] = 1.0  # no item of this class: a uniform row
        log = safe_log if self.smoothing == 0 else elementary.log
        total, found = elementary.log(labels.sum(axis=2, keepdims=True)), log(labels)
        found -= total
        return found

    def log_confusion(self, params: Array) -> Array:
        """The parameters themselves."""
        return params

    def log_penalty(self, params: Array) -> float:
        """Log density of the Dirichlet priors, up to a constant."""
        return self.smoothing * float(params.sum())
