"""run_em: the one EM driver. It owns objective, stopping, acceleration and history.

A model gives two steps. `maximise` turns statistics (expected counts) into parameters, `expect` turns parameters
into new statistics and the objective at these parameters. Statistics are one flat vector, so the driver can
extrapolate them (SQUAREM) without knowing what they mean; an extrapolation that lowers the objective is undone.

References
----------
Dempster, Laird, Rubin (1977), Maximum likelihood from incomplete data via the EM algorithm.
Varadhan, Roland (2008), Simple and globally convergent methods for accelerating the convergence of any EM algorithm.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from manyhands.progress import report

Array = npt.NDArray[np.float64]
P = TypeVar("P")

_SLOWEST = 0.9999  # a convergence rate above this is taken for this, or the rule would divide by zero
_STILL = 1e-3  # standard deviations of a count; while any still moves by more, EM may be leaving a saddle


class Steps(Protocol[P]):
    """The two steps of a model."""

    def maximise(self, statistics: Array, previous: P | None) -> P: ...

    def expect(self, params: P) -> tuple[Array, float]: ...


@dataclass(frozen=True)
class EMResult(Generic[P]):
    """Where EM ended: the last entry of `history` is the objective at `params`.

    A pass that led nowhere has no entry: `kept` says which pass, counted from 0, is behind each.
    """

    params: P
    history: list[float]
    n_iter: int
    converged: bool
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
    """Alternate the two steps from the statistics `start` until the objective has almost nothing left to gain.

    Parameters
    ----------
    steps : the model
    start : statistics to begin with, e.g. those of the vote shares
    max_iter : at most this many passes over the data
    tol : stop when the estimated distance to the optimum is below `tol` times the objective
    accelerate : extrapolate from every pair of passes (SQUAREM)
    what : the name under which progress is reported
    stop_early : stop when two passes have each gained less than `tol` times the objective, whatever is left to gain

    The objective never falls from one entry of the history to the next, if `maximise` does not lower it. Steps that may
    (generalised EM, where parameters are solved for with others that then move) should not be accelerated; a pass that
    fell counts as one that gained nothing, so that EM stops once counts are still too.
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
            far = one_pass(_extrapolate(here, ahead), ahead.params)
            if far.objective >= ahead.objective:  # otherwise the pass was in vain, and we go on from `ahead`
                history.append(far.objective)
                kept.append(n_iter - 1)
                ahead = far
                if n_iter < max_iter:  # one plain pass settles the small counts before the next leap
                    ahead = one_pass(far.statistics, far.params)
                    history.append(ahead.objective)
                    kept.append(n_iter - 1)
        here = ahead
    return EMResult(here.params, history, n_iter, rule.reached, kept)


class StopRule:
    """Stop when what is left to gain, not what the last step gained, is small.

    EM's residual shrinks by a factor `rate` per pass and its distance to the optimum by `rate` squared, so a pass
    that gained g leaves about g rate^2 / (1 - rate^2): a hundred times g where EM creeps. The slowest rate lately
    seen counts, because an extrapolation hides the slow direction for a while; it must hold twice; and no expected
    count may still move, because near a saddle gains are tiny for a hundred passes and then grow again.
    """

    def __init__(self, tol: float, early: bool = False) -> None:
        self.tol = tol
        self.early = early
        self.rates: list[float] = []
        self.times = 0

    def watch(self, here: _Point[Any], ahead: _Point[Any]) -> None:
        """Look at two successive passes."""
        residual, next_residual, statistics = here.residual, ahead.residual, ahead.statistics
        gain, objective = ahead.objective - here.objective, ahead.objective
        size = _norm(residual)
        rate = _norm(next_residual) / size if size > 0 else 0.0
        self.rates = [*self.rates[-4:], min(rate, _SLOWEST)]
        slow = max(self.rates) ** 2
        left = max(gain, 0.0) * (1.0 if self.early else slow / (1 - slow))
        settled = left <= self.tol * max(abs(objective), 1.0)
        settled &= self.early or _is_still(next_residual, statistics)
        self.times = self.times + 1 if settled else 0

    @property
    def reached(self) -> bool:
        return self.times >= 2


def _is_still(residual: Array, statistics: Array) -> bool:
    return bool(np.all(np.abs(residual) <= _STILL * np.sqrt(np.maximum(statistics, 1.0))))


def _extrapolate(here: _Point[P], ahead: _Point[P]) -> Array:
    """The SQUAREM point beyond two passes, taken between square roots of counts.

    Square roots keep counts from turning negative, and a change of theirs means about the same for a large count
    as for a small one; on real crowds this took fewer passes than steps between counts or between logarithms.
    """
    origin, middle, end = np.sqrt(here.origin), np.sqrt(ahead.origin), np.sqrt(ahead.statistics)
    first = middle - origin
    change = (end - middle) - first
    size = _norm(change)
    step = max(_norm(first) / size, 1.0) if size > 0 else 1.0
    return np.maximum(origin + 2 * step * first + step**2 * change, 0.0) ** 2


def _norm(vector: Array) -> float:
    """The Euclidean norm by NumPy's own sum: BLAS would split it among threads, and its last bits with them."""
    return float(np.sqrt(np.square(vector).sum()))
