"""Simulated crowds with known truth, known workers and known item difficulty.

    workers   which worker labels which item, and how workers err: confusion matrices, accuracies, abilities
    crowds    `make_crowd`, `make_ordinal_crowd`: honest and bad workers together
    papers    crowds as simulated in the papers of the methods, with features, and long-tailed

All results are determined by `random_state`; no global generator is used.
"""

from manyhands.simulate.crowds import (
    ATTACKS,
    KINDS,
    Crowd,
    label_items,
    make_crowd,
    make_ordinal_crowd,
    make_truth,
    ordinal_confusion,
)
from manyhands.simulate.papers import (
    ICED_SETTINGS,
    FeatureCrowd,
    class_sizes,
    label_sparsely,
    long_tail_shares,
    make_difficulty_gaussians,
    make_iced,
    make_long_tail,
    make_max_mig,
    make_mbem,
    make_neucrowd,
    make_nonstructural,
    make_self_crowd,
    make_structural,
)
from manyhands.simulate.workers import (
    accuracy_to_ability,
    activity_shares,
    assign,
    difficulty_accuracy,
    draw_accuracy,
    draw_labels,
    draw_right_or_wrong,
    glad_accuracy,
    hammer_spammer,
    one_coin,
    random_confusion,
    thin,
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
