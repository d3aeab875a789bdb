"""The map from the consensus to the truth: plain twins of score, objective, gradient and covariance."""

import numpy as np
import pytest

from manyhands.trust.selection import KINDS, Consensus, fit_map, tempered


def make(n=60, k=3, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, k, n)
    posterior = rng.dirichlet(np.ones(k), n) + 0.8 * np.eye(k)[truth]
    posterior /= posterior.sum(axis=1, keepdims=True)
    share = rng.multinomial(5, np.full(k, 1 / k), n) / 5
    return posterior, share, truth


def plain_apply(posterior, share, scale, shift, vote, class_shift, table):
    """The formula of the module, class by class."""
    n, k = posterior.shape
    q = np.zeros((n, k))
    for i in range(n):
        label = int(np.argmax(posterior[i]))
        for c in range(k):
            score = scale * np.log(posterior[i, c] + 0.001) + vote * np.log(share[i, c] + 0.05) + class_shift[c]
            score += shift * (c == label) + sum(share[i, j] * table[j, c] for j in range(k))
            q[i, c] = np.exp(score)
        q[i] /= q[i].sum()
    return q


def plain_objective(x, posterior, share, truth, weight, kind, prior_scale):
    k = posterior.shape[1]
    class_shift, table, vote = np.zeros(k), np.zeros((k, k)), 0.0
    penalty = 0.5 * ((x[0] - np.log(prior_scale)) / 0.6) ** 2 + 0.5 * (x[1] / 0.5) ** 2
    if kind == "classwise":
        class_shift = x[2:]
        penalty += 0.5 * np.sum((class_shift / 0.5) ** 2)
    if kind == "map":
        vote, table = x[2], x[3:].reshape(k, k)
        penalty += 0.5 * (vote / 0.5) ** 2 + 0.5 * np.sum(table**2)
    q = plain_apply(posterior, share, np.exp(x[0]), x[1], vote, class_shift, table)
    return penalty - sum(w * np.log(q[i, t]) for i, (t, w) in enumerate(zip(truth, weight)))


def vector(fitted):
    more = {"plain": [], "classwise": fitted.class_shift, "map": np.r_[fitted.vote, fitted.table.ravel()]}
    return np.r_[np.log(fitted.scale), fitted.shift, more[fitted.kind]]


@pytest.mark.parametrize("kind", KINDS)
def test_the_fit_is_the_maximum_of_the_plain_objective(kind):
    posterior, share, truth = make()
    weight = np.random.default_rng(1).uniform(0.5, 1.5, len(truth))
    fitted = fit_map(Consensus.of(posterior, share), truth, kind, weight=weight, prior_scale=0.7)
    x = vector(fitted)
    best = plain_objective(x, posterior, share, truth, weight, kind, 0.7)
    rng = np.random.default_rng(2)
    for _ in range(20):
        step = rng.normal(0, 0.02, len(x))
        assert plain_objective(x + step, posterior, share, truth, weight, kind, 0.7) > best - 1e-5
    expected = plain_apply(posterior, share, fitted.scale, fitted.shift, fitted.vote, fitted.class_shift, fitted.table)
    assert fitted.apply(Consensus.of(posterior, share)) == pytest.approx(expected)


@pytest.mark.parametrize("kind", KINDS)
def test_the_covariance_is_the_inverse_of_the_hessian(kind):
    """By finite differences of the plain objective, with the scale itself as a parameter."""
    posterior, share, truth = make(n=40)
    fitted = fit_map(Consensus.of(posterior, share), truth, kind)
    weight = np.ones(len(truth))
    at = np.r_[fitted.scale, vector(fitted)[1:]]

    def value(y):
        x = np.r_[np.log(y[0]), y[1:]]
        curved = 0.5 * ((x[0] - np.log(0.64)) / 0.6) ** 2
        straight = 0.5 * ((y[0] - fitted.scale) / (0.6 * fitted.scale)) ** 2  # the prior of the scale, linearised
        return plain_objective(x, posterior, share, truth, weight, kind, 0.64) - curved + straight

    h, n = 1e-3, len(at)
    hessian = np.zeros((n, n))
    for a in range(n):
        for b in range(n):
            step = np.eye(n)[a] * h, np.eye(n)[b] * h
            hessian[a, b] = (
                value(at + step[0] + step[1]) - value(at + step[0] - step[1])
                - value(at - step[0] + step[1]) + value(at - step[0] - step[1])
            ) / (4 * h * h)  # fmt: skip
    assert np.linalg.inv(fitted.covariance) == pytest.approx(hessian, rel=1e-3, abs=1e-2)


def test_without_evidence_only_the_scale_across_crowds_is_left():
    posterior, share, truth = make()
    fitted = fit_map(Consensus.of(posterior, share), truth, "map", weight=np.full(len(truth), 1e-9))
    assert fitted.scale == pytest.approx(0.64) and fitted.shift == pytest.approx(0, abs=1e-6)
    assert fitted.table == pytest.approx(np.zeros((3, 3)), abs=1e-6)
    same = tempered(3).apply(Consensus.of(posterior, share))
    assert fitted.apply(Consensus.of(posterior, share)) == pytest.approx(same, abs=1e-6)
    assert (same.argmax(axis=1) == posterior.argmax(axis=1)).all()


def test_a_shifted_consensus_is_mapped_back():
    """A panel that is one grade too generous: the map finds it, plain calibration cannot."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 4, 300)
    said = np.minimum(truth + (rng.random(300) < 0.8), 3)
    share = 0.7 * np.eye(4)[said] + 0.3 * rng.dirichlet(np.ones(4), 300)
    consensus = Consensus.of(share, share)
    train, test = np.arange(60), np.arange(60, 300)
    right = {}
    for kind in KINDS:
        fitted = fit_map(consensus[train], truth[train], kind)
        right[kind] = np.mean(fitted.apply(consensus[test]).argmax(axis=1) == truth[test])
    assert right["map"] > right["plain"] + 0.1
