"""Pooled noise model: confusion matrices with a hierarchical prior, a mixture of worker types (empirical Bayes).

Each worker is of one unknown type, and each type has a prior of the confusion matrices of its workers: one-coin,
spammer and confusion, see `worker_types`.

With the first two types a label is never evidence for a class other than its own. Only the confusion type can turn
labels into evidence for other classes, and with it classes may drift away from their names where workers share their
errors; so a worker is of that type only where it explains their labels better by `FULL_MATRIX_COST` nats per label.

Type shares and the Beta and Dirichlet parameters are fitted to the data inside `solve`: the matrix of a worker with few
labels is close to that of the crowd, with many labels it is their own. This is variational EM. `log_confusion` holds
expected logarithms, `log_penalty` is minus the divergence of the posteriors of the workers from their prior, and their
sum with the evidence is a lower bound of the log-likelihood that no step can lower: p(type) is solved exactly, the rest
by minorisation.
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

FULL_MATRIX_COST = 0.05  # nats per label that a full confusion matrix of a worker must gain
MAX_CLASSES_FULL = 10  # classes; with more, full matrices cost more than a pass and few cells can be estimated

_MIN_PARAMETER = 1e-9  # lower bound: an extrapolation may take a parameter to 0


@dataclass(frozen=True)
class PooledParams:
    """Parameters that EM estimates.

    Attributes
    ----------
    priors : CrowdPriors
        Hyper-parameters of the crowd.
    workers : WorkerPosteriors
        Posteriors of the workers.
    log_confusion : ndarray of shape (n_workers, n_classes, n_classes)
        Expected log p(label | truth), over the types too.
    """

    priors: CrowdPriors
    workers: WorkerPosteriors
    log_confusion: Array


@dataclass(frozen=True)
class PooledNoise:
    """Confusion matrices with a prior that is a mixture of worker types, fitted from the data.

    Parameters
    ----------
    n_classes : int
        Number of classes.
    n_labels : ndarray of shape (n_workers,)
        Number of labels of each worker.
    prior_strength : float, default=0.03
        Pseudo-count of the one-coin type, as a share of the active workers. It keeps crowds with few labels per worker
        close to the vote.
    size : ndarray of shape (n_workers,), default=None
        How many exchangeable workers each one stands for; None is one each.
    use_newton : bool, default=False
        Update the Beta of the one-coin type by Newton's method, for crowds in which Minka's fixed point converges
        slowly.
    """

    n_classes: int
    n_labels: Array
    prior_strength: float = 0.03
    size: Array | None = None
    use_newton: bool = False

    @property
    def types(self) -> tuple[str, ...]:
        """Names of the types in use; the confusion type only up to `MAX_CLASSES_FULL` classes."""
        if self.n_classes == 1:
            return ("confusion",)
        return ("one-coin", "spammer", "confusion") if self.n_classes <= MAX_CLASSES_FULL else ("one-coin", "spammer")

    def solve(self, counts: Array, previous: PooledParams | None) -> PooledParams:
        """The M step: posteriors of the workers, hyper-parameters, posteriors again.

        Parameters
        ----------
        counts : ndarray of shape (n_workers, n_classes, n_classes)
            Expected counts.
        previous : PooledParams or None
            Parameters of the last iteration.

        Returns
        -------
        PooledParams
        """
        tally = Tally(counts if self.size is None else counts / self.size[:, None, None])
        priors = self.start() if previous is None else previous.priors
        p_known = np.full_like(tally.right, 0.7) if previous is None else previous.workers.p_known
        workers = self._worker_posteriors(tally, p_known, priors)
        priors = self._update_priors(workers, priors)
        workers = self._worker_posteriors(tally, workers.p_known, priors)
        return PooledParams(priors, workers, self._expected_table(workers, priors, digamma))

    def log_confusion(self, params: PooledParams) -> Array:
        """Expected log confusion matrices under the posterior of each worker."""
        return params.log_confusion

    def log_penalty(self, params: PooledParams) -> float:
        """Minus the divergence of the posteriors of the workers from their prior, plus the log hyper-prior.

        Parameters
        ----------
        params : PooledParams
            The parameters.

        Returns
        -------
        float
        """
        workers = params.workers
        if self.size is None:
            explained, evidence = (workers.tally.counts * params.log_confusion).sum(), workers.evidence.sum()
        else:
            each = (workers.tally.counts * params.log_confusion).sum(axis=(1, 2))
            explained, evidence = (self.size * each).sum(), (self.size * workers.evidence).sum()
        return float(evidence - explained) + self._log_hyperprior(params.priors)

    def hyperparameters(self, params: PooledParams | None) -> Array:
        """The hyper-parameters of the crowd as one vector of positive numbers, for the driver to extrapolate.

        Parameters
        ----------
        params : PooledParams or None
            Parameters; None for the initial ones.

        Returns
        -------
        ndarray
        """
        b = self.start() if params is None else params.priors
        return np.concatenate([b.shares, b.coin, b.competence, b.spam, b.full], axis=None)

    def with_hyperparameters(self, hyperparameters: Array, previous: PooledParams | None) -> PooledParams | None:
        """The previous parameters with these hyper-parameters.

        Parameters
        ----------
        hyperparameters : ndarray
            As returned by the method of that name, possibly extrapolated.
        previous : PooledParams or None
            Parameters of the last iteration.

        Returns
        -------
        PooledParams or None
            None without previous parameters.
        """
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

        Parameters
        ----------
        params : PooledParams
            The estimated parameters.

        Returns
        -------
        ndarray of shape (n_workers, n_classes, n_classes)
        """
        return self._expected_table(params.workers, params.priors, safe_log, elementary.exp)

    def unseen_worker(self, params: PooledParams) -> Array:
        """The expected confusion matrix of a worker without labels, under the fitted prior.

        Parameters
        ----------
        params : PooledParams
            The estimated parameters.

        Returns
        -------
        ndarray of shape (n_classes, n_classes)
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

    def _update_priors(self, workers: WorkerPosteriors, priors: CrowdPriors) -> CrowdPriors:
        """One update of the hyper-parameters that never lowers the summed evidence plus the log hyper-prior."""
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
        """Improved Beta of the one-coin type."""
        return solve_beta(alpha, counts, p, SHAPE, RATE) if self.use_newton else fixed_point(alpha, counts, p)

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
