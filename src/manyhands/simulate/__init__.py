"""Simulated crowds of which everything is known: planted truth, planted workers, planted difficulty.

    workers      how workers err: confusion matrices, abilities, and the labels drawn from them
    attacks      how bad workers answer
    assignment   who labels what, and how labels are taken away again
    crowds       make a crowd out of these
    papers       how each paper made its labels from the truth
    features     the papers' crowds that come with features
    long_tail    imbalanced and sparse crowds

A `random_state` decides everything; no global generator is read or touched.
"""

from manyhands.simulate.assignment import activity_shares, assign, thin
from manyhands.simulate.attacks import ATTACKS
from manyhands.simulate.crowds import KINDS, Crowd, label_items, make_crowd, make_truth
from manyhands.simulate.feature_crowds import FeatureCrowd, make_difficulty_gaussians, make_neucrowd, make_self_crowd
from manyhands.simulate.long_tail import class_sizes, label_sparsely, long_tail_shares, make_long_tail
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
    draw_labels,
    draw_right_or_wrong,
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
    "make_self_crowd",
    "make_structural",
    "make_truth",
    "one_coin",
    "random_confusion",
    "class_sizes",
    "thin",
    "two_coin",
]
