"""Checks of inputs, and the messages of the errors that they raise.

    constraints   which values a constructor parameter may have
    checks        parameters, columns, codes and annotations
    memory        jobs that would need more memory than there is
    suggestions   "Did you mean ...?"

Every message states what was wrong, which value came, and what to do.
"""

from manyhands.validation.checks import (
    check_annotations,
    check_codes,
    check_known,
    check_parameters,
    check_same_length,
)
from manyhands.validation.constraints import (
    Amount,
    Constraint,
    Device,
    Folder,
    Maybe,
    NameOr,
    Number,
    OneOf,
    Probabilities,
    RandomState,
    Sizes,
    Switch,
)
from manyhands.validation.memory import check_memory
from manyhands.validation.suggestions import closest_match

__all__ = [
    "Amount",
    "Constraint",
    "Device",
    "Folder",
    "Maybe",
    "NameOr",
    "Number",
    "OneOf",
    "Probabilities",
    "RandomState",
    "Sizes",
    "Switch",
    "check_annotations",
    "check_codes",
    "check_known",
    "check_memory",
    "check_parameters",
    "check_same_length",
    "closest_match",
]
