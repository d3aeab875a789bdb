"""RLL: confidence by hand, both readings, and the effect of items of low confidence."""

import numpy as np
import pytest
import torch

from manyhands import Annotations, load_model
from manyhands.nn.batches import draw_tuplets
from manyhands.nn.losses import tuplet_loss
from manyhands.representation import RLL, metric_learners
from manyhands.testing import check_representation
from manyhands.testing.crowds import QUICK, feature_crowd

pytestmark = pytest.mark.usefixtures("one_thread")


def quick(**changes):
    """A small learner with a seed."""
    return RLL(**(QUICK | {"random_state": 0, "patience": None} | changes))


@pytest.mark.slow
def test_the_reading_of_neucrowd_keeps_every_promise():
    """All checks with one network, distances and the confidence inside the exponent."""
    check_representation(RLL("distance", confidence="assurance"))


@pytest.mark.parametrize(
    "kind, expected",
    [
        # items: five of five for 0, four of five for 0, three of five for 1, no label
        ("mle", [1, 0.8, 0.6, np.nan]),
        ("bayesian", [(5 + 10 / 3) / 10, (4 + 10 / 3) / 10, (3 + 5 / 3) / 10, np.nan]),
        ("assurance", [1, 0.6, 0.2, np.nan]),
    ],
)
def test_confidence_by_hand(kind, expected):
    """v of d labels name the item's class, and pi is the share of that class; a gold item is certain."""
    votes = Annotations.from_matrix([[0] * 5, [0, 0, 0, 0, 1], [1, 1, 1, 0, 0], [-1] * 5])
    X = np.arange(8.0).reshape(4, 2)
    model = quick(confidence=kind, max_epochs=1).fit(X, votes)
    np.testing.assert_allclose(model.confidence_, expected)
    known = quick(confidence=kind, max_epochs=1).fit(X, votes, {2: 1, 3: 1}).confidence_
    assert known[2:].tolist() == [1, 1]


def test_assurance_of_many_classes():
    """The margin between the two largest counts over all votes: 1 where all agree, 0 at a tie."""
    votes = Annotations.from_matrix([[0, 0, 0, 0], [1, 1, 1, 2], [2, 2, 1, 0], [0, 0, 1, 1]])
    found = quick(confidence="assurance", max_epochs=1).fit(np.eye(4), votes).confidence_
    np.testing.assert_allclose(found, [1, 2 / 4, 1 / 4, 0])


def test_the_query_network_gives_the_embedding(tmp_path):
    """Of length 1 for the cosine and free for distances, also from a saved model."""
    X, votes, _ = feature_crowd(3)
    for similarity in ("cosine", "distance"):
        model = quick(similarity=similarity, max_epochs=2).fit(X, votes)
        model.save(tmp_path / similarity)
        again = load_model(tmp_path / similarity)
        np.testing.assert_array_equal(again.confidence_, model.confidence_)
        for found in (model, again):
            assert np.allclose(np.linalg.norm(found.transform(X), axis=1), 1) == (similarity == "cosine")


def test_scales_of_the_papers():
    """None is 10 for the cosine, and 2 for the distance."""
    X, votes, _ = feature_crowd(3)
    for similarity, scale in (("cosine", 10.0), ("distance", 2.0)):
        found = [
            quick(similarity=similarity, scale=g, max_epochs=2).fit_transform(X, votes) for g in (None, scale, 5.0)
        ]
        np.testing.assert_array_equal(found[0], found[1])
        assert not np.array_equal(found[0], found[2])


def test_an_item_of_low_confidence_has_a_small_gradient():
    """Of two equally near negatives the one of lower confidence has the smaller gradient; with 0 it has none."""
    for inside in (False, True):
        similarity = torch.tensor([[0.5, 0.2, 0.2, 0.2]], requires_grad=True)
        tuplet_loss(similarity, torch.tensor([[1.0, 0.9, 0.3, 0.0]]), 2.0, inside=inside).backward()
        pull = similarity.grad[0]
        assert pull[0] < 0 < pull[2] < pull[1] and pull[3] == pytest.approx(0, abs=1e-9)


def test_each_step_weights_items_by_confidence(monkeypatch):
    """The weights of a tuplet are the confidences of its positive and of its negatives."""
    drawn, weights = [], []

    def draw(batch, n_negatives, rng):
        drawn.append((batch.item, *draw_tuplets(batch, n_negatives, rng)))
        return drawn[-1][1:]

    def loss(similarity, weight, *others, **named):
        weights.append(weight.numpy())
        return tuplet_loss(similarity, weight, *others, **named)

    monkeypatch.setattr(metric_learners, "draw_tuplets", draw)
    monkeypatch.setattr(metric_learners, "tuplet_loss", loss)
    X, votes, _ = feature_crowd(3, accuracy=0.6)
    model = quick(max_epochs=1).fit(X, votes)
    assert np.unique(model.confidence_).size > 3
    for (item, positive, negative), weight in zip(drawn, weights, strict=True):
        members = np.column_stack([positive, negative])
        np.testing.assert_allclose(weight, model.confidence_[item[members]], rtol=1e-6)


@pytest.mark.parametrize("similarity", ["cosine", "distance"])
def test_the_loss_falls(similarity):
    """In both readings, from correct labels: wrong ones increase the loss of a confident embedding."""
    X, votes, _ = feature_crowd(3, n_items=120, accuracy=1.0)
    history = quick(similarity=similarity, confidence="mle").fit(X, votes).history_
    assert np.mean([epoch["loss"] for epoch in history[-3:]]) < 0.9 * history[0]["loss"]
