"""The docstring checks accept a complete docstring and name what is wrong with any other."""

import re
from dataclasses import dataclass, field
from typing import ClassVar

import pytest

from docstrings import (
    attribute_problems,
    check_docstring,
    check_function_docstring,
    class_problems,
    method_problems,
    parameter_problems,
)
from manyhands import MajorityVote
from manyhands.validation import Boolean, NoneOr, Number, OneOf

GOOD = """Toy aggregator.

    Parameters
    ----------
    kind : {"a", "b"}, default="a"
        A choice.
    rate : float, default=1e-3
        A number.
    times : int or None, default=None
        A count.
    loud : bool, default=False
        A switch.

    Attributes
    ----------
    spread_ : float
        How far the labels are apart.

    Examples
    --------
    >>> 1 + 1
    2
"""
SPREAD = "    spread_ : float\n        How far the labels are apart.\n"
COPIED = (
    "    classes_ : ndarray of shape (n_classes,)\n        The classes, in the order of the columns of `posterior_`.\n"
)


def toy(docstring):
    """A class of aggregators with four parameters and this docstring."""

    class Toy(MajorityVote):
        __doc__ = docstring

        _constraints: ClassVar = {
            "kind": OneOf(("a", "b")),
            "rate": Number(above=0),
            "times": NoneOr(Number(whole=True)),
            "loud": Boolean(),
        }

        def __init__(self, kind="a", *, rate=0.001, times=None, loud=False):
            self.kind, self.rate, self.times, self.loud = kind, rate, times, loud

        def fit(self, annotations, gold=None):
            """Fit.

            Parameters
            ----------
            annotations : Annotations
                The labels.
            gold : dict, default=None
                Known truth.
            """
            super().fit(annotations, gold)
            self.spread_ = 0.0
            return self

    return Toy


def test_a_complete_docstring_is_accepted():
    """Names, types, defaults (1e-3 for 0.001), attributes and examples are all there."""
    check_docstring(toy(GOOD)())


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("    times : int or None, default=None\n        A count.\n", "", "Toy.times: has no entry under Parameters"),
        ("rate : float,", "rate : number,", "Toy.rate: the type 'number' does not name float"),
        ("times : int or None", "times : int", "Toy.times: the type 'int' does not name None"),
        ("loud : bool", "loud : int", "Toy.loud: the type 'int' does not name bool"),
        ('{"a", "b"}', '{"a"}', 'Toy.kind: the type \'{"a"}\' does not name "b"'),
        ("default=1e-3", "default=1e-2", "Toy.rate: documented default 1e-2, but the signature has 0.001"),
        (", default=1e-3", "", "Toy.rate: the default is not documented; write `, default=0.001` after the type"),
        ("        A switch.\n", "", "Toy.loud: has no description"),
        ("loud : bool, default=False", "loud", "Toy.loud: has no type"),
        ("    loud : bool", "    more : bool", "Toy.more: documented, but is no parameter"),
        ("rate : float", "rate, kind : float", "Toy: the entry 'rate, kind' documents several parameters"),
        (">>> 1 + 1", "1 + 1", "Toy: no section Examples with code"),
        ("Toy aggregator.", "Toy aggregator", "Toy: the summary is not one line that ends with a period"),
        (SPREAD, "", "Toy.spread_: set by fit, but has no entry under Attributes, in the class or in a base"),
        ("spread_ : float", "knots_ : float", "Toy.knots_: not set by fit"),
        ("spread_ : float", "spread_", "Toy.spread_: has no type"),
        (SPREAD, SPREAD + COPIED, "Toy.classes_: has the entry of "),
    ],
)
def test_what_is_missing_is_named(old, new, message):
    """The sentence names class, parameter and what is missing."""
    assert old in GOOD
    with pytest.raises(AssertionError, match=re.escape(message)):
        check_docstring(toy(GOOD.replace(old, new, 1))())


def test_entries_follow_the_order_of_the_signature():
    """The same entries in another order are a problem."""
    rate, loud = (
        "    rate : float, default=1e-3\n        A number.\n",
        "    loud : bool, default=False\n        A switch.\n",
    )
    swapped = GOOD.replace(rate, "").replace(loud, loud + rate)
    with pytest.raises(AssertionError, match="not in the order of the signature: kind, rate, times, loud"):
        check_docstring(toy(swapped)())


def test_an_attribute_of_some_settings_says_so():
    """An attribute that the fit did not set is accepted if its description says when it is there."""
    extra = "    restarts_ : list\n        Objectives; only with several starts.\n"
    assert attribute_problems(toy(GOOD.replace(SPREAD, SPREAD + extra))()) == []


def test_an_attribute_of_the_base_may_be_said_differently():
    """A base documents what it sets, once; an entry in a subclass is for what differs there."""
    different = "    n_iter_ : int\n        Always 1.\n"
    assert attribute_problems(toy(GOOD.replace(SPREAD, SPREAD + different))()) == []


def test_the_parameters_of_the_base_are_not_inherited():
    """A subclass without a docstring of its own is not documented by that of its base."""
    bare = type("Bare", (toy(GOOD),), {"__doc__": None})
    assert "Bare.kind: has no entry under Parameters" in parameter_problems(bare)
    assert attribute_problems(bare()) == []


def test_hidden_parameters_and_constraints_are_named():
    """`**others` in a constructor, a parameter without constraint, a constraint without parameter."""
    base = toy(GOOD)

    class Hiding(base):
        __doc__ = GOOD
        _constraints: ClassVar = {"rate": Number(above=0)}

        def __init__(self, kind="a", **others):
            super().__init__(kind, **others)

    problems = "\n".join(parameter_problems(Hiding))
    for message in (
        "Hiding: the constructor hides parameters in **others",
        "Hiding.kind: has no constraint",
        "Hiding.rate: has a constraint, but is no parameter",
    ):
        assert message in problems


def test_fit_must_document_its_arguments():
    """`fit` without a section Parameters is a problem of the class."""
    undocumented = toy(GOOD)
    undocumented.fit.__doc__ = "Fit."
    with pytest.raises(AssertionError, match=r"Toy.fit.annotations: has no entry under Parameters"):
        check_docstring(undocumented())


def mean(a: float, b: float = 0.0, *more: float) -> float:
    """Mean of numbers.

    Parameters
    ----------
    a : float
        The first.
    b : float, default=0.0
        The second.
    *more : float
        Any others.

    Returns
    -------
    float
        The mean.
    """
    return (a + b + sum(more)) / (2 + len(more))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("    a : float\n        The first.\n", "", "mean.a: has no entry under Parameters"),
        ("b : float, default=0.0", "b : float", "mean.b: the default is not documented"),
        ("a : float\n", "a : float, default=1\n", "mean.a: has no default, but default=1 is documented"),
        ("    *more : float\n        Any others.\n", "", "mean.*more: has no entry"),
        ("Returns\n    -------", "Notes\n    -----", "mean: returns float, but has no section Returns"),
        ("    float\n        The mean.\n", "", "mean: the section Returns is empty"),
        ("Mean of numbers.", "Mean of", "the summary is not one line"),
    ],
)
def test_functions_are_checked(old, new, message, monkeypatch):
    """Each omission in the docstring of a function is named; the complete one is accepted."""
    check_function_docstring(mean)
    assert old in mean.__doc__.expandtabs()
    monkeypatch.setattr(mean, "__doc__", mean.__doc__.replace(old, new, 1))
    with pytest.raises(AssertionError, match=re.escape(message)):
        check_function_docstring(mean)


def describe(cls: type) -> str:
    """Name of a class."""
    return cls.__name__


def test_only_methods_have_a_self():
    """A parameter called `cls` of a plain function needs an entry; `self` of a method does not."""
    with pytest.raises(AssertionError, match=r"describe.cls: has no entry under Parameters"):
        check_function_docstring(describe)


def test_a_default_factory_needs_no_default():
    """The default of a field that a function makes has no literal."""

    @dataclass
    class Bag:
        """A bag.

        Attributes
        ----------
        things : list
            What is in it.
        """

        things: list = field(default_factory=list)

    assert class_problems(Bag) == []


def test_classes_and_their_methods_are_checked():
    """A class documents its constructor, its public methods and its properties; private ones may be bare."""

    class Box:
        """A box.

        Parameters
        ----------
        size : int
            Its size.
        """

        def __init__(self, size):
            self.size = size

        def grow(self, by=1):
            """Grow."""

        @property
        def volume(self):
            return self.size**3

        def _hidden(self):
            pass

    assert method_problems(Box) == ["Box.grow.by: has no entry under Parameters", "Box.volume: no docstring"]
    assert class_problems(Box) == method_problems(Box)
    Box.__doc__ = "A box."
    assert class_problems(Box)[0] == "Box.size: has no entry under Parameters"
