"""Small fits of ICED on small crowds of imbalanced classes, for its tests."""

import numpy as np

from manyhands import ICED, Annotations
from manyhands.classifiers.iced import rounds as iced_rounds
from manyhands.testing.learners import QUICK, known_to
from manyhands.testing.small_crowds import features_of

FAST = known_to(ICED(), QUICK) | {"max_epochs": 3, "pretrain_epochs": 2, "warm_up_epochs": 2}
FAST |= {"embedding_size": 5, "random_state": 0}


def published(**changes):
    """The paper's method with a small network and a seed."""
    return ICED.as_published(**(FAST | {"patience": None} | changes))


def imbalanced(sizes=(40, 8), n_workers=5, error=0.15, seed=0):
    """Features, labels and truth of a full crowd with so many items of each class."""
    rng = np.random.default_rng(seed)
    truth = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    right = rng.random((len(truth), n_workers)) >= error
    wrong = (truth[:, None] + rng.integers(1, len(sizes), right.shape)) % len(sizes)
    votes = Annotations.from_matrix(np.where(right, truth[:, None], wrong), classes=range(len(sizes)))
    return features_of(truth), votes, truth


def rounds_of(monkeypatch):
    """A list to which every fit adds its rounds."""
    seen = []
    init = iced_rounds.Rounds.__init__

    def noted(self, *arguments, **others):
        init(self, *arguments, **others)
        seen.append(self)

    monkeypatch.setattr(iced_rounds.Rounds, "__init__", noted)
    return seen
