"""Ordinal noise model: the confusion matrix of the crowd, tilted by each worker's bias, spread and agreement.

    p(label = l | truth = t, worker = w)  =  (1 - spam_share[w]) ordinal[w, t, l] + spam_share[w] spam[w, l]
    log ordinal[w, t, l]  =  base[t, l] + tilt[w] . features[t, l] - log normaliser[w, t]
    features[t, l]  =  (x_t x_l,  x_l,  -x_l^2 / 2,  [l = t] / 4)

x are the positions of the grades, evenly spaced from -1 to 1. The first tilt is how strongly the labels of a worker
follow the truth, the second their bias toward high grades, the third how much they avoid the ends of the scale, and the
fourth how often they are exactly right. The label of a worker is a discretised normal variable with mean
(tilt_1 x_t + tilt_2) / tilt_3 and variance 1 / tilt_3, times the base. `base` is free, so grades need not be evenly
spaced, and a class outside the order (such as "cannot tell") does little harm.

A worker gives some labels without regard to the truth, from a distribution of their own (`spam`).

Tilts have a normal prior around 0, which is the crowd; `base` has pseudo-counts that decrease with the distance between
label and truth; the spam of a worker is a priori a tenth of their labels, from the label frequencies of the crowd. The
M step divides the expected counts into spam and others, as EM for mixtures does. Given these, the objective is concave
in the tilts of each worker, which take Newton steps, and in `base`, which takes steps of iterative scaling; no step
lowers it.

References
----------
A. Agresti (1988), A model for agreement between ratings on an ordinal scale, Biometrics 44.
D. Hovy, T. Berg-Kirkpatrick, A. Vaswani, E. Hovy (2013), Learning whom to trust with MACE, NAACL.
D. Zhou, Q. Liu, J. Platt, C. Meek (2014), Aggregating ordinal labels from crowds by minimax conditional entropy, ICML.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from manyhands._core import elementary
from manyhands._core.arrays import Array
from manyhands.em.pooled_noise import sum_last

# ----------------------------------------------------------------------------------------------------
# Small linear systems and softmax for Newton's method, with the same bits on every machine: no BLAS, no LAPACK.


def log_normalised(score: Array) -> Array:
    """Log-softmax over the last axis.

    Shapes: score (..., n_classes).
    """
    shifted = score - score.max(axis=-1, keepdims=True)
    total = sum_last(elementary.exp(shifted))
    return np.asarray(shifted - elementary.log(total)[..., None])


def solve_positive(vector: Array, matrix: Array) -> Array:
    """Solve small positive definite systems, all at once, by Cholesky's decomposition without LAPACK.

    Examples
    --------
    >>> solve_positive(np.array([[2.0, 3.0]]), np.array([[[2.0, 0.0], [0.0, 1.0]]])).round(6).tolist()
    [[1.0, 3.0]]

    Shapes: vector (n, k); matrix (n, k, k); returns (n, k).
    """
    k = vector.shape[1]
    lower, result = np.zeros_like(matrix), vector.copy()
    for i in range(k):
        for j in range(i + 1):
            value = matrix[:, i, j].copy()
            for m in range(j):
                value -= lower[:, i, m] * lower[:, j, m]
            if i == j:
                lower[:, i, i] = np.sqrt(np.maximum(value, np.finfo(float).tiny))
            else:
                lower[:, i, j] = value / lower[:, j, j]
    for i in range(k):  # forward
        for m in range(i):
            result[:, i] -= lower[:, i, m] * result[:, m]
        result[:, i] /= lower[:, i, i]
    for i in reversed(range(k)):  # backward
        for m in range(i + 1, k):
            result[:, i] -= lower[:, m, i] * result[:, m]
        result[:, i] /= lower[:, i, i]
    return result


# ----------------------------------------------------------------------------------------------------
# The model: base, tilts and spam, and their M step.

# Chosen by held-out labels and simulated crowds (docs/results/notes/ordinal-tried.md).

N_TILTS = 4  # features of a pair of grades; see above
AGREEMENT_WEIGHT = 0.25  # of the feature [l = t]: its tilt has a quarter of the prior standard deviation of the others
SPAM_LABELS, OTHER_LABELS = 0.5, 4.5  # pseudo-labels of a worker that are spam, and that are not
SPAM_PRIOR = 1.0  # pseudo-labels of a worker's spam distribution, with the label frequencies of the crowd
PRIOR_WIDTH = 0.6  # grades; pseudo-counts of the base fall by a factor e for each such distance from the truth
_FIRST_ROUNDS, _FIRST_NEWTON_STEPS = 3, 3  # of the first M step, which starts from the crowd
_SCALING_STEPS = 2  # of the base in each M step
_HALVINGS = 8  # of a Newton step; the objective is concave, so the first step is nearly always taken


@dataclass(frozen=True)
class OrdinalParams:
    """Parameters that EM estimates."""

    base: Array  # (n_classes, n_classes); log p(label | truth) of a worker without tilt, indexed [truth, label]
    tilt: Array  # (n_workers, 4); tilts of the workers
    spam_share: Array  # (n_workers,); share of each worker's labels that do not depend on the truth
    spam: Array  # (n_workers, n_classes); distribution of these labels
    log_confusion: Array  # (n_workers, n_classes, n_classes); log p(label | truth) of each worker


@dataclass(frozen=True)
class OrdinalNoise:
    """Confusion matrices of workers with bias and spread on an ordered scale.

    Shapes: rank (n_classes,); label_share (n_classes,).
    """

    rank: Array  # (n_classes,); rank of each class on the scale, from 0
    label_share: Array  # (n_classes,); share of each class among all labels, above 0
    prior_sd: float = 2.0  # standard deviation of the prior of the tilts; small values keep workers close to the crowd
    smoothing: float = 100.0  # pseudo-labels of each grade for the base

    @cached_property
    def position(self) -> Array:
        """Positions x of the classes, from -1 to 1."""
        half = max(float(self.rank.max(initial=0.0)) / 2.0, 0.5)
        return self.rank / half - 1.0

    @cached_property
    def pseudo_counts(self) -> Array:
        """Pseudo-counts of the base, indexed [truth, label]."""
        distance = np.abs(self.rank[:, None] - self.rank[None, :])
        weight = elementary.exp(np.maximum(-distance / PRIOR_WIDTH, -300.0))
        return self.smoothing * weight / sum_last(weight)[:, None]

    def solve(self, counts: Array, previous: OrdinalParams | None) -> OrdinalParams:
        """The M step: spam, the base, then the tilts.

        Shapes: counts (n_workers, n_classes, n_classes).
        """
        if previous is not None:
            return self._improved(counts, previous, 1)
        params = self._start(counts)
        for _ in range(_FIRST_ROUNDS):
            params = self._improved(counts, params, _FIRST_NEWTON_STEPS)
        return params

    def log_confusion(self, params: OrdinalParams) -> Array:
        """Log confusion matrices, shape (n_workers, n_classes, n_classes)."""
        return params.log_confusion

    def log_penalty(self, params: OrdinalParams) -> float:
        """Log prior density of all parameters, up to a constant."""
        share = SPAM_LABELS * elementary.log(params.spam_share) + OTHER_LABELS * elementary.log(1.0 - params.spam_share)
        spam = SPAM_PRIOR * sum_last(self.label_share * elementary.log(params.spam))
        of_workers = self._tilt_penalty(params.tilt) + share + spam
        return float(of_workers.sum() + (self.pseudo_counts * params.base).sum())

    def _start(self, counts: Array) -> OrdinalParams:
        """The crowd's confusion matrix, and workers without tilt."""
        n_workers = len(counts)
        base = log_normalised(elementary.log(counts.sum(axis=0) + self.pseudo_counts))
        tilt, spam = np.zeros((n_workers, N_TILTS)), np.tile(self.label_share, (n_workers, 1))
        share = np.full(n_workers, SPAM_LABELS / (SPAM_LABELS + OTHER_LABELS))
        return OrdinalParams(base, tilt, share, spam, mixed(self.table(base, tilt), share, spam))

    def _improved(self, counts: Array, params: OrdinalParams, newton_steps: int) -> OrdinalParams:
        """Parameters with a higher objective: one step for each kind, given which labels are spam."""
        log_spam = elementary.log(params.spam_share)[:, None] + elementary.log(params.spam)
        as_spam = counts * elementary.exp(np.minimum(log_spam[:, None, :] - params.log_confusion, 0.0))
        others, by_label = counts - as_spam, as_spam.sum(axis=1)
        n_spam, n = sum_last(by_label), sum_last(sum_last(counts))
        share = (n_spam + SPAM_LABELS) / (n + SPAM_LABELS + OTHER_LABELS)
        spam = (by_label + SPAM_PRIOR * self.label_share) / (n_spam + SPAM_PRIOR)[:, None]
        base, tilt = self._scaled_base(others, params.base, params.tilt), params.tilt
        for _ in range(newton_steps):
            tilt, table = self._newton_step(others, base, tilt)
        return OrdinalParams(base, tilt, share, spam, mixed(table, share, spam))

    def table(self, base: Array, tilt: Array) -> Array:
        """Log confusion matrices of workers with these tilts, without spam.

        Shapes: base (n_classes, n_classes); tilt (n_workers, 4); returns (n_workers, n_classes, n_classes).
        """
        x = self.position
        slope = tilt[:, 0, None] * x + tilt[:, 1, None]  # (n_workers, n_classes), of each truth
        score = base + slope[:, :, None] * x - (0.5 * tilt[:, 2, None] * (x * x))[:, None, :]
        diagonal = np.arange(len(x))
        score[:, diagonal, diagonal] += AGREEMENT_WEIGHT * tilt[:, 3, None]
        return log_normalised(score)

    def _scaled_base(self, counts: Array, base: Array, tilt: Array) -> Array:
        """The base after steps of iterative scaling: base += log(observed / expected) in each cell."""
        n_truth, pseudo = sum_last(counts), self.pseudo_counts
        observed = elementary.log(counts.sum(axis=0) + pseudo)
        for _ in range(_SCALING_STEPS):
            expected = (n_truth[:, :, None] * elementary.exp(self.table(base, tilt))).sum(axis=0)
            expected += sum_last(pseudo)[:, None] * elementary.exp(base)
            base = log_normalised(base + observed - elementary.log(np.maximum(expected, np.finfo(float).tiny)))
        return base

    def _newton_step(self, counts: Array, base: Array, tilt: Array) -> tuple[Array, Array]:
        """One Newton step of the tilts of every worker, halved where it would lower their objective; with the table."""
        table = self.table(base, tilt)
        step = solve_positive(*self.derivatives(counts, elementary.exp(table), tilt))
        before = self._objective(counts, table, tilt)
        size = np.ones(len(tilt))
        for _ in range(_HALVINGS):
            new = tilt + size[:, None] * step
            new_table = self.table(base, new)
            is_worse = self._objective(counts, new_table, new) < before
            if not is_worse.any():
                return new, new_table
            size = np.where(is_worse, size / 2, size)
        new[is_worse], new_table[is_worse] = tilt[is_worse], table[is_worse]
        return new, new_table

    def derivatives(self, counts: Array, confusion: Array, tilt: Array) -> tuple[Array, Array]:
        """Gradient of each worker's objective in the tilts, and minus its Hessian.

        Shapes: counts (n_workers, n_classes, n_classes); confusion (n_workers, n_classes, n_classes); tilt
        (n_workers, 4); returns gradient (n_workers, 4); returns information (n_workers, 4, 4).
        """
        x, n = self.position, sum_last(counts)
        square, diagonal, weight = x * x, np.arange(len(self.position)), AGREEMENT_WEIGHT
        residual = counts - n[:, :, None] * confusion
        first, second = sum_last(residual * x), sum_last(residual * square)
        at_truth = residual[:, diagonal, diagonal]
        gradient = np.stack(
            [sum_last(first * x), sum_last(first), -0.5 * sum_last(second), weight * sum_last(at_truth)], axis=1
        )
        mean, mean_square = sum_last(confusion * x), sum_last(confusion * square)
        p_right = confusion[:, diagonal, diagonal]
        # covariances, given the truth, of label position (x), its square (s) and agreement (d); times labels
        xx = n * (mean_square - mean * mean)
        xs = n * (sum_last(confusion * (square * x)) - mean * mean_square)
        ss = n * (sum_last(confusion * (square * square)) - mean_square * mean_square)
        xd, sd, dd = n * p_right * (x - mean), n * p_right * (square - mean_square), n * p_right * (1.0 - p_right)
        information = np.empty((len(tilt), N_TILTS, N_TILTS))
        cells = {
            (0, 0): sum_last(xx * square),
            (0, 1): sum_last(xx * x),
            (0, 2): -0.5 * sum_last(xs * x),
            (0, 3): weight * sum_last(xd * x),
            (1, 1): sum_last(xx),
            (1, 2): -0.5 * sum_last(xs),
            (1, 3): weight * sum_last(xd),
            (2, 2): 0.25 * sum_last(ss),
            (2, 3): -0.5 * weight * sum_last(sd),
            (3, 3): weight**2 * sum_last(dd),
        }
        for (i, j), value in cells.items():
            information[:, i, j] = information[:, j, i] = value
        precision = 1.0 / self.prior_sd**2
        information[:, range(N_TILTS), range(N_TILTS)] += precision
        return gradient - precision * tilt, information

    def _objective(self, counts: Array, table: Array, tilt: Array) -> Array:
        """Expected log-likelihood of each worker plus the log prior of their tilts, shape (n_workers,)."""
        return sum_last(sum_last(counts * table)) + self._tilt_penalty(tilt)

    def _tilt_penalty(self, tilt: Array) -> Array:
        return -0.5 * sum_last(tilt * tilt) / self.prior_sd**2


def mixed(table: Array, spam_share: Array, spam: Array) -> Array:
    """Log confusion matrices with spam.

    Shapes: table (n_workers, n_classes, n_classes); spam_share (n_workers,); spam (n_workers, n_classes); returns
    (n_workers, n_classes, n_classes).
    """
    log_spam = elementary.log(spam_share)[:, None] + elementary.log(spam)
    return elementary.logaddexp(elementary.log(1.0 - spam_share)[:, None, None] + table, log_spam[:, None, :])
