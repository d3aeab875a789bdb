"""ICED on crowds with hardly anything in them: degenerate, sparse, half of it without labels."""

import numpy as np
import pytest
import torch

from manyhands import ICED, Annotations
from manyhands.classifiers.iced import rounds as iced_rounds
from manyhands.classifiers.iced.autoencoder import EmbeddingNetwork
from manyhands.exceptions import TrainingError
from manyhands.features import as_rows
from manyhands.testing.assertions import quietly
from manyhands.testing.small_crowds import coded, features_of, with_silence
from small_iced import FAST, imbalanced, published, rounds_of

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.mark.parametrize("make", [published, lambda: ICED(**FAST)])
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
    """No crash, finite results, and what everybody says is what is found."""
    votes = Annotations.from_matrix(label, classes=[0, 1])
    truth = (label.mean(axis=1) > 0.5).astype(int)
    model = quietly(lambda: make().fit(features_of(truth), votes))
    assert np.isfinite(model.predict_proba(features_of(truth))).all() and np.isfinite(model.posterior_).all()
    if name in ("a minority of one", "all certain", "a minority of two"):
        np.testing.assert_array_equal(model.posterior_.argmax(axis=1), truth)
    if name == "a minority of one":
        assert model.n_synthetic_.tolist() == [0, 0]  # of one item nothing can be made


def test_gold_without_labels_and_classes_that_nobody_chose():
    """Gold teaches and is certain; a class that nobody named gets no item, whatever the prior."""
    X, votes, _ = imbalanced((20, 8))
    wider = Annotations(
        votes.item, votes.worker, votes.label,
        item_ids=range(29), worker_ids=votes.worker_ids, classes=[0, 1, "never"],
    )  # fmt: skip
    rows = np.vstack([X, features_of(np.array([1]))])
    for make in (published, lambda **c: ICED(**(FAST | c))):
        model = make().fit(rows, wider, gold={28: 1})
        assert model.posterior_[28].argmax() == 1 and model.posterior_[28].max() > 0.99
        assert model.certainty_[28] == pytest.approx(100)
        assert (model.posterior_.argmax(axis=1) < 2).all()


def test_sparse_labels_stay_sparse(monkeypatch):
    """Two of twelve workers label an item, and about two a synthetic one; those nobody labels teach nothing."""
    truth = np.random.default_rng(0).permutation(np.repeat([0, 1], [90, 30]))
    rng = np.random.default_rng(1)
    worker = np.stack([rng.choice(12, 2, replace=False) for _ in truth])
    votes = coded(
        np.repeat(np.arange(120), 2), worker.ravel(), np.repeat(truth, 2), n_items=120, n_workers=12, n_classes=2
    )
    made, taught = [], []
    make, batches = iced_rounds.augment, iced_rounds.AnnotationBatches
    monkeypatch.setattr(iced_rounds, "augment", lambda *a: made.append(make(*a)) or made[-1])
    monkeypatch.setattr(iced_rounds, "AnnotationBatches", lambda *a, **k: taught.append(k["items"]) or batches(*a, **k))
    published(max_epochs=1).fit(features_of(truth), votes)
    new = made[0].n_labels[120:]
    assert len(new) == 60 and 1.5 < new.mean() < 2.5 and (new == 0).any()
    np.testing.assert_array_equal(taught[-1], [*range(120), *(120 + np.flatnonzero(new))])


@pytest.mark.parametrize("settings", [{}, {"balanced_loss": True}, {"warm_up": None, "max_epochs": 0}])
def test_of_an_item_without_labels_the_network_speaks(settings, monkeypatch):
    """Of the world it is from, not of one where classes are balanced; and it is no part of the class prior."""
    X, votes, _ = imbalanced()
    rows, seen = np.vstack([X, X[:1]]), rounds_of(monkeypatch)
    model = published(**settings).fit(rows, with_silence(votes))
    belief, weight = seen[0].belief, np.ones(2)
    if belief.has_taught:
        weight = belief.log_real.exp().numpy()
        weight = weight if "balanced_loss" in settings else weight / belief.log_learnt.exp().numpy()
    expected = weight * model.predict_proba(rows)[-1]
    np.testing.assert_allclose(model.posterior_[-1], expected / expected.sum(), atol=1e-6)
    np.testing.assert_allclose(np.exp(model.log_shift_), weight, rtol=1e-6)
    assert belief.has_taught != ("max_epochs" in settings) and (weight[1] < 0.8 or not belief.has_taught)
    np.testing.assert_allclose(model.class_prior_, model.posterior_[:-1].mean(axis=0))


def test_a_network_that_runs_away_is_refused():
    """In one sentence, before neighbours are sought."""
    network = EmbeddingNetwork(torch.nn.Linear(2, 3), 3, 2)
    torch.nn.init.constant_(network.body.weight, torch.inf)
    with pytest.raises(TrainingError, match="embeddings are no longer finite"):
        network.look(as_rows(np.ones((4, 2))))


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
