"""Confidence that was checked: answers of an expert, what they decide, and what they allow to promise.

    alternative_annotator   alt_test: may a model replace the annotators
    effective_votes         how many independent votes correlated votes are worth
    family_weights          down_weight_families: votes of a family count as much as they are worth
    worker_kinds            people and machines, families of machines
    reference_labels, false_discovery   what these are computed with
    answers      Answers: gold together with how the items were drawn; the fingerprint of an export
    candidates   the methods among which answers decide
    sampling     contested, random_items: items to ask an expert about
    selection    select_by_answers: the method that is right most often there
    answer_map   from the consensus to the truth: scale, shift and a K x K table, fitted to answers
    accuracy_estimate   estimate_accuracy: share of right labels with an interval
    guarantee    which labels stand under a promise; label_sets: sets of classes with a promised coverage
    intervals    exact bounds of counts from random samples
    recalibration       calibrate: what the confidence is worth; calibrated_model: the model with the new posterior
    representative      which answers represent all items, and a model that has not seen them

Gold enters a fit. Answers are gold together with how the items were drawn. Truth only evaluates.
"""

from manyhands.trust.accuracy_estimate import AccuracyEstimate, estimate_accuracy
from manyhands.trust.alternative_annotator import AnnotatorTest, MachineTest, alt_test
from manyhands.trust.answers import Answers, fingerprint_of
from manyhands.trust.calibrated_model import CalibratedAggregator
from manyhands.trust.candidates import CANDIDATES
from manyhands.trust.effective_votes import EffectiveVotes, effective_votes
from manyhands.trust.family_weights import down_weight_families
from manyhands.trust.guarantee import Guarantee, guarantee
from manyhands.trust.intervals import answers_for, binomial_interval, finite_interval
from manyhands.trust.label_sets import LabelSets, label_sets
from manyhands.trust.recalibration import Calibration, calibrate
from manyhands.trust.sampling import Questions, contested, random_items
from manyhands.trust.selection import Selection, select_by_answers
from manyhands.trust.worker_kinds import WorkerKind, groups_of

__all__ = [
    "CANDIDATES",
    "AccuracyEstimate",
    "AnnotatorTest",
    "Answers",
    "CalibratedAggregator",
    "Calibration",
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
