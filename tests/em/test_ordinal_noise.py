"""The ordinal noise model against plain loops and finite differences."""

import math

import numpy as np
import pytest

from manyhands.em.ordinal_noise import (
    AGREEMENT_WEIGHT,
    N_TILTS,
    OTHER_LABELS,
    SPAM_LABELS,
    SPAM_PRIOR,
    OrdinalNoise,
    solve_positive,
)

pytestmark = pytest.mark.fast

RNG = np.random.default_rng(3)


def features(noise, t, label):
    """The four features of a cell, written out."""
    x = noise.position
    return [x[t] * x[label], x[label], -(x[label] ** 2) / 2, AGREEMENT_WEIGHT * (t == label)]


def slow_table(noise, base, tilt):
    """log p(label | truth) by loops."""
    n = len(noise.rank)
    table = np.empty((len(tilt), n, n))
    for w in range(len(tilt)):
        for t in range(n):
            score = [base[t, k] + sum(a * f for a, f in zip(tilt[w], features(noise, t, k))) for k in range(n)]
            total = math.log(sum(math.exp(value) for value in score))
            table[w, t] = [value - total for value in score]
    return table


def slow_objective(noise, counts, base, tilt):
    """Expected log-likelihood plus the log prior of tilts and base."""
    table = slow_table(noise, base, tilt)
    value = sum(counts[at] * table[at] for at in np.ndindex(counts.shape))
    value -= sum(a**2 / (2 * noise.prior_sd**2) for a in tilt.ravel())
    return value + sum(noise.pseudo_counts[at] * base[at] for at in np.ndindex(base.shape))


def slow_total(noise, counts, params):
    """The whole objective of the M step, with spam, by loops."""
    value = 0.0
    ordinal = slow_table(noise, params.base, params.tilt)
    for w, share in enumerate(params.spam_share):
        for t in range(len(noise.rank)):
            for k, q in enumerate(params.spam[w]):
                value += counts[w, t, k] * math.log((1 - share) * math.exp(ordinal[w, t, k]) + share * q)
        value += SPAM_LABELS * math.log(share) + OTHER_LABELS * math.log(1 - share)
        value += sum(SPAM_PRIOR * g * math.log(q) for g, q in zip(noise.label_share, params.spam[w]))
    value -= sum(a**2 / (2 * noise.prior_sd**2) for a in params.tilt.ravel())
    return value + sum(noise.pseudo_counts[at] * params.base[at] for at in np.ndindex(params.base.shape))


def example(n_classes, n_workers=3):
    """A noise model with ranks in another order than codes, counts, a base and tilts."""
    noise = OrdinalNoise(
        RNG.permutation(n_classes).astype(float), RNG.dirichlet(np.ones(n_classes)), prior_sd=1.5, smoothing=2.0
    )
    base = np.log(RNG.dirichlet(np.ones(n_classes), n_classes))
    counts = RNG.gamma(1.0, 3.0, (n_workers, n_classes, n_classes))
    return noise, counts, base, RNG.normal(0, 0.7, (n_workers, N_TILTS))


@pytest.mark.parametrize("n_classes", [2, 3, 5, 9])
def test_table_equals_plain_loops(n_classes):
    """Rows are distributions."""
    noise, _, base, tilt = example(n_classes)
    found = noise.table(base, tilt)
    np.testing.assert_allclose(found, slow_table(noise, base, tilt), atol=1e-12)
    np.testing.assert_allclose(np.exp(found).sum(axis=2), 1.0)


@pytest.mark.parametrize("n_classes", [2, 4, 8])
def test_derivatives_equal_finite_differences(n_classes):
    """The gradient against differences of the objective, the information against differences of the gradient."""
    noise, counts, base, tilt = example(n_classes, n_workers=2)
    gradient, information = noise.derivatives(counts, np.exp(noise.table(base, tilt)), tilt)
    step = 1e-5
    for w in range(2):
        for j in range(N_TILTS):
            up, down = tilt.copy(), tilt.copy()
            up[w, j] += step
            down[w, j] -= step
            slope = (slow_objective(noise, counts, base, up) - slow_objective(noise, counts, base, down)) / (2 * step)
            assert gradient[w, j] == pytest.approx(slope, rel=1e-5, abs=1e-5)
            after = noise.derivatives(counts, np.exp(noise.table(base, up)), up)[0]
            before = noise.derivatives(counts, np.exp(noise.table(base, down)), down)[0]
            np.testing.assert_allclose(information[w, j], -(after - before)[w] / (2 * step), rtol=1e-5, atol=1e-5)


def test_no_m_step_lowers_the_objective():
    """From the first M step on; in the end nothing is left to gain."""
    noise, counts, _, _ = example(5)
    params, previous = noise.solve(counts, None), None
    for _ in range(200):
        value = slow_total(noise, counts, params)
        explained = (counts * params.log_confusion).sum()
        assert explained + noise.log_penalty(params) == pytest.approx(value, rel=1e-10)
        assert previous is None or value >= previous - 1e-9
        params, previous = noise.solve(counts, params), value
    again = noise.solve(counts, params)
    assert slow_total(noise, counts, again) - previous < 1e-4


def test_a_worker_without_labels_is_the_crowd():
    """Their tilts stay 0."""
    noise, counts, _, _ = example(4)
    counts[1] = 0.0
    params = noise.solve(counts, None)
    assert np.all(params.tilt[1] == 0.0)
    assert params.spam_share[1] == pytest.approx(SPAM_LABELS / (SPAM_LABELS + OTHER_LABELS))
    expected = 0.9 * np.exp(params.base) + 0.1 * noise.label_share
    np.testing.assert_allclose(np.exp(params.log_confusion[1]), expected, atol=1e-12)


def test_small_systems_are_solved():
    """Against LAPACK."""
    root = RNG.normal(size=(20, 4, 4))
    matrix = root @ root.transpose(0, 2, 1) + 0.1 * np.eye(4)
    vector = RNG.normal(size=(20, 4))
    np.testing.assert_allclose(solve_positive(vector, matrix), np.linalg.solve(matrix, vector[:, :, None])[:, :, 0])
