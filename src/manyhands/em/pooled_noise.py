"""Pooled noise model: confusion matrices with a hierarchical prior, a mixture of worker types (empirical Bayes).

Each worker is of one unknown type, and each type has a prior of the confusion matrices of its workers: one-coin,
spammer and confusion.

With the first two types a label is never evidence for a class other than its own. Only the confusion type can turn
labels into evidence for other classes, and with it classes may drift away from their names where workers share their
errors; so a worker is of that type only where it explains their labels better by `FULL_MATRIX_COST` nats per label.

Type shares and the Beta and Dirichlet parameters are fitted to the data inside `solve`: the matrix of a worker with few
labels is close to that of the crowd, with many labels it is their own. This is variational EM. `log_confusion` holds
expected logarithms, `log_penalty` is minus the divergence of the posteriors of the workers from their prior, and their
sum with the evidence is a lower bound of the log-likelihood that no step can lower: p(type) is solved exactly, the rest
by minorisation or by Newton steps that are halved where they would lower it.

References
----------
D. Hovy et al. (2013), Learning whom to trust with MACE (the spammer type).
T. Minka (2000), Estimating a Dirichlet distribution.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from manyhands._core import elementary
from manyhands._core.arrays import Array
from manyhands._core.elementary import digamma, gammaln, trigamma
from manyhands.em.kernels import spread
from manyhands.em.noise import safe_log
from manyhands.em.priors import PRIOR_ACCURACY

# ----------------------------------------------------------------------------------------------------
# Dirichlet-multinomial arithmetic for many workers at once: evidence and expected logarithms.

# Hyper-prior x^SHAPE exp(-RATE x) of every Beta and Dirichlet parameter x, which keeps it away from 0 and infinity.
# Its mode is SHAPE / RATE = 10 pseudo-counts.
SHAPE, RATE = 0.5, 0.05
_MAX_SHORT = 7  # numbers that NumPy adds one after another; longer sums are pairwise
Special = Callable[..., Array]  # element-wise, with `out`: digamma, gammaln
Log = Callable[[Array], Array]  # digamma gives expected logarithms, log gives logarithms of expectations


def log_shares(alpha: Array, counts: Array, log: Log) -> Array:
    """Log of the category shares under Dirichlet posteriors along the last axis.

    Shapes: alpha (..., n); counts (n_workers, ..., n).
    """
    shifted = _as_counts(alpha) + counts
    total = sum_last(shifted)
    if log is not digamma:
        return log(shifted) - log(total)[..., None]
    return spread(digamma, shifted) - spread(digamma, total)[..., None]


def dirichlet_evidence(alpha: Array, counts: Array) -> Array:
    """Log marginal likelihood log p(counts) under Dirichlet priors along the last axis.

    Shapes: alpha (..., n); counts (n_workers, ..., n); returns (n_workers, ...).
    """
    strength, total, alpha = alpha.sum(axis=-1), sum_last(counts), _as_counts(alpha)
    cells = spread(gammaln, alpha + counts)
    cells -= gammaln(alpha)
    cells = sum_last(cells)
    return cells - spread(gammaln, strength + total) + gammaln(strength)


def _as_counts(alpha: Array) -> Array:
    """The parameters in the memory layout of the counts of a pass, label before truth, in which NumPy adds them faster.

    Shapes: alpha (..., n); returns (..., n).
    """
    return np.asfortranarray(alpha)


def sum_last(x: Array) -> Array:
    """`x.sum(axis=-1)` to the last bit, and many times as fast where the last axis is short."""
    if not 1 < x.shape[-1] <= _MAX_SHORT:
        return np.asarray(x.sum(axis=-1))
    total = np.asarray(x[..., 0] + x[..., 1])
    for k in range(2, x.shape[-1]):
        total += x[..., k]
    return total


# ----------------------------------------------------------------------------------------------------
# Maximum a posteriori estimates of Beta and Dirichlet parameters from the counts of all workers:
#
#     maximise  sum_w p[w] log DirichletMultinomial(counts[w] | alpha) + sum_k (SHAPE log alpha[k] - RATE alpha[k])
#
# Minka's fixed point moves a parameter by about one percent where workers hardly differ, hundreds of times. Newton's
# method needs a few steps, but while the counts still change, its long steps may lead to another optimum; so the M step
# takes it once they have settled (`SETTLED`).

_MAX_STEP = 2.0  # largest change of a logarithm in one step
_HALVINGS = 4  # of a step that lowers the objective; then the fixed point takes its place
_MIN_STEP = 1e-3  # change of a logarithm; a smaller step ends the iteration
_FLAT = 1e-9  # curvature below which a direction counts as flat: no division by 0
_FLATTEST = 1e-4  # the same in units of the diagonal; a smaller one would amplify rounding errors ten thousand times
_ROUNDING = 1e-12  # of the objective and of one nat; a smaller loss is a rounding error


def fixed_point(alpha: Array, counts: Array, p: Array) -> Array:
    """One step of Minka's fixed point for the parameters of Dirichlet priors along the last axis.

    The objective never falls.

    Shapes: alpha (..., n); counts (n_workers, ..., n); p (n_workers,).
    """
    gained, spent = _sums(digamma, alpha, counts, p)
    return (alpha * gained + SHAPE) / (spent + RATE)[..., None]


def newton(alpha: Array, counts: Array, p: Array, max_steps: int = 1) -> Array:
    """Improve the parameters of Dirichlet priors along the last axis by Newton steps in their logarithms.

    The objective never falls: a step that lowers it is halved, and at last replaced by that of `fixed_point`.

    Examples
    --------
    >>> found = newton(np.array([2.0, 1.0]), np.array([[8.0, 2.0]] * 50), np.ones(50), max_steps=3)
    >>> (found / found.sum()).round(2).tolist()
    [0.8, 0.2]

    Shapes: alpha (..., n); counts (n_workers, ..., n); p (n_workers,); returns (..., n).
    """
    for _ in range(max_steps):
        gained, spent = _sums(digamma, alpha, counts, p)
        curved, curved_strength = _sums(trigamma, alpha, counts, p)
        step = _newton_step(alpha, alpha * (gained - spent[..., None] - RATE) + SHAPE, curved, curved_strength)
        value = _value(alpha, counts, p)
        trial = alpha * elementary.exp(step)
        for _ in range(_HALVINGS):
            lower = _value(trial, counts, p) < value - _ROUNDING * (1.0 + np.abs(value))
            if not lower.any():
                break
            step = np.where(lower[..., None], step / 2, step)
            trial = alpha * elementary.exp(step)
        else:
            lower = _value(trial, counts, p) < value - _ROUNDING * (1.0 + np.abs(value))
            safe = (alpha * gained + SHAPE) / (spent + RATE)[..., None]
            trial = np.where(lower[..., None], safe, trial)
        alpha = trial
        if np.abs(step).max() < _MIN_STEP:
            break
    return alpha


def _newton_step(alpha: Array, gradient: Array, curved: Array, curved_strength: Array) -> Array:
    """The Newton step in the logarithms; along the gradient where the curvature has the wrong sign.

    The matrix of second derivatives is diagonal but for a multiple of alpha alpha'. In units of the diagonal it is
    -1 + u u', so its sign can be wrong only along u.

    Shapes: alpha (..., n); gradient (..., n); curved (..., n); curved_strength (...); returns (..., n).
    """
    scale = np.sqrt(np.maximum(np.abs(alpha * alpha * curved - SHAPE + gradient), _FLAT))
    u = alpha / scale * np.sqrt(np.maximum(-curved_strength, 0.0))[..., None]
    length, toward = (u * u).sum(axis=-1), gradient / scale
    along = (u * toward).sum(axis=-1) / np.maximum(length, np.finfo(np.float64).tiny)
    change = along * (1.0 / np.maximum(np.abs(1.0 - length), _FLATTEST) - 1.0)
    step = (toward + u * change[..., None]) / scale
    largest = np.abs(step).max(axis=-1, keepdims=True)
    return np.asarray(step * (_MAX_STEP / np.maximum(largest, _MAX_STEP)))


def _sums(function: Special, alpha: Array, counts: Array, p: Array) -> tuple[Array, Array]:
    """sum_w p[w] (function(alpha + counts) - function(alpha)), for each parameter and for the sum of each prior.

    Shapes: alpha (..., n); counts (n_workers, ..., n); p (n_workers,); returns cells (..., n); returns strength (...).
    """
    strength, total, alpha = alpha.sum(axis=-1), sum_last(counts), _as_counts(alpha)
    change = spread(function, alpha + counts)
    change -= function(alpha)
    cells = np.einsum("w,w...->...", p, change)
    return cells, np.einsum("w,w...->...", p, spread(function, strength + total) - function(strength))


def _value(alpha: Array, counts: Array, p: Array) -> Array:
    """The objective of each prior, shape (...).

    Shapes: alpha (..., n); counts (n_workers, ..., n); p (n_workers,).
    """
    cells, strength = _sums(gammaln, alpha, counts, p)
    return np.asarray((cells + SHAPE * elementary.log(alpha) - RATE * alpha).sum(axis=-1) - strength)


# ----------------------------------------------------------------------------------------------------
# The worker types of the pooled model: their sufficient statistics, their evidence and their confusion matrices.
#
#     one-coin    right with probability a ~ Beta, whatever the truth; errors are spread evenly over the other classes
#     spammer     knows the truth with probability t ~ Beta, otherwise draws a label from x ~ Dirichlet (MACE)
#     confusion   row k of the confusion matrix ~ Dirichlet_k
#
# All three are conjugate, so the evidence of a worker's expected counts has a closed form; for the spammer type it is a
# lower bound.


@dataclass(frozen=True)
class Tally:
    """Expected counts of each worker, summed in the ways the types need.

    Shapes: counts (n_workers, n_classes, n_classes).
    """

    counts: Array  # (n_workers, n_classes, n_classes); expected counts, indexed [worker, truth, label]

    @cached_property
    def right(self) -> Array:
        """Right labels of each class, shape (n_workers, n_classes)."""
        return np.einsum("wkk->wk", self.counts)

    @cached_property
    def given(self) -> Array:
        """Labels of each class, whatever the truth, shape (n_workers, n_classes)."""
        return sum_last(self.counts.transpose(0, 2, 1))

    @cached_property
    def coin(self) -> Array:
        """Right and wrong labels, shape (n_workers, 2)."""
        right = sum_last(self.right)
        return np.stack([right, np.maximum(sum_last(self.given) - right, 0.0)], axis=1)


@dataclass(frozen=True)
class CrowdPriors:
    """Hyper-parameters of the crowd: how frequent the types are, and the Beta and Dirichlet parameters of each."""

    shares: Array  # (n_types,); frequency of each type
    coin: Array  # (2,); beta of the accuracy of the one-coin type: right, wrong
    competence: Array  # (2,); beta of the competence of the spammer type: known, not known
    spam: Array  # (n_classes,); dirichlet of the spam distribution of the spammer type
    full: Array  # (n_classes, n_classes); dirichlets of the rows of the confusion type


@dataclass(frozen=True)
class WorkerPosteriors:
    """Posterior of each worker's type given the expected counts."""

    tally: Tally
    # (n_workers, n_classes); share of the right labels that were known and not right by chance, for the spammer type
    p_known: Array
    p_type: Array  # (n_workers, n_types); p(type) of each worker
    evidence: Array  # (n_workers,); log p(counts), summed over the types

    @cached_property
    def competence(self) -> Array:
        """Expected number of labels that were known, and that were spam, shape (n_workers, 2)."""
        competent = sum_last(self.tally.right * self.p_known)
        return np.stack([competent, sum_last(self.spam)], axis=1)

    @cached_property
    def spam(self) -> Array:
        """Expected number of spam labels of each class, shape (n_workers, n_classes)."""
        return np.maximum(self.tally.given - self.tally.right * self.p_known, 0.0)


def _coin_evidence(workers: WorkerPosteriors, priors: CrowdPriors) -> Array:
    """Log evidence log p(counts) of the one-coin type, shape (n_workers,)."""
    coin, n_classes = workers.tally.coin, len(priors.spam)
    return dirichlet_evidence(priors.coin, coin) - coin[:, 1] * elementary.log(n_classes - 1)


def _coin_table(workers: WorkerPosteriors, priors: CrowdPriors, log: Log) -> Array:
    """Log confusion matrices of the one-coin type, shape (n_workers, n_classes, n_classes)."""
    n_classes = len(priors.spam)
    right, wrong = log_shares(priors.coin, workers.tally.coin, log).T
    table = np.repeat(wrong - elementary.log(n_classes - 1), n_classes**2).reshape(-1, n_classes, n_classes)
    diagonal = np.arange(n_classes)
    table[:, diagonal, diagonal] = right[:, None]
    return table


def spammer_logs(workers: WorkerPosteriors, priors: CrowdPriors, log: Log) -> tuple[Array, Array]:
    """Log-probabilities of the two sources of a label of the spammer type.

    Shapes: returns log_known (n_workers, 1); returns log_spam (n_workers, n_classes).
    """
    log_known, log_not = log_shares(priors.competence, workers.competence, log).T
    return log_known[:, None], log_not[:, None] + log_shares(priors.spam, workers.spam, log)


def _spammer_evidence(workers: WorkerPosteriors, priors: CrowdPriors) -> Array:
    """Lower bound of log p(counts) of the spammer type, shape (n_workers,), for any `p_known`."""
    log_known, log_spam = spammer_logs(workers, priors, digamma)
    right, competent = workers.tally.right, workers.tally.right * workers.p_known
    slack = right * elementary.logaddexp(log_known, log_spam) - competent * log_known - (right - competent) * log_spam
    spam = dirichlet_evidence(priors.spam, workers.spam)
    return dirichlet_evidence(priors.competence, workers.competence) + spam + sum_last(slack)


def _spammer_table(workers: WorkerPosteriors, priors: CrowdPriors, log: Log) -> Array:
    """Log confusion matrices of the spammer type, shape (n_workers, n_classes, n_classes)."""
    log_known, log_spam = spammer_logs(workers, priors, log)
    n_classes = log_spam.shape[1]
    table = np.repeat(log_spam[:, None, :], n_classes, axis=1)
    diagonal = np.arange(n_classes)
    table[:, diagonal, diagonal] = elementary.logaddexp(log_known, log_spam)
    return table


def _full_evidence(workers: WorkerPosteriors, priors: CrowdPriors) -> Array:
    """Log evidence log p(counts) of the confusion type, shape (n_workers,)."""
    return sum_last(dirichlet_evidence(priors.full, workers.tally.counts))


def _full_table(workers: WorkerPosteriors, priors: CrowdPriors, log: Log) -> Array:
    """Log confusion matrices of the confusion type, shape (n_workers, n_classes, n_classes)."""
    return log_shares(priors.full, workers.tally.counts, log)


EVIDENCE = {"one-coin": _coin_evidence, "spammer": _spammer_evidence, "confusion": _full_evidence}
TABLE = {"one-coin": _coin_table, "spammer": _spammer_table, "confusion": _full_table}

# ----------------------------------------------------------------------------------------------------
# The mixture of the types: its M step, its penalty and the pooled confusion matrices.

FULL_MATRIX_COST = 0.05  # nats per label that a full confusion matrix of a worker must gain
MAX_CLASSES_FULL = 10  # classes; with more, full matrices cost more than a pass and few cells can be estimated
_MIN_PARAMETER = 1e-9  # lower bound: an extrapolation may take a parameter to 0
# Share of the expected counts that changed since the last M step; below it hyper-parameters take Newton steps. On 32
# simulated crowds (2 to 8 classes; random, constant, inverted or no bad workers) it was the largest of 0.01, 0.003,
# 0.001 and 0.0003 with which no crowd ended in a lower optimum than with the fixed point alone, run to 1e-7.
SETTLED = 3e-4
_STEPS_OF_SPARSE = 3  # Newton steps of the Beta of accuracies in each M step of a crowd in which most have few labels


@dataclass(frozen=True)
class PooledParams:
    """Parameters that EM estimates."""

    priors: CrowdPriors  # hyper-parameters of the crowd
    workers: WorkerPosteriors  # posteriors of the workers
    log_confusion: Array  # (n_workers, n_classes, n_classes); expected log p(label | truth), over the types too


@dataclass(frozen=True)
class PooledNoise:
    """Confusion matrices with a prior that is a mixture of worker types, fitted from the data.

    Shapes: n_labels (n_workers,); size (n_workers,).
    """

    n_classes: int
    n_labels: Array  # (n_workers,); number of labels of each worker
    prior_strength: float = 0.03  # pseudo-count of the one-coin type, as a share of the active workers
    size: Array | None = None  # (n_workers,); how many exchangeable workers each one stands for; None is one each
    # take Newton steps for the Beta of the one-coin type from the first M step on, for crowds in which most workers
    # have few labels
    use_newton: bool = False

    @property
    def types(self) -> tuple[str, ...]:
        """Names of the types in use; the confusion type only up to `MAX_CLASSES_FULL` classes."""
        if self.n_classes == 1:
            return ("confusion",)
        return ("one-coin", "spammer", "confusion") if self.n_classes <= MAX_CLASSES_FULL else ("one-coin", "spammer")

    def solve(self, counts: Array, previous: PooledParams | None) -> PooledParams:
        """The M step: posteriors of the workers, hyper-parameters, posteriors again.

        Shapes: counts (n_workers, n_classes, n_classes).
        """
        tally = Tally(counts if self.size is None else counts / self.size[:, None, None])
        is_settled = previous is not None and _change(tally.counts, previous.workers.tally.counts) < SETTLED
        priors = self.start() if previous is None else previous.priors
        p_known = np.full_like(tally.right, PRIOR_ACCURACY) if previous is None else previous.workers.p_known
        workers = self._worker_posteriors(tally, p_known, priors)
        priors = self._update_priors(workers, priors, is_settled)
        workers = self._worker_posteriors(tally, workers.p_known, priors)
        return PooledParams(priors, workers, self._expected_table(workers, priors, digamma))

    def log_confusion(self, params: PooledParams) -> Array:
        """Expected log confusion matrices under the posterior of each worker."""
        return params.log_confusion

    def log_penalty(self, params: PooledParams) -> float:
        """Minus the divergence of the posteriors of the workers from their prior, plus the log hyper-prior."""
        workers = params.workers
        if self.size is None:
            explained, evidence = (workers.tally.counts * params.log_confusion).sum(), workers.evidence.sum()
        else:
            each = (workers.tally.counts * params.log_confusion).sum(axis=(1, 2))
            explained, evidence = (self.size * each).sum(), (self.size * workers.evidence).sum()
        return float(evidence - explained) + self._log_hyperprior(params.priors)

    def hyperparameters(self, params: PooledParams | None) -> Array:
        """The hyper-parameters of the crowd as one vector of positive numbers, for the driver to extrapolate."""
        b = self.start() if params is None else params.priors
        return np.concatenate([b.shares, b.coin, b.competence, b.spam, b.full], axis=None)

    def with_hyperparameters(self, hyperparameters: Array, previous: PooledParams | None) -> PooledParams | None:
        """The previous parameters with these hyper-parameters."""
        if previous is None:
            return None
        n = self.n_classes
        shapes = [(len(self.types),), (2,), (2,), (n,), (n, n)]
        parts = np.split(
            np.maximum(hyperparameters, _MIN_PARAMETER), np.cumsum([np.prod(shape) for shape in shapes[:-1]])
        )
        shares, *others = (part.reshape(shape) for part, shape in zip(parts, shapes))
        return PooledParams(CrowdPriors(shares / shares.sum(), *others), previous.workers, previous.log_confusion)

    def confusion(self, params: PooledParams) -> Array:
        """The expected confusion matrices.

        Shapes: returns (n_workers, n_classes, n_classes).
        """
        return self._expected_table(params.workers, params.priors, safe_log, elementary.exp)

    def unseen_worker(self, params: PooledParams) -> Array:
        """The expected confusion matrix of a worker without labels, under the fitted prior.

        Shapes: returns (n_classes, n_classes).
        """
        nothing = Tally(np.zeros((1, self.n_classes, self.n_classes)))
        workers = WorkerPosteriors(nothing, np.zeros((1, self.n_classes)), params.priors.shares[None], np.zeros(1))
        return self._expected_table(workers, params.priors, safe_log, elementary.exp)[0]

    def start(self) -> CrowdPriors:
        """Initial hyper-parameters: workers are right two times out of three."""
        n, pseudo = self.n_classes, self._pseudo_workers()
        usual = np.array([2.0, 1.0])
        return CrowdPriors(pseudo / pseudo.sum(), usual, usual, np.ones(n), 2.0 * np.eye(n) + 1.0 / n)

    def _pseudo_workers(self) -> Array:
        """Pseudo-count of each type, shape (n_types,)."""
        active = float((self.n_labels > 0).sum() if self.size is None else self.size[self.n_labels > 0].sum())
        return np.array([1.0 + (self.prior_strength * active if name == "one-coin" else 0.0) for name in self.types])

    def _worker_posteriors(self, tally: Tally, p_known: Array, priors: CrowdPriors) -> WorkerPosteriors:
        """p(type) and evidence of each worker, after two updates of which right labels were known."""
        for _ in range(2):
            log_known, log_spam = spammer_logs(WorkerPosteriors(tally, p_known, p_known, p_known), priors, digamma)
            p_known = 1.0 / (1.0 + elementary.exp(np.clip(log_spam - log_known, -500.0, 500.0)))
        without_types = WorkerPosteriors(tally, p_known, p_known, p_known)
        evidence = [EVIDENCE[name](without_types, priors) for name in self.types]
        cost = [FULL_MATRIX_COST * self.n_labels if name == "confusion" else 0.0 * self.n_labels for name in self.types]
        score = np.stack(evidence, axis=1) - np.stack(cost, axis=1) + safe_log(priors.shares)
        top = score.max(axis=1, keepdims=True)
        weight = elementary.exp(score - top)
        total = sum_last(weight)[:, None]
        return WorkerPosteriors(tally, p_known, weight / total, (top + elementary.log(total))[:, 0])

    def _update_priors(self, workers: WorkerPosteriors, priors: CrowdPriors, is_settled: bool) -> CrowdPriors:
        """One update of the hyper-parameters that never lowers the summed evidence plus the log hyper-prior."""
        active = np.where(self.n_labels[:, None] > 0, workers.p_type, 0.0)
        if self.size is not None:
            active *= self.size[:, None]
        shares = active.sum(axis=0) + self._pseudo_workers()
        p = {name: column for name, column in zip(self.types, active.T)}
        tally, full = workers.tally, priors.full
        update = newton if is_settled else fixed_point
        update_coin = partial(newton, max_steps=_STEPS_OF_SPARSE) if self.use_newton else update
        return CrowdPriors(
            shares / shares.sum(),
            update_coin(priors.coin, tally.coin, p["one-coin"]) if "one-coin" in p else priors.coin,
            update(priors.competence, workers.competence, p["spammer"]) if "spammer" in p else priors.competence,
            update(priors.spam, workers.spam, p["spammer"]) if "spammer" in p else priors.spam,
            update(full, tally.counts, p["confusion"]) if "confusion" in p else full,
        )

    def _expected_table(
        self, workers: WorkerPosteriors, priors: CrowdPriors, log: Log, each: Log = np.asarray
    ) -> Array:
        """The tables of all types, weighted by p(type); shape (n_workers, n_classes, n_classes)."""
        tables = (each(TABLE[name](workers, priors, log)) for name in self.types)
        return sum(p[:, None, None] * part for p, part in zip(workers.p_type.T, tables))

    def _log_hyperprior(self, priors: CrowdPriors) -> float:
        """Log density of the hyper-parameters, up to a constant."""
        fields = {"one-coin": [priors.coin], "spammer": [priors.competence, priors.spam], "confusion": [priors.full]}
        x = np.concatenate([field for name in self.types for field in fields[name]], axis=None)
        return float(
            (SHAPE * elementary.log(x) - RATE * x).sum() + (self._pseudo_workers() * safe_log(priors.shares)).sum()
        )


def _change(counts: Array, before: Array) -> float:
    """The sum of the absolute changes of the expected counts, as a share of their sum.

    Shapes: counts (n_workers, n_classes, n_classes); before (n_workers, n_classes, n_classes).
    """
    return float(np.abs(counts - before).sum() / max(float(counts.sum()), 1.0))
