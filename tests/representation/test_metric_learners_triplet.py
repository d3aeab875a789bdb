"""Triplets: which ones, which margin, and embeddings of length 1."""

import numpy as np
import pytest
import torch

from manyhands import load_model
from manyhands.nn.losses import semi_hard_loss
from manyhands.representation import Triplet
from manyhands.testing import check_representation
from manyhands.testing.crowds import QUICK, feature_crowd

pytestmark = pytest.mark.usefixtures("one_thread")


def quick(*arguments, **changes):
    """A small learner with a seed."""
    return Triplet(*arguments, **(QUICK | {"random_state": 0} | changes))


@pytest.mark.slow
def test_semi_hard_triplets_keep_every_promise():
    """All checks, with the other selection."""
    check_representation(Triplet("semi-hard"))


def test_the_closest_negative_beyond_the_positive_counts():
    """Worked by hand: at 0 and 1 the positive pair; negatives at 0.5, 2 and 5 on a line."""
    points, target = torch.tensor([[0.0], [1.0], [0.5], [2.0], [5.0]]), torch.tensor([0, 0, 1, 2, 3])
    # from 0: D_ap = 1, the closest beyond is at 2: 1 - 4 + 1 < 0; from 1: beyond 1 is the one at 5: 1 - 16 + 1 < 0
    assert semi_hard_loss(points, target, 1.0).item() == 0
    assert semi_hard_loss(points, target, 4.0).item() == pytest.approx((1 - 4 + 4) / 2)
    near = torch.tensor([[0.0], [1.0], [0.5], [0.7]])  # no negative is farther: the farthest, at 0.7 and at 0.5
    expected = ((1 - 0.49 + 1) + (1 - 0.25 + 1)) / 2
    assert semi_hard_loss(near, torch.tensor([0, 0, 1, 2]), 1.0).item() == pytest.approx(expected)


def test_margins_of_the_papers():
    """None is 0.2 for random triplets of normalised embeddings, and 1 otherwise."""
    X, votes, _ = feature_crowd(3)
    for settings, margin in [
        ({}, 0.2),
        ({"normalise": False}, 1.0),
        ({"selection": "semi-hard"}, 1.0),
        ({"selection": "semi-hard", "normalise": False}, 1.0),
    ]:
        made = (quick(max_epochs=2, patience=None, margin=m, **settings) for m in (None, margin, 50.0))
        found = [model.fit_transform(X, votes) for model in made]
        np.testing.assert_array_equal(found[0], found[1])
        assert not np.array_equal(found[0], found[2])


@pytest.mark.parametrize("normalise", [True, False])
def test_embeddings_have_length_one_where_asked(normalise, tmp_path):
    """Also from a saved model."""
    X, votes, _ = feature_crowd(3)
    model = quick(normalise=normalise, max_epochs=2).fit(X, votes)
    model.save(tmp_path / "model")
    for found in (model, load_model(tmp_path / "model")):
        length = np.linalg.norm(found.transform(X), axis=1)
        assert np.allclose(length, 1) == normalise
