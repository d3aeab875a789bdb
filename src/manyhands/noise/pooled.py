"""Worker types: confusion matrices that share what the crowd has in common.

Each worker is of one unknown type, and each type says how the matrices of its workers are spread:

    coin   right with probability a ~ Beta, whatever the truth; errors fall on the other classes alike
    habit  knows the truth with probability t ~ Beta, otherwise answers from a habit x ~ Dirichlet (MACE)
    full   row k of the confusion matrix ~ Dirichlet_k

The first two are anchored: a label never speaks for a class other than its own. Only `full` can turn labels into
evidence for other classes, and with it classes may drift away from what their names mean where workers share their
errors; so a worker is of that type only where it explains the labels better by `FULL_MATRIX_COST` nats for each of them.

Type shares and the Beta and Dirichlet parameters are fitted to the data inside `solve`: a worker with few labels looks
like the crowd, one with many like himself. This is variational EM. `log_table` holds expected logarithms, `log_penalty`
is minus the divergence of the fitted beliefs about workers from their prior, and their sum with the evidence is a lower
bound of the log-likelihood that no step can lower: p(type) is solved exactly, the rest by minorisation.

References: D. Hovy et al. (2013), Learning whom to trust with MACE. T. Minka (2000), Estimating a Dirichlet
distribution.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import digamma

from manyhands import elementary
from manyhands.noise import Array, safe_log
from manyhands.noise.beta import solve_beta
from manyhands.noise.dirichlet import RATE, SHAPE, Log, fixed_point, sum_last
from manyhands.noise.worker_types import EVIDENCE, TABLE, CrowdPriors, Tally, WorkerPosteriors, spammer_logs

FULL_MATRIX_COST = 0.05  # nats per label that a worker's own full matrix must be worth
MAX_CLASSES_FULL = (
    10  # for full matrices; with more they cost far more than a pass over the labels, and few can be filled
)

_MIN_PARAMETER = 1e-9  # an extrapolation may take a parameter to 0, where its logarithm would end


@dataclass(frozen=True)
class PooledParams:
    """Beliefs about the crowd and about each worker, and the table they give."""

    priors: CrowdPriors
    workers: WorkerPosteriors
    log_table: Array  # (n_workers, n_classes, n_classes) expected log p(label | truth), over the types too


@dataclass(frozen=True)
class PooledNoise:
    """Confusion matrices with a prior that is a mixture of worker types, fitted from the data.

    `prior_strength` adds that share of the workers to the coin type: what a crowd must overcome before its workers are
    believed to differ in more than accuracy. It keeps crowds of few labels per worker close to the vote.
    """

    n_classes: int
    n_labels: Array  # (n_workers,) of one worker
    prior_strength: float = 0.03
    size: Array | None = None  # (n_workers,) how many workers, alike in everything, stand behind each; None for one
    use_newton: bool = False  # solve the coin's Beta by Newton's method; for crowds in which Minka's step would creep

    @property
    def types(self) -> tuple[str, ...]:
        if self.n_classes == 1:
            return ("confusion",)
        return ("one-coin", "spammer", "confusion") if self.n_classes <= MAX_CLASSES_FULL else ("one-coin", "spammer")

    def solve(self, counts: Array, previous: PooledParams | None) -> PooledParams:
        tally = Tally(counts if self.size is None else counts / self.size[:, None, None])
        priors = self.start() if previous is None else previous.priors
        p_known = np.full_like(tally.right, 0.7) if previous is None else previous.workers.p_known
        workers = self._worker_posteriors(tally, p_known, priors)
        priors = self._update_priors(workers, priors)
        workers = self._worker_posteriors(tally, workers.p_known, priors)
        return PooledParams(priors, workers, self._expected_table(workers, priors, digamma))

    def log_table(self, params: PooledParams) -> Array:
        return params.log_table

    def log_penalty(self, params: PooledParams) -> float:
        workers = params.workers
        if self.size is None:
            explained, evidence = (workers.tally.counts * params.log_table).sum(), workers.evidence.sum()
        else:
            each = (workers.tally.counts * params.log_table).sum(axis=(1, 2))
            explained, evidence = (self.size * each).sum(), (self.size * workers.evidence).sum()
        return float(evidence - explained) + self._log_hyperprior(params.priors)

    def hyperparameters(self, params: PooledParams | None) -> Array:
        """The beliefs about the crowd as one vector of positive numbers, for the driver to extrapolate."""
        b = self.start() if params is None else params.priors
        return np.concatenate([b.shares, b.coin, b.competence, b.spam, b.full], axis=None)

    def with_hyperparameters(self, hyperparameters: Array, previous: PooledParams | None) -> PooledParams | None:
        """The previous parameters with these beliefs about the crowd."""
        if previous is None:
            return None
        n = self.n_classes
        shapes = [(len(self.types),), (2,), (2,), (n,), (n, n)]
        parts = np.split(
            np.maximum(hyperparameters, _MIN_PARAMETER), np.cumsum([np.prod(shape) for shape in shapes[:-1]])
        )
        shares, *others = (part.reshape(shape) for part, shape in zip(parts, shapes))
        return PooledParams(CrowdPriors(shares / shares.sum(), *others), previous.workers, previous.log_table)

    def confusion(self, params: PooledParams) -> Array:
        """(n_workers, n_classes, n_classes): the expected confusion matrices."""
        return self._expected_table(params.workers, params.priors, safe_log, elementary.exp)

    def unseen_worker(self, params: PooledParams) -> Array:
        """(n_classes, n_classes): the expected confusion matrix of a worker of whom nothing is known."""
        nothing = Tally(np.zeros((1, self.n_classes, self.n_classes)))
        workers = WorkerPosteriors(nothing, np.zeros((1, self.n_classes)), params.priors.shares[None], np.zeros(1))
        return self._expected_table(workers, params.priors, safe_log, elementary.exp)[0]

    def start(self) -> CrowdPriors:
        """Before any label is seen: right two times out of three."""
        n, pseudo = self.n_classes, self._pseudo_workers()
        usual = np.array([2.0, 1.0])
        return CrowdPriors(pseudo / pseudo.sum(), usual, usual, np.ones(n), 2.0 * np.eye(n) + 1.0 / n)

    def _pseudo_workers(self) -> Array:
        """(n_types,) workers that every type is given beforehand."""
        active = float((self.n_labels > 0).sum() if self.size is None else self.size[self.n_labels > 0].sum())
        return np.array([1.0 + (self.prior_strength * active if name == "one-coin" else 0.0) for name in self.types])

    def _worker_posteriors(self, tally: Tally, p_known: Array, priors: CrowdPriors) -> WorkerPosteriors:
        """p(type) and evidence of each worker; first, which right labels were known, in two rounds."""
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

    def _update_priors(self, workers: WorkerPosteriors, priors: CrowdPriors) -> CrowdPriors:
        """One round of updates, none of which lowers the summed evidence and the hyper-prior."""
        active = np.where(self.n_labels[:, None] > 0, workers.p_type, 0.0)
        if self.size is not None:
            active *= self.size[:, None]
        shares = active.sum(axis=0) + self._pseudo_workers()
        p = {name: column for name, column in zip(self.types, active.T)}
        tally, full = workers.tally, priors.full
        return CrowdPriors(
            shares / shares.sum(),
            self._update_coin(priors.coin, tally.coin, p["one-coin"]) if "one-coin" in p else priors.coin,
            fixed_point(priors.competence, workers.competence, p["spammer"]) if "spammer" in p else priors.competence,
            fixed_point(priors.spam, workers.spam, p["spammer"]) if "spammer" in p else priors.spam,
            fixed_point(full, tally.counts, p["confusion"]) if "confusion" in p else full,
        )

    def _update_coin(self, alpha: Array, counts: Array, p: Array) -> Array:
        return solve_beta(alpha, counts, p, SHAPE, RATE) if self.use_newton else fixed_point(alpha, counts, p)

    def _expected_table(
        self, workers: WorkerPosteriors, priors: CrowdPriors, log: Log, each: Log = np.asarray
    ) -> Array:
        """(n_workers, n_classes, n_classes) the tables of all types, weighed by p(type)."""
        tables = (each(TABLE[name](workers, priors, log)) for name in self.types)
        return sum(p[:, None, None] * part for p, part in zip(workers.p_type.T, tables))

    def _log_hyperprior(self, priors: CrowdPriors) -> float:
        fields = {"one-coin": [priors.coin], "spammer": [priors.competence, priors.spam], "confusion": [priors.full]}
        x = np.concatenate([field for name in self.types for field in fields[name]], axis=None)
        return float(
            (SHAPE * elementary.log(x) - RATE * x).sum() + (self._pseudo_workers() * safe_log(priors.shares)).sum()
        )
