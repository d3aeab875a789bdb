"""What a docstring lists under Attributes, type checkers know: it is a property or has an annotation in the class."""

import inspect
import re

import pytest

from manyhands import registry


def documented(kind):
    """The names under Attributes in the docstring of a class."""
    text = inspect.cleandoc(kind.__doc__ or "")
    section = re.search(r"^Attributes\n-+\n(.*?)(?:\n\n[A-Z][a-z ]+\n-+|\Z)", text, re.DOTALL | re.MULTILINE)
    return re.findall(r"^(\w+) : ", section[1], re.MULTILINE) if section else []


def undeclared(kind):
    """Documented attributes of a class that it does not declare."""
    declared = {name for base in kind.__mro__ for name in inspect.get_annotations(base)}
    return [name for name in documented(kind) if name not in declared and not hasattr(kind, name)]


def test_results_of_every_method_are_declared():
    """With those of their base classes."""
    pytest.importorskip("torch", reason="torch is not installed: networks are among the classes")
    found = {}
    for name in registry.names():
        for kind in registry.get(name).__mro__:
            if kind.__module__.startswith("manyhands") and undeclared(kind):
                found[kind.__qualname__] = undeclared(kind)
    assert found == {}


def test_what_is_not_declared_is_found():
    class Odd:
        """An example.

        Attributes
        ----------
        known_ : int
            Declared.
        lost_ : int
            Not declared.
        """

        known_: int

    assert undeclared(Odd) == ["lost_"]
