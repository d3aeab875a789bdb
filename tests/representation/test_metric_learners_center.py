"""Triplet-center: the centres, their rate, and classes without items."""

import numpy as np
import pytest

from manyhands import Annotations
from manyhands.representation import Center
from manyhands.testing.crowds import QUICK, feature_crowd

pytestmark = pytest.mark.usefixtures("one_thread")


def quick(**changes):
    """A small learner with a seed."""
    return Center(**(QUICK | {"random_state": 0, "patience": None} | changes))


@pytest.mark.parametrize("normalise", [True, False])
def test_items_gather_around_their_centres(normalise):
    """With labels that are all right, the nearest centre is nearly always that of the item's class."""
    X, votes, truth = feature_crowd(3, n_items=120, accuracy=1.0)
    model = quick(normalise=normalise, max_epochs=40).fit(X, votes)
    distance = np.linalg.norm(model.transform(X)[:, None] - model.centers_, axis=2)
    assert model.centers_.shape == (3, 32) and np.mean(distance.argmin(axis=1) == truth) > 0.95
    assert model.history_[-1]["loss"] < 0.3 * model.history_[0]["loss"]


def test_centres_have_a_rate_of_their_own():
    """At next to none they stay where they began, at length 1, whatever the network does."""
    X, votes, _ = feature_crowd(3)
    still, moving = (quick(center_learning_rate=rate).fit(X, votes).centers_ for rate in (1e-12, 0.1))
    np.testing.assert_allclose(np.linalg.norm(still, axis=1), 1, rtol=1e-5)
    assert np.abs(still - moving).max() > 0.01


def test_margins_for_normalised_and_other_embeddings():
    """None is 1 for embeddings of length 1, and 5 for others."""
    X, votes, _ = feature_crowd(3)
    for normalise, margin in ((True, 1.0), (False, 5.0)):
        found = [quick(normalise=normalise, margin=m, max_epochs=2).fit_transform(X, votes) for m in (None, margin, 2)]
        np.testing.assert_array_equal(found[0], found[1])
        assert not np.array_equal(found[0], found[2])


def test_a_class_without_items_has_no_centre():
    """Its row is NaN, and the others are as they would be without it."""
    X, votes, _ = feature_crowd(2)
    wider = Annotations(
        votes.item, votes.worker, votes.label * 2, item_ids=votes.item_ids, worker_ids=votes.worker_ids,
        classes=["a", "unused", "b"],
    )  # fmt: skip
    two, three = (quick(max_epochs=3).fit(X, labels) for labels in (votes, wider))
    assert np.isnan(three.centers_[1]).all()
    np.testing.assert_array_equal(three.centers_[[0, 2]], two.centers_)
