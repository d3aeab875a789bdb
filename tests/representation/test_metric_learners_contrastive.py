"""Contrastive: what the margin means; the loss of Koch: its embedding, its weights, and what is trained."""

import numpy as np
import pytest

from manyhands.exceptions import ParameterError
from manyhands.representation import Contrastive
from manyhands.testing.crowds import QUICK, feature_crowd
from reference.slow_metric_losses import slow_mean_l1, slow_siamese

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.mark.parametrize("margin", [1.0, 5.0])
def test_classes_end_a_margin_apart(margin):
    """With labels that are all right, pairs of a class shrink and other pairs come to a distance near the margin."""
    X, votes, truth = feature_crowd(3, n_items=120, accuracy=1.0)
    settings = QUICK | {"max_epochs": 60, "patience": None}
    embedding = Contrastive(margin, random_state=0, **settings).fit_transform(X, votes)
    distance = np.linalg.norm(embedding[:, None] - embedding, axis=2)
    same = truth[:, None] == truth
    assert distance[same].mean() < 0.3 * margin and distance[~same].mean() > 0.8 * margin


def koch(**changes):
    """A small siamese network with a seed."""
    return Contrastive(loss="koch", **(QUICK | {"random_state": 0} | changes))


def test_kochs_loss_separates_classes_in_the_unit_cube():
    """Sigmoid units; with correct labels, the learned distance predicts whether two items are of one class."""
    X, votes, truth = feature_crowd(3, n_items=120, accuracy=1.0)
    model = koch(max_epochs=60, patience=None).fit(X, votes)
    embedding = model.transform(X)
    assert embedding.min() >= 0 and embedding.max() <= 1
    distance = -(np.abs(embedding[:, None] - embedding) @ model.distance_weight_)
    same = truth[:, None] == truth
    assert distance[same].mean() < 0.2 * distance[~same].mean()
    assert model.history_[-1]["loss"] < model.history_[0]["loss"] / 2


def test_kochs_weights_start_at_minus_one_and_are_trained():
    """They are seen with a learning rate of almost 0; other losses have none, and the margin has no effect."""
    X, votes, _ = feature_crowd(3)
    start = koch(learning_rate=1e-9, max_epochs=1).fit(X, votes).distance_weight_
    np.testing.assert_allclose(start, -1, rtol=1e-5)
    one, other = (koch(margin=margin).fit(X, votes) for margin in (1.0, 5.0))
    assert np.abs(one.distance_weight_ + 1).max() > 0.01
    np.testing.assert_array_equal(one.transform(X), other.transform(X))
    assert not hasattr(Contrastive(**QUICK).fit(X, votes), "distance_weight_")


def test_the_first_loss_of_koch_equals_the_reference():
    """One mini-batch of all items, before any step, in plain loops; the bias starts at the mean distance of pairs."""
    X, votes, truth = feature_crowd(2, n_items=20, accuracy=1.0)
    model = koch(learning_rate=1e-9, max_epochs=1, batch_size=20, patience=None, embedding_size=4).fit(X, votes)
    share = np.bincount(truth)
    assert share[0] == share[1]  # a mini-batch has equally many items of each class: here all items
    points = model.transform(X).tolist()
    expected = slow_siamese(points, truth.tolist(), [-1.0] * 4, slow_mean_l1(points))
    assert model.history_[0]["loss"] == pytest.approx(expected, rel=1e-4)


def test_other_names_of_losses_are_refused():
    """The message names those that there are."""
    X, votes, _ = feature_crowd(2)
    with pytest.raises(ParameterError, match="hadsell"):
        Contrastive(loss="triplet").fit(X, votes)
