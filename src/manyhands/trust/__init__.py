"""Confidence that was checked: answers of an expert, what they decide, and what they allow to promise.

    alternative_annotator   alt_test: may a model replace the annotators
    effective_votes         how many independent votes correlated votes are worth
    worker_kinds            people and machines, families of machines
    reference_labels, false_discovery   what these are computed with
    answers      Answers: gold together with how the items were drawn; the fingerprint of an export
    candidates   the methods among which answers decide
    sampling     contested, random_items: items to ask an expert about
    selection    select_by_answers: the method that is right most often there

Gold enters a fit. Answers are gold together with how the items were drawn. Truth only evaluates.
"""

from manyhands.trust.alternative_annotator import AnnotatorTest, MachineTest, alt_test
from manyhands.trust.answers import Answers, fingerprint_of
from manyhands.trust.effective_votes import EffectiveVotes, effective_votes
from manyhands.trust.sampling import Questions, contested, random_items
from manyhands.trust.selection import Selection, select_by_answers
from manyhands.trust.worker_kinds import WorkerKind, groups_of

__all__ = [
    "AnnotatorTest",
    "Answers",
    "EffectiveVotes",
    "MachineTest",
    "Questions",
    "Selection",
    "WorkerKind",
    "alt_test",
    "contested",
    "effective_votes",
    "fingerprint_of",
    "groups_of",
    "random_items",
    "select_by_answers",
]
