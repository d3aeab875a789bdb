"""MACE: planted spammers, and the inner problem against a general optimiser."""

import numpy as np
import pytest
from scipy.optimize import minimize

from manyhands import MACE, Annotations
from manyhands.em.noise import SpammerNoise
from manyhands.exceptions import CrowdWarning

pytestmark = pytest.mark.fast


def crowd_with_spammers(seed=0, n_items=200, n_classes=4):
    """Six workers of competence .8, two who always give class 2, two random ones; and the truth."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, n_classes, n_items)
    spam = rng.integers(0, n_classes, (n_items, 10))
    votes = np.where(rng.random((n_items, 10)) < 0.8, truth[:, None], spam)
    votes[:, 6:8] = 2
    votes[:, 8:] = spam[:, 8:]
    return Annotations.from_matrix(votes), truth


def test_planted_spammers_are_found():
    """Competence is near its planted value, near 0 for the spammers, and their spam distribution is found."""
    annotations, truth = crowd_with_spammers()
    model = MACE().fit(annotations)
    np.testing.assert_allclose(model.competence_[:6], 0.8, atol=0.1)
    assert (model.competence_[6:] < 0.1).all()
    assert (model.spam_distribution_[6:8, 2] > 0.95).all()
    np.testing.assert_allclose(model.spam_distribution_[8:], 0.25, atol=0.12)
    assert np.mean(model.labels_ == truth) > 0.97


@pytest.mark.parametrize("smoothing", [0.0, 1.0])
def test_objective_never_falls(smoothing):
    """Neither in plain passes nor in extrapolated ones, with and without a prior."""
    annotations, _ = crowd_with_spammers(1)
    history = np.array(MACE(smoothing=smoothing, prior="estimated").fit(annotations).history_)
    assert len(history) > 3
    assert (np.diff(history) >= -1e-8 * np.abs(history[:-1])).all()


def test_inner_problem_agrees_with_a_general_optimiser():
    """`solve`, repeated until convergence, reaches the maximum that scipy finds over the simplex."""
    noise = SpammerNoise(3, smoothing=1.0, prior_competence=0.4)
    counts = np.random.default_rng(0).gamma(0.7, 3.0, (4, 3, 3))
    params = None
    for _ in range(200):
        params = noise.solve(counts, params)
    for worker in range(4):

        def loss(free, worker=worker):
            column = np.exp(free) / np.exp(free).sum()
            return -worker_objective(column, counts[worker], 0.4, [0.2] * 3)

        best = minimize(loss, np.zeros(4), method="BFGS", options={"gtol": 1e-8}).fun
        assert loss(np.log(params[:, worker])) == pytest.approx(best, abs=1e-8)


def worker_objective(column, counts, known_prior, spam_prior):
    """The expected log-likelihood of one worker plus the log prior, in plain loops."""
    competence, spam = column[0], column[1:]
    total = known_prior * np.log(competence)
    for label in range(3):
        total += spam_prior[label] * np.log(spam[label])
        for truth in range(3):
            total += counts[truth, label] * np.log(spam[label] + (competence if label == truth else 0.0))
    return total


def test_objective_of_the_model_is_that_of_the_plain_loops():
    """Table and penalty together are the objective that `solve` maximises, and no call lowers it."""
    noise = SpammerNoise(3, smoothing=1.0, prior_competence=0.4)
    counts = np.random.default_rng(1).gamma(0.7, 3.0, (5, 3, 3))
    params, values = None, []
    for _ in range(8):
        params = noise.solve(counts, params)
        values.append(float((counts * noise.log_confusion(params)).sum()) + noise.log_penalty(params))
        slow = sum(worker_objective(params[:, w], counts[w], 0.4, [0.2] * 3) for w in range(5))
        assert values[-1] == pytest.approx(slow, rel=1e-12)
    assert (np.diff(values) >= -1e-12 * np.abs(values[:-1])).all()


def test_confusion_follows_from_competence_and_spam():
    """confusion[w, k, l] = competence [l = k] + (1 - competence) spam_distribution[l]."""
    model = MACE().fit(crowd_with_spammers()[0])
    competence, spam = model.competence_[:, None, None], model.spam_distribution_[:, None, :]
    np.testing.assert_allclose(model.confusion_, competence * np.eye(4) + (1 - competence) * spam)
    np.testing.assert_allclose(model.confusion_.sum(axis=2), 1)


@pytest.mark.parametrize("smoothing", [0.0, 1.0])
def test_worker_without_labels_has_the_prior(smoothing):
    """Without labels a worker has the prior, with or without pseudo-counts, and everything stays finite."""
    annotations = Annotations.from_matrix([[0, 0, -1], [1, 1, -1], [-1, -1, -1]])
    model = MACE(smoothing=smoothing, prior_competence=0.5).fit(annotations)
    assert model.competence_[2] == pytest.approx(0.5)
    assert np.isfinite(model.posterior_).all() and np.isfinite(model.confusion_).all()
    assert model.labels_.tolist() == [0, 1, None]


@pytest.mark.parametrize("matrix", [[[0]], [[0, 0, 0]], [[0], [0]]])
def test_a_single_class(matrix):
    """With a single class every posterior is 1."""
    with pytest.warns(CrowdWarning):
        model = MACE().fit(Annotations.from_matrix(matrix))
    assert (model.posterior_ == 1).all()
    np.testing.assert_allclose(model.confusion_, 1.0)
