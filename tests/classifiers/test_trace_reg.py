"""Trace regularisation: effect of the penalty, warm-up, and limit cases."""

import numpy as np
import pytest

from manyhands import Annotations
from manyhands.classifiers import SpeeLFC, TraceReg
from manyhands.exceptions import CrowdWarning
from manyhands.testing.crowds import QUICK, feature_crowd, features_of, with_unlabelled
from manyhands.testing.learners import check_workers_without_labels_change_nothing

pytestmark = pytest.mark.usefixtures("one_thread")


def quick(**changes):
    """A small network with a seed."""
    return TraceReg(**(QUICK | {"random_state": 0} | changes))


def mean_diagonal(model):
    """Over workers and classes."""
    return model.confusion_.diagonal(axis1=1, axis2=2).mean()


def test_the_penalty_lowers_the_diagonal():
    """A higher weight lowers it further; rows sum to 1."""
    X, votes, _ = feature_crowd(3, accuracy=0.7, n_items=120)
    models = [quick(penalty=penalty, patience=None).fit(X, votes) for penalty in (0.0, 0.01, 1.0)]
    found = [mean_diagonal(model) for model in models]
    assert found == sorted(found, reverse=True) and found[0] - found[1] > 1e-3 and found[0] - found[-1] > 0.1
    np.testing.assert_allclose(models[1].confusion_.sum(axis=2), 1.0, rtol=1e-12)


@pytest.mark.parametrize("seed", [0, 1])
def test_the_diagonal_is_lower_than_that_of_spee_lfc(seed):
    """From the same initial matrices and labels."""
    X, votes, _ = feature_crowd(3, accuracy=0.7, n_items=120, seed=seed)
    same = QUICK | {"diagonal": 0.8, "patience": None, "random_state": seed}
    assert mean_diagonal(TraceReg(penalty=0.1, **same).fit(X, votes)) < mean_diagonal(SpeeLFC(**same).fit(X, votes))


def test_the_warm_up_has_no_penalty():
    """With a warm-up of all epochs it has no effect; without a warm-up it has more."""
    X, votes, _ = feature_crowd(3, accuracy=0.7)
    fits = [quick(patience=None, penalty=p, warm_up=n).fit(X, votes) for p, n in ((0, 5), (1, 25), (1, 99), (1, 5))]
    without, after, long_after, with_it = (model.predict_proba(X) for model in fits)
    np.testing.assert_array_equal(after, without)
    np.testing.assert_array_equal(long_after, without)
    assert np.abs(with_it - without).max() > 1e-3
    assert [len(model.history_) for model in fits] == [25] * 4
    at_once = quick(patience=None, penalty=1, warm_up=0).fit(X, votes)
    assert mean_diagonal(at_once) < mean_diagonal(fits[3])


def test_early_stopping_begins_with_the_penalty():
    """Epochs of the warm-up have no held-out score, so that none of them is restored."""
    X, votes, _ = feature_crowd(3)
    history = quick(warm_up=4, patience=2, max_epochs=60).fit(X, votes).history_
    assert ["heldout" in epoch for epoch in history] == [False] * 4 + [True] * (len(history) - 4)
    score = [epoch["heldout"] for epoch in history[4:]]
    assert len(history) < 60 and len(score) - 1 - int(np.argmax(score)) == 2


def test_the_loss_is_a_sum_over_labels_per_item_and_a_trace():
    """In the first step, by loops; from the paper's initial parameters, P = 6 I - 5."""
    X, votes, _ = feature_crowd(3)
    model = quick(penalty=0.5, warm_up=0, learning_rate=1e-9, max_epochs=1, batch_size=60, patience=None).fit(X, votes)
    on, off = np.log1p(np.exp(1.0)), np.log1p(np.exp(-5.0))
    confusion = np.where(np.eye(3, dtype=bool), on, off) / (on + 2 * off)
    proba = model.predict_proba(X)
    terms = [
        -np.log(sum(proba[i, k] * confusion[k, label] for k in range(3))) for i, label in zip(votes.item, votes.label)
    ]
    assert model.history_[0]["loss"] == pytest.approx(sum(terms) / 60 + 0.5 * np.trace(confusion), rel=1e-5)
    np.testing.assert_allclose(model.confusion_, confusion + np.zeros((10, 1, 1)), rtol=1e-4)


def test_workers_without_labels_change_nothing():
    """With a strong penalty: the mean trace is over workers with labels. The matrices of others do not change."""
    check_workers_without_labels_change_nothing(TraceReg(penalty=0.5))
    X, votes, _ = feature_crowd(3)
    confusion = quick(penalty=0.5, max_epochs=7).fit(X, with_unlabelled(votes)[: votes.n_items]).confusion_[-1]
    assert (confusion.diagonal() > 0.98).all()


def test_batches_with_gold_but_no_labels_are_used():
    """The mean trace over no workers is 0, not NaN."""
    truth = np.arange(40) % 2
    votes = Annotations(
        np.arange(20), np.zeros(20, int), truth[:20], item_ids=range(40), worker_ids=["w"], classes=[0, 1]
    )
    gold = {i: int(truth[i]) for i in range(20, 40)}
    with pytest.warns(CrowdWarning, match="no_redundancy"):
        model = quick(batch_size=2, max_epochs=8, warm_up=1).fit(features_of(truth), votes, gold)
    assert np.mean(model.predict(features_of(truth, seed=3)) == truth) > 0.9
