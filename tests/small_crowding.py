"""Small fits of CrowdInG on small crowds, for its tests."""

import torch

from manyhands import CrowdInG
from manyhands.classifiers.crowding_game import Game
from manyhands.simulate import thin
from manyhands.testing.crowds import QUICK, add_noise, feature_crowd

NETWORK = QUICK | {"random_state": 0}
FEW = {"generator__epochs": 5, "discriminator__epochs": 2, "adversarial__epochs": 2, "members": 1}
FEW |= {"pretraining": "crowd-layer", "init": "identity"}


def quick(**changes):
    """`CrowdInG.plus()` with a small network, few epochs and a crowd layer as pre-training."""
    return CrowdInG.plus().set_params(**(NETWORK | FEW | changes))


def published(**changes):
    """`CrowdInG()` with a small network and few epochs."""
    return CrowdInG().set_params(**(NETWORK | FEW | changes))


def sparse_crowd(n_classes=3, n_items=60, accuracy=0.8, noise=0.0):
    """Two labels on each item, most of them correct; with more noise, features are less informative."""
    X, votes, truth = feature_crowd(n_classes, n_items=n_items, accuracy=accuracy)
    return add_noise(X, noise), thin(votes, 0.6, random_state=0), truth


def games_of(monkeypatch):
    """The list of games that fits leave before their adversarial training, which is not done."""
    games = []
    monkeypatch.setattr(Game, "pretrain_discriminator", lambda game: [])
    monkeypatch.setattr(Game, "play", lambda game: games.append(game) or [])
    return games


def game_of(monkeypatch, method=quick, **changes):
    """The game before its first mini-batch, and that mini-batch."""
    games = games_of(monkeypatch)
    X, votes, _ = sparse_crowd(noise=3.0)
    method(**({"generator__learning_rate": 0.01, "generator__epochs": 20} | changes)).fit(X, votes)
    (game,) = games
    batch = next(iter(game.crowd.context.batches(batch_size=game.options.batch_size)))
    torch.manual_seed(0)
    return game, batch
