"""Checks of inputs, and the messages of the errors that they raise.

    alternatives  constraints of parameters with several kinds of values
    constraints   which values a constructor parameter may have
    input_checks  parameters, columns, codes and annotations
    memory        jobs that would need more memory than there is
    sizes         sizes in bytes with a unit, such as 4GB

Every message states what was wrong, which value came, and what to do.
"""

from manyhands.validation.alternatives import NameOr, NameOrNumber, NoneOr
from manyhands.validation.constraints import (
    Boolean,
    Constraint,
    Device,
    Folder,
    FractionOrCount,
    LayerSizes,
    Number,
    OneOf,
    Probabilities,
    RandomState,
    ValueList,
)
from manyhands.validation.input_checks import (
    as_annotations,
    check_annotations,
    check_codes,
    check_known,
    check_parameters,
    check_same_length,
)
from manyhands.validation.memory import check_memory
from manyhands.validation.sizes import parse_size, show_size

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
    "ValueList",
    "LayerSizes",
    "Boolean",
    "as_annotations",
    "check_annotations",
    "check_codes",
    "check_known",
    "check_memory",
    "check_parameters",
    "check_same_length",
    "parse_size",
    "show_size",
]
