"""Acceptance criteria G1 to G12 of the methods, on small data; comments name tests that are elsewhere."""

import numpy as np
import pytest

from manyhands import Annotations, DawidSkene, MajorityVote, OneCoin, registry
from manyhands.classifiers import MBEM, SpeeLFC, TraceReg, TwoStage
from manyhands.simulate import draw_labels, one_coin
from manyhands.testing.crowds import QUICK, add_noise, feature_crowd, features_of, quietly

pytestmark = pytest.mark.usefixtures("one_thread")

# G1, perfect workers are training on the truth, within two points: `testing.learners`, for every method.


def spammer_majority(n_classes, n_items=200, seed=0):
    """Three workers with an accuracy of 0.9, and four spammers who always give the first class."""
    truth = np.arange(n_items) % n_classes
    rng = np.random.default_rng(seed)
    wrong = (truth[:, None] + rng.integers(1, n_classes, (n_items, 3))) % n_classes
    correct = np.where(rng.random((n_items, 3)) < 0.9, truth[:, None], wrong)
    return Annotations.from_matrix(np.hstack([correct, np.zeros((n_items, 4), int)])), truth


@pytest.mark.parametrize("n_classes", [2, 3])
def test_g2_dawid_skene_identifies_a_majority_of_spammers(n_classes):
    """Majority vote gives one class. (LFC: test_raykar; noise layers initialised at these: test_noise_layer.)"""
    votes, truth = spammer_majority(n_classes)
    model = DawidSkene().fit(votes)
    assert np.mean(model.labels_ == truth) > 0.95
    assert np.mean(MajorityVote().fit(votes).labels_ == truth) < 0.55
    assert model.confusion_[:3, 1, 1].min() > 0.8 > 0.2 > model.confusion_[3:, 1, 1].max()


def test_g2_aggnet_identifies_a_majority_of_spammers():
    """On new items, where a network trained on the majority vote predicts one class."""
    votes, truth = spammer_majority(2)
    X, fresh = features_of(truth), features_of(truth, seed=7)
    model = registry.create("aggnet", random_state=0, **QUICK).fit(X, votes)
    assert np.mean(model.predict(fresh) == truth) > 0.95
    assert np.mean(TwoStage("majority-vote", random_state=0, **QUICK).fit(X, votes).predict(fresh) == truth) < 0.6
    assert model.confusion_[:3, 1, 1].min() > 0.8 > 0.2 > model.confusion_[3:, 1, 1].max()


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("method", ["conal", "spee-lfc", "trace-reg"])
def test_g2_noise_layers_initialised_at_the_identity_identify_a_majority_of_spammers(method, seed):
    """With three classes, of which majority vote gives one."""
    votes, truth = spammer_majority(3, 120, seed)
    settings = QUICK | {"learning_rate": 0.01, "max_epochs": 40, "random_state": seed}
    model = registry.create(method, **settings).fit(features_of(truth, seed=seed), votes)
    assert np.mean(model.predict(features_of(truth, seed=7)) == truth) > 0.8
    assert model.worker_accuracy_[:3].min() > model.worker_accuracy_[3:].max()


@pytest.mark.parametrize("seed", range(3))
def test_g3_dawid_skene_is_as_accurate_as_one_coin_on_one_coin_workers(seed):
    """Within a percentage point, with enough labels for nine parameters per worker; both are better than the vote."""
    rng = np.random.default_rng(seed)
    truth, item = np.arange(2000) % 3, np.repeat(np.arange(2000), 5)
    worker = rng.random((2000, 12)).argsort(axis=1)[:, :5].ravel()
    skill = one_coin(np.linspace(0.6, 0.95, 12), 3)
    votes = Annotations.from_triples(item, worker, draw_labels(skill, worker, truth[item], rng))
    full, one, vote = (np.mean(M().fit(votes).labels_ == truth) for M in (DawidSkene, OneCoin, MajorityVote))
    assert abs(full - one) <= 0.01 and min(full, one) > vote + 0.005


# G4, GLAD ranks workers: tests/aggregation/test_glad.py, test_ability_and_difficulty_are_ranked.
# G5, Raykar's form for many classes is its binary one: test_raykar.py, test_many_classes_with_two_is_the_binary_form.


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("init", [{"diagonal": 0.8}, {"init": "dawid-skene"}])
def test_g6_a_trace_lowers_the_diagonal(init, seed):
    """From equal initial matrices and with the default penalty; rows sum to 1."""
    X, votes, _ = feature_crowd(3, accuracy=0.7, n_items=120, seed=seed)
    settings = QUICK | {"patience": None, "random_state": seed} | init
    with_trace, without = (M(**settings).fit(X, votes).confusion_ for M in (TraceReg, SpeeLFC))
    assert with_trace.diagonal(axis1=1, axis2=2).mean() < without.diagonal(axis1=1, axis2=2).mean()
    for confusion in (with_trace, without):
        np.testing.assert_allclose(confusion.sum(axis=2), 1, rtol=1e-12)


# G7, a crowd layer of vectors is one of matrices with frozen cells: tests/nn/test_worker_layers.py,
# test_vw_is_mw_with_off_diagonals_frozen.


@pytest.mark.slow
def test_g8_with_single_labels_mbem_is_more_accurate_than_the_vote():
    """One label per item, four hammers among ten workers, classes that overlap: better than training on the labels."""
    rng = np.random.default_rng(2)
    truth, worker = np.arange(1000) % 3, rng.integers(0, 10, 1000)
    label = np.where(worker < 4, truth, rng.integers(0, 3, 1000))
    votes = Annotations.from_triples(np.arange(1000), worker, label)
    X, fresh = add_noise(features_of(truth), 1.0, seed=2), add_noise(features_of(truth, seed=7), 1.0, seed=52)
    settings = {"hidden": (128,), "dropout": 0.0, "learning_rate": 0.01, "batch_size": 32, "max_epochs": 30}
    settings |= {"patience": None, "random_state": 2}
    model, vote = (quietly(lambda: m.fit(X, votes)) for m in (MBEM(**settings), TwoStage("majority-vote", **settings)))  # noqa: B023
    assert np.mean(model.predict(fresh) == truth) > np.mean(vote.predict(fresh) == truth) + 0.03
    diagonal = model.confusion_.diagonal(axis1=1, axis2=2).mean(axis=1)
    assert diagonal[:4].min() > 0.8 > 0.6 > diagonal[4:].max()


# G9, Max-MIG under a naive majority: test_max_mig.py, test_a_naive_majority_is_identified.
# G10, CPC at both ends of mu: test_cpc.py, test_a_strong_penalty_gives_pooled_logistic_regression and
# test_without_a_penalty_the_target_is_zero.
# G11, workers without labels change nothing: `testing.learners`, for every method.
# G12, metric losses at 0 and at identical points: tests/nn/test_losses_metric.py,
# test_separated_classes_cost_nothing and test_gradients_are_finite_where_points_are_identical.
