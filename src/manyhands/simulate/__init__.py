"""Simulated crowds with known truth, known workers and known item difficulty.

    workers          label noise: confusion matrices, accuracies and abilities
    label_draws      labels drawn from these
    attacks          bad workers: spammers, adversarial, colluding, sleeper, sybil and others
    assignment       which workers label which items, and removal of labels
    crowds           a crowd, and labels drawn from confusion matrices
    mixed_crowds     `make_crowd`: honest and bad workers together
    papers           labels as simulated in the papers of the methods
    feature_crowds   crowds of the papers that have features
    long_tail        imbalanced and sparse crowds
    ordinal_crowds   ordered classes, workers with bias and spread

All results are determined by `random_state`; no global generator is used.
"""

from manyhands.simulate.assignment import activity_shares, assign, thin
from manyhands.simulate.attacks import ATTACKS
from manyhands.simulate.crowds import Crowd, label_items, make_truth
from manyhands.simulate.feature_crowds import FeatureCrowd, make_difficulty_gaussians, make_neucrowd, make_self_crowd
from manyhands.simulate.label_draws import draw_labels, draw_right_or_wrong
from manyhands.simulate.long_tail import class_sizes, label_sparsely, long_tail_shares, make_long_tail
from manyhands.simulate.mixed_crowds import KINDS, make_crowd
from manyhands.simulate.ordinal_crowds import make_ordinal_crowd, ordinal_confusion
from manyhands.simulate.papers import (
    ICED_SETTINGS,
    make_iced,
    make_max_mig,
    make_mbem,
    make_nonstructural,
    make_structural,
)
from manyhands.simulate.workers import (
    accuracy_to_ability,
    difficulty_accuracy,
    draw_accuracy,
    glad_accuracy,
    hammer_spammer,
    one_coin,
    random_confusion,
    two_coin,
)

__all__ = [
    "ATTACKS",
    "Crowd",
    "FeatureCrowd",
    "ICED_SETTINGS",
    "KINDS",
    "accuracy_to_ability",
    "activity_shares",
    "assign",
    "difficulty_accuracy",
    "draw_accuracy",
    "draw_labels",
    "draw_right_or_wrong",
    "glad_accuracy",
    "hammer_spammer",
    "label_items",
    "label_sparsely",
    "long_tail_shares",
    "make_crowd",
    "make_difficulty_gaussians",
    "make_iced",
    "make_long_tail",
    "make_max_mig",
    "make_mbem",
    "make_neucrowd",
    "make_nonstructural",
    "make_ordinal_crowd",
    "make_self_crowd",
    "make_structural",
    "make_truth",
    "one_coin",
    "ordinal_confusion",
    "random_confusion",
    "class_sizes",
    "thin",
    "two_coin",
]
