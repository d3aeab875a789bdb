"""Checks of inputs, and the messages of the errors that they raise.

    constraints   which values a constructor parameter may have
    input_checks  parameters, columns, codes and annotations
    memory        jobs that would need more memory than there is

Every message states what was wrong, which value came, and what to do.
"""

from manyhands.validation.constraints import (
    Boolean,
    Constraint,
    Device,
    Folder,
    FractionOrCount,
    LayerSizes,
    NameOr,
    NameOrNumber,
    NoneOr,
    Number,
    OneOf,
    Probabilities,
    RandomState,
)
from manyhands.validation.input_checks import (
    check_annotations,
    check_codes,
    check_known,
    check_parameters,
    check_same_length,
)
from manyhands.validation.memory import check_memory

__all__ = [
    "FractionOrCount",
    "Constraint",
    "Device",
    "Folder",
    "NoneOr",
    "NameOr",
    "NameOrNumber",
    "Number",
    "OneOf",
    "Probabilities",
    "RandomState",
    "LayerSizes",
    "Boolean",
    "check_annotations",
    "check_codes",
    "check_known",
    "check_memory",
    "check_parameters",
    "check_same_length",
]
