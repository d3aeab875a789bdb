"""Confidence that was checked: answers of an expert, what they decide, and what they allow to promise.

    answers      Answers: gold together with how the items were drawn; combine_answers: of several days, by stratum
    sampling     contested, random_items: items to ask an expert about
    calibration  estimate_accuracy: share of right labels with an interval; calibrate: what the confidence is worth
    guarantees   guarantee: which labels stand under a promise; label_sets: sets of classes with a promised coverage
    selection    select_by_answers: the method that is right most often on the answers
    machines     alt_test: may a model replace the annotators; effective_votes, down_weight_families

Gold enters a fit. Answers are gold together with how the items were drawn. Truth only evaluates.
"""

from manyhands.trust.answers import Answers, Drawing, combine_answers, fingerprint_of
from manyhands.trust.calibration import (
    AccuracyEstimate,
    Calibration,
    answers_for,
    binomial_interval,
    calibrate,
    estimate_accuracy,
    finite_interval,
)
from manyhands.trust.guarantees import Guarantee, LabelSets, guarantee, label_sets
from manyhands.trust.machines import (
    AnnotatorTest,
    EffectiveVotes,
    MachineTest,
    WorkerKind,
    alt_test,
    down_weight_families,
    effective_votes,
    groups_of,
)
from manyhands.trust.sampling import Questions, contested, random_items
from manyhands.trust.selection import CANDIDATES, CalibratedAggregator, Selection, select_by_answers

__all__ = [
    "CANDIDATES",
    "AccuracyEstimate",
    "AnnotatorTest",
    "Answers",
    "CalibratedAggregator",
    "Calibration",
    "Drawing",
    "EffectiveVotes",
    "Guarantee",
    "LabelSets",
    "MachineTest",
    "Questions",
    "Selection",
    "WorkerKind",
    "alt_test",
    "answers_for",
    "binomial_interval",
    "calibrate",
    "combine_answers",
    "contested",
    "down_weight_families",
    "effective_votes",
    "estimate_accuracy",
    "fingerprint_of",
    "finite_interval",
    "groups_of",
    "guarantee",
    "label_sets",
    "random_items",
    "select_by_answers",
]
