"""The worker types: closed forms against independent computations, and the lower bound they make up."""

import numpy as np
import pytest
from scipy import integrate, stats
from scipy.special import betaln, digamma, gammaln

from manyhands.em.pooled_noise import (
    FULL_MATRIX_COST,
    RATE,
    SHAPE,
    CrowdPriors,
    PooledNoise,
    Tally,
    WorkerPosteriors,
    _coin_table,
    _spammer_evidence,
    _spammer_table,
    fixed_point,
)

pytestmark = pytest.mark.fast

COUNTS = np.array(
    [[[7.0, 1.5, 0.5], [0.5, 4.0, 1.0], [0.0, 2.0, 6.0]], [[0.0, 0.0, 3.0], [0.2, 0.0, 3.0], [0.0, 0.0, 2.0]]]
)


def solved(counts=COUNTS, rounds=30):
    noise = PooledNoise(counts.shape[1], counts.sum(axis=(1, 2)))
    params = None
    for _ in range(rounds):
        params = noise.solve(counts, params)
    return noise, params


def objective(noise, params, counts=COUNTS):
    return (counts * noise.log_confusion(params)).sum() + noise.log_penalty(params)


def test_solve_never_lowers_what_em_maximises():
    """Repeated calls of `solve` on the same counts raise the objective."""
    noise = PooledNoise(3, COUNTS.sum(axis=(1, 2)))
    params, values = None, []
    for _ in range(40):
        params = noise.solve(COUNTS, params)
        values.append(objective(noise, params))
    assert np.diff(values).min() > -1e-10 and values[-1] > values[0] + 0.1


def test_penalty_is_minus_the_divergence_of_the_posteriors():
    """Evidence minus sum(counts * table) is -KL(posterior of the workers || prior), computed here type by type."""
    noise, params = solved()
    b, workers = params.priors, params.workers
    expected = 0.0
    for w in range(len(COUNTS)):
        log_p, log_q = np.log(b.shares), np.log(workers.p_type[w])
        coin = _dirichlet_divergence(b.coin + workers.tally.coin[w], b.coin)
        spammer = _dirichlet_divergence(b.competence + workers.competence[w], b.competence)
        spammer += _dirichlet_divergence(b.spam + workers.spam[w], b.spam)
        full = sum(_dirichlet_divergence(b.full[k] + COUNTS[w, k], b.full[k]) for k in range(3))
        divergences = np.array([coin, spammer, full + FULL_MATRIX_COST * COUNTS[w].sum()])
        expected -= float((workers.p_type[w] * (log_q - log_p + divergences)).sum())
    assert noise.log_penalty(params) - noise._log_hyperprior(b) == pytest.approx(expected, abs=1e-8)


def _dirichlet_divergence(a, b):
    norm = gammaln(a.sum()) - gammaln(a).sum() - gammaln(b.sum()) + gammaln(b).sum()
    return norm + ((a - b) * (digamma(a) - digamma(a.sum()))).sum()


def test_spammer_evidence_bounds_the_integral():
    """With two classes p(counts) is a double integral; the bound lies below it, and not far."""
    counts = np.array([[[5.0, 1.0], [2.0, 3.0]]])
    _, params = solved(counts)
    b = params.priors
    right, wrong = np.diag(counts[0]), np.array([counts[0, 1, 0], counts[0, 0, 1]])

    def density(t, x):
        spam = (1 - t) * np.array([x, 1 - x])
        log_p = (right * np.log(t + spam) + wrong * np.log(spam)).sum()
        return np.exp(log_p) * stats.beta.pdf(t, *b.competence) * stats.beta.pdf(x, *b.spam)

    exact = np.log(integrate.dblquad(density, 0, 1, 0, 1)[0])
    bound = _spammer_evidence(params.workers, b)[0]
    assert exact - 1.0 < bound <= exact + 1e-9


def test_coin_table_is_the_beta_expectation():
    """E log a and E log (1 - a) / (K - 1) of a Beta posterior."""
    b = CrowdPriors(np.ones(3) / 3, np.array([2.0, 1.0]), np.array([2.0, 1.0]), np.ones(3), np.eye(3) + 1)
    tally = Tally(COUNTS)
    table = _coin_table(WorkerPosteriors(tally, tally.right, tally.right, tally.right), b, digamma)
    right = np.trace(COUNTS[0])
    a, c = 2.0 + right, 1.0 + COUNTS[0].sum() - right
    assert table[0, 1, 1] == pytest.approx(digamma(a) - digamma(a + c))
    assert table[0, 1, 2] == pytest.approx(digamma(c) - digamma(a + c) - np.log(2))


def test_spam_is_no_evidence_for_other_classes():
    """Off the diagonal a spam label has one probability, whatever the truth."""
    _, params = solved()
    table = _spammer_table(params.workers, params.priors, np.log)
    off = np.exp(table[0, :, 2])
    assert off[0] == pytest.approx(off[1]) and off[2] > off[0]


def test_confusion_rows_sum_to_one():
    """Also those of an unseen worker."""
    noise, params = solved()
    assert np.allclose(noise.confusion(params).sum(axis=2), 1)
    assert np.allclose(noise.unseen_worker(params).sum(axis=1), 1)


def test_one_class_worker_is_a_spammer():
    """A worker who always gives class 2 is a spammer."""
    noise, params = solved()
    assert params.workers.p_type[1, noise.types.index("spammer")] > 0.9


def test_hyperparameters_round_trip():
    """Hyper-parameters survive the conversion to the vector that the driver extrapolates, and back."""
    noise, params = solved()
    again = noise.with_hyperparameters(noise.hyperparameters(params), params)
    for name in ("shares", "coin", "competence", "spam", "full"):
        assert np.allclose(getattr(again.priors, name), getattr(params.priors, name))


@pytest.mark.parametrize(("n_classes", "types"), [(1, 1), (2, 3), (10, 3), (11, 2)])
def test_full_matrices_only_for_few_classes(n_classes, types):
    """With more than ten classes the type is left out; with one class it is the only one."""
    assert len(PooledNoise(n_classes, np.ones(3)).types) == types


def test_beta_evidence_agrees_with_scipy():
    """Two-cell Dirichlet evidence is the Beta function's."""
    from manyhands.em.pooled_noise import dirichlet_evidence

    expected = betaln(2.0 + 5, 1.5 + 3) - betaln(2.0, 1.5)
    assert dirichlet_evidence(np.array([2.0, 1.5]), np.array([5.0, 3.0])) == pytest.approx(expected)


def test_the_step_for_dirichlets_ends_at_their_optimum():
    """At its fixed point no change of a parameter raises the weighted evidence plus the hyper-prior."""
    counts = np.array([[6.0, 1.0, 0.5], [9.0, 0.5, 2.0], [3.0, 3.0, 3.0]])
    p, alpha = np.array([1.0, 0.7, 0.2]), np.ones(3)
    for _ in range(2000):
        alpha = fixed_point(alpha, counts, p)

    def value(a):
        total = gammaln(a.sum()) - gammaln(a.sum() + counts.sum(axis=1))
        evidence = total + (gammaln(a + counts) - gammaln(a)).sum(axis=1)
        return (p * evidence).sum() + (SHAPE * np.log(a) - RATE * a).sum()

    for k in range(3):
        for factor in (0.97, 1.03):
            assert value(alpha * np.where(np.arange(3) == k, factor, 1.0)) < value(alpha)
