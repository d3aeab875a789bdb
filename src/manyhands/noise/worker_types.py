"""The worker types of the pooled model: their sufficient statistics, their evidence and their confusion matrices.

    one-coin    right with probability a ~ Beta, whatever the truth; errors are spread evenly over the other classes
    spammer     knows the truth with probability t ~ Beta, otherwise draws a label from x ~ Dirichlet (MACE)
    confusion   row k of the confusion matrix ~ Dirichlet_k

All three are conjugate, so the evidence of a worker's expected counts has a closed form; for the spammer type it is a
lower bound.

References
----------
D. Hovy et al. (2013), Learning whom to trust with MACE.
"""

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
    """Expected counts of each worker, summed in the ways the types need.

    Parameters
    ----------
    counts : ndarray of shape (n_workers, n_classes, n_classes)
        Expected counts, indexed [worker, truth, label].
    """

    counts: Array

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
    """Hyper-parameters of the crowd: how frequent the types are, and the Beta and Dirichlet parameters of each.

    Attributes
    ----------
    shares : ndarray of shape (n_types,)
        Frequency of each type.
    coin : ndarray of shape (2,)
        Beta of the accuracy of the one-coin type: right, wrong.
    competence : ndarray of shape (2,)
        Beta of the competence of the spammer type: known, not known.
    spam : ndarray of shape (n_classes,)
        Dirichlet of the spam distribution of the spammer type.
    full : ndarray of shape (n_classes, n_classes)
        Dirichlets of the rows of the confusion type.
    """

    shares: Array
    coin: Array
    competence: Array
    spam: Array
    full: Array


@dataclass(frozen=True)
class WorkerPosteriors:
    """Posterior of each worker's type given the expected counts.

    Attributes
    ----------
    tally : Tally
        The counts.
    p_known : ndarray of shape (n_workers, n_classes)
        Share of the right labels that were known and not right by chance, for the spammer type.
    p_type : ndarray of shape (n_workers, n_types)
        p(type) of each worker.
    evidence : ndarray of shape (n_workers,)
        log p(counts), summed over the types.
    """

    tally: Tally
    p_known: Array
    p_type: Array
    evidence: Array

    @cached_property
    def competence(self) -> Array:
        """Expected number of labels that were known, and that were spam, shape (n_workers, 2)."""
        known = sum_last(self.tally.right * self.p_known)
        return np.stack([known, sum_last(self.spam)], axis=1)

    @cached_property
    def spam(self) -> Array:
        """Expected number of spam labels of each class, shape (n_workers, n_classes)."""
        return np.maximum(self.tally.given - self.tally.right * self.p_known, 0.0)


def _coin_evidence(workers: WorkerPosteriors, priors: CrowdPriors) -> Array:
    """Log evidence log p(counts) of the one-coin type, shape (n_workers,)."""
    (a, b), n_classes = priors.coin, len(priors.spam)
    right, wrong = workers.tally.coin.T
    return betaln(a + right, b + wrong) - betaln(a, b) - wrong * elementary.log(n_classes - 1)


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

    Parameters
    ----------
    workers : WorkerPosteriors
        The workers.
    priors : CrowdPriors
        Hyper-parameters.
    log : callable
        digamma for expected logarithms, a logarithm for logarithms of expectations.

    Returns
    -------
    log_known : ndarray of shape (n_workers, 1)
        log p(the truth is known).
    log_spam : ndarray of shape (n_workers, n_classes)
        log p(the truth is not known and the label is l).
    """
    log_known, log_not = log_shares(priors.competence, workers.competence, log).T
    return log_known[:, None], log_not[:, None] + log_shares(priors.spam, workers.spam, log)


def _spammer_evidence(workers: WorkerPosteriors, priors: CrowdPriors) -> Array:
    """Lower bound of log p(counts) of the spammer type, shape (n_workers,), for any `p_known`."""
    log_known, log_spam = spammer_logs(workers, priors, digamma)
    right, known = workers.tally.right, workers.tally.right * workers.p_known
    slack = right * elementary.logaddexp(log_known, log_spam) - known * log_known - (right - known) * log_spam
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
