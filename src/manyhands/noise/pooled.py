"""Worker types: confusion matrices that share what the crowd has in common.

Each worker is of one unknown type, and each type says how the matrices of its workers are spread:

    coin   right with probability a ~ Beta, whatever the truth; errors fall on the other classes alike
    habit  knows the truth with probability t ~ Beta, otherwise answers from a habit x ~ Dirichlet (MACE)
    full   row k of the confusion matrix ~ Dirichlet_k

The first two are anchored: a label never speaks for a class other than its own. Only `full` can turn labels into
evidence for other classes, and with it classes may drift away from what their names mean where workers share their
errors; so a worker is of that type only where it explains the labels better by `TOLL` nats for each of them.

Type shares and the Beta and Dirichlet parameters are fitted to the data inside `solve`: a worker with few labels looks
like the crowd, one with many like himself. This is variational EM. `log_table` holds expected logarithms, `log_penalty`
is minus the divergence of the fitted beliefs about workers from their prior, and their sum with the evidence is a lower
bound of the log-likelihood that no step can lower: p(type) is solved exactly, the rest by minorisation.

References: D. Hovy et al. (2013), Learning whom to trust with MACE. T. Minka (2000), Estimating a Dirichlet
distribution.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import betaln, digamma, gammaln

from manyhands import elementary
from manyhands.em.kernels import spread
from manyhands.noise import Array, safe_log
from manyhands.noise.beta import solve_beta

Special = Callable[..., Array]  # of single numbers, with `out`: digamma, gammaln
Log = Callable[[Array], Array]  # digamma gives expected logarithms, log gives logarithms of expectations

TOLL = 0.05  # nats per label that a worker's own full matrix must be worth
MOST_CLASSES = 10  # for full matrices; with more they cost far more than a pass over the labels, and few can be filled

# Every Beta and Dirichlet parameter x has the prior x^SHAPE exp(-RATE x), which keeps it off 0 and infinity.
SHAPE, RATE = 0.5, 0.05
_LEAST_SPARSE = 1 << 12  # numbers; fewer are done before the zeros among them are found
_SPARSE = 0.6  # share of counts that are not 0
_SHORT = 7  # numbers that NumPy adds one after another; more it adds in an order of its own
_LEAST = 1e-9  # an extrapolation may take a parameter to 0, where its logarithm would end


@dataclass(frozen=True)
class Tally:
    """Expected counts of each worker, summed in the ways the types need."""

    counts: Array  # (n_workers, n_classes, n_classes)

    @cached_property
    def right(self) -> Array:  # (n_workers, n_classes): label = truth
        return np.einsum("wkk->wk", self.counts)

    @cached_property
    def said(self) -> Array:  # (n_workers, n_classes): label, whatever the truth
        return sum_last(self.counts.transpose(0, 2, 1))

    @cached_property
    def coin(self) -> Array:  # (n_workers, 2): right, wrong
        right = sum_last(self.right)
        return np.stack([right, np.maximum(sum_last(self.said) - right, 0.0)], axis=1)


@dataclass(frozen=True)
class Beliefs:
    """What is believed of the crowd: how common the types are, and the Beta and Dirichlet parameters of each."""

    shares: Array  # (n_types,)
    coin: Array  # (2,) right, wrong
    trust: Array  # (2,) knows, does not
    habit: Array  # (n_classes,)
    full: Array  # (n_classes, n_classes)


@dataclass(frozen=True)
class Workers:
    """What is believed of each worker, given the expected counts."""

    tally: Tally
    knew: Array  # (n_workers, n_classes) of the right labels, the share that was known and not lucky
    p_type: Array  # (n_workers, n_types)
    evidence: Array  # (n_workers,) log p(counts), over the types

    @cached_property
    def trust(self) -> Array:  # (n_workers, 2): labels that were known, and that were not
        known = sum_last(self.tally.right * self.knew)
        return np.stack([known, sum_last(self.guesses)], axis=1)

    @cached_property
    def guesses(self) -> Array:  # (n_workers, n_classes)
        return np.maximum(self.tally.said - self.tally.right * self.knew, 0.0)


@dataclass(frozen=True)
class PooledParams:
    """Beliefs about the crowd and about each worker, and the table they give."""

    beliefs: Beliefs
    workers: Workers
    log_table: Array  # (n_workers, n_classes, n_classes) expected log p(label | truth), over the types too


@dataclass(frozen=True)
class PooledNoise:
    """Confusion matrices with a prior that is a mixture of worker types, fitted from the data.

    `pull` adds that share of the workers to the coin type: what a crowd must overcome before its workers are
    believed to differ in more than accuracy. It keeps crowds of few labels per worker close to the vote.
    """

    n_classes: int
    n_labels: Array  # (n_workers,) of one worker
    pull: float = 0.03
    size: Array | None = None  # (n_workers,) how many workers, alike in everything, stand behind each; None for one
    leap: bool = False  # solve the coin's Beta by Newton's method; for crowds in which Minka's step would creep

    @property
    def types(self) -> tuple[str, ...]:
        if self.n_classes == 1:
            return ("full",)
        return ("coin", "habit", "full") if self.n_classes <= MOST_CLASSES else ("coin", "habit")

    def solve(self, counts: Array, previous: PooledParams | None) -> PooledParams:
        tally = Tally(counts if self.size is None else counts / self.size[:, None, None])
        beliefs = self.start() if previous is None else previous.beliefs
        knew = np.full_like(tally.right, 0.7) if previous is None else previous.workers.knew
        workers = self._judge(tally, knew, beliefs)
        beliefs = self._learn(workers, beliefs)
        workers = self._judge(tally, workers.knew, beliefs)
        return PooledParams(beliefs, workers, self._mix(workers, beliefs, digamma))

    def log_table(self, params: PooledParams) -> Array:
        return params.log_table

    def log_penalty(self, params: PooledParams) -> float:
        workers = params.workers
        if self.size is None:
            explained, evidence = (workers.tally.counts * params.log_table).sum(), workers.evidence.sum()
        else:
            each = (workers.tally.counts * params.log_table).sum(axis=(1, 2))
            explained, evidence = (self.size * each).sum(), (self.size * workers.evidence).sum()
        return float(evidence - explained) + self._log_hyperprior(params.beliefs)

    def memory(self, params: PooledParams | None) -> Array:
        """The beliefs about the crowd as one vector of positive numbers, for the driver to extrapolate."""
        b = self.start() if params is None else params.beliefs
        return np.concatenate([b.shares, b.coin, b.trust, b.habit, b.full], axis=None)

    def remember(self, memory: Array, previous: PooledParams | None) -> PooledParams | None:
        """The previous parameters with these beliefs about the crowd."""
        if previous is None:
            return None
        n = self.n_classes
        shapes = [(len(self.types),), (2,), (2,), (n,), (n, n)]
        parts = np.split(np.maximum(memory, _LEAST), np.cumsum([np.prod(shape) for shape in shapes[:-1]]))
        shares, *others = (part.reshape(shape) for part, shape in zip(parts, shapes))
        return PooledParams(Beliefs(shares / shares.sum(), *others), previous.workers, previous.log_table)

    def confusion(self, params: PooledParams) -> Array:
        """(n_workers, n_classes, n_classes): the expected confusion matrices."""
        return self._mix(params.workers, params.beliefs, safe_log, elementary.exp)

    def newcomer(self, params: PooledParams) -> Array:
        """(n_classes, n_classes): the expected confusion matrix of a worker of whom nothing is known."""
        nothing = Tally(np.zeros((1, self.n_classes, self.n_classes)))
        workers = Workers(nothing, np.zeros((1, self.n_classes)), params.beliefs.shares[None], np.zeros(1))
        return self._mix(workers, params.beliefs, safe_log, elementary.exp)[0]

    def start(self) -> Beliefs:
        """Before any label is seen: right two times out of three."""
        n, pseudo = self.n_classes, self._pseudo_workers()
        usual = np.array([2.0, 1.0])
        return Beliefs(pseudo / pseudo.sum(), usual, usual, np.ones(n), 2.0 * np.eye(n) + 1.0 / n)

    def _pseudo_workers(self) -> Array:
        """(n_types,) workers that every type is given beforehand."""
        active = float((self.n_labels > 0).sum() if self.size is None else self.size[self.n_labels > 0].sum())
        return np.array([1.0 + (self.pull * active if name == "coin" else 0.0) for name in self.types])

    def _judge(self, tally: Tally, knew: Array, beliefs: Beliefs) -> Workers:
        """p(type) and evidence of each worker; first, which right labels were known, in two rounds."""
        for _ in range(2):
            known, guessed = _habit_logs(Workers(tally, knew, knew, knew), beliefs, digamma)
            knew = 1.0 / (1.0 + elementary.exp(np.clip(guessed - known, -500.0, 500.0)))
        unweighed = Workers(tally, knew, knew, knew)
        evidence = [_EVIDENCE[name](unweighed, beliefs) for name in self.types]
        toll = [TOLL * self.n_labels if name == "full" else 0.0 * self.n_labels for name in self.types]
        score = np.stack(evidence, axis=1) - np.stack(toll, axis=1) + safe_log(beliefs.shares)
        top = score.max(axis=1, keepdims=True)
        weight = elementary.exp(score - top)
        total = sum_last(weight)[:, None]
        return Workers(tally, knew, weight / total, (top + elementary.log(total))[:, 0])

    def _learn(self, workers: Workers, beliefs: Beliefs) -> Beliefs:
        """One round of updates, none of which lowers the summed evidence and the hyper-prior."""
        active = np.where(self.n_labels[:, None] > 0, workers.p_type, 0.0)
        if self.size is not None:
            active *= self.size[:, None]
        shares = active.sum(axis=0) + self._pseudo_workers()
        p = {name: column for name, column in zip(self.types, active.T)}
        tally, full = workers.tally, beliefs.full
        return Beliefs(
            shares / shares.sum(),
            self._learn_coin(beliefs.coin, tally.coin, p["coin"]) if "coin" in p else beliefs.coin,
            _fixed_point(beliefs.trust, workers.trust, p["habit"]) if "habit" in p else beliefs.trust,
            _fixed_point(beliefs.habit, workers.guesses, p["habit"]) if "habit" in p else beliefs.habit,
            _fixed_point(full, tally.counts, p["full"]) if "full" in p else full,
        )

    def _learn_coin(self, alpha: Array, counts: Array, p: Array) -> Array:
        return solve_beta(alpha, counts, p, SHAPE, RATE) if self.leap else _fixed_point(alpha, counts, p)

    def _mix(self, workers: Workers, beliefs: Beliefs, log: Log, each: Log = np.asarray) -> Array:
        """(n_workers, n_classes, n_classes) the tables of all types, weighed by p(type)."""
        tables = (each(_TABLE[name](workers, beliefs, log)) for name in self.types)
        return sum(p[:, None, None] * part for p, part in zip(workers.p_type.T, tables))

    def _log_hyperprior(self, beliefs: Beliefs) -> float:
        fields = {"coin": [beliefs.coin], "habit": [beliefs.trust, beliefs.habit], "full": [beliefs.full]}
        x = np.concatenate([field for name in self.types for field in fields[name]], axis=None)
        return float(
            (SHAPE * elementary.log(x) - RATE * x).sum() + (self._pseudo_workers() * safe_log(beliefs.shares)).sum()
        )


def _coin_evidence(workers: Workers, beliefs: Beliefs) -> Array:
    (a, b), n_classes = beliefs.coin, len(beliefs.habit)
    right, wrong = workers.tally.coin.T
    return betaln(a + right, b + wrong) - betaln(a, b) - wrong * elementary.log(n_classes - 1)


def _coin_table(workers: Workers, beliefs: Beliefs, log: Log) -> Array:
    n_classes = len(beliefs.habit)
    right, wrong = _log_shares(beliefs.coin, workers.tally.coin, log).T
    table = np.repeat(wrong - elementary.log(n_classes - 1), n_classes**2).reshape(-1, n_classes, n_classes)
    diagonal = np.arange(n_classes)
    table[:, diagonal, diagonal] = right[:, None]
    return table


def _habit_logs(workers: Workers, beliefs: Beliefs, log: Log) -> tuple[Array, Array]:
    """Log p(knew), (n_workers, 1), and log p(did not know and said l), (n_workers, n_classes)."""
    knew, did_not = _log_shares(beliefs.trust, workers.trust, log).T
    return knew[:, None], did_not[:, None] + _log_shares(beliefs.habit, workers.guesses, log)


def _habit_evidence(workers: Workers, beliefs: Beliefs) -> Array:
    """A lower bound: which right labels were known is itself a belief, `knew`, and need not be the best one."""
    known, guessed = _habit_logs(workers, beliefs, digamma)
    right, sure = workers.tally.right, workers.tally.right * workers.knew
    slack = right * elementary.logaddexp(known, guessed) - sure * known - (right - sure) * guessed
    habits = _dirichlet_evidence(beliefs.habit, workers.guesses)
    return _dirichlet_evidence(beliefs.trust, workers.trust) + habits + sum_last(slack)


def _habit_table(workers: Workers, beliefs: Beliefs, log: Log) -> Array:
    known, guessed = _habit_logs(workers, beliefs, log)
    n_classes = guessed.shape[1]
    table = np.repeat(guessed[:, None, :], n_classes, axis=1)
    diagonal = np.arange(n_classes)
    table[:, diagonal, diagonal] = elementary.logaddexp(known, guessed)
    return table


def _full_evidence(workers: Workers, beliefs: Beliefs) -> Array:
    return sum_last(_dirichlet_evidence(beliefs.full, workers.tally.counts))


def _full_table(workers: Workers, beliefs: Beliefs, log: Log) -> Array:
    return _log_shares(beliefs.full, workers.tally.counts, log)


_EVIDENCE = {"coin": _coin_evidence, "habit": _habit_evidence, "full": _full_evidence}
_TABLE = {"coin": _coin_table, "habit": _habit_table, "full": _full_table}


def _log_shares(alpha: Array, counts: Array, log: Log) -> Array:
    """Logarithms, expected or of expectations, of the shares under Dirichlets over the last axis."""
    shifted = alpha + counts
    cells = _at_counts(digamma, alpha, counts, shifted) if log is digamma else log(shifted)
    return cells - log(sum_last(shifted))[..., None]


def _dirichlet_evidence(alpha: Array, counts: Array) -> Array:
    """Log p(counts) under Dirichlets over the last axis."""
    strength, total = alpha.sum(axis=-1), sum_last(counts)
    cells = sum_last(_at_counts(gammaln, alpha, counts, alpha + counts) - gammaln(alpha))
    return cells - gammaln(strength + total) + gammaln(strength)


def _fixed_point(alpha: Array, counts: Array, p: Array) -> Array:
    """Minka's step for Dirichlets over the last axis, worker w counting p[w]; `counts` is (n_workers, *alpha.shape)."""
    strength, total = alpha.sum(axis=-1), sum_last(counts)
    gained = np.einsum("w,w...->...", p, _at_counts(digamma, alpha, counts, alpha + counts) - digamma(alpha))
    spent = np.einsum("w,w...->...", p, digamma(strength + total) - digamma(strength))
    return (alpha * gained + SHAPE) / (spent + RATE)[..., None]


def _at_counts(function: Special, alpha: Array, counts: Array, shifted: Array) -> Array:
    """`function(alpha + counts)`; worked out once for all labels that a worker never gave, where most are such."""
    if shifted.ndim < 3 or shifted.size < _LEAST_SPARSE:
        return spread(function, shifted)
    by_label, shifted_by_label = counts.transpose(0, 2, 1), shifted.transpose(0, 2, 1)  # the layout of a pass
    given = np.flatnonzero(by_label.any(axis=2))  # (worker, label)
    if len(given) > _SPARSE * counts.shape[0] * counts.shape[2]:
        return spread(function, shifted)
    result = np.tile(function(alpha).T, (len(counts), 1))  # (worker and label, truth)
    result[given] = spread(function, shifted_by_label.reshape(result.shape)[given])
    return result.reshape(by_label.shape).transpose(0, 2, 1)


def sum_last(x: Array) -> Array:
    """`x.sum(axis=-1)` to the last bit, and many times as fast where the last axis is short."""
    if not 0 < x.shape[-1] <= _SHORT:
        return np.asarray(x.sum(axis=-1))
    total = x[..., 0].copy()
    for k in range(1, x.shape[-1]):
        total += x[..., k]
    return total
