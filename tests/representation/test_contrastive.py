"""Contrastive: what the margin means, and with what the pairs are judged."""

import numpy as np
import pytest

from manyhands import Contrastive
from manyhands.testing.learners import QUICK
from manyhands.testing.small_crowds import feature_crowd

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
