"""A worker either says the truth or guesses from a habit of their own (Hovy et al. 2013).

p(label = l | truth = k, worker = w) = trust[w] [l = k] + (1 - trust[w]) habit[w, l]

A worker's parameters are a point of the simplex: trust, then guess[l] = (1 - trust) habit[l]. In them the best answer
to expected counts is a concave problem.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from manyhands.noise import Array, safe_log

_FIRST_STEPS = 25  # of the inner EM, when it starts from nothing
_STEPS = 5  # later, from the last parameters: of 2, 3, 5, 10 and 20 this took the least time on the real sets


@dataclass(frozen=True)
class SpammerNoise:
    """Trust and habit with a Dirichlet prior worth `smoothing` labels, of which the share `prior_competence` is honest."""

    n_classes: int
    smoothing: float
    prior_competence: float

    def solve(self, counts: Array, previous: Array | None) -> Array:
        """(1 + n_classes, n_workers): an inner EM shares the right labels out between honesty and lucky guesses."""
        right = np.diagonal(counts, axis1=1, axis2=2).T.copy()  # (n_classes, n_workers)
        wrong = np.maximum(counts.sum(axis=1).T - right, 0.0)
        params, steps = (self._initial(len(counts)), _FIRST_STEPS) if previous is None else (previous, _STEPS)
        for _ in range(steps):
            params = self._inner_em_step(right, wrong, params)
        return params

    def log_table(self, params: Array) -> Array:
        competence, spam = params[:1].T, params[1:].T
        # Laid out as [worker, label, truth], the way the pass reads it: a wrong label's row is one number.
        table = np.repeat(safe_log(spam), self.n_classes, axis=1).reshape(-1, self.n_classes, self.n_classes)
        diagonal = np.arange(self.n_classes)
        table[:, diagonal, diagonal] = safe_log(competence + spam)
        return table.transpose(0, 2, 1)

    def log_penalty(self, params: Array) -> float:
        return float((safe_log(params) * self._prior()).sum()) if self.smoothing else 0.0

    def _prior(self) -> Array:
        """(1 + n_classes, 1) labels that the prior adds to honesty and to each guess."""
        spam = (1 - self.prior_competence) / self.n_classes
        return self.smoothing * np.array([self.prior_competence, *[spam] * self.n_classes])[:, None]

    def _initial(self, n_workers: int) -> Array:
        """Workers of whom nothing is known; inside the simplex, because the inner EM never leaves its border."""
        competence = min(max(self.prior_competence, 0.01), 0.99)
        column = np.array([competence, *[(1 - competence) / self.n_classes] * self.n_classes])
        return np.repeat(column[:, None], n_workers, axis=1)

    def _inner_em_step(self, right: Array, wrong: Array, params: Array) -> Array:
        """One step of the inner EM: how many right labels were honest, then the shares of honesty and guesses."""
        competence, spam = params[0], params[1:]
        known = right * (competence / np.maximum(competence + spam, np.finfo(np.float64).tiny))
        better = np.concatenate([known.sum(axis=0, keepdims=True), wrong + (right - known)])
        better += self._prior()
        total = better.sum(axis=0)
        return np.divide(better, total, out=params.copy(), where=total > 0)  # silent, without a prior: still unknown
