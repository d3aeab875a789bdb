"""Small fits of CrowdInG on small crowds, for its tests."""

import torch

from manyhands import CrowdInG
from manyhands.classifiers.crowding import crowding
from manyhands.simulate import thin
from manyhands.testing.learners import QUICK, add_noise
from manyhands.testing.small_crowds import feature_crowd

NETWORK = QUICK | {"random_state": 0}
FEW = {"generator_epochs": 5, "discriminator_epochs": 2, "adversarial_epochs": 2, "members": 1}
FEW |= {"pretraining": "crowd-layer", "start": "identity"}


def quick(**changes):
    return CrowdInG(**(NETWORK | FEW | changes))


def sparse_crowd(n_classes=3, n_items=60, accuracy=0.8, noise=0.0):
    """Two labels on each item, most of them right; the more noise, the less features tell."""
    X, votes, truth = feature_crowd(n_classes, n_items=n_items, accuracy=accuracy)
    return add_noise(X, noise), thin(votes, 0.6, random_state=0), truth


def game_of(monkeypatch, **changes):
    """The game as it stands before its first batch, and that batch."""
    kept = []

    def stop(self, game, context):
        kept.append((game, next(iter(context.batches(batch_size=self.adversarial_batch_size)))))
        return []

    monkeypatch.setattr(crowding.CrowdInG, "_play", stop)
    X, votes, _ = sparse_crowd(noise=3.0)
    quick(**({"generator_learning_rate": 0.01, "generator_epochs": 20} | changes)).fit(X, votes)
    torch.manual_seed(0)
    return kept[0]
