"""Worker types: confusion matrices that share what the crowd has in common.

Each worker is of one unknown type, and each type says how the matrices of its workers are spread:

    coin     right with probability a ~ Beta, the same for every truth; errs like the crowd
    classes  right with probability a_k ~ Beta_k for truth k; errs like the crowd
    full     row k of the confusion matrix ~ Dirichlet_k
    spam     one habit ~ Dirichlet, whatever the truth: who guesses, and who always says the same

All four are conjugate, so the evidence of a worker's counts under a type and the expected log table are closed
forms. Type shares, the crowd's profile of errors, and the Beta and Dirichlet parameters are fitted to the data
inside `solve`: a worker with few labels looks like the crowd, one with many like himself.

This is variational EM. `log_table` holds expected logarithms, `log_penalty` is minus the divergence of the fitted
beliefs about the workers from their prior, and the sum with the evidence is a lower bound of the log-likelihood
that no step can lower: types are solved exactly, and the others by minorisation (Minka's fixed point).

Reference: T. Minka (2000), Estimating a Dirichlet distribution.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import betaln, digamma, gammaln

from manyhands.noise import Array, safe_log

Log = Callable[[Array], Array]  # digamma gives expected logarithms, log gives logarithms of expectations

TYPES = ("coin", "classes", "full", "spam")

# Every Beta and Dirichlet parameter x has the prior x^SHAPE exp(-RATE x), which keeps it off 0 and infinity.
SHAPE, RATE = 0.5, 0.05
PROFILE_SMOOTHING = 0.5
_LEAST = 1e-9  # an extrapolation may take a parameter to 0, where its logarithm would end


@dataclass(frozen=True)
class Tally:
    """A worker's counts, summed in the ways the types need; one entry or row per worker."""

    counts: Array  # (n_workers, n_classes, n_classes)

    @cached_property
    def right(self) -> Array:  # (n_workers, n_classes)
        return np.einsum("wkk->wk", self.counts)

    @cached_property
    def total(self) -> Array:  # (n_workers, n_classes)
        return self.counts.sum(axis=2)

    @cached_property
    def wrong(self) -> Array:  # (n_workers, n_classes)
        return np.maximum(self.total - self.right, 0.0)

    @cached_property
    def said(self) -> Array:  # (n_workers, n_classes): how often each label, whatever the truth
        return self.counts.sum(axis=1)


@dataclass(frozen=True)
class Beliefs:
    """What is believed of the crowd: the parameters of all types."""

    log_share: Array  # (n_types,)
    log_profile: Array  # (n_classes, n_classes) log p(label | truth, wrong); 0 on the diagonal
    coin: Array  # (2,) Beta: right, wrong
    classes: Array  # (2, n_classes) Beta for each truth
    full: Array  # (n_classes, n_classes) a Dirichlet for each truth
    spam: Array  # (n_classes,) Dirichlet


@dataclass(frozen=True)
class PooledParams:
    """Beliefs about the crowd, and for each worker the counts, p(type) and evidence they were solved from."""

    beliefs: Beliefs
    tally: Tally
    p_type: Array  # (n_workers, n_types)
    evidence: Array  # (n_workers,)
    log_table: Array  # (n_workers, n_classes, n_classes) expected log p(label | truth), over the types too


@dataclass(frozen=True)
class PooledNoise:
    """Confusion matrices with a prior that is a mixture of worker types, fitted from the data.

    `pull` adds that share of the workers to the coin type: what a crowd must overcome before its workers are
    believed to differ in more than accuracy. It is what keeps crowds of few labels per worker close to the vote.
    """

    n_classes: int
    n_workers: int
    types: tuple[str, ...] = TYPES
    pull: float = 0.03

    def solve(self, counts: Array, previous: PooledParams | None) -> PooledParams:
        tally = Tally(counts)
        beliefs = self.start() if previous is None else previous.beliefs
        p_type, _ = self._weigh(tally, beliefs)
        beliefs = self._learn(tally, beliefs, p_type)
        p_type, evidence = self._weigh(tally, beliefs)
        log_table = self._mix(p_type, [_TABLE[name](tally, beliefs, digamma) for name in self.types])
        return PooledParams(beliefs, tally, p_type, evidence, log_table)

    def memory(self, params: PooledParams | None) -> Array:
        """The beliefs as one vector of positive numbers, shares and profile as probabilities."""
        beliefs = self.start() if params is None else params.beliefs
        shares, profile = np.exp(beliefs.log_share), np.exp(beliefs.log_profile)
        return np.concatenate([shares, profile, beliefs.coin, beliefs.classes, beliefs.full, beliefs.spam], axis=None)

    def remember(self, memory: Array) -> PooledParams:
        """Parameters with these beliefs, of which `solve` reads nothing else."""
        n = self.n_classes
        shapes = [(len(self.types),), (n, n), (2,), (2, n), (n, n), (n,)]
        parts = np.split(np.maximum(memory, _LEAST), np.cumsum([np.prod(shape) for shape in shapes[:-1]]))
        shares, profile, *others = (part.reshape(shape) for part, shape in zip(parts, shapes))
        beliefs = Beliefs(np.log(shares / shares.sum()), _log_profile(profile), *others)
        nobody = np.zeros((0, n, n))
        return PooledParams(beliefs, Tally(nobody), np.zeros((0, len(self.types))), np.zeros(0), nobody)

    def log_table(self, params: PooledParams) -> Array:
        return params.log_table

    def log_penalty(self, params: PooledParams) -> float:
        fit = float(params.evidence.sum() - (params.tally.counts * params.log_table).sum())
        return fit + self._log_hyperprior(params.beliefs)

    def confusion(self, params: PooledParams) -> Array:
        """(n_workers, n_classes, n_classes): the expected confusion matrices."""
        return self._expected(params.beliefs, params.tally, params.p_type)

    def newcomer(self, params: PooledParams) -> Array:
        """(n_classes, n_classes): the expected confusion matrix of a worker of whom nothing is known."""
        tally = Tally(np.zeros((1, self.n_classes, self.n_classes)))
        p_type, _ = self._weigh(tally, params.beliefs)
        return self._expected(params.beliefs, tally, p_type)[0]

    def start(self) -> Beliefs:
        """Before any label is seen: right two times out of three."""
        n = self.n_classes
        pseudo = self._pseudo_workers()
        return Beliefs(
            log_share=np.log(pseudo / pseudo.sum()),
            log_profile=_log_profile(np.ones((n, n))),
            coin=np.array([2.0, 1.0]),
            classes=np.repeat([[2.0], [1.0]], n, axis=1),
            full=2.0 * np.eye(n) + 1.0 / n,
            spam=np.full(n, 1.0 / n),
        )

    def _pseudo_workers(self) -> Array:
        """(n_types,) workers that every type is given beforehand."""
        return np.array([1.0 + (self.pull * self.n_workers if name == "coin" else 0.0) for name in self.types])

    def _weigh(self, tally: Tally, beliefs: Beliefs) -> tuple[Array, Array]:
        """p(type | counts) and log p(counts) of each worker."""
        misses = np.einsum("wkl,kl->w", tally.counts, beliefs.log_profile)
        score = np.stack([_EVIDENCE[name](tally, beliefs, misses) for name in self.types], axis=1) + beliefs.log_share
        top = score.max(axis=1, keepdims=True)
        weight = np.exp(score - top)
        total = weight.sum(axis=1, keepdims=True)
        return weight / total, (top + np.log(total))[:, 0]

    def _learn(self, tally: Tally, beliefs: Beliefs, p_type: Array) -> Beliefs:
        """One round of updates, none of which lowers sum(log p(counts)) + the hyper-prior."""
        share = p_type.sum(axis=0) + self._pseudo_workers()
        learnt: dict[str, Any] = {"log_share": np.log(share / share.sum())}
        for name, p in zip(self.types, p_type.T):
            learnt[name] = _LEARN[name](tally, beliefs, p)
        if {"coin", "classes"} & set(self.types):
            erring = sum(p for name, p in zip(self.types, p_type.T) if name in ("coin", "classes"))
            learnt["log_profile"] = _log_profile(np.einsum("w,wkl->kl", erring, tally.counts) + PROFILE_SMOOTHING)
        return replace(beliefs, **learnt)

    def _expected(self, beliefs: Beliefs, tally: Tally, p_type: Array) -> Array:
        return self._mix(p_type, [np.exp(_TABLE[name](tally, beliefs, safe_log)) for name in self.types])

    def _mix(self, p_type: Array, tables: list[Array]) -> Array:
        """(n_workers, n_classes, n_classes) the tables of all types, weighed by p(type)."""
        return sum(p[:, None, None] * table for p, table in zip(p_type.T, tables))

    def _log_hyperprior(self, beliefs: Beliefs) -> float:
        parameters = np.concatenate([getattr(beliefs, name).ravel() for name in self.types])
        spread = float((SHAPE * np.log(parameters) - RATE * parameters).sum())
        profile = PROFILE_SMOOTHING * float(beliefs.log_profile.sum())
        return spread + profile + float(self._pseudo_workers() @ beliefs.log_share)


def _log_profile(errors: Array) -> Array:
    """log p(label | truth, wrong) from how often each label was given for each truth; 0 on the diagonal."""
    profile = errors * ~np.eye(len(errors), dtype=bool)
    profile /= np.maximum(profile.sum(axis=1, keepdims=True), _LEAST)
    np.fill_diagonal(profile, 1.0)
    return np.log(profile)


def _coin_evidence(tally: Tally, beliefs: Beliefs, misses: Array) -> Array:
    a, b = beliefs.coin
    return betaln(a + tally.right.sum(axis=1), b + tally.wrong.sum(axis=1)) - betaln(a, b) + misses


def _classes_evidence(tally: Tally, beliefs: Beliefs, misses: Array) -> Array:
    a, b = beliefs.classes
    return (betaln(a + tally.right, b + tally.wrong) - betaln(a, b)).sum(axis=1) + misses


def _full_evidence(tally: Tally, beliefs: Beliefs, misses: Array) -> Array:
    alpha = beliefs.full
    strength = alpha.sum(axis=1)
    cells = (gammaln(alpha + tally.counts) - gammaln(alpha)).sum(axis=(1, 2))
    return cells - (gammaln(strength + tally.total) - gammaln(strength)).sum(axis=1)


def _spam_evidence(tally: Tally, beliefs: Beliefs, misses: Array) -> Array:
    habit = beliefs.spam
    labels = (gammaln(habit + tally.said) - gammaln(habit)).sum(axis=1)
    return labels - gammaln(habit.sum() + tally.said.sum(axis=1)) + gammaln(habit.sum())


def _coin_table(tally: Tally, beliefs: Beliefs, log: Log) -> Array:
    a, b = beliefs.coin
    right, wrong = a + tally.right.sum(axis=1, keepdims=True), b + tally.wrong.sum(axis=1, keepdims=True)
    return _right_or_wrong(log(right) - log(right + wrong), log(wrong) - log(right + wrong), beliefs)


def _classes_table(tally: Tally, beliefs: Beliefs, log: Log) -> Array:
    right, wrong = beliefs.classes[0] + tally.right, beliefs.classes[1] + tally.wrong
    return _right_or_wrong(log(right) - log(right + wrong), log(wrong) - log(right + wrong), beliefs)


def _right_or_wrong(log_right: Array, log_wrong: Array, beliefs: Beliefs) -> Array:
    """(n_workers, n_classes, n_classes) from the logs of being right and wrong, (n_workers, n_classes or 1)."""
    table = log_wrong[:, :, None] + beliefs.log_profile
    diagonal = np.arange(len(beliefs.log_profile))
    table[:, diagonal, diagonal] = log_right
    return table


def _full_table(tally: Tally, beliefs: Beliefs, log: Log) -> Array:
    cells = beliefs.full + tally.counts
    return log(cells) - log(cells.sum(axis=2))[:, :, None]


def _spam_table(tally: Tally, beliefs: Beliefs, log: Log) -> Array:
    habit = beliefs.spam + tally.said
    return (log(habit) - log(habit.sum(axis=1, keepdims=True)))[:, None, :] * np.ones((1, habit.shape[1], 1))


def _learn_coin(tally: Tally, beliefs: Beliefs, p: Array) -> Array:
    counts = np.stack([tally.right.sum(axis=1), tally.wrong.sum(axis=1)], axis=1)  # (n_workers, 2)
    return _fixed_point(beliefs.coin, counts, p)


def _learn_classes(tally: Tally, beliefs: Beliefs, p: Array) -> Array:
    counts = np.stack([tally.right, tally.wrong], axis=2)  # (n_workers, n_classes, 2)
    return _fixed_point(beliefs.classes.T, counts, p).T


def _learn_full(tally: Tally, beliefs: Beliefs, p: Array) -> Array:
    return _fixed_point(beliefs.full, tally.counts, p)


def _learn_spam(tally: Tally, beliefs: Beliefs, p: Array) -> Array:
    return _fixed_point(beliefs.spam, tally.said, p)


def _fixed_point(alpha: Array, counts: Array, p: Array) -> Array:
    """Minka's step for Dirichlets over the last axis, worker w counting p[w]; `counts` is (n_workers, *alpha.shape)."""
    strength, total = alpha.sum(axis=-1), counts.sum(axis=-1)
    gained = np.einsum("w,w...->...", p, digamma(alpha + counts) - digamma(alpha))
    spent = np.einsum("w,w...->...", p, digamma(strength + total) - digamma(strength))
    return (alpha * gained + SHAPE) / (spent + RATE)[..., None]


_EVIDENCE = {"coin": _coin_evidence, "classes": _classes_evidence, "full": _full_evidence, "spam": _spam_evidence}
_TABLE = {"coin": _coin_table, "classes": _classes_table, "full": _full_table, "spam": _spam_table}
_LEARN = {"coin": _learn_coin, "classes": _learn_classes, "full": _learn_full, "spam": _learn_spam}
