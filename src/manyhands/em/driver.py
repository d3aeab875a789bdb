"""`run_em`: the one EM driver, with the objective, the stopping rule, the acceleration and the history.

A model provides two steps. `maximise`, the M step, turns sufficient statistics (expected counts) into parameters;
`expect`, the E step, turns parameters into new statistics and the objective at these parameters. Statistics are one
flat vector, so the driver can extrapolate them (SQUAREM) without knowing what they mean; an extrapolation that lowers
the objective is rejected.

References
----------
Dempster, Laird, Rubin (1977), Maximum likelihood from incomplete data via the EM algorithm.
Varadhan, Roland (2008), Simple and globally convergent methods for accelerating the convergence of any EM algorithm.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from manyhands._core.arrays import Array
from manyhands._core.progress import report

P = TypeVar("P")

_SLOWEST = 0.9999  # upper bound of the convergence rate; at 1 the rule would divide by zero
_STILL = 1e-3  # standard deviations of a count; while one changes by more, EM may be leaving a saddle point


class Steps(Protocol[P]):
    """The two steps of a model that is fitted by EM."""

    def maximise(self, statistics: Array, previous: P | None) -> P:
        """The M step: parameters from sufficient statistics and the parameters of the last iteration."""

    def expect(self, params: P) -> tuple[Array, float]:
        """The E step: sufficient statistics and objective at these parameters."""


@dataclass(frozen=True)
class EMResult(Generic[P]):
    """Outcome of EM."""

    params: P  # the final parameters; the last entry of `history` is the objective there
    history: list[float]  # the objective after each accepted pass
    n_iter: int  # number of passes over the data, rejected ones included
    converged: bool  # whether the stopping rule was met within `max_iter` passes
    # for each entry of `history` the pass, counted from 0, that it comes from; rejected passes have none
    kept: list[int]


@dataclass(frozen=True)
class _Point(Generic[P]):
    """One pass: from the statistics `origin` to parameters, their objective, and the statistics they imply."""

    origin: Array
    params: P
    statistics: Array
    objective: float

    @property
    def residual(self) -> Array:
        """The change of the statistics by this pass; 0 at a fixed point of EM."""
        return self.statistics - self.origin


def run_em(
    steps: Steps[P],
    start: Array,
    *,
    max_iter: int,
    tol: float,
    accelerate: bool = True,
    what: str = "EM",
    stop_early: bool = False,
) -> EMResult[P]:
    """Alternate M steps and E steps until the objective has almost nothing left to gain.

    The objective never falls from one entry of the history to the next, provided that `maximise` never lowers it. Steps
    that may lower it (generalised EM, where parameters are updated given others that then change) should not be
    accelerated; a pass that lowered the objective counts as one without gain, so EM stops once the counts no longer
    change either.

    Parameters
    ----------
    steps : Steps
        The model.
    start : ndarray
        Sufficient statistics to start from, such as those of the vote shares.
    max_iter : int
        Maximum number of passes over the data.
    tol : float
        Stop when the estimated distance to the optimum is below `tol` times the objective.
    accelerate : bool, default=True
        Extrapolate from every pair of passes (SQUAREM).
    what : str, default="EM"
        Name under which progress is reported.
    stop_early : bool, default=False
        Stop when two passes have each gained less than `tol` times the objective, whatever is left to gain.

    Returns
    -------
    EMResult
    """
    n_iter = 0

    def one_pass(statistics: Array, previous: P | None) -> _Point[P]:
        nonlocal n_iter
        n_iter += 1
        report(n_iter, max_iter, what)
        params = steps.maximise(statistics, previous)
        return _Point(statistics, params, *steps.expect(params))

    here = one_pass(start, None)
    history, kept = [here.objective], [0]
    rule = StopRule(tol, stop_early)
    while n_iter < max_iter and not rule.reached:
        ahead = one_pass(here.statistics, here.params)
        history.append(ahead.objective)
        kept.append(n_iter - 1)
        rule.watch(here, ahead)
        if accelerate and n_iter < max_iter and not rule.reached:
            origin = _extrapolate(here, ahead)
            here = ahead  # its statistics are as large as all count tables: the memory of the earlier ones is free
            far = one_pass(origin, ahead.params)
            if far.objective >= ahead.objective:  # otherwise it is rejected, and EM continues from `ahead`
                history.append(far.objective)
                kept.append(n_iter - 1)
                ahead = far
                if n_iter < max_iter:  # a plain pass corrects the small counts before the next extrapolation
                    ahead = one_pass(far.statistics, far.params)
                    history.append(ahead.objective)
                    kept.append(n_iter - 1)
        here = ahead
    return EMResult(here.params, history, n_iter, rule.reached, kept)


class StopRule:
    """Stop when the remaining gain is small, not when the last gain was.

    The residual of EM shrinks by a factor `rate` per pass and its distance to the optimum, in the objective, by `rate`
    squared, so a pass that gained g leaves about g rate^2 / (1 - rate^2): a hundred times g where EM converges slowly.
    The slowest recent rate counts, because an extrapolation hides the slow direction for a while. The rule must hold
    twice in a row, and no expected count may still change, because near a saddle point the gains are tiny for a hundred
    passes and then grow again.
    """

    def __init__(self, tol: float, early: bool = False) -> None:
        self.tol = tol
        self.early = early
        self.rates: list[float] = []
        self.times = 0

    def watch(self, here: _Point[Any], ahead: _Point[Any]) -> None:
        """Update the rule with two successive passes."""
        size, next_residual = _norm(here.residual), ahead.residual
        gain, objective = ahead.objective - here.objective, ahead.objective
        rate = _norm(next_residual) / size if size > 0 else 0.0
        self.rates = [*self.rates[-4:], min(rate, _SLOWEST)]
        slow = max(self.rates) ** 2
        left = max(gain, 0.0) * (1.0 if self.early else slow / (1 - slow))
        settled = left <= self.tol * max(abs(objective), 1.0)
        settled &= self.early or _is_still(next_residual, ahead.statistics)
        self.times = self.times + 1 if settled else 0

    @property
    def reached(self) -> bool:
        """Whether the rule held for two successive pairs of passes."""
        return self.times >= 2


def _is_still(residual: Array, statistics: Array) -> bool:
    """Whether no expected count changes by more than a small part of its standard deviation."""
    return bool(np.all(np.abs(residual) <= _STILL * np.sqrt(np.maximum(statistics, 1.0))))


def _extrapolate(here: _Point[P], ahead: _Point[P]) -> Array:
    """The SQUAREM extrapolation beyond two passes, taken in the square roots of the counts.

    Square roots keep counts from turning negative, and a change of a square root means about the same for a large count
    as for a small one; on real crowds this took fewer passes than steps in the counts or in their logarithms.
    """
    origin, first, change = np.sqrt(here.origin), np.sqrt(ahead.origin), np.sqrt(ahead.statistics)
    change -= first  # in place, because each of these is as large as all count tables
    first -= origin
    change -= first
    size = _norm(change)
    step = max(_norm(first) / size, 1.0) if size > 0 else 1.0
    first *= 2 * step
    change *= step**2
    origin += first
    origin += change
    return np.square(np.maximum(origin, 0.0, out=origin), out=origin)


def _norm(vector: Array) -> float:
    """The Euclidean norm by NumPy's own sum; that of BLAS depends on the number of threads in its last bits."""
    return float(np.sqrt(np.square(vector).sum()))
