"""Dawid-Skene against its reference implementation, and in its limits."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manyhands import Annotations, DawidSkene
from manyhands.em.confusion_em import ConfusionEM
from manyhands.em.driver import run_em
from manyhands.em.kernels import PackedLabels, pack
from manyhands.em.noise import ConfusionNoise
from manyhands.em.priors import EstimatedPrior
from manyhands.testing.crowds import easy_crowd, quietly
from reference.slow import slow_dawid_skene
from strategies import annotations, triples_of

pytestmark = pytest.mark.fast


@given(votes=annotations(), smoothing=st.sampled_from([0.01, 0.5, 2.0]), n_iter=st.integers(1, 6))
@settings(max_examples=60)
def test_iterations_are_those_of_the_reference(votes, smoothing, n_iter):
    """Posterior, confusions, frequencies and every objective, pass by pass, without acceleration."""
    model = ConfusionEM(PackedLabels(pack(votes)), ConfusionNoise(smoothing), EstimatedPrior(smoothing))
    start = model.statistics(model.labels.vote_pass(), None)
    found = run_em(model, start, max_iter=n_iter, tol=0.0, accelerate=False)
    n_iter = found.n_iter  # at a fixed point it stops early, even with tol=0
    n = (votes.n_items, votes.n_workers, votes.n_classes)
    posterior, confusion, prior, history = slow_dawid_skene(triples_of(votes), *n, smoothing, n_iter)
    final = model.pass_at(found.params, want_posterior=True)
    np.testing.assert_allclose(np.exp(model.noise.log_confusion(found.params.noise)), confusion, rtol=1e-9)
    np.testing.assert_allclose(np.exp(found.params.log_prior), prior, rtol=1e-9)
    np.testing.assert_allclose(final.posterior, posterior, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(found.history, history, rtol=1e-10)


def test_a_class_without_labels_of_a_worker_has_a_uniform_row():
    """Without smoothing, a row without counts is uniform, and a cell without counts among others is impossible."""
    counts = np.array([[[3.0, 1.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 5.0]]])
    confusion = np.exp(ConfusionNoise(0.0).solve(counts, None))
    np.testing.assert_allclose(confusion[0], [[0.75, 0.25, 0], [1 / 3, 1 / 3, 1 / 3], [0, 0, 1]], atol=1e-12)


def test_planted_confusions_are_found():
    """With many labels, estimated confusion matrices are close to the planted ones, rows by truth."""
    rng = np.random.default_rng(0)
    planted = np.array(
        [[[0.9, 0.1], [0.3, 0.7]], [[0.6, 0.4], [0.05, 0.95]], [[0.8, 0.2], [0.2, 0.8]], [[0.95, 0.05], [0.4, 0.6]]]
    )
    truth = (rng.random(4000) < 0.3).astype(int)
    label = (rng.random((4000, 4)) < planted[:, truth, 1].T).astype(int)
    model = DawidSkene().fit(Annotations.from_matrix(label))
    np.testing.assert_allclose(model.confusion_, planted, atol=0.05)
    np.testing.assert_allclose(model.class_prior_, [0.7, 0.3], atol=0.04)


def test_an_inverted_worker_is_worth_as_much_as_a_good_one():
    """Three good workers and two who always invert: the inverted labels are used as evidence for the other class."""
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 2, 300)
    p_right = np.array([0.75, 0.75, 0.75, 0.05, 0.05])
    label = np.where(rng.random((300, 5)) < p_right, truth[:, None], 1 - truth[:, None])
    model = DawidSkene().fit(Annotations.from_matrix(label))
    assert np.mean(model.labels_ == truth) > 0.95
    assert (model.worker_accuracy_[3:] < 0.2).all()


def test_priors_are_used():
    """A given prior is kept; a uniform one is uniform; a strong one decides where labels do not."""
    votes = Annotations.from_matrix([[0, 1], [1, 0], [0, 0], [1, 1]])
    assert DawidSkene(prior="uniform").fit(votes).class_prior_.tolist() == [0.5, 0.5]
    np.testing.assert_allclose(DawidSkene(prior=[9, 1]).fit(votes).class_prior_, [0.9, 0.1])
    split = Annotations.from_matrix([[0, 1]] * 3, classes=[0, 1])
    assert DawidSkene(prior=[1, 99]).fit(split).labels_.tolist() == [1, 1, 1]


@pytest.mark.parametrize("smoothing", [0.0, 1e-12, 100.0])
def test_smoothing_from_none_to_much(smoothing):
    """Without smoothing nothing is NaN; with much of it confusions are nearly even."""
    votes, _ = easy_crowd(3)
    model = quietly(lambda: DawidSkene(smoothing=smoothing).fit(votes))
    assert np.isfinite(model.posterior_).all() and np.isfinite(model.confusion_).all()
    if smoothing == 100.0:
        assert np.abs(model.confusion_ - 1 / 3).max() < 0.1


def test_restarts_never_end_lower_than_the_first():
    """The start from the votes is among them, and the best is kept."""
    votes, _ = easy_crowd(3, accuracy=0.5, seed=3)
    one, many = DawidSkene().fit(votes), DawidSkene(n_init=5, random_state=0).fit(votes)
    assert many.restarts_[0] == one.restarts_[0]
    assert many.history_[-1] == max(many.restarts_) >= one.history_[-1]


def test_gold_moves_the_confusions():
    """With the truth of every item known, confusions are the smoothed counts themselves."""
    label = np.array([[0, 1], [0, 0], [1, 0], [1, 1]])
    truth = [0, 0, 1, 1]
    model = DawidSkene(smoothing=0.5).fit(Annotations.from_matrix(label), gold=dict(enumerate(truth)))
    expected = [[[2.5, 0.5], [0.5, 2.5]], [[1.5, 1.5], [1.5, 1.5]]]
    np.testing.assert_allclose(model.confusion_, np.array(expected) / 3, rtol=1e-12)
    assert model.labels_.tolist() == truth
