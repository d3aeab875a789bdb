"""SpeeLFC: limit cases, initial matrices and loss; SpeeLFC-D: what the difficulty is and what it explains."""

import numpy as np
import pytest
import torch

from manyhands import Annotations, SelfCrowd, load_model
from manyhands.classifiers import SpeeLFC, TraceReg, TwoStage, spee_lfc, trace_reg
from manyhands.features import as_rows
from manyhands.nn.backbones import outputs
from manyhands.nn.worker_layers import Confusion
from manyhands.testing.crowds import QUICK, feature_crowd, with_unlabelled
from reference.slow_networks import slow_softmax

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


def test_the_loss_with_difficulty_is_the_negative_log_likelihood_of_the_labels():
    """In an epoch of almost no change, by loops; before training all difficulties are 1 and it is the loss without."""
    X, votes, _ = feature_crowd(3)
    still = {"learning_rate": 1e-9, "max_epochs": 1, "batch_size": 60, "patience": None}
    model, plain = quick(difficulty=True, **still).fit(X, votes), quick(**still).fit(X, votes)
    np.testing.assert_allclose(model.difficulty_, 1, rtol=1e-5)
    np.testing.assert_allclose(model.confusion_, plain.confusion_, rtol=1e-5)
    proba = model.predict_proba(X)
    terms = [
        -np.log(sum(proba[i, k] * model.confusion_[w, k, label] for k in range(3)))
        for i, w, label in zip(votes.item, votes.worker, votes.label)
    ]
    assert model.history_[0]["loss"] == pytest.approx(np.mean(terms), rel=1e-5)
    assert not hasattr(plain, "difficulty_")


def crowd_with_hard_items():
    """Three classes; on items with a negative last feature labels are drawn at random."""
    rng = np.random.default_rng(0)
    truth = np.arange(300) % 3
    hard = rng.random(300) < 0.5
    X = np.column_stack([4 * np.eye(3)[truth] + rng.normal(size=(300, 3)), np.where(hard, -1, 1)])
    label = np.where(hard[:, None], rng.integers(0, 3, (300, 4)), truth[:, None])
    return X, Annotations.from_matrix(label), hard


def test_items_on_which_workers_guess_are_difficult():
    """Also where the order of items is another one."""
    X, votes, hard = crowd_with_hard_items()
    model = quick(difficulty=True, max_epochs=60, patience=None).fit(X, votes)
    assert np.median(model.difficulty_[hard]) > 2 * np.median(model.difficulty_[~hard])
    scale = outputs(model._noise_layer.scale, as_rows(X[::-1])).squeeze(1).numpy()
    np.testing.assert_allclose(1 / scale[::-1], model.difficulty_, rtol=1e-6)


def test_confusions_with_difficulty_are_means_over_the_items_of_a_worker():
    """By loops over the labels, from the parameters of the layer; rows sum to 1."""
    X, votes, _ = crowd_with_hard_items()
    layer = []

    class Kept(spee_lfc.ScaledConfusionNoise):
        def new_layer(self, context):
            layer.append(super().new_layer(context))
            return layer[-1]

    model = quick(difficulty=True, max_epochs=10)
    model.noise_model = lambda: Kept(0.8, 32)
    model.fit(X, with_unlabelled(votes)[:300])
    free = layer[0].own.weight.detach().view(5, 3, 3).transpose(1, 2).double().numpy()  # stored with the label first
    for w in range(4):
        each = [
            [slow_softmax((free[w, k] / model.difficulty_[i]).tolist()) for k in range(3)]
            for i in votes.item[votes.worker == w]
        ]
        np.testing.assert_allclose(model.confusion_[w], np.mean(each, axis=0), rtol=1e-4)
    np.testing.assert_allclose(model.confusion_[4].diagonal(), 0.8, rtol=1e-5)  # no labels
    np.testing.assert_allclose(model.confusion_.sum(axis=2), 1, rtol=1e-12)


def test_a_saved_model_keeps_the_difficulty_of_new_items(tmp_path):
    """The noise layer with d is stored with the classifier."""
    X, votes, _ = crowd_with_hard_items()
    model = quick(difficulty=True, difficulty_hidden=5).fit(X, votes)
    model.save(tmp_path / "model")
    again = load_model(tmp_path / "model")
    new = torch.randn(7, 4, generator=torch.Generator().manual_seed(0))
    assert again._noise_layer.scale.layers[1].out_features == 5
    np.testing.assert_array_equal(again._noise_layer.scale(new).detach(), model._noise_layer.scale(new).detach())
    np.testing.assert_array_equal(again.difficulty_, model.difficulty_)


def test_scores_see_the_difficulty():
    """The log-likelihood of new labels by loops: log sum_k f_k(x) softmax(d(x) A_w[k, .])[label]."""
    X, votes, _ = crowd_with_hard_items()
    model = quick(difficulty=True).fit(X[:200], votes[:200])
    heldout, proba = votes[200:], model.predict_proba(X[200:])
    scale = outputs(model._noise_layer.scale, as_rows(X[200:])).squeeze(1).numpy()
    free = model._noise_layer.own.weight.detach().view(4, 3, 3).transpose(1, 2).double().numpy()
    expected = [
        np.log(sum(proba[i, k] * slow_softmax((scale[i] * free[w, k]).tolist())[label] for k in range(3)))
        for i, w, label in zip(heldout.item, heldout.worker, heldout.label)
    ]
    np.testing.assert_allclose(model.score_labels(X[200:], heldout), expected, rtol=1e-4, atol=1e-5)
    assert model.score_kind == "own" and quick().fit(X, votes).score_kind != "own"


def test_other_methods_can_be_built_on_it(tmp_path):
    """Self-Crowd predicts pseudo-annotations with the label distribution of each worker on each item."""
    X, votes, truth = feature_crowd(3)
    plus = SelfCrowd.plus(base=SpeeLFC(difficulty=True), rounds=1, random_state=0, **QUICK).fit(X, votes)
    assert np.mean(plus.predict(X) == votes.classes[truth]) > 0.8
    plus.save(tmp_path / "model")
    np.testing.assert_array_equal(load_model(tmp_path / "model").predict_proba(X), plus.predict_proba(X))
