"""One-coin model: one accuracy for every worker; errors are spread evenly over the other classes.

p(l | k, w) = accuracy[w] if l = k else (1 - accuracy[w]) / (n_classes - 1)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from manyhands.noise import Array, safe_log


@dataclass(frozen=True)
class OneCoinNoise:
    """Accuracies with a Beta prior; the parameters are the accuracies, shape (n_workers,).

    Parameters
    ----------
    n_classes : int
        Number of classes.
    smoothing : float
        Pseudo-count of the prior: labels that it is worth.
    prior_accuracy : float
        Share of these pseudo-counts that are right.
    """

    n_classes: int
    smoothing: float
    prior_accuracy: float

    def solve(self, counts: Array, previous: Array | None) -> Array:
        """The M step in closed form: smoothed share of right labels; the prior accuracy without any label."""
        right = np.trace(counts, axis1=1, axis2=2) + self.smoothing * self.prior_accuracy
        total = counts.sum(axis=(1, 2)) + self.smoothing
        return np.divide(right, total, out=np.full(len(total), self.prior_accuracy), where=total > 0)

    def log_confusion(self, params: Array) -> Array:
        """Log confusion matrices with the accuracy on the diagonal and equal errors elsewhere.

        Parameters
        ----------
        params : ndarray of shape (n_workers,)
            Accuracies.

        Returns
        -------
        ndarray of shape (n_workers, n_classes, n_classes)
        """
        wrong = safe_log((1 - params) / max(self.n_classes - 1, 1))
        table = np.repeat(wrong, self.n_classes**2).reshape(-1, self.n_classes, self.n_classes)
        diagonal = np.arange(self.n_classes)
        table[:, diagonal, diagonal] = safe_log(params)[:, None] if self.n_classes > 1 else 0.0
        return table

    def log_penalty(self, params: Array) -> float:
        """Log density of the Beta priors, up to a constant."""
        if self.n_classes == 1:
            return 0.0
        right, wrong = self.smoothing * self.prior_accuracy, self.smoothing * (1 - self.prior_accuracy)
        return float((right * safe_log(params) + wrong * safe_log(1 - params)).sum())
