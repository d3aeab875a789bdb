"""Documented types and defaults against constraints, groups of options, and the parser of docstrings."""

from dataclasses import dataclass
from typing import ClassVar

import pytest

from docstrings import is_default, missing_from_type, parameter_problems, parse_docstring
from manyhands import MajorityVote
from manyhands.estimator import OptionGroup, Options
from manyhands.validation import (
    Boolean,
    Device,
    Folder,
    FractionOrCount,
    LayerSizes,
    NameOr,
    NoneOr,
    Number,
    OneOf,
    Probabilities,
    RandomState,
)


def test_defaults_are_compared_by_value():
    """Literals by their value and kind, functions by name, groups of options by their constructor."""
    assert is_default("1e-3", 0.001) and is_default("(128,)", (128,)) and is_default("None", None)
    assert is_default("sum", sum) and is_default("Boolean()", Boolean())
    assert not is_default("1", True) and not is_default("128", (128,)) and not is_default("mlp", "mlp")


def test_types_name_what_constraints_allow():
    """Whole words only; a choice among many names may be called str."""
    assert missing_from_type("int, Generator or None", RandomState()) == []
    assert missing_from_type("int", RandomState()) == ["Generator", "None"]
    assert missing_from_type("int, numpy.random.Generator or None", RandomState()) == []
    assert missing_from_type('bool or "auto"', OneOf((True, False, "auto"))) == []
    assert missing_from_type("point", Number(whole=True)) == ["int"]
    assert missing_from_type("tuple of int", LayerSizes()) == []
    names = NameOr(("mlp", "resnet"), "__call__", "a function")
    assert missing_from_type("str or callable", names) == [] and missing_from_type('"mlp"', names) == ['"resnet"']


@pytest.mark.parametrize(
    "constraint",
    [
        Number(),
        NoneOr(Number(whole=True)),
        FractionOrCount(),
        OneOf(("a", None, True)),
        Probabilities(("uniform",)),
        RandomState(),
        Boolean(),
        LayerSizes(),
        Folder(),
        Device(),
        NameOr(("mlp",), "__call__", "callable"),
    ],
)
def test_the_type_that_a_constraint_states_is_accepted(constraint):
    """A docstring with the `type_text` of the constraint passes, and another type does not."""
    assert missing_from_type(constraint.type_text, constraint) == []
    assert missing_from_type("object", constraint) != []


@dataclass(frozen=True, repr=False)
class Group(OptionGroup):
    """A group.

    Parameters
    ----------
    size : int, default=2
        Its size.
    """

    size: int = 2

    _constraints: ClassVar = {"size": Number()}


def test_groups_of_options_are_checked_with_their_method():
    """The type names the group, and None where it is optional; the group has a docstring of its own."""
    assert missing_from_type("Group or None", Options(Group, optional=True)) == []
    assert missing_from_type("dict", Options(Group, optional=True)) == ["Group", "None"]

    class Grouped(MajorityVote):
        """Toy.

        Parameters
        ----------
        group : Group, default=Group()
            A group.
        """

        _constraints: ClassVar = {"group": Options(Group)}

        def __init__(self, group=Group()):  # noqa: B008
            self.group = group

    assert parameter_problems(Grouped) == ["Group.size: the type 'int' does not name float; write `float`"]


def test_sections_and_entries_are_separated():
    """Titles need an underline; an entry ends where the next line without indentation begins."""
    parsed = parse_docstring("""One.

    Text with Notes
    in it.

    Parameters
    ----------
    a : {"x : y", "z"}, default="z"
        First line.

        Second line.
    b

    Notes
    -----
    Anything.
    """)
    assert list(parsed.sections) == ["Parameters", "Notes"] and parsed.summary == "One."
    first, second = parsed.entries("Parameters")
    assert (first.name, first.type, first.default) == ("a", '{"x : y", "z"}', '"z"')
    assert first.description == "First line. Second line."
    assert (second.name, second.type, second.default, second.description) == ("b", "", None, "")
    assert parsed.entries("Returns") == [] and parse_docstring(None).summary == ""
