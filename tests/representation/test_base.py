"""What all representation learners share: the classes they learn from, early stopping, embeddings."""

import numpy as np
import pytest
import torch

from manyhands import Annotations, MajorityVote, registry
from manyhands.heldout import hold_out, worker_confusions
from manyhands.representation import Contrastive
from manyhands.representation.base import class_mean_log_proba
from manyhands.testing.crowds import QUICK, feature_crowd, quietly

pytestmark = pytest.mark.usefixtures("one_thread")


def quick(name, **changes):
    """A small learner of this name, with a seed."""
    return registry.create(name, **(QUICK | {"random_state": 0} | changes))


def test_perfect_workers_are_supervised_training():
    """To the last bit: five correct labels on each item give what the truth as one worker's label gives."""
    X, votes, truth = feature_crowd(3, accuracy=1.0)
    alone = Annotations(
        np.arange(60), np.zeros(60, int), truth, item_ids=votes.item_ids, worker_ids=["truth"], classes=votes.classes
    )
    for labels in ("majority-vote", "one-coin"):
        found = [
            quietly(lambda: quick("triplet", labels=labels, patience=None).fit_transform(X, crowd))  # noqa: B023
            for crowd in (votes, alone)
        ]
        np.testing.assert_array_equal(*found)


def test_early_stopping_uses_the_held_out_log_likelihood():
    """By class means and confusion matrices, both from the other labels alone."""
    X, votes, _ = feature_crowd(3, accuracy=0.8)
    model = quick("contrastive", max_epochs=1, learning_rate=1e-12).fit(X, votes)  # the network stays as it began
    training, heldout = hold_out(votes, 0.1, np.random.default_rng(0))
    first = MajorityVote().fit(training)
    embedding, code = model.transform(X), np.searchsorted(votes.classes, first.labels_)
    confusion = worker_confusions(training, first.posterior_)
    mean = [embedding[code == k].mean(axis=0) for k in range(3)]
    scatter = np.mean([np.sum((e - mean[k]) ** 2) for e, k in zip(embedding, code)])
    total = 0.0
    for item, worker, label in zip(heldout.item, heldout.worker, heldout.label):
        p = [np.mean(code == k) * np.exp(-np.sum((embedding[item] - mean[k]) ** 2) / (2 * scatter)) for k in range(3)]
        total += np.log(sum(p[k] / sum(p) * confusion[worker, k, label] for k in range(3)))
    assert model.history_[0]["heldout"] == pytest.approx(total / heldout.n_annotations, rel=1e-4)


def test_the_best_epoch_is_kept():
    """Training ends `patience` epochs after the best one; without patience it runs to the end on all labels."""
    X, votes, _ = feature_crowd(3, accuracy=0.6)
    stopped = quick("lifted", patience=2).fit(X, votes)
    heldout = [epoch["heldout"] for epoch in stopped.history_]
    assert len(heldout) == min(int(np.argmax(heldout)) + 3, 25)
    whole = quick("lifted", patience=None, max_epochs=4).fit(X, votes)
    assert len(whole.history_) == 4 and "heldout" not in whole.history_[0]


def test_class_means_survive_collapse():
    """Identical embeddings give the class shares; one point per class gives certainty."""
    code = np.array([0, 0, 0, 1])
    nothing = torch.zeros(4, 2, dtype=torch.float64)
    found = class_mean_log_proba(nothing, code, nothing[:1]).exp()
    assert found.tolist() == [pytest.approx([0.75, 0.25])]
    places = torch.tensor([[0.0], [0.0], [0.0], [1.0]], dtype=torch.float64)
    found = class_mean_log_proba(places, code, places).exp()
    assert found.argmax(1).tolist() == code.tolist() and torch.isfinite(found).all()


def test_a_module_of_the_callers_own():
    """A function (n_features, embedding_size) -> module is the network."""
    X, votes, _ = feature_crowd(3)
    model = Contrastive(backbone=torch.nn.Linear, embedding_size=6, max_epochs=2, random_state=0).fit(X, votes)
    assert type(model.module_) is torch.nn.Linear and model.transform(X).shape == (60, 6)


def test_images_are_embedded():
    """Rows of any shape, by the perceptron."""
    X, votes, _ = feature_crowd(2)
    images = X.reshape(60, 1, 2, 2)
    model = quick("rll", max_epochs=2).fit(images, votes)
    assert model.transform(images).shape == (60, 32)
