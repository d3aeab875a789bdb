"""Confidence that was checked: answers of an expert, what they decide, and what they allow to promise.

    answers      Answers: gold together with how the items were drawn; the fingerprint of an export
    candidates   the methods among which answers decide
    sampling     contested, random_items: items to ask an expert about
    selection    select_by_answers: the method that is right most often there

Gold enters a fit. Answers are gold together with how the items were drawn. Truth only evaluates.
"""

from manyhands.trust.answers import Answers, fingerprint_of
from manyhands.trust.sampling import Questions, contested, random_items
from manyhands.trust.selection import Selection, select_by_answers

__all__ = [
    "Answers",
    "Questions",
    "Selection",
    "contested",
    "fingerprint_of",
    "random_items",
    "select_by_answers",
]
