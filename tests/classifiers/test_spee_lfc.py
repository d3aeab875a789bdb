"""SpeeLFC: limit cases, initial matrices and loss."""

import numpy as np
import pytest

from manyhands import SpeeLFC, TraceReg, TwoStage
from manyhands.classifiers import spee_lfc, trace_reg
from manyhands.nn.worker_layers import Confusion
from manyhands.testing.learners import QUICK
from manyhands.testing.small_crowds import feature_crowd, with_unlabelled

pytestmark = pytest.mark.usefixtures("one_thread")


def quick(**changes):
    """A small network with a seed."""
    return SpeeLFC(**(QUICK | {"random_state": 0} | changes))


class Identity(Confusion):
    """A confusion layer that is fixed at the identity."""

    def __init__(self, n_workers, n_classes, rows, diagonal):
        super().__init__(n_workers, n_classes, rows, 1 - 1e-7)
        self.weight.requires_grad_(False)


@pytest.mark.parametrize("module, method, atol", [(spee_lfc, SpeeLFC, 1e-3), (trace_reg, TraceReg, 2e-3)])
def test_with_matrices_fixed_at_the_identity_it_is_two_stage_on_vote_shares(module, method, atol, monkeypatch):
    """Where all items have equally many labels: -log f(label) over labels is cross entropy with their shares.

    The same holds for trace regularisation: Adam is invariant to the factor 5 between its sum and the mean.
    """
    X, votes, _ = feature_crowd(3, accuracy=0.7)
    whole = QUICK | {
        "random_state": 0,
        "batch_size": 60,
        "patience": None,
    }  # one batch: its order has no effect
    two_stage = TwoStage("majority-vote", soft=True, **whole).fit(X, votes)
    free = method(**whole).fit(X, votes)
    monkeypatch.setattr(module, "Confusion", Identity)
    fixed = method(**whole).fit(X, votes)
    np.testing.assert_allclose(fixed.predict_proba(X), two_stage.predict_proba(X), atol=atol)
    assert np.abs(free.predict_proba(X) - two_stage.predict_proba(X)).max() > 5 * atol
    np.testing.assert_allclose(fixed.confusion_, np.eye(3) * np.ones((10, 1, 1)), atol=1e-6)


def test_perfect_workers_have_matrices_near_the_identity():
    """After all epochs; the matrix of a worker without labels stays at its initial value."""
    X, votes, _ = feature_crowd(3, n_items=120, accuracy=1.0)
    found = (
        quick(max_epochs=40, patience=None).fit(X, with_unlabelled(votes)[:120]).confusion_.diagonal(axis1=1, axis2=2)
    )
    assert found[:-1].min() > 0.85
    np.testing.assert_allclose(found[-1], 0.8, rtol=1e-5)


@pytest.mark.parametrize("diagonal", [0.6, 0.9])
def test_initial_matrices_have_the_given_diagonal(diagonal):
    """They are seen with a learning rate of almost 0; rows sum to 1."""
    X, votes, _ = feature_crowd(3)
    found = quick(diagonal=diagonal, learning_rate=1e-9, max_epochs=1).fit(X, votes).confusion_
    np.testing.assert_allclose(found.diagonal(axis1=1, axis2=2), diagonal, rtol=1e-5)
    np.testing.assert_allclose(found.sum(axis=2), 1.0, rtol=1e-12)


def test_the_loss_is_the_negative_log_likelihood_of_the_labels():
    """In the first step: the mean of -log sum_k f_k(x) Pi[k, label], by loops over the labels."""
    X, votes, _ = feature_crowd(3)
    model = quick(learning_rate=1e-9, max_epochs=1, batch_size=60, patience=None).fit(X, votes)
    proba = model.predict_proba(X)
    terms = [
        -np.log(sum(proba[i, k] * model.confusion_[w, k, label] for k in range(3)))
        for i, w, label in zip(votes.item, votes.worker, votes.label)
    ]
    assert model.history_[0]["loss"] == pytest.approx(np.mean(terms), rel=1e-5)
