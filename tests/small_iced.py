"""Small fits of ICED on small crowds of imbalanced classes, for its tests."""

import numpy as np

from manyhands import ICED, Annotations
from manyhands.classifiers import iced
from manyhands.classifiers.iced import Synthesis, WarmUp
from manyhands.testing.crowds import QUICK, features_of, known_to

FAST = known_to(ICED(), QUICK) | {"max_epochs": 3, "warm_up": WarmUp(epochs=2), "embedding_size": 5, "random_state": 0}


def published(**changes):
    """The published method with a small network and a seed."""
    return ICED(synthesis=Synthesis(pretrain_epochs=2), **FAST).set_params(**changes)


def plus(**changes):
    """`ICED.plus()` with a small network and a seed."""
    return ICED.plus(**(FAST | changes))


def imbalanced(sizes=(40, 8), n_workers=5, error=0.15, seed=0):
    """Features, labels and truth of a full crowd with these numbers of items of each class."""
    rng = np.random.default_rng(seed)
    truth = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    right = rng.random((len(truth), n_workers)) >= error
    wrong = (truth[:, None] + rng.integers(1, len(sizes), right.shape)) % len(sizes)
    votes = Annotations.from_matrix(np.where(right, truth[:, None], wrong), classes=range(len(sizes)))
    return features_of(truth), votes, truth


def loops_of(monkeypatch):
    """A list to which every fit appends its `Rounds`."""
    seen = []
    init = iced.Rounds.__init__

    def recording(self, *arguments, **others):
        init(self, *arguments, **others)
        seen.append(self)

    monkeypatch.setattr(iced.Rounds, "__init__", recording)
    return seen
