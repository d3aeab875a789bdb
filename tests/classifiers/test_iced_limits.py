"""ICED on degenerate crowds, sparse labels, and items without labels."""

import numpy as np
import pytest
import torch

from manyhands import Annotations
from manyhands.classifiers import iced
from manyhands.classifiers.iced import EmbeddingNetwork
from manyhands.exceptions import TrainingError
from manyhands.features import as_rows
from manyhands.testing.crowds import crowd_from_codes, features_of, quietly, with_unlabelled
from small_iced import imbalanced, loops_of, plus, published

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.mark.parametrize("make", [published, plus])
@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("a minority of one", np.repeat([[0, 0, 0], [1, 1, 1]], [20, 1], axis=0)),
        ("no minority found", np.tile([0, 0, 1], (20, 1))),
        ("all certain", np.repeat([[0, 0, 0], [1, 1, 1]], [16, 4], axis=0)),
        ("all tied", np.tile([0, 1], (20, 1))),
        ("two items", np.array([[0, 0], [1, 1]])),
        ("a minority of two", np.repeat([[0, 0, 0], [1, 1, 1]], [20, 2], axis=0)),
    ],
)
def test_degenerate_crowds(make, name, label):
    """No crash, finite results, and unanimous labels are found."""
    votes = Annotations.from_matrix(label, classes=[0, 1])
    truth = (label.mean(axis=1) > 0.5).astype(int)
    model = quietly(lambda: make().fit(features_of(truth), votes))
    assert np.isfinite(model.predict_proba(features_of(truth))).all() and np.isfinite(model.posterior_).all()
    if name in ("a minority of one", "all certain", "a minority of two"):
        np.testing.assert_array_equal(model.posterior_.argmax(axis=1), truth)
    if name == "a minority of one":
        assert model.n_synthetic_.tolist() == [0, 0]  # of one item nothing can be made


def test_gold_without_labels_and_classes_without_labels():
    """Gold is trained on and certain; a class without labels gets no item, whatever the prior."""
    X, votes, _ = imbalanced((20, 8))
    wider = Annotations(
        votes.item, votes.worker, votes.label,
        item_ids=range(29), worker_ids=votes.worker_ids, classes=[0, 1, "never"],
    )  # fmt: skip
    rows = np.vstack([X, features_of(np.array([1]))])
    for make in (published, plus):
        model = make().fit(rows, wider, gold={28: 1})
        assert model.posterior_[28].argmax() == 1 and model.posterior_[28].max() > 0.99
        assert model.certainty_[28] == pytest.approx(1 / model.certainty.epsilon)
        assert (model.posterior_.argmax(axis=1) < 2).all()


def test_sparse_labels_stay_sparse(monkeypatch):
    """Two of twelve workers label an item, and about two a synthetic one; unlabelled ones are not trained on."""
    truth = np.random.default_rng(0).permutation(np.repeat([0, 1], [90, 30]))
    rng = np.random.default_rng(1)
    worker = np.stack([rng.choice(12, 2, replace=False) for _ in truth])
    votes = crowd_from_codes(
        np.repeat(np.arange(120), 2), worker.ravel(), np.repeat(truth, 2), n_items=120, n_workers=12, n_classes=2
    )
    made, trained_on = [], []
    make, batches = iced.augment, iced.AnnotationBatches
    monkeypatch.setattr(iced, "augment", lambda *a: made.append(make(*a)) or made[-1])
    monkeypatch.setattr(iced, "AnnotationBatches", lambda *a, **k: trained_on.append(k["items"]) or batches(*a, **k))
    published(max_epochs=1).fit(features_of(truth), votes)
    new = made[0].n_labels[120:]
    assert len(new) == 60 and 1.5 < new.mean() < 2.5 and (new == 0).any()
    np.testing.assert_array_equal(trained_on[-1], [*range(120), *(120 + np.flatnonzero(new))])


@pytest.mark.parametrize("settings", [{}, {"balanced_loss": True}, {"warm_up": None, "max_epochs": 0}])
def test_an_item_without_labels_has_the_network_s_prediction(settings, monkeypatch):
    """Under the class shares of the items, not a uniform prior; and it does not enter the class prior."""
    X, votes, _ = imbalanced()
    rows, seen = np.vstack([X, X[:1]]), loops_of(monkeypatch)
    model = published(**settings).fit(rows, with_unlabelled(votes))
    state, weight = seen[0].state, np.ones(2)
    if state.network_trained:
        weight = state.log_prior.exp().numpy()
        weight = weight if "balanced_loss" in settings else weight / state.log_training_prior.exp().numpy()
    expected = weight * model.predict_proba(rows)[-1]
    np.testing.assert_allclose(model.posterior_[-1], expected / expected.sum(), atol=1e-6)
    np.testing.assert_allclose(np.exp(model.log_shift_), weight, rtol=1e-6)
    assert state.network_trained != ("max_epochs" in settings) and (weight[1] < 0.8 or not state.network_trained)
    np.testing.assert_allclose(model.class_prior_, model.posterior_[:-1].mean(axis=0))


def test_embeddings_that_are_not_finite_are_refused():
    """In one sentence, before neighbours are searched."""
    network = EmbeddingNetwork(torch.nn.Linear(2, 3), 3, 2)
    torch.nn.init.constant_(network.body.weight, torch.inf)
    with pytest.raises(TrainingError, match="embeddings are no longer finite"):
        network.embed_and_classify(as_rows(np.ones((4, 2))))


def test_same_seed_and_permuted_workers():
    """The same seed gives the same; other names in another order give the same confusion matrices in that order."""
    X, votes, _ = imbalanced()
    order = np.array([3, 0, 4, 1, 2])
    renamed = Annotations(
        votes.item, np.argsort(order)[votes.worker], votes.label,
        item_ids=votes.item_ids, worker_ids=range(5), classes=votes.classes,
    )  # fmt: skip
    one, other = published().fit(X, votes), published().fit(X, renamed)
    np.testing.assert_allclose(other.confusion_, one.confusion_[order], atol=1e-6)
    np.testing.assert_allclose(other.posterior_, one.posterior_, atol=1e-6)
