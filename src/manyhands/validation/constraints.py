"""Constraints: which values a constructor parameter may have.

Each constraint has three faces:

    allows(value)   whether a parameter may have this value
    str(...)        the end of an error message that begins with "must be"
    type_text       the type as a docstring states it, as in ``name : type_text, default=...``

    constraint                        type_text                         also allowed
    Number(), Number(whole=True)      float, int                        NumPy's numbers, fractions
    FractionOrCount()                 int or float
    OneOf(("a", None))                {"a", None}
    Probabilities(("uniform",))       {"uniform"} or array-like of shape (n_classes,)
    RandomState()                     int, Generator or None            numpy SeedSequence
    NoneOr(Number())                  float or None
    Boolean()                         bool                              numpy bool
    LayerSizes()                      tuple of int                      list of int
    ValueList()                       sequence                          list, tuple or array of any values
    Folder()                          path-like or None
    Device()                          str
    NameOr(("mlp",), "__call__", "a function")     {"mlp"} or a function    (`alternatives`, as NoneOr)
    NameOrNumber(("none",), Number())              {"none"} or float
"""

from __future__ import annotations

import math
import numbers
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np


class Constraint(Protocol):
    """Which values a constructor parameter may have; as text, the end of a message that begins with "must be"."""

    def allows(self, value: Any) -> bool:
        """Whether the parameter may have this value."""
        ...


@dataclass(frozen=True)
class Number:
    """A finite number between two bounds.

    Booleans, NaN, infinities, complex numbers and numbers beyond 64-bit floats are refused.

    Parameters
    ----------
    whole : bool, default=False
        Allow integers only (1.0 is refused); otherwise any real number.
    least : float or None, default=None
        Inclusive lower bound.
    above : float or None, default=None
        Exclusive lower bound.
    most : float or None, default=None
        Inclusive upper bound.

    Examples
    --------
    >>> str(Number(whole=True, least=1))
    'a whole number at least 1'
    >>> Number(above=0, most=1).allows(0), Number(above=0, most=1).allows(0.5)
    (False, True)
    """

    whole: bool = False
    least: float | None = None
    above: float | None = None
    most: float | None = None

    def allows(self, value: Any) -> bool:
        """Whether the value is a finite number within the bounds."""
        kind = numbers.Integral if self.whole else numbers.Real
        if isinstance(value, bool | np.bool_) or not isinstance(value, kind):
            return False
        try:
            number = float(value)
        except OverflowError:  # an integer or a fraction beyond 64-bit floats
            return False
        return (
            math.isfinite(number)
            and (self.least is None or number >= self.least)
            and (self.above is None or number > self.above)
            and (self.most is None or number <= self.most)
        )

    @property
    def type_text(self) -> str:
        """``int`` or ``float``."""
        return "int" if self.whole else "float"

    def __str__(self) -> str:
        bounds = [("at least", self.least), ("above", self.above), ("at most", self.most)]
        text = " and ".join(f"{word} {bound:g}" for word, bound in bounds if bound is not None)
        return f"a {'whole ' if self.whole else ''}number {text}".strip()


class FractionOrCount:
    """A fraction of something, or a count: a number above 0 and below 1, or an integer at least 1.

    As in scikit-learn's ``train_size``; 1 and 1.0 are both a count of one.
    """

    type_text = "int or float"

    def allows(self, value: Any) -> bool:
        """Whether the value is a fraction or a count."""
        return Number(above=0).allows(value) and (value < 1 or float(value).is_integer())

    def __str__(self) -> str:
        return "a share above 0 and below 1, or a whole number at least 1"


@dataclass(frozen=True)
class OneOf:
    """One of a few given values: strings, None, True or False.

    Parameters
    ----------
    values : tuple
        The values. Strings are compared by value, others by identity, so that 1 is not True.

    Examples
    --------
    >>> OneOf(("mean", None)).allows("mean"), OneOf(("mean", None)).allows("median")
    (True, False)
    >>> OneOf(("mean", None)).type_text
    '{"mean", None}'
    """

    values: tuple[Any, ...]

    def allows(self, value: Any) -> bool:
        """Whether the value is one of those given."""
        return any(value is v or (isinstance(value, str) and value == v) for v in self.values)

    @property
    def type_text(self) -> str:
        """The values in braces."""
        return braces(self.values)

    def __str__(self) -> str:
        return "one of " + ", ".join(map(repr, self.values))


@dataclass(frozen=True)
class Probabilities:
    """A named distribution over classes, or a positive number for each class.

    The numbers need not sum to 1. That there are as many as classes is checked in ``fit``, where classes are known.

    Parameters
    ----------
    names : tuple of str
        The names, such as ``"uniform"`` and ``"estimated"``.
    """

    names: tuple[str, ...]

    def allows(self, value: Any) -> bool:
        """Whether the value is one of the names, or a one-dimensional list of positive finite numbers."""
        if isinstance(value, str):
            return value in self.names
        try:
            array = np.asarray(value, float)
        except (TypeError, ValueError, OverflowError):
            return False
        return array.ndim == 1 and array.size > 0 and bool(np.all(array > 0) and np.all(np.isfinite(array)))

    @property
    def type_text(self) -> str:
        """The names in braces, or an array."""
        return f"{braces(self.names)} or array-like of shape (n_classes,)"

    def __str__(self) -> str:
        return "one of " + ", ".join(map(repr, self.names)) + " or a positive number for each class"


class RandomState:
    """A seed: None, a non-negative integer, a NumPy Generator or a SeedSequence.

    NumPy's old ``RandomState`` objects are refused.
    """

    type_text = "int, Generator or None"

    def allows(self, value: Any) -> bool:
        """Whether a generator can be made from the value."""
        is_seed = isinstance(value, numbers.Integral) and not isinstance(value, bool) and int(value) >= 0
        return value is None or is_seed or isinstance(value, np.random.Generator | np.random.SeedSequence)

    def __str__(self) -> str:
        return "None, a whole number at least 0, or a numpy Generator"


class Boolean:
    """True or False; 0 and 1 are refused."""

    type_text = "bool"

    def allows(self, value: Any) -> bool:
        """Whether the value is a boolean of Python or NumPy."""
        return isinstance(value, bool | np.bool_)

    def __str__(self) -> str:
        return "True or False"


class LayerSizes:
    """Sizes of layers: a tuple or list of integers at least 1, possibly empty.

    Attributes
    ----------
    most : int
        Maximum number of layers; thousands take minutes to build and cannot be trained.
    """

    type_text = "tuple of int"
    most = 100

    def allows(self, value: Any) -> bool:
        """Whether the value is a short list of positive integers."""
        few = isinstance(value, tuple | list) and len(value) <= self.most
        return few and all(Number(whole=True, least=1).allows(size) for size in value)

    def __str__(self) -> str:
        return f"a tuple of at most {self.most} whole numbers at least 1"


class ValueList:
    """A list, tuple or one-dimensional array of values; a text is none."""

    type_text = "sequence"

    def allows(self, value: Any) -> bool:
        """Whether the value is a list, tuple, range or array that is not empty."""
        is_list = isinstance(value, list | tuple | range) or (isinstance(value, np.ndarray) and value.ndim == 1)
        return is_list and len(value) > 0

    def __str__(self) -> str:
        return "a list of values"


class Folder:
    """None, or the path of a folder, which need not exist yet."""

    type_text = "path-like or None"

    def allows(self, value: Any) -> bool:
        """Whether the value is None, a string or a path."""
        return value is None or isinstance(value, str | os.PathLike)

    def __str__(self) -> str:
        return "None or the path of a folder"


class Device:
    """A torch device by name: "auto", "cpu", "cuda", "cuda:1", "mps", "xpu"; ``fit`` checks whether it exists."""

    type_text = "str"

    def allows(self, value: Any) -> bool:
        """Whether the value has the form of a device's name."""
        return isinstance(value, str) and re.fullmatch(r"auto|(cpu|cuda|mps|xpu)(:\d+)?", value) is not None

    def __str__(self) -> str:
        return "'auto', 'cpu', 'cuda', 'cuda:1' or another device of torch"


def braces(values: Iterable[Any]) -> str:
    """The values as numpydoc lists alternatives: ``{"a", None}``.

    Parameters
    ----------
    values : iterable
        The values.

    Returns
    -------
    str
    """
    return "{" + ", ".join(f'"{value}"' if isinstance(value, str) else repr(value) for value in values) + "}"
