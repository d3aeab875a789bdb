"""Lifted structure: classes end apart, and a batch is judged in items x items."""

import numpy as np
import pytest
import torch

from manyhands.nn.losses import lifted_loss
from manyhands.representation import Lifted
from manyhands.testing.crowds import QUICK, feature_crowd

pytestmark = pytest.mark.usefixtures("one_thread")


def test_classes_end_apart():
    """With labels that are all right, nearly every item has its farthest positive nearer than its nearest negative."""
    X, votes, truth = feature_crowd(3, n_items=120, accuracy=1.0)
    settings = QUICK | {"max_epochs": 40, "patience": None}
    embedding = Lifted(random_state=0, **settings).fit_transform(X, votes)
    distance = np.linalg.norm(embedding[:, None] - embedding, axis=2)
    same = truth[:, None] == truth
    assert np.mean(np.where(same, np.inf, distance).min(axis=1) > np.where(same, distance, 0).max(axis=1)) > 0.9


def test_a_large_batch_fits_in_memory():
    """1,000 items of two classes have half a million positive and negative pairs; all pairs of these are never made."""
    embedding = torch.randn(1000, 4, generator=torch.Generator().manual_seed(0))
    assert torch.isfinite(lifted_loss(embedding, torch.arange(1000) % 2, 1.0))
