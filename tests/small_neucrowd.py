"""A NeuCrowd that trains in a tenth of a second."""

from manyhands import NeuCrowd
from manyhands.representation.neucrowd_training import LogisticHead, Tuplets
from manyhands.testing.crowds import QUICK

SMALL = QUICK | {"tuplets": Tuplets(batches_per_epoch=4), "max_epochs": 8, "labels": "majority-vote", "random_state": 0}
SMALL |= {"embedding_size": 160, "validation": 0.1, "search": None, "activation": "tanh", "warm_up": 1}


def quick(**changes):
    """A small learner with a seed: a single member without sampling network, trained to the end by default."""
    head = LogisticHead(soft_targets=True, skip=True)
    return NeuCrowd(**SMALL, sampler=False, head=head, patience=None).set_params(**changes)
