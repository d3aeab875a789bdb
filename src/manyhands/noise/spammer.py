"""The model of MACE: a worker either knows the truth or draws a label from a spam distribution (Hovy et al. 2013).

    p(label = l | truth = k, worker = w) = competence[w] [l = k] + (1 - competence[w]) spam_distribution[w, l]

A worker's parameters are a point of the simplex: competence, then spam[l] = (1 - competence) spam_distribution[l]. In
these parameters the M step is a concave problem.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from manyhands.noise import Array, safe_log

_FIRST_STEPS = 25  # of the inner EM, from the prior mean
_STEPS = 5  # from the last parameters; of 2, 3, 5, 10 and 20 this took the least time on the real data sets


@dataclass(frozen=True)
class SpammerNoise:
    """Competence and spam distribution of every worker, with a Dirichlet prior.

    The parameters are an array of shape (1 + n_classes, n_workers) whose columns sum to 1.

    Parameters
    ----------
    n_classes : int
        Number of classes.
    smoothing : float
        Pseudo-count of the prior: labels that it is worth.
    prior_competence : float
        Share of these pseudo-counts in which the truth is known; the others are spread evenly over the classes.
    """

    n_classes: int
    smoothing: float
    prior_competence: float

    def solve(self, counts: Array, previous: Array | None) -> Array:
        """The M step by an inner EM, which divides the right labels into known ones and spam that is right by chance.

        Parameters
        ----------
        counts : ndarray of shape (n_workers, n_classes, n_classes)
            Expected counts.
        previous : ndarray of shape (1 + n_classes, n_workers) or None
            Parameters of the last iteration.

        Returns
        -------
        ndarray of shape (1 + n_classes, n_workers)
        """
        right = np.diagonal(counts, axis1=1, axis2=2).T.copy()  # (n_classes, n_workers)
        wrong = np.maximum(counts.sum(axis=1).T - right, 0.0)
        params, steps = (self._initial(len(counts)), _FIRST_STEPS) if previous is None else (previous, _STEPS)
        for _ in range(steps):
            params = self._inner_em_step(right, wrong, params)
        return params

    def log_confusion(self, params: Array) -> Array:
        """Log confusion matrices: spam everywhere, and competence on the diagonal.

        Parameters
        ----------
        params : ndarray of shape (1 + n_classes, n_workers)
            Competence and spam probabilities.

        Returns
        -------
        ndarray of shape (n_workers, n_classes, n_classes)
        """
        competence, spam = params[:1].T, params[1:].T
        # Memory layout [worker, label, truth], as the pass reads it: the row of a wrong label is constant.
        table = np.repeat(safe_log(spam), self.n_classes, axis=1).reshape(-1, self.n_classes, self.n_classes)
        diagonal = np.arange(self.n_classes)
        table[:, diagonal, diagonal] = safe_log(competence + spam)
        return table.transpose(0, 2, 1)

    def log_penalty(self, params: Array) -> float:
        """Log density of the Dirichlet priors, up to a constant."""
        return float((safe_log(params) * self._prior()).sum()) if self.smoothing else 0.0

    def _prior(self) -> Array:
        """Pseudo-counts of knowledge and of each spam label, shape (1 + n_classes, 1)."""
        spam = (1 - self.prior_competence) / self.n_classes
        return self.smoothing * np.array([self.prior_competence, *[spam] * self.n_classes])[:, None]

    def _initial(self, n_workers: int) -> Array:
        """Parameters at the prior mean, moved inside the simplex because the inner EM never leaves its border."""
        competence = min(max(self.prior_competence, 0.01), 0.99)
        column = np.array([competence, *[(1 - competence) / self.n_classes] * self.n_classes])
        return np.repeat(column[:, None], n_workers, axis=1)

    def _inner_em_step(self, right: Array, wrong: Array, params: Array) -> Array:
        """One step of the inner EM: the expected number of known labels, then the shares of knowledge and spam."""
        competence, spam = params[0], params[1:]
        known = right * (competence / np.maximum(competence + spam, np.finfo(np.float64).tiny))
        better = np.concatenate([known.sum(axis=0, keepdims=True), wrong + (right - known)])
        better += self._prior()
        total = better.sum(axis=0)
        return np.divide(better, total, out=params.copy(), where=total > 0)  # without labels and prior: unchanged
