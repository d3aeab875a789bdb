"""Small fits of Self-Crowd on sparse and uneven crowds, for its tests."""

import numpy as np

from manyhands import Annotations, SelfCrowd
from manyhands.classifiers import CoNAL, CrowdLayer, SpeeLFC, TraceReg
from manyhands.simulate import thin
from manyhands.testing.crowds import QUICK, feature_crowd, features_of

BASES = {"crowd-layer": CrowdLayer, "conal": CoNAL, "spee-lfc": SpeeLFC, "trace-reg": TraceReg}
NETWORK = QUICK | {"random_state": 0}


def quick(**changes):
    """A small network with a seed and held-out labels, without early stopping of rounds or weight decay."""
    return SelfCrowd.plus(**(NETWORK | {"rounds": 2, "round_patience": None, "init": "identity"} | changes))


def sparse_crowd(n_classes=3, n_items=60):
    """Two labels on each item, most of them correct."""
    X, votes, truth = feature_crowd(n_classes, n_items=n_items, accuracy=0.8)
    return X, thin(votes, 0.6, random_state=0), truth


def uneven_crowd():
    """Three classes of 80, 20 and 20 items, with about two correct labels each."""
    truth = np.repeat([0, 0, 0, 0, 1, 2], 20)
    X, label = features_of(truth, seed=3), np.tile(truth[:, None], (1, 6))
    label[np.random.default_rng(0).random(label.shape) < 0.7] = -1
    return X, Annotations.from_matrix(label)


def pairs_of(votes):
    return set(zip(votes.item.tolist(), votes.worker.tolist()))
