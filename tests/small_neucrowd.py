"""A NeuCrowd that learns in a tenth of a second."""

from manyhands import NeuCrowd
from manyhands.testing.learners import QUICK

SMALL = QUICK | {"batches_per_epoch": 4, "max_epochs": 8, "labels": "majority-vote", "random_state": 0}


def quick(**changes):
    """A small learner with a seed: a single member, trained to the end, unless it is told otherwise."""
    return NeuCrowd(**(SMALL | {"members": 1, "patience": None} | changes))
