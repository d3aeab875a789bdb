"""Types."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import betaln, digamma

from manyhands import elementary
from manyhands.noise import Array
from manyhands.noise.dirichlet import Log, dirichlet_evidence, log_shares, sum_last


@dataclass(frozen=True)
class Tally:
    """Expected counts of each worker, summed in the ways the types need."""

    counts: Array  # (n_workers, n_classes, n_classes)

    @cached_property
    def right(self) -> Array:  # (n_workers, n_classes): label = truth
        return np.einsum("wkk->wk", self.counts)

    @cached_property
    def given(self) -> Array:  # (n_workers, n_classes): label, whatever the truth
        return sum_last(self.counts.transpose(0, 2, 1))

    @cached_property
    def coin(self) -> Array:  # (n_workers, 2): right, wrong
        right = sum_last(self.right)
        return np.stack([right, np.maximum(sum_last(self.given) - right, 0.0)], axis=1)


@dataclass(frozen=True)
class CrowdPriors:
    """What is believed of the crowd: how common the types are, and the Beta and Dirichlet parameters of each."""

    shares: Array  # (n_types,)
    coin: Array  # (2,) right, wrong
    competence: Array  # (2,) knows, does not
    spam: Array  # (n_classes,)
    full: Array  # (n_classes, n_classes)


@dataclass(frozen=True)
class WorkerPosteriors:
    """What is believed of each worker, given the expected counts."""

    tally: Tally
    p_known: Array  # (n_workers, n_classes) of the right labels, the share that was known and not lucky
    p_type: Array  # (n_workers, n_types)
    evidence: Array  # (n_workers,) log p(counts), over the types

    @cached_property
    def competence(self) -> Array:  # (n_workers, 2): labels that were known, and that were not
        known = sum_last(self.tally.right * self.p_known)
        return np.stack([known, sum_last(self.spam)], axis=1)

    @cached_property
    def spam(self) -> Array:  # (n_workers, n_classes)
        return np.maximum(self.tally.given - self.tally.right * self.p_known, 0.0)


def _coin_evidence(workers: WorkerPosteriors, priors: CrowdPriors) -> Array:
    (a, b), n_classes = priors.coin, len(priors.spam)
    right, wrong = workers.tally.coin.T
    return betaln(a + right, b + wrong) - betaln(a, b) - wrong * elementary.log(n_classes - 1)


def _coin_table(workers: WorkerPosteriors, priors: CrowdPriors, log: Log) -> Array:
    n_classes = len(priors.spam)
    right, wrong = log_shares(priors.coin, workers.tally.coin, log).T
    table = np.repeat(wrong - elementary.log(n_classes - 1), n_classes**2).reshape(-1, n_classes, n_classes)
    diagonal = np.arange(n_classes)
    table[:, diagonal, diagonal] = right[:, None]
    return table


def spammer_logs(workers: WorkerPosteriors, priors: CrowdPriors, log: Log) -> tuple[Array, Array]:
    log_known, log_not = log_shares(priors.competence, workers.competence, log).T
    return log_known[:, None], log_not[:, None] + log_shares(priors.spam, workers.spam, log)


def _spammer_evidence(workers: WorkerPosteriors, priors: CrowdPriors) -> Array:
    log_known, log_spam = spammer_logs(workers, priors, digamma)
    right, known = workers.tally.right, workers.tally.right * workers.p_known
    slack = right * elementary.logaddexp(log_known, log_spam) - known * log_known - (right - known) * log_spam
    spam = dirichlet_evidence(priors.spam, workers.spam)
    return dirichlet_evidence(priors.competence, workers.competence) + spam + sum_last(slack)


def _spammer_table(workers: WorkerPosteriors, priors: CrowdPriors, log: Log) -> Array:
    log_known, log_spam = spammer_logs(workers, priors, log)
    n_classes = log_spam.shape[1]
    table = np.repeat(log_spam[:, None, :], n_classes, axis=1)
    diagonal = np.arange(n_classes)
    table[:, diagonal, diagonal] = elementary.logaddexp(log_known, log_spam)
    return table


def _full_evidence(workers: WorkerPosteriors, priors: CrowdPriors) -> Array:
    return sum_last(dirichlet_evidence(priors.full, workers.tally.counts))


def _full_table(workers: WorkerPosteriors, priors: CrowdPriors, log: Log) -> Array:
    return log_shares(priors.full, workers.tally.counts, log)


EVIDENCE = {"one-coin": _coin_evidence, "spammer": _spammer_evidence, "confusion": _full_evidence}
TABLE = {"one-coin": _coin_table, "spammer": _spammer_table, "confusion": _full_table}
