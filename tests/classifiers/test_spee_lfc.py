"""SpeeLFC: limit cases and the acceptance checks of probability-form noise."""

import numpy as np
import pytest

from manyhands import Annotations, SpeeLFC, TwoStage
from manyhands.classifiers import spee_lfc
from manyhands.nn.noise_layers import Confusion
from manyhands.testing.classifier_promises import QUICK
from manyhands.testing.crowds import feature_crowd, features_of

pytestmark = pytest.mark.usefixtures("one_thread")


def quick(**changes):
    """A small network with a seed."""
    return SpeeLFC(**(QUICK | {"random_state": 0} | changes))


def with_silent_first(votes):
    """The same labels with one more worker, who gave none and stands before all others."""
    names = ["silent", *votes.worker_ids.tolist()]
    ids = {"item_ids": votes.item_ids, "worker_ids": names, "classes": votes.classes}
    return Annotations(votes.item, votes.worker + 1, votes.label, **ids)


class Identity(Confusion):
    """A confusion layer that is the identity and stays it."""

    def __init__(self, n_workers, n_classes, rows, diagonal):
        super().__init__(n_workers, n_classes, rows, 1 - 1e-7)
        self.weight.requires_grad_(False)


def test_held_at_the_identity_it_is_two_stages_on_soft_votes(monkeypatch):
    """Where all items have equally many labels: -log f(label) over labels is cross entropy with their shares."""
    X, votes, _ = feature_crowd(3, accuracy=0.7)
    whole = {"batch_size": 60, "patience": None}  # one batch, so that the order of items says nothing
    two_stage = TwoStage("majority-vote", soft=True, **(QUICK | {"random_state": 0} | whole)).fit(X, votes)
    free = quick(**whole).fit(X, votes)
    monkeypatch.setattr(spee_lfc, "Confusion", Identity)
    held = quick(**whole).fit(X, votes)
    np.testing.assert_allclose(held.predict_proba(X), two_stage.predict_proba(X), atol=1e-3)
    assert np.abs(free.predict_proba(X) - two_stage.predict_proba(X)).max() > 0.05
    np.testing.assert_allclose(held.confusion_, np.eye(3) * np.ones((10, 1, 1)), atol=1e-6)


def test_perfect_workers_are_supervised_training():
    """New items are classified as by training on the truth, and every matrix nears the identity."""
    X, votes, _ = feature_crowd(3, n_items=120, accuracy=1.0)
    model = quick(max_epochs=40, patience=None).fit(X, votes)
    fresh = np.arange(120) % 3
    supervised = TwoStage("majority-vote", **(QUICK | {"random_state": 0})).fit(X, votes)
    right = [np.mean(m.predict(features_of(fresh, seed=7)) == m.classes_[fresh]) for m in (model, supervised)]
    assert abs(right[0] - right[1]) <= 0.02
    assert model.confusion_.diagonal(axis1=1, axis2=2).min() > 0.85


@pytest.mark.parametrize("seed", [0, 1])
def test_workers_who_always_say_one_class_are_outvoted(seed):
    """Three who know are heard against four who always say 0, and the four are seen through."""
    truth = np.arange(120) % 3
    rng = np.random.default_rng(seed)
    able = np.where(rng.random((120, 3)) < 0.9, truth[:, None], rng.integers(0, 3, (120, 3)))
    votes = Annotations.from_matrix(np.column_stack([able, np.zeros((120, 4), int)]))
    model = quick(learning_rate=0.01, max_epochs=40, random_state=seed).fit(features_of(truth, seed=seed), votes)
    assert np.mean(model.predict(features_of(truth, seed=7)) == truth) > 0.9  # the vote has a third
    assert (model.confusion_[3:, :, 0] > 0.6).all()
    assert model.worker_accuracy_[:3].min() > model.worker_accuracy_[3:].max()


def test_a_silent_worker_changes_nothing():
    """To the last bit, wherever he stands, also with dropout; his own matrix is the start."""
    X, votes, _ = feature_crowd(3)
    alone, with_him = (quick(dropout=0.3).fit(X, v) for v in (votes, with_silent_first(votes)))
    np.testing.assert_array_equal(with_him.predict_proba(X), alone.predict_proba(X))
    np.testing.assert_array_equal(with_him.confusion_[1:], alone.confusion_)
    np.testing.assert_allclose(with_him.confusion_[0].diagonal(), 0.8, rtol=1e-5)


@pytest.mark.parametrize("diagonal", [0.6, 0.9])
def test_the_start_is_the_diagonal_asked_for(diagonal):
    """With a learning rate of next to nothing the matrices are still there, and rows sum to 1."""
    X, votes, _ = feature_crowd(3)
    found = quick(diagonal=diagonal, learning_rate=1e-9, max_epochs=1).fit(X, votes).confusion_
    np.testing.assert_allclose(found.diagonal(axis1=1, axis2=2), diagonal, rtol=1e-5)
    np.testing.assert_allclose(found.sum(axis=2), 1.0, rtol=1e-12)


def test_the_loss_is_the_likelihood_of_the_labels():
    """In the first step: the mean of -log sum_k f_k(x) Pi[k, label], by loops over the labels."""
    X, votes, _ = feature_crowd(3)
    model = quick(learning_rate=1e-9, max_epochs=1, batch_size=60, patience=None).fit(X, votes)
    proba = model.predict_proba(X)
    terms = [
        -np.log(sum(proba[i, k] * model.confusion_[w, k, label] for k in range(3)))
        for i, w, label in zip(votes.item, votes.worker, votes.label)
    ]
    assert model.history_[0]["loss"] == pytest.approx(np.mean(terms), rel=1e-5)
