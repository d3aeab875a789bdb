"""Constraints of parameters that may be one of several kinds of values: None, a name, a number or an object."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from manyhands.validation.constraints import Constraint, Number, braces


@dataclass(frozen=True)
class NoneOr:
    """None, or a value that another constraint allows.

    Parameters
    ----------
    other : Constraint
        The constraint of values other than None.
    """

    other: Constraint

    def allows(self, value: Any) -> bool:
        """Whether the value is None or allowed by the other constraint."""
        return value is None or self.other.allows(value)

    @property
    def type_text(self) -> str:
        """The type of the other constraint, or None."""
        return f"{getattr(self.other, 'type_text', self.other)} or None"

    def __str__(self) -> str:
        return f"None or {self.other}"


@dataclass(frozen=True)
class NameOr:
    """One of a few names, or an object with a given method.

    Parameters
    ----------
    names : tuple of str
        The names.
    method : str
        Method that an object must have; ``"__call__"`` for a function, in which case a class is allowed too.
    what : str
        What such an object is, for messages and docstrings, as in "an Aggregator".
    """

    names: tuple[str, ...]
    method: str
    what: str

    def allows(self, value: Any) -> bool:
        """Whether the value is one of the names or an object with the method."""
        if isinstance(value, str):
            return value in self.names
        may_be_class = self.method == "__call__"
        return callable(getattr(value, self.method, None)) and (may_be_class or not isinstance(value, type))

    @property
    def type_text(self) -> str:
        """The names in braces, or what the object is."""
        return f"{braces(self.names)} or {self.what}"

    def __str__(self) -> str:
        return f"one of {', '.join(map(repr, self.names))} or {self.what}"


@dataclass(frozen=True)
class NameOrNumber:
    """One of a few names, or a number.

    Parameters
    ----------
    names : tuple of str
        The names.
    number : Number
        The constraint of a number.
    """

    names: tuple[str, ...]
    number: Number

    def allows(self, value: Any) -> bool:
        """Whether the value is one of the names or an allowed number."""
        return value in self.names if isinstance(value, str) else self.number.allows(value)

    @property
    def type_text(self) -> str:
        """The names in braces, or the type of the number."""
        return f"{braces(self.names)} or {self.number.type_text}"

    def __str__(self) -> str:
        return f"one of {', '.join(map(repr, self.names))} or {self.number}"
